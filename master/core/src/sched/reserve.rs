//! The phase that finds the earliest time at which a task could start that cannot start now (SEMANTICS section 5.4).
//!
//! Something becomes possible only where something is given back. So the search goes from one end to the next, and looks again at the
//! hosts that are concerned and at no others. It takes the first gap that is long enough. Load values of later are not known: only
//! slots and consumables count, and what never changes.

use super::ahead::Ahead;
use super::assign::{Assignment, assign_serial, environments, fit_globally, lay_out, room_on};
use super::assign::{HostRoom, Limits};
use super::rank::{host_value, rank};
use super::timeline::{Span, Window};
use crate::ledger::{Booking, Level};
use crate::matching::{Cluster, Demand, Fit, Mode, may_use_pe};
use proto::id::{HostName, QueueInstanceName};
use proto::pe::{AllocationRule, ParallelEnvironment};
use proto::time::{Now, Tick};
use std::collections::{BTreeMap, BTreeSet};

/// What is looked for, and where.
pub struct Search<'a> {
    /// The cluster as it is now.
    pub cluster: Cluster<'a>,
    /// What is known of the time to come.
    pub ahead: &'a Ahead,
    /// What the task asks for.
    pub demand: &'a Demand,
    /// How long it needs that, in milliseconds; none is for ever.
    pub length_ms: Option<u64>,
    /// The time.
    pub now: Now,
}

/// A time at which something is given back, with the hosts concerned.
struct Moment {
    at: Tick,
    hosts: BTreeSet<HostName>,
}

impl<'a> Search<'a> {
    /// The earliest time at which the task could start, and with what. `open` are queue instances that have room now, best first.
    pub fn earliest(&self, open: &[QueueInstanceName]) -> Option<(Tick, Assignment)> {
        let Some(wanted) = &self.demand.pe else { return self.serial(open) };
        let pes = environments(&self.cluster, &wanted.name).filter(|pe| may_use_pe(pe, self.demand));
        let found = pes.filter_map(|pe| self.parallel(pe, open));
        // The first of equals: the one with most slots, then by name.
        let slots = |assignment: &Assignment| assignment.granted.iter().map(|granted| granted.slots).sum::<u32>();
        found.min_by_key(|(at, assignment)| (*at, std::cmp::Reverse(slots(assignment))))
    }

    /// The cluster within the time from `at` on.
    fn later<'b>(&'b self, at: Tick, closing: &'b BTreeSet<String>) -> Cluster<'b> {
        let window = Window { line: self.ahead.line(), span: self.span(at), closing };
        Cluster { mode: Mode::Later, window: Some(window), ..self.cluster }
    }

    fn span(&self, at: Tick) -> Span {
        Span::new(at, self.length_ms)
    }

    fn closing(&self, at: Tick) -> BTreeSet<String> {
        self.ahead.closings().within(self.now, self.span(at))
    }

    /// The times at which something is given back, in order, each once.
    fn moments(&self) -> impl Iterator<Item = Moment> {
        let mut releases = self.ahead.line().releases().peekable();
        let mut openings = self.ahead.closings().openings(self.now).into_iter().peekable();
        std::iter::from_fn(move || {
            let first = [releases.peek().map(|(at, _)| *at), openings.peek().map(|(at, _)| *at)];
            let at = first.into_iter().flatten().min()?;
            let mut hosts = BTreeSet::new();
            while let Some((_, key)) = releases.next_if(|(next, _)| *next == at) {
                let ledgers = [Some(self.cluster.ledger), self.cluster.planned].into_iter().flatten();
                let booking =
                    self.ahead.line().booking(key).or_else(|| ledgers.filter_map(|ledger| ledger.booking(key)).next());
                hosts.extend(booking.into_iter().flat_map(Booking::granted).map(|part| part.instance.host.clone()));
            }
            while let Some((_, calendar)) = openings.next_if(|(next, _)| *next == at) {
                let resolved = self.cluster.config.resolved.iter();
                let of_calendar = resolved.filter(|(_, settings)| {
                    settings.calendar.value().is_some_and(|name| name.as_str() == calendar.as_str())
                });
                hosts.extend(of_calendar.map(|(instance, _)| instance.host.clone()));
            }
            Some(Moment { at, hosts })
        })
    }

    /// The queue instances of a host, best first.
    fn instances(&self, host: &HostName) -> Vec<QueueInstanceName> {
        let all = self.cluster.config.queues.keys();
        let all = all.map(|queue| QueueInstanceName { queue: queue.clone(), host: host.clone() });
        let mut all: Vec<_> = all.filter(|instance| self.cluster.settings(instance).is_some()).collect();
        all.sort_by_cached_key(|instance| self.cluster.settings(instance).map(|settings| settings.seq_no));
        all
    }

    fn serial(&self, open: &[QueueInstanceName]) -> Option<(Tick, Assignment)> {
        let mut open: BTreeSet<QueueInstanceName> = open.iter().cloned().collect();
        for Moment { at, hosts } in self.moments() {
            open.extend(hosts.iter().flat_map(|host| self.instances(host)));
            let closing = self.closing(at);
            let cluster = self.later(at, &closing);
            let globally = fit_globally(&cluster, self.demand);
            if !globally.reasons.is_empty() {
                // Whatever has room on its host keeps it until then.
                continue;
            }
            let fits = std::mem::take(&mut open).into_iter();
            let fits = fits.filter_map(|instance| {
                let assignment = assign_serial(&cluster, self.demand, &globally, &instance).ok()?;
                Some((instance, assignment))
            });
            let best = fits.min_by_key(|(instance, _)| self.worth(instance));
            if let Some((_, assignment)) = best {
                return Some((at, assignment));
            }
        }
        None
    }

    /// How good a queue instance is for the job; less is better.
    fn worth(&self, instance: &QueueInstanceName) -> impl Ord + use<> {
        let value = host_value(&self.cluster, &instance.host, std::slice::from_ref(instance));
        let violations = self.cluster.violations(instance, self.demand);
        (violations, rank(&self.cluster, instance, value), instance.clone())
    }

    fn parallel(&self, pe: &ParallelEnvironment, open: &[QueueInstanceName]) -> Option<(Tick, Assignment)> {
        let wanted = self.demand.pe.as_ref()?;
        let mut rooms = Rooms::new(self, pe);
        let mut changed: BTreeSet<HostName> = BTreeSet::new();
        for instance in open {
            rooms.know(instance);
            changed.insert(instance.host.clone());
        }
        for Moment { at, hosts } in self.moments() {
            for host in &hosts {
                self.instances(host).iter().for_each(|instance| rooms.know(instance));
            }
            changed.extend(hosts);
            let closing = self.closing(at);
            let cluster = self.later(at, &closing);
            changed.extend(rooms.outdated(at));
            let globally = fit_globally(&cluster, self.demand);
            for host in std::mem::take(&mut changed) {
                rooms.look(&cluster, &globally, &host, at);
            }
            if !globally.holds(wanted.slots.least()) || !rooms.may_hold(wanted.slots.least()) {
                continue;
            }
            let Ok(limits) = Limits::new(&cluster, self.demand, &globally, pe) else { continue };
            if let Ok(granted) = lay_out(&cluster, self.demand, pe, limits, rooms.in_order()) {
                return Some((at, Assignment { granted, pe: Some(pe.name.clone()) }));
            }
        }
        None
    }
}

/// The room on each host for a parallel job, as time goes on.
struct Rooms<'a> {
    search: &'a Search<'a>,
    pe: &'a ParallelEnvironment,
    /// In the order in which they came.
    hosts: Vec<HostOverTime>,
    at: BTreeMap<HostName, usize>,
    /// Until when a room that was found holds, where something is kept on the host later.
    holds_until: BTreeSet<(Tick, HostName)>,
    /// Slots on all hosts together that the rule could use.
    usable: u64,
}

struct HostOverTime {
    instances: Vec<QueueInstanceName>,
    room: Option<HostRoom>,
    holds_until: Option<Tick>,
}

impl<'a> Rooms<'a> {
    fn new(search: &'a Search<'a>, pe: &'a ParallelEnvironment) -> Rooms<'a> {
        let (hosts, at, holds_until) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Rooms { search, pe, hosts, at, holds_until, usable: 0 }
    }

    /// Takes in a queue instance that the job may have.
    fn know(&mut self, instance: &QueueInstanceName) {
        let index = *self.at.entry(instance.host.clone()).or_insert(self.hosts.len());
        if index == self.hosts.len() {
            self.hosts.push(HostOverTime { instances: Vec::new(), room: None, holds_until: None });
        }
        let known = &mut self.hosts[index].instances;
        let cluster = &self.search.cluster;
        if !known.contains(instance) && cluster.unsuitable(instance, self.search.demand, Some(&self.pe.name)).is_none()
        {
            known.push(instance.clone());
        }
    }

    /// The hosts whose room a stretch of time that begins at `at` may not have any more.
    fn outdated(&self, at: Tick) -> Vec<HostName> {
        self.holds_until.iter().take_while(|(until, _)| *until < at).map(|(_, host)| host.clone()).collect()
    }

    /// Finds out the room on a host from a time on.
    fn look(&mut self, cluster: &Cluster<'_>, globally: &Fit, host: &HostName, at: Tick) {
        let Some(index) = self.at.get(host).copied() else { return };
        self.count(index, false);
        if let Some(until) = self.hosts[index].holds_until.take() {
            self.holds_until.remove(&(until, host.clone()));
        }
        let in_service =
            self.hosts[index].instances.iter().filter(|instance| cluster.out_of_service(instance).is_none());
        let instances: Vec<QueueInstanceName> = in_service.cloned().collect();
        let room = room_on(cluster, self.search.demand, &globally.unlimited(), host, &instances, self.pe);
        self.hosts[index].room = Some(room);
        self.count(index, true);
        // What is kept later than the end of the stretch is met once the stretch begins so much later.
        if let Some(length_ms) = self.search.length_ms {
            let next = self.search.ahead.line().next_kept(&Level::Host(host.clone()), at.plus_ms(length_ms));
            let until = next.map(|next| Tick(next.0.saturating_sub(length_ms)));
            self.holds_until.extend(until.map(|until| (until, host.clone())));
            self.hosts[index].holds_until = until;
        }
    }

    /// Counts the room of a host in, or out again.
    fn count(&mut self, index: usize, is_in: bool) {
        let Some(room) = &self.hosts[index].room else { return };
        let slots = u64::from(room.slots.max(room.master.map_or(0, |master| master.slots)));
        let usable = match self.pe.allocation_rule {
            AllocationRule::Fixed(each) if slots >= u64::from(each) => u64::from(each),
            AllocationRule::PeSlots if slots >= u64::from(self.least()) => slots,
            AllocationRule::FillUp | AllocationRule::RoundRobin => slots,
            AllocationRule::Fixed(_) | AllocationRule::PeSlots => 0,
        };
        self.usable = if is_in { self.usable + usable } else { self.usable - usable };
    }

    fn least(&self) -> u32 {
        self.search.demand.pe.as_ref().map_or(1, |wanted| wanted.slots.least())
    }

    /// Whether there may be so many slots: without this, a layout need not be tried.
    fn may_hold(&self, slots: u32) -> bool {
        self.usable >= u64::from(slots)
    }

    /// The hosts with room.
    fn in_order(&self) -> Vec<HostRoom> {
        let rooms = self.hosts.iter().filter_map(|host| host.room.as_ref());
        rooms.filter(|room| room.slots > 0 || room.master.is_some()).cloned().collect()
    }
}
