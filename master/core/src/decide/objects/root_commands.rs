//! Procedures that root is to run on hosts which do not list them.
//!
//! A host runs as root only what its own `etc/root-commands` lists. It says what that is, so that
//! whoever names a procedure is told at once where it is missing; a task that meets it there stops
//! its queue instance.

use crate::decide::Turn;
use crate::event::StoredObject;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, PeName, QueueInstanceName};
use proto::object::ObjectKind;
use proto::queue::QueueInstanceSettings;
use proto::root_commands::admits_configured;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in front of a command that root runs.
const AS_ROOT: &str = "root@";

/// The most hosts that a warning names.
const MAX_NAMED: usize = 5;

/// The objects among those that are set which can name procedures.
pub(super) fn concerned(stored: &[StoredObject]) -> Vec<(ObjectKind, String)> {
    let names_procedures =
        |kind: ObjectKind| matches!(kind, ObjectKind::Queue | ObjectKind::Pe | ObjectKind::ClusterConf);
    let set = stored
        .iter()
        .filter(|object| object.fields.is_some() && names_procedures(object.kind));
    set.map(|object| (object.kind, object.name.clone())).collect()
}

/// Warnings about objects that have just been set.
pub(super) fn warnings(turn: &mut Turn<'_>, concerned: &[(ObjectKind, String)]) -> Vec<Diagnostic> {
    let mut wanted: BTreeMap<String, BTreeSet<HostName>> = BTreeMap::new();
    for (kind, name) in concerned {
        for (command, host) in commands_of(turn.state(), *kind, name) {
            wanted.entry(command).or_default().insert(host);
        }
    }
    let fitness = turn.fitness_mut();
    let missing = |command: &str, host: &HostName| {
        fitness
            .root_commands(host)
            .is_some_and(|lines| !lines.iter().any(|line| admits_configured(line, command)))
    };
    let found = wanted.into_iter().map(|(command, hosts)| {
        let hosts: Vec<HostName> = hosts.into_iter().filter(|host| missing(&command, host)).collect();
        (command, hosts)
    });
    found
        .filter(|(_, hosts)| !hosts.is_empty())
        .map(|(command, hosts)| warning(&command, &hosts))
        .collect()
}

fn warning(command: &str, hosts: &[HostName]) -> Diagnostic {
    let mut named: Vec<&str> = hosts.iter().take(MAX_NAMED).map(HostName::as_str).collect();
    let more = format!("{} more", hosts.len().saturating_sub(MAX_NAMED));
    if hosts.len() > MAX_NAMED {
        named.push(&more);
    }
    let what = format!("warning: root does not run \"{command}\" on {}", named.join(", "));
    let why = "etc/root-commands there does not list it: a job that starts there puts its queue instance into error";
    let fix = format!("add the line to etc/root-commands of each host, which is read at once: {command}");
    Diagnostic::new(Code::HostNotPermitted, what).why(why).fix(fix)
}

/// The commands of root that an object names, without what stands in front, each with a host on
/// which it is to run.
fn commands_of(state: &State, kind: ObjectKind, name: &str) -> Vec<(String, HostName)> {
    let config = &state.config;
    let of_instance = |instance: &QueueInstanceName, settings: &QueueInstanceSettings| {
        let texts = [settings.prolog.value(), settings.epilog.value()].map(|command| command.map(ToString::to_string));
        texts
            .into_iter()
            .flatten()
            .map(|text| (text, instance.host.clone()))
            .collect::<Vec<_>>()
    };
    let all: Vec<(String, HostName)> = match kind {
        ObjectKind::Queue => {
            let own = config
                .resolved
                .iter()
                .filter(|(instance, _)| instance.queue.as_str() == name);
            own.flat_map(|(instance, settings)| of_instance(instance, settings))
                .collect()
        }
        ObjectKind::Pe => of_environment(state, name),
        ObjectKind::ClusterConf => {
            let fields = config.object_fields(kind, name);
            let of = |key: &str| fields.as_ref().and_then(|fields| fields.value(key)).map(str::to_owned);
            let texts: Vec<String> = ["prolog", "epilog"].into_iter().filter_map(of).collect();
            let hosts: BTreeSet<&HostName> = config.resolved.keys().map(|instance| &instance.host).collect();
            let concerned = hosts
                .into_iter()
                .filter(|host| name == "global" || host.as_str() == name);
            concerned
                .flat_map(|host| texts.iter().map(|text| (text.clone(), host.clone())))
                .collect()
        }
        ObjectKind::ComplexTable
        | ObjectKind::ExecHost
        | ObjectKind::HostGroup
        | ObjectKind::SchedulerConf
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => Vec::new(),
    };
    all.into_iter()
        .filter_map(|(text, host)| Some((text.strip_prefix(AS_ROOT)?.to_owned(), host)))
        .collect()
}

fn of_environment(state: &State, name: &str) -> Vec<(String, HostName)> {
    let pe = PeName::from(name);
    let Some(environment) = state.config.pes.get(&pe) else {
        return Vec::new();
    };
    let texts = [environment.start_proc_args.value(), environment.stop_proc_args.value()];
    let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
    let serves = |settings: &QueueInstanceSettings| settings.pe_list.contains(&pe);
    let instances = state.config.resolved.iter().filter(|(_, settings)| serves(settings));
    let hosts: BTreeSet<&HostName> = instances.map(|(instance, _)| &instance.host).collect();
    hosts
        .into_iter()
        .flat_map(|host| texts.iter().map(|text| (text.clone(), host.clone())))
        .collect()
}
