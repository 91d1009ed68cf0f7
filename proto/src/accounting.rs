//! The accounting record: one for each attempt of a task that reached a host.

pub mod index;
mod json;
mod rotated;

pub use json::{JSON_FIELDS, JsonField, JsonRecord};
pub use rotated::{RotatedName, RotationAge};

use crate::id::{HostName, JobNumber, QueueName, ReservationId, TaskKey, UserName};
use crate::rsmap::GrantedIds;
use crate::time::Wall;
use crate::usage::{FailedCode, LimitHit, Rusage, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The fields of the classic accounting file in their order, accounting(5), and what each holds.
/// Times are seconds since 1970.
pub const FIELDS: [(&str, &str); 45] = [
    ("qname", "The queue of the master slot."),
    ("hostname", "The host of the master slot."),
    ("group", "The primary group of the owner."),
    ("owner", "Who submitted the job."),
    ("job_name", "The name of the job."),
    ("job_number", "The number of the job."),
    ("account", "`-A` of the job, `sge` by default."),
    ("priority", "The nice value that its queue gave it."),
    ("submission_time", "When it was submitted."),
    ("start_time", "When it began; 0 if it never did."),
    ("end_time", "When it ended; 0 if it never began."),
    ("failed", "Where it failed; 0 if the job ran, whatever it returned."),
    (
        "exit_status",
        "The exit status of the job, 128 plus the number of a signal that ended it.",
    ),
    ("ru_wallclock", "Seconds from start to end."),
    ("ru_utime", "Seconds of processor time of the job itself."),
    ("ru_stime", "Seconds of processor time of the system for the job."),
    ("ru_maxrss", "The most resident memory of a process, in KiB."),
    ("ru_ixrss", "Always 0."),
    ("ru_ismrss", "Always 0."),
    ("ru_idrss", "Always 0."),
    ("ru_isrss", "Always 0."),
    ("ru_minflt", "Page faults without input."),
    ("ru_majflt", "Page faults with input."),
    ("ru_nswap", "Always 0."),
    ("ru_inblock", "Blocks read."),
    ("ru_oublock", "Blocks written."),
    ("ru_msgsnd", "Always 0."),
    ("ru_msgrcv", "Always 0."),
    ("ru_nsignals", "Always 0."),
    ("ru_nvcsw", "Voluntary context switches."),
    ("ru_nivcsw", "Involuntary context switches."),
    ("project", "The project of the job, or `NONE`."),
    ("department", "The department of its owner."),
    ("granted_pe", "Its parallel environment, or `NONE`."),
    ("slots", "Its slots."),
    (
        "task_number",
        "The number of the array task; 0 for a job without tasks.",
    ),
    ("cpu", "Seconds of processor time of all processes."),
    ("mem", "Memory over time, in GB seconds."),
    ("io", "Input and output in GB."),
    ("category", "Its requests as options of `qsub`, or `NONE`."),
    ("iow", "Seconds of waiting for input and output."),
    ("pe_taskid", "The slave task that the record is about, or `NONE`."),
    ("maxvmem", "The most virtual memory, in bytes."),
    ("arid", "The advance reservation that it ran in; 0 without one."),
    ("ar_submission_time", "When that reservation was made."),
];

/// What is kept for ever about one attempt of one task. `qacct` prints it; the classic file is made
/// from it.
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
    pub failed: FailedCode,
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
    /// The user who deleted the job, as `user@host`. Not in the classic file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<String>,
    /// The variables of the job's context (`-ac`). Not in the classic file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}

impl AccountingRecord {
    /// The seconds from start to end as the classic file counts them: the difference of two whole
    /// seconds. 0 if it never started.
    pub fn wallclock_s(&self) -> u64 {
        if self.started.0 == 0 {
            return 0;
        }
        u64::try_from(self.ended.seconds() - self.started.seconds()).unwrap_or(0)
    }

    /// The 45 fields of accounting(5), joined by colons, without a newline.
    pub fn to_line(&self) -> String {
        let mut line = String::with_capacity(256);
        self.write_line(&mut line);
        line
    }

    /// Writes them behind what is there. Each task has such a line: what `fmt` would do for 45
    /// fields is done by hand.
    pub fn write_line(&self, line: &mut String) {
        let mut line = Line(line);
        line.text(self.queue.as_str()).text(self.host.as_str());
        line.text(&self.group).text(self.owner.as_str()).text(&self.job_name);
        line.number(self.job_number.0).text(&self.account).number(self.priority);
        line.number(self.submitted.seconds())
            .number(self.started.seconds())
            .number(self.ended.seconds());
        line.number(self.failed.0)
            .number(self.exit_status)
            .number(self.wallclock_s());
        let r = &self.rusage;
        line.seconds(r.utime_ms)
            .seconds(r.stime_ms)
            .whole(r.maxrss_kib)
            .plain("0:0:0:0");
        line.number(r.minflt)
            .number(r.majflt)
            .plain("0")
            .whole(r.inblock)
            .number(r.oublock)
            .plain("0:0:0");
        line.number(r.nvcsw).number(r.nivcsw);
        line.name(&self.project).text(&self.department).name(&self.granted_pe);
        line.number(self.slots).number(self.task_number);
        let u = &self.usage;
        line.seconds(u.cpu_ms).gib_seconds(u.mem_kib_ms).gib(u.io_bytes);
        line.text(if self.category.is_empty() {
            "NONE"
        } else {
            &self.category
        });
        line.seconds(u.iow_ms).name(&self.pe_task).whole(u.maxvmem_bytes);
        let (id, granted) = self
            .reservation
            .map_or((0, 0), |(id, granted)| (id.0, granted.seconds()));
        line.number(id).number(granted);
        // The last field has none behind it.
        line.0.pop();
    }
}

/// A line that is being written: each field with the colon behind it.
struct Line<'a>(&'a mut String);

impl Line<'_> {
    /// What is known to hold nothing that separates fields.
    fn plain(&mut self, field: &str) -> &mut Self {
        self.0.push_str(field);
        self.0.push(':');
        self
    }

    /// A text, without what separates fields and lines.
    fn text(&mut self, text: &str) -> &mut Self {
        if text.contains([':', '\n']) {
            self.plain(&text.replace([':', '\n'], " "))
        } else {
            self.plain(text)
        }
    }

    fn name(&mut self, name: &Option<String>) -> &mut Self {
        self.text(name.as_deref().unwrap_or("NONE"))
    }

    fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.plain(itoa::Buffer::new().format(number))
    }

    /// Milliseconds as seconds with six decimals, exactly.
    fn seconds(&mut self, ms: u64) -> &mut Self {
        self.0.push_str(itoa::Buffer::new().format(ms / 1_000));
        self.0.push('.');
        self.0.push_str(&itoa::Buffer::new().format(1_000 + ms % 1_000)[1..]);
        self.plain("000")
    }

    /// A whole number in a field that 8.1.9 keeps as a floating one.
    fn whole(&mut self, number: u64) -> &mut Self {
        self.0.push_str(itoa::Buffer::new().format(number));
        self.plain(".000000")
    }

    /// KiB milliseconds as GB seconds with six decimals, rounded down.
    fn gib_seconds(&mut self, kib_ms: u64) -> &mut Self {
        self.decimal(millionths(kib_ms, 1000 << 20), 1_000_000)
    }

    /// Bytes as GB with six decimals, rounded down.
    fn gib(&mut self, bytes: u64) -> &mut Self {
        self.decimal(millionths(bytes, 1 << 30), 1_000_000)
    }

    /// So many parts, of which `parts`, a power of ten, are one.
    fn decimal(&mut self, value: u64, parts: u64) -> &mut Self {
        self.0.push_str(itoa::Buffer::new().format(value / parts));
        self.0.push('.');
        // With a one before it the rest has all its digits.
        self.plain(&itoa::Buffer::new().format(parts + value % parts)[1..])
    }
}

/// How many millionths of a unit of more than a million parts so many parts are, rounded down.
fn millionths(parts: u64, unit: u64) -> u64 {
    let millionths = u128::from(parts) * 1_000_000 / u128::from(unit);
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{CellId, SubmitSeq, TaskId};

    fn record() -> AccountingRecord {
        AccountingRecord {
            key: TaskKey {
                cell: CellId(1),
                seq: SubmitSeq(205),
                task: TaskId(1),
                pe_task: 0,
                attempt: 1,
            },
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
            failed: FailedCode(30),
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
            usage: Usage {
                cpu_ms: 36,
                maxvmem_bytes: 3_526_656,
                ..Usage::default()
            },
            category: "-q all.q".to_owned(),
            limit: None,
            maps: Vec::new(),
            pe_task: None,
            reservation: None,
            deleted_by: None,
            context: BTreeMap::new(),
        }
    }

    #[test]
    fn an_object_of_json_has_the_documented_keys_in_their_order() {
        let text = serde_json::to_string(&JsonRecord(&record())).unwrap();
        let mut from = 0;
        for JsonField { name, .. } in JSON_FIELDS {
            let key = format!("\"{name}\":");
            from += text[from..].find(&key).unwrap_or_else(|| panic!("{key} in {text}")) + key.len();
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(object.len(), JSON_FIELDS.len());
        assert!(!text.contains('\n'));
    }

    #[test]
    fn an_object_of_json_says_what_the_classic_line_cannot() {
        let record = AccountingRecord {
            limit: Some(LimitHit {
                limit: "h_rt".to_owned(),
                value: 5,
                reached: 6,
                evidence: crate::usage::Evidence::Certain,
            }),
            reason: "first\nsecond".to_owned(),
            deleted_by: Some("root@vm".to_owned()),
            context: BTreeMap::from([("cost_centre".to_owned(), "a:7".to_owned())]),
            started: Wall(0),
            ..record()
        };
        let object = serde_json::to_value(JsonRecord(&record)).unwrap();
        let expected = serde_json::json!({
            "limit": {"name": "h_rt", "value": 5, "reached": 6, "evidence": "certain"},
            "reason": "first\nsecond",
            "deleted_by": "root@vm",
            "context": {"cost_centre": "a:7"},
            "started_ms": null,
            "submitted_ms": 10_000,
            "task_number": null,
            "failed": 30,
            "maxrss_bytes": null,
            "cpu_ms": 36,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&object[key], value, "{key}");
        }
    }

    #[test]
    fn a_line_has_the_45_fields_in_the_order_of_8_1_9() {
        let record = record();
        let line = record.to_line();
        assert_eq!(
            line,
            "all.q:vm:u1:u1:x 100.sh:205:sge:0:10:11:12:30:100:1:0.031000:0.005000:7908.000000:0:0:0:0:2777:1:0:2.000000:32:0:0:0:14:8:NONE:\
             defaultdepartment:NONE:1:0:0.036000:0.000000:0.000000:-q all.q:0.000000:NONE:3526656.000000:0:0"
        );
        assert_eq!(line.split(':').count(), 45);
        let mut text = "before\n".to_owned();
        record.write_line(&mut text);
        assert_eq!(text, format!("before\n{line}"));
    }

    #[test]
    fn a_line_counts_whole_seconds_from_start_to_end() {
        let line = |started: i64, ended: i64| {
            let record = AccountingRecord {
                started: Wall(started),
                ended: Wall(ended),
                wallclock_ms: 10_549,
                ..record()
            };
            record.to_line().split(':').nth(13).unwrap_or_default().to_owned()
        };
        assert_eq!(
            [
                line(11_900, 12_100),
                line(11_000, 21_549),
                line(0, 12_000),
                line(12_000, 11_000)
            ],
            ["1", "10", "0", "0"]
        );
    }

    #[test]
    fn units_have_all_their_decimals() {
        let written = |write: &dyn Fn(&mut Line)| {
            let mut text = String::new();
            write(&mut Line(&mut text));
            text
        };
        for (ms, seconds) in [
            (0, "0.000000:"),
            (7, "0.007000:"),
            (1_000, "1.000000:"),
            (61_050, "61.050000:"),
        ] {
            assert_eq!(written(&|line| _ = line.seconds(ms)), seconds);
        }
        assert_eq!(written(&|line| _ = line.seconds(u64::MAX)), "18446744073709551.615000:");
        assert_eq!(written(&|line| _ = line.gib((1 << 30) + 1_074)), "1.000001:");
        assert_eq!(written(&|line| _ = line.gib(u64::MAX)), "17179869183.999999:");
        assert_eq!(
            written(&|line| _ = line.gib_seconds(1000 << 19)),
            "0.500000:",
            "half a GB for a second"
        );
    }
}
