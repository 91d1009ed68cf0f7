//! Jobs and tasks as the master knows them.

use super::ready::ReadyTasks;
use super::slaves::Slaves;
use crate::collections::paged::SharedMap;
use crate::collections::ranges::TaskRanges;
use crate::collections::seldom::SparseBox;
use proto::binding::HostBinding;
use proto::id::{HostName, JobNumber, PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, HoldChange, Holds, JobSpec};
use proto::request::TaskRange;
use proto::rsmap::GrantedIds;
use proto::time::{Tick, Wall};
use proto::usage::FailedCode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A job that is not finished.
///
/// A task is in exactly one of `untouched` (pending, never started, nothing of its own) and
/// `tasks`, or is gone. So an array of a million tasks costs one range until its tasks start.
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
    pub waits_for: SparseBox<BTreeSet<SubmitSeq>>,
    /// Jobs whose equal task each task waits for, with the tasks of those jobs that are still
    /// there.
    pub array_waits_for: SparseBox<BTreeSet<SubmitSeq>>,
    /// Pending tasks in the condition of the whole job: holds of `spec`, never started.
    pub untouched: TaskRanges,
    /// Tasks with a history or a condition of their own.
    pub tasks: SparseBox<SharedMap<TaskId, Task>>,
    /// Those of `tasks` that wait and say nothing against their start, or nothing but a pause.
    #[serde(skip)]
    pub ready: SparseBox<ReadyTasks>,
    /// How many of `tasks` are on a host, for `-tc`.
    pub active: u32,
    /// Whether a task of it ended with exit status 100, so that what waits for it stays held.
    pub failed: bool,
    /// How its tasks ended, oldest first, at most [`ENDED_KEPT`].
    #[serde(default)]
    pub ended: SparseBox<VecDeque<FinishedTask>>,
}

/// How many attempts in a row may ask to be run again before the pause grows.
const RERUNS_AT_ONCE: u32 = 3;

/// The longest pause of a task that asks to be run again, and the longest interval between passes
/// that counts for it.
const RERUN_PAUSE_MAX_MS: u64 = 600_000;

/// How long a task waits that has asked to be run again so many times in a row: an interval of the
/// scheduler, twice as long after each of them from the fourth on.
pub fn rerun_pause_ms(reruns: u32, interval_s: u64) -> u64 {
    let interval_ms = interval_s.saturating_mul(1000).max(1000);
    let doublings = reruns.saturating_sub(RERUNS_AT_ONCE).min(16);
    interval_ms.saturating_mul(1 << doublings).min(RERUN_PAUSE_MAX_MS)
}

/// How many ends of tasks a job remembers.
pub const ENDED_KEPT: usize = 1000;

/// A task with a history or a condition of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Where it is.
    pub place: TaskPlace,
    /// Holds of its own.
    pub holds: Holds,
    /// How often it was placed.
    pub attempts: u32,
    /// When it was submitted, or requeued after its last attempt: what `qstat` shows for a pending
    /// task.
    pub since: Wall,
    /// Whether an earlier attempt ran, so that it shows `R` and gets `RESTARTED=1`.
    #[serde(default)]
    pub restarted: bool,
    /// How many attempts in a row asked to be run again, by exit status 99.
    #[serde(default)]
    pub reruns: u32,
    /// From when on it may start. That lies ahead while it waits because it asked to be run again.
    #[serde(default)]
    pub starts_from: Tick,
    /// The main process of the last attempt whose state a command wrote, so that it gets
    /// `RESTARTED=2` and goes on from there.
    #[serde(default)]
    pub saved_pid: Option<i32>,
}

/// Where a task is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskPlace {
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
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    pub pe: Option<PeName>,
    /// The ids that it has of resource maps.
    #[serde(default)]
    pub maps: Vec<GrantedIds>,
    /// What came of its request for cores on each of its hosts; empty if it asked for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binding: Vec<HostBinding>,
    /// When it was placed.
    pub placed: Wall,
    /// The same on the monotone clock.
    pub placed_tick: Tick,
    /// When the host confirmed that it runs.
    pub started: Option<Wall>,
    /// Whether its deletion was asked for.
    pub deleting: bool,
    /// The name of the actor who asked for its deletion. `None` also for a deletion that was asked
    /// for before names were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<Box<str>>,
    /// Whether it is to run again after it has been ended.
    pub rescheduling: bool,
    /// Whether people suspended it.
    pub suspended: bool,
    /// Whether a threshold suspended it.
    pub suspended_by_threshold: bool,
    /// Whether it gave its slots to a superordinate queue.
    #[serde(default)]
    pub preempted: bool,
    /// Whether anything ever suspended this attempt, so that its host is told how things stand
    /// after a reconnect.
    #[serde(default)]
    pub was_suspended: bool,
    /// Whether its state is being written, and it is being ended to go on elsewhere.
    #[serde(default)]
    pub migrating: bool,
    /// The slave tasks of a parallel job, once it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_slaves: Option<Box<Slaves>>,
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
    pub failed: FailedCode,
    /// Whether it was deleted before it ran.
    pub deleted: bool,
    /// The slots it had; empty if it never ran.
    pub granted: Vec<GrantedSlots>,
    /// When it started.
    pub started: Wall,
}

impl Job {
    /// Whether no task is left.
    pub fn is_empty(&self) -> bool {
        self.untouched.is_empty() && self.tasks.is_empty()
    }

    /// Whether a task waits for its start, whatever keeps it from that.
    pub fn has_pending(&self) -> bool {
        !self.untouched.is_empty() || self.tasks.len() > self.active as usize
    }

    /// Whether a task has not left yet.
    pub fn has_task(&self, task: TaskId) -> bool {
        self.untouched.contains(task) || self.tasks.contains_key(&task)
    }

    /// Every task that has not left, as a set.
    pub fn present(&self) -> TaskRanges {
        let mut present = self.untouched.clone();
        for task in self.tasks.keys() {
            present.insert(*task);
        }
        present
    }

    /// The tasks that have not left and lie in the ranges; all of them if no range is given.
    pub fn select(&self, ranges: &[TaskRange]) -> TaskRanges {
        let present = self.present();
        if ranges.is_empty() {
            present
        } else {
            present.intersection(ranges)
        }
    }

    /// The tasks of a set that wait for their start.
    pub fn pending_of(&self, mut tasks: TaskRanges) -> TaskRanges {
        for (task, _) in self.placements() {
            tasks.take(task);
        }
        tasks
    }

    /// The tasks on hosts, rising.
    pub fn placements(&self) -> impl Iterator<Item = (TaskId, &Placement)> {
        self.tasks
            .iter()
            .filter_map(|(task, state)| Some((*task, state.place.placement()?)))
    }

    /// Until when a task that asked to be run again waits; `None` if it may start by now.
    pub fn paused_until(&self, task: TaskId, now: Tick) -> Option<Tick> {
        self.tasks
            .get(&task)
            .map(|task| task.starts_from)
            .filter(|from| *from > now)
    }

    /// When the next of the tasks may start that nothing keeps from it but a pause, because they
    /// asked to be run again.
    pub fn pause_ends(&self, now: Tick) -> Option<Tick> {
        self.ready.next_end(now)
    }

    /// Those of `tasks` that are ready, found anew.
    pub fn found_ready(&self, now: Tick) -> SparseBox<ReadyTasks> {
        let mut ready = ReadyTasks::default();
        for (task, state) in self.tasks.iter().filter(|(_, state)| state.is_ready()) {
            ready.insert(*task, state.starts_from, now);
        }
        ready.into()
    }

    /// The task as messages name it: the job alone, or `12.3` for a task of an array.
    pub fn task_name(&self, task: TaskId) -> String {
        match self.spec.array {
            Some(_) => format!("job-array task {}.{task}", self.number),
            None => format!("job {}", self.number),
        }
    }

    /// The holds of a task that people set.
    pub fn holds(&self, task: TaskId) -> Holds {
        self.tasks.get(&task).map_or(self.spec.holds, |task| task.holds)
    }
}

impl Task {
    /// Whether it waits, and is neither held nor in error. A pause may keep it from its start.
    pub fn is_ready(&self) -> bool {
        matches!(self.place, TaskPlace::Pending { error: None }) && !self.holds.any()
    }
}

impl TaskPlace {
    /// Where the task is, if it is on a host.
    pub fn placement(&self) -> Option<&Placement> {
        match self {
            TaskPlace::Pending { .. } => None,
            TaskPlace::OnHost(placement) => Some(placement),
        }
    }

    /// The same, to be changed.
    pub fn placement_mut(&mut self) -> Option<&mut Placement> {
        match self {
            TaskPlace::Pending { .. } => None,
            TaskPlace::OnHost(placement) => Some(placement),
        }
    }

    /// Why a pending task is in error, if it is.
    pub fn error(&self) -> Option<&str> {
        match self {
            TaskPlace::Pending { error } => error.as_deref(),
            TaskPlace::OnHost(_) => None,
        }
    }
}

impl Placement {
    /// The queue instance of the master slot.
    ///
    /// # Panics
    /// If no slot was granted, which no order and no event can say.
    pub fn master(&self) -> &QueueInstanceName {
        &self
            .granted
            .first()
            .expect("an order without slots is refused")
            .instance
    }

    /// Whether something of its own stops the task: people, a threshold, a superordinate queue.
    pub fn is_stopped(&self) -> bool {
        self.suspended || self.suspended_by_threshold || self.preempted
    }

    /// The host of the master slot, which runs the task.
    pub fn host(&self) -> &HostName {
        &self.master().host
    }

    /// Its slave tasks.
    pub fn slaves(&self) -> &Slaves {
        self.own_slaves.as_deref().unwrap_or(Slaves::NONE)
    }

    /// The attempt and its slave tasks that have not ended.
    pub fn keys(&self) -> impl Iterator<Item = TaskKey> {
        let slaves = self.slaves().live.keys().map(|number| TaskKey {
            pe_task: *number,
            ..self.key
        });
        std::iter::once(self.key).chain(slaves)
    }

    /// Its slots in all.
    pub fn slots(&self) -> u32 {
        self.granted.iter().map(|granted| granted.slots).sum()
    }
}

/// Holds after a change.
pub fn changed_holds(holds: Holds, change: HoldChange) -> Holds {
    let HoldChange { set, release } = change;
    Holds {
        user: (holds.user || set.user) && !release.user,
        operator: (holds.operator || set.operator) && !release.operator,
        system: (holds.system || set.system) && !release.system,
    }
}
