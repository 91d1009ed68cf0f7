//! Calendars: what each says now for the queue instances that use it, and when one says something
//! else.

use super::{CauseChanges, set, state_of};
use crate::decide::Turn;
use crate::event::InstanceState;
use crate::state::State;
use proto::calendar::CalendarState;
use proto::id::{CalendarName, HostName, QueueInstanceName, QueueName};
use proto::time::{Wall, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// Brings queue instances to what their calendars say: all of them when time or a calendar has
/// changed it, else those that were touched themselves.
pub(super) fn follow(turn: &mut Turn<'_>, touch: &CauseChanges) {
    let is_due = touch.calendars || turn.is_calendar_due();
    if !is_due && touch.queues.is_empty() && touch.hosts.is_empty() {
        return;
    }
    let queues: BTreeSet<QueueName> = turn
        .state()
        .config
        .causes
        .calendars
        .keys()
        .chain(&touch.queues)
        .cloned()
        .collect();
    let instances: Vec<QueueInstanceName> = if is_due {
        let kept = turn
            .state()
            .instances
            .iter()
            .filter(|(_, state)| state.calendar != CalendarState::On);
        let used = queues
            .iter()
            .flat_map(|queue| turn.state().config.instances_of(queue))
            .map(|(instance, _)| instance);
        kept.map(|(instance, _)| instance)
            .chain(used)
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    } else {
        queues
            .iter()
            .flat_map(|queue| touch.hosts.iter().map(|host| instance(queue, host)))
            .collect()
    };
    let mut says: BTreeMap<CalendarName, CalendarState> = BTreeMap::new();
    for instance in instances {
        let calendar = said(turn, &mut says, &instance);
        let before = state_of(turn, &instance);
        if before.calendar != calendar {
            set(turn, &instance, InstanceState { calendar, ..before });
        }
    }
    if is_due || !touch.queues.is_empty() {
        let next = next_change(turn.state(), &turn.site().zone, turn.now.wall);
        turn.set_next_calendar(next);
    }
}

fn instance(queue: &QueueName, host: &HostName) -> QueueInstanceName {
    QueueInstanceName {
        queue: queue.clone(),
        host: host.clone(),
    }
}

/// What the calendar of an instance says now; on without one. An instance that its queue has left
/// has none.
fn said(
    turn: &Turn<'_>,
    says: &mut BTreeMap<CalendarName, CalendarState>,
    instance: &QueueInstanceName,
) -> CalendarState {
    let config = &turn.state().config;
    let Some(name) = config
        .resolved
        .get(instance)
        .and_then(|settings| settings.calendar.value())
    else {
        return CalendarState::On;
    };
    let name = CalendarName::from(name.as_str());
    *says.entry(name).or_insert_with_key(|name| {
        let now = turn.site().zone.local(turn.now.wall);
        config
            .calendars
            .get(name)
            .map_or(CalendarState::On, |calendar| calendar.state_at(now))
    })
}

/// When a calendar that a queue names says something else for the first time.
fn next_change(state: &State, zone: &Zone, now: Wall) -> Option<Wall> {
    let used: BTreeSet<&CalendarName> = state.config.causes.calendars.values().flatten().collect();
    let calendars = used.into_iter().filter_map(|name| state.config.calendars.get(name));
    calendars
        .filter_map(|calendar| calendar.next_change(zone, now))
        .map(|(at, _)| at)
        .min()
}
