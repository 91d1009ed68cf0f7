//! Starts without the phases, where their outcome is known: only speed depends on it.
//!
//! Most starts of a pass are of one-slot jobs that go, one after the other, to the queue instance
//! that is filled at present. For these the order of the phases is decided before they run: the
//! category's first open instance is the best, and its headroom says whether one more task fits.
//! The orders are the same with and without this file; assertions compare each with the plain way.

use super::{Pass, Slice};
use crate::ledger::keys::plan_key;
use crate::ledger::{Grant, Ledger, LevelRef};
use crate::matching::{Cluster, Demand};
use crate::policy::Classes;
use crate::sched::assign::{Assignment, assign_serial, fit_globally, one_slot};
use crate::sched::filter::standings::RankedInstance;
use crate::sched::model::Model;
use crate::sched::order::heads::Head;
use crate::sched::order::queue::{Bucket, BucketId};
use proto::id::{QueueInstanceName, SubmitSeq, TaskId};
use proto::time::{Now, Tick};
use proto::wire::stream::Order;
use std::cmp::Reverse;
use std::sync::Arc;

/// The most starts that are filed together.
const FILED_TOGETHER: usize = 64;

impl Pass {
    /// Starts the job at the head of a bucket without the phases, if its queue instance is known
    /// without a search. Returns false if it is not.
    ///
    /// This exists only for speed: such starts are decided one after the other, and several of them
    /// are filed together. A processor's cache holds the code of either part, and not of both.
    pub(super) fn start_known(&mut self, model: &mut Model, head: Head, slice: &mut Slice) -> bool {
        let Head {
            seq: Reverse(seq),
            bucket,
            ..
        } = head;
        let is_to_be_tried = !self.failed.contains(&model.queue.at(bucket).category);
        if !is_to_be_tried || self.first(model, bucket) != Some(seq) {
            return false;
        }
        if self.unfiled.len() == FILED_TOGETHER {
            self.file(model, slice);
        }
        let unfiled = &slice.orders[slice.orders.len() - self.unfiled.len()..];
        let Some(order) = model.start_known(seq, bucket, unfiled, self.now) else {
            return false;
        };
        slice.orders.push(order);
        self.unfiled.push((bucket, seq));
        self.push(model, bucket);
        true
    }

    /// Files the starts that the model was not asked to file yet.
    pub(super) fn file(&mut self, model: &mut Model, slice: &Slice) {
        let orders = &slice.orders[slice.orders.len() - self.unfiled.len()..];
        model.file(self.unfiled.iter().map(|(bucket, _)| *bucket).zip(orders), self.now);
        self.unfiled.clear();
    }
}

impl Model {
    /// Starts the only task of a job in the queue instance that is being filled, if no phase could
    /// decide otherwise. The order has to be filed with [`Model::file`] before anything else is
    /// asked of the model.
    ///
    /// `unfiled` are the orders of this function that were not filed yet.
    fn start_known(&mut self, seq: SubmitSeq, id: BucketId, unfiled: &[Order], now: Now) -> Option<Order> {
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
        let RankedInstance { instance, id, .. } =
            category.first_open(&self.standings, &self.changes, self.ahead.generation())?;
        if self.ahead.line().keeps_on(&instance.host) {
            return None;
        }
        let headroom = self
            .filling
            .known(instance)
            .filter(|_| self.standings.only_fills(*id))?;
        if !headroom.holds(&category.tally) {
            return None;
        }
        debug_assert!(self.would_take(instance, &category.demand, unfiled, now), "{instance}");
        let (id, Assignment { granted, pe }) = (*id, one_slot(instance));
        self.standings.planned(&granted, Some(id));
        self.filling.planned(
            &granted,
            granted.first().map(|granted| &granted.instance),
            &category.tally,
        );
        Some(Order::Start { seq, task, granted, pe })
    }

    /// Files orders of [`Model::start_known`], each with the bucket of its job.
    fn file<'o>(&mut self, orders: impl Iterator<Item = (BucketId, &'o Order)> + Clone, now: Now) {
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
        let unfiled = unfiled.iter().filter_map(|order| {
            let Order::Start { seq, granted, .. } = order else {
                return None;
            };
            let job = self.state.jobs.get(seq)?;
            let is_there = granted[0].instance.host == instance.host;
            is_there.then(|| self.state.booking(&job.spec, Grant::of_slots(granted, None), now.tick))
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
}
