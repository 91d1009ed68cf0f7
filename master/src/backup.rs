//! Backups: a whole cell in one file, written while it runs, and cells that are made from one.
//!
//! The file is a tar archive in an LZ4 frame. Its first entry is the [`Manifest`], which names the
//! others with their size and SHA-256, so that damage is found by name and before anything is
//! believed. What follows from the rest is not in it: the accounting file, logs, run-time files,
//! the tasks of the host, and the accounts of the daemons, which another machine has of its own.

pub mod archive;
mod gather;
pub mod restore;
#[cfg(test)]
mod tests;

use crate::check::become_owner;
use crate::config::ConfigError;
use crate::digest::digest;
use crate::init::InitError;
use crate::layout::Layout;
use crate::replay::{replay, replay_all};
use crate::store::{Store, StoreError};
use gather::DatabaseCopy;
use master_core::state::State;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The form of the archive.
pub const FORMAT: u32 = 1;

/// The name of the first entry.
pub const MANIFEST: &str = "manifest.json";

/// The database, in the cell's directory and in the archive.
pub const DATABASE: &str = "master/state.db";

/// What a backup says of itself and of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of the archive.
    pub format: u32,
    /// The version of Gridwright that wrote it.
    pub version: String,
    /// The cell, in hexadecimal.
    pub cell: String,
    /// The last event.
    pub last_event: u64,
    /// When it was written, in milliseconds since the epoch.
    pub written_ms: i64,
    /// The [`digest`] of the state after the last event. Other versions may have another one.
    pub state: String,
    /// The files behind the manifest, in their order.
    pub files: Vec<ArchivedFile>,
}

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedFile {
    /// Its path below the cell's directory.
    pub path: String,
    /// Its rights.
    pub mode: u32,
    /// The uid that owned it.
    pub uid: u32,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// No backup can be written, or none be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting of the cell.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory of the new cell.
    #[error(transparent)]
    Init(#[from] InitError),
    /// A file of the cell.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A file of the new cell.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The archive that is written.
    #[error("cannot write the backup")]
    NotWritten(#[source] io::Error),
    /// The log and its snapshot disagree.
    #[error(
        "the whole log gives another state than its newest snapshot: no backup of this cell can be trusted; report this"
    )]
    Diverged,
    /// The archive that is read.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// Bytes of the archive cannot be read.
    #[error("the backup is damaged, or cannot be read to its end")]
    Broken(#[source] io::Error),
    /// The directory is not free.
    #[error("{} is in use: {what} is there; name a new directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The name in it.
        what: String,
    },
    /// The moment that was asked for.
    #[error("the log of this backup holds no such moment: it begins with event {first} and ends with event {last}")]
    NoSuchMoment {
        /// Its first event.
        first: u64,
        /// Its last event.
        last: u64,
    },
}

/// What a database holds, by a replay of its log.
struct VerifiedState {
    state: State,
    digest: String,
}

/// Replays the log of a database twice: from its newest snapshot, and whole if nothing of it was
/// trimmed.
fn verify(store: &Store) -> Result<VerifiedState, BackupError> {
    let replayed = replay(store)?;
    if replayed.snapshot.0 > 0 && store.first()? == 1 && replay_all(store)?.state != replayed.state {
        return Err(BackupError::Diverged);
    }
    Ok(VerifiedState {
        digest: digest(&replayed.state),
        state: replayed.state,
    })
}

/// Writes a backup of the cell in `dir`, whose master may run. Returns what it holds, for people.
///
/// # Errors
/// As [`BackupError`]; what was written then is no backup.
pub fn backup(dir: &Path, to: impl Write, now_ms: i64) -> Result<String, BackupError> {
    let layout = Layout::new(dir);
    // The files of root and of the agent first, while we may read them.
    let mut files = gather::settings(&layout)?;
    files.extend(gather::host_identity(&layout)?);
    become_owner(dir)?;
    files.extend(gather::cell_identity(&layout)?);
    let copy = DatabaseCopy::new(&layout)?;
    let VerifiedState { state, digest } = verify(&Store::open_to_read(copy.path())?)?;
    let mut archived = vec![copy.describe()?];
    archived.extend(files.iter().map(gather::SmallFile::describe));
    let manifest = Manifest {
        format: FORMAT,
        version: version::line("gridwright-master"),
        cell: format!("{:016x}", state.cell.0),
        last_event: state.last.0,
        written_ms: now_ms,
        state: digest,
        files: archived,
    };
    archive::write(to, &manifest, &copy, &files).map_err(BackupError::NotWritten)?;
    Ok(format!(
        "cell {}: {} jobs after event {}, {} files; state {}",
        manifest.cell,
        state.jobs.len(),
        manifest.last_event,
        manifest.files.len(),
        manifest.state
    ))
}
