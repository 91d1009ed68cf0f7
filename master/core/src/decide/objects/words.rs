//! What 8.1.9 says of changes to objects. Programs match these lines.

use super::kinds;
use crate::decide::Caller;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Form, ObjectKind};

/// What messages call a kind.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The list of the kind, in messages of additions and changes.
    pub list: &'static str,
    /// One object, in messages of deletions and of what is not there.
    pub object: &'static str,
    /// One object that is there already.
    pub present: &'static str,
}

impl Words {
    /// The same words everywhere.
    pub const fn same(words: &'static str) -> Words {
        Words {
            list: words,
            object: words,
            present: words,
        }
    }
}

/// Messages of these kinds name neither who did it nor quote the name.
fn is_bare(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::AdminHosts | ObjectKind::SubmitHosts)
}

/// An object was added.
pub(super) fn added(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    let list = kinds::row(kind).words.list;
    match is_bare(kind) {
        true => format!("{name} added to {list} list"),
        false => format!("{} added \"{name}\" to {list} list", caller.at_host()),
    }
}

/// An object was changed.
pub(super) fn modified(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    if kind.form() == Form::Once {
        return format!("changed {kind}");
    }
    format!(
        "{} modified \"{name}\" in {} list",
        caller.at_host(),
        kinds::row(kind).words.list
    )
}

/// An object was deleted.
pub(super) fn removed(caller: &Caller, kind: ObjectKind, name: &str) -> String {
    let words = kinds::row(kind).words;
    let list = if kind == ObjectKind::HostGroup {
        "host group entry"
    } else {
        words.object
    };
    format!("{} removed \"{name}\" from {list} list", caller.at_host())
}

/// An object of that name is there already.
pub(super) fn exists(kind: ObjectKind, name: &str) -> Diagnostic {
    Diagnostic::new(
        Code::AlreadyExists,
        format!("{} \"{name}\" already exists", kinds::row(kind).words.present),
    )
    .fix(format!(
        "choose another name, or change what is there; qconf {} lists all",
        kind.listed_by()
    ))
}

/// There is no object of that name.
pub(super) fn absent(kind: ObjectKind, name: &str) -> Diagnostic {
    Diagnostic::new(
        Code::UnknownObject,
        format!("denied: {} \"{name}\" does not exist", kinds::row(kind).words.object),
    )
    .fix(format!("qconf {} lists what there is", kind.listed_by()))
}

/// There is no object of that name to be changed.
pub(super) fn not_there(kind: ObjectKind, name: &str) -> Diagnostic {
    match kind {
        ObjectKind::Checkpoint | ObjectKind::ExecHost => {
            let what = format!("denied: {} \"{name}\" does not exist", kinds::row(kind).words.present);
            Diagnostic {
                what,
                ..absent(kind, name)
            }
        }
        ObjectKind::Project | ObjectKind::User => {
            let what = format!("{name} is not known as a {kind}");
            Diagnostic {
                what,
                ..absent(kind, name)
            }
        }
        ObjectKind::ComplexTable
        | ObjectKind::Queue
        | ObjectKind::HostGroup
        | ObjectKind::Pe
        | ObjectKind::ClusterConf
        | ObjectKind::SchedulerConf
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::ResourceQuota
        | ObjectKind::ShareTree => absent(kind, name),
    }
}
