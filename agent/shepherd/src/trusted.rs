//! Programs that run with other rights than their requester has: procedures of root, and load
//! sensors.
//!
//! The path is walked once, one component at a time, with descriptors that follow no link by
//! themselves. Each directory, each link and the file itself must belong to an owner that is
//! trusted, and nobody else may write it. So the file that was checked is the one that is executed,
//! and only a trusted owner can exchange it.
//!
//! A binary is executed by its own descriptor. A script is opened a second time by its interpreter,
//! so it is executed by its name in the checked directory, which is kept as a descriptor: `$0` is
//! `/dev/fd/N/NAME`, and `$(dirname $0)` is still the directory with the files beside the script.

mod fault;

pub use fault::UntrustedFile;

use fault::TrustFault;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

/// The most links on the way to a file, as in path_resolution(7).
const MAX_LINKS: u32 = 40;

/// The beginning of a file in which its `#!` line is looked for, as long as the kernel's own.
const HEAD_BYTES: usize = 256;

/// A program that only trusted owners can have written, held open.
#[derive(Debug)]
pub struct TrustedFile {
    folder: OwnedFd,
    name: CString,
    file: OwnedFd,
    head: Vec<u8>,
}

/// The accounts that may write a directory on the way to a trusted file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    /// Only its owner makes names in it.
    Owner,
    /// Others do, too, but cannot take the names of others away (`/tmp`).
    Sticky,
}

impl TrustedFile {
    /// Opens the program at an absolute path that belongs, with every directory and link on the
    /// way, to one of `owners`.
    ///
    /// # Errors
    /// A file or directory on the way is not trusted, or the interpreter of a script is not.
    pub fn open(path: &str, owners: &[u32]) -> Result<Self, UntrustedFile> {
        let path = Path::new(path);
        let untrusted = |interpreter: Option<&Path>, fault| UntrustedFile {
            path: path.to_owned(),
            interpreter: interpreter.map(Path::to_owned),
            fault,
        };
        let found = walk(path, owners).map_err(|fault| untrusted(None, fault))?;
        let head = head_of(&found.file);
        if let Some(interpreter) = interpreter(&head).filter(|_| owners == [0]) {
            // The program of a `#!` line must be trusted as the script is.
            walk(interpreter, &[0]).map_err(|fault| untrusted(Some(interpreter), fault))?;
        }
        Ok(TrustedFile {
            folder: found.folder,
            name: found.name,
            file: found.file,
            head,
        })
    }

    /// Whether an interpreter opens the file by its name.
    pub fn is_script(&self) -> bool {
        self.head.starts_with(b"#!")
    }

    /// The file itself.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The directory that the file is in.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The name of the file in its directory; no link.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// The path by which an interpreter finds the file in the checked directory, while the
    /// descriptor of the directory is open.
    pub fn path_for_interpreter(&self) -> String {
        format!("/dev/fd/{}/{}", self.folder.as_raw_fd(), self.name.to_string_lossy())
    }
}

/// Reads a text file under the same conditions; `None` if there is no such file.
///
/// # Errors
/// A file or directory on the way is not trusted, or the file cannot be read.
pub fn read_text(path: &Path, owners: &[u32]) -> Result<Option<String>, UntrustedFile> {
    if path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    {
        return Ok(None);
    }
    let untrusted = |fault| UntrustedFile {
        path: path.to_owned(),
        interpreter: None,
        fault,
    };
    let found = walk(path, owners).map_err(untrusted)?;
    let mut text = String::new();
    // The link in /proc leads to the open file itself, whatever its name means by now.
    File::open(format!("/proc/self/fd/{}", found.file.as_raw_fd()))
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|error| untrusted(TrustFault::Unreadable(error)))?;
    Ok(Some(text))
}

struct OpenedFile {
    folder: OwnedFd,
    name: CString,
    file: OwnedFd,
}

fn walk(path: &Path, owners: &[u32]) -> Result<OpenedFile, TrustFault> {
    if !path.is_absolute() {
        return Err(TrustFault::Relative);
    }
    let hidden = |name: &Path| {
        let name = name.to_owned();
        move |errno| TrustFault::Hidden { name, errno }
    };
    let root = || nix::fcntl::open("/", folder_flags(), Mode::empty()).map_err(hidden(Path::new("/")));
    let mut rest = names(path);
    let mut folder = root()?;
    let mut writers = check_folder(&stat(&folder)?, owners, Path::new("/"))?;
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let shown = Path::new(&name);
        let found = openat(&folder, shown, flags, Mode::empty()).map_err(hidden(shown))?;
        let what = stat(&found)?;
        if kind(&what) == SFlag::S_IFLNK {
            check_owner(&what, owners, shown)?;
            links += 1;
            let target = readlinkat(&found, "").map_err(hidden(shown))?;
            if links > MAX_LINKS {
                return Err(TrustFault::System(Errno::ELOOP));
            }
            let target = Path::new(&target);
            if target.is_absolute() {
                folder = root()?;
                writers = check_folder(&stat(&folder)?, owners, Path::new("/"))?;
            }
            for name in names(target).into_iter().rev() {
                rest.push_front(name);
            }
            continue;
        }
        if rest.is_empty() {
            check_file(&what, owners, writers)?;
            let name = CString::new(name.into_vec()).map_err(TrustFault::Name)?;
            return Ok(OpenedFile {
                folder,
                name,
                file: found,
            });
        }
        writers = check_folder(&what, owners, shown)?;
        folder = found;
    }
    Err(TrustFault::IsDirectory)
}

/// The names on a path, `..` among them.
fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

fn folder_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC
}

fn stat(fd: &OwnedFd) -> Result<FileStat, TrustFault> {
    fstat(fd).map_err(TrustFault::System)
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn check_owner(stat: &FileStat, owners: &[u32], shown: &Path) -> Result<(), TrustFault> {
    if owners.contains(&stat.st_uid) {
        return Ok(());
    }
    Err(TrustFault::Owner {
        name: shown.to_owned(),
        uid: stat.st_uid,
        owners: owners.to_owned(),
    })
}

fn check_folder(stat: &FileStat, owners: &[u32], shown: &Path) -> Result<Writers, TrustFault> {
    if kind(stat) != SFlag::S_IFDIR {
        return Err(TrustFault::NotADirectory(shown.to_owned()));
    }
    check_owner(stat, owners, shown)?;
    let mode = Mode::from_bits_truncate(stat.st_mode);
    if !mode.intersects(Mode::S_IWGRP | Mode::S_IWOTH) {
        return Ok(Writers::Owner);
    }
    if mode.contains(Mode::S_ISVTX) {
        return Ok(Writers::Sticky);
    }
    Err(TrustFault::WritableDirectory(shown.to_owned()))
}

fn check_file(stat: &FileStat, owners: &[u32], folder: Writers) -> Result<(), TrustFault> {
    if kind(stat) != SFlag::S_IFREG {
        return Err(TrustFault::NotRegular);
    }
    check_owner(stat, owners, Path::new("the file"))?;
    if Mode::from_bits_truncate(stat.st_mode).intersects(Mode::S_IWGRP | Mode::S_IWOTH) {
        return Err(TrustFault::Writable);
    }
    // A name that is gone for a moment can be given to another file of the owner's by a hard link.
    if folder == Writers::Sticky {
        return Err(TrustFault::SharedDirectory);
    }
    Ok(())
}

/// The beginning of a program; empty for one that may be executed and not read.
fn head_of(file: &OwnedFd) -> Vec<u8> {
    let mut head = vec![0; HEAD_BYTES];
    let count = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).and_then(|mut file| file.read(&mut head));
    head.truncate(count.unwrap_or(0));
    head
}

/// The program of a `#!` line.
fn interpreter(head: &[u8]) -> Option<&Path> {
    let rest = head.strip_prefix(b"#!")?;
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let program = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .find(|word| !word.is_empty())
        .unwrap_or_default();
    Some(Path::new(std::ffi::OsStr::from_bytes(program)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("gridwright-trusted-{name}-{}", std::process::id()));
            fs::create_dir_all(folder.join("own")).expect("made");
            for folder in [folder.clone(), folder.join("own")] {
                fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("set");
            }
            fs::write(folder.join("own/tool"), "#!/bin/sh\n").expect("written");
            fs::set_permissions(folder.join("own/tool"), Permissions::from_mode(0o755)).expect("set");
            Folder(folder)
        }

        fn set_mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.0.join(name), Permissions::from_mode(mode)).expect("set");
        }

        fn open(&self, name: &str) -> Result<TrustedFile, String> {
            let own = nix::unistd::Uid::effective().as_raw();
            TrustedFile::open(&self.0.join(name).to_string_lossy(), &[0, own]).map_err(|error| error.to_string())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }

    #[test]
    fn a_program_is_found_through_links_and_dots_of_its_owners() {
        let folder = Folder::new("links");
        symlink("own/../own", folder.0.join("link")).expect("linked");
        symlink(folder.0.join("link/tool"), folder.0.join("tool")).expect("linked");
        for name in ["own/tool", "link/tool", "tool", "own/./../tool"] {
            let found = folder.open(name).expect(name);
            assert!(
                found.is_script() && found.path_for_interpreter().ends_with("/tool"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_others_can_write_is_refused_wherever_it_is_on_the_way() {
        let folder = Folder::new("writers");
        for (name, bad, good) in [
            ("own/tool", 0o775, 0o755),
            ("own/tool", 0o757, 0o755),
            ("own", 0o775, 0o755),
            ("", 0o757, 0o755),
        ] {
            folder.set_mode(name, bad);
            let refused = folder.open("own/tool").expect_err(name);
            assert!(refused.contains("others can write"), "{refused}");
            folder.set_mode(name, good);
            folder.open("own/tool").expect("as before");
        }
        folder.set_mode("own", 0o1777);
        assert!(
            folder
                .open("own/tool")
                .expect_err("shared")
                .contains("others can make files")
        );
        folder.set_mode("own", 0o755);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = Folder::new("kinds");
        symlink("loop", folder.0.join("loop")).expect("linked");
        for name in ["own", "loop", "missing", "own/tool/x"] {
            assert!(folder.open(name).is_err(), "{name}");
        }
        assert!(TrustedFile::open("bin/sh", &[0]).is_err());
    }

    #[test]
    fn what_another_user_owns_is_refused() {
        let folder = Folder::new("owners");
        let path = folder.0.join("own/tool");
        let refused = TrustedFile::open(&path.to_string_lossy(), &[u32::MAX - 1]).expect_err("nobody's");
        let refused = refused.to_string();
        assert!(refused.contains("belongs to uid 0"), "{refused}");
    }
}
