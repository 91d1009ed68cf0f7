//! The directory of one daemon below `run/`, reached by a descriptor.
//!
//! No write here follows a symbolic link or goes into a file that is already there. Who may make
//! names in the directory could otherwise send a write anywhere.

use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// An open directory that belongs to the user of this process, and in which nobody else makes
/// names.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    path: PathBuf,
}

impl Folder {
    /// Opens the directory; it is made if it is missing.
    ///
    /// # Errors
    /// If it cannot be made, is not a directory, or belongs to another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o755).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        let handle = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
        let mode = handle.metadata()?.mode();
        check_owner(&handle)?;
        if mode & WRITABLE != 0 {
            handle.set_permissions(Permissions::from_mode(mode & 0o777 & !WRITABLE))?;
        }
        Ok(Self {
            handle,
            path: path.to_owned(),
        })
    }

    /// The open directory.
    pub fn handle(&self) -> &File {
        &self.handle
    }

    /// The path of a file, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A path through the descriptor. It is short enough for a socket's name wherever the directory
    /// is.
    pub fn short_path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd()))
    }

    /// Opens a lock file, which is made if it is missing. Only its owner can open it: a lock needs
    /// no more than a descriptor, so a file that others may read could be locked by all of them.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a regular file of this user with one name.
    pub fn open_lock(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.handle, name, flags, Mode::from_bits_truncate(0o600))?);
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 || found.uid() != geteuid().as_raw() {
            return Err(foreign("it is not a regular file of this user with one name"));
        }
        if found.mode() & 0o777 != 0o600 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }

    /// Puts a file in place in one step.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let draft = format!(".{name}.new");
        self.remove(&draft)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(
            &self.handle,
            draft.as_str(),
            flags,
            Mode::from_bits_truncate(mode),
        )?);
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        Ok(renameat(&self.handle, draft.as_str(), &self.handle, name)?)
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
}

/// Checks that a directory belongs to the user of this process and that nobody else makes names
/// there.
///
/// # Errors
/// The owner or the rights are wrong.
pub fn check_owned(handle: &File) -> io::Result<()> {
    check_owner(handle)?;
    if handle.metadata()?.mode() & WRITABLE == 0 {
        Ok(())
    } else {
        Err(foreign("others than its owner can write there"))
    }
}

fn check_owner(handle: &File) -> io::Result<()> {
    let uid = handle.metadata()?.uid();
    if uid == geteuid().as_raw() {
        Ok(())
    } else {
        Err(foreign(&format!("the directory belongs to uid {uid}")))
    }
}

fn foreign(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
}

/// Writes the pid and start time of this process and the inode of the lock into the lock. Pid and
/// start time (clock ticks since boot) together name one process for ever. The lock in a copy of
/// the directory has another inode.
///
/// # Errors
/// If `/proc` is not there, or the file cannot be written.
pub fn note_holder(lock: &File) -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Field 22 of proc_pid_stat(5); the name in brackets may hold blanks.
    let start = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(19));
    let start = start.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat has no start time"))?;
    let text = format!("{} {start} {}\n", std::process::id(), lock.metadata()?.ino());
    // Over the old text: a file that is emptied first may get no new block on a full disk.
    lock.write_all_at(text.as_bytes(), 0)?;
    lock.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory with a file `victim` beside the folder; gone with it.
    struct VictimFolder(PathBuf);

    impl VictimFolder {
        fn new(name: &str) -> (Self, Folder) {
            let dir = std::env::temp_dir().join(format!("gridwright-folder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("victim"), "kept").unwrap();
            let folder = Folder::open(&dir.join("run")).unwrap();
            (Self(dir), folder)
        }

        fn victim(&self) -> String {
            std::fs::read_to_string(self.0.join("victim")).unwrap()
        }
    }

    impl Drop for VictimFolder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_write_replaces_links_and_never_goes_through_them() {
        let (place, folder) = VictimFolder::new("write");
        symlink("../victim", folder.path("pid")).unwrap();
        symlink("../victim", folder.path(".pid.new")).unwrap();
        folder.write("pid", "7\n", 0o644).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path("pid")).unwrap(), "7\n");
        std::fs::hard_link(place.0.join("victim"), folder.path("ready")).unwrap();
        folder.write("ready", "7\n", 0o644).unwrap();
        assert_eq!(place.victim(), "kept");
    }

    #[test]
    fn a_lock_is_its_owners_alone_and_never_a_link() {
        let (place, folder) = VictimFolder::new("lock");
        std::fs::write(folder.path("lock"), "").unwrap();
        std::fs::set_permissions(folder.path("lock"), Permissions::from_mode(0o644)).unwrap();
        let file = folder.open_lock("lock").unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        symlink("../victim", folder.path("linked")).unwrap();
        std::fs::hard_link(place.0.join("victim"), folder.path("second-name")).unwrap();
        for name in ["linked", "second-name"] {
            assert!(folder.open_lock(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_folder_is_never_a_link_and_nobody_else_writes_there() {
        let (place, folder) = VictimFolder::new("open");
        std::fs::set_permissions(folder.path(""), Permissions::from_mode(0o777)).unwrap();
        Folder::open(&place.0.join("run")).unwrap();
        assert_eq!(std::fs::metadata(folder.path("")).unwrap().mode() & 0o777, 0o755);
        symlink("run", place.0.join("link")).unwrap();
        assert!(Folder::open(&place.0.join("link")).is_err());
    }
}
