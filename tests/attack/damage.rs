//! A database that a bad disk has changed: the master refuses it and names what is wrong, or starts
//! with what was durable; it invents nothing.

use crate::seed::Seed;
use crate::stage::Attack;
use gridwright_tests::cell::{Cell, CommandOutput, PATIENCE, Record, records, wait_for};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "damaged-database",
        claim: "a database that is cut, emptied, gone or short of rows is refused by name, and whole again it has all",
        needs: &[],
        run: damaged_database,
    },
    Attack {
        name: "damaged-rest",
        claim: "damage of snapshots, write-ahead log and tickets costs no accounting record that was there and makes none",
        needs: &[],
        run: damaged_rest,
    },
];

/// Jobs whose accounting must stay as it is.
const JOBS: usize = 6;

/// A cell with the accounting of some jobs.
struct Books {
    cell: Cell,
    before: BTreeSet<String>,
}

/// The accounting records of a cell, each as one line.
fn books(cell: &Cell) -> BTreeSet<String> {
    let said = cell.admin(&["qacct", "-j", "*"]);
    let told: Vec<Record> = records(&said.out);
    told.iter()
        .map(|record| {
            ["jobnumber", "taskid", "failed", "exit_status", "end_time"]
                .map(|name| record.value(name).to_owned())
                .join(" ")
        })
        .collect()
}

impl Books {
    fn new() -> Self {
        let cell = Cell::up();
        let jobs: Vec<String> = (0..JOBS)
            .map(|_| cell.submit(&["-o", "/dev/null", "-b", "y", "true"]))
            .collect();
        jobs.iter().for_each(|job| drop(cell.accounted(job, 1)));
        // So that there is a row for each: runs of events are rows.
        let before = books(&cell);
        assert_eq!(before.len(), JOBS, "{before:?}");
        Self { cell, before }
    }

    fn database(&self) -> PathBuf {
        self.cell.dir().join("master/state.db")
    }

    /// Brings the cell up after the damage: whether it came up, or what it said when it did not.
    fn up(&self) -> Result<(), CommandOutput> {
        let up = self.cell.bring_up(&["--wait", "60"]);
        if up.code == 0 { Ok(()) } else { Err(up) }
    }
}

/// What is done to the database.
type Damage = fn(&Path);

/// Damages, and a word that the refusal has to name.
const DAMAGES: [(&str, Damage, &[&str]); 6] = [
    (
        "emptied",
        |db| std::fs::write(db, "").expect("it is ours"),
        &["state.db"],
    ),
    ("cut", |db| cut(db), &["state.db"]),
    (
        "gone",
        |db| std::fs::remove_file(db).expect("it is ours"),
        &["state.db"],
    ),
    (
        "something else",
        |db| std::fs::write(db, "a text\n".repeat(1000)).expect("it is ours"),
        &["state.db"],
    ),
    (
        "an event missing",
        |db| {
            sql(
                db,
                "DELETE FROM events WHERE last = (SELECT last FROM events ORDER BY last LIMIT 1 OFFSET 3)",
            )
        },
        &["event", "missing"],
    ),
    (
        "an event damaged",
        |db| {
            sql(
                db,
                "UPDATE events SET body = randomblob(40) WHERE last = (SELECT last FROM events ORDER BY last LIMIT 1 OFFSET 3)",
            )
        },
        &["event", "damaged"],
    ),
];

fn cut(db: &Path) {
    let length = std::fs::metadata(db).expect("it is there").len();
    OpenOptions::new()
        .write(true)
        .open(db)
        .and_then(|file| file.set_len(length / 2))
        .expect("it is ours");
}

fn sql(db: &Path, text: &str) {
    let connection = Connection::open(db).expect("a database");
    // Snapshots would pass over what is damaged before them.
    connection
        .execute_batch("DELETE FROM snapshot_parts; DELETE FROM snapshots;")
        .expect("the tables are there");
    connection.execute_batch(text).expect("the table is there");
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Copies the master's directory, so that each damage begins with a whole one.
fn keep(books: &Books) -> PathBuf {
    let kept = books.cell.top().join("kept");
    std::process::Command::new("cp")
        .arg("-a")
        .arg(books.cell.dir().join("master"))
        .arg(&kept)
        .status()
        .expect("there is cp");
    kept
}

fn restore(books: &Books, kept: &Path) {
    let master = books.cell.dir().join("master");
    std::fs::remove_dir_all(&master).expect("it is ours");
    std::process::Command::new("cp")
        .arg("-a")
        .arg(kept)
        .arg(&master)
        .status()
        .expect("there is cp");
}

fn damaged_database() {
    let books = Books::new();
    books.cell.down(&[]).ok();
    let kept = keep(&books);
    for (what, damage, words) in DAMAGES {
        damage(&books.database());
        match books.up() {
            Ok(()) => {
                assert_eq!(self::books(&books.cell), books.before, "{what}: accounting is another");
            }
            Err(refusal) => {
                let told = format!("{refusal}\n{}", books.cell.log("master"));
                for word in words {
                    assert!(told.contains(word), "{what}: {word:?} is not in {told}");
                }
            }
        }
        let _ = books.cell.down(&[]);
        restore(&books, &kept);
        books.cell.bring_up(&[]).ok();
        assert_eq!(self::books(&books.cell), books.before, "{what}: whole again");
        books.cell.down(&[]).ok();
    }
}

/// Writes noise over parts of a file.
fn scribble(path: &Path, seed: &mut Seed) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else {
        return;
    };
    let length = file.metadata().expect("it is open").len();
    for _ in 0..if length > 0 { 20 } else { 0 } {
        let (at, noise) = (seed.below(length), seed.bytes(64));
        file.write_all_at(&noise, at).expect("it is ours");
    }
}

fn damaged_rest() {
    for what in ["the write-ahead log", "the tickets", "the snapshots"] {
        damaged(what);
    }
}

fn damaged(what: &str) {
    let books = Books::new();
    let mut seed = Seed::new(5);
    let (cell, db) = (&books.cell, books.database());
    cell.kill("master");
    match what {
        "the write-ahead log" => scribble(&db.with_file_name("state.db-wal"), &mut seed),
        "the tickets" => scribble(&db.with_file_name("tickets.key"), &mut seed),
        _ => {
            let connection = Connection::open(&db).expect("a database");
            connection
                .execute_batch("UPDATE snapshot_parts SET body = zeroblob(100)")
                .expect("the table is there");
        }
    }
    match books.up() {
        // What the log had lost was not durable; what is told is true.
        Ok(()) => {
            assert!(
                self::books(cell).is_subset(&books.before),
                "{what}: {:?} was invented",
                self::books(cell)
            );
            let is_there = || self::books(cell) == books.before;
            assert!(
                what == "the write-ahead log" || wait_for(PATIENCE, is_there),
                "{what}: accounting is short"
            );
            assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
        }
        Err(refusal) => assert!(
            refusal.err.contains("fix:") && refusal.err.contains("why:"),
            "{what}: {refusal}"
        ),
    }
}
