//! Processes of a cell: those that a test starts and holds, and those that it has to find.

use super::wait::wait_until;
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A command that runs beside the test. Dropped, it is killed.
pub struct Process {
    child: Child,
    output: PathBuf,
}

impl Process {
    /// Starts it; what it prints goes to the file `output`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(mut command: Command, output: &Path) -> Self {
        let file = File::create(output).unwrap_or_else(|error| panic!("{}: {error}", output.display()));
        let errors = file.try_clone().expect("a descriptor is free");
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            child,
            output: output.to_owned(),
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("process ids are small");
        // It may have ended meanwhile.
        let _ = send(Pid::from_raw(pid), signal);
    }

    /// Its end, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGKILL; a process that is gone already is fine.
pub(super) fn kill(pid: i32) {
    let _ = send(Pid::from_raw(pid), Signal::SIGKILL);
}

/// The resident memory of a process in KiB, or 0 if it is gone.
pub fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Ends every process whose command line or environment names `path`, which is a temporary
/// directory of the test.
pub(super) fn end_all_of(path: &str) {
    end_all("the processes of the cell", |pid| {
        names(pid, "cmdline", path) || names(pid, "environ", path)
    });
}

/// Ends every process of a user that was made for the test.
pub(super) fn end_all_under(uid: u32) {
    let owner = |pid: i32| std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    end_all("the processes of the account", |pid| {
        owner(pid).is_ok_and(|owner| owner == uid)
    });
}

/// Shepherds of the cell in `dir`: processes of the launcher's command line whose parent, or that
/// of a launcher which died, has it too.
pub(super) fn shepherds(dir: &str) -> Vec<i32> {
    let launcher = std::fs::read_to_string(format!("{dir}/run/launcher/pid")).unwrap_or_default();
    let launcher: i32 = launcher.trim().parse().unwrap_or(0);
    let is_shepherd = |&pid: &i32| pid != launcher && holds_a_task(pid, dir);
    pids().into_iter().filter(is_shepherd).collect()
}

/// Whether a process has a lock of a task open, as a shepherd has while its task lives.
fn holds_a_task(pid: i32, dir: &str) -> bool {
    let tasks = format!("{dir}/tasks/");
    names(pid, "cmdline", "gridwright-shepherd")
        && std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry
                    .and_then(|entry| std::fs::read_link(entry.path()))
                    .is_ok_and(|to| to.display().to_string().starts_with(&tasks))
            })
        })
}

fn end_all(what: &str, chosen: impl Fn(i32) -> bool) {
    let me = std::process::id().cast_signed();
    let found = || {
        pids()
            .into_iter()
            .filter(|pid| *pid != me && !is_zombie(*pid) && chosen(*pid))
            .collect::<Vec<_>>()
    };
    wait_until(
        || format!("the end of {what}: {:?}", found()),
        || {
            let found = found();
            found.iter().for_each(|pid| kill(*pid));
            found.is_empty()
        },
    );
}

fn names(pid: i32, file: &str, text: &str) -> bool {
    let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn is_zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
