//! The reserve phase: the earliest time at which a task could start that cannot start now
//! (ALGORITHMS.md section 5.4).
//!
//! A start becomes possible only where something is given back. So the search goes from one release
//! to the next, looks only at the hosts concerned, and takes the first gap that is long enough.
//! Load values of later are unknown: only slots, consumables and static values count.

pub mod advance;
pub(crate) mod ahead;
pub(crate) mod closings;
mod fits;

use super::assign::{
    Assignment, HostRoom, ParallelLimits, assign_serial, environments, fit_globally, lay_out, one_slot, portion,
    room_on, usable,
};
use super::rank::{host_value, rank};
use crate::ledger::quota::Scope;
use crate::ledger::timeline::{NEVER, Span, Window};
use crate::matching::quota::QuotaBudget;
use crate::matching::{Cluster, Demand, Fit, InstanceView, Mode, may_use_pe};
use ahead::Lookahead;
use fits::{Fits, Worth};
use proto::id::{HostName, QueueInstanceName};
use proto::job::GrantedSlots;
use proto::pe::ParallelEnvironment;
use proto::time::{Now, Tick};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What happens to the reservations of the pass before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservationMode {
    /// All are made anew, in the order of priority.
    #[default]
    Anew,
    /// They stay, unless the time of one has come. This is for passes in between where making them
    /// takes long: until the next ones are made, a job of higher priority may wait for one of lower
    /// priority that has its reservation already.
    Keep,
}

/// The time at which everything has ended that has an end.
const LAST: Tick = Tick(NEVER.0 - 1);

/// A search: for what, and where.
pub struct Search<'a> {
    /// The cluster as it is now.
    pub cluster: Cluster<'a>,
    /// The plan for the time to come.
    pub ahead: &'a Lookahead,
    /// What the task asks for.
    pub demand: &'a Demand,
    /// How long it needs that, in milliseconds. `None` means for ever.
    pub length_ms: Option<u64>,
    /// The time.
    pub now: Now,
    /// Whether the last search for the same demand found no time at all.
    pub is_doubtful: bool,
}

/// A time at which something is given back, with the hosts concerned.
struct Moment {
    at: Tick,
    hosts: BTreeSet<HostName>,
}

/// Where a search ended. Earlier times stay impossible as long as things are only taken.
#[derive(Clone, Debug)]
pub struct SearchResult {
    at: Tick,
    left: SearchRest,
    /// The number of disturbances until then ([`Lookahead::disturbances`]).
    disturbances: u64,
}

/// What a later search may continue with.
#[derive(Clone, Debug)]
enum SearchRest {
    /// Queue instances that took a job without a parallel environment then.
    Serial(Fits),
    /// The room on each host then.
    Parallel(RoomsOverTime),
}

impl Search<'_> {
    /// The earliest time at which the task could start, its slots, and where the search ended.
    /// `open` returns the queue instances that have room now, best first. `before` is where the
    /// last search for the same demand ended, with the hosts where something was taken since.
    pub fn earliest(
        &self,
        open: impl Fn() -> Vec<QueueInstanceName>,
        before: Option<(SearchResult, Vec<HostName>)>,
    ) -> Option<(Tick, Assignment, Option<SearchResult>)> {
        let disturbances = self.ahead.disturbances();
        let Some(wanted) = &self.demand.pe else {
            let (at, assignment, fits) = self.serial(open, before)?;
            return Some((
                at,
                assignment,
                Some(SearchResult {
                    at,
                    left: SearchRest::Serial(fits),
                    disturbances,
                }),
            ));
        };
        let pes: Vec<_> = environments(&self.cluster, &wanted.name)
            .filter(|pe| may_use_pe(pe, self.demand))
            .collect();
        if let [pe] = pes.as_slice() {
            let (at, assignment, rooms) = self.parallel(pe, open, before)?;
            return Some((
                at,
                assignment,
                Some(SearchResult {
                    at,
                    left: SearchRest::Parallel(rooms),
                    disturbances,
                }),
            ));
        }
        let found = pes.into_iter().filter_map(|pe| self.parallel(pe, &open, None));
        // Of equal times the environment with most slots wins, then the first by name.
        let slots = |assignment: &Assignment| assignment.granted.iter().map(|granted| granted.slots).sum::<u32>();
        let best = found.min_by_key(|(at, assignment, _)| (*at, std::cmp::Reverse(slots(assignment))));
        best.map(|(at, assignment, _)| (at, assignment, None))
    }

    /// The cluster in the stretch of time that begins at `at`.
    fn later<'b>(&'b self, at: Tick, closing: &'b BTreeSet<String>) -> Cluster<'b> {
        let window = Window {
            line: self.ahead.line(),
            span: self.span(at),
            closing,
        };
        Cluster {
            mode: Mode::Later,
            window: Some(window),
            ..self.cluster
        }
    }

    fn span(&self, at: Tick) -> Span {
        Span::new(at, self.length_ms)
    }

    fn closing(&self, at: Tick) -> BTreeSet<String> {
        self.ahead.closings().within(self.now, self.span(at))
    }

    /// A time, if it is later than now, and the release times after it.
    fn moments_from(&self, from: Tick) -> impl Iterator<Item = Moment> {
        let again = (from > self.now.tick).then_some(Moment {
            at: from,
            hosts: BTreeSet::new(),
        });
        let later = std::iter::once_with(move || self.moments(from)).flatten();
        again.into_iter().chain(later)
    }

    /// The times after another at which something is given back, in order, each once.
    fn moments(&self, after: Tick) -> impl Iterator<Item = Moment> {
        let mut releases = self.ahead.line().releases(after).peekable();
        let openings = self.ahead.closings().openings(self.now).into_iter();
        let mut openings = openings.skip_while(move |(at, _)| *at <= after).peekable();
        std::iter::from_fn(move || {
            let first = [releases.peek().map(|(at, _)| *at), openings.peek().map(|(at, _)| *at)];
            let at = first.into_iter().flatten().min()?;
            let mut hosts = BTreeSet::new();
            while let Some((_, released)) = releases.next_if(|(next, _)| *next == at) {
                hosts.extend(released.iter().cloned());
            }
            while let Some((_, calendar)) = openings.next_if(|(next, _)| *next == at) {
                let resolved = self.cluster.config.resolved.iter();
                let of_calendar = resolved.filter(|(_, settings)| {
                    settings
                        .calendar
                        .value()
                        .is_some_and(|name| name.as_str() == calendar.as_str())
                });
                hosts.extend(of_calendar.map(|(instance, _)| instance.host.clone()));
            }
            Some(Moment { at, hosts })
        })
    }

    /// The queue instances of a host, best first.
    fn instances(&self, host: &HostName) -> Vec<QueueInstanceName> {
        let all = self.cluster.config.queues.keys();
        let all = all.map(|queue| QueueInstanceName {
            queue: queue.clone(),
            host: host.clone(),
        });
        let mut all: Vec<_> = all
            .filter(|instance| self.cluster.settings(instance).is_some())
            .collect();
        all.sort_by_cached_key(|instance| self.cluster.settings(instance).map(|settings| settings.seq_no));
        all
    }

    /// The first time after now at which a queue instance takes the task, and all that take it
    /// then.
    fn serial(
        &self,
        open: impl Fn() -> Vec<QueueInstanceName>,
        before: Option<(SearchResult, Vec<HostName>)>,
    ) -> Option<(Tick, Assignment, Fits)> {
        let (mut known_at, mut fits, mut unsure) = match before {
            Some((
                SearchResult {
                    at,
                    left: SearchRest::Serial(mut fits),
                    disturbances,
                },
                taken,
            )) => {
                let unsure: BTreeSet<QueueInstanceName> = if self.is_as_at(disturbances) {
                    taken
                        .iter()
                        .flat_map(|host| fits.take(host).collect::<Vec<_>>())
                        .collect()
                } else {
                    fits.take_all().collect()
                };
                (at, fits, unsure)
            }
            Some(_) | None => (self.now.tick, Fits::default(), open().into_iter().collect()),
        };
        for Moment { at, hosts } in self.moments_from(known_at) {
            if at > known_at {
                unsure.extend(fits.take_all());
                known_at = at;
            }
            unsure.extend(hosts.iter().flat_map(|host| self.instances(host)));
            let closing = self.closing(at);
            let cluster = self.later(at, &closing);
            let globally = fit_globally(&cluster, self.demand);
            if !globally.holds(self.demand.least()) {
                // An instance that has room on its host keeps it until then.
                continue;
            }
            let takes = |instance: &QueueInstanceName| {
                assign_serial(&cluster, self.demand, &globally, &cluster.site(instance)).is_ok()
            };
            for instance in std::mem::take(&mut unsure).into_iter().filter(takes) {
                fits.insert(self.worth(&instance), instance);
            }
            let is_right = |(worth, instance): &(Worth, _)| takes(instance) && *worth == self.worth(instance);
            debug_assert!(fits.iter().all(is_right), "what is not unsure is as it was: {fits:?}");
            if let Some(best) = fits.best() {
                return Some((at, one_slot(best), fits));
            }
        }
        None
    }

    /// Whether nothing changed since so many disturbances except where something was taken: no
    /// limit, rank or soft request depends on what is taken elsewhere.
    fn is_as_at(&self, disturbances: u64) -> bool {
        let config = self.cluster.config;
        disturbances == self.ahead.disturbances()
            && config.enabled_quotas().next().is_none()
            && !config.shared.moves_standings
            && (self.demand.soft.is_empty() || config.shared.names.is_empty())
    }

    /// The worth of a queue instance for the job.
    fn worth(&self, instance: &QueueInstanceName) -> Worth {
        let site = self.cluster.site(instance);
        let value = host_value(&self.cluster, &site.host, &[site]);
        (
            self.cluster.violations(instance, self.demand),
            rank(&self.cluster, &site, value),
        )
    }

    /// The earliest time in a parallel environment.
    fn parallel(
        &self,
        pe: &ParallelEnvironment,
        open: impl Fn() -> Vec<QueueInstanceName>,
        before: Option<(SearchResult, Vec<HostName>)>,
    ) -> Option<(Tick, Assignment, RoomsOverTime)> {
        if self.is_doubtful && !self.is_ever_possible(pe) {
            return None;
        }
        let (from, mut rooms, mut changed) = match before {
            Some((
                SearchResult {
                    at,
                    left: SearchRest::Parallel(rooms),
                    ..
                },
                taken,
            )) => (at, rooms, taken.into_iter().collect()),
            Some(_) | None => {
                let (mut rooms, open) = (RoomsOverTime::default(), open());
                open.iter().for_each(|instance| rooms.know(self, pe, instance));
                (
                    self.now.tick,
                    rooms,
                    open.iter()
                        .map(|instance| instance.host.clone())
                        .collect::<BTreeSet<_>>(),
                )
            }
        };
        for Moment { at, hosts } in self.moments_from(from) {
            hosts.iter().for_each(|host| rooms.know_host(self, pe, host));
            changed.extend(hosts);
            if let Some(granted) = self.parallel_at(pe, &mut rooms, &mut changed, at, &self.closing(at)) {
                return Some((
                    at,
                    Assignment {
                        granted,
                        pe: Some(pe.name.clone()),
                    },
                    rooms,
                ));
            }
        }
        None
    }

    /// Slots in a parallel environment from one time on, after changes on some hosts. Changed hosts
    /// are looked at once the cluster as a whole has room; until then they stay in `changed`.
    fn parallel_at(
        &self,
        pe: &ParallelEnvironment,
        rooms: &mut RoomsOverTime,
        changed: &mut BTreeSet<HostName>,
        at: Tick,
        closing: &BTreeSet<String>,
    ) -> Option<Vec<GrantedSlots>> {
        let least = self.demand.least();
        let cluster = self.later(at, closing);
        let globally = fit_globally(&cluster, self.demand);
        let limits = ParallelLimits::new(&cluster, self.demand, &globally, pe).ok()?;
        changed.extend(rooms.outdated(at));
        for host in std::mem::take(changed) {
            rooms.look(self, pe, (&cluster, &globally), &host, at);
        }
        if !rooms.may_hold(least) {
            return None;
        }
        if !rooms.may_hold_within(
            &mut QuotaBudget::new(&cluster, self.demand, Some(&pe.name)),
            self.demand,
            pe,
        ) {
            return None;
        }
        lay_out(&cluster, self.demand, pe, limits, rooms.in_order()).ok()
    }

    /// Whether the task could start once everything has ended that has an end. If not, no earlier
    /// time is possible, because use only shrinks, unless something is kept for ever that begins
    /// later.
    fn is_ever_possible(&self, pe: &ParallelEnvironment) -> bool {
        if self.ahead.line().keeps_for_ever() {
            return true;
        }
        let mut rooms = RoomsOverTime::default();
        let all = self.cluster.config.resolved.keys();
        all.clone().for_each(|instance| rooms.know(self, pe, instance));
        let mut hosts: BTreeSet<HostName> = all.map(|instance| instance.host.clone()).collect();
        self.parallel_at(pe, &mut rooms, &mut hosts, LAST, &BTreeSet::new())
            .is_some()
    }
}

/// The room on each host for a parallel job, as time goes on.
#[derive(Clone, Debug, Default)]
struct RoomsOverTime {
    /// In the order in which they were met.
    hosts: Vec<HostOverTime>,
    at: BTreeMap<HostName, usize>,
    /// Until when a room holds, on hosts where something is kept later.
    holds_until: BTreeSet<(Tick, HostName)>,
    /// Slots on all hosts together that the rule could use.
    usable: u64,
    /// Sets of quota limits that queue instances share with other hosts.
    shared: Vec<Vec<Arc<Scope>>>,
}

#[derive(Clone, Debug, Default)]
struct HostOverTime {
    instances: Vec<QueueInstanceName>,
    /// Whether these are all that the job may have.
    is_known: bool,
    room: Option<HostRoom>,
    usable: u64,
    /// For each queue instance with room, the most slots apart from the master's within the quotas
    /// of this host alone, and the index of its shared limits.
    within: Vec<(u32, usize)>,
    holds_until: Option<Tick>,
}

impl RoomsOverTime {
    /// Adds the queue instances of a host that the job may have.
    fn know_host(&mut self, search: &Search<'_>, pe: &ParallelEnvironment, host: &HostName) {
        if self.at.get(host).is_some_and(|index| self.hosts[*index].is_known) {
            return;
        }
        search
            .instances(host)
            .iter()
            .for_each(|instance| self.know(search, pe, instance));
        if let Some(index) = self.at.get(host) {
            self.hosts[*index].is_known = true;
        }
    }

    /// Adds a queue instance that the job may have at some time.
    fn know(&mut self, search: &Search<'_>, pe: &ParallelEnvironment, instance: &QueueInstanceName) {
        let index = self.at.get(&instance.host).copied().unwrap_or(self.hosts.len());
        if index == self.hosts.len() {
            self.at.insert(instance.host.clone(), index);
            self.hosts.push(HostOverTime::default());
        }
        let known = &mut self.hosts[index].instances;
        let is_suitable = || {
            let cluster = Cluster {
                mode: Mode::Later,
                ..search.cluster
            };
            let site = cluster.site(instance);
            cluster.unsuitable(&site, search.demand, Some(&pe.name)).is_none()
                && cluster.shut(&site).is_none()
                && cluster.may_define(&site, search.demand)
        };
        if !known.contains(instance) && is_suitable() {
            known.push(instance.clone());
        }
    }

    /// The hosts whose room may not hold for a stretch of time that begins at `at`.
    fn outdated(&self, at: Tick) -> Vec<HostName> {
        self.holds_until
            .iter()
            .take_while(|(until, _)| *until < at)
            .map(|(_, host)| host.clone())
            .collect()
    }

    /// Computes the room on a host from a time on.
    fn look(
        &mut self,
        search: &Search<'_>,
        pe: &ParallelEnvironment,
        (cluster, globally): (&Cluster<'_>, &Fit),
        host: &HostName,
        at: Tick,
    ) {
        let Some(index) = self.at.get(host).copied() else {
            return;
        };
        let known = &mut self.hosts[index];
        if known.instances.is_empty() {
            return;
        }
        if let Some(until) = known.holds_until.take() {
            self.holds_until.remove(&(until, host.clone()));
        }
        let host_view = cluster.host_view(host);
        let sites = known
            .instances
            .iter()
            .map(|instance| cluster.site_on(host_view, instance));
        let sites: Vec<InstanceView<'_, '_>> = sites.filter(|site| cluster.out_of_service(site).is_none()).collect();
        let room =
            (!sites.is_empty()).then(|| room_on(cluster, search.demand, &globally.unlimited(), &host_view, &sites, pe));
        let mut budget = QuotaBudget::new(cluster, search.demand, Some(&pe.name));
        known.within.clear();
        for (instance, slots) in room.iter().flat_map(HostRoom::at_best).filter(|(_, slots)| *slots > 0) {
            let (most, shared) = budget.most_on_host(instance, slots);
            let index = self
                .shared
                .iter()
                .position(|known| *known == shared)
                .unwrap_or(self.shared.len());
            if index == self.shared.len() {
                self.shared.push(shared);
            }
            known.within.push((most, index));
        }
        let within = known.within.iter().map(|(most, _)| *most).fold(0, u32::saturating_add);
        let usable = room.as_ref().map_or(0, |room| usable(room, search.demand, pe));
        let usable = if within < portion(search.demand, pe) {
            0
        } else {
            u64::from(usable.min(within))
        };
        self.usable = self.usable - known.usable + usable;
        (known.room, known.usable) = (room, usable);
        // A booking that is kept after the end of the stretch matters once the stretch begins so
        // much later.
        if let Some(length_ms) = search.length_ms {
            let next = search.ahead.line().next_kept(host, at.plus_ms(length_ms));
            let until = next.map(|next| Tick(next.0.saturating_sub(length_ms)));
            self.holds_until.extend(until.map(|until| (until, host.clone())));
            known.holds_until = until;
        }
    }

    /// Whether there may be so many slots. Otherwise a layout need not be tried.
    fn may_hold(&self, slots: u32) -> bool {
        self.usable >= u64::from(slots)
    }

    /// Whether there may be as many slots as the job needs within the quotas that hosts share. Use
    /// of one quota by instances under different sets is not added up: only a layout decides.
    fn may_hold_within(&self, budget: &mut QuotaBudget<'_>, demand: &Demand, pe: &ParallelEnvironment) -> bool {
        let (least, portion) = (demand.least(), portion(demand, pe));
        let most: Vec<u32> = self
            .shared
            .iter()
            .map(|scopes| budget.most_shared(scopes, least.max(portion)))
            .collect();
        let mut sums = vec![0_u32; self.shared.len()];
        for host in self.hosts.iter().filter(|host| host.usable > 0) {
            let within = || {
                host.within
                    .iter()
                    .map(|(slots, shared)| (*slots.min(&most[*shared]), *shared))
            };
            if within().map(|(slots, _)| slots).fold(0, u32::saturating_add) >= portion {
                within().for_each(|(slots, shared)| sums[shared] = sums[shared].saturating_add(slots));
            }
        }
        let sum = sums
            .iter()
            .zip(&most)
            .map(|(sum, most)| *sum.min(most))
            .fold(0, u32::saturating_add);
        sum >= least
    }

    /// The hosts with room.
    fn in_order(&self) -> Vec<HostRoom> {
        let rooms = self.hosts.iter().filter_map(|host| host.room.as_ref());
        rooms
            .filter(|room| room.slots > 0 || room.master.is_some())
            .cloned()
            .collect()
    }
}
