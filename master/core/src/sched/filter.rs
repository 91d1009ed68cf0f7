//! The phase that knows which queue instances may suit a category, and remembers which were found not to.

use super::assign::{Assignment, assign_parallel, assign_serial, environments, fit_globally};
use super::changes::{Changes, Mark, Since};
use super::rank::{Rank, rank};
use super::reason::{Reason, What};
use crate::ledger::Level;
use crate::matching::{Cluster, Demand, may_use_pe};
use proto::id::{HostName, PeName, QueueInstanceName};
use proto::time::Tick;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a category fails is told at most once in so many milliseconds.
pub const REPORT_INTERVAL_MS: u64 = 1_000;

/// Queue instances by host.
pub type Instances = BTreeMap<HostName, Vec<QueueInstanceName>>;

/// Jobs that ask for the same, and where they may go.
///
/// Each queue instance that may suit them is either in `open`, under the rank in `ranks`, or in `closed` with what it lacked when
/// it was last tried. What changed since `seen` is looked at before the next try.
#[derive(Clone, Debug)]
pub struct Category {
    /// What each of its jobs asks for.
    pub demand: Arc<Demand>,
    /// How many pending jobs are in it.
    pub jobs: usize,
    seen: Option<Mark>,
    open: BTreeSet<(Rank, QueueInstanceName)>,
    ranks: BTreeMap<QueueInstanceName, Rank>,
    closed: BTreeMap<QueueInstanceName, Vec<Reason>>,
    /// Those among `closed` that a quota keeps closed, wherever it is given back.
    short_of_quota: BTreeSet<QueueInstanceName>,
    quotas_seen: u64,
    /// What the cluster as a whole lacks.
    globally: Vec<Reason>,
    /// Whether the last try failed and nothing has changed since `seen`.
    failed: bool,
    /// Whether a try has failed of which nothing was reported.
    unreported: bool,
    reported: Option<Tick>,
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
            closed: BTreeMap::new(),
            short_of_quota: BTreeSet::new(),
            quotas_seen: 0,
            globally: Vec::new(),
            failed: false,
            unreported: false,
            reported: None,
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
        self.globally.clone_from(&globally.reasons);
        let found = if !globally.reasons.is_empty() {
            None
        } else if self.demand.pe.is_some() {
            let order = self.ranked(cluster, instances);
            assign_parallel(cluster, &self.demand, &globally, &order).map_err(|reasons| self.close_all(reasons)).ok()
        } else {
            self.first_that_fits(cluster, instances, &globally)
        };
        self.failed = found.is_none();
        self.unreported |= self.failed;
        found
    }

    /// Whether it is time to report why the category fails: at once the first time, later at most once in
    /// [`REPORT_INTERVAL_MS`], because telling all reasons is a walk over all hosts.
    pub fn is_report_due(&mut self, now: Tick) -> bool {
        let rested = self.reported.is_none_or(|last| now.since_ms(last) >= REPORT_INTERVAL_MS);
        let due = self.unreported && rested;
        if due {
            (self.unreported, self.reported) = (false, Some(now));
        }
        due
    }

    /// Whether the category has failed since it was last told why.
    pub fn is_unreported(&self) -> bool {
        self.unreported
    }

    /// Why no queue instance takes a task of the category, as of the last try.
    pub fn reasons(&self) -> impl Iterator<Item = &Reason> {
        self.globally.iter().chain(self.closed.values().flatten())
    }

    /// Opens again what changed since the last try.
    fn catch_up(&mut self, cluster: &Cluster<'_>, instances: &Instances, changes: &Changes) {
        match self.seen.map_or(Since::Everything, |mark| changes.since(mark)) {
            Since::Everything => {
                (self.open, self.ranks, self.closed) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
                for siblings in instances.values() {
                    self.open_all(cluster, siblings);
                }
            }
            Since::Some { hosts, removed } => {
                removed.iter().for_each(|instance| self.drop(instance));
                for siblings in hosts.iter().filter_map(|host| instances.get(host)) {
                    self.open_all(cluster, siblings);
                }
            }
        }
        if self.quotas_seen != changes.quotas() {
            for instance in std::mem::take(&mut self.short_of_quota) {
                // One that is no longer configured has left all lists.
                if self.closed.contains_key(&instance) {
                    let siblings = siblings(instances, &instance);
                    self.put(&instance, rank(cluster, &self.demand, &instance, siblings));
                }
            }
        }
    }

    fn open_all(&mut self, cluster: &Cluster<'_>, siblings: &[QueueInstanceName]) {
        for instance in siblings {
            match self.unsuitable(cluster, instance) {
                Some(what) => self.close(instance, vec![Reason::new(Level::Instance(instance.clone()), what)]),
                None => self.put(instance, rank(cluster, &self.demand, instance, siblings)),
            }
        }
    }

    /// What the configuration alone says: of a parallel job, under each environment that the job may mean.
    fn unsuitable(&self, cluster: &Cluster<'_>, instance: &QueueInstanceName) -> Option<What> {
        let Some(wanted) = &self.demand.pe else { return cluster.unsuitable(instance, &self.demand, None) };
        let pes: Vec<&PeName> =
            environments(cluster, &wanted.name).filter(|pe| may_use_pe(pe, &self.demand)).map(|pe| &pe.name).collect();
        let mut why = None;
        for pe in pes {
            why = Some(cluster.unsuitable(instance, &self.demand, Some(pe))?);
        }
        why.or_else(|| Some(What::NotInPe { pe: wanted.name.clone() }))
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

    fn close(&mut self, instance: &QueueInstanceName, reasons: Vec<Reason>) {
        if let Some(rank) = self.ranks.remove(instance) {
            self.open.remove(&(rank, instance.clone()));
        }
        if reasons.iter().any(|reason| matches!(reason.what, What::Quota(_))) {
            self.short_of_quota.insert(instance.clone());
        }
        self.closed.insert(instance.clone(), reasons);
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
                Err(reasons) => self.close(&instance, reasons),
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
        let known: Vec<QueueInstanceName> = self.ranks.keys().chain(self.closed.keys()).cloned().collect();
        for instance in &known {
            if self.unsuitable(cluster, instance).is_some() {
                continue;
            }
            let overloads = overloaded(cluster, instance);
            match overloads.is_empty() {
                true => self.put(instance, rank(cluster, &self.demand, instance, siblings(instances, instance))),
                false => self.close(instance, overloads),
            }
        }
        self.open.iter().map(|(_, instance)| instance.clone()).collect()
    }

    /// Keeps why a parallel job failed: by instance where a reason is about one, else for the cluster.
    fn close_all(&mut self, reasons: Vec<Reason>) {
        self.globally.clear();
        for reason in reasons {
            match &reason.level {
                Level::Instance(instance) => {
                    let instance = instance.clone();
                    self.close(&instance, vec![reason]);
                }
                Level::Global | Level::Host(_) => self.globally.push(reason),
            }
        }
    }
}

fn overloaded(cluster: &Cluster<'_>, instance: &QueueInstanceName) -> Vec<Reason> {
    let level = || Level::Instance(instance.clone());
    cluster.alarms(instance).into_iter().map(|what| Reason::new(level(), what)).collect()
}

fn siblings<'a>(instances: &'a Instances, instance: &QueueInstanceName) -> &'a [QueueInstanceName] {
    instances.get(&instance.host).map_or(&[], Vec::as_slice)
}
