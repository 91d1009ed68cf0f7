use super::*;
use crate::testing::{TempDir, cell_events};

/// A database with the records of `jobs` jobs, and the lines that the file should have.
fn database(dir: &TempDir, jobs: u64) -> (Store, Vec<Record>, String) {
    let events = cell_events(jobs);
    let mut store = Store::create(&dir.path().join("state.db")).unwrap();
    store.append(&events).unwrap();
    let (lines, _) = lines_of(&events, EventSeq(0));
    (store, events, lines)
}

#[test]
fn records_are_appended_as_they_come() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let store = Store::create(&dir.path().join("state.db")).unwrap();
    let mut file = AccountingFile::open(&path, &store).unwrap();
    let events = cell_events(3);
    assert!(file.append(&events));
    assert!(!file.append(&events[..4]), "the events of a new cell have no record");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        lines_of(&events, EventSeq(0)).0
    );
}

#[test]
fn after_a_crash_no_line_is_lost_and_none_is_there_twice() {
    // How much of the three lines had reached the disk, in bytes; whether the last note was taken
    // after the first line.
    let whole = database(&TempDir::new("accounting"), 3).2;
    let first_line = whole.find('\n').unwrap() + 1;
    for is_noted in [false, true] {
        for written in [
            0,
            1,
            first_line,
            first_line + 7,
            2 * first_line,
            whole.len() - 1,
            whole.len(),
        ] {
            if is_noted && written < first_line {
                continue;
            }
            let dir = TempDir::new("accounting");
            let path = dir.path().join("accounting");
            let (store, events, lines) = database(&dir, 3);
            std::fs::write(&path, &lines[..written]).unwrap();
            if is_noted {
                let inode = std::fs::metadata(&path).unwrap().ino();
                let seq = events
                    .iter()
                    .find(|record| record.event.accounting().is_some())
                    .unwrap()
                    .seq;
                store
                    .keep_accounting_cursor(AccountingCursor {
                        seq,
                        bytes: first_line as u64,
                        inode,
                    })
                    .unwrap();
            }
            AccountingFile::open(&path, &store).unwrap();
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                lines,
                "{written} bytes, noted: {is_noted}"
            );
        }
    }
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (store, events, lines) = database(&dir, 2);
    let mut file = AccountingFile::open(&path, &store).unwrap();
    std::fs::rename(&path, dir.path().join("accounting.1")).unwrap();
    // They are new to the file that comes.
    file.last = EventSeq(0);
    assert!(file.append(&events));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
    file.sync(&store).unwrap();
    AccountingFile::open(&path, &store).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}

#[test]
fn what_a_full_disk_refused_is_written_once_when_there_is_room_again() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (store, events, lines) = database(&dir, 3);
    std::fs::write(&path, "").unwrap();
    let mut file = AccountingFile::open(&path, &store).unwrap();
    // Half a line had room.
    std::fs::write(&path, &lines[..20]).unwrap();
    store
        .keep_accounting_cursor(AccountingCursor {
            seq: EventSeq(0),
            bytes: 0,
            inode: file.inode,
        })
        .unwrap();
    (file.is_behind, file.last) = (true, EventSeq(0));
    assert!(file.append(&events), "there is something to be synced");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), &lines[..20]);
    file.sync(&store).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}

#[test]
fn lines_of_other_programs_stay() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (store, _, lines) = database(&dir, 1);
    std::fs::write(&path, "# kept by hand\n").unwrap();
    AccountingFile::open(&path, &store).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("# kept by hand\n{lines}")
    );
}

#[test]
fn records_that_were_on_their_way_while_the_file_caught_up_are_written_once() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (mut store, events, _) = database(&dir, 0);
    let mut file = AccountingFile::open(&path, &store).unwrap();
    let all = cell_events(7);
    let (new, lines) = (&all[events.len()..], lines_of(&all, EventSeq(0)).0);
    store.append(new).unwrap();
    file.is_behind = true;
    let mut rounds = 0;
    while file.is_behind() {
        file.sync(&store).unwrap();
        rounds += 1;
    }
    assert_eq!(rounds, 2, "it catches up in parts");
    let last = file.last;
    assert!(!file.append(new) && !file.skip(new));
    assert_eq!((std::fs::read_to_string(&path).unwrap(), file.last), (lines, last));
}

#[test]
fn catching_up_goes_on_where_an_attempt_ended() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (store, events, lines) = database(&dir, 11);
    std::fs::write(&path, &lines[..lines.len() - 30]).unwrap();
    let mut file = AccountingFile::open(&dir.path().join("other"), &store).unwrap();
    store.keep_accounting_cursor(AccountingCursor::default()).unwrap();
    (file.path, file.is_behind) = (path.clone(), true);
    file.sync(&store).unwrap();
    let fourth = events
        .iter()
        .filter(|record| record.event.accounting().is_some())
        .nth(3)
        .unwrap()
        .seq;
    let cursor = store.accounting_cursor().unwrap();
    assert_eq!(
        (cursor.seq, cursor.bytes),
        (fourth, lines.lines().take(4).map(|line| line.len() as u64 + 1).sum())
    );
    AccountingFile::open(&path, &store).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}
