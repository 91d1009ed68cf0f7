//! Tells a disk without room from a broken one.
//!
//! SQLite has an error of its own for ENOSPC, and none for EDQUOT: a write beyond a quota looks
//! like a write to a broken disk, and the number of the system's error is out of reach of safe
//! code. So the system is asked again, with a small file beside the database.

use super::StoreError;
use nix::libc::O_NOFOLLOW;
use rusqlite::{Error, ErrorCode, ffi};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// More than SQLite writes at a time: where so much fits, a write of SQLite failed for another
/// reason.
const PROBE_BYTES: usize = 64 << 10;

impl StoreError {
    /// Whether the file system had no room, or a quota on it is used up.
    ///
    /// A sync that failed is another matter, also for want of room: the kernel may have dropped
    /// what was written before it, so that only the log as it is on the disk can tell how far the
    /// state has come. The master ends then and replays it.
    ///
    /// Where the error does not say it, `probe` writes to the folder of the database:
    /// [`probe_room`].
    pub fn is_disk_full(&self, probe: impl FnOnce(&Path) -> io::Result<()>) -> bool {
        let Self::Database { source, path, .. } = self else {
            return false;
        };
        is_out_of_room(source, || probe(path.parent().unwrap_or(path)))
    }
}

fn is_out_of_room(error: &Error, probe: impl FnOnce() -> io::Result<()>) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match (error.sqlite_error_code(), extended) {
        // The files beside the database have no error of their own for a full disk.
        (Some(ErrorCode::DiskFull), _) | (_, Some(ffi::SQLITE_IOERR_SHMSIZE)) => true,
        (Some(ErrorCode::CannotOpen), _) | (_, Some(ffi::SQLITE_IOERR_WRITE)) => {
            probe().is_err_and(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
        }
        _ => false,
    }
}

/// Writes a small file into a folder and removes it. Some file systems refuse it only when it is
/// synced.
///
/// # Errors
/// As the system says.
pub fn probe_room(folder: &Path) -> io::Result<()> {
    let path = folder.join("probe");
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(&path);
    let written = file.and_then(|mut file| file.write_all(&[0; PROBE_BYTES]).and_then(|()| file.sync_data()));
    // One that stays is overwritten by the next probe.
    let _ = fs::remove_file(&path);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_write_that_failed_is_a_full_disk_only_if_the_system_says_so() {
        let full = || Err(ErrorKind::StorageFull.into());
        let quota = || Err(ErrorKind::QuotaExceeded.into());
        let broken = || Err(io::Error::from_raw_os_error(nix::libc::EIO));
        type Probe = fn() -> io::Result<()>;
        let cases: [(i32, Probe, bool); 8] = [
            (ffi::SQLITE_FULL, || Ok(()), true),
            (ffi::SQLITE_IOERR_SHMSIZE, || Ok(()), true),
            (ffi::SQLITE_IOERR_WRITE, full, true),
            (ffi::SQLITE_IOERR_WRITE, quota, true),
            (ffi::SQLITE_IOERR_WRITE, broken, false),
            (ffi::SQLITE_IOERR_WRITE, || Ok(()), false),
            (ffi::SQLITE_CANTOPEN, quota, true),
            (ffi::SQLITE_IOERR_FSYNC, quota, false),
        ];
        for (code, probe, expected) in cases {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(is_out_of_room(&error, probe), expected, "{error}");
        }
    }

    #[test]
    fn a_probe_leaves_nothing_and_tells_what_the_system_says() {
        let dir = TempDir::new("probe");
        probe_room(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(
            probe_room(&dir.path().join("missing")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}
