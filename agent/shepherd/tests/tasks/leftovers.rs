//! What a job leaves in its temporary directory, and in its place.

use super::cell::{Cell, is_alive, tmpdir, until};
use gridwright_shepherd::proc;
use proto::launch::{EndCause, LaunchDocument, TaskOrder};
use std::fs;
use std::path::PathBuf;

const NAME: &str = "7.1.all.q";

/// A job in a directory of its own, and its temporary directory there.
fn job(cell: &mut Cell, command: &str) -> (LaunchDocument, PathBuf) {
    let mut document = cell.shell(command);
    document.tmpdir = tmpdir(&cell.work.to_string_lossy(), NAME);
    (document, cell.work.join(NAME))
}

fn is_there(path: &std::path::Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn a_temporary_directory_goes_whatever_its_job_made_of_it() {
    let mut cell = Cell::start();
    let kept = cell.work.join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "x").unwrap();
    nix::unistd::chown(&kept, Some(cell.account.uid.into()), None).unwrap();
    for command in [
        "rmdir T && ln -s kept T",
        "rmdir T && echo x > T",
        "mkdir -p T/a/b && echo x > T/a/b/file && chmod 0 T/a/b T/a",
        "mkdir -p T/a && echo x > T/file && chmod 0 T/a T",
        "mkdir T/a && ln -s ../../kept T/a/link && chmod 500 T/a T",
        "rm -r T",
    ] {
        let (document, made) = job(&mut cell, &command.replace('T', NAME));
        let result = cell.run_document(document);
        assert_eq!(
            (&result.cause, is_there(&made)),
            (&EndCause::Exited(0), false),
            "{command}"
        );
        assert!(kept.join("file").exists(), "{command}");
    }
}

#[test]
fn what_of_a_temporary_directory_cannot_be_removed_keeps_nothing_else_and_is_recorded() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start();
    let command = format!("mkdir {NAME}/a {NAME}/z; touch {NAME}/a/x {NAME}/z/x; echo there > there; sleep 600");
    let (document, made) = job(&mut cell, &command);
    let key = cell.launch(document);
    cell.read_when_there("there");
    fs::create_dir(made.join("of-root")).unwrap();
    fs::write(made.join("of-root/file"), "x").unwrap();
    cell.order(key, TaskOrder::Kill);
    let result = cell.ended(key);
    let left: Vec<_> = fs::read_dir(&made)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["of-root"]);
    let note = result.note.unwrap();
    assert!(note.contains(NAME) && note.contains("Permission denied"), "{note}");
}

#[test]
fn a_temporary_directory_that_somebody_fills_faster_than_it_goes_does_not_hold_up_the_result() {
    let mut cell = Cell::start();
    let (document, made) = job(
        &mut cell,
        "touch filled; until [ -e 7.1.all.q/by-another ]; do sleep 0.05; done",
    );
    // A process of the same user that is none of the task: it makes the directory anew whenever
    // that is gone.
    let filler =
        "while [ -e filled ]; do mkdir -p 7.1.all.q/d.$$ 2>/dev/null; : > 7.1.all.q/by-another; done 2>/dev/null";
    let key = cell.launch(document);
    cell.executed(key);
    until("the job", || cell.work.join("filled").exists().then_some(()));
    let mut command = std::process::Command::new("/bin/sh");
    std::os::unix::process::CommandExt::uid(&mut command, cell.account.uid);
    let mut filler = command.args(["-c", filler]).current_dir(&cell.work).spawn().unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::Exited(0));
    fs::remove_file(cell.work.join("filled")).unwrap();
    filler.wait().unwrap();
    // What the filler made last may have come behind the removal.
    let _ = fs::remove_dir_all(&made);
}

/// A process that takes no signal, not even SIGKILL, as one that waits for a file system that is
/// gone: frozen by the first version of control groups. `None` on a host without them.
struct FrozenProcess {
    group: PathBuf,
}

impl FrozenProcess {
    fn new(pid: i32) -> Option<Self> {
        let parent = std::path::Path::new("/sys/fs/cgroup/freezer");
        if !nix::unistd::Uid::effective().is_root() || !parent.join("cgroup.procs").exists() {
            return None;
        }
        let group = parent.join(format!("gridwright-test-{pid}"));
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(group.join("freezer.state"), "FROZEN").unwrap();
        until("the freezing", || {
            fs::read_to_string(group.join("freezer.state"))
                .ok()
                .filter(|state| state == "FROZEN\n")
        });
        Some(FrozenProcess { group })
    }
}

impl Drop for FrozenProcess {
    fn drop(&mut self) {
        let _ = fs::write(self.group.join("freezer.state"), "THAWED");
        until("the end of what was frozen", || fs::remove_dir(&self.group).ok());
    }
}

#[test]
fn a_process_that_takes_no_signal_does_not_hold_the_slot_of_its_task() {
    let mut cell = Cell::start();
    let document = cell.shell("sleep 1000 & echo $! > child; wait");
    let key = cell.launch(document);
    let child: i32 = cell.read_when_there("child").parse().unwrap();
    let Some(frozen) = FrozenProcess::new(child) else {
        cell.order(key, TaskOrder::Kill);
        cell.ended(key);
        return;
    };
    cell.order(key, TaskOrder::Kill);
    let result = cell.ended(key);
    assert_eq!(
        (&result.cause, result.left_processes),
        (&EndCause::Signalled { signal: 9, core: false }, Some(1))
    );
    assert!(is_alive(child));
    assert_eq!(cell.run("exit 3").cause, EndCause::Exited(3));
    drop(frozen);
    assert!(!is_alive(child));
}

#[test]
fn a_process_that_takes_no_signal_is_counted_when_its_shepherd_is_dead() {
    let mut cell = Cell::start();
    let document = cell.shell("sleep 1000 & echo $! > child; wait");
    let key = cell.launch(document);
    let main = cell.executed(key);
    let child: i32 = cell.read_when_there("child").parse().unwrap();
    let shepherd = nix::unistd::Pid::from_raw(proc::stat(main).unwrap().parent);
    let frozen = FrozenProcess::new(child);
    nix::sys::signal::kill(shepherd, nix::sys::signal::Signal::SIGKILL).unwrap();
    let result = cell.ended(key);
    let expected = u32::from(frozen.is_some());
    assert_eq!(
        (&result.cause, result.left_processes),
        (&EndCause::ShepherdDied, Some(expected))
    );
}
