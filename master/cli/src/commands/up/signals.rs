//! Ctrl-C on `gridwright up`: what it has started is ended in order, and nothing is left that
//! nobody looks after.

use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP as something to wait for. Programs that are started meanwhile have
/// the signals as ever.
pub struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// From here on these signals end nothing by themselves.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn catch() -> Result<Self, Fail> {
        let refuse = |error: std::io::Error| {
            let refusal = Diagnostic::new(Code::SystemRefused, "error: cannot wait for signals");
            Fail::from(
                refusal
                    .why(error.to_string())
                    .fix("raise the limit of open files: ulimit -n"),
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refuse)?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
        let terminate = signal(SignalKind::terminate()).map_err(refuse)?;
        let hangup = signal(SignalKind::hangup()).map_err(refuse)?;
        drop(entered);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
            hangup,
        })
    }

    /// Waits for one of them; false if none comes within `patience`.
    pub fn comes_within(&mut self, patience: Duration) -> bool {
        let Self {
            runtime,
            interrupt,
            terminate,
            hangup,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => true,
                _ = terminate.recv() => true,
                _ = hangup.recv() => true,
                () = tokio::time::sleep(patience) => false,
            }
        })
    }
}
