//! Whether a task could be started now, whatever task it is. The agent asks, so that its host gets
//! none while the answer is no.

use super::Server;
use crate::launcher::rules::Refusal;
use crate::sys::{self, Fork};
use crate::task_dir::{self, LackOfRoom};
use proto::id::TaskKey;
use proto::launch::{Blame, Notice, SensorSpec};
use std::io;
use std::os::unix::net::UnixStream;

/// The room on the disk of `tasks/` below which nothing is started: a document, a script, a record
/// and a result.
const MIN_FREE_BYTES: u64 = 1 << 20;

/// Pairs of descriptors that must be free: a start takes a socket pair, and a script or three
/// streams came with it.
const SPARE_PAIRS: usize = 3;

/// Failures of the last starts. Only another attempt shows whether the cause is gone.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether the last start could not be recorded.
    pub(super) is_journal_stuck: bool,
    /// Whether no process could be made for the last start.
    pub(super) is_without_processes: bool,
}

impl Server {
    /// Returns the reason why no task can start. `None` means that tasks can start.
    pub(super) fn trouble(&mut self) -> Option<String> {
        let room = room_for(0).err().map(|lack| lack.to_string());
        room.or_else(lack_of_descriptors)
            .or_else(|| self.stuck_journal())
            .or_else(|| self.lack_of_processes())
    }

    /// A journal that failed is written to again; one that did not is not, for a sync is not free.
    fn stuck_journal(&mut self) -> Option<String> {
        let error = self.health.is_journal_stuck.then(|| self.journal.probe().err())?;
        self.health.is_journal_stuck = error.is_some();
        error.map(|error| unrecorded(&error))
    }

    fn lack_of_processes(&mut self) -> Option<String> {
        if !self.health.is_without_processes {
            return None;
        }
        let error = match sys::fork() {
            Ok(Fork::Child) => sys::exit_now(0),
            // It is reaped like any other child.
            Ok(Fork::Parent(_)) => None,
            Err(error) => Some(error),
        };
        self.health.is_without_processes = error.is_some();
        error.map(|error| no_shepherd(&error))
    }
}

/// Whether there is room for another task with a script of so many bytes.
///
/// # Errors
/// The disk has too little room.
pub(super) fn room_for(script_bytes: u64) -> Result<(), LackOfRoom> {
    task_dir::room(MIN_FREE_BYTES.saturating_add(script_bytes))
}

fn lack_of_descriptors() -> Option<String> {
    let pairs: io::Result<Vec<_>> = (0..SPARE_PAIRS).map(|_| UnixStream::pair()).collect();
    pairs
        .err()
        .map(|error| format!("the launcher is out of descriptors (ulimit -n): {error}"))
}

/// Why a start is refused that could not be recorded.
pub(super) fn unrecorded(error: &io::Error) -> String {
    format!("the start cannot be recorded: {error}")
}

/// Why a start is refused for which there was no process.
pub(super) fn no_shepherd(error: &io::Error) -> String {
    format!("cannot start a shepherd: {error}")
}

pub(super) fn refused(key: TaskKey, Refusal { blame, text }: Refusal) -> Notice {
    Notice::Refused {
        key: Some(key),
        sensor: None,
        text,
        blame,
    }
}

pub(super) fn refused_sensor(spec: &SensorSpec, text: String) -> Notice {
    Notice::Refused {
        key: None,
        sensor: Some(spec.id),
        text,
        blame: Blame::Job,
    }
}
