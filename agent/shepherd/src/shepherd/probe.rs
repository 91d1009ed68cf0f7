//! Whether many processes appear on the host: two system calls every few milliseconds, beside a
//! task with a memory limit.
//!
//! A sample of the whole task costs some hundred times as much, so it is taken once a second; a
//! program that does nothing but fork makes thousands of processes in that time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How often it is looked.
const LOOK_MS: u64 = 5;

/// How often as long as processes of the task appear.
const QUICK_LOOK_MS: u64 = 2;

/// How long that goes on.
const QUICK_FOR_MS: u64 = 500;

/// After a sample it is rested this many times as long as the sample took: the shepherd runs before
/// all ordinary processes, and must leave most of a processor to them whatever the job does.
const RESTS: u32 = 3;

/// A sample is taken when this many processes and threads appeared since the last one.
const MANY_NEW: u64 = 8;

/// The most for which that is raised, on a host where others come and go all the time.
const MOST_NEW: u64 = 32;

/// Counts the processes and threads of the host.
pub struct Probe {
    loadavg: File,
    /// The fewest since a sample was asked for.
    fewest: u64,
    /// How many more are many.
    many_new: u64,
    next_ms: u64,
    quick_until_ms: u64,
}

impl Probe {
    /// Begins at `now` (boot milliseconds). `None` means that the host does not report its number
    /// of processes.
    pub fn new(now: u64) -> Option<Self> {
        let loadavg = File::open("/proc/loadavg").ok()?;
        let fewest = count(&loadavg)?;
        let quick_until_ms = now + QUICK_FOR_MS;
        Some(Probe {
            loadavg,
            fewest,
            many_new: MANY_NEW,
            next_ms: now + QUICK_LOOK_MS,
            quick_until_ms,
        })
    }

    /// When it is to be looked next.
    pub fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Looks, and says whether so many appeared that they may be the task's and over its limits.
    pub fn sees_many_new(&mut self, now: u64) -> bool {
        let tasks = count(&self.loadavg).unwrap_or(self.fewest);
        let new = tasks.saturating_sub(self.fewest);
        let are_many = new >= self.many_new;
        self.fewest = if are_many { tasks } else { self.fewest.min(tasks) };
        self.next_ms = now
            + if now < self.quick_until_ms {
                QUICK_LOOK_MS
            } else {
                LOOK_MS
            };
        are_many
    }

    /// Does not look before `at` (boot milliseconds).
    pub fn rest_until(&mut self, at: u64) {
        self.next_ms = self.next_ms.max(at);
    }

    /// Learns from a sample whether those that appeared were the task's.
    pub fn learn(&mut self, now: u64, are_its_own: bool) {
        if are_its_own {
            self.many_new = MANY_NEW;
            self.quick_until_ms = now + QUICK_FOR_MS;
        } else {
            self.many_new = (2 * self.many_new).min(MOST_NEW);
        }
    }

    /// Forgets what others did: they may have stopped.
    pub fn calm_down(&mut self) {
        self.many_new = MANY_NEW;
    }
}

/// When the rest behind a sample ends that ended at `now` (boot milliseconds) and took so long.
pub fn rested_at(now: u64, took: Duration) -> u64 {
    let rest_ms = (RESTS * took).as_micros().div_ceil(1000);
    now.saturating_add(u64::try_from(rest_ms).unwrap_or(u64::MAX))
}

/// `0.20 0.18 0.12 1/80 11206`: the number behind the slash (proc_loadavg(5)). The kernel writes
/// the text anew for each read.
fn count(loadavg: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = loadavg.read_at(&mut text, 0).ok()?;
    parse(std::str::from_utf8(&text[..length]).ok()?)
}

fn parse(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_processes_is_behind_the_slash() {
        assert_eq!(parse("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(parse("0.20 0.18\n"), None);
    }

    #[test]
    fn nothing_is_looked_at_for_three_times_as_long_as_a_sample_took() {
        assert_eq!(rested_at(1000, Duration::from_millis(40)), 1120);
        assert_eq!(rested_at(1000, Duration::from_micros(200)), 1001);
        let mut probe = Probe::new(0).expect("every Linux has the file");
        probe.sees_many_new(1000);
        probe.rest_until(1120);
        assert_eq!(probe.next_ms(), 1120);
        probe.rest_until(1001);
        assert_eq!(probe.next_ms(), 1120);
    }

    #[test]
    fn a_task_that_grows_is_looked_at_more_often_and_others_less() {
        let mut probe = Probe::new(0).expect("every Linux has the file");
        probe.learn(1000, false);
        assert_eq!(probe.many_new, 2 * MANY_NEW);
        probe.sees_many_new(1000);
        assert_eq!(probe.next_ms(), 1000 + LOOK_MS);
        probe.learn(1010, true);
        assert_eq!(probe.many_new, MANY_NEW);
        probe.sees_many_new(1010);
        assert_eq!(probe.next_ms(), 1010 + QUICK_LOOK_MS);
        (0..10).for_each(|_| probe.learn(1020, false));
        assert_eq!(probe.many_new, MOST_NEW);
        probe.calm_down();
        assert_eq!(probe.many_new, MANY_NEW);
    }
}
