//! Programs of others: the event stream, and a scheduler outside the master.

use gridwright_tests::cell::{Cell, CellPlan, CommandUser, Process, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Jobs in all.
const JOBS: usize = 1_000;

/// How many are submitted before the scheduler is killed. On a busy machine it may have placed all
/// of them by then.
const SUBMITTED_BEFORE: usize = 400;

/// How many have ended when the scheduler is killed.
const KILLED_AFTER: usize = 150;

/// `gridwright events --fmt json` with further words, which goes on until it is dropped.
fn stream(cell: &Cell, name: &str, words: &[&str]) -> Process {
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.args(["events", "--fmt", "json"]).args(words);
    Process::start(command, &cell.top().join(name))
}

/// The whole lines that a stream has printed.
fn lines(stream: &Process) -> Vec<Value> {
    let printed = stream.printed();
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn count(stream: &Process, kind: &str) -> usize {
    stream.printed().matches(&format!("\"kind\":\"{kind}\"")).count()
}

fn seqs(lines: &[Value]) -> Vec<u64> {
    let events = lines.iter().filter(|line| line["source"] == "event");
    events.map(|line| line["seq"].as_u64().unwrap()).collect()
}

/// Changes the scheduler configuration.
fn set_scheduler(cell: &Cell, attributes: &[(&str, &str)]) {
    let shown = cell.admin(&["qconf", "-ssconf"]).ok().out;
    let line = |line: &str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        let set = attributes.iter().find(|(key, _)| *key == name);
        set.map_or(format!("{line}\n"), |(key, value)| format!("{key} {value}\n"))
    };
    let text: String = shown.lines().map(line).collect();
    let path = cell.write_top("scheduler.txt", &text, 0o644);
    cell.admin(&["qconf", "-Msconf", &path.display().to_string()]).ok();
}

/// The example, run by an ordinary account that is a manager, by way of the host's agent, as from
/// any other host.
fn example_scheduler(cell: &Cell) -> Process {
    cell.admin(&["qconf", "-am", &cell.account().name]).ok();
    let program = cell.top().join("example-scheduler");
    std::fs::copy(env!("CARGO_BIN_EXE_gridwright-example-scheduler"), &program).unwrap();
    let mut command = cell.command(CommandUser::User, &program);
    command.arg(cell.dir().join("run/agent/agent.sock"));
    Process::start(command, &cell.top().join("scheduler"))
}

/// Submits single jobs, one after the other.
fn submit(cell: &Cell, jobs: usize) {
    let mut command = cell.command(CommandUser::User, Path::new("/bin/sh"));
    let gridwright = cell.programs().gridwright().display().to_string();
    let loop_ = format!("for i in $(seq {jobs}); do {gridwright} qsub -terse -b y -q 'all.q@sim*' sleep 1; done");
    let status = command
        .args(["-c", &loop_])
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn every_job_runs_once_though_the_scheduler_outside_is_killed() {
    let words = ["--slots", "4", "--sim-hosts", "20"].map(str::to_owned).into();
    let cell = Cell::with(CellPlan {
        words,
        ..CellPlan::default()
    });
    set_scheduler(
        &cell,
        &[("algorithm", "external"), ("params", "EXTERNAL_TIMEOUT=0:0:3")],
    );
    let events = stream(
        &cell,
        "events",
        &["--from", "1", "--kind", "task-placed,task-ended,job-finished"],
    );
    let mut scheduler = example_scheduler(&cell);
    wait_until(
        || scheduler.printed(),
        || cell.log("master").contains("scheduler example gives orders"),
    );
    assert!(cell.admin(&["qconf", "-secl"]).ok().out.contains(" example "));
    submit(&cell, SUBMITTED_BEFORE);
    wait_until(
        || format!("{KILLED_AFTER} ends: {}", scheduler.printed()),
        || count(&events, "task-ended") >= KILLED_AFTER,
    );
    scheduler.signal(Signal::SIGKILL);
    wait_until(|| "the end of the scheduler".to_owned(), || scheduler.ended().is_some());
    submit(&cell, JOBS - SUBMITTED_BEFORE);
    let took_over = "nothing of scheduler example was heard for 3 s";
    wait_until(|| cell.log("master"), || cell.log("master").contains(took_over));
    wait_until(
        || cell.admin(&["qstat", "-u", "*"]).out,
        || count(&events, "job-finished") >= JOBS,
    );
    let (mut placed, mut by) = (BTreeMap::new(), BTreeMap::new());
    for line in lines(&events).iter().filter(|line| line["kind"] == "task-placed") {
        *placed.entry(line["data"]["task"]["seq"].as_u64().unwrap()).or_insert(0) += 1;
        *by.entry(line["by"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(
        (placed.len(), placed.values().copied().max()),
        (JOBS, Some(1)),
        "{by:?}"
    );
    let built_in = by.remove("scheduler default").unwrap_or(0);
    assert!(
        built_in > 0 && by.values().sum::<usize>() >= KILLED_AFTER,
        "{built_in} by default, {by:?}"
    );
    let ended = lines(&events).into_iter().filter(|line| line["kind"] == "task-ended");
    let statuses: Vec<Value> = ended
        .map(|line| line["data"]["record"]["exit_status"].clone())
        .collect();
    assert_eq!(statuses, vec![Value::from(0); JOBS]);
}

#[test]
fn a_reader_that_comes_back_misses_nothing() {
    let cell = Cell::up();
    let first = stream(&cell, "first", &["--from", "1"]);
    let job = cell.submit(&["-b", "y", "true"]);
    cell.accounted(&job, 1);
    wait_until(|| first.printed(), || count(&first, "job-finished") == 1);
    let seen = lines(&first);
    drop(first);
    let job = cell.submit(&["-t", "1-3", "-b", "y", "true"]);
    cell.accounted(&job, 3);
    let last = *seqs(&seen).last().unwrap();
    let second = stream(&cell, "second", &["--from", &(last + 1).to_string()]);
    wait_until(
        || second.printed(),
        || count(&second, "complete") == 1 && count(&second, "job-finished") == 1,
    );
    let whole = [seqs(&seen), seqs(&lines(&second))].concat();
    assert_eq!(whole, (1..=whole.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_reader_misses_nothing_when_the_master_is_killed_and_comes_again() {
    let cell = Cell::up();
    let events = stream(&cell, "events", &["--from", "1"]);
    let job = cell.submit(&["-t", "1-5", "-b", "y", "true"]);
    wait_until(|| events.printed(), || count(&events, "task-placed") >= 1);
    cell.kill("master");
    cell.bring_up(&[]).ok();
    cell.accounted(&job, 5);
    wait_until(|| events.printed(), || count(&events, "job-finished") == 1);
    let whole = seqs(&lines(&events));
    assert_eq!(whole, (1..=whole.len() as u64).collect::<Vec<_>>());
}

#[test]
fn the_full_state_comes_first_and_then_what_changes() {
    let cell = Cell::up();
    let running = cell.submit(&["-b", "y", "sleep", "1000"]);
    cell.wait_for_state(&running, "r");
    let held = cell.submit(&["-h", "-b", "y", "true"]);
    let events = stream(&cell, "full", &["--full"]);
    wait_until(|| events.printed(), || count(&events, "complete") == 1);
    cell.user(&["qdel", &running, &held]).ok();
    wait_until(|| events.printed(), || count(&events, "job-finished") == 2);
    let lines = lines(&events);
    let of = |kind: &str, job: &str| {
        let is_it = |line: &&Value| line["kind"] == kind && line["job"].as_u64() == job.parse().ok();
        lines
            .iter()
            .filter(is_it)
            .map(|line| line["source"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("job-added", &running), of("task-placed", &running)),
        (vec!["state".into()], vec!["state".into()])
    );
    assert_eq!(
        (of("job-added", &held), of("tasks-deleted", &held)),
        (vec!["state".into()], vec!["event".into()])
    );
    assert_eq!(of("task-ended", &running), ["event"]);
}

#[test]
fn readers_are_listed_and_cut_off() {
    let cell = Cell::up();
    let mut reader = stream(&cell, "reader", &["--name", "mirror"]);
    let listed = || cell.user(&["qconf", "-secl"]).ok().out;
    wait_until(listed, || listed().contains("      11 mirror          "));
    cell.user(&["qconf", "-kec", "11"])
        .refused(&["shutdown requires manager privileges"]);
    cell.user(&["qconf", "-kec", "1"])
        .refused(&["shutdown requires manager privileges"]);
    cell.user(&["events"]).refused(&["must be manager"]);
    let said = cell.admin(&["qconf", "-kec", "11"]).ok();
    assert!(
        said.err
            .starts_with("sent shutdown notification to event client mirror with id 11 on host "),
        "{said}"
    );
    wait_until(|| "the end of the reader".to_owned(), || reader.ended().is_some());
    assert!(reader.printed().contains("was shut down by"), "{}", reader.printed());
    cell.admin(&["qconf", "-kec", "11"])
        .refused(&["no event client known with id 11 to shutdown"]);
    assert!(!listed().contains("mirror"));
}

#[test]
fn a_reader_that_names_complete_is_told_that_its_stream_has_begun() {
    let cell = Cell::up();
    let events = stream(&cell, "now", &["--kind", "complete,job-added"]);
    wait_until(|| events.printed(), || count(&events, "complete") == 1);
    cell.submit(&["-h", "-b", "y", "true"]);
    wait_until(|| events.printed(), || count(&events, "job-added") == 1);
}
