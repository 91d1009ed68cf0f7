//! The agent's part of the state directory (DESIGN section 9): paths, sockets below long paths, and the lock by which a daemon
//! is known to be alive.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
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
        Ok(Self { dir: std::fs::canonicalize(dir).map_err(named)? })
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

    /// `run/NAME`.
    pub fn run(&self, name: &str) -> PathBuf {
        self.dir.join("run").join(name)
    }

    /// The socket `run/NAME`, also where its path is longer than a socket's name may be.
    ///
    /// # Errors
    /// If `run` cannot be opened.
    pub fn socket(&self, name: &str) -> io::Result<SocketPath> {
        let direct = self.run(name);
        if direct.as_os_str().len() < SOCKET_PATH_MAX {
            return Ok(SocketPath { path: direct, _folder: None });
        }
        let folder = File::open(self.dir.join("run"))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
        Ok(SocketPath { path, _folder: Some(folder) })
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
    /// Takes `run/NAME.lock` and writes `run/NAME.pid`, which is for people.
    ///
    /// # Errors
    /// `Held` if another process has it.
    pub fn take(layout: &Layout, name: &str) -> Result<Self, LockError> {
        let path = layout.run(&format!("{name}.lock"));
        let pid_file = layout.run(&format!("{name}.pid"));
        let unwritable = |path: &PathBuf| {
            let path = path.clone();
            move |source| LockError::Unwritable { path, source }
        };
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unwritable(&path))?;
        let lock = alone(file).map_err(|errno| match errno {
            Errno::EWOULDBLOCK => LockError::Held { path: path.clone(), who: holder(&pid_file) },
            errno => LockError::Unwritable { path: path.clone(), source: errno.into() },
        })?;
        std::fs::write(&pid_file, format!("{}\n", std::process::id())).map_err(unwritable(&pid_file))?;
        Ok(Self(lock))
    }
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

fn holder(pid_file: &Path) -> String {
    let pid = std::fs::read_to_string(pid_file).unwrap_or_default();
    if pid.trim().is_empty() { String::new() } else { format!(" as process {}", pid.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_whether_an_agent_is_alive_keeps_none_from_starting() {
        let dir = std::env::temp_dir().join(format!("gridwright-agent-lock-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("run")).unwrap();
        let layout = Layout::new(&dir).unwrap();
        let path = layout.run("agent.lock");
        let looking = Flock::lock(File::create(&path).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(3 * PAUSE);
            drop(looking);
        });
        let held = DaemonLock::take(&layout, "agent").unwrap();
        ends.join().unwrap();
        assert!(matches!(DaemonLock::take(&layout, "agent"), Err(LockError::Held { who, .. }) if !who.is_empty()));
        drop(held);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
