//! Room on the master's disk for the records that must be written in any case: the ends of tasks
//! that run.
//!
//! A file of that size lies beside the database. Where the file system has little room beside it,
//! the master starts nothing and refuses changes except those that end something; where it has
//! none, the file is given up for the log. When there is room again, the file is made anew and the
//! master goes on as before.
//!
//! statvfs(3) does not count quotas. A quota is noticed when a write fails although the file system
//! has room. From then on the file is made anew only if twice its size can be taken, which shows
//! that as much again is left beside it.

use nix::fcntl::posix_fallocate;
use nix::libc::O_NOFOLLOW;
use nix::sys::statvfs::statvfs;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the file system is looked at while inputs come, and while there is too little room.
const LOOK: Duration = Duration::from_millis(200);

/// Free bytes with which a master starts in any case: its database has files beside it.
const TO_START_BYTES: u64 = 1 << 20;

/// Whether there is room for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskRoom {
    /// There is.
    Enough,
    /// Only the ends of tasks and what belongs to them are recorded.
    Short,
}

/// The reserve of a master.
///
/// There is room while the file is whole and as much again was free when it was looked at last;
/// half of that is enough to go on.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
    bytes: u64,
    is_whole: bool,
    /// Whether a quota and not the file system keeps the master from writing.
    has_quota: bool,
    room: DiskRoom,
    free: u64,
    looked: Option<Instant>,
}

impl Reserve {
    /// Creates a reserve of `bytes` in the file at `path`. With 0 bytes there is no reserve.
    pub fn new(path: PathBuf, bytes: u64) -> Self {
        let mut reserve = Self {
            path,
            bytes,
            is_whole: false,
            has_quota: false,
            room: DiskRoom::Enough,
            free: u64::MAX,
            looked: None,
        };
        if let Ok(there) = fs::symlink_metadata(&reserve.path) {
            reserve.is_whole = bytes > 0 && there.is_file() && there.len() == bytes;
            if !reserve.is_whole {
                // One of another size keeps room that nobody counts, or less than was asked for.
                drop(fs::remove_file(&reserve.path));
            }
        }
        if free_bytes(&reserve.path) < TO_START_BYTES {
            reserve.release();
        }
        reserve.look(Instant::now());
        reserve
    }

    /// Whether there is room, as far as was seen lately.
    pub fn room(&mut self, now: Instant) -> DiskRoom {
        if self.looked.is_none_or(|looked| now >= looked + LOOK) {
            self.look(now);
        }
        self.room
    }

    /// When the disk is checked again without any input. `None` while there is room.
    pub fn due(&self) -> Option<Instant> {
        (self.room == DiskRoom::Short).then(|| self.looked.map_or_else(Instant::now, |looked| looked + LOOK))
    }

    /// Gives the file up for the log, which has no room. Returns whether there was anything to
    /// give.
    pub fn release(&mut self) -> bool {
        let had = std::mem::take(&mut self.is_whole);
        if self.bytes > 0 {
            self.room = DiskRoom::Short;
            self.free = free_bytes(&self.path);
            self.has_quota |= self.free >= self.bytes.max(TO_START_BYTES);
        }
        match fs::remove_file(&self.path) {
            Ok(()) => had,
            Err(_) => false,
        }
    }

    /// The refusal of a change.
    pub fn refusal(&self) -> Diagnostic {
        let folder = self.path.parent().unwrap_or(&self.path).display();
        let what = "error: the master's disk is full: it answers, records how tasks end, and takes no changes but those that end something";
        let needed_mib = self.needed() >> 20;
        let (why, room) = if self.has_quota {
            let why = format!("a quota keeps the master from writing; {needed_mib} MiB must be left of it");
            (why, "make room within that quota or raise it")
        } else {
            (
                format!("{} MiB are free, {needed_mib} MiB must be", self.free >> 20),
                "make room on that file system",
            )
        };
        Diagnostic::new(Code::SystemRefused, what)
            .at(format!("{folder} on the master's host"))
            .why(why)
            .fix(format!(
                "{room}: the master goes on by itself; disk_reserve_bytes of etc/master.toml is the limit"
            ))
    }

    /// Bytes that must be free before changes are taken again.
    fn needed(&self) -> u64 {
        if self.is_whole {
            self.bytes
        } else {
            self.bytes.saturating_mul(2)
        }
    }

    fn look(&mut self, now: Instant) {
        self.looked = Some(now);
        if self.bytes == 0 {
            return;
        }
        self.free = free_bytes(&self.path);
        let before = self.room;
        if !self.is_whole && self.free >= self.needed() {
            let beside = if self.has_quota { self.bytes } else { 0 };
            match make(&self.path, self.bytes, beside) {
                Ok(()) => (self.is_whole, self.has_quota, self.free) = (true, false, free_bytes(&self.path)),
                Err(error) => {
                    // Without a quota another process has taken the room in the same moment. Both
                    // are looked at again.
                    self.has_quota |= error.kind() == io::ErrorKind::QuotaExceeded;
                    drop(fs::remove_file(&self.path));
                }
            }
        }
        let least = if before == DiskRoom::Enough {
            self.bytes / 2
        } else {
            self.bytes
        };
        self.room = if self.is_whole && self.free >= least {
            DiskRoom::Enough
        } else {
            DiskRoom::Short
        };
        match (before, self.room) {
            (DiskRoom::Enough, DiskRoom::Short) => tracing::error!("{}", self.refusal()),
            (DiskRoom::Short, DiskRoom::Enough) => {
                tracing::warn!("the master's disk has room again: changes are taken")
            }
            (DiskRoom::Enough, DiskRoom::Enough) | (DiskRoom::Short, DiskRoom::Short) => {}
        }
    }
}

/// Bytes that the file system of a file has for us. One that cannot be asked counts as roomy:
/// writing tells.
fn free_bytes(path: &std::path::Path) -> u64 {
    let folder = path.parent().unwrap_or(path);
    statvfs(folder).map_or(u64::MAX, |stat| {
        stat.blocks_available().saturating_mul(stat.fragment_size())
    })
}

/// Makes the file, and shows that `beside` more bytes could be taken.
fn make(path: &std::path::Path, bytes: u64, beside: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(path)?;
    let length = i64::try_from(bytes.saturating_add(beside)).map_err(io::Error::other)?;
    posix_fallocate(&file, 0, length)?;
    file.set_len(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    /// How long after the last look the next one is due.
    const LATER: Duration = Duration::from_secs(1);

    #[test]
    fn a_reserve_lies_beside_the_database_and_is_made_anew_after_it_was_given_up() {
        let dir = TempDir::new("reserve");
        let path = dir.path().join("reserve");
        let mut reserve = Reserve::new(path.clone(), 1 << 20);
        assert_eq!(reserve.room(Instant::now()), DiskRoom::Enough);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
        assert!(reserve.release() && !path.exists() && !reserve.release());
        assert!(reserve.due().is_some());
        assert_eq!(reserve.room(Instant::now() + LATER), DiskRoom::Enough);
        assert!(path.exists() && reserve.due().is_none());
    }

    #[test]
    fn a_write_that_failed_although_the_disk_has_room_is_beyond_a_quota_until_twice_the_reserve_can_be_taken() {
        let dir = TempDir::new("reserve-quota");
        let path = dir.path().join("reserve");
        let mut reserve = Reserve::new(path.clone(), 1 << 20);
        assert!(reserve.release());
        let refusal = reserve.refusal();
        assert!(
            refusal.why.contains("a quota") && refusal.fix.contains("raise it"),
            "{refusal}"
        );
        assert_eq!(reserve.room(Instant::now() + LATER), DiskRoom::Enough);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
        assert!(!reserve.refusal().why.contains("quota"));
    }

    #[test]
    fn more_than_the_disk_has_is_never_enough_and_the_refusal_says_what_to_do() {
        let dir = TempDir::new("reserve-huge");
        let mut reserve = Reserve::new(dir.path().join("reserve"), 1 << 60);
        assert_eq!(reserve.room(Instant::now()), DiskRoom::Short);
        let refusal = reserve.refusal();
        assert!(
            refusal.what.contains("disk is full") && refusal.fix.contains("make room"),
            "{refusal}"
        );
        assert!(!dir.path().join("reserve").exists());
    }

    #[test]
    fn a_reserve_of_another_size_is_made_anew_and_goes_where_none_is_wanted() {
        let dir = TempDir::new("reserve-size");
        let path = dir.path().join("reserve");
        drop(Reserve::new(path.clone(), 2 << 20));
        for bytes in [1 << 20, 3 << 20] {
            let mut reserve = Reserve::new(path.clone(), bytes);
            assert_eq!(reserve.room(Instant::now()), DiskRoom::Enough);
            assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        }
        drop(Reserve::new(path.clone(), 0));
        assert!(!path.exists());
    }

    #[test]
    fn without_a_reserve_there_is_always_room() {
        let dir = TempDir::new("reserve-none");
        let mut reserve = Reserve::new(dir.path().join("reserve"), 0);
        assert_eq!(reserve.room(Instant::now() + LATER), DiskRoom::Enough);
        assert!(!reserve.release() && reserve.due().is_none());
    }
}
