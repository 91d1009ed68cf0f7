//! The next ready task of a job. Tasks of an array are looked up many at a time.

use crate::sched::model::Model;
use proto::id::{SubmitSeq, TaskId};
use proto::time::Now;
use std::collections::{BTreeMap, VecDeque};

/// Tasks of an array that are looked up at first: in most passes few of them start.
const FIRST_AHEAD: usize = 16;

/// The most tasks of an array that are looked up at a time.
const MOST_AHEAD: usize = 1_000;

/// Ready tasks of the jobs that the pass works on.
#[derive(Clone, Debug, Default)]
pub struct ReadyQueue(BTreeMap<SubmitSeq, TaskBatch>);

/// Tasks of one job.
#[derive(Clone, Debug)]
struct TaskBatch {
    tasks: VecDeque<TaskId>,
    /// How many are looked up when these are used up.
    next: usize,
}

impl Default for TaskBatch {
    fn default() -> Self {
        TaskBatch {
            tasks: VecDeque::new(),
            next: FIRST_AHEAD,
        }
    }
}

impl ReadyQueue {
    /// The next task of a job that may be started now.
    pub fn next(&mut self, model: &Model, seq: SubmitSeq, now: Now) -> Option<TaskId> {
        let job = model.state.jobs.get(&seq)?;
        if job.spec.array.is_none() {
            return model.first_startable(job, now);
        }
        let ready = self.0.entry(seq).or_default();
        while let Some(task) = ready.tasks.pop_front() {
            if model.is_startable(job, task, now) {
                return Some(task);
            }
        }
        ready.tasks.extend(model.startable(job, now, ready.next));
        ready.next = MOST_AHEAD.min(ready.next * 2);
        let task = ready.tasks.pop_front();
        if task.is_none() {
            self.forget(seq);
        }
        task
    }

    /// Forgets a job, so that it is looked up anew when it is asked for again.
    pub fn forget(&mut self, seq: SubmitSeq) {
        self.0.remove(&seq);
    }
}
