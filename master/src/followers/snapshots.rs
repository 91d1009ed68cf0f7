//! Snapshots while the cell works: a thread of its own writes an image of the state, so that nobody
//! waits for it.

use crate::signs::Signs;
use crate::store::{Store, StoreError};
use master_core::state::State;
use std::path::Path;
use tokio::sync::mpsc;

/// When the next snapshot is due, and the one that is being written.
pub struct Snapshots {
    /// Events between two, at least.
    events: u64,
    /// Whether one removes the log before the one that precedes it.
    trims: bool,
    /// The last event of the last one.
    last: u64,
    /// Whether one is being written.
    is_writing: bool,
    /// Whether the disk has room for one.
    signs: Signs,
    sender: mpsc::Sender<SnapshotResult>,
    receiver: mpsc::Receiver<SnapshotResult>,
}

/// What became of one.
pub struct SnapshotResult {
    seq: u64,
    bytes: Result<u64, StoreError>,
}

impl Snapshots {
    /// The next ones of a state that was just restored.
    pub fn new(state: &State, events: u64, trims: bool, signs: Signs) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        Self {
            events,
            trims,
            last: state.last.0,
            is_writing: false,
            signs,
            sender,
            receiver,
        }
    }

    /// Begins one if it is due and the one before is written, and the disk has room. It comes
    /// seldom enough that it costs each event the same, however many jobs there are.
    pub(super) fn after_batch(&mut self, state: &State, store: &Store) {
        let events = self.events.max(state.jobs.len() as u64);
        if self.is_writing || self.signs.is_short() || state.last.0 < self.last + events {
            return;
        }
        self.last = state.last.0;
        let (image, path, sender) = (state.image(), store.path().to_owned(), self.sender.clone());
        let (trims, signs) = (self.trims, self.signs.clone());
        let work = move || {
            let written = write(&path, &image, trims, &signs);
            // At the end of the master nobody has to know any more.
            let _ = sender.blocking_send(written);
        };
        match std::thread::Builder::new()
            .name("master-snapshot".to_owned())
            .spawn(work)
        {
            Ok(_) => self.is_writing = true,
            Err(error) => tracing::warn!(
                "no snapshot after event {}: no thread can be started: {error}",
                self.last
            ),
        }
    }

    /// Waits for the one that is being written; for ever if there is none.
    pub async fn written(&mut self) -> SnapshotResult {
        let written = self.receiver.recv().await.expect("there is a sender here");
        self.is_writing = false;
        written
    }

    /// The last one, with which the next start begins; on a short disk that begins with an earlier
    /// one.
    pub(super) fn finish(&mut self, store: &mut Store, state: &State) {
        if self.is_writing
            && let Some(written) = self.receiver.blocking_recv()
        {
            written.log();
        }
        let signs = &self.signs;
        SnapshotResult {
            seq: state.last.0,
            bytes: store.keep_snapshot_while(state, &|| !signs.is_short()),
        }
        .log();
    }
}

fn write(path: &Path, image: &State, trims: bool, signs: &Signs) -> SnapshotResult {
    let work = || {
        let mut store = Store::open(path)?;
        let bytes = store.keep_snapshot_while(image, &|| !signs.is_short())?;
        if trims {
            store.trim()?;
        }
        Ok(bytes)
    };
    SnapshotResult {
        seq: image.last.0,
        bytes: work(),
    }
}

impl SnapshotResult {
    /// Writes the outcome to the log.
    pub fn log(&self) {
        match &self.bytes {
            Ok(bytes) => tracing::debug!("snapshot after event {}: {bytes} bytes", self.seq),
            // A start without it takes longer: nothing is lost. What was not trimmed is with the
            // next one.
            Err(error) => tracing::warn!("{}", crate::error_chain(error)),
        }
    }
}
