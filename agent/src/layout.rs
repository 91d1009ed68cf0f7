//! The agent's part of the state directory (ARCHITECTURE.md "Storage"): paths, sockets below long
//! paths, and the lock by which a daemon is known to be alive.

use folder::Folder;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock is tried until it is taken to be held for long.
const TRIES: u32 = 20;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The name of the one cell below a state directory, as `SGE_CELL` has it.
pub const CELL_NAME: &str = "default";

/// Bytes up to which the path of a socket is used as it is; `sun_path` of unix(7) holds 108.
const SOCKET_PATH_MAX: usize = 100;

/// The paths below a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout below `dir`, whose name is made absolute: jobs and sensors are told of it.
    ///
    /// # Errors
    /// If the directory is not there.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
        Ok(Self {
            dir: std::fs::canonicalize(dir).map_err(named)?,
        })
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state directory as text, as `SGE_ROOT` has it.
    pub fn root(&self) -> String {
        self.dir.display().to_string()
    }

    /// `etc/NAME`.
    pub fn etc(&self, name: &str) -> PathBuf {
        self.dir.join("etc").join(name)
    }

    /// `agent/NAME`.
    pub fn agent(&self, name: &str) -> PathBuf {
        self.dir.join("agent").join(name)
    }

    /// `run/DAEMON`, where that daemon alone makes files.
    pub fn run(&self, daemon: &str) -> PathBuf {
        self.dir.join("run").join(daemon)
    }

    /// The own directory of a daemon below `run`, which is made if it is missing.
    ///
    /// # Errors
    /// If it belongs to another user, or cannot be made.
    pub fn folder(&self, daemon: &str) -> io::Result<Folder> {
        let path = self.run(daemon);
        let make_parent = |path: &Path| path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let opened = make_parent(&path).and_then(|()| Folder::open(&path));
        opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// The socket `run/DAEMON/DAEMON.sock`, also where its path is longer than a socket's name may
    /// be.
    ///
    /// # Errors
    /// If its directory cannot be opened.
    pub fn socket(&self, daemon: &str) -> io::Result<SocketPath> {
        let (folder, name) = (self.run(daemon), format!("{daemon}.sock"));
        let direct = folder.join(&name);
        if direct.as_os_str().len() < SOCKET_PATH_MAX {
            return Ok(SocketPath {
                path: direct,
                _folder: None,
            });
        }
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let folder = OpenOptions::new().read(true).custom_flags(flags.bits()).open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
        Ok(SocketPath {
            path,
            _folder: Some(folder),
        })
    }
}

/// A path by which a socket can be bound or reached while this value lives.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Keeps the descriptor open that the path goes through.
    _folder: Option<File>,
}

impl AsRef<Path> for SocketPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// A daemon cannot be alone in its directory.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another one holds the lock.
    #[error("{path} is locked: such a daemon runs already{who}")]
    Held {
        /// The lock.
        path: PathBuf,
        /// ` as process N`, where the pid file says so.
        who: String,
    },
    /// The lock or the pid file cannot be written.
    #[error("cannot write {path}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// The held lock. Dropped, or with the process, it is free.
#[derive(Debug)]
pub struct DaemonLock(#[expect(dead_code, reason = "held, never read")] Flock<File>);

impl DaemonLock {
    /// Takes `run/NAME/lock`, which says then what process holds it, and writes `run/NAME/pid`,
    /// which is for people: on a full disk the agent goes on without it.
    ///
    /// # Errors
    /// `Held` if another process has it.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the error numbers are the system's")]
    pub fn take(layout: &Layout, name: &str) -> Result<Self, LockError> {
        let folder = layout
            .folder(name)
            .map_err(|source| unwritable(layout.run(name), source))?;
        let (path, pid_file) = (folder.path("lock"), folder.path("pid"));
        let file = folder
            .open_lock("lock")
            .map_err(|source| unwritable(path.clone(), source))?;
        let lock = alone(file).map_err(|errno| match errno {
            Errno::EWOULDBLOCK => LockError::Held {
                path: path.clone(),
                who: holder(&pid_file),
            },
            errno => unwritable(path.clone(), errno.into()),
        })?;
        folder::note_holder(&lock).map_err(|source| unwritable(path, source))?;
        let pid = format!("{}\n", std::process::id());
        match folder.write("pid", &pid, 0o644) {
            Err(source) if is_disk_full(&source) => {
                // It may name an agent that is gone.
                let _ = folder.remove("pid");
                tracing::warn!("the disk is full: {} is not written", pid_file.display());
            }
            written => written.map_err(|source| unwritable(pid_file, source))?,
        }
        Ok(Self(lock))
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn unwritable(path: PathBuf, source: io::Error) -> LockError {
    LockError::Unwritable { path, source }
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

fn holder(pid_file: &Path) -> String {
    let pid = std::fs::read_to_string(pid_file).unwrap_or_default();
    if pid.trim().is_empty() {
        String::new()
    } else {
        format!(" as process {}", pid.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_whether_an_agent_is_alive_keeps_none_from_starting() {
        let dir = std::env::temp_dir().join(format!("gridwright-agent-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let layout = Layout::new(&dir).unwrap();
        let file = layout.folder("agent").unwrap().open_lock("lock").unwrap();
        let looking = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(3 * PAUSE);
            drop(looking);
        });
        let held = DaemonLock::take(&layout, "agent").unwrap();
        ends.join().unwrap();
        let noted = std::fs::read_to_string(layout.run("agent").join("lock")).unwrap();
        assert!(
            noted.starts_with(&format!("{} ", std::process::id())) && noted.split(' ').count() == 3,
            "{noted}"
        );
        assert!(matches!(DaemonLock::take(&layout, "agent"), Err(LockError::Held { who, .. }) if !who.is_empty()));
        drop(held);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
