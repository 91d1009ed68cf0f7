use super::snapshot::TRIM_RUNS;
use super::*;
use crate::replay::{replay, replay_all};
use crate::testing::{TempDir, cell_events, ended_task};
use master_core::event::{Actor, Record};
use master_core::state::State;
use proptest::prelude::*;
use proto::id::{EventSeq, HostName};
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
    let refused = store.append(&broken);
    let behind = events.len() as u64 + 1;
    assert!(matches!(refused, Err(StoreError::Gap { expected, found: 1 }) if expected == behind), "{refused:?}");
    // One whose accounting records cannot be written leaves no events either.
    store.db.execute_batch("CREATE TRIGGER full BEFORE INSERT ON ends BEGIN SELECT RAISE(ABORT, 'full'); END").unwrap();
    let refused = store.append(lost);
    assert!(matches!(refused, Err(StoreError::Database { action: "append to", .. })), "{refused:?}");
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
    // The third run has the event of the last but one snapshot and the one behind it.
    for run in [0..2, 2..3, 3..5, 5..events.len()] {
        store.append(&events[run]).unwrap();
    }
    for seq in [2, 4, 6] {
        store.keep_snapshot(&Snapshot::of(&fold(&events[..seq]))).unwrap();
    }
    assert!(!store.trim_step().unwrap());
    assert_eq!(replay(&store).unwrap().state, fold(&events));
    assert!(matches!(replay_all(&store), Err(StoreError::Gap { expected: 1, found: 4 })));
    assert_eq!(store.read(EventSeq(3), 9).unwrap(), events[3..12]);
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
    assert!(count > TRIM_RUNS && !store.trim_step().unwrap(), "without snapshots nothing is removed");
    let seq = events.len();
    store.keep_snapshot(&Snapshot::of(&fold(&events[..seq - 1]))).unwrap();
    store.keep_snapshot(&Snapshot::of(&fold(&events))).unwrap();
    assert!(store.trim_step().unwrap());
    assert_eq!(left(&store), count - TRIM_RUNS);
    while store.trim_step().unwrap() {}
    assert_eq!(left(&store), 1);
    assert_eq!(replay(&store).unwrap().state, fold(&events));
}

#[test]
fn runs_that_cannot_be_read_are_refused_with_their_place_and_the_remedy() {
    for (damage, expected) in [
        ("UPDATE events SET body = x'c1'", "the events up to that of event 9 are damaged"),
        ("UPDATE ends SET body = x'c1'", "the accounting records up to that of event 8 are damaged"),
        ("DELETE FROM ends", "event 8 (task-ended) is damaged: its accounting record is missing"),
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
    // All are of one row, which has another job's behind that one.
    assert_eq!(rows(rows(0, None)[1].seq.0, Some(2)), []);
}

/// Ends of two arrays, in turn, for more than one run.
fn ends_of_two_jobs(count: u64) -> Vec<Record> {
    let end = |seq| ended_task(seq, 1 + seq % 2, u32::try_from(seq.div_ceil(2)).unwrap());
    (1..=count).map(end).collect()
}

proptest! {
    /// However events came together, they are found behind any place, and the records among them by job.
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
                found.push(row.seq);
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
