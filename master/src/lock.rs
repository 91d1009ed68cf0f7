//! The lock by which a daemon is known to be alive (DESIGN section 9). A pid file is for people only.

use crate::layout::Layout;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io;
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
        /// What `run/master.pid` says.
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

fn who(pid: &str) -> String {
    if pid.is_empty() { String::new() } else { format!(" by process {pid}") }
}

/// The lock of a file. Who looks whether a daemon is alive tries that lock too, and has it for a moment: only one that is held for long is
/// another daemon's.
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

/// The held lock. Dropped, or with the process, it is free.
#[derive(Debug)]
pub struct MasterLock(#[allow(dead_code, reason = "held, never read")] Flock<File>);

impl MasterLock {
    /// Takes `run/master.lock` and writes `run/master.pid`.
    ///
    /// # Errors
    /// `Held` if another process has it.
    pub fn take(layout: &Layout) -> Result<Self, LockError> {
        let path = layout.run("master.lock");
        let unwritable = |path: &PathBuf| {
            let path = path.clone();
            move |source| LockError::Unwritable { path, source }
        };
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unwritable(&path))?;
        let pid_file = layout.run("master.pid");
        let lock = alone(file).map_err(|errno| match errno {
            Errno::EWOULDBLOCK => {
                let pid = std::fs::read_to_string(&pid_file).unwrap_or_default().trim().to_owned();
                LockError::Held { path: path.clone(), pid }
            }
            errno => LockError::Unwritable { path: path.clone(), source: errno.into() },
        })?;
        std::fs::write(&pid_file, format!("{}\n", std::process::id())).map_err(unwritable(&pid_file))?;
        Ok(Self(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_whether_a_master_is_alive_keeps_none_from_starting() {
        let dir = crate::testing::TempDir::new("lock");
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.run("")).unwrap();
        let path = layout.run("master.lock");
        let looking = Flock::lock(File::create(&path).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(3 * PAUSE);
            drop(looking);
        });
        let _held = MasterLock::take(&layout).unwrap();
        ends.join().unwrap();
        assert!(matches!(MasterLock::take(&layout), Err(LockError::Held { pid, .. }) if !pid.is_empty()));
    }
}
