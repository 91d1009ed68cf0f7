//! Jobs and tasks as the master knows them.

use super::ranges::TaskRanges;
use proto::id::{JobNumber, PeName, SubmitSeq, TaskId, TaskKey};
use proto::job::{Granted, Holds, JobSpec};
use proto::time::{Tick, Wall};
use proto::usage::Failed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A job that is not finished.
///
/// A task is in exactly one of `untouched` (pending, never started, nothing of its own) and `tasks`, or is gone. So an array of
/// a million tasks costs one range until its tasks start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its place among all submissions.
    pub seq: SubmitSeq,
    /// The number people see.
    pub number: JobNumber,
    /// What was submitted, as last altered.
    pub spec: Arc<JobSpec>,
    /// Raised by every alteration, so that a scheduler sees that an order rests on an old version.
    pub version: u32,
    /// When it was submitted.
    pub submitted: Wall,
    /// The same on the monotone clock.
    pub submitted_tick: Tick,
    /// Jobs it still waits for.
    pub waits_for: BTreeSet<SubmitSeq>,
    /// Jobs whose equal task each task waits for, with the tasks of those jobs that are still there.
    pub array_waits_for: BTreeSet<SubmitSeq>,
    /// Pending tasks in the condition of the whole job: holds of `spec`, never started.
    pub untouched: TaskRanges,
    /// Tasks with a history or a condition of their own.
    pub tasks: BTreeMap<TaskId, Task>,
    /// How many of `tasks` are on a host, for `-tc`.
    pub active: u32,
    /// Whether a task of it ended with exit status 100, so that what waits for it stays held (JOB-04).
    pub failed: bool,
}

/// A task with a history or a condition of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Where it is.
    pub place: Place,
    /// Holds of its own.
    pub holds: Holds,
    /// How often it was placed.
    pub attempts: u32,
    /// When it was submitted, or requeued after its last attempt: what `qstat` shows for a pending task.
    pub since: Wall,
}

/// Where a task is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Waiting for its next start.
    Pending {
        /// Why it is in error, if it is.
        error: Option<String>,
    },
    /// Given to hosts.
    OnHost(Placement),
}

/// A task on its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The attempt.
    pub key: TaskKey,
    /// Its slots; the first entry holds the master.
    pub granted: Vec<Granted>,
    /// The parallel environment, if any.
    pub pe: Option<PeName>,
    /// When it was placed.
    pub placed: Wall,
    /// The same on the monotone clock.
    pub placed_tick: Tick,
    /// When the host confirmed that it runs.
    pub started: Option<Wall>,
    /// Whether its deletion was asked for.
    pub deleting: bool,
    /// Whether it is to run again after it has been ended.
    pub rescheduling: bool,
    /// Whether people suspended it.
    pub suspended: bool,
    /// Whether a threshold suspended it.
    pub suspended_by_threshold: bool,
}

/// A job that has left, for `qstat -s z` and for late questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedJob {
    /// Its place among all submissions.
    pub seq: SubmitSeq,
    /// The number people saw.
    pub number: JobNumber,
    /// What was submitted.
    pub spec: Arc<JobSpec>,
    /// When it was submitted.
    pub submitted: Wall,
    /// When its last task left.
    pub ended: Wall,
    /// How its tasks ended; arrays keep at most the last thousand.
    pub tasks: Vec<FinishedTask>,
}

/// How one task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedTask {
    /// The task.
    pub task: TaskId,
    /// Exit status.
    pub exit_status: u32,
    /// Where it failed.
    pub failed: Failed,
    /// Whether it was deleted before it ran.
    pub deleted: bool,
    /// The slots it had; empty if it never ran.
    pub granted: Vec<Granted>,
    /// When it started.
    pub started: Wall,
}
