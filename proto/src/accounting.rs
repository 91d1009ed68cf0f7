//! The accounting record: one for each attempt of a task that reached a host.

use crate::id::{HostName, JobNumber, QueueName, ReservationId, TaskKey, UserName};
use crate::rsmap::GrantedIds;
use crate::time::Wall;
use crate::usage::{Failed, LimitHit, Rusage, Usage};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// What is kept for ever about one attempt of one task. `qacct` prints it; the classic file is made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountingRecord {
    /// The attempt. At most one record exists for each key.
    pub key: TaskKey,
    /// The queue of the master slot.
    pub queue: QueueName,
    /// The host of the master slot.
    pub host: HostName,
    /// Primary group of the owner.
    pub group: String,
    /// Owner.
    pub owner: UserName,
    /// Job name.
    pub job_name: String,
    /// Job number.
    pub job_number: JobNumber,
    /// `-A`, by default `sge`.
    pub account: String,
    /// Priority of the job's processes (`priority` of the queue).
    pub priority: i32,
    /// When it was submitted.
    pub submitted: Wall,
    /// When the job process started; 0 if it never did.
    pub started: Wall,
    /// When it ended; 0 if it never started.
    pub ended: Wall,
    /// Where it failed.
    pub failed: Failed,
    /// The reason in words, empty for a plain end. Not in the classic file.
    pub reason: String,
    /// Exit status, 128 plus the signal's number for a signal.
    pub exit_status: u32,
    /// From start to end in milliseconds.
    pub wallclock_ms: u64,
    /// `getrusage` numbers.
    pub rusage: Rusage,
    /// Project, if any.
    pub project: Option<String>,
    /// Department.
    pub department: String,
    /// The parallel environment, if any.
    pub granted_pe: Option<String>,
    /// Slots in all.
    pub slots: u32,
    /// Task number of an array, 0 for a job that is none.
    pub task_number: u32,
    /// Measured use.
    pub usage: Usage,
    /// The requests as one line of `qsub` options.
    pub category: String,
    /// The limit that ended it, if one did. Not in the classic file.
    pub limit: Option<LimitHit>,
    /// The ids that it had of resource maps. Not in the classic file.
    #[serde(default)]
    pub maps: Vec<GrantedIds>,
    /// Of a slave task of a parallel job: its number on its host and the host, such as `1.node2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe_task: Option<String>,
    /// The advance reservation that it ran in, with when that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<(ReservationId, Wall)>,
}

impl AccountingRecord {
    /// The 45 fields of accounting(5), joined by colons, without a newline.
    pub fn to_line(&self) -> String {
        let mut line = String::with_capacity(256);
        for part in [self.queue.as_str(), self.host.as_str(), &self.group, self.owner.as_str(), &self.job_name] {
            line.push_str(&text(part));
            line.push(':');
        }
        let _ = write!(line, "{}:{}:{}:", self.job_number, text(&self.account), self.priority);
        let _ = write!(line, "{}:{}:{}:", self.submitted.seconds(), self.started.seconds(), self.ended.seconds());
        let _ = write!(line, "{}:{}:{}:", self.failed, self.exit_status, seconds(self.wallclock_ms));
        let r = &self.rusage;
        let _ = write!(line, "{}:{}:{}:0:0:0:0:", seconds(r.utime_ms), seconds(r.stime_ms), r.maxrss_kib);
        let _ = write!(line, "{}:{}:0:{}:{}:0:0:0:{}:{}:", r.minflt, r.majflt, r.inblock, r.oublock, r.nvcsw, r.nivcsw);
        let _ = write!(line, "{}:{}:{}:", or_none(&self.project), text(&self.department), or_none(&self.granted_pe));
        let _ = write!(line, "{}:{}:", self.slots, self.task_number);
        let u = &self.usage;
        let _ = write!(line, "{}:{}:{}:", seconds(u.cpu_ms), gib_seconds(u.mem_kib_ms), gib(u.io_bytes));
        let category = if self.category.is_empty() { "NONE".into() } else { text(&self.category) };
        let (id, granted) = self.reservation.map_or((0, 0), |(id, granted)| (id.0, granted.seconds()));
        let _ = write!(line, "{}:{}:{}:", category, seconds(u.iow_ms), or_none(&self.pe_task));
        let _ = write!(line, "{}:{id}:{granted}", u.maxvmem_bytes);
        line
    }
}

/// A text without what separates fields and lines.
fn text(text: &str) -> Cow<'_, str> {
    if text.contains([':', '\n']) { text.replace([':', '\n'], " ").into() } else { text.into() }
}

fn or_none(name: &Option<String>) -> Cow<'_, str> {
    name.as_deref().map_or("NONE".into(), text)
}

/// Milliseconds as seconds with three decimals, exactly.
fn seconds(ms: u64) -> impl fmt::Display {
    fmt::from_fn(move |f| match ms {
        // What most tasks have in most fields.
        0 => f.write_str("0.000"),
        _ => write!(f, "{}.{:03}", ms / 1000, ms % 1000),
    })
}

/// KiB milliseconds as GB seconds with six decimals, rounded down.
fn gib_seconds(kib_ms: u64) -> impl fmt::Display {
    millionths(u128::from(kib_ms) * 1_000_000 / (1024 * 1024 * 1000))
}

/// Bytes as GB with six decimals, rounded down.
fn gib(bytes: u64) -> impl fmt::Display {
    millionths(u128::from(bytes) * 1_000_000 / (1 << 30))
}

fn millionths(value: u128) -> impl fmt::Display {
    fmt::from_fn(move |f| match value {
        0 => f.write_str("0.000000"),
        _ => write!(f, "{}.{:06}", value / 1_000_000, value % 1_000_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{CellId, SubmitSeq, TaskId};

    #[test]
    fn a_line_has_the_45_fields_in_the_order_of_8_1_9() {
        let record = AccountingRecord {
            key: TaskKey { cell: CellId(1), seq: SubmitSeq(205), task: TaskId(1), pe_task: 0, attempt: 1 },
            queue: QueueName::from("all.q"),
            host: HostName::new("vm"),
            group: "u1".to_owned(),
            owner: UserName::from("u1"),
            job_name: "x:100.sh".to_owned(),
            job_number: JobNumber(205),
            account: "sge".to_owned(),
            priority: 0,
            submitted: Wall::from_seconds(10),
            started: Wall::from_seconds(11),
            ended: Wall::from_seconds(12),
            failed: Failed(30),
            reason: String::new(),
            exit_status: 100,
            wallclock_ms: 1_000,
            rusage: Rusage {
                utime_ms: 31,
                stime_ms: 5,
                maxrss_kib: 7908,
                minflt: 2777,
                majflt: 1,
                inblock: 2,
                oublock: 32,
                nvcsw: 14,
                nivcsw: 8,
            },
            project: None,
            department: "defaultdepartment".to_owned(),
            granted_pe: None,
            slots: 1,
            task_number: 0,
            usage: Usage { cpu_ms: 36, maxvmem_bytes: 3_526_656, ..Usage::default() },
            category: "-q all.q".to_owned(),
            limit: None,
            maps: Vec::new(),
            pe_task: None,
            reservation: None,
        };
        let line = record.to_line();
        assert_eq!(
            line,
            "all.q:vm:u1:u1:x 100.sh:205:sge:0:10:11:12:30:100:1.000:0.031:0.005:7908:0:0:0:0:2777:1:0:2:32:0:0:0:14:8:NONE:\
             defaultdepartment:NONE:1:0:0.036:0.000000:0.000000:-q all.q:0.000:NONE:3526656:0:0"
        );
        assert_eq!(line.split(':').count(), 45);
    }
}
