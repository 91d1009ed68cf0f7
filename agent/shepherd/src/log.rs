//! Lines of the launcher and its shepherds, all to standard error, and the file behind it with a
//! bound.
//!
//! The twin of the file of `gridwright-logging`, which the root part does not depend on.

use nix::libc::O_NOFOLLOW;
use nix::sys::stat::fstat;
use proto::diagnostic::Diagnostic;
use proto::log::{VARIABLE, check_filter, escaped};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes one line, in which no value from outside makes a line of its own.
pub fn line(text: fmt::Arguments<'_>) {
    // Where nobody reads it, nothing is lost.
    let _ = writeln!(io::stderr(), "gridwright-shepherd: {}", escaped(&text.to_string()));
}

/// Refuses a `GRIDWRIGHT_LOG` that is not understood. The launcher has few lines and writes all of
/// them.
///
/// # Errors
/// The variable has a value that cannot be parsed.
pub fn check_variable() -> Result<(), Diagnostic> {
    match std::env::var_os(VARIABLE) {
        Some(text) => check_filter(&text.to_string_lossy()),
        None => Ok(()),
    }
}

/// The launcher's log: standard error, which a file is behind if one was named.
#[derive(Debug)]
pub struct Log {
    path: Option<PathBuf>,
    limit_bytes: u64,
}

impl Log {
    /// Redirects standard output and error to `path`. Without a path they stay as they are.
    ///
    /// # Errors
    /// The system's; a link, or a file that is not a plain one with a single name.
    pub fn start(path: Option<&Path>) -> io::Result<Self> {
        // The launcher goes to another directory later.
        let path = path.map(std::path::absolute).transpose()?;
        let log = Self {
            path,
            limit_bytes: 16 << 20,
        };
        log.redirect()?;
        Ok(log)
    }

    /// Sets the size in bytes at which the file is turned over.
    pub fn limit(&mut self, bytes: u64) {
        self.limit_bytes = bytes;
    }

    /// Goes on in the file that has the name now.
    pub fn reopen(&self) {
        match self.redirect() {
            Ok(()) => line(format_args!("SIGHUP: the log was opened anew")),
            Err(error) => line(format_args!("SIGHUP: the log cannot be opened anew: {error}")),
        }
    }

    /// Moves the content away once there is too much of it. The file stays: living shepherds write
    /// to it too.
    pub fn keep_short(&self) {
        let Some(path) = &self.path else { return };
        let bytes = fstat(io::stderr().as_fd()).map_or(0, |about| u64::try_from(about.st_size).unwrap_or(0));
        if bytes <= self.limit_bytes {
            return;
        }
        let Ok(mut file) = io::stderr().as_fd().try_clone_to_owned().map(File::from) else {
            return;
        };
        let kept = keep(path, &mut file);
        // A file that cannot be emptied is tried again with the next line.
        let _ = file.set_len(0);
        if let Err(error) = kept {
            line(format_args!(
                "older lines were dropped: they cannot be kept beside {}: {error}",
                path.display()
            ));
        }
    }

    fn redirect(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = open(path)?;
        nix::unistd::dup2_stdout(&file)?;
        nix::unistd::dup2_stderr(&file)?;
        Ok(())
    }
}

fn keep(path: &Path, file: &mut File) -> io::Result<()> {
    let (newer, older) = (beside(path, 1), beside(path, 2));
    if let Ok(mut content) = File::open(&newer) {
        copy(&mut content, &older)?;
    }
    file.rewind()?;
    copy(file, &newer)
}

/// `PATH.N`.
fn beside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn copy(from: &mut File, to: &Path) -> io::Result<()> {
    let mut file = open(to)?;
    file.set_len(0)?;
    io::copy(from, &mut file).map(drop)
}

/// Opens a file for reading and appending, never through a link, and only where nobody else makes
/// names.
fn open(path: &Path) -> io::Result<File> {
    check_folder(path)?;
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .append(true)
        .create(true)
        .mode(0o644)
        .custom_flags(O_NOFOLLOW)
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.nlink() != 1 {
        return Err(io::Error::other(format!(
            "{} is not a plain file with a single name",
            path.display()
        )));
    }
    Ok(file)
}

/// Refuses a directory in which another user may make names.
fn check_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let about = fs::symlink_metadata(folder)?;
    let own = nix::unistd::geteuid().as_raw();
    let is_closed = about.is_dir() && about.mode() & 0o022 == 0 && (about.uid() == own || about.uid() == 0);
    if is_closed {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{}: other users may make names there",
            folder.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_is_opened_only_where_nobody_else_makes_names() {
        let folder = std::env::temp_dir().join(format!("gridwright-launcher-log-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert!(open(&folder.join("x.log")).is_ok());
        mode(0o775);
        assert!(open(&folder.join("x.log")).is_err());
        mode(0o755);
        fs::hard_link(folder.join("x.log"), folder.join("y.log")).unwrap();
        std::os::unix::fs::symlink(folder.join("victim"), folder.join("z.log")).unwrap();
        for name in ["x.log", "y.log", "z.log"] {
            assert!(open(&folder.join(name)).is_err(), "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_kept_is_the_last_two_contents() {
        let folder = std::env::temp_dir().join(format!("gridwright-launcher-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.log");
        for text in ["one", "two", "three"] {
            let mut file = open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            keep(&path, &mut file).unwrap();
            file.set_len(0).unwrap();
        }
        let read = |number| fs::read_to_string(beside(&path, number)).unwrap();
        assert_eq!((read(2), read(1)), ("two".to_owned(), "three".to_owned()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
