//! What a task uses as a whole, sampled by its own shepherd.
//!
//! The sampler is part of each shepherd and not a process for all tasks: it must work while agent
//! and launcher are dead, the shepherd is the subreaper from which the task's processes are found
//! at a cost proportional to the task, and it is root, so `hidepid=2` hides nothing from it.

use crate::cgroup::TaskGroup;
use crate::proc::{self, ProcessStat};
use crate::sys::ReapedChild;
use proto::launch::{BoundValue, HostRefusedLimit, LaunchDocument, Resource, TaskLimits, TaskUsage};
use proto::usage::{Conditions, UnsetLimits};
use std::collections::BTreeMap;
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
    /// The processes of the last sample.
    seen: BTreeMap<i32, ProcessSample>,
    page_bytes: u64,
    /// The memory in use by the task's control group, where that keeps the limits of memory.
    group_use_bytes: Option<u64>,
    unset: UnsetLimits,
}

/// A process at its last sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessSample {
    start_ticks: u64,
    cpu_ticks: u64,
    rss_bytes: u64,
}

impl Sampler {
    /// Starts with nothing used.
    pub fn new(document: &LaunchDocument) -> Self {
        let fails_by_itself = [Resource::AddressSpace, Resource::Data, Resource::Stack];
        let wants_peaks = document
            .limits
            .iter()
            .any(|limit| fails_by_itself.contains(&limit.resource) && limit.soft != BoundValue::Infinity);
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .unwrap_or(4096) as u64;
        Sampler::of_pages(wants_peaks, page_bytes)
    }

    fn of_pages(wants_peaks: bool, page_bytes: u64) -> Self {
        Sampler {
            usage: TaskUsage::default(),
            peaks: Peaks::default(),
            wants_peaks,
            reaped_cpu_us: 0,
            seen: BTreeMap::new(),
            page_bytes,
            group_use_bytes: None,
            unset: UnsetLimits::default(),
        }
    }

    /// Notes the limits that the task runs without.
    pub fn note_unset(&mut self, unset: UnsetLimits, refused: &[HostRefusedLimit]) {
        self.unset = unset;
        refused
            .iter()
            .for_each(|limit| self.unset.insert(limit.resource.as_str()));
        self.note_conditions(None);
    }

    /// Notes how a task waits that has a control group.
    pub fn note_conditions(&mut self, group: Option<&TaskGroup>) {
        let pressure = |resource| group.and_then(|group| group.pressure(resource));
        self.usage.conditions = Some(Conditions {
            cpu_pressure: pressure("cpu"),
            memory_pressure: pressure("memory"),
            unset: self.unset,
        });
    }

    /// What was used up to the last sample.
    pub fn usage(&self) -> &TaskUsage {
        &self.usage
    }

    /// The largest values of one process.
    pub fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// Takes a sample of every descendant of this process, or of as many as are over a limit of the
    /// task. `group` is the task's control group, if it keeps the limits of memory.
    pub fn sample(&mut self, limits: &TaskLimits, group: Option<&TaskGroup>) {
        self.group_use_bytes = group.and_then(TaskGroup::memory_use);
        let mut sum = Sum {
            page_bytes: self.page_bytes,
            ..Sum::default()
        };
        let processes = proc::descendants_while(std::process::id() as i32, |process| {
            sum.add(process);
            !sum.is_over(limits)
        });
        if let Some(group) = group {
            self.add_strays(&group.outside(&processes));
        }
        self.add_memory(&processes);
        let live_ms: u64 = processes
            .iter()
            .map(|process| proc::ticks_to_ms(process.cpu_ticks))
            .sum();
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

    /// Counts memory of processes that have left the task's group: nothing else limits it.
    fn add_strays(&mut self, strays: &[&ProcessStat]) {
        let resident = strays.iter().map(|process| process.rss_pages * self.page_bytes);
        let bytes = resident.fold(0, u64::saturating_add);
        self.group_use_bytes = self.group_use_bytes.map(|used| used.saturating_add(bytes));
    }

    fn add_memory(&mut self, processes: &[ProcessStat]) {
        self.add_integral(processes);
        let usage = &mut self.usage;
        usage.processes = processes.len() as u32;
        usage.vmem_bytes = processes
            .iter()
            .map(|process| process.vmem_bytes)
            .fold(0, u64::saturating_add);
        let resident = processes
            .iter()
            .map(|process| process.rss_pages * self.page_bytes)
            .fold(0, u64::saturating_add);
        // The group counts memory that several processes share once.
        usage.rss_bytes = self.group_use_bytes.unwrap_or(resident);
        usage.maxvmem_bytes = usage.maxvmem_bytes.max(usage.vmem_bytes);
        usage.maxrss_bytes = usage.maxrss_bytes.max(usage.rss_bytes);
    }

    /// Memory over processor time, as 8.1.9 counts it: for each process the CPU time since the last
    /// sample, times the mean of its memory then and now. A task that sleeps costs nothing,
    /// whatever it holds.
    fn add_integral(&mut self, processes: &[ProcessStat]) {
        let mut seen = BTreeMap::new();
        for process in processes {
            let now = ProcessSample {
                start_ticks: process.start_ticks,
                cpu_ticks: process.own_cpu_ticks,
                rss_bytes: process.rss_pages * self.page_bytes,
            };
            let before = self
                .seen
                .get(&process.pid)
                .filter(|before| before.start_ticks == now.start_ticks);
            let before = before.copied().unwrap_or(ProcessSample {
                cpu_ticks: 0,
                rss_bytes: 0,
                ..now
            });
            let used_ms = proc::ticks_to_ms(now.cpu_ticks.saturating_sub(before.cpu_ticks));
            let mean_bytes = (u128::from(before.rss_bytes) + u128::from(now.rss_bytes)) / 2;
            self.usage.mem_byte_ms += u128::from(used_ms) * mean_bytes;
            seen.insert(process.pid, now);
        }
        self.seen = seen;
    }

    /// CPU time only grows: what a process that nobody waited for had used is not lost again.
    fn raise_cpu(&mut self, cpu_ms: u64) {
        self.usage.cpu_ms = self.usage.cpu_ms.max(cpu_ms);
    }

    fn see_peaks(&mut self, pid: i32) {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
            return;
        };
        let value = |name| proc::status_bytes(&status, name).unwrap_or(0);
        self.peaks.address_space = self.peaks.address_space.max(value("VmPeak"));
        self.peaks.data = self.peaks.data.max(value("VmData"));
        self.peaks.stack = self.peaks.stack.max(value("VmStk"));
    }

    /// Adds what a process used that this shepherd reaped, with all that it had waited for.
    pub fn add_reaped(&mut self, waited: &ReapedChild) {
        self.reaped_cpu_us += micros(&waited.rusage.ru_utime) + micros(&waited.rusage.ru_stime);
        self.raise_cpu(self.reaped_cpu_us / 1000);
    }

    /// Adds the rusage of the main process and closes the account.
    pub fn finish(&mut self, main: &ReapedChild) -> TaskUsage {
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
        // A task shorter than a sample has at least the resident memory of its largest process. Its
        // address space is unknown, and 0.
        usage.maxrss_bytes = usage.maxrss_bytes.max(usage.process_maxrss_bytes);
        usage.io_bytes = usage.io_bytes.max(reaped_io());
        (usage.vmem_bytes, usage.rss_bytes, usage.processes) = (0, 0, 0);
        self.note_conditions(None);
        self.usage
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

/// Bytes of all reaped descendants: the kernel adds them to this process, but not to its only
/// thread.
fn reaped_io() -> u64 {
    let bytes = |path: &str| proc::read_short(path).map_or(0, |text| proc::io_bytes(&text));
    let thread = bytes("/proc/thread-self/io");
    bytes("/proc/self/io").saturating_sub(thread)
}

/// Microseconds of a timeval.
pub fn micros(time: &libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, cpu_ticks: u64, rss_pages: u64) -> ProcessStat {
        let text = format!("{pid} (x) S 1 1 1 0 0 0 0 0 0 0 {cpu_ticks} 0 500 0 20 0 1 0 77 4096 {rss_pages} 0");
        proc::parse_stat(&text).expect("it has the fields")
    }

    #[test]
    fn memory_counts_as_long_as_its_process_computes() {
        let mut sampler = Sampler::of_pages(false, 1000);
        let tick_ms = u128::from(proc::ticks_to_ms(1));
        // In the first interval the process grows from nothing, in the second it sleeps, in the
        // third it computes and shrinks.
        for (cpu_ticks, rss_pages, expected_kb_ticks) in [(10, 200, 1_000), (10, 200, 1_000), (30, 100, 4_000)] {
            sampler.add_memory(&[process(7, cpu_ticks, rss_pages)]);
            assert_eq!(sampler.usage.mem_byte_ms, expected_kb_ticks * 1000 * tick_ms);
        }
    }

    #[test]
    fn memory_of_processes_that_left_the_group_counts_beside_that_of_the_group() {
        let mut sampler = Sampler::of_pages(false, 1000);
        let processes = [process(7, 10, 100), process(8, 10, 30)];
        sampler.group_use_bytes = Some(70_000);
        sampler.add_strays(&[&processes[1]]);
        sampler.add_memory(&processes);
        assert_eq!(
            (sampler.usage.rss_bytes, sampler.usage.maxrss_bytes),
            (100_000, 100_000)
        );
    }

    #[test]
    fn a_process_that_takes_the_number_of_another_begins_anew() {
        let mut sampler = Sampler::of_pages(false, 1000);
        sampler.add_memory(&[process(7, 10, 100)]);
        let before = sampler.usage.mem_byte_ms;
        sampler.add_memory(&[ProcessStat {
            start_ticks: 78,
            ..process(7, 4, 100)
        }]);
        let tick_ms = u128::from(proc::ticks_to_ms(1));
        assert_eq!(sampler.usage.mem_byte_ms - before, 4 * 50 * 1000 * tick_ms);
    }

    #[test]
    fn the_address_space_of_a_task_without_a_sample_is_unknown() {
        let mut sampler = Sampler::of_pages(false, 1000);
        let mut main = ReapedChild::killed(1);
        main.rusage.ru_maxrss = 8_000;
        let used = sampler.finish(&main);
        assert_eq!((used.maxvmem_bytes, used.maxrss_bytes), (0, 8_000 * 1024));
    }
}
