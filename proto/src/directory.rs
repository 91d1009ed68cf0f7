//! Which directory a state directory is: what its daemons compare before they do anything.
//!
//! `cp -a` gives a copy everything that the original has, records of running jobs and keys
//! included. The copy has another inode and another time of birth, and a directory that was only
//! moved keeps both. A snapshot that is mounted beside its original has both too; within one boot
//! of the machine it has another device.
//!
//! Deliberately absent: reading and writing, which each daemon does for itself.

use crate::diagnostic::{Code, Diagnostic};
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The file below a state directory that names it.
pub const FILE: &str = "etc/directory";

/// A state directory as the file system knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryIdentity {
    /// Its inode.
    pub inode: u64,
    /// When it was made, in nanoseconds since the epoch; `None` where the file system does not keep
    /// that.
    pub born_ns: Option<u128>,
    /// The device that it is on, which is valid within one boot.
    pub device: u64,
    /// The boot of the machine in which that was.
    pub boot: String,
    /// Its path, for people.
    pub path: String,
}

/// The relation of a directory to the one that its file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// It is the named directory, perhaps moved.
    Same,
    /// It has the same inode on another device in the same boot: mounted again, or a snapshot
    /// beside its original.
    OtherDevice,
    /// It is another directory with the same content.
    Copy,
}

impl DirectoryIdentity {
    /// The directory at `path` as it is now.
    pub fn from_metadata(path: &Path, metadata: &Metadata, boot: &str) -> Self {
        let born = metadata
            .created()
            .ok()
            .and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        Self {
            inode: metadata.ino(),
            // Images of file systems are made with the epoch as the birth of everything.
            born_ns: born.map(|born| born.as_nanos()).filter(|born| *born > 0),
            device: metadata.dev(),
            boot: boot.to_owned(),
            path: path.display().to_string(),
        }
    }

    /// Parses the content of [`FILE`]. `None` means that it is damaged.
    pub fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Some(Self {
            inode: value("inode")?.parse().ok()?,
            born_ns: value("born_ns").and_then(|born| born.parse().ok()),
            device: value("device")?.parse().ok()?,
            boot: value("boot")?.to_owned(),
            path: value("path")?.to_owned(),
        })
    }

    /// Returns the relation of the directory `now` to `self`, which its file names.
    pub fn kinship(&self, now: &Self) -> Kinship {
        let is_born_then = match (self.born_ns, now.born_ns) {
            (Some(then), Some(now)) => then == now,
            (None, _) | (_, None) => true,
        };
        if self.inode != now.inode || !is_born_then {
            return Kinship::Copy;
        }
        let is_on_another = self.boot == now.boot && self.device != now.device;
        if is_on_another {
            Kinship::OtherDevice
        } else {
            Kinship::Same
        }
    }

    /// The refusal to run in `dir`, whose file says `text`, where that makes it a copy. Without the
    /// rights to look at the processes of others, a snapshot beside its original is taken for the
    /// original: its launcher knows better.
    pub fn refusal_in(dir: &Path, metadata: &Metadata, text: &str) -> Option<Diagnostic> {
        let recorded = Self::parse(text)?;
        let is_copy = recorded.kinship(&Self::from_metadata(dir, metadata, "")) == Kinship::Copy;
        is_copy.then(|| recorded.refusal(dir))
    }

    /// The refusal to run anything in `dir`, whose file says `self`.
    pub fn refusal(&self, dir: &Path) -> Diagnostic {
        let shown = dir.display();
        let fix = if dir.join("etc/master.toml").exists() {
            format!(
                "if the original is gone: gridwright up --dir {shown} --as-original; to bring the copy up as a cell of its \
                 own beside it: gridwright up --dir {shown} --as-copy, and none of its jobs runs there until qmod -e '*'"
            )
        } else {
            format!(
                "if the original is gone: gridwright up --dir {shown} --as-original; else let the copy join under a name of \
                 its own: gridwright join MASTER --token-file FILE --dir {shown}"
            )
        };
        let what = "error: the directory is a copy: its running jobs, its port and its keys belong to the original";
        let why = format!(
            "{FILE} names {} (inode {}), and this is another directory",
            self.path, self.inode
        );
        Diagnostic::new(Code::WrongState, what)
            .at(shown.to_string())
            .why(why)
            .fix(fix)
    }
}

impl fmt::Display for DirectoryIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            inode,
            born_ns,
            device,
            boot,
            path,
        } = self;
        writeln!(
            f,
            "# Names the directory that holds this file. The daemons refuse to run in a copy of it. Do not edit."
        )?;
        writeln!(f, "inode {inode}")?;
        if let Some(born) = born_ns {
            writeln!(f, "born_ns {born}")?;
        }
        writeln!(f, "device {device}\nboot {boot}\npath {}", path.replace('\n', "?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> DirectoryIdentity {
        DirectoryIdentity {
            inode: 7,
            born_ns: Some(10),
            device: 3,
            boot: "b1".into(),
            path: "/a b".into(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let unborn = DirectoryIdentity {
            born_ns: None,
            ..original()
        };
        for identity in [original(), unborn] {
            assert_eq!(DirectoryIdentity::parse(&identity.to_string()), Some(identity));
        }
        for damaged in ["", "inode 7\n", "inode x\ndevice 3\nboot b1\npath /a\n"] {
            assert_eq!(DirectoryIdentity::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_directory_that_was_moved_is_the_same_and_a_copy_is_not() {
        let check = |now: DirectoryIdentity, expected| assert_eq!(original().kinship(&now), expected, "{now:?}");
        check(original(), Kinship::Same);
        check(
            DirectoryIdentity {
                path: "/c".into(),
                ..original()
            },
            Kinship::Same,
        );
        check(
            DirectoryIdentity {
                inode: 8,
                born_ns: Some(11),
                ..original()
            },
            Kinship::Copy,
        );
        check(
            DirectoryIdentity {
                born_ns: Some(11),
                ..original()
            },
            Kinship::Copy,
        );
        check(
            DirectoryIdentity {
                inode: 8,
                born_ns: None,
                ..original()
            },
            Kinship::Copy,
        );
        check(
            DirectoryIdentity {
                born_ns: None,
                ..original()
            },
            Kinship::Same,
        );
        check(
            DirectoryIdentity {
                device: 4,
                ..original()
            },
            Kinship::OtherDevice,
        );
        check(
            DirectoryIdentity {
                device: 4,
                boot: "b2".into(),
                ..original()
            },
            Kinship::Same,
        );
    }

    #[test]
    fn a_directory_of_the_file_system_is_the_same_twice() {
        let dir = std::env::temp_dir();
        let now = || DirectoryIdentity::from_metadata(&dir, &dir.metadata().unwrap(), "b1");
        assert_eq!(now().kinship(&now()), Kinship::Same);
    }
}
