//! The records a shepherd leaves behind: `exec` before the job starts, `result` after its end.

use super::document::{BoundValue, Resource};
use super::pairs::{DecodeError, PairReader, Record, Slot, Value, Writer, nested, put_kind, read_kind, record, words};
use crate::id::TaskKey;
use crate::usage::{Conditions, UnsetLimits};

/// `tasks/KEY/exec`: durable before execve(2). Names the main process beyond doubt: pid, start time
/// and boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecRecord {
    /// The task.
    pub key: TaskKey,
    /// The main process, also its session and process group.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The user the process runs as.
    pub uid: u32,
    /// The supplementary group of the task, if it has one.
    pub tracking_gid: Option<u32>,
    /// Milliseconds of `CLOCK_BOOTTIME` just before execve.
    pub boot_ms: u64,
    /// The cgroup directory made for the task, if one was made.
    pub cgroup: Option<String>,
}
record!(ExecRecord {
    key,
    pid,
    start_ticks,
    boot_id,
    uid,
    tracking_gid,
    boot_ms,
    cgroup
});

/// `tasks/KEY/result`: how the task ended. Written once, kept until the agent says forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchResult {
    /// The task.
    pub key: TaskKey,
    /// How the job itself ended.
    pub cause: EndCause,
    /// What failed after the job itself, such as the epilog.
    pub after: Option<Failure>,
    /// Whether execve of the job happened. With `false` the start may be repeated (ARCHITECTURE.md
    /// "Time, keys and requests").
    pub executed: bool,
    /// Whether an order of the agent (terminate or kill) came before the end.
    pub ordered: bool,
    /// The limit that ended the task, or may have.
    pub limit: Option<HostLimitHit>,
    /// Limits that setrlimit(2) refused; the job ran without them.
    pub refused_limits: Vec<HostRefusedLimit>,
    /// How the procedures ended, in the order they ran.
    pub procedures: Vec<ProcedureEnd>,
    /// What the task used.
    pub usage: TaskUsage,
    /// Milliseconds from execve to the end of the main process; 0 if it was never executed.
    pub wallclock_ms: u64,
    /// `CLOCK_BOOTTIME` in milliseconds at execve; 0 if it was never executed. "Ago" is the
    /// difference to now, valid only within the same boot.
    pub started_boot_ms: u64,
    /// `CLOCK_BOOTTIME` in milliseconds when the result was written.
    pub ended_boot_ms: u64,
    /// The boot these times belong to.
    pub boot_id: String,
    /// The main process, if a command wrote the state of the job.
    pub saved_pid: Option<i32>,
    /// How many processes of the task could not be ended. `None` of a task whose shepherd died
    /// means that some may have escaped the search.
    pub left_processes: Option<u32>,
    /// What a person should know of a task that ended by itself: the reason of exit status 100, or
    /// what of its files is left.
    pub note: Option<String>,
}
record!(LaunchResult {
    key,
    cause,
    after,
    executed,
    ordered,
    limit,
    refused_limits,
    procedures,
    usage,
    wallclock_ms,
    started_boot_ms,
    ended_boot_ms,
    boot_id,
    saved_pid,
    left_processes,
    note,
});

/// How the job itself ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// It returned this code, also 99 and 100.
    Exited(u8),
    /// A signal ended it; accounting shows 128 + signal.
    Signalled {
        /// The signal.
        signal: i32,
        /// Whether a core was dumped.
        core: bool,
    },
    /// It never ran.
    FailedToStart(Failure),
    /// Its shepherd died, or the host restarted. The task was ended whole; its exit status is
    /// unknown.
    ShepherdDied,
}

impl Record for EndCause {
    fn write_pairs(&self, writer: &mut Writer) {
        match self {
            EndCause::Exited(code) => {
                put_kind(writer, "exited");
                code.write("code", writer);
            }
            EndCause::Signalled { signal, core } => {
                put_kind(writer, "signalled");
                signal.write("signal", writer);
                core.write("core", writer);
            }
            EndCause::FailedToStart(failure) => {
                put_kind(writer, "failed");
                failure.write("failure", writer);
            }
            EndCause::ShepherdDied => put_kind(writer, "shepherd-died"),
        }
    }

    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match read_kind(reader)?.as_str() {
            "exited" => Slot::read("code", reader).map(EndCause::Exited),
            "signalled" => Ok(EndCause::Signalled {
                signal: Slot::read("signal", reader)?,
                core: Slot::read("core", reader)?,
            }),
            "failed" => Slot::read("failure", reader).map(EndCause::FailedToStart),
            "shepherd-died" => Ok(EndCause::ShepherdDied),
            _ => Err(DecodeError::BadValue("cause")),
        }
    }
}
nested!(EndCause);

/// Why something failed, in the words of sge_status(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The `failed` code of accounting: see [`FailedCodes`].
    pub failed: u8,
    /// What, where and why, for a person.
    pub text: String,
    /// The system's error number, 0 if none.
    pub errno: i32,
    /// The file or directory concerned, empty if none.
    pub path: String,
}
record!(Failure {
    failed,
    text,
    errno,
    path
});

impl Failure {
    /// A failure for which neither the job nor its user is to blame.
    pub fn of_host(text: impl Into<String>, errno: i32) -> Self {
        Failure {
            failed: FailedCodes::BEFORE_PROLOG,
            text: text.into(),
            errno,
            path: String::new(),
        }
    }

    /// The failure of a start whose shepherd died before the job began.
    pub fn of_shepherd() -> Self {
        let failure = Failure::of_host("the task's shepherd died before it could start the job", 0);
        Failure {
            failed: FailedCodes::BEFORE_EXEC,
            ..failure
        }
    }

    /// Whether the host is to blame, so that any other job would have failed there too.
    pub fn is_hosts_fault(&self) -> bool {
        matches!(self.failed, FailedCodes::BEFORE_PROLOG | FailedCodes::BEFORE_EXEC)
    }
}

/// The `failed` codes of sge_status(5) that a host produces.
pub struct FailedCodes;

impl FailedCodes {
    /// Presumed failure before the job.
    pub const BEFORE_JOB: u8 = 1;
    /// A setting of the queue names something that the host does not have: its instance takes no
    /// more tasks.
    pub const QUEUE_SETTING: u8 = 3;
    /// The host could not prepare the job: its own fault, which any other job would meet too (see
    /// [`Failure::is_hosts_fault`]).
    pub const BEFORE_PROLOG: u8 = 7;
    /// The prolog failed.
    pub const PROLOG: u8 = 8;
    /// The parallel environment's start procedure failed.
    pub const PE_START: u8 = 10;
    /// The shepherd died before the job began, which no job can bring about: the host's own fault.
    pub const BEFORE_EXEC: u8 = 11;
    /// The parallel environment's stop procedure failed.
    pub const PE_STOP: u8 = 13;
    /// The epilog failed.
    pub const EPILOG: u8 = 15;
    /// The user's home directory or the user is unknown.
    pub const NO_USER: u8 = 17;
    /// A procedure asked to reschedule (exit 99).
    pub const RESCHEDULE: u8 = 25;
    /// An input or output file cannot be opened.
    pub const OPEN_FILE: u8 = 26;
    /// The shell or the program is missing.
    pub const NO_SHELL: u8 = 27;
    /// The working directory cannot be entered.
    pub const NO_CWD: u8 = 28;
    /// A procedure returned 100: error state of the job.
    pub const APPLICATION_ERROR: u8 = 30;
    /// A limit of the task was exceeded.
    pub const LIMIT: u8 = 37;
    /// Assumedly after the job: it died by a signal.
    pub const AFTER_JOB: u8 = 100;
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimitHit {
    /// Its name, such as `h_vmem`.
    pub limit: String,
    /// Its value: bytes or seconds.
    pub bound: u64,
    /// What was reached, in the same unit; fractions of seconds are cut off.
    pub reached: u64,
    /// How sure it is that the limit ended the task.
    pub evidence: HostEvidence,
}
record!(HostLimitHit {
    limit,
    bound,
    reached,
    evidence
});

/// How sure it is that a limit ended the task (ARCHITECTURE.md "On a host").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvidence {
    /// The clock, the sampler, SIGXCPU, SIGXFSZ or the out-of-memory killer in the task's own
    /// group.
    Certain,
    /// An address-space, data or stack limit was in force, the peak was near it, and the task
    /// failed.
    Likely,
    /// It cannot be told.
    Unknown,
}
words!(HostEvidence { Certain = "certain", Likely = "likely", Unknown = "unknown" });

/// A limit that could not be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRefusedLimit {
    /// The resource.
    pub resource: Resource,
    /// The soft limit wanted.
    pub soft: BoundValue,
    /// The hard limit wanted.
    pub hard: BoundValue,
    /// Why not, EPERM as a rule.
    pub errno: i32,
}
record!(HostRefusedLimit {
    resource,
    soft,
    hard,
    errno
});

/// How one procedure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcedureEnd {
    /// Which.
    pub kind: ProcedureKind,
    /// Its exit code, or 128 + signal.
    pub status: i32,
}
record!(ProcedureEnd { kind, status });

/// The procedures around a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureKind {
    /// Before everything else.
    Prolog,
    /// Starts the parallel environment.
    PeStart,
    /// Stops the parallel environment.
    PeStop,
    /// After everything else.
    Epilog,
}
words!(ProcedureKind { Prolog = "prolog", PeStart = "pe_start", PeStop = "pe_stop", Epilog = "epilog" });

/// What a task used: up to now in a sample, in all in a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskUsage {
    /// CPU milliseconds of all processes, those already gone included.
    pub cpu_ms: u64,
    /// Of these in user mode, from rusage: only what was waited for.
    pub utime_ms: u64,
    /// Of these in the kernel.
    pub stime_ms: u64,
    /// Resident memory times processor time, process by process, in byte-milliseconds.
    pub mem_byte_ms: u128,
    /// Bytes read and written, as `/proc/PID/io` counts them.
    pub io_bytes: u64,
    /// Address space of all processes now.
    pub vmem_bytes: u64,
    /// The largest `vmem_bytes` seen; 0, which is unknown, for a task that ended before its first
    /// sample.
    pub maxvmem_bytes: u64,
    /// Resident memory of all processes now.
    pub rss_bytes: u64,
    /// The largest `rss_bytes` seen.
    pub maxrss_bytes: u64,
    /// The largest resident memory of one process (`ru_maxrss`).
    pub process_maxrss_bytes: u64,
    /// Page faults without input (`ru_minflt`).
    pub minflt: u64,
    /// Page faults with input (`ru_majflt`).
    pub majflt: u64,
    /// Blocks read (`ru_inblock`).
    pub inblock: u64,
    /// Blocks written (`ru_oublock`).
    pub oublock: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Processes alive now.
    pub processes: u32,
    /// How the task waits, and which limits it runs without. An older shepherd does not say.
    pub conditions: Option<Conditions>,
}
record!(TaskUsage {
    cpu_ms,
    utime_ms,
    stime_ms,
    mem_byte_ms,
    io_bytes,
    vmem_bytes,
    maxvmem_bytes,
    rss_bytes,
    maxrss_bytes,
    process_maxrss_bytes,
    minflt,
    majflt,
    inblock,
    oublock,
    nvcsw,
    nivcsw,
    processes,
    conditions,
});

record!(Conditions {
    cpu_pressure,
    memory_pressure,
    unset
});

impl Value for UnsetLimits {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(bytes: &[u8]) -> Option<Self> {
        u32::take(bytes).map(UnsetLimits)
    }
}
