//! Accounting records beside the log: written with the event that holds them, found again by job
//! and place.
//!
//! A row holds those of a run of events; which rows have some of a job is in a table of its own.

use super::log::{RUN_EVENTS, run};
use super::room::Room;
use super::{Store, StoreError, signed};
use master_core::event::Record;
use proto::accounting::AccountingRecord;
use proto::id::EventSeq;
use proto::wire::frame::encode;
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use serde_bytes::ByteBuf;
use std::borrow::Borrow;

/// A record with the event it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingRow {
    /// The event.
    pub seq: EventSeq,
    /// The record.
    pub record: AccountingRecord,
}

/// Records that cannot be read: those of one row, or one alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The last event of the row, or the event of the record.
    pub seq: EventSeq,
    /// The jobs whose records they are.
    pub jobs: Vec<u32>,
    /// The damage.
    pub why: String,
}

/// The files that follow the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountingFormat {
    /// accounting(5)
    Classic,
    /// A JSON object per line.
    JsonLines,
}

/// How far an accounting file is known to hold the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountingCursor {
    /// The event whose record was written last.
    pub seq: EventSeq,
    /// The length of the file with it.
    pub bytes: u64,
    /// The file's inode: another one is a file that somebody put in its place.
    pub inode: u64,
}

/// One record as it is stored: the event, the number of the job, the record in MessagePack with
/// named fields.
pub(super) type StoredRecord = (u64, u32, ByteBuf);

/// The rows behind an event.
pub(super) const SELECT: &str = "SELECT last, body FROM ends WHERE last > ?1 ORDER BY last";

/// Stores the records among the events of a run; most runs of a cell that does little have none.
pub(super) fn insert_run<R: Borrow<Record>>(db: &Connection, room: &mut Room, run: &[R]) -> rusqlite::Result<()> {
    let end = |record: &R| {
        let record = record.borrow();
        record
            .event
            .accounting()
            .map(|end| (record.seq.0, end.job_number.0, ByteBuf::from(encode(end))))
    };
    insert(db, room, &run.iter().filter_map(end).collect::<Vec<_>>())
}

/// Stores records as one row, encoded in `room`.
pub(super) fn insert(db: &Connection, room: &mut Room, ends: &[StoredRecord]) -> rusqlite::Result<()> {
    let Some(&(last, ..)) = ends.last() else { return Ok(()) };
    debug_assert!(ends.len() <= RUN_EVENTS);
    db.prepare_cached("INSERT INTO ends VALUES (?1, ?2)")?
        .execute(params![signed(last), room.row(&ends)])?;
    let mut jobs: Vec<u32> = ends.iter().map(|(_, job, _)| *job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let mut of_job = db.prepare_cached("INSERT INTO ends_of_job VALUES (?1, ?2)")?;
    jobs.into_iter()
        .try_for_each(|job| of_job.execute(params![job, signed(last)]).map(drop))
}

/// A walk over the stored records in the order of their events.
pub(super) struct StoredRecords<'a> {
    store: &'a Store,
    rows: Rows<'a>,
    row: std::vec::IntoIter<StoredRecord>,
    next: Option<StoredRecord>,
}

impl<'a> StoredRecords<'a> {
    /// Over the rows of a statement of `(last, body)`.
    pub(super) fn new(store: &'a Store, rows: Rows<'a>) -> Self {
        Self {
            store,
            rows,
            row: Vec::new().into_iter(),
            next: None,
        }
    }

    /// The record of that event, which lies behind those that were asked for before.
    pub(super) fn record_of(&mut self, seq: EventSeq) -> Result<Option<ByteBuf>, StoreError> {
        while self.next.as_ref().is_none_or(|(found, ..)| *found < seq.0) {
            self.next = self.step()?;
            if self.next.is_none() {
                return Ok(None);
            }
        }
        Ok(self
            .next
            .take_if(|(found, ..)| *found == seq.0)
            .map(|(.., record)| record))
    }

    /// The next record.
    fn step(&mut self) -> Result<Option<StoredRecord>, StoreError> {
        loop {
            if let Some(end) = self.row.next() {
                return Ok(Some(end));
            }
            let failed = |source| self.store.failed("read accounting records from", source);
            let Some(row) = self.rows.next().map_err(failed)? else {
                return Ok(None);
            };
            self.row = run(row, "accounting records").map_err(failed)??.into_iter();
        }
    }
}

/// The record of a row's entry.
fn decoded((seq, job, body): StoredRecord) -> Result<AccountingRow, Damage> {
    let damage = |error: rmp_serde::decode::Error| Damage {
        seq: EventSeq(seq),
        jobs: vec![job],
        why: error.to_string(),
    };
    rmp_serde::from_slice(&body)
        .map(|record| AccountingRow {
            seq: EventSeq(seq),
            record,
        })
        .map_err(damage)
}

impl Store {
    /// Gives every record behind the event `after` to `each`, oldest first, until it says false.
    /// With a job number, those of that job alone. In the place of records that are damaged it gets
    /// what is known about them, and the walk goes on.
    ///
    /// # Errors
    /// `Database`.
    pub fn accounting(
        &self,
        after: EventSeq,
        job_number: Option<u32>,
        mut each: impl FnMut(Result<AccountingRow, Damage>) -> bool,
    ) -> Result<(), StoreError> {
        let failed = |source| self.failed("read accounting records from", source);
        let by_job = "SELECT last, body FROM ends_of_job JOIN ends USING (last) \
                      WHERE last > ?1 AND job_number = ?2 ORDER BY last";
        let mut statement = self
            .db
            .prepare(if job_number.is_some() { by_job } else { SELECT })
            .map_err(failed)?;
        let rows = match job_number {
            Some(job) => statement.query(params![signed(after.0), job]),
            None => statement.query([signed(after.0)]),
        };
        let mut rows = rows.map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let goes_on = match run::<StoredRecord>(row, "accounting records").map_err(failed)? {
                Ok(ends) => ends
                    .into_iter()
                    .filter(|(seq, number, _)| *seq > after.0 && job_number.is_none_or(|job| job == *number))
                    .all(|end| each(decoded(end))),
                Err(damaged) => {
                    let seq = row.get::<_, i64>(0).map_err(failed)?.unsigned_abs();
                    each(Err(self.damage(seq, &damaged)?))
                }
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Returns the jobs of a row of records that cannot be read.
    fn damage(&self, last: u64, why: &StoreError) -> Result<Damage, StoreError> {
        let jobs = self.run("read accounting records from", |db| {
            let mut select = db.prepare("SELECT job_number FROM ends_of_job WHERE last = ?1 ORDER BY job_number")?;
            select.query_map([signed(last)], |row| row.get(0))?.collect()
        })?;
        let why = if let StoreError::DamagedRun { why, .. } = why {
            why.to_string()
        } else {
            why.to_string()
        };
        Ok(Damage {
            seq: EventSeq(last),
            jobs,
            why,
        })
    }

    /// How far an accounting file was written when that was last noted.
    ///
    /// # Errors
    /// `Database`.
    pub fn accounting_cursor(&self, format: AccountingFormat) -> Result<AccountingCursor, StoreError> {
        let read = |row: &Row<'_>| {
            Ok(AccountingCursor {
                seq: EventSeq(row.get::<_, i64>(0)?.unsigned_abs()),
                bytes: row.get::<_, i64>(1)?.unsigned_abs(),
                inode: row.get::<_, i64>(2)?.cast_unsigned(),
            })
        };
        let table = table(format);
        let cursor = self.run("read", |db| {
            if !db.table_exists(None, table)? {
                return Ok(None);
            }
            let sql = format!("SELECT seq, bytes, inode FROM {table}");
            db.query_row(&sql, [], read).optional()
        })?;
        Ok(cursor.unwrap_or_default())
    }

    /// Notes how far an accounting file is durable. The table of the file of JSON lines is made
    /// with its first note: releases before that file ignore the table.
    ///
    /// # Errors
    /// `Database`.
    pub fn keep_accounting_cursor(&self, format: AccountingFormat, cursor: AccountingCursor) -> Result<(), StoreError> {
        let AccountingCursor { seq, bytes, inode } = cursor;
        let table = table(format);
        self.run("write to", |db| {
            if format == AccountingFormat::JsonLines {
                db.execute_batch(JSON_LINES_TABLE)?;
            }
            let sql = format!("INSERT OR REPLACE INTO {table} VALUES (1, ?1, ?2, ?3)");
            db.execute(&sql, params![signed(seq.0), signed(bytes), inode.cast_signed()])
        })?;
        Ok(())
    }
}

/// How far the file of JSON lines has been written.
const JSON_LINES_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS accounting_json_lines (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, bytes INTEGER NOT NULL, inode INTEGER NOT NULL
    ) STRICT;
";

fn table(format: AccountingFormat) -> &'static str {
    match format {
        AccountingFormat::Classic => "accounting_file",
        AccountingFormat::JsonLines => "accounting_json_lines",
    }
}
