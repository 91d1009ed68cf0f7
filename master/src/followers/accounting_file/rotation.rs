//! Turning an accounting file over: when it is put aside, under which name, and when that is
//! removed.
//!
//! A file that was put aside is called `NAME-YYYYMMDD-NNNN`: the day in UTC and a number from 1. It
//! stays in the directory of the file and never changes. Files of other names, as logrotate(8)
//! makes them, are left alone.

use jiff::Timestamp;
use proto::accounting::{RotatedName, RotationAge};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The least time between two looks at the files that were put aside, unless one more is.
pub const SWEEP: Duration = Duration::from_secs(3000);

/// When a file is put aside, and how long that is kept. `None` means never, and for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RotationLimits {
    /// The length from which on it is put aside.
    pub bytes: Option<u64>,
    /// The age from which on it is put aside, if it holds anything.
    pub age: Option<Duration>,
    /// How many files that were put aside are kept.
    pub kept: Option<usize>,
    /// How long such a file is kept after its last record.
    pub kept_for: Option<Duration>,
}

impl RotationLimits {
    /// Whether files are ever put aside.
    pub fn is_on(&self) -> bool {
        self.bytes.is_some() || self.age.is_some()
    }

    /// Whether a file is to be put aside.
    pub fn reached(&self, file: &Metadata, now: SystemTime) -> bool {
        let is_large = self.bytes.is_some_and(|bytes| file.len() >= bytes);
        // A file system without the time of creation leaves the age unknown.
        let age = file.created().ok().and_then(|at| now.duration_since(at).ok());
        let is_old = self.age.zip(age).is_some_and(|(most, age)| age >= most);
        file.len() > 0 && (is_large || is_old)
    }
}

/// The directory in which a file lies, behind links, and its name there.
#[derive(Clone, Debug)]
pub struct FilePlace {
    /// The directory.
    pub dir: PathBuf,
    /// The name.
    pub name: String,
}

impl FilePlace {
    /// The place of a file.
    ///
    /// # Errors
    /// If it does not exist, or cannot be reached.
    pub fn find(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let parts = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
        let (dir, name) = parts.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
        Ok(Self {
            dir: dir.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The files that were put aside, oldest first.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn rotated(&self) -> io::Result<Vec<RotatedName>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| RotatedName::parse(&self.name, name)));
        }
        found.sort();
        Ok(found)
    }

    /// The path of a file that was put aside.
    pub fn path_of(&self, rotated: RotatedName) -> PathBuf {
        self.dir.join(rotated.of(&self.name))
    }

    /// The path of its index.
    pub fn index_of(&self, rotated: RotatedName) -> PathBuf {
        self.dir.join(format!("{}.index", rotated.of(&self.name)))
    }

    /// Puts the file aside in one step, and makes that durable.
    ///
    /// # Errors
    /// Errors of the file system; nothing was done.
    pub fn put_aside(&self, now: SystemTime) -> io::Result<RotatedName> {
        let day = day(now);
        let rotated = RotatedName {
            day,
            number: self.last_number(day)? + 1,
        };
        fs::rename(self.dir.join(&self.name), self.path_of(rotated))?;
        // After a power cut the old name may be back, and the records under it are whole.
        let _ = File::open(&self.dir).and_then(|dir| dir.sync_all());
        Ok(rotated)
    }

    /// The highest number that a file of a day has, also one that somebody compressed.
    fn last_number(&self, day: u32) -> io::Result<u32> {
        let mut last = 0;
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            if let Some((RotationAge::Dated(moment, number), _)) =
                name.to_str().and_then(|name| RotationAge::parse(&self.name, name))
                && moment == RotationAge::moment(day)
            {
                last = last.max(number);
            }
        }
        Ok(last)
    }

    /// Removes files beyond the limits, and indexes without a file. Returns how many files went.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn sweep(&self, limits: &RotationLimits, now: SystemTime) -> io::Result<usize> {
        let rotated = self.rotated()?;
        let surplus = rotated.len().saturating_sub(limits.kept.unwrap_or(usize::MAX));
        let mut removed = 0;
        for (at, rotated) in rotated.iter().enumerate() {
            let path = self.path_of(*rotated);
            let age = now.duration_since(fs::metadata(&path)?.modified()?).unwrap_or_default();
            if at < surplus || limits.kept_for.is_some_and(|most| age > most) {
                fs::remove_file(&path)?;
                removed += 1;
            }
        }
        self.remove_orphans()?;
        Ok(removed)
    }

    /// Removes indexes whose file is gone, and drafts of indexes.
    fn remove_orphans(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let of = name.strip_suffix(".index");
            let Some(rotated) = of.and_then(|of| RotatedName::parse(&self.name, of)) else {
                continue;
            };
            if !self.path_of(rotated).exists() {
                fs::remove_file(self.dir.join(name))?;
            }
        }
        Ok(())
    }
}

/// The day of a moment in UTC, as `20261126`.
fn day(now: SystemTime) -> u32 {
    let stamp = Timestamp::try_from(now).unwrap_or_default();
    let date = stamp.to_zoned(jiff::tz::TimeZone::UTC).date();
    let [year, month, day] = [i32::from(date.year()), i32::from(date.month()), i32::from(date.day())];
    (year * 10_000 + month * 100 + day).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    const NOON: u64 = 1_795_694_400;

    fn place(dir: &TempDir) -> FilePlace {
        fs::write(dir.path().join("accounting"), "x\n").unwrap();
        FilePlace::find(&dir.path().join("accounting")).unwrap()
    }

    fn names(place: &FilePlace) -> Vec<String> {
        place
            .rotated()
            .unwrap()
            .into_iter()
            .map(|it| it.of("accounting"))
            .collect()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn files_of_one_day_are_numbered_in_their_order() {
        let dir = TempDir::new("rotation");
        let place = place(&dir);
        for _ in 0..2 {
            place.put_aside(at(NOON)).unwrap();
            fs::write(dir.path().join("accounting"), "y\n").unwrap();
        }
        place.put_aside(at(NOON + 86_400)).unwrap();
        fs::write(dir.path().join("accounting"), "z\n").unwrap();
        fs::write(dir.path().join("accounting-20261127-0002.gz"), "").unwrap();
        let after_compressed = place.put_aside(at(NOON + 86_400)).unwrap();
        assert_eq!(after_compressed.number, 3);
        assert_eq!(
            names(&place),
            [
                "accounting-20261126-0001",
                "accounting-20261126-0002",
                "accounting-20261127-0001",
                "accounting-20261127-0003"
            ]
        );
    }

    #[test]
    fn the_oldest_beyond_the_number_go_and_files_of_others_stay() {
        let dir = TempDir::new("rotation");
        let place = place(&dir);
        for name in [
            "accounting-20261126-0001",
            "accounting-20261126-0002",
            "accounting-20261126-0010",
            "accounting-20261126-0001.index",
            "accounting-20261126-0010.index",
            "accounting-20261126",
            "accounting.1",
            "accounting.2.gz",
        ] {
            fs::write(dir.path().join(name), "x\n").unwrap();
        }
        let limits = RotationLimits {
            kept: Some(1),
            ..RotationLimits::default()
        };
        assert_eq!(place.sweep(&limits, SystemTime::now()).unwrap(), 2);
        let mut left: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "accounting",
                "accounting-20261126",
                "accounting-20261126-0010",
                "accounting-20261126-0010.index",
                "accounting.1",
                "accounting.2.gz"
            ]
        );
    }

    #[test]
    fn files_beyond_the_age_go() {
        let dir = TempDir::new("rotation");
        let place = place(&dir);
        place.put_aside(at(NOON)).unwrap();
        let limits = RotationLimits {
            kept_for: Some(Duration::from_secs(86_400)),
            ..RotationLimits::default()
        };
        let now = SystemTime::now();
        assert_eq!(place.sweep(&limits, now).unwrap(), 0);
        assert_eq!(place.sweep(&limits, now + Duration::from_secs(90_000)).unwrap(), 1);
        assert!(names(&place).is_empty());
    }

    #[test]
    fn a_file_is_put_aside_by_length_or_age_and_never_while_it_is_empty() {
        let dir = TempDir::new("rotation");
        let path = dir.path().join("accounting");
        let limits = RotationLimits {
            bytes: Some(3),
            age: Some(Duration::from_secs(60)),
            ..RotationLimits::default()
        };
        let later = SystemTime::now() + Duration::from_secs(61);
        for (text, now, expected) in [
            ("", later, false),
            ("ab", SystemTime::now(), false),
            ("abc", SystemTime::now(), true),
            ("ab", later, true),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(limits.reached(&fs::metadata(&path).unwrap(), now), expected, "{text:?}");
        }
    }
}
