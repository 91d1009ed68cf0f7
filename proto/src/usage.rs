//! What a task used, and the words for how it ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The measured use of one task on one host, all of its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Memory times processor time, in KiB times milliseconds.
    pub mem_kib_ms: u64,
    /// Bytes read and written.
    pub io_bytes: u64,
    /// Time spent waiting for I/O, in milliseconds.
    pub iow_ms: u64,
    /// Address space now, in bytes.
    pub vmem_bytes: u64,
    /// The largest address space seen, in bytes; 0 is unknown, as of a task that ended before it
    /// was measured.
    pub maxvmem_bytes: u64,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// The largest resident memory seen, in bytes.
    pub maxrss_bytes: u64,
    /// How the task waits, and which limits it runs without.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Conditions,
}

/// The circumstances of a task on its host, beside its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The share of the last ten seconds in which some process waited for the processor, in
    /// hundredths of a percent. `None` where the host does not know.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_pressure: Option<u32>,
    /// The same for memory.
    #[serde(skip_serializing_if = "is_default")]
    pub memory_pressure: Option<u32>,
    /// The limits that were asked for and that the host could not set.
    #[serde(skip_serializing_if = "is_default")]
    pub unset: UnsetLimits,
}

impl Conditions {
    const NONE: Self = Self {
        cpu_pressure: None,
        memory_pressure: None,
        unset: UnsetLimits(0),
    };

    /// Of two hosts: the higher pressure, and what either of them could not set.
    fn with(self, other: Self) -> Self {
        Self {
            cpu_pressure: self.cpu_pressure.max(other.cpu_pressure),
            memory_pressure: self.memory_pressure.max(other.memory_pressure),
            unset: UnsetLimits(self.unset.0 | other.unset.0),
        }
    }
}

/// Limits that a host could not set, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnsetLimits(pub u32);

/// The bits of [`UnsetLimits`], and what each says. Their order never changes.
const UNSET: [(&str, &str); 14] = [
    (
        "memory",
        "h_vmem limits address space, not memory in use: this node cannot limit that",
    ),
    ("swap", "h_vmem does not limit swap space: the kernel does not count it"),
    ("cpu", "h_cpu of each process was refused by the kernel"),
    ("fsize", "h_fsize was refused by the kernel"),
    ("data", "h_data was refused by the kernel"),
    ("stack", "h_stack was refused by the kernel"),
    ("core", "h_core was refused by the kernel"),
    ("rss", "h_rss of each process was refused by the kernel"),
    ("vmem", "h_vmem of each process was refused by the kernel"),
    ("descriptors", "H_DESCRIPTORS was refused by the kernel"),
    ("maxproc", "H_MAXPROC of each user was refused by the kernel"),
    ("memorylocked", "H_MEMORYLOCKED was refused by the kernel"),
    ("locks", "H_LOCKS was refused by the kernel"),
    (
        "binding",
        "the processors of the binding were refused by the kernel: the task runs on all of them",
    ),
];

impl UnsetLimits {
    /// Adds a limit by its name. A name that is not known is not added.
    pub fn insert(&mut self, name: &str) {
        if let Some(bit) = UNSET.iter().position(|(known, _)| *known == name) {
            self.0 |= 1 << bit;
        }
    }

    /// What people are told, a text per limit. Bits of a newer host say nothing here.
    pub fn texts(self) -> impl Iterator<Item = &'static str> {
        let of_bit = move |(bit, (_, text)): (usize, &(&str, &'static str))| (self.0 >> bit & 1 == 1).then_some(*text);
        UNSET.iter().enumerate().filter_map(of_bit)
    }
}

impl Usage {
    /// Nothing.
    pub const NONE: Self = Self {
        cpu_ms: 0,
        mem_kib_ms: 0,
        io_bytes: 0,
        iow_ms: 0,
        vmem_bytes: 0,
        maxvmem_bytes: 0,
        rss_bytes: 0,
        maxrss_bytes: 0,
        conditions: Conditions::NONE,
    };

    /// What two runs (or two hosts) used together: sums for what adds up, maxima for peaks.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            cpu_ms: self.cpu_ms.saturating_add(other.cpu_ms),
            mem_kib_ms: self.mem_kib_ms.saturating_add(other.mem_kib_ms),
            io_bytes: self.io_bytes.saturating_add(other.io_bytes),
            iow_ms: self.iow_ms.saturating_add(other.iow_ms),
            vmem_bytes: self.vmem_bytes.saturating_add(other.vmem_bytes),
            maxvmem_bytes: self.maxvmem_bytes.max(other.maxvmem_bytes),
            rss_bytes: self.rss_bytes.saturating_add(other.rss_bytes),
            maxrss_bytes: self.maxrss_bytes.max(other.maxrss_bytes),
            conditions: self.conditions.with(other.conditions),
        }
    }

    /// The same with at least what is known to have been used.
    pub fn at_least(self, known: Consumption) -> Usage {
        let Consumption {
            cpu_ms,
            mem_kib_ms,
            io_bytes,
        } = known.max(self.into());
        Usage {
            cpu_ms,
            mem_kib_ms,
            io_bytes,
            ..self
        }
    }
}

/// The part of a task's use that its owner is charged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Consumption {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Memory times processor time, in KiB times milliseconds.
    pub mem_kib_ms: u64,
    /// Bytes read and written.
    pub io_bytes: u64,
}

impl From<Usage> for Consumption {
    fn from(usage: Usage) -> Self {
        Self {
            cpu_ms: usage.cpu_ms,
            mem_kib_ms: usage.mem_kib_ms,
            io_bytes: usage.io_bytes,
        }
    }
}

impl Consumption {
    /// What was used since `earlier`: nothing of a kind that has become less.
    pub fn since(self, earlier: Consumption) -> Consumption {
        Consumption {
            cpu_ms: self.cpu_ms.saturating_sub(earlier.cpu_ms),
            mem_kib_ms: self.mem_kib_ms.saturating_sub(earlier.mem_kib_ms),
            io_bytes: self.io_bytes.saturating_sub(earlier.io_bytes),
        }
    }

    /// The larger of both, for each kind by itself.
    pub fn max(self, other: Consumption) -> Consumption {
        Consumption {
            cpu_ms: self.cpu_ms.max(other.cpu_ms),
            mem_kib_ms: self.mem_kib_ms.max(other.mem_kib_ms),
            io_bytes: self.io_bytes.max(other.io_bytes),
        }
    }
}

/// The `getrusage(2)` numbers of a task's processes, as accounting(5) lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rusage {
    /// User time in milliseconds.
    pub utime_ms: u64,
    /// System time in milliseconds.
    pub stime_ms: u64,
    /// Largest resident set of any one process, in KiB.
    pub maxrss_kib: u64,
    /// Page faults without I/O.
    pub minflt: u64,
    /// Page faults with I/O.
    pub majflt: u64,
    /// File system input operations.
    pub inblock: u64,
    /// File system output operations.
    pub oublock: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
}

impl Rusage {
    /// Nothing.
    pub const NONE: Self = Self {
        utime_ms: 0,
        stime_ms: 0,
        maxrss_kib: 0,
        minflt: 0,
        majflt: 0,
        inblock: 0,
        oublock: 0,
        nvcsw: 0,
        nivcsw: 0,
    };

    /// What two tasks used together: sums, and of the peak the larger one.
    pub fn plus(self, other: Rusage) -> Rusage {
        Rusage {
            utime_ms: self.utime_ms.saturating_add(other.utime_ms),
            stime_ms: self.stime_ms.saturating_add(other.stime_ms),
            maxrss_kib: self.maxrss_kib.max(other.maxrss_kib),
            minflt: self.minflt.saturating_add(other.minflt),
            majflt: self.majflt.saturating_add(other.majflt),
            inblock: self.inblock.saturating_add(other.inblock),
            oublock: self.oublock.saturating_add(other.oublock),
            nvcsw: self.nvcsw.saturating_add(other.nvcsw),
            nivcsw: self.nivcsw.saturating_add(other.nivcsw),
        }
    }
}

/// The `failed` field of accounting(5): where in its life a task went wrong, 0 if nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailedCode(pub u8);

impl FailedCode {
    /// Nothing failed; the exit status is the job's own.
    pub const NO: FailedCode = FailedCode(0);
    /// The start was ordered and never happened.
    pub const BEFORE_JOB: FailedCode = FailedCode(1);
    /// The host could not prepare the job.
    pub const BEFORE_PROLOG: FailedCode = FailedCode(7);
    /// The prolog failed.
    pub const IN_PROLOG: FailedCode = FailedCode(8);
    /// The task's shepherd died before it could start the job.
    pub const BEFORE_EXEC: FailedCode = FailedCode(11);
    /// The epilog failed.
    pub const IN_EPILOG: FailedCode = FailedCode(15);
    /// The host no longer knew the task.
    pub const IN_RECOGNIZING_JOB: FailedCode = FailedCode(21);
    /// A checkpointing job was ended to go on elsewhere.
    pub const MIGRATING: FailedCode = FailedCode(24);
    /// The task is to run again (exit 99, or rescheduled by hand).
    pub const RESCHEDULING: FailedCode = FailedCode(25);
    /// Standard input, output or error could not be opened.
    pub const OPENING_FILES: FailedCode = FailedCode(26);
    /// The shell or interpreter is missing.
    pub const SEARCHING_SHELL: FailedCode = FailedCode(27);
    /// The working directory is missing or closed to the user.
    pub const CHANGING_DIRECTORY: FailedCode = FailedCode(28);
    /// The job ended with exit status 100.
    pub const APPLICATION_ERROR: FailedCode = FailedCode(30);
    /// A limit was enforced by clock or sampler.
    pub const LIMIT_ENFORCED: FailedCode = FailedCode(37);
    /// The job ended by a signal.
    pub const AFTER_JOB: FailedCode = FailedCode(100);

    /// The text behind the number in `qacct -j` and in mails.
    pub fn text(self) -> &'static str {
        match self.0 {
            0 => "",
            1 => "assumedly before job",
            3 => "before writing config",
            4 => "before writing PID",
            5 => "on reading config file",
            6 => "setting processor set",
            7 => "before prolog",
            8 => "in prolog",
            9 => "before pestart",
            10 => "in pestart",
            11 => "before job",
            12 => "before pestop",
            13 => "in pestop",
            14 => "before epilog",
            15 => "in epilog",
            16 => "releasing processor set",
            17 => "through signal",
            18 => "no shepherd exit status",
            19 => "before writing exit_status",
            20 => "found unexpected error file",
            21 => "in recognizing job",
            24 => "migrating",
            25 => "rescheduling",
            26 => "opening input/output file",
            27 => "searching requested shell",
            28 => "changing into working directory",
            29 => "AFS setup",
            30 => "application error returned",
            31 => "accessing sgepasswd file",
            32 => "entry missing in password file",
            33 => "wrong password",
            34 => "communicating with Grid Engine Helper Service",
            35 => "before job in Grid Engine Helper Service",
            36 => "checking configured daemons",
            37 => "qmaster enforced h_rt, h_cpu, or h_vmem limit",
            38 => "adding supplementary group",
            100 => "assumedly after job",
            _ => "unknown reason",
        }
    }

    /// Whether the task ran, so that its usage and times count.
    pub fn is_usage_valid(self) -> bool {
        matches!(self.0, 0 | 12..=15 | 24 | 25 | 30 | 37 | 100)
    }
}

impl fmt::Display for FailedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How sure it is that a limit ended a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Seen: the clock, the sampler, SIGXCPU, SIGXFSZ, or an out-of-memory kill inside the task.
    Certain,
    /// An address-space, data or stack limit was in force, the peak came near it, and the task
    /// failed.
    Likely,
    /// A limit was in force and nothing speaks for or against it.
    Unknown,
}

/// The limit that ended a task, and how far the task had come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// The attribute: `h_vmem`, `s_rt`, …
    pub limit: String,
    /// Its value for the whole task on this host, in bytes or seconds.
    pub value: u64,
    /// What was reached, in the same unit.
    pub reached: u64,
    /// How sure this is.
    pub evidence: Evidence,
}

/// A limit that the host did not accept, so that the task ran without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLimit {
    /// The attribute.
    pub limit: String,
    /// What was asked for, in bytes, seconds or units.
    pub wanted: u64,
    /// The system's reason.
    pub reason: String,
}

/// How a task's job process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It called exit with this code.
    Code(u8),
    /// It was ended by this signal.
    Signal {
        /// The signal's number.
        number: u8,
        /// Whether a core was dumped.
        core: bool,
    },
    /// It never ran.
    NotStarted,
}

impl Exit {
    /// The `exit_status` of accounting(5): the code, or 128 plus the signal, or 0 for what never
    /// ran.
    pub fn status(self) -> u32 {
        match self {
            Exit::Code(code) => u32::from(code),
            Exit::Signal { number, .. } => 128 + u32::from(number),
            Exit::NotStarted => 0,
        }
    }
}

/// The party at fault if a task did not start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The job's or its user's: it would fail on any host, so it waits in error. An older host says
    /// so of every start that fails.
    #[default]
    Job,
    /// The host's: another job would have failed there too, so the task waits again and the host
    /// gets no more of them for now.
    Host,
    /// The queue's: its settings name something that this host does not have or does not allow. Its
    /// instance takes no more tasks until somebody has looked. Only a launcher says so; to the
    /// master the code of the failure says the same.
    Queue,
}

/// Everything known about the end of one attempt of a task. Times are durations, never times of
/// day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// How the job process ended.
    pub exit: Exit,
    /// Where it went wrong, if it did.
    pub failed: FailedCode,
    /// The reason in words, for `error reason` and for people; empty for a plain end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reason: String,
    /// From the start of the job process to its end, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wallclock_ms: u64,
    /// How long before this message was made the task ended, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended_ago_ms: u64,
    /// Measured use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: Usage,
    /// `getrusage` numbers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rusage: Rusage,
    /// The limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Option<LimitHit>,
    /// Limits that the host refused to set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refused_limits: Vec<RefusedLimit>,
    /// The main process of the job, if a command wrote its state during this attempt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub saved_pid: Option<i32>,
    /// The party at fault, if the job process never ran.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blame: Blame,
}

/// Whether a value goes without saying.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TaskResult {
    /// The result of an attempt that never came to run.
    pub fn not_started(failed: FailedCode, reason: impl Into<String>) -> Self {
        Self {
            exit: Exit::NotStarted,
            failed,
            reason: reason.into(),
            wallclock_ms: 0,
            ended_ago_ms: 0,
            usage: Usage::default(),
            rusage: Rusage::default(),
            limit: None,
            refused_limits: Vec::new(),
            saved_pid: None,
            blame: Blame::Job,
        }
    }

    /// The result of an attempt that never came to run because its host cannot start tasks at the
    /// moment.
    pub fn host_unfit(reason: impl Into<String>) -> Self {
        Self {
            blame: Blame::Host,
            ..Self::not_started(FailedCode::BEFORE_PROLOG, reason)
        }
    }

    /// Whether the job process never ran by the fault of its host.
    pub fn is_hosts_fault(&self) -> bool {
        self.exit == Exit::NotStarted && self.blame == Blame::Host
    }
}
