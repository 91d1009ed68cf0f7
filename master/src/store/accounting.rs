//! Accounting records beside the log: written with the event that holds them, found again by job, name, owner and time.

use super::{Store, StoreError, signed};
use proto::accounting::AccountingRecord;
use proto::id::EventSeq;
use rusqlite::{OptionalExtension, Row, Statement, params};

/// A record with the event it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingRow {
    /// The event.
    pub seq: EventSeq,
    /// The record.
    pub record: AccountingRecord,
}

/// How far the classic accounting file is known to hold the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountingCursor {
    /// The event whose record was written last.
    pub seq: EventSeq,
    /// The length of the file with it.
    pub bytes: u64,
    /// The file's inode: another one is a file that somebody put in its place.
    pub inode: u64,
}

/// Stores the record of an event, which `body` has in bytes.
pub(super) fn insert(
    statement: &mut Statement<'_>,
    seq: EventSeq,
    record: &AccountingRecord,
    body: &[u8],
) -> rusqlite::Result<()> {
    let AccountingRecord { job_number, job_name, owner, started, .. } = record;
    statement.execute(params![signed(seq.0), job_number.0, job_name, owner.as_str(), started.0, body])?;
    Ok(())
}

impl Store {
    /// Gives every record behind the event `after` to `each`, oldest first, until it says false. With a job number, those of
    /// that job alone.
    ///
    /// # Errors
    /// `Damaged` if a record cannot be read; `Database`.
    pub fn accounting(
        &self,
        after: EventSeq,
        job_number: Option<u32>,
        mut each: impl FnMut(AccountingRow) -> bool,
    ) -> Result<(), StoreError> {
        let failed = |source| self.failed("read accounting records from", source);
        let by_job = "SELECT seq, body FROM accounting WHERE seq > ?1 AND job_number = ?2 ORDER BY seq";
        let all = "SELECT seq, body FROM accounting WHERE seq > ?1 AND ?2 IS NULL ORDER BY seq";
        let mut statement = self.db.prepare(if job_number.is_some() { by_job } else { all }).map_err(failed)?;
        let mut rows = statement.query(params![signed(after.0), job_number]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (seq, body) = columns(row).map_err(failed)?;
            let damaged = |why| StoreError::Damaged { seq, kind: "accounting record".to_owned(), why };
            let record = rmp_serde::from_slice(&body).map_err(|error| damaged(error.to_string()))?;
            if !each(AccountingRow { seq: EventSeq(seq), record }) {
                break;
            }
        }
        Ok(())
    }

    /// How far the accounting file was written when that was last noted.
    ///
    /// # Errors
    /// `Database`.
    pub fn accounting_cursor(&self) -> Result<AccountingCursor, StoreError> {
        let read = |row: &Row<'_>| {
            Ok(AccountingCursor {
                seq: EventSeq(row.get::<_, i64>(0)?.unsigned_abs()),
                bytes: row.get::<_, i64>(1)?.unsigned_abs(),
                inode: row.get::<_, i64>(2)?.cast_unsigned(),
            })
        };
        let sql = "SELECT seq, bytes, inode FROM accounting_file";
        Ok(self.run("read", |db| db.query_row(sql, [], read).optional())?.unwrap_or_default())
    }

    /// Notes how far the accounting file is durable.
    ///
    /// # Errors
    /// `Database`.
    pub fn keep_accounting_cursor(&self, cursor: AccountingCursor) -> Result<(), StoreError> {
        let AccountingCursor { seq, bytes, inode } = cursor;
        let sql = "INSERT OR REPLACE INTO accounting_file VALUES (1, ?1, ?2, ?3)";
        self.run("write to", |db| db.execute(sql, params![signed(seq.0), signed(bytes), inode.cast_signed()]))?;
        Ok(())
    }
}

fn columns(row: &Row<'_>) -> rusqlite::Result<(u64, Vec<u8>)> {
    Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
}
