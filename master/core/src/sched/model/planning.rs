//! What becomes of the model when a task is planned, and when that is taken back.

use super::{Model, plan_key};
use crate::ledger::{Booking, Grant};
use crate::matching::{Cluster, Mode};
use crate::sched::assign::Assignment;
use crate::sched::order::Order;
use proto::id::{HostName, SubmitSeq, TaskId};
use proto::job::Granted;
use proto::time::{Now, Tick};
use std::sync::Arc;

impl Model {
    /// Counts a task as placed until the core has judged its order.
    pub(in crate::sched) fn plan(&mut self, seq: SubmitSeq, task: TaskId, assignment: &Assignment, now: Now) {
        let Some(job) = self.state.jobs.get(&seq) else { return };
        let (granted, pe) = (&assignment.granted, assignment.pe.as_ref());
        let key = plan_key(seq, task);
        let grant = Grant::of_slots(granted, pe);
        // The jobs of a category take the same.
        let Some(bucket) = self.queue.bucket(seq) else { return };
        let category = self.categories.get(self.queue.at(bucket).category);
        let Some(charges) = category.map(|category| category.demand.charges.clone()) else { return };
        let booking =
            Booking::new(&self.state.config, charges, grant, now.tick).of(self.state.index.commons.who(&job.spec));
        match job.spec.reservation {
            Some(id) => {
                granted.iter().for_each(|granted| self.standings.host(&granted.instance.host));
                self.planned_within.entry(id).or_default().hold(key, Arc::new(booking));
            }
            None => {
                self.standings.planned(&self.places, &booking);
                self.filling.planned(&booking);
                self.planned.book(&self.state.config, key, Arc::new(booking));
            }
        }
        debug_assert!(granted.iter().all(|granted| self.is_known(&granted.instance.host, now)), "{granted:?}");
        self.ahead.runs(&self.state, key, &self.planned, now);
        self.plans.insert(seq, task, &job.spec.owner.user);
        self.waiting.extend(self.comes_later(job, self.time));
        self.queue.planned(bucket, seq);
        let (rests, tasks) = self.counts(job, bucket);
        self.queue.file(seq, bucket, rests, tasks);
        self.cools(granted, now.tick);
    }

    /// Whether the standings of a host are right, or about to be looked at again.
    fn is_known(&self, host: &HostName, now: Now) -> bool {
        let planned = Some(&self.planned);
        let cluster = Cluster::of(&self.state, &self.observations, Mode::Now).untold();
        self.standings.is_right(&Cluster { planned, now: now.tick, ..cluster }, &self.places, host)
    }

    /// Counts a task as placed, and makes the order for it.
    pub(in crate::sched) fn plan_start(
        &mut self,
        seq: SubmitSeq,
        task: TaskId,
        assignment: Assignment,
        now: Now,
    ) -> Order {
        self.plan(seq, task, &assignment, now);
        Order::Start { seq, task, granted: assignment.granted, pe: assignment.pe }
    }

    /// Takes the plan of a start back.
    pub(in crate::sched) fn take_back(&mut self, order: &Order) {
        let Order::Start { seq, task, granted, .. } = order else { return };
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

    pub(super) fn unplan(&mut self, seq: SubmitSeq, task: TaskId) {
        let key = plan_key(seq, task);
        if !self.planned.release(key) {
            self.planned_within.values_mut().any(|planned| planned.release(key));
        }
        self.ahead.renamed(key);
        self.plans.remove(seq, task);
    }

    /// Tasks start on hosts, whose load is adjusted for that for a while.
    pub(super) fn cools(&mut self, granted: &[Granted], now: Tick) {
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

    /// Something happened other than that a task was planned.
    pub(super) fn disturbed(&mut self) {
        self.filling.clear();
        self.standings.disturbed();
    }
}
