//! The steps of the tour, in order. Each can be sabotaged: then it leaves out what it is to show
//! and must fail.

use super::tour::{CommandUser, Tour, failed, field, verify, word};
use crate::daemons::{Daemon, wait_for};
use crate::fail::Fail;
use nix::sys::signal::{Signal, kill};
use std::time::Duration;

/// A step: its name, what it shows, and what it does.
type Step = (&'static str, &'static str, fn(&mut Tour, bool) -> Result<(), Fail>);

/// All steps.
pub const ALL: [Step; 7] = [
    ("up", "one command brings up a cell: master, launcher and agent", up),
    ("sensor", "a script reports a load value of its own", sensor),
    ("array", "one submission, three tasks", array),
    (
        "h_vmem",
        "two processes of 150 MB together break a limit of 250 MB; qacct says so",
        memory,
    ),
    ("h_fsize", "a job writes more than it may; qacct says so", file_size),
    (
        "licence",
        "two jobs, one licence: the second waits, and explain says why",
        licence,
    ),
    (
        "crash",
        "master and agent are killed with -9; no job is lost or run twice",
        crash,
    ),
];

/// The seed's Bourne shell sensor, as we ship it.
const LOGINS: &str = include_str!("../../../../../sensors/scripts/logins.sh");

/// Two processes of 150 MB each, held until the input ends: together above 250 MB, each below.
const TWO_PROCESSES: &str = "#!/bin/sh\n\
    (head -c 150000000 /dev/zero; sleep 40) | tail -n 1 >/dev/null &\n\
    (head -c 150000000 /dev/zero; sleep 40) | tail -n 1 >/dev/null &\n\
    wait\n";

fn up(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let cell = word(&tour.cell());
    if !sabotage {
        tour.must(
            CommandUser::Admin,
            &["up", "--dir", &cell, "--slots", "4", "--port", "0", "--detach"],
        )?;
    }
    let hosts = tour.show(CommandUser::User, &["qhost"]);
    verify(
        hosts.code == 0 && hosts.text.lines().count() > 3,
        "qhost lists this machine with its load",
    )
}

fn sensor(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let script = word(&tour.write("logins.sh", LOGINS, 0o755)?);
    tour.must(CommandUser::User, &["sensor", "check", &script])?;
    let table = tour.quiet(CommandUser::Admin, &["qconf", "-sc"]).text;
    let complex = format!("{table}logins logins INT <= YES NO 0 0\nlic lic INT <= YES YES 0 0\n");
    let complex = word(&tour.write("complex", &complex, 0o644)?);
    tour.must(CommandUser::Admin, &["qconf", "-Mc", &complex])?;
    if !sabotage {
        let config = tour.quiet(CommandUser::Admin, &["qconf", "-sconf", "global"]).text;
        let lines = config.lines().filter(|line| !line.starts_with("load_sensor"));
        let config = lines.collect::<Vec<_>>().join("\n") + &format!("\nload_sensor {script}\n");
        let file = tour.dir.join("global");
        tour.write("global", &config, 0o644)?;
        tour.must(CommandUser::Admin, &["qconf", "-Mconf", &word(&file)])?;
    }
    tour.until(
        CommandUser::User,
        &["qhost", "-F", "logins"],
        "a value of the sensor",
        |said| said.text.contains("logins="),
    )?;
    verify(true, "the load sensor reports logins")
}

fn array(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let range = if sabotage { "1-2" } else { "1-5:2" };
    let job = tour.submit(&["-t", range, "-N", "array", "-b", "y", "echo", "task", "$SGE_TASK_ID"])?;
    tour.show(CommandUser::User, &["qstat"]);
    let records = tour.accounted(&job, if sabotage { 2 } else { 3 })?;
    let outputs = [1, 3, 5].map(|task| tour.work().join(format!("array.o{job}.{task}")));
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    verify(
        outputs
            .iter()
            .zip([1, 3, 5])
            .all(|(path, task)| read(path) == format!("task {task}\n")),
        "tasks 1, 3 and 5 ran",
    )?;
    verify(
        records.matches("failed       0").count() >= 3,
        "three accounting records say failed 0",
    )
}

fn memory(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let script = word(&tour.write("two.sh", TWO_PROCESSES, 0o755)?);
    let limit = if sabotage { "h_rt=0:0:5" } else { "h_vmem=250M" };
    let job = tour.submit(&["-l", limit, "-N", "twoproc", &script])?;
    let record = tour.accounted(&job, 1)?;
    verify(
        field(&record, "failed").starts_with("37"),
        "the job was ended for a limit",
    )?;
    verify(
        record.contains("h_vmem") && field(&record, "limit").contains("h_vmem"),
        "qacct names the limit h_vmem",
    )
}

fn file_size(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let limit = if sabotage { "h_fsize=1G" } else { "h_fsize=1M" };
    let job = tour.submit(&[
        "-l",
        limit,
        "-N",
        "bigfile",
        "-b",
        "y",
        "-shell",
        "n",
        "dd",
        "if=/dev/zero",
        "of=big",
        "bs=65536",
        "count=64",
    ])?;
    let record = tour.accounted(&job, 1)?;
    verify(
        field(&record, "exit_status").starts_with("153"),
        "the job ended by SIGXFSZ",
    )?;
    verify(
        field(&record, "limit").contains("h_fsize"),
        "qacct names the limit h_fsize",
    )
}

fn licence(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let capacity = if sabotage { "lic=2" } else { "lic=1" };
    tour.must(
        CommandUser::Admin,
        &["qconf", "-mattr", "exechost", "complex_values", capacity, "global"],
    )?;
    let first = tour.submit(&["-l", "lic=1", "-N", "first", "-b", "y", "sleep", "5"])?;
    let second = tour.submit(&["-l", "lic=1", "-N", "second", "-b", "y", "sleep", "1"])?;
    tour.until(CommandUser::User, &["qstat"], "the first job runs", |said| {
        state_of(&said.text, &first) == "r"
    })?;
    let listing = tour.show(CommandUser::User, &["qstat"]).text;
    verify(
        state_of(&listing, &second) == "qw",
        "the second job waits for the licence",
    )?;
    let why = tour.until(CommandUser::User, &["explain", &second], "the reason", |said| {
        said.text.contains("lic")
    })?;
    verify(why.text.contains("lic"), "explain says that it waits for lic")?;
    tour.accounted(&first, 1)?;
    tour.accounted(&second, 1)?;
    verify(true, "both jobs ran, one after the other")
}

fn crash(tour: &mut Tour, sabotage: bool) -> Result<(), Fail> {
    let long = tour.submit(&["-N", "survivor", "-b", "y", "sleep", "6"])?;
    let many = tour.submit(&["-N", "many", "-t", "1-20", "-b", "y", "sleep", "1"])?;
    tour.until(CommandUser::User, &["qstat"], "the job runs", |said| {
        state_of(&said.text, &long) == "r"
    })?;
    let cell = tour.cell();
    for daemon in [Daemon::Master, Daemon::Agent] {
        let pid = daemon
            .pid(&cell)
            .ok_or_else(|| failed(format!("no pid file of the {}", daemon.name())))?;
        tour.say(&format!("kill -9 the {} (pid {pid})", daemon.name()));
        kill(pid, Signal::SIGKILL).map_err(|error| failed(format!("kill: {error}")))?;
        if !wait_for(Duration::from_secs(10), || !daemon.is_alive(&cell)) {
            return Err(failed(format!("the {} does not die", daemon.name())));
        }
    }
    if !sabotage {
        tour.must(CommandUser::Admin, &["up", "--dir", &word(&cell), "--detach"])?;
    }
    let record = tour.accounted(&long, 1)?;
    verify(
        field(&record, "exit_status") == "0",
        "the running job survived and ended well",
    )?;
    let records = tour.accounted(&many, 20)?;
    verify(
        records.matches("\njobnumber").count() == 20,
        "each of the 20 tasks has exactly one record",
    )
}

/// The state letters of a job in a listing of `qstat`.
fn state_of<'a>(listing: &'a str, job: &str) -> &'a str {
    let row = listing.lines().find(|line| line.split_whitespace().next() == Some(job));
    row.and_then(|row| row.split_whitespace().nth(4)).unwrap_or_default()
}
