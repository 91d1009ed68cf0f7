//! Changes of the model when a start is planned, and when that is taken back.

use super::Model;
use crate::ledger::keys::plan_key;
use crate::ledger::{Booking, Grant};
use crate::sched::assign::Assignment;
use crate::sched::order::queue::BucketId;
use proto::id::{SubmitSeq, TaskId, TaskKey};
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
            let id = only_slot.and_then(|instance| self.instance_ids.id(instance));
            self.standings.planned(granted, id);
            self.filling.planned(granted, only_slot, &category.tally);
        }
        self.file_plan((seq, bucket), task, Grant::of_slots(granted, pe.as_ref()), now);
        self.cools(granted, now.tick);
        debug_assert!(self.is_right(granted, now), "{granted:?}");
    }

    /// Books a planned task, and files its job in its new bucket.
    pub(in crate::sched) fn file_plan(
        &mut self,
        (seq, bucket): (SubmitSeq, BucketId),
        task: TaskId,
        grant: Grant<'_>,
        now: Now,
    ) {
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

    /// Whether the standings of hosts are right, or about to be looked at again.
    pub(in crate::sched) fn is_right(&self, granted: &[GrantedSlots], now: Now) -> bool {
        let mut hosts = granted.iter().map(|granted| &granted.instance.host);
        hosts.all(|host| self.standings.is_right(&self.cluster(now), &self.instance_ids, host))
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
    pub(in crate::sched) fn cools(&mut self, granted: &[GrantedSlots], now: Tick) {
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
