//! The state of a cell out of its database: the newest good snapshot, then the log behind it.

use crate::store::{Store, StoreError};
use master_core::state::State;
use proto::id::EventSeq;

/// A state, and where it came from.
pub struct ReplayedState {
    /// The state after the last event.
    pub state: State,
    /// The last event of the snapshot it began with; 0 if there was none.
    pub snapshot: EventSeq,
    /// Events that were replayed behind it.
    pub events: u64,
    /// Snapshots that could not be used, each with the reason.
    pub passed_over: Vec<String>,
}

/// Replays with the help of snapshots.
///
/// # Errors
/// An event that is unknown, damaged or missing: see [`StoreError`].
pub fn replay(store: &Store) -> Result<ReplayedState, StoreError> {
    let (snapshot, passed_over) = store.newest_snapshot()?;
    let state = snapshot.map_or_else(State::new, State::restored);
    fold(store, state, passed_over)
}

/// Replays the log from its first event, whatever snapshots there are.
///
/// # Errors
/// As [`replay`]; `Gap` if the log was trimmed.
pub fn replay_all(store: &Store) -> Result<ReplayedState, StoreError> {
    fold(store, State::new(), Vec::new())
}

fn fold(store: &Store, mut state: State, passed_over: Vec<String>) -> Result<ReplayedState, StoreError> {
    let snapshot = state.last;
    let mut events = 0;
    store.replay(snapshot, |record| {
        state.apply(&record);
        events += 1;
    })?;
    Ok(ReplayedState {
        state,
        snapshot,
        events,
        passed_over,
    })
}
