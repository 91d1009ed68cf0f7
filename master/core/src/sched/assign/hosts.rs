//! How many slots of a parallel job each host has room for.

use super::supply::Supply;
use crate::matching::{Cluster, Demand, Fit, HostView, InstanceView, SlotRole};
use crate::reason::{Obstacle, Reason};
use proto::id::{HostName, QueueInstanceName};
use proto::pe::{AllocationRule, ParallelEnvironment};
use std::collections::BTreeSet;

/// A host with the slots that a job could have there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoom {
    /// Its queue instances in their order, each with the slots it could give to tasks that are not
    /// the master.
    pub instances: Vec<(QueueInstanceName, u32)>,
    /// The most slots on the host without the master.
    pub slots: u32,
    /// How it would take the master. `None` if the master cannot be here.
    pub master: Option<MasterRoom>,
    /// How others of its instances would take the master. They are looked for only if the first may
    /// not be the best: a quota may close it, or the master requests something else than the other
    /// slots.
    pub others: Vec<MasterRoom>,
    /// The slots that each instance could give beside the master on this host, if they differ from
    /// those elsewhere.
    pub companions: Option<Vec<u32>>,
}

impl HostRoom {
    /// The ways in which it could take the master, best first.
    pub fn masters(&self) -> impl Iterator<Item = MasterRoom> {
        self.master.into_iter().chain(self.others.iter().copied())
    }

    /// The most slots that one of its instances could give if the master is on this host, perhaps
    /// in that instance.
    pub fn beside(&self, master: MasterRoom, at: usize) -> u32 {
        match &self.companions {
            _ if master.at == at => master.in_instance,
            Some(companions) => companions[at],
            None => self.instances[at].1,
        }
    }

    /// Its queue instances, each with the most slots that it could give, whether the master is
    /// there or not.
    pub fn at_best(&self) -> impl Iterator<Item = (&QueueInstanceName, u32)> {
        self.instances.iter().enumerate().map(|(index, (instance, slots))| {
            (
                instance,
                self.masters()
                    .map(|master| self.beside(master, index))
                    .fold(*slots, u32::max),
            )
        })
    }
}

/// The room on a host that takes the master, without the slot of a master that is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterRoom {
    /// Which of the host's instances takes it.
    pub at: usize,
    /// The slots in that instance that are the master's own: one or none.
    pub own: u32,
    /// The most slots in that instance, at least its own.
    pub in_instance: u32,
    /// The most slots on the host, at least its own.
    pub slots: u32,
}

/// A search over the hosts for a job in one environment.
pub struct HostSearch<'c, 'a> {
    /// The cluster.
    pub cluster: &'c Cluster<'a>,
    /// The job.
    pub demand: &'c Demand,
    /// What fits at the level of the cluster.
    pub globally: &'c Fit,
    /// The environment.
    pub pe: &'c ParallelEnvironment,
}

/// The hosts with room for a job, in the order of their best instances, as far as they were looked
/// at.
#[derive(Debug, Default)]
pub struct Rooms<'l> {
    /// The hosts.
    pub hosts: Vec<HostRoom>,
    /// Whether all hosts were looked at.
    pub are_all: bool,
    /// Why queue instances are not for the job, and why hosts have no room.
    unsuitable: Vec<Reason>,
    short: Vec<Reason>,
    /// Hosts of several queue instances.
    seen: BTreeSet<&'l HostName>,
    /// How many queue instances were looked at.
    looked_at: usize,
}

impl<'l> Rooms<'l> {
    /// Looks at more hosts, until one of them makes them enough. Hosts without room that the rule
    /// could use go into `roomless`, unless their queues are not made for the job.
    pub fn look<'a>(
        &mut self,
        look: &HostSearch<'_, 'a>,
        supply: &mut impl Supply<'a, 'l>,
        mut is_enough: impl FnMut(&HostRoom) -> bool,
        roomless: &mut BTreeSet<HostName>,
    ) {
        let HostSearch {
            cluster,
            demand,
            globally,
            pe,
        } = *look;
        let why = |site: &InstanceView<'_, '_>| {
            cluster
                .unsuitable(site, demand, Some(&pe.name))
                .or_else(|| cluster.out_of_service(site))
        };
        while let Some(site) = supply.get(self.looked_at) {
            self.looked_at += 1;
            if let Some(what) = why(&site) {
                self.unsuitable
                    .extend(cluster.explains.then(|| Reason::new(site.view.level.to_level(), what)));
                continue;
            }
            let host = &site.instance.host;
            if self.seen.contains(host) {
                continue;
            }
            let mut sites = supply.beside(site);
            if sites.len() > 1 {
                self.seen.insert(host);
            }
            sites.retain(|other| other.instance == site.instance || why(other).is_none());
            let room = room(look, &site.host, &sites, &mut self.short);
            let has_room = room.slots > 0 || room.master.is_some();
            if !has_room || is_useless(&room, demand, globally, pe) {
                roomless.insert(host.clone());
            }
            if has_room {
                let is_last = is_enough(&room);
                self.hosts.push(room);
                if is_last {
                    return;
                }
            }
        }
        self.are_all = true;
    }

    /// Why queue instances are not for the job, then why hosts have no room.
    pub fn into_reasons(mut self) -> Vec<Reason> {
        self.unsuitable.append(&mut self.short);
        self.unsuitable
    }
}

/// Whether a host has fewer slots than the rule uses on any host, only because of what is there.
fn is_useless(room: &HostRoom, demand: &Demand, globally: &Fit, pe: &ParallelEnvironment) -> bool {
    !demand.is_apart() && globally.holds(portion(demand, pe)) && usable(room, demand, pe) == 0
}

/// The room on one host for a job, in queue instances that it may have.
pub fn room_on(
    cluster: &Cluster<'_>,
    demand: &Demand,
    globally: &Fit,
    host: &HostView<'_, '_>,
    sites: &[InstanceView<'_, '_>],
    pe: &ParallelEnvironment,
) -> HostRoom {
    let look = HostSearch {
        cluster,
        demand,
        globally,
        pe,
    };
    room(&look, host, sites, &mut Vec::new())
}

/// The slots on a host that the rule of an environment could use, at most.
pub fn usable(room: &HostRoom, demand: &Demand, pe: &ParallelEnvironment) -> u32 {
    let slots = room.masters().map(|master| master.slots).fold(room.slots, u32::max);
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

/// At most `most` of the hosts, in their order: those with most room, and among them one that takes
/// the master. All hosts if the rule uses only one.
pub fn roomiest(mut hosts: Vec<HostRoom>, rule: AllocationRule, most: u32) -> Vec<HostRoom> {
    let most = most as usize;
    let least = match rule {
        AllocationRule::PeSlots => return hosts,
        AllocationRule::Fixed(each) => each,
        AllocationRule::FillUp | AllocationRule::RoundRobin => 1,
    };
    let takes_master = |host: &HostRoom| host.masters().any(|master| master.slots >= least || master.own == 0);
    let Some(master) = hosts
        .iter()
        .position(takes_master)
        .filter(|_| hosts.len() > most && most > 0)
    else {
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

/// The room on one host.
fn room(
    look: &HostSearch<'_, '_>,
    host: &HostView<'_, '_>,
    sites: &[InstanceView<'_, '_>],
    reasons: &mut Vec<Reason>,
) -> HostRoom {
    let (cluster, demand, pe) = (look.cluster, look.demand, look.pe);
    // The slot of a master that is no task of the environment.
    let (extra, own) = (u32::from(!pe.job_is_first_task.0), demand.own_slots(pe));
    let (as_master, as_other) = demand.roles(Some(pe));
    let on_host = |slots, role| cluster.fit_level(look.globally.clone(), &host.view, demand, slots, role);
    let slaves = on_host(1, SlotRole::Slave);
    // If nothing is charged for the master alone, it fits where others fit.
    let is_alike = extra == 0 && !demand.charges_master();
    let with_master = if is_alike {
        slaves.clone()
    } else {
        on_host(own + extra, as_master)
    };
    let fits = slots_of_others(look, &slaves, sites, reasons);
    let cap = sites.iter().map(|site| cluster.threshold_cap(site)).max().unwrap_or(0);
    let companions = || slots_of_companions(look, &on_host(1, SlotRole::Companion), sites);
    let companions = (as_other == SlotRole::Companion).then(companions);
    let sum = fits.iter().map(|(_, slots)| *slots).fold(0, u32::saturating_add);
    let slots = sum.min(slaves.slots).min(cap);
    let room = HostRoom {
        slots,
        instances: fits,
        master: None,
        others: Vec::new(),
        companions,
    };
    let (master, others) = {
        let mut masters = sites.iter().enumerate().filter_map(|(at, site)| {
            let most = if is_alike {
                room.instances[at].1
            } else {
                slots_with_master(look, &with_master, site, own + extra, reasons)
            };
            if most < own + extra || !cluster.takes_master(site.instance, demand) {
                return None;
            }
            let whole = MasterRoom {
                at,
                own,
                in_instance: most,
                slots: 0,
            };
            let sum = (0..sites.len())
                .map(|index| room.beside(whole, index))
                .fold(0, u32::saturating_add);
            let slots = sum.min(with_master.slots).min(cap).saturating_sub(extra);
            Some(MasterRoom {
                slots,
                in_instance: most - extra,
                ..whole
            })
            .filter(|master| master.slots >= own)
        });
        let first = masters.next();
        let is_best = is_first_master_best(cluster, demand);
        (first, if is_best { Vec::new() } else { masters.collect() })
    };
    HostRoom { master, others, ..room }
}

/// Whether no other instance of a host needs to be looked at for the master: nothing can close the
/// first later, and the others ask for the same.
fn is_first_master_best(cluster: &Cluster<'_>, demand: &Demand) -> bool {
    let may_be_closed = !demand.is_exempt && cluster.config.enabled_quotas().next().is_some();
    !may_be_closed && !demand.is_apart()
}

/// The slots that each instance could give to tasks that are not the master.
fn slots_of_others(
    look: &HostSearch<'_, '_>,
    on_host: &Fit,
    sites: &[InstanceView<'_, '_>],
    reasons: &mut Vec<Reason>,
) -> Vec<(QueueInstanceName, u32)> {
    let HostSearch { cluster, demand, .. } = *look;
    let fits = sites.iter().map(|site| {
        let fit = cluster.fit_instance(on_host.clone(), site, demand, 1, SlotRole::Slave);
        if cluster.takes_slaves(site.instance, demand) {
            reasons.extend(fit.reasons.iter().filter(|_| !fit.holds(1)).cloned());
            return (site.instance.clone(), fit.slots);
        }
        let level = site.view.level.to_level();
        reasons.extend(cluster.explains.then(|| Reason::new(level, Obstacle::NotInSlaveQueues)));
        (site.instance.clone(), 0)
    });
    fits.collect()
}

/// The most slots of an instance that takes the master, which needs `least` of them.
fn slots_with_master(
    look: &HostSearch<'_, '_>,
    on_host: &Fit,
    site: &InstanceView<'_, '_>,
    least: u32,
    reasons: &mut Vec<Reason>,
) -> u32 {
    let HostSearch {
        cluster, demand, pe, ..
    } = *look;
    let (as_master, as_other) = demand.roles(Some(pe));
    let mut fit = cluster.fit_instance(on_host.clone(), site, demand, least, as_master);
    // A job without requests of its own for the master gets only numbers of slots as a reason, as
    // in 8.1.9.
    if demand.is_apart() && !fit.holds(least) && cluster.takes_master(site.instance, demand) {
        reasons.append(&mut fit.reasons);
    }
    let is_alone = as_other == SlotRole::Slave && !cluster.takes_slaves(site.instance, demand);
    if is_alone { fit.slots.min(1) } else { fit.slots }
}

/// The slots that each instance could give to companions of the master.
fn slots_of_companions(look: &HostSearch<'_, '_>, on_host: &Fit, sites: &[InstanceView<'_, '_>]) -> Vec<u32> {
    let HostSearch { cluster, demand, .. } = *look;
    let fit = |site| cluster.fit_instance(on_host.clone(), site, demand, 1, SlotRole::Companion);
    sites.iter().map(|site| fit(site).slots).collect()
}
