//! The history of a cell's configuration, as `gridwright changes` shows it.

use crate::id::{EventSeq, UserName};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// A part of the history, oldest change first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeHistory {
    /// The beginning of the log. `None` in all parts but the last.
    pub log: Option<LogBeginning>,
    /// Older changes that match and are left out, because the answer is bounded.
    pub left_out: u64,
    /// What users did to jobs that were submitted before the log begins. The log does not hold
    /// whose jobs those were, so these changes are counted only.
    pub of_older_jobs: u64,
    /// The changes.
    pub changes: Vec<ChangeView>,
}

/// Where the log of a cell begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogBeginning {
    /// The time of its first event.
    pub at: Wall,
    /// Whether that is the first event of the cell. Otherwise older events were removed
    /// (`trim_log`).
    pub is_whole: bool,
}

/// One change of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeView {
    /// The event, or the first of several that are shown as one.
    pub seq: EventSeq,
    /// When it was made.
    pub at: Wall,
    /// Who made it: `user@host`, the host of an agent, `scheduler NAME` or `master`.
    pub by: String,
    /// What was done.
    pub action: ChangeAction,
    /// What kind of thing it is: a kind of object, `queue instance`, `job`, `host`, `join token` or
    /// `usage`.
    pub kind: String,
    /// Its name. Empty for kinds that exist once.
    pub name: String,
    /// The names of the first other queue instances or jobs to which the same request did the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// How many more of them there are.
    #[serde(default)]
    pub others: u64,
    /// The owner, where it is a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserName>,
    /// How many events were about its tasks, where it is a job.
    #[serde(default)]
    pub tasks: u64,
    /// The attributes that differ, where it is an object.
    #[serde(default)]
    pub fields: Vec<FieldChange>,
    /// How many more attributes differ.
    #[serde(default)]
    pub more_fields: u64,
    /// Whether the log no longer holds what the object was before.
    #[serde(default)]
    pub is_earlier_unknown: bool,
}

/// An attribute before and after a change. Of long values only the part that differs is there, with
/// `...` in the place of the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The attribute.
    pub name: String,
    /// Its value before. `None` if the object did not have it.
    pub old: Option<String>,
    /// Its value after. `None` if the object has it no longer.
    pub new: Option<String>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    /// An object or token is new.
    Added,
    /// An object or job has other attributes.
    Modified,
    /// An object is gone, or tasks are deleted.
    Deleted,
    /// A queue instance takes no jobs.
    Disabled,
    /// A queue instance takes jobs again.
    Enabled,
    /// The tasks of a job or queue instance are stopped.
    Suspended,
    /// They go on.
    Resumed,
    /// The error state of a job or queue instance is cleared.
    ErrorCleared,
    /// Tasks are held.
    Held,
    /// Holds are released.
    Released,
    /// Tasks are to run again.
    Rescheduled,
    /// Certificates of a host, or a token, are worth nothing any more.
    Revoked,
    /// A host may come with another task directory.
    Rebound,
    /// What users have used is forgotten.
    Forgotten,
}

impl ChangeAction {
    /// The action in a sentence: `ann@node1 cleared the error of job 7`.
    pub fn words(self) -> &'static str {
        match self {
            ChangeAction::Added => "added",
            ChangeAction::Modified => "modified",
            ChangeAction::Deleted => "deleted",
            ChangeAction::Disabled => "disabled",
            ChangeAction::Enabled => "enabled",
            ChangeAction::Suspended => "suspended",
            ChangeAction::Resumed => "resumed",
            ChangeAction::ErrorCleared => "cleared the error of",
            ChangeAction::Held => "held",
            ChangeAction::Released => "released",
            ChangeAction::Rescheduled => "rescheduled",
            ChangeAction::Revoked => "revoked",
            ChangeAction::Rebound => "rebound",
            ChangeAction::Forgotten => "cleared",
        }
    }
}
