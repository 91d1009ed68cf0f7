//! What was reported so far on one connection, and what the next report says.

use ::sensors::report::{HostValues, delta};
use proto::id::{AttributeName, HostName};
use proto::load::{LoadReport, OlderValues};
use std::collections::BTreeMap;

/// Values by the host they are for and by name.
type ValueTable = BTreeMap<(HostName, AttributeName), String>;

/// The reports of one connection. Without a report that was sent, the next one is full.
#[derive(Debug)]
pub(super) struct SentValues {
    host: HostName,
    sequence: u64,
    sent: Option<ValueTable>,
    /// What the last report brought the master to, once it was sent.
    offered: ValueTable,
}

impl SentValues {
    pub(super) fn new(host: HostName) -> Self {
        Self {
            host,
            sequence: 0,
            sent: None,
            offered: ValueTable::new(),
        }
    }

    /// The same connection, as if nothing had been sent: the sequence goes on.
    pub(super) fn for_full_report(self) -> Self {
        Self { sent: None, ..self }
    }

    /// The next report; it counts once [`SentValues::sent`] is called.
    pub(super) fn next(&mut self, now: &HostValues) -> LoadReport {
        let resolve = |((host, name), value): (&(_, AttributeName), &String)| {
            let host: &::sensors::host::HostSpec = host;
            ((host.resolve(&self.host), name.clone()), value.clone())
        };
        self.offered = now.iter().map(resolve).collect();
        self.sequence += 1;
        let nothing = ValueTable::new();
        let difference = delta(self.sent.as_ref().unwrap_or(&nothing), &self.offered);
        let mut report = LoadReport {
            sequence: self.sequence,
            full: self.sent.is_none(),
            ..LoadReport::default()
        };
        for ((host, name), value) in difference.changed {
            report.values.entry(host).or_default().insert(name, value);
        }
        for (host, name) in difference.withdrawn {
            report.withdrawn.entry(host).or_default().push(name);
        }
        report
    }

    /// The values of sensors that were taken earlier than `report_ago_ms`; of a name that several
    /// sensors report the last counts.
    pub(super) fn older<'a>(
        &self,
        blocks: impl IntoIterator<Item = (&'a HostValues, u64)>,
        report_ago_ms: u64,
    ) -> Vec<OlderValues> {
        let named = blocks
            .into_iter()
            .flat_map(|(values, ago_ms)| values.keys().map(move |key| (key, ago_ms)));
        let ages: BTreeMap<_, u64> = named.collect();
        let mut older: BTreeMap<u64, OlderValues> = BTreeMap::new();
        for ((host, name), sampled_ago_ms) in ages.into_iter().filter(|(_, ago_ms)| *ago_ms > report_ago_ms) {
            let group = older.entry(sampled_ago_ms).or_default();
            group.sampled_ago_ms = sampled_ago_ms;
            group
                .names
                .entry(host.resolve(&self.host))
                .or_default()
                .push(name.clone());
        }
        older.into_values().collect()
    }

    /// The last report is on its way.
    pub(super) fn sent(&mut self) {
        self.sent = Some(std::mem::take(&mut self.offered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::sensors::host::HostSpec;

    fn values(entries: &[(HostSpec, &str, &str)]) -> HostValues {
        let entry = |(host, name, value): &(HostSpec, &str, &str)| {
            ((host.clone(), AttributeName::from(*name)), (*value).to_owned())
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn the_first_report_is_full_and_later_ones_name_changes_and_what_went() {
        let mut ledger = SentValues::new(HostName::new("node1"));
        let first = values(&[
            (HostSpec::This, "a", "1"),
            (HostSpec::This, "b", "2"),
            (HostSpec::Global, "c", "3"),
        ]);
        let report = ledger.next(&first);
        assert!(report.full);
        assert_eq!(
            (report.sequence, report.values.len(), report.withdrawn.len()),
            (1, 2, 0)
        );
        ledger.sent();
        let report = ledger.next(&values(&[(HostSpec::This, "a", "1"), (HostSpec::This, "b", "5")]));
        assert!(!report.full);
        assert_eq!(report.sequence, 2);
        assert_eq!(report.values[&HostName::new("node1")].len(), 1);
        assert_eq!(report.withdrawn[&HostName::global()], [AttributeName::from("c")]);
    }

    #[test]
    fn a_report_that_was_not_sent_does_not_count() {
        let mut ledger = SentValues::new(HostName::new("node1"));
        let known = values(&[(HostSpec::This, "a", "1")]);
        ledger.next(&known);
        assert!(ledger.next(&known).full);
    }

    #[test]
    fn values_of_a_sensor_that_was_not_asked_are_named_with_their_age() {
        let ledger = SentValues::new(HostName::new("node1"));
        let slow = values(&[(HostSpec::This, "a", "1"), (HostSpec::Global, "lic", "3")]);
        let fresh = values(&[(HostSpec::This, "a", "2")]);
        let older = ledger.older([(&slow, 30_000), (&fresh, 5)], 20);
        let names = BTreeMap::from([(HostName::global(), vec![AttributeName::from("lic")])]);
        assert_eq!(
            older,
            [OlderValues {
                sampled_ago_ms: 30_000,
                names
            }]
        );
        assert_eq!(ledger.older([(&fresh, 5)], 20), []);
    }

    #[test]
    fn a_full_report_in_between_goes_on_counting() {
        let mut ledger = SentValues::new(HostName::new("node1"));
        let known = values(&[(HostSpec::This, "a", "1")]);
        ledger.next(&known);
        ledger.sent();
        let mut ledger = ledger.for_full_report();
        let report = ledger.next(&known);
        assert_eq!((report.full, report.sequence), (true, 2));
    }
}
