//! The core thread: inputs in, events to the store, effects out (ARCHITECTURE.md "One input").
//!
//! A turn takes waiting inputs, at most [`BATCH`] of them and about [`TURN_EVENTS`] events. The
//! core handles each, and one sync makes all their events durable. Only then does anything leave:
//! first events to the threads that answer questions, then the effects. A reply goes to the query
//! thread behind the events that it answers, so that its receiver sees the change (read your
//! writes). If something cannot be made durable, the process ends: the log is the truth, and agents
//! and commands come again.
//!
//! A sync costs more than everything else, so a turn waits a moment: for the orders of the
//! scheduler, which sees the events at once because its orders go nowhere but here, and for further
//! inputs if nobody waits for the turn's results.

mod full;

use crate::agent_outbox::{AgentOutbox, can_wait};
use crate::clock::Clock;
use crate::connections::{AdmittedSerials, Connections, OutgoingMessage};
use crate::issuer::Issuer;
use crate::messages::{DriverInput, ReaderInput, SchedulerInput};
use crate::model::Monitoring;
use crate::quarantine::Quarantine;
use crate::replies::Replies;
use crate::reserve::{DiskRoom, Reserve};
use crate::scheduler::is_trigger;
use crate::scripts::Scripts;
use crate::signs::Signs;
use crate::slaves::Slaves;
use crate::store::{Store, StoreError};
use crate::verifiers::VerifierQueue;
use master_core::core::Core;
use master_core::effect::Step;
use master_core::effect::{Alarm, ConnectionId, Effect, Input, Placer, ReplyTo};
use master_core::event::{Event, Record};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::time::Now;
use proto::wire::agent::{MasterMessage, MasterWelcome, PROTOCOL_VERSION};
use proto::wire::client::Reply;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

/// The most inputs of one turn: enough to share a sync, few enough that a reply does not wait long.
pub const BATCH: usize = 1_024;

/// Events after which a turn takes no further input: orders come a thousand at a time, and inputs
/// behind a turn wait for all of it.
const TURN_EVENTS: usize = 4_096;

/// How long a turn waits for the scheduler to plan on its events: an order that comes in time needs
/// no sync of its own.
const PLANNING: Duration = Duration::from_millis(1);

/// The least time between two syncs for events that nobody waits for, such as the start or the end
/// of a task. After a quiet time there is no wait at all.
const COMPANY: Duration = Duration::from_millis(3);

/// Where the driver's results go.
pub struct Outlets {
    /// The reader thread.
    pub reader: mpsc::Sender<ReaderInput>,
    /// The scheduler thread. Unbounded, because it also sends to the driver, and two bounded queues
    /// could wait for each other; it takes everything between two slices of a pass.
    pub scheduler: mpsc::UnboundedSender<SchedulerInput>,
    /// Hosts that join.
    pub joins: Arc<Replies<Result<(), Diagnostic>>>,
    /// Connected agents.
    pub connections: Arc<Connections>,
    /// Slave tasks and the streams that lead to them.
    pub slaves: Arc<Slaves>,
    /// The verifier of the cell.
    pub verifiers: VerifierQueue,
    /// Facts that all threads see at once.
    pub signs: Signs,
    /// Admitted certificates.
    pub admitted: Arc<AdmittedSerials>,
    /// The CA, for simulated hosts.
    pub issuer: Arc<Issuer>,
    /// Certificates whose open connections are to be closed.
    pub revoked: mpsc::UnboundedSender<quic::Serial>,
}

/// The durable parts.
pub struct Disk {
    /// The database.
    pub store: Store,
    /// Room on the disk for what must be recorded.
    pub reserve: Reserve,
}

/// The core with everything around it.
pub struct Driver {
    core: Core,
    store: Store,
    clock: Clock,
    inputs: mpsc::Receiver<DriverInput>,
    outlets: Outlets,
    quarantine: Quarantine,
    runtime: Handle,
    outbox: AgentOutbox,
    scripts: Scripts,
    reserve: Reserve,
    /// The room on the disk, as last told to the scheduler.
    room: DiskRoom,
    /// Inputs that arrived while nothing could be made durable.
    held: Vec<DriverInput>,
    /// Hosts whose load reports were dropped meanwhile.
    unreported: BTreeSet<ConnectionId>,
    ending: bool,
    /// When a turn was made durable last.
    stored: Instant,
}

/// The results of one turn.
#[derive(Default)]
struct Batch {
    records: Vec<Arc<Record>>,
    /// The number of records that the scheduler has.
    planned: usize,
    out: Vec<BatchOutput>,
    /// Whether somebody waits for it.
    is_urgent: bool,
}

/// Results that leave once the turn's events are durable.
enum BatchOutput {
    Effect(Effect),
    Welcome(ConnectionId, Box<MasterWelcome>),
    Deliver(ReplyTo, Box<Reply>),
}

impl Driver {
    /// A driver that takes its inputs from `inputs`.
    ///
    /// # Errors
    /// If the scripts of the store cannot be read.
    pub fn new(
        core: Core,
        disk: Disk,
        clock: Clock,
        inputs: mpsc::Receiver<DriverInput>,
        outlets: Outlets,
        quarantine: Quarantine,
        runtime: Handle,
    ) -> Result<Self, StoreError> {
        let Disk { mut store, reserve } = disk;
        let scripts = Scripts::collect(core.state(), &mut store)?;
        Ok(Self {
            core,
            store,
            clock,
            inputs,
            outlets,
            quarantine,
            runtime,
            outbox: AgentOutbox::default(),
            scripts,
            reserve,
            room: DiskRoom::Enough,
            held: Vec::new(),
            unreported: BTreeSet::new(),
            ending: false,
            stored: Instant::now(),
        })
    }

    /// Works until it is told to stop, or the core ends the master.
    ///
    /// # Errors
    /// What could not be made durable. Nothing of that turn has left.
    pub fn run(mut self) -> Result<(), StoreError> {
        let mut waiting = Vec::with_capacity(BATCH);
        let mut turn = Batch::default();
        self.look_at_room();
        while !self.ending {
            waiting.append(&mut self.held);
            if waiting.is_empty() {
                let until = (!turn.is_empty()).then(|| self.stored + COMPANY);
                let due = [until, self.outbox.due(), self.reserve.due(), self.tidying_due()];
                self.wait(&mut waiting, due.into_iter().flatten().min());
                if waiting.is_empty() && turn.is_empty() {
                    self.tidy()?;
                }
            }
            self.look_at_room();
            self.handle(&mut waiting, &mut turn);
            self.plan(&mut waiting, &mut turn);
            if turn.is_urgent || turn.records.len() >= BATCH || self.stored.elapsed() >= COMPANY || self.ending {
                let next = Batch::like(&turn);
                self.store_and_send(std::mem::replace(&mut turn, next))?;
            }
            if waiting.is_empty() && turn.is_empty() {
                self.ask_for_reports();
            }
            self.outbox.leave(&self.outlets.connections, Instant::now());
        }
        self.outbox.leave_all(&self.outlets.connections);
        // The readers end after this thread; where they have ended already there is nobody to tell.
        let _ = self.outlets.reader.blocking_send(ReaderInput::Stop);
        let _ = self.outlets.scheduler.send(SchedulerInput::Stop);
        Ok(())
    }

    /// Waits for inputs, for the end of the turn or of a delay of messages, or for the core's next
    /// timer, which is an input too.
    fn wait(&mut self, waiting: &mut Vec<DriverInput>, until: Option<Instant>) {
        let now = self.clock.tick();
        let timer = self
            .core
            .next_timer()
            .map(|tick| Instant::now() + Duration::from_millis(tick.since_ms(now)));
        let inputs = &mut self.inputs;
        let Some(due) = [until, timer].into_iter().flatten().min() else {
            self.ending |= self.runtime.block_on(inputs.recv_many(waiting, BATCH)) == 0;
            return;
        };
        match self
            .runtime
            .block_on(async { timeout_at(due.into(), inputs.recv_many(waiting, BATCH)).await })
        {
            Ok(count) => {
                self.ending |= count == 0;
                // Commands about many jobs continue, however much comes.
                if self.core.bulk_command().is_some() {
                    waiting.push(DriverInput::Core(Input::Tick));
                }
            }
            Err(_) if timer.is_some_and(|timer| timer <= due) => waiting.push(DriverInput::Core(Input::Tick)),
            Err(_) => {}
        }
    }

    /// Takes waiting inputs. Those that a full turn has no room for wait for the next.
    fn handle(&mut self, waiting: &mut Vec<DriverInput>, turn: &mut Batch) {
        let mut taken = 0;
        for input in waiting.iter_mut() {
            if turn.is_full() {
                break;
            }
            taken += 1;
            match std::mem::replace(input, DriverInput::Planned) {
                DriverInput::Core(input) => self.handle_one(input, turn),
                DriverInput::Deliver(to, reply) => turn.add(BatchOutput::Deliver(to, reply)),
                DriverInput::Planned => {}
                DriverInput::Stop => self.ending = true,
            }
        }
        waiting.drain(..taken);
    }

    /// Shows the turn's events to the scheduler, and takes inputs until it has planned on them.
    fn plan(&mut self, waiting: &mut Vec<DriverInput>, turn: &mut Batch) {
        let wants = self.show_to_scheduler(turn);
        let until = Instant::now() + PLANNING;
        let mut is_planned = !wants || self.ending;
        while !is_planned && turn.records.len() < BATCH && waiting.is_empty() {
            let inputs = &mut self.inputs;
            let took = self
                .runtime
                .block_on(async { timeout_at(until.into(), inputs.recv_many(waiting, BATCH)).await });
            is_planned =
                !took.is_ok_and(|count| count > 0) || waiting.iter().any(|input| matches!(input, DriverInput::Planned));
            self.handle(waiting, turn);
        }
        self.show_to_scheduler(turn);
    }

    /// Whether the scheduler got something to plan on.
    fn show_to_scheduler(&mut self, turn: &mut Batch) -> bool {
        let new = &turn.records[turn.planned..];
        if new.is_empty() {
            return false;
        }
        turn.planned = turn.records.len();
        let wants = new.iter().any(|record| is_trigger(&record.event));
        self.to_scheduler(SchedulerInput::Events(new.to_vec()));
        wants
    }

    fn handle_one(&mut self, input: Input, turn: &mut Batch) {
        if let Some(reply_to) = self.refused(&input) {
            return self.refuse(reply_to, turn);
        }
        let input = self.with_room(input);
        let input = self.scripts.take_out(input);
        let looked_at = if let Input::Verified { id, .. } = &input {
            self.scripts.bring_back(*id);
            Some(*id)
        } else {
            None
        };
        let connected = if let Input::AgentConnected { connection, host, .. } = &input {
            Some((*connection, host.clone()))
        } else {
            None
        };
        let now = self.clock.now();
        let (Step { events, effects }, is_set_aside) = self.handled(input, now);
        if let Some(id) = looked_at.filter(|id| self.core.submission(*id).is_none()) {
            self.scripts.let_go(id);
        }
        if let Some((connection, host)) = connected.filter(|_| !is_set_aside) {
            // First on the stream, before anything that the core has to say to the agent.
            turn.add(BatchOutput::Welcome(connection, Box::new(self.welcome(&host))));
        }
        turn.records.extend(events);
        effects
            .into_iter()
            .for_each(|effect| turn.add(BatchOutput::Effect(effect)));
    }

    /// Lets the core handle an input. Returns whether it was set aside instead.
    fn handled(&mut self, input: Input, now: Now) -> (Step, bool) {
        match self.quarantine.admit(&self.core, input) {
            Ok(input) => (self.core.handle(input, now), false),
            Err(step) => (step, true),
        }
    }

    fn welcome(&self, host: &HostName) -> MasterWelcome {
        let state = self.core.state();
        MasterWelcome {
            version: PROTOCOL_VERSION,
            software: env!("CARGO_PKG_VERSION").to_owned(),
            cell: state.cell,
            epoch: state.epoch,
            config: self.core.agent_config(host),
            wall_ms: self.clock.now().wall.0,
        }
    }

    fn store_and_send(&mut self, turn: Batch) -> Result<(), StoreError> {
        if turn.is_empty() {
            return Ok(());
        }
        let Batch {
            records,
            planned: _,
            out,
            is_urgent: _,
        } = turn;
        for out in &out {
            if let BatchOutput::Effect(Effect::Verify(order)) = out {
                self.scripts.hold(order, &self.store);
            }
        }
        if !records.is_empty() {
            let scripts = self.scripts.follow(&records);
            self.make_durable(&records, &scripts)?;
            for serial in self.outlets.admitted.apply(&records) {
                // The receiver ends with the process.
                let _ = self.outlets.revoked.send(serial);
            }
            self.outlets.slaves.apply(&records, self.core.state());
            if records
                .iter()
                .any(|record| matches!(record.event, Event::ObjectsChanged(_)))
            {
                let url = self.core.state().config.settings.jsv_url.value();
                self.outlets.verifiers.set_url(url.map(|url| url.0.clone()));
            }
            self.to_reader(ReaderInput::Events(records));
        } else {
            self.scripts.forget_refused();
        }
        self.stored = Instant::now();
        for out in out {
            match out {
                BatchOutput::Effect(effect) => self.perform(effect),
                BatchOutput::Welcome(to, welcome) => {
                    self.outbox.add(to, OutgoingMessage::Welcome(welcome), self.stored)
                }
                BatchOutput::Deliver(to, reply) => self.to_reader(ReaderInput::Deliver(to, reply)),
            }
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { to, reply } => self.to_reader(ReaderInput::Deliver(to, reply)),
            Effect::Send {
                connection,
                mut message,
            } => {
                if let MasterMessage::Describe { spec, .. } = &mut *message {
                    *spec = self.scripts.put_in(spec, &self.store);
                }
                self.outbox
                    .add(connection, OutgoingMessage::Message(message), self.stored);
            }
            Effect::Disconnect { connection, why } => {
                self.outbox.add(connection, OutgoingMessage::Close(why), self.stored)
            }
            Effect::Joined { to, outcome } => self.outlets.joins.answer(to, outcome),
            Effect::Verify(order) => self.outlets.verifiers.verify(order),
            Effect::IssueSimulated { to, hosts } => self.outlets.issuer.issue_simulated(to, hosts, &self.runtime),
            Effect::Revoked(host) => {
                let why = Diagnostic::new(Code::BadCertificate, format!("host {host} was revoked"))
                    .fix("ask an administrator for a token and join this host again");
                self.outbox.leave_all(&self.outlets.connections);
                self.outlets.connections.close_host(&host, &why);
            }
            Effect::Observed(observation) => {
                self.to_reader(ReaderInput::Observed(observation.clone()));
                self.to_scheduler(SchedulerInput::Observed(observation));
            }
            Effect::OrderRefused {
                scheduler: _,
                order,
                why,
            } => {
                self.to_scheduler(SchedulerInput::Refused { order, why });
            }
            Effect::TriggerScheduling => self.trigger(Monitoring::Off),
            Effect::MonitorScheduling => self.trigger(Monitoring::On),
            Effect::Placing { by, why } => {
                match by {
                    Placer::BuiltIn => tracing::warn!("the built-in scheduler places jobs: {why}"),
                    Placer::External => tracing::info!("the built-in scheduler places no jobs: {why}"),
                }
                self.to_scheduler(SchedulerInput::Placing(by));
            }
            Effect::CutOff {
                to,
                ids,
                is_manager,
                by,
            } => {
                self.to_reader(ReaderInput::CutOff {
                    to,
                    ids,
                    is_manager,
                    by,
                });
            }
            Effect::Shutdown => self.ending = true,
            Effect::Alarm(alarm) => raise(&alarm),
            Effect::Warn(diagnostic) => tracing::warn!("{diagnostic}"),
            Effect::Note(text) => tracing::info!("{text}"),
        }
    }

    fn trigger(&self, monitoring: Monitoring) {
        self.to_scheduler(SchedulerInput::Trigger(monitoring));
        self.to_reader(ReaderInput::PassWanted);
    }

    /// The readers end after the driver: a closed channel is the end of the process.
    fn to_reader(&self, input: ReaderInput) {
        let _ = self.outlets.reader.blocking_send(input);
    }

    fn to_scheduler(&self, input: SchedulerInput) {
        let _ = self.outlets.scheduler.send(input);
    }
}

/// Logs what an operator must act on. Each place in the log has a limit of its own, so no host can
/// hide one kind of message behind many of another.
fn raise(alarm: &Alarm) {
    match alarm {
        Alarm::HostClosed(what) => tracing::error!("{what}"),
        Alarm::OtherTasks(what) => tracing::error!("{what}"),
    }
}

impl Batch {
    /// A new turn with the capacity of this one, which avoids growing it again and again.
    fn like(last: &Self) -> Self {
        let (records, out) = (
            Vec::with_capacity(last.records.len()),
            Vec::with_capacity(last.out.len()),
        );
        Self {
            records,
            out,
            ..Self::default()
        }
    }

    fn add(&mut self, out: BatchOutput) {
        self.is_urgent |= out.is_urgent();
        self.out.push(out);
    }

    /// Whether it takes no further input.
    fn is_full(&self) -> bool {
        self.records.len() >= TURN_EVENTS
    }

    /// Whether nothing has to be made durable or sent.
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.out.is_empty()
    }
}

impl BatchOutput {
    /// Whether somebody waits for it: a user, an agent, a host that joins.
    fn is_urgent(&self) -> bool {
        match self {
            BatchOutput::Welcome(..) | BatchOutput::Deliver(..) => true,
            BatchOutput::Effect(effect) => match effect {
                // A host that keeps a result or a description a moment longer loses nothing.
                Effect::Send { message, .. } => !can_wait(message),
                Effect::Reply { .. }
                | Effect::Disconnect { .. }
                | Effect::Joined { .. }
                | Effect::Verify(_)
                | Effect::IssueSimulated { .. }
                | Effect::Revoked(_)
                | Effect::TriggerScheduling
                | Effect::MonitorScheduling
                | Effect::OrderRefused { .. }
                | Effect::Placing { .. }
                | Effect::CutOff { .. }
                | Effect::Shutdown => true,
                Effect::Observed(_) | Effect::Alarm(_) | Effect::Warn(_) | Effect::Note(_) => false,
            },
        }
    }
}
