//! Checkpointing jobs with real processes: state is written by the clock, a suspended queue moves
//! them, and they go on from there.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

/// A command of an environment: notes what it is told, and as `move` ends the job, as checkpoint(5)
/// expects it.
const COMMAND: &str = "#!/bin/sh\necho \"$1 job=$2 dir=$4 signal=$5 RESTARTED=$RESTARTED env=$SGE_CKPT_ENV\" >> $4/log\n\
                       case $1 in move) kill -9 -$3;; esac\n";

/// A job that lives until somebody says so, and writes its state itself when it is told by SIGUSR1.
const JOB: &str = "#!/bin/sh\ntrap 'echo saved >> $SGE_CKPT_DIR/log' USR1\n\
                   echo \"start RESTARTED=$RESTARTED env=$SGE_CKPT_ENV queue=$QUEUE\" >> $SGE_CKPT_DIR/log\n\
                   until test -e $SGE_CKPT_DIR/end; do sleep 0.1; done\n";

/// A cell with an environment of an interface in both of its queues, and a script `job.sh`.
fn cell(interface: &str) -> Cell {
    let cell = Cell::with(CellPlan::default().slots(2));
    let (dir, command) = (
        cell.work().display().to_string(),
        cell.write("command", COMMAND, 0o755).display().to_string(),
    );
    cell.write("job.sh", JOB, 0o755);
    let of = |word: &str| format!("{command} {word} $job_id $job_pid $ckpt_dir $ckpt_signal");
    let text = format!(
        "ckpt_name ck\ninterface {interface}\nckpt_command {}\nmigr_command {}\nrestart_command {}\nclean_command {}\n\
         ckpt_dir {dir}\nsignal usr1\nwhen xm\n",
        of("save"),
        of("move"),
        of("again"),
        of("clean")
    );
    let file = cell.write_top("ck", &text, 0o644).display().to_string();
    cell.admin(&["qconf", "-Ackpt", &file]).ok();
    for (attribute, value) in [("ckpt_list", "ck"), ("min_cpu_interval", "0:0:1")] {
        cell.admin(&["qconf", "-rattr", "queue", attribute, value, "all.q"])
            .ok();
    }
    let queue = cell.admin(&["qconf", "-sq", "all.q"]).ok().out;
    let other = queue
        .replacen("all.q", "b.q", 1)
        .replacen("seq_no                0", "seq_no                9", 1);
    let file = cell.write_top("b.q", &other, 0o644).display().to_string();
    cell.admin(&["qconf", "-Aq", &file]).ok();
    cell
}

fn log(cell: &Cell) -> Vec<String> {
    std::fs::read_to_string(cell.work().join("log"))
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn wait_for_line(cell: &Cell, wanted: impl Fn(&str) -> bool) {
    wait_until(
        || format!("{:?}; {}", log(cell), cell.state_of("1")),
        || log(cell).iter().any(|line| wanted(line)),
    );
}

fn end(cell: &Cell) {
    cell.write("end", "", 0o644);
    wait_until(|| cell.state_of("1"), || cell.user(&["qstat", "-j", "1"]).code != 0);
}

#[test]
fn a_suspended_queue_moves_a_job_that_commands_save() {
    let cell = cell("application-level");
    let dir = cell.work().display().to_string();
    cell.submit(&["-ckpt", "ck", "job.sh"]);
    wait_for_line(&cell, |line| line == "start RESTARTED=0 env=ck queue=all.q");
    let shown = cell.user(&["qstat", "-j", "1"]).ok().out;
    assert!(
        shown.contains("\ncheckpoint_object:          ck\ncheckpoint_attr:            mx    \n"),
        "{shown}"
    );
    assert!(cell.user(&["qstat", "-r"]).ok().out.contains("Checkpoint Env.:  ck"));
    let told = |word: &str| format!("{word} job=1 dir={dir} signal=usr1 RESTARTED=0 env=ck");
    wait_for_line(&cell, |line| line == told("save"));
    cell.admin(&["qmod", "-sq", "all.q"]).ok();
    wait_for_line(&cell, |line| line == told("move"));
    wait_for_line(&cell, |line| line == "start RESTARTED=2 env=ck queue=b.q");
    cell.wait_for_state("1", "Rr");
    assert!(
        !log(&cell)
            .iter()
            .any(|line| line.starts_with("clean") || line.starts_with("again")),
        "{:?}",
        log(&cell)
    );
    end(&cell);
    wait_for_line(&cell, |line| {
        line.starts_with("clean job=1") && line.ends_with("RESTARTED=2 env=ck")
    });
    let ends = cell.admin(&["qacct", "-j", "1"]).ok().out;
    assert!(
        ends.contains("24  : migrating") || ends.contains("24 : migrating"),
        "{ends}"
    );
}

#[test]
fn a_restart_command_takes_the_place_of_the_script() {
    let cell = cell("cpr");
    cell.submit(&["-ckpt", "ck", "-c", "x", "job.sh"]);
    wait_for_line(&cell, |line| line.starts_with("start"));
    cell.admin(&["qmod", "-sq", "all.q"]).ok();
    wait_for_line(&cell, |line| {
        line.starts_with("again job=1") && line.ends_with("RESTARTED=2 env=ck")
    });
    wait_until(|| cell.state_of("1"), || cell.user(&["qstat", "-j", "1"]).code != 0);
    assert_eq!(
        log(&cell).iter().filter(|line| line.starts_with("start")).count(),
        1,
        "{:?}",
        log(&cell)
    );
}

#[test]
fn a_job_that_saves_itself_is_told_by_the_clock_and_killed_to_move() {
    let cell = cell("userdefined");
    cell.submit(&["-ckpt", "ck", "job.sh"]);
    wait_for_line(&cell, |line| line == "saved");
    cell.admin(&["qmod", "-sq", "all.q"]).ok();
    wait_for_line(&cell, |line| line == "start RESTARTED=1 env=ck queue=b.q");
    end(&cell);
    let others = log(&cell).into_iter().find(|line| line.contains("job="));
    assert_eq!(others, None, "no command belongs to this interface");
}

#[test]
fn an_agent_that_is_ended_moves_what_wants_to_move_and_leaves_the_rest() {
    let cell = cell("application-level");
    cell.submit(&["-ckpt", "ck", "-c", "s", "job.sh"]);
    let stays = cell.submit(&["-b", "y", "sleep", "600"]);
    wait_for_line(&cell, |line| line.starts_with("start"));
    cell.wait_for_state(&stays, "r");
    let host = cell.admin(&["qconf", "-sel"]).ok().out.trim().to_owned();
    cell.admin(&["qconf", "-ke", &host]).ok();
    // Its host takes no jobs any more, and no other is there.
    cell.wait_for_state("1", "Rq");
    assert!(
        log(&cell).iter().any(|line| line.starts_with("move job=1")),
        "{:?}",
        log(&cell)
    );
    wait_until(|| cell.log("agent"), || !cell.is_alive("agent"));
    cell.bring_up(&[]).ok();
    wait_for_line(&cell, |line| line.starts_with("start RESTARTED=2"));
    assert!(
        cell.user(&["qstat"]).ok().out.contains(" r "),
        "{}",
        cell.state_of(&stays)
    );
    end(&cell);
}
