//! The pending tasks of a class in the order in which they would start, listed as far as somebody
//! asked.

use super::class::Members;
use super::pricing::TaskCounts;
use proto::id::SubmitSeq;
use std::collections::BTreeMap;
use std::collections::btree_set::Iter;

/// A pending task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingTask {
    /// Its job.
    pub seq: SubmitSeq,
    /// The least number of slots that it asks for.
    pub slots: u32,
}

/// The pending tasks of a class.
pub struct Line<'a> {
    known: &'a dyn TaskCounts,
    jobs: Iter<'a, SubmitSeq>,
    tasks: Vec<PendingTask>,
    /// The index in `tasks` at which each listed job begins.
    begins: BTreeMap<SubmitSeq, usize>,
}

impl<'a> Line<'a> {
    /// The tasks of a class.
    pub fn new(members: &'a Members, known: &'a dyn TaskCounts) -> Line<'a> {
        Line {
            known,
            jobs: members.pending.iter(),
            tasks: Vec::new(),
            begins: BTreeMap::new(),
        }
    }

    /// The task at a position, if there are so many.
    pub fn get(&mut self, place: usize) -> Option<PendingTask> {
        while self.tasks.len() <= place {
            let seq = *self.jobs.next()?;
            let (tasks, slots) = self.known.waiting(seq);
            self.begins.insert(seq, self.tasks.len());
            self.tasks
                .extend(std::iter::repeat_n(PendingTask { seq, slots }, tasks));
        }
        self.tasks.get(place).copied()
    }

    /// How many tasks are listed, and where each of their jobs begins.
    pub fn listed(self) -> (usize, BTreeMap<SubmitSeq, usize>) {
        (self.tasks.len(), self.begins)
    }
}
