//! The block of one record: keys in 13 columns, as programs slice them (master/cli/README.md "What
//! programs may rely on").

use super::entry::AccountingEntry;
use crate::output::time::Clock;
use crate::output::value::{bytes, fraction};
use proto::accounting::AccountingRecord;
use proto::amount::{Amount, Type};
use proto::time::Wall;
use proto::usage::{Evidence, FailedCode, LimitHit, Rusage};
use std::fmt::{Display, Write as _};

/// All blocks.
pub fn render(entries: &[AccountingEntry], clock: &Clock) -> String {
    let mut block = RecordBlock { text: String::new() };
    for entry in entries {
        block.whole(entry, clock);
    }
    block.text
}

struct RecordBlock {
    text: String,
}

impl RecordBlock {
    fn whole(&mut self, AccountingEntry { record, used }: &AccountingEntry, clock: &Clock) {
        let _ = writeln!(self.text, "{}", "=".repeat(62));
        self.identity(record, clock);
        self.ending(record);
        self.bare("ru_wallclock", format_args!("{}s", used.wallclock_s));
        self.rusage(record);
        self.usage(record);
        self.reservation(record, clock);
        self.own(record);
    }

    /// A value without blanks behind it.
    fn bare(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{key:<12} {value}");
    }

    /// A value in 20 columns.
    fn padded(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{key:<12} {:<20}", value.to_string());
    }

    fn identity(&mut self, record: &AccountingRecord, clock: &Clock) {
        self.padded("qname", &record.queue);
        self.padded("hostname", &record.host);
        self.padded("group", &record.group);
        self.padded("owner", &record.owner);
        self.padded("project", record.project.as_deref().unwrap_or("NONE"));
        self.padded("department", &record.department);
        self.padded("jobname", &record.job_name);
        self.padded("jobnumber", record.job_number);
        match record.task_number {
            0 => self.bare("taskid", "undefined"),
            task => self.padded("taskid", task),
        }
        if let Some(task) = &record.pe_task {
            self.padded("pe_taskid", task);
        }
        self.padded("account", &record.account);
        self.padded("priority", record.priority);
        self.bare("qsub_time", moment(record.submitted, clock));
        self.bare("start_time", moment(record.started, clock));
        self.bare("end_time", moment(record.ended, clock));
        self.padded("granted_pe", record.granted_pe.as_deref().unwrap_or("NONE"));
        self.padded("slots", record.slots);
    }

    fn ending(&mut self, record: &AccountingRecord) {
        let FailedCode(number) = record.failed;
        let colon = if number == 0 { "" } else { ":" };
        self.bare("failed", format_args!("{number:<3} {colon} {}", record.failed.text()));
        match signal_text(record.exit_status) {
            Some(signal) => self.bare("exit_status", format_args!("{:<20} ({signal})", record.exit_status)),
            None => self.padded("exit_status", record.exit_status),
        }
    }

    fn rusage(&mut self, record: &AccountingRecord) {
        let Rusage {
            utime_ms,
            stime_ms,
            maxrss_kib,
            minflt,
            majflt,
            inblock,
            oublock,
            nvcsw,
            nivcsw,
        } = record.rusage;
        self.bare("ru_utime", seconds(utime_ms));
        self.bare("ru_stime", seconds(stime_ms));
        // 8.1.9 shows these KiB as if they were bytes.
        self.bare("ru_maxrss", format_args!("{}B", bytes(maxrss_kib.saturating_mul(1024))));
        for key in ["ru_ixrss", "ru_ismrss", "ru_idrss", "ru_isrss"] {
            self.bare(key, "0.000B");
        }
        self.padded("ru_minflt", minflt);
        self.padded("ru_majflt", majflt);
        self.padded("ru_nswap", 0);
        self.padded("ru_inblock", inblock);
        self.padded("ru_oublock", oublock);
        for key in ["ru_msgsnd", "ru_msgrcv", "ru_nsignals"] {
            self.padded(key, 0);
        }
        self.padded("ru_nvcsw", nvcsw);
        self.padded("ru_nivcsw", nivcsw);
    }

    fn usage(&mut self, record: &AccountingRecord) {
        let usage = &record.usage;
        self.bare("cpu", seconds(usage.cpu_ms));
        // KiB milliseconds as byte seconds.
        let memory = u64::try_from(u128::from(usage.mem_kib_ms) * 1024 / 1000).unwrap_or(u64::MAX);
        self.bare("mem", format_args!("{}Bs", bytes(memory)));
        self.bare("io", format_args!("{}B", bytes(usage.io_bytes)));
        self.bare("iow", seconds(usage.iow_ms));
        self.bare("maxvmem", format_args!("{}B", bytes(usage.maxvmem_bytes)));
    }

    fn reservation(&mut self, record: &AccountingRecord, clock: &Clock) {
        match record.reservation {
            Some((id, _)) => self.padded("arid", id),
            None => self.bare("arid", "undefined"),
        }
        match record.reservation.filter(|(_, granted)| granted.0 > 0) {
            Some((_, granted)) => self.bare("ar_sub_time", clock.asctime(granted)),
            None => self.bare("ar_sub_time", "undefined"),
        }
        self.bare(
            "category",
            if record.category.is_empty() {
                "NONE"
            } else {
                &record.category
            },
        );
    }

    /// What the classic block has no line for. Scripts find classic fields with `grep`, so
    /// `peak_rss` and `unmeasured` do not hold the name of one. `limit` and `reason` may: they name
    /// limits such as `h_cpu`.
    fn own(&mut self, record: &AccountingRecord) {
        if record.usage.maxrss_bytes > 0 {
            self.bare("peak_rss", format_args!("{}B", bytes(record.usage.maxrss_bytes)));
            if record.usage.maxvmem_bytes == 0 {
                self.bare("unmeasured", "address space: the job ended before it was measured");
            }
        }
        if let Some(hit) = &record.limit {
            self.bare("limit", limit(hit));
        }
        for text in record.usage.conditions.unset.texts() {
            self.bare("not_set", text);
        }
        if let Some(actor) = &record.deleted_by {
            self.bare("deleted_by", actor);
        }
        if !record.reason.is_empty() {
            self.bare("reason", record.reason.replace('\n', " "));
        }
    }
}

/// `h_vmem=600.000M reached 752.656M (certain)`.
pub fn limit(hit: &LimitHit) -> String {
    let LimitHit {
        limit,
        value,
        reached,
        evidence,
    } = hit;
    let is_time = limit.ends_with("_rt") || limit.ends_with("_cpu");
    let shown = |amount: u64| {
        let amount = Amount::from_base(i64::try_from(amount).unwrap_or(i64::MAX));
        amount.qhost_text(if is_time { Type::Time } else { Type::Memory })
    };
    let evidence = match evidence {
        Evidence::Certain => "certain",
        Evidence::Likely => "likely",
        Evidence::Unknown => "unknown",
    };
    format!("{limit}={} reached {} ({evidence})", shown(*value), shown(*reached))
}

fn moment(moment: Wall, clock: &Clock) -> String {
    if moment.0 == 0 {
        "-/-".to_owned()
    } else {
        clock.asctime(moment)
    }
}

fn seconds(ms: u64) -> String {
    format!("{}s", fraction(i128::from(ms), 1000, 3))
}

/// The signal behind an exit status above 128, in the words of strsignal(3).
pub fn signal_text(exit_status: u32) -> Option<&'static str> {
    let text = match exit_status.checked_sub(128)? {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        5 => "Trace/breakpoint trap",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        10 => "User defined signal 1",
        11 => "Segmentation fault",
        12 => "User defined signal 2",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        16 => "Stack fault",
        17 => "Child exited",
        18 => "Continued",
        19 => "Stopped (signal)",
        20 => "Stopped",
        21 => "Stopped (tty input)",
        22 => "Stopped (tty output)",
        23 => "Urgent I/O condition",
        24 => "CPU time limit exceeded",
        25 => "File size limit exceeded",
        26 => "Virtual timer expired",
        27 => "Profiling timer expired",
        28 => "Window changed",
        29 => "I/O possible",
        30 => "Power failure",
        31 => "Bad system call",
        _ => return None,
    };
    Some(text)
}
