//! The language: a cell with the queue `all.q` (four slots on each of `h1` and `h2`) and people who
//! use it.

use crate::core::Core;
use crate::effect::Step;
use crate::effect::{ConnectionId, Effect, Input, ReplyTo};
use crate::event::{Event, Record, StoredObject};
use crate::state::State;
use crate::state::job::{Job, Placement, Task};
use proto::cell_version::CellVersion;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::id::{CellId, Epoch, HostName, JobNumber, PeName, QueueInstanceName, RequestId, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec, Owner, Program};
use proto::object::{Fields, ObjectKind};
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::request::{ResourceList, TaskRange};
use proto::time::{Now, Tick, Wall};
use proto::usage::{Exit, FailedCode, TaskResult};
use proto::wire::agent::{
    AgentHello, AgentMessage, MasterMessage, PROTOCOL_VERSION, TaskReport, TaskReportState, TasksMark,
};
use proto::wire::client::{Answer, Command, JobSelection, ModifyAction, Reply};
use proto::wire::stream::Order;
use proto::wire::view::Data;
use std::sync::Arc;

/// A cell under test, with everything that was logged and the effects of the last input.
pub(super) struct Cell {
    pub core: Core,
    pub now: Now,
    pub log: Vec<Arc<Record>>,
    pub effects: Vec<Effect>,
    /// The newest version of a cell that agents know when they connect.
    pub agents_know: CellVersion,
    requests: u128,
    connections: u64,
}

/// A job `sleep` of `u1` as a script.
pub(super) fn job() -> JobSpec {
    JobSpec {
        name: "sleep".to_owned(),
        program: Program::Script {
            path: "sleep.sh".to_owned(),
            content: Arc::from(&b"sleep 1\n"[..]),
        },
        args: Vec::new(),
        owner: owner("u1").into(),
        submit_host: "sub".into(),
        submit_directory: String::new(),
        directory: None,
        directory_on: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdin: Vec::new(),
        merge_stderr: false,
        shell: Vec::new(),
        use_shell: None,
        environment: Vec::new().into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Default::default(),
        array: None,
        task_concurrency: None,
        holds: Default::default(),
        predecessors: Vec::new(),
        array_predecessors: Vec::new(),
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: Vec::new(),
        context: Vec::new(),
        validation: Default::default(),
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}

/// The same job as an array.
pub(super) fn array(range: &str) -> JobSpec {
    JobSpec {
        array: Some(TaskRange::parse(range).unwrap()),
        ..job()
    }
}

/// `-l` of a job.
pub(super) fn resources(text: &str) -> Vec<proto::request::ResourceRequest> {
    ResourceList::parse(text).unwrap().into()
}

pub(super) fn owner(user: &str) -> Owner {
    let uid = if user == "root" {
        0
    } else {
        2000 + u32::from(user.as_bytes()[user.len() - 1])
    };
    Owner {
        user: user.into(),
        uid,
        gid: if uid == 0 { 0 } else { 2000 },
        group: "users".to_owned(),
        groups: Vec::new(),
    }
}

fn object(kind: ObjectKind, name: &str, fields: Fields) -> StoredObject {
    StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    }
}

pub(super) fn objects() -> Vec<StoredObject> {
    let mut queue = ClusterQueue::template("all.q".into()).to_fields();
    queue.set("hostlist", "h1 h2");
    queue.set("slots", "4");
    queue.set("pe_list", "NONE");
    let mut objects = vec![object(ObjectKind::Queue, "all.q", queue)];
    for host in ["h1", "h2"] {
        let fields = ExecHost::template(host.into()).to_fields();
        objects.push(object(ObjectKind::ExecHost, host, fields));
    }
    let lists = [
        (ObjectKind::SubmitHosts, "sub"),
        (ObjectKind::AdminHosts, "adm"),
        (ObjectKind::AdminHosts, "sub"),
        (ObjectKind::Managers, "boss"),
        (ObjectKind::Operators, "op"),
    ];
    objects.extend(lists.map(|(kind, name)| object(kind, name, Fields::new())));
    objects
}

impl Cell {
    /// The cell, no host connected.
    pub fn new() -> Self {
        let now = Now {
            tick: Tick(1_000),
            wall: Wall::from_seconds(1_800_000_000),
        };
        let (core, step) = Core::create(CellId(7), objects(), now);
        let mut cell = Self {
            core,
            now,
            log: Vec::new(),
            effects: Vec::new(),
            agents_know: CellVersion::NEWEST,
            requests: 0,
            connections: 0,
        };
        cell.took(step);
        cell
    }

    /// The cell as the first release left it, no host connected.
    pub fn of_first_version() -> Self {
        let mut cell = Self::new();
        let mut state = State::new();
        for record in &mut cell.log {
            if let Event::CellCreated { version, .. } = &mut Arc::make_mut(record).event {
                *version = CellVersion::FIRST;
            }
            state.apply(record);
        }
        cell.core = Core::new(state);
        cell
    }

    /// The cell with both hosts connected.
    pub fn ready() -> Self {
        let mut cell = Self::new();
        cell.connect("h1");
        cell.connect("h2");
        cell
    }

    fn took(&mut self, step: Step) {
        self.log.extend(step.events);
        self.effects = step.effects;
        self.core.state().check();
    }

    /// Replays the log into a state of its own and compares.
    pub fn assert_replay_is_live(&self) {
        let mut replayed = State::new();
        for record in &self.log {
            replayed.apply(record);
        }
        assert!(replayed == *self.core.state(), "replay differs from the live state");
    }

    pub fn input(&mut self, input: Input) {
        let step = self.core.handle(input, self.now);
        self.took(step);
    }

    /// The cell is a copy and parts from its original.
    pub fn part_from_original(&mut self, why: &str) {
        let step = self.core.part_from_original(why, self.now);
        self.took(step);
    }

    /// Lets time pass on both clocks.
    pub fn pass(&mut self, ms: u64) {
        self.now.tick = self.now.tick.plus_ms(ms);
        self.now.wall = Wall(self.now.wall.0.saturating_add_unsigned(ms));
        self.input(Input::Tick);
    }

    pub fn set_cluster(&mut self, changes: &[(&str, &str)]) {
        let mut fields = ClusterConf::template().to_fields();
        changes.iter().for_each(|(key, value)| fields.set(key, *value));
        self.store(vec![object(ObjectKind::ClusterConf, "global", fields)]);
    }

    pub fn set_scheduler(&mut self, changes: &[(&str, &str)]) {
        let mut fields = SchedulerConf::template().to_fields();
        changes.iter().for_each(|(key, value)| fields.set(key, *value));
        self.store(vec![object(ObjectKind::SchedulerConf, "", fields)]);
    }

    /// Sets attributes of `all.q`.
    pub fn set_queue(&mut self, changes: &[(&str, &str)]) {
        let mut fields = self.core.state().config.queues["all.q"].to_fields();
        changes.iter().for_each(|(key, value)| fields.set(key, *value));
        self.store(vec![object(ObjectKind::Queue, "all.q", fields)]);
    }

    pub fn store(&mut self, objects: Vec<StoredObject>) {
        self.fact(Event::ObjectsChanged(objects));
    }

    /// Something becomes true without a decision.
    pub fn fact(&mut self, event: Event) {
        let record = Record {
            seq: proto::id::EventSeq(self.core.state.last.0 + 1),
            now: self.now,
            actor: crate::event::Actor::Master,
            request: None,
            event,
        };
        self.core.state.apply(&record);
        self.log.push(Arc::new(record));
    }

    /// A command with a new request id, from the host `sub`.
    pub fn command(&mut self, user: &str, command: Command) -> Reply {
        self.requests += 1;
        self.command_as(RequestId(self.requests), user, "sub", command)
    }

    pub fn command_as(&mut self, id: RequestId, user: &str, host: &str, command: Command) -> Reply {
        self.input(Input::Command {
            reply_to: ReplyTo(1),
            id,
            owner: owner(user),
            host: host.into(),
            entropy: [0; 32],
            command: Box::new(command),
        });
        let reply = |effect: &Effect| {
            if let Effect::Reply { reply, .. } = effect {
                Some((**reply).clone())
            } else {
                None
            }
        };
        self.effects.iter().find_map(reply).expect("a command is answered")
    }

    /// `qsub`; the number, or the first refusal.
    pub fn try_submit(&mut self, spec: JobSpec) -> Result<u32, String> {
        let user = spec.owner.user.to_string();
        let reply = self.command(&user, Command::Submit(Box::new(spec)));
        if let Some(Data::Submitted { number, .. }) = reply.data {
            Ok(number.0)
        } else {
            Err(texts(&reply).join("|"))
        }
    }

    pub fn submit(&mut self, spec: JobSpec) -> u32 {
        self.try_submit(spec).expect("the job is accepted")
    }

    pub fn qdel(&mut self, user: &str, targets: &[&str]) -> Vec<String> {
        texts(&self.command(
            user,
            Command::Delete {
                jobs: selection(targets),
                force: false,
            },
        ))
    }

    pub fn qdel_force(&mut self, user: &str, targets: &[&str]) -> Vec<String> {
        texts(&self.command(
            user,
            Command::Delete {
                jobs: selection(targets),
                force: true,
            },
        ))
    }

    pub fn qmod(&mut self, user: &str, action: ModifyAction, target: &str) -> Vec<String> {
        let targets = vec![target.to_owned()];
        texts(&self.command(
            user,
            Command::Modify {
                action,
                targets,
                force: false,
            },
        ))
    }

    /// An agent says hello and knows no task.
    pub fn connect(&mut self, host: &str) -> ConnectionId {
        self.connect_with(host, 1, Vec::new())
    }

    pub fn connect_with(&mut self, host: &str, instance: u128, tasks: Vec<TaskReport>) -> ConnectionId {
        self.connect_marked(host, instance, tasks, &[])
    }

    /// The same with the marks of a task directory, newest first.
    pub fn connect_marked(
        &mut self,
        host: &str,
        instance: u128,
        tasks: Vec<TaskReport>,
        marks: &[&str],
    ) -> ConnectionId {
        self.connections += 1;
        let connection = ConnectionId(self.connections);
        let hello = AgentHello {
            version: PROTOCOL_VERSION,
            cell_version: self.agents_know,
            software: "test".to_owned(),
            host: host.into(),
            instance,
            epoch: Epoch(1),
            tasks,
            wall_ms: self.now.wall.0,
            takes_tickets: true,
            binds_cores: true,
            boot_ms: self.now.tick.0,
            marks: marks.iter().map(|mark| TasksMark((*mark).to_owned())).collect(),
        };
        self.input(Input::AgentConnected {
            connection,
            host: host.into(),
            hello: Box::new(hello),
        });
        connection
    }

    pub fn disconnect(&mut self, host: &str) {
        let connection = self.connection(host);
        self.input(Input::AgentLost { connection });
    }

    pub fn connection(&self, host: &str) -> ConnectionId {
        self.core
            .memory
            .agents
            .connection(&HostName::new(host))
            .expect("the host is connected")
    }

    /// A scheduler wants a task started with one slot on a host; why not, if it is refused.
    pub fn order(&mut self, number: u32, task: u32, host: &str) -> Result<TaskKey, String> {
        let instance = QueueInstanceName {
            queue: "all.q".into(),
            host: host.into(),
        };
        let seq = self.job(number).seq;
        let order = Order::Start {
            seq,
            task: TaskId(task),
            granted: vec![GrantedSlots { instance, slots: 1 }],
            pe: None::<PeName>,
        };
        self.input(Input::Orders {
            scheduler: "default".to_owned(),
            orders: vec![order],
        });
        let refusal = |effect: &Effect| {
            if let Effect::OrderRefused { why, .. } = effect {
                Some(why.why.clone())
            } else {
                None
            }
        };
        match self.effects.iter().find_map(refusal) {
            Some(why) => Err(why),
            None => Ok(self.placement(number, task).key),
        }
    }

    /// Orders a start and lets the host confirm it.
    pub fn run(&mut self, number: u32, task: u32, host: &str) -> TaskKey {
        let key = self.order(number, task, host).expect("the order is right");
        self.report(key, host, TaskReportState::Running { for_ms: 0 });
        key
    }

    pub fn report(&mut self, key: TaskKey, host: &str, state: TaskReportState) {
        let connection = self.connection(host);
        let message = Box::new(AgentMessage::Task(TaskReport { key, state }));
        self.input(Input::AgentMessage { connection, message });
    }

    /// The host says that the job process called exit.
    pub fn exit(&mut self, key: TaskKey, host: &str, code: u8) {
        self.end(key, host, result(Exit::Code(code), FailedCode::NO, ""));
    }

    pub fn end(&mut self, key: TaskKey, host: &str, result: TaskResult) {
        self.report(key, host, TaskReportState::Ended(Box::new(result)));
    }

    pub fn exists(&self, number: u32) -> bool {
        self.core.state().job(JobNumber(number)).is_some()
    }

    pub fn job(&self, number: u32) -> &Job {
        self.core.state().job(JobNumber(number)).expect("the job exists")
    }

    pub fn task(&self, number: u32, task: u32) -> &Task {
        &self.job(number).tasks[&TaskId(task)]
    }

    pub fn placement(&self, number: u32, task: u32) -> &Placement {
        self.task(number, task)
            .place
            .placement()
            .expect("the task is on a host")
    }

    /// What the last input sent to agents.
    pub fn sent(&self) -> Vec<&MasterMessage> {
        fn message(effect: &Effect) -> Option<&MasterMessage> {
            if let Effect::Send { message, .. } = effect {
                Some(message)
            } else {
                None
            }
        }
        self.effects.iter().filter_map(message).collect()
    }

    pub fn records(&self) -> Vec<&proto::accounting::AccountingRecord> {
        self.log.iter().filter_map(|record| record.event.accounting()).collect()
    }
}

pub(super) fn result(exit: Exit, failed: FailedCode, reason: &str) -> TaskResult {
    TaskResult {
        exit,
        wallclock_ms: 1500,
        ..TaskResult::not_started(failed, reason)
    }
}

/// Targets as the commands read them.
pub(super) fn selection(targets: &[&str]) -> JobSelection {
    let target = |text: &&str| crate::decide::jobs::select::target(text).unwrap_or_default();
    JobSelection {
        targets: targets.iter().map(target).collect(),
        ..JobSelection::default()
    }
}

/// The lines of an answer.
pub(super) fn texts(reply: &Reply) -> Vec<String> {
    let text = |answer: &Answer| match answer {
        Answer::Done(text) => text.clone(),
        Answer::Warning(diagnostic) | Answer::Refused(diagnostic) => diagnostic.what.clone(),
    };
    reply.answers.iter().map(text).collect()
}
