//! `gridwright-master check`: replays a log, best a copy of one, before a new version is trusted
//! with it.

use crate::digest::digest;
use crate::layout::Layout;
use crate::replay::{ReplayedState, replay, replay_all};
use crate::store::{Store, StoreError};
use nix::unistd::{Gid, Uid};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Root goes on with the rights of the owner of the database: SQLite makes files beside it, by name
/// and in a directory where that account could have made links.
///
/// # Errors
/// `Account`.
pub fn become_owner(dir: &Path) -> Result<(), StoreError> {
    let Ok(found) = std::fs::symlink_metadata(dir.join("master")) else {
        return Ok(());
    };
    if !nix::unistd::geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    let become_it = || {
        nix::unistd::setgroups(&[])?;
        nix::unistd::setgid(Gid::from_raw(found.gid()))?;
        nix::unistd::setuid(Uid::from_raw(found.uid()))
    };
    become_it().map_err(|errno| StoreError::Account {
        uid: found.uid(),
        source: errno.into(),
    })
}

/// Replays the log twice, from the newest snapshot and from the first event, and says what was
/// found.
///
/// # Errors
/// An event that this version cannot read, or root cannot give up its rights: see [`StoreError`].
pub fn check(dir: &Path) -> Result<String, StoreError> {
    become_owner(dir)?;
    let store = Store::open_to_read(&Layout::new(dir).database())?;
    let ReplayedState {
        state,
        snapshot,
        events,
        passed_over,
    } = replay(&store)?;
    let mut report = String::new();
    for line in &passed_over {
        report.push_str(&format!("passed over: {line}\n"));
    }
    report.push_str(&format!(
        "cell {:016x}: {} events replayed behind the snapshot after event {}, the last is event {}\n",
        state.cell.0, events, snapshot.0, state.last.0
    ));
    if snapshot.0 > 0 {
        match replay_all(&store) {
            Ok(whole) if whole.state == state => report.push_str("the whole log gives the same state\n"),
            Ok(_) => report.push_str("WARNING: the whole log gives another state than the snapshot; report this\n"),
            Err(StoreError::Gap { expected: 1, found }) => {
                report.push_str(&format!(
                    "the log begins with event {found}: what came before was trimmed\n"
                ));
            }
            Err(error) => return Err(error),
        }
    }
    report.push_str(&format!("state {}\n", digest(&state)));
    let tasks: u64 = state
        .jobs
        .values()
        .map(|job| u64::from(job.untouched.len()) + job.tasks.len() as u64)
        .sum();
    report.push_str(&format!(
        "{} jobs with {tasks} tasks, {} queue instances, {} hosts with certificates\n",
        state.jobs.len(),
        state.config.resolved.len(),
        state.certificates.len()
    ));
    Ok(report)
}
