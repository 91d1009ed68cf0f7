//! The lock by which a daemon is known to be alive (DESIGN section 9). A pid file is for people only.

use crate::layout::Layout;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

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
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            nix::errno::Errno::EWOULDBLOCK => {
                let pid = std::fs::read_to_string(&pid_file).unwrap_or_default().trim().to_owned();
                LockError::Held { path: path.clone(), pid }
            }
            errno => LockError::Unwritable { path: path.clone(), source: errno.into() },
        })?;
        std::fs::write(&pid_file, format!("{}\n", std::process::id())).map_err(unwritable(&pid_file))?;
        Ok(Self(lock))
    }
}
