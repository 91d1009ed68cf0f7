//! `gridwright-shepherd hold`: a process that keeps the group of `gridwright-jobs.service`.
//!
//! systemd removes the group of a unit without processes, and moves processes only into groups that
//! have none below them. So a process of its own holds the place of all tasks. It does nothing
//! else, and no upgrade restarts it: the launcher and the agent come and go without it.

use super::{groups, notify};
use crate::cgroup::{GroupDirectory, Hierarchies, OwnGroups};
use crate::proc;
use folder::Folder;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{SigSet, Signal};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The group below the unit's in which the holder is: the group of the unit itself must not have
/// processes.
pub const SUBGROUP: &str = "holder";

/// The unit.
pub const UNIT: &str = "gridwright-jobs.service";

/// The directory of the cell that the unit is for.
pub const DIRECTORY: &str = "/var/lib/gridwright";

const FOLDER: &str = "run/holder";

const LOCK: &str = "lock";

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// A holder runs already, or its group is not one that systemd delegated to it.
pub fn run(dir: &Path) -> io::Result<()> {
    std::env::set_current_dir(fs::canonicalize(dir)?)?;
    folder::check_owned(&fs::File::open(".")?)?;
    Folder::open(Path::new("run"))?;
    let own = Folder::open(Path::new(FOLDER))?;
    let lock = Flock::lock(own.open_lock(LOCK)?, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, errno)| io::Error::other(format!("{FOLDER}/{LOCK}: a holder runs already ({errno})")))?;
    let mut signals = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT]
        .into_iter()
        .for_each(|signal| signals.add(signal));
    signals.thread_block()?;
    take_place()?;
    // The pid is written after the group is made, because the launcher looks up the group by it.
    folder::note_holder(&lock)?;
    notify::ready();
    loop {
        if signals.wait().is_ok() {
            return Ok(());
        }
    }
}

/// Enters the subgroup, and passes the controllers of the unit's group on to the groups of tasks.
fn take_place() -> io::Result<()> {
    let hierarchies = Hierarchies::find();
    let groups = OwnGroups::of_process(std::process::id() as i32);
    let (Some(root), Some(path)) = (hierarchies.unified, groups.unified) else {
        // The first version alone: processes and groups may be in one group there.
        return Ok(());
    };
    let Some(unit) = unit_of(&path) else {
        return Err(io::Error::other(format!(
            "control group {path:?} is not the one of {UNIT}: start the holder by systemctl start {UNIT}"
        )));
    };
    let unit = GroupDirectory::open(&root.join(unit))?;
    unit.child(SUBGROUP).or_else(|_| unit.make(SUBGROUP))?.enter()?;
    groups::delegate(&unit);
    Ok(())
}

/// The group of the unit, from the group in which systemd starts the holder: that of the unit, or
/// from version 254 on the subgroup that the unit asks for (`DelegateSubgroup=`).
fn unit_of(path: &str) -> Option<&str> {
    let unit = path
        .strip_suffix(SUBGROUP)
        .and_then(|path| path.strip_suffix('/'))
        .unwrap_or(path);
    unit.ends_with(UNIT).then_some(unit)
}

/// A holder: its process and when that started, in clock ticks since boot. No other process ever
/// has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningHolder {
    /// The process.
    pub pid: i32,
    start_ticks: u64,
}

/// The holder that runs for this directory.
pub fn find(dir: &Path) -> Option<RunningHolder> {
    let lock = Path::new(FOLDER).join(LOCK);
    let is_there = fs::symlink_metadata(dir.join(&lock)).is_ok_and(|found| found.is_file());
    if !is_there {
        return None;
    }
    let own = Folder::open(&dir.join(FOLDER)).ok()?;
    let mut text = String::new();
    own.open_lock(LOCK).ok()?.take(256).read_to_string(&mut text).ok()?;
    let mut numbers = text.split_ascii_whitespace();
    let (pid, start) = (numbers.next()?.parse().ok()?, numbers.next()?.parse::<u64>().ok()?);
    let process = proc::stat(pid).filter(|process| !process.is_gone())?;
    let is_holder = process.start_ticks == start && proc::real_uid(pid) == Some(nix::unistd::geteuid().as_raw());
    is_holder.then_some(RunningHolder {
        pid,
        start_ticks: start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_found_whether_systemd_starts_the_holder_in_its_group_or_in_the_subgroup() {
        let unit = "gridwright.slice/gridwright-jobs.service";
        for (path, expected) in [
            (unit.to_owned(), Some(unit)),
            (format!("{unit}/holder"), Some(unit)),
            (format!("{unit}/shepherds"), None),
            ("user.slice/session-3.scope".to_owned(), None),
        ] {
            assert_eq!(unit_of(&path), expected, "{path}");
        }
    }

    #[test]
    fn a_holder_is_known_by_its_start_and_one_that_has_ended_is_none() {
        let dir = std::env::temp_dir().join(format!("gridwright-holder-{}", std::process::id()));
        fs::create_dir_all(dir.join("run")).unwrap();
        assert_eq!(find(&dir), None);
        assert!(!dir.join(FOLDER).exists(), "looking makes nothing");
        let own = Folder::open(&dir.join(FOLDER)).unwrap();
        let me = proc::stat(std::process::id() as i32).unwrap();
        for (start, expected) in [(me.start_ticks, Some(me.pid)), (me.start_ticks + 1, None)] {
            own.write(LOCK, &format!("{} {start} 0\n", me.pid), 0o600).unwrap();
            assert_eq!(find(&dir).map(|holder| holder.pid), expected);
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
