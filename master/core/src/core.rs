//! The one function that decides: an input and the time go in, events and effects come out
//! (ARCHITECTURE.md "One input").

use crate::decide::memory::Memory;
use crate::decide::{self, Caller, Turn};
use crate::effect::{ConnectionId, Input, MasterHost, Step, VerificationId};
use crate::event::{Actor, Event, StoredObject};
use crate::observe::Observations;
use crate::state::State;
use proto::cell_version::CellVersion;
use proto::id::{CellId, Epoch, HostName, RequestId};
use proto::job::Owner;
use proto::time::{Now, Tick};
use proto::wire::agent::AgentConfig;

/// The deciding part of the master: the state, what is observed, and who is connected.
///
/// One thread owns it and calls it with one input after the other:
///
/// 1. [`Core::new`] takes the state that the log and a snapshot led to, [`Core::create`] makes the
///    first one of a cell; [`Core::at`] adds where the master runs. A restored or copied cell gets
///    [`Core::raise_epoch`] or [`Core::part_from_original`] before any agent is let in.
/// 2. [`Core::handle`] takes an [`Input`] and the time. It decides, applies the events at once and
///    returns them with the effects as a [`Step`]. It neither waits nor fails: a refusal is an
///    effect too, the reply to the client that asked.
/// 3. The caller appends the events of the step in their order, and performs the effects only when
///    all events up to these are durable. If appending fails, the core is ahead of the log: the
///    caller appends again, or throws the core away. Until then nothing of the step may be seen.
/// 4. [`Core::next_timer`] says when an [`Input::Tick`] is wanted; earlier or later ones do no
///    harm. Time goes forward from call to call.
///
/// [`Turn`] alone changes the state and the observations, in the course of a call. Equal inputs at
/// equal times lead to equal steps: there is no clock, no random order and no other source of
/// chance here, and what is drawn by chance comes in with the input. The other threads of the
/// master fold the same events into states of their own and never look into this one.
#[derive(Debug)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) observations: Observations,
    pub(crate) memory: Memory,
    pub(crate) site: MasterHost,
    last: Option<Now>,
}

impl Core {
    /// A core over the state of an existing cell, as it was folded from the log. No agent is
    /// connected yet.
    pub fn new(state: State) -> Self {
        Self {
            state,
            observations: Observations::default(),
            memory: Memory::default(),
            site: MasterHost::default(),
            last: None,
        }
    }

    /// The same core, which knows where it runs.
    pub fn at(self, site: MasterHost) -> Self {
        Self { site, ..self }
    }

    /// A new cell with its first objects, of the newest version: no older release has ever opened
    /// it. `cell` is drawn at random by the shell.
    pub fn create(cell: CellId, objects: Vec<StoredObject>, now: Now) -> (Self, Step) {
        let mut core = Self::new(State::new());
        let step = core.turn(now, Actor::Master, |turn| {
            turn.record(Event::CellCreated {
                cell,
                version: CellVersion::NEWEST,
            });
            turn.record(Event::EpochRaised { epoch: Epoch(1) });
            turn.record(Event::ObjectsChanged(objects));
        });
        (core, step)
    }

    /// Raises the epoch: after a restore or a take-over, before any agent is let in.
    pub fn raise_epoch(&mut self, now: Now) -> Step {
        let epoch = Epoch(self.state.epoch.0 + 1);
        self.turn(now, Actor::Master, |turn| {
            turn.record(Event::EpochRaised { epoch });
        })
    }

    /// Begins a restored cell, before any agent is let in: a later epoch, and any task directory of
    /// the master's own host. What ran there is lost; other hosts bring their tasks.
    pub fn restore(&mut self, host: &HostName, now: Now) -> Step {
        // The clock orders restores of backups that do not know of each other.
        let by_clock = u64::try_from(now.wall.0).unwrap_or(0);
        let epoch = Epoch((self.state.epoch.0 + 1).max(by_clock));
        self.turn(now, Actor::Master, |turn| {
            turn.record(Event::EpochRaised { epoch });
            if turn.state().task_marks.contains_key(host) {
                let host = host.clone();
                turn.record(Event::HostTasksBound { host, mark: None });
            }
        })
    }

    /// Makes a copied cell one of its own, before any agent is let in: a later epoch, no task runs,
    /// and nothing starts until people enable the queue instances. `why` is what accounting says of
    /// the tasks that ran in the original.
    pub fn part_from_original(&mut self, why: &str, now: Now) -> Step {
        self.turn(now, Actor::Master, |turn| decide::copy::part(turn, why))
    }

    /// Everything that is true.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Everything soft that is known.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// The host behind a connection of an agent.
    pub fn host_of(&self, connection: ConnectionId) -> Option<&HostName> {
        self.memory.agents.host_of(connection)
    }

    /// How the agent of a host is to behave: for its welcome.
    pub fn agent_config(&self, host: &HostName) -> AgentConfig {
        let config = &self.state.config;
        decide::hosts::agents::agent_config(config, host, &self.memory.agents.types(config))
    }

    /// Decides what an input leads to. The events it returns are already applied; they must be
    /// appended in their order.
    ///
    /// # Panics
    /// If an event cannot be true of the state: a bug. Nothing of the step may then become durable.
    pub fn handle(&mut self, input: Input, now: Now) -> Step {
        let actor = decide::actor(&self.memory.agents, &input);
        let step = self.turn(now, actor, |turn| {
            turn.notice_time();
            if turn.is_first() {
                decide::hosts::agents::expect_hosts(turn);
            }
            decide::input(turn, input);
            if turn.has_changed_conf() {
                decide::hosts::agents::reconfigure(turn);
            }
            // What time brings is nobody's doing, whoever's input came first.
            turn.as_master(decide::timers);
            decide::causes::follow(turn);
        });
        self.memory.has_begun = true;
        step
    }

    /// The command about many jobs, and whose it is, that goes on with those it has left at the
    /// next [`Input::Tick`].
    pub fn bulk_command(&self) -> Option<(RequestId, &Caller)> {
        self.memory.bulk_commands.next()
    }

    /// The request that a job belongs to which the verifier of the cell looks at, and whose it is.
    /// None once the request is decided.
    pub fn submission(&self, id: VerificationId) -> Option<(RequestId, &Owner, &HostName)> {
        self.memory.submissions.request_of(id)
    }

    /// When [`Input::Tick`] is wanted at the latest; none if nothing waits for time to pass.
    pub fn next_timer(&self) -> Option<Tick> {
        if self.bulk_command().is_some() {
            return self.last.map(|now| now.tick);
        }
        let by_the_clock = self.last.and_then(|now| {
            let next = self
                .state
                .index
                .next_start(now.wall)
                .into_iter()
                .chain(self.memory.next_calendar);
            let next = next.chain(decide::next_reservation(&self.state)).min()?;
            Some(
                now.tick
                    .plus_ms(u64::try_from(next.0.saturating_sub(now.wall.0)).unwrap_or(0)),
            )
        });
        let timers = [
            self.memory.agents.next_timer(),
            self.memory.external.next_timer(),
            self.memory.checkpoints.next_timer(),
            by_the_clock,
        ];
        timers.into_iter().flatten().min()
    }

    fn turn(&mut self, now: Now, actor: Actor, decide: impl FnOnce(&mut Turn<'_>)) -> Step {
        let before = self.last.replace(now);
        let cell = decide::CellParts {
            state: &mut self.state,
            observations: &mut self.observations,
            memory: &mut self.memory,
            site: &self.site,
        };
        let mut turn = Turn::new(cell, now, before, actor);
        decide(&mut turn);
        turn.finish()
    }
}
