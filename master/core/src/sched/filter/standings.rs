//! The queue instances that take jobs now, best first, whoever asks: one order for all categories.

use crate::matching::formula::free_slots;
use crate::matching::{Cluster, Demand, HostView, InstanceView};
use crate::sched::filter::columns::{Columns, Sieve};
use crate::sched::filter::instance_ids::{self, InstanceId, InstanceIds};
use crate::sched::rank::{Rank, follows_bookings, host_value, rank};
use proto::id::{HostName, QueueInstanceName};
use proto::job::GrantedSlots;
use std::collections::BTreeSet;

/// A queue instance that takes jobs. The least is best; among equals the first by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankedInstance {
    rank: Rank,
    /// Its name.
    pub instance: QueueInstanceName,
    /// Its number.
    pub id: InstanceId,
}

/// What is known of a queue instance that takes jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InstanceEntry {
    ranked: RankedInstance,
    /// Its free slots, if a task that is placed on the host changes nothing else. `None` if it may.
    free_slots: Option<u32>,
}

/// The queue instances that take jobs, best first.
///
/// Invariant: `sorted` holds exactly what is in `known`, which is right for every host that is not
/// stale.
///
/// The model reports each change ([`Standings::host`], [`Standings::planned`],
/// [`Standings::everything`]) and calls [`Standings::refresh`] before it reads. Slots that are kept
/// for later do not count here: categories close for them.
#[derive(Clone, Debug)]
pub struct Standings {
    sorted: BTreeSet<RankedInstance>,
    /// By number of the instance.
    entries: Vec<Option<InstanceEntry>>,
    /// Free amounts by queue instance, also of instances that take no jobs. Like `known`, they are
    /// right for every host that is not stale.
    columns: Columns,
    stale: BTreeSet<HostName>,
    all_stale: bool,
}

impl Standings {
    /// Standings of which nothing is known yet.
    pub fn new() -> Standings {
        Standings {
            sorted: BTreeSet::new(),
            entries: Vec::new(),
            columns: Columns::default(),
            stale: BTreeSet::new(),
            all_stale: true,
        }
    }

    /// Notes a change on a host: its values, its tasks, or the state of its queue instances.
    pub fn host(&mut self, host: &HostName) {
        if !self.all_stale && !self.stale.contains(host) {
            self.stale.insert(host.clone());
        }
    }

    /// Notes a planned task. `only_slot` is its instance if it has one slot and no parallel
    /// environment. If only the number of free slots follows from that, no host becomes stale.
    pub fn planned(&mut self, granted: &[GrantedSlots], only_slot: Option<InstanceId>) {
        let id = only_slot.filter(|id| self.only_fills(*id));
        let known = id.and_then(|id| Some((id, self.entries[id.index()].as_mut()?.free_slots.as_mut()?)));
        match known {
            Some((_, free)) if *free > 1 => *free -= 1,
            Some((id, _)) => self.close(id),
            None => granted.iter().for_each(|granted| self.host(&granted.instance.host)),
        }
    }

    /// Whether the number of free slots is known and tasks change nothing else there.
    pub fn only_fills(&self, id: InstanceId) -> bool {
        let known = self.entries.get(id.index()).and_then(Option::as_ref);
        known.is_some_and(|known| known.free_slots.is_some()) && self.columns.is_empty()
    }

    /// Notes that everything may have changed.
    pub fn everything(&mut self) {
        self.all_stale = true;
        self.stale.clear();
    }

    /// Looks at stale hosts again.
    pub fn refresh(&mut self, cluster: &Cluster<'_>, ids: &InstanceIds) {
        if std::mem::take(&mut self.all_stale) {
            self.sorted.clear();
            self.entries = vec![None; ids.len()];
            ids.sites().for_each(|(host, site)| self.look(cluster, host, site));
        }
        while let Some(host) = self.stale.pop_first() {
            if let Some(site) = ids.site(&host) {
                self.look(cluster, &host, site);
            }
        }
    }

    /// Removes a queue instance that takes no jobs, or does not exist any more.
    pub fn close(&mut self, id: InstanceId) {
        self.put(id, None);
    }

    /// Keeps columns of the requests of a demand, of which many queue instances have too little.
    pub fn contest(&mut self, demand: &Demand) {
        if self.columns.begin(demand) {
            self.all_stale = true;
        }
    }

    /// The sieve for a demand, of the columns that exist.
    pub fn sieve(&self, demand: &Demand) -> Sieve<'_> {
        self.columns.sieve(demand)
    }

    /// Whether no queue instance takes jobs.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// A queue instance, if it takes jobs.
    pub fn ranked(&self, id: InstanceId) -> Option<&RankedInstance> {
        self.entries.get(id.index())?.as_ref().map(|known| &known.ranked)
    }

    /// The queue instances that take jobs, best first.
    pub fn iter(&self) -> impl Iterator<Item = &RankedInstance> {
        self.sorted.iter()
    }

    fn look(&mut self, cluster: &Cluster<'_>, host: &HostName, all: &instance_ids::HostInstances) {
        let (host, sites) = sites(cluster, host, all);
        for (known, id) in known(cluster, &host, &sites, &all.ids).zip(&all.ids) {
            self.put(*id, known);
        }
        self.columns.note(cluster, &sites, &all.ids);
    }

    /// Whether a host's entries are right, or about to be looked at again.
    pub fn is_right(&self, cluster: &Cluster<'_>, ids: &InstanceIds, host: &HostName) -> bool {
        let Some(all) = ids.site(host).filter(|_| !self.all_stale && !self.stale.contains(host)) else {
            return true;
        };
        let (host, sites) = sites(cluster, host, all);
        let mut known = known(cluster, &host, &sites, &all.ids).zip(&all.ids);
        known.all(|(known, id)| self.entries.get(id.index()).cloned().flatten() == known)
    }

    fn put(&mut self, id: InstanceId, new: Option<InstanceEntry>) {
        if id.index() >= self.entries.len() {
            self.entries.resize(id.index() + 1, None);
        }
        let known = &mut self.entries[id.index()];
        let old = std::mem::replace(known, new).map(|known| known.ranked);
        let new = known.as_ref().map(|known| &known.ranked);
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
    all: &'l instance_ids::HostInstances,
) -> (HostView<'a, 'l>, Vec<InstanceView<'a, 'l>>) {
    let host = cluster.host_view(host);
    (
        host,
        all.instances
            .iter()
            .map(|instance| cluster.site_on(host, instance))
            .collect(),
    )
}

/// An entry for each queue instance of a host, in their order; `None` for one that takes no jobs.
fn known<'l>(
    cluster: &'l Cluster<'_>,
    host: &'l HostView<'_, '_>,
    sites: &'l [InstanceView<'_, '_>],
    ids: &'l [InstanceId],
) -> impl Iterator<Item = Option<InstanceEntry>> + 'l {
    let value = host_value(cluster, host, sites);
    let is_steady = !follows_bookings(cluster, host, sites);
    let free = move |site| {
        free_slots(cluster, site)
            .filter(|_| is_steady)
            .and_then(|free| u32::try_from(free).ok())
    };
    sites.iter().zip(ids).map(move |(site, id)| {
        let ranked = ranked_instance(cluster, site, *id, value)?;
        Some(InstanceEntry {
            ranked,
            free_slots: free(site),
        })
    })
}

/// The standing of a queue instance, if it takes jobs. `value` is its host's.
fn ranked_instance(
    cluster: &Cluster<'_>,
    site: &InstanceView<'_, '_>,
    id: InstanceId,
    value: i64,
) -> Option<RankedInstance> {
    let takes = cluster.out_of_service(site).is_none() && !cluster.is_in_alarm(site);
    takes.then(|| RankedInstance {
        rank: rank(cluster, site, value),
        instance: site.instance.clone(),
        id,
    })
}
