//! Tasks whose start is planned, until the core has judged the order for it.

use crate::collections::paged::PagedMap;
use crate::collections::ranges::TaskRanges;
use proto::id::{SubmitSeq, TaskId, UserName};
use proto::request::TaskRange;
use std::collections::BTreeMap;

/// The planned tasks of each job and how many each user has.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    jobs: PagedMap<SubmitSeq, JobPlan>,
    by_owner: BTreeMap<UserName, u32>,
}

/// The planned tasks of one job.
#[derive(Clone, Debug)]
struct JobPlan {
    owner: UserName,
    tasks: PlannedTasks,
}

/// At least one task. Most jobs have only one; thousands of an array may be planned, mostly
/// neighbours.
#[derive(Clone, Debug)]
enum PlannedTasks {
    One,
    OfArray(Box<TaskRanges>),
}

impl PlannedTasks {
    fn count(&self) -> u32 {
        match self {
            PlannedTasks::One => 1,
            PlannedTasks::OfArray(tasks) => tasks.len(),
        }
    }
}

impl Plans {
    /// Notes a planned task. Returns how many tasks of the job are planned.
    pub fn insert(&mut self, seq: SubmitSeq, array: Option<TaskRange>, task: TaskId, owner: &UserName) -> u32 {
        if array.is_none() {
            // Most jobs have one task, which is never planned twice.
            if self
                .jobs
                .insert(
                    seq,
                    JobPlan {
                        owner: owner.clone(),
                        tasks: PlannedTasks::One,
                    },
                )
                .is_none()
            {
                self.count(owner);
            }
            return 1;
        }
        if self.jobs.get(&seq).is_none() {
            let tasks = PlannedTasks::OfArray(Box::new(TaskRanges::none(array)));
            self.jobs.insert(
                seq,
                JobPlan {
                    owner: owner.clone(),
                    tasks,
                },
            );
        }
        let of_job = self.jobs.get_mut(&seq).expect("it was put there");
        let PlannedTasks::OfArray(tasks) = &mut of_job.tasks else {
            return 1;
        };
        let is_new = tasks.insert(task);
        let of_the_job = tasks.len();
        if is_new {
            self.count(owner);
        }
        of_the_job
    }

    fn count(&mut self, owner: &UserName) {
        match self.by_owner.get_mut(owner) {
            Some(count) => *count += 1,
            None => drop(self.by_owner.insert(owner.clone(), 1)),
        }
    }

    /// Removes a planned task. Returns false if it was not planned.
    pub fn remove(&mut self, seq: SubmitSeq, task: TaskId) -> bool {
        let Some(of_job) = self.jobs.get_mut(&seq) else {
            return false;
        };
        let mut is_last = true;
        if let PlannedTasks::OfArray(tasks) = &mut of_job.tasks {
            if !tasks.take(task) {
                return false;
            }
            is_last = tasks.is_empty();
        }
        let count = self
            .by_owner
            .get_mut(&of_job.owner)
            .expect("plans are counted by owner");
        *count -= 1;
        if *count == 0 {
            self.by_owner.remove(&of_job.owner);
        }
        if is_last {
            self.jobs.remove(&seq);
        }
        true
    }

    /// Whether a task is planned.
    pub fn contains(&self, seq: SubmitSeq, task: TaskId) -> bool {
        self.jobs.get(&seq).is_some_and(|of_job| match &of_job.tasks {
            PlannedTasks::One => true,
            PlannedTasks::OfArray(tasks) => tasks.contains(task),
        })
    }

    /// The planned tasks of an array.
    pub fn of_array(&self, seq: SubmitSeq) -> Option<&TaskRanges> {
        match &self.jobs.get(&seq)?.tasks {
            PlannedTasks::One => None,
            PlannedTasks::OfArray(tasks) => Some(tasks),
        }
    }

    /// How many tasks of a job are planned.
    pub fn of_job(&self, seq: SubmitSeq) -> u32 {
        self.jobs.get(&seq).map_or(0, |of_job| of_job.tasks.count())
    }

    /// How many tasks of a user are planned.
    pub fn of_owner(&self, owner: &UserName) -> u32 {
        self.by_owner.get(owner).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_counts_once_for_its_job_and_its_owner() {
        let mut plans = Plans::default();
        let (one, other) = (SubmitSeq(1), SubmitSeq(2));
        let array = TaskRange::parse("1-9").ok();
        for (seq, array, task, owner) in [
            (one, array, 1, "ann"),
            (one, array, 2, "ann"),
            (one, array, 2, "ann"),
            (other, None, 1, "bob"),
        ] {
            plans.insert(seq, array, TaskId(task), &owner.into());
        }
        assert_eq!(
            (plans.of_job(one), plans.of_job(other), plans.of_job(SubmitSeq(3))),
            (2, 1, 0)
        );
        assert_eq!((plans.of_owner(&"ann".into()), plans.of_owner(&"bob".into())), (2, 1));
        assert!(plans.contains(one, TaskId(2)) && !plans.contains(one, TaskId(3)));
        assert!(plans.contains(other, TaskId(1)) && plans.of_array(other).is_none());
        assert!(plans.of_array(one).unwrap().iter().eq([TaskId(1), TaskId(2)]));
        assert!(
            plans.remove(one, TaskId(2)) && !plans.remove(one, TaskId(2)) && !plans.remove(SubmitSeq(3), TaskId(1))
        );
        assert!(plans.remove(one, TaskId(1)));
        assert_eq!((plans.of_job(one), plans.of_owner(&"ann".into())), (0, 0));
        assert_eq!((plans.of_job(other), plans.of_owner(&"bob".into())), (1, 1));
    }
}
