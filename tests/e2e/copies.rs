//! Copies of a cell's directory beside the original, and directories that were moved.

use crate::hosts::{can_have_hosts, join, master, reports, submit_on, token};
use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, Network, Process, is_root, records, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A copy of the directory as an administrator makes it, while the cell is up.
fn copy_of(cell: &Cell) -> PathBuf {
    let copy = cell.dir().with_file_name("copy");
    let said = CommandOutput::run({
        let mut command = Command::new("cp");
        command.arg("-a").arg(cell.dir()).arg(&copy);
        command
    });
    // Sockets and files that come and go are no loss.
    assert!(copy.join("master/state.db").exists(), "{said}");
    copy
}

/// A command about another directory than the cell's.
pub fn about(cell: &Cell, dir: &Path, who: CommandUser, words: &[&str]) -> CommandOutput {
    let mut command = cell.command(who, &cell.programs().gridwright());
    command.args(words).env("GRIDWRIGHT_DIR", dir).env("SGE_ROOT", dir);
    CommandOutput::run(command)
}

/// A job that runs until the file `go` is there.
fn running_job(cell: &Cell) -> String {
    cell.write(
        "job.sh",
        "#!/bin/sh\necho $$ >pid\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n",
        0o755,
    );
    let job = cell.submit(&["-r", "y", "job.sh"]);
    cell.wait_for_state(&job, "r");
    wait_until(|| cell.state_of(&job), || cell.read("pid").ends_with('\n'));
    job
}

fn runs_on(cell: &Cell, job: &str) {
    let pid = cell.read("pid").trim().to_owned();
    assert!(
        Path::new("/proc").join(pid).exists(),
        "the process of the original's job"
    );
    cell.wait_for_state(job, "r");
}

/// Lets the job go on, and looks whether it ended as if nothing had been copied.
fn ends_well(cell: &Cell, job: &str) {
    cell.write("go", "", 0o644);
    let record = cell.accounted(job, 1).remove(0);
    assert_eq!(
        (record.value("failed"), record.value("exit_status")),
        ("0", "0"),
        "{record:?}"
    );
    assert_eq!(cell.read(&format!("job.sh.o{job}")), "done\n");
}

#[test]
fn no_daemon_runs_in_a_copy_and_the_jobs_of_the_original_go_on() {
    let cell = Cell::up();
    let job = running_job(&cell);
    let copy = copy_of(&cell);
    let dir = copy.display().to_string();
    let launch = [
        "launch",
        "--dir",
        &dir,
        if is_root() { "--agent-uid" } else { "--single-user" },
    ];
    let user = is_root().then_some("58001");
    let daemons: [(&str, Vec<&str>); 3] = [
        ("gridwright-shepherd", launch.into_iter().chain(user).collect()),
        ("gridwright-master", vec!["run", "--dir", &dir]),
        ("gridwright-agent", vec!["run", "--dir", &dir]),
    ];
    for (program, words) in daemons {
        let mut command = cell.command(
            CommandUser::Admin,
            &cell.programs().gridwright().with_file_name(program),
        );
        command.args(words);
        CommandOutput::run(command).refused(&["is a copy", &cell.dir_word(), "--as-copy"]);
    }
    cell.admin(&["up", "--dir", &dir, "--detach"])
        .refused(&["is a copy", &cell.dir_word(), "--as-copy"]);
    let doctor = cell.admin(&["doctor", "--dir", &dir]);
    assert!(doctor.out.contains("BAD  directory"), "{doctor}");
    let env = cell.admin(&["env", "--dir", &dir]).ok();
    assert!(env.out.contains(&format!("SGE_ROOT='{dir}'")), "{env}");
    runs_on(&cell, &job);
    let own = cell.admin(&["doctor", "--dir", &cell.dir_word()]);
    assert!(own.out.contains("ok   directory"), "{own}");
    ends_well(&cell, &job);
}

#[test]
fn a_launcher_that_takes_a_copy_for_an_original_still_finds_that_its_tasks_run_elsewhere() {
    let cell = Cell::up();
    let job = running_job(&cell);
    let copy = copy_of(&cell);
    // As in a copy that was made before the cell ran under this release.
    std::fs::remove_file(copy.join("etc/directory")).unwrap();
    let mut command = cell.command(
        CommandUser::Admin,
        &cell.programs().gridwright().with_file_name("gridwright-shepherd"),
    );
    command.args(["launch", "--dir", &copy.display().to_string()]);
    if is_root() {
        command.args(["--agent-uid", "58001"]);
    } else {
        command.arg("--single-user");
    }
    let launcher = Process::start(command, &cell.top().join("launcher.out"));
    wait_until(
        || launcher.printed(),
        || launcher.printed().contains("of which this one is a copy"),
    );
    runs_on(&cell, &job);
    drop(launcher);
    ends_well(&cell, &job);
}

#[test]
fn a_copy_comes_up_beside_its_original_as_a_cell_of_its_own() {
    let cell = Cell::up();
    let job = running_job(&cell);
    let copy = copy_of(&cell);
    let dir = copy.display().to_string();
    let said = cell.admin(&["up", "--dir", &dir, "--as-copy", "--detach"]).ok();
    assert!(
        said.err.contains("qmod -e") && said.err.contains(&cell.dir_word()),
        "{said}"
    );
    let settings = std::fs::read_to_string(copy.join("default/common/settings.sh")).unwrap();
    assert!(settings.contains(&format!("SGE_ROOT='{dir}'")), "{settings}");
    let told = records(&about(&cell, &copy, CommandUser::User, &["qacct", "-j", &job]).out);
    assert_eq!(
        told[0].value("failed").split_whitespace().next(),
        Some("21"),
        "{told:?}"
    );
    let listed = about(&cell, &copy, CommandUser::User, &["qstat", "-u", "*"]).ok();
    assert_eq!(listed.out, "", "nothing of the original runs in the copy");
    let waiting = about(
        &cell,
        &copy,
        CommandUser::User,
        &["qsub", "-terse", "-cwd", "-b", "y", "-N", "own", "true"],
    )
    .ok();
    let waiting = waiting.out.trim().to_owned();
    about(&cell, &copy, CommandUser::Admin, &["qmod", "-e", "*"]).ok();
    wait_until(
        || about(&cell, &copy, CommandUser::User, &["explain", &waiting]).to_string(),
        || !records(&about(&cell, &copy, CommandUser::User, &["qacct", "-j", &waiting]).out).is_empty(),
    );
    runs_on(&cell, &job);
    about(&cell, &copy, CommandUser::Admin, &["up", "--as-copy"]).refused(&["not a copy"]);
    about(&cell, &copy, CommandUser::Admin, &["down", "--dir", &dir]).ok();
    about(&cell, &copy, CommandUser::Admin, &["up", "--dir", &dir, "--detach"]).ok();
    about(&cell, &copy, CommandUser::Admin, &["down", "--dir", &dir]).ok();
    runs_on(&cell, &job);
    assert!(
        ["master", "agent", "launcher"]
            .iter()
            .all(|daemon| cell.is_alive(daemon))
    );
    ends_well(&cell, &job);
}

#[test]
fn a_backup_takes_the_place_of_a_cell_that_is_gone() {
    let cell = Cell::up();
    let held = cell.submit(&["-h", "-b", "y", "-N", "held", "true"]);
    let copy = copy_of(&cell);
    let dir = copy.display().to_string();
    let restore = ["up", "--dir", &dir, "--as-original", "--detach"];
    cell.admin(&restore)
        .refused(&["the original is not gone", &cell.dir_word()]);
    cell.admin(&["up", "--as-original", "--detach"])
        .refused(&["not a copy"]);
    cell.down(&[]).ok();
    cell.admin(&restore).ok();
    about(&cell, &copy, CommandUser::User, &["qrls", &held]).ok();
    let record = || records(&about(&cell, &copy, CommandUser::User, &["qacct", "-j", &held]).out);
    wait_until(|| format!("{:?}", record()), || !record().is_empty());
    about(&cell, &copy, CommandUser::Admin, &["down", "--dir", &dir]).ok();
    about(&cell, &copy, CommandUser::Admin, &["up", "--dir", &dir, "--detach"]).ok();
    about(&cell, &copy, CommandUser::Admin, &["down", "--dir", &dir]).ok();
}

#[test]
fn a_directory_that_was_moved_comes_up_with_its_own_paths() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let moved = cell.dir().with_file_name("moved to");
    std::fs::rename(cell.dir(), &moved).unwrap();
    let dir = moved.display().to_string();
    let doctor = cell.admin(&["doctor", "--dir", &dir]);
    assert!(
        doctor.out.contains("ok   directory") && doctor.out.contains("BAD  place"),
        "{doctor}"
    );
    cell.admin(&["up", "--dir", &dir, "--detach"]).ok();
    let script = format!(
        "eval \"$({} env --dir '{dir}')\" && qstat -help | head -1",
        cell.programs().gridwright().display()
    );
    let mut command = cell.command(CommandUser::User, "/bin/sh".as_ref());
    command
        .args(["-c", &script])
        .env_remove("GRIDWRIGHT_DIR")
        .env_remove("SGE_ROOT");
    let said = CommandOutput::run(command).ok();
    assert!(said.out.contains("Gridwright"), "{said}");
    let settings = std::fs::read_to_string(moved.join("default/common/settings.sh")).unwrap();
    assert!(settings.contains(&format!("SGE_ROOT='{dir}'")), "{settings}");
    about(&cell, &moved, CommandUser::Admin, &["down", "--dir", &dir]).ok();
}

#[test]
fn a_clone_of_a_host_without_its_tasks_is_refused_and_their_jobs_go_on() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    let other = Cell::on(&network, "h2");
    join(&other, &token(&master, &[])).ok();
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
    master.write(
        "job.sh",
        "#!/bin/sh\necho $$ >pid\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n",
        0o755,
    );
    let job = submit_on(&master, "h2", &["-r", "y", "job.sh"]);
    master.wait_for_state(&job, "r");
    wait_until(|| master.state_of(&job), || master.read("pid").ends_with('\n'));
    other.down(&[]).ok();
    let clone = copy_of_host(&other);
    let dir = clone.display().to_string();
    let said = other.admin(&["up", "--dir", &dir, "--detach", "--wait", "5"]);
    assert_ne!(said.code, 0, "{said}");
    let log = std::fs::read_to_string(clone.join("log/agent.log")).unwrap();
    assert!(log.contains("gridwright host rebind h2"), "{log}");
    other.admin(&["down", "--dir", &dir]).ok();
    runs_on(&master, &job);
    other.bring_up(&[]).ok();
    ends_well(&master, &job);
}

/// The directory of a host as an image of its disk has it that was made before its tasks began.
fn copy_of_host(host: &Cell) -> PathBuf {
    let clone = host.dir().with_file_name("copy");
    let mut command = Command::new("cp");
    command.arg("-a").arg(host.dir()).arg(&clone);
    CommandOutput::run(command).ok();
    std::fs::remove_file(clone.join("etc/directory")).unwrap();
    std::fs::remove_dir_all(clone.join("tasks")).unwrap();
    clone
}
