//! After a connect: what the agent says it has against what the master gave it (ALGORITHMS.md
//! section 18).

use crate::decide::Turn;
use crate::decide::tasks::slaves;
use crate::decide::tasks::{self, TaskEnd};
use crate::effect::ConnectionId;
use proto::id::{HostName, TaskKey};
use proto::wire::agent::TaskReport;
use std::collections::BTreeSet;

/// Brings both sides together: what the host reports is taken as news; what it does not know is
/// sent again if it never started there, and is lost otherwise; what it is yet to do to its tasks
/// is said again.
pub(crate) fn reconcile(turn: &mut Turn<'_>, connection: ConnectionId, host: &HostName, reports: Vec<TaskReport>) {
    let reported: BTreeSet<TaskKey> = reports.iter().map(|report| report.key).collect();
    let given_up = turn.state().unconfirmed.get(host).cloned().unwrap_or_default();
    for key in given_up.difference(&reported) {
        tasks::confirm_gone(turn, host, *key);
    }
    for report in reports {
        tasks::report(turn, connection, host, report);
    }
    let of_masters: Vec<TaskKey> = turn.state().index.on_host(host).collect();
    let ours = turn.state().slaves_on(host).into_iter().chain(of_masters);
    let mut missing = Vec::new();
    for key in ours {
        if turn.state().host_of(key) != Some(host) {
            continue;
        }
        if reported.contains(&key) {
            tasks::remind(turn, connection, key);
        } else if !end_unknown(turn, key) {
            missing.push(key);
        }
    }
    // The end of a job that the host has lost was the end of its slave tasks, too.
    for key in missing {
        if turn.state().host_of(key) == Some(host) {
            tasks::send_start(turn, key);
        }
    }
}

/// The host said that it does not know a task. A start that it could not use is repeated later with
/// the job's description, not at once: it would answer the same.
pub(crate) fn unknown(turn: &mut Turn<'_>, host: &HostName, key: TaskKey) {
    if !end_unknown(turn, key) {
        let now = turn.now.tick;
        turn.agents_mut().undescribe(host, key.seq);
        turn.agents_mut().await_answer(host, key, now);
    }
}

/// Ends a task that its host does not know, if it ran there or is not to run any more; whether it
/// is ended.
fn end_unknown(turn: &mut Turn<'_>, key: TaskKey) -> bool {
    if key.pe_task > 0 {
        return slaves::end_unknown(turn, key);
    }
    let Some((_, _, placement)) = turn.state().placed(key) else {
        return true;
    };
    if placement.started.is_some() {
        let reason = format!("host {} does not know the task any more", placement.host());
        let end = TaskEnd::vanished(turn, key, reason);
        tasks::end(turn, key, end);
    } else if placement.deleting || placement.rescheduling {
        tasks::withdraw(turn, key);
    } else {
        return false;
    }
    true
}
