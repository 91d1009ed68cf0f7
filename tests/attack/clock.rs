//! A wall clock that jumps under a master at work.

use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, long_or, wait_until};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub const ATTACKS: &[Attack] = &[Attack {
    name: "clock-jumps",
    claim: "a clock that jumps by hours and days loses no task, runs none twice and stops nothing",
    needs: &[Requirement::Program("faketime")],
    run: clock_jumps,
}];

/// Tasks of the load.
const TASKS: usize = 40;

/// Where the clock stands, one after the other.
const JUMPS: [&str; 6] = ["+3600", "-3600", "+86400", "+0", "-172800", "+0"];

/// The library of libfaketime.
fn library() -> PathBuf {
    let below = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut found = below
        .map(|folder| folder.join("faketime/libfaketimeMT.so.1"))
        .filter(|path| path.exists());
    found.next().expect("the package faketime has a library")
}

/// Sets the clock of the master: seconds from the true time. The file is replaced whole, as it is
/// read at any moment.
fn set(clock: &Path, offset: &str) {
    let draft = clock.with_extension("new");
    std::fs::write(&draft, format!("{offset}\n")).expect("the directory is ours");
    std::fs::rename(draft, clock).expect("the directory is ours");
}

fn clock_jumps() {
    let cell = Cell::up();
    let clock = cell.write_top("clock", "+0\n", 0o644);
    cell.kill("master");
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.args(["up", "--dir", &cell.dir_word(), "--detach", "--wait", "300"]);
    command
        .env("LD_PRELOAD", library())
        .env("FAKETIME_TIMESTAMP_FILE", &clock);
    for monotone in [
        "DONT_FAKE_MONOTONIC",
        "FAKETIME_DONT_FAKE_MONOTONIC",
        "FAKETIME_NO_CACHE",
        "FAKETIME_DONT_RESET",
    ] {
        command.env(monotone, "1");
    }
    CommandOutput::run(command).ok();
    cell.write(
        "job.sh",
        "#!/bin/sh\necho $GRIDWRIGHT_TASK_KEY >>starts\nsleep 0.2\n",
        0o755,
    );
    let mut jobs = Vec::new();
    for round in 0..long_or(5, 1) {
        for offset in JUMPS {
            let count = (TASKS / JUMPS.len()).to_string();
            jobs.push((
                cell.submit(&["-r", "n", "-o", "/dev/null", "-t", &format!("1-{count}"), "job.sh"]),
                count,
            ));
            set(&clock, offset);
            let probe = cell.submit(&["-o", "/dev/null", "-b", "y", "true"]);
            assert_eq!(
                cell.accounted(&probe, 1)[0].value("failed"),
                "0",
                "round {round}, clock {offset}"
            );
            cell.user(&["qstat"]).ok();
        }
    }
    for (job, count) in &jobs {
        let ends = cell.accounted(job, count.parse().expect("a number"));
        assert!(ends.iter().all(|record| record.value("failed") == "0"), "{ends:?}");
    }
    let starts = cell.read("starts");
    let keys: BTreeSet<&str> = starts.lines().collect();
    assert_eq!(keys.len(), starts.lines().count(), "no attempt ran twice");
    assert_eq!(
        keys.len(),
        jobs.iter()
            .filter_map(|(_, count)| count.parse::<usize>().ok())
            .sum::<usize>()
    );
    has_jumped(&cell, &clock);
    // The next master has the true time.
    cell.kill("master");
    cell.bring_up(&[]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// The master does see the clock that is set: a job is submitted on another day.
fn has_jumped(cell: &Cell, clock: &Path) {
    let submitted = |offset: &str| {
        set(clock, offset);
        let job = cell.submit(&["-h", "-b", "y", "true"]);
        let shown = cell.user(&["qstat", "-j", &job]).ok().out;
        let line = shown
            .lines()
            .find(|line| line.starts_with("submission_time:"))
            .unwrap_or_default()
            .to_owned();
        line.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
    };
    let days = || (submitted("+0"), submitted("+259200"));
    wait_until(|| format!("{:?}", days()), || days().0 != days().1);
    set(clock, "+0");
}
