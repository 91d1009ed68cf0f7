//! The event stream and the orders of a scheduler outside: what programs of others may rely on
//! (master/EVENTS.md).
//!
//! A subscriber sends [`Query::Events`](super::client::Query::Events) and gets parts of
//! [`Data::Events`](super::view::Data::Events) until it goes. Orders are
//! [`Command::Orders`](super::client::Command::Orders), on a connection of their own. Within one
//! [`VERSION`] kinds and fields are only added.

use crate::accounting::AccountingRecord;
use crate::calendar::CalendarState;
use crate::diagnostic::Diagnostic;
use crate::id::{
    AttributeName, EventSeq, HostName, JobNumber, PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey, UserName,
};
use crate::job::{GrantedSlots, Holds, JobSpec};
use crate::object::{Fields, ObjectKind};
use crate::request::TaskRange;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of everything in this module, as `version` of the lines of
/// `gridwright events --fmt json`.
pub const VERSION: u32 = 1;

/// The most orders of one request; more are refused together.
pub const ORDERS_MAX: usize = 10_000;

/// The longest time for which news are gathered, in seconds.
pub const EVERY_MAX_S: u32 = 3_600;

/// The longest name of a subscriber or scheduler.
pub const NAME_MAX: usize = 64;

/// Whether a program may call itself so: 1 to [`NAME_MAX`] letters, digits, points, dashes and
/// underscores, as it is shown and logged.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

/// What a subscriber wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscription {
    /// The name that `qconf -secl` shows.
    pub name: String,
    /// Where to begin.
    pub start: StreamStart,
    /// Kinds of [`Change`] by name; empty is all of them.
    pub kinds: Vec<String>,
    /// Whose jobs; empty is everybody's. Where there are any, nothing is told but changes of their
    /// jobs, and [`Change::Complete`].
    pub owners: Vec<UserName>,
    /// News are gathered for so many seconds and told together, of each thing that changes often
    /// the latest alone; 0 tells them at once. At most [`EVERY_MAX_S`].
    pub every_s: u32,
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamStart {
    /// With everything that is true, as changes that lead to it from nothing, then
    /// [`Change::Complete`], then what changes.
    #[default]
    Full,
    /// With this event of the log, then as `Full` without what the log tells: soft facts,
    /// [`Change::Complete`], what changes.
    From(EventSeq),
    /// With what changes from now on.
    Now,
}

/// One element of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The event's place in the log: without a filter each is one more than the last. Of what is no
    /// event the place of the last event before it, which is where a subscriber that comes back
    /// goes on: at the next one.
    pub seq: EventSeq,
    /// When it became true.
    pub time: Wall,
    /// How it came to be known.
    pub source: Source,
    /// Who caused it: `user@host`, a host, a scheduler, or `master`.
    pub by: String,
    /// The number that people see of the job that it is about; none of what is about no job, or was
    /// read from the log.
    #[serde(default)]
    pub job: Option<JobNumber>,
    /// What changed.
    pub change: Change,
}

/// How an element of the stream is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Part of the full state at the beginning: it replaces nothing that came before.
    State,
    /// An event of the log.
    Event,
    /// A soft fact: the latest counts, none is stored, all are told at the beginning.
    Soft,
}

/// Declares the kinds: their names are those that serde gives them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal $body:tt)*) => {
        /// What changed. The names of the kinds are in [`Change::KINDS`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Change {
            $($(#[$doc])* #[serde(rename = $name)] $variant $body,)*
        }

        impl Change {
            /// The names of all kinds.
            pub const KINDS: &[&str] = &[$($name,)*];

            /// The name of this kind.
            pub fn kind(&self) -> &'static str {
                match self { $(Change::$variant { .. } => $name,)* }
            }
        }
    };
}

kinds! {
    /// A job came into the cell.
    JobAdded "job-added" {
        /// The job.
        job: Box<JobFacts>,
    }
    /// A job asks for something else: `qalter`. Its tasks are as they were.
    JobChanged "job-changed" {
        /// The job.
        job: SubmitSeq,
        /// The whole specification as it is now, without a script's content.
        spec: Arc<JobSpec>,
        /// Jobs that have to leave first.
        waits_for: Vec<SubmitSeq>,
        /// Jobs whose equal task has to leave first.
        array_waits_for: Vec<SubmitSeq>,
    }
    /// Holds of tasks that are not the job's own `-h`.
    HoldsChanged "holds-changed" {
        /// The job.
        job: SubmitSeq,
        /// Which of its tasks.
        tasks: Vec<TaskRange>,
        /// Holds that became set.
        set: Holds,
        /// Holds that became released.
        release: Holds,
    }
    /// Tasks wait in error until somebody clears it.
    TasksFailed "tasks-failed" {
        /// The job.
        job: SubmitSeq,
        /// Which.
        tasks: Vec<TaskRange>,
        /// Why.
        reason: String,
    }
    /// The error of tasks was cleared.
    ErrorCleared "error-cleared" {
        /// The job.
        job: SubmitSeq,
        /// Which.
        tasks: Vec<TaskRange>,
    }
    /// Pending tasks were deleted.
    TasksDeleted "tasks-deleted" {
        /// The job.
        job: SubmitSeq,
        /// Which.
        tasks: Vec<TaskRange>,
    }
    /// A job has left: jobs that waited for it may start.
    JobFinished "job-finished" {
        /// The job.
        job: SubmitSeq,
    }
    /// A task was given to hosts.
    TaskPlaced "task-placed" {
        /// The attempt.
        task: TaskKey,
        /// Its slots; the first entry holds the master.
        granted: Vec<GrantedSlots>,
        /// The parallel environment, if any.
        pe: Option<PeName>,
    }
    /// The host says that it runs.
    TaskStarted "task-started" {
        /// The attempt.
        task: TaskKey,
    }
    /// A task is gone from its hosts: what it took is free.
    TaskEnded "task-ended" {
        /// The attempt.
        task: TaskKey,
        /// What becomes of it.
        then: TaskFate,
        /// How it ended and what it used; none if it never reached a host.
        record: Option<Box<AccountingRecord>>,
    }
    /// A task is stopped or goes on, for one of several causes; it runs while none holds.
    TaskSuspended "task-suspended" {
        /// The attempt.
        task: TaskKey,
        /// The cause.
        cause: SuspendCause,
        /// Whether it is stopped for that cause now.
        suspended: bool,
    }
    /// A task is being ended.
    TaskEnding "task-ending" {
        /// The attempt.
        task: TaskKey,
        /// Whether it is to run again: it was rescheduled, or moves to another host.
        again: bool,
    }
    /// The state of a queue instance; those that were never told are open.
    InstanceChanged "instance-changed" {
        /// The instance.
        instance: QueueInstanceName,
        /// Disabled by hand.
        disabled: bool,
        /// Suspended by hand.
        suspended: bool,
        /// In error, with the reasons.
        errors: Vec<String>,
        /// What its calendar says.
        calendar: CalendarState,
        /// Suspended because another queue of the host is busy.
        subordinate: bool,
        /// Full for the sake of tasks of another queue of the host.
        preempted: bool,
    }
    /// Configuration objects are others, all at once.
    ObjectsChanged "objects-changed" {
        /// Which.
        objects: Vec<ObjectState>,
    }
    /// The queue instances of a host, all of them, with the slots that are configured. Soft.
    Instances "instances" {
        /// The host.
        host: HostName,
        /// Its instances, each with its slots.
        instances: Vec<GrantedSlots>,
    }
    /// Whether a host takes tasks: its agent is connected. Soft.
    Contact "contact" {
        /// The host.
        host: HostName,
        /// Whether it is.
        connected: bool,
    }
    /// Load values. Soft.
    Load "load" {
        /// The host that reported.
        host: HostName,
        /// Whether they replace all that the host reported before.
        full: bool,
        /// By subject and attribute.
        values: BTreeMap<HostName, BTreeMap<AttributeName, String>>,
        /// Values that are no longer there.
        withdrawn: BTreeMap<HostName, Vec<AttributeName>>,
    }
    /// Somebody wants a scheduling pass: `qconf -tsm`, or a start time has come. Soft.
    PassWanted "pass-wanted" {}
    /// Everything that is true has been told; from here on it is news.
    Complete "complete" {}
    /// An event that is of no use outside the master; it keeps the numbers without gaps.
    Other "other" {
        /// Its name.
        what: String,
    }
}

impl Change {
    /// The job that it is about; none of what is about no job.
    pub fn job(&self) -> Option<SubmitSeq> {
        match self {
            Change::JobAdded { job } => Some(job.seq),
            Change::JobChanged { job, .. }
            | Change::HoldsChanged { job, .. }
            | Change::TasksFailed { job, .. }
            | Change::ErrorCleared { job, .. }
            | Change::TasksDeleted { job, .. }
            | Change::JobFinished { job } => Some(*job),
            Change::TaskPlaced { task, .. }
            | Change::TaskStarted { task }
            | Change::TaskEnded { task, .. }
            | Change::TaskSuspended { task, .. }
            | Change::TaskEnding { task, .. } => Some(task.seq),
            Change::InstanceChanged { .. }
            | Change::ObjectsChanged { .. }
            | Change::Instances { .. }
            | Change::Contact { .. }
            | Change::Load { .. }
            | Change::PassWanted {}
            | Change::Complete {}
            | Change::Other { .. } => None,
        }
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFacts {
    /// Its place among all submissions, by which all else names it.
    pub seq: SubmitSeq,
    /// The number that people see.
    pub number: JobNumber,
    /// What was submitted; the content of a script is left out.
    pub spec: Arc<JobSpec>,
    /// The tasks that are still there.
    pub tasks: Vec<TaskRange>,
    /// Jobs that have to leave first.
    pub waits_for: Vec<SubmitSeq>,
    /// Jobs whose equal task has to leave first.
    pub array_waits_for: Vec<SubmitSeq>,
}

/// What becomes of a task after an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskFate {
    /// It is done.
    Done,
    /// It waits for its next start.
    Pending,
    /// It waits in error.
    Error {
        /// Why.
        reason: String,
    },
}

/// Why a task is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuspendCause {
    /// People.
    Hand,
    /// A suspend threshold.
    Threshold,
    /// A task of a superordinate queue.
    Preemption,
}

/// A configuration object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectState {
    /// What kind.
    pub kind: ObjectKind,
    /// Which one; empty for kinds that exist once.
    pub name: String,
    /// Its attributes as `qconf -s…` shows them; none if it was deleted.
    pub fields: Option<Fields>,
}

/// One order of a scheduler. The core checks it against the state before it becomes an event
/// (ARCHITECTURE.md "The scheduler on one page").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start a task.
    Start {
        /// The job.
        seq: SubmitSeq,
        /// The task.
        task: TaskId,
        /// Where; the first entry holds the master.
        granted: Vec<GrantedSlots>,
        /// The parallel environment, if any.
        pe: Option<PeName>,
    },
    /// Give up a `-now y` job that could not start.
    RejectImmediate {
        /// The job.
        seq: SubmitSeq,
    },
    /// Suspend or resume a running task by threshold.
    SuspendByThreshold {
        /// The attempt.
        key: TaskKey,
        /// Whether it is to be suspended.
        suspended: bool,
    },
}

/// Orders of a scheduler outside the master, and its sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The scheduler's name, chosen by itself and kept: while it is heard orders of another name
    /// are refused.
    pub scheduler: String,
    /// What it wants; nothing is a sign of life alone.
    #[serde(default)]
    pub orders: Vec<Order>,
    /// It goes, and the built-in scheduler places jobs from now on.
    #[serde(default)]
    pub last: bool,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is true from this event on.
    Accepted {
        /// The event.
        seq: EventSeq,
    },
    /// It was not believed; the state is as it was.
    Refused(Diagnostic),
}

/// One line of `qconf -secl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventClient {
    /// Its number; 1 is the built-in scheduler.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: HostName,
}
