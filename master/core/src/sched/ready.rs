//! Which task of a job is next: those of an array are looked up many at a time.

use super::model::Model;
use proto::id::{SubmitSeq, TaskId};
use proto::time::Now;
use std::collections::{BTreeMap, VecDeque};

/// How many tasks of an array are looked up at a time.
const TASKS_AHEAD: usize = 1_000;

/// Tasks of the jobs at work that were found ready.
#[derive(Clone, Debug, Default)]
pub struct Ready(BTreeMap<SubmitSeq, VecDeque<TaskId>>);

impl Ready {
    /// The next task of a job that may be started now.
    pub fn next(&mut self, model: &Model, seq: SubmitSeq, now: Now) -> Option<TaskId> {
        let job = model.state.jobs.get(&seq)?;
        if job.spec.array.is_none() {
            return model.first_startable(job, now);
        }
        let ready = self.0.entry(seq).or_default();
        while let Some(task) = ready.pop_front() {
            if model.is_startable(job, task, now) {
                return Some(task);
            }
        }
        ready.extend(model.startable(job, now, TASKS_AHEAD));
        let task = ready.pop_front();
        if task.is_none() {
            self.forget(seq);
        }
        task
    }

    /// Looks a job up anew when it is asked for again.
    pub fn forget(&mut self, seq: SubmitSeq) {
        self.0.remove(&seq);
    }
}
