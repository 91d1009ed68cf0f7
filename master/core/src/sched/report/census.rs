//! How many there are of what a pass has to do with, for those who look at what passes cost
//! (`PROFILE`).

use crate::event::InstanceState;
use crate::sched::model::Model;
use crate::state::State;
use crate::state::eligible::{eligible_tasks, job_eligible};
use crate::state::job::{Job, Placement};
use proto::time::Now;

/// The jobs of a cell, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// They could start.
    pub pending: usize,
    /// A task of theirs runs.
    pub running: usize,
    /// All their tasks that are on hosts are stopped.
    pub suspended: usize,
    /// They may not start now: holds, other jobs, limits, a start time.
    pub held: usize,
    /// A task is in error, and no other could start.
    pub in_error: usize,
}

impl JobCounts {
    /// The jobs of a state. It walks over all of them.
    pub fn of_state(state: &State, now: Now) -> JobCounts {
        let mut counts = JobCounts::default();
        // Looking each instance of each task up costs more than all the rest, and mostly none is
        // stopped.
        let some_queue_stops = state.instances.values().any(InstanceState::stops_tasks);
        state
            .jobs
            .values()
            .for_each(|job| *counts.of_kind(state, job, now, some_queue_stops) += 1);
        counts
    }

    /// The jobs in all.
    pub fn all(&self) -> usize {
        let JobCounts {
            pending,
            running,
            suspended,
            held,
            in_error,
        } = self;
        pending + running + suspended + held + in_error
    }

    fn of_kind(&mut self, state: &State, job: &Job, now: Now, some_queue_stops: bool) -> &mut usize {
        if job.active > 0 {
            let is_stopped = |placement: &Placement| match some_queue_stops {
                true => state.is_stopped(placement),
                false => placement.is_stopped(),
            };
            let is_running = job.placements().any(|(_, placement)| !is_stopped(placement));
            return if is_running {
                &mut self.running
            } else {
                &mut self.suspended
            };
        }
        if job_eligible(state, job, now.wall).is_ok() && eligible_tasks(state, job, now).next().is_some() {
            &mut self.pending
        } else if job.tasks.values().any(|task| task.place.error().is_some()) {
            &mut self.in_error
        } else {
            &mut self.held
        }
    }
}

impl Model {
    /// How many kinds of jobs there are to the scheduler.
    pub fn categories(&self) -> usize {
        self.categories.len()
    }
}
