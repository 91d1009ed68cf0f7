use super::snapshot::TRIM_RUNS;
use super::*;
use crate::replay::{replay, replay_all};
use crate::testing::{TempDir, cell_events, ended_task};
use data_encoding::HEXLOWER;
use master_core::event::{Actor, Event, Record};
use master_core::state::State;
use proptest::prelude::*;
use proto::cell_version::CellVersion;
use proto::id::{EventSeq, HostName, JobNumber, SubmitSeq};
use proto::job::JobSpec;
use proto::time::{Now, Tick, Wall};
use std::sync::Arc;

fn database(dir: &TempDir) -> PathBuf {
    dir.path().join("state.db")
}

fn all(store: &Store) -> Vec<Record> {
    let mut records = Vec::new();
    store.replay(EventSeq(0), |record| records.push(record)).unwrap();
    records
}

fn fold(records: &[Record]) -> State {
    let mut state = State::new();
    for record in records {
        state.apply(record);
    }
    state
}

impl Store {
    /// Keeps a snapshot on a disk with room.
    pub(super) fn keep_snapshot(&mut self, state: &State) -> Result<u64, StoreError> {
        self.keep_snapshot_while(state, &|| true)
    }
}

#[test]
fn events_read_back_as_they_were_appended() {
    let dir = TempDir::new("store");
    let events = cell_events(3);
    let mut store = Store::create(&database(&dir)).unwrap();
    for batch in events.chunks(4) {
        store.append(batch).unwrap();
    }
    assert_eq!(all(&store), events);
    drop(store);
    assert_eq!(all(&Store::open(&database(&dir)).unwrap()), events);
}

#[test]
fn what_was_not_committed_is_gone_whole_and_what_was_is_there() {
    let dir = TempDir::new("store");
    let events = cell_events(2);
    let (kept, lost) = events.split_at(4);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(kept).unwrap();
    // The second batch ends with an event that the log has already: nothing of it may stay.
    let mut broken = lost.to_vec();
    broken.push(kept[0].clone());
    let refused = store.append(&broken);
    let behind = events.len() as u64 + 1;
    assert!(
        matches!(refused, Err(StoreError::Gap { expected, found: 1 }) if expected == behind),
        "{refused:?}"
    );
    // One whose accounting records cannot be written leaves no events either.
    store
        .db
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON ends BEGIN SELECT RAISE(ABORT, 'full'); END")
        .unwrap();
    let refused = store.append(lost);
    assert!(
        matches!(
            refused,
            Err(StoreError::Database {
                action: "append to",
                ..
            })
        ),
        "{refused:?}"
    );
    store.db.execute_batch("DROP TRIGGER full").unwrap();
    // As after a kill: another process opens what is there, without a word from the first.
    std::mem::forget(store);
    let mut store = Store::open(&database(&dir)).unwrap();
    assert_eq!(all(&store), kept);
    store.append(lost).unwrap();
    assert_eq!(all(&store), events);
}

#[test]
fn replay_from_a_snapshot_equals_replay_of_the_whole_log() {
    let dir = TempDir::new("store");
    let events = cell_events(4);
    let mut store = Store::create(&database(&dir)).unwrap();
    let mut state = State::new();
    for (count, record) in events.iter().enumerate() {
        store.append(std::slice::from_ref(record)).unwrap();
        state.apply(record);
        if count % 5 == 4 {
            store.keep_snapshot(&state).unwrap();
        }
    }
    let (short, whole) = (replay(&store).unwrap(), replay_all(&store).unwrap());
    assert!(short.events < 5 && whole.events == events.len() as u64);
    assert_eq!((&short.state, &whole.state), (&state, &state));
}

#[test]
fn a_snapshot_that_cannot_be_read_is_passed_over_for_the_one_before() {
    let dir = TempDir::new("store");
    let events = cell_events(2);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&events).unwrap();
    store.keep_snapshot(&fold(&events[..3])).unwrap();
    store.keep_snapshot(&fold(&events[..5])).unwrap();
    for (damage, expected) in [
        ("UPDATE snapshot_parts SET body = x'00' WHERE seq = 5", "cannot be read"),
        ("UPDATE snapshots SET version = 99 WHERE seq = 5", "is of version 99"),
    ] {
        store.db.execute(damage, []).unwrap();
        let replayed = replay(&store).unwrap();
        assert_eq!((replayed.snapshot, &replayed.state), (EventSeq(3), &fold(&events)));
        assert!(replayed.passed_over[0].contains(expected), "{:?}", replayed.passed_over);
    }
}

/// So many jobs that a snapshot takes more than one part.
fn large_state() -> State {
    let mut state = fold(&cell_events(2));
    let submitted = cell_events(1).into_iter().find_map(|record| match record.event {
        Event::JobSubmitted { spec, .. } => Some(spec),
        _ => None,
    });
    let spec = JobSpec::clone(&submitted.expect("a job is submitted"));
    for n in 1..=4_000_u64 {
        let seq = EventSeq(state.last.0 + 1);
        // Names that do not repeat each other.
        let name = HEXLOWER.encode(ring::digest::digest(&ring::digest::SHA512, &n.to_le_bytes()).as_ref());
        let event = Event::JobSubmitted {
            seq: SubmitSeq(1_000_000 + n),
            number: JobNumber(100_000 + n as u32),
            spec: Arc::new(JobSpec { name, ..spec.clone() }),
            waits_for: Vec::new(),
            array_waits_for: Vec::new(),
        };
        state.apply(&Record {
            seq,
            now: state.now,
            actor: Actor::Master,
            request: None,
            event,
        });
    }
    state
}

fn parts(store: &Store) -> (i64, i64) {
    let sql = "SELECT count(*), count(DISTINCT seq) FROM snapshot_parts";
    store
        .db
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
}

#[test]
fn a_large_snapshot_is_written_in_parts_between_which_others_write() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    let state = large_state();
    let bytes = store.keep_snapshot(&state.image()).unwrap();
    assert!(parts(&store).0 > 1, "{bytes} bytes are one part");
    assert_eq!(
        store.newest_snapshot().unwrap().0.map(State::restored),
        Some(state.clone().image().restored())
    );
    assert_eq!(store.keep_snapshot(&state).unwrap(), 0, "it is there");
    // Of one that was not finished nothing counts, and the next one takes it away.
    store.db.execute("DELETE FROM snapshots", []).unwrap();
    assert!(store.newest_snapshot().unwrap().0.is_none());
    store.keep_snapshot(&fold(&cell_events(2))).unwrap();
    assert_eq!(parts(&store), (1, 1));
}

#[test]
fn a_damaged_part_is_found_and_one_that_is_missing() {
    for damage in [
        "UPDATE snapshot_parts SET body = CAST(substr(body, 1, 1000) || x'00000000' || substr(body, 1005) AS BLOB) WHERE part = 0",
        "DELETE FROM snapshot_parts WHERE part = 1",
    ] {
        let dir = TempDir::new("store");
        let mut store = Store::create(&database(&dir)).unwrap();
        store.keep_snapshot(&large_state()).unwrap();
        assert_eq!(store.db.execute(damage, []).unwrap(), 1);
        let (state, passed_over) = store.newest_snapshot().unwrap();
        assert!(
            state.is_none() && passed_over[0].contains("cannot be read"),
            "{passed_over:?}"
        );
    }
}

#[test]
fn a_trimmed_log_keeps_what_lies_behind_the_last_but_one_snapshot() {
    let dir = TempDir::new("store");
    let events = cell_events(3);
    let mut store = Store::create(&database(&dir)).unwrap();
    // The third run has the event of the last but one snapshot and the one behind it.
    for run in [0..2, 2..3, 3..5, 5..events.len()] {
        store.append(&events[run]).unwrap();
    }
    for seq in [2, 4, 6] {
        store.keep_snapshot(&fold(&events[..seq])).unwrap();
    }
    assert!(!store.trim_step().unwrap());
    assert_eq!(replay(&store).unwrap().state, fold(&events));
    assert!(matches!(
        replay_all(&store),
        Err(StoreError::Gap { expected: 1, found: 4 })
    ));
    assert_eq!(store.read(EventSeq(3), 9).unwrap(), events[3..12]);
}

#[test]
fn a_log_is_trimmed_in_bounded_steps() {
    let dir = TempDir::new("store");
    let events = cell_events(1_000);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&events).unwrap();
    let left = |store: &Store| {
        store
            .db
            .query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let count = left(&store);
    assert!(
        count > TRIM_RUNS && !store.trim_step().unwrap(),
        "without snapshots nothing is removed"
    );
    let seq = events.len();
    store.keep_snapshot(&fold(&events[..seq - 1])).unwrap();
    store.keep_snapshot(&fold(&events)).unwrap();
    assert!(store.trim_step().unwrap());
    assert_eq!(left(&store), count - TRIM_RUNS);
    while store.trim_step().unwrap() {}
    assert_eq!(left(&store), 1);
    assert_eq!(replay(&store).unwrap().state, fold(&events));
}

#[test]
fn runs_that_cannot_be_read_are_refused_with_their_place_and_the_remedy() {
    for (damage, expected) in [
        (
            "UPDATE events SET body = x'c1'",
            "the events up to that of event 9 are damaged",
        ),
        (
            "UPDATE ends SET body = x'c1'",
            "the accounting records up to that of event 8 are damaged",
        ),
        (
            "DELETE FROM ends",
            "event 8 (task-ended) is damaged: its accounting record is missing",
        ),
    ] {
        let dir = TempDir::new("store");
        let mut store = Store::create(&database(&dir)).unwrap();
        store.append(&cell_events(1)).unwrap();
        store.db.execute(damage, []).unwrap();
        let message = replay(&store).err().unwrap().to_string();
        assert!(message.starts_with(expected), "{damage}: {message}");
        assert!(message.contains("backup"), "{message} names no remedy");
    }
}

#[test]
fn another_programs_database_is_refused() {
    let dir = TempDir::new("store");
    Connection::open(database(&dir))
        .unwrap()
        .execute_batch("CREATE TABLE mine (x)")
        .unwrap();
    assert!(matches!(Store::open(&database(&dir)), Err(StoreError::Foreign { .. })));
    assert!(matches!(
        Store::open(&dir.path().join("none.db")),
        Err(StoreError::Database { action: "open", .. })
    ));
}

#[test]
fn accounting_records_are_found_by_job_and_by_place() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&cell_events(5)).unwrap();
    let rows = |after, job| {
        let mut rows = Vec::new();
        store
            .accounting(EventSeq(after), job, |row| {
                rows.push(row.unwrap());
                true
            })
            .unwrap();
        rows
    };
    assert_eq!(rows(0, None).len(), 5);
    assert_eq!(
        rows(0, Some(2))
            .iter()
            .map(|row| row.record.job_number.0)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(rows(rows(0, None)[3].seq.0, None).len(), 1);
    // All are of one row, which has another job's behind that one.
    assert_eq!(rows(rows(0, None)[1].seq.0, Some(2)), []);
}

#[test]
fn a_damaged_row_of_accounting_records_is_named_and_all_others_are_given() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    // A row each.
    ends_of_two_jobs(6)
        .iter()
        .for_each(|end| store.append(std::slice::from_ref(end)).unwrap());
    Connection::open(database(&dir))
        .unwrap()
        .execute("UPDATE ends SET body = x'c1ff' WHERE last = 3", [])
        .unwrap();
    let (mut read, mut damaged) = (Vec::new(), Vec::new());
    let note = |row: Result<AccountingRow, Damage>| {
        match row {
            Ok(row) => read.push(row.seq.0),
            Err(damage) => damaged.push((damage.seq.0, damage.jobs)),
        }
        true
    };
    store.accounting(EventSeq(0), None, note).unwrap();
    assert_eq!((read, damaged), (vec![1, 2, 4, 5, 6], vec![(3, vec![2])]));
}

#[test]
fn scripts_come_and_go_with_events_and_equal_ones_are_kept_once() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    let body: std::sync::Arc<[u8]> = b"#!/bin/sh\n".repeat(100_000).into();
    let digest = script_digest(&body);
    let kept = ScriptChanges {
        kept: vec![(digest, body.clone()), (digest, body.clone())],
        dropped: Vec::new(),
    };
    store.append_with(&cell_events(1), &kept).unwrap();
    assert_eq!(store.script(&digest).unwrap(), Some(body));
    assert_eq!(store.scripts().unwrap(), [digest].into());
    store.drop_scripts(vec![digest]).unwrap();
    assert_eq!(
        (store.script(&digest).unwrap(), store.scripts().unwrap().len()),
        (None, 0)
    );
}

#[test]
fn room_of_scripts_that_are_gone_is_given_back_to_the_file_system() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    // It cannot be compressed.
    let mut seed = 1u64;
    let mut noise = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    let body: std::sync::Arc<[u8]> = (0..20 << 20).map(|_| noise()).collect();
    let digest = script_digest(&body);
    let kept = ScriptChanges {
        kept: vec![(digest, body)],
        dropped: Vec::new(),
    };
    store.append_with(&cell_events(1), &kept).unwrap();
    store.drop_scripts(vec![digest]).unwrap();
    while store.give_back().unwrap() {}
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    Connection::open(database(&dir))
        .unwrap()
        .query_row(checkpoint, [], |_| Ok(()))
        .unwrap();
    let bytes = std::fs::metadata(database(&dir)).unwrap().len();
    assert!(bytes < 6 << 20, "{bytes}");
}

/// Ends of two arrays, in turn, for more than one run.
fn ends_of_two_jobs(count: u64) -> Vec<Record> {
    let end = |seq| ended_task(seq, 1 + seq % 2, u32::try_from(seq.div_ceil(2)).unwrap());
    (1..=count).map(end).collect()
}

proptest! {
    /// However events came together, they are found behind any place, and the records among them by
    /// job.
    #[test]
    fn events_and_records_are_found_behind_any_place(
        cuts in proptest::collection::vec(1usize..700, 1..6), after in 0u64..900, count in 1usize..400,
    ) {
        let dir = TempDir::new("store");
        let events = ends_of_two_jobs(900);
        let mut store = Store::create(&database(&dir)).unwrap();
        let mut rest = &events[..];
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            store.append(now).unwrap();
            rest = later;
        }
        store.append(rest).unwrap();
        let behind = &events[usize::try_from(after).unwrap()..];
        prop_assert_eq!(store.read(EventSeq(after), count).unwrap(), &behind[..count.min(behind.len())]);
        for job in [None, Some(1), Some(2), Some(3)] {
            let mut found = Vec::new();
            store.accounting(EventSeq(after), job, |row| {
                found.push(row.unwrap().seq);
                found.len() < count
            }).unwrap();
            let is_asked_for = |event: &&Record| job.is_none_or(|job| event.event.accounting().unwrap().job_number.0 == job);
            let expected: Vec<_> = behind.iter().filter(is_asked_for).map(|event| event.seq).take(count).collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// Whatever a record holds, the bytes in the database give it back.
    #[test]
    fn any_record_reads_back(tick: u32, wall: i64, request: Option<u128>, host in "[a-z]{1,9}", task in 1u32..9, memory: u64) {
        let dir = TempDir::new("store");
        let mut store = Store::create(&database(&dir)).unwrap();
        let mut record = ended_task(1, 7, task);
        record.now = Now { tick: Tick(u64::from(tick)), wall: Wall(wall) };
        record.actor = Actor::Agent(HostName::new(&host));
        record.request = request.map(proto::id::RequestId);
        if let master_core::event::Event::TaskEnded { record: Some(ended), .. } = &mut record.event {
            ended.usage.mem_kib_ms = memory;
        }
        store.append(std::slice::from_ref(&record)).unwrap();
        prop_assert_eq!(all(&store), vec![record]);
    }
}

#[test]
fn of_a_snapshot_that_does_not_go_on_nothing_stays() {
    let dir = TempDir::new("store");
    let mut store = Store::create(&dir.path().join("state.db")).unwrap();
    let state = large_state();
    let asked = std::cell::Cell::new(0);
    let goes_on = || asked.replace(asked.get() + 1) < 1;
    let refused = store.keep_snapshot_while(&state, &goes_on);
    assert!(
        matches!(refused, Err(StoreError::SnapshotPutOff)) && asked.get() == 2,
        "{refused:?}"
    );
    let parts: i64 = store
        .db
        .query_row("SELECT count(*) FROM snapshot_parts", [], |row| row.get(0))
        .unwrap();
    assert_eq!(parts, 0);
    assert!(store.keep_snapshot(&state).unwrap() > 0);
}

/// Records of a cell of the first version, finalized behind the second job.
fn finalized_cell() -> Vec<Record> {
    let mut events = cell_events(2);
    if let Event::CellCreated { version, .. } = &mut events[0].event {
        *version = CellVersion::FIRST;
    }
    let last = events.last().expect("a cell has events").clone();
    let version = CellVersion::NEWEST;
    events.push(Record {
        seq: EventSeq(last.seq.0 + 1),
        event: Event::CellVersionRaised { version },
        ..last
    });
    events
}

/// The kinds and versions of the rows of events, and the versions of snapshots.
fn forms(store: &Store, events: &[Record]) -> (Vec<(String, i64)>, Vec<i64>) {
    let rows = events.iter().map(codec::StoredEvent::encode);
    let rows = rows.map(|row| (row.kind.clone().into_owned(), row.version)).collect();
    let mut statement = store.db.prepare("SELECT version FROM snapshots ORDER BY seq").unwrap();
    let snapshots = statement.query_map([], |row| row.get(0)).unwrap();
    (rows, snapshots.collect::<Result<_, _>>().unwrap())
}

/// Releases that know the first version alone read rows of versions 1 and, for ends, 2, and
/// snapshots of versions 1 and 2.
#[test]
fn an_older_release_reads_all_until_a_cell_is_finalized_and_stops_there() {
    let dir = TempDir::new("store");
    let events = finalized_cell();
    let (before, raised) = events.split_at(events.len() - 1);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(before).unwrap();
    store.keep_snapshot(&fold(before)).unwrap();
    let (rows, snapshots) = forms(&store, before);
    let is_known = |(kind, version): &(String, i64)| *version == 1 || (*version == 2 && kind.ends_with("-ended"));
    assert!(rows.iter().all(is_known), "{rows:?}");
    assert_eq!(snapshots, [2]);

    store.append(raised).unwrap();
    store.keep_snapshot(&fold(&events)).unwrap();
    let (rows, snapshots) = forms(&store, &events);
    assert_eq!(rows.last(), Some(&("cell-version-raised".to_owned(), 1)));
    assert_eq!(snapshots, [2, 3]);
    assert_eq!(replay(&store).unwrap().state, fold(&events));
    assert_eq!(replay_all(&store).unwrap().state, fold(&events));

    // A new cell stops an older release at its first event.
    assert_eq!(forms(&store, &cell_events(0)).0[0], ("cell-created".to_owned(), 2));
    let dir = TempDir::new("store");
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&cell_events(1)).unwrap();
    assert_eq!(all(&store), cell_events(1));
}

#[test]
fn a_cell_of_a_later_version_is_refused_with_the_version_and_the_remedy() {
    let later = CellVersion(CellVersion::NEWEST.0 + 1);
    let mut raised = finalized_cell();
    let last = raised.last_mut().expect("a cell has events");
    last.event = Event::CellVersionRaised { version: later };
    let mut created = cell_events(1);
    if let Event::CellCreated { version, .. } = &mut created[0].event {
        *version = later;
    }
    for events in [raised, created] {
        let dir = TempDir::new("store");
        let mut store = Store::create(&database(&dir)).unwrap();
        store.append(&events).unwrap();
        let error = replay_all(&store).err().expect("it is refused").to_string();
        assert!(error.contains(&format!("the cell has version {later}")), "{error}");
        assert!(error.contains("gridwright finalize"), "{error}");
    }
}
