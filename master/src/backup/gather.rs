//! What goes into a backup: small files, which are read by descriptor because other accounts own
//! their directories, and a copy of the database.

use super::{ArchivedFile, BackupError, DATABASE};
use crate::digest::Hasher;
use crate::layout::Layout;
use crate::store::Store;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The most bytes of one file but the database.
pub const SMALL_BYTES: u64 = 1 << 20;

/// The most files of `etc`.
pub const SETTINGS_FILES: usize = 256;

/// Files of `etc` that belong to one directory on one machine.
const OF_THE_MACHINE: [&str; 2] = ["directory", "accounts.toml"];

/// Files of the host's own agent.
pub const HOST_FILES: [&str; 3] = ["ca.crt", "host.crt", "host.key"];

/// Files of the master beside its database.
pub const CELL_FILES: [&str; 5] = ["ca.crt", "ca.key", "master.crt", "master.key", "tickets.key"];

/// Whether `etc/NAME` goes into a backup, and out of one.
pub fn is_setting(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.starts_with('.') && !name.is_empty() && name.bytes().all(is_plain) && !OF_THE_MACHINE.contains(&name)
}

/// A file with its content.
pub struct SmallFile {
    /// Its path below the cell's directory.
    pub path: String,
    /// Its content.
    pub content: Vec<u8>,
    mode: u32,
    uid: u32,
}

impl SmallFile {
    /// Its entry in the manifest.
    pub fn describe(&self) -> ArchivedFile {
        let mut hasher = Hasher::new();
        hasher.write_all(&self.content).expect("memory takes all");
        ArchivedFile {
            path: self.path.clone(),
            mode: self.mode,
            uid: self.uid,
            bytes: self.content.len() as u64,
            sha256: hasher.finish(),
        }
    }
}

/// The settings in `etc`.
///
/// # Errors
/// One cannot be read, or is not an ordinary file.
pub fn settings(layout: &Layout) -> Result<Vec<SmallFile>, BackupError> {
    let place = layout.etc("");
    let listed = std::fs::read_dir(&place).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<Vec<_>>>()
    });
    let mut names = listed.map_err(unreadable(&place))?;
    names.retain(|name| is_setting(name));
    names.sort();
    if names.len() > SETTINGS_FILES {
        let why = io::Error::other(format!("it holds more than {SETTINGS_FILES} files"));
        return Err(unreadable(&place)(why));
    }
    folder(layout, "etc", names.iter().map(String::as_str))
}

/// The certificate and key of the agent on the master's host, where there is one.
///
/// # Errors
/// One cannot be read.
pub fn host_identity(layout: &Layout) -> Result<Vec<SmallFile>, BackupError> {
    folder(layout, "agent", HOST_FILES)
}

/// The keys and certificates of the cell.
///
/// # Errors
/// One cannot be read.
pub fn cell_identity(layout: &Layout) -> Result<Vec<SmallFile>, BackupError> {
    folder(layout, "master", CELL_FILES)
}

/// Files of a directory; those that do not exist are left out.
fn folder<'a>(
    layout: &Layout,
    name: &str,
    files: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<SmallFile>, BackupError> {
    let place = layout.dir().join(name);
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&place);
    let folder = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(unreadable(&place))?,
    };
    let mut read = Vec::new();
    for file in files {
        match small(&folder, name, file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            outcome => read.push(outcome.map_err(unreadable(&place.join(file)))?),
        }
    }
    Ok(read)
}

/// Reads a file below an open directory. Its owner could put anything there: nothing is followed or
/// waited for, and nobody else's file is read through a second name.
fn small(folder: &File, place: &str, name: &str) -> io::Result<SmallFile> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    let (found, owner) = (file.metadata()?, folder.metadata()?.uid());
    if !found.is_file() || found.nlink() != 1 || found.uid() != owner {
        return Err(io::Error::other(
            "it is not an ordinary file of the owner of its directory",
        ));
    }
    let mut content = Vec::new();
    (&file).take(SMALL_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > SMALL_BYTES {
        return Err(io::Error::other(format!("it has more than {SMALL_BYTES} bytes")));
    }
    Ok(SmallFile {
        path: format!("{place}/{name}"),
        content,
        mode: found.mode() & 0o777,
        uid: found.uid(),
    })
}

/// A copy of the database, beside it, which is removed in the end.
pub struct DatabaseCopy {
    path: PathBuf,
}

impl DatabaseCopy {
    /// Makes it. Copies that an interrupted backup left behind go.
    ///
    /// # Errors
    /// The database cannot be read, or the disk has no room for a second one.
    pub fn new(layout: &Layout) -> Result<Self, BackupError> {
        remove_old(layout);
        let copy = Self {
            path: layout.master(&format!("backup-{}.db", std::process::id())),
        };
        // Made before SQLite opens it, so that it is never seen with other rights.
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&copy.path);
        made.map_err(|source| BackupError::Unwritable {
            path: copy.path.clone(),
            source,
        })?;
        Store::open_to_read(&layout.database())?.copy_to(&copy.path)?;
        Ok(copy)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its entry in the manifest.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn describe(&self) -> Result<ArchivedFile, BackupError> {
        let mut hasher = Hasher::new();
        let file = File::open(&self.path).map_err(unreadable(&self.path))?;
        let bytes = io::copy(&mut &file, &mut hasher).map_err(unreadable(&self.path))?;
        Ok(ArchivedFile {
            path: DATABASE.to_owned(),
            mode: 0o600,
            uid: file.metadata().map_err(unreadable(&self.path))?.uid(),
            bytes,
            sha256: hasher.finish(),
        })
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn remove_old(layout: &Layout) {
    let Ok(entries) = std::fs::read_dir(layout.master("")) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix("backup-").and_then(|name| name.split('.').next());
        let is_gone = |process: &str| {
            process.bytes().all(|byte| byte.is_ascii_digit()) && !Path::new("/proc").join(process).exists()
        };
        if process.is_some_and(is_gone) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Unreadable { path, source }
}
