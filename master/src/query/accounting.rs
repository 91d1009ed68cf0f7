//! `qacct`: records by job, task, owner and time. Read from the database beside the reader thread,
//! part by part, so that neither memory nor the database's log grows with the number of records.

use super::select::{Jobs, Patterns};
use crate::store::{AccountingRow, Damage, Store, StoreError};
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{EventSeq, JobNumber, TaskId};
use proto::wire::client::{AccountingFilter, Answer, Reply};
use proto::wire::view::Data;
use std::path::PathBuf;

/// Records of one part of an answer: about half a MiB. No more are in memory for one question.
pub const PART_RECORDS: usize = 1_000;

/// Records that are looked at for one part, of which few may match.
const PART_ROWS: usize = 20_000;

/// One question of [`proto::wire::client::Query::Accounting`], while it is answered.
pub struct Accounting {
    database: PathBuf,
    filter: AccountingFilter,
    jobs: Jobs,
    owners: Patterns,
    store: Option<Store>,
    /// The event of the last record that was looked at.
    after: EventSeq,
}

impl Accounting {
    /// A question to the database at that path.
    pub fn new(database: PathBuf, filter: AccountingFilter) -> Self {
        let (jobs, owners) = (Jobs::new(&filter.jobs), Patterns::new(&filter.owners));
        Self {
            database,
            filter,
            jobs,
            owners,
            store: None,
            after: EventSeq(0),
        }
    }

    /// The next part of the answer; the last one is without `more`. Blocks while it reads, and
    /// holds no lock of the database between two parts: what was recorded meanwhile comes with the
    /// last.
    pub fn part(&mut self) -> Reply {
        match self.read() {
            Ok(AccountingPart { records, damages, more }) => {
                let answers = damages
                    .iter()
                    .map(|damage| Answer::Refused(unreadable(damage)))
                    .collect();
                Reply {
                    more,
                    answers,
                    ..Reply::data(Data::Accounting(records))
                }
            }
            Err(error) => {
                let refusal = Diagnostic::new(Code::SystemRefused, "cannot read the accounting records");
                Reply::refusal(refusal.why(crate::error_chain(&error)))
            }
        }
    }

    /// A part in which no record matched, before the end.
    pub fn nothing_yet() -> Reply {
        Reply {
            more: true,
            ..Reply::data(Data::Accounting(Vec::new()))
        }
    }

    fn read(&mut self) -> Result<AccountingPart, StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => Store::open_to_read(&self.database)?,
        };
        // One job by its number is found by index; anything else is a walk.
        let number = match self.jobs.numbers().as_deref() {
            Some([JobNumber(number)]) => Some(*number),
            _ => None,
        };
        let (mut part, mut looked_at, mut last) = (AccountingPart::default(), 0, self.after);
        store.accounting(self.after, number, |found| {
            looked_at += 1;
            match found {
                Ok(AccountingRow { seq, record }) => {
                    last = seq;
                    if matches(&self.filter, &self.jobs, &self.owners, &record) {
                        part.records.push(record);
                    }
                }
                Err(damage) => {
                    last = damage.seq;
                    part.damages.push(damage);
                }
            }
            part.records.len() < PART_RECORDS && looked_at < PART_ROWS
        })?;
        part.more = part.records.len() == PART_RECORDS || looked_at == PART_ROWS;
        (self.after, self.store) = (last, Some(store));
        Ok(part)
    }
}

/// What was found for one part of an answer.
#[derive(Default)]
struct AccountingPart {
    records: Vec<AccountingRecord>,
    damages: Vec<Damage>,
    more: bool,
}

/// Jobs that the message about damaged records names.
const NAMED_JOBS: usize = 20;

fn unreadable(damage: &Damage) -> Diagnostic {
    let Damage { seq, jobs, why } = damage;
    let mut names = jobs
        .iter()
        .take(NAMED_JOBS)
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if jobs.len() > NAMED_JOBS {
        names += &format!(" and {} more", jobs.len() - NAMED_JOBS);
    }
    let what = format!("error: accounting records of these jobs cannot be read and are left out: {names}");
    Diagnostic::new(Code::SystemRefused, what)
        .at(format!("the master's database, up to event {}", seq.0))
        .why(format!("they are damaged: {why}"))
        .fix("look for them in default/common/accounting, or restore a copy of the database; all others are shown")
}

fn matches(filter: &AccountingFilter, jobs: &Jobs, owners: &Patterns, record: &AccountingRecord) -> bool {
    let AccountingFilter {
        jobs: _,
        tasks,
        owners: _,
        begin,
        end,
    } = filter;
    let task = TaskId(record.task_number);
    (jobs.is_empty() || jobs.any(record.job_number, &record.job_name))
        && (tasks.is_empty() || tasks.iter().any(|range| range.contains(task)))
        && owners.admit(record.owner.as_str())
        && begin.is_none_or(|begin| record.started >= begin)
        && end.is_none_or(|end| record.started <= end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TempDir, cell_events};

    /// The parts of an answer: how many records each has.
    fn parts(database: &std::path::Path, filter: AccountingFilter) -> Vec<usize> {
        let mut question = Accounting::new(database.to_owned(), filter);
        let mut counts = Vec::new();
        loop {
            let Reply { more, answers, data } = question.part();
            let Some(Data::Accounting(records)) = data else {
                panic!("{answers:?}")
            };
            counts.push(records.len());
            if !more {
                return counts;
            }
        }
    }

    #[test]
    fn no_more_records_are_held_than_one_part_has_and_each_is_given_once() {
        let dir = TempDir::new("accounting");
        let database = dir.path().join("cell.db");
        let count = 2 * PART_RECORDS + 500;
        Store::create(&database)
            .unwrap()
            .append(&cell_events(u64::try_from(count).unwrap()))
            .unwrap();
        assert_eq!(
            parts(&database, AccountingFilter::default()),
            [PART_RECORDS, PART_RECORDS, 500]
        );
        let one = AccountingFilter {
            jobs: vec!["7".to_owned()],
            ..AccountingFilter::default()
        };
        assert_eq!(parts(&database, one), [1]);
        let nobody = AccountingFilter {
            owners: vec!["nobody-at-all".to_owned()],
            ..AccountingFilter::default()
        };
        assert_eq!(parts(&database, nobody), [0]);
    }
}
