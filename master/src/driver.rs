//! The core thread: inputs in, events to the store, effects out (DESIGN section 3).
//!
//! One turn takes what waits, at most [`BATCH`] inputs, lets the core handle each, and makes all their events durable with one
//! sync. Only then does anything leave: events to their readers, and after them the effects. A reply goes to the query thread
//! behind the events that it answers, so that whoever has it sees the change (read your writes). What cannot be made durable ends
//! the process: the log is the truth, and agents and commands come again.

use crate::clock::Clock;
use crate::connections::{Admitted, Connections, Outgoing};
use crate::issuer::Issuer;
use crate::pending::Pending;
use crate::query::QueryInput;
use crate::scheduler::SchedulerInput;
use crate::store::{Store, StoreError};
use master_core::core::{Core, Step};
use master_core::effect::{ConnectionId, Effect, Input, ReplyTo};
use master_core::event::Record;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::agent::{MasterWelcome, PROTOCOL_VERSION};
use proto::wire::client::Reply;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The most inputs of one turn: enough to share a sync, few enough that a reply does not wait long.
pub const BATCH: usize = 256;

/// What the core thread takes.
#[derive(Debug)]
pub enum DriverInput {
    /// An input of the core.
    Core(Input),
    /// An answer that the shell made itself, to be given behind everything that came before it.
    Deliver(ReplyTo, Box<Reply>),
    /// The end, after what came before.
    Stop,
}

/// Where the driver's results go.
pub struct Outlets {
    /// The query thread.
    pub query: mpsc::Sender<QueryInput>,
    /// The scheduler thread. Unbounded, because it also sends to the driver, and two bounded queues could wait for each other; it
    /// takes everything between two slices of a pass.
    pub scheduler: mpsc::UnboundedSender<SchedulerInput>,
    /// Those who join.
    pub joins: Arc<Pending<Result<(), Diagnostic>>>,
    /// Connected agents.
    pub connections: Arc<Connections>,
    /// Admitted certificates.
    pub admitted: Arc<Admitted>,
    /// The CA, for simulated hosts.
    pub issuer: Arc<Issuer>,
    /// Certificates whose open connections are to be closed.
    pub revoked: mpsc::UnboundedSender<quic::Serial>,
}

/// The core with everything around it.
pub struct Driver {
    core: Core,
    store: Store,
    clock: Clock,
    inputs: mpsc::Receiver<DriverInput>,
    outlets: Outlets,
    runtime: Handle,
    ending: bool,
}

/// The results of one turn.
#[derive(Default)]
struct Turn {
    records: Vec<Record>,
    out: Vec<Out>,
}

/// What leaves once the turn's events are durable.
enum Out {
    Effect(Effect),
    Welcome(ConnectionId, Box<MasterWelcome>),
    Deliver(ReplyTo, Box<Reply>),
}

impl Driver {
    /// A driver that takes its inputs from `inputs`.
    pub fn new(
        core: Core,
        store: Store,
        clock: Clock,
        inputs: mpsc::Receiver<DriverInput>,
        outlets: Outlets,
        runtime: Handle,
    ) -> Self {
        Self { core, store, clock, inputs, outlets, runtime, ending: false }
    }

    /// Works until it is told to stop, or the core ends the master.
    ///
    /// # Errors
    /// What could not be made durable. Nothing of that turn has left.
    pub fn run(mut self) -> Result<(), StoreError> {
        let mut waiting = Vec::with_capacity(BATCH);
        while !self.ending {
            self.wait(&mut waiting);
            let turn = self.handle(&mut waiting);
            self.store_and_send(turn)?;
        }
        let _ = self.outlets.query.blocking_send(QueryInput::Stop);
        let _ = self.outlets.scheduler.send(SchedulerInput::Stop);
        Ok(())
    }

    /// Waits for inputs, or for the core's next timer, which is an input too.
    fn wait(&mut self, waiting: &mut Vec<DriverInput>) {
        let now = self.clock.tick();
        let due = self.core.next_timer().map(|tick| Duration::from_millis(tick.since_ms(now)));
        let inputs = &mut self.inputs;
        let took = match due {
            None => self.runtime.block_on(inputs.recv_many(waiting, BATCH)),
            Some(due) => {
                let took = self.runtime.block_on(async { timeout(due, inputs.recv_many(waiting, BATCH)).await });
                took.unwrap_or_else(|_| {
                    waiting.push(DriverInput::Core(Input::Tick));
                    1
                })
            }
        };
        self.ending |= took == 0;
    }

    fn handle(&mut self, waiting: &mut Vec<DriverInput>) -> Turn {
        let mut turn = Turn::default();
        for input in waiting.drain(..) {
            match input {
                DriverInput::Core(input) => self.handle_one(input, &mut turn),
                DriverInput::Deliver(to, reply) => turn.out.push(Out::Deliver(to, reply)),
                DriverInput::Stop => self.ending = true,
            }
        }
        turn
    }

    fn handle_one(&mut self, input: Input, turn: &mut Turn) {
        let connected = match &input {
            Input::AgentConnected { connection, host, .. } => Some((*connection, host.clone())),
            _ => None,
        };
        let Step { events, effects } = self.core.handle(input, self.clock.now());
        if let Some((connection, host)) = connected {
            // First on the stream, before anything that the core has to say to the agent.
            turn.out.push(Out::Welcome(connection, Box::new(self.welcome(&host))));
        }
        turn.records.extend(events);
        turn.out.extend(effects.into_iter().map(Out::Effect));
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

    fn store_and_send(&mut self, turn: Turn) -> Result<(), StoreError> {
        let Turn { records, out } = turn;
        if !records.is_empty() {
            self.store.append(&records)?;
            for serial in self.outlets.admitted.apply(&records) {
                // The receiver ends with the process.
                let _ = self.outlets.revoked.send(serial);
            }
            let records: Arc<[Record]> = records.into();
            self.to_query(QueryInput::Events(records.clone()));
            self.to_scheduler(SchedulerInput::Events(records));
        }
        for out in out {
            match out {
                Out::Effect(effect) => self.perform(effect),
                Out::Welcome(to, welcome) => self.outlets.connections.send(to, Outgoing::Welcome(welcome)),
                Out::Deliver(to, reply) => self.to_query(QueryInput::Deliver(to, reply)),
            }
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { to, reply } => self.to_query(QueryInput::Deliver(to, reply)),
            Effect::Send { connection, message } => {
                self.outlets.connections.send(connection, Outgoing::Message(message));
            }
            Effect::Disconnect { connection, why } => {
                self.outlets.connections.send(connection, Outgoing::Close(why));
            }
            Effect::Joined { to, outcome } => self.outlets.joins.answer(to, outcome),
            Effect::IssueSimulated { to, hosts } => self.outlets.issuer.issue_simulated(to, hosts, &self.runtime),
            Effect::Revoked(host) => {
                let why = Diagnostic::new(Code::BadCertificate, format!("host {host} was revoked"))
                    .fix("ask an administrator for a token and join this host again");
                self.outlets.connections.close_host(&host, &why);
            }
            Effect::Observed(observation) => {
                self.to_query(QueryInput::Observed(observation.clone()));
                self.to_scheduler(SchedulerInput::Observed(observation));
            }
            Effect::OrderRefused { scheduler: _, order, why } => {
                self.to_scheduler(SchedulerInput::Refused { order, why });
            }
            Effect::TriggerScheduling => self.to_scheduler(SchedulerInput::Trigger),
            Effect::Shutdown => self.ending = true,
            Effect::Warn(diagnostic) => tracing::warn!("{diagnostic}"),
        }
    }

    /// The readers end after the driver: a closed channel is the end of the process.
    fn to_query(&self, input: QueryInput) {
        let _ = self.outlets.query.blocking_send(input);
    }

    fn to_scheduler(&self, input: SchedulerInput) {
        let _ = self.outlets.scheduler.send(input);
    }
}
