//! When jobs are looked at again because time alone changes what may start.

use crate::state::job::Job;
use proto::id::SubmitSeq;
use proto::time::{Now, Tick, Wall};
use std::collections::BTreeSet;

/// Jobs with a start time (`-a`) or the end of a pause that lies ahead. Each has its next one at
/// least.
#[derive(Clone, Debug, Default)]
pub(super) struct Alarms {
    starts: BTreeSet<(Wall, SubmitSeq)>,
    pauses: BTreeSet<(Tick, SubmitSeq)>,
}

impl Alarms {
    /// Notes the start time of a job, and when the next of its tasks that asked to be run again may
    /// start.
    pub fn note(&mut self, job: &Job, now: Now) {
        let start = job.spec.start_after.filter(|at| *at > now.wall);
        self.starts.extend(start.map(|at| (at, job.seq)));
        self.pauses.extend(job.pause_ends(now.tick).map(|end| (end, job.seq)));
    }

    /// Takes out a job whose time has come.
    pub fn pop(&mut self, now: Now) -> Option<SubmitSeq> {
        if self.starts.first().is_some_and(|(at, _)| *at <= now.wall) {
            return self.starts.pop_first().map(|(_, seq)| seq);
        }
        let is_over = self.pauses.first().is_some_and(|(end, _)| *end <= now.tick);
        if is_over {
            self.pauses.pop_first().map(|(_, seq)| seq)
        } else {
            None
        }
    }
}
