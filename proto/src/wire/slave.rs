//! Slave tasks of parallel jobs: what `qrsh -inherit` asks for, and the bytes that travel between
//! that command and its task. The bytes of an interactive job travel in the same way between the
//! command that submitted it and the job.
//!
//! The command talks to the agent of its own host, that agent to the master, and the master to the
//! agent of the slave task's host; the three pass messages on and keep none. Between an agent and
//! the master all slave tasks share one stream, which the agent opens with an empty
//! [`Kind::Slave`](super::frame::Kind::Slave) frame. The two ends count bytes ([`flow`]): after a
//! break each says how far it has got, and the other one sends the rest again.

pub mod flow;

use crate::diagnostic::Diagnostic;
use crate::id::{TaskKey, UserName};
use crate::launch::terminal::WindowSize;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often the agent of a command's host says that the command of an interactive job is there.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// After this time without a sign of the other end, an interactive job is ended, and its command
/// gives up.
pub const SILENCE: Duration = Duration::from_secs(80);

/// What a slave task is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlaveSpec {
    /// The command and its arguments, at least one.
    pub command: Vec<String>,
    /// Variables of the caller that it gets beside those of the job (`-v`, `-V`).
    pub environment: Vec<(String, String)>,
    /// Whether a shell runs the command; not with `-noshell`.
    pub use_shell: bool,
    /// Whether it reads the caller's standard input; not with `-nostdin`.
    pub has_input: bool,
}

/// One of the three streams of a slave task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard input: from the command to the task.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Something that one end says to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The slave task, or the interactive job.
    pub key: TaskKey,
    /// The owner of the interactive job at whose command the message begins or ends, as the agent
    /// of that command's host vouches. `None` for a slave task, whose command is one of its job's
    /// processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserName>,
    /// What is said.
    pub part: SlaveMessage,
}

/// What the two ends and the master say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlaveMessage {
    /// The command is there, first and after every break: it has this much of the output.
    Attach {
        /// Bytes of standard output.
        output: u64,
        /// Bytes of standard error.
        error: u64,
    },
    /// The agent of the task answers an `Attach`: the task has this much of the input.
    Attached {
        /// Bytes of standard input.
        input: u64,
    },
    /// The agent of the task has a new connection: a command that is there attaches again.
    Present,
    /// The window of the command's terminal has another size.
    Window(WindowSize),
    /// The command of an interactive job is still connected to the agent of its host, which says so
    /// at intervals of [`HEARTBEAT`]. The agent of the task answers with `TaskAlive`.
    CommandAlive,
    /// The agent of the task has heard of the command.
    TaskAlive,
    /// A piece of a stream.
    Data {
        /// Which stream.
        stream: Stream,
        /// How many bytes of it came before.
        at: u64,
        /// The bytes; none is the end of the stream.
        #[serde(with = "super::frame::bytes")]
        bytes: Vec<u8>,
    },
    /// A stream has been received up to here: more may come.
    Have {
        /// Which stream.
        stream: Stream,
        /// Bytes of it.
        until: u64,
    },
    /// The command has gone: the task is ended.
    Left,
    /// The end of the task is on record.
    Over {
        /// Its exit status, 128 plus the signal's number for a signal; not 0 if it never started.
        status: u32,
        /// What went wrong on its host, if anything did.
        #[serde(default)]
        reason: String,
    },
    /// There is no such task, or not for this command.
    Refused(Diagnostic),
}

impl SlaveMessage {
    /// Whether the part holds more bytes of a stream than an honest sender puts into one.
    pub fn is_oversized(&self) -> bool {
        matches!(self, Self::Data { bytes, .. } if bytes.len() > flow::PIECE)
    }
}
