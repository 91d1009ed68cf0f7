//! Jobs that have ended, as the accounting has them.

use super::target::TargetJob;
use crate::client::Client;
use crate::commands::ask;
use crate::commands::qacct::block;
use crate::fail::Fail;
use crate::output::time::Clock;
use proto::accounting::AccountingRecord;
use proto::id::{JobNumber, TaskId};
use proto::request::TaskRange;
use proto::usage::FailedCode;
use proto::wire::client::{AccountingFilter, Query, Reply};
use proto::wire::view::Data;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Tasks that are told of one by one.
const SHOWN: usize = 10;

/// The records of the job that had this number last, oldest first, without those of slave tasks.
///
/// # Errors
/// The refusal of the master.
pub(super) fn records(client: &mut Client, job: &TargetJob) -> Result<Vec<AccountingRecord>, Fail> {
    let mut records = Vec::new();
    let filter = AccountingFilter {
        jobs: vec![job.number.to_string()],
        tasks: job.tasks.clone(),
        ..Default::default()
    };
    each(client, filter, |record| records.push(record))?;
    // Numbers roll over: the same one may have meant another job before.
    let last = records.last().map(|record: &AccountingRecord| record.submitted);
    records.retain(|record| record.pe_task.is_none() && Some(record.submitted) == last);
    Ok(records)
}

/// The job of that name or pattern that has ended last.
///
/// # Errors
/// The refusal of the master.
pub(super) fn last_called(client: &mut Client, name: &str, tasks: &[TaskRange]) -> Result<Option<JobNumber>, Fail> {
    let mut last = None;
    let filter = AccountingFilter {
        jobs: vec![name.to_owned()],
        tasks: tasks.to_vec(),
        ..Default::default()
    };
    each(client, filter, |record| last = Some(record.job_number))?;
    Ok(last)
}

fn each(client: &mut Client, filter: AccountingFilter, mut take: impl FnMut(AccountingRecord)) -> Result<(), Fail> {
    let mut rest = Reply::default();
    client.query_parts(Query::Accounting(filter), |part| match part.data {
        Some(Data::Accounting(records)) if part.answers.is_empty() => records.into_iter().for_each(&mut take),
        _ => rest = part,
    })?;
    ask::settled(rest)?;
    Ok(())
}

/// The last attempt of a task, and how many there were.
struct End<'a> {
    record: &'a AccountingRecord,
    attempts: u32,
}

/// How a job ended: where, when, with which status, and why if it failed.
pub(super) fn text(number: JobNumber, records: &[AccountingRecord], clock: &Clock) -> String {
    let mut ends: BTreeMap<TaskId, End<'_>> = BTreeMap::new();
    for record in records {
        let attempts = ends.get(&record.key.task).map_or(1, |end| end.attempts + 1);
        ends.insert(record.key.task, End { record, attempts });
    }
    let mut ends: Vec<End<'_>> = ends.into_values().collect();
    let failures = ends.iter().filter(|end| end.is_failure()).count();
    let mut text = match (ends.len(), failures) {
        (1, 0) => format!("job {number}: It has ended.\n"),
        (1, _) => format!("job {number}: It has ended, and it failed.\n"),
        (count, 0) => format!("job {number}: {count} of its tasks have ended.\n"),
        (count, failures) => format!("job {number}: {count} of its tasks have ended, of which {failures} failed.\n"),
    };
    ends.sort_by_key(|end| !end.is_failure());
    ends.iter().take(SHOWN).for_each(|end| text.push_str(&end.text(clock)));
    let more = ends.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more tasks");
    }
    let _ = writeln!(text, "  what it used: qacct -j {number}");
    text
}

impl End<'_> {
    fn is_failure(&self) -> bool {
        self.record.failed != FailedCode(0) || self.record.exit_status != 0 || self.record.limit.is_some()
    }

    fn text(&self, clock: &Clock) -> String {
        let record = self.record;
        let task = if record.task_number == 0 {
            String::new()
        } else {
            format!("task {} ", record.task_number)
        };
        let place = format!("  {task}on {}@{}", record.queue, record.host);
        let attempts = if self.attempts > 1 {
            format!(", attempt {}", self.attempts)
        } else {
            String::new()
        };
        let mut text = match record.started.0 {
            0 => format!("{place}{attempts}: it never started\n"),
            _ => {
                let [from, to] = [record.started, record.ended].map(|at| clock.slashes(at));
                let signal = block::signal_text(record.exit_status);
                let signal = signal.map_or_else(String::new, |signal| format!(" ({signal})"));
                format!(
                    "{place} from {from} to {to}{attempts}: exit status {}{signal}\n",
                    record.exit_status
                )
            }
        };
        if let FailedCode(code @ 1..) = record.failed {
            let _ = writeln!(text, "    failed {code}: {}", record.failed.text());
        }
        if let Some(hit) = &record.limit {
            let _ = writeln!(text, "    limit: {}", block::limit(hit));
        }
        if !record.reason.is_empty() {
            let _ = writeln!(text, "    reason: {}", without_head(&record.reason).replace('\n', " "));
        }
        text
    }
}

/// A reason without the date and the ids that a shepherd puts in front:
/// `11/25/2026 19:46:07 [2004:17602]: error: …`.
fn without_head(reason: &str) -> &str {
    let Some((head, rest)) = reason.split_once("]: ") else {
        return reason;
    };
    let is_head = head.contains(" [")
        && head
            .chars()
            .all(|letter| letter.is_ascii_digit() || " /:[".contains(letter));
    if is_head { rest } else { reason }
}
