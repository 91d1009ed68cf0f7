//! The records of the reporting file, reporting(5): their types and fields, which the writer checks
//! each line against and the manual is made from.

use crate::accounting;

/// A field and what it holds.
type Field = (&'static str, &'static str);

/// A type of record. A line is the time, the type and the fields, separated by colons.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordType {
    /// The word in the second place of a line.
    pub name: &'static str,
    /// What a record is about, and when one is written.
    pub meaning: &'static str,
    /// The fields behind the type, in their order.
    pub fields: &'static [Field],
    /// Whether a colon follows the last field.
    pub ends_in_colon: bool,
}

impl RecordType {
    const fn new(name: &'static str, meaning: &'static str, fields: &'static [Field]) -> Self {
        Self {
            name,
            meaning,
            fields,
            ends_in_colon: false,
        }
    }

    /// Whether a text has as many fields as the records of this type.
    pub fn has_fields(&self, text: &str) -> bool {
        text.split(':').count() == self.fields.len() + usize::from(self.ends_in_colon)
    }
}

/// A job was submitted.
pub const NEW_JOB: RecordType = RecordType::new(
    "new_job",
    "A job was submitted.",
    &[
        ("submission_time", "When it was submitted."),
        ("job_number", "Its number."),
        ("task_number", "Always -1: the record is about the whole job."),
        ("pe_taskid", "Always `NONE`."),
        ("job_name", "Its name."),
        ("owner", "Who submitted it."),
        ("group", "The primary group of the owner."),
        ("project", "Its project; empty without one."),
        ("department", "The department of its owner."),
        ("account", "`-A` of the job, `sge` by default."),
        ("priority", "`-p` of the job plus 1024."),
    ],
);

/// A step in the life of a job.
pub const JOB_LOG: RecordType = RecordType::new(
    "job_log",
    "A step in the life of a job, if `joblog` of `reporting_params` is true.",
    &[
        ("event_time", "When it happened."),
        (
            "event",
            "`pending`, `sent`, `delivered`, `suspended`, `unsuspended`, `restart`, `error`, `finished` or `deleted`.",
        ),
        ("job_number", "The number of the job."),
        (
            "task_number",
            "The number of the array task; 0 for a job without tasks, -1 for the whole job.",
        ),
        ("pe_taskid", "Always `NONE`."),
        (
            "state",
            "The state of the task: `t`, `r`, `s` or `T`; empty while it waits.",
        ),
        (
            "user",
            "Who caused it: a user, `master`, `scheduler` or `execution daemon`.",
        ),
        ("host", "The host where it was caused."),
        ("state_time", "Always 0."),
        ("priority", "`-p` of the job plus 1024."),
        ("submission_time", "When the job was submitted."),
        ("job_name", "Its name."),
        ("owner", "Who submitted it."),
        ("group", "The primary group of the owner."),
        ("project", "Its project; empty without one."),
        ("department", "The department of its owner."),
        ("account", "`-A` of the job, `sge` by default."),
        ("message", "What happened, in words."),
    ],
);

/// The end of an attempt.
pub const ACCT: RecordType = RecordType::new(
    "acct",
    "An attempt of a task, or a slave task, has ended. The fields are those of accounting(5).",
    &accounting::FIELDS,
);

/// The state of a queue instance changed.
pub const QUEUE: RecordType = RecordType::new(
    "queue",
    "The state of a queue instance changed.",
    &[
        ("qname", "The cluster queue."),
        ("hostname", "The host."),
        ("report_time", "When it changed."),
        (
            "state",
            "The letters of its states among `d`, `s` and `E`; empty if there is none.",
        ),
    ],
);

/// The use of consumables of a queue instance.
pub const QUEUE_CONSUMABLE: RecordType = RecordType::new(
    "queue_consumable",
    "Slots of a queue instance were taken or given back, and it has consumables that `report_variables` of \
     host_conf(5) names, or all are logged (`log_consumables` of `reporting_params`).",
    &[
        ("qname", "The cluster queue."),
        ("hostname", "The host."),
        ("report_time", "When it changed."),
        ("state", "Always empty."),
        ("consumables", "`NAME=USED=CAPACITY` of each, separated by commas."),
    ],
);

/// Load values of a host.
pub const HOST: RecordType = RecordType::new(
    "host",
    "A load report came with values that `report_variables` of host_conf(5) names.",
    &[
        ("hostname", "The host."),
        ("report_time", "When the report came."),
        ("state", "Always `X`."),
        ("load_values", "`NAME=VALUE` of each, separated by commas."),
    ],
);

/// The use of consumables of a host.
pub const HOST_CONSUMABLE: RecordType = RecordType::new(
    "host_consumable",
    "As `queue_consumable`, of a host or of `global`.",
    &[
        ("hostname", "The host, or `global`."),
        ("report_time", "When it changed."),
        ("state", "Always `X`."),
        ("consumables", "`NAME=USED=CAPACITY` of each, separated by commas."),
    ],
);

/// A node of the share tree.
pub const SHARELOG: RecordType = RecordType {
    ends_in_colon: true,
    ..RecordType::new(
        "sharelog",
        "A node of the share tree, at intervals of `sharelog` of `reporting_params`. The line ends in a colon.",
        &[
            ("current_time", "When it was written."),
            ("usage_time", "When usage was last booked or decayed; 0 if never."),
            ("node_name", "The path of the node."),
            ("user_name", "The user that it stands for; empty otherwise."),
            ("project_name", "The project that it belongs to; empty without one."),
            ("shares", "Its shares."),
            ("job_count", "Active tasks below it."),
            ("level", "Its part among its siblings by shares alone."),
            ("total", "Its part of the whole tree by shares alone."),
            ("long_target_share", "The part that it ought to have over time."),
            (
                "short_target_share",
                "The part that it gets now, to make up for past use.",
            ),
            ("actual_share", "The part that it has of the usage of the tree."),
            ("usage", "Its decayed usage, weighted."),
            ("cpu", "Decayed processor time in seconds."),
            ("mem", "Decayed memory over time in GB seconds."),
            ("io", "Decayed input and output in GB."),
            ("ltcpu", "Processor time that never decays."),
            ("ltmem", "Memory over time that never decays."),
            ("ltio", "Input and output that never decays."),
        ],
    )
};

/// An advance reservation was granted.
pub const NEW_AR: RecordType = RecordType::new(
    "new_ar",
    "An advance reservation was granted.",
    &[
        ("submission_time", "When it was made."),
        ("ar_number", "Its number."),
        ("ar_owner", "Who made it."),
    ],
);

/// The attributes of an advance reservation.
pub const AR_ATTR: RecordType = RecordType::new(
    "ar_attr",
    "What an advance reservation is, when it is granted.",
    &[
        ("event_time", "When it was granted."),
        ("submission_time", "When it was made."),
        ("ar_number", "Its number."),
        ("ar_name", "Its name."),
        ("ar_account", "`-A` of the reservation, `sge` by default."),
        ("ar_start_time", "When it begins."),
        ("ar_end_time", "When it ends."),
        ("ar_granted_pe", "Its parallel environment; empty without one."),
        (
            "ar_granted_resources",
            "Its requests, separated by commas; `NONE` without any.",
        ),
    ],
);

/// A step in the life of an advance reservation.
pub const AR_LOG: RecordType = RecordType::new(
    "ar_log",
    "The state of an advance reservation changed.",
    &[
        ("ar_state_change_time", "When it changed."),
        ("submission_time", "When the reservation was made."),
        ("ar_number", "Its number."),
        ("ar_state", "The letter of its new state, as `qrstat` shows it."),
        (
            "ar_event",
            "`START TIME REACHED`, `RESOURCES UNSATISFIED`, `RESOURCES SATISFIED`, `TERMINATED` or `DELETED`.",
        ),
        ("ar_message", "What happened, in words."),
    ],
);

/// A queue instance of an advance reservation that is gone.
pub const AR_ACCT: RecordType = RecordType::new(
    "ar_acct",
    "An advance reservation is gone: a record for each of its queue instances.",
    &[
        ("ar_termination_time", "When it ended."),
        ("submission_time", "When it was made."),
        ("ar_number", "Its number."),
        ("ar_qname", "The cluster queue."),
        ("ar_hostname", "The host."),
        ("ar_slots", "The slots that it had there."),
    ],
);

/// All types, in the order of the manual.
pub const TYPES: [&RecordType; 12] = [
    &NEW_JOB,
    &JOB_LOG,
    &ACCT,
    &QUEUE,
    &QUEUE_CONSUMABLE,
    &HOST,
    &HOST_CONSUMABLE,
    &SHARELOG,
    &NEW_AR,
    &AR_ATTR,
    &AR_LOG,
    &AR_ACCT,
];
