//! Queue instances that take a job without a parallel environment at one time, best first.

use crate::sched::rank::Rank;
use proto::id::{HostName, QueueInstanceName};
use std::collections::{BTreeMap, BTreeSet};

/// The worth of a queue instance for a job: its unmet soft requests, and its rank. Less is better.
pub type Worth = (u32, Rank);

/// The queue instances.
///
/// Invariant: `of_host` holds exactly what is in `best_first`, and no host without any.
#[derive(Clone, Debug, Default)]
pub struct Fits {
    best_first: BTreeSet<(Worth, QueueInstanceName)>,
    of_host: BTreeMap<HostName, Vec<(Worth, QueueInstanceName)>>,
}

impl Fits {
    /// Adds a queue instance that takes the job. It is not there yet.
    pub fn insert(&mut self, worth: Worth, instance: QueueInstanceName) {
        self.of_host
            .entry(instance.host.clone())
            .or_default()
            .push((worth, instance.clone()));
        self.best_first.insert((worth, instance));
    }

    /// The best of them; of equals the first by name.
    pub fn best(&self) -> Option<&QueueInstanceName> {
        self.best_first.first().map(|(_, instance)| instance)
    }

    /// All of them, best first.
    pub fn iter(&self) -> impl Iterator<Item = &(Worth, QueueInstanceName)> {
        self.best_first.iter()
    }

    /// Takes out those of a host.
    pub fn take(&mut self, host: &HostName) -> impl Iterator<Item = QueueInstanceName> {
        let taken = self.of_host.remove(host).unwrap_or_default();
        taken.iter().for_each(|known| {
            self.best_first.remove(known);
        });
        taken.into_iter().map(|(_, instance)| instance)
    }

    /// Takes out all of them.
    pub fn take_all(&mut self) -> impl Iterator<Item = QueueInstanceName> {
        self.of_host.clear();
        std::mem::take(&mut self.best_first)
            .into_iter()
            .map(|(_, instance)| instance)
    }
}
