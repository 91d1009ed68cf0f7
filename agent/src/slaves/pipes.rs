//! The named pipes of a slave task. Those for output are open for reading and writing at the task's
//! end, so that writing to them never fails while no agent reads: the task waits.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proto::id::TaskKey;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

/// What the pipes' names end with.
const INPUT: &str = "in";
const OUTPUT: &str = "out";
const ERROR: &str = "err";

/// The agent's ends.
#[derive(Debug)]
pub struct Pipes {
    /// Standard input; none for a task without, or of an earlier agent, whose end was the end of
    /// the input.
    pub input: Option<Sender>,
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
    pub fn make(folder: &Path, key: TaskKey, has_input: bool) -> io::Result<(Self, [OwnedFd; 3])> {
        fs::create_dir_all(folder)?;
        remove(folder, key);
        for ending in [INPUT, OUTPUT, ERROR] {
            mkfifo(&path(folder, key, ending), Mode::S_IRUSR | Mode::S_IWUSR)?;
        }
        let ours = Self::open(folder, key)?;
        let both = |ending| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path(folder, key, ending))
        };
        let (output, error) = (both(OUTPUT)?, both(ERROR)?);
        if !has_input {
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

    /// Opens our ends of the pipes of a task.
    ///
    /// # Errors
    /// The system's.
    pub fn open(folder: &Path, key: TaskKey) -> io::Result<Self> {
        let receiver = |ending| Receiver::from_file(reading(&path(folder, key, ending))?);
        Ok(Self {
            input: None,
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

/// Removes the names of a task's pipes; who has them open keeps them.
pub fn remove(folder: &Path, key: TaskKey) {
    for ending in [INPUT, OUTPUT, ERROR] {
        match nix::unistd::unlink(&path(folder, key, ending)) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => tracing::warn!("a pipe of slave task {key} stays: {error}"),
        }
    }
}
