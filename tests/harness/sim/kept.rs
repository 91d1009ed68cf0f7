//! What is kept of what the master made durable: its log, the state that the readers fold from
//! that, and the rules that judge each event against both. Nothing of it decides what happens next
//! unless somebody looks.

use super::apart::Worker;
use super::rules::Rules;
use super::world::World;
use master_core::event::Record;
use master_core::state::State;
use std::sync::Arc;

/// The disk of the master, and the rules that judge what comes to lie there.
#[derive(Debug)]
pub(super) struct MasterDisk {
    pub(super) log: Vec<Arc<Record>>,
    /// The fold of the log, as the reader thread has it.
    pub(super) state: State,
    rules: Rules,
}

/// The snapshots, and who reads them again.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    newest: Vec<u8>,
    /// The one before it, for a newest one that does not read.
    older: Vec<u8>,
}

/// What is to be done with the snapshots.
#[derive(Debug)]
pub(super) enum SnapshotJob {
    /// This state is written as one.
    Write(Box<State>),
    /// The state is read as a starting master reads it.
    Read(Box<Replay>),
}

/// A log, and the state to which it must lead.
#[derive(Debug)]
pub(super) struct Replay {
    log: Vec<Arc<Record>>,
    state: State,
    is_newest: bool,
}

impl Worker for Snapshots {
    type Word = SnapshotJob;

    const BUNDLE: usize = 1;

    fn obey(&mut self, word: SnapshotJob) {
        match word {
            SnapshotJob::Write(state) => {
                let snapshot = rmp_serde::to_vec_named(&state).expect("a snapshot encodes");
                self.older = std::mem::replace(&mut self.newest, snapshot);
            }
            SnapshotJob::Read(replay) => drop(self.read(&replay)),
        }
    }
}

impl Snapshots {
    /// The state as a starting master finds it: from a snapshot and what was logged after it.
    ///
    /// # Panics
    /// If it is not the one that the readers of the log have.
    pub(super) fn read(&self, replay: &Replay) -> State {
        let snapshot = if replay.is_newest { &self.newest } else { &self.older };
        let mut state = if snapshot.is_empty() {
            State::new()
        } else {
            rmp_serde::from_slice::<State>(snapshot)
                .expect("a snapshot reads")
                .restored()
        };
        let seen = state.last.0 as usize;
        replay.log[seen..].iter().for_each(|record| drop(state.apply(record)));
        assert!(state == replay.state, "replay differs from the state of the readers");
        state.check();
        state
    }
}

impl Worker for MasterDisk {
    type Word = Vec<Arc<Record>>;

    const BUNDLE: usize = 1;

    fn obey(&mut self, records: Vec<Arc<Record>>) {
        records.iter().for_each(|record| self.keep(record));
    }
}

impl MasterDisk {
    /// Nothing yet.
    pub(super) fn new(rules: Rules) -> MasterDisk {
        MasterDisk {
            log: Vec::new(),
            state: State::new(),
            rules,
        }
    }

    fn keep(&mut self, record: &Record) {
        self.rules.judge(record, &self.state);
        let stored = rmp_serde::to_vec_named(record).expect("a record encodes");
        let stored: Record = rmp_serde::from_slice(&stored).expect("a record decodes");
        assert_eq!(stored, *record, "a record is read as it was written");
        assert_eq!(stored.seq.0, self.log.len() as u64 + 1, "the log has no gaps");
        self.state.apply(&stored);
        self.log.push(Arc::new(stored));
        self.rules.read(record, &self.state);
    }

    /// The log as a starting master reads it, from the newest snapshot or from the one before.
    pub(super) fn replay(&self, is_newest: bool) -> Box<Replay> {
        Box::new(Replay {
            log: self.log.clone(),
            state: self.state.clone(),
            is_newest,
        })
    }

    /// Everything that the rules add up from event to event, added up anew.
    pub(super) fn compare_all(&self) {
        self.rules.compare_all(&self.state);
    }
}

impl World {
    /// The fold of the log, while everything that is durable has been judged.
    pub(super) fn state(&self) -> &State {
        &self.kept.here().state
    }
}
