//! How busy the processors were, from the first line of `/proc/stat`.

use crate::error::{FactError, read_text};
use procfs::ExplicitSystemInfo;
use procfs::prelude::*;
use std::path::Path;

/// Clock ticks of all processors together since the host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// In every state.
    pub total: u64,
    /// In the idle state; waiting for input and output counts as busy, as in 8.1.9.
    pub idle: u64,
    /// How many processors the kernel lists.
    pub processors: u32,
}

impl CpuTicks {
    /// Percent of the time since `earlier` in which processors were not idle, in 0..=100 with one
    /// decimal: `cpu`.
    ///
    /// `None` where no tick passed. Counters that ran backwards, which happens when a processor
    /// goes offline, count as not having moved.
    pub fn busy_percent_since(&self, earlier: &CpuTicks) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        let idle = self.idle.saturating_sub(earlier.idle).min(total);
        if total == 0 {
            return None;
        }
        let percent = 100.0 * (total - idle) as f64 / total as f64;
        Some((percent * 10.0).round() / 10.0)
    }
}

/// The ticks of the host whose file system starts at `root`.
///
/// # Errors
/// Where `/proc/stat` is missing or not in the form of proc(5).
pub fn read_cpu(root: &Path) -> Result<CpuTicks, FactError> {
    parse_cpu(&read_text(root, "proc/stat")?)
}

/// The ticks in the text of `/proc/stat`.
///
/// # Errors
/// Where the text is not in the form of proc(5).
pub fn parse_cpu(text: &str) -> Result<CpuTicks, FactError> {
    // Only ratios of ticks are used, so the length of a tick does not matter.
    let units = ExplicitSystemInfo {
        boot_time_secs: 0,
        ticks_per_second: 100,
        page_size: 4096,
        is_little_endian: true,
    };
    let stat =
        procfs::KernelStats::from_buf_read(text.as_bytes(), &units).map_err(|e| FactError::form("/proc/stat", e))?;
    let all = &stat.total;
    // Guest time is contained in user time, see proc(5).
    let later = [all.iowait, all.irq, all.softirq, all.steal];
    let total = all.user + all.nice + all.system + all.idle + later.iter().flatten().sum::<u64>();
    Ok(CpuTicks {
        total,
        idle: all.idle,
        processors: u32::try_from(stat.cpu_time.len()).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const STAT: &str = "\
cpu  100 0 50 800 30 10 10 0 40 0
cpu0 50 0 25 400 15 5 5 0 20 0
cpu1 50 0 25 400 15 5 5 0 20 0
intr 5 0
ctxt 99
btime 1795000000
processes 12
procs_running 1
procs_blocked 0
";

    #[test]
    fn total_counts_every_state_once_and_guests_not_twice() {
        assert_eq!(
            parse_cpu(STAT).unwrap(),
            CpuTicks {
                total: 1000,
                idle: 800,
                processors: 2
            }
        );
    }

    #[test]
    fn busy_percentage_is_the_share_of_ticks_that_were_not_idle() {
        let ticks = |total, idle| CpuTicks {
            total,
            idle,
            processors: 2,
        };
        let cases = [
            (ticks(1000, 800), ticks(2000, 1800), Some(0.0)),
            (ticks(1000, 800), ticks(2000, 801), Some(99.9)),
            (ticks(1000, 800), ticks(1300, 900), Some(66.7)),
            (ticks(1000, 800), ticks(1000, 800), None),
            (ticks(1000, 800), ticks(900, 700), None),
            (ticks(1000, 800), ticks(1010, 900), Some(0.0)),
        ];
        for (earlier, later, expected) in cases {
            assert_eq!(later.busy_percent_since(&earlier), expected, "{earlier:?} {later:?}");
        }
    }
}
