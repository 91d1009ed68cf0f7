//! The lock by which a daemon is known to be alive (ARCHITECTURE.md "Storage"). A pid file is for
//! people only.

use crate::layout::Layout;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// How often the lock is tried until it is taken to be held for long.
const TRIES: u32 = 20;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The master cannot be alone in its directory.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another master holds the lock.
    #[error("a master is running already: {} is locked{}", path.display(), who(pid))]
    Held {
        /// The lock.
        path: PathBuf,
        /// What `run/master/pid` says.
        pid: String,
    },
    /// The lock or the pid file cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl LockError {
    fn is_disk_full(&self) -> bool {
        let Self::Unwritable { source, .. } = self else {
            return false;
        };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Removes the file that keeps room for the log. The reserve is made anew when there is room again.
fn give_up_reserve(layout: &Layout) -> io::Result<()> {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(layout.dir().join("master"))?;
    Ok(unlinkat(&folder, "reserve", UnlinkatFlags::NoRemoveDir)?)
}

fn who(pid: &str) -> String {
    if pid.is_empty() {
        String::new()
    } else {
        format!(" by process {pid}")
    }
}

/// The lock of a file. Who looks whether a daemon is alive tries that lock too, and has it for a
/// moment: only one that is held for long is another daemon's.
fn alone(mut file: File) -> Result<Flock<File>, Errno> {
    for _ in 0..TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            taken => return taken.map_err(|(_, errno)| errno),
        }
        std::thread::sleep(PAUSE);
    }
    Err(Errno::EWOULDBLOCK)
}

/// The held locks. Dropped, or with the process, they are free.
#[derive(Debug)]
pub struct MasterLock {
    #[expect(dead_code, reason = "held, never read")]
    run: Flock<File>,
    #[expect(dead_code, reason = "held, never read")]
    database: Option<Flock<File>>,
}

impl MasterLock {
    /// Takes `run/master/lock`, which says then what process holds it, and the lock of the
    /// database; writes `run/master/pid`. Where the disk has not even room for that, the reserve
    /// beside the database is given up for it.
    ///
    /// # Errors
    /// `Held` if another process has one of them.
    pub fn take(layout: &Layout) -> Result<Self, LockError> {
        match Self::try_take(layout) {
            Err(error) if error.is_disk_full() && give_up_reserve(layout).is_ok() => Self::try_take(layout),
            taken => taken,
        }
    }

    fn try_take(layout: &Layout) -> Result<Self, LockError> {
        let folder = layout
            .folder()
            .map_err(|source| unwritable(layout.dir().join("run/master"), source))?;
        let (path, pid_file) = (folder.path("lock"), folder.path("pid"));
        let holder = || std::fs::read_to_string(&pid_file).unwrap_or_default().trim().to_owned();
        let file = folder
            .open_lock("lock")
            .map_err(|source| unwritable(path.clone(), source))?;
        let run = alone(file).map_err(|errno| {
            if errno != Errno::EWOULDBLOCK {
                return unwritable(path.clone(), errno.into());
            }
            LockError::Held {
                path: path.clone(),
                pid: holder(),
            }
        })?;
        let database = lock_database(layout, holder)?;
        folder::note_holder(&run).map_err(|source| unwritable(path, source))?;
        let pid = format!("{}\n", std::process::id());
        folder
            .write("pid", &pid, 0o644)
            .map_err(|source| unwritable(pid_file, source))?;
        Ok(Self { run, database })
    }
}

/// Locks the directory of the database itself. A lock file can be removed beside a master that
/// runs, by a cleaner of old files or by hand; this directory cannot, and it stays the same one
/// when it is renamed. Nobody but the master's user can open it.
fn lock_database(layout: &Layout, holder: impl Fn() -> String) -> Result<Option<Flock<File>>, LockError> {
    let path = layout.dir().join("master");
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    match alone(folder.map_err(|source| unwritable(path.clone(), source))?) {
        Ok(lock) => Ok(Some(lock)),
        Err(Errno::EWOULDBLOCK) => Err(LockError::Held { path, pid: holder() }),
        Err(errno) => {
            // NFS has no locks of directories.
            tracing::warn!(
                "{} cannot be locked: {errno}; run/master/lock alone keeps a second master away",
                path.display()
            );
            Ok(None)
        }
    }
}

fn unwritable(path: PathBuf, source: io::Error) -> LockError {
    LockError::Unwritable { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_whether_a_master_is_alive_keeps_none_from_starting() {
        let dir = crate::testing::TempDir::new("lock");
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.master("")).unwrap();
        let file = layout.folder().unwrap().open_lock("lock").unwrap();
        let looking = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(3 * PAUSE);
            drop(looking);
        });
        let _held = MasterLock::take(&layout).unwrap();
        ends.join().unwrap();
        assert!(matches!(MasterLock::take(&layout), Err(LockError::Held { pid, .. }) if !pid.is_empty()));
    }

    #[test]
    fn a_full_disk_costs_the_reserve_and_nothing_else_beside_the_database() {
        let dir = crate::testing::TempDir::new("lock-full");
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.master("")).unwrap();
        ["reserve", "state.db"]
            .iter()
            .for_each(|name| std::fs::write(layout.master(name), "kept").unwrap());
        let full = |kind: io::ErrorKind| unwritable(layout.master(""), kind.into()).is_disk_full();
        assert_eq!(
            [io::ErrorKind::StorageFull, io::ErrorKind::NotFound].map(full),
            [true, false]
        );
        give_up_reserve(&layout).unwrap();
        assert!(!layout.master("reserve").exists() && layout.master("state.db").exists());
        assert!(give_up_reserve(&layout).is_err());
    }

    #[test]
    fn a_second_master_is_refused_also_where_the_lock_file_was_removed() {
        let dir = crate::testing::TempDir::new("second");
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.master("")).unwrap();
        let _held = MasterLock::take(&layout).unwrap();
        std::fs::remove_dir_all(dir.path().join("run")).unwrap();
        let refused = MasterLock::take(&layout);
        assert!(
            matches!(&refused, Err(LockError::Held { path, .. }) if path.ends_with("master")),
            "{refused:?}"
        );
    }
}
