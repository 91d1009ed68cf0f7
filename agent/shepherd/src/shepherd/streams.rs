//! Standard input, output and error of a task, opened under the task's own uid.

use super::plan::expand;
use crate::account::Identity;
use proto::launch::{Failed, Failure, OutputPath, Streams};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// The three descriptors, each at 3 or above and closed on exec.
pub struct Opened {
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// Opens all three; relative paths start at the present working directory.
///
/// # Errors
/// [`Failed::OPEN_FILE`] with the path.
pub fn open(streams: &Streams, identity: &Identity) -> Result<Opened, Failure> {
    let stdin = match &streams.stdin {
        None => read("/dev/null")?,
        Some(path) => read_awaited(&expand(path, identity))?,
    };
    let stdout = append(&streams.stdout, identity)?;
    let stderr = if streams.merge {
        stdout.try_clone().map_err(|error| cannot_open("standard error", "", &error))?
    } else {
        append(&streams.stderr, identity)?
    };
    Ok(Opened { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() })
}

/// Three times `/dev/null`, for a procedure whose job cannot open its files.
///
/// # Errors
/// [`Failed::OPEN_FILE`] on a host without it.
pub fn nowhere() -> Result<Opened, Failure> {
    let write =
        || OpenOptions::new().write(true).open("/dev/null").map_err(|error| cannot_open("output", "/dev/null", &error));
    Ok(Opened { stdin: read("/dev/null")?.into(), stdout: write()?.into(), stderr: write()?.into() })
}

fn read(path: &str) -> Result<File, Failure> {
    File::open(path).map_err(|error| cannot_open("input", path, &error))
}

/// How long an input file may be missing before that is an error, and how often it is looked for.
const INPUT_PATIENCE: Duration = Duration::from_secs(2);
const INPUT_PAUSE: Duration = Duration::from_millis(20);

/// Opens the job's input. A file that was made on another host a moment ago is not visible over NFS at once, and a job may start
/// before the shell that submitted it has run its next command: so a missing file is waited for, briefly.
fn read_awaited(path: &str) -> Result<File, Failure> {
    let end = Instant::now() + INPUT_PATIENCE;
    loop {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < end => {
                std::thread::sleep(INPUT_PAUSE)
            }
            other => return other.map_err(|error| cannot_open("input", path, &error)),
        }
    }
}

fn append(output: &OutputPath, identity: &Identity) -> Result<File, Failure> {
    let path = expand(&output.path, identity);
    let in_folder = |folder: &str| format!("{}/{}", folder.trim_end_matches('/'), output.default_name);
    let path = match path.as_str() {
        "" => output.default_name.clone(),
        folder if folder.ends_with('/') => in_folder(folder),
        _ => path,
    };
    match append_to(&path) {
        Err(error) if error.raw_os_error() == Some(libc::EISDIR) => {
            let path = in_folder(&path);
            append_to(&path).map_err(|error| cannot_open("output", &path, &error))
        }
        other => other.map_err(|error| cannot_open("output", &path, &error)),
    }
}

fn append_to(path: &str) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(libc::O_NOCTTY).open(path)
}

fn cannot_open(what: &str, path: &str, error: &io::Error) -> Failure {
    Failure {
        failed: Failed::OPEN_FILE,
        text: format!("cannot open {what} file {path:?}: {error}"),
        errno: error.raw_os_error().unwrap_or(0),
        path: path.to_owned(),
    }
}
