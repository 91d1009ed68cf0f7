//! Tasks whose start is planned, until the core has judged the order for it.

use crate::state::paged::Paged;
use proto::id::{SubmitSeq, TaskId, UserName};
use std::collections::{BTreeMap, BTreeSet};

/// The planned tasks of each job and how many each user has.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    jobs: Paged<SubmitSeq, OfJob>,
    by_owner: BTreeMap<UserName, u32>,
}

/// Those of one job.
#[derive(Clone, Debug)]
struct OfJob {
    owner: UserName,
    tasks: Tasks,
}

/// At least one task. Most jobs have no other.
#[derive(Clone, Debug)]
enum Tasks {
    One(TaskId),
    Several(BTreeSet<TaskId>),
}

impl Tasks {
    /// Takes one in; false if it was there.
    fn insert(&mut self, task: TaskId) -> bool {
        match self {
            Tasks::One(known) if *known == task => false,
            Tasks::One(known) => {
                *self = Tasks::Several(BTreeSet::from([*known, task]));
                true
            }
            Tasks::Several(tasks) => tasks.insert(task),
        }
    }

    fn contains(&self, task: TaskId) -> bool {
        match self {
            Tasks::One(known) => *known == task,
            Tasks::Several(tasks) => tasks.contains(&task),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Tasks::One(_) => 1,
            Tasks::Several(tasks) => u32::try_from(tasks.len()).unwrap_or(u32::MAX),
        }
    }
}

impl Plans {
    /// A task of a user's job is planned. Returns how many of the job are.
    pub fn insert(&mut self, seq: SubmitSeq, task: TaskId, owner: &UserName) -> u32 {
        let mut of_the_job = 1;
        // Most jobs have no other task.
        if let Some(before) = self.jobs.insert(seq, OfJob { owner: owner.clone(), tasks: Tasks::One(task) }) {
            let of_job = self.jobs.get_mut(&seq).expect("it was put there");
            *of_job = before;
            let is_new = of_job.tasks.insert(task);
            of_the_job = of_job.tasks.count();
            if !is_new {
                return of_the_job;
            }
        }
        match self.by_owner.get_mut(owner) {
            Some(count) => *count += 1,
            None => drop(self.by_owner.insert(owner.clone(), 1)),
        }
        of_the_job
    }

    /// A task is planned no longer; false if it was not.
    pub fn remove(&mut self, seq: SubmitSeq, task: TaskId) -> bool {
        let Some(of_job) = self.jobs.get_mut(&seq) else { return false };
        if !of_job.tasks.contains(task) {
            return false;
        }
        let count = self.by_owner.get_mut(&of_job.owner).expect("plans are counted by owner");
        *count -= 1;
        if *count == 0 {
            self.by_owner.remove(&of_job.owner);
        }
        match &mut of_job.tasks {
            Tasks::Several(tasks) if tasks.len() > 1 => _ = tasks.remove(&task),
            Tasks::One(_) | Tasks::Several(_) => _ = self.jobs.remove(&seq),
        }
        true
    }

    /// Whether a task is planned.
    pub fn contains(&self, seq: SubmitSeq, task: TaskId) -> bool {
        self.jobs.get(&seq).is_some_and(|of_job| of_job.tasks.contains(task))
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
        for (seq, task, owner) in [(one, 1, "ann"), (one, 2, "ann"), (one, 2, "ann"), (other, 1, "bob")] {
            plans.insert(seq, TaskId(task), &owner.into());
        }
        assert_eq!((plans.of_job(one), plans.of_job(other), plans.of_job(SubmitSeq(3))), (2, 1, 0));
        assert_eq!((plans.of_owner(&"ann".into()), plans.of_owner(&"bob".into())), (2, 1));
        assert!(plans.contains(one, TaskId(2)) && !plans.contains(one, TaskId(3)));
        assert!(
            plans.remove(one, TaskId(2)) && !plans.remove(one, TaskId(2)) && !plans.remove(SubmitSeq(3), TaskId(1))
        );
        assert!(plans.remove(one, TaskId(1)));
        assert_eq!((plans.of_job(one), plans.of_owner(&"ann".into())), (0, 0));
        assert_eq!((plans.of_job(other), plans.of_owner(&"bob".into())), (1, 1));
    }
}
