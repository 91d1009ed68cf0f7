//! What the end of an attempt means: for the task, for its queue, and for accounting.

use crate::decide::jobs::category_line;
use crate::decide::tasks::charged_usage;
use crate::event::TaskFate;
use crate::state::State;
use crate::state::job::{Job, Placement};
use crate::state::slaves::Slave;
use proto::accounting::AccountingRecord;
use proto::id::TaskKey;
use proto::time::{Now, Wall};
use proto::usage::{Exit, FailedCode, TaskResult};
use std::collections::BTreeMap;

/// Bytes of a job's context that each of its accounting records keeps.
const CONTEXT_BYTES: usize = 4096;

/// What an attempt's end leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptOutcome {
    /// What becomes of the task.
    pub then: TaskFate,
    /// What accounting says went wrong.
    pub failed: FailedCode,
    /// Why the queue instance is to take no more jobs, if it is at fault.
    pub queue_error: Option<String>,
}

/// Who is to blame for a start or an end that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nobody, or the job by its own exit.
    None,
    /// The user: the job waits in error.
    Job,
    /// The host before the job ran: the queue waits in error, the job is run elsewhere.
    Host,
    /// The host after the job ran: the queue waits in error, the job is done.
    HostAfterJob,
    /// The task is to run again.
    Rerun,
    /// Nobody knows what became of the task.
    Lost,
}

/// Decides about an end.
pub(crate) fn outcome(state: &State, job: &Job, placement: &Placement, result: &TaskResult) -> AttemptOutcome {
    let outcome = batch_outcome(state, job, placement, result);
    if job.spec.session.is_none() {
        return outcome;
    }
    AttemptOutcome {
        then: session_fate(outcome.then, outcome.failed),
        ..outcome
    }
}

/// An interactive job does not run again: its command has ended with the attempt. As in 8.1.9 only
/// exit status 100 leaves it behind, in error.
fn session_fate(then: TaskFate, failed: FailedCode) -> TaskFate {
    match then {
        TaskFate::Error { .. } if failed == FailedCode::APPLICATION_ERROR => then,
        TaskFate::Done | TaskFate::Requeued | TaskFate::Error { .. } => TaskFate::Done,
    }
}

fn batch_outcome(state: &State, job: &Job, placement: &Placement, result: &TaskResult) -> AttemptOutcome {
    let plain = |then, failed| AttemptOutcome {
        then,
        failed,
        queue_error: None,
    };
    if placement.deleting {
        return plain(TaskFate::Done, result.failed);
    }
    if placement.rescheduling {
        return plain(TaskFate::Requeued, FailedCode::RESCHEDULING);
    }
    // One that ended by itself in the meantime has ended.
    if placement.migrating && !matches!(result.exit, Exit::Code(_)) {
        return plain(TaskFate::Requeued, FailedCode::MIGRATING);
    }
    let failed = own_exit(state, result);
    match fault(failed, result.exit) {
        Fault::None => plain(TaskFate::Done, failed),
        Fault::Rerun => plain(TaskFate::Requeued, failed),
        Fault::Job => plain(
            TaskFate::Error {
                reason: error_reason(failed, result),
            },
            failed,
        ),
        Fault::Lost if is_rerunnable(state, job, placement) => plain(TaskFate::Requeued, failed),
        Fault::Lost => plain(TaskFate::Done, failed),
        Fault::Host => AttemptOutcome {
            then: TaskFate::Requeued,
            failed,
            queue_error: Some(queue_error(job, placement, result)),
        },
        Fault::HostAfterJob => AttemptOutcome {
            then: TaskFate::Done,
            failed,
            queue_error: Some(queue_error(job, placement, result)),
        },
    }
}

/// Exit status 99 and 100 have a meaning of their own unless the cell forbids it.
fn own_exit(state: &State, result: &TaskResult) -> FailedCode {
    let params = state.config.settings.qmaster();
    match (result.failed, result.exit) {
        (FailedCode::NO, Exit::Code(99)) if !params.forbid_reschedule => FailedCode::RESCHEDULING,
        (FailedCode::NO, Exit::Code(100)) if !params.forbid_apperror => FailedCode::APPLICATION_ERROR,
        (FailedCode::RESCHEDULING, _) if params.forbid_reschedule => FailedCode::NO,
        (FailedCode::APPLICATION_ERROR, _) if params.forbid_apperror => FailedCode::NO,
        (failed, _) => failed,
    }
}

/// The table of `failed` codes.
fn fault(failed: FailedCode, exit: Exit) -> Fault {
    match failed.0 {
        0 | 37 | 100 => Fault::None,
        24 | 25 => Fault::Rerun,
        // 1: the host refuses this job or this user, or cannot tell whether it ran: a queue in
        // error would let one user stop it for all. 17: the user is unknown on the host. The rest:
        // files, shell, directory, tokens, passwords, exit status 100.
        1 | 17 | 26..=35 => Fault::Job,
        12..=15 => Fault::HostAfterJob,
        18 | 19 | 21 | 22 => Fault::Lost,
        // 2 to 11 and 38 are failures of the host before the job ran; so is a code that this
        // version does not know.
        _ if exit == Exit::NotStarted => Fault::Host,
        _ => Fault::HostAfterJob,
    }
}

fn error_reason(failed: FailedCode, result: &TaskResult) -> String {
    if !result.reason.is_empty() {
        result.reason.clone()
    } else if failed == FailedCode::APPLICATION_ERROR {
        "exit_status of job start = 100".to_owned()
    } else {
        failed.text().to_owned()
    }
}

/// In the words of 8.1.9, with the reason that the host gave.
fn queue_error(job: &Job, placement: &Placement, result: &TaskResult) -> String {
    let queue = &placement.master().queue;
    let what = format!(
        "queue {queue} marked QERROR as result of job {}'s failure at host {}",
        job.number,
        placement.host()
    );
    if result.reason.is_empty() {
        what
    } else {
        format!("{what}: {}", result.reason)
    }
}

/// Whether the task may be run again after its host lost it: `-r`, else the queue's `rerun`; of a
/// checkpointing job its `when`.
pub(crate) fn is_rerunnable(state: &State, job: &Job, placement: &Placement) -> bool {
    if job.spec.checkpoint.is_some() {
        return state.config.checkpoint_when(&job.spec).unknown;
    }
    let queue = || {
        state
            .config
            .settings_in(placement.master())
            .is_some_and(|settings| settings.rerun.0)
    };
    job.spec.rerunnable.unwrap_or_else(queue)
}

/// What is kept for ever about an attempt.
pub(crate) fn record(
    state: &State,
    job: &Job,
    placement: &Placement,
    result: &TaskResult,
    failed: FailedCode,
    now: Now,
) -> AccountingRecord {
    let spec = &job.spec;
    let (started, ended) = times(placement, result, now);
    AccountingRecord {
        key: placement.key,
        queue: placement.master().queue.clone(),
        host: placement.host().clone(),
        group: spec.owner.group.clone(),
        owner: spec.owner.user.clone(),
        job_name: spec.name.clone(),
        job_number: job.number,
        account: spec.account.clone().unwrap_or_else(|| "sge".to_owned()),
        priority: state
            .config
            .settings_in(placement.master())
            .map_or(0, |settings| settings.priority),
        submitted: job.submitted,
        started,
        ended,
        failed,
        reason: result.reason.clone(),
        exit_status: result.exit.status(),
        wallclock_ms: result.wallclock_ms,
        rusage: result.rusage.plus(placement.slaves().rusage),
        project: spec.project.clone(),
        department: state.config.access.department_of(&spec.owner).to_owned(),
        granted_pe: placement.pe.as_ref().map(ToString::to_string),
        slots: placement.slots(),
        task_number: spec.array.map_or(0, |_| placement.key.task.0),
        usage: charged_usage::accounted(state, job, placement, result).plus(placement.slaves().used),
        category: category_line::text(spec),
        limit: result.limit.clone(),
        maps: placement.maps.clone(),
        pe_task: None,
        reservation: spec.reservation.map(|id| {
            let granted = state
                .reservations
                .get(&id)
                .map_or(Wall(0), |reservation| reservation.submitted);
            (id, granted)
        }),
        deleted_by: placement.deleted_by.as_deref().map(str::to_owned),
        context: accounted_context(&spec.context),
    }
}

/// The variables of a job's context in the order of their names, as far as they have
/// [`CONTEXT_BYTES`] together. Each task has a copy, so that a long context of a large array would
/// fill the disk.
fn accounted_context(context: &[(String, String)]) -> BTreeMap<String, String> {
    let variables: BTreeMap<&String, &String> = context.iter().map(|(name, value)| (name, value)).collect();
    let mut room = CONTEXT_BYTES;
    let mut fits = |name: &String, value: &String| {
        let rest = room.checked_sub(name.len() + value.len());
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    variables
        .into_iter()
        .take_while(|(name, value)| fits(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What is kept for ever about a slave task, as far as it is not of its job.
pub(crate) fn slave_record(
    state: &State,
    key: TaskKey,
    slave: &Slave,
    whole: AccountingRecord,
    result: &TaskResult,
) -> AccountingRecord {
    let before = |at: Wall, ms: u64| Wall(at.0.saturating_sub_unsigned(ms));
    let never = result.exit == Exit::NotStarted && slave.started.is_none();
    let started = slave
        .started
        .unwrap_or_else(|| before(before(state.now.wall, result.ended_ago_ms), result.wallclock_ms));
    let (started, ended) = if never {
        (Wall(0), Wall(0))
    } else {
        (started, Wall(started.0.saturating_add_unsigned(result.wallclock_ms)))
    };
    AccountingRecord {
        key,
        queue: slave.instance.queue.clone(),
        host: slave.instance.host.clone(),
        priority: state
            .config
            .settings_in(&slave.instance)
            .map_or(0, |settings| settings.priority),
        started,
        ended,
        rusage: result.rusage,
        usage: charged_usage::of_slave(state, slave, result),
        pe_task: Some(slave.name()),
        ..whole
    }
}

/// When the attempt started and ended by the master's clock; both 0 if it never ran.
fn times(placement: &Placement, result: &TaskResult, now: Now) -> (Wall, Wall) {
    if result.exit == Exit::NotStarted && placement.started.is_none() {
        return (Wall(0), Wall(0));
    }
    let before = |at: Wall, ms: u64| Wall(at.0.saturating_sub_unsigned(ms));
    let started = placement
        .started
        .unwrap_or_else(|| before(before(now.wall, result.ended_ago_ms), result.wallclock_ms));
    (started, Wall(started.0.saturating_add_unsigned(result.wallclock_ms)))
}
