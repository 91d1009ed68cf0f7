//! The one function that decides: an input and the time go in, events and effects come out
//! (ARCHITECTURE.md "One input").

use crate::decide::agents::Agents;
use crate::decide::errands::BulkCommands;
use crate::decide::external::ExternalScheduler;
use crate::decide::fitness::Fitness;
use crate::decide::limits::StartTemplate;
use crate::decide::usage::Checkpoints;
use crate::decide::{self, Caller, Turn, Verdicts};
use crate::effect::{ConnectionId, Effect, Input};
use crate::event::{Actor, Event, Record, StoredObject};
use crate::observe::Observations;
use crate::state::State;
use proto::host::names::Naming;
use proto::id::{CellId, Epoch, HostName, RequestId};
use proto::time::{Now, Tick, Wall, Zone};
use proto::wire::agent::AgentConfig;
use std::sync::Arc;

/// A wall clock that is off by more than this from the monotone one has jumped.
const WALL_JUMP_MS: u64 = 60_000;

/// What one input led to. The effects are performed once its events and all earlier ones are
/// durable, and not before.
///
/// All earlier ones: the answer to a repeated request, or a repeated *forget*, comes with no events
/// of its own and rests on those of an input before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// What became true, already applied. Whoever keeps one or hands it on shares it.
    pub events: Vec<Arc<Record>>,
    /// What the shell is to do, in order.
    pub effects: Vec<Effect>,
}

/// What a cell's machine tells the core once and events do not: decisions rest on it, replay does
/// not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MasterHost {
    /// The host that the master runs on; none where there is just one machine to think of, as in a
    /// simulation.
    pub master_host: Option<HostName>,
    /// Other names of hosts, and what their domains mean.
    pub naming: Naming,
    /// What one host may report.
    pub load: LoadLimits,
    /// Limits for the jobs of one user.
    pub users: UserLimits,
    /// The time zone of the machine, by whose clock calendars go.
    pub zone: Zone,
}

/// What one host may report: beyond it single values are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Load values, those for `global` and for other hosts included.
    pub values: usize,
    /// Bytes of one value, and of one name.
    pub bytes: usize,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            values: 1_000,
            bytes: 1_024,
        }
    }
}

/// Limits for the unfinished jobs of one user. A submission beyond them is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLimits {
    /// Jobs; an array is one.
    pub jobs: u64,
    /// Bytes, as [`Index::bytes_of`](crate::state::index::Index::bytes_of) counts them.
    pub job_bytes: u64,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            jobs: u64::MAX,
            job_bytes: u64::MAX,
        }
    }
}

/// The deciding part of the master: the state, what is observed, and who is connected.
#[derive(Debug)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) observations: Observations,
    pub(crate) agents: Agents,
    pub(crate) site: MasterHost,
    /// Who places jobs beside the built-in scheduler.
    pub(crate) external: ExternalScheduler,
    /// When a calendar that a queue uses says something else for the first time.
    pub(crate) next_calendar: Option<Wall>,
    /// Running tasks that are to be charged for what they have used.
    pub(crate) checkpoints: Checkpoints,
    /// Commands that have jobs left to look at.
    pub(crate) errands: BulkCommands,
    /// How well hosts start tasks.
    pub(crate) fitness: Fitness,
    /// What was told of the last start.
    pub(crate) told: StartTemplate,
    /// Which requests can never be had.
    pub(crate) verdicts: Verdicts,
    /// Whether an input was handled.
    pub(crate) has_begun: bool,
    last: Option<Now>,
}

impl Core {
    /// A core over the state of an existing cell, as it was folded from the log. No agent is
    /// connected yet.
    pub fn new(state: State) -> Self {
        Self {
            state,
            observations: Observations::default(),
            agents: Agents::default(),
            site: MasterHost::default(),
            external: ExternalScheduler::default(),
            next_calendar: None,
            checkpoints: Checkpoints::default(),
            errands: BulkCommands::default(),
            fitness: Fitness::default(),
            told: StartTemplate::default(),
            verdicts: Verdicts::default(),
            has_begun: false,
            last: None,
        }
    }

    /// The same core, which knows where it runs.
    pub fn at(self, site: MasterHost) -> Self {
        Self { site, ..self }
    }

    /// A new cell with its first objects. `cell` is drawn at random by the shell.
    pub fn create(cell: CellId, objects: Vec<StoredObject>, now: Now) -> (Self, Step) {
        let mut core = Self::new(State::new());
        let step = core.turn(now, Actor::Master, |turn| {
            turn.record(Event::CellCreated { cell });
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
        self.agents.host_of(connection)
    }

    /// How the agent of a host is to behave: for its welcome.
    pub fn agent_config(&self, host: &HostName) -> AgentConfig {
        let config = &self.state.config;
        decide::agents::agent_config(config, host, &self.agents.types(config))
    }

    /// Decides what an input leads to. The events it returns are already applied; they must be
    /// appended in their order.
    ///
    /// # Panics
    /// If an event cannot be true of the state: a bug. Nothing of the step may then become durable.
    pub fn handle(&mut self, input: Input, now: Now) -> Step {
        let actor = decide::actor(&self.agents, &input);
        let step = self.turn(now, actor, |turn| {
            turn.notice_time();
            if turn.is_first() {
                decide::agents::expect_hosts(turn);
            }
            decide::input(turn, input);
            if turn.has_changed_conf() {
                decide::agents::reconfigure(turn);
            }
            // What time brings is nobody's doing, whoever's input came first.
            turn.as_master(decide::timers);
            decide::causes::follow(turn);
        });
        self.has_begun = true;
        step
    }

    /// The command about many jobs, and whose it is, that goes on with those it has left at the
    /// next [`Input::Tick`].
    pub fn errand(&self) -> Option<(RequestId, &Caller)> {
        self.errands.next()
    }

    /// When [`Input::Tick`] is wanted at the latest; none if nothing waits for time to pass.
    pub fn next_timer(&self) -> Option<Tick> {
        if self.errand().is_some() {
            return self.last.map(|now| now.tick);
        }
        let by_the_clock = self.last.and_then(|now| {
            let next = self
                .state
                .index
                .next_start(now.wall)
                .into_iter()
                .chain(self.next_calendar);
            let next = next.chain(decide::next_reservation(&self.state)).min()?;
            Some(
                now.tick
                    .plus_ms(u64::try_from(next.0.saturating_sub(now.wall.0)).unwrap_or(0)),
            )
        });
        let timers = [
            self.agents.next_timer(),
            self.external.next_timer(),
            self.checkpoints.next_timer(),
            by_the_clock,
        ];
        timers.into_iter().flatten().min()
    }

    fn turn(&mut self, now: Now, actor: Actor, decide: impl FnOnce(&mut Turn<'_>)) -> Step {
        let before = self.last.replace(now);
        let mut turn = Turn::new(self, now, before, actor);
        decide(&mut turn);
        turn.finish()
    }
}

/// Whether the wall clock did not go along with the monotone one, and what it should have shown.
pub(crate) fn wall_jump(before: Now, now: Now) -> Option<proto::time::Wall> {
    let passed = i64::try_from(now.tick.since_ms(before.tick)).unwrap_or(i64::MAX);
    let expected = proto::time::Wall(before.wall.0.saturating_add(passed));
    (expected.0.abs_diff(now.wall.0) > WALL_JUMP_MS).then_some(expected)
}
