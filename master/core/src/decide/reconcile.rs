//! After a connect: what the agent says it has against what the master gave it (DESIGN section 3, EXE-18).

use super::Turn;
use super::tasks::{self, TaskEnd};
use crate::effect::ConnectionId;
use proto::id::{HostName, TaskKey};
use proto::wire::agent::TaskReport;
use std::collections::BTreeSet;

/// Brings both sides together: what the host reports is taken as news; what it does not know is sent again if it never
/// started there, and is lost otherwise; what it is yet to do to its tasks is said again.
pub(super) fn reconcile(turn: &mut Turn<'_>, connection: ConnectionId, host: &HostName, reports: Vec<TaskReport>) {
    let reported: BTreeSet<TaskKey> = reports.iter().map(|report| report.key).collect();
    for report in reports {
        tasks::report(turn, connection, host, report);
    }
    let ours: Vec<TaskKey> = turn.state().index.on_host(host).collect();
    for key in ours {
        let is_its_master = turn.state().placed(key).is_some_and(|(_, _, placement)| placement.host() == host);
        if !is_its_master {
            continue;
        }
        if reported.contains(&key) {
            tasks::remind(turn, connection, key);
        } else {
            missing(turn, key);
        }
    }
}

/// A task that the host has never seen, or has no memory of.
pub(super) fn missing(turn: &mut Turn<'_>, key: TaskKey) {
    let Some((_, _, placement)) = turn.state().placed(key) else { return };
    if placement.started.is_some() {
        let reason = format!("host {} does not know the task any more", placement.host());
        tasks::end(turn, key, TaskEnd::vanished(turn, key, reason));
    } else if placement.deleting || placement.rescheduling {
        tasks::withdraw(turn, key);
    } else {
        tasks::send_start(turn, key);
    }
}
