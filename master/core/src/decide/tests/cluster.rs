//! Core, scheduler and hosts together: no task is lost and none runs twice, whatever breaks.

use super::cell::{array, job, owner, result};
use crate::core::Core;
use crate::effect::Step;
use crate::effect::{ConnectionId, Effect, Input, ReplyTo};
use crate::event::{Record, StoredObject};
use crate::observe::Observation;
use crate::sched::{ReservationMode, Scheduler};
use crate::state::State;
use proptest::prelude::*;
use proto::cell_version::CellVersion;
use proto::id::{CellId, Epoch, HostName, RequestId, SubmitSeq, TaskKey};
use proto::job::{JobSpec, PeRequest, Requests};
use proto::load::LoadReport;
use proto::object::ObjectKind;
use proto::pe::ParallelEnvironment;
use proto::request::SlotRange;
use proto::time::{Now, Tick, Wall, Zone};
use proto::usage::{Exit, FailedCode};
use proto::wire::agent::{
    AgentHello, AgentMessage, MasterMessage, PROTOCOL_VERSION, TaskReport, TaskReportState, TaskSignal,
};
use proto::wire::client::{Command, SlaveRequest};
use proto::wire::slave::SlaveSpec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A host that keeps the promises of an agent (ARCHITECTURE.md "Time, keys and requests"), with
/// what is on its way to it and from it.
#[derive(Default)]
struct Host {
    connection: Option<ConnectionId>,
    described: BTreeSet<SubmitSeq>,
    tasks: BTreeMap<TaskKey, TaskReportState>,
    executed: BTreeMap<TaskKey, u32>,
    inbox: VecDeque<MasterMessage>,
    outbox: VecDeque<TaskReport>,
}

impl Host {
    fn obey(&mut self, message: MasterMessage) {
        match message {
            MasterMessage::Describe { job, .. } => drop(self.described.insert(job)),
            MasterMessage::Discard { job } => drop(self.described.remove(&job)),
            MasterMessage::Start(order) => self.start(order.key),
            MasterMessage::Signal { key, signal } => self.signal(key, signal),
            MasterMessage::Forget { key } => {
                let forgotten = self.tasks.remove(&key);
                assert!(
                    forgotten.is_none_or(|state| matches!(state, TaskReportState::Ended(_))),
                    "only the ended is forgotten"
                );
            }
            MasterMessage::Configure(_)
            | MasterMessage::ReportNow
            | MasterMessage::Shutdown { .. }
            | MasterMessage::Tickets(_)
            | MasterMessage::Refused(_) => {}
        }
    }

    fn start(&mut self, key: TaskKey) {
        assert!(
            self.described.contains(&key.seq),
            "a job is described before it is started"
        );
        if !self.tasks.contains_key(&key) {
            *self.executed.entry(key).or_default() += 1;
            self.tasks.insert(key, TaskReportState::Running { for_ms: 0 });
        }
        self.tell(key);
    }

    fn signal(&mut self, key: TaskKey, signal: TaskSignal) {
        if signal == TaskSignal::Terminate && matches!(self.tasks.get(&key), Some(TaskReportState::Running { .. })) {
            self.end(key, Exit::Signal { number: 9, core: false }, FailedCode::AFTER_JOB);
        } else {
            self.tell(key);
        }
    }

    fn end(&mut self, key: TaskKey, exit: Exit, failed: FailedCode) {
        self.tasks
            .insert(key, TaskReportState::Ended(Box::new(result(exit, failed, ""))));
        self.tell(key);
    }

    fn tell(&mut self, key: TaskKey) {
        let state = self.tasks.get(&key).cloned().unwrap_or(TaskReportState::Unknown);
        self.outbox.push_back(TaskReport { key, state });
    }

    fn running(&self) -> Option<TaskKey> {
        let is_running = |state: &TaskReportState| matches!(state, TaskReportState::Running { .. });
        self.tasks
            .iter()
            .find(|(_, state)| is_running(state))
            .map(|(key, _)| *key)
    }
}

/// The usual cell, with a parallel environment over both hosts.
fn objects() -> Vec<StoredObject> {
    let mut objects = super::cell::objects();
    let mut pe = ParallelEnvironment::template("mpi".into()).to_fields();
    for (key, value) in [
        ("slots", "100"),
        ("allocation_rule", "$round_robin"),
        ("control_slaves", "TRUE"),
    ] {
        pe.set(key, value);
    }
    for object in objects.iter_mut().filter(|object| object.kind == ObjectKind::Queue) {
        object.fields.as_mut().expect("a queue").set("pe_list", "mpi");
    }
    objects.push(StoredObject {
        kind: ObjectKind::Pe,
        name: "mpi".to_owned(),
        fields: Some(pe),
    });
    objects
}

/// A job of four slots on both hosts.
fn parallel() -> JobSpec {
    let pe = PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::parse("4").unwrap(),
    };
    JobSpec {
        requests: Requests {
            pe: Some(pe),
            ..Requests::default()
        }
        .into(),
        ..job()
    }
}

struct TestCluster {
    core: Core,
    scheduler: Scheduler,
    hosts: BTreeMap<HostName, Host>,
    log: Vec<Arc<Record>>,
    now: Now,
    counter: u64,
}

impl TestCluster {
    fn new() -> Self {
        let now = Now {
            tick: Tick(1),
            wall: Wall::from_seconds(1_800_000_000),
        };
        let (core, step) = Core::create(CellId(7), objects(), now);
        let scheduler = Scheduler::new(State::new(), Zone::utc());
        let hosts = ["h1", "h2"].map(|host| (HostName::new(host), Host::default())).into();
        let mut cluster = Self {
            core,
            scheduler,
            hosts,
            log: Vec::new(),
            now,
            counter: 0,
        };
        cluster.took(step);
        cluster
    }

    fn took(&mut self, step: Step) {
        self.core.state().check();
        for record in step.events {
            self.scheduler.apply(&record);
            self.log.push(record);
        }
        for effect in step.effects {
            match effect {
                Effect::Send { connection, message } => {
                    if let Some(host) = self.hosts.values_mut().find(|host| host.connection == Some(connection)) {
                        host.inbox.push_back(*message);
                    }
                }
                Effect::Observed(observation) => self.scheduler.observe(&observation),
                Effect::OrderRefused { order, .. } => self.scheduler.refused(&order),
                Effect::Disconnect { connection, .. } => self.drop_connection(connection),
                Effect::Reply { .. }
                | Effect::Joined { .. }
                | Effect::IssueSimulated { .. }
                | Effect::Revoked(_)
                | Effect::TriggerScheduling
                | Effect::Placing { .. }
                | Effect::CutOff { .. }
                | Effect::MonitorScheduling
                | Effect::Shutdown
                | Effect::Alarm(_)
                | Effect::Warn(_)
                | Effect::Verify(_)
                | Effect::Note(_) => {}
            }
        }
    }

    fn drop_connection(&mut self, connection: ConnectionId) {
        for host in self
            .hosts
            .values_mut()
            .filter(|host| host.connection == Some(connection))
        {
            host.connection = None;
            (host.inbox, host.outbox) = Default::default();
            host.described.clear();
        }
    }

    fn input(&mut self, input: Input) {
        self.now.tick = self.now.tick.plus_ms(10);
        self.now.wall = Wall(self.now.wall.0 + 10);
        let step = self.core.handle(input, self.now);
        self.took(step);
    }

    fn submit(&mut self, spec: JobSpec) {
        self.command("sub".into(), Command::Submit(Box::new(spec)));
    }

    fn command(&mut self, host: HostName, command: Command) {
        self.counter += 1;
        self.input(Input::Command {
            reply_to: ReplyTo(0),
            id: RequestId(u128::from(self.counter)),
            owner: owner("u1"),
            host,
            entropy: [0; 32],
            command: Box::new(command),
        });
    }

    /// The first parallel job that runs starts a slave task on a host.
    fn inherit(&mut self, host: &HostName) {
        let jobs = self.core.state().jobs.values();
        let mut placements = jobs.flat_map(|job| job.placements().map(|(_, placement)| placement.clone()));
        let Some(running) = placements.find(|placed| placed.pe.is_some() && placed.started.is_some()) else {
            return;
        };
        drop(placements);
        let spec = Arc::new(SlaveSpec {
            command: vec!["orted".to_owned()],
            ..SlaveSpec::default()
        });
        let request = SlaveRequest {
            task: running.key,
            host: host.to_string(),
            spec,
        };
        self.command(running.host().clone(), Command::StartSlave(Box::new(request)));
    }

    /// The first job is deleted.
    fn delete(&mut self) {
        let Some(number) = self.core.state().by_number.keys().next() else {
            return;
        };
        let jobs = super::cell::selection(&[&number.to_string()]);
        self.command("sub".into(), Command::Delete { jobs, force: false });
    }

    fn connect(&mut self, name: &HostName) {
        if self.hosts[name].connection.is_some() {
            return;
        }
        self.counter += 1;
        let connection = ConnectionId(self.counter);
        let host = self.hosts.get_mut(name).expect("a host of the cluster");
        host.connection = Some(connection);
        let tasks = host
            .tasks
            .iter()
            .map(|(key, state)| TaskReport {
                key: *key,
                state: state.clone(),
            })
            .collect();
        let hello = AgentHello {
            version: PROTOCOL_VERSION,
            cell_version: CellVersion::NEWEST,
            software: String::new(),
            host: name.clone(),
            instance: 1,
            epoch: Epoch(1),
            tasks,
            wall_ms: 0,
            takes_tickets: true,
            binds_cores: true,
            boot_ms: 0,
            marks: Vec::new(),
        };
        self.input(Input::AgentConnected {
            connection,
            host: name.clone(),
            hello: Box::new(hello),
        });
        let values = [(name.clone(), [("np_load_avg".into(), "0.1".to_owned())].into())].into();
        let report = LoadReport {
            sequence: 1,
            full: true,
            values,
            ..LoadReport::default()
        };
        self.input(Input::LoadReport {
            connection,
            report: Box::new(report),
        });
    }

    fn lose(&mut self, name: &HostName) {
        if let Some(connection) = self.hosts[name].connection {
            self.drop_connection(connection);
            self.input(Input::AgentLost { connection });
        }
    }

    /// The master ends and starts again from its log: connections and observations are gone.
    fn restart(&mut self) {
        let mut state = State::new();
        for record in &self.log {
            state.apply(record);
        }
        assert!(state == *self.core.state(), "replay equals live");
        self.scheduler = Scheduler::new(state.clone(), Zone::utc());
        self.core = Core::new(state);
        let connections: Vec<ConnectionId> = self.hosts.values().filter_map(|host| host.connection).collect();
        connections
            .into_iter()
            .for_each(|connection| self.drop_connection(connection));
    }

    fn schedule(&mut self) {
        self.scheduler.begin(self.now, ReservationMode::Anew);
        loop {
            let slice = self.scheduler.next(5);
            self.input(Input::Orders {
                scheduler: "default".to_owned(),
                orders: slice.orders,
            });
            if slice.finished {
                return;
            }
        }
    }

    /// One message to a host, and one from it.
    fn deliver(&mut self, name: &HostName) -> bool {
        let host = self.hosts.get_mut(name).expect("a host of the cluster");
        let Some(connection) = host.connection else {
            return false;
        };
        let order = host.inbox.pop_front();
        let moved = order.is_some();
        order.into_iter().for_each(|message| host.obey(message));
        let Some(report) = host.outbox.pop_front() else {
            return moved;
        };
        let message = Box::new(AgentMessage::Task(report));
        self.input(Input::AgentMessage { connection, message });
        true
    }

    fn perform(&mut self, choice: u8) {
        let name = HostName::new(if choice & 1 == 0 { "h1" } else { "h2" });
        match choice >> 1 {
            0..=24 => drop(self.deliver(&name)),
            25..=49 => self.schedule(),
            50..=79 => {
                let host = self.hosts.get_mut(&name).expect("a host of the cluster");
                if let Some(key) = host.running() {
                    host.end(
                        key,
                        Exit::Code(if choice.is_multiple_of(5) { 99 } else { 0 }),
                        FailedCode::NO,
                    );
                }
            }
            80..=94 => self.connect(&name),
            95..=104 => self.lose(&name),
            105..=107 => self.restart(),
            108..=113 => self.inherit(&name),
            114 => self.delete(),
            115..=118 => self.submit(parallel()),
            _ => self.submit(if choice.is_multiple_of(3) { array("1-3") } else { job() }),
        }
    }

    /// Everything heals and runs to its end.
    fn settle(&mut self) {
        let names: Vec<HostName> = self.hosts.keys().cloned().collect();
        for _ in 0..2_000 {
            names.iter().for_each(|name| self.connect(name));
            self.schedule();
            for name in &names {
                while self.deliver(name) {}
                let host = self.hosts.get_mut(name).expect("a host of the cluster");
                if let Some(key) = host.running() {
                    host.end(key, Exit::Code(0), FailedCode::NO);
                }
            }
            if self.core.state().jobs.is_empty() && self.hosts.values().all(|host| host.tasks.is_empty()) {
                return;
            }
        }
        panic!("not everything came to its end: {:?}", self.core.state().jobs);
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(32))]

    #[test]
    fn no_task_is_lost_and_none_runs_twice(choices in prop::collection::vec(any::<u8>(), 1..250)) {
        let mut cluster = TestCluster::new();
        choices.into_iter().for_each(|choice| cluster.perform(choice));
        cluster.settle();
        let ended = cluster.log.iter().filter_map(|record| record.event.accounting().map(|record| record.key));
        let mut accounted: BTreeMap<TaskKey, u32> = BTreeMap::new();
        ended.for_each(|key| *accounted.entry(key).or_default() += 1);
        let mut executed: BTreeMap<TaskKey, u32> = BTreeMap::new();
        for host in cluster.hosts.values() {
            host.executed.iter().for_each(|(key, times)| *executed.entry(*key).or_default() += times);
        }
        prop_assert!(executed.values().all(|times| *times == 1), "an attempt is executed once: {executed:?}");
        prop_assert_eq!(executed, accounted, "every attempt that was executed is accounted once");
    }
}

#[test]
fn a_contact_is_observed_only_after_the_tasks_are_agreed_on() {
    let mut cluster = TestCluster::new();
    let connection = ConnectionId(1);
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        cell_version: CellVersion::NEWEST,
        software: String::new(),
        host: "h1".into(),
        instance: 1,
        epoch: Epoch(1),
        tasks: Vec::new(),
        wall_ms: 0,
        takes_tickets: true,
        binds_cores: true,
        boot_ms: 0,
        marks: Vec::new(),
    };
    let step = cluster.core.handle(
        Input::AgentConnected {
            connection,
            host: "h1".into(),
            hello: Box::new(hello),
        },
        cluster.now,
    );
    assert!(matches!(
        step.effects.last(),
        Some(Effect::Observed(Observation::Contact { connected: true, .. }))
    ));
}
