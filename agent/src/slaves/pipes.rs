//! The named pipes of a slave task. Those for output are open for reading and writing at the task's
//! end, so that writing to them never fails while no agent reads: the task waits.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proto::id::{TaskKey, UserName};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

/// What the pipes' names end with.
const INPUT: &str = "in";
const TYPED: &str = "typed";
const OUTPUT: &str = "out";
const ERROR: &str = "err";

/// The ending of the file that holds the owner of an interactive job.
const OWNER: &str = "owner";

/// What a task has for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// `/dev/null`.
    None,
    /// A pipe, which ends with the agent.
    Pipe,
    /// A terminal of the shepherd, which reads pieces of
    /// [`TerminalInput`](proto::launch::terminal::TerminalInput) from the pipe and outlives the
    /// agent.
    Terminal,
}

/// The agent's ends.
#[derive(Debug)]
pub struct Pipes {
    /// Standard input; none for a task without, or for a pipe of an earlier agent, whose end was
    /// the end of the input.
    pub input: Option<Sender>,
    /// Whether the input is that of a terminal.
    pub is_terminal: bool,
    /// Whether an earlier agent made them.
    pub is_resumed: bool,
    /// Standard output.
    pub output: Receiver,
    /// Standard error.
    pub error: Receiver,
}

fn path(folder: &Path, key: TaskKey, ending: &str) -> PathBuf {
    folder.join(format!("{key}.{ending}"))
}

impl Pipes {
    /// Makes the pipes of a task and opens both ends: ours, and input, output and error of the
    /// task.
    ///
    /// # Errors
    /// The system's.
    pub fn make(folder: &Path, key: TaskKey, input: InputKind) -> io::Result<(Self, [OwnedFd; 3])> {
        fs::create_dir_all(folder)?;
        remove(folder, key);
        let first = if input == InputKind::Terminal { TYPED } else { INPUT };
        for ending in [first, OUTPUT, ERROR] {
            mkfifo(&path(folder, key, ending), Mode::S_IRUSR | Mode::S_IWUSR)?;
        }
        if input == InputKind::Terminal {
            return Self::make_typed(folder, key);
        }
        let ours = Self {
            is_resumed: false,
            ..Self::open(folder, key)?
        };
        let both = |ending| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path(folder, key, ending))
        };
        let (output, error) = (both(OUTPUT)?, both(ERROR)?);
        if input == InputKind::None {
            return Ok((ours, [File::open("/dev/null")?.into(), output.into(), error.into()]));
        }
        // Without O_NONBLOCK it would wait here for the other end.
        let input = reading(&path(folder, key, INPUT))?;
        let sender = OpenOptions::new()
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path(folder, key, INPUT))?;
        let flags = OFlag::from_bits_truncate(fcntl(&input, FcntlArg::F_GETFL)?);
        fcntl(&input, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
        let ours = Self {
            input: Some(Sender::from_file(sender)?),
            ..ours
        };
        Ok((ours, [input.into(), output.into(), error.into()]))
    }

    /// The shepherd holds both ends of all three, so nothing ends with this agent.
    fn make_typed(folder: &Path, key: TaskKey) -> io::Result<(Self, [OwnedFd; 3])> {
        let both = |ending| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path(folder, key, ending))
        };
        let theirs = [both(TYPED)?.into(), both(OUTPUT)?.into(), both(ERROR)?.into()];
        let ours = Self {
            is_resumed: false,
            ..Self::open(folder, key)?
        };
        Ok((ours, theirs))
    }

    /// Opens our ends of the pipes of a task.
    ///
    /// # Errors
    /// The system's.
    pub fn open(folder: &Path, key: TaskKey) -> io::Result<Self> {
        let receiver = |ending| Receiver::from_file(reading(&path(folder, key, ending))?);
        let typed = path(folder, key, TYPED);
        let is_terminal = typed.exists();
        let input = if is_terminal {
            let sender = OpenOptions::new()
                .write(true)
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .open(typed)?;
            Some(Sender::from_file(sender)?)
        } else {
            None
        };
        Ok(Self {
            input,
            is_terminal,
            is_resumed: true,
            output: receiver(OUTPUT)?,
            error: receiver(ERROR)?,
        })
    }
}

fn reading(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
}

/// The tasks that have pipes in a folder, which is made if there is none.
///
/// # Errors
/// The system's.
pub fn found(folder: &Path) -> io::Result<Vec<TaskKey>> {
    fs::create_dir_all(folder)?;
    let names: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    let key = |name: &std::ffi::OsString| name.to_str()?.strip_suffix(".out")?.parse().ok();
    Ok(names.iter().filter_map(key).collect())
}

/// Writes down whose interactive job a task is, for an agent that comes after this one.
///
/// # Errors
/// The system's.
pub fn write_owner(folder: &Path, key: TaskKey, owner: Option<&UserName>) -> io::Result<()> {
    owner.map_or(Ok(()), |owner| fs::write(path(folder, key, OWNER), owner.as_str()))
}

/// The owner of an interactive job; `None` for a slave task.
///
/// # Errors
/// The system's.
pub fn owner(folder: &Path, key: TaskKey) -> io::Result<Option<UserName>> {
    match fs::read_to_string(path(folder, key, OWNER)) {
        Ok(name) => Ok(Some(UserName::from(name))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the names of a task's pipes; who has them open keeps them.
pub fn remove(folder: &Path, key: TaskKey) {
    for ending in [INPUT, TYPED, OUTPUT, ERROR, OWNER] {
        match nix::unistd::unlink(&path(folder, key, ending)) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => tracing::warn!("a pipe of slave task {key} stays: {error}"),
        }
    }
}
