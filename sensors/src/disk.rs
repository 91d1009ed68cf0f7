//! Free space of the file systems that hold given directories.

use crate::error::{FactError, read_text};
use proto::id::AttributeName;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use sysinfo::{DiskRefreshKind, Disks};

/// Space of one file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub total_bytes: u64,
    /// What an ordinary user may still write.
    pub free_bytes: u64,
}

/// A directory whose file system's free space is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWatch {
    /// The load value that carries the free space.
    pub name: AttributeName,
    /// The directory.
    pub directory: PathBuf,
}

/// The space of one watched directory.
#[derive(Debug)]
pub struct Answer {
    /// The load value that carries it.
    pub name: AttributeName,
    /// The space, or why it is not known.
    pub space: Result<Space, FactError>,
}

/// Asks for space on a thread of its own: a file system whose server is away holds up that thread
/// and nobody else.
///
/// The thread ends with the watcher, or once the file system answers.
#[derive(Debug)]
pub struct Watcher {
    requests: Sender<()>,
    answers: Receiver<Vec<Answer>>,
    /// Whether a request is unanswered.
    is_asked: bool,
}

impl Watcher {
    /// A watcher of `disks`.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub fn new(disks: Vec<DiskWatch>) -> std::io::Result<Self> {
        let ((requests, asked), (answer, answers)) = (channel(), channel());
        let work = move || {
            while asked.recv().is_ok() {
                let spaces = disks.iter().map(|disk| Answer {
                    name: disk.name.clone(),
                    space: read_space(&disk.directory),
                });
                if answer.send(spaces.collect()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("disk space".to_owned()).spawn(work)?;
        Ok(Self {
            requests,
            answers,
            is_asked: false,
        })
    }

    /// The space of every directory; `None` where the answer takes longer than `patience`. A late
    /// answer is given to the next caller.
    pub fn ask(&mut self, patience: Duration) -> Option<Vec<Answer>> {
        if !self.is_asked {
            self.requests.send(()).ok()?;
            self.is_asked = true;
        }
        let answer = self.answers.recv_timeout(patience).ok()?;
        self.is_asked = false;
        Some(answer)
    }
}

/// The space of the file system that holds `directory` on this host.
///
/// NFS and CIFS are never asked, because a server that is away would hang the caller. Other file
/// systems may hang it too, and all mounted ones are looked at: call this where that does no harm,
/// as [`Watcher`] does.
///
/// # Errors
/// Where the mounts cannot be read, or the file system is one that is not asked.
pub fn read_space(directory: &Path) -> Result<Space, FactError> {
    let mounts = parse_mounts(&read_text(Path::new("/"), "proc/self/mounts")?);
    let place = holding(&mounts, directory).ok_or_else(|| FactError::form("/proc/self/mounts", "no root"))?;
    let disks = Disks::new_with_refreshed_list_specifics(DiskRefreshKind::nothing().with_storage());
    let mut disks = disks.map_err(|e| FactError::form("list of disks", format!("{e:?}")))?;
    // Where one place was mounted over twice, the later mount is the visible one.
    let disk = disks.iter_mut().rev().find(|disk| disk.mount_point() == place);
    let disk =
        disk.ok_or_else(|| FactError::form("file system", format!("{} is not asked for its space", place.display())))?;
    Ok(Space {
        total_bytes: disk.total_space(),
        free_bytes: disk.available_space(),
    })
}

/// The mount points in the text of `/proc/self/mounts`, in the order in which they were mounted.
pub fn parse_mounts(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(|field| PathBuf::from(unescape(field)))
        .collect()
}

/// The mount point that holds `directory`: the deepest one on its path.
pub fn holding<'a>(mounts: &'a [PathBuf], directory: &Path) -> Option<&'a Path> {
    let on_the_path = mounts.iter().filter(|mount| directory.starts_with(mount));
    on_the_path
        .max_by_key(|mount| mount.components().count())
        .map(PathBuf::as_path)
}

/// Blanks and backslashes in mount points are written as three octal digits, see getmntent(3).
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deepest_mount_on_the_path_holds_a_directory() {
        let mounts = parse_mounts(
            "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/my\\040disk ext4 rw 0 0\nproc /proc proc rw 0 0\n",
        );
        let cases = [
            ("/tmp", "/tmp"),
            ("/tmpfile", "/"),
            ("/tmp/a/b", "/tmp"),
            ("/tmp/my disk/x", "/tmp/my disk"),
            ("/", "/"),
        ];
        for (directory, expected) in cases {
            assert_eq!(
                holding(&mounts, Path::new(directory)),
                Some(Path::new(expected)),
                "{directory}"
            );
        }
        assert_eq!(holding(&[], Path::new("/tmp")), None);
    }

    #[test]
    fn a_watcher_answers_for_every_directory_and_can_be_asked_again() {
        let watch = |name: &str| DiskWatch {
            name: name.into(),
            directory: PathBuf::from("/tmp"),
        };
        let mut watcher = Watcher::new(vec![watch("a"), watch("b")]).unwrap();
        for _ in 0..2 {
            let answers = watcher.ask(Duration::from_secs(60)).unwrap();
            let names: Vec<_> = answers.iter().map(|answer| answer.name.as_str()).collect();
            assert_eq!(names, ["a", "b"]);
        }
    }

    #[test]
    fn this_host_can_say_how_much_space_its_temporary_directory_has() {
        match read_space(Path::new("/tmp")) {
            Ok(space) => assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes),
            // A container may keep /tmp on a file system that is never asked.
            Err(error) => assert!(matches!(error, FactError::Form { .. }), "{error}"),
        }
    }
}
