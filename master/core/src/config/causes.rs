//! The queues whose instances are suspended or closed by something else than people, so that no
//! others are looked at.

use proto::id::{CalendarName, HostName, QueueInstanceName, QueueName};
use proto::queue::{ClusterQueue, QueueInstanceSettings, Subordinates};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Cluster queues by what they use, on any of their hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Those with a calendar, and the calendars that they name.
    pub calendars: BTreeMap<QueueName, BTreeSet<CalendarName>>,
    /// Those with a `subordinate_list`.
    pub superordinates: BTreeSet<QueueName>,
    /// Those with `suspend_thresholds`.
    pub thresholds: BTreeSet<QueueName>,
}

impl Causes {
    /// Notes what a queue uses now; none if there is no such queue.
    pub(crate) fn note(&mut self, name: &QueueName, queue: Option<&ClusterQueue>) {
        let calendars: BTreeSet<CalendarName> = queue.map(calendars).unwrap_or_default();
        match calendars.is_empty() {
            true => self.calendars.remove(name),
            false => self.calendars.insert(name.clone(), calendars),
        };
        let any = |is_used: fn(&ClusterQueue) -> bool| queue.is_some_and(is_used);
        mark(
            &mut self.superordinates,
            name,
            any(|queue| queue.subordinate_list.values().any(|list| list.0.is_some())),
        );
        mark(
            &mut self.thresholds,
            name,
            any(|queue| queue.suspend_thresholds.values().any(|list| !list.is_empty())),
        );
    }
}

impl crate::config::Configuration {
    /// The queues whose instances on a host another one there suspends, of which `used` says how
    /// many slots are in use.
    pub fn suspended_on<'a>(
        &'a self,
        host: &'a HostName,
        used: impl Fn(&QueueInstanceName) -> u32 + 'a,
    ) -> impl Iterator<Item = &'a QueueName> + 'a {
        let above = self.causes.superordinates.iter().filter_map(move |queue| {
            let instance = QueueInstanceName {
                queue: queue.clone(),
                host: host.clone(),
            };
            let settings = self.resolved.get(&instance)?;
            let Subordinates::Queues(list) = settings.subordinate_list.value()? else {
                return None;
            };
            Some((used(&instance), settings.slots, list))
        });
        above.flat_map(|(used, slots, list)| {
            let reached = list
                .iter()
                .filter(move |entry| used >= entry.threshold.unwrap_or(slots).max(1));
            reached.map(|entry| &entry.queue)
        })
    }

    /// The instances of a queue with their settings.
    pub fn instances_of<'a>(
        &'a self,
        queue: &'a QueueName,
    ) -> impl Iterator<Item = (&'a QueueInstanceName, &'a Arc<QueueInstanceSettings>)> + 'a {
        let first = QueueInstanceName {
            queue: queue.clone(),
            host: HostName::new(""),
        };
        self.resolved
            .range(first..)
            .take_while(move |(instance, _)| instance.queue == *queue)
    }
}

fn calendars(queue: &ClusterQueue) -> BTreeSet<CalendarName> {
    queue
        .calendar
        .values()
        .filter_map(|name| Some(CalendarName::from(name.value()?.as_str())))
        .collect()
}

fn mark(set: &mut BTreeSet<QueueName>, name: &QueueName, is_in: bool) {
    if is_in {
        set.insert(name.clone())
    } else {
        set.remove(name)
    };
}
