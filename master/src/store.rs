//! The database of a cell: event log, snapshots, accounting records (ARCHITECTURE.md "Storage").
//!
//! One thread writes the log: [`Store::append`] is one transaction for a whole batch, durable when
//! it returns, and the accounting records of the batch are in it. Snapshots are written by the
//! reader thread through a [`Store`] of its own; SQLite lets one write at a time. What an event
//! means is deliberately not known here.

mod accounting;
mod codec;
mod damage;
mod full;
#[cfg(test)]
mod golden;
mod log;
mod point;
mod room;
mod scripts;
mod snapshot;
#[cfg(test)]
mod tests;
mod upgrade;

pub use accounting::{AccountingCursor, AccountingFormat, AccountingRow, Damage};
#[cfg(test)]
pub(crate) use codec::KINDS as EVENT_KINDS;
pub use codec::{EventHead, UndecodedEvent};
pub use damage::{ForeignFile, RowDamage};
pub use full::probe_room;
pub use log::SelectLimits;
pub use scripts::{ScriptChanges, script_digest};

use proto::cell_version::CellVersion;
use room::Room;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use upgrade::OLD_VERSIONS;

/// The layout of the tables; a database of an older one is brought up to date, of another one
/// refused.
const SCHEMA_VERSION: i32 = 4;

/// `gwst` in the header of the file: what `file(1)` and we know the database by.
const APPLICATION_ID: i32 = 0x6777_7374;

/// How long a writer waits for the other one.
const BUSY: Duration = Duration::from_secs(30);

/// Bytes of a page in a new database. Each page that a commit changes is two writes, so larger ones
/// cost less where a commit holds many events.
const PAGE_BYTES: i32 = 16_384;

/// Bytes in the write-ahead log from which on it is worked into the database: a page that many
/// commits change is then written there once.
const WAL_BYTES: i32 = 32 << 20;

/// A row of `events` is a run of events that were made durable together, known by its last; one of
/// `ends` holds the accounting records among such a run, and `ends_of_job` says which rows have
/// some of a job. What a body is, [`room`] says.
const EVENT_TABLES: &str = "
    CREATE TABLE events (last INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
    CREATE TABLE ends (last INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
    CREATE TABLE ends_of_job (
        job_number INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (job_number, last)
    ) STRICT, WITHOUT ROWID;
";

/// A row of `snapshots` is a snapshot that is whole, and its bytes are those of its parts in order.
const SNAPSHOT_TABLES: &str = "
    CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, wall INTEGER NOT NULL) STRICT;
    CREATE TABLE snapshot_parts (
        seq INTEGER NOT NULL, part INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (seq, part)
    ) STRICT;
";

/// How far the accounting file has been written.
const FILE_TABLE: &str = "
    CREATE TABLE accounting_file (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, bytes INTEGER NOT NULL, inode INTEGER NOT NULL
    ) STRICT;
";

/// The database cannot be read or written, or holds what this version does not understand.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused, or the file system behind it.
    #[error("cannot {action} {}", path.display())]
    Database {
        /// What was tried.
        action: &'static str,
        /// The database.
        path: PathBuf,
        /// The reason.
        #[source]
        source: rusqlite::Error,
    },
    /// Root cannot go on with the rights of the database's owner.
    #[error("cannot go on as uid {uid}, the owner of the database")]
    Account {
        /// The owner.
        uid: u32,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is a database of something else, or of a version that this one does not know.
    #[error("{} is not a database of this version of Gridwright: {why}", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
        /// What was found.
        why: ForeignFile,
    },
    /// An event that this version does not know.
    #[error(
        "event {seq} is of kind {kind} version {version}, which this version of Gridwright does not know; start the version that wrote it, or put back a backup of its directory"
    )]
    UnknownEvent {
        /// Its place in the log.
        seq: u64,
        /// Its kind.
        kind: String,
        /// The version of its form.
        version: i64,
    },
    /// The cell has a version that this release does not know.
    #[error(
        "the cell has version {version}, and this release of Gridwright knows version {} at most; start the release that brought it there, or restore the backup that gridwright finalize made",
        CellVersion::NEWEST
    )]
    NewerCell {
        /// The version of the cell.
        version: CellVersion,
    },
    /// An event whose bytes are damaged.
    #[error(
        "event {seq} ({kind}) is damaged: {why}; put back a backup of its directory, whose log replays up to the event before it"
    )]
    Damaged {
        /// Its place in the log.
        seq: u64,
        /// Its kind.
        kind: String,
        /// The damage.
        why: RowDamage,
    },
    /// A run of events, or of accounting records, whose bytes are damaged.
    #[error(
        "the {of} up to that of event {last} are damaged: {why}; put back a backup of its directory, whose log replays up to them"
    )]
    DamagedRun {
        /// The last event of the run.
        last: u64,
        /// What they are.
        of: &'static str,
        /// What is wrong with them.
        why: RowDamage,
    },
    /// A script whose bytes are damaged.
    #[error("its bytes in the database are damaged: {why}")]
    DamagedScript {
        /// The damage.
        why: RowDamage,
    },
    /// A snapshot was begun and given up for want of room.
    #[error("no snapshot is written while the disk has little room")]
    SnapshotPutOff,
    /// Events are missing.
    #[error(
        "event {expected} is missing from the log, the next one there is {found}; put back a backup of its directory"
    )]
    Gap {
        /// The event that should come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
}

/// An open database.
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// Where runs are encoded.
    room: Room,
}

impl Store {
    /// Makes the database of a new cell.
    ///
    /// # Errors
    /// `Database`, also if there is one already.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        store.run("prepare", |db| {
            db.pragma_update(None, "page_size", PAGE_BYTES)?;
            // Room that scripts leave is given back, where [`Store::give_back`] asks for it.
            db.pragma_update(None, "auto_vacuum", "INCREMENTAL")
        })?;
        store.prepare()?;
        store.run("create tables in", |db| {
            db.execute_batch(&format!("BEGIN; {EVENT_TABLES} {SNAPSHOT_TABLES} {FILE_TABLE} {} PRAGMA user_version = {SCHEMA_VERSION}; PRAGMA application_id = {APPLICATION_ID}; COMMIT;", scripts::TABLE))
        })?;
        Ok(store)
    }

    /// Opens the database of a cell to read and write.
    ///
    /// # Errors
    /// `Database` if it is missing or unreadable, `Foreign` if it is something else.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let version = store.version()?;
        store.prepare()?;
        if version != SCHEMA_VERSION {
            store.upgrade(version, SCHEMA_VERSION)?;
        }
        Ok(store)
    }

    /// Opens it to read alone, beside those who write.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = store.version()?;
        if version != SCHEMA_VERSION {
            store.upgrade_to_read(version)?;
        }
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)
            .and_then(|db| db.busy_timeout(BUSY).map(|()| db))
            .map_err(|source| StoreError::Database {
                action: "open",
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            db,
            path: path.to_owned(),
            room: Room::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Write-ahead log, and a sync of it at the end of each transaction: what is committed survives
    /// a power cut.
    fn prepare(&self) -> Result<(), StoreError> {
        self.run("prepare", |db| {
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "FULL")?;
            let page_bytes: i32 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
            db.pragma_update(None, "wal_autocheckpoint", WAL_BYTES / page_bytes)
        })
    }

    /// The version of its tables, one of those that we know.
    fn version(&self) -> Result<i32, StoreError> {
        let pragma = |name| {
            self.run("read", |db| {
                db.pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            })
        };
        let foreign = |why| {
            Err(StoreError::Foreign {
                path: self.path.clone(),
                why,
            })
        };
        if pragma("application_id")? != APPLICATION_ID {
            return foreign(ForeignFile::OtherProgram);
        }
        match pragma("user_version")? {
            known if known == SCHEMA_VERSION || OLD_VERSIONS.contains(&known) => Ok(known),
            other => foreign(ForeignFile::OtherVersion(other)),
        }
    }

    fn run<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&self.db).map_err(|source| self.failed(action, source))
    }

    fn failed(&self, action: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Database {
            action,
            path: self.path.clone(),
            source,
        }
    }
}

/// SQLite's integers are signed; ours count from 0 and never come near the difference.
fn signed(number: u64) -> i64 {
    i64::try_from(number)
        .expect("sequence numbers and ticks stay below 2^63: a million a second would take 292,000 years")
}
