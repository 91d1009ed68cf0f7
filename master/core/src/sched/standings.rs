//! Which queue instances take jobs now, best first, whoever asks: one order for all categories.

use super::columns::{Columns, Sieve};
use super::places::{self, Place, Places};
use super::rank::{Rank, follows_bookings, free_slots, host_value, rank};
use crate::ledger::Booking;
use crate::matching::{Cluster, Demand, Ground, Site};
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

/// What is known of a queue instance that takes jobs.
#[derive(Clone, Debug)]
struct Known {
    standing: Standing,
    /// How many slots are free, where a task that is placed on the host changes nothing else.
    free_slots: Option<u32>,
    /// When it was looked at, in stretches.
    stretch: u64,
}

/// The queue instances that take jobs, best first.
///
/// Invariant: `sorted` holds exactly what is in `known`, which is right for every host that is not stale.
#[derive(Clone, Debug)]
pub struct Standings {
    sorted: BTreeSet<Standing>,
    /// By place.
    known: Vec<Option<Known>>,
    /// How often something happened other than that a task was planned.
    stretch: u64,
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
            stretch: 0,
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

    /// Something happened, wherever, other than that a task was planned.
    pub fn disturbed(&mut self) {
        self.stretch += 1;
    }

    /// A task is planned that takes this. Where nothing follows from that but how many slots are free, nobody need look again.
    pub fn planned(&mut self, places: &Places, booking: &Booking) {
        let place = booking.only_slot().and_then(|instance| places.place(instance));
        match place.and_then(|place| Some((place, self.free_slots(place)?))) {
            Some((_, free)) if *free > 1 => *free -= 1,
            Some((place, _)) => self.close(place),
            None => booking.granted().iter().for_each(|granted| self.host(&granted.instance.host)),
        }
    }

    /// How many slots are free, where that is known and tasks change nothing else.
    fn free_slots(&mut self, place: Place) -> Option<&mut u32> {
        let known = self.known.get_mut(place.index())?.as_mut()?;
        let is_current = known.stretch == self.stretch && self.columns.is_empty();
        known.free_slots.as_mut().filter(|_| is_current)
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
        self.known.get(place.index())?.as_ref().map(|known| &known.standing)
    }

    /// Those that take jobs, best first.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.sorted.iter()
    }

    fn look(&mut self, cluster: &Cluster<'_>, host: &HostName, all: &places::Site) {
        let (host, sites) = sites(cluster, host, all);
        let value = host_value(cluster, &host, &sites);
        let is_steady = !follows_bookings(cluster, &host, &sites);
        for (site, place) in sites.iter().zip(&all.places) {
            let known = standing(cluster, site, *place, value).map(|standing| Known {
                standing,
                free_slots: free_slots(cluster, site).filter(|_| is_steady).and_then(|free| u32::try_from(free).ok()),
                stretch: self.stretch,
            });
            self.put(*place, known);
        }
        self.columns.note(cluster, &sites, &all.places);
    }

    /// Whether what is known of a host is right or about to be looked at again.
    pub fn is_right(&self, cluster: &Cluster<'_>, places: &Places, host: &HostName) -> bool {
        let Some(all) = places.site(host).filter(|_| !self.all_stale && !self.stale.contains(host)) else {
            return true;
        };
        let (host, sites) = sites(cluster, host, all);
        let value = host_value(cluster, &host, &sites);
        let mut known = sites.iter().zip(&all.places);
        known.all(|(site, place)| self.of(*place) == standing(cluster, site, *place, value).as_ref())
    }

    fn put(&mut self, place: Place, new: Option<Known>) {
        if place.index() >= self.known.len() {
            self.known.resize(place.index() + 1, None);
        }
        let known = &mut self.known[place.index()];
        let old = std::mem::replace(known, new).map(|known| known.standing);
        let new = known.as_ref().map(|known| &known.standing);
        if old.as_ref() == new {
            return;
        }
        if let Some(old) = old {
            self.sorted.remove(&old);
        }
        self.sorted.extend(new.cloned());
    }
}

/// A host with its queue instances.
fn sites<'a, 'l>(
    cluster: &Cluster<'a>,
    host: &'l HostName,
    all: &'l places::Site,
) -> (Ground<'a, 'l>, Vec<Site<'a, 'l>>) {
    let host = cluster.ground(host);
    (host, all.instances.iter().map(|instance| cluster.site_on(host, instance)).collect())
}

/// Where a queue instance of a host with a value stands, if it takes jobs.
fn standing(cluster: &Cluster<'_>, site: &Site<'_, '_>, place: Place, value: i64) -> Option<Standing> {
    let takes = cluster.out_of_service(site).is_none() && !cluster.is_in_alarm(site);
    takes.then(|| Standing { rank: rank(cluster, site, value), instance: site.instance.clone(), place })
}
