//! What backup and restore do with a database: a copy of it as it is at one moment, and its end
//! at an earlier event.

use super::log::run;
use super::{AccountingCursor, AccountingFormat, Store, StoreError, codec::StoredEvent, signed};
use proto::id::EventSeq;
use proto::time::Wall;
use rusqlite::{OptionalExtension, TransactionBehavior};
use std::path::Path;

impl Store {
    /// Writes a copy of the database, as it is now, to a new file. Those who write go on meanwhile.
    ///
    /// # Errors
    /// `Database`: the file is there, or the disk is full.
    pub fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let path = path.display().to_string();
        self.run("copy", |db| db.execute("VACUUM INTO ?1", [path]))?;
        Ok(())
    }

    /// The last event that happened until a time. `None` means that the log begins later.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub fn last_until(&self, wall: Wall) -> Result<Option<EventSeq>, StoreError> {
        let mut last = None;
        self.replay(EventSeq(self.first()?.saturating_sub(1)), |record| {
            if record.now.wall <= wall {
                last = Some(record.seq);
            }
        })?;
        Ok(last)
    }

    /// The first event that the log holds; 1 if it holds none.
    ///
    /// # Errors
    /// `Database`, `DamagedRun`.
    pub fn first(&self) -> Result<u64, StoreError> {
        let row = self.run("read events from", |db| {
            let sql = "SELECT last, body FROM events ORDER BY last LIMIT 1";
            db.query_row(sql, [], |row| run::<StoredEvent<'static>>(row, "events"))
                .optional()
        })?;
        let events = row.transpose()?.unwrap_or_default();
        Ok(events.first().map_or(1, |event| event.seq))
    }

    /// Removes all events behind `seq`, with their accounting records and snapshots.
    ///
    /// # Errors
    /// `Database`: nothing was removed. `Gap` if the log does not hold `seq`.
    pub fn cut_after(&mut self, seq: EventSeq) -> Result<(), StoreError> {
        let first = self.first()?;
        let newest = self.run("read events from", |db| {
            let sql = "SELECT max(last) FROM events WHERE last <= ?1";
            db.query_row(sql, [signed(seq.0)], |row| row.get::<_, Option<i64>>(0))
        })?;
        // A run is kept whole or written anew: its first events may be the last that are kept.
        let whole = EventSeq(newest.map_or(first.saturating_sub(1), i64::unsigned_abs));
        let kept = match seq.0.checked_sub(whole.0) {
            None => {
                return Err(StoreError::Gap {
                    expected: seq.0,
                    found: first,
                });
            }
            Some(0) => Vec::new(),
            Some(count) => self.read(whole, usize::try_from(count).unwrap_or(usize::MAX))?,
        };
        let behind = [("events", whole), ("ends", whole), ("ends_of_job", whole)];
        let sql = behind
            .map(|(table, after)| format!("DELETE FROM {table} WHERE last > {};", signed(after.0)))
            .concat();
        let snapshots =
            ["snapshots", "snapshot_parts"].map(|table| format!("DELETE FROM {table} WHERE seq > {};", signed(seq.0)));
        let removed = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                transaction.execute_batch(&(sql + &snapshots.concat()))?;
                transaction.commit()
            });
        removed.map_err(|source| self.failed("cut the log of", source))?;
        self.append(&kept)
    }

    /// Notes that no accounting file has been written: all records go into the next one.
    ///
    /// # Errors
    /// `Database`.
    pub fn forget_accounting_file(&self) -> Result<(), StoreError> {
        for format in [AccountingFormat::Classic, AccountingFormat::JsonLines] {
            self.keep_accounting_cursor(format, AccountingCursor::default())?;
        }
        Ok(())
    }
}
