//! The golden logs: one of each version of a cell, whose replay must give for ever what it gave
//! then.
//!
//! A log is a text, one event a line: seq, tick, wall, kind, version, actor, request, body, the
//! last three in hexadecimal, `-` for none. Beside it lies what its replay gives, as a text too, so
//! that a difference can be read. A release with a new version of a cell adds its log with
//! `GRIDWRIGHT_WRITE_GOLDEN=1 cargo test -p gridwright-master golden`, which never overwrites one
//! that is there. Until that release, its two files may be removed and written anew.

use super::codec::StoredEvent;
use super::{Store, upgrade};
use crate::replay::replay;
use crate::testing::{TempDir, eventful_history};
use data_encoding::HEXLOWER;
use master_core::event::Record;
use master_core::ledger::Level;
use master_core::state::State;
use master_core::state::job::{Job, Task};
use master_core::state::usage::{Amounts, DecayedUsage};
use proto::cell_version::CellVersion;
use proto::id::{EventSeq, TaskId};
use proto::wire::frame::encode;
use rusqlite::params;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The names of the logs, one for each version of a cell from the first on.
const LOGS: &[&str] = &["0.1.0", "cell-version-2"];

/// The log of the newest version of a cell.
const NEWEST: &str = LOGS[CellVersion::NEWEST.0 as usize - 1];

fn file(log: &str, ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/store/golden")
        .join(format!("{log}.{ending}"))
}

/// What is true after the last event, in words that do not change with the types of the state.
fn state_text(state: &State) -> String {
    let mut text = String::new();
    let mut line = |line: String| text.push_str(&(line + "\n"));
    line(format!(
        "cell {:x} epoch {} event {}",
        state.cell.0, state.epoch.0, state.last.0
    ));
    if state.version > CellVersion::FIRST {
        line(format!("version {}", state.version));
    }
    for job in state.jobs.values() {
        tell_job(job, &mut line);
    }
    for job in &state.finished {
        let ends: Vec<_> = job
            .tasks
            .iter()
            .map(|task| (task.task.0, task.exit_status, task.deleted))
            .collect();
        line(format!("finished {} {ends:?}", job.number));
    }
    for (instance, state) in &state.instances {
        line(format!(
            "{instance} {} {} {:?}",
            state.disabled, state.suspended, state.errors
        ));
        if state.stops_tasks() && !state.suspended {
            line(format!(
                "{instance} {:?} {} {}",
                state.calendar, state.subordinate, state.preempted
            ));
        }
    }
    tell_rest(state, &mut line);
    line(format!("{} answers", state.answers.len()));
    text
}

fn tell_job(job: &Job, line: &mut impl FnMut(String)) {
    let waits: Vec<u64> = job
        .waits_for
        .iter()
        .chain(&job.array_waits_for)
        .map(|seq| seq.0)
        .collect();
    line(format!(
        "job {} of {}: waits for {waits:?}",
        job.number, job.spec.owner.user
    ));
    for range in job.untouched.ranges() {
        line(format!(
            "  untouched {}-{}:{} {:?}",
            range.first(),
            range.last(),
            range.step(),
            job.spec.holds
        ));
    }
    for (task, own) in job.tasks.iter() {
        tell_task(*task, own, line);
    }
}

fn tell_task(task: TaskId, own: &Task, line: &mut impl FnMut(String)) {
    let place = own.place.placement().map(|placed| {
        let stopped = [
            placed.suspended,
            placed.suspended_by_threshold,
            placed.deleting,
            placed.rescheduling,
        ];
        format!("on {} since {:?} {stopped:?}", placed.master(), placed.started)
    });
    let error = own.place.error().unwrap_or("none");
    if own.place.placement().is_some_and(|placed| placed.preempted) {
        line(format!("  task {task} gives way"));
    }
    if own.place.placement().is_some_and(|placed| placed.migrating) {
        line(format!("  task {task} goes on elsewhere"));
    }
    if let Some(slaves) = own.place.placement().and_then(|placed| placed.own_slaves.as_deref()) {
        let (live, ended): (Vec<_>, Vec<_>) = (slaves.live.keys().collect(), slaves.ended.iter().collect());
        line(format!(
            "  slaves of task {task} {live:?} {ended:?} used {} ms",
            slaves.used.cpu_ms
        ));
    }
    line(format!(
        "  task {task} attempt {} {:?} {place:?} error {error}",
        own.attempts, own.holds
    ));
}

/// What is neither a job nor a queue instance.
fn tell_rest(state: &State, line: &mut impl FnMut(String)) {
    for reservation in state.reservations.values() {
        let (id, spec) = (reservation.id, &reservation.spec);
        line(format!(
            "reservation {id} {:?} of {} for {:?}",
            reservation.state, spec.owner.user, spec.users
        ));
    }
    for instance in state.config.resolved.keys() {
        line(format!(
            "{instance} uses {} slots",
            state.ledger.slots(&Level::Instance(instance.clone()))
        ));
    }
    for (host, serials) in &state.certificates {
        line(format!(
            "{host} has certificates {:?}",
            serials.keys().collect::<Vec<_>>()
        ));
    }
    for token in state.tokens.values() {
        line(format!(
            "token {} for {} {} times",
            token.hash, token.host_pattern, token.uses_left
        ));
    }
    for (host, keys) in &state.unconfirmed {
        line(format!(
            "{host} may still run {:?}",
            keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        ));
    }
    for account in state.usage.names() {
        let DecayedUsage { cpu, mem, io, lifetime } = state.used(account, Amounts::default(), state.now);
        let project = account.project.as_deref().unwrap_or("none");
        line(format!(
            "{} in {project} has used {cpu} {mem} {io} of {}",
            account.user, lifetime.cpu
        ));
    }
}

/// A log as text, each event whole.
fn written(store: &Store) -> String {
    let mut text = String::new();
    let write = |record: Record| {
        let StoredEvent {
            seq,
            tick,
            wall,
            kind,
            version,
            actor,
            request,
            body,
        } = StoredEvent::whole(&record);
        let request = request.map_or("-".to_owned(), |request| HEXLOWER.encode(&request.0.to_be_bytes()));
        let (actor, body) = (HEXLOWER.encode(&encode(&*actor)), HEXLOWER.encode(&body));
        writeln!(text, "{seq} {tick} {wall} {kind} {version} {actor} {request} {body}").unwrap();
    };
    store.replay(EventSeq(0), write).unwrap();
    text
}

/// A database whose log is a text, byte for byte: one of the old version, whose rows were lines of
/// such a text.
fn load(path: &Path, text: &str) -> Store {
    let db = upgrade::tests::old_database(path);
    for line in text.lines() {
        let [seq, tick, wall, kind, version, actor, request, body] =
            line.split(' ').collect::<Vec<_>>()[..].try_into().unwrap();
        let number = |text: &str| text.parse::<i64>().unwrap();
        let bytes = |text: &str| HEXLOWER.decode(text.as_bytes()).unwrap();
        let request = (request != "-").then(|| bytes(request));
        let row = params![
            number(seq),
            number(tick),
            number(wall),
            kind,
            number(version),
            bytes(actor),
            request,
            bytes(body)
        ];
        db.execute("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", row)
            .unwrap();
    }
    Store::open(path).unwrap()
}

#[test]
fn golden_logs_of_every_version_replay_to_what_they_gave_then() {
    if std::env::var_os("GRIDWRIGHT_WRITE_GOLDEN").is_some() {
        write_missing();
    }
    assert_eq!(
        LOGS.len(),
        CellVersion::NEWEST.0 as usize,
        "each version of a cell has a log"
    );
    for name in LOGS {
        let dir = TempDir::new("golden");
        let log = std::fs::read_to_string(file(name, "log")).unwrap();
        let store = load(&dir.path().join("state.db"), &log);
        let state = replay(&store).unwrap().state;
        let expected = std::fs::read_to_string(file(name, "state")).unwrap();
        assert_eq!(state_text(&state), expected, "the log {name}");
    }
}

#[test]
fn the_golden_log_of_the_newest_version_has_every_kind_of_event() {
    let log = std::fs::read_to_string(file(NEWEST, "log")).unwrap();
    let kinds: std::collections::BTreeSet<&str> = log.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    let missing: Vec<_> = super::codec::KINDS
        .iter()
        .filter(|kind| !kinds.contains(**kind))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn write_missing() {
    if file(NEWEST, "log").exists() {
        return;
    }
    let dir = TempDir::new("golden");
    let mut store = Store::create(&dir.path().join("state.db")).unwrap();
    store.append(&eventful_history()).unwrap();
    std::fs::write(file(NEWEST, "log"), written(&store)).unwrap();
    std::fs::write(file(NEWEST, "state"), state_text(&replay(&store).unwrap().state)).unwrap();
}
