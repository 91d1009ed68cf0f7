//! When jobs are looked at again because time alone changes what may start.

use crate::state::job::Job;
use proto::id::SubmitSeq;
use proto::time::{Now, Tick, Wall};
use std::collections::{BTreeMap, BTreeSet};

/// The next start time (`-a`) and the next end of a pause of each job for which one lies ahead.
///
/// Invariant: `of_job` has what the other two have, by job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms {
    starts: BTreeSet<(Wall, SubmitSeq)>,
    pauses: BTreeSet<(Tick, SubmitSeq)>,
    of_job: BTreeMap<SubmitSeq, (Option<Wall>, Option<Tick>)>,
}

impl Alarms {
    /// Notes the start time of a job, and when the next of its tasks that asked to be run again may
    /// start, in place of what was noted of it before.
    pub fn note(&mut self, job: &Job, now: Now) {
        let start = job.spec.start_after.filter(|at| *at > now.wall);
        self.set(job.seq, start, job.pause_ends(now.tick));
    }

    fn set(&mut self, seq: SubmitSeq, start: Option<Wall>, pause: Option<Tick>) {
        self.forget(seq);
        if start.is_some() || pause.is_some() {
            self.starts.extend(start.map(|at| (at, seq)));
            self.pauses.extend(pause.map(|end| (end, seq)));
            self.of_job.insert(seq, (start, pause));
        }
    }

    /// Takes out what was noted of a job.
    pub fn forget(&mut self, seq: SubmitSeq) {
        let Some((start, pause)) = self.of_job.remove(&seq) else {
            return;
        };
        start.map(|at| self.starts.remove(&(at, seq)));
        pause.map(|end| self.pauses.remove(&(end, seq)));
    }

    /// Takes out a job whose time has come.
    pub fn pop(&mut self, now: Now) -> Option<SubmitSeq> {
        let started = self
            .starts
            .first()
            .filter(|(at, _)| *at <= now.wall)
            .map(|(_, seq)| *seq);
        let over = || {
            self.pauses
                .first()
                .filter(|(end, _)| *end <= now.tick)
                .map(|(_, seq)| *seq)
        };
        let seq = started.or_else(over)?;
        self.forget(seq);
        Some(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_whose_start_is_altered_and_one_that_is_gone_leave_nothing_behind() {
        let (mut alarms, seq) = (Alarms::default(), SubmitSeq(1));
        let at = |wall| Now {
            tick: Tick(1),
            wall: Wall(wall),
        };
        for start in 2_000..2_100 {
            alarms.set(seq, Some(Wall(start)), Some(Tick(start.unsigned_abs())));
        }
        assert_eq!(
            (alarms.starts.len(), alarms.pauses.len(), alarms.of_job.len()),
            (1, 1, 1)
        );
        assert_eq!(alarms.pop(at(2_098)), None, "the last one holds");
        assert_eq!(alarms.pop(at(2_099)), Some(seq));
        alarms.set(seq, Some(Wall(3_000)), None);
        alarms.forget(seq);
        assert!(alarms.starts.is_empty() && alarms.pauses.is_empty() && alarms.of_job.is_empty());
    }
}
