//! What the driver of a sensor is to do, and the two things it may say to the sensor.

use crate::protocol::line::Meaning;
use crate::protocol::machine::Health;
use crate::protocol::reader::Block;
use crate::protocol::warning::Warning;
use std::sync::Arc;

/// What is written to a sensor. Nothing else ever is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Report your values.
    Collect,
    /// End.
    Quit,
}

impl Request {
    /// The bytes to write, in one piece.
    pub fn as_bytes(self) -> &'static [u8] {
        match self {
            Request::Collect => b"\n",
            Request::Quit => b"quit\n",
        }
    }
}

/// A signal for a sensor's whole process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// How a sensor's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Status(status) => write!(f, "exit status {status}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// One thing for the driver to do or to note, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the process, in a group of its own, then call `started` or `start_failed`.
    Start,
    /// Write to its standard input without blocking. A failed write is no news: the end of the
    /// process will be.
    Write(Request),
    /// Close its standard input.
    CloseStdin,
    /// Send a signal to its process group; that nobody is left in it is no failure.
    SignalGroup(Signal),
    /// A complete block is the newest one now; `values_for_report` gives it too.
    Block(Arc<Block>),
    /// Log this.
    Warn(Warning),
    /// The sensor's health changed.
    Health {
        /// What it was.
        from: Health,
        /// What it is.
        to: Health,
    },
    /// A line of standard error to log; rate-limited.
    Stderr(String),
    /// What one line means; only where every line is traced.
    Line {
        /// The line as it came.
        text: String,
        /// What it was understood to be.
        meaning: Meaning,
    },
    /// The sensor has ended for good; drop the machine.
    Ended,
}
