//! How a task ended: the status word that C programs keep, and its usage as `name=value`.

use proto::accounting::AccountingRecord;
use proto::usage::FailedCode;
use std::fmt::Display;

/// Signals that leave a core image by default, signal(7).
const WITH_CORE: [u8; 10] = [3, 4, 5, 6, 7, 8, 11, 24, 25, 31];

/// The exit status of accounting(5) from which a signal is counted.
const SIGNALLED: u32 = 128;

/// The way of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// It returned an exit status.
    Exited(u8),
    /// A signal ended it.
    Signaled(u8),
    /// It never ran, could not be started, or was deleted.
    Aborted,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// The way.
    pub kind: EndKind,
    /// What accounting has; `None` for a task that never reached a host.
    pub record: Option<Box<AccountingRecord>>,
}

/// Whether somebody wanted the task to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It ended by itself or by a limit.
    No,
    /// It was deleted.
    Yes,
}

impl TaskEnd {
    /// The end of a task that never reached a host.
    pub const NEVER_RAN: TaskEnd = TaskEnd {
        kind: EndKind::Aborted,
        record: None,
    };

    /// The end that a record tells of.
    pub fn of_record(record: Box<AccountingRecord>, deletion: Deletion) -> Self {
        let kind = match deletion {
            Deletion::Yes => EndKind::Aborted,
            Deletion::No => kind(&record),
        };
        Self {
            kind,
            record: Some(record),
        }
    }

    /// The end of a task that would wait in error: for its user it is over.
    pub fn failed(record: Option<Box<AccountingRecord>>) -> Self {
        Self {
            kind: EndKind::Aborted,
            record,
        }
    }

    /// The usage, as 8.1.9 names and orders it. `None` if there is none.
    pub fn usage(&self) -> Option<Vec<String>> {
        self.record.as_ref().map(|record| usage(record, self.kind))
    }

    /// The status word.
    pub fn status(&self) -> StatusWord {
        StatusWord::of(self.kind)
    }
}

fn kind(record: &AccountingRecord) -> EndKind {
    let signal = record
        .exit_status
        .checked_sub(SIGNALLED)
        .and_then(|number| u8::try_from(number).ok());
    match record.failed {
        FailedCode::AFTER_JOB | FailedCode::LIMIT_ENFORCED => signal
            .filter(|number| *number > 0)
            .map_or_else(|| EndKind::Exited(status_byte(record.exit_status)), EndKind::Signaled),
        failed if failed == FailedCode::NO || (failed.is_usage_valid() && record.started.0 > 0) => {
            EndKind::Exited(status_byte(record.exit_status))
        }
        _failed => EndKind::Aborted,
    }
}

fn status_byte(status: u32) -> u8 {
    u8::try_from(status).unwrap_or(u8::MAX)
}

/// The `stat` of `drmaa_wait`, of which a program knows nothing but the `drmaa_wif…` functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusWord(pub i32);

const EXITED: i32 = 1;
const SIGNALED: i32 = 2;
const CORE: i32 = 4;
const ABORTED: i32 = 8;
const VALUE_SHIFT: u32 = 8;

impl StatusWord {
    /// The word for an end.
    pub fn of(kind: EndKind) -> Self {
        let value = |byte: u8| i32::from(byte) << VALUE_SHIFT;
        Self(match kind {
            EndKind::Exited(status) => EXITED | value(status),
            EndKind::Signaled(signal) if WITH_CORE.contains(&signal) => SIGNALED | CORE | value(signal),
            EndKind::Signaled(signal) => SIGNALED | value(signal),
            EndKind::Aborted => ABORTED,
        })
    }

    /// Whether it returned an exit status.
    pub fn has_exited(self) -> bool {
        self.0 & EXITED != 0
    }

    /// Whether a signal ended it.
    pub fn is_signaled(self) -> bool {
        self.0 & SIGNALED != 0
    }

    /// Whether the signal is one that leaves a core image.
    pub fn has_core(self) -> bool {
        self.0 & CORE != 0
    }

    /// Whether it was aborted.
    pub fn is_aborted(self) -> bool {
        self.0 & ABORTED != 0
    }

    /// The exit status; 0 if it has none.
    pub fn exit_status(self) -> u8 {
        if self.has_exited() { self.value() } else { 0 }
    }

    /// The name of the signal; empty if there was none.
    pub fn signal(self) -> String {
        if self.is_signaled() {
            signal_name(self.value())
        } else {
            String::new()
        }
    }

    fn value(self) -> u8 {
        let [_, value, ..] = self.0.to_le_bytes();
        value
    }
}

fn signal_name(number: u8) -> String {
    let known = nix::sys::signal::Signal::try_from(i32::from(number)).ok();
    known.map_or_else(|| format!("SIG{number}"), |signal| signal.as_str().to_owned())
}

/// The names that 8.1.9 gives, in its order, with values that have four decimals.
fn usage(record: &AccountingRecord, kind: EndKind) -> Vec<String> {
    let (r, u) = (&record.rusage, &record.usage);
    let (status, signal) = match kind {
        EndKind::Exited(status) => (status, 0),
        EndKind::Signaled(signal) => (0, signal),
        EndKind::Aborted => (0, 0),
    };
    let cpu = decimal(u.cpu_ms, 1_000);
    let mem = decimal(u.mem_kib_ms, 1_000 << 20);
    let io = decimal(u.io_bytes, 1 << 30);
    let iow = decimal(u.iow_ms, 1_000);
    let maxvmem = whole(u.maxvmem_bytes);
    let named: [(&str, String); 33] = [
        ("submission_time", whole(record.submitted.seconds())),
        ("start_time", whole(record.started.seconds())),
        ("end_time", whole(record.ended.seconds())),
        ("exit_status", whole(status)),
        ("signal", whole(signal)),
        ("priority", whole(record.priority)),
        ("ru_wallclock", whole(record.wallclock_s())),
        ("ru_utime", decimal(r.utime_ms, 1_000)),
        ("ru_stime", decimal(r.stime_ms, 1_000)),
        ("ru_maxrss", whole(r.maxrss_kib)),
        ("ru_ixrss", whole(0)),
        ("ru_ismrss", whole(0)),
        ("ru_idrss", whole(0)),
        ("ru_isrss", whole(0)),
        ("ru_minflt", whole(r.minflt)),
        ("ru_majflt", whole(r.majflt)),
        ("ru_nswap", whole(0)),
        ("ru_inblock", whole(r.inblock)),
        ("ru_oublock", whole(r.oublock)),
        ("ru_msgsnd", whole(0)),
        ("ru_msgrcv", whole(0)),
        ("ru_nsignals", whole(0)),
        ("ru_nvcsw", whole(r.nvcsw)),
        ("ru_nivcsw", whole(r.nivcsw)),
        ("cpu", cpu.clone()),
        ("mem", mem.clone()),
        ("io", io.clone()),
        ("iow", iow.clone()),
        ("vmem", whole(u.vmem_bytes)),
        ("maxvmem", maxvmem.clone()),
        ("acct_cpu", cpu),
        ("acct_mem", mem),
        ("acct_io", io),
    ];
    let last = [("acct_iow", iow), ("acct_maxvmem", maxvmem)];
    let pair = |(name, value): (&str, String)| format!("{name}={value}");
    named.into_iter().chain(last).map(pair).collect()
}

fn whole(value: impl Display) -> String {
    format!("{value}.0000")
}

/// Parts of a unit as a number with four decimals, rounded down.
fn decimal(parts: u64, unit: u64) -> String {
    let ten_thousandths = u128::from(parts) * 10_000 / u128::from(unit);
    format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_word_keeps_the_way_of_the_end() {
        let read = |kind| {
            let word = StatusWord::of(kind);
            (
                word.has_exited(),
                word.exit_status(),
                word.signal(),
                word.has_core(),
                word.is_aborted(),
            )
        };
        assert_eq!(read(EndKind::Exited(255)), (true, 255, String::new(), false, false));
        assert_eq!(read(EndKind::Exited(0)), (true, 0, String::new(), false, false));
        assert_eq!(
            read(EndKind::Signaled(9)),
            (false, 0, "SIGKILL".to_owned(), false, false)
        );
        assert_eq!(
            read(EndKind::Signaled(11)),
            (false, 0, "SIGSEGV".to_owned(), true, false)
        );
        assert_eq!(read(EndKind::Aborted), (false, 0, String::new(), false, true));
        assert_eq!(StatusWord(i32::MIN).signal(), "");
        assert_eq!(StatusWord(SIGNALED | 200 << VALUE_SHIFT).signal(), "SIG200");
    }

    #[test]
    fn values_have_four_decimals() {
        assert_eq!(
            (decimal(6, 1_000), decimal(1_500, 1_000)),
            ("0.0060".to_owned(), "1.5000".to_owned())
        );
        assert_eq!(decimal(u64::MAX, 1_000), "18446744073709551.6150");
        assert_eq!(whole(4624), "4624.0000");
    }
}
