//! `qconf -s…`: configuration objects as text fields, their names, and what `-a…` opens.

use crate::model::Model;
use master_core::config::Configuration;
use master_core::observe::Loads;
use proto::diagnostic::{Code, Diagnostic};
use proto::hostgroup::HostOrGroup;
use proto::id::{HostName, QueueInstanceName, QueueName};
use proto::object::value::Assignments;
use proto::object::{Fields, Form, ObjectKind};
use proto::wire::client::Reply;
use proto::wire::view::{Data, HostGroupTree};

/// Groups inside groups that are followed; the core refuses circles, and deeper nesting is nobody's
/// intent.
const DEPTH_MAX: usize = 64;

/// The answer to [`proto::wire::client::Query::Object`].
pub(super) fn object(model: &Model, kind: ObjectKind, name: &str) -> Reply {
    match fields(model, kind, name) {
        Some(fields) => Reply::data(Data::Object(fields)),
        None => Reply::refusal(unknown(&model.state.config, kind, name)),
    }
}

/// Objects as they are stored; hosts with what they reported, and of queues also their instances.
fn fields(model: &Model, kind: ObjectKind, name: &str) -> Option<Fields> {
    let config = &model.state.config;
    match kind {
        ObjectKind::ExecHost => exec_host(model, &HostName::new(name)),
        ObjectKind::Queue => queue(config, name),
        ObjectKind::ClusterConf => config.object_fields(kind, HostName::new(name).as_str()),
        ObjectKind::ComplexTable
        | ObjectKind::HostGroup
        | ObjectKind::Pe
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
        | ObjectKind::ShareTree => {
            let has_fields = kind.form() != Form::Bare;
            has_fields.then(|| config.object_fields(kind, name)).flatten()
        }
    }
}

/// A host with the load values it reported.
fn exec_host(model: &Model, name: &HostName) -> Option<Fields> {
    let host = model.state.config.exec_hosts.get(name)?;
    let load = model.observations.load.get(name);
    let values: Vec<String> = load
        .into_iter()
        .flat_map(Loads::iter)
        .map(|(name, entry)| format!("{name}={}", entry.text))
        .collect();
    let shown: Assignments = values.join(",").parse().unwrap_or_default();
    let processors = load
        .and_then(|values| values.named("num_proc"))
        .and_then(|entry| entry.text.parse().ok());
    Some(host.shown(&shown, processors.unwrap_or(0)))
}

/// A cluster queue, or one of its instances as `queue@host`.
fn queue(config: &Configuration, name: &str) -> Option<Fields> {
    let Some((queue, host)) = name.split_once('@') else {
        return config.queues.get(name).map(|queue| queue.to_fields());
    };
    let instance = QueueInstanceName {
        queue: QueueName::from(queue),
        host: HostName::new(host),
    };
    config
        .resolved
        .get(&instance)
        .map(|settings| settings.to_fields(&instance))
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
        ObjectKind::Calendar => format!("{name} is not a calendar"),
        ObjectKind::HostGroup => format!("Host group \"{name}\" does not exist"),
        ObjectKind::ClusterConf if is_host(config, name) => format!("configuration {name} not defined"),
        ObjectKind::ClusterConf => format!("can't resolve hostname \"{name}\": can't resolve host name"),
        ObjectKind::UserSet => format!("denied: access list \"{name}\" does not exist"),
        ObjectKind::Project => format!("{name} is not known as a project"),
        ObjectKind::User => format!("{name} is not known as a user"),
        ObjectKind::Checkpoint => format!("{name} is not a checkpointing interface definition"),
        ObjectKind::ShareTree => "no sharetree element".to_owned(),
        ObjectKind::ComplexTable
        | ObjectKind::SchedulerConf
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::ResourceQuota => format!("{kind} {name} does not exist"),
    };
    Diagnostic::new(Code::UnknownObject, what).fix(format!("qconf {} lists what there is", kind.listed_by()))
}

/// The answer to [`proto::wire::client::Query::Template`].
pub(super) fn template(kind: ObjectKind, name: &str) -> Reply {
    match kind.template(name) {
        Some(fields) => Reply::data(Data::Object(fields)),
        None => Reply::refusal(Diagnostic::new(
            Code::NotSupported,
            format!("there is no template of a {kind}"),
        )),
    }
}

/// The answer to [`proto::wire::client::Query::Names`].
pub(super) fn names(model: &Model, kind: ObjectKind) -> Reply {
    Reply::data(Data::Names(model.state.config.object_names(kind)))
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
    let mut tree = HostGroupTree {
        name: name.to_owned(),
        hosts: Vec::new(),
        groups: Vec::new(),
    };
    for member in group.members.iter() {
        match member {
            HostOrGroup::Host(host) => tree.hosts.push(host.clone()),
            HostOrGroup::Group(inner) if depth > 0 => tree.groups.extend(self::tree(config, inner.as_str(), depth - 1)),
            HostOrGroup::Group(_) => {}
        }
    }
    Some(tree)
}
