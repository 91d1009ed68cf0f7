//! Whether the launcher's directory is the one that its records belong to.
//!
//! A launcher ends what is left of tasks whose shepherds are dead, by the keys in its records. In a
//! copy of the directory those are the keys of tasks that run, whose shepherds hold locks on other
//! directories. So nothing is started in a copy until it was made a directory of its own, and that
//! drops every task of it without looking for a process.

use crate::task_dir::TASKS;
use proto::directory::{DirectoryIdentity, FILE, Kinship};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The draft of the file, renamed once it is complete.
const DRAFT: &str = "etc/directory.new";

/// Refuses a directory that is a copy. The present directory is `folder`, the launcher's.
///
/// # Errors
/// The refusal with its remedy, or the file cannot be read.
pub fn refuse_copy(folder: &Path, boot: &str) -> io::Result<()> {
    let Some(recorded) = read()? else { return Ok(()) };
    let is_copy = match recorded.kinship(&now(folder, boot)?) {
        Kinship::Same => false,
        // The launcher and the shepherds of the original work in its directory.
        Kinship::OtherDevice => is_in_use(recorded.device, recorded.inode),
        Kinship::Copy => true,
    };
    if is_copy {
        Err(io::Error::other(recorded.refusal(folder).to_string()))
    } else {
        Ok(())
    }
}

/// Records which directory this is, unless that is on record. Called with the launcher's lock held.
///
/// # Errors
/// Errors of the file system.
pub fn record(folder: &Path, boot: &str) -> io::Result<()> {
    if !Path::new(FILE).parent().is_some_and(Path::is_dir) {
        // No cell was made here, so nobody copies one.
        return Ok(());
    }
    loop {
        let present = now(folder, boot)?;
        if read()?.as_ref() == Some(&present) {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW);
        match fs::remove_file(DRAFT) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = options.open(DRAFT)?;
        file.write_all(present.to_string().as_bytes())?;
        file.sync_all()?;
        // In an overlay the first write may give the directory another time of birth: then it is
        // written once more.
        fs::rename(DRAFT, FILE)?;
    }
}

/// Makes a copy a directory of its own: its tasks are dropped, and no process is looked for.
///
/// # Errors
/// Errors of the file system.
pub fn adopt(folder: &Path, boot: &str) -> io::Result<()> {
    for entry in fs::read_dir(TASKS)? {
        let entry = entry?;
        // The tree is root's. Neither of the two follows a link.
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?
        } else {
            fs::remove_file(entry.path())?
        }
    }
    record(folder, boot)
}

fn now(folder: &Path, boot: &str) -> io::Result<DirectoryIdentity> {
    Ok(DirectoryIdentity::from_metadata(folder, &fs::metadata(".")?, boot))
}

/// Reads the recorded directory. A damaged file counts as absent, as in a cell of an earlier
/// release.
fn read() -> io::Result<Option<DirectoryIdentity>> {
    let text = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(FILE) {
        Ok(file) => io::read_to_string(file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io::Error::new(error.kind(), format!("{FILE}: {error}"))),
    };
    Ok(DirectoryIdentity::parse(&text))
}

/// Whether another process works in a directory.
fn is_in_use(device: u64, inode: u64) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    let me = Some(std::process::id());
    let others = processes.flatten().filter(|process| {
        let pid = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        pid.is_some() && pid != me
    });
    let works_there = |process: &fs::DirEntry| {
        fs::metadata(process.path().join("cwd")).is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == (device, inode))
    };
    let mut others = others;
    others.any(|process| works_there(&process))
}
