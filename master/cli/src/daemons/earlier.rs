//! Daemons of releases that kept all files of `run/` in one directory.

use super::process::Identity;
use super::{Daemon, wait_for};
use crate::folder::Folder;
use nix::fcntl::{Flock, FlockArg};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The daemons that may have left files.
const ALL: [Daemon; 4] = [Daemon::Simulated, Daemon::Agent, Daemon::Launcher, Daemon::Master];

/// The endings of the files that each daemon created in `run/`.
const ENDINGS: [&str; 4] = ["lock", "pid", "sock", "ready"];

/// The first daemon of an earlier release that lives in this directory, and its process.
pub fn living(dir: &Path) -> Option<(Daemon, i32)> {
    let run = Folder::below(dir, &["run"]).ok()?;
    ALL.into_iter()
        .find_map(|daemon| Some((daemon, process(&run, daemon, dir)?.pid().as_raw())))
}

/// The process of a daemon: its lock is held, and the pid file names a process of its program whose
/// command line names the directory.
fn process(run: &Folder, daemon: Daemon, dir: &Path) -> Option<Identity> {
    let lock = run.file(&format!("{}.lock", daemon.name())).ok()?;
    if Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_ok() {
        return None;
    }
    let pid: i32 = run.read(&format!("{}.pid", daemon.name())).ok()?.trim().parse().ok()?;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let dir = std::os::unix::ffi::OsStrExt::as_bytes(dir.as_os_str());
    if !words.split(|byte| *byte == 0).any(|word| word == dir) {
        return None;
    }
    let owner = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Identity::of_process(pid, owner, daemon.program()).filter(Identity::exists)
}

/// Ends them, and says whether all are gone within `patience`.
pub fn end(dir: &Path, patience: Duration) -> bool {
    let Ok(run) = Folder::below(dir, &["run"]) else {
        return true;
    };
    ALL.into_iter().all(|daemon| {
        let Some(identity) = process(&run, daemon, dir) else {
            return true;
        };
        // Its lock tells whether it ended.
        let _ = identity.terminate();
        wait_for(patience, || process(&run, daemon, dir).is_none())
    })
}

/// Removes what they left. The caller has made sure that nobody else makes names in `run`.
///
/// # Errors
/// Errors of the file system.
pub fn remove_files(run: &Folder) -> std::io::Result<()> {
    run.remove("down")?;
    for daemon in ALL {
        ENDINGS
            .iter()
            .try_for_each(|ending| run.remove(&format!("{}.{ending}", daemon.name())))?;
    }
    Ok(())
}
