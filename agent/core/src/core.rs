//! The state machine of one agent: orders of the master in, requests to the launcher and reports
//! out.
//!
//! Invariants: an attempt is started at most once by this agent, because the launcher answers a
//! second launch with what became of the first; an ended attempt is told to the master until it
//! says forget; nothing is told about tasks before the launcher has listed what it knows, because
//! silence about a running task would mean that it is lost; an order is given back to the master
//! only if no launcher was told of it, or the launcher that was told of it is dead and had not
//! begun it.

mod health;

use crate::document::launch_document;
use crate::host_paths::HostPaths;
use crate::outcome::{in_words, task_result, usage};
use crate::priority::{Priorities, Share};
use health::Health;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{CellId, Epoch, SubmitSeq, TaskKey};
use proto::job::{JobSpec, Program};
use proto::launch::{LaunchResult, Notice, Request, TaskOrder, TaskState, TaskSummary};
use proto::usage::{Blame, FailedCode, TaskResult};
use proto::wire::agent::{
    AgentConfig, AgentMessage, MasterMessage, MasterWelcome, StartOrder, TaskReport, TaskReportState, TaskSignal,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The boot clock of the host, which the shepherds use too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now<'a> {
    /// Milliseconds of `CLOCK_BOOTTIME`.
    pub boot_ms: u64,
    /// This boot.
    pub boot_id: &'a str,
}

/// Everything that can happen to an agent.
#[derive(Clone, Debug)]
pub enum Input {
    /// The master answered the hello.
    Welcome(Box<MasterWelcome>),
    /// The connection to the master ended.
    MasterLost,
    /// A message on the control stream.
    Master(Box<MasterMessage>),
    /// The launcher is connected.
    LauncherConnected,
    /// The connection to the launcher ended. Shepherds go on.
    LauncherLost,
    /// The launcher said something.
    Launcher(Box<Notice>),
    /// The administrator of the host ends all tasks and then the agent, so no further task starts.
    EndTasks,
    /// The answer to [`Effect::FindUnbegun`]: tasks that the launcher, which is dead, had not
    /// begun.
    Unbegun(Vec<TaskKey>),
    /// Time passed: wanted when [`Core::next_timer`] says.
    Tick,
}

/// What the shell is to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send to the master, if it is connected; what must not be lost is repeated after a reconnect.
    Send(Box<AgentMessage>),
    /// Send to the launcher, with the script of the job if the request is a launch of one.
    Launcher {
        /// The request.
        request: Box<Request>,
        /// The script, to be passed as a sealed memory file.
        script: Option<Arc<[u8]>>,
    },
    /// Behave like this from now on.
    Configure(AgentConfig),
    /// Find out which of these tasks the last launcher had not begun, if it is dead: a task that is
    /// begun has a directory. Answer with [`Input::Unbegun`].
    FindUnbegun(Vec<TaskKey>),
    /// Send a full load report now.
    ReportNow,
    /// Connect to the master: the tasks of this host are known.
    Ready,
    /// Disconnect from the master: it belongs to an older life of the cell, or to another one.
    Reject(Diagnostic),
    /// End the agent.
    Stop,
    /// Something for the log.
    Warn(Diagnostic),
}

/// A task of this host.
#[derive(Clone, Debug, PartialEq)]
enum Task {
    /// Its order waits for a launcher: none was told of it, or one that is dead and had not begun
    /// it.
    Held(Box<StartOrder>, Arc<JobSpec>),
    /// The launcher was asked to start it and has not answered.
    Asked(Box<StartOrder>, Arc<JobSpec>),
    /// Its shepherd prepares it.
    Accepted,
    /// Its job process runs.
    Running { started_boot_ms: u64, pid: i32 },
    /// It is over.
    Ended(End),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// As its shepherd wrote.
    Result(Box<LaunchResult>),
    /// The launcher refused it, or it could not be asked.
    Refused(String, Blame),
    /// It is over, and nobody knows how: it may have run.
    Lost,
}

/// What is known of the main process of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainProcess {
    /// It is this one.
    Is(i32),
    /// The launcher has still to tell: the task may run already.
    NotYetKnown,
    /// No such task runs here.
    None,
}

/// The agent's decisions, and the state that they need.
///
/// A `Core` has no clock, no connection and no process. The shell around it (`agent/src/driver.rs`)
/// reads the world and performs what the core decides. The methods are of three kinds:
///
/// - [`Core::handle`] takes one [`Input`] and returns the [`Effect`]s that follow from it. Nothing
///   else changes the core.
/// - [`Core::next_timer`] says when an [`Input::Tick`] is wanted.
/// - [`Core::epoch`], [`Core::reports`], [`Core::main_process`], [`Core::active`] and
///   [`Core::takes_tickets`] look at the core and change nothing.
///
/// The order of calls matters:
///
/// 1. The shell performs the effects of one call, in their order, before it calls again.
/// 2. [`Core::next_timer`] is asked again after each call: every input may move it.
/// 3. The shell opens a connection to the master only after [`Effect::Ready`], and takes the hello
///    from [`Core::reports`] at that moment. Before the launcher has listed its tasks, the list
///    would be too short, and the master would take the missing tasks for lost.
/// 4. [`Input::Master`] comes between [`Input::Welcome`] and [`Input::MasterLost`] only,
///    [`Input::Launcher`] between [`Input::LauncherConnected`] and [`Input::LauncherLost`] only.
/// 5. If [`Core::epoch`] has changed after a call, the shell stores it before it performs the
///    effects. After a restart it gives the stored epoch to [`Core::new`].
///
/// What must not be done: start a task without a request of the core, or repeat an effect. A
/// message that is lost needs no repetition by the shell, because the next hello lists every task,
/// and the core asks the launcher again after its next list.
#[derive(Clone, Debug)]
pub struct Core {
    host_paths: HostPaths,
    cell: Option<CellId>,
    epoch: Epoch,
    config: AgentConfig,
    connected: bool,
    /// Whether the launcher has listed its tasks since it was connected.
    listed: bool,
    /// Whether tasks can be started here, and what the master knows of it.
    health: Health,
    jobs: BTreeMap<SubmitSeq, Arc<JobSpec>>,
    tasks: BTreeMap<TaskKey, Task>,
    /// The last order to each task that has not ended: a launcher that died may not have carried it
    /// out.
    orders: BTreeMap<TaskKey, TaskOrder>,
    /// How the running tasks share the host.
    priorities: Priorities,
    /// Whether the launcher can give running tasks another share.
    reprioritizes: bool,
    /// Whether the agent ends once the master knows the end of every task that is to migrate, so
    /// that they go on elsewhere.
    stopping: bool,
    /// Whether the host takes no starts any more.
    closing: bool,
}

impl Core {
    /// An agent that knows nothing of tasks yet. `epoch` is the highest that it has obeyed in
    /// earlier lives.
    pub fn new(host_paths: HostPaths, epoch: Epoch) -> Self {
        Self {
            host_paths,
            cell: None,
            epoch,
            config: AgentConfig::default(),
            connected: false,
            listed: false,
            health: Health::default(),
            jobs: BTreeMap::new(),
            tasks: BTreeMap::new(),
            orders: BTreeMap::new(),
            priorities: Priorities::default(),
            reprioritizes: false,
            stopping: false,
            closing: false,
        }
    }

    /// The highest epoch that was obeyed; the shell keeps it over restarts.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Every task, for the hello.
    pub fn reports(&self, now: &Now<'_>) -> Vec<TaskReport> {
        self.tasks.iter().map(|(key, task)| report(*key, task, now)).collect()
    }

    /// The main process of a task of this host.
    pub fn main_process(&self, key: TaskKey) -> MainProcess {
        match self.tasks.get(&key) {
            Some(Task::Running { pid, .. }) => MainProcess::Is(*pid),
            Some(Task::Held(..) | Task::Asked(..) | Task::Accepted) => MainProcess::NotYetKnown,
            None if !self.listed => MainProcess::NotYetKnown,
            Some(Task::Ended(_)) | None => MainProcess::None,
        }
    }

    /// How many tasks have not ended.
    pub fn active(&self) -> usize {
        self.tasks
            .values()
            .filter(|task| !matches!(task, Task::Ended(_)))
            .count()
    }

    /// When [`Input::Tick`] is wanted, by the boot clock in milliseconds; `None` if nothing waits
    /// for time to pass.
    pub fn next_timer(&self) -> Option<u64> {
        self.health.next_timer()
    }

    /// Takes one input in.
    pub fn handle(&mut self, input: Input, now: &Now<'_>) -> Vec<Effect> {
        let mut effects = self.take(input, now);
        effects.extend(self.keep_health(now));
        effects
    }

    fn take(&mut self, input: Input, now: &Now<'_>) -> Vec<Effect> {
        match input {
            Input::Welcome(welcome) => self.welcome(*welcome),
            Input::MasterLost => {
                self.connected = false;
                self.jobs.clear();
                Vec::new()
            }
            Input::Master(message) => self.obey(*message, now),
            Input::LauncherConnected => vec![launcher(Request::List)],
            Input::LauncherLost => {
                self.listed = false;
                self.health.launcher_lost(now.boot_ms);
                Vec::new()
            }
            Input::Launcher(notice) => self.notice(*notice, now),
            Input::EndTasks => self.end_tasks(now),
            Input::Unbegun(keys) => {
                self.hold_again(&keys);
                Vec::new()
            }
            Input::Tick => Vec::new(),
        }
    }

    fn welcome(&mut self, welcome: MasterWelcome) -> Vec<Effect> {
        if welcome.epoch < self.epoch {
            let refusal = Diagnostic::new(
                Code::WrongCell,
                "the master is older than one that this agent has obeyed",
            );
            let why = format!("its epoch is {}, ours {}", welcome.epoch.0, self.epoch.0);
            return vec![Effect::Reject(
                refusal
                    .why(why)
                    .fix("a restored master raises its epoch: use gridwright restore"),
            )];
        }
        if self.cell.is_some_and(|cell| cell != welcome.cell) {
            return vec![Effect::Reject(Diagnostic::new(
                Code::WrongCell,
                "the master belongs to another cell",
            ))];
        }
        self.cell = Some(welcome.cell);
        self.epoch = welcome.epoch;
        self.connected = true;
        self.health.welcomed();
        self.configure(welcome.config)
    }

    fn configure(&mut self, config: AgentConfig) -> Vec<Effect> {
        self.config = config;
        // Without `reprioritize`, tasks whose nice value or weight was changed get back what their
        // queue says.
        let back = if self.config.reprioritize.is_none() {
            self.priorities.clear()
        } else {
            Vec::new()
        };
        let usual = |key| {
            launcher(Request::Reprioritize {
                key,
                nice: None,
                cpu_weight: None,
            })
        };
        std::iter::once(Effect::Configure(self.config.clone()))
            .chain(back.into_iter().map(usual))
            .collect()
    }

    /// Whether the master may send tickets: the launcher can do what follows from them.
    pub fn takes_tickets(&self) -> bool {
        self.reprioritizes
    }

    /// What the running tasks get of the host from now on, where that has changed.
    fn reprioritize(&mut self, now: &Now<'_>) -> Vec<Effect> {
        let Some(range) = self
            .config
            .reprioritize
            .filter(|_| self.reprioritizes && self.priorities.is_due(now.boot_ms))
        else {
            return Vec::new();
        };
        let is_running = |(_, task): &(&TaskKey, &Task)| matches!(task, Task::Running { .. });
        let running: Vec<TaskKey> = self.tasks.iter().filter(is_running).map(|(key, _)| *key).collect();
        let changed = self.priorities.compute(&running, range, now.boot_ms);
        let ask = |(key, share): (TaskKey, Share)| {
            launcher(Request::Reprioritize {
                key,
                nice: Some(share.nice),
                cpu_weight: Some(share.cpu_weight),
            })
        };
        changed.into_iter().map(ask).collect()
    }

    fn obey(&mut self, message: MasterMessage, now: &Now<'_>) -> Vec<Effect> {
        match message {
            MasterMessage::Describe { job, spec } => {
                self.jobs.insert(job, spec);
                Vec::new()
            }
            MasterMessage::Discard { job } => {
                self.jobs.remove(&job);
                Vec::new()
            }
            MasterMessage::Start(order) => self.start(*order, now),
            MasterMessage::Signal { key, signal } => self.signal(key, signal, now),
            MasterMessage::Forget { key } => self.forget(key),
            MasterMessage::Configure(config) => self.configure(config),
            MasterMessage::Tickets(tickets) => {
                self.priorities.set_tickets(tickets);
                self.reprioritize(now)
            }
            MasterMessage::ReportNow => vec![Effect::ReportNow],
            MasterMessage::Shutdown { kill_jobs } => self.shutdown(kill_jobs),
            MasterMessage::Refused(refusal) => vec![Effect::Warn(refusal)],
        }
    }

    fn start(&mut self, order: StartOrder, now: &Now<'_>) -> Vec<Effect> {
        let key = order.key;
        if let Some(task) = self.tasks.get(&key) {
            return vec![send(report(key, task, now))];
        }
        if self.newer_attempt(key) {
            return vec![send(TaskReport {
                key,
                state: TaskReportState::Unknown,
            })];
        }
        if self.closing {
            return self.give_back_one(key, health::CLOSING, now);
        }
        let Some(spec) = self.jobs.get(&key.seq).cloned() else {
            // The order overtook the description, or the master believes that we still have it.
            return vec![send(TaskReport {
                key,
                state: TaskReportState::Unknown,
            })];
        };
        if !self.listed {
            self.tasks.insert(key, Task::Held(Box::new(order), spec));
            return Vec::new();
        }
        let launch = self.launch(&order, &spec);
        self.tasks.insert(key, Task::Asked(Box::new(order), spec));
        vec![launch]
    }

    fn launch(&self, order: &StartOrder, spec: &Arc<JobSpec>) -> Effect {
        let document = launch_document(&self.host_paths, &self.config, order, spec);
        // A job that a command restarts needs no script.
        let script = match &spec.program {
            Program::Script { content, .. } if document.start.has_script() => Some(Arc::clone(content)),
            Program::Script { .. } | Program::Stored { .. } | Program::Command { .. } => None,
        };
        Effect::Launcher {
            request: Box::new(Request::Launch(Box::new(document))),
            script,
        }
    }

    /// Whether a later attempt of the same task is here: an older order is refused for ever
    /// (ARCHITECTURE.md "Time, keys and requests").
    fn newer_attempt(&self, key: TaskKey) -> bool {
        let from = TaskKey {
            attempt: key.attempt.saturating_add(1),
            ..key
        };
        let to = TaskKey {
            attempt: u32::MAX,
            ..key
        };
        from.attempt > key.attempt && self.tasks.range(from..=to).next().is_some()
    }

    fn signal(&mut self, key: TaskKey, signal: TaskSignal, now: &Now<'_>) -> Vec<Effect> {
        let order = match signal {
            TaskSignal::Terminate => TaskOrder::Terminate,
            TaskSignal::Suspend => TaskOrder::Suspend,
            TaskSignal::Resume => TaskOrder::Resume,
            TaskSignal::Migrate => TaskOrder::Migrate,
        };
        match self.tasks.get(&key) {
            None => vec![send(TaskReport {
                key,
                state: TaskReportState::Unknown,
            })],
            Some(task @ Task::Ended(_)) => vec![send(report(key, task, now))],
            Some(Task::Held(..)) if matches!(order, TaskOrder::Terminate | TaskOrder::Migrate) => self.give_back_one(
                key,
                "the task was ended by an order before a launcher was told of it",
                now,
            ),
            Some(Task::Held(..)) => {
                self.keep_order(key, order);
                Vec::new()
            }
            Some(Task::Asked(..) | Task::Accepted | Task::Running { .. }) => {
                self.keep_order(key, order);
                vec![launcher(Request::Signal { key, order })]
            }
        }
    }

    /// Keeps an order until its task has ended, for a launcher that dies or is away.
    fn keep_order(&mut self, key: TaskKey, order: TaskOrder) {
        let kept = order.behind(self.orders.get(&key).copied());
        self.orders.insert(key, kept);
    }

    fn forget(&mut self, key: TaskKey) -> Vec<Effect> {
        match self.tasks.get(&key) {
            // What runs is never forgotten, whatever the master says.
            Some(Task::Held(..) | Task::Asked(..) | Task::Accepted | Task::Running { .. }) => Vec::new(),
            Some(Task::Ended(_)) | None => {
                self.tasks.remove(&key);
                let stop = (self.stopping && !self.is_migrating()).then_some(Effect::Stop);
                std::iter::once(launcher(Request::Forget { key })).chain(stop).collect()
            }
        }
    }

    fn is_migrating(&self) -> bool {
        self.orders.values().any(|order| *order == TaskOrder::Migrate)
    }

    fn shutdown(&mut self, kill_jobs: bool) -> Vec<Effect> {
        if !kill_jobs && self.is_migrating() {
            self.stopping = true;
            return Vec::new();
        }
        let active = self
            .tasks
            .iter()
            .filter(|(_, task)| kill_jobs && !matches!(task, Task::Ended(_)));
        let kill = |key: &TaskKey| {
            launcher(Request::Signal {
                key: *key,
                order: TaskOrder::Terminate,
            })
        };
        active.map(|(key, _)| kill(key)).chain([Effect::Stop]).collect()
    }

    /// Ends every task of the host and takes no other one. What no launcher was told of goes back
    /// to the master, which gives it to another host.
    fn end_tasks(&mut self, now: &Now<'_>) -> Vec<Effect> {
        self.closing = true;
        let is_active = |task: &Task| !matches!(task, Task::Ended(_));
        let active: Vec<TaskKey> = self
            .tasks
            .iter()
            .filter(|(_, task)| is_active(task))
            .map(|(key, _)| *key)
            .collect();
        let (held, told): (Vec<TaskKey>, Vec<TaskKey>) = active
            .into_iter()
            .partition(|key| matches!(self.tasks.get(key), Some(Task::Held(..))));
        let mut effects: Vec<Effect> = held
            .into_iter()
            .flat_map(|key| self.give_back_one(key, health::CLOSING, now))
            .collect();
        self.orders.extend(told.iter().map(|key| (*key, TaskOrder::Terminate)));
        effects.extend(told.into_iter().map(|key| {
            launcher(Request::Signal {
                key,
                order: TaskOrder::Terminate,
            })
        }));
        effects
    }

    /// Gives the master a task back that no launcher was told of. It is not the job's fault.
    fn give_back_one(&mut self, key: TaskKey, why: &str, now: &Now<'_>) -> Vec<Effect> {
        self.become_task(key, Task::Ended(End::Refused(why.to_owned(), Blame::Host)), now)
    }

    fn notice(&mut self, notice: Notice, now: &Now<'_>) -> Vec<Effect> {
        match notice {
            Notice::Accepted { key } => self.become_task(key, Task::Accepted, now),
            Notice::Executed { key, boot_ms, pid } => self.become_task(
                key,
                Task::Running {
                    started_boot_ms: boot_ms,
                    pid,
                },
                now,
            ),
            Notice::Ended(result) => {
                let key = result.key;
                self.become_task(key, Task::Ended(End::Result(result)), now)
            }
            Notice::Refused {
                key: Some(key),
                text,
                blame,
                ..
            } => self.refused(key, text, blame, now),
            Notice::Usage { key, usage: used } => {
                if self.config.reprioritize.is_some() && matches!(self.tasks.get(&key), Some(Task::Running { .. })) {
                    self.priorities.used(key, &used);
                }
                let told = Effect::Send(Box::new(AgentMessage::Usage(vec![(key, usage(&used))])));
                std::iter::once(told).chain(self.reprioritize(now)).collect()
            }
            Notice::Tasks {
                tasks,
                reprioritizes,
                examines,
                // For people: the shell logs it.
                enforces: _,
            } => {
                self.reprioritizes = reprioritizes;
                self.health.launcher_listed(examines, now.boot_ms);
                self.listed(tasks, now)
            }
            Notice::Health { trouble, root_commands } => {
                self.health.examined(trouble, root_commands, now.boot_ms);
                Vec::new()
            }
            Notice::Refused { key: None, text, .. } => {
                vec![Effect::Warn(
                    Diagnostic::new(Code::SystemRefused, "the launcher refused a request").why(text),
                )]
            }
            Notice::Forgotten { .. }
            | Notice::Idle { .. }
            | Notice::SensorStarted { .. }
            | Notice::SensorEnded { .. } => Vec::new(),
        }
    }

    /// A task goes forward; what ended stays ended.
    fn become_task(&mut self, key: TaskKey, next: Task, now: &Now<'_>) -> Vec<Effect> {
        let rank = |task: &Task| match task {
            Task::Held(..) | Task::Asked(..) => 0,
            Task::Accepted => 1,
            Task::Running { .. } => 2,
            Task::Ended(_) => 3,
        };
        if self.tasks.get(&key).is_some_and(|task| rank(task) >= rank(&next)) {
            return Vec::new();
        }
        if matches!(next, Task::Ended(_)) {
            self.orders.remove(&key);
            self.priorities.forget(key);
        }
        let message = report(key, &next, now);
        self.tasks.insert(key, next);
        vec![send(message)]
    }

    fn refused(&mut self, key: TaskKey, text: String, blame: Blame, now: &Now<'_>) -> Vec<Effect> {
        match self.tasks.get(&key) {
            Some(Task::Asked(..)) => {
                if blame == Blame::Host {
                    self.health.doubted(now.boot_ms);
                }
                self.become_task(key, Task::Ended(End::Refused(text, blame)), now)
            }
            // What was refused is no start: a signal to a task that ended in between.
            Some(Task::Held(..) | Task::Accepted | Task::Running { .. } | Task::Ended(_)) | None => Vec::new(),
        }
    }

    /// The launcher has listed every task directory. Tasks in the list take the state that it says.
    /// Starts that wait, or were requested and are not in the list, are requested from this
    /// launcher.
    fn listed(&mut self, summaries: Vec<TaskSummary>, now: &Now<'_>) -> Vec<Effect> {
        let first = !self.listed;
        self.listed = true;
        let mut effects = Vec::new();
        for summary in summaries {
            let key = summary.key;
            effects.extend(self.become_task(key, from_summary(summary), now));
        }
        let asked = self.tasks.values().filter_map(|task| match task {
            Task::Held(order, spec) | Task::Asked(order, spec) => Some((order.clone(), Arc::clone(spec))),
            Task::Accepted | Task::Running { .. } | Task::Ended(_) => None,
        });
        let asked: Vec<_> = asked.collect();
        effects.extend(asked.iter().map(|(order, spec)| self.launch(order, spec)));
        self.tasks.extend(
            asked
                .into_iter()
                .map(|(order, spec)| (order.key, Task::Asked(order, spec))),
        );
        // A repeat does no harm, and what was asked of a launcher that died is asked of this one.
        effects.extend(self.orders.iter().map(|(key, order)| {
            launcher(Request::Signal {
                key: *key,
                order: *order,
            })
        }));
        if first {
            effects.push(Effect::Ready);
        }
        effects
    }
}

fn from_summary(summary: TaskSummary) -> Task {
    match (summary.state, summary.result) {
        (_, Some(result)) => Task::Ended(End::Result(Box::new(result))),
        (TaskState::Running, None) => Task::Running {
            started_boot_ms: summary.started_boot_ms,
            pid: summary.pid,
        },
        (TaskState::Preparing, None) => Task::Accepted,
        (TaskState::Ended, None) => Task::Ended(End::Lost),
    }
}

fn report(key: TaskKey, task: &Task, now: &Now<'_>) -> TaskReport {
    let state = match task {
        Task::Held(..) | Task::Asked(..) | Task::Accepted => TaskReportState::Accepted,
        Task::Running { started_boot_ms, .. } => TaskReportState::Running {
            for_ms: now.boot_ms.saturating_sub(*started_boot_ms),
        },
        Task::Ended(end) => TaskReportState::Ended(Box::new(match end {
            End::Result(result) => task_result(result, now.boot_ms, result.boot_id == now.boot_id),
            End::Refused(text, Blame::Job) => TaskResult::not_started(FailedCode::BEFORE_JOB, in_words(text)),
            End::Refused(text, Blame::Host) => TaskResult::host_unfit(in_words(text)),
            End::Refused(text, Blame::Queue) => TaskResult::not_started(FailedCode::BEFORE_PROLOG, in_words(text)),
            End::Lost => crate::outcome::lost("its result is missing on the host"),
        })),
    };
    TaskReport { key, state }
}

fn send(report: TaskReport) -> Effect {
    Effect::Send(Box::new(AgentMessage::Task(report)))
}

fn launcher(request: Request) -> Effect {
    Effect::Launcher {
        request: Box::new(request),
        script: None,
    }
}

#[cfg(test)]
mod tests;
