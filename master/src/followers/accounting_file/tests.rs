use super::*;
use crate::testing::{TempDir, cell_events};
use AccountingFormat::{Classic, JsonLines};
use std::fs;

/// A classic file that is never put aside.
const RULES: AccountingFileRules = AccountingFileRules {
    format: Classic,
    limits: RotationLimits {
        bytes: None,
        age: None,
        kept: None,
        kept_for: None,
    },
};

/// A file that is put aside whenever it holds anything.
fn turning(format: AccountingFormat) -> AccountingFileRules {
    AccountingFileRules {
        format,
        limits: RotationLimits {
            bytes: Some(1),
            ..RULES.limits
        },
    }
}

/// A database with the records of `jobs` jobs, and the lines that the file should have.
fn database(dir: &TempDir, jobs: u64) -> (Store, Vec<Record>, String) {
    let events = cell_events(jobs);
    let mut store = Store::create(&dir.path().join("state.db")).unwrap();
    store.append(&events).unwrap();
    let (lines, _) = lines_of(&events, Classic, EventSeq(0));
    (store, events, lines)
}

#[test]
fn records_are_appended_as_they_come() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let store = Store::create(&dir.path().join("state.db")).unwrap();
    let mut file = AccountingFile::open(&path, RULES, &store).unwrap();
    let events = cell_events(3);
    assert!(file.append(&events));
    assert!(!file.append(&events[..4]), "the events of a new cell have no record");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        lines_of(&events, Classic, EventSeq(0)).0
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
                    .keep_accounting_cursor(
                        Classic,
                        AccountingCursor {
                            seq,
                            bytes: first_line as u64,
                            inode,
                        },
                    )
                    .unwrap();
            }
            AccountingFile::open(&path, RULES, &store).unwrap();
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
    let mut file = AccountingFile::open(&path, RULES, &store).unwrap();
    std::fs::rename(&path, dir.path().join("accounting.1")).unwrap();
    // They are new to the file that comes.
    file.last = EventSeq(0);
    assert!(file.append(&events));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
    file.sync(&store).unwrap();
    AccountingFile::open(&path, RULES, &store).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}

#[test]
fn what_a_full_disk_refused_is_written_once_when_there_is_room_again() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (store, events, lines) = database(&dir, 3);
    std::fs::write(&path, "").unwrap();
    let mut file = AccountingFile::open(&path, RULES, &store).unwrap();
    // Half a line had room.
    std::fs::write(&path, &lines[..20]).unwrap();
    store
        .keep_accounting_cursor(
            Classic,
            AccountingCursor {
                seq: EventSeq(0),
                bytes: 0,
                inode: file.inode,
            },
        )
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
    AccountingFile::open(&path, RULES, &store).unwrap();
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
    let mut file = AccountingFile::open(&path, RULES, &store).unwrap();
    let all = cell_events(7);
    let (new, lines) = (&all[events.len()..], lines_of(&all, Classic, EventSeq(0)).0);
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
    let mut file = AccountingFile::open(&dir.path().join("other"), RULES, &store).unwrap();
    store
        .keep_accounting_cursor(Classic, AccountingCursor::default())
        .unwrap();
    (file.path, file.is_behind) = (path.clone(), true);
    file.sync(&store).unwrap();
    let fourth = events
        .iter()
        .filter(|record| record.event.accounting().is_some())
        .nth(3)
        .unwrap()
        .seq;
    let cursor = store.accounting_cursor(Classic).unwrap();
    assert_eq!(
        (cursor.seq, cursor.bytes),
        (fourth, lines.lines().take(4).map(|line| line.len() as u64 + 1).sum())
    );
    AccountingFile::open(&path, RULES, &store).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
}

/// What is in the files that were put aside and then in the file itself.
fn all_lines(path: &Path) -> String {
    let place = FilePlace::find(path).unwrap();
    let rotated = place.rotated().unwrap();
    let mut text: String = rotated
        .into_iter()
        .map(|rotated| fs::read_to_string(place.path_of(rotated)).unwrap())
        .collect();
    text += &fs::read_to_string(path).unwrap();
    text
}

#[test]
fn a_file_that_is_put_aside_has_an_index_and_its_successor_goes_on() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting");
    let (mut store, events, _) = database(&dir, 3);
    let mut file = AccountingFile::open(&path, turning(Classic), &store).unwrap();
    file.sync(&store).unwrap();
    let all = cell_events(7);
    let new = &all[events.len()..];
    store.append(new).unwrap();
    assert!(file.append(new));
    file.sync(&store).unwrap();
    let place = FilePlace::find(&path).unwrap();
    assert_eq!(place.rotated().unwrap().len(), 2);
    assert_eq!(all_lines(&path), lines_of(&all, Classic, EventSeq(0)).0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    file.indexer.wait();
    indexing::make_missing(&place).unwrap();
    for rotated in place.rotated().unwrap() {
        let index = fs::read(place.index_of(rotated)).unwrap();
        let bytes = fs::metadata(place.path_of(rotated)).unwrap().len();
        let head = proto::accounting::index::IndexHead::parse(index.first_chunk().unwrap(), index.len() as u64, bytes);
        let lines = fs::read_to_string(place.path_of(rotated)).unwrap().lines().count();
        assert_eq!(head.unwrap().entries, lines as u64);
    }
}

#[test]
fn wherever_a_kill_interrupts_a_rotation_no_record_is_lost_and_none_is_there_twice() {
    // How far it came: nothing but the note, the new name, the new file, the note about that.
    for format in [Classic, JsonLines] {
        for steps in 0..=3 {
            let dir = TempDir::new("accounting");
            let path = dir.path().join("accounting");
            let (mut store, events, _) = database(&dir, 6);
            let mut file = AccountingFile::open(&path, AccountingFileRules { format, ..RULES }, &store).unwrap();
            file.keep_cursor(&store).unwrap();
            if steps >= 1 {
                FilePlace::find(&path).unwrap().put_aside(SystemTime::now()).unwrap();
            }
            if steps >= 2 {
                file.file = super::open(&path).unwrap();
                file.inode = file.file.metadata().unwrap().ino();
            }
            if steps >= 3 {
                file.keep_cursor(&store).unwrap();
            }
            drop(file);
            // What the database took before the kill and the file never saw.
            let all = cell_events(11);
            store.append(&all[events.len()..]).unwrap();
            for _ in 0..2 {
                AccountingFile::open(&path, AccountingFileRules { format, ..RULES }, &store).unwrap();
                let expected = lines_of(&all, format, EventSeq(0)).0;
                assert_eq!(all_lines(&path), expected, "{format:?}, {steps} steps");
            }
        }
    }
}

#[test]
fn a_file_behind_a_link_is_put_aside_in_its_own_directory() {
    let dir = TempDir::new("accounting");
    let (own, link) = (dir.path().join("own"), dir.path().join("accounting"));
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink("own/accounting", &link).unwrap();
    let (store, _, lines) = database(&dir, 2);
    let mut file = AccountingFile::open(&link, turning(Classic), &store).unwrap();
    file.sync(&store).unwrap();
    let place = FilePlace::find(&link).unwrap();
    assert_eq!(place.dir, fs::canonicalize(&own).unwrap());
    assert_eq!(place.rotated().unwrap().len(), 1);
    assert_eq!(all_lines(&link), lines);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_new_file_of_json_lines_gets_the_records_of_an_old_cell_part_by_part() {
    let dir = TempDir::new("accounting");
    let path = dir.path().join("accounting.jsonl");
    let (mut store, events, _) = database(&dir, 7);
    let rules = AccountingFileRules {
        format: JsonLines,
        ..RULES
    };
    let mut file = AccountingFile::open_behind(&path, rules).unwrap();
    let all = cell_events(9);
    store.append(&all[events.len()..]).unwrap();
    assert!(file.append(&all[events.len()..]), "they are for a later sync");
    while file.is_behind() {
        file.sync(&store).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, lines_of(&all, JsonLines, EventSeq(0)).0);
    assert_eq!(text.lines().count(), 9);
    assert!(
        text.lines()
            .all(|line| line.starts_with("{\"job_number\":") && line.ends_with('}'))
    );
}
