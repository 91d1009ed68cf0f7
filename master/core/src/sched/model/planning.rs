//! Changes of the model when a start is planned, and when that is taken back.

use super::Model;
use crate::ledger::keys::plan_key;
use crate::ledger::{Booking, Grant, Ledger, LevelRef};
use crate::matching::{Cluster, Demand};
use crate::policy::Classes;
use crate::sched::assign::{Assignment, assign_serial, fit_globally, one_slot};
use crate::sched::filter::standings::RankedInstance;
use crate::sched::order::queue::{Bucket, BucketId};
use proto::id::{QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::GrantedSlots;
use proto::time::{Now, Tick};
use proto::wire::stream::Order;
use std::sync::Arc;

impl Model {
    /// Plans a start: the task counts as placed until the core has judged its order.
    pub(in crate::sched) fn plan(&mut self, seq: SubmitSeq, task: TaskId, assignment: &Assignment, now: Now) {
        let Assignment { granted, pe } = assignment;
        let Some(bucket) = self.queue.bucket(seq) else { return };
        let Some(category) = self.categories.get(self.queue.at(bucket).category) else {
            return;
        };
        let only_slot = match granted.as_slice() {
            [GrantedSlots { instance, slots: 1 }] if pe.is_none() => Some(instance),
            _ => None,
        };
        if category.demand.reservation.is_some() {
            granted
                .iter()
                .for_each(|granted| self.standings.host(&granted.instance.host));
            // The time line holds the advance reservation and not the task; its host may be ranked
            // anew.
            self.ahead.disturbed();
        } else {
            let place = only_slot.and_then(|instance| self.places.place(instance));
            self.standings.planned(granted, place);
            self.filling.planned(granted, only_slot, &category.tally);
        }
        self.file_plan((seq, bucket), task, Grant::of_slots(granted, pe.as_ref()), now);
        self.cools(granted, now.tick);
        debug_assert!(self.is_right(granted, now), "{granted:?}");
    }

    /// Books a planned task, and files its job in its new bucket.
    fn file_plan(&mut self, (seq, bucket): (SubmitSeq, BucketId), task: TaskId, grant: Grant<'_>, now: Now) {
        let Some(job) = self.state.jobs.get(&seq) else { return };
        let key = plan_key(seq, task);
        // All jobs of a category take the same.
        let category = self.categories.get(self.queue.at(bucket).category);
        let Some(charges) = category.map(|category| category.tally.charges.clone()) else {
            return;
        };
        let booking = Booking::new(&self.state.config, charges, grant, now.tick)
            .with_owner(self.state.index.commons.who(&job.spec));
        let moves_others = job.spec.reservation.is_none() && self.moves_others(&booking);
        match job.spec.reservation {
            Some(id) => self.planned_within.entry(id).or_default().hold(key, Arc::new(booking)),
            None => self.planned.book(&self.state.config, key, Arc::new(booking)),
        }
        self.ahead.runs(&self.state, key, &self.planned, now);
        if moves_others {
            self.standings.everything();
        }
        let planned = self.plans.insert(seq, job.spec.array, task, &job.spec.owner.user);
        self.alarms.note(job, self.time);
        self.queue.planned(bucket, seq);
        let (rests, tasks) = self.counts(job, bucket, planned);
        self.queue.file(seq, bucket, rests, tasks);
    }

    /// Starts the only task of a job in the queue instance that is being filled, if no phase could
    /// decide otherwise. The order has to be filed with [`Model::file`] before anything else is
    /// asked of the model.
    ///
    /// `unfiled` are the orders of this function that were not filed yet.
    pub(in crate::sched) fn start_known(
        &mut self,
        seq: SubmitSeq,
        id: BucketId,
        unfiled: &[Order],
        now: Now,
    ) -> Option<Order> {
        let Bucket {
            category,
            class,
            immediate,
            reserve,
            ..
        } = *self.queue.at(id);
        if immediate || reserve || class != Classes::WITHOUT || !self.is_local(now) {
            return None;
        }
        let job = self.state.jobs.get(&seq).filter(|job| job.spec.array.is_none())?;
        let task = self.first_startable(job, now)?;
        let category = self.categories.get(category)?;
        let RankedInstance { instance, place, .. } =
            category.first_open(&self.standings, &self.changes, self.ahead.generation())?;
        if self.ahead.line().keeps_on(&instance.host) {
            return None;
        }
        let headroom = self
            .filling
            .known(instance)
            .filter(|_| self.standings.only_fills(*place))?;
        if !headroom.holds(&category.tally) {
            return None;
        }
        debug_assert!(self.would_take(instance, &category.demand, unfiled, now), "{instance}");
        let (place, Assignment { granted, pe }) = (*place, one_slot(instance));
        self.standings.planned(&granted, Some(place));
        self.filling.planned(
            &granted,
            granted.first().map(|granted| &granted.instance),
            &category.tally,
        );
        Some(Order::Start { seq, task, granted, pe })
    }

    /// Files orders of [`Model::start_known`], each with the bucket of its job.
    pub(in crate::sched) fn file<'o>(&mut self, orders: impl Iterator<Item = (BucketId, &'o Order)> + Clone, now: Now) {
        let starts = orders.filter_map(|(bucket, order)| match order {
            Order::Start { seq, task, granted, .. } => Some(((*seq, bucket), *task, granted)),
            Order::RejectImmediate { .. } | Order::SuspendByThreshold { .. } => None,
        });
        let mut last = None;
        for (job, task, granted) in starts.clone() {
            self.file_plan(job, task, Grant::of_slots(granted, None), now);
            // Most starts are on the host of the one before.
            if last.replace(granted).is_none_or(|last| last != granted) {
                self.cools(granted, now.tick);
            }
        }
        debug_assert!(starts.clone().all(|(_, _, granted)| self.is_right(granted, now)));
    }

    /// Whether only queue instances and their hosts decide about a start: nothing is offered or
    /// limited for the whole cluster, and no calendar is looked ahead at.
    fn is_local(&mut self, now: Now) -> bool {
        if let Some(is_local) = self.is_local {
            return is_local;
        }
        let cluster = self.cluster(now);
        let (global, config) = (cluster.global(), cluster.config);
        let is_limited = config.enabled_quotas().next().is_some() || config.scheduler.maxujobs > 0;
        let is_timeless = !self.ahead.is_on() || self.ahead.closings().is_empty();
        let is_local = !is_limited && is_timeless && global.is_bare() && cluster.is_open_to_all(&global);
        self.is_local = Some(is_local);
        is_local
    }

    /// Whether a queue instance has room for a job of one slot, with these orders booked. It is the
    /// plain way, for assertions.
    fn would_take(&self, instance: &QueueInstanceName, demand: &Demand, unfiled: &[Order], now: Now) -> bool {
        let mut planned = Ledger::default();
        let there = self
            .planned
            .level(LevelRef::Host(&instance.host))
            .into_iter()
            .flat_map(|there| there.since(Tick(0)));
        let unfiled = unfiled.iter().filter_map(|order| match order {
            Order::Start { seq, granted, .. } if granted[0].instance.host == instance.host => {
                let job = self.state.jobs.get(seq)?;
                Some(self.state.booking(&job.spec, Grant::of_slots(granted, None), now.tick))
            }
            _ => None,
        });
        let bookings = there.map(|(_, booking)| Arc::new(booking.clone())).chain(unfiled);
        for (booking, n) in bookings.zip(0..) {
            planned.hold(plan_key(SubmitSeq(n), TaskId(1)), booking);
        }
        let cluster = Cluster {
            planned: Some(&planned),
            ..self.cluster(now)
        };
        let site = cluster.site(instance);
        assign_serial(&cluster, demand, &fit_globally(&cluster, demand), &site).is_ok() && !cluster.is_in_alarm(&site)
    }

    /// Whether the standings of hosts are right, or about to be looked at again.
    fn is_right(&self, granted: &[GrantedSlots], now: Now) -> bool {
        let mut hosts = granted.iter().map(|granted| &granted.instance.host);
        hosts.all(|host| self.standings.is_right(&self.cluster(now), &self.places, host))
    }

    /// Plans a start and returns its order.
    pub(in crate::sched) fn plan_start(
        &mut self,
        seq: SubmitSeq,
        task: TaskId,
        assignment: Assignment,
        now: Now,
    ) -> Order {
        self.plan(seq, task, &assignment, now);
        Order::Start {
            seq,
            task,
            granted: assignment.granted,
            pe: assignment.pe,
        }
    }

    /// Takes a planned start back.
    pub(in crate::sched) fn take_back(&mut self, order: &Order) {
        let Order::Start { seq, task, granted, .. } = order else {
            return;
        };
        let is_shared = self.planned(*seq, *task).is_some_and(|booking| self.is_shared(booking));
        self.unplan(*seq, *task);
        self.disturbed();
        self.ahead.search_anew();
        for granted in granted {
            self.host_changed(&granted.instance.host);
        }
        self.gave_back(is_shared);
        self.refile(*seq);
    }

    /// Follows the event of a placement, whether it was planned or not.
    pub(super) fn placed(&mut self, key: TaskKey, granted: &[GrantedSlots], now: Now) {
        let was_planned = self.planned(key.seq, key.task).is_some();
        self.unplan(key.seq, key.task);
        self.ahead.runs(&self.state, key, &self.state.ledger, now);
        granted
            .iter()
            .for_each(|granted| self.standings.host(&granted.instance.host));
        // A planned start changed the order already.
        if !was_planned
            && self
                .state
                .ledger
                .booking(key)
                .is_some_and(|booking| self.moves_others(booking))
        {
            self.standings.everything();
        }
        self.cools(granted, now.tick);
    }

    pub(super) fn unplan(&mut self, seq: SubmitSeq, task: TaskId) {
        let key = plan_key(seq, task);
        if !self.planned.release(key) {
            self.planned_within.values_mut().any(|planned| planned.release(key));
        }
        self.ahead.renamed(key);
        self.plans.remove(seq, task);
    }

    /// Notes starts on hosts whose load is adjusted for a while.
    pub(super) fn cools(&mut self, granted: &[GrantedSlots], now: Tick) {
        let conf = &self.state.config.scheduler;
        if conf.job_load_adjustments.is_empty() {
            return;
        }
        let decay_s = conf.load_adjustment_decay_time.seconds().unwrap_or(0);
        let until = now.plus_ms(decay_s.saturating_mul(1000));
        for granted in granted {
            *self.cooling.or_default(&granted.instance.host) = until;
        }
    }

    /// Forgets what holds only while nothing but starts is planned.
    pub(super) fn disturbed(&mut self) {
        self.filling.clear();
        self.ahead.disturbed();
        self.is_local = None;
    }
}
