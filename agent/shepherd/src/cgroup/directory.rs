//! One directory of a hierarchy of control groups, held open.

use super::CGROUPS;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// How deep groups are removed. A job that is root in a group of its own may have made some.
const MAX_DEPTH: u32 = 16;

/// A control group.
#[derive(Debug)]
pub struct GroupDirectory {
    handle: OwnedFd,
    path: PathBuf,
}

impl GroupDirectory {
    /// Opens a group by its absolute path. Below the hierarchy's own directory no link is followed:
    /// the hierarchies of the first version have links among their own directories.
    ///
    /// # Errors
    /// There is no such directory, or a link is on the way to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (top, below) = split(path)?;
        let handle = nix::fcntl::open(&top, flags() & !OFlag::O_NOFOLLOW, Mode::empty())?;
        let mut found = GroupDirectory { handle, path: top };
        for part in below {
            found = found.child(&part)?;
        }
        Ok(found)
    }

    /// Opens the group of this name below this one.
    ///
    /// # Errors
    /// There is none.
    pub fn child(&self, name: &str) -> io::Result<Self> {
        let handle = openat(self.handle.as_fd(), name, flags(), Mode::empty())?;
        Ok(GroupDirectory {
            handle,
            path: self.path.join(name),
        })
    }

    /// Makes a group below this one.
    ///
    /// # Errors
    /// It is there already, or the host refuses.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        mkdirat(self.handle.as_fd(), name, Mode::from_bits_truncate(0o755))?;
        self.child(name)
    }

    /// Removes the group of this name below this one, with the empty groups in it. A group that has
    /// processes stays.
    pub fn remove(&self, name: &str) {
        self.remove_down_to(name, MAX_DEPTH);
    }

    /// Removes the group of this name below this one, if it has neither processes nor groups.
    pub fn remove_empty(&self, name: &str) {
        // A group that is in use stays.
        let _ = unlinkat(self.handle.as_fd(), name, UnlinkatFlags::RemoveDir);
    }

    fn remove_down_to(&self, name: &str, depth: u32) {
        let remove = || unlinkat(self.handle.as_fd(), name, UnlinkatFlags::RemoveDir);
        if remove().is_ok() || depth == 0 {
            return;
        }
        if let Ok(child) = self.child(name) {
            for inner in child.names() {
                child.remove_down_to(&inner, depth - 1);
            }
            // One that is not empty yet stays; its name is never used again.
            let _ = remove();
        }
    }

    /// The names of the groups below this one.
    pub fn names(&self) -> Vec<String> {
        use nix::dir::{Dir, Type};
        let readable = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let Ok(mut entries) = Dir::openat(self.handle.as_fd(), ".", readable, Mode::empty()) else {
            return Vec::new();
        };
        let is_group = |entry: &nix::dir::Entry| entry.file_type() == Some(Type::Directory);
        let names = entries.iter().flatten().filter(is_group);
        names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name != "." && name != "..")
            .collect()
    }

    /// The directory, for people and records.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open directory.
    pub fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Whether the kernel offers a file in this group.
    pub fn has(&self, file: &str) -> bool {
        self.open_file(file, OFlag::O_PATH).is_ok()
    }

    /// Reads a file of the group; `None` where the kernel does not offer it.
    pub fn read(&self, file: &str) -> Option<String> {
        let mut text = String::new();
        let mut opened = self.open_file(file, OFlag::O_RDONLY).ok()?;
        opened.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Reads a file that holds one number; `None` also for `max`.
    pub fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    /// Reads the number behind a name in a file of names and numbers.
    pub fn entry(&self, file: &str, name: &str) -> Option<u64> {
        let text = self.read(file)?;
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    /// Writes a value into a file of the group. A file that the kernel does not offer is not made.
    ///
    /// # Errors
    /// There is no such file, or the kernel refuses the value.
    pub fn write(&self, file: &str, value: impl Display) -> io::Result<()> {
        self.open_file(file, OFlag::O_WRONLY)?
            .write_all(value.to_string().as_bytes())
    }

    fn open_file(&self, file: &str, access: OFlag) -> io::Result<File> {
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(self.handle.as_fd(), file, flags, Mode::empty())?.into())
    }

    /// Moves this process, with all its threads, into the group.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn enter(&self) -> io::Result<()> {
        self.write("cgroup.procs", 0)
    }
}

fn flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// The directory that may be reached by a link, and the names below it.
fn split(path: &Path) -> io::Result<(PathBuf, Vec<String>)> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidInput, format!("{}: not absolute", path.display()));
    let (mut top, rest) = match path.strip_prefix(CGROUPS) {
        Ok(rest) => (PathBuf::from(CGROUPS), rest),
        Err(_) => (PathBuf::from("/"), path.strip_prefix("/").map_err(|_| refuse())?),
    };
    let mut names = Vec::new();
    for part in rest.components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                return Err(refuse());
            }
        }
    }
    if top == Path::new(CGROUPS) && !names.is_empty() {
        top.push(names.remove(0));
    }
    Ok((top, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn no_link_is_followed_and_no_file_is_made() {
        let base = std::env::temp_dir().join(format!("gridwright-group-directory-{}", std::process::id()));
        fs::create_dir_all(base.join("real/inner")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        std::os::unix::fs::symlink("../victim", base.join("real/memory.max")).unwrap();
        fs::write(base.join("victim"), "kept").unwrap();
        assert!(GroupDirectory::open(&base.join("link")).is_err());
        assert!(GroupDirectory::open(&base.join("link/inner")).is_err());
        let real = GroupDirectory::open(&base.join("real")).unwrap();
        assert!(real.write("memory.max", 5).is_err());
        assert!(real.read("memory.max").is_none());
        assert!(real.write("cpu.weight", 5).is_err());
        assert!(!base.join("real/cpu.weight").exists());
        assert_eq!(fs::read_to_string(base.join("victim")).unwrap(), "kept");
        assert_eq!(real.names(), ["inner"]);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_group_goes_with_the_empty_groups_in_it() {
        let base = std::env::temp_dir().join(format!("gridwright-group-removal-{}", std::process::id()));
        fs::create_dir_all(base.join("task/a/b")).unwrap();
        let parent = GroupDirectory::open(&base).unwrap();
        parent.remove_empty("task");
        assert!(base.join("task/a/b").exists(), "a group in it is in use");
        parent.remove("task");
        assert!(!base.join("task").exists());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn paths_that_leave_the_hierarchies_are_refused() {
        for path in ["sys/fs/cgroup", "/sys/fs/cgroup/../x", ""] {
            assert!(split(Path::new(path)).is_err(), "{path}");
        }
        let (top, names) = split(Path::new("/sys/fs/cgroup/cpu/gw")).unwrap();
        assert_eq!((top, names), ("/sys/fs/cgroup/cpu".into(), vec!["gw".to_owned()]));
    }
}
