//! The state letters of tasks: what they depend on, gathered from the state.

use master_core::state::State;
use master_core::state::eligible::{self, IneligibleReason};
use master_core::state::job::{FinishedTask, Job, Placement, Task};
use proto::id::TaskId;
use proto::job::{Condition, Phase};
use proto::time::{Now, Tick, Wall};

/// The condition of a pending task.
pub(super) fn pending(state: &State, job: &Job, task: TaskId) -> Condition {
    let own = job.tasks.get(&task);
    let holds = own.map_or(job.spec.holds, |task| task.holds);
    Condition {
        phase: Phase::Pending,
        held: holds.any() || waits_for_others(state, job, task),
        error: own.is_some_and(|task| task.place.error().is_some()),
        restarted: own.is_some_and(|task| task.restarted),
        ..Condition::default()
    }
}

/// A time by which every start time has come and every pause is over.
const LAST: Now = Now {
    tick: Tick(u64::MAX),
    wall: Wall(i64::MAX),
};

/// Whether a predecessor keeps a task from its start.
fn waits_for_others(state: &State, job: &Job, task: TaskId) -> bool {
    if !job.waits_for.is_empty() {
        return true;
    }
    // Start time and limits on running tasks show no letter; with the clocks at their ends only
    // dependencies are left to ask for.
    !job.array_waits_for.is_empty()
        && matches!(
            eligible::eligible(state, job, task, LAST),
            Err(IneligibleReason::WaitsFor(_))
        )
}

/// The condition of a task on a host.
pub(super) fn placed(state: &State, task: &Task, placement: &Placement) -> Condition {
    Condition {
        phase: if placement.started.is_some() {
            Phase::Running
        } else {
            Phase::Transferring
        },
        held: task.holds.any(),
        error: false,
        deleting: placement.deleting,
        restarted: task.restarted,
        suspended: placement.suspended,
        queue_suspended: placement.preempted || state.is_queue_stopped(placement),
        threshold_suspended: placement.suspended_by_threshold,
    }
}

/// The condition of a task that has left.
pub(super) fn finished(task: &FinishedTask) -> Condition {
    let FinishedTask {
        task: _,
        exit_status: _,
        failed: _,
        deleted: _,
        granted: _,
        started: _,
    } = task;
    Condition {
        phase: Phase::Finished,
        ..Condition::default()
    }
}
