//! Ctrl-C during the tour: it stops where it is and clears up, instead of leaving a cell behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use tokio::signal::unix::{SignalKind, signal};

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP are noted instead of ending this process. They are caught
/// and not blocked: programs that it starts would inherit a blocked signal, and never end.
pub fn catch() {
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            // A signal that cannot be caught ends the tour as it would have.
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
                return;
            };
            // Nobody listens only if the tour is over.
            let _ = ready.send(());
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                IS_INTERRUPTED.store(true, Ordering::Relaxed);
            }
        });
    });
    // Without a thread the sender is gone, and signals end the tour.
    let _ = is_ready.recv();
}

/// Whether such a signal has come.
pub fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}
