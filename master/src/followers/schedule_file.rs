//! The file `schedule` (sge_schedule(5)): what tasks and reservations take over time, an entry for
//! each look at it.
//!
//! It follows `MONITOR=1` in `params` of the scheduler configuration. Nothing rests on it: what
//! cannot be written is left out.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Bytes after which a file is begun anew: the master makes no files in that directory, so it
/// cannot put one aside.
const FILE_MAX: u64 = 256 << 20;

/// The file.
#[derive(Debug)]
pub struct ScheduleFile {
    path: PathBuf,
    /// Whether the last write failed, so that the log has been told.
    is_failing: bool,
}

impl ScheduleFile {
    /// The file of this path; it is made with its first entry.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            is_failing: false,
        }
    }

    /// Writes an entry.
    pub fn append(&mut self, entry: &str) {
        let written = write(&self.path, entry, FILE_MAX);
        match (&written, self.is_failing) {
            (Err(error), false) => {
                tracing::warn!("cannot write {}, entries are left out: {error}", self.path.display());
            }
            (Ok(()), true) => tracing::info!("{} can be written again", self.path.display()),
            (Err(_), true) | (Ok(()), false) => {}
        }
        self.is_failing = written.is_err();
    }
}

/// Whole entries only: what a full disk has taken half of is cut off again.
fn write(path: &Path, entry: &str, most: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut before = file.metadata()?.len();
    if before >= most {
        file.set_len(0)?;
        before = 0;
    }
    file.write_all(entry.as_bytes()).inspect_err(|_| {
        // What is left of it there is at most a torn entry.
        let _ = file.set_len(before);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn entries_are_appended_and_a_large_file_is_begun_anew() {
        let dir = TempDir::new("schedule");
        let path = dir.path().join("schedule");
        let read = || std::fs::read_to_string(&path).unwrap();
        let mut file = ScheduleFile::new(path.clone());
        file.append("::::::::\n");
        file.append("::::::::\nx\n");
        assert_eq!(read(), "::::::::\n::::::::\nx\n");
        write(&path, "::::::::\n", 21).unwrap();
        assert_eq!(read(), "::::::::\n::::::::\nx\n::::::::\n");
        write(&path, "::::::::\ny\n", 21).unwrap();
        assert_eq!(read(), "::::::::\ny\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_stops_nothing() {
        let mut file = ScheduleFile::new("/dev/full".into());
        file.append("::::::::\n");
        assert!(file.is_failing);
        let mut file = ScheduleFile::new("/nowhere/schedule".into());
        file.append("::::::::\n");
        assert!(file.is_failing);
    }
}
