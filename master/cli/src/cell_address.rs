//! Where the cell of this shell is: its directory, and the socket to talk to.

pub mod place;
#[cfg(test)]
mod tests;

use crate::args::CommandLine;
use place::Purpose;
use proto::diagnostic::{Code, Diagnostic};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The state directory used where nothing names another one.
pub const DEFAULT_DIR: &str = "/var/lib/gridwright";

/// The name of the one cell of a directory.
const CELL: &str = "default";

/// The pause between two attempts to reach a master that is away.
const PAUSE: Duration = Duration::from_millis(50);

/// The cell of `SGE_CELL`, if that is another one than every directory has.
fn other_cell() -> Option<String> {
    std::env::var("SGE_CELL")
        .ok()
        .filter(|cell| !cell.is_empty() && cell != CELL)
}

/// The cell that this shell works with.
#[derive(Clone, Debug)]
pub struct CellAddress {
    dir: PathBuf,
    /// The cell that `SGE_CELL` names, if that is not the one of every directory.
    other_cell: Option<String>,
}

impl CellAddress {
    /// The address where [`place::directory`] finds it.
    pub fn from_environment() -> Self {
        Self {
            other_cell: other_cell(),
            ..Self::at(place::directory(None, Purpose::Use))
        }
    }

    /// The address that `--dir` names, else where [`place::directory`] finds it.
    pub fn from_command_line(parsed: &CommandLine) -> Self {
        parsed.value("--dir").map_or_else(Self::from_environment, Self::at)
    }

    /// The address in `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            other_cell: None,
        }
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Connects to the master. Where it belongs to this machine and is away, it is waited for that
    /// long, as it may be starting anew; a machine that has an agent alone asks that, which passes
    /// commands on.
    ///
    /// # Errors
    /// `NoMaster`, beginning with `error:` words that programs look for. At once where no daemon of
    /// the cell is here.
    pub fn connect(&self, patience: Duration) -> Result<UnixStream, Diagnostic> {
        let end = Instant::now() + patience;
        self.connect_while(|| {
            let is_left = Instant::now() < end;
            if is_left {
                std::thread::sleep(PAUSE);
            }
            is_left
        })
    }

    /// The same, trying again while `is_patient` says so.
    fn connect_while(&self, mut is_patient: impl FnMut() -> bool) -> Result<UnixStream, Diagnostic> {
        self.must_have_cell()?;
        let mut away = match self.connect_to("master") {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        let agent = self.connect_to("agent").map_err(|error| self.no_master(&error))?;
        if !self.has_master() {
            return Ok(agent);
        }
        // The agent beside a master that was killed takes it for alive for the better part of a
        // minute, and would keep the command.
        drop(agent);
        while is_patient() {
            match self.connect_to("master") {
                Ok(stream) => return Ok(stream),
                Err(error) => away = error,
            }
        }
        Err(self.master_away(&away))
    }

    /// # Errors
    /// If `SGE_CELL` names a cell that is not in this directory.
    fn must_have_cell(&self) -> Result<(), Diagnostic> {
        let Some(cell) = self.other_cell.as_ref().filter(|cell| !self.dir.join(cell).is_dir()) else {
            return Ok(());
        };
        let refusal = Diagnostic::new(Code::WrongCell, format!("error: cell \"{cell}\" does not exist"))
            .at(self.dir.join(cell).display().to_string())
            .why(format!(
                "SGE_CELL is {cell}; a directory holds one cell, which is called {CELL}"
            ));
        Err(refusal.fix("unset SGE_CELL, or name another directory with GRIDWRIGHT_DIR"))
    }

    /// Whether the cell's master belongs to this machine: where there is an agent alone, nothing
    /// was written for a master.
    fn has_master(&self) -> bool {
        self.dir.join("etc/master.toml").exists()
    }

    /// Returns the advice for a master that was reached and does not answer.
    pub fn where_to_look(&self) -> String {
        let dir = self.dir.display();
        match self.has_master() {
            true => {
                format!("{dir}/log/master.log says what the master did; gridwright doctor --dir {dir} checks this host")
            }
            false => {
                format!("check that the master runs and that UDP passes to its host: gridwright doctor --dir {dir}")
            }
        }
    }

    /// Connects to the agent of this machine: it knows the tasks here.
    ///
    /// # Errors
    /// `NoMaster`.
    pub fn connect_to_agent(&self) -> Result<UnixStream, Diagnostic> {
        self.connect_to("agent").map_err(|error| self.no_master(&error))
    }

    /// Connects to the socket of a daemon, also when the path is longer than a socket's name may
    /// be.
    fn connect_to(&self, daemon: &str) -> std::io::Result<UnixStream> {
        let (folder, socket) = (self.dir.join("run").join(daemon), format!("{daemon}.sock"));
        let direct = folder.join(&socket);
        // sun_path holds 108 bytes; a longer path is reached through a descriptor of its directory.
        if direct.as_os_str().len() < 100 {
            return UnixStream::connect(direct);
        }
        let handle = std::fs::File::open(folder)?;
        UnixStream::connect(format!("/proc/self/fd/{}/{socket}", handle.as_raw_fd()))
    }

    /// Other daemons of the cell run here: it is the master alone that has ended.
    fn master_away(&self, error: &std::io::Error) -> Diagnostic {
        let dir = self.dir.display();
        Diagnostic::new(
            Code::NoMaster,
            "error: unable to send message to qmaster: it does not answer",
        )
        .at(format!("{dir}/run/master/master.sock"))
        .why(error.to_string())
        .fix(format!(
            "start it: gridwright up --dir {dir} --detach; {dir}/log/master.log says why it ended"
        ))
    }

    fn no_master(&self, error: &std::io::Error) -> Diagnostic {
        let dir = self.dir.display();
        let fix = if self.dir.join("etc").is_dir() {
            format!("start it: gridwright up --dir {dir} --detach")
        } else {
            "set GRIDWRIGHT_DIR, or: eval \"$(gridwright env --dir DIR)\"".to_owned()
        };
        Diagnostic::new(
            Code::NoMaster,
            "error: unable to send message to qmaster: no daemon answers",
        )
        .at(format!("{dir}/run"))
        .why(error.to_string())
        .fix(fix)
    }
}
