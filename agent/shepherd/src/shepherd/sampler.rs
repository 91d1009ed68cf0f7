//! What a task uses as a whole, sampled by its own shepherd.
//!
//! The sampler is part of each shepherd and not a process for all tasks: it must work while agent and launcher are dead, the
//! shepherd is the subreaper from which the task's processes are found at a cost proportional to the task, and it is root,
//! so `hidepid=2` hides nothing from it.

use crate::proc::{self, ProcessStat};
use crate::sys::Waited;
use proto::launch::{Bound, LaunchDocument, Resource, TaskLimits, TaskUsage};
use std::fs;

/// The largest values seen of one process, for the limits that make a program fail by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// `VmPeak`.
    pub address_space: u64,
    /// `VmData`.
    pub data: u64,
    /// `VmStk`.
    pub stack: u64,
}

/// Accumulates the usage of one task.
pub struct Sampler {
    usage: TaskUsage,
    peaks: Peaks,
    wants_peaks: bool,
    reaped_cpu_us: u64,
    sampled_boot_ms: u64,
    page_bytes: u64,
}

impl Sampler {
    /// Starts at `boot_ms` with nothing used.
    pub fn new(document: &LaunchDocument, boot_ms: u64) -> Self {
        let fails_by_itself = [Resource::AddressSpace, Resource::Data, Resource::Stack];
        let wants_peaks = document
            .limits
            .iter()
            .any(|limit| fails_by_itself.contains(&limit.resource) && limit.soft != Bound::Infinity);
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
        Sampler {
            usage: TaskUsage::default(),
            peaks: Peaks::default(),
            wants_peaks,
            reaped_cpu_us: 0,
            sampled_boot_ms: boot_ms,
            page_bytes,
        }
    }

    /// What was used up to the last sample.
    pub fn usage(&self) -> &TaskUsage {
        &self.usage
    }

    /// The largest values of one process.
    pub fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// Takes a sample of every descendant of this process, or of as many as are over a limit of the task.
    pub fn sample(&mut self, boot_ms: u64, limits: &TaskLimits) {
        let mut sum = Sum { page_bytes: self.page_bytes, ..Sum::default() };
        let processes = proc::descendants_while(std::process::id() as i32, |process| {
            sum.add(process);
            !sum.is_over(limits)
        });
        let elapsed_ms = boot_ms.saturating_sub(self.sampled_boot_ms);
        self.sampled_boot_ms = boot_ms;
        self.add_memory(&processes, elapsed_ms);
        let live_ms: u64 = processes.iter().map(|process| proc::ticks_to_ms(process.cpu_ticks)).sum();
        self.raise_cpu(self.reaped_cpu_us / 1000 + live_ms);
        if sum.is_over(limits) {
            // The task is to be ended now: reading more of each process lets it make further ones.
            return;
        }
        let live_io: u64 = processes.iter().map(io_of).sum();
        self.usage.io_bytes = self.usage.io_bytes.max(live_io.saturating_add(reaped_io()));
        if self.wants_peaks {
            processes.iter().for_each(|process| self.see_peaks(process.pid));
        }
    }

    fn add_memory(&mut self, processes: &[ProcessStat], elapsed_ms: u64) {
        let usage = &mut self.usage;
        usage.processes = processes.len() as u32;
        usage.vmem_bytes = processes.iter().map(|process| process.vmem_bytes).fold(0, u64::saturating_add);
        usage.rss_bytes =
            processes.iter().map(|process| process.rss_pages * self.page_bytes).fold(0, u64::saturating_add);
        usage.maxvmem_bytes = usage.maxvmem_bytes.max(usage.vmem_bytes);
        usage.maxrss_bytes = usage.maxrss_bytes.max(usage.rss_bytes);
        usage.mem_byte_ms += u128::from(usage.rss_bytes) * u128::from(elapsed_ms);
    }

    /// CPU time only grows: what a process that nobody waited for had used is not lost again.
    fn raise_cpu(&mut self, cpu_ms: u64) {
        self.usage.cpu_ms = self.usage.cpu_ms.max(cpu_ms);
    }

    fn see_peaks(&mut self, pid: i32) {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return };
        let value = |name| proc::status_bytes(&status, name).unwrap_or(0);
        self.peaks.address_space = self.peaks.address_space.max(value("VmPeak"));
        self.peaks.data = self.peaks.data.max(value("VmData"));
        self.peaks.stack = self.peaks.stack.max(value("VmStk"));
    }

    /// Adds what a process used that this shepherd reaped, with all that it had waited for.
    pub fn add_reaped(&mut self, waited: &Waited) {
        self.reaped_cpu_us += micros(&waited.rusage.ru_utime) + micros(&waited.rusage.ru_stime);
        self.raise_cpu(self.reaped_cpu_us / 1000);
    }

    /// Adds the rusage of the main process and closes the account.
    pub fn finish(&mut self, main: &Waited) -> TaskUsage {
        let rusage = &main.rusage;
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let usage = &mut self.usage;
        usage.utime_ms = micros(&rusage.ru_utime) / 1000;
        usage.stime_ms = micros(&rusage.ru_stime) / 1000;
        usage.process_maxrss_bytes = count(rusage.ru_maxrss) * 1024;
        usage.minflt = count(rusage.ru_minflt);
        usage.majflt = count(rusage.ru_majflt);
        usage.inblock = count(rusage.ru_inblock);
        usage.oublock = count(rusage.ru_oublock);
        usage.nvcsw = count(rusage.ru_nvcsw);
        usage.nivcsw = count(rusage.ru_nivcsw);
        // A task shorter than a sample has at least what its largest process had.
        usage.maxrss_bytes = usage.maxrss_bytes.max(usage.process_maxrss_bytes);
        usage.maxvmem_bytes = usage.maxvmem_bytes.max(usage.process_maxrss_bytes);
        usage.io_bytes = usage.io_bytes.max(reaped_io());
        (usage.vmem_bytes, usage.rss_bytes, usage.processes) = (0, 0, 0);
        *usage
    }
}

/// Totals over the processes of one walk.
#[derive(Default)]
struct Sum {
    page_bytes: u64,
    vmem_bytes: u64,
    rss_bytes: u64,
    processes: u64,
}

impl Sum {
    fn add(&mut self, process: &ProcessStat) {
        self.vmem_bytes = self.vmem_bytes.saturating_add(process.vmem_bytes);
        self.rss_bytes = self.rss_bytes.saturating_add(process.rss_pages * self.page_bytes);
        self.processes += 1;
    }

    fn is_over(&self, limits: &TaskLimits) -> bool {
        let over = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value > limit);
        over(limits.h_vmem_bytes, self.vmem_bytes)
            || over(limits.h_rss_bytes, self.rss_bytes)
            || over(limits.h_maxproc, self.processes)
    }
}

fn io_of(process: &ProcessStat) -> u64 {
    proc::read_short(&format!("/proc/{}/io", process.pid)).map_or(0, |text| proc::io_bytes(&text))
}

/// Bytes of all reaped descendants: the kernel adds them to this process, but not to its only thread.
fn reaped_io() -> u64 {
    let bytes = |path: &str| proc::read_short(path).map_or(0, |text| proc::io_bytes(&text));
    let thread = bytes("/proc/thread-self/io");
    bytes("/proc/self/io").saturating_sub(thread)
}

/// Microseconds of a timeval.
pub fn micros(time: &libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
