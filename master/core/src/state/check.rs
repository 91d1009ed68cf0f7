//! The invariants of a state, asserted.

use super::State;
use super::index::Index;
use super::job::Job;
use super::requests::renewed;
use crate::ledger::keys::block_of;
use proto::id::TaskKey;
use std::collections::BTreeSet;

impl State {
    /// Asserts every invariant. It walks over everything: for tests, for `gridwright-master check`,
    /// and after a restore.
    ///
    /// A job without tasks is allowed only between the end of its last task and its `JobFinished`,
    /// which one input brings together: call it between inputs.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        assert_eq!(self.by_number.len(), self.jobs.len(), "every job has one number");
        for (seq, job) in self.jobs.iter() {
            assert_eq!(
                self.by_number.get(&job.number),
                Some(seq),
                "the number of job {} leads to it",
                job.number
            );
            assert!(!job.is_empty(), "job {} has no task left", job.number);
            self.check_job(job);
        }
        let placed: BTreeSet<TaskKey> = self
            .jobs
            .values()
            .flat_map(Job::placements)
            .map(|(_, placement)| placement.key)
            .collect();
        self.check_bookings(&placed);
        self.check_usage();
        let mut recounted = self.ledger.clone();
        recounted.recount(&self.config);
        assert_eq!(
            self.ledger.quotas(),
            recounted.quotas(),
            "the quotas count what is booked"
        );
        assert_eq!(
            self.index,
            Index::of_state(self),
            "the index is what follows from the state"
        );
        let mut derived = self.config.objects();
        derived.resolve();
        assert_eq!(self.config, derived, "what is derived is what follows from the objects");
    }

    /// Exactly the placed tasks are booked, each once, and what reservations have whose time is
    /// now.
    fn check_bookings(&self, placed: &BTreeSet<TaskKey>) {
        let within = self
            .reservations
            .values()
            .flat_map(|reservation| reservation.ledger.keys());
        let tasks = self.ledger.keys().filter(|key| block_of(*key).is_none());
        let booked: Vec<TaskKey> = tasks.chain(within).collect();
        assert_eq!(booked.len(), placed.len(), "each placed task is booked once");
        assert!(
            booked.iter().all(|key| placed.contains(key)),
            "exactly the placed tasks are booked"
        );
        let running = self
            .reservations
            .values()
            .filter(|reservation| reservation.is_running());
        let blocks = self.ledger.keys().filter_map(block_of);
        assert!(
            blocks.eq(running.map(|reservation| reservation.id)),
            "what running reservations have is booked"
        );
        self.ledger.check();
        self.reservations
            .values()
            .for_each(|reservation| reservation.ledger.check());
    }

    fn check_job(&self, job: &Job) {
        let is_kept = renewed(&self.config.complex, &job.spec.requests).is_none();
        assert!(
            is_kept,
            "the requests of job {} are in the form in which they are kept",
            job.number
        );
        assert_eq!(
            job.ready,
            job.found_ready(self.now.tick),
            "the ready tasks of job {} are kept",
            job.number
        );
        assert_eq!(
            job.active as usize,
            job.placements().count(),
            "the active tasks of job {} are counted",
            job.number
        );
        for (id, task) in job.tasks.iter() {
            assert!(
                !job.untouched.contains(*id),
                "task {} is in one place",
                job.task_name(*id)
            );
            let attempt = task
                .place
                .placement()
                .map_or(task.attempts, |placement| placement.key.attempt);
            assert_eq!(
                attempt,
                task.attempts,
                "the attempts of {} are counted",
                job.task_name(*id)
            );
        }
        let waits = job.waits_for.union(&job.array_waits_for);
        assert!(
            waits.into_iter().all(|seq| *seq != job.seq),
            "job {} does not wait for itself",
            job.number
        );
    }
}
