//! Observations: soft facts, latest wins, never logged, brought again by the agents after a restart
//! (ARCHITECTURE.md "One input").

mod ill;

pub use ill::IllIds;

use crate::collections::by_host::ByHost;
use crate::event::{Event, Record};
use proto::binding::Topology;
use proto::id::{AttributeName, HostName, TaskKey};
use proto::load::{LoadReport, SensorStatus};
use proto::time::Tick;
use proto::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One soft fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observation {
    /// A load report was accepted.
    Load {
        /// The host that sent it.
        host: HostName,
        /// When it arrived.
        at: Tick,
        /// The report.
        report: Box<LoadReport>,
    },
    /// A host connected or its connection ended.
    Contact {
        /// The host.
        host: HostName,
        /// When.
        at: Tick,
        /// Whether it is connected now.
        connected: bool,
    },
    /// Nothing was heard of a host for `max_unheard`: its values count no longer.
    Unheard {
        /// The host.
        host: HostName,
    },
    /// How many values of a host's last report were refused, where that has changed.
    LoadRefused {
        /// The host that sent it.
        host: HostName,
        /// How many; none is 0.
        values: usize,
    },
    /// Whether a host can start tasks.
    Unfit {
        /// The host.
        host: HostName,
        /// The reason why the host cannot start tasks. `None` means that it can.
        why: Option<String>,
    },
    /// Use of running tasks.
    Usage(Vec<(TaskKey, Usage)>),
    /// Health of a host's sensors.
    Sensors {
        /// The host.
        host: HostName,
        /// One entry a sensor.
        sensors: Vec<SensorStatus>,
    },
}

/// Everything soft that is known, as each reader folds it for itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// By execution host.
    pub hosts: ByHost<HostObservation>,
    /// Load values by subject and attribute: hosts and `global`.
    pub load: ByHost<Loads>,
    /// Use of running tasks, last known.
    pub usage: BTreeMap<TaskKey, Usage>,
    /// Of how many subjects a value is known, by attribute; none that is not known anywhere.
    reported: BTreeMap<AttributeName, usize>,
}

/// What is known of one execution host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostObservation {
    /// Whether its agent is connected.
    pub connected: bool,
    /// Whether it counts as unknown: never heard, or not for `max_unheard`.
    pub unheard: bool,
    /// What keeps it from starting tasks, if anything does: its queue instances are in error until
    /// it is well.
    pub unfit: Option<Arc<str>>,
    /// When it was last heard.
    pub heard: Option<Tick>,
    /// When its last load report arrived on the present connection.
    pub reported: Option<Tick>,
    /// When its agent started, as its last report said.
    pub agent_started: Option<Tick>,
    /// Sequence number of that report.
    pub sequence: u64,
    /// How many values of its last report were refused as too many or too long.
    pub refused: usize,
    /// Its load sensors.
    pub sensors: Vec<SensorStatus>,
    /// Hosts, itself and `global` among them, for which it reports values.
    pub subjects: BTreeSet<HostName>,
}

/// One load value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadEntry {
    /// The text as reported.
    pub text: String,
    /// The host that reported it: it withdraws only its own values.
    pub reporter: HostName,
    /// When it was sampled, on the master's clock: what was booked later is not in it yet.
    pub sampled: Tick,
}

/// The load values of one subject, by name.
///
/// Invariant: names rise, each is there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads(Vec<(AttributeName, LoadEntry)>);

impl HostObservation {
    /// Whether tasks can be given to it.
    pub fn is_ready(&self) -> bool {
        self.connected && self.unfit.is_none()
    }
}

impl Loads {
    /// The value of an attribute, if it is reported.
    pub fn get(&self, name: &AttributeName) -> Option<&LoadEntry> {
        let at = self.at(name).ok()?;
        Some(&self.0[at].1)
    }

    /// The same by a name in any form.
    pub fn named(&self, name: &str) -> Option<&LoadEntry> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Takes a value in; what was there under the name is replaced. Whether there was none.
    pub fn insert(&mut self, name: AttributeName, entry: LoadEntry) -> bool {
        let place = self.at(&name);
        match place {
            Ok(at) => self.0[at].1 = entry,
            Err(at) => self.0.insert(at, (name, entry)),
        }
        place.is_err()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&AttributeName, &LoadEntry)> {
        self.0.iter().map(|(name, entry)| (name, entry))
    }

    /// Their values, by name.
    pub fn values(&self) -> impl Iterator<Item = &LoadEntry> {
        self.0.iter().map(|(_, entry)| entry)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn at(&self, name: &AttributeName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(name))
    }

    fn get_mut(&mut self, name: &AttributeName) -> Option<&mut LoadEntry> {
        let at = self.at(name).ok()?;
        Some(&mut self.0[at].1)
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut LoadEntry> {
        self.0.iter_mut().map(|(_, entry)| entry)
    }
}

impl FromIterator<(AttributeName, LoadEntry)> for Loads {
    fn from_iter<I: IntoIterator<Item = (AttributeName, LoadEntry)>>(entries: I) -> Loads {
        let mut loads = Loads::default();
        entries.into_iter().for_each(|(name, entry)| {
            loads.insert(name, entry);
        });
        loads
    }
}

impl Observations {
    /// Folds one observation.
    pub fn apply(&mut self, observation: &Observation) {
        match observation {
            Observation::Load { host, at, report } => self.load(host, *at, report),
            Observation::Contact { host, at, connected } => self.contact(host, *at, *connected),
            Observation::Unheard { host } => self.unheard(host),
            Observation::LoadRefused { host, values } => self.host(host).refused = *values,
            Observation::Unfit { host, why } => self.host(host).unfit = why.as_deref().map(Arc::from),
            Observation::Usage(usage) => self.usage.extend(usage.iter().copied()),
            Observation::Sensors { host, sensors } => self.host(host).sensors = sensors.clone(),
        }
    }

    /// Forgets what events made void: the use of tasks that ended.
    pub fn follow(&mut self, record: &Record) {
        if let Event::TaskEnded { key, .. } | Event::SlaveEnded { key, .. } = &record.event {
            self.usage.remove(key);
        }
    }

    /// Whether tasks can be given to a host: its agent is connected and agrees with the master on
    /// its tasks, and nothing keeps it from starting any.
    pub fn is_ready(&self, host: &HostName) -> bool {
        self.hosts.get(host).is_some_and(HostObservation::is_ready)
    }

    /// The processors of a host, none marked. `None` if the host reports none, or something else.
    pub fn topology(&self, host: &HostName) -> Option<Topology> {
        let reported = self.load.get(host)?.named("m_topology")?;
        let topology = Topology::parse(&reported.text).ok()?.unmarked();
        (!topology.cores().is_empty()).then_some(topology)
    }

    /// Whether a value is known that this host reported.
    pub fn has_reported(&self, reporter: &HostName, subject: &HostName, name: &AttributeName) -> bool {
        let entry = self.load.get(subject).and_then(|values| values.get(name));
        entry.is_some_and(|entry| entry.reporter == *reporter)
    }

    /// Whether a value of an attribute is known of any subject.
    pub fn is_reported(&self, attribute: &AttributeName) -> bool {
        self.reported.contains_key(attribute)
    }

    /// How many values are known that this host reported.
    pub fn reported_values(&self, reporter: &HostName) -> usize {
        let subjects = self.hosts.get(reporter).into_iter().flat_map(|known| &known.subjects);
        let values = subjects
            .filter_map(|subject| self.load.get(subject))
            .flat_map(Loads::values);
        values.filter(|entry| entry.reporter == *reporter).count()
    }

    fn host(&mut self, host: &HostName) -> &mut HostObservation {
        self.hosts.or_default(host)
    }

    fn contact(&mut self, host: &HostName, at: Tick, connected: bool) {
        let known = self.host(host);
        known.connected = connected;
        if connected {
            (known.unheard, known.heard) = (false, Some(at));
            (known.reported, known.sequence) = (None, 0);
        }
    }

    fn unheard(&mut self, host: &HostName) {
        self.host(host).unheard = true;
        self.withdraw_all(host);
    }

    fn load(&mut self, host: &HostName, at: Tick, report: &LoadReport) {
        if report.full {
            self.withdraw_all(host);
        }
        let sampled = Tick(at.0.saturating_sub(report.sampled_ago_ms));
        for (subject, names) in &report.withdrawn {
            self.withdraw(host, subject, |name| names.contains(name));
        }
        for (subject, values) in &report.values {
            let known = self.load.or_default(subject);
            for (name, text) in values {
                let entry = LoadEntry {
                    text: text.clone(),
                    reporter: host.clone(),
                    sampled,
                };
                if known.insert(name.clone(), entry) {
                    *self.reported.entry(name.clone()).or_default() += 1;
                }
            }
        }
        self.host(host).subjects.extend(report.values.keys().cloned());
        self.date(host, at, report);
        let known = self.host(host);
        known.unheard = false;
        (known.heard, known.reported, known.sequence) = (Some(at), Some(at), report.sequence);
        known.agent_started = (report.up_ms > 0).then(|| Tick(at.0.saturating_sub(report.up_ms)));
    }

    /// Notes when the values of a host were taken: a report speaks of all of them, by name only of
    /// those that changed.
    fn date(&mut self, reporter: &HostName, at: Tick, report: &LoadReport) {
        let before = |ago_ms: u64| Tick(at.0.saturating_sub(ago_ms));
        let sampled = before(report.sampled_ago_ms);
        for subject in self.hosts.get(reporter).into_iter().flat_map(|host| &host.subjects) {
            let values = self.load.get_mut(subject).into_iter().flat_map(Loads::values_mut);
            values
                .filter(|entry| entry.reporter == *reporter)
                .for_each(|entry| entry.sampled = sampled);
        }
        for older in &report.older {
            for (subject, names) in &older.names {
                let Some(values) = self.load.get_mut(subject) else {
                    continue;
                };
                for name in names {
                    if let Some(entry) = values.get_mut(name).filter(|entry| entry.reporter == *reporter) {
                        entry.sampled = before(older.sampled_ago_ms);
                    }
                }
            }
        }
    }

    /// Takes back every value that a host reported.
    fn withdraw_all(&mut self, reporter: &HostName) {
        let subjects = std::mem::take(&mut self.host(reporter).subjects);
        for subject in &subjects {
            self.withdraw(reporter, subject, |_| true);
        }
    }

    /// Takes back values that a host itself reported for a subject.
    fn withdraw(&mut self, reporter: &HostName, subject: &HostName, is_meant: impl Fn(&AttributeName) -> bool) {
        let Some(values) = self.load.get_mut(subject) else {
            return;
        };
        values.0.retain(|(name, entry)| {
            let is_kept = entry.reporter != *reporter || !is_meant(name);
            if !is_kept {
                let subjects = self.reported.get_mut(name).expect("what is known is counted");
                *subjects -= 1;
                if *subjects == 0 {
                    self.reported.remove(name);
                }
            }
            is_kept
        });
        if values.is_empty() {
            self.load.remove(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_anywhere_is_what_some_subject_has() {
        let report = |host: &str, text: &str| {
            let (mut report, mut words) = (Box::<LoadReport>::default(), text.split(' '));
            report.full = words.next() == Some("full");
            for word in words {
                let (subject, name) = word.split_once(':').expect("a subject and a name");
                match name.strip_prefix('-') {
                    Some(name) => report.withdrawn.entry(subject.into()).or_default().push(name.into()),
                    None => {
                        report
                            .values
                            .entry(subject.into())
                            .or_default()
                            .insert(name.into(), "1".to_owned());
                    }
                }
            }
            Observation::Load {
                host: host.into(),
                at: Tick(1),
                report,
            }
        };
        let stream = [
            report("a", "full a:x a:y global:z"),
            report("b", "full b:x global:z"),
            report("a", "changes a:-x global:-z"),
            report("b", "changes global:-z b:y"),
            report("a", "full a:x"),
            Observation::Unheard { host: "b".into() },
            report("a", "full a:z"),
        ];
        let mut observations = Observations::default();
        for observation in &stream {
            observations.apply(observation);
            for name in ["x", "y", "z"].map(AttributeName::from) {
                let is_known = observations.load.values().any(|values| values.get(&name).is_some());
                assert_eq!(
                    observations.is_reported(&name),
                    is_known,
                    "{name} after {observation:?}"
                );
            }
        }
        assert!(observations.is_reported(&"z".into()) && !observations.is_reported(&"y".into()));
    }
}
