//! What limits the slots of a parallel job on the host that has most for it: for answers to why it
//! waits.
//!
//! One host per environment is looked at again. If the hosts have enough for the rule, something
//! else prevents the start, and nothing is reported here.

use super::hosts::{HostRoom, MasterRoom, portion};
use crate::ledger::Level;
use crate::matching::{Cluster, Demand, Fit, InstanceView, SlotRole};
use crate::reason::group::is_alike;
use crate::reason::{Obstacle, PartialRoom, Reason};
use proto::id::QueueInstanceName;
use proto::pe::{AllocationRule, ParallelEnvironment};
use std::cmp::Reverse;

/// The job, and what fits above all hosts.
pub struct Scarcity<'a> {
    pub cluster: &'a Cluster<'a>,
    pub demand: &'a Demand,
    pub globally: &'a Fit,
    pub pe: &'a ParallelEnvironment,
}

/// Slots on a host, including that of a master that is not a task.
struct HostSlots<'a> {
    /// The slots.
    role: SlotRole,
    /// The slots per queue instance, at most, if there are no others.
    parts: Vec<InstanceSlots<'a>>,
    /// The number that there is.
    slots: u32,
    /// The number that would be enough.
    wanted: u32,
}

/// Slots in a queue instance.
struct InstanceSlots<'a> {
    instance: &'a QueueInstanceName,
    role: SlotRole,
    slots: u32,
}

impl<'a> Scarcity<'a> {
    /// What limits the slots on the best of the hosts with room for the job. Empty if these have
    /// enough.
    pub fn no_more(&self, hosts: &[HostRoom]) -> Vec<Reason> {
        let place = match hosts.iter().any(|room| room.master.is_some()) {
            true => self.best(hosts),
            false => self.without_seat(hosts),
        };
        place
            .filter(|place| place.slots < place.wanted)
            .map_or_else(Vec::new, |place| self.limits(&place))
    }

    /// The host with most slots among those that have too few for the rule, or all of them
    /// together.
    fn best<'r>(&self, hosts: &'r [HostRoom]) -> Option<HostSlots<'r>> {
        let least = self.demand.least();
        let most = |room: &HostRoom| room.masters().map(|seat| seat.slots).fold(room.slots, u32::max);
        match self.demand.allocation_rule(self.pe) {
            AllocationRule::PeSlots => {
                let rooms = hosts.iter().filter_map(|room| Some((room, seat(room)?)));
                let (room, seat) = rooms.min_by_key(|(_, seat)| Reverse(seat.slots))?;
                Some(self.with_master(room, seat, least))
            }
            AllocationRule::Fixed(each) => {
                let usable = hosts.iter().filter(|room| most(room) >= each).count();
                let is_enough = u64::from(each) * usable as u64 >= u64::from(least);
                let short = hosts.iter().filter(|room| !is_enough && most(room) < each);
                short
                    .min_by_key(|room| Reverse(most(room)))
                    .map(|room| self.at(room, each))
            }
            AllocationRule::FillUp | AllocationRule::RoundRobin => {
                let all = hosts.iter().map(|room| i64::from(room.slots)).sum::<i64>();
                let seats = hosts
                    .iter()
                    .flat_map(|room| room.masters().map(move |seat| (room, seat)));
                let gain = seats
                    .map(|(room, seat)| i64::from(seat.slots) - i64::from(room.slots))
                    .max();
                let missing = i64::from(least) - all - gain.unwrap_or(0);
                let missing = u32::try_from(missing).ok().filter(|missing| *missing > 0)?;
                let room = hosts.iter().min_by_key(|room| Reverse(most(room)))?;
                Some(self.at(room, most(room).saturating_add(missing)))
            }
        }
    }

    /// If no host takes the master: the host with most room for others. A job with separate
    /// requests has a reason for each host already.
    fn without_seat<'r>(&self, hosts: &'r [HostRoom]) -> Option<HostSlots<'r>> {
        let room = hosts
            .iter()
            .min_by_key(|room| Reverse(room.slots))
            .filter(|_| !self.demand.is_apart())?;
        let (role, extra) = (self.demand.roles(Some(self.pe)).0, self.extra());
        let own = self.demand.own_slots(self.pe);
        let slots = (own + extra).saturating_sub(1);
        let part = |(instance, _): &'r (QueueInstanceName, u32)| InstanceSlots { instance, role, slots };
        let wanted = portion(self.demand, self.pe).max(own).saturating_add(extra);
        Some(HostSlots {
            role,
            parts: room.instances.iter().map(part).collect(),
            slots,
            wanted,
        })
    }

    /// A host where so many slots of the job would be enough, with the master if that takes nothing
    /// from the others.
    fn at<'r>(&self, room: &'r HostRoom, wanted: u32) -> HostSlots<'r> {
        if let Some(seat) = seat(room).filter(|seat| seat.slots >= room.slots) {
            return self.with_master(room, seat, wanted);
        }
        let role = SlotRole::Slave;
        let part = |(instance, slots): &'r (QueueInstanceName, u32)| InstanceSlots {
            instance,
            role,
            slots: *slots,
        };
        HostSlots {
            role,
            parts: room.instances.iter().map(part).collect(),
            slots: room.slots,
            wanted,
        }
    }

    fn with_master<'r>(&self, room: &'r HostRoom, seat: MasterRoom, wanted: u32) -> HostSlots<'r> {
        let (role, beside) = self.demand.roles(Some(self.pe));
        let extra = self.extra();
        let parts = room.instances.iter().enumerate().map(|(at, (instance, _))| {
            let slots = room.beside(seat, at);
            match at == seat.at {
                true => InstanceSlots {
                    instance,
                    role,
                    slots: slots.saturating_add(extra),
                },
                false => InstanceSlots {
                    instance,
                    role: beside,
                    slots,
                },
            }
        });
        let parts = parts.collect();
        HostSlots {
            role,
            parts,
            slots: seat.slots.saturating_add(extra),
            wanted: wanted.saturating_add(extra),
        }
    }

    /// The slot of a master that is no task of the environment.
    fn extra(&self) -> u32 {
        u32::from(!self.pe.job_is_first_task.0)
    }

    /// What limits the slots there: at the host, and in its queue instances if together they have
    /// no more.
    fn limits(&self, place: &HostSlots<'_>) -> Vec<Reason> {
        let HostSlots {
            role,
            parts,
            slots,
            wanted,
        } = place;
        let Some(first) = parts.first() else { return Vec::new() };
        let host_view = self.cluster.host_view(&first.instance.host);
        let on_host = |slots| {
            self.cluster
                .fit_level(self.globally.unlimited(), &host_view.view, self.demand, slots, *role)
        };
        let sites = || {
            parts
                .iter()
                .map(|part| (part, self.cluster.site_on(host_view, part.instance)))
        };
        let mut limits = self.short(*slots, *wanted, on_host);
        limits.extend(self.thresholds(sites().map(|(_, site)| site).collect(), (*slots, *wanted)));
        let in_all = parts.iter().fold(0, |sum: u32, part| sum.saturating_add(part.slots));
        if !limits.is_empty() && in_all > *slots {
            return limits;
        }
        let above = on_host(1).unlimited();
        for (part, site) in sites() {
            let fit = |slots| {
                self.cluster
                    .fit_instance(above.clone(), &site, self.demand, slots, part.role)
            };
            limits.extend(self.short(part.slots, part.slots.saturating_add(wanted - slots), fit));
        }
        limits
    }

    /// What limits the slots to those there are, with the amount that enough slots would need.
    fn short(&self, slots: u32, wanted: u32, fit: impl Fn(u32) -> Fit) -> Vec<Reason> {
        let decisive = fit(slots.saturating_add(1)).reasons;
        if decisive.is_empty() {
            return Vec::new();
        }
        let all = fit(wanted).reasons.into_iter();
        let told = all.filter(|reason| decisive.iter().any(|known| is_alike(known, reason)));
        told.map(|Reason { level, what }| self.reason(level, (slots, wanted), what))
            .collect()
    }

    /// The load thresholds that further slots would reach, if these limit.
    fn thresholds(&self, sites: Vec<InstanceView<'_, '_>>, (slots, wanted): (u32, u32)) -> Vec<Reason> {
        let caps: Vec<_> = sites.iter().map(|site| self.cluster.threshold_cap(site)).collect();
        if caps.iter().max() != Some(&slots) {
            return Vec::new();
        }
        let decisive = sites.iter().zip(&caps).filter(|(_, cap)| **cap == slots);
        let nearest = decisive.filter_map(|(site, _)| Some((site, self.cluster.nearest_threshold(site)?)));
        let told = |(site, overload): (&InstanceView<'_, '_>, _)| {
            self.reason(
                site.view.level.to_level(),
                (slots, wanted),
                Obstacle::Overloaded(overload),
            )
        };
        nearest.map(told).collect()
    }

    fn reason(&self, level: Level, (slots, wanted): (u32, u32), why: Obstacle) -> Reason {
        Reason::new(
            level,
            Obstacle::NoMore(Box::new(PartialRoom {
                pe: self.pe.name.clone(),
                slots,
                wanted,
                why,
            })),
        )
    }
}

/// How a host takes the master with most slots.
fn seat(room: &HostRoom) -> Option<MasterRoom> {
    room.masters().min_by_key(|seat| Reverse(seat.slots))
}
