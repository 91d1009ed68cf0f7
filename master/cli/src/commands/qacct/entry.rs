//! A record with the amounts that sums are made of: a classic file has more digits than a record
//! keeps.

use proto::accounting::AccountingRecord;

/// One record of the master, or one line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingEntry {
    /// The record.
    pub record: AccountingRecord,
    /// What it adds to sums.
    pub used: UsageAmounts,
}

/// Amounts of one record, or the sums of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageAmounts {
    /// Whole seconds, as 8.1.9 counts wall clock time.
    pub wallclock_s: u64,
    /// User time in microseconds.
    pub utime_us: u64,
    /// System time in microseconds.
    pub stime_us: u64,
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Memory over time in KiB milliseconds.
    pub mem_kib_ms: u64,
    /// Transferred bytes.
    pub io_bytes: u64,
    /// Time of waiting for input and output in microseconds.
    pub iow_us: u64,
}

impl From<AccountingRecord> for AccountingEntry {
    fn from(record: AccountingRecord) -> Self {
        Self {
            used: UsageAmounts::of_record(&record),
            record,
        }
    }
}

impl UsageAmounts {
    /// What a record of the master adds.
    pub fn of_record(record: &AccountingRecord) -> Self {
        let us = |ms: u64| ms.saturating_mul(1000);
        Self {
            wallclock_s: record.wallclock_s(),
            utime_us: us(record.rusage.utime_ms),
            stime_us: us(record.rusage.stime_ms),
            cpu_us: us(record.usage.cpu_ms),
            mem_kib_ms: record.usage.mem_kib_ms,
            io_bytes: record.usage.io_bytes,
            iow_us: us(record.usage.iow_ms),
        }
    }

    /// Adds another.
    pub fn add(&mut self, other: &UsageAmounts) {
        let UsageAmounts {
            wallclock_s,
            utime_us,
            stime_us,
            cpu_us,
            mem_kib_ms,
            io_bytes,
            iow_us,
        } = other;
        for (sum, part) in [
            (&mut self.wallclock_s, wallclock_s),
            (&mut self.utime_us, utime_us),
            (&mut self.stime_us, stime_us),
            (&mut self.cpu_us, cpu_us),
            (&mut self.mem_kib_ms, mem_kib_ms),
            (&mut self.io_bytes, io_bytes),
            (&mut self.iow_us, iow_us),
        ] {
            *sum = sum.saturating_add(*part);
        }
    }
}
