//! What 8.1.9 says of changes to objects. Programs match these lines.

use crate::decide::Caller;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;

/// The list of a kind as messages of additions and changes call it.
fn list(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::ExecHost => "exechost",
        ObjectKind::Queue => "cluster queue",
        ObjectKind::HostGroup => "host group entry",
        ObjectKind::Pe => "parallel environment",
        ObjectKind::ClusterConf => "configuration",
        ObjectKind::AdminHosts => "administrative host",
        ObjectKind::SubmitHosts => "submit host",
        ObjectKind::Managers => "manager",
        ObjectKind::Operators => "operator",
        ObjectKind::ComplexTable
        | ObjectKind::SchedulerConf
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => kind.as_str(),
    }
}

/// One object of a kind as refusals call it.
fn object(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::ExecHost => "execution host",
        ObjectKind::HostGroup => "host group",
        ObjectKind::ComplexTable
        | ObjectKind::Queue
        | ObjectKind::Pe
        | ObjectKind::ClusterConf
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
        | ObjectKind::ShareTree => list(kind),
    }
}

/// An object was added.
pub(super) fn added(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    match kind {
        ObjectKind::AdminHosts | ObjectKind::SubmitHosts => format!("{name} added to {} list", list(kind)),
        ObjectKind::ComplexTable
        | ObjectKind::ExecHost
        | ObjectKind::Queue
        | ObjectKind::HostGroup
        | ObjectKind::Pe
        | ObjectKind::ClusterConf
        | ObjectKind::SchedulerConf
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => format!("{} added \"{name}\" to {} list", caller.at_host(), list(kind)),
    }
}

/// An object was changed.
pub(super) fn modified(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    if kind == ObjectKind::SchedulerConf {
        return "changed scheduler configuration".to_owned();
    }
    format!("{} modified \"{name}\" in {} list", caller.at_host(), list(kind))
}

/// An object was deleted.
pub(super) fn removed(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    let list = if kind == ObjectKind::HostGroup { list(kind) } else { object(kind) };
    format!("{} removed \"{name}\" from {list} list", caller.at_host())
}

/// An object of that name is there already.
pub(super) fn exists(kind: ObjectKind, name: &str) -> Diagnostic {
    let words = match kind {
        ObjectKind::AdminHosts => "adminhost",
        ObjectKind::SubmitHosts => "submithost",
        ObjectKind::ComplexTable
        | ObjectKind::ExecHost
        | ObjectKind::Queue
        | ObjectKind::HostGroup
        | ObjectKind::Pe
        | ObjectKind::ClusterConf
        | ObjectKind::SchedulerConf
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::User
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => list(kind),
    };
    Diagnostic::new(Code::AlreadyExists, format!("{words} \"{name}\" already exists"))
        .fix(format!("choose another name, or change what is there; qconf {} lists all", kind.listed_by()))
}

/// There is no object of that name.
pub(super) fn absent(kind: ObjectKind, name: &str) -> Diagnostic {
    Diagnostic::new(Code::UnknownObject, format!("denied: {} \"{name}\" does not exist", object(kind)))
        .fix(format!("qconf {} lists what there is", kind.listed_by()))
}

/// Objects of this kind are known and not supported.
pub(super) fn unsupported(kind: ObjectKind) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("denied: a {kind} is not supported yet"))
}
