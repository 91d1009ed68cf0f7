//! Which queue instances take jobs now, best first, whoever asks: one order for all categories.

use super::columns::{Columns, Sieve};
use super::places::{Place, Places, Site};
use super::rank::{Rank, host_value, rank};
use crate::matching::{Cluster, Demand};
use proto::id::{HostName, QueueInstanceName};
use std::collections::BTreeSet;

/// A queue instance that takes jobs. The least is best; among equals the first by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    rank: Rank,
    /// Its name.
    pub instance: QueueInstanceName,
    /// Its number.
    pub place: Place,
}

/// The queue instances that take jobs, best first.
///
/// Invariant: `sorted` holds exactly what is in `known`, which is right for every host that is not stale.
#[derive(Clone, Debug)]
pub struct Standings {
    sorted: BTreeSet<Standing>,
    /// By place.
    known: Vec<Option<Standing>>,
    /// Right likewise, also for those that take no jobs.
    columns: Columns,
    stale: BTreeSet<HostName>,
    all_stale: bool,
}

impl Standings {
    /// Nothing is known yet.
    pub fn new() -> Standings {
        Standings {
            sorted: BTreeSet::new(),
            known: Vec::new(),
            columns: Columns::default(),
            stale: BTreeSet::new(),
            all_stale: true,
        }
    }

    /// Something changed on a host: what it offers, what runs there, how its queue instances are.
    pub fn host(&mut self, host: &HostName) {
        if !self.all_stale && !self.stale.contains(host) {
            self.stale.insert(host.clone());
        }
    }

    /// Everything changed.
    pub fn everything(&mut self) {
        self.all_stale = true;
        self.stale.clear();
    }

    /// Looks again at what changed.
    pub fn refresh(&mut self, cluster: &Cluster<'_>, places: &Places) {
        if std::mem::take(&mut self.all_stale) {
            self.sorted.clear();
            self.known = vec![None; places.len()];
            places.sites().for_each(|(host, site)| self.look(cluster, host, site));
        }
        while let Some(host) = self.stale.pop_first() {
            if let Some(site) = places.site(&host) {
                self.look(cluster, &host, site);
            }
        }
    }

    /// A queue instance takes no jobs after all, or is no more.
    pub fn close(&mut self, place: Place) {
        self.put(place, None);
    }

    /// Keeps columns of what a demand takes, of which many queue instances have too little.
    pub fn contest(&mut self, demand: &Demand) {
        if self.columns.begin(demand) {
            self.all_stale = true;
        }
    }

    /// What a demand needs of the columns that there are.
    pub fn sieve(&self, demand: &Demand) -> Sieve<'_> {
        self.columns.sieve(demand)
    }

    /// Whether no queue instance takes jobs.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// A queue instance, if it takes jobs.
    pub fn of(&self, place: Place) -> Option<&Standing> {
        self.known.get(place.index())?.as_ref()
    }

    /// Those that take jobs, best first.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.sorted.iter()
    }

    fn look(&mut self, cluster: &Cluster<'_>, host: &HostName, all: &Site) {
        let host = cluster.ground(host);
        let sites: Vec<_> = all.instances.iter().map(|instance| cluster.site_on(host, instance)).collect();
        let value = host_value(cluster, &host, &sites);
        for (site, place) in sites.iter().zip(&all.places) {
            let takes = cluster.out_of_service(site).is_none() && !cluster.is_in_alarm(site);
            let (rank, instance) = (rank(cluster, site, value), site.instance);
            let standing = takes.then(|| Standing { rank, instance: instance.clone(), place: *place });
            self.put(*place, standing);
        }
        self.columns.note(cluster, &sites, &all.places);
    }

    fn put(&mut self, place: Place, standing: Option<Standing>) {
        if place.index() >= self.known.len() {
            self.known.resize(place.index() + 1, None);
        }
        let known = &mut self.known[place.index()];
        if *known == standing {
            return;
        }
        if let Some(old) = known.take() {
            self.sorted.remove(&old);
        }
        self.sorted.extend(standing.clone());
        *known = standing;
    }
}
