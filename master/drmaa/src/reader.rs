//! The thread that reads the event stream of a session and keeps its table of jobs current.
//!
//! A master that goes away is looked for. Once it is back, the session's jobs are compared with
//! those that it has.

use crate::ended::TaskEnd;
use crate::requests::{PAUSE, PROGRAM, Requests};
use crate::session::{SESSION_VARIABLE, SharedSession};
use cli::library::Client;
use proto::accounting::AccountingRecord;
use proto::diagnostic::Diagnostic;
use proto::id::{JobNumber, TaskId, UserName};
use proto::request::TaskRange;
use proto::wire::client::{AccountingFilter, Answer, Command, JobFilter, JobSelection, JobTarget, Query, Reply};
use proto::wire::stream::{Change, Item, StreamStart, Subscription, TaskFate};
use proto::wire::view::{Data, JobRow};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The kinds of changes that a session follows.
const KINDS: [&str; 7] = [
    "complete",
    "job-added",
    "task-ending",
    "task-ended",
    "tasks-deleted",
    "tasks-failed",
    "job-finished",
];

/// Jobs about which one question is asked.
const JOBS_AT_ONCE: usize = 500;

/// The reader of one session.
pub struct Reader {
    /// The session.
    pub shared: Arc<SharedSession>,
    /// The connections for questions.
    pub requests: Arc<Requests>,
    /// The user of this process.
    pub user: UserName,
    /// Where the first stream begins: with the jobs of a session that is taken up again, or with
    /// nothing.
    pub start: StreamStart,
}

impl Reader {
    /// Reads until the session is closed.
    pub fn run(mut self) {
        while !self.shared.is_closing() {
            let lost = self.read_once();
            if !self.shared.is_closing() {
                self.shared.lost(lost);
                std::thread::sleep(PAUSE);
            }
        }
        self.shared.reader_ended();
    }

    /// Reads one stream to its end, and returns the reason for that.
    fn read_once(&mut self) -> Option<Diagnostic> {
        let mut client = match Client::connect(self.requests.address(), PROGRAM) {
            Ok(client) => client.with_raw_values(),
            Err(refusal) => return Some(refusal),
        };
        let goes_on = match client.connection() {
            Ok(connection) => connection.is_some_and(|connection| self.shared.hold_stream(connection)),
            Err(refusal) => return Some(refusal),
        };
        if !goes_on {
            return None;
        }
        let query = Query::Events(self.subscription());
        let mut refusal = None;
        let read = client.query_while(query, |part| {
            refusal = self.take_part(part);
            match refusal.is_some() || self.shared.is_closing() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        self.shared.release_stream();
        refusal.or(read.err())
    }

    fn subscription(&self) -> Subscription {
        Subscription {
            name: PROGRAM.to_owned(),
            start: self.start,
            kinds: KINDS.map(str::to_owned).into(),
            owners: vec![self.user.clone()],
            every_s: 0,
        }
    }

    fn take_part(&mut self, part: Reply) -> Option<Diagnostic> {
        if let Some(refusal) = part.answers.iter().find_map(Answer::refusal) {
            return Some(refusal.clone());
        }
        let Some(Data::Events(items)) = part.data else {
            return None;
        };
        for item in items {
            self.take(item);
        }
        None
    }

    fn take(&mut self, item: Item) {
        let Item { job, change, .. } = item;
        if let Change::Complete {} = change {
            self.complete();
            return;
        }
        let Some(number) = job else { return };
        if let Change::JobAdded { job } = &change {
            let is_ours = |(name, value): &(String, String)| name == SESSION_VARIABLE && *value == self.shared.key;
            if job.spec.context.iter().any(is_ours) {
                let tasks = job.tasks.iter().flat_map(|range| range.iter());
                self.shared.lock().table.add(number, tasks, job.spec.array.is_some());
            }
        }
        if self.shared.lock().table.has(number) {
            self.take_own(number, change);
        }
    }

    /// Takes a change of a job of this session.
    fn take_own(&self, number: JobNumber, change: Change) {
        match change {
            Change::TaskEnding { task, again } if !again && task.pe_task == 0 => {
                self.shared.lock().table.deleting(number, task.task);
            }
            Change::TaskEnded { task, then, record } if task.pe_task == 0 => {
                self.task_ended(number, task.task, &then, record);
            }
            Change::TasksDeleted { tasks, .. } => self.never_ran(number, &tasks),
            Change::TasksFailed { tasks, .. } => self.failed(number, &tasks),
            Change::JobFinished { .. } => self.settle(&[number]),
            Change::TaskEnding { .. }
            | Change::TaskEnded { .. }
            | Change::JobAdded { .. }
            | Change::JobChanged { .. }
            | Change::HoldsChanged { .. }
            | Change::ErrorCleared { .. }
            | Change::TaskPlaced { .. }
            | Change::TaskStarted { .. }
            | Change::TaskSuspended { .. }
            | Change::InstanceChanged { .. }
            | Change::ObjectsChanged { .. }
            | Change::Instances { .. }
            | Change::Contact { .. }
            | Change::Load { .. }
            | Change::PassWanted {}
            | Change::Complete {}
            | Change::Other { .. } => {}
        }
    }

    fn task_ended(&self, number: JobNumber, task: TaskId, then: &TaskFate, record: Option<Box<AccountingRecord>>) {
        match then {
            TaskFate::Pending => {}
            TaskFate::Error { .. } => {
                self.shared.end(number, task, TaskEnd::failed(record));
                self.delete(number, task);
            }
            TaskFate::Done => match record {
                Some(record) => self.shared.end_with(number, task, record),
                None => self.shared.end(number, task, TaskEnd::NEVER_RAN),
            },
        }
    }

    fn never_ran(&self, number: JobNumber, tasks: &[TaskRange]) {
        for task in tasks.iter().flat_map(|range| range.iter()) {
            self.shared.end(number, task, TaskEnd::NEVER_RAN);
        }
    }

    fn failed(&self, number: JobNumber, tasks: &[TaskRange]) {
        for task in tasks.iter().flat_map(|range| range.iter()) {
            self.shared.end(number, task, TaskEnd::failed(None));
            self.delete(number, task);
        }
    }

    /// Deletes a task that waits in error: nobody clears the error of a job that was reported as
    /// ended.
    fn delete(&self, number: JobNumber, task: TaskId) {
        let target = JobTarget {
            job: number.to_string(),
            tasks: TaskRange::new(task.0, task.0, 1).into_iter().collect(),
        };
        let jobs = JobSelection {
            targets: vec![target],
            ..JobSelection::default()
        };
        // It may have been deleted meanwhile. If the master is away, the next comparison finds it.
        let _ = self.requests.change(&Command::Delete { jobs, force: false });
    }

    /// Everything before this moment is in the stream's beginning: what changed while there was no
    /// stream is asked for.
    fn complete(&mut self) {
        self.start = StreamStart::Now;
        let live = self.shared.lock().table.live_jobs();
        for numbers in live.chunks(JOBS_AT_ONCE) {
            match self.present(numbers) {
                Ok(rows) => self.compare(numbers, &rows),
                // The next stream begins with the same comparison.
                Err(_away) => return,
            }
        }
        self.shared.found();
    }

    fn present(&self, numbers: &[JobNumber]) -> Result<Vec<JobRow>, Diagnostic> {
        let query = Query::Jobs(JobFilter {
            users: vec![self.user.to_string()],
            jobs: numbers.iter().map(JobNumber::to_string).collect(),
            ..JobFilter::default()
        });
        let reply = self.requests.query(&query)?;
        match reply.data {
            Some(Data::Jobs(rows)) => Ok(rows),
            _none => Ok(Vec::new()),
        }
    }

    fn compare(&self, numbers: &[JobNumber], rows: &[JobRow]) {
        let mut gone = Vec::new();
        for number in numbers {
            let row = rows.iter().find(|row| row.number == *number);
            let present: BTreeSet<TaskId> = row.map(tasks_of).unwrap_or_default();
            for pending in row
                .iter()
                .flat_map(|row| &row.pending)
                .filter(|pending| pending.error.is_some())
            {
                self.failed(*number, &pending.tasks);
            }
            let live = self.shared.lock().table.live_tasks(*number);
            if live.iter().any(|task| !present.contains(task)) {
                gone.push((*number, present));
            }
        }
        for (number, present) in gone {
            self.settle_except(number, &present);
        }
    }

    /// Finds out how jobs ended that are not there any more.
    fn settle(&self, numbers: &[JobNumber]) {
        for number in numbers {
            self.settle_except(*number, &BTreeSet::new());
        }
    }

    fn settle_except(&self, number: JobNumber, present: &BTreeSet<TaskId>) {
        let live = self.shared.lock().table.live_tasks(number);
        let gone: Vec<TaskId> = live.into_iter().filter(|task| !present.contains(task)).collect();
        if gone.is_empty() {
            return;
        }
        let Ok(mut records) = last_records(&self.requests, &self.user, number) else {
            return;
        };
        for task in gone {
            match records.remove(&task) {
                Some(record) => self.shared.end_with(number, task, Box::new(record)),
                None => self.shared.end(number, task, TaskEnd::NEVER_RAN),
            }
        }
    }
}

/// The tasks of a row that have not ended.
fn tasks_of(row: &JobRow) -> BTreeSet<TaskId> {
    let pending = row.pending.iter().flat_map(|pending| &pending.tasks);
    let pending = pending.flat_map(|range| range.iter());
    pending.chain(row.tasks.iter().map(|task| task.task)).collect()
}

/// The last record of each task of a user's job. Of jobs that had the same number the last one
/// counts.
///
/// # Errors
/// If the master does not answer.
pub fn last_records(
    requests: &Requests,
    user: &UserName,
    number: JobNumber,
) -> Result<BTreeMap<TaskId, AccountingRecord>, Diagnostic> {
    let query = Query::Accounting(AccountingFilter {
        jobs: vec![number.to_string()],
        owners: vec![user.to_string()],
        ..AccountingFilter::default()
    });
    let reply = requests.query(&query)?;
    let mut all = match reply.data {
        Some(Data::Accounting(records)) => records,
        _none => Vec::new(),
    };
    all.retain(|record| record.job_number == number && record.pe_task.is_none() && record.key.pe_task == 0);
    let last = all.iter().map(|record| record.key.seq).max();
    all.retain(|record| Some(record.key.seq) == last);
    all.sort_by_key(|record| record.key.attempt);
    Ok(all.into_iter().map(|record| (record.key.task, record)).collect())
}
