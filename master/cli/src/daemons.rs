//! The daemons of a cell on this machine: starting them, seeing whether they live, ending them.
//!
//! A daemon is alive if its lock `run/NAME/lock` is held, or if the process that the lock names
//! lives, and is not at its end: one that was killed holds its lock until its memory is freed.

pub mod earlier;
mod ending;
mod process;

use crate::fail::Fail;
use crate::folder::{self, Folder};
use crate::output;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use process::Identity;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{DirEntry, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The pause between two looks at something that another process brings about.
pub const POLL: Duration = Duration::from_millis(10);

/// The accounts that the daemons run under when they are started by root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// The master's uid.
    pub master: u32,
    /// The agent's uid.
    pub agent: u32,
    /// The gid of both, which may read what the launcher leaves for the agent.
    pub group: u32,
}

/// What there is of a daemon on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Alive,
    /// It was killed or has failed, does nothing any more, and still holds its lock.
    Ending,
    /// Another one may be started.
    Gone,
}

/// One daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// `gridwright-master run`
    Master,
    /// `gridwright-shepherd launch`
    Launcher,
    /// `gridwright-agent run`
    Agent,
    /// `gridwright-agent sim`
    Simulated,
}

impl Daemon {
    /// The name of its lock, pid file and log.
    pub fn name(self) -> &'static str {
        match self {
            Daemon::Master => "master",
            Daemon::Launcher => "launcher",
            Daemon::Agent => "agent",
            Daemon::Simulated => "sim",
        }
    }

    /// The program that it runs.
    pub fn program(self) -> &'static str {
        match self {
            Daemon::Master => "gridwright-master",
            Daemon::Launcher => "gridwright-shepherd",
            Daemon::Agent | Daemon::Simulated => "gridwright-agent",
        }
    }

    /// What there is of it. The lock may have been removed beside a daemon that lives: then its
    /// process tells.
    pub fn state(self, dir: &Path) -> State {
        let identity = self.identity(dir);
        let is_ending = identity.as_ref().is_some_and(Identity::is_ending);
        match self.holds_lock(dir) {
            true if is_ending => State::Ending,
            true => State::Alive,
            false if !is_ending && identity.is_some_and(|identity| identity.exists()) => State::Alive,
            false => State::Gone,
        }
    }

    /// Whether it is alive and has begun to serve. The launcher writes its pid file when it
    /// listens, and the lock names the same process. The others write both at once, and on a full
    /// disk the lock alone.
    pub fn serves(self, dir: &Path) -> bool {
        let identity = self
            .identity(dir)
            .filter(|identity| identity.is_complete() && identity.exists());
        let has_begun = |pid: Pid| self != Daemon::Launcher || self.noted_pid(dir) == Some(pid);
        identity.is_some_and(|identity| self.state(dir) == State::Alive && has_begun(identity.pid()))
    }

    /// Whether it is alive.
    pub fn is_alive(self, dir: &Path) -> bool {
        self.state(dir) == State::Alive
    }

    /// Its own directory.
    fn folder(self, dir: &Path) -> Option<Folder> {
        Folder::below(dir, &["run", self.name()]).ok()
    }

    /// Whether another one could not start beside it.
    fn holds_lock(self, dir: &Path) -> bool {
        let is_held = |file: File| Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err();
        let lock = self.folder(dir).and_then(|folder| folder.file("lock").ok());
        if lock.is_some_and(is_held) {
            return true;
        }
        self.database(dir)
            .and_then(|folder| folder.handle().try_clone().ok())
            .is_some_and(is_held)
    }

    /// The directory of the master's database, which it locks, too: nothing removes that beside it.
    fn database(self, dir: &Path) -> Option<Folder> {
        (self == Daemon::Master)
            .then(|| Folder::below(dir, &["master"]).ok())
            .flatten()
    }

    /// Returns the process that its lock names, or that holds the lock of the database. Where
    /// neither can be read, as after a cleaner of old files, the pid file names it, and it counts
    /// if it was started for this directory. The owner of the directory is the daemon's account:
    /// nobody else writes there.
    fn identity(self, dir: &Path) -> Option<Identity> {
        let parse = |folder: &Folder, text: &str| Identity::parse(text, folder.owner().ok()?, self.program());
        let folder = self.folder(dir);
        if let Some((folder, lock)) = folder
            .as_ref()
            .and_then(|folder| Some((folder, folder.file("lock").ok()?)))
        {
            return parse(folder, &process::holder_in(&lock)?);
        }
        let of_database = || {
            let database = self.database(dir)?;
            Identity::of_process(
                process::holder(database.handle())?,
                database.owner().ok()?,
                self.program(),
            )
        };
        let by_pid_file = || {
            let folder = folder.as_ref()?;
            let noted = parse(folder, &folder.read("pid").ok()?)?;
            let pid = noted.pid().as_raw();
            let lock = Path::new("run").join(self.name()).join("lock");
            let started_here = process::is_started_for(pid, dir, &lock);
            let known = started_here
                .then(|| Identity::of_process(pid, folder.owner().ok()?, self.program()))
                .flatten();
            Some(known.unwrap_or(noted))
        };
        of_database().or_else(by_pid_file)
    }

    /// The pid in its pid file.
    fn noted_pid(self, dir: &Path) -> Option<Pid> {
        let text = self.folder(dir)?.read("pid").ok()?;
        text.trim().parse().ok().map(Pid::from_raw)
    }

    /// The pid of its process, if that lives.
    pub fn pid(self, dir: &Path) -> Option<Pid> {
        self.identity(dir)
            .filter(Identity::exists)
            .map(|identity| identity.pid())
    }

    /// The log it writes.
    pub fn log(self, dir: &Path) -> PathBuf {
        dir.join("log").join(format!("{}.log", self.name()))
    }

    /// Sends SIGTERM and waits until it is gone. A process that is not the daemon is left alone,
    /// whatever the lock says.
    ///
    /// # Errors
    /// If it does not end in time, or this user may not end it.
    pub fn end(self, dir: &Path, patience: Duration) -> Result<(), Fail> {
        if self.state(dir) == State::Gone {
            return Ok(());
        }
        let refuse = |what: String| Diagnostic::new(Code::SystemRefused, what).at(dir.display().to_string());
        let identity = self.identity(dir);
        match identity.as_ref().map_or(Ok(false), Identity::terminate) {
            Ok(true) => {}
            Ok(false) => self.note_stranger(dir, identity.as_ref()),
            Err(error) => {
                let refusal = refuse(format!("error: the {} may not be ended by this user", self.name()));
                return Err(refusal
                    .why(error.to_string())
                    .fix("run it as root, or as the user the cell runs as")
                    .into());
            }
        }
        if wait_for(patience, || self.state(dir) == State::Gone) {
            return Ok(());
        }
        let fix = format!(
            "look into {}, then kill it: its jobs and data survive that",
            self.log(dir).display()
        );
        Err(refuse(format!("error: the {} does not end", self.name()))
            .fix(fix)
            .into())
    }

    /// Has the agent end the tasks of this host; false if there is none.
    ///
    /// # Errors
    /// If this user may not do so.
    pub fn end_tasks(dir: &Path) -> std::io::Result<bool> {
        Daemon::Agent
            .identity(dir)
            .map_or(Ok(false), |identity| identity.end_tasks())
    }

    fn note_stranger(self, dir: &Path, identity: Option<&Identity>) {
        if identity.is_some_and(Identity::is_ending) {
            return;
        }
        let lock = dir.join("run").join(self.name()).join("lock");
        let named = identity.map_or("no process".to_owned(), |identity| {
            format!("process {}", identity.pid())
        });
        output::note(&format!(
            "{} names {named}, which is not the {}: nothing is ended",
            lock.display(),
            self.name()
        ));
    }
}

/// How many tasks run on this machine for the cell in `dir`: their shepherds hold locks on the
/// directories of the tasks, which are looked at without being tried.
pub fn running_tasks(dir: &Path) -> usize {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    kept_tasks(dir)
        .filter(|task| task.metadata().is_ok_and(|found| is_locked(&locks, found.ino())))
        .count()
}

/// The directories of tasks that run, or whose ends the master does not know yet.
pub fn kept_tasks(dir: &Path) -> impl Iterator<Item = DirEntry> {
    let is_key = |name: &str| name.starts_with(|c: char| c.is_ascii_hexdigit()) && name.contains('.');
    let tasks = std::fs::read_dir(dir.join("tasks")).into_iter().flatten().flatten();
    tasks.filter(move |task| task.file_name().to_str().is_some_and(is_key))
}

/// By the lines of `/proc/locks`, such as `1: FLOCK ADVISORY WRITE 7738 fe:00:5652812 0 EOF`. The
/// device there is not that of stat(2) on every file system, so the inode alone tells.
fn is_locked(locks: &str, inode: u64) -> bool {
    let inode = inode.to_string();
    locks
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .any(|place| place.rsplit(':').next() == Some(&inode))
}

/// Waits until something holds; false if it does not within `patience`.
pub fn wait_for(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(POLL);
    }
}

/// A program of ours: beside this one, so that a fresh build and an installed one both find their
/// own.
///
/// # Errors
/// If it is not there.
pub fn program(name: &str) -> Result<PathBuf, Fail> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|me| me.parent().map(|dir| dir.join(name)));
    beside.filter(|path| path.is_file()).ok_or_else(|| {
        let refusal = Diagnostic::new(Code::SystemRefused, format!("error: {name} is not beside gridwright"));
        refusal.fix("install all programs of Gridwright into one directory; in a checkout: cargo build --release --workspace").into()
    })
}

/// Refuses a `GRIDWRIGHT_LOG` that no daemon would understand, before anything is made.
///
/// # Errors
/// The variable has a value that cannot be parsed.
pub fn check_environment() -> Result<(), Fail> {
    match std::env::var_os(proto::log::VARIABLE) {
        Some(text) => proto::log::check_filter(&text.to_string_lossy()).map_err(Fail::from),
        None => Ok(()),
    }
}

/// Starts a daemon in the background. What it prints before it has opened its log goes there too.
///
/// # Errors
/// If the program, the log or the process cannot be had.
pub fn spawn(daemon: Daemon, dir: &Path, args: &[&str], account: Option<(u32, u32)>) -> Result<Child, Fail> {
    let (log_path, program_name) = (daemon.log(dir), daemon.program());
    let refuse = |what: &str, error: &std::io::Error| {
        let refusal = Diagnostic::new(Code::SystemRefused, format!("error: cannot {what}"));
        Fail::from(refusal.at(log_path.display().to_string()).why(error.to_string()))
    };
    let log = open_logs(&log_path, account).map_err(|error| refuse("open the log", &error))?;
    let errors = log.try_clone().map_err(|error| refuse("open the log", &error))?;
    let mut command = Command::new(program(program_name)?);
    command
        .args(args)
        .arg("--log-file")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .current_dir("/");
    if daemon != Daemon::Master {
        command.arg(&log_path);
    }
    if let Some((uid, gid)) = account {
        command.uid(uid).gid(gid);
    }
    command
        .spawn()
        .map_err(|error| refuse(&format!("start {program_name}"), &error))
}

/// Opens the log of a daemon. One with an account of its own may make no file beside it, so the
/// older logs are made for it.
fn open_logs(path: &Path, account: Option<(u32, u32)>) -> std::io::Result<File> {
    if account.is_some() {
        for number in ["1", "2"] {
            open_log(&path.with_extension(format!("log.{number}")), account)?;
        }
    }
    open_log(path, account)
}

/// Opens a log to append to it, never through a link, and gives it to its daemon.
fn open_log(path: &Path, account: Option<(u32, u32)>) -> std::io::Result<File> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let file = Folder::open(parent)?.append(name, 0o644)?;
    if let Some((uid, gid)) = account {
        folder::give_file(&file, uid, gid)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::is_locked;

    #[test]
    fn a_lock_is_found_by_its_inode() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7738 fe:00:5652812 0 EOF\n2: POSIX  ADVISORY  READ 1 fe:00:56 0 9\n";
        assert!(is_locked(locks, 5_652_812) && is_locked(locks, 56));
        assert!(!is_locked(locks, 52_812) && !is_locked("", 1));
    }
}
