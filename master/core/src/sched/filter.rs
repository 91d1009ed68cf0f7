//! The filter phase: which queue instances may suit a category, and which of them were refused.

pub(crate) mod categories;
pub mod category_key;
pub(crate) mod changes;
pub(crate) mod columns;
mod freshness;
pub(crate) mod instance_ids;
pub(crate) mod recent_instances;
pub(crate) mod standings;
pub(crate) mod suitability;

use super::assign::{
    Assignment, SlotSearchResult, Supply, WholeSupply, assign_filling, assign_serial, fit_globally, try_parallel,
};
use crate::matching::{Cluster, Demand, Fit, InstanceView, Tally};
use crate::reason::{Obstacle, Reason};
use changes::Changes;
use columns::Sieve;
use freshness::{CategoryVerdict, ClosedInstances, Stamp, UnmetWishes};
use instance_ids::{InstanceId, InstanceIds};
use proto::complex::Complex;
use proto::id::{HostName, QueueInstanceName};
use recent_instances::RecentInstances;
use standings::{RankedInstance, Standings};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;
use suitability::Suitability;

/// Matches in vain after which columns are kept of what a category takes.
const MANY_IN_VAIN: usize = 3;

/// Jobs that ask for the same, and the queue instances that are closed to them.
///
/// All jobs of a category get the same answer, so it is tried once and not once for each job. Each
/// queue instance that takes jobs at all is either open, or closed since it was last tried in vain.
///
/// - [`Category::assign`] looks for a place. It first opens again what changed since the last try
///   ([`ClosedInstances::catch_up`]), then tries open instances, best first, and closes those that
///   refuse. It needs fresh [`Standings`]: the model refreshes them before each pass. A success is
///   not booked here: the model plans it, which updates the standings, and the category sees that
///   there.
/// - [`Category::first_open`] and [`Category::not_closed`] only look. The first is the short way
///   for a job after one that was placed, and says nothing unless the stamp is the present one.
///
/// What invalidates what is in the table of ARCHITECTURE.md "The scheduler on one page";
/// [`freshness`] has the contract. Whoever changes something that may let a job in writes it to
/// [`Changes`]; nothing else may touch the fields here. What a job asks for never changes within a
/// category: an altered job moves to another one. Reasons are not kept:
/// [`Findings`](crate::sched::report::finding::Findings) finds them when somebody asks.
#[derive(Clone, Debug)]
pub struct Category {
    /// What each of its jobs asks for.
    pub demand: Arc<Demand>,
    /// The amounts of `demand`, close together in memory.
    pub tally: Tally,
    /// How long its jobs need their slots, in milliseconds. `None` means for ever.
    pub length_ms: Option<u64>,
    /// How far changes were read at the last try; none before the first.
    stamp: Option<Stamp>,
    verdict: CategoryVerdict,
    closed: ClosedInstances,
    wishes: UnmetWishes,
    /// How many queue instances the last try matched in vain.
    in_vain: usize,
}

/// One search for a place.
struct Attempt<'a> {
    cluster: &'a Cluster<'a>,
    globally: &'a Fit,
    filling: &'a mut RecentInstances,
    /// Queue instances that were found to be in alarm.
    alarmed: Vec<InstanceId>,
}

impl Category {
    /// A category that was never tried.
    pub fn new(complex: &Complex, demand: Arc<Demand>, length_ms: Option<u64>) -> Category {
        Category {
            tally: Tally::new(complex, &demand),
            demand,
            length_ms,
            stamp: None,
            verdict: CategoryVerdict::default(),
            closed: ClosedInstances::default(),
            wishes: UnmetWishes::default(),
            in_vain: 0,
        }
    }

    /// Returns slots for one task of the category, or `None` if there is no place for it now.
    /// `standings` have to be fresh.
    pub fn assign(
        &mut self,
        cluster: &Cluster<'_>,
        ids: &InstanceIds,
        standings: &mut Standings,
        changes: &Changes,
        filling: &mut RecentInstances,
    ) -> Option<Assignment> {
        let kept = cluster.window.map_or(0, |window| window.line.generation());
        let stamp = Stamp::now(changes, kept);
        if standings.is_empty() || self.verdict.is_in_vain() && self.stamp == Some(stamp) {
            return None;
        }
        let was_exhausted = self.verdict == CategoryVerdict::Exhausted;
        let changed = self.catch_up(changes, stamp).filter(|_| was_exhausted);
        let mut in_vain = CategoryVerdict::Failed;
        self.in_vain = 0;
        let globally = fit_globally(cluster, &self.demand);
        let attempt = Attempt {
            cluster,
            globally: &globally,
            filling,
            alarmed: Vec::new(),
        };
        let found = if !globally.holds(self.demand.least()) {
            None
        } else if self.demand.pe.is_some() {
            let SlotSearchResult { found, roomless } = self.try_parallel(cluster, &globally, ids, standings);
            self.close_hosts(cluster, ids, standings, &roomless);
            found.ok()
        } else if self.has_wishes() {
            self.best_that_fits(attempt, standings)
        } else {
            in_vain = CategoryVerdict::Exhausted;
            self.first_that_fits(attempt, standings, changed)
        };
        if self.in_vain >= MANY_IN_VAIN {
            standings.contest(&self.demand);
        }
        self.verdict = found.as_ref().map_or(in_vain, |_| CategoryVerdict::Open);
        found
    }

    /// The queue instance that the next try would try first, if that is known: nothing has changed
    /// since a job without soft requests was placed. `generation` counts how often kept slots were
    /// given up ([`Lookahead::generation`](crate::sched::reserve::ahead::Lookahead::generation)).
    pub fn first_open<'l>(
        &self,
        standings: &'l Standings,
        changes: &Changes,
        generation: u64,
    ) -> Option<&'l RankedInstance> {
        let is_as_before = self.stamp == Some(Stamp::now(changes, generation)) && self.verdict == CategoryVerdict::Open;
        let first = || standings.iter().find(|ranked| !self.closed.contains(ranked.id));
        if is_as_before { first() } else { None }
    }

    /// Opens again what changed since the last try, and returns it. `None` means that everything
    /// may have changed.
    fn catch_up(&mut self, changes: &Changes, stamp: Stamp) -> Option<Vec<InstanceId>> {
        let before = self.stamp.replace(stamp);
        let since = before.and_then(|before| changes.since(before.instances));
        let mut changed: Option<Vec<InstanceId>> = since.map(Iterator::collect);
        let is_given_up = before.map_or(0, |before| before.kept) != stamp.kept;
        if is_given_up {
            let ids = self.closed.take_kept_for_later();
            changed.iter_mut().for_each(|changed| changed.extend(&ids));
        }
        self.closed.open(changed.as_deref());
        self.wishes.catch_up(changed.as_deref(), changes);
        let is_quota_returned = before.map_or(0, |before| before.quotas) != stamp.quotas;
        // What a quota closed may be anywhere, so all instances are looked at again.
        let is_anywhere = (is_quota_returned || is_given_up) && self.closed.open_by_quota();
        changed.filter(|_| !is_anywhere)
    }

    /// The queue instances that take jobs and are not closed, best first.
    pub fn not_closed(&self, standings: &Standings) -> Vec<QueueInstanceName> {
        standings
            .iter()
            .filter(|ranked| !self.closed.contains(ranked.id))
            .map(name)
            .collect()
    }

    fn close(&mut self, id: InstanceId, reasons: &[Reason]) {
        if reasons.iter().any(|reason| matches!(reason.what, Obstacle::Quota(_))) {
            self.closed.close_by_quota(id);
        } else {
            self.closed.close(id);
        }
    }

    fn has_wishes(&self) -> bool {
        !self.demand.soft.is_empty() || !self.demand.soft_queues.is_empty()
    }

    /// Places a task in the first open queue instance that takes it, and closes those before it. If
    /// only changed instances can be open, no other is looked at.
    fn first_that_fits(
        &mut self,
        mut attempt: Attempt<'_>,
        standings: &mut Standings,
        changed: Option<Vec<InstanceId>>,
    ) -> Option<Assignment> {
        let demand = self.demand.clone();
        let sieve = standings.sieve(&demand);
        let found = match changed {
            None => self.first_among(&mut attempt, &sieve, standings.iter()),
            Some(ids) => {
                let mut open: Vec<&RankedInstance> = ids.iter().filter_map(|id| standings.ranked(*id)).collect();
                open.sort_unstable();
                open.dedup();
                self.first_among(&mut attempt, &sieve, open.into_iter())
            }
        };
        attempt.alarmed.into_iter().for_each(|id| standings.close(id));
        found
    }

    fn first_among<'a>(
        &mut self,
        attempt: &mut Attempt<'_>,
        sieve: &Sieve<'_>,
        mut standings: impl Iterator<Item = &'a RankedInstance>,
    ) -> Option<Assignment> {
        standings.find_map(|ranked| {
            let is_open = self.is_open(ranked.id, sieve);
            is_open.then(|| self.try_on(attempt, ranked)).flatten()
        })
    }

    /// Whether a queue instance may have room. Closes one that has too little of something.
    fn is_open(&mut self, id: InstanceId, sieve: &Sieve<'_>) -> bool {
        if self.closed.contains(id) {
            return false;
        }
        let may_have = sieve.lets_through(id);
        if !may_have {
            self.closed.close(id);
        }
        may_have
    }

    /// Places a task with soft requests in the open queue instance that leaves fewest of them
    /// unmet.
    ///
    /// Within a pass hosts only fill up, so a remembered count only gets worse. It is counted again
    /// when the instance's turn comes.
    fn best_that_fits(&mut self, mut attempt: Attempt<'_>, standings: &mut Standings) -> Option<Assignment> {
        let cluster = attempt.cluster;
        let demand = self.demand.clone();
        let sieve = standings.sieve(&demand);
        let open: Vec<&RankedInstance> = standings
            .iter()
            .filter(|ranked| self.is_open(ranked.id, &sieve))
            .collect();
        let counted = |(index, ranked): (usize, &&RankedInstance)| Reverse((self.wishes_left(cluster, ranked), index));
        let counted: Vec<_> = open.iter().enumerate().map(counted).collect();
        let (mut heap, mut found) = (BinaryHeap::from(counted), None);
        while let Some(Reverse((violations, index))) = heap.pop() {
            let ranked = open[index];
            let current = cluster.violations(&ranked.instance, &self.demand);
            self.wishes.set(ranked.id, current);
            if current > violations {
                heap.push(Reverse((current, index)));
                continue;
            }
            found = self.try_on(&mut attempt, ranked);
            if found.is_some() {
                break;
            }
        }
        attempt.alarmed.into_iter().for_each(|id| standings.close(id));
        found
    }

    /// Unmet soft requests of a queue instance, as last counted.
    fn wishes_left(&mut self, cluster: &Cluster<'_>, ranked: &RankedInstance) -> u32 {
        let Category { wishes, demand, .. } = self;
        wishes.of(ranked.id, || cluster.violations(&ranked.instance, demand))
    }

    fn try_on(
        &mut self,
        attempt: &mut Attempt<'_>,
        RankedInstance { instance, id, .. }: &RankedInstance,
    ) -> Option<Assignment> {
        let Attempt {
            cluster,
            globally,
            filling,
            alarmed,
        } = attempt;
        let site = cluster.site(instance);
        let tried = match cluster.window {
            Some(window) if !window.is_now_on(instance) => assign_serial(cluster, &self.demand, globally, &site),
            Some(_) | None => assign_filling(cluster, &self.demand, globally, &site, filling.headroom(instance)),
        };
        match tried {
            Err(reasons) => {
                self.in_vain += 1;
                self.close(*id, &reasons);
                if cluster.window.is_some_and(|window| window.keeps_on(instance)) {
                    self.closed.is_kept_for_later(*id);
                }
            }
            // Bookings for the whole cluster may count towards a threshold on every host.
            Ok(_) if cluster.is_in_alarm(&site) => alarmed.push(*id),
            Ok(assignment) => return Some(assignment),
        }
        None
    }

    /// Finds slots for a parallel job.
    fn try_parallel(
        &mut self,
        cluster: &Cluster<'_>,
        globally: &Fit,
        ids: &InstanceIds,
        standings: &Standings,
    ) -> SlotSearchResult {
        let demand = self.demand.clone();
        let (suitability, sieve) = (Suitability::new(cluster, &demand), standings.sieve(&demand));
        let wishes = self.has_wishes();
        let rest = standings.iter();
        let mut open = OpenInstances {
            category: self,
            cluster,
            ids,
            standings,
            suitability,
            sieve,
            rest,
            order: Vec::new(),
        };
        if !wishes {
            return try_parallel(cluster, &demand, globally, &mut open);
        }
        // The instance with fewest unmet soft requests is known only after all were looked at.
        while open.next().is_some() {}
        let mut order = open.order;
        order.sort_by_cached_key(|site| cluster.violations(site.instance, &demand));
        try_parallel(cluster, &demand, globally, &mut WholeSupply::new(&order))
    }

    /// Closes the queue instances of hosts that have no room for a parallel job.
    fn close_hosts(
        &mut self,
        cluster: &Cluster<'_>,
        ids: &InstanceIds,
        standings: &Standings,
        roomless: &BTreeSet<HostName>,
    ) {
        let ids = roomless
            .iter()
            .filter_map(|host| ids.site(host))
            .flat_map(|site| &site.ids);
        for RankedInstance { instance, id, .. } in ids.filter_map(|id| standings.ranked(*id)) {
            self.in_vain += 1;
            self.closed.close(*id);
            if cluster.window.is_some_and(|window| window.keeps_on(instance)) {
                self.closed.is_kept_for_later(*id);
            }
        }
    }
}

/// The queue instances that a parallel job may have, best first, looked up one after the other.
/// Others that are met on the way are closed.
struct OpenInstances<'c, 'a, 'l, I> {
    category: &'c mut Category,
    cluster: &'c Cluster<'a>,
    ids: &'c InstanceIds,
    standings: &'l Standings,
    suitability: Suitability<'c>,
    sieve: Sieve<'l>,
    rest: I,
    order: Vec<InstanceView<'a, 'l>>,
}

impl<'a, 'l, I: Iterator<Item = &'l RankedInstance>> OpenInstances<'_, 'a, 'l, I> {
    /// Looks up the next one.
    fn next(&mut self) -> Option<InstanceView<'a, 'l>> {
        loop {
            let ranked = self.rest.next()?;
            if let Some(site) = self.look(ranked) {
                self.order.push(site);
                return Some(site);
            }
        }
    }

    /// A queue instance, if it is open.
    fn look(&mut self, ranked: &'l RankedInstance) -> Option<InstanceView<'a, 'l>> {
        if !self.category.is_open(ranked.id, &self.sieve) {
            return None;
        }
        let site = self.cluster.site(&ranked.instance);
        if self.suitability.unsuitable(&site).is_some() {
            self.category.closed.close(ranked.id);
            return None;
        }
        (!self.cluster.is_in_alarm(&site)).then_some(site)
    }
}

impl<'a, 'l, I: Iterator<Item = &'l RankedInstance>> Supply<'a, 'l> for OpenInstances<'_, 'a, 'l, I> {
    fn get(&mut self, at: usize) -> Option<InstanceView<'a, 'l>> {
        while self.order.len() <= at {
            self.next()?;
        }
        self.order.get(at).copied()
    }

    fn beside(&mut self, site: InstanceView<'a, 'l>) -> Vec<InstanceView<'a, 'l>> {
        let ids = self.ids.site(&site.instance.host).map_or(&[][..], |site| &site.ids);
        if ids.len() == 1 {
            return vec![site];
        }
        let mut standings: Vec<&'l RankedInstance> = ids.iter().filter_map(|id| self.standings.ranked(*id)).collect();
        standings.sort_unstable();
        standings.into_iter().filter_map(|ranked| self.look(ranked)).collect()
    }

    fn is_short(&self) -> bool {
        true
    }
}

fn name(ranked: &RankedInstance) -> QueueInstanceName {
    ranked.instance.clone()
}
