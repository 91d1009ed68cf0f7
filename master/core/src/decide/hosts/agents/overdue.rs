//! Tasks on unknown hosts whose time is over: the master ends them (`ENABLE_ENFORCE_MASTER_LIMIT`).
//!
//! The shepherd of such a task ends it by itself where it lives; this frees what the task holds
//! where the whole host is gone.

use crate::decide::Turn;
use crate::decide::hosts::agents::table::Deadline;
use crate::decide::tasks::limits;
use crate::decide::tasks::{self, TaskEnd};
use proto::id::{HostName, TaskKey};
use proto::time::Tick;

/// A task on an unknown host, and when it is over.
struct OverdueTask {
    key: TaskKey,
    limit: &'static str,
    seconds: u64,
    at: Tick,
}

/// Wants to be called when the first task of an unknown host is overdue.
pub(crate) fn watch(turn: &mut Turn<'_>, host: &HostName) {
    if !turn.state().config.settings.qmaster().enable_enforce_master_limit || turn.agents().heard(host).is_some() {
        return;
    }
    if let Some(at) = of_host(turn, host).into_iter().map(|task| task.at).min() {
        turn.agents_mut().expect(at, host.clone(), Deadline::Limit);
    }
}

/// Ends what is overdue on a host that is still unknown, and waits for the rest.
pub(crate) fn enforce(turn: &mut Turn<'_>, host: &HostName) {
    if !turn.state().config.settings.qmaster().enable_enforce_master_limit || turn.agents().heard(host).is_some() {
        return;
    }
    let now = turn.now.tick;
    for task in of_host(turn, host).into_iter().filter(|task| task.at <= now) {
        let (limit, seconds) = (task.limit, task.seconds);
        let reason =
            format!("host {host} is unknown, and the {limit} of {seconds} s is over: the master ended the task");
        let end = TaskEnd::overdue(turn, task.key, limit, seconds, reason);
        tasks::end(turn, task.key, end);
    }
    watch(turn, host);
}

/// The running tasks of which a host has the master slot and that have a limit of time.
fn of_host(turn: &Turn<'_>, host: &HostName) -> Vec<OverdueTask> {
    let state = turn.state();
    let grace_ms = state.config.scheduler.duration_offset_s().saturating_mul(1000);
    let one = |key: TaskKey| {
        let (job, _, placement) = state.placed(key)?;
        let started = placement.started.filter(|_| placement.host() == host)?;
        let (limit, seconds) = limits::time_limit(state, job, placement)?;
        let before_start_ms = u64::try_from(started.0.saturating_sub(placement.placed.0)).unwrap_or(0);
        let run_ms = seconds
            .saturating_mul(1000)
            .saturating_add(grace_ms)
            .saturating_add(before_start_ms);
        Some(OverdueTask {
            key,
            limit,
            seconds,
            at: placement.placed_tick.plus_ms(run_ms),
        })
    };
    state.index.on_host(host).filter_map(one).collect()
}
