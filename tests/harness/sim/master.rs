//! The master's process around its core, as `master/src/driver.rs` does it: a turn handles what
//! waits, its events become durable together, and only then do they go to the scheduler and the
//! effects leave. It may die anywhere in between.

use super::agenda::{Happening, LinkId, Side};
use super::kept::SnapshotJob;
use super::link::{DownMessage, UpMessage};
use super::planner::{News, Planner};
use super::rival::RIVAL;
use super::world::World;
use master_core::core::Core;
use master_core::effect::Step;
use master_core::effect::{ConnectionId, Effect, Input};
use master_core::event::{Event, Record};
use master_core::observe::Observation;
use proto::id::HostName;
use proto::time::{Now, Tick, Wall};
use proto::wire::agent::{MasterWelcome, PROTOCOL_VERSION};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The most inputs of one turn.
const BATCH: usize = 16;

/// Wall time at the beginning of a run.
const FIRST_WALL: i64 = 1_800_000_000_000;

/// What leaves once a turn is durable.
#[derive(Debug)]
enum TurnOutput {
    Effect(Effect),
    Welcome(ConnectionId, Box<MasterWelcome>),
}

/// A running master.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) core: Core,
    pub(super) planner: Planner,
    started: u64,
    first: Tick,
    waiting: VecDeque<Input>,
    /// What a turn led to, while it is being made durable.
    syncing: Option<(Vec<Arc<Record>>, Vec<TurnOutput>)>,
    turn_planned: bool,
    timers_armed: u64,
    connections: BTreeSet<LinkId>,
    /// The hosts that the core has let in, noted apart from it.
    admitted: BTreeMap<ConnectionId, HostName>,
    /// The hosts that everybody was told cannot start tasks.
    unfit: BTreeSet<HostName>,
}

impl World {
    pub(super) fn wall(&self) -> Wall {
        Wall(FIRST_WALL + self.time as i64 + self.wall_offset)
    }

    pub(super) fn master_now(&self, master: &Master) -> Now {
        Now {
            tick: master.first.plus_ms(self.time - master.started),
            wall: self.wall(),
        }
    }

    /// Begins a new cell and its first master.
    pub(super) fn create_cell(&mut self, objects: Vec<master_core::event::StoredObject>) {
        let now = Now {
            tick: Tick(1),
            wall: self.wall(),
        };
        let (_, step) = Core::create(proto::id::CellId(7), objects, now);
        self.keep(step.events);
        self.master_starts();
    }

    fn keep(&mut self, records: Vec<Arc<Record>>) {
        for record in &records {
            self.trace(|| format!("durable {}: {:?}", record.seq.0, record.event));
            self.witness.read(record);
        }
        let is_charge = |record: &&Arc<Record>| matches!(record.event, Event::UsageCharged { .. });
        self.counts.charges += records.iter().filter(is_charge).count() as u64;
        let is_grant = |record: &&Arc<Record>| matches!(record.event, Event::ReservationGranted { .. });
        self.counts.reservations_granted += records.iter().filter(is_grant).count() as u64;
        let is_slave = |record: &&Arc<Record>| matches!(record.event, Event::SlavePlaced { .. });
        self.counts.slaves_placed += records.iter().filter(is_slave).count() as u64;
        self.counts.events += records.len() as u64;
        if !records.is_empty() {
            self.kept.tell(records);
        }
    }

    pub(super) fn master_starts(&mut self) {
        if self.master.is_some() {
            return;
        }
        self.master_life += 1;
        let newest = self.random.chance(700);
        let (is_apart, kept) = (self.plan.is_apart, self.kept.home());
        let logged = kept.log.len();
        let replay = kept.replay(newest);
        // A large log takes long to read, and what is read is the same.
        let state = if is_apart {
            kept.state.clone()
        } else {
            self.snapshots.home().read(&replay)
        };
        if is_apart {
            self.snapshots.tell(SnapshotJob::Read(replay));
        }
        self.trace(|| format!("master starts after event {logged}"));
        let last = state.now;
        let pause = u64::try_from(self.wall().0 - last.wall.0).unwrap_or(0);
        let mut master = Master {
            planner: Planner::new(state.clone(), is_apart),
            core: Core::new(state),
            started: self.time,
            first: last.tick.plus_ms(pause),
            waiting: VecDeque::new(),
            syncing: None,
            turn_planned: false,
            timers_armed: 0,
            connections: BTreeSet::new(),
            admitted: BTreeMap::new(),
            unfit: BTreeSet::new(),
        };
        if self.random.chance(150) {
            self.counts.epochs_raised += 1;
            let step = master.core.raise_epoch(self.master_now(&master));
            step.events
                .iter()
                .for_each(|record| master.planner.tell(News::Record(Arc::clone(record))));
            self.keep(step.events);
        }
        self.master = Some(master);
        self.plan_pass(10);
    }

    pub(super) fn master_dies(&mut self) {
        if self.master.take().is_none() {
            return;
        }
        self.counts.master_crashes += 1;
        self.trace(|| "master dies".to_owned());
        self.break_links_of(Side::Master, self.master_life, None);
        let wait = if self.random.chance(300) {
            self.random.between(1_000, 90_000)
        } else {
            self.random.between(10, 2_000)
        };
        self.soon(wait, Happening::MasterStarts);
    }

    /// Whether every host is connected and agrees with the master on its tasks.
    #[cfg(test)]
    pub(super) fn master_knows_host(&self) -> bool {
        let Some(master) = &self.master else { return false };
        self.nodes
            .iter()
            .all(|node| master.core.observations().is_ready(&node.name))
    }

    pub(super) fn input(&mut self, input: Input) {
        let Some(master) = &mut self.master else { return };
        master.waiting.push_back(input);
        self.plan_turn(0);
    }

    fn plan_turn(&mut self, wait: u64) {
        let Some(master) = &mut self.master else { return };
        if !master.turn_planned && master.syncing.is_none() {
            master.turn_planned = true;
            let life = self.master_life;
            self.soon(wait, Happening::MasterTurns { life });
        }
    }

    pub(super) fn master_timer(&mut self, life: u64, armed: u64) {
        let Some(master) = self.master.as_mut().filter(|_| life == self.master_life) else {
            return;
        };
        if master.timers_armed == armed && master.syncing.is_none() {
            master.waiting.push_back(Input::Tick);
            self.plan_turn(0);
        }
    }

    pub(super) fn master_turns(&mut self, life: u64) {
        let Some(mut master) = self.master.take_if(|_| life == self.master_life) else {
            return;
        };
        master.turn_planned = false;
        let (mut records, mut out) = (Vec::new(), Vec::new());
        for _ in 0..BATCH {
            let Some(input) = master.waiting.pop_front() else { break };
            self.handle(&mut master, input, &mut records, &mut out);
        }
        master.syncing = Some((records, out));
        self.master = Some(master);
        let wait = self.random.between(0, 4);
        self.soon(wait, Happening::MasterSynced { life });
    }

    fn handle(&mut self, master: &mut Master, input: Input, records: &mut Vec<Arc<Record>>, out: &mut Vec<TurnOutput>) {
        let connected = match &input {
            Input::AgentConnected { connection, host, .. } => Some((*connection, host.clone())),
            _ => None,
        };
        let lost = if let Input::AgentLost { connection } = &input {
            Some(*connection)
        } else {
            None
        };
        let Step { events, effects } = master.core.handle(input, self.master_now(master));
        check_hosts(master, &events, &effects, connected.clone(), lost);
        if let Some((connection, host)) = connected {
            let state = master.core.state();
            let welcome = MasterWelcome {
                version: PROTOCOL_VERSION,
                software: String::new(),
                cell: state.cell,
                epoch: state.epoch,
                config: master.core.agent_config(&host),
                wall_ms: self.wall().0,
            };
            out.push(TurnOutput::Welcome(connection, Box::new(welcome)));
        }
        self.check_core(&master.core);
        records.extend(events);
        out.extend(effects.into_iter().map(TurnOutput::Effect));
    }

    pub(super) fn master_synced(&mut self, life: u64) {
        let Some(master) = self.master.as_mut().filter(|_| life == self.master_life) else {
            return;
        };
        let (records, out) = master.syncing.take().expect("a sync follows a turn");
        let dies = !self.healed && self.random.chance(self.plan.faults.master_dies_at_sync);
        if dies && self.random.chance(300) {
            // Before the sync: the turn never happened.
            return self.master_dies();
        }
        let left = if dies {
            self.random.below(out.len() as u64 + 1) as usize
        } else {
            out.len()
        };
        if !records.is_empty() {
            let planner = &mut self.master.as_mut().expect("it runs").planner;
            records
                .iter()
                .for_each(|record| planner.tell(News::Record(Arc::clone(record))));
            self.plan_pass(2);
        }
        self.keep(records);
        for out in out.into_iter().take(left) {
            match out {
                TurnOutput::Effect(effect) => self.perform(effect),
                TurnOutput::Welcome(ConnectionId(link), welcome) => {
                    self.master_says(link, DownMessage::Welcome(welcome))
                }
            }
        }
        if dies {
            return self.master_dies();
        }
        self.check_synced();
        self.after_sync();
    }

    fn after_sync(&mut self) {
        let Some(mut master) = self.master.take() else { return };
        let now = self.master_now(&master).tick;
        let due = master.core.next_timer().map(|at| at.since_ms(now));
        master.timers_armed += 1;
        let (armed, is_idle, life) = (master.timers_armed, master.waiting.is_empty(), self.master_life);
        self.master = Some(master);
        if !is_idle {
            self.plan_turn(0);
        } else if let Some(due) = due {
            self.soon(due, Happening::MasterTimer { life, armed });
        }
    }

    fn master_says(&mut self, link: LinkId, message: DownMessage) {
        if self
            .master
            .as_ref()
            .is_some_and(|master| master.connections.contains(&link))
        {
            self.send_down(link, message);
        }
    }

    fn perform(&mut self, effect: Effect) {
        if !matches!(effect, Effect::Observed(_)) {
            self.trace(|| format!("master: {effect:?}"));
        }
        match effect {
            Effect::Reply { to, reply } => self.reply_leaves(to, reply),
            Effect::Send { connection, message } => self.master_says(connection.0, DownMessage::Message(message)),
            Effect::Disconnect { connection, why } => {
                self.master_says(connection.0, DownMessage::Close(Box::new(why)));
                self.close_link(connection.0, Side::Master);
                self.master_loses(connection.0);
            }
            Effect::Observed(observation) => {
                if let Some(master) = &mut self.master {
                    master.planner.tell(News::Observation(observation));
                    self.plan_pass(2);
                }
            }
            Effect::OrderRefused {
                scheduler,
                order: _,
                why,
            } if scheduler == RIVAL => {
                self.counts.rival_orders_refused += 1;
                self.trace(|| format!("refused: {why}"));
            }
            Effect::OrderRefused { order, why, .. } => {
                self.counts.orders_refused += 1;
                self.trace(|| format!("refused: {why}"));
                if let Some(master) = &mut self.master {
                    master.planner.tell(News::Refusal(order));
                    self.plan_pass(2);
                }
            }
            Effect::TriggerScheduling | Effect::MonitorScheduling => self.plan_pass(0),
            Effect::Joined { .. }
            | Effect::Verify(_)
            | Effect::IssueSimulated { .. }
            | Effect::Revoked(_)
            | Effect::Shutdown
            | Effect::Placing { .. }
            | Effect::CutOff { .. } => {
                panic!("nobody asked for {effect:?}")
            }
            Effect::Alarm(_) | Effect::Warn(_) | Effect::Note(_) => {}
        }
    }

    pub(super) fn master_hears(&mut self, id: LinkId, message: UpMessage) {
        let link = &self.links[&id];
        if link.master_life != self.master_life {
            return;
        }
        let host = self.nodes[link.host].name.clone();
        let Some(master) = &mut self.master else { return };
        let connection = ConnectionId(id);
        match message {
            UpMessage::Hello(hello) => {
                master.connections.insert(id);
                self.input(Input::AgentConnected {
                    connection,
                    host,
                    hello,
                });
            }
            UpMessage::Message(message) => {
                if master.connections.contains(&id) {
                    self.input(Input::AgentMessage { connection, message });
                }
            }
        }
    }

    pub(super) fn report_arrives(&mut self, id: LinkId, report: Box<proto::load::LoadReport>) {
        if self
            .master
            .as_ref()
            .is_some_and(|master| master.connections.contains(&id))
        {
            self.input(Input::LoadReport {
                connection: ConnectionId(id),
                report,
            });
        }
    }

    /// The master finds out that a connection is over.
    pub(super) fn master_loses(&mut self, id: LinkId) {
        let Some(master) = &mut self.master else { return };
        if master.connections.remove(&id) {
            self.input(Input::AgentLost {
                connection: ConnectionId(id),
            });
        }
    }
}

/// Tasks are given only to hosts that are connected, that the core has let in, and that can start
/// them as far as anybody knows.
fn check_hosts(
    master: &mut Master,
    events: &[Arc<Record>],
    effects: &[Effect],
    connected: Option<(ConnectionId, HostName)>,
    lost: Option<ConnectionId>,
) {
    for record in events {
        if let Event::TaskPlaced { key, granted, .. } = &record.event {
            let is_in = |host: &HostName| master.admitted.values().any(|admitted| admitted == host);
            let away = granted.iter().find(|part| !is_in(&part.instance.host));
            assert!(away.is_none(), "{key} was placed on {away:?}, which is not connected");
            let unfit = granted.iter().find(|part| master.unfit.contains(&part.instance.host));
            assert!(unfit.is_none(), "{key} was placed on {unfit:?}, which cannot start it");
        }
    }
    master.admitted.extend(connected);
    lost.map(|connection| master.admitted.remove(&connection));
    for effect in effects {
        if let Effect::Disconnect { connection, .. } = effect {
            master.admitted.remove(connection);
        }
        if let Effect::Observed(Observation::Unfit { host, why, .. }) = effect {
            match why {
                Some(_) => master.unfit.insert(host.clone()),
                None => master.unfit.remove(host),
            };
        }
    }
}
