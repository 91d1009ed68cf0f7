//! How many slots of a parallel job each host has room for.

use crate::matching::{Cluster, Demand, Fit, Ground, Role, Site};
use crate::sched::reason::Reason;
use proto::id::{HostName, QueueInstanceName};
use proto::pe::{AllocationRule, ParallelEnvironment};
use std::collections::{BTreeMap, BTreeSet};

/// A host with the slots that a job could have there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoom {
    /// Its queue instances in their order, each with the slots it could give to tasks that are not the master.
    pub instances: Vec<(QueueInstanceName, u32)>,
    /// The most slots on the host without the master.
    pub slots: u32,
    /// How it would take the master; none if the master cannot be here.
    pub master: Option<MasterRoom>,
    /// How others of its instances would take the master. Looked for only where a quota may close the first one.
    pub others: Vec<MasterRoom>,
}

impl HostRoom {
    /// Its queue instances, each with the most slots that it could give, whether the master is there or not.
    pub fn at_best(&self) -> impl Iterator<Item = (&QueueInstanceName, u32)> {
        self.instances.iter().enumerate().map(|(index, (instance, slots))| {
            let masters = self.master.iter().chain(&self.others).filter(|master| master.at == index);
            (instance, masters.map(|master| master.in_instance).fold(*slots, u32::max))
        })
    }
}

/// The room on a host that takes the master, without the slot of a master that is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterRoom {
    /// Which of the host's instances takes it.
    pub at: usize,
    /// The most slots in that instance, at least one.
    pub in_instance: u32,
    /// The most slots on the host, at least one.
    pub slots: u32,
}

/// The hosts with room for a job, in the order of their best instances, and why others have none. Hosts without room, other than by
/// what their queues are made for, are taken into `roomless`.
pub fn rooms(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    order: &[Site<'_, '_>],
    pe: &ParallelEnvironment,
    roomless: &mut BTreeSet<HostName>,
) -> (Vec<HostRoom>, Vec<Reason>) {
    let mut reasons = Vec::new();
    let mut hosts: Vec<(&HostName, Vec<Site<'_, '_>>)> = Vec::new();
    let mut places: BTreeMap<&HostName, usize> = BTreeMap::new();
    for site in order {
        let why = cluster.unsuitable(site, demand, Some(&pe.name)).or_else(|| cluster.out_of_service(site));
        if let Some(what) = why {
            reasons.extend(cluster.explains.then(|| Reason::new(site.spot.level.to_level(), what)));
            continue;
        }
        let host = &site.instance.host;
        let place = *places.entry(host).or_insert(hosts.len());
        if place == hosts.len() {
            hosts.push((host, Vec::new()));
        }
        hosts[place].1.push(*site);
    }
    let extra = u32::from(!pe.job_is_first_task.0);
    let rooms = hosts.iter().filter_map(|(host, sites)| {
        let ground = sites.first()?.host;
        let room = room(cluster, demand, globally, &ground, sites, extra, &mut reasons);
        let has_room = room.slots > 0 || room.master.is_some();
        if !has_room {
            roomless.insert((*host).clone());
        }
        has_room.then_some(room)
    });
    (rooms.collect(), reasons)
}

/// The room on one host for a job, in queue instances that it may have.
pub fn room_on(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    host: &Ground<'_, '_>,
    sites: &[Site<'_, '_>],
    pe: &ParallelEnvironment,
) -> HostRoom {
    room(cluster, demand, globally, host, sites, u32::from(!pe.job_is_first_task.0), &mut Vec::new())
}

/// The slots on a host that the rule of an environment could use, at most.
pub fn usable(room: &HostRoom, demand: &Demand, pe: &ParallelEnvironment) -> u32 {
    let slots = room.slots.max(room.master.map_or(0, |master| master.slots));
    match demand.allocation_rule(pe) {
        _ if slots < portion(demand, pe) => 0,
        AllocationRule::Fixed(each) => each,
        AllocationRule::PeSlots | AllocationRule::FillUp | AllocationRule::RoundRobin => slots,
    }
}

/// The least slots on a host with which the rule of an environment could do anything.
pub fn portion(demand: &Demand, pe: &ParallelEnvironment) -> u32 {
    match demand.allocation_rule(pe) {
        AllocationRule::Fixed(each) => each,
        AllocationRule::PeSlots => demand.least(),
        AllocationRule::FillUp | AllocationRule::RoundRobin => 1,
    }
}

/// At most so many of the hosts, in their order: those with most room, one that takes the master among them. All of them where the
/// rule uses one host alone.
pub fn roomiest(mut hosts: Vec<HostRoom>, rule: AllocationRule, most: u32) -> Vec<HostRoom> {
    let most = most as usize;
    let least = match rule {
        AllocationRule::PeSlots => return hosts,
        AllocationRule::Fixed(each) => each,
        AllocationRule::FillUp | AllocationRule::RoundRobin => 1,
    };
    let takes_master = |host: &HostRoom| host.master.is_some_and(|master| master.slots >= least);
    let Some(master) = hosts.iter().position(takes_master).filter(|_| hosts.len() > most && most > 0) else {
        return hosts;
    };
    let mut best: Vec<usize> = (0..hosts.len()).collect();
    best.sort_by_key(|index| std::cmp::Reverse(hosts[*index].slots));
    best.truncate(most);
    if !best.iter().any(|index| takes_master(&hosts[*index])) {
        best[most - 1] = master;
    }
    let mut index = 0..;
    hosts.retain(|_| index.next().is_some_and(|index| best.contains(&index)));
    hosts
}

/// The room on one host. `extra` is the slot of a master that is no task of the environment.
fn room(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    host: &Ground<'_, '_>,
    sites: &[Site<'_, '_>],
    extra: u32,
    reasons: &mut Vec<Reason>,
) -> HostRoom {
    let on_host = |slots, role| cluster.fit_level(globally.clone(), &host.spot, demand, slots, role);
    let slaves = on_host(1, Role::Slave);
    // Where nothing is charged for the master alone, it fits where others do.
    let is_alike = extra == 0 && !demand.charges_master();
    let with_master = if is_alike { slaves.clone() } else { on_host(1 + extra, Role::Master) };
    let fits = sites.iter().map(|site| {
        let fit = cluster.fit_instance(slaves.clone(), site, demand, 1, Role::Slave);
        reasons.extend(fit.reasons.iter().filter(|_| !fit.holds(1)).cloned());
        (site.instance.clone(), fit.slots)
    });
    let fits: Vec<(QueueInstanceName, u32)> = fits.collect();
    let sum = |master: Option<(usize, u32)>| {
        let slots = fits.iter().enumerate().map(|(index, (_, slots))| match master {
            Some((at, most)) if at == index => *slots.min(&most),
            Some(_) | None => *slots,
        });
        slots.fold(0, u32::saturating_add)
    };
    let cap = sites.iter().map(|site| cluster.threshold_cap(site)).max().unwrap_or(0);
    let masters = sites.iter().enumerate().filter_map(|(index, site)| {
        let slots = if is_alike {
            fits[index].1
        } else {
            let fit = cluster.fit_instance(with_master.clone(), site, demand, 1 + extra, Role::Master);
            if fit.holds(1 + extra) { fit.slots } else { 0 }
        };
        (slots > 0 && cluster.takes_master(site.instance, demand)).then_some((index, slots))
    });
    let mut masters = masters
        .map(|(at, most)| {
            let slots = sum(Some((at, most))).min(with_master.slots).min(cap).saturating_sub(extra);
            MasterRoom { at, in_instance: most.saturating_sub(extra), slots }
        })
        .filter(|master| master.slots > 0);
    let master = masters.next();
    let may_be_closed = !demand.is_exempt && cluster.config.enabled_quotas().next().is_some();
    let others = if may_be_closed { masters.collect() } else { Vec::new() };
    HostRoom { slots: sum(None).min(slaves.slots).min(cap), instances: fits, master, others }
}
