//! The tickets of all tasks, as the last pricing found them.

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

/// What the pending tasks of a class have of one policy: the first ones each of their own, all others the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    steps: Vec<f64>,
    /// What those have that were not looked at.
    pub rest: f64,
}

impl Ladder {
    /// The next task has these; so have, until told otherwise, all after it.
    pub fn push(&mut self, tickets: f64) {
        self.steps.push(tickets);
        self.rest = tickets;
    }

    /// How many have tickets of their own.
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// What the task at a place has.
    pub fn at(&self, place: usize) -> f64 {
        self.steps.get(place).copied().unwrap_or(self.rest)
    }
}

/// What the tasks of a class have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassPrices {
    /// Each running task.
    pub running: Tickets,
    /// Pending tasks, by policy.
    pub overriding: Ladder,
    /// The same.
    pub functional: Ladder,
    /// The same.
    pub share: Ladder,
    /// Where in the ladders the first tasks of jobs are; jobs that are not there come after all of them.
    pub begins: BTreeMap<SubmitSeq, usize>,
    /// How many tasks of each job have left since.
    pub taken: BTreeMap<SubmitSeq, usize>,
}

impl ClassPrices {
    fn place(&self, seq: SubmitSeq) -> usize {
        let taken = self.taken.get(&seq).copied().unwrap_or(0);
        self.begins.get(&seq).map_or(usize::MAX, |begin| begin + taken)
    }

    /// What the next pending task of a job has.
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
    /// By number of the class; those of classes without tickets may be missing.
    pub classes: Vec<ClassPrices>,
    /// The most that any task has, pending or running. 0 if nobody has any.
    pub largest: f64,
    /// What all pending tasks have together: of each job as many tasks as have tickets of their own.
    pub pending: f64,
    /// What all running tasks have together.
    pub running: f64,
    /// How many tasks have been planned since, of classes that have tickets.
    pub planned: usize,
}

impl Prices {
    /// What the next pending task of a job has.
    pub fn of_pending(&self, class: ClassId, seq: SubmitSeq) -> Tickets {
        if class == Classes::WITHOUT {
            return Tickets::default();
        }
        self.classes.get(class.index()).map_or_else(Tickets::default, |prices| prices.pending(seq))
    }

    /// What each running task of a class has.
    pub fn of_running(&self, class: ClassId) -> Tickets {
        self.classes.get(class.index()).map_or_else(Tickets::default, |prices| prices.running)
    }

    /// The next pending task of a job is planned: the one after it is next.
    pub fn take(&mut self, class: ClassId, seq: SubmitSeq) {
        if let Some(prices) = self.classes.get_mut(class.index()).filter(|_| class != Classes::WITHOUT) {
            *prices.taken.entry(seq).or_default() += 1;
            self.planned += 1;
        }
    }
}
