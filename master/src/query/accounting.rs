//! `qacct`: records by job, task, owner and time. Read from the database beside the query thread, by as many at once as ask.

use super::select::Patterns;
use super::{parts, select};
use crate::store::{AccountingRow, Store, StoreError};
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{EventSeq, TaskId};
use proto::wire::client::{AccountingFilter, Reply};
use proto::wire::view::Data;
use std::path::Path;

/// Records of one part of an answer: about half a MiB.
const PART: usize = 1_000;

/// The most records that one question is answered with.
pub const RECORDS_MAX: usize = 2_000_000;

/// The answer to [`proto::wire::client::Query::Accounting`]. Blocks while it reads.
pub fn accounting(database: &Path, filter: &AccountingFilter) -> Vec<Reply> {
    match Store::open_to_read(database).and_then(|store| read(&store, filter)) {
        Ok(records) if records.len() >= RECORDS_MAX => vec![Reply::refusal(
            Diagnostic::new(Code::Overloaded, format!("more than {RECORDS_MAX} accounting records match"))
                .fix("ask for fewer with -j, -o, -b or -e"),
        )],
        Ok(records) => parts(records, PART, |records| Reply::data(Data::Accounting(records))),
        Err(error) => vec![Reply::refusal(
            Diagnostic::new(Code::SystemRefused, "cannot read the accounting records").why(crate::error_chain(&error)),
        )],
    }
}

fn read(store: &Store, filter: &AccountingFilter) -> Result<Vec<AccountingRecord>, StoreError> {
    let owners = Patterns::new(&filter.owners);
    let mut found = Vec::new();
    // One job by its number is found by index; anything else is a walk.
    let number = match &filter.jobs[..] {
        [job] => job.parse().ok(),
        _ => None,
    };
    store.accounting(EventSeq(0), number, |AccountingRow { record, .. }| {
        if matches(filter, &owners, &record) {
            found.push(record);
        }
        found.len() < RECORDS_MAX
    })?;
    Ok(found)
}

fn matches(filter: &AccountingFilter, owners: &Patterns, record: &AccountingRecord) -> bool {
    let AccountingFilter { jobs, tasks, owners: _, begin, end } = filter;
    let task = TaskId(record.task_number);
    (jobs.is_empty() || jobs.iter().any(|job| select::names_job(job, record.job_number, &record.job_name)))
        && (tasks.is_empty() || tasks.iter().any(|range| range.contains(task)))
        && owners.admit(record.owner.as_str())
        && begin.is_none_or(|begin| record.started >= begin)
        && end.is_none_or(|end| record.started <= end)
}
