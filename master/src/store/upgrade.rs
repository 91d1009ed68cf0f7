//! Databases whose tables are of an older version. In version 1 each event and each accounting
//! record had a row of its own; up to version 2 a snapshot was one row, and no row was compressed;
//! up to version 3 there was no table of scripts.

use super::codec::StoredEvent;
use super::log::RUN_EVENTS;
use super::room::Room;
use super::{EVENT_TABLES, RowDamage, SNAPSHOT_TABLES, Store, StoreError, accounting, log, scripts};
use proto::id::RequestId;
use rusqlite::{Connection, Row, TransactionBehavior};
use serde_bytes::ByteBuf;
use std::borrow::Cow;

/// The versions of the tables that are brought up to date.
pub(super) const OLD_VERSIONS: [i32; 3] = [SINGLE_EVENTS, SINGLE_SNAPSHOTS, NO_SCRIPTS];

/// Each event and each accounting record has a row of its own.
const SINGLE_EVENTS: i32 = 1;

/// Each snapshot is one row, as it was before.
const SINGLE_SNAPSHOTS: i32 = 2;

/// Each script is in the event of its job, which is read for ever: only new jobs have theirs in a
/// table.
const NO_SCRIPTS: i32 = 3;

impl Store {
    /// Puts what a database of an old version holds into tables of this one: all of it, or nothing
    /// was changed.
    pub(super) fn upgrade(&mut self, from: i32, to: i32) -> Result<(), StoreError> {
        tracing::info!(
            "{} is brought from tables of version {from} to version {to}",
            self.path.display()
        );
        let work = |db: &mut Connection| -> rusqlite::Result<Result<(), StoreError>> {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if from == SINGLE_EVENTS {
                transaction.execute_batch("ALTER TABLE events RENAME TO old_events")?;
                transaction.execute_batch(EVENT_TABLES)?;
                if let Err(damaged) = copy(&transaction, "old_events")? {
                    return Ok(Err(damaged));
                }
                transaction.execute_batch("DROP TABLE old_events; DROP TABLE accounting")?;
            }
            transaction.execute_batch(scripts::TABLE)?;
            if from != NO_SCRIPTS {
                transaction.execute_batch(&format!(
                    "ALTER TABLE snapshots RENAME TO old_snapshots; {SNAPSHOT_TABLES}
                     INSERT INTO snapshots SELECT seq, version, wall FROM old_snapshots;
                     INSERT INTO snapshot_parts SELECT seq, 0, body FROM old_snapshots;
                     DROP TABLE old_snapshots"
                ))?;
            }
            transaction.pragma_update(None, "user_version", to)?;
            transaction.commit().map(Ok)
        };
        work(&mut self.db).map_err(|source| self.failed("bring up to date", source))?
    }

    /// The same for who may only read: what is new is this connection's own, and gone with it.
    pub(super) fn upgrade_to_read(&self, from: i32) -> Result<(), StoreError> {
        let work = |db: &Connection| {
            db.execute_batch(&scripts::TABLE.replace("CREATE TABLE", "CREATE TEMP TABLE"))?;
            if from == NO_SCRIPTS {
                return Ok(Ok(()));
            }
            db.execute_batch(
                "CREATE TEMP VIEW snapshots AS SELECT seq, version, wall FROM main.snapshots;
                 CREATE TEMP VIEW snapshot_parts AS SELECT seq, 0 AS part, body FROM main.snapshots",
            )?;
            if from != SINGLE_EVENTS {
                return Ok(Ok(()));
            }
            db.execute_batch(&EVENT_TABLES.replace("CREATE TABLE", "CREATE TEMP TABLE"))?;
            copy(db, "main.events")
        };
        self.run("read", work)?
    }
}

/// Copies events and accounting records; a table of the connection's own is found before one of the
/// database.
fn copy(db: &Connection, old_events: &str) -> rusqlite::Result<Result<(), StoreError>> {
    let mut statement = db.prepare(&format!(
        "SELECT seq, tick, wall, kind, version, actor, request, body FROM {old_events} ORDER BY seq"
    ))?;
    let mut rows = statement.query([])?;
    let mut insert = db.prepare(log::INSERT)?;
    let (mut run, mut room): (Vec<StoredEvent<'static>>, _) = (Vec::new(), Room::default());
    while let Some(row) = rows.next()? {
        match event(row)? {
            Ok(event) => run.push(event),
            Err(damaged) => return Ok(Err(damaged)),
        }
        if run.len() == RUN_EVENTS {
            log::insert(&mut insert, &mut room, run[run.len() - 1].seq, &run)?;
            run.clear();
        }
    }
    if let Some(last) = run.last() {
        log::insert(&mut insert, &mut room, last.seq, &run)?;
    }
    let mut statement = db.prepare("SELECT seq, job_number, body FROM accounting ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut ends: Vec<accounting::StoredRecord> = Vec::new();
    while let Some(row) = rows.next()? {
        ends.push((
            row.get::<_, i64>(0)?.unsigned_abs(),
            row.get(1)?,
            ByteBuf::from(row.get::<_, Vec<u8>>(2)?),
        ));
        if ends.len() == RUN_EVENTS {
            accounting::insert(db, &mut room, &ends)?;
            ends.clear();
        }
    }
    accounting::insert(db, &mut room, &ends).map(Ok)
}

/// The event in a row of its own.
fn event(row: &Row<'_>) -> rusqlite::Result<Result<StoredEvent<'static>, StoreError>> {
    let seq = row.get::<_, i64>(0)?.unsigned_abs();
    let kind: String = row.get(3)?;
    let damaged = |why: RowDamage| {
        Ok(Err(StoreError::Damaged {
            seq,
            kind: kind.clone(),
            why,
        }))
    };
    let actor = match rmp_serde::from_slice(&row.get::<_, Vec<u8>>(5)?) {
        Ok(actor) => Cow::Owned(actor),
        Err(error) => return damaged(error.into()),
    };
    let request = match row.get::<_, Option<Vec<u8>>>(6)? {
        None => None,
        Some(bytes) => match bytes[..].try_into() {
            Ok(id) => Some(RequestId(u128::from_be_bytes(id))),
            Err(_) => return damaged(RowDamage::RequestId(bytes)),
        },
    };
    let (tick, wall) = (row.get::<_, i64>(1)?.unsigned_abs(), row.get(2)?);
    let (kind, version, body) = (kind.into(), row.get(4)?, row.get(7)?);
    Ok(Ok(StoredEvent {
        seq,
        tick,
        wall,
        kind,
        version,
        actor,
        request,
        body,
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{APPLICATION_ID, FILE_TABLE, SCHEMA_VERSION};
    use super::*;
    use crate::replay::{replay, replay_all};
    use crate::testing::{TempDir, cell_events};
    use master_core::event::{Event, Record};
    use master_core::state::State;
    use proto::id::EventSeq;
    use proto::wire::frame::encode;
    use rusqlite::params;
    use std::path::{Path, PathBuf};

    /// As version 1 made them.
    const OLD_TABLES: &str = "
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY, tick INTEGER NOT NULL, wall INTEGER NOT NULL, kind TEXT NOT NULL,
            version INTEGER NOT NULL, actor BLOB NOT NULL, request BLOB, body BLOB NOT NULL
        ) STRICT;
        CREATE TABLE accounting (
            seq INTEGER PRIMARY KEY, job_number INTEGER NOT NULL, job_name TEXT NOT NULL, owner TEXT NOT NULL,
            started INTEGER NOT NULL, body BLOB NOT NULL
        ) STRICT;
        CREATE INDEX accounting_job ON accounting (job_number);
    ";

    /// As versions 1 and 2 made it.
    const OLD_SNAPSHOTS: &str = "
        CREATE TABLE snapshots (
            seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, wall INTEGER NOT NULL, body BLOB NOT NULL
        ) STRICT;
    ";

    fn empty(path: &Path, tables: &str, version: i32) -> Connection {
        let db = Connection::open(path).unwrap();
        let pragmas = format!("PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION_ID}");
        db.execute_batch(&format!("{tables} {OLD_SNAPSHOTS} {FILE_TABLE} {pragmas}"))
            .unwrap();
        db
    }

    /// An empty database of version 1.
    pub(in super::super) fn old_database(path: &Path) -> Connection {
        empty(path, OLD_TABLES, SINGLE_EVENTS)
    }

    fn keep_old_snapshot(db: &Connection, state: &State) {
        let row = params![state.last.0.cast_signed(), state.now.wall.0, encode(state)];
        db.execute("INSERT INTO snapshots VALUES (?1, 1, ?2, ?3)", row).unwrap();
    }

    /// A database as version 2 left it: runs of events and records, none compressed.
    fn log_of_version_2(path: &Path, records: &[Record]) -> Connection {
        let db = empty(path, EVENT_TABLES, SINGLE_SNAPSHOTS);
        for run in records.chunks(RUN_EVENTS) {
            let last = run[run.len() - 1].seq.0.cast_signed();
            let stored: Vec<StoredEvent<'_>> = run.iter().map(StoredEvent::encode).collect();
            db.execute(log::INSERT, params![last, encode(&stored)]).unwrap();
            let end = |record: &Record| {
                let end = record.event.accounting()?;
                Some((record.seq.0, end.job_number.0, ByteBuf::from(encode(end))))
            };
            let ends: Vec<accounting::StoredRecord> = run.iter().filter_map(end).collect();
            let Some(&(last, ..)) = ends.last() else { continue };
            db.execute(
                "INSERT INTO ends VALUES (?1, ?2)",
                params![last.cast_signed(), encode(&ends)],
            )
            .unwrap();
            for (_, job, _) in &ends {
                db.execute(
                    "INSERT OR IGNORE INTO ends_of_job VALUES (?1, ?2)",
                    params![job, last.cast_signed()],
                )
                .unwrap();
            }
        }
        db
    }

    /// A database as version 1 left it; an accounting record was in its table and not in the event.
    fn old_log(path: &Path, records: &[Record]) -> Connection {
        let db = old_database(path);
        for record in records {
            let StoredEvent {
                seq,
                tick,
                wall,
                kind,
                version,
                actor,
                request,
                body,
            } = StoredEvent::encode(record);
            let (seq, tick) = (seq.cast_signed(), tick.cast_signed());
            let request = request.map(|id| id.0.to_be_bytes().to_vec());
            let row = params![seq, tick, wall, kind, version, encode(&*actor), request, body];
            db.execute("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", row)
                .unwrap();
            if let Some(end) = record.event.accounting() {
                let row = params![
                    seq,
                    end.job_number.0,
                    end.job_name,
                    end.owner.as_str(),
                    end.started.0,
                    encode(end)
                ];
                db.execute("INSERT INTO accounting VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row)
                    .unwrap();
            }
        }
        db
    }

    fn database(dir: &TempDir) -> PathBuf {
        dir.path().join("state.db")
    }

    fn all(store: &Store) -> (Vec<Record>, Vec<u64>, Vec<u64>) {
        let (mut events, mut ends, mut of_job) = (Vec::new(), Vec::new(), Vec::new());
        store.replay(EventSeq(0), |record| events.push(record)).unwrap();
        for (job, found) in [(None, &mut ends), (Some(7), &mut of_job)] {
            let note = |row: Result<crate::store::AccountingRow, crate::store::Damage>| {
                let row = row.unwrap();
                found.push(row.seq.0);
                true
            };
            store.accounting(EventSeq(0), job, note).unwrap();
        }
        (events, ends, of_job)
    }

    /// More than one row of events and of records.
    fn history() -> Vec<Record> {
        let mut events = cell_events(400);
        events[2].request = Some(RequestId(u128::MAX - 5));
        events
    }

    type DatabaseMaker = fn(&Path, &[Record]) -> Connection;

    /// A database as version 3 made it.
    fn log_of_version_3(path: &Path, records: &[Record]) -> Connection {
        Store::create(path).unwrap().append(records).unwrap();
        let db = Connection::open(path).unwrap();
        db.execute_batch("DROP TABLE scripts").unwrap();
        db.pragma_update(None, "user_version", NO_SCRIPTS).unwrap();
        db
    }

    const VERSIONS: [(i32, DatabaseMaker); 3] = [
        (SINGLE_EVENTS, old_log),
        (SINGLE_SNAPSHOTS, log_of_version_2),
        (NO_SCRIPTS, log_of_version_3),
    ];

    #[test]
    fn a_database_of_an_old_version_has_all_that_it_had() {
        for (version, make) in VERSIONS {
            let dir = TempDir::new("upgrade");
            let events = history();
            drop(make(&database(&dir), &events));
            let is_end = |record: &&Record| record.event.accounting().is_some();
            let ends: Vec<u64> = events.iter().filter(is_end).map(|record| record.seq.0).collect();
            let expected = (events, ends.clone(), vec![ends[6]]);
            // Who may only read finds it so and changes nothing.
            assert_eq!(all(&Store::open_to_read(&database(&dir)).unwrap()), expected);
            assert_eq!(
                Store::open_to_read(&database(&dir)).unwrap().version().unwrap(),
                version
            );
            assert_eq!(all(&Store::open(&database(&dir)).unwrap()), expected);
            let mut store = Store::open(&database(&dir)).unwrap();
            assert_eq!(store.version().unwrap(), SCHEMA_VERSION);
            assert_eq!(all(&store), expected);
            let mut next = cell_events(401);
            let next = next.split_off(expected.0.len());
            store.append(&next).unwrap();
            assert_eq!(all(&store).0, [&expected.0[..], &next].concat());
        }
    }

    #[test]
    fn a_trimmed_log_of_an_old_version_goes_on_behind_its_snapshot() {
        // Version 3 had the snapshots of today.
        for (_, make) in VERSIONS.into_iter().filter(|(version, _)| *version != NO_SCRIPTS) {
            let dir = TempDir::new("upgrade");
            let events = history();
            let mut state = State::new();
            events[..1_024].iter().for_each(|record| drop(state.apply(record)));
            let db = make(&database(&dir), &events);
            keep_old_snapshot(&db, &state);
            let column: String = db
                .query_row("SELECT name FROM pragma_table_info('events')", [], |row| row.get(0))
                .unwrap();
            db.execute(&format!("DELETE FROM events WHERE {column} <= 768"), [])
                .unwrap();
            drop(db);
            events[1_024..].iter().for_each(|record| drop(state.apply(record)));
            let ends = events
                .iter()
                .filter(|record| matches!(record.event, Event::TaskEnded { .. }))
                .count();
            let check = |store: &Store| {
                let replayed = replay(store).unwrap();
                assert_eq!((replayed.snapshot.0, &replayed.state), (1_024, &state));
                let mut found = 0;
                let count = |_| {
                    found += 1;
                    true
                };
                store.accounting(EventSeq(0), None, count).unwrap();
                assert_eq!(found, ends, "accounting records are never trimmed");
            };
            check(&Store::open_to_read(&database(&dir)).unwrap());
            let mut store = Store::open(&database(&dir)).unwrap();
            check(&store);
            store.keep_snapshot(&state).unwrap();
            assert_eq!(replay(&store).unwrap().snapshot, state.last);
        }
    }

    #[test]
    fn what_this_version_does_not_understand_is_refused_with_its_place_and_the_remedy() {
        for (damage, expected) in [
            (
                "UPDATE events SET kind = 'teleported' WHERE seq = 3",
                "event 3 is of kind teleported version 1",
            ),
            (
                "UPDATE events SET version = 2 WHERE seq = 2",
                "event 2 is of kind epoch-raised version 2",
            ),
            (
                "UPDATE events SET body = x'c1' WHERE seq = 4",
                "event 4 (certificate-issued) is damaged",
            ),
            (
                "UPDATE events SET actor = x'c1' WHERE seq = 4",
                "event 4 (certificate-issued) is damaged",
            ),
            (
                "UPDATE events SET request = x'c1' WHERE seq = 4",
                "event 4 (certificate-issued) is damaged",
            ),
            (
                "UPDATE events SET kind = 'task-ended' WHERE seq = 2",
                "event 2 (task-ended) is damaged",
            ),
            (
                "DELETE FROM accounting",
                "event 8 (task-ended) is damaged: its accounting record is missing",
            ),
            (
                "DELETE FROM events WHERE seq = 3",
                "event 3 is missing from the log, the next one there is 4",
            ),
        ] {
            let dir = TempDir::new("upgrade");
            old_log(&database(&dir), &cell_events(1)).execute(damage, []).unwrap();
            let message = match Store::open(&database(&dir)) {
                Err(error) => error.to_string(),
                Ok(store) => replay_all(&store).err().unwrap().to_string(),
            };
            assert!(message.starts_with(expected), "{damage}: {message}");
            assert!(message.contains("backup"), "{message} names no remedy");
        }
    }

    #[test]
    fn a_database_that_cannot_be_brought_up_to_date_is_left_as_it_was() {
        let dir = TempDir::new("upgrade");
        let db = old_log(&database(&dir), &cell_events(1));
        db.execute("UPDATE events SET actor = x'c1' WHERE seq = 9", []).unwrap();
        assert!(matches!(
            Store::open(&database(&dir)),
            Err(StoreError::Damaged { seq: 9, .. })
        ));
        db.execute("DELETE FROM events WHERE seq = 9", []).unwrap();
        drop(db);
        assert_eq!(all(&Store::open(&database(&dir)).unwrap()).0, cell_events(1)[..8]);
    }
}
