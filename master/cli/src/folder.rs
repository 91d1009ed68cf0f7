//! Directories of a cell, reached by descriptors.
//!
//! Root works in directories that daemons own. What is opened, written, given away or removed here
//! is found below an open directory, never through a symbolic link, and a file is judged after it
//! was opened.

use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, unlinkat};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// The most that is read of a file: certificates, keys, pids and settings are far smaller.
const READ_MAX: u64 = 1 << 20;

/// An open directory.
#[derive(Debug)]
pub struct Folder {
    handle: File,
}

impl Folder {
    /// Opens a directory; links on the way to it count, one at its end does not.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = open(path, directory_flags(), Mode::empty())?;
        Ok(Self { handle: handle.into() })
    }

    /// Opens a directory below a cell's, one name after the other. The cell's directory itself may
    /// be reached by a link, nothing below it may.
    ///
    /// # Errors
    /// Errors of the file system; `ELOOP` or `ENOTDIR` for a link below the cell's directory.
    pub fn below(cell: &Path, names: &[&str]) -> io::Result<Self> {
        names
            .iter()
            .try_fold(Self::open(&cell.join("."))?, |folder, name| folder.enter(name))
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// Errors of the file system; `ELOOP` or `ENOTDIR` for a link.
    pub fn enter(&self, name: &str) -> io::Result<Self> {
        let handle = openat(&self.handle, name, directory_flags(), Mode::empty())?;
        Ok(Self { handle: handle.into() })
    }

    /// Makes a directory in this one, unless the name is taken, and opens it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn make(&self, name: &str, mode: u32) -> io::Result<Self> {
        match mkdirat(&self.handle, name, Mode::from_bits_truncate(mode)) {
            Err(errno) if errno != nix::errno::Errno::EEXIST => return Err(errno.into()),
            Ok(()) | Err(_) => {}
        }
        self.enter(name)
    }

    /// The open directory itself, for locks.
    pub fn handle(&self) -> &File {
        &self.handle
    }

    /// The uid of its owner.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.handle.metadata()?.uid())
    }

    /// Checks that the directory is this user's and that nobody else makes names there.
    ///
    /// # Errors
    /// The owner or the rights are wrong.
    pub fn check_ours(&self) -> io::Result<()> {
        self.check_owner()?;
        if self.handle.metadata()?.mode() & WRITABLE != 0 {
            return Err(foreign("others than its owner can write to the directory".to_owned()));
        }
        Ok(())
    }

    /// Checks that the directory is this user's.
    ///
    /// # Errors
    /// The directory belongs to somebody else.
    pub fn check_owner(&self) -> io::Result<()> {
        let uid = self.owner()?;
        if uid == geteuid().as_raw() {
            Ok(())
        } else {
            Err(foreign(format!("the directory belongs to uid {uid}")))
        }
    }

    /// Sets owner, group and rights of the directory; what is so already is not touched.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn give(&self, uid: u32, gid: u32, mode: u32) -> io::Result<()> {
        give_file(&self.handle, uid, gid)?;
        let found = self.handle.metadata()?.mode() & 0o7777;
        if found == mode {
            Ok(())
        } else {
            self.handle.set_permissions(Permissions::from_mode(mode))
        }
    }

    /// Opens a regular file to read it. It never waits, as for a named pipe.
    ///
    /// # Errors
    /// Errors of the file system, and if it is not a regular file.
    pub fn file(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlag::O_RDONLY, 0)
    }

    /// Opens a regular file to append to it; it is made if it is missing.
    ///
    /// # Errors
    /// Errors of the file system, and if it is not a regular file with one name.
    pub fn append(&self, name: &str, mode: u32) -> io::Result<File> {
        let file = self.open_file(name, OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT, mode)?;
        if file.metadata()?.nlink() == 1 {
            Ok(file)
        } else {
            Err(foreign("the file has several names".to_owned()))
        }
    }

    fn open_file(&self, name: &str, flags: OFlag, mode: u32) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.handle, name, flags, Mode::from_bits_truncate(mode))?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(foreign("it is not a regular file".to_owned()))
        }
    }

    /// The text of a regular file.
    ///
    /// # Errors
    /// Errors of the file system, and if it is not a regular file.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(name)?.take(READ_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Puts a file in place in one step.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let draft = format!(".{name}.new");
        self.remove(&draft)?;
        let mut file = self.open_file(&draft, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL, mode)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        self.rename(&draft, name)
    }

    /// Renames a file, a link or a directory in this one.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file or a link. A file that is not there is not an error.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::errno::Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether a name is there, whatever it is.
    pub fn has(&self, name: &str) -> bool {
        self.facts(name).is_ok()
    }

    /// The facts about a name, which is not opened; of a link, its own.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn facts(&self, name: &str) -> io::Result<FileStat> {
        Ok(fstatat(&self.handle, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// The names in the directory.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// Gives an open file to an account, unless it has it already.
///
/// # Errors
/// Errors of the file system.
pub fn give_file(file: &File, uid: u32, gid: u32) -> io::Result<()> {
    let found = file.metadata()?;
    if (found.uid(), found.gid()) == (uid, gid) {
        return Ok(());
    }
    Ok(fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
}

fn directory_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn foreign(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A directory with a file `victim` beside the folder; gone with it.
    struct VictimFolder(PathBuf);

    impl VictimFolder {
        fn new(name: &str) -> (Self, Folder) {
            let dir = std::env::temp_dir().join(format!("gridwright-cli-folder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(dir.join("below")).unwrap();
            std::fs::write(dir.join("victim"), "kept").unwrap();
            let folder = Folder::open(&dir.join("below")).unwrap();
            (Self(dir), folder)
        }
    }

    impl VictimFolder {
        fn below(&self, name: &str) -> PathBuf {
            self.0.join("below").join(name)
        }
    }

    impl Drop for VictimFolder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn nothing_is_read_or_written_through_a_link() {
        let (place, folder) = VictimFolder::new("links");
        for name in ["mark", ".mark.new"] {
            symlink("../victim", place.below(name)).unwrap();
        }
        assert!(folder.read("mark").is_err() && folder.append("mark", 0o644).is_err());
        folder.write("mark", "new", 0o644).unwrap();
        assert_eq!(folder.read("mark").unwrap(), "new");
        assert_eq!(std::fs::read_to_string(place.0.join("victim")).unwrap(), "kept");
    }

    #[test]
    fn a_second_name_of_a_file_is_not_appended_to() {
        let (place, folder) = VictimFolder::new("names");
        std::fs::hard_link(place.0.join("victim"), place.below("log")).unwrap();
        assert!(folder.append("log", 0o644).is_err());
    }

    #[test]
    fn a_named_pipe_is_refused_and_never_waited_for() {
        let (place, folder) = VictimFolder::new("pipe");
        nix::unistd::mkfifo(&place.below("host.key"), Mode::from_bits_truncate(0o600)).unwrap();
        assert!(folder.read("host.key").is_err());
    }

    #[test]
    fn a_link_is_not_entered() {
        let (place, folder) = VictimFolder::new("enter");
        symlink("..", place.below("run")).unwrap();
        assert!(folder.enter("run").is_err() && folder.make("run", 0o755).is_err());
        assert!(Folder::open(&place.below("run")).is_err());
        assert!(Folder::below(&place.0, &["below", "run", "below"]).is_err());
        symlink("..", place.below("cell")).unwrap();
        assert!(Folder::below(&place.below("cell"), &["below"]).is_ok());
    }
}
