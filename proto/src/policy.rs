//! The scheduler configuration: weights, intervals and rules of scheduling (`sched_conf(5)`).
//!
//! Values that name what Gridwright does not do are read and printed here; refusing them is the
//! master's business, and so is whether the attributes of the load formula exist.

mod formula;
mod words;

#[cfg(test)]
mod tests;

pub use formula::{LoadFormula, Operand, Operator, Sign, Term};
pub use words::{DecayList, JobInfo, PolicyHierarchy, QueueSortMethod, TicketPolicy, UsageWeights};

use crate::diagnostic::Diagnostic;
use crate::object::reader::Reader;
use crate::object::value::{self, Assignments, Flag, MalformedValue, Parameters, Reference, TimeText, Weight};
use crate::object::{Fields, Object, ObjectKind};
use serde::{Deserialize, Serialize};

/// Seconds that are added to the expected run time of each job, unless `params` says otherwise
/// (`sched_conf(5)`).
const DURATION_OFFSET_S: u64 = 60;

/// The parameter of `params` that says how late jobs take their share of an attribute; once for
/// each attribute.
const SETTLE_TIME: &str = "SETTLE_TIME";

/// The parameter that lets `fcfs` serve the user with the fewest running tasks first.
const USER_SORT: &str = "USER_SORT";

/// The parameter that says whether each slot of a job needs what the job asks of a load value.
const LOAD_PER_SLOT: &str = "LOAD_PER_SLOT";

/// The parameter that has each pass tell what it cost.
const PROFILE: &str = "PROFILE";

/// The parameter that says how the largest feasible number of slots is searched in 8.1.9.
const PE_RANGE_ALG: &str = "PE_RANGE_ALG";

/// The parameter that has passes written down.
const MONITOR: &str = "MONITOR";

/// The parameter that says how long a scheduler outside the master may be silent.
const EXTERNAL_TIMEOUT: &str = "EXTERNAL_TIMEOUT";

/// Its value unless set, in seconds.
const EXTERNAL_TIMEOUT_S: u64 = 30;

/// Declares the attributes: name, type, parser, shipped value.
///
/// A macro, because the struct, its keys, reading and printing are four lists of the same forty
/// attributes.
macro_rules! attributes {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty, $parse:expr, $template:literal;)*) => {
        /// The attributes of the scheduler configuration in the order of `qconf -ssconf`.
        pub const KEYS: &[&str] = &[$(stringify!($field),)*];

        /// What each attribute means, for the manual page.
        pub const MEANINGS: &[(&str, &str)] = &[$((stringify!($field), concat!($($doc),*)),)*];

        /// The scheduler configuration.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct SchedulerConf {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl SchedulerConf {
            /// The shipped configuration: the upstream profile "normal".
            pub fn template() -> Self {
                Self { $($field: $parse($template).expect("a test parses each text of this table"),)* }
            }

            /// Reads a scheduler configuration. What the fields leave out has its shipped value:
            /// they may be older than it.
            ///
            /// # Errors
            ///
            /// One refusal for each attribute that is unknown or has a value it cannot have.
            pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
                let mut conf = Self::template();
                let mut reader = Reader::new(ObjectKind::SchedulerConf, fields, KEYS, &[]);
                $(reader.read(stringify!($field), &mut conf.$field, $parse);)*
                reader.finish(conf)
            }

            /// The configuration as text fields, in the order of `qconf -ssconf`.
            pub fn to_fields(&self) -> Fields {
                [$((stringify!($field), self.$field.to_string()),)*].into_iter().collect()
            }
        }
    };
}

attributes! {
    /// The scheduler in use. `default` is the full one, `fcfs` serves jobs in the order of their
    /// submission, and `external` leaves placing to a program that gives orders.
    algorithm: Reference, str::parse::<Reference>, "default";
    /// The longest time between two passes of the scheduler. Most passes start because something
    /// has changed.
    schedule_interval: TimeText, time, "0:0:15";
    /// How many jobs of one user may run at once; 0 sets no limit.
    maxujobs: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// What counts first among queue instances: `load` is the load formula, `seqno` the number of
    /// the queue.
    queue_sort_method: QueueSortMethod, str::parse::<QueueSortMethod>, "load";
    /// What a job that has just started adds to the load values of its host, for each slot. `NONE`
    /// adds nothing.
    job_load_adjustments: Assignments, str::parse::<Assignments>, "np_load_avg=0.50";
    /// The time in which `job_load_adjustments` decay to nothing.
    load_adjustment_decay_time: TimeText, time, "0:7:30";
    /// What hosts are sorted by; lower comes first. Terms are joined by `+` and `-`. A term is a
    /// number, a value, or a value with one of `* / & | ^` and a number.
    load_formula: LoadFormula, str::parse::<LoadFormula>, "np_load_avg";
    /// Whether `qstat -j` shows reasons for waiting: `true`, `false`, or `job_list` and job
    /// numbers.
    schedd_job_info: JobInfo, str::parse::<JobInfo>, "true";
    /// Seconds after a submission at which a pass starts; 0 leaves it to the interval.
    flush_submit_sec: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// Seconds after the end of a job at which a pass starts; 0 leaves it to the interval.
    flush_finish_sec: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// Further parameters, separated by blanks or commas: `DURATION_OFFSET=SECONDS`,
    /// `SETTLE_TIME=ATTRIBUTE:TIME`, `LOAD_PER_SLOT`, `USER_SORT`, `PROFILE`, `MONITOR`,
    /// `EXTERNAL_TIMEOUT=SECONDS`.
    params: Parameters, parameters, "none";
    /// The time between two adjustments of the tickets of running jobs; 0 switches them off.
    reprioritize_interval: TimeText, time, "0:0:0";
    /// Hours in which usage decays to a half; 0 keeps it for ever.
    halftime: u32, value::bounded::<0, 0xffff_ffff, u32>, "168";
    /// How much processor time, memory and input/output count in usage.
    usage_weight_list: UsageWeights, str::parse::<UsageWeights>, "cpu=1,mem=0,io=0";
    /// By how much the share tree may favour those who are below their share.
    compensation_factor: Weight, str::parse::<Weight>, "5";
    /// The weight of users in the functional policy.
    weight_user: Weight, str::parse::<Weight>, "0.25";
    /// The weight of projects in the functional policy.
    weight_project: Weight, str::parse::<Weight>, "0.25";
    /// The weight of departments in the functional policy.
    weight_department: Weight, str::parse::<Weight>, "0.25";
    /// The weight of jobs in the functional policy.
    weight_job: Weight, str::parse::<Weight>, "0.25";
    /// The tickets of the functional policy; 0 switches it off.
    weight_tickets_functional: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// The tickets of the share tree; 0 switches it off.
    weight_tickets_share: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// Whether the override tickets of an object are divided among its jobs.
    share_override_tickets: Flag, str::parse::<Flag>, "TRUE";
    /// Whether the functional shares of an object are divided among its jobs.
    share_functional_shares: Flag, str::parse::<Flag>, "TRUE";
    /// How many pending jobs get functional tickets in a pass.
    max_functional_jobs_to_schedule: u32, value::bounded::<0, 0xffff_ffff, u32>, "200";
    /// Whether the tickets of pending jobs are shown.
    report_pjob_tickets: Flag, str::parse::<Flag>, "TRUE";
    /// How many tasks of an array job get tickets in a pass.
    max_pending_tasks_per_job: u32, value::bounded::<0, 0xffff_ffff, u32>, "50";
    /// Half-lives of single kinds of usage, in minutes, in place of `halftime`, such as
    /// `cpu=1440:mem=720`.
    halflife_decay_list: DecayList, str::parse::<DecayList>, "none";
    /// Which ticket policies depend on which: the letters `O` (override), `F` (functional) and `S`
    /// (share tree), the strongest first.
    policy_hierarchy: PolicyHierarchy, str::parse::<PolicyHierarchy>, "OFS";
    /// The weight of tickets in the priority of a job.
    weight_ticket: Weight, str::parse::<Weight>, "0.01";
    /// The weight of each second of waiting in the urgency of a job.
    weight_waiting_time: Weight, str::parse::<Weight>, "0";
    /// The weight of a deadline in the urgency of a job.
    weight_deadline: Weight, str::parse::<Weight>, "3600000";
    /// The weight of urgency in the priority of a job.
    weight_urgency: Weight, str::parse::<Weight>, "0.1";
    /// The weight of `-p` in the priority of a job.
    weight_priority: Weight, str::parse::<Weight>, "1";
    /// How many jobs get a reservation in a pass; 0 switches reservations off.
    max_reservation: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// The run time assumed for jobs that have neither `h_rt` nor `s_rt`, when resources are
    /// planned.
    default_duration: TimeText, duration, "INFINITY";
}

impl SchedulerConf {
    /// What is wrong with a `DURATION_OFFSET` that is no time; the usual one holds in its place.
    pub fn bad_duration_offset(&self) -> Option<MalformedValue> {
        self.params.seconds("DURATION_OFFSET").err()
    }

    /// Seconds that are added to the expected run time of a job when resources are planned; 60 by
    /// default.
    pub fn duration_offset_s(&self) -> u64 {
        let set = self
            .params
            .value("DURATION_OFFSET")
            .and_then(|text| TimeText::finite(text).ok());
        set.and_then(|time| time.seconds()).unwrap_or(DURATION_OFFSET_S)
    }

    /// Seconds without a sign of a scheduler outside the master after which the built-in one takes
    /// over (`algorithm external`): `EXTERNAL_TIMEOUT` of `params`, 30 unless set, at least 1.
    pub fn external_timeout_s(&self) -> u64 {
        self.params
            .seconds(EXTERNAL_TIMEOUT)
            .ok()
            .flatten()
            .unwrap_or(EXTERNAL_TIMEOUT_S)
            .max(1)
    }

    /// Whether each pass of the scheduler tells in the log what it cost: `PROFILE` of `params`,
    /// false unless set.
    pub fn profile(&self) -> bool {
        self.params.flag(PROFILE, false).unwrap_or(false)
    }

    /// Whether passes are written down in the file `schedule`: `MONITOR` of `params`, false unless
    /// set.
    pub fn monitor(&self) -> bool {
        self.params.flag(MONITOR, false).unwrap_or(false)
    }

    /// Whether the algorithm `fcfs` serves the user with the fewest running tasks first:
    /// `USER_SORT` of `params`, false unless set.
    pub fn user_sort(&self) -> bool {
        self.params.flag(USER_SORT, false).unwrap_or(false)
    }

    /// Whether a parallel job needs what it asks of a load value for each slot that it has on the
    /// host (ALGORITHMS.md section 3.2), such as 12G of `mem_free` for four slots at 3G; else once,
    /// however many slots, as 8.1.9 has it: `LOAD_PER_SLOT` of `params`, true unless set. A start
    /// takes as much of the value until the next sample. Consumables are asked for by the slot
    /// either way.
    pub fn load_per_slot(&self) -> bool {
        self.params.flag(LOAD_PER_SLOT, true).unwrap_or(true)
    }

    /// How long after a start a job takes its share of an attribute at the latest, in milliseconds:
    /// a load value shows the use of jobs that started so long before it was taken. 0 unless
    /// `params` has `SETTLE_TIME=attribute:time`.
    pub fn settle_ms(&self, attribute: &str) -> u64 {
        let set = self.settle_times().filter(|(name, _)| *name == attribute).last();
        set.map_or(0, |(_, seconds)| seconds.saturating_mul(1000))
    }

    /// The attributes with a settle time, by full name, and the time in seconds.
    pub fn settle_times(&self) -> impl Iterator<Item = (&str, u64)> {
        let set = self
            .params
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(SETTLE_TIME));
        set.filter_map(|(_, value)| settle_time(value).ok())
    }
}

/// A time that ends, in the words that 8.1.9 has for those of this object.
fn time(text: &str) -> Result<TimeText, MalformedValue> {
    TimeText::finite(text).map_err(|_| no_time("a time such as 15 or 0:0:15"))
}

/// A time that may be without end.
fn duration(text: &str) -> Result<TimeText, MalformedValue> {
    text.parse()
        .map_err(|_| no_time("a time such as 3600 or 1:0:0, or INFINITY"))
}

fn no_time(expected: &str) -> MalformedValue {
    MalformedValue::not_a("time", expected)
}

/// `params` of a scheduler configuration; a settle time is read to see that it is one.
fn parameters(text: &str) -> Result<Parameters, MalformedValue> {
    let parameters: Parameters = text.parse()?;
    for name in [USER_SORT, LOAD_PER_SLOT, PROFILE, MONITOR] {
        parameters.flag(name, false)?;
    }
    parameters.seconds(EXTERNAL_TIMEOUT)?;
    parameters.parsed(PE_RANGE_ALG, pe_range_algorithm)?;
    for (_, value) in parameters
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(SETTLE_TIME))
    {
        settle_time(value).map_err(|malformed| malformed.in_part(SETTLE_TIME))?;
    }
    Ok(parameters)
}

/// How 8.1.9 searches the largest number of slots of a range that a parallel job can have. What it
/// finds is the same, here too.
fn pe_range_algorithm(text: &str) -> Result<(), MalformedValue> {
    let is_known = ["auto", "least", "bin", "highest"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(text));
    is_known
        .then_some(())
        .ok_or_else(|| MalformedValue::new("auto, least, bin or highest"))
}

/// `attribute:time`, with the time in seconds.
fn settle_time(text: &str) -> Result<(&str, u64), MalformedValue> {
    let expected = || MalformedValue::new("attribute:time, as in tcp_lic:30 or tcp_lic:0:1:0,");
    let (attribute, time) = text
        .split_once(':')
        .filter(|(attribute, _)| !attribute.is_empty())
        .ok_or_else(expected)?;
    let seconds = TimeText::finite(time)
        .ok()
        .and_then(|time| time.seconds())
        .ok_or_else(expected)?;
    Ok((attribute, seconds))
}

impl Object for SchedulerConf {
    fn template(_: &str) -> Self {
        Self::template()
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}
