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
use std::collections::{BTreeMap, BTreeSet};

/// What stands in front of a command that root runs.
const AS_ROOT: &str = "root@";

/// The most hosts that a warning names.
const MAX_NAMED: usize = 5;

/// Pseudo variables of which a host knows the value for certain: a program that is listed alone may
/// be given them.
const CERTAIN: [&str; 10] = [
    "$job_id",
    "$ja_task_id",
    "$job_owner",
    "$pe_hostfile",
    "$sge_root",
    "$processors",
    "$stdin_path",
    "$stdout_path",
    "$stderr_path",
    "$merge_stderr",
];

/// Warnings about objects that have just been set.
pub(super) fn warnings(turn: &mut Turn<'_>, stored: &[StoredObject]) -> Vec<Diagnostic> {
    let mut wanted: BTreeMap<String, BTreeSet<HostName>> = BTreeMap::new();
    for object in stored.iter().filter(|object| object.fields.is_some()) {
        for (command, host) in commands_of(turn.state(), object) {
            wanted.entry(command).or_default().insert(host);
        }
    }
    let fitness = turn.fitness_mut();
    let missing = |command: &str, host: &HostName| {
        fitness.root_commands(host).is_some_and(|lines| !lines.iter().any(|line| admits(line, command)))
    };
    let found = wanted.into_iter().map(|(command, hosts)| {
        let hosts: Vec<HostName> = hosts.into_iter().filter(|host| missing(&command, host)).collect();
        (command, hosts)
    });
    found.filter(|(_, hosts)| !hosts.is_empty()).map(|(command, hosts)| warning(&command, &hosts)).collect()
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
fn commands_of(state: &State, object: &StoredObject) -> Vec<(String, HostName)> {
    let config = &state.config;
    let of_instance = |instance: &QueueInstanceName, settings: &QueueInstanceSettings| {
        let texts = [settings.prolog.value(), settings.epilog.value()].map(|command| command.map(ToString::to_string));
        texts.into_iter().flatten().map(|text| (text, instance.host.clone())).collect::<Vec<_>>()
    };
    let all: Vec<(String, HostName)> = match object.kind {
        ObjectKind::Queue => {
            let own = config.resolved.iter().filter(|(instance, _)| instance.queue.as_str() == object.name);
            own.flat_map(|(instance, settings)| of_instance(instance, settings)).collect()
        }
        ObjectKind::Pe => of_environment(state, &object.name),
        ObjectKind::ClusterConf => {
            let of = |key: &str| object.fields.as_ref().and_then(|fields| fields.value(key)).map(str::to_owned);
            let texts: Vec<String> = ["prolog", "epilog"].into_iter().filter_map(of).collect();
            let hosts: BTreeSet<&HostName> = config.resolved.keys().map(|instance| &instance.host).collect();
            let concerned = hosts.into_iter().filter(|host| object.name == "global" || host.as_str() == object.name);
            concerned.flat_map(|host| texts.iter().map(|text| (text.clone(), host.clone()))).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().filter_map(|(text, host)| Some((text.strip_prefix(AS_ROOT)?.to_owned(), host))).collect()
}

fn of_environment(state: &State, name: &str) -> Vec<(String, HostName)> {
    let pe = PeName::from(name);
    let Some(environment) = state.config.pes.get(&pe) else { return Vec::new() };
    let texts = [environment.start_proc_args.value(), environment.stop_proc_args.value()];
    let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
    let serves = |settings: &QueueInstanceSettings| settings.pe_list.contains(&pe);
    let instances = state.config.resolved.iter().filter(|(_, settings)| serves(settings));
    let hosts: BTreeSet<&HostName> = instances.map(|(instance, _)| &instance.host).collect();
    hosts.into_iter().flat_map(|host| texts.iter().map(|text| (text.clone(), host.clone()))).collect()
}

/// Whether a listed line admits a command with its pseudo variables: as it stands, or its program
/// alone with certain arguments.
fn admits(line: &str, command: &str) -> bool {
    let (line, command) = (words(line), words(command));
    match (line.as_slice(), command.as_slice()) {
        ([program], [first, arguments @ ..]) => {
            program == first && arguments.iter().all(|argument| CERTAIN.contains(&argument.as_str()))
        }
        _ => line == command,
    }
}

/// The words of a command; `${name}` is `$name`.
fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(|word| word.replace("${", "$").replace('}', "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_admits_its_own_command_and_a_program_alone_certain_arguments() {
        for (line, command, expected) in [
            ("/x/prolog", "/x/prolog", true),
            ("/x/prolog", "/x/prolog $job_id ${ja_task_id}", true),
            ("/x/prolog", "/x/prolog $host", false),
            ("/x/prolog $host", "/x/prolog ${host}", true),
            ("/x/prolog -q", "/x/prolog", false),
            ("/x/other", "/x/prolog", false),
        ] {
            assert_eq!(admits(line, command), expected, "{line}: {command}");
        }
    }
}
