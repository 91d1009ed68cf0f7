//! The daemons of a cell on this machine: starting them, seeing whether they live, ending them.
//!
//! A daemon is alive if the lock in `run/NAME.lock` is held (DESIGN section 9), and the process in its pid file is not at its end: one that was
//! killed holds its lock until its memory is freed.

mod ending;

use crate::fail::Fail;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{File, OpenOptions};
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

    /// What there is of it.
    pub fn state(self, dir: &Path) -> State {
        if !self.holds_lock(dir) {
            return State::Gone;
        }
        let is_ending = self.pid(dir).is_some_and(|pid| ending::is_ending(pid, self.program()));
        if is_ending { State::Ending } else { State::Alive }
    }

    /// Whether it is alive.
    pub fn is_alive(self, dir: &Path) -> bool {
        self.state(dir) == State::Alive
    }

    /// Whether another one could not start beside it.
    fn holds_lock(self, dir: &Path) -> bool {
        let lock = dir.join("run").join(format!("{}.lock", self.name()));
        let Ok(file) = OpenOptions::new().read(true).open(lock) else { return false };
        Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()
    }

    /// The pid in its pid file, which is also there after it, and for a moment before it that of its predecessor.
    pub fn pid(self, dir: &Path) -> Option<Pid> {
        let text = std::fs::read_to_string(dir.join("run").join(format!("{}.pid", self.name()))).ok()?;
        text.trim().parse().ok().map(Pid::from_raw)
    }

    /// The log it writes.
    pub fn log(self, dir: &Path) -> PathBuf {
        dir.join("log").join(format!("{}.log", self.name()))
    }

    /// Sends SIGTERM and waits until the lock is free.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn end(self, dir: &Path, patience: Duration) -> Result<(), Fail> {
        if !self.holds_lock(dir) {
            return Ok(());
        }
        if let Some(pid) = self.pid(dir) {
            // It may have ended meanwhile: the lock tells.
            let _ = kill(pid, Signal::SIGTERM);
        }
        if wait_for(patience, || !self.holds_lock(dir)) {
            return Ok(());
        }
        let refusal = Diagnostic::new(Code::SystemRefused, format!("error: the {} does not end", self.name()));
        let fix = format!("look into {}, then kill it: its jobs and data survive that", self.log(dir).display());
        Err(refusal.at(dir.display().to_string()).fix(fix).into())
    }
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

/// A program of ours: beside this one, so that a fresh build and an installed one both find their own.
///
/// # Errors
/// If it is not there.
pub fn program(name: &str) -> Result<PathBuf, Fail> {
    let beside = std::env::current_exe().ok().and_then(|me| me.parent().map(|dir| dir.join(name)));
    beside.filter(|path| path.is_file()).ok_or_else(|| {
        let refusal = Diagnostic::new(Code::SystemRefused, format!("error: {name} is not beside gridwright"));
        refusal.fix("install all programs of Gridwright into one directory; in a checkout: cargo build --release --workspace").into()
    })
}

/// Starts a daemon in the background, its output in its log.
///
/// # Errors
/// If the program, the log or the process cannot be had.
pub fn spawn(daemon: Daemon, dir: &Path, args: &[&str], account: Option<(u32, u32)>) -> Result<Child, Fail> {
    let (log_path, program_name) = (daemon.log(dir), daemon.program());
    let refuse = |what: &str, error: &std::io::Error| {
        let refusal = Diagnostic::new(Code::SystemRefused, format!("error: cannot {what}"));
        Fail::from(refusal.at(log_path.display().to_string()).why(error.to_string()))
    };
    let log = open_log(&log_path, account).map_err(|error| refuse("open the log", &error))?;
    let errors = log.try_clone().map_err(|error| refuse("open the log", &error))?;
    let mut command = Command::new(program(program_name)?);
    command.args(args).stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
    if let Some((uid, gid)) = account {
        command.uid(uid).gid(gid);
    }
    command.spawn().map_err(|error| refuse(&format!("start {program_name}"), &error))
}

fn open_log(path: &Path, account: Option<(u32, u32)>) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    if let Some((uid, gid)) = account {
        std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
    }
    Ok(file)
}
