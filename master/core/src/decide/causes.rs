//! What suspends tasks and closes queue instances besides people: calendars and superordinate
//! queues (ALGORITHMS.md section 16).
//!
//! Each cause has a flag of its own, set and cleared by events: a task goes on when none is left.
//! Causes are looked at behind every input, and only where something has changed on which they
//! rest. Suspend thresholds rest on load, which the core does not judge: the scheduler orders these
//! suspensions.

mod calendars;
mod slotwise;
mod subordinates;

use super::Turn;
use super::tasks::{is_stopped, signal_change};
use crate::event::{Event, InstanceState};
use crate::state::State;
use proto::id::{HostName, QueueInstanceName, QueueName, TaskKey};
use proto::job::GrantedSlots;
use proto::object::ObjectKind;
use std::collections::BTreeSet;

/// What has changed on which causes rest.
#[derive(Debug, Default)]
pub(crate) struct CauseChanges {
    /// Hosts on which slots were taken or freed, tasks stopped or resumed, or queue instances
    /// changed.
    pub hosts: BTreeSet<HostName>,
    /// Queues that were changed.
    pub queues: BTreeSet<QueueName>,
    /// Whether a calendar was changed.
    pub calendars: bool,
}

impl CauseChanges {
    /// Notes what an event is about to change.
    pub fn note(&mut self, state: &State, event: &Event) {
        if let Event::ObjectsChanged(objects) = event {
            let queues = objects.iter().filter(|object| object.kind == ObjectKind::Queue);
            self.queues
                .extend(queues.map(|object| QueueName::from(object.name.as_str())));
            self.calendars |= objects.iter().any(|object| object.kind == ObjectKind::Calendar);
        } else if !state.config.causes.superordinates.is_empty() {
            self.note_slots(state, event);
        }
    }

    fn note_slots(&mut self, state: &State, event: &Event) {
        if let Event::InstanceChanged { instance, .. } = event {
            self.hosts.insert(instance.host.clone());
        }
        let granted = granted(state, event).iter();
        self.hosts.extend(granted.map(|granted| granted.instance.host.clone()));
    }
}

/// The slots that an event takes, frees, stops or resumes.
fn granted<'a>(state: &'a State, event: &'a Event) -> &'a [GrantedSlots] {
    if let Event::TaskPlaced { granted, .. } = event {
        return granted;
    }
    let (Event::TaskEnded { key, .. } | Event::TaskSuspended { key, .. } | Event::TaskThresholdSuspended { key, .. }) =
        event
    else {
        return &[];
    };
    state
        .placed(*key)
        .map_or(&[][..], |(_, _, placement)| &placement.granted)
}

/// Sets and clears what has come to be or has gone.
pub(crate) fn follow(turn: &mut Turn<'_>) {
    let touch = turn.take_touch();
    calendars::follow(turn, &touch);
    let CauseChanges { mut hosts, queues, .. } = touch;
    if turn.state().config.causes.superordinates.is_empty() && queues.is_empty() && !turn.is_first() {
        return;
    }
    hosts.extend(turn.take_touch().hosts);
    if turn.is_first() {
        hosts.extend(subordinates::all_hosts(turn.state()));
    }
    for host in &hosts {
        subordinates::follow(turn, host);
        slotwise::follow(turn, host);
    }
    // What was done here rests on nothing that was done here later.
    turn.take_touch();
}

/// Sets the state of an instance, and stops its tasks or lets them go on.
pub(crate) fn set(turn: &mut Turn<'_>, instance: &QueueInstanceName, state: InstanceState) {
    let tasks: Vec<(TaskKey, Option<bool>)> = turn
        .state()
        .tasks_in(instance)
        .into_iter()
        .map(|key| (key, is_stopped(turn, key)))
        .collect();
    turn.record(Event::InstanceChanged {
        instance: instance.clone(),
        state,
    });
    for (key, before) in tasks {
        signal_change(turn, key, before);
    }
}

/// The state of an instance as it is kept.
fn state_of(turn: &Turn<'_>, instance: &QueueInstanceName) -> InstanceState {
    turn.state().instances.get(instance).cloned().unwrap_or_default()
}
