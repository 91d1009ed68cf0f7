//! Queue-wise subordination: an instance is suspended while a superordinate one of its host uses as
//! many slots as its list says.

use super::{set, state_of};
use crate::decide::Turn;
use crate::event::InstanceState;
use crate::ledger::Level;
use crate::state::State;
use proto::id::{HostName, QueueInstanceName, QueueName};
use std::collections::BTreeSet;

/// The hosts on which anything is subordinate, or was.
pub(super) fn all_hosts(state: &State) -> BTreeSet<HostName> {
    let config = &state.config;
    let above = config
        .causes
        .superordinates
        .iter()
        .flat_map(|queue| config.instances_of(queue));
    let flagged = state
        .instances
        .iter()
        .filter(|(_, state)| state.subordinate || state.preempted);
    above
        .map(|(instance, _)| instance)
        .chain(flagged.map(|(instance, _)| instance))
        .map(|at| at.host.clone())
        .collect()
}

/// Brings the instances of a host to what the superordinate ones say.
pub(super) fn follow(turn: &mut Turn<'_>, host: &HostName) {
    let state = turn.state();
    let used = |instance: &QueueInstanceName| state.slots_in_use(&Level::Instance(instance.clone()));
    let suspended: BTreeSet<QueueName> = state.config.suspended_on(host, used).cloned().collect();
    let queues: Vec<QueueName> = turn.state().config.queues.keys().cloned().collect();
    for queue in queues {
        let subordinate = suspended.contains(&queue);
        let instance = QueueInstanceName {
            queue,
            host: host.clone(),
        };
        let before = state_of(turn, &instance);
        // An instance that its queue has left is suspended by nothing.
        let subordinate = subordinate && turn.state().config.resolved.contains_key(&instance);
        if before.subordinate != subordinate {
            set(turn, &instance, InstanceState { subordinate, ..before });
        }
    }
}
