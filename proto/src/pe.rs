//! Parallel environments: how the slots of a parallel job spread over hosts (`sge_pe(5)`).
//!
//! Whether the access lists exist and which queues offer the environment is deliberately not known
//! here.

#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::id::PeName;
use crate::object::reader::Reader;
use crate::object::value::{
    self, Flag, MalformedValue, NameList, OptionalValue, ProcedureCommand, UninterpretedText, stored_as_text,
};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The attributes of a parallel environment in the order of `qconf -sp`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("pe_name", "The name."),
    (
        "slots",
        "The slots that all jobs of the environment may use together, 0 to 9999999.",
    ),
    (
        "user_lists",
        "The access lists whose users may use it; `NONE` admits everybody.",
    ),
    (
        "xuser_lists",
        "The access lists whose users may not use it; wins over `user_lists`.",
    ),
    (
        "start_proc_args",
        "A program that runs on the master host before the job, with its arguments.",
    ),
    (
        "stop_proc_args",
        "A program that runs on the master host after the job, with its arguments.",
    ),
    (
        "allocation_rule",
        "How slots are placed. `$pe_slots`: all on one host. `$fill_up`: as many as fit on a \
         host, then the next one. `$round_robin`: one on each host in turn. A number: exactly so \
         many on each host.",
    ),
    (
        "control_slaves",
        "Whether the job starts its tasks on other hosts by `qrsh -inherit`, under the limits and \
         in the accounting of the job.",
    ),
    (
        "job_is_first_task",
        "Whether the job script is one of the tasks. `FALSE` gives it a slot of its own.",
    ),
    (
        "urgency_slots",
        "The slots that urgency assumes for a range: `min`, `max`, `avg` or a number.",
    ),
    (
        "accounting_summary",
        "Whether one accounting record sums up all tasks of a job.",
    ),
    ("qsort_args", "A library that sorts queues; shown and not used."),
];

/// Attributes of Open Cluster Scheduler that 8.1.9 does not have: read, and shown by `qconf -sp`
/// only where they are TRUE.
pub const LATER_KEYS: &[&str] = &names::<{ LATER_MEANINGS.len() }>(LATER_MEANINGS);

/// What each attribute means, for the manual page.
pub const LATER_MEANINGS: &[(&str, &str)] = &[
    (
        "ign_sreq_on_mhost",
        "Whether slots on the host of the master need nothing that only slaves ask for, and take \
         nothing of it.",
    ),
    (
        "master_forks_slaves",
        "Whether the job starts its tasks on the host of the master by itself; `TRUE` is not \
         supported.",
    ),
    (
        "daemon_forks_slaves",
        "Whether the first task on a host starts the others there; `TRUE` is not supported.",
    ),
];

/// The attributes that older versions do not have, so that their files are read too.
const OPTIONAL: &[&str] = &["urgency_slots", "accounting_summary", "qsort_args"];

/// The most slots that a parallel environment has and a rule places on a host.
const MAX_SLOTS: i64 = 9_999_999;

/// How the slots of one job are placed on hosts (ALGORITHMS.md section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AllocationRule {
    /// All slots on one host.
    PeSlots,
    /// As many as fit on a host, then the next one.
    FillUp,
    /// One on each host in turn.
    RoundRobin,
    /// Exactly this many on each host used, at least 1.
    Fixed(u32),
}

impl FromStr for AllocationRule {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text {
            "$pe_slots" => Ok(Self::PeSlots),
            "$fill_up" => Ok(Self::FillUp),
            "$round_robin" => Ok(Self::RoundRobin),
            _ => value::bounded::<1, MAX_SLOTS, u32>(text).map(Self::Fixed).map_err(|_| {
                MalformedValue::new("$pe_slots, $fill_up, $round_robin or a number of slots for each host")
            }),
        }
    }
}

impl fmt::Display for AllocationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeSlots => f.pad("$pe_slots"),
            Self::FillUp => f.pad("$fill_up"),
            Self::RoundRobin => f.pad("$round_robin"),
            Self::Fixed(slots) => slots.fmt(f),
        }
    }
}

stored_as_text!(AllocationRule);

/// How many slots the urgency of a pending job with a slot range assumes (ALGORITHMS.md section
/// 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum UrgencySlots {
    /// The smallest number of the range.
    #[default]
    Min,
    /// The largest number of the range, at most the slots of the environment.
    Max,
    /// The mean of all numbers of the range, rounded down.
    Avg,
    /// This number.
    Fixed(u32),
}

impl FromStr for UrgencySlots {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        match text.to_ascii_lowercase().as_str() {
            "min" => Ok(Self::Min),
            "max" => Ok(Self::Max),
            "avg" => Ok(Self::Avg),
            _ => value::bounded::<1, MAX_SLOTS, u32>(text).map(Self::Fixed).map_err(|_| {
                let what = format!("rejecting invalid urgency_slots setting \"{text}\"");
                MalformedValue::with_words(what, "min, max, avg or a number of slots")
            }),
        }
    }
}

impl fmt::Display for UrgencySlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min => f.pad("min"),
            Self::Max => f.pad("max"),
            Self::Avg => f.pad("avg"),
            Self::Fixed(slots) => slots.fmt(f),
        }
    }
}

stored_as_text!(UrgencySlots);

/// A parallel environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelEnvironment {
    /// The name.
    pub name: PeName,
    /// The slots that all jobs of the environment may use together, 0 to 9999999.
    pub slots: u32,
    /// The access lists whose users may use it; empty admits everybody.
    pub user_lists: NameList<String>,
    /// The access lists whose users may not use it; wins over `user_lists`.
    pub xuser_lists: NameList<String>,
    /// What runs on the master host before the job.
    pub start_proc_args: OptionalValue<ProcedureCommand>,
    /// What runs on the master host after the job.
    pub stop_proc_args: OptionalValue<ProcedureCommand>,
    /// How slots are placed.
    pub allocation_rule: AllocationRule,
    /// Whether the job starts its tasks on other hosts through Gridwright, under the job's limits
    /// and accounting.
    pub control_slaves: Flag,
    /// Whether the job script is one of the tasks; if not, it gets a slot of its own.
    pub job_is_first_task: Flag,
    /// The slots that urgency assumes for a range.
    pub urgency_slots: UrgencySlots,
    /// Whether one accounting record sums up all tasks of a job.
    pub accounting_summary: Flag,
    /// A library that sorts queues; shown and not used.
    pub qsort_args: OptionalValue<UninterpretedText>,
    /// Whether slots on the host of the master need nothing that only slaves ask for, and take
    /// nothing of it.
    #[serde(default)]
    pub ign_sreq_on_mhost: Flag,
    /// Whether the job starts its tasks on the host of the master by itself; TRUE is not supported.
    #[serde(default)]
    pub master_forks_slaves: Flag,
    /// Whether the first task on a host starts the others there; TRUE is not supported.
    #[serde(default)]
    pub daemon_forks_slaves: Flag,
}

impl ParallelEnvironment {
    /// What `qconf -ap` opens.
    pub fn template(name: PeName) -> Self {
        Self {
            name,
            slots: 0,
            user_lists: NameList::default(),
            xuser_lists: NameList::default(),
            start_proc_args: OptionalValue::NONE,
            stop_proc_args: OptionalValue::NONE,
            allocation_rule: AllocationRule::PeSlots,
            control_slaves: Flag(false),
            job_is_first_task: Flag(true),
            urgency_slots: UrgencySlots::Min,
            accounting_summary: Flag(false),
            qsort_args: OptionalValue::NONE,
            ign_sreq_on_mhost: Flag(false),
            master_forks_slaves: Flag(false),
            daemon_forks_slaves: Flag(false),
        }
    }

    /// Reads a parallel environment; attributes that older versions do not have may be missing.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or has a value it cannot have.
    pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let required: Vec<&str> = KEYS.iter().copied().filter(|key| !OPTIONAL.contains(key)).collect();
        let mut pe = Self::template(PeName::from("template"));
        let known = [KEYS, LATER_KEYS].concat();
        let mut reader = Reader::new(ObjectKind::Pe, fields, &known, &required);
        reader.read("pe_name", &mut pe.name, value::name);
        reader.read("slots", &mut pe.slots, slots);
        reader.read("user_lists", &mut pe.user_lists, str::parse);
        reader.read("xuser_lists", &mut pe.xuser_lists, str::parse);
        reader.read("start_proc_args", &mut pe.start_proc_args, str::parse);
        reader.read("stop_proc_args", &mut pe.stop_proc_args, str::parse);
        reader.read("allocation_rule", &mut pe.allocation_rule, str::parse);
        reader.read("control_slaves", &mut pe.control_slaves, str::parse);
        reader.read("job_is_first_task", &mut pe.job_is_first_task, str::parse);
        reader.read("urgency_slots", &mut pe.urgency_slots, str::parse);
        reader.read("accounting_summary", &mut pe.accounting_summary, str::parse);
        reader.read("qsort_args", &mut pe.qsort_args, str::parse);
        reader.read("ign_sreq_on_mhost", &mut pe.ign_sreq_on_mhost, str::parse);
        reader.read("master_forks_slaves", &mut pe.master_forks_slaves, str::parse);
        reader.read("daemon_forks_slaves", &mut pe.daemon_forks_slaves, str::parse);
        reader.finish(pe)
    }

    /// The parallel environment as text fields, in the order of `qconf -sp`.
    pub fn to_fields(&self) -> Fields {
        let Self {
            name,
            slots,
            user_lists,
            xuser_lists,
            start_proc_args,
            stop_proc_args,
            allocation_rule,
            control_slaves,
            job_is_first_task,
            urgency_slots,
            accounting_summary,
            qsort_args,
            ign_sreq_on_mhost,
            master_forks_slaves,
            daemon_forks_slaves,
        } = self;
        let values = [
            name.to_string(),
            slots.to_string(),
            user_lists.to_string(),
            xuser_lists.to_string(),
            start_proc_args.to_string(),
            stop_proc_args.to_string(),
            allocation_rule.to_string(),
            control_slaves.to_string(),
            job_is_first_task.to_string(),
            urgency_slots.to_string(),
            accounting_summary.to_string(),
            qsort_args.to_string(),
        ];
        let later = LATER_KEYS
            .iter()
            .copied()
            .zip([ign_sreq_on_mhost, master_forks_slaves, daemon_forks_slaves]);
        let later = later
            .filter(|(_, flag)| flag.0)
            .map(|(key, flag)| (key, flag.to_string()));
        KEYS.iter().copied().zip(values).chain(later).collect()
    }
}

/// The slots of an environment.
fn slots(text: &str) -> Result<u32, MalformedValue> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(MalformedValue::negative(format!("a number from 0 to {MAX_SLOTS}"))),
        Ok(_) | Err(_) => value::bounded::<0, MAX_SLOTS, u32>(text),
    }
}

impl Object for ParallelEnvironment {
    fn template(name: &str) -> Self {
        Self::template(PeName::from(if name.is_empty() { "template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}
