//! The three parameter lists of the configuration, read into values.
//!
//! Names that are not known are kept in the text and change nothing, as in 8.1.9; [`unknown`] finds
//! them.

use crate::amount::{Amount, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::limit::VmemMeaning;
use crate::object::suggest;
use crate::object::value::{self, MalformedValue, Parameters, Signal, TimeText, is_none};
use serde::{Deserialize, Serialize};

/// A parameter list that is read into a struct of its own.
pub(super) trait ParameterList: Sized {
    /// Reads the parameters.
    fn read(parameters: &Parameters) -> Result<Self, MalformedValue>;
}

/// A parameter list whose values are those that `T` takes.
pub(super) fn checked<T: ParameterList>(text: &str) -> Result<Parameters, MalformedValue> {
    let parameters: Parameters = text.parse()?;
    T::read(&parameters)?;
    Ok(parameters)
}

/// What becomes of a parameter that is set to something else than its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterClass {
    /// It has its effect.
    Served,
    /// It is read, and has no effect: its purpose is met by other means, or there is no such thing
    /// here.
    Kept,
    /// The same of one that is not even read: any value but an off one counts as set.
    Unread,
    /// Its effect is not there yet, and somebody would wait for it.
    Refused,
}

use ParameterClass::{Kept, Refused, Served, Unread};

const EXECD: &[(&str, ParameterClass)] = &[
    ("ACCT_RESERVED_USAGE", Served),
    ("SHARETREE_RESERVED_USAGE", Served),
    ("IGNORE_NGROUPS_MAX_LIMIT", Kept),
    ("KEEP_ACTIVE", Served),
    ("PTF_MIN_PRIORITY", Served),
    ("PTF_MAX_PRIORITY", Served),
    ("NOTIFY_KILL", Served),
    ("NOTIFY_SUSP", Served),
    ("USE_QSUB_GID", Kept),
    ("S_DESCRIPTORS", Served),
    ("H_DESCRIPTORS", Served),
    ("S_MAXPROC", Served),
    ("H_MAXPROC", Served),
    ("S_MEMORYLOCKED", Served),
    ("H_MEMORYLOCKED", Served),
    ("S_LOCKS", Served),
    ("H_LOCKS", Served),
    ("H_VMEM", Served),
    ("INHERIT_ENV", Served),
    ("SET_LIB_PATH", Served),
    ("ENABLE_ADDGRP_KILL", Kept),
    ("PDC_INTERVAL", Served),
    ("ENABLE_BINDING", Served),
    ("SIMULATE_JOBS", Refused),
    ("USE_SYSLOG", Kept),
    ("USE_QIDLE", Served),
    ("USE_CGROUPS", Served),
    ("USE_SMAPS", Kept),
    ("DEMAND_LS", Kept),
    ("MEM_FREE", Served),
    ("SCRIPT_TIMEOUT", Served),
    ("METHOD_TIMEOUT", Served),
    ("PROF_EXECD", Unread),
    ("ENABLE_WINDOMACC", Unread),
    ("NO_AUTHENTICATION", Unread),
    ("DO_AUTHENTICATION", Unread),
    ("NO_SECURITY", Unread),
    ("PRINT_MALLOC_INFO", Unread),
];

const QMASTER: &[(&str, ParameterClass)] = &[
    ("ENABLE_ENFORCE_MASTER_LIMIT", Served),
    ("ENABLE_FORCED_QDEL", Served),
    ("ENABLE_FORCED_QDEL_IF_UNKNOWN", Served),
    ("FORBID_RESCHEDULE", Served),
    ("FORBID_APPERROR", Served),
    ("ENABLE_RESCHEDULE_KILL", Kept),
    ("ENABLE_RESCHEDULE_SLAVE", Kept),
    ("DISABLE_AUTO_RESCHEDULING", Served),
    ("MAX_DYN_EC", Served),
    ("SHOW_JOB_ENVIRONMENT", Served),
    ("MAX_START_FAILURES", Served),
    ("STREE_SPOOL_INTERVAL", Kept),
    ("SIMULATE_EXECDS", Refused),
    ("MONITOR_TIME", Unread),
    ("LOG_MONITOR_MESSAGE", Unread),
    ("PROF_SIGNAL", Unread),
    ("PROF_SCHEDULER", Unread),
    ("PROF_LISTENER", Unread),
    ("PROF_WORKER", Unread),
    ("PROF_DELIVER", Unread),
    ("PROF_TEVENT", Unread),
    ("MAX_JOB_DELETION_TIME", Unread),
    ("GDI_TIMEOUT", Unread),
    ("GDI_RETRIES", Unread),
    ("CL_PING", Unread),
    ("SCHEDULER_TIMEOUT", Unread),
    ("JSV_TIMEOUT", Served),
    ("JSV_THRESHOLD", Served),
    ("OLD_RESCHEDULE_BEHAVIOR", Unread),
    ("OLD_RESCHEDULE_BEHAVIOR_ARRAY_JOB", Unread),
    ("NO_AUTHENTICATION", Unread),
    ("NO_SECURITY", Unread),
    ("ENABLE_MTRACE", Unread),
    ("PRINT_MALLOC_INFO", Unread),
];

const REPORTING: &[(&str, ParameterClass)] = &[
    ("accounting", Served),
    ("reporting", Served),
    ("flush_time", Served),
    ("accounting_flush_time", Kept),
    ("joblog", Served),
    ("sharelog", Served),
    ("log_consumables", Served),
];

const SCHEDULER: &[(&str, ParameterClass)] = &[
    ("DURATION_OFFSET", Served),
    ("SETTLE_TIME", Served),
    ("USER_SORT", Served),
    ("LOAD_PER_SLOT", Served),
    ("EXTERNAL_TIMEOUT", Served),
    ("PROFILE", Served),
    ("MONITOR", Served),
    ("PE_RANGE_ALG", Served),
];

/// Every parameter of a list, `key` being the entry of the cluster or scheduler configuration;
/// empty for other entries.
pub fn parameters(key: &str) -> &'static [(&'static str, ParameterClass)] {
    match key {
        "execd_params" => EXECD,
        "qmaster_params" => QMASTER,
        "reporting_params" => REPORTING,
        "params" => SCHEDULER,
        _ => &[],
    }
}

/// The class of a parameter, in any letter case; none of one that neither 8.1.9 nor Gridwright
/// knows.
pub fn parameter_class(key: &str, name: &str) -> Option<ParameterClass> {
    parameters(key)
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, class)| *class)
}

/// The signal that warns a job submitted with `-notify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotifySignal {
    /// SIGUSR2 before it is ended, SIGUSR1 before it is suspended.
    #[default]
    Usual,
    /// None: the job is not warned.
    Silent,
    /// The signal of this number.
    Signal(i32),
}

/// How often the processes of jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PdcInterval {
    /// Every so many seconds.
    Seconds(u64),
    /// With each load report.
    PerLoadReport,
    /// Not at all: limits of the whole job are not enforced.
    Never,
}

/// A soft and a hard limit (`getrlimit(2)`). Where only one of the two was set, both have its
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitPair {
    /// The soft limit.
    pub soft: Amount,
    /// The hard limit.
    pub hard: Amount,
}

/// What `execd_params` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecdParams {
    /// `ACCT_RESERVED_USAGE`: accounting counts what was reserved in place of what was used.
    pub acct_reserved_usage: bool,
    /// `SHARETREE_RESERVED_USAGE`: the share tree counts what was reserved in place of what was
    /// used.
    pub sharetree_reserved_usage: bool,
    /// `IGNORE_NGROUPS_MAX_LIMIT`: a job without room for one more group runs without the group
    /// that marks it.
    pub ignore_ngroups_max_limit: bool,
    /// `KEEP_ACTIVE`: the directories of finished tasks stay.
    pub keep_active: bool,
    /// `PTF_MIN_PRIORITY`: the least urgent nice value of jobs.
    pub ptf_min_priority: Option<i32>,
    /// `PTF_MAX_PRIORITY`: the most urgent nice value of jobs.
    pub ptf_max_priority: Option<i32>,
    /// `NOTIFY_KILL`: what warns a job before it is ended.
    pub notify_kill: NotifySignal,
    /// `NOTIFY_SUSP`: what warns a job before it is suspended.
    pub notify_susp: NotifySignal,
    /// `USE_QSUB_GID`: a job runs with the primary group that was active at submission.
    pub use_qsub_gid: bool,
    /// `S_DESCRIPTORS`, `H_DESCRIPTORS`: open files.
    pub descriptors: Option<LimitPair>,
    /// `S_MAXPROC`, `H_MAXPROC`: processes.
    pub maxproc: Option<LimitPair>,
    /// `S_MEMORYLOCKED`, `H_MEMORYLOCKED`: bytes of locked memory.
    pub memorylocked: Option<LimitPair>,
    /// `S_LOCKS`, `H_LOCKS`: file locks.
    pub locks: Option<LimitPair>,
    /// `H_VMEM`: what `h_vmem` and `s_vmem` limit; address space unless set.
    #[serde(default)]
    pub h_vmem: VmemMeaning,
    /// `INHERIT_ENV`: a job gets the environment of the daemon.
    ///
    /// False unless set, unlike in 8.1.9: else a job inherits nothing of ours.
    pub inherit_env: bool,
    /// `SET_LIB_PATH`: the library path of a job starts with ours.
    pub set_lib_path: bool,
    /// `ENABLE_ADDGRP_KILL`: what carries the group of a job is ended with it; true unless unset.
    pub enable_addgrp_kill: bool,
    /// `PDC_INTERVAL`: how often processes are looked at; each second unless set.
    pub pdc_interval: PdcInterval,
    /// `ENABLE_BINDING`: jobs may be bound to processor cores; true unless unset.
    pub enable_binding: bool,
    /// `SIMULATE_JOBS`: jobs are not run.
    pub simulate_jobs: bool,
    /// `USE_SYSLOG`: messages go to the system log.
    pub use_syslog: bool,
    /// `USE_QIDLE`: a program `qidle` is a load sensor.
    pub use_qidle: bool,
    /// `USE_CGROUPS`: jobs run in control groups; as the host allows unless set.
    pub use_cgroups: Option<bool>,
    /// `USE_SMAPS`: memory is counted exactly and slowly.
    pub use_smaps: bool,
    /// `DEMAND_LS`: load sensors are asked just before each report; true unless unset.
    pub demand_ls: bool,
    /// `MEM_FREE=classic`: `mem_free` is the sum that 8.1.9 reports, not what the kernel says is
    /// available.
    pub mem_free_classic: bool,
    /// `SCRIPT_TIMEOUT`: seconds after which a prolog, an epilog or a procedure of a parallel
    /// environment is killed; 120 unless set.
    #[serde(default = "script_timeout_s")]
    pub script_timeout_s: u32,
    /// `METHOD_TIMEOUT`: seconds after which a suspend, resume or terminate method is killed, and
    /// after which a task that its terminate method has not ended is killed too. `None` means
    /// never.
    #[serde(default)]
    pub method_timeout_s: Option<u32>,
}

/// `SCRIPT_TIMEOUT` where it is not set, as in Open Cluster Scheduler.
fn script_timeout_s() -> u32 {
    120
}

impl ParameterList for ExecdParams {
    fn read(parameters: &Parameters) -> Result<Self, MalformedValue> {
        let flag = |name, default| parameters.flag(name, default);
        Ok(Self {
            acct_reserved_usage: flag("ACCT_RESERVED_USAGE", false)?,
            sharetree_reserved_usage: flag("SHARETREE_RESERVED_USAGE", false)?,
            ignore_ngroups_max_limit: flag("IGNORE_NGROUPS_MAX_LIMIT", false)?,
            keep_active: flag("KEEP_ACTIVE", false)?,
            ptf_min_priority: nice(parameters, "PTF_MIN_PRIORITY")?,
            ptf_max_priority: nice(parameters, "PTF_MAX_PRIORITY")?,
            notify_kill: parameters.parsed("NOTIFY_KILL", notify_signal)?.unwrap_or_default(),
            notify_susp: parameters.parsed("NOTIFY_SUSP", notify_signal)?.unwrap_or_default(),
            use_qsub_gid: flag("USE_QSUB_GID", false)?,
            descriptors: limit_pair(parameters, "S_DESCRIPTORS", "H_DESCRIPTORS")?,
            maxproc: limit_pair(parameters, "S_MAXPROC", "H_MAXPROC")?,
            memorylocked: limit_pair(parameters, "S_MEMORYLOCKED", "H_MEMORYLOCKED")?,
            locks: limit_pair(parameters, "S_LOCKS", "H_LOCKS")?,
            h_vmem: parameters.parsed("H_VMEM", vmem_meaning)?.unwrap_or_default(),
            inherit_env: flag("INHERIT_ENV", false)?,
            set_lib_path: flag("SET_LIB_PATH", false)?,
            enable_addgrp_kill: flag("ENABLE_ADDGRP_KILL", true)?,
            pdc_interval: parameters
                .parsed("PDC_INTERVAL", pdc_interval)?
                .unwrap_or(PdcInterval::Seconds(1)),
            enable_binding: flag("ENABLE_BINDING", true)?,
            simulate_jobs: flag("SIMULATE_JOBS", false)?,
            use_syslog: flag("USE_SYSLOG", false)?,
            use_qidle: flag("USE_QIDLE", false)?,
            use_cgroups: parameters.parsed("USE_CGROUPS", truth)?,
            use_smaps: flag("USE_SMAPS", false)?,
            demand_ls: flag("DEMAND_LS", true)?,
            mem_free_classic: parameters.parsed("MEM_FREE", mem_free_classic)?.unwrap_or(false),
            script_timeout_s: parameters
                .parsed("SCRIPT_TIMEOUT", timeout)?
                .unwrap_or_else(script_timeout_s),
            method_timeout_s: parameters.parsed("METHOD_TIMEOUT", timeout)?,
        })
    }
}

impl Default for ExecdParams {
    /// What holds where `execd_params` is `none`.
    fn default() -> Self {
        Self::read(&Parameters::default())
            .expect("each parameter has a default, and an empty list has no value to refuse")
    }
}

/// `MAX_START_FAILURES` where it is not set: more than a user's mistake makes at once, fewer than a
/// pass gives to a large host.
const START_FAILURES: u32 = 10;

/// `JSV_TIMEOUT` where it is not set.
fn jsv_timeout_s() -> u32 {
    10
}

/// `JSV_THRESHOLD` where it is not set.
fn jsv_threshold_ms() -> u32 {
    5_000
}

/// What `qmaster_params` says, as far as Gridwright acts on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QmasterParams {
    /// `ENABLE_ENFORCE_MASTER_LIMIT`: the master ends jobs past their time on hosts it has no
    /// contact with.
    pub enable_enforce_master_limit: bool,
    /// `ENABLE_FORCED_QDEL`: users may delete their jobs with force.
    pub enable_forced_qdel: bool,
    /// `ENABLE_FORCED_QDEL_IF_UNKNOWN`: a deletion is forced where the host is unknown.
    pub enable_forced_qdel_if_unknown: bool,
    /// `FORBID_RESCHEDULE`: exit status 99 does not run a job again.
    pub forbid_reschedule: bool,
    /// `FORBID_APPERROR`: exit status 100 does not put a job into error.
    pub forbid_apperror: bool,
    /// `ENABLE_RESCHEDULE_KILL`: jobs that are rescheduled are ended where their host is reached
    /// again.
    pub enable_reschedule_kill: bool,
    /// `ENABLE_RESCHEDULE_SLAVE`: parallel jobs are rescheduled when a slave host is unknown too.
    pub enable_reschedule_slave: bool,
    /// `DISABLE_AUTO_RESCHEDULING`: `reschedule_unknown` is without effect.
    pub disable_auto_rescheduling: bool,
    /// `MAX_DYN_EC`: how many event clients may connect, if it is set.
    pub max_dyn_ec: Option<u32>,
    /// `SHOW_JOB_ENVIRONMENT`: everybody sees the values of all jobs' environments, as in 8.1.9.
    #[serde(default)]
    pub show_job_environment: bool,
    /// `MAX_START_FAILURES`: after how many starts of different jobs that fail in a row on a host
    /// it is closed; 0 closes none.
    pub max_start_failures: u32,
    /// `STREE_SPOOL_INTERVAL`: seconds between two records of share tree usage, if it is set.
    pub stree_spool_interval_s: Option<u64>,
    /// `SIMULATE_EXECDS`: hosts and jobs are simulated.
    pub simulate_execds: bool,
    /// `JSV_TIMEOUT`: seconds that the verifier of the cell may take for a job; 10 unless set.
    #[serde(default = "jsv_timeout_s")]
    pub jsv_timeout_s: u32,
    /// `JSV_THRESHOLD`: milliseconds from which on the log tells how long the verifier took for a
    /// job; 5000 unless set.
    #[serde(default = "jsv_threshold_ms")]
    pub jsv_threshold_ms: u32,
}

impl ParameterList for QmasterParams {
    fn read(parameters: &Parameters) -> Result<Self, MalformedValue> {
        let flag = |name| parameters.flag(name, false);
        Ok(Self {
            enable_enforce_master_limit: flag("ENABLE_ENFORCE_MASTER_LIMIT")?,
            enable_forced_qdel: flag("ENABLE_FORCED_QDEL")?,
            enable_forced_qdel_if_unknown: flag("ENABLE_FORCED_QDEL_IF_UNKNOWN")?,
            forbid_reschedule: flag("FORBID_RESCHEDULE")?,
            forbid_apperror: flag("FORBID_APPERROR")?,
            enable_reschedule_kill: flag("ENABLE_RESCHEDULE_KILL")?,
            enable_reschedule_slave: flag("ENABLE_RESCHEDULE_SLAVE")?,
            disable_auto_rescheduling: flag("DISABLE_AUTO_RESCHEDULING")?,
            max_dyn_ec: parameters.parsed("MAX_DYN_EC", value::bounded::<0, 0xffff_ffff, u32>)?,
            show_job_environment: flag("SHOW_JOB_ENVIRONMENT")?,
            max_start_failures: parameters
                .parsed("MAX_START_FAILURES", value::bounded::<0, 10_000, u32>)?
                .unwrap_or(START_FAILURES),
            stree_spool_interval_s: parameters.seconds("STREE_SPOOL_INTERVAL")?,
            simulate_execds: flag("SIMULATE_EXECDS")?,
            jsv_timeout_s: parameters
                .parsed("JSV_TIMEOUT", value::bounded::<1, 600, u32>)?
                .unwrap_or(jsv_timeout_s()),
            jsv_threshold_ms: parameters
                .parsed("JSV_THRESHOLD", value::bounded::<0, 0xffff_ffff, u32>)?
                .unwrap_or(jsv_threshold_ms()),
        })
    }
}

impl Default for QmasterParams {
    /// What holds where `qmaster_params` is `none`.
    fn default() -> Self {
        Self::read(&Parameters::default())
            .expect("each parameter has a default, and an empty list has no value to refuse")
    }
}

/// What `reporting_params` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportingParams {
    /// `accounting`: the accounting file is written; true unless unset.
    pub accounting: bool,
    /// `reporting`: the reporting file is written.
    pub reporting: bool,
    /// `flush_time`: seconds between two writes of the reporting file; 15 unless set.
    pub flush_time_s: u64,
    /// `accounting_flush_time`: seconds between two writes of the accounting file; those of the
    /// reporting file unless set.
    pub accounting_flush_time_s: u64,
    /// `joblog`: the reporting file follows jobs.
    pub joblog: bool,
    /// `sharelog`: seconds between two records of the share tree; 0 writes none.
    pub sharelog_s: u64,
    /// `log_consumables`: the reporting file follows all consumables.
    pub log_consumables: bool,
}

impl ParameterList for ReportingParams {
    fn read(parameters: &Parameters) -> Result<Self, MalformedValue> {
        let flush_time_s = parameters.seconds("flush_time")?.unwrap_or(15);
        Ok(Self {
            accounting: parameters.flag("accounting", true)?,
            reporting: parameters.flag("reporting", false)?,
            flush_time_s,
            accounting_flush_time_s: parameters.seconds("accounting_flush_time")?.unwrap_or(flush_time_s),
            joblog: parameters.flag("joblog", false)?,
            sharelog_s: parameters.seconds("sharelog")?.unwrap_or(0),
            log_consumables: parameters.flag("log_consumables", false)?,
        })
    }
}

impl Default for ReportingParams {
    /// What holds where `reporting_params` is `none`.
    fn default() -> Self {
        Self::read(&Parameters::default())
            .expect("each parameter has a default, and an empty list has no value to refuse")
    }
}

/// Warnings about parameters that neither 8.1.9 nor Gridwright knows. `key` is the entry they stand
/// in.
pub(super) fn unknown(key: &str, given: &Parameters) -> Vec<Diagnostic> {
    let known = || parameters(key).iter().map(|(name, _)| *name);
    let strange = given.iter().filter(|(name, _)| parameter_class(key, name).is_none());
    strange
        .map(|(name, _)| {
            let warning =
                Diagnostic::new(Code::BadValue, format!("unknown parameter \"{name}\" has no effect")).at(key);
            match suggest::nearest(name, known()) {
                Some(near) => warning.fix(format!("did you mean \"{near}\"?")),
                None => warning.fix(format!("remove it from {key}")),
            }
        })
        .collect()
}

fn truth(text: &str) -> Result<bool, MalformedValue> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => text.parse().map(|flag: value::Flag| flag.0),
    }
}

/// A nice value; -999 stands for the usual one (`sge_conf(5)`).
fn nice(parameters: &Parameters, name: &str) -> Result<Option<i32>, MalformedValue> {
    let set = parameters.parsed(name, |text| match text {
        "-999" => Ok(None),
        _ => value::bounded::<-20, 20, i32>(text).map(Some),
    })?;
    Ok(set.flatten())
}

fn notify_signal(text: &str) -> Result<NotifySignal, MalformedValue> {
    if is_none(text) {
        return Ok(NotifySignal::Silent);
    }
    if text.eq_ignore_ascii_case("default") {
        return Ok(NotifySignal::Usual);
    }
    text.parse().map(|signal: Signal| NotifySignal::Signal(signal.number()))
}

fn timeout(text: &str) -> Result<u32, MalformedValue> {
    let seconds = TimeText::finite(text)?.seconds();
    let timeout = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    timeout
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| MalformedValue::new("a time of at least one second"))
}

fn pdc_interval(text: &str) -> Result<PdcInterval, MalformedValue> {
    match text.to_ascii_uppercase().as_str() {
        "PER_LOAD_REPORT" => Ok(PdcInterval::PerLoadReport),
        "NEVER" => Ok(PdcInterval::Never),
        _ => match TimeText::finite(text)?.seconds() {
            Some(seconds) if seconds > 0 => Ok(PdcInterval::Seconds(seconds)),
            Some(_) | None => Err(MalformedValue::new(
                "a time of at least one second, PER_LOAD_REPORT or NEVER",
            )),
        },
    }
}

fn mem_free_classic(text: &str) -> Result<bool, MalformedValue> {
    match text.to_ascii_lowercase().as_str() {
        "classic" => Ok(true),
        "available" => Ok(false),
        _ => Err(MalformedValue::new("classic or available")),
    }
}

fn vmem_meaning(text: &str) -> Result<VmemMeaning, MalformedValue> {
    match text.to_ascii_lowercase().as_str() {
        "address" => Ok(VmemMeaning::Address),
        "memory" => Ok(VmemMeaning::Memory),
        _ => Err(MalformedValue::new("address or memory")),
    }
}

fn limit_pair(parameters: &Parameters, soft: &str, hard: &str) -> Result<Option<LimitPair>, MalformedValue> {
    let soft = parameters.parsed(soft, limit)?;
    let hard = parameters.parsed(hard, limit)?;
    Ok(soft.or(hard).zip(hard.or(soft)).map(|(soft, hard)| LimitPair {
        soft: soft.min(hard),
        hard,
    }))
}

/// A count or a size with an optional multiplier, or INFINITY; `unlimited` is read too.
fn limit(text: &str) -> Result<Amount, MalformedValue> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(Amount::INFINITY);
    }
    let amount = Amount::parse(text, Type::Memory)
        .ok()
        .filter(|amount| !amount.is_negative());
    amount.ok_or_else(|| MalformedValue::new("a number with an optional multiplier, or INFINITY,"))
}
