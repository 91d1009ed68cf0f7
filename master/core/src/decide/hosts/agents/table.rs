//! The connection table.

use crate::config::Configuration;
use crate::decide::hosts::agents::{AttributeTypes, attribute_types};
use crate::effect::ConnectionId;
use proto::cell_version::CellVersion;
use proto::id::{HostName, SubmitSeq, TaskKey};
use proto::time::Tick;
use proto::usage::TaskResult;
use proto::wire::agent::{AgentConfig, AgentHello};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// How long an order may stay without an answer before it is sent again. The stream loses nothing,
/// so this is for agents that do.
const REPEAT_MS: u64 = 30_000;

/// What is to be looked at when a time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// Whether a host was heard since.
    Unheard,
    /// Whether the tasks of an unknown host are to run again.
    Reschedule,
    /// Whether the time of a task of an unknown host is over.
    Limit,
    /// Whether a host that refused a start may have another one.
    Pause,
    /// Whether slave tasks of jobs that ended on a host are still there.
    Slaves,
}

/// Who is connected and what each was told.
///
/// Invariants: `connections` and `agents` name each other; `orders` holds exactly the orders of
/// connected agents that wait for an answer; `describers` is `described` of all agents, turned
/// round; `silence` names the entries of `deadlines` of its kind; `types`, if there, are those of
/// the configuration in force.
#[derive(Debug, Default)]
pub struct Agents {
    agents: BTreeMap<HostName, Agent>,
    connections: BTreeMap<ConnectionId, HostName>,
    describers: BTreeMap<SubmitSeq, BTreeSet<HostName>>,
    orders: BTreeSet<(Tick, TaskKey)>,
    heard: BTreeMap<HostName, Tick>,
    /// Which instance said hello last on each host, and when by the clock of its boot.
    greeted: BTreeMap<HostName, (u128, u64)>,
    /// The one deadline of each host after which it is asked whether it was heard.
    silence: BTreeMap<HostName, Tick>,
    deadlines: BTreeSet<(Tick, HostName, Deadline)>,
    /// Ends that hosts reported of parallel jobs whose slave tasks have not ended yet. Their hosts
    /// repeat them until they are told to forget.
    held: BTreeMap<TaskKey, TaskResult>,
    /// The types of all attributes, made once for all agents that say hello.
    types: OnceLock<AttributeTypes>,
}

/// One connected agent.
#[derive(Debug)]
struct Agent {
    connection: ConnectionId,
    instance: u128,
    /// The newest version of a cell that it knows.
    cell_version: CellVersion,
    config: AgentConfig,
    /// When it was asked to show that it lives, because another one came under its name.
    asked: Option<Tick>,
    /// The tickets of its tasks as it was told; none if it does not take any.
    tickets: Option<Vec<(TaskKey, i64)>>,
    /// Whether it binds tasks to cores.
    binds_cores: bool,
    /// Jobs that it was told about, with the version.
    described: BTreeMap<SubmitSeq, u32>,
    /// Orders without an answer, with the time of the repeat.
    waiting: BTreeMap<TaskKey, Tick>,
}

impl Agents {
    /// The types of all attributes of the configuration in force.
    pub(crate) fn types(&self, config: &Configuration) -> AttributeTypes {
        self.types.get_or_init(|| attribute_types(config)).clone()
    }

    /// Objects have changed, perhaps the complex.
    pub(crate) fn forget_types(&mut self) {
        self.types = OnceLock::new();
    }

    /// The host behind a connection, if it is the present one of that host.
    pub fn host_of(&self, connection: ConnectionId) -> Option<&HostName> {
        self.connections.get(&connection)
    }

    /// The connection of a host's agent.
    pub fn connection(&self, host: &HostName) -> Option<ConnectionId> {
        self.agents.get(host).map(|agent| agent.connection)
    }

    /// Every connected agent, in the order of the hosts.
    pub fn connected(&self) -> impl Iterator<Item = (HostName, ConnectionId)> + '_ {
        self.agents.iter().map(|(host, agent)| (host.clone(), agent.connection))
    }

    /// The hosts whose connected agents do not know a version of a cell.
    pub(crate) fn older_than(&self, version: CellVersion) -> impl Iterator<Item = &HostName> {
        let older = self
            .agents
            .iter()
            .filter(move |(_, agent)| agent.cell_version < version);
        older.map(|(host, _)| host)
    }

    /// When something is due for the first time.
    pub(crate) fn next_timer(&self) -> Option<Tick> {
        let order = self.orders.first().map(|(at, _)| *at);
        let deadline = self.deadlines.first().map(|(at, _, _)| *at);
        order.into_iter().chain(deadline).min()
    }

    pub(crate) fn instance(&self, host: &HostName) -> Option<u128> {
        self.agents.get(host).map(|agent| agent.instance)
    }

    /// Whether the agent of a host binds tasks to cores. One that is not connected counts as one
    /// that does.
    pub(crate) fn binds_cores(&self, host: &HostName) -> bool {
        self.agents.get(host).is_none_or(|agent| agent.binds_cores)
    }

    /// Whether an agent of the same instance has said hello later than this.
    pub(crate) fn is_outdated(&self, host: &HostName, hello: &AgentHello) -> bool {
        let known = self
            .greeted
            .get(host)
            .filter(|(instance, _)| *instance == hello.instance);
        hello.boot_ms > 0 && known.is_some_and(|(_, boot_ms)| *boot_ms > hello.boot_ms)
    }

    /// When a host's agent was asked last to show that it lives.
    pub(crate) fn asked(&self, host: &HostName) -> Option<Tick> {
        self.agents.get(host).and_then(|agent| agent.asked)
    }

    /// Notes that a host's agent is asked to show that it lives; the connection to ask over.
    pub(crate) fn ask(&mut self, host: &HostName, now: Tick) -> Option<ConnectionId> {
        let agent = self.agents.get_mut(host)?;
        agent.asked = Some(now);
        Some(agent.connection)
    }

    pub(crate) fn add(&mut self, connection: ConnectionId, host: HostName, hello: &AgentHello, config: AgentConfig) {
        self.connections.insert(connection, host.clone());
        self.greeted.insert(host.clone(), (hello.instance, hello.boot_ms));
        let (described, waiting) = (BTreeMap::new(), BTreeMap::new());
        let (instance, tickets) = (hello.instance, hello.takes_tickets.then(Vec::new));
        let agent = Agent {
            connection,
            instance,
            cell_version: hello.cell_version,
            config,
            asked: None,
            tickets,
            binds_cores: hello.binds_cores,
            described,
            waiting,
        };
        self.agents.insert(host, agent);
    }

    /// Takes a host's agent out and gives back its connection.
    pub(crate) fn remove_host(&mut self, host: &HostName) -> Option<ConnectionId> {
        let agent = self.agents.remove(host)?;
        self.connections.remove(&agent.connection);
        for (key, at) in agent.waiting {
            self.orders.remove(&(at, key));
        }
        for job in agent.described.into_keys() {
            remove(&mut self.describers, job, host);
        }
        Some(agent.connection)
    }

    /// Whether the configuration of an agent is another one than it has; it counts as sent then.
    pub(crate) fn set_config(&mut self, host: &HostName, config: &AgentConfig) -> bool {
        let Some(agent) = self.agents.get_mut(host).filter(|agent| agent.config != *config) else {
            return false;
        };
        agent.config = config.clone();
        true
    }

    /// Whether the tickets of a host's tasks are others than its agent was told, if it takes any;
    /// they count as sent then.
    pub(crate) fn set_tickets(&mut self, host: &HostName, tickets: &[(TaskKey, i64)]) -> bool {
        let known = self.agents.get_mut(host).and_then(|agent| agent.tickets.as_mut());
        let Some(known) = known.filter(|known| known.as_slice() != tickets) else {
            return false;
        };
        *known = tickets.to_vec();
        true
    }

    /// Whether an agent does not know this version of a job yet; it counts as described then.
    pub(crate) fn describe(&mut self, host: &HostName, job: SubmitSeq, version: u32) -> bool {
        let Some(agent) = self.agents.get_mut(host) else {
            return false;
        };
        self.describers.entry(job).or_default().insert(host.clone());
        agent.described.insert(job, version) != Some(version)
    }

    /// An agent turned out not to know a job.
    pub(crate) fn undescribe(&mut self, host: &HostName, job: SubmitSeq) {
        if let Some(agent) = self.agents.get_mut(host) {
            agent.described.remove(&job);
        }
        remove(&mut self.describers, job, host);
    }

    /// The connections whose agents were told about a job; they count as told that it is over.
    pub(crate) fn discard(&mut self, job: SubmitSeq) -> Vec<ConnectionId> {
        let hosts = self.describers.remove(&job).unwrap_or_default();
        let mut connections = Vec::with_capacity(hosts.len());
        for host in hosts {
            let agent = self
                .agents
                .get_mut(&host)
                .expect("only connected agents are in the index");
            agent.described.remove(&job);
            connections.push(agent.connection);
        }
        connections
    }

    /// An order went out and waits for its answer.
    pub(crate) fn await_answer(&mut self, host: &HostName, key: TaskKey, now: Tick) {
        self.answered(host, key);
        if let Some(agent) = self.agents.get_mut(host) {
            let at = now.plus_ms(REPEAT_MS);
            agent.waiting.insert(key, at);
            self.orders.insert((at, key));
        }
    }

    /// The host has answered an order, or it is void.
    pub(crate) fn answered(&mut self, host: &HostName, key: TaskKey) {
        if let Some(at) = self.agents.get_mut(host).and_then(|agent| agent.waiting.remove(&key)) {
            self.orders.remove(&(at, key));
        }
    }

    /// Takes out the orders whose repeat is due.
    pub(crate) fn due_orders(&mut self, now: Tick) -> Vec<TaskKey> {
        let due: Vec<TaskKey> = self
            .orders
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, key)| *key)
            .collect();
        if !due.is_empty() {
            self.orders.retain(|(at, _)| *at > now);
            self.agents
                .values_mut()
                .for_each(|agent| agent.waiting.retain(|_, at| *at > now));
        }
        due
    }

    /// Keeps the reported end of a task until its slave tasks have ended.
    pub(crate) fn hold(&mut self, key: TaskKey, result: TaskResult) {
        self.held.insert(key, result);
    }

    /// Whether the end of a task waits for those of its slave tasks.
    pub(crate) fn is_held(&self, key: TaskKey) -> bool {
        self.held.contains_key(&key)
    }

    /// Takes such an end out.
    pub(crate) fn release(&mut self, key: TaskKey) -> Option<TaskResult> {
        self.held.remove(&key)
    }

    /// When a host was last heard; none if it was given up or never heard.
    pub(crate) fn heard(&self, host: &HostName) -> Option<Tick> {
        self.heard.get(host).copied()
    }

    /// Notes that a host was heard; whether it had not been before.
    pub(crate) fn hear(&mut self, host: &HostName, now: Tick) -> bool {
        self.heard.insert(host.clone(), now).is_none()
    }

    /// Forgets when a host was heard.
    pub(crate) fn give_up(&mut self, host: &HostName) {
        self.heard.remove(host);
        self.greeted.remove(host);
    }

    /// Every host that was heard and not given up, with when.
    pub(crate) fn all_heard(&self) -> impl Iterator<Item = (&HostName, Tick)> {
        self.heard.iter().map(|(host, at)| (host, *at))
    }

    /// Sets a deadline. Of those for its silence a host has one, the last that was set.
    pub(crate) fn expect(&mut self, at: Tick, host: HostName, deadline: Deadline) {
        if deadline == Deadline::Unheard
            && let Some(before) = self.silence.insert(host.clone(), at)
        {
            self.deadlines.remove(&(before, host.clone(), deadline));
        }
        self.deadlines.insert((at, host, deadline));
    }

    /// Takes out the first deadline that has come.
    pub(crate) fn due_deadline(&mut self, now: Tick) -> Option<(HostName, Deadline)> {
        self.deadlines.first().filter(|(at, _, _)| *at <= now)?;
        let (_, host, deadline) = self.deadlines.pop_first()?;
        if deadline == Deadline::Unheard {
            self.silence.remove(&host);
        }
        Some((host, deadline))
    }
}

fn remove(describers: &mut BTreeMap<SubmitSeq, BTreeSet<HostName>>, job: SubmitSeq, host: &HostName) {
    if let Some(hosts) = describers.get_mut(&job) {
        hosts.remove(host);
        if hosts.is_empty() {
            describers.remove(&job);
        }
    }
}
