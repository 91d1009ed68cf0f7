//! What an administrator meets with `up`, `down` and `join`: interrupts, failures, closed
//! directories, ports in use.

use crate::hosts::{can_have_hosts, join, master, reports, submit_on, token};
use gridwright_tests::cell::{
    Cell, CellPlan, CommandOutput, CommandUser, Network, PATIENCE, is_root, wait_for, wait_until,
};
use nix::sys::signal::Signal;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const DAEMONS: [&str; 3] = ["master", "agent", "launcher"];

/// A script that runs until the file `go` is there.
const WAITS: &str = "#!/bin/sh\necho $$ >pid.$JOB_ID\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n";

/// The session of a process, by proc_pid_stat(5).
fn session(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn ctrl_c_on_up_ends_all_daemons_and_running_jobs_go_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let cell = Cell::prepare(CellPlan::default());
        let mut up = cell.bring_up_in_the_foreground(&["--port", "0"]);
        wait_until(|| up.printed(), || up.printed().contains("Ctrl-C"));
        cell.keep_temporary_directories_apart();
        for daemon in DAEMONS {
            let pid = cell.pid(daemon);
            assert_eq!(session(pid), pid, "{daemon} has a session of its own");
        }
        cell.write("job.sh", WAITS, 0o755);
        let job = cell.submit(&["job.sh"]);
        cell.wait_for_state(&job, "r");
        up.signal(signal);
        assert!(
            wait_for(PATIENCE, || up.ended().is_some_and(|status| status.success())),
            "{}",
            up.printed()
        );
        assert!(up.printed().contains("running jobs go on"), "{}", up.printed());
        assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
        cell.write("go", "", 0o644);
        wait_until(
            || "the end of the job".to_owned(),
            || cell.read(&format!("job.sh.o{job}")) == "done\n",
        );
        cell.bring_up(&[]).ok();
        assert_eq!(cell.accounted(&job, 1)[0].value("exit_status"), "0");
    }
}

#[test]
fn an_up_that_fails_ends_what_it_started() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let settings = cell.dir().join("etc/agent.toml");
    let sound = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{sound}\nnonsense = 1\n")).unwrap();
    let said = cell
        .bring_up(&[])
        .refused(&["the agent ended", "nonsense", "is ended again"]);
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)), "{}", said.err);
    std::fs::write(&settings, sound).unwrap();
    cell.bring_up(&[]).ok();
}

#[test]
fn a_port_in_use_is_refused_before_a_cell_is_made_and_named_with_its_file_afterwards() {
    let cell = Cell::prepare(CellPlan::default());
    let taken = UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    cell.bring_up(&["--port", &port])
        .refused(&["udp port", &port, "--port"]);
    assert!(!cell.dir().exists());
    drop(taken);
    cell.bring_up(&["--port", &port]).ok();
    cell.down(&[]).ok();
    let _taken = UdpSocket::bind(format!("[::]:{port}")).unwrap();
    cell.bring_up(&[])
        .refused(&["Address already in use", "etc/cell.toml", "--port"]);
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
}

#[test]
fn root_hears_which_directory_a_daemon_cannot_enter_before_anything_is_made() {
    if !is_root() {
        return;
    }
    let cell = Cell::prepare(CellPlan::default());
    let closed = cell.top().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let dir = closed.join("below/cell").display().to_string();
    let shown = closed.display().to_string();
    cell.admin(&["up", "--dir", &dir, "--detach", "--port", "0"]).refused(&[
        "cannot enter",
        &shown,
        "uid",
        "chmod o+x",
    ]);
    assert_eq!(std::fs::read_dir(&closed).unwrap().count(), 0);
}

#[test]
fn down_with_kill_jobs_on_a_host_ends_its_own_jobs_alone_and_may_be_repeated() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    let other = Cell::on(&network, "h2");
    let said = join(&other, &token(&master, &[])).ok();
    assert!(
        !said.out.contains("start it with") && said.out.contains("launcher and agent run"),
        "{said}"
    );
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
    master.write("job.sh", WAITS, 0o755);
    let [here, there] = ["h1", "h2"].map(|host| submit_on(&master, host, &["job.sh"]));
    for job in [&here, &there] {
        wait_until(
            || master.state_of(job),
            || master.read(&format!("pid.{job}")).ends_with('\n'),
        );
    }
    let pid = |job: &str| master.read(&format!("pid.{job}")).trim().to_owned();
    other.down(&["--kill-jobs"]).ok();
    assert!(
        !Path::new("/proc").join(pid(&there)).exists(),
        "the host's own job is gone"
    );
    assert!(
        Path::new("/proc").join(pid(&here)).exists(),
        "the other host's job runs on"
    );
    other.down(&["--kill-jobs"]).ok();
    other.bring_up(&[]).ok();
    master.accounted(&there, 1);
    master.write("go", "", 0o644);
    assert_eq!(master.accounted(&here, 1)[0].value("exit_status"), "0");
    master.down(&["--kill-jobs"]).ok();
    master.down(&["--kill-jobs"]).ok();
}

#[test]
fn a_join_that_is_refused_leaves_no_directory() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    let used = token(&master, &["--hosts", "h9"]);
    let other = Cell::on(&network, "h2");
    join(&other, &used).refused(&["h9"]);
    assert!(!other.dir().exists());
}

#[test]
fn every_command_of_gridwright_takes_the_directory_as_an_option() {
    let cell = Cell::up();
    let dir = cell.dir_word();
    let job = cell.submit(&["-h", "-b", "y", "true"]);
    for words in [
        &["explain", "--dir", &dir, &job][..],
        &["token", "--dir", &dir],
        &["sensor", "status", "--dir", &dir],
        &["doctor", "--dir", &dir],
        &["env", "--dir", &dir],
    ] {
        let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
        command.args(words).env_remove("GRIDWRIGHT_DIR").env_remove("SGE_ROOT");
        CommandOutput::run(command).ok();
    }
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command
        .args(["shares", "--dir", &dir])
        .env_remove("GRIDWRIGHT_DIR")
        .env_remove("SGE_ROOT");
    CommandOutput::run(command).refused(&["no sharetree element"]);
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.args(["qstat"]).env_remove("GRIDWRIGHT_DIR");
    let said = CommandOutput::run(command).ok();
    assert!(said.out.contains(&job), "SGE_ROOT names a cell: {said}");
}
