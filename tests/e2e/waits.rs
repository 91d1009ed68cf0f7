//! Commands that wait for a job: through a restart of the master, and until Ctrl-C. And what tells
//! why a job waits.

use gridwright_tests::cell::{Cell, CellPlan, CommandUser, Process, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Starts `qsub` with these words beside the test and waits until its job is in the wanted state.
fn submit(cell: &Cell, words: &[&str], state: &str) -> Process {
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.args(["qsub", "-cwd", "-j", "y", "-o", "out"]).args(words);
    let process = Process::start(command, &cell.top().join("qsub.out"));
    wait_until(
        || process.printed(),
        || process.printed().contains("has been submitted"),
    );
    cell.wait_for_state("1", state);
    process
}

/// The exit code of a command that ends by itself.
fn code(process: &mut Process) -> i32 {
    let mut status = None;
    wait_until(
        || "the end of qsub".to_owned(),
        || {
            status = process.ended();
            status.is_some()
        },
    );
    status.and_then(|status| status.code()).unwrap_or(-1)
}

#[test]
fn sync_waits_through_a_restart_of_the_master() {
    let cell = Cell::up();
    cell.write(
        "job.sh",
        "#!/bin/sh\nuntil test -e go; do sleep 0.1; done\nexit 7\n",
        0o755,
    );
    let mut qsub = submit(&cell, &["-sync", "y", "job.sh"], "r");
    cell.kill("master");
    cell.write("go", "", 0o644);
    cell.bring_up(&[]).ok();
    assert_eq!(code(&mut qsub), 7, "{}", qsub.printed());
    let wanted = "Your job 1 (\"job.sh\") has been submitted\nJob 1 exited with exit code 7.\n";
    assert_eq!(qsub.printed(), wanted);
}

#[test]
fn sync_r_waits_for_the_start_and_leaves_the_job_running() {
    let cell = Cell::up();
    let mut qsub = submit(&cell, &["-sync", "r", "-h", "-b", "y", "sleep", "600"], "hqw");
    assert!(qsub.ended().is_none(), "{}", qsub.printed());
    cell.user(&["qrls", "1"]).ok();
    assert_eq!(code(&mut qsub), 0, "{}", qsub.printed());
    cell.wait_for_state("1", "r");
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.args(["qsub", "-sync", "r", "-h", "-b", "y", "-o", "out", "sleep", "600"]);
    let mut deleted = Process::start(command, &cell.top().join("deleted.out"));
    cell.wait_for_state("2", "hqw");
    cell.user(&["qdel", "2"]).ok();
    assert_eq!(code(&mut deleted), 1, "{}", deleted.printed());
    assert!(
        deleted.printed().ends_with("Unable to run job 2\n"),
        "{}",
        deleted.printed()
    );
}

#[test]
fn an_interrupted_wait_deletes_the_job() {
    for (signal, words, state) in [
        (Signal::SIGINT, &["-sync", "y", "-b", "y", "sleep", "600"][..], "r"),
        (
            Signal::SIGTERM,
            &["-sync", "y", "-h", "-b", "y", "sleep", "600"][..],
            "hqw",
        ),
    ] {
        let cell = Cell::up();
        let mut qsub = submit(&cell, words, state);
        qsub.signal(signal);
        assert_eq!(code(&mut qsub), 1, "{}", qsub.printed());
        let printed = qsub.printed();
        assert!(
            printed.contains("\nInterrupted!\nPlease wait while qsub shuts down.\n"),
            "{printed}"
        );
        assert!(printed.contains("job 1"), "{printed}");
        wait_until(|| cell.state_of("1"), || cell.user(&["qstat", "-j", "1"]).code != 0);
    }
}

#[test]
fn an_interrupted_wait_ends_also_while_the_master_is_silent() {
    let cell = Cell::up();
    let mut qsub = submit(&cell, &["-sync", "y", "-h", "-b", "y", "sleep", "600"], "hqw");
    let master = Pid::from_raw(cell.pid("master"));
    kill(master, Signal::SIGSTOP).unwrap();
    qsub.signal(Signal::SIGTERM);
    let (ended, printed) = (code(&mut qsub), qsub.printed());
    kill(master, Signal::SIGCONT).unwrap();
    assert_eq!(ended, 75, "{printed}");
    assert!(
        printed.contains("it is not known whether job 1 was deleted") && printed.contains("qdel 1"),
        "{printed}"
    );
}

#[test]
fn a_monitored_pass_is_written_down() {
    let cell = Cell::up();
    cell.submit(&["-h", "-b", "y", "true"]);
    let said = cell.admin(&["qconf", "-tsm"]).ok();
    assert!(said.err.ends_with(" triggers scheduler monitoring\n"), "{said}");
    let path = cell.dir().join("default/common/schedd_runlog");
    let log = || std::fs::read_to_string(&path).unwrap_or_default();
    wait_until(log, || {
        log().contains("|--------------STOP-SCHEDULER-RUN-------------\n")
    });
    let log = log();
    assert!(
        log.lines()
            .next()
            .is_some_and(|line| line.ends_with("|-------------START-SCHEDULER-RUN-------------"))
    );
    assert!(log.contains("|Job 1 is in hold state\n"), "{log}");
}

#[test]
fn what_runs_and_what_is_kept_over_time_is_written_down_and_shown() {
    let cell = Cell::with(CellPlan::default().slots(1));
    cell.set_scheduler("max_reservation", "5");
    cell.set_scheduler("params", "MONITOR=1");
    cell.submit(&["-l", "h_rt=600", "-b", "y", "sleep", "600"]);
    cell.wait_for_state("1", "r");
    cell.submit(&["-R", "y", "-l", "h_rt=60", "-b", "y", "sleep", "1"]);
    let schedule = || std::fs::read_to_string(cell.dir().join("default/common/schedule")).unwrap_or_default();
    wait_until(schedule, || schedule().contains("\n2:1:RESERVING:"));
    let schedule = schedule();
    assert!(schedule.starts_with("::::::::\n"), "{schedule}");
    let lines = |state: &str| {
        schedule
            .lines()
            .filter(|line| line.starts_with(state))
            .collect::<Vec<_>>()
    };
    let started = lines("1:1:STARTING:");
    assert!(started.len() == 1 && started[0].contains(":660:Q:all.q@"), "{schedule}");
    assert!(
        lines("2:1:RESERVING:")
            .iter()
            .all(|line| line.ends_with(":slots:1.000000")),
        "{schedule}"
    );
    let shown = cell.user(&["qsched"]).ok();
    assert!(shown.out.starts_with("job-ID  user"), "{shown}");
    assert!(
        shown.out.lines().nth(2).is_some_and(|line| line.starts_with("2.1 ")),
        "{shown}"
    );
}
