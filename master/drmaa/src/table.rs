//! The jobs of a session: which live, which have ended and can be reaped, which are gone.

use crate::ended::{Deletion, TaskEnd};
use crate::ids::JobId;
use proto::accounting::AccountingRecord;
use proto::id::{JobNumber, TaskId};
use proto::request::TaskRange;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The only task of a job that is not an array.
const ONLY: TaskId = TaskId(1);

/// Reaped tasks that `ended` may name.
const REAPED_MAX: usize = 1_000;

/// The jobs of a session. Invariant: `ended` names each task that has ended, perhaps some that were
/// reaped since; `live` and `unreaped` count the tasks of those states.
#[derive(Default)]
pub struct JobTable {
    jobs: HashMap<JobNumber, SessionJob>,
    /// Ended tasks in the order of their ends.
    ended: VecDeque<JobId>,
    live: usize,
    unreaped: usize,
}

struct SessionJob {
    is_array: bool,
    /// The tasks that are not reaped.
    tasks: BTreeMap<TaskId, TaskState>,
}

enum TaskState {
    Live { deletion: Deletion },
    Ended(TaskEnd),
}

/// What the table knows about an identifier.
#[derive(Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It is not a job of this session, or was reaped.
    Gone,
    /// The session has never had a job of this number.
    Unknown,
    /// It has not ended.
    Live,
    /// It has ended.
    Ended(TaskEnd),
}

impl JobTable {
    /// Adds a job with these live tasks. A job that is there stays as it is.
    pub fn add(&mut self, number: JobNumber, tasks: impl IntoIterator<Item = TaskId>, is_array: bool) {
        if self.jobs.contains_key(&number) {
            return;
        }
        let live = |task| (task, TaskState::Live { deletion: Deletion::No });
        let tasks: BTreeMap<TaskId, TaskState> = tasks.into_iter().map(live).collect();
        self.live += tasks.len();
        self.jobs.insert(number, SessionJob { is_array, tasks });
    }

    /// Adds a submitted job.
    pub fn add_submitted(&mut self, number: JobNumber, array: Option<TaskRange>) {
        match array {
            Some(range) => self.add(number, range.iter(), true),
            None => self.add(number, [ONLY], false),
        }
    }

    /// Whether a job was ever of this session.
    pub fn has(&self, number: JobNumber) -> bool {
        self.jobs.contains_key(&number)
    }

    /// Notes that a live task is being deleted.
    pub fn deleting(&mut self, number: JobNumber, task: TaskId) {
        if let Some(TaskState::Live { deletion }) = self.state(number, task) {
            *deletion = Deletion::Yes;
        }
    }

    /// Notes an attempt's record as the end of a live task. Returns the identifier if that is news.
    pub fn end_with(&mut self, number: JobNumber, task: TaskId, record: Box<AccountingRecord>) -> Option<JobId> {
        let deletion = match self.state(number, task)? {
            TaskState::Live { deletion } => *deletion,
            TaskState::Ended(_) => return None,
        };
        self.end(number, task, TaskEnd::of_record(record, deletion))
    }

    /// Notes the end of a live task. Returns the identifier if that is news.
    pub fn end(&mut self, number: JobNumber, task: TaskId, end: TaskEnd) -> Option<JobId> {
        let job = self.jobs.get_mut(&number)?;
        let state = job.tasks.get_mut(&task)?;
        if let TaskState::Ended(_) = state {
            return None;
        }
        *state = TaskState::Ended(end);
        let id = JobId {
            number,
            task: job.is_array.then_some(task),
        };
        self.live -= 1;
        self.unreaped += 1;
        self.ended.push_back(id);
        Some(id)
    }

    /// Looks a job or task up.
    pub fn look(&self, id: JobId) -> Knowledge {
        let Some(job) = self.jobs.get(&id.number) else {
            return Knowledge::Unknown;
        };
        let task = match (job.is_array, id.task) {
            (true, Some(task)) => task,
            (false, None) => ONLY,
            (true, None) | (false, Some(_)) => return Knowledge::Gone,
        };
        match job.tasks.get(&task) {
            None => Knowledge::Gone,
            Some(TaskState::Live { .. }) => Knowledge::Live,
            Some(TaskState::Ended(end)) => Knowledge::Ended(end.clone()),
        }
    }

    /// Takes the end of a task out, once.
    pub fn reap(&mut self, id: JobId) -> Option<TaskEnd> {
        let job = self.jobs.get_mut(&id.number)?;
        let task = id.task.unwrap_or(ONLY);
        if job.is_array != id.task.is_some() || !matches!(job.tasks.get(&task), Some(TaskState::Ended(_))) {
            return None;
        }
        self.unreaped -= 1;
        let reaped = match job.tasks.remove(&task) {
            Some(TaskState::Ended(end)) => Some(end),
            Some(TaskState::Live { .. }) | None => None,
        };
        self.forget_reaped();
        reaped
    }

    /// A session that waits for each job by its number would keep them all in `ended`.
    fn forget_reaped(&mut self) {
        if self.ended.len() < 2 * self.unreaped + REAPED_MAX {
            return;
        }
        let is_ended = |id: &JobId| {
            let job = self.jobs.get(&id.number);
            let state = job.and_then(|job| job.tasks.get(&id.task.unwrap_or(ONLY)));
            matches!(state, Some(TaskState::Ended(_)))
        };
        self.ended.retain(is_ended);
    }

    /// Takes the oldest end out.
    pub fn reap_any(&mut self) -> Option<(JobId, TaskEnd)> {
        while let Some(id) = self.ended.pop_front() {
            if let Some(end) = self.reap(id) {
                return Some((id, end));
            }
        }
        None
    }

    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.live == 0 && self.unreaped == 0
    }

    /// The tasks that have not ended.
    pub fn live(&self) -> Vec<JobId> {
        self.tasks_where(|state| matches!(state, TaskState::Live { .. }))
    }

    /// The tasks that are not reaped.
    pub fn unreaped(&self) -> Vec<JobId> {
        self.tasks_where(|_| true)
    }

    /// The jobs that have live tasks, each once.
    pub fn live_jobs(&self) -> Vec<JobNumber> {
        let mut numbers: Vec<JobNumber> = self.live().into_iter().map(|id| id.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The live tasks of a job.
    pub fn live_tasks(&self, number: JobNumber) -> Vec<TaskId> {
        let tasks = self.jobs.get(&number).into_iter().flat_map(|job| &job.tasks);
        tasks
            .filter(|(_, state)| matches!(state, TaskState::Live { .. }))
            .map(|(task, _)| *task)
            .collect()
    }

    fn tasks_where(&self, is_meant: impl Fn(&TaskState) -> bool) -> Vec<JobId> {
        let mut found: Vec<JobId> = Vec::new();
        for (number, job) in &self.jobs {
            let meant = job.tasks.iter().filter(|(_, state)| is_meant(state));
            found.extend(meant.map(|(task, _)| JobId {
                number: *number,
                task: job.is_array.then_some(*task),
            }));
        }
        found.sort_unstable();
        found
    }

    fn state(&mut self, number: JobNumber, task: TaskId) -> Option<&mut TaskState> {
        self.jobs.get_mut(&number)?.tasks.get_mut(&task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> JobId {
        JobId::parse(text).unwrap()
    }

    #[test]
    fn each_end_is_reaped_once_and_in_order() {
        let mut table = JobTable::default();
        table.add_submitted(JobNumber(7), None);
        table.add_submitted(JobNumber(8), TaskRange::new(1, 5, 2).ok());
        assert_eq!(table.live().len(), 4);
        for (number, task) in [(8, 3), (7, 1), (8, 1)] {
            let ended = table.end(JobNumber(number), TaskId(task), TaskEnd::NEVER_RAN);
            assert!(ended.is_some());
            assert!(table.end(JobNumber(number), TaskId(task), TaskEnd::NEVER_RAN).is_none());
        }
        assert!(table.reap(id("7")).is_some() && table.reap(id("7")).is_none());
        assert_eq!(table.reap_any().map(|(id, _)| id), Some(id("8.3")));
        assert_eq!(table.reap_any().map(|(id, _)| id), Some(id("8.1")));
        assert!(table.reap_any().is_none() && !table.is_empty());
        assert_eq!(table.unreaped(), [id("8.5")]);
    }

    #[test]
    fn jobs_that_are_waited_for_by_number_leave_the_order_of_ends() {
        let mut table = JobTable::default();
        table.add_submitted(JobNumber(1), None);
        table.end(JobNumber(1), TaskId(1), TaskEnd::NEVER_RAN);
        for number in 2..=3_000 {
            table.add_submitted(JobNumber(number), None);
            table.end(JobNumber(number), TaskId(1), TaskEnd::NEVER_RAN);
            assert!(table.reap(id(&number.to_string())).is_some());
        }
        assert!(table.ended.len() <= REAPED_MAX + 2);
        assert_eq!(table.reap_any().map(|(id, _)| id), Some(id("1")));
    }

    #[test]
    fn an_array_is_known_by_its_tasks() {
        let mut table = JobTable::default();
        table.add_submitted(JobNumber(8), TaskRange::new(1, 3, 2).ok());
        table.add_submitted(JobNumber(9), None);
        for (text, expected) in [
            ("8", Knowledge::Gone),
            ("8.1", Knowledge::Live),
            ("8.2", Knowledge::Gone),
            ("9", Knowledge::Live),
            ("9.1", Knowledge::Gone),
            ("10", Knowledge::Unknown),
        ] {
            assert_eq!(table.look(id(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_job_that_was_reaped_does_not_come_back() {
        let mut table = JobTable::default();
        table.add(JobNumber(7), [TaskId(1)], false);
        table.end(JobNumber(7), TaskId(1), TaskEnd::NEVER_RAN);
        assert!(table.reap(id("7")).is_some());
        table.add_submitted(JobNumber(7), None);
        assert!(table.is_empty());
        assert_eq!(table.look(id("7")), Knowledge::Gone);
    }
}
