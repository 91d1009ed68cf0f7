//! A record as an object of JSON: one line of `accounting.jsonl`.
//!
//! Unlike the classic line it holds everything that is known about an attempt. Each object has all
//! keys, in one order; a value that does not exist is `null`.

use super::AccountingRecord;
use crate::time::Wall;
use crate::usage::{Evidence, LimitHit};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// One key of the object.
#[derive(Clone, Copy, Debug)]
pub struct JsonField {
    /// The key.
    pub name: &'static str,
    /// The unit of a number, or the kind of another value.
    pub unit: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

const fn field(name: &'static str, unit: &'static str, meaning: &'static str) -> JsonField {
    JsonField { name, unit, meaning }
}

const MOMENT: &str = "milliseconds since 1970";
const PERIOD: &str = "milliseconds";
const COUNT: &str = "number";
const TEXT: &str = "text";

/// All keys in their order.
pub const JSON_FIELDS: [JsonField; 46] = [
    field("job_number", COUNT, "The number of the job."),
    field(
        "task_number",
        COUNT,
        "The number of the array task; null for a job without tasks.",
    ),
    field("pe_task", TEXT, "The slave task that the record is about, or null."),
    field("attempt", COUNT, "How often the task was placed, counted from 1."),
    field("job_name", TEXT, "The name of the job."),
    field("owner", TEXT, "The user who submitted the job."),
    field("group", TEXT, "The primary group of the owner."),
    field("project", TEXT, "The project of the job, or null."),
    field("department", TEXT, "The department of the owner."),
    field("account", TEXT, "`-A` of the job, `sge` by default."),
    field("category", TEXT, "The requests as options of `qsub`; may be empty."),
    field("queue", TEXT, "The queue of the master slot."),
    field("host", TEXT, "The host of the master slot."),
    field("granted_pe", TEXT, "The parallel environment, or null."),
    field("slots", COUNT, "The slots of the task."),
    field("priority", COUNT, "The nice value that the queue gave the job."),
    field("submitted_ms", MOMENT, "The time of the submission."),
    field("started_ms", MOMENT, "The time of the start; null if it never started."),
    field("ended_ms", MOMENT, "The time of the end; null if it never started."),
    field(
        "failed",
        COUNT,
        "Where it failed; 0 if the job ran, whatever it returned.",
    ),
    field("failed_text", TEXT, "The meaning of `failed` in words; may be empty."),
    field("reason", TEXT, "Why it failed, in words; may be empty."),
    field(
        "exit_status",
        COUNT,
        "The exit status of the job, 128 plus the number of a signal that ended it.",
    ),
    field(
        "limit",
        "object",
        "The limit that ended the job, or null: `name`, `value` and `reached` (bytes, or seconds for a limit of time), \
         and `evidence` (`certain`, `likely`, `unknown`).",
    ),
    field("limits_not_set", "list of texts", "Limits that the host could not set."),
    field("wallclock_ms", PERIOD, "From the start to the end."),
    field(
        "utime_ms",
        PERIOD,
        "Processor time of the job itself, as getrusage(2) counts.",
    ),
    field(
        "stime_ms",
        PERIOD,
        "Processor time of the system for the job, as getrusage(2) counts.",
    ),
    field("maxrss_kib", "KiB", "The most resident memory of one process."),
    field("minflt", COUNT, "Page faults without input."),
    field("majflt", COUNT, "Page faults with input."),
    field("inblock", "blocks of 512 bytes", "Blocks read."),
    field("oublock", "blocks of 512 bytes", "Blocks written."),
    field("nvcsw", COUNT, "Voluntary context switches."),
    field("nivcsw", COUNT, "Involuntary context switches."),
    field("cpu_ms", PERIOD, "Processor time of all processes."),
    field(
        "mem_kib_ms",
        "KiB times milliseconds",
        "Memory in use, added up over time.",
    ),
    field("io_bytes", "bytes", "Input and output."),
    field("iow_ms", PERIOD, "Time of waiting for input and output."),
    field(
        "maxvmem_bytes",
        "bytes",
        "The most address space; null if it was not measured.",
    ),
    field(
        "maxrss_bytes",
        "bytes",
        "The most resident memory of all processes together; null if it was not measured.",
    ),
    field(
        "maps",
        "list of objects",
        "The ids of resource maps: `attribute`, `host`, `ids`.",
    ),
    field("reservation", COUNT, "The advance reservation that it ran in, or null."),
    field(
        "reservation_submitted_ms",
        MOMENT,
        "When that reservation was made, or null.",
    ),
    field(
        "deleted_by",
        TEXT,
        "The user who deleted the job, as `user@host`, or the part of the master that did; null if nobody did.",
    ),
    field(
        "context",
        "object of texts",
        "The variables of the job's context (`-ac`); may be empty.",
    ),
];

/// Writes a record as such an object.
pub struct JsonRecord<'a>(pub &'a AccountingRecord);

impl Serialize for JsonRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(JSON_FIELDS.len()))?;
        self.identity(&mut map)?;
        self.ending(&mut map)?;
        self.amounts(&mut map)?;
        self.extras(&mut map)?;
        map.end()
    }
}

impl JsonRecord<'_> {
    fn identity<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let record = self.0;
        map.serialize_entry("job_number", &record.job_number)?;
        map.serialize_entry("task_number", &Some(record.task_number).filter(|task| *task > 0))?;
        map.serialize_entry("pe_task", &record.pe_task)?;
        map.serialize_entry("attempt", &record.key.attempt)?;
        map.serialize_entry("job_name", &record.job_name)?;
        map.serialize_entry("owner", &record.owner)?;
        map.serialize_entry("group", &record.group)?;
        map.serialize_entry("project", &record.project)?;
        map.serialize_entry("department", &record.department)?;
        map.serialize_entry("account", &record.account)?;
        map.serialize_entry("category", &record.category)?;
        map.serialize_entry("queue", &record.queue)?;
        map.serialize_entry("host", &record.host)?;
        map.serialize_entry("granted_pe", &record.granted_pe)?;
        map.serialize_entry("slots", &record.slots)?;
        map.serialize_entry("priority", &record.priority)?;
        map.serialize_entry("submitted_ms", &record.submitted)?;
        map.serialize_entry("started_ms", &known(record.started))?;
        map.serialize_entry("ended_ms", &known(record.ended))
    }

    fn ending<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let record = self.0;
        map.serialize_entry("failed", &record.failed)?;
        map.serialize_entry("failed_text", record.failed.text())?;
        map.serialize_entry("reason", &record.reason)?;
        map.serialize_entry("exit_status", &record.exit_status)?;
        map.serialize_entry("limit", &record.limit.as_ref().map(JsonLimit))?;
        let unset: Vec<&str> = record.usage.conditions.unset.texts().collect();
        map.serialize_entry("limits_not_set", &unset)
    }

    fn amounts<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let (record, rusage, usage) = (self.0, &self.0.rusage, &self.0.usage);
        map.serialize_entry("wallclock_ms", &record.wallclock_ms)?;
        map.serialize_entry("utime_ms", &rusage.utime_ms)?;
        map.serialize_entry("stime_ms", &rusage.stime_ms)?;
        map.serialize_entry("maxrss_kib", &rusage.maxrss_kib)?;
        map.serialize_entry("minflt", &rusage.minflt)?;
        map.serialize_entry("majflt", &rusage.majflt)?;
        map.serialize_entry("inblock", &rusage.inblock)?;
        map.serialize_entry("oublock", &rusage.oublock)?;
        map.serialize_entry("nvcsw", &rusage.nvcsw)?;
        map.serialize_entry("nivcsw", &rusage.nivcsw)?;
        map.serialize_entry("cpu_ms", &usage.cpu_ms)?;
        map.serialize_entry("mem_kib_ms", &usage.mem_kib_ms)?;
        map.serialize_entry("io_bytes", &usage.io_bytes)?;
        map.serialize_entry("iow_ms", &usage.iow_ms)?;
        map.serialize_entry("maxvmem_bytes", &measured(usage.maxvmem_bytes))?;
        map.serialize_entry("maxrss_bytes", &measured(usage.maxrss_bytes))
    }

    fn extras<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let record = self.0;
        map.serialize_entry("maps", &record.maps)?;
        map.serialize_entry("reservation", &record.reservation.map(|(id, _)| id))?;
        let granted = record.reservation.and_then(|(_, granted)| known(granted));
        map.serialize_entry("reservation_submitted_ms", &granted)?;
        map.serialize_entry("deleted_by", &record.deleted_by)?;
        map.serialize_entry("context", &record.context)
    }
}

/// Times before 1970 do not occur: 0 stands for a time that does not exist.
fn known(moment: Wall) -> Option<Wall> {
    Some(moment).filter(|moment| moment.0 > 0)
}

fn measured(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes > 0)
}

/// The limit of a record, whose unit follows from its name.
struct JsonLimit<'a>(&'a LimitHit);

impl Serialize for JsonLimit<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LimitHit {
            limit,
            value,
            reached,
            evidence,
        } = self.0;
        let evidence = match evidence {
            Evidence::Certain => "certain",
            Evidence::Likely => "likely",
            Evidence::Unknown => "unknown",
        };
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", limit)?;
        map.serialize_entry("value", value)?;
        map.serialize_entry("reached", reached)?;
        map.serialize_entry("evidence", evidence)?;
        map.end()
    }
}
