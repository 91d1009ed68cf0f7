//! A level with all that is known of it, looked up once: what a job is matched against is asked of it for each request.

use super::{Cluster, sum};
use crate::ledger::{AtLevel, Level};
use crate::observe::LoadEntry;
use proto::amount::Amount;
use proto::host::ExecHost;
use proto::id::{AttributeName, HostName};
use proto::object::value::Assignments;
use proto::queue::QueueInstanceSettings;
use std::collections::BTreeMap;

/// A level of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a, 'l> {
    /// The level.
    pub level: &'l Level,
    /// The execution host object; none of a queue instance.
    pub host: Option<&'a ExecHost>,
    /// The settings; none of a host.
    pub settings: Option<&'a QueueInstanceSettings>,
    /// What is reported of the host.
    pub loads: Option<&'a BTreeMap<AttributeName, LoadEntry>>,
    /// What is booked in each ledger that counts.
    pub books: [Option<&'a AtLevel>; 2],
}

impl<'a> Cluster<'a> {
    /// Looks a level up.
    pub fn spot<'l>(&self, level: &'l Level) -> Spot<'a, 'l> {
        let mut ledgers = self.ledgers();
        let books = std::array::from_fn(|_| ledgers.next().and_then(|ledger| ledger.level(level)));
        let of_host = |name: &HostName| {
            let host = self.config.exec_hosts.get(name).map(AsRef::as_ref);
            Spot { level, host, settings: None, loads: self.observations.load.get(name), books }
        };
        match level {
            Level::Global => of_host(&HostName::global()),
            Level::Host(name) => of_host(name),
            Level::Instance(instance) => {
                let settings = self.config.resolved.get(instance).map(AsRef::as_ref);
                Spot { level, host: None, settings, loads: None, books }
            }
        }
    }
}

impl<'a> Spot<'a, '_> {
    /// `complex_values` of the level.
    pub fn complex_values(&self) -> Option<&'a Assignments> {
        let of_host = self.host.map(|host| &host.complex_values);
        of_host.or_else(|| self.settings.map(|settings| &settings.complex_values))
    }

    /// What is set for an attribute.
    pub fn value(&self, attribute: &str) -> Option<&'a str> {
        self.complex_values()?.value(attribute)
    }

    /// What is booked of an attribute now.
    pub fn booked_now(&self, attribute: &str) -> Amount {
        sum(self.books.iter().flatten().map(|book| book.booked(attribute)))
    }
}
