//! Snapshots: the state after an event, so that a start need not replay the whole log. They are an abbreviation, never truth.

use super::{Store, StoreError, signed};
use master_core::state::State;
use proto::id::EventSeq;
use proto::time::Wall;
use proto::wire::frame::encode;
use rusqlite::{OptionalExtension, params};

/// The version of the state's form. A snapshot of another one is passed over.
const SNAPSHOT_VERSION: i64 = 1;

/// How many snapshots are kept: if the newest cannot be read, the one before it and the log behind it can.
const KEPT: i64 = 2;

/// A state as it is stored.
pub struct Snapshot {
    /// The last event in it.
    pub seq: EventSeq,
    /// When it was made.
    pub wall: Wall,
    body: Vec<u8>,
}

impl Snapshot {
    /// The snapshot of a state.
    pub fn of(state: &State) -> Self {
        Self { seq: state.last, wall: state.now.wall, body: encode(state) }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The state in it; the reason if it cannot be read.
    fn state(&self) -> Result<State, String> {
        let state: State = rmp_serde::from_slice(&self.body).map_err(|error| error.to_string())?;
        if state.last == self.seq { Ok(state) } else { Err(format!("it holds the state after event {}", state.last.0)) }
    }
}

/// Runs of events that one step of trimming removes: a step keeps the writer of events waiting for milliseconds.
pub const TRIM_RUNS: i64 = 16;

impl Store {
    /// Keeps a snapshot, and with it the one before; removes older ones.
    ///
    /// # Errors
    /// `Database`: nothing was changed.
    pub fn keep_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let result = self.db.transaction().and_then(|transaction| {
            let Snapshot { seq, wall, body } = snapshot;
            let sql = "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3, ?4)";
            transaction.execute(sql, params![signed(seq.0), SNAPSHOT_VERSION, wall.0, body])?;
            let sql = "SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 1 OFFSET ?1";
            let oldest: Option<i64> = transaction.query_row(sql, [KEPT - 1], |row| row.get(0)).optional()?;
            if let Some(oldest) = oldest {
                transaction.execute("DELETE FROM snapshots WHERE seq < ?1", [oldest])?;
            }
            transaction.commit()
        });
        result.map_err(|source| self.failed("write a snapshot to", source))
    }

    /// Removes the oldest runs of events before the last but one snapshot, [`TRIM_RUNS`] at most, in a transaction of its own; says
    /// whether more remain. Without two snapshots nothing is removed.
    ///
    /// # Errors
    /// `Database`: nothing was changed.
    pub fn trim_step(&mut self) -> Result<bool, StoreError> {
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
            if version != SNAPSHOT_VERSION {
                passed_over.push(format!(
                    "the snapshot after event {seq} is of version {version}, ours is {SNAPSHOT_VERSION}"
                ));
                continue;
            }
            match self.snapshot(seq)?.state() {
                Ok(state) => return Ok((Some(state), passed_over)),
                Err(why) => passed_over.push(format!("the snapshot after event {seq} cannot be read: {why}")),
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

    fn snapshot(&self, seq: i64) -> Result<Snapshot, StoreError> {
        self.run("read a snapshot from", |db| {
            db.query_row("SELECT wall, body FROM snapshots WHERE seq = ?1", [seq], |row| {
                Ok(Snapshot { seq: EventSeq(seq.unsigned_abs()), wall: Wall(row.get(0)?), body: row.get(1)? })
            })
        })
    }
}
