//! The tickets of all tasks, as they were computed last.

use super::class::{ClassId, Classes};
use proto::id::SubmitSeq;
use std::collections::BTreeMap;

/// The tickets of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tickets {
    /// From the override policy.
    pub overriding: f64,
    /// From the functional policy.
    pub functional: f64,
    /// From the share tree.
    pub share: f64,
}

impl Tickets {
    /// All together.
    pub fn sum(self) -> f64 {
        self.overriding + self.functional + self.share
    }
}

/// The tickets of a class's pending tasks from one policy: the first ones have their own, all
/// others the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    steps: Vec<f64>,
    /// The tickets of tasks that were not looked at.
    pub rest: f64,
}

impl Ladder {
    /// Adds the tickets of the next task. Until more are added, all later ones have them too.
    pub fn push(&mut self, tickets: f64) {
        self.steps.push(tickets);
        self.rest = tickets;
    }

    /// The number of tasks with tickets of their own.
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// The tickets of the task at a position.
    pub fn at(&self, place: usize) -> f64 {
        self.steps.get(place).copied().unwrap_or(self.rest)
    }
}

/// The tickets of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassPrices {
    /// Of each running task.
    pub running: Tickets,
    /// Of pending tasks, from the override policy.
    pub overriding: Ladder,
    /// Of pending tasks, from the functional policy.
    pub functional: Ladder,
    /// Of pending tasks, from the share tree.
    pub share: Ladder,
    /// The position in the ladders of the first task of each job. Jobs that are not here come after
    /// all of them.
    pub begins: BTreeMap<SubmitSeq, usize>,
    /// The number of tasks of each job that have left since.
    pub taken: BTreeMap<SubmitSeq, usize>,
}

impl ClassPrices {
    fn place(&self, seq: SubmitSeq) -> usize {
        let taken = self.taken.get(&seq).copied().unwrap_or(0);
        self.begins.get(&seq).map_or(usize::MAX, |begin| begin + taken)
    }

    /// The tickets of the next pending task of a job.
    pub fn pending(&self, seq: SubmitSeq) -> Tickets {
        let place = self.place(seq);
        Tickets {
            overriding: self.overriding.at(place),
            functional: self.functional.at(place),
            share: self.share.at(place),
        }
    }
}

/// The tickets of all tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// By number of the class. Classes without tickets may be missing.
    pub classes: Vec<ClassPrices>,
    /// The most tickets of any task, pending or running. 0 if nobody has any.
    pub largest: f64,
    /// The tickets of all pending tasks together: for each job, of as many tasks as have tickets of
    /// their own.
    pub pending: f64,
    /// The tickets of all running tasks together.
    pub running: f64,
    /// The number of tasks that were planned since, of classes with tickets.
    pub planned: usize,
}

impl Prices {
    /// The tickets of the next pending task of a job.
    pub fn of_pending(&self, class: ClassId, seq: SubmitSeq) -> Tickets {
        if class == Classes::WITHOUT {
            return Tickets::default();
        }
        self.classes
            .get(class.index())
            .map_or_else(Tickets::default, |prices| prices.pending(seq))
    }

    /// The tickets of each running task of a class.
    pub fn of_running(&self, class: ClassId) -> Tickets {
        self.classes
            .get(class.index())
            .map_or_else(Tickets::default, |prices| prices.running)
    }

    /// Notes that the next pending task of a job is planned, so that the one after it is next.
    pub fn take(&mut self, class: ClassId, seq: SubmitSeq) {
        if let Some(prices) = self
            .classes
            .get_mut(class.index())
            .filter(|_| class != Classes::WITHOUT)
        {
            *prices.taken.entry(seq).or_default() += 1;
            self.planned += 1;
        }
    }
}
