//! One input being decided: what it reads, and what it has led to so far.

use crate::config::DerivedChanges;
use crate::decide::Verdicts;
use crate::decide::causes::CauseChanges;
use crate::decide::external::ExternalScheduler;
use crate::decide::hosts::agents::Agents;
use crate::decide::hosts::fitness::Fitness;
use crate::decide::jobs::bulk_commands::BulkCommands;
use crate::decide::memory::Memory;
use crate::decide::submit::verification::WaitingSubmissions;
use crate::decide::tasks::limits::StartTemplate;
use crate::decide::tasks::usage::Checkpoints;
use crate::effect::{ConnectionId, Effect, MasterHost, Step};
use crate::event::{Actor, Event, Record, StoredObject};
use crate::observe::{Observation, Observations};
use crate::state::State;
use proto::id::{EventSeq, RequestId};
use proto::object::ObjectKind;
use proto::time::{Now, Wall};
use proto::wire::agent::MasterMessage;
use std::sync::Arc;

/// A wall clock that is off by more than this from the monotone one has jumped.
const WALL_JUMP_MS: u64 = 60_000;

/// The parts of the core that a turn works on.
pub(crate) struct CellParts<'a> {
    /// Everything that is true; only [`Turn::record`] changes it.
    pub(crate) state: &'a mut State,
    /// Everything soft that is known.
    pub(crate) observations: &'a mut Observations,
    /// What is remembered and not logged.
    pub(crate) memory: &'a mut Memory,
    /// Where the master runs.
    pub(crate) site: &'a MasterHost,
}

/// The path of one input through the core. The functions of [`decide`](crate::decide) get it as
/// their first argument.
///
/// Three kinds of methods: those that read (`state`, `observations`, `agents`, `site`, `actor`),
/// those that lead to something (`record`, `observe`, `effect`, `send`), and those that change what
/// is remembered and not logged (`agents_mut`, `bulk_commands_mut`, `fitness_mut` and the like).
///
/// - [`Turn::record`] applies the event at once, so that what is decided later in the same turn
///   rests on it. An event is a fact: check everything first, since nothing takes it back, and one
///   that cannot be true of the state is a panic.
/// - An effect is performed after the events are durable, so it may rest on any of them. A reply is
///   an effect: give exactly one for each command.
/// - What a function remembers must follow from inputs that will come again, or be of no
///   consequence when it is lost: a master that starts begins with an empty memory.
/// - [`Turn::as_master`] and [`Turn::acting`] put another name on what is recorded, for what nobody
///   asked for.
///
/// Do not keep references to the state over a `record`, and do not decide by the wall clock:
/// `now.tick` is for durations and limits, `now.wall` for what people set by the calendar.
pub(crate) struct Turn<'a> {
    cell: CellParts<'a>,
    /// When the input came.
    pub now: Now,
    before: Option<Now>,
    actor: Actor,
    request: Option<RequestId>,
    step: Step,
    touch: CauseChanges,
    has_jumped: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(cell: CellParts<'a>, now: Now, before: Option<Now>, actor: Actor) -> Self {
        Self {
            cell,
            now,
            before,
            actor,
            request: None,
            step: Step::default(),
            touch: CauseChanges::default(),
            has_jumped: false,
        }
    }

    /// Everything that is true, the events of this turn included.
    pub fn state(&self) -> &State {
        self.cell.state
    }

    /// Where the master runs, and what hosts are called beside their names.
    pub fn site(&self) -> &MasterHost {
        self.cell.site
    }

    /// Everything soft that is known.
    pub fn observations(&self) -> &Observations {
        self.cell.observations
    }

    /// Who is connected.
    pub fn agents(&self) -> &Agents {
        &self.cell.memory.agents
    }

    /// Who is connected, to be changed.
    pub fn agents_mut(&mut self) -> &mut Agents {
        &mut self.cell.memory.agents
    }

    /// Who places jobs beside the built-in scheduler.
    pub fn external(&self) -> &ExternalScheduler {
        &self.cell.memory.external
    }

    /// The same, to be changed.
    pub fn external_mut(&mut self) -> &mut ExternalScheduler {
        &mut self.cell.memory.external
    }

    /// How well hosts start tasks, to be changed.
    pub fn fitness_mut(&mut self) -> &mut Fitness {
        &mut self.cell.memory.fitness
    }

    /// Running tasks that are to be charged, to be changed.
    pub fn checkpoints_mut(&mut self) -> &mut Checkpoints {
        &mut self.cell.memory.checkpoints
    }

    /// Makes an event true. Returns what changed objects led to.
    ///
    /// # Panics
    /// If the event uses a feature that the version of the cell does not have. The decision before
    /// it refuses that with [`Feature::must_be_open`](proto::cell_version::Feature::must_be_open).
    pub fn record(&mut self, event: Event) -> DerivedChanges {
        if let Some(feature) = event.feature() {
            let version = self.cell.state.version;
            assert!(
                feature.since() <= version,
                "{} is recorded in a cell of version {version}",
                feature.name()
            );
        }
        self.touch.note(self.cell.state, &event);
        let record = Record {
            seq: EventSeq(self.cell.state.last.0 + 1),
            now: self.now,
            actor: self.actor.clone(),
            request: self.request,
            event,
        };
        let touched = self.cell.state.apply(&record);
        self.cell.observations.follow(&record);
        self.cell.memory.fitness.follow(&record.event);
        if let Event::ObjectsChanged(_) = &record.event {
            self.cell.memory.last_start = StartTemplate::default();
            self.cell.memory.verdicts.clear();
        }
        self.step.events.push(Arc::new(record));
        self.touch.hosts.extend(touched.hosts.iter().cloned());
        touched
    }

    /// Decides something that is on record as done by the master itself.
    pub fn as_master(&mut self, decide: impl FnOnce(&mut Self)) {
        self.acting(Actor::Master, None, decide);
    }

    /// Decides something that is on record as done by somebody else than who made the turn.
    pub fn acting(&mut self, actor: Actor, request: Option<RequestId>, decide: impl FnOnce(&mut Self)) {
        let (actor, request) = (
            std::mem::replace(&mut self.actor, actor),
            std::mem::replace(&mut self.request, request),
        );
        decide(self);
        (self.actor, self.request) = (actor, request);
    }

    /// Who is on record for what is decided.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Commands that have jobs left to look at.
    pub fn bulk_commands_mut(&mut self) -> &mut BulkCommands {
        &mut self.cell.memory.bulk_commands
    }

    /// Submissions whose jobs the verifier of the cell looks at.
    pub fn submissions_mut(&mut self) -> &mut WaitingSubmissions {
        &mut self.cell.memory.submissions
    }

    /// Makes room for so many events and effects: growing again and again costs more than one that
    /// comes by thousands.
    pub fn expect(&mut self, events: usize, effects: usize) {
        self.step.events.reserve(events);
        self.step.effects.reserve(effects);
    }

    /// Folds an observation and tells the clients of the stream.
    pub fn observe(&mut self, observation: Observation) {
        self.cell.memory.verdicts.observe(self.cell.observations, &observation);
        self.cell.observations.apply(&observation);
        self.step.effects.push(Effect::Observed(observation));
    }

    /// Wants something done once the events so far are durable.
    pub fn effect(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }

    /// Wants a message sent to an agent.
    pub fn send(&mut self, connection: ConnectionId, message: MasterMessage) {
        self.effect(Effect::Send {
            connection,
            message: Box::new(message),
        });
    }

    /// What was told of the last start, to be changed and given back.
    pub fn take_last_start(&mut self) -> StartTemplate {
        std::mem::take(&mut self.cell.memory.last_start)
    }

    /// Keeps what was told of the last start. It is forgotten when an object changes.
    pub fn keep_last_start(&mut self, last_start: StartTemplate) {
        self.cell.memory.last_start = last_start;
    }

    /// Which requests can never be had, to be asked and added to.
    pub fn verdicts_mut(&mut self) -> &mut Verdicts {
        &mut self.cell.memory.verdicts
    }

    /// How many events this turn has led to so far.
    pub fn events(&self) -> usize {
        self.step.events.len()
    }

    /// Whether anything became true in this turn.
    pub fn has_events(&self) -> bool {
        self.events() > 0
    }

    /// Whether a configuration changed in this turn on which those of agents rest.
    pub fn has_changed_conf(&self) -> bool {
        let is_conf =
            |object: &StoredObject| matches!(object.kind, ObjectKind::ClusterConf | ObjectKind::SchedulerConf);
        self.step
            .events
            .iter()
            .any(|record| matches!(&record.event, Event::ObjectsChanged(objects) if objects.iter().any(is_conf)))
    }

    /// What causes of suspension rest on and has changed since this was asked last.
    pub fn take_touch(&mut self) -> CauseChanges {
        std::mem::take(&mut self.touch)
    }

    /// Whether what calendars say may be another thing than at the last input: the time has come,
    /// or the clock was set.
    pub fn is_calendar_due(&self) -> bool {
        self.is_first() || self.has_jumped || self.cell.memory.next_calendar.is_some_and(|at| at <= self.now.wall)
    }

    /// Wants to be called when a calendar says something else.
    pub fn set_next_calendar(&mut self, at: Option<Wall>) {
        self.cell.memory.next_calendar = at;
    }

    /// Names the request behind the events that follow.
    pub fn set_request(&mut self, request: RequestId) {
        self.request = Some(request);
    }

    /// Whether this is the first input since the core was made.
    pub fn is_first(&self) -> bool {
        !self.cell.memory.has_begun
    }

    /// Notes a jump of the wall clock.
    pub fn notice_time(&mut self) {
        if let Some(expected) = self.before.and_then(|before| wall_jump(before, self.now)) {
            self.record(Event::WallJumped { expected });
            self.has_jumped = true;
        }
    }

    /// Wants a scheduling pass if the start time of a job has come since the last input.
    pub fn trigger_due_starts(&mut self) {
        let Some(before) = self.before else { return };
        if self
            .state()
            .index
            .next_start(before.wall)
            .is_some_and(|at| at <= self.now.wall)
        {
            self.effect(Effect::TriggerScheduling);
        }
    }

    pub(crate) fn finish(self) -> Step {
        self.step
    }
}

/// Whether the wall clock did not go along with the monotone one, and what it should have shown.
fn wall_jump(before: Now, now: Now) -> Option<Wall> {
    let passed = i64::try_from(now.tick.since_ms(before.tick)).unwrap_or(i64::MAX);
    let expected = Wall(before.wall.0.saturating_add(passed));
    (expected.0.abs_diff(now.wall.0) > WALL_JUMP_MS).then_some(expected)
}
