//! What the driver does where the disk has little room or none: it refuses changes, and keeps what
//! it cannot make durable yet.

use super::{Batch, Driver};
use crate::connections::OutgoingMessage;
use crate::messages::{DriverInput, ReaderInput, SchedulerInput};
use crate::reserve::DiskRoom;
use crate::store::{ScriptChanges, StoreError, probe_room};
use master_core::effect::{Input, ReplyTo};
use master_core::event::Record;
use proto::wire::agent::{AgentMessage, MasterMessage};
use proto::wire::client::{Command, Reply};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The pause between two attempts to make a turn durable on a full disk.
const PAUSE: Duration = Duration::from_millis(200);

/// How long nothing must have come before the driver tidies up.
const TIDYING: Duration = Duration::from_millis(20);

/// Inputs that are kept meanwhile. From then on commands are refused and what comes again is
/// dropped, so that what agents have to say of their tasks has room.
const HELD: usize = 16_384;

/// Inputs from which on the others wait in their queue.
const HELD_MOST: usize = 4 * HELD;

impl Driver {
    /// Looks whether there is room for changes, and tells the scheduler when that is another answer
    /// than before.
    pub(super) fn look_at_room(&mut self) {
        let room = self.reserve.room(Instant::now());
        if room != self.room {
            self.room = room;
            self.outlets.signs.has_room(room);
            self.to_scheduler(SchedulerInput::Room(room));
        }
    }

    /// Whom to tell that a command is refused for want of room. What ends something or belongs to a
    /// job that runs goes on, and a repeat of what was done gets its answer all the same.
    pub(super) fn refused(&mut self, input: &Input) -> Option<ReplyTo> {
        let reply_to = self.new_command(input).filter(|_| !goes_on(input))?;
        self.look_at_room();
        (self.room == DiskRoom::Short).then_some(reply_to)
    }

    /// An input, with a job that the verifier has accepted refused where there is no room for it.
    pub(super) fn with_room(&mut self, input: Input) -> Input {
        let Input::Verified { id, outcome: Ok(_) } = &input else {
            return input;
        };
        let id = *id;
        self.look_at_room();
        match self.room {
            DiskRoom::Short => Input::Verified {
                id,
                outcome: Err(self.reserve.refusal()),
            },
            DiskRoom::Enough => input,
        }
    }

    /// Who waits for the answer of a command that comes for the first time.
    fn new_command(&self, input: &Input) -> Option<ReplyTo> {
        let Input::Command { reply_to, id, .. } = input else {
            return None;
        };
        self.core.state().index.answer(*id).is_none().then_some(*reply_to)
    }

    /// Makes events durable. On a full disk it gives up the reserve for them; where that is not
    /// enough, or gone, it waits for room: nothing of the turn has left, and questions are answered
    /// meanwhile.
    ///
    /// # Errors
    /// Another error of the database, or the full disk if the master is to end.
    pub(super) fn make_durable(&mut self, records: &[Arc<Record>], scripts: &ScriptChanges) -> Result<(), StoreError> {
        let (mut has_tidied, mut has_told) = (false, false);
        loop {
            let error = match self.store.append_with(records, scripts) {
                Ok(()) => {
                    self.outlets.signs.has_room(self.room);
                    return Ok(());
                }
                Err(error) if error.is_disk_full(probe_room) => error,
                Err(error) => return Err(error),
            };
            if !std::mem::replace(&mut has_tidied, true) {
                // The write-ahead log is used again from its beginning once the database has all of
                // it.
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
            // A snapshot that is being written gives its room back.
            self.outlets.signs.has_room(DiskRoom::Short);
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

    /// Drops scripts that no job needs, and gives some of their room back, while nothing else is to
    /// do.
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

    /// Takes inputs until a time: refuses commands, and keeps everything else for later. Breaks if
    /// the master is to end.
    fn hold_inputs(&mut self, until: Instant) -> ControlFlow<()> {
        while Instant::now() < until {
            // The word to stop comes through the queue too, where it may wait behind everything
            // else.
            if self.outlets.signs.is_stopping() {
                return ControlFlow::Break(());
            }
            if self.held.len() >= HELD_MOST {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                continue;
            }
            let inputs = &mut self.inputs;
            let Ok(input) = self
                .runtime
                .block_on(async { timeout_at(until.into(), inputs.recv()).await })
            else {
                continue;
            };
            match input {
                None | Some(DriverInput::Stop) => return ControlFlow::Break(()),
                Some(input) => self.hold(input),
            }
        }
        ControlFlow::Continue(())
    }

    /// Keeps an input for later, if it is not refused and does not come again.
    fn hold(&mut self, input: DriverInput) {
        let is_full = self.held.len() >= HELD;
        if let DriverInput::Core(core) = &input
            && let Some(to) = self.new_command(core).filter(|_| is_full || !goes_on(core))
        {
            return self.refuse_now(to);
        }
        if let DriverInput::Core(Input::LoadReport { connection, .. }) = &input
            && is_full
        {
            self.unreported.insert(*connection);
        } else if !(is_full && comes_again(&input)) {
            self.held.push(input);
        }
    }

    /// Has those whose load reports were dropped report anew. They have been welcomed by then.
    pub(super) fn ask_for_reports(&mut self) {
        for connection in std::mem::take(&mut self.unreported) {
            let message = OutgoingMessage::Message(Box::new(MasterMessage::ReportNow));
            self.outbox.add(connection, message, Instant::now());
        }
    }

    /// A refusal rests on no event: it may leave before those that wait.
    fn refuse_now(&self, to: ReplyTo) {
        self.to_reader(ReaderInput::Deliver(
            to,
            Box::new(Reply::refusal(self.reserve.refusal())),
        ));
    }

    /// Adds the refusal of a command to a turn.
    pub(super) fn refuse(&self, to: ReplyTo, turn: &mut Batch) {
        turn.add(super::BatchOutput::Deliver(
            to,
            Box::new(Reply::refusal(self.reserve.refusal())),
        ));
    }
}

/// Whether an input is a command that is carried out however little room there is: it gives room
/// back, or ends something, or a job that runs needs it, or nothing of it is recorded.
fn goes_on(input: &Input) -> bool {
    let Input::Command { command, .. } = input else {
        return false;
    };
    matches!(
        **command,
        Command::Delete { .. }
            | Command::DeleteReservations { .. }
            | Command::Shutdown { .. }
            | Command::StartSlave(_)
            | Command::DryRun(_)
            | Command::KillEventClients { .. }
            | Command::TriggerScheduling
    )
}

/// Whether an input may be lost, because a newer one of its kind says the same.
fn comes_again(input: &DriverInput) -> bool {
    match input {
        DriverInput::Planned => true,
        DriverInput::Core(Input::AgentMessage { message, .. }) => matches!(**message, AgentMessage::Usage(_)),
        DriverInput::Core(input) => matches!(input, Input::Tick | Input::Tickets(_)),
        DriverInput::Deliver(..) | DriverInput::Stop => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use master_core::effect::ConnectionId;
    use proto::id::{HostName, RequestId};
    use proto::job::Owner;

    fn command(command: Command) -> Input {
        let owner = Owner {
            user: "alice".into(),
            uid: 1,
            gid: 1,
            group: "users".into(),
            groups: Vec::new(),
        };
        let (reply_to, host) = (ReplyTo(1), HostName::new("node1"));
        Input::Command {
            reply_to,
            id: RequestId(1),
            owner,
            host,
            entropy: [0; 32],
            command: Box::new(command),
        }
    }

    #[test]
    fn what_ends_something_goes_on_without_room_and_other_changes_do_not() {
        let ends = Command::Shutdown {
            hosts: Vec::new(),
            kill_jobs: false,
        };
        let dry_run = Command::DryRun(Box::new(Command::Objects(Vec::new())));
        for command_of in [
            ends,
            dry_run,
            Command::KillEventClients { ids: Vec::new() },
            Command::TriggerScheduling,
        ] {
            assert!(goes_on(&command(command_of.clone())), "{command_of:?}");
        }
        for command_of in [Command::Objects(Vec::new()), Command::ClearUsage { users: Vec::new() }] {
            assert!(!goes_on(&command(command_of.clone())), "{command_of:?}");
        }
    }

    #[test]
    fn usage_comes_again_and_what_agents_say_of_their_tasks_does_not() {
        let from_agent = |message| {
            DriverInput::Core(Input::AgentMessage {
                connection: ConnectionId(1),
                message: Box::new(message),
            })
        };
        assert!(comes_again(&from_agent(AgentMessage::Usage(Vec::new()))));
        assert!(!comes_again(&from_agent(AgentMessage::Health {
            unfit: None,
            root_commands: None
        })));
        assert!(!comes_again(&DriverInput::Core(Input::AgentLost {
            connection: ConnectionId(1)
        })));
    }
}
