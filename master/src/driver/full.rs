//! What the driver does where the disk has little room or none: it refuses changes, and keeps what it cannot make durable yet.

use super::{Driver, DriverInput, Turn};
use crate::query::QueryInput;
use crate::reserve::DiskRoom;
use crate::scheduler::SchedulerInput;
use crate::store::{ScriptChanges, StoreError};
use master_core::effect::{Input, ReplyTo};
use master_core::event::Record;
use proto::id::RequestId;
use proto::wire::client::Reply;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The pause between two attempts to make a turn durable on a full disk.
const PAUSE: Duration = Duration::from_millis(200);

/// How long nothing must have come before the driver tidies up.
const TIDYING: Duration = Duration::from_millis(20);

/// Inputs that are kept meanwhile; others wait in their queue.
const HELD: usize = 16_384;

impl Driver {
    /// Looks whether there is room for changes, and tells the scheduler when that is another answer than before.
    pub(super) fn look_at_room(&mut self) {
        let room = self.reserve.room(Instant::now());
        if room != self.room {
            self.room = room;
            self.to_scheduler(SchedulerInput::Room(room));
        }
    }

    /// The command that an input is, if it is to be refused for want of room: a repeat of what was done gets its answer all the same.
    pub(super) fn refused(&mut self, input: &Input) -> Option<ReplyTo> {
        let (reply_to, id) = command(input)?;
        self.look_at_room();
        let is_repeat = self.core.state().index.answer(id).is_some();
        (self.room == DiskRoom::Short && !is_repeat).then_some(reply_to)
    }

    /// Makes events durable. On a full disk it gives up the reserve for them; where that is not enough, or gone, it waits for room:
    /// nothing of the turn has left, and questions are answered meanwhile.
    ///
    /// # Errors
    /// Another error of the database, or the full disk if the master is to end.
    pub(super) fn make_durable(&mut self, records: &[Arc<Record>], scripts: &ScriptChanges) -> Result<(), StoreError> {
        let (mut has_tidied, mut has_told) = (false, false);
        loop {
            let error = match self.store.append_with(records, scripts) {
                Ok(()) => return Ok(()),
                Err(error) if error.is_disk_full() => error,
                Err(error) => return Err(error),
            };
            if !std::mem::replace(&mut has_tidied, true) {
                // The write-ahead log is used again from its beginning once the database has all of it.
                self.store.tidy();
                continue;
            }
            if self.reserve.release() {
                tracing::error!("{}: the reserve is given up for it", crate::error_chain(&error));
                self.look_at_room();
                has_tidied = false;
                continue;
            }
            if !has_told {
                tracing::error!("{}: waiting for room, nothing is lost", crate::error_chain(&error));
                has_told = true;
            }
            self.look_at_room();
            has_tidied = false;
            if self.hold_inputs(Instant::now() + PAUSE).is_break() {
                return Err(error);
            }
        }
    }

    /// When the driver tidies up without any input. `None` means that there is nothing to tidy.
    pub(super) fn tidying_due(&self) -> Option<Instant> {
        (self.scripts.has_unused() || self.scripts.has_left_room()).then(|| Instant::now() + TIDYING)
    }

    /// Drops scripts that no job needs, and gives some of their room back, while nothing else is to do.
    ///
    /// # Errors
    /// See [`Driver::make_durable`].
    pub(super) fn tidy(&mut self) -> Result<(), StoreError> {
        if self.scripts.has_unused() {
            let changes = self.scripts.follow::<Arc<Record>>(&[]);
            self.make_durable(&[], &changes)?;
        } else if self.scripts.has_left_room() {
            let more = self.store.give_back().unwrap_or_else(|error| {
                tracing::warn!("{}", crate::error_chain(&error));
                false
            });
            self.scripts.gave_back(more);
        }
        Ok(())
    }

    /// Takes inputs until a time: refuses commands, and keeps everything else for later.
    fn hold_inputs(&mut self, until: Instant) -> std::ops::ControlFlow<()> {
        while Instant::now() < until {
            if self.held.len() >= HELD {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                continue;
            }
            let inputs = &mut self.inputs;
            let Ok(input) = self.runtime.block_on(async { timeout_at(until.into(), inputs.recv()).await }) else {
                continue;
            };
            match input {
                None | Some(DriverInput::Stop) => return std::ops::ControlFlow::Break(()),
                Some(DriverInput::Core(input)) => match command(&input) {
                    Some((reply_to, id)) if self.core.state().index.answer(id).is_none() => self.refuse_now(reply_to),
                    Some(_) | None => self.held.push(DriverInput::Core(input)),
                },
                Some(other) => self.held.push(other),
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    /// A refusal rests on no event: it may leave before those that wait.
    fn refuse_now(&self, to: ReplyTo) {
        self.to_query(QueryInput::Deliver(to, Box::new(Reply::refusal(self.reserve.refusal()))));
    }

    /// Adds the refusal of a command to a turn.
    pub(super) fn refuse(&self, to: ReplyTo, turn: &mut Turn) {
        turn.add(super::Out::Deliver(to, Box::new(Reply::refusal(self.reserve.refusal()))));
    }
}

fn command(input: &Input) -> Option<(ReplyTo, RequestId)> {
    if let Input::Command { reply_to, id, .. } = input { Some((*reply_to, *id)) } else { None }
}
