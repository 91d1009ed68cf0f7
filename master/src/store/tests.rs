use super::snapshot::TRIM_EVENTS;
use super::*;
use crate::replay::{replay, replay_all};
use crate::testing::{TempDir, cell_events, ended_task};
use master_core::event::Actor;
use master_core::state::State;
use proptest::prelude::*;
use proto::id::HostName;
use proto::time::{Now, Tick, Wall};

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
    assert!(matches!(store.append(&broken), Err(StoreError::Database { action: "append to", .. })));
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
            store.keep_snapshot(&Snapshot::of(&state)).unwrap();
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
    store.keep_snapshot(&Snapshot::of(&fold(&events[..3]))).unwrap();
    store.keep_snapshot(&Snapshot::of(&fold(&events[..5]))).unwrap();
    for (damage, expected) in [
        ("UPDATE snapshots SET body = x'00' WHERE seq = 5", "cannot be read"),
        ("UPDATE snapshots SET version = 99 WHERE seq = 5", "is of version 99"),
    ] {
        store.db.execute(damage, []).unwrap();
        let replayed = replay(&store).unwrap();
        assert_eq!((replayed.snapshot, &replayed.state), (EventSeq(3), &fold(&events)));
        assert!(replayed.passed_over[0].contains(expected), "{:?}", replayed.passed_over);
    }
}

#[test]
fn a_trimmed_log_keeps_what_lies_behind_the_last_but_one_snapshot() {
    let dir = TempDir::new("store");
    let events = cell_events(3);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&events).unwrap();
    for seq in [2, 4, 6] {
        store.keep_snapshot(&Snapshot::of(&fold(&events[..seq]))).unwrap();
    }
    assert!(!store.trim_step().unwrap());
    let first: i64 = store.db.query_row("SELECT min(seq) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(first, 5);
    assert_eq!(replay(&store).unwrap().state, fold(&events));
    assert!(matches!(replay_all(&store), Err(StoreError::Gap { expected: 1, found: 5 })));
}

#[test]
fn a_log_is_trimmed_in_bounded_steps() {
    let dir = TempDir::new("store");
    let events = cell_events(1_000);
    let mut store = Store::create(&database(&dir)).unwrap();
    store.append(&events).unwrap();
    let left =
        |store: &Store| store.db.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0)).unwrap();
    let count = left(&store);
    assert!(count > TRIM_EVENTS && !store.trim_step().unwrap(), "without snapshots nothing is removed");
    let seq = events.len();
    store.keep_snapshot(&Snapshot::of(&fold(&events[..seq - 1]))).unwrap();
    store.keep_snapshot(&Snapshot::of(&fold(&events))).unwrap();
    assert!(store.trim_step().unwrap());
    assert_eq!(left(&store), count - TRIM_EVENTS);
    while store.trim_step().unwrap() {}
    assert_eq!(left(&store), 1);
    assert_eq!(replay(&store).unwrap().state, fold(&events));
}

#[test]
fn what_this_version_does_not_understand_is_refused_with_its_place_and_the_remedy() {
    for (damage, expected) in [
        ("UPDATE events SET kind = 'teleported' WHERE seq = 3", "event 3 is of kind teleported version 1"),
        ("UPDATE events SET version = 2 WHERE seq = 2", "event 2 is of kind epoch-raised version 2"),
        ("UPDATE events SET body = x'c1' WHERE seq = 4", "event 4 (certificate-issued) is damaged"),
        ("UPDATE events SET kind = 'task-ended' WHERE seq = 2", "event 2 (task-ended) is damaged"),
        ("DELETE FROM accounting", "event 8 (task-ended) is damaged: its accounting record is missing"),
        ("DELETE FROM events WHERE seq = 3", "event 3 is missing from the log, the next one there is 4"),
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
    Connection::open(database(&dir)).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    assert!(matches!(Store::open(&database(&dir)), Err(StoreError::Foreign { .. })));
    assert!(matches!(Store::open(&dir.path().join("none.db")), Err(StoreError::Database { action: "open", .. })));
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
                rows.push(row);
                true
            })
            .unwrap();
        rows
    };
    assert_eq!(rows(0, None).len(), 5);
    assert_eq!(rows(0, Some(2)).iter().map(|row| row.record.job_number.0).collect::<Vec<_>>(), [2]);
    assert_eq!(rows(rows(0, None)[3].seq.0, None).len(), 1);
}

proptest! {
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
