//! Standard input, output and error of a task, opened under the task's own uid.

use super::environment::Places;
use super::plan::expand;
use crate::account::Identity;
use crate::sys;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use proto::launch::{FailedCodes, Failure, OutputPath, Streams};
use proto::text;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::{Duration, Instant};

/// The three descriptors, each at 3 or above and closed on exec.
pub struct StandardStreams {
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// Called before a named pipe is opened, which waits for its other end.
pub type PipeHook<'a> = &'a dyn Fn();

/// Opens all three and says which they are; relative paths start at `folder`, the present working
/// directory. Only a job reads its input and waits for the other end of a named pipe: it says so by
/// `waits`, which a procedure does not have.
///
/// # Errors
/// [`FailedCodes::OPEN_FILE`] with the path.
pub fn open(
    streams: &Streams,
    identity: &Identity,
    folder: &str,
    waits: Option<PipeHook<'_>>,
) -> Result<(StandardStreams, Places), Failure> {
    let (stdin, input) = match streams.stdin.as_ref().filter(|_| waits.is_some()) {
        None => (read(NOTHING)?, NOTHING.to_owned()),
        Some(path) => {
            let path = expand(path, identity);
            (
                read_awaited(&path, waits)
                    .map_err(|error| cannot_open("input", &full(folder, path.clone()), &error))?,
                path,
            )
        }
    };
    let (stdout, output) = append(&streams.stdout, identity, folder, waits)?;
    let (stderr, errors) = if streams.merge {
        let same = stdout
            .try_clone()
            .map_err(|error| cannot_open("standard error", "", &error))?;
        (same, output.clone())
    } else {
        append(&streams.stderr, identity, folder, waits)?
    };
    let [stdin_path, stdout_path, stderr_path] = [input, output, errors].map(|path| full(folder, path));
    let places = Places {
        folder: folder.to_owned(),
        stdin: stdin_path,
        stdout: stdout_path,
        stderr: stderr_path,
    };
    Ok((
        StandardStreams {
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        },
        places,
    ))
}

/// The three that came beside the document.
///
/// # Errors
/// [`FailedCodes::OPEN_FILE`] where no descriptor is free.
pub fn given([stdin, stdout, stderr]: &[OwnedFd; 3], folder: &str) -> Result<(StandardStreams, Places), Failure> {
    let copy = |stream: &OwnedFd| stream.try_clone().map_err(|error| cannot_open("connected", "", &error));
    let opened = StandardStreams {
        stdin: copy(stdin)?,
        stdout: copy(stdout)?,
        stderr: copy(stderr)?,
    };
    let nothing = || NOTHING.to_owned();
    Ok((
        opened,
        Places {
            folder: folder.to_owned(),
            stdin: nothing(),
            stdout: nothing(),
            stderr: nothing(),
        },
    ))
}

/// What stands for a file that nobody wants.
const NOTHING: &str = "/dev/null";

/// Three times `/dev/null`, for a procedure whose job cannot open its files.
///
/// # Errors
/// [`FailedCodes::OPEN_FILE`] on a host without it.
pub fn nowhere(folder: &str) -> Result<(StandardStreams, Places), Failure> {
    let write = || {
        OpenOptions::new()
            .write(true)
            .open(NOTHING)
            .map_err(|error| cannot_open("output", NOTHING, &error))
    };
    let opened = StandardStreams {
        stdin: read(NOTHING)?.into(),
        stdout: write()?.into(),
        stderr: write()?.into(),
    };
    let nothing = || NOTHING.to_owned();
    Ok((
        opened,
        Places {
            folder: folder.to_owned(),
            stdin: nothing(),
            stdout: nothing(),
            stderr: nothing(),
        },
    ))
}

/// A path as the job is told it.
fn full(folder: &str, path: String) -> String {
    if path.starts_with('/') {
        path
    } else {
        format!("{}/{path}", folder.trim_end_matches('/'))
    }
}

fn read(path: &str) -> Result<File, Failure> {
    File::open(text::to_os(path)).map_err(|error| cannot_open("input", path, &error))
}

/// How long an input file may be missing before that is an error, and how often it is looked for.
const INPUT_PATIENCE: Duration = Duration::from_secs(2);
const INPUT_PAUSE: Duration = Duration::from_millis(20);

/// Opens the job's input. A file that was made on another host a moment ago is not visible over NFS
/// at once, and a job may start before the shell that submitted it has run its next command: so a
/// missing file is waited for, briefly.
fn read_awaited(path: &str, waits: Option<PipeHook<'_>>) -> io::Result<File> {
    let end = Instant::now() + INPUT_PATIENCE;
    loop {
        match open_file(OpenOptions::new().read(true), path, waits) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < end => {
                std::thread::sleep(INPUT_PAUSE)
            }
            other => return other,
        }
    }
}

/// The file and its path. A relative path starts at `start`, the present working directory.
fn append(
    output: &OutputPath,
    identity: &Identity,
    start: &str,
    waits: Option<PipeHook<'_>>,
) -> Result<(File, String), Failure> {
    let mut path = expand(&output.path, identity);
    let in_folder = |folder: &str| format!("{}/{}", folder.trim_end_matches('/'), output.default_name);
    if path.is_empty() {
        path.clone_from(&output.default_name);
    }
    let mut asked = path.clone();
    if path.ends_with('/') {
        path = in_folder(&path);
    }
    let mut opened = append_to(&path, waits);
    if opened
        .as_ref()
        .is_err_and(|error| error.raw_os_error() == Some(libc::EISDIR))
    {
        path = in_folder(&path);
        opened = append_to(&path, waits);
        asked.clone_from(&path);
    }
    Ok((
        opened.map_err(|error| cannot_open("output", &full(start, asked), &error))?,
        path,
    ))
}

fn append_to(path: &str, waits: Option<PipeHook<'_>>) -> io::Result<File> {
    open_file(OpenOptions::new().append(true).create(true).mode(0o644), path, waits)
}

/// Opens a file. A procedure does not wait for the other end of a named pipe, and does not take the
/// job's place there: it opens without waiting, and looks at what it has opened.
fn open_file(options: &mut OpenOptions, path: &str, waits: Option<PipeHook<'_>>) -> io::Result<File> {
    let path = text::to_os(path);
    let Some(waits) = waits else {
        return waiting(options.custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open(path)?);
    };
    if fs::metadata(&path).is_ok_and(|found| found.file_type().is_fifo()) {
        waits();
    }
    options.custom_flags(libc::O_NOCTTY).open(path)
}

/// Takes `O_NONBLOCK` from a file that nobody else has to open: a plain one, or a device such as
/// `/dev/null`.
fn waiting(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it is neither a file nor a device",
        ));
    }
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// The file that the job's standard error went to, open for reading; `None` for anything that is
/// not a plain file there. Nothing is made and nothing is waited for.
pub fn error_file(streams: &Streams, identity: &Identity) -> Option<File> {
    let output = if streams.merge {
        &streams.stdout
    } else {
        &streams.stderr
    };
    let path = expand(&output.path, identity);
    let path = if path.is_empty() {
        output.default_name.clone()
    } else {
        path
    };
    let inner = format!("{path}/{}", output.default_name);
    [path, inner].iter().find_map(|path| plain_file(path))
}

fn plain_file(path: &str) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(text::to_os(path))
        .ok()?;
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// In the words of 8.1.9, with the path that was asked for, from the root of the file system on.
fn cannot_open(what: &str, path: &str, error: &io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(0);
    Failure {
        // That the system has no more descriptors is not for the user to mend.
        failed: if sys::is_exhaustion(errno) {
            FailedCodes::BEFORE_PROLOG
        } else {
            FailedCodes::OPEN_FILE
        },
        text: format!("error: can't open {what} file \"{path}\": {error}"),
        errno,
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    fn folder(name: &str) -> std::path::PathBuf {
        let base = std::env::temp_dir().join(format!("gridwright-{name}-{}", std::process::id()));
        fs::create_dir_all(&base).expect("made");
        base
    }

    /// A user may exchange the file for a pipe at any moment, so the opened file decides.
    #[test]
    fn a_procedure_takes_no_pipe_and_writes_to_files_as_usual() {
        let base = folder("procedure");
        let place = |name: &str| base.join(name).to_str().expect("plain").to_owned();
        nix::unistd::mkfifo(place("pipe").as_str(), Mode::S_IRWXU).expect("made");
        assert!(append_to(&place("pipe"), None).is_err());
        // With a reader the pipe opens at once.
        let both = OpenOptions::new()
            .read(true)
            .write(true)
            .open(place("pipe"))
            .expect("opened");
        assert!(append_to(&place("pipe"), None).is_err());
        assert!(waiting(both).is_err());
        for path in [place("file"), NOTHING.to_owned()] {
            let file = append_to(&path, None).expect("opened");
            let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL).expect("asked"));
            assert!(
                !flags.contains(OFlag::O_NONBLOCK) && flags.contains(OFlag::O_APPEND),
                "{path}: {flags:?}"
            );
        }
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named_from_the_root_on() {
        let identity = crate::account::by_number(nix::unistd::Uid::effective().as_raw());
        let reason = |path: &str, stdin: Option<String>| {
            let output = OutputPath {
                path: path.to_owned(),
                default_name: "job.o7".to_owned(),
            };
            let streams = Streams {
                stdin,
                stdout: output.clone(),
                stderr: output,
                merge: false,
            };
            let failure = open(&streams, &identity, "/start", Some(&|| ()))
                .err()
                .expect("there is no such folder");
            assert!(failure.text.contains(&format!("\"{}\"", failure.path)), "{failure:?}");
            failure.path
        };
        // A file stands where a folder is named, so that nothing is waited for.
        for (path, named) in [
            ("Cargo.toml/x.1", "/start/Cargo.toml/x.1"),
            ("Cargo.toml/x/", "/start/Cargo.toml/x/"),
            ("/dev/null/x.1", "/dev/null/x.1"),
        ] {
            assert_eq!(reason(path, None), named);
        }
        assert_eq!(reason("", Some("Cargo.toml/in".to_owned())), "/start/Cargo.toml/in");
    }

    #[test]
    fn a_look_at_standard_error_makes_no_file_and_follows_no_link() {
        let base = folder("look");
        let place = |name: &str| base.join(name).to_str().expect("plain").to_owned();
        let identity = crate::account::by_number(nix::unistd::Uid::effective().as_raw());
        let streams = |path: String| {
            let output = OutputPath {
                path,
                default_name: "job.e7".to_owned(),
            };
            Streams {
                stdin: None,
                stdout: output.clone(),
                stderr: output,
                merge: false,
            }
        };
        let found = |path: String| error_file(&streams(path), &identity).is_some();
        assert!(!found(place("gone")) && !found(base.to_str().expect("plain").to_owned()));
        assert_eq!(fs::read_dir(&base).expect("there").count(), 0);
        fs::write(place("job.e7"), "x").expect("written");
        std::os::unix::fs::symlink(place("job.e7"), place("link")).expect("linked");
        nix::unistd::mkfifo(place("pipe").as_str(), Mode::S_IRWXU).expect("made");
        assert!(found(base.to_str().expect("plain").to_owned()) && found(place("job.e7")));
        assert!(!found(place("link")) && !found(place("pipe")));
        fs::remove_dir_all(&base).expect("cleaned");
    }
}
