//! Scripts of jobs that are too long to lie in memory and in the log: a row for each content,
//! whoever submitted it and however often.
//!
//! Rows come and go in the transaction of the events that need them or no longer do. A row that an
//! interrupted master left behind is found at the next start.

use super::damage::RowDamage;
use super::room::{self, Room};
use super::{Store, StoreError};
use proto::job::ScriptDigest;
use rusqlite::{Connection, OptionalExtension, params};
use serde_bytes::{ByteBuf, Bytes};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A row is a script, known by its SHA-256. What a body is, [`room`] says.
pub(super) const TABLE: &str =
    "CREATE TABLE scripts (digest BLOB PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;";

/// Pages that are given back to the file system at a time: 4 MiB, about 10 ms.
const PAGES_GIVEN_BACK: u32 = 256;

/// Changes to stored scripts that belong to the same commit as events.
#[derive(Debug, Default)]
pub struct ScriptChanges {
    /// Scripts of jobs that were submitted.
    pub kept: Vec<(ScriptDigest, Arc<[u8]>)>,
    /// Scripts that no job has any more.
    pub dropped: Vec<ScriptDigest>,
}

impl ScriptChanges {
    pub(super) fn apply(&self, db: &Connection, room: &mut Room) -> rusqlite::Result<()> {
        for (digest, body) in &self.kept {
            let mut insert = db.prepare_cached("INSERT OR IGNORE INTO scripts VALUES (?1, ?2)")?;
            insert.execute(params![&digest.0[..], room.row(&Bytes::new(body))])?;
        }
        for digest in &self.dropped {
            db.prepare_cached("DELETE FROM scripts WHERE digest = ?1")?
                .execute(params![&digest.0[..]])?;
        }
        Ok(())
    }
}

/// The name of a script: its SHA-256.
pub fn script_digest(content: &[u8]) -> ScriptDigest {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    ScriptDigest(bytes)
}

impl Store {
    /// Returns the content of a script. `None` means that it is not stored.
    ///
    /// # Errors
    /// `Database`; `DamagedScript` if its bytes are not those that its name says.
    pub fn script(&self, digest: &ScriptDigest) -> Result<Option<Arc<[u8]>>, StoreError> {
        let row: Option<Vec<u8>> = self.run("read a script from", |db| {
            let mut select = db.prepare_cached("SELECT body FROM scripts WHERE digest = ?1")?;
            select.query_row(params![&digest.0[..]], |row| row.get(0)).optional()
        })?;
        let Some(row) = row else { return Ok(None) };
        let content = room::content(&row).and_then(|content| Ok(rmp_serde::from_slice::<ByteBuf>(&content)?));
        match content {
            Ok(content) if script_digest(&content) == *digest => Ok(Some(Arc::from(content.into_vec()))),
            Ok(_) => Err(StoreError::DamagedScript {
                why: RowDamage::OtherChecksum,
            }),
            Err(why) => Err(StoreError::DamagedScript { why }),
        }
    }

    /// The scripts that are there.
    ///
    /// # Errors
    /// `Database`.
    pub fn scripts(&self) -> Result<BTreeSet<ScriptDigest>, StoreError> {
        self.run("read scripts from", |db| {
            let mut select = db.prepare("SELECT digest FROM scripts")?;
            let digests = select.query_map([], |row| row.get::<_, [u8; 32]>(0).map(ScriptDigest))?;
            digests.collect()
        })
    }

    /// Drops scripts apart from any event: those that an interrupted master left behind.
    ///
    /// # Errors
    /// `Database`.
    pub fn drop_scripts(&mut self, dropped: Vec<ScriptDigest>) -> Result<(), StoreError> {
        let changes = ScriptChanges {
            kept: Vec::new(),
            dropped,
        };
        let work = |db: &mut Connection, room: &mut Room| {
            let transaction = db.transaction()?;
            changes.apply(&transaction, room)?;
            transaction.commit()
        };
        work(&mut self.db, &mut self.room).map_err(|source| self.failed("drop scripts from", source))
    }

    /// Gives some of the pages that nothing uses back to the file system. Returns whether there are
    /// more.
    ///
    /// A database that an earlier version made gives nothing back, and uses such pages again.
    ///
    /// # Errors
    /// `Database`.
    pub fn give_back(&self) -> Result<bool, StoreError> {
        self.run("give back room of", |db| {
            let is_incremental = db.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, u32>(0))? == 2;
            let unused = || db.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0));
            if !is_incremental || unused()? < PAGES_GIVEN_BACK {
                return Ok(false);
            }
            // Each step of the statement gives one page back.
            let mut vacuum = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES_GIVEN_BACK})"))?;
            let mut rows = vacuum.query([])?;
            while rows.next()?.is_some() {}
            Ok(unused()? >= PAGES_GIVEN_BACK)
        })
    }
}
