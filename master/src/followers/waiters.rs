//! Commands that wait for a job: `qsub -sync y` until it has left, `qsub -now y` until it is placed
//! or given up.

use crate::messages::Answer;
use crate::model::Model;
use crate::store::{AccountingRow, Damage, Store};
use master_core::event::{Event, Record};
use master_core::state::job::{FinishedJob, FinishedTask};
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{EventSeq, JobNumber, SubmitSeq, TaskId};
use proto::wire::client::Reply;
use proto::wire::view::{Data, EndedTask, SessionPlace};
use std::collections::BTreeMap;

/// The open answers, by job.
#[derive(Default)]
pub struct Waiters {
    ended: BTreeMap<SubmitSeq, Vec<Waiter>>,
    placed: BTreeMap<SubmitSeq, Vec<Waiter>>,
}

/// One open answer, and the number that was asked for: the list of finished jobs may be too short
/// to tell it.
struct Waiter {
    job: JobNumber,
    answer: Answer,
}

/// Where a job is.
enum JobLookup {
    Present(SubmitSeq),
    Finished(SubmitSeq),
    Unknown,
}

impl Waiters {
    /// Answers when every task of the job has left, which may be now.
    pub fn wait(&mut self, job: JobNumber, answer: Answer, model: &Model, store: &Store) {
        match find(model, store, job) {
            JobLookup::Present(seq) => add(self.ended.entry(seq).or_default(), Waiter { job, answer }),
            JobLookup::Finished(seq) => give(answer, ended(model, store, seq, job)),
            JobLookup::Unknown => give(answer, unknown(job)),
        }
    }

    /// Answers when a task of the job is on a host, or the job has been given up.
    pub fn wait_placed(&mut self, job: JobNumber, answer: Answer, model: &Model, store: &Store) {
        match find(model, store, job) {
            JobLookup::Present(seq) if model.state.jobs[&seq].active > 0 => give(answer, placed(model, seq)),
            JobLookup::Present(seq) => add(self.placed.entry(seq).or_default(), Waiter { job, answer }),
            JobLookup::Finished(seq) => give(answer, ended(model, store, seq, job)),
            JobLookup::Unknown => give(answer, unknown(job)),
        }
    }

    /// Answers the commands that waited for this event, which the model has folded already.
    pub(super) fn after(&mut self, model: &Model, store: &Store, record: &Record) {
        if let Event::TaskPlaced { key, .. } = &record.event {
            for waiting in self.placed.remove(&key.seq).into_iter().flatten() {
                give(waiting.answer, placed(model, key.seq));
            }
        } else if let Event::JobFinished { seq } = &record.event {
            let waiting = [self.ended.remove(seq), self.placed.remove(seq)];
            let waiting: Vec<Waiter> = waiting.into_iter().flatten().flatten().collect();
            let Some(first) = waiting.first() else { return };
            let reply = ended(model, store, *seq, first.job);
            waiting
                .into_iter()
                .for_each(|waiting| give(waiting.answer, reply.clone()));
        }
    }
}

/// Adds one who waits in the place of those who have gone: so no more are kept than wait, but for
/// one a job.
fn add(waiting: &mut Vec<Waiter>, new: Waiter) {
    waiting.retain(|other| !other.answer.is_closed());
    waiting.push(new);
}

/// The answer about a job that is on a host: of an interactive job, which host and attempt.
fn placed(model: &Model, seq: SubmitSeq) -> Reply {
    let job = model.state.jobs.get(&seq).filter(|job| job.spec.session.is_some());
    let placement = job.and_then(|job| job.placements().next());
    Reply::data(placement.map_or(Data::Ended(Vec::new()), |(_, placement)| {
        Data::Session(SessionPlace {
            key: placement.key,
            host: placement.host().clone(),
        })
    }))
}

fn give(answer: Answer, reply: Reply) {
    // Whoever waited may have gone.
    let _ = answer.send(vec![reply].into());
}

/// A job that has left is found in the list of finished jobs or, where that is too short, among the
/// accounting records: a wait that is repeated after a restart of the master may come long after
/// the end.
fn find(model: &Model, store: &Store, number: JobNumber) -> JobLookup {
    if let Some(seq) = model.state.by_number.get(&number) {
        return JobLookup::Present(*seq);
    }
    let listed = model
        .state
        .finished
        .iter()
        .rev()
        .find(|job| job.number == number)
        .map(|job| job.seq);
    listed
        .or_else(|| last_accounted(store, number))
        .map_or(JobLookup::Unknown, JobLookup::Finished)
}

/// The last job of that number that has an accounting record.
fn last_accounted(store: &Store, number: JobNumber) -> Option<SubmitSeq> {
    let mut last = None;
    let note = |row: Result<AccountingRow, Damage>| {
        last = last.max(row.ok().map(|row| row.record.key.seq));
        true
    };
    if let Err(error) = store.accounting(EventSeq(0), Some(number.0), note) {
        tracing::warn!("{}", crate::error_chain(&error));
    }
    last
}

fn finished(model: &Model, seq: SubmitSeq) -> Option<&FinishedJob> {
    model.state.finished.iter().rev().find(|job| job.seq == seq)
}

fn unknown(job: JobNumber) -> Reply {
    Reply::refusal(
        Diagnostic::new(Code::UnknownJob, format!("job {job} does not exist"))
            .why("it is neither in the cell nor in the accounting records")
            .fix("list jobs with qstat -u '*', ended ones with qacct -j"),
    )
}

/// How the tasks of a finished job ended. The finished list holds the last of them, the accounting
/// records all that ran.
fn ended(model: &Model, store: &Store, seq: SubmitSeq, number: JobNumber) -> Reply {
    let mut tasks: BTreeMap<TaskId, EndedTask> = BTreeMap::new();
    let listed = finished(model, seq);
    let is_complete = listed.is_some_and(|job| job.tasks.len() as u64 >= task_count(job));
    if !is_complete {
        let collect = |row: Result<AccountingRow, Damage>| {
            match row {
                Ok(row) if row.record.key.seq == seq => drop(tasks.insert(row.record.key.task, of_record(&row.record))),
                Ok(_) => {}
                Err(damage) => {
                    tracing::error!(
                        "accounting records up to event {} are damaged: {}",
                        damage.seq.0,
                        damage.why
                    )
                }
            }
            true
        };
        if let Err(error) = store.accounting(EventSeq(0), Some(number.0), collect) {
            tracing::warn!("{}", crate::error_chain(&error));
        }
    }
    for task in listed.into_iter().flat_map(|job| &job.tasks) {
        tasks.insert(task.task, of_finished(task));
    }
    Reply::data(Data::Ended(tasks.into_values().collect()))
}

fn task_count(job: &FinishedJob) -> u64 {
    job.spec.array.map_or(1, |array| u64::from(array.count()))
}

fn of_record(record: &AccountingRecord) -> EndedTask {
    let AccountingRecord {
        key,
        exit_status,
        failed,
        ..
    } = record;
    EndedTask {
        task: key.task,
        exit_status: *exit_status,
        signal: signal(*exit_status),
        failed: *failed,
        deleted: false,
    }
}

fn of_finished(task: &FinishedTask) -> EndedTask {
    let FinishedTask {
        task,
        exit_status,
        failed,
        deleted,
        granted: _,
        started: _,
    } = task;
    EndedTask {
        task: *task,
        exit_status: *exit_status,
        signal: signal(*exit_status),
        failed: *failed,
        deleted: *deleted,
    }
}

/// The signal in an exit status above 128, as accounting(5) writes it.
fn signal(exit_status: u32) -> Option<u8> {
    exit_status
        .checked_sub(128)
        .filter(|signal| *signal > 0)
        .and_then(|signal| u8::try_from(signal).ok())
}
