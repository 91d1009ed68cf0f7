//! Configuration objects as `qconf` shows and reads them: their kinds, their text form, and edits of single attributes.
//!
//! The text form is the same for all of them, ordered pairs of an attribute and its value. What a value means is the
//! business of the typed objects ([`crate::queue`], [`crate::host`], [`crate::hostgroup`], [`crate::pe`],
//! [`crate::conf`], [`crate::policy`]). Whether an object refers to others that exist, and whether Gridwright supports
//! what it names, is deliberately not checked here: that needs the state of a cell.

pub mod edit;
pub mod fields;
pub(crate) mod reader;
pub mod suggest;
pub mod value;

#[cfg(test)]
mod tests;

pub use fields::{Field, Fields, Wrap};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of objects that `qconf` administers in Grid Engine 8.1.9.
///
/// Kinds that Gridwright does not support yet are listed too, so that they are refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// All resource attributes together: the complex (`-sc`), a table of its own form.
    ///
    /// It travels and is stored as one field for each attribute: the key is its name, the value its other seven columns,
    /// separated by single blanks. It is only replaced as a whole.
    ComplexTable,
    /// An execution host (`-se`), or the pseudo host `global`.
    ExecHost,
    /// A cluster queue (`-sq`).
    Queue,
    /// A host group (`-shgrp`).
    HostGroup,
    /// A parallel environment (`-sp`).
    Pe,
    /// The cluster configuration, global or of one host (`-sconf`).
    ClusterConf,
    /// The scheduler configuration (`-ssconf`).
    SchedulerConf,
    /// The hosts from which managers may administer (`-sh`).
    AdminHosts,
    /// The hosts from which users may submit (`-ss`).
    SubmitHosts,
    /// The managers (`-sm`).
    Managers,
    /// The operators (`-so`).
    Operators,
    /// A checkpointing environment (`-sckpt`).
    Checkpoint,
    /// A calendar (`-scal`).
    Calendar,
    /// An access list or department (`-su`).
    UserSet,
    /// A project (`-sprj`).
    Project,
    /// A user with shares (`-suser`).
    User,
    /// A resource quota set (`-srqs`), which has a form of its own.
    ResourceQuota,
    /// The share tree (`-sstree`), which has a form of its own.
    ShareTree,
}

impl ObjectKind {
    /// The option of `qconf` that lists the objects of this kind, or shows what exists once.
    pub fn listed_by(self) -> &'static str {
        match self {
            ObjectKind::ComplexTable => "-sc",
            ObjectKind::ExecHost => "-sel",
            ObjectKind::Queue => "-sql",
            ObjectKind::HostGroup => "-shgrpl",
            ObjectKind::Pe => "-spl",
            ObjectKind::ClusterConf => "-sconfl",
            ObjectKind::SchedulerConf => "-ssconf",
            ObjectKind::AdminHosts => "-sh",
            ObjectKind::SubmitHosts => "-ss",
            ObjectKind::Managers => "-sm",
            ObjectKind::Operators => "-so",
            ObjectKind::Checkpoint => "-sckptl",
            ObjectKind::Calendar => "-scall",
            ObjectKind::UserSet => "-sul",
            ObjectKind::Project => "-sprjl",
            ObjectKind::User => "-suserl",
            ObjectKind::ResourceQuota => "-srqsl",
            ObjectKind::ShareTree => "-sstree",
        }
    }

    /// Every kind, in the order of the declaration.
    pub const ALL: &[ObjectKind] = &[
        ObjectKind::ComplexTable,
        ObjectKind::ExecHost,
        ObjectKind::Queue,
        ObjectKind::HostGroup,
        ObjectKind::Pe,
        ObjectKind::ClusterConf,
        ObjectKind::SchedulerConf,
        ObjectKind::AdminHosts,
        ObjectKind::SubmitHosts,
        ObjectKind::Managers,
        ObjectKind::Operators,
        ObjectKind::Checkpoint,
        ObjectKind::Calendar,
        ObjectKind::UserSet,
        ObjectKind::Project,
        ObjectKind::User,
        ObjectKind::ResourceQuota,
        ObjectKind::ShareTree,
    ];

    /// The kind in words, as messages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::ComplexTable => "complex",
            ObjectKind::ExecHost => "exec host",
            ObjectKind::Queue => "cluster queue",
            ObjectKind::HostGroup => "host group",
            ObjectKind::Pe => "parallel environment",
            ObjectKind::ClusterConf => "cluster configuration",
            ObjectKind::SchedulerConf => "scheduler configuration",
            ObjectKind::AdminHosts => "administrative host list",
            ObjectKind::SubmitHosts => "submit host list",
            ObjectKind::Managers => "manager list",
            ObjectKind::Operators => "operator list",
            ObjectKind::Checkpoint => "checkpoint interface",
            ObjectKind::Calendar => "calendar",
            ObjectKind::UserSet => "access list",
            ObjectKind::Project => "project",
            ObjectKind::User => "user",
            ObjectKind::ResourceQuota => "resource quota set",
            ObjectKind::ShareTree => "share tree",
        }
    }

    /// The name of the kind in `qconf -aattr`, `-dattr`, `-mattr` and `-rattr`; `None` where these do not apply.
    pub fn attr_name(self) -> Option<&'static str> {
        match self {
            ObjectKind::ExecHost => Some("exechost"),
            ObjectKind::Queue => Some("queue"),
            ObjectKind::HostGroup => Some("hostgroup"),
            ObjectKind::Pe => Some("pe"),
            ObjectKind::Checkpoint => Some("ckpt"),
            ObjectKind::Calendar => Some("calendar"),
            ObjectKind::Project => Some("project"),
            ObjectKind::User => Some("user"),
            ObjectKind::UserSet => Some("userset"),
            ObjectKind::ResourceQuota => Some("resource_quota"),
            ObjectKind::ComplexTable
            | ObjectKind::ClusterConf
            | ObjectKind::SchedulerConf
            | ObjectKind::AdminHosts
            | ObjectKind::SubmitHosts
            | ObjectKind::Managers
            | ObjectKind::Operators
            | ObjectKind::ShareTree => None,
        }
    }

    /// The kind that `qconf -aattr` and its relatives call `name`.
    pub fn from_attr_name(name: &str) -> Option<ObjectKind> {
        Self::ALL.iter().copied().find(|kind| kind.attr_name() == Some(name))
    }

    /// The attributes in the order in which `qconf -s…` prints them; empty for kinds without a typed object here.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            ObjectKind::ExecHost => crate::host::KEYS,
            ObjectKind::Queue => crate::queue::KEYS,
            ObjectKind::HostGroup => crate::hostgroup::KEYS,
            ObjectKind::Pe => crate::pe::KEYS,
            ObjectKind::ClusterConf => crate::conf::KEYS,
            ObjectKind::SchedulerConf => crate::policy::KEYS,
            ObjectKind::ComplexTable
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
            | ObjectKind::ShareTree => &[],
        }
    }

    /// The column at which values start in the output of `qconf -s…`, counted from 0 (measured on 8.1.9).
    ///
    /// `None` where one blank separates the attribute from its value.
    pub fn value_column(self) -> Option<usize> {
        match self {
            ObjectKind::ExecHost | ObjectKind::Queue => Some(22),
            ObjectKind::Pe | ObjectKind::Checkpoint => Some(19),
            ObjectKind::ClusterConf => Some(29),
            ObjectKind::SchedulerConf => Some(34),
            ObjectKind::Calendar => Some(17),
            ObjectKind::UserSet => Some(8),
            ObjectKind::ComplexTable
            | ObjectKind::HostGroup
            | ObjectKind::AdminHosts
            | ObjectKind::SubmitHosts
            | ObjectKind::Managers
            | ObjectKind::Operators
            | ObjectKind::Project
            | ObjectKind::User
            | ObjectKind::ResourceQuota
            | ObjectKind::ShareTree => None,
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
