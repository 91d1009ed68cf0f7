//! The phase that knows which queue instances may suit a category, and remembers which were found not to.

use super::assign::{Assignment, assign_parallel, assign_serial, fit_globally};
use super::changes::{Changes, Mark, Since};
use super::rank::{Rank, rank};
use super::reason::{Reason, What};
use super::suitability::Suitability;
use crate::ledger::Level;
use crate::matching::{Cluster, Demand};
use proto::id::{HostName, QueueInstanceName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Queue instances by host.
pub type Instances = BTreeMap<HostName, Vec<QueueInstanceName>>;

/// Jobs that ask for the same, and where they may go.
///
/// Each queue instance that may suit them is either in `open`, under the rank in `ranks`, or in `closed` since it was last tried in
/// vain. What changed since `seen` is looked at before the next try. Why it failed is asked for elsewhere
/// ([`Findings`](super::finding::Findings)).
#[derive(Clone, Debug)]
pub struct Category {
    /// What each of its jobs asks for.
    pub demand: Arc<Demand>,
    /// How many pending jobs are in it.
    pub jobs: usize,
    seen: Option<Mark>,
    open: BTreeSet<(Rank, QueueInstanceName)>,
    ranks: BTreeMap<QueueInstanceName, Rank>,
    closed: BTreeSet<QueueInstanceName>,
    /// Those among `closed` that a quota keeps closed, wherever it is given back.
    short_of_quota: BTreeSet<QueueInstanceName>,
    quotas_seen: u64,
    /// Whether the last try failed and nothing has changed since `seen`.
    failed: bool,
}

impl Category {
    /// A category of which nothing is known yet.
    pub fn new(demand: Arc<Demand>) -> Category {
        Category {
            demand,
            jobs: 0,
            seen: None,
            open: BTreeSet::new(),
            ranks: BTreeMap::new(),
            closed: BTreeSet::new(),
            short_of_quota: BTreeSet::new(),
            quotas_seen: 0,
            failed: false,
        }
    }

    /// Slots for one task of the category; none if there is no place for it now.
    pub fn assign(&mut self, cluster: &Cluster<'_>, instances: &Instances, changes: &Changes) -> Option<Assignment> {
        let mark = changes.mark();
        if self.failed && self.seen == Some(mark) && self.quotas_seen == changes.quotas() {
            return None;
        }
        self.catch_up(cluster, instances, changes);
        (self.seen, self.quotas_seen) = (Some(mark), changes.quotas());
        let globally = fit_globally(cluster, &self.demand);
        let found = if !globally.reasons.is_empty() {
            None
        } else if self.demand.pe.is_some() {
            let order = self.ranked(cluster, instances);
            assign_parallel(cluster, &self.demand, &globally, &order).ok()
        } else {
            self.first_that_fits(cluster, instances, &globally)
        };
        self.failed = found.is_none();
        found
    }

    /// Opens again what changed since the last try.
    fn catch_up(&mut self, cluster: &Cluster<'_>, instances: &Instances, changes: &Changes) {
        let demand = self.demand.clone();
        let suitability = Suitability::new(cluster, &demand);
        match self.seen.map_or(Since::Everything, |mark| changes.since(mark)) {
            Since::Everything => {
                (self.open, self.ranks, self.closed) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
                for siblings in instances.values() {
                    self.open_all(&suitability, siblings, cluster);
                }
            }
            Since::Some { hosts, removed } => {
                removed.iter().for_each(|instance| self.drop(instance));
                for siblings in hosts.iter().filter_map(|host| instances.get(host)) {
                    self.open_all(&suitability, siblings, cluster);
                }
            }
        }
        if self.quotas_seen != changes.quotas() {
            for instance in std::mem::take(&mut self.short_of_quota) {
                // One that is no longer configured has left all lists.
                if self.closed.contains(&instance) {
                    let siblings = siblings(instances, &instance);
                    self.put(&instance, rank(cluster, &self.demand, &instance, siblings));
                }
            }
        }
    }

    fn open_all(&mut self, suitability: &Suitability<'_>, siblings: &[QueueInstanceName], cluster: &Cluster<'_>) {
        for instance in siblings {
            match suitability.unsuitable(instance) {
                Some(_) => self.close(instance, &[]),
                None => self.put(instance, rank(cluster, &self.demand, instance, siblings)),
            }
        }
    }

    fn drop(&mut self, instance: &QueueInstanceName) {
        self.closed.remove(instance);
        if let Some(rank) = self.ranks.remove(instance) {
            self.open.remove(&(rank, instance.clone()));
        }
    }

    fn put(&mut self, instance: &QueueInstanceName, rank: Rank) {
        self.closed.remove(instance);
        if let Some(old) = self.ranks.insert(instance.clone(), rank) {
            self.open.remove(&(old, instance.clone()));
        }
        self.open.insert((rank, instance.clone()));
    }

    fn close(&mut self, instance: &QueueInstanceName, reasons: &[Reason]) {
        if let Some(rank) = self.ranks.remove(instance) {
            self.open.remove(&(rank, instance.clone()));
        }
        if reasons.iter().any(|reason| matches!(reason.what, What::Quota(_))) {
            self.short_of_quota.insert(instance.clone());
        }
        self.closed.insert(instance.clone());
    }

    /// The best open queue instance that takes a task; those before it that do not are closed.
    ///
    /// Within a pass hosts only fill up, so ranks only get worse: an instance whose rank is stale is put back where it belongs now.
    fn first_that_fits(
        &mut self,
        cluster: &Cluster<'_>,
        instances: &Instances,
        globally: &crate::matching::Fit,
    ) -> Option<Assignment> {
        while let Some((stored, instance)) = self.open.first().cloned() {
            let current = rank(cluster, &self.demand, &instance, siblings(instances, &instance));
            if current > stored {
                self.put(&instance, current);
                continue;
            }
            match self.try_on(cluster, globally, &instance) {
                Ok(assignment) => return Some(assignment),
                Err(reasons) => self.close(&instance, &reasons),
            }
        }
        None
    }

    fn try_on(
        &self,
        cluster: &Cluster<'_>,
        globally: &crate::matching::Fit,
        instance: &QueueInstanceName,
    ) -> Result<Assignment, Vec<Reason>> {
        let assignment = assign_serial(cluster, &self.demand, globally, instance)?;
        let overloads = overloaded(cluster, instance);
        if overloads.is_empty() { Ok(assignment) } else { Err(overloads) }
    }

    /// Every open queue instance below its thresholds, best first; the others are closed.
    fn ranked(&mut self, cluster: &Cluster<'_>, instances: &Instances) -> Vec<QueueInstanceName> {
        let demand = self.demand.clone();
        let suitability = Suitability::new(cluster, &demand);
        let known: Vec<QueueInstanceName> = self.ranks.keys().chain(&self.closed).cloned().collect();
        for instance in &known {
            if suitability.unsuitable(instance).is_some() {
                continue;
            }
            let overloads = overloaded(cluster, instance);
            match overloads.is_empty() {
                true => self.put(instance, rank(cluster, &self.demand, instance, siblings(instances, instance))),
                false => self.close(instance, &overloads),
            }
        }
        self.open.iter().map(|(_, instance)| instance.clone()).collect()
    }
}

fn overloaded(cluster: &Cluster<'_>, instance: &QueueInstanceName) -> Vec<Reason> {
    let level = || Level::Instance(instance.clone());
    cluster.alarms(instance).into_iter().map(|what| Reason::new(level(), what)).collect()
}

fn siblings<'a>(instances: &'a Instances, instance: &QueueInstanceName) -> &'a [QueueInstanceName] {
    instances.get(&instance.host).map_or(&[], Vec::as_slice)
}
