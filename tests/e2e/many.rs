//! Hosts that only pretend to run jobs, and the tour.

use gridwright_tests::cell::{Cell, CellPlan, CommandOutput, CommandUser, Process, long_or, wait_until};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

#[test]
fn simulated_hosts_come_up_and_run_jobs() {
    let hosts: u32 = long_or(500, 50);
    let words = ["--slots", "4", "--sim-hosts", &hosts.to_string()]
        .map(str::to_owned)
        .into();
    let began = Instant::now();
    let cell = Cell::with(CellPlan {
        words,
        ..CellPlan::default()
    });
    let took = began.elapsed();
    println!("{hosts} simulated hosts came up in {took:?}");
    // The issue promises it of a machine with two processors and nothing else to do.
    assert!(
        long_or(took < Duration::from_secs(20), true),
        "{hosts} hosts took {took:?}"
    );
    let listing = cell.user(&["qhost"]).ok().out;
    let reporting = listing
        .lines()
        .filter(|line| line.starts_with("sim") && line.split_whitespace().nth(6).is_some_and(|load| load != "-"));
    assert_eq!(reporting.count() as u32, hosts);
    let job = cell.submit(&["-q", "all.q@sim*", "-t", "1-200", "-b", "y", "sleep", "2"]);
    let records = cell.accounted(&job, 200);
    assert!(
        records
            .iter()
            .all(|record| record.value("failed") == "0" && record.value("hostname").starts_with("sim"))
    );
}

fn demo(words: &[&str]) -> CommandOutput {
    let cell = Cell::prepare(CellPlan::default());
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.arg("demo").args(words);
    CommandOutput::run(command)
}

#[test]
fn the_tour_verifies_every_step() {
    let said = demo(&[]).ok();
    assert!(said.out.ends_with("demo: every step was verified\n"), "{said}");
}

#[test]
fn two_tours_at_once_do_not_disturb_each_other() {
    let beside = std::thread::spawn(|| demo(&["--sabotage", "array"]));
    demo(&[]).ok();
    beside.join().unwrap().refused(&["demo step \"array\" failed"]);
}

#[test]
fn a_tour_that_is_interrupted_leaves_nothing_behind() {
    let cell = Cell::prepare(CellPlan::default());
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.arg("demo").env("TMPDIR", cell.top());
    let mut tour = Process::start(command, &cell.top().join("demo.out"));
    wait_until(|| tour.printed(), || tour.printed().contains("array: one submission"));
    tour.signal(Signal::SIGINT);
    wait_until(|| "the end of the tour".to_owned(), || tour.ended().is_some());
    assert_eq!(
        tour.ended().and_then(|status| status.code()),
        Some(1),
        "{}",
        tour.printed()
    );
    assert!(tour.printed().contains("interrupted"), "{}", tour.printed());
    let left: Vec<_> = std::fs::read_dir(cell.top())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains("gridwright-demo")),
        "{left:?}"
    );
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let own = format!("gw-demo-{}:", tour.id());
    assert!(!accounts.contains(&own), "{own} is still there");
}

#[test]
fn a_tour_without_what_a_step_shows_fails_in_that_step() {
    let steps = demo(&["--sabotage", "?"]);
    let steps = steps
        .err
        .split("one of ")
        .nth(1)
        .unwrap_or_else(|| panic!("{steps}"))
        .trim()
        .to_owned();
    let steps: Vec<&str> = steps.split(", ").collect();
    assert!(steps.len() >= 7, "{steps:?}");
    for step in long_or(steps.clone(), vec!["up", "h_fsize"]) {
        let said = demo(&["--sabotage", step]);
        said.refused(&[&format!("demo step \"{step}\" failed")]);
    }
}
