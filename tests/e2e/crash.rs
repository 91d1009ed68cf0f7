//! Daemons and shepherds that are killed under load: every task has one accounting record, and none
//! ran twice.

use gridwright_tests::cell::{Cell, CellPlan, Record, long_or, wait_until};
use std::collections::BTreeSet;

/// Tasks of the load.
const TASKS: usize = 200;

/// How many times something is killed.
fn kills() -> u64 {
    long_or(10, 2)
}

/// Numbers by a seed: those of splitmix64.
struct Seed(u64);

impl Seed {
    /// `GRIDWRIGHT_SEED` repeats a run.
    fn new(default: u64) -> Self {
        let seed = std::env::var("GRIDWRIGHT_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or(default);
        eprintln!("GRIDWRIGHT_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A load of short tasks that say under which key they start.
struct Load {
    cell: Cell,
    job: String,
    seed: Seed,
}

impl Load {
    fn start(seed: u64) -> Self {
        let cell = Cell::with(CellPlan::default().slots(6));
        cell.write(
            "job.sh",
            "#!/bin/sh\necho $GRIDWRIGHT_TASK_KEY >>starts\nsleep 0.2\n",
            0o755,
        );
        let job = cell.submit(&["-o", "/dev/null", "-t", &format!("1-{TASKS}"), "job.sh"]);
        Self {
            cell,
            job,
            seed: Seed::new(seed),
        }
    }

    fn started(&self) -> usize {
        self.cell.read("starts").lines().count()
    }

    /// Waits for random moments, which are counted in tasks that have started, and does something
    /// at each.
    fn at_random_moments(&mut self, mut act: impl FnMut(&Cell, &mut Seed)) {
        let part = TASKS as u64 * 9 / 10 / kills();
        for moment in 0..kills() {
            let wanted = usize::try_from(moment * part + self.seed.below(part)).unwrap();
            let what = || {
                format!(
                    "{wanted} started tasks, {} are; {}",
                    self.started(),
                    self.cell.state_of(&self.job)
                )
            };
            wait_until(what, || self.started() >= wanted);
            act(&self.cell, &mut self.seed);
        }
    }

    /// All records, after checking that each task has one and that none started twice.
    fn end(&self) -> Vec<Record> {
        let records = self.cell.accounted(&self.job, TASKS);
        let tasks: BTreeSet<i64> = records.iter().map(|record| record.number("taskid")).collect();
        assert_eq!(tasks, (1..=TASKS as i64).collect(), "each task has one record");
        let starts = self.cell.read("starts");
        let keys: BTreeSet<&str> = starts.lines().collect();
        assert_eq!(keys.len(), starts.lines().count(), "no attempt ran twice");
        let attempts: BTreeSet<&str> = keys
            .iter()
            .filter_map(|key| key.rsplit_once('.'))
            .map(|(task, _)| task)
            .collect();
        assert_eq!(attempts.len(), keys.len(), "no task was executed in two attempts");
        records
    }
}

fn survives(daemon: &str, seed: u64) {
    let mut load = Load::start(seed);
    load.at_random_moments(|cell, _| {
        cell.kill(daemon);
        cell.bring_up(&[]).ok();
    });
    let records = load.end();
    let failed: Vec<_> = records.iter().filter(|record| record.value("failed") != "0").collect();
    assert!(failed.is_empty(), "{} tasks failed: {failed:?}", failed.len());
    assert_eq!(load.started(), TASKS);
}

#[test]
fn a_master_that_is_killed_under_load_loses_no_task_and_doubles_none() {
    survives("master", 1);
}

#[test]
fn an_agent_that_is_killed_under_load_loses_no_task_and_doubles_none() {
    survives("agent", 2);
}

#[test]
fn a_launcher_that_is_killed_under_load_loses_no_task_and_doubles_none() {
    survives("launcher", 3);
}

#[test]
fn a_shepherd_that_is_killed_under_load_costs_its_own_task_alone() {
    let mut load = Load::start(4);
    load.at_random_moments(|cell, seed| {
        let shepherds = cell.shepherds();
        if !shepherds.is_empty() {
            let chosen = shepherds[usize::try_from(seed.below(shepherds.len() as u64)).unwrap()];
            // It may have ended meanwhile.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(chosen), nix::sys::signal::Signal::SIGKILL);
        }
    });
    let records = load.end();
    let failed: Vec<_> = records.iter().filter(|record| record.value("failed") != "0").collect();
    assert!(
        failed.len() as u64 <= kills(),
        "{} tasks failed: {failed:?}",
        failed.len()
    );
    assert!(load.started() + failed.len() >= TASKS);
}
