//! The log: a row holds a run of events that were made durable together, so that what SQLite does
//! for a row is done once for many.

use super::codec::{StoredEvent, UndecodedEvent};
use super::room::{self, Room};
use super::{ScriptChanges, Store, StoreError, accounting, signed};
use master_core::event::Record;
use proto::id::EventSeq;
use proto::time::Wall;
use rusqlite::{Connection, Row, Statement, TransactionBehavior, params};
use serde::{Serialize, Serializer};
use std::borrow::Borrow;

/// Events of one row at most: what is read to find one event, and a tenth of what the busiest
/// commit holds.
pub(super) const RUN_EVENTS: usize = 256;

/// How much of the log is read at once.
#[derive(Clone, Copy, Debug)]
pub struct SelectLimits {
    /// The most runs.
    pub runs: usize,
    /// The bytes of runs, as they are in memory, from which on no other run is read.
    pub bytes: usize,
}

/// Appends the events of one commit, which follow those that are there. Runs are encoded in `room`.
fn append<R: Borrow<Record>>(
    db: &mut Connection,
    room: &mut Room,
    records: &[R],
    scripts: &ScriptChanges,
) -> rusqlite::Result<Result<(), StoreError>> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut newest = transaction.prepare_cached("SELECT max(last) FROM events")?;
        let newest: Option<i64> = newest.query_row([], |row| row.get(0))?;
        let first = newest.map_or(records.first().map_or(0, |first| first.borrow().seq.0), |it| {
            it.unsigned_abs() + 1
        });
        for (expected, record) in (first..).zip(records) {
            let found = record.borrow().seq.0;
            if found != expected {
                return Ok(Err(StoreError::Gap { expected, found }));
            }
        }
        let mut events = transaction.prepare_cached(INSERT)?;
        for run in records.chunks(RUN_EVENTS) {
            insert(
                &mut events,
                room,
                run[run.len() - 1].borrow().seq.0,
                &EncodedEvents(run),
            )?;
            accounting::insert_run(&transaction, room, run)?;
        }
        scripts.apply(&transaction, room)?;
    }
    transaction.commit().map(Ok)
}

/// Stores a run in the table `events`, which [`insert`] fills.
pub(super) const INSERT: &str = "INSERT INTO events VALUES (?1, ?2)";

/// Stores a run whose last event is `last`, encoded in `room`.
pub(super) fn insert(
    statement: &mut Statement<'_>,
    room: &mut Room,
    last: u64,
    run: &impl Serialize,
) -> rusqlite::Result<()> {
    statement.execute(params![signed(last), room.row(run)])?;
    Ok(())
}

/// Events that are encoded one after the other.
struct EncodedEvents<'a, R>(&'a [R]);

impl<R: Borrow<Record>> Serialize for EncodedEvents<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|record| StoredEvent::encode(record.borrow())))
    }
}

impl Store {
    /// Appends events and the accounting records among them, all or none; they are durable when
    /// this returns.
    ///
    /// # Errors
    /// `Database`: the disk is full or gone; `Gap`: they do not follow the last event of the log.
    /// Nothing was appended.
    pub fn append<R: Borrow<Record>>(&mut self, records: &[R]) -> Result<(), StoreError> {
        self.append_with(records, &ScriptChanges::default())
    }

    /// Appends events, and keeps and drops the scripts that they are about, all or none.
    ///
    /// # Errors
    /// See [`Store::append`].
    pub fn append_with<R: Borrow<Record>>(&mut self, records: &[R], scripts: &ScriptChanges) -> Result<(), StoreError> {
        append(&mut self.db, &mut self.room, records, scripts).map_err(|source| self.failed("append to", source))?
    }

    /// Works the write-ahead log into the database as far as nobody reads it, so that its file has
    /// room again. Best effort: what does not succeed is tried again with a later commit.
    pub fn tidy(&self) {
        let _ = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// Gives every event behind `after` to `each`, in order. The first event that is to be read
    /// must be `after + 1`.
    ///
    /// # Errors
    /// `UnknownEvent`, `Damaged`, `Gap`; `Database` if the file cannot be read.
    pub fn replay(&self, after: EventSeq, mut each: impl FnMut(Record)) -> Result<(), StoreError> {
        self.replay_while(after, |record| {
            each(record);
            true
        })
    }

    /// Events behind `after`, at most `count`, in order.
    ///
    /// # Errors
    /// As [`Store::replay`]; `Gap` if the log no longer holds the first of them.
    pub fn read(&self, after: EventSeq, count: usize) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::with_capacity(count);
        self.replay_while(after, |record| {
            records.push(record);
            records.len() < count
        })?;
        Ok(records)
    }

    /// Gives the events of some kinds behind `after` to `each`, in order, out of the next runs of
    /// the log. Returns the last event that was looked at; `None` at the end of the log. One run is
    /// in memory at a time, and no event is decoded here. The kinds bring no accounting records.
    ///
    /// # Errors
    /// `DamagedRun`, and the errors of `each`; `Gap` if the event behind `after` was removed, where
    /// `after` is not 0; `Database` if the file cannot be read.
    pub fn select(
        &self,
        after: EventSeq,
        kinds: &[&str],
        limits: SelectLimits,
        mut each: impl FnMut(&UndecodedEvent<'_>) -> Result<(), StoreError>,
    ) -> Result<Option<EventSeq>, StoreError> {
        let failed = |source| self.failed("read events from", source);
        let mut statement = self
            .db
            .prepare("SELECT last, body FROM events WHERE last > ?1 ORDER BY last LIMIT ?2")
            .map_err(failed)?;
        let most_runs = i64::try_from(limits.runs).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![signed(after.0), most_runs]).map_err(failed)?;
        let (mut last, mut bytes) = (None, 0);
        while bytes < limits.bytes
            && let Some(row) = rows.next().map_err(failed)?
        {
            let of_row = row.get::<_, i64>(0).map_err(failed)?.unsigned_abs();
            let damaged = |why| StoreError::DamagedRun {
                last: of_row,
                of: "events",
                why,
            };
            let stored = row
                .get_ref(1)
                .map_err(failed)?
                .as_blob()
                .map_err(|error| failed(error.into()))?;
            let content = room::content(stored).map_err(damaged)?;
            let run: Vec<UndecodedEvent<'_>> =
                rmp_serde::from_slice(&content).map_err(|error| damaged(error.into()))?;
            bytes += content.len();
            for event in run.iter().filter(|event| event.head.seq > after) {
                let (before, found) = (last.unwrap_or(after), event.head.seq);
                if before.0 > 0 && found.0 != before.0 + 1 {
                    return Err(StoreError::Gap {
                        expected: before.0 + 1,
                        found: found.0,
                    });
                }
                last = Some(found);
                if kinds.contains(&event.kind) {
                    each(event)?;
                }
            }
        }
        Ok(last)
    }

    /// Returns the number and the time of the oldest event in the log; `None` if it is empty.
    ///
    /// # Errors
    /// `DamagedRun`; `Database` if the file cannot be read.
    pub fn oldest_event(&self) -> Result<Option<(EventSeq, Wall)>, StoreError> {
        let failed = |source| self.failed("read events from", source);
        let mut statement = self
            .db
            .prepare("SELECT last, body FROM events ORDER BY last LIMIT 1")
            .map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else {
            return Ok(None);
        };
        let events: Vec<StoredEvent<'static>> = run(row, "events").map_err(failed)??;
        Ok(events.first().map(|event| (EventSeq(event.seq), Wall(event.wall))))
    }

    /// Gives events to `each` for as long as it says.
    fn replay_while(&self, after: EventSeq, mut each: impl FnMut(Record) -> bool) -> Result<(), StoreError> {
        let failed = |source| self.failed("read events from", source);
        let mut statement = self
            .db
            .prepare("SELECT last, body FROM events WHERE last > ?1 ORDER BY last")
            .map_err(failed)?;
        let mut rows = statement.query([signed(after.0)]).map_err(failed)?;
        let mut of_ends = self.db.prepare(accounting::SELECT).map_err(failed)?;
        let mut ends = accounting::StoredRecords::new(self, of_ends.query([signed(after.0)]).map_err(failed)?);
        let mut expected = after.0 + 1;
        while let Some(row) = rows.next().map_err(failed)? {
            for stored in run(row, "events").map_err(failed)?? {
                let stored: StoredEvent<'static> = stored;
                if stored.seq <= after.0 {
                    continue;
                }
                if stored.seq != expected {
                    return Err(StoreError::Gap {
                        expected,
                        found: stored.seq,
                    });
                }
                expected += 1;
                let end = if stored.is_without_record() {
                    ends.record_of(EventSeq(stored.seq))?
                } else {
                    None
                };
                if !each(stored.decode(end.as_deref().map(|end| &**end))?) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The run in a row of `(last, body)`.
pub(super) fn run<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    of: &'static str,
) -> rusqlite::Result<Result<Vec<T>, StoreError>> {
    let last = row.get::<_, i64>(0)?.unsigned_abs();
    let content = room::content(row.get_ref(1)?.as_blob()?);
    let run = content.and_then(|content| Ok(rmp_serde::from_slice(&content)?));
    Ok(run.map_err(|why| StoreError::DamagedRun { last, of, why }))
}
