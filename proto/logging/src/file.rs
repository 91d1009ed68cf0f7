//! A log file with a bound: when it is full its content moves to `NAME.1`, that of `NAME.1` to
//! `NAME.2`, and it is emptied.
//!
//! The content is copied and the file stays: the directory belongs to root, where a daemon makes no
//! names, and what else has the file open, as standard error of this process has, goes on in the
//! same place.

use nix::libc::O_NOFOLLOW;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The size in bytes at which a file is turned over unless a setting says otherwise.
const LIMIT_BYTES: u64 = 16 << 20;

/// An open log.
pub struct LogFile {
    path: PathBuf,
    file: File,
    limit_bytes: u64,
}

impl LogFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// The system's; a link, or a file that is not a plain one with a single name.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: open(path)?,
            limit_bytes: LIMIT_BYTES,
        })
    }

    /// Sets the size at which it is turned over.
    pub fn limit(&mut self, bytes: u64) {
        self.limit_bytes = bytes;
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let bytes = self.file.metadata()?.len();
        if bytes > 0 && bytes + line.len() as u64 > self.limit_bytes {
            self.turn_over()?;
        }
        self.file.write(line)
    }

    /// Goes on in the file that has the name now, and standard output and error with it where they
    /// went to the old one.
    ///
    /// # Errors
    /// The system's: the old file stays in use.
    pub fn reopen(&mut self) -> io::Result<()> {
        let new = open(&self.path)?;
        let old = identity(&self.file)?;
        let is_ours = |stream: io::Result<File>| stream.and_then(|stream| identity(&stream)).is_ok_and(|it| it == old);
        if is_ours(duplicate(io::stdout())) {
            nix::unistd::dup2_stdout(&new)?;
        }
        if is_ours(duplicate(io::stderr())) {
            nix::unistd::dup2_stderr(&new)?;
        }
        self.file = new;
        Ok(())
    }

    /// Empties the file. What cannot be kept is lost and named: the bound counts for more.
    fn turn_over(&mut self) -> io::Result<()> {
        let kept = self.keep();
        self.file.set_len(0)?;
        if let Err(error) = kept {
            writeln!(
                self.file,
                "older lines were dropped: they cannot be kept beside {}: {error}",
                self.path.display()
            )?;
        }
        Ok(())
    }

    fn keep(&mut self) -> io::Result<()> {
        let (newer, older) = (beside(&self.path, 1), beside(&self.path, 2));
        if let Ok(mut content) = File::open(&newer) {
            copy(&mut content, &older)?;
        }
        self.file.rewind()?;
        copy(&mut self.file, &newer)
    }
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

/// Opens a file for reading and appending, never through a link.
fn open(path: &Path) -> io::Result<File> {
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

fn duplicate(stream: impl std::os::fd::AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory of one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gridwright-logging-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn bytes(&self, name: &str) -> u64 {
            fs::metadata(self.0.join(name)).map_or(0, |about| about.len())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_log_takes_three_times_its_limit_at_most_and_keeps_the_newest_lines() {
        let folder = Folder::new("bound");
        let mut log = LogFile::open(&folder.0.join("x.log")).unwrap();
        log.limit(1_000);
        for number in 0..1_000 {
            let line = format!("line {number:04}\n");
            assert_eq!(log.write(line.as_bytes()).unwrap(), line.len());
        }
        let text: String = ["x.log.2", "x.log.1", "x.log"]
            .map(|name| fs::read_to_string(folder.0.join(name)).unwrap())
            .concat();
        assert!(text.len() <= 3_000 && text.len() > 2_000, "{}", text.len());
        let first: usize = text[5..9].parse().unwrap();
        let lines: Vec<String> = (first..1_000).map(|number| format!("line {number:04}")).collect();
        assert!(text.lines().eq(lines), "{text}");
    }

    #[test]
    fn who_has_the_file_open_too_goes_on_in_it() {
        let folder = Folder::new("shared");
        let path = folder.0.join("x.log");
        let mut log = LogFile::open(&path).unwrap();
        log.limit(100);
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        log.write(&[b'a'; 90]).unwrap();
        log.write(&[b'b'; 90]).unwrap();
        other.write_all(b"other\n").unwrap();
        assert_eq!((folder.bytes("x.log"), folder.bytes("x.log.1")), (96, 90));
    }

    #[test]
    fn a_log_that_cannot_be_kept_is_emptied_all_the_same() {
        let folder = Folder::new("closed");
        fs::create_dir(folder.0.join("x.log.1")).unwrap();
        let mut log = LogFile::open(&folder.0.join("x.log")).unwrap();
        log.limit(100);
        for _ in 0..10 {
            log.write(&[b'a'; 90]).unwrap();
        }
        let text = fs::read_to_string(folder.0.join("x.log")).unwrap();
        assert!(
            text.len() < 1_000 && text.starts_with("older lines were dropped"),
            "{text}"
        );
    }

    #[test]
    fn a_renamed_log_is_left_behind_when_it_is_opened_anew() {
        let folder = Folder::new("renamed");
        let path = folder.0.join("x.log");
        let mut log = LogFile::open(&path).unwrap();
        log.write(b"old\n").unwrap();
        fs::rename(&path, folder.0.join("x.log.old")).unwrap();
        log.reopen().unwrap();
        log.write(b"new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(folder.0.join("x.log.old")).unwrap(), "old\n");
    }

    #[test]
    fn links_and_files_with_two_names_are_not_opened() {
        let folder = Folder::new("links");
        let victim = folder.0.join("victim");
        fs::write(&victim, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, folder.0.join("soft.log")).unwrap();
        fs::hard_link(&victim, folder.0.join("hard.log")).unwrap();
        for name in ["soft.log", "hard.log", "."] {
            assert!(LogFile::open(&folder.0.join(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    }
}
