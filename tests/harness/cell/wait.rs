//! Waiting for what can be observed.

use std::time::{Duration, Instant};

/// How long anything may take on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The pause between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Whether something holds within `patience`.
pub fn wait_for(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !holds() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// Waits until something holds.
///
/// # Panics
/// If it does not within [`PATIENCE`]; `what` says what was waited for.
#[track_caller]
pub fn wait_until(what: impl Fn() -> String, holds: impl FnMut() -> bool) {
    assert!(
        wait_for(PATIENCE, holds),
        "not within {} s: {}",
        PATIENCE.as_secs(),
        what()
    );
}
