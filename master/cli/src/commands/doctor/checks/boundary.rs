//! What keeps users, daemons and root apart: keys, directories and accounts.

use crate::commands::doctor::finding::Finding;
use crate::daemons::Daemon;
use crate::{accounts, keys};
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// The bit of a directory in which everybody may remove only what is his own.
const STICKY: u32 = 0o1000;

/// The examinations.
pub fn all(dir: &Path) -> Vec<Finding> {
    let mut findings = private_keys(dir);
    findings.push(directory(dir));
    findings.extend(shared_accounts(dir));
    findings
}

fn private_keys(dir: &Path) -> Vec<Finding> {
    let open = keys::open_to_others(dir);
    if open.is_empty() {
        return vec![Finding::fine("keys", "private keys are readable by their owners alone")];
    }
    let bad = |key: &keys::OpenKey| {
        let found = format!(
            "{} has rights {:o}: others can read it and act as its owner",
            key.path.display(),
            key.mode
        );
        let fix = format!(
            "chmod 600 {}, or gridwright up --dir {} --detach; if somebody may have read it, join again",
            key.path.display(),
            dir.display()
        );
        Finding::bad("keys", found, fix)
    };
    open.iter().map(bad).collect()
}

/// Checks the directories on the way: an account that can rename one can replace the cell by
/// another.
fn directory(dir: &Path) -> Finding {
    let whole = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let owner = std::fs::metadata(&whole).map_or(0, |found| found.uid());
    let is_open = |place: &&Path| {
        let Ok(found) = std::fs::metadata(place) else {
            return false;
        };
        let is_anybodys = found.mode() & WRITABLE != 0 && (found.mode() & STICKY == 0 || *place == whole);
        (found.uid() != 0 && found.uid() != owner) || is_anybodys
    };
    match whole.ancestors().find(is_open) {
        None => Finding::fine(
            "access",
            format!("{} can be changed by its owner alone", whole.display()),
        ),
        Some(place) => {
            let found = format!("others than root and the cell's owner can change {}", place.display());
            let fix = format!(
                "chown root {0}; chmod go-w {0}; or move the cell elsewhere",
                place.display()
            );
            Finding::bad("access", found, fix)
        }
    }
}

/// Two cells whose daemons have the same uids: one that is broken into has the other one, too.
fn shared_accounts(dir: &Path) -> Option<Finding> {
    let uids = accounts::daemon_uids(dir)?;
    let own = [dir.to_owned(), std::fs::canonicalize(dir).ok()?];
    // The daemons of this cell may have been started by a path through a link.
    let pids = [Daemon::Master, Daemon::Agent].map(|daemon| daemon.pid(dir).map(|pid| pid.to_string()));
    let is_own = |entry: &DirEntry| pids.iter().flatten().any(|pid| entry.file_name().to_str() == Some(pid));
    let processes = std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter(|entry| !is_own(entry));
    let others: BTreeSet<PathBuf> = processes.filter_map(|entry| cell_of(&entry.path(), &uids)).collect();
    let other = others.into_iter().find(|other| !own.contains(other))?;
    let found = format!(
        "the cell in {} has the same uids: an attacker who controls one cell's daemons controls both",
        other.display()
    );
    Some(Finding::fine("accounts", found))
}

/// The directory of the cell whose daemon a process is, if it runs under one of these uids. The
/// process wrote its command line itself: root does not look at the path that is named there.
fn cell_of(process: &Path, uids: &[u32]) -> Option<PathBuf> {
    let uid = std::fs::metadata(process).ok()?.uid();
    if !uids.contains(&uid) {
        return None;
    }
    let line = std::fs::read(process.join("cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).skip_while(|word| *word != b"--dir");
    let dir = words.nth(1)?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(dir)))
}
