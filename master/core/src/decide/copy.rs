//! A cell whose directory was copied parts from its original.
//!
//! The tasks that ran when the copy was made run on in the original, if at all. Their ends are not
//! known here, and nothing of them is to be touched: so they end in the copy's books alone. What
//! waits would do the same work a second time: so every queue instance is disabled, and people
//! enable what they want.

use super::Turn;
use super::tasks::{self, TaskEnd};
use crate::event::{Event, InstanceState};
use proto::id::{Epoch, HostName, QueueInstanceName, TaskKey};

/// Ends what runs, disables every queue instance, lets each host in with whatever task directory it
/// has, and raises the epoch.
pub(crate) fn part(turn: &mut Turn<'_>, why: &str) {
    let epoch = Epoch(turn.state().epoch.0 + 1);
    turn.record(Event::EpochRaised { epoch });
    let instances: Vec<QueueInstanceName> = turn.state().config.resolved.keys().cloned().collect();
    for instance in instances {
        let present = turn.state().instances.get(&instance).cloned().unwrap_or_default();
        if !present.disabled {
            turn.record(Event::InstanceChanged {
                instance,
                state: InstanceState {
                    disabled: true,
                    ..present
                },
            });
        }
    }
    let placed: Vec<TaskKey> = turn
        .state()
        .index
        .hosts()
        .flat_map(|host| turn.state().index.on_host(host))
        .collect();
    placed.into_iter().for_each(|key| end(turn, key, why));
    let bound: Vec<HostName> = turn.state().task_marks.keys().cloned().collect();
    for host in bound {
        turn.record(Event::HostTasksBound { host, mark: None });
    }
}

/// A task that has never been said to run waits again.
fn end(turn: &mut Turn<'_>, key: TaskKey, why: &str) {
    let Some((_, _, placement)) = turn.state().placed(key) else {
        return;
    };
    if placement.started.is_none() {
        return tasks::withdraw(turn, key);
    }
    let end = TaskEnd::elsewhere(turn, key, why.to_owned());
    tasks::end(turn, key, end);
}
