//! Snapshots: the state after an event, so that a start need not replay the whole log. They are an
//! abbreviation, never truth.
//!
//! A snapshot is written in parts, each in a transaction of its own, so that whoever appends events
//! waits for milliseconds however large the state is; nothing of it counts before the row in
//! `snapshots` says that it is whole. What was left unfinished goes with the next one.

use super::{Store, StoreError, signed};
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use master_core::state::State;
use proto::cell_version::CellVersion;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::io::{self, BufReader, Read, Write};
use std::time::Instant;

/// The version of the state's form in parts, in a cell of the first version: an LZ4 frame of
/// MessagePack with named fields. In a later cell the number is higher by as many versions, so that
/// releases which do not know what the state holds pass the snapshot over.
const PACKED: i64 = 2;

/// The newest form that is read here.
const NEWEST: i64 = packed(CellVersion::NEWEST);

/// The version of the packed form in a cell of a version.
const fn packed(version: CellVersion) -> i64 {
    PACKED + version.0 as i64 - CellVersion::FIRST.0 as i64
}

/// The same in one part and not compressed, as earlier versions wrote it.
const PLAIN: i64 = 1;

/// How many snapshots are kept: if the newest cannot be read, the one before it and the log behind
/// it can.
const KEPT: i64 = 2;

/// Bytes of a part: less than a millisecond's writing.
const PART_BYTES: usize = 256 << 10;

/// Parts that one step of removing removes.
const REMOVED_PARTS: i64 = 4;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// Runs of events that one step of trimming removes: a step keeps the writer of events waiting for
/// milliseconds.
pub(super) const TRIM_RUNS: i64 = 16;

impl Store {
    /// Keeps a snapshot of a state, and with it the one before; removes older ones. It says how
    /// many bytes it takes; 0 if there is one of that event already. Other stores may write in
    /// between. `goes_on` is asked before each part; of one that fails or does not go on nothing
    /// stays.
    ///
    /// # Errors
    /// `Database`, and `SnapshotPutOff` if it does not go on: the snapshots that there were are
    /// there.
    pub fn keep_snapshot_while(&mut self, state: &State, goes_on: &dyn Fn() -> bool) -> Result<u64, StoreError> {
        let kept = self.snapshot_in_parts(state, goes_on);
        if kept.is_err()
            && let Err(error) = self.remove_loose_parts()
        {
            // They go with the next snapshot.
            tracing::debug!("{}", crate::error_chain(&error));
        }
        kept
    }

    fn snapshot_in_parts(&mut self, state: &State, goes_on: &dyn Fn() -> bool) -> Result<u64, StoreError> {
        let seq = signed(state.last.0);
        let is_there = |(kept, version): &(i64, i64)| *kept == seq && (PLAIN..=NEWEST).contains(version);
        if self.snapshot_versions()?.iter().any(is_there) {
            return Ok(0);
        }
        self.remove_loose_parts()?;
        // A part need not be durable before the row that says that all are.
        self.run("write a snapshot to", |db| {
            db.pragma_update(None, "synchronous", "NORMAL")
        })?;
        let written = self.write_parts(seq, state, goes_on);
        self.run("write a snapshot to", |db| {
            db.pragma_update(None, "synchronous", "FULL")
        })?;
        let bytes = written?;
        let result = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let sql = "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3)";
                transaction.execute(sql, params![seq, packed(state.version), state.now.wall.0])?;
                let sql = "SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 1 OFFSET ?1";
                let oldest: Option<i64> = transaction.query_row(sql, [KEPT - 1], |row| row.get(0)).optional()?;
                if let Some(oldest) = oldest {
                    transaction.execute("DELETE FROM snapshots WHERE seq < ?1", [oldest])?;
                }
                transaction.commit()
            });
        result.map_err(|source| self.failed("write a snapshot to", source))?;
        self.remove_loose_parts()?;
        Ok(bytes)
    }

    fn write_parts(&self, seq: i64, state: &State, goes_on: &dyn Fn() -> bool) -> Result<u64, StoreError> {
        let part = Vec::with_capacity(PART_BYTES);
        let mut parts = PartWriter {
            db: &self.db,
            seq,
            next: 0,
            part,
            bytes: 0,
            failed: None,
            goes_on,
            is_put_off: false,
        };
        // A damaged block is found before anything in it is believed.
        let info = FrameInfo::new().block_size(BlockSize::Max256KB).block_checksums(true);
        let mut encoder = FrameEncoder::with_frame_info(info, &mut parts);
        let written = rmp_serde::encode::write_named(&mut encoder, state).map_err(io::Error::other);
        let written = written.and_then(|()| encoder.try_finish().map_err(io::Error::other));
        let written = written.and_then(|()| parts.flush());
        match (written, parts.failed) {
            (Err(_), None) if parts.is_put_off => Err(StoreError::SnapshotPutOff),
            (Ok(()), _) => Ok(parts.bytes),
            (Err(_), Some(source)) => Err(self.failed("write a snapshot to", source)),
            (Err(error), None) => {
                panic!("a state is plain data with string keys, and only the database can refuse it: {error}")
            }
        }
    }

    /// Removes parts that belong to no snapshot, step by step.
    fn remove_loose_parts(&self) -> Result<(), StoreError> {
        let sql = "DELETE FROM snapshot_parts WHERE rowid IN \
                   (SELECT rowid FROM snapshot_parts WHERE seq NOT IN (SELECT seq FROM snapshots) LIMIT ?1)";
        in_steps(|| Ok(self.run("remove an old snapshot from", |db| db.execute(sql, [REMOVED_PARTS]))? > 0))
    }

    /// Removes the runs of events before the last but one snapshot, if there are two.
    ///
    /// # Errors
    /// `Database`: what was not removed is there.
    pub fn trim(&mut self) -> Result<(), StoreError> {
        in_steps(|| self.trim_step())
    }

    /// Removes the oldest runs of events before the last but one snapshot, [`TRIM_RUNS`] at most,
    /// in a transaction of its own; says whether more remain. Without two snapshots nothing is
    /// removed.
    ///
    /// # Errors
    /// `Database`: nothing was changed.
    pub(super) fn trim_step(&mut self) -> Result<bool, StoreError> {
        let sql = "DELETE FROM events WHERE last IN (SELECT last FROM events WHERE last <= \
                   (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 1 OFFSET ?1) ORDER BY last LIMIT ?2)";
        let removed = self.run("trim the log of", |db| db.execute(sql, [KEPT - 1, TRIM_RUNS]))?;
        Ok(removed as i64 == TRIM_RUNS)
    }

    /// The newest state that can be read, with a line about each snapshot that was passed over.
    ///
    /// # Errors
    /// `Database`.
    pub fn newest_snapshot(&self) -> Result<(Option<State>, Vec<String>), StoreError> {
        let mut passed_over = Vec::new();
        for (seq, version) in self.snapshot_versions()? {
            match self.snapshot(seq, version)? {
                Ok(state) => return Ok((Some(state), passed_over)),
                Err(why) => passed_over.push(format!("the snapshot after event {seq} {why}")),
            }
        }
        Ok((None, passed_over))
    }

    fn snapshot_versions(&self) -> Result<Vec<(i64, i64)>, StoreError> {
        self.run("read snapshots from", |db| {
            let mut statement = db.prepare("SELECT seq, version FROM snapshots ORDER BY seq DESC")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// The state in a snapshot, or why it has to be passed over.
    fn snapshot(&self, seq: i64, version: i64) -> Result<Result<State, UnusableSnapshot>, StoreError> {
        let mut parts = PartReader {
            db: &self.db,
            seq,
            next: 0,
            part: Vec::new(),
            read: 0,
            failed: None,
        };
        let state: Result<State, _> = match version {
            PLAIN => rmp_serde::from_read(&mut parts),
            PACKED..=NEWEST => {
                rmp_serde::from_read(BufReader::with_capacity(READ_BYTES, FrameDecoder::new(&mut parts)))
            }
            _ => return Ok(Err(UnusableSnapshot::Version(version))),
        };
        if let Some(source) = parts.failed {
            return Err(self.failed("read a snapshot from", source));
        }
        Ok(match state {
            Ok(state) if signed(state.last.0) == seq => Ok(state),
            Ok(state) => Err(UnusableSnapshot::OtherEvent(state.last.0)),
            Err(error) => Err(UnusableSnapshot::Unreadable(error)),
        })
    }
}

/// A snapshot cannot be used, so an earlier one is. The text completes "the snapshot after event
/// N".
#[derive(Debug, thiserror::Error)]
enum UnusableSnapshot {
    #[error("is of version {0}, ours is {NEWEST}")]
    Version(i64),
    #[error("cannot be read: it holds the state after event {0}")]
    OtherEvent(u64),
    #[error("cannot be read: {0}")]
    Unreadable(rmp_serde::decode::Error),
}

/// Does steps until there are no more, each followed by a pause as long as itself: in it, whoever
/// appends events gets its turn at the database.
fn in_steps(mut step: impl FnMut() -> Result<bool, StoreError>) -> Result<(), StoreError> {
    loop {
        let began = Instant::now();
        if !step()? {
            return Ok(());
        }
        std::thread::sleep(began.elapsed());
    }
}

/// Where the bytes of a snapshot go.
struct PartWriter<'a> {
    db: &'a Connection,
    seq: i64,
    next: i64,
    part: Vec<u8>,
    bytes: u64,
    failed: Option<rusqlite::Error>,
    /// Whether the next part is to be written.
    goes_on: &'a dyn Fn() -> bool,
    is_put_off: bool,
}

impl Write for PartWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.part.len() >= PART_BYTES {
            self.flush()?;
        }
        let count = bytes.len().min(PART_BYTES - self.part.len());
        self.part.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// Puts what is there into a part of its own.
    fn flush(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        if !(self.goes_on)() {
            self.is_put_off = true;
            return Err(io::Error::other("it does not go on"));
        }
        let insert = self.db.prepare_cached("INSERT INTO snapshot_parts VALUES (?1, ?2, ?3)");
        if let Err(error) = insert.and_then(|mut insert| insert.execute(params![self.seq, self.next, self.part])) {
            self.failed = Some(error);
            return Err(io::Error::other("the database refuses it"));
        }
        self.next += 1;
        self.bytes += self.part.len() as u64;
        self.part.clear();
        Ok(())
    }
}

/// Where the bytes of a snapshot come from.
struct PartReader<'a> {
    db: &'a Connection,
    seq: i64,
    next: i64,
    part: Vec<u8>,
    read: usize,
    failed: Option<rusqlite::Error>,
}

impl Read for PartReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.part.len() {
            let sql = "SELECT body FROM snapshot_parts WHERE seq = ?1 AND part = ?2";
            let part = self.db.prepare_cached(sql);
            let part = part.and_then(|mut part| part.query_row([self.seq, self.next], |row| row.get(0)).optional());
            match part {
                Ok(part) => (self.part, self.read) = (part.unwrap_or_default(), 0),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::Error::other("the database cannot be read"));
                }
            }
            self.next += 1;
        }
        let count = into.len().min(self.part.len() - self.read);
        into[..count].copy_from_slice(&self.part[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
