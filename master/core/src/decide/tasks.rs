//! Tasks on hosts: orders out, reports in, from the placement to the end.

pub(crate) mod attempt_end;
pub(crate) mod charged_usage;
pub(crate) mod limits;
pub(crate) mod slaves;
pub mod tickets;
pub(crate) mod usage;

use super::Turn;
use crate::decide::hosts::{fitness, reconcile};
use crate::effect::ConnectionId;
use crate::event::{Event, TaskFate};
use crate::state::slaves::task_of;
use proto::checkpoint::CheckpointOccasions;
use proto::id::{HostName, SubmitSeq, TaskKey};
use proto::time::Wall;
use proto::usage::{Blame, Consumption, Evidence, Exit, FailedCode, LimitHit, TaskResult, Usage};
use proto::wire::agent::{MasterMessage, TaskReport, TaskReportState, TaskSignal};

/// How an attempt came to its end.
#[derive(Clone, Debug)]
pub(super) struct TaskEnd {
    result: TaskResult,
    /// What becomes of the task, where the result does not decide it.
    then: Option<TaskFate>,
    /// The name of the actor who ended the task by force.
    forced_by: Option<String>,
}

impl TaskEnd {
    /// As its host reports it.
    pub(super) fn reported(result: TaskResult) -> Self {
        Self {
            result,
            then: None,
            forced_by: None,
        }
    }

    /// The host is gone, and the task runs again elsewhere.
    pub(super) fn lost(result: TaskResult) -> Self {
        Self {
            result,
            then: Some(TaskFate::Requeued),
            forced_by: None,
        }
    }

    /// A deletion that does not wait for the host.
    pub(super) fn forced(turn: &Turn<'_>, key: TaskKey, reason: String) -> Self {
        Self {
            result: presumed(turn, key, FailedCode::AFTER_JOB, reason),
            then: Some(TaskFate::Done),
            forced_by: Some(turn.actor().to_string()),
        }
    }

    /// Its host is unknown and its time is over.
    pub(super) fn overdue(turn: &Turn<'_>, key: TaskKey, limit: &str, seconds: u64, reason: String) -> Self {
        let result = presumed(turn, key, FailedCode::LIMIT_ENFORCED, reason);
        let reached = result.wallclock_ms / 1000;
        let hit = LimitHit {
            limit: limit.to_owned(),
            value: seconds,
            reached,
            evidence: Evidence::Unknown,
        };
        Self {
            result: TaskResult {
                limit: Some(hit),
                ..result
            },
            then: Some(TaskFate::Done),
            forced_by: None,
        }
    }

    /// The host has no memory of a task that ran there.
    pub(super) fn vanished(turn: &Turn<'_>, key: TaskKey, reason: String) -> Self {
        Self {
            forced_by: None,
            result: presumed(turn, key, FailedCode::IN_RECOGNIZING_JOB, reason),
            then: None,
        }
    }

    /// The task runs on in the cell that this one is a copy of, if it does.
    pub(super) fn elsewhere(turn: &Turn<'_>, key: TaskKey, reason: String) -> Self {
        Self {
            forced_by: None,
            result: presumed(turn, key, FailedCode::IN_RECOGNIZING_JOB, reason),
            then: Some(TaskFate::Done),
        }
    }
}

/// A result made from what is known here, for want of one from the host.
pub(super) fn presumed(turn: &Turn<'_>, key: TaskKey, failed: FailedCode, reason: String) -> TaskResult {
    let state = turn.state();
    let started = match key.pe_task {
        0 => state.placed(key).and_then(|(_, _, placement)| placement.started),
        _ => state.slave(key).and_then(|(_, _, slave)| slave.started),
    };
    let elapsed = |from: Wall| u64::try_from(turn.now.wall.0.saturating_sub(from.0)).unwrap_or(0);
    TaskResult {
        exit: if started.is_some() {
            Exit::Signal { number: 9, core: false }
        } else {
            Exit::NotStarted
        },
        wallclock_ms: started.map_or(0, elapsed),
        usage: turn
            .observations()
            .usage
            .get(&key)
            .copied()
            .unwrap_or_else(Usage::default),
        ..TaskResult::not_started(
            if started.is_some() {
                failed
            } else {
                FailedCode::BEFORE_JOB
            },
            reason,
        )
    }
}

/// News of a task from a host.
pub(super) fn report(turn: &mut Turn<'_>, connection: ConnectionId, host: &HostName, report: TaskReport) {
    let TaskReport { key, state } = report;
    turn.agents_mut().answered(host, key);
    if turn.state().host_of(key) != Some(host) {
        return foreign(turn, connection, host, key, &state);
    }
    match state {
        TaskReportState::Accepted => {}
        TaskReportState::Running { for_ms } => runs(turn, host, key, for_ms),
        TaskReportState::Ended(result) => ended(turn, connection, host, key, *result),
        TaskReportState::Unknown => reconcile::unknown(turn, host, key),
    }
}

/// A task has begun on a host `for_ms` ago. Only the first word of that proves that the host starts
/// tasks now: it may have begun long before the host fell ill.
fn runs(turn: &mut Turn<'_>, host: &HostName, key: TaskKey, for_ms: u64) {
    let is_news = match key.pe_task {
        0 => turn
            .state()
            .placed(key)
            .is_some_and(|(_, _, task)| task.started.is_none()),
        _ => turn
            .state()
            .slave(key)
            .is_some_and(|(_, _, slave)| slave.started.is_none()),
    };
    running(turn, key, for_ms);
    if is_news {
        fitness::started(turn, host, key);
    }
}

/// A task is over on its host, or never began there.
fn ended(turn: &mut Turn<'_>, connection: ConnectionId, host: &HostName, key: TaskKey, result: TaskResult) {
    let mut own_fault = None;
    if result.exit == Exit::NotStarted {
        own_fault = fitness::not_started(turn, host, key, &result);
    } else {
        // Of a short task the host tells the end alone.
        runs(turn, host, key, result.ended_ago_ms.saturating_add(result.wallclock_ms));
    }
    let never_ran = |turn: &Turn<'_>| {
        turn.state()
            .placed(key)
            .is_some_and(|(_, _, task)| task.started.is_none())
    };
    if key.pe_task > 0 {
        slaves::ended(turn, connection, key, &result);
    } else if let Some(reason) = own_fault {
        let failed = TaskResult {
            reason,
            failed: FailedCode::BEFORE_JOB,
            blame: Blame::Job,
            ..result
        };
        slaves::task_ended(turn, connection, key, failed);
    } else if result.is_hosts_fault() && never_ran(turn) {
        // As if it had not been given to that host: nobody has to clear anything, and nothing is
        // accounted.
        withdraw(turn, key);
        turn.send(connection, MasterMessage::Forget { key });
    } else {
        slaves::task_ended(turn, connection, key, result);
    }
}

/// A task that the master did not give to this host, or no longer counts as its own, is ended there
/// and forgotten.
fn foreign(turn: &mut Turn<'_>, connection: ConnectionId, host: &HostName, key: TaskKey, state: &TaskReportState) {
    match state {
        TaskReportState::Accepted | TaskReportState::Running { .. } => {
            turn.send(
                connection,
                MasterMessage::Signal {
                    key,
                    signal: TaskSignal::Terminate,
                },
            );
        }
        TaskReportState::Ended(_) => {
            confirm_gone(turn, host, key);
            turn.send(connection, MasterMessage::Forget { key });
        }
        TaskReportState::Unknown => confirm_gone(turn, host, key),
    }
}

/// The host does not run an attempt that was given up with it: its task may go there again.
pub(super) fn confirm_gone(turn: &mut Turn<'_>, host: &HostName, key: TaskKey) {
    if turn
        .state()
        .unconfirmed
        .get(host)
        .is_some_and(|keys| keys.contains(&key))
    {
        turn.record(Event::TaskConfirmedGone {
            key,
            host: host.clone(),
        });
    }
}

/// A task began to run so long ago, which may be known.
fn running(turn: &mut Turn<'_>, key: TaskKey, for_ms: u64) {
    let at = Wall(turn.now.wall.0.saturating_sub_unsigned(for_ms));
    let state = turn.state();
    if key.pe_task > 0 {
        if state.slave(key).is_some_and(|(_, _, slave)| slave.started.is_none()) {
            turn.record(Event::SlaveStarted { key, at });
        }
    } else if state
        .placed(key)
        .is_some_and(|(_, _, placement)| placement.started.is_none())
    {
        turn.record(Event::TaskStarted { key, at });
    }
}

/// Ends an attempt: accounting, the task's further way, its queue, and the job if this was its last
/// task.
pub(super) fn end(turn: &mut Turn<'_>, key: TaskKey, task_end: TaskEnd) {
    slaves::give_up(turn, key);
    let now = turn.now;
    let state = turn.state();
    let Some((job, _, placement)) = state.placed(key) else {
        return;
    };
    let result = usage::with_known(turn, key, &task_end.result);
    let outcome = attempt_end::outcome(state, job, placement, &result);
    let (host, instance) = (placement.host().clone(), placement.master().clone());
    let mut record = Box::new(attempt_end::record(state, job, placement, &result, outcome.failed, now));
    record.deleted_by = task_end.forced_by.or(record.deleted_by.take());
    let own = Consumption::from(record.usage).since(placement.slaves().used.into());
    let due = charged_usage::charged(state, job, placement, result.wallclock_ms, result.usage.into());
    let charged = (due != own).then_some(due);
    let mut instance_state = state.instances.get(&instance).cloned().unwrap_or_default();
    let is_configured = state.config.settings_in(&instance).is_some();
    let then = task_end.then.unwrap_or(outcome.then);
    turn.agents_mut().answered(&host, key);
    let saved_pid = task_end.result.saved_pid;
    turn.record(Event::TaskEnded {
        key,
        record: Some(record),
        then,
        saved_pid,
        charged,
    });
    if let Some(error) = outcome.queue_error.filter(|_| is_configured) {
        instance_state.errors.push(error);
        turn.record(Event::InstanceChanged {
            instance,
            state: instance_state,
        });
    }
    finish_if_empty(turn, key.seq);
}

/// Takes back a placement that never reached its host, or that the host could not start by its own
/// fault.
pub(super) fn withdraw(turn: &mut Turn<'_>, key: TaskKey) {
    let Some((_, _, placement)) = turn.state().placed(key) else {
        return;
    };
    let then = if placement.deleting {
        TaskFate::Done
    } else {
        TaskFate::Requeued
    };
    let host = placement.host().clone();
    turn.agents_mut().answered(&host, key);
    turn.record(Event::TaskEnded {
        key,
        record: None,
        then,
        saved_pid: None,
        charged: None,
    });
    finish_if_empty(turn, key.seq);
}

/// Says that a job is finished if no task is left, and lets the agents drop its description.
pub(super) fn finish_if_empty(turn: &mut Turn<'_>, seq: SubmitSeq) {
    if turn.state().jobs.get(&seq).is_none_or(|job| !job.is_empty()) {
        return;
    }
    turn.record(Event::JobFinished { seq });
    for connection in turn.agents_mut().discard(seq) {
        turn.send(connection, MasterMessage::Discard { job: seq });
    }
}

/// Sends the start of a placed task to its host, with the job's description where the host has not
/// got it on this connection.
///
/// Does nothing while the host is away: after its connect it is asked what it knows.
pub(super) fn send_start(turn: &mut Turn<'_>, key: TaskKey) {
    let mut told = turn.take_last_start();
    let state = turn.state();
    let Some(host) = state.host_of(key).cloned() else {
        return;
    };
    let Some((job, task, placement)) = state.placed(task_of(key)) else {
        return;
    };
    let Some(connection) = turn.agents().connection(&host) else {
        return;
    };
    let (spec, version) = (job.spec.clone(), job.version);
    let order = match placement.slaves().live.get(&key.pe_task) {
        Some(slave) => limits::slave_order(state, job, placement, key, slave),
        None => limits::start_order(state, job, task, placement, &mut told),
    };
    let order = Box::new(order);
    turn.keep_last_start(told);
    if turn.agents_mut().describe(&host, key.seq, version) {
        turn.send(connection, MasterMessage::Describe { job: key.seq, spec });
    }
    turn.send(connection, MasterMessage::Start(order));
    let now = turn.now.tick;
    turn.agents_mut().await_answer(&host, key, now);
}

/// Sends a signal to a placed task and its slave tasks, where their hosts are connected.
pub(super) fn signal(turn: &mut Turn<'_>, key: TaskKey, signal: TaskSignal) {
    // What moves ends its slave tasks with itself.
    if signal != TaskSignal::Migrate {
        slaves::signal(turn, key, signal);
    }
    let Some((_, _, placement)) = turn.state().placed(key) else {
        return;
    };
    if let Some(connection) = turn.agents().connection(placement.host()) {
        turn.send(connection, MasterMessage::Signal { key, signal });
    }
}

/// Says again what is to be done to a task that its host knows: it may have been away when it was
/// said first.
pub(super) fn remind(turn: &mut Turn<'_>, connection: ConnectionId, key: TaskKey) {
    let state = turn.state();
    let Some((_, _, placement)) = state.placed(task_of(key)) else {
        return;
    };
    let is_slave = key.pe_task > 0;
    let is_over = is_slave && turn.agents().is_held(task_of(key));
    let signal = if placement.deleting || placement.rescheduling || is_over {
        TaskSignal::Terminate
    } else if placement.migrating && !is_slave {
        TaskSignal::Migrate
    } else if state.is_stopped(placement) {
        TaskSignal::Suspend
    } else if placement.was_suspended {
        TaskSignal::Resume
    } else {
        return;
    };
    turn.send(connection, MasterMessage::Signal { key, signal });
}

/// Whether a placed task is stopped for any reason; none if it is not placed.
pub(super) fn is_stopped(turn: &Turn<'_>, key: TaskKey) -> Option<bool> {
    let state = turn.state();
    state.placed(key).map(|(_, _, placement)| state.is_stopped(placement))
}

/// Tells the host of a task if an event stopped it or let it go on. `before` is [`is_stopped`]
/// before the event.
///
/// A checkpointing job that wants so moves in place of being stopped, and then nothing stops it any
/// more.
pub(super) fn signal_change(turn: &mut Turn<'_>, key: TaskKey, before: Option<bool>) {
    let is_migrating = turn
        .state()
        .placed(key)
        .is_some_and(|(_, _, placement)| placement.migrating);
    match (before, is_stopped(turn, key)) {
        // The command that should have moved it may have failed.
        (Some(false), Some(true)) if is_migrating => signal(turn, key, TaskSignal::Migrate),
        (Some(_), Some(_)) if is_migrating => {}
        (Some(false), Some(true)) if may_migrate(turn, key, |when| when.suspended) => migrate(turn, key),
        (Some(false), Some(true)) => signal(turn, key, TaskSignal::Suspend),
        (Some(true), Some(false)) => signal(turn, key, TaskSignal::Resume),
        (Some(_) | None, Some(_) | None) => {}
    }
}

/// The agent of a host is about to end: what wants to go on elsewhere then is moved first. The
/// agent waits for it.
pub(super) fn migrate_at_shutdown(turn: &mut Turn<'_>, host: &HostName, key: TaskKey) {
    let is_here = turn
        .state()
        .placed(key)
        .is_some_and(|(_, _, placement)| placement.host() == host);
    if is_here && may_migrate(turn, key, |when| when.shutdown) {
        migrate(turn, key);
    }
}

/// Whether a task is of a checkpointing job for such an occasion, and nothing else ends it already.
fn may_migrate(turn: &Turn<'_>, key: TaskKey, occasion: fn(CheckpointOccasions) -> bool) -> bool {
    let state = turn.state();
    let Some((job, _, placement)) = state.placed(key) else {
        return false;
    };
    let is_ending = placement.deleting || placement.rescheduling || placement.migrating;
    !is_ending && occasion(state.config.checkpoint_when(&job.spec))
}

fn migrate(turn: &mut Turn<'_>, key: TaskKey) {
    turn.record(Event::TaskMigrationRequested { key });
    signal(turn, key, TaskSignal::Migrate);
}
