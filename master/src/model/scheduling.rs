//! The results of scheduling passes, as the scheduler sends them and as the reader keeps them.

use master_core::event::{Event, Record};
use master_core::sched::{CategoryRow, Priorities, Reservations, TaskPhase};
use proto::id::SubmitSeq;
use proto::wire::view::{PriorityNumbers, ShareNode};
use std::sync::Arc;

/// Whether the results of a pass are to be written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Monitoring {
    /// They are not.
    #[default]
    Off,
    /// Once, after the pass (`qconf -tsm`).
    On,
}

/// News of one or more passes.
#[derive(Debug, Default)]
pub struct SchedulingUpdate {
    /// Passes since the start.
    pub passes: u64,
    /// Priority numbers of all jobs, where they were made again.
    pub priorities: Option<Priorities>,
    /// Nodes of the share tree, where they were made again.
    pub shares: Option<Vec<ShareNode>>,
    /// The categories of all jobs, where they were looked up again.
    pub categories: Option<Vec<CategoryRow>>,
    /// What the last pass keeps for later.
    pub reservations: Arc<Reservations>,
    /// Whether one of the passes is to be written down.
    pub monitoring: Monitoring,
    /// An entry for the file `schedule`.
    pub schedule: Option<String>,
}

/// The results of all passes so far.
#[derive(Debug, Default)]
pub struct SchedulingInfo {
    /// Passes since the start.
    pub passes: u64,
    /// What the last pass keeps for later.
    pub reservations: Arc<Reservations>,
    shares: Vec<ShareNode>,
    categories: Vec<CategoryRow>,
    priorities: Priorities,
}

impl SchedulingInfo {
    /// Takes news in.
    pub fn take(&mut self, update: SchedulingUpdate) {
        let SchedulingUpdate {
            passes,
            priorities,
            shares,
            categories,
            reservations,
            monitoring: _,
            schedule: _,
        } = update;
        (self.passes, self.reservations) = (passes, reservations);
        if let Some(priorities) = priorities {
            self.priorities = priorities;
        }
        if let Some(shares) = shares {
            self.shares = shares;
        }
        if let Some(categories) = categories {
            self.categories = categories;
        }
    }

    /// Forgets jobs that have left.
    pub fn follow(&mut self, record: &Record) {
        if let Event::JobFinished { seq } = &record.event {
            self.priorities.jobs.remove(seq);
            self.priorities.running.remove(seq);
        }
    }

    /// Nodes of the share tree, a parent before its children; none while there is no tree or no
    /// pass was made with it.
    pub fn shares(&self) -> &[ShareNode] {
        &self.shares
    }

    /// The categories of all jobs, by number; none before the first pass.
    pub fn categories(&self) -> &[CategoryRow] {
        &self.categories
    }

    /// The priority numbers of a job's pending or running tasks; zeros before its first pass.
    pub fn priority(&self, job: SubmitSeq, of: TaskPhase) -> PriorityNumbers {
        let Priorities { jobs, running } = &self.priorities;
        let own = (of == TaskPhase::Running).then(|| running.get(&job)).flatten();
        own.or_else(|| jobs.get(&job))
            .map_or_else(PriorityNumbers::default, |numbers| **numbers)
    }
}
