//! `qconf -s…`: configuration objects as text fields, their names, and what `-a…` opens.

use super::Model;
use master_core::state::config::Configuration;
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::hostgroup::{HostGroup, HostOrGroup};
use proto::id::{HostGroupName, HostName, PeName, QueueInstanceName, QueueName};
use proto::object::value::Assignments;
use proto::object::{Fields, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::wire::client::Reply;
use proto::wire::view::{Data, HostGroupTree};

/// Groups inside groups that are followed; the core refuses circles, and deeper nesting is nobody's intent.
const DEPTH_MAX: usize = 64;

/// The answer to [`proto::wire::client::Query::Object`].
pub(super) fn object(model: &Model, kind: ObjectKind, name: &str) -> Reply {
    match fields(model, kind, name) {
        Some(fields) => Reply::data(Data::Object(fields)),
        None => Reply::refusal(unknown(&model.state.config, kind, name)),
    }
}

fn fields(model: &Model, kind: ObjectKind, name: &str) -> Option<Fields> {
    let config = &model.state.config;
    match kind {
        ObjectKind::ComplexTable => Some(complex_fields(&config.complex)),
        ObjectKind::ExecHost => exec_host(model, &HostName::new(name)),
        ObjectKind::Queue => queue(config, name),
        ObjectKind::HostGroup => config.host_groups.get(name).map(|group| group.to_fields()),
        ObjectKind::Pe => config.pes.get(name).map(|pe| pe.to_fields()),
        ObjectKind::ClusterConf if name.is_empty() || name == "global" => Some(config.cluster.to_fields()),
        ObjectKind::ClusterConf => config.host_confs.get(&HostName::new(name)).map(|conf| conf.to_fields()),
        ObjectKind::SchedulerConf => Some(config.scheduler.to_fields()),
        ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => None,
    }
}

/// One field for each attribute, as the complex is stored: its name, then the other columns.
pub(crate) fn complex_fields(complex: &Complex) -> Fields {
    let table = complex.to_string();
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(char::is_whitespace)).map(|(name, rest)| (name, squeezed(rest))).collect()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A host with the load values it reported.
fn exec_host(model: &Model, name: &HostName) -> Option<Fields> {
    let host = model.state.config.exec_hosts.get(name)?;
    let load = model.observations.load.get(name);
    let values: Vec<String> =
        load.into_iter().flatten().map(|(name, entry)| format!("{name}={}", entry.text)).collect();
    let shown: Assignments = values.join(",").parse().unwrap_or_default();
    let processors = load.and_then(|values| values.get("num_proc")).and_then(|entry| entry.text.parse().ok());
    Some(host.shown(&shown, processors.unwrap_or(0)))
}

/// A cluster queue, or one of its instances as `queue@host`.
fn queue(config: &Configuration, name: &str) -> Option<Fields> {
    let Some((queue, host)) = name.split_once('@') else {
        return config.queues.get(name).map(|queue| queue.to_fields());
    };
    let instance = QueueInstanceName { queue: QueueName::from(queue), host: HostName::new(host) };
    config.resolved.get(&instance).map(|settings| settings.to_fields(&instance))
}

/// Whether the cell knows a host by this name; 8.1.9 asks the name service.
fn is_host(config: &Configuration, name: &str) -> bool {
    let host = HostName::new(name);
    let known = config.exec_hosts.contains_key(&host) || config.admin_hosts.contains(&host);
    known || config.submit_hosts.contains(&host)
}

/// In the words of 8.1.9 where it has any.
fn unknown(config: &Configuration, kind: ObjectKind, name: &str) -> Diagnostic {
    let what = match kind {
        ObjectKind::Pe => format!("{name} is not a parallel environment"),
        ObjectKind::ExecHost if is_host(config, name) => format!("{name} is not an execution host"),
        ObjectKind::ExecHost => format!("can't resolve hostname \"{name}\""),
        ObjectKind::Queue => format!("No cluster queue or queue instance matches the phrase \"{name}\""),
        ObjectKind::HostGroup => format!("Host group \"{name}\" does not exist"),
        ObjectKind::ClusterConf if is_host(config, name) => format!("configuration {name} not defined"),
        ObjectKind::ClusterConf => format!("can't resolve hostname \"{name}\": can't resolve host name"),
        ObjectKind::ComplexTable
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
        | ObjectKind::ShareTree => format!("{kind} {name} does not exist"),
    };
    Diagnostic::new(Code::UnknownObject, what).fix(format!("qconf {} lists what there is", kind.listed_by()))
}

/// The answer to [`proto::wire::client::Query::Template`].
pub(super) fn template(kind: ObjectKind, name: &str) -> Reply {
    let or = |default: &str| if name.is_empty() { default.to_owned() } else { name.to_owned() };
    let fields = match kind {
        ObjectKind::ComplexTable => complex_fields(&Complex::built_in()),
        ObjectKind::ExecHost => ExecHost::template(HostName::new(&or("template"))).to_fields(),
        ObjectKind::Queue => ClusterQueue::template(QueueName::from(or("template"))).to_fields(),
        ObjectKind::HostGroup => HostGroup::template(HostGroupName::from(or("@template"))).to_fields(),
        ObjectKind::Pe => ParallelEnvironment::template(PeName::from(or("template"))).to_fields(),
        ObjectKind::ClusterConf => ClusterConf::template().to_fields(),
        ObjectKind::SchedulerConf => SchedulerConf::template().to_fields(),
        ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => {
            return Reply::refusal(Diagnostic::new(Code::NotSupported, format!("there is no template of a {kind}")));
        }
    };
    Reply::data(Data::Object(fields))
}

/// The answer to [`proto::wire::client::Query::Names`].
pub(super) fn names(model: &Model, kind: ObjectKind) -> Reply {
    let config = &model.state.config;
    let names = match kind {
        ObjectKind::ComplexTable => config.complex.iter().map(|attribute| attribute.name.to_string()).collect(),
        ObjectKind::ExecHost => texts(config.exec_hosts.keys().filter(|host| !host.is_global())),
        ObjectKind::Queue => texts(config.queues.keys()),
        ObjectKind::HostGroup => texts(config.host_groups.keys()),
        ObjectKind::Pe => texts(config.pes.keys()),
        ObjectKind::ClusterConf => texts(config.host_confs.keys()),
        ObjectKind::SchedulerConf => vec![String::new()],
        ObjectKind::AdminHosts => texts(&config.admin_hosts),
        ObjectKind::SubmitHosts => texts(&config.submit_hosts),
        ObjectKind::Managers => texts(&config.managers),
        ObjectKind::Operators => texts(&config.operators),
        ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => Vec::new(),
    };
    Reply::data(Data::Names(names))
}

fn texts<T: ToString>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}

/// The answer to [`proto::wire::client::Query::HostGroupTree`].
pub(super) fn host_group_tree(model: &Model, name: &str) -> Reply {
    match tree(&model.state.config, name, DEPTH_MAX) {
        Some(tree) => Reply::data(Data::HostGroupTree(tree)),
        None => Reply::refusal(unknown(&model.state.config, ObjectKind::HostGroup, name)),
    }
}

fn tree(config: &Configuration, name: &str, depth: usize) -> Option<HostGroupTree> {
    let group = config.host_groups.get(name)?;
    let mut tree = HostGroupTree { name: name.to_owned(), hosts: Vec::new(), groups: Vec::new() };
    for member in group.members.iter() {
        match member {
            HostOrGroup::Host(host) => tree.hosts.push(host.clone()),
            HostOrGroup::Group(inner) if depth > 0 => tree.groups.extend(self::tree(config, inner.as_str(), depth - 1)),
            HostOrGroup::Group(_) => {}
        }
    }
    Some(tree)
}
