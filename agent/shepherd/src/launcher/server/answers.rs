//! Answers to the requests of agents.

use super::health::{self, refused, refused_sensor};
use super::{PendingStart, Server};
use crate::launcher::connection::Connection;
use crate::launcher::rules::Refusal;
use crate::launcher::{script, sensor};
use crate::shepherd;
use crate::sys::{self, Fork};
use crate::task_dir::{self, TaskDir};
use proto::id::TaskKey;
use proto::launch::{LaunchDocument, Notice, Request, SensorSpec, TaskOrder, TaskState, TaskSummary};
use std::io;
use std::os::fd::OwnedFd;

impl Server {
    /// Fails where silence would be taken for an answer: a task that a list leaves out is one that
    /// is lost.
    pub(super) fn handle(&mut self, request: Request, agent: &mut Connection) -> io::Result<Vec<Notice>> {
        let mut notices = Vec::new();
        if !matches!(request, Request::Launch(_)) {
            // What came before a request is in force for it.
            notices.extend(self.start_all());
        }
        notices.extend(self.answer(request, agent)?);
        Ok(notices)
    }

    fn answer(&mut self, request: Request, agent: &mut Connection) -> io::Result<Vec<Notice>> {
        Ok(match request {
            Request::Launch(document) => {
                let attached = agent.take_attached(document.start.descriptors());
                self.launch(*document, attached)
            }
            Request::Signal { key, order } => self.signal(key, order),
            Request::Reprioritize { key, nice, cpu_weight } => {
                self.reprioritize(key, nice, cpu_weight);
                Vec::new()
            }
            Request::List => vec![Notice::Tasks {
                tasks: self.list()?,
                reprioritizes: true,
                examines: true,
                enforces: self.host.groups.lines(),
            }],
            Request::Examine => {
                self.host.rules.refresh();
                vec![Notice::Health {
                    trouble: self.trouble(),
                    root_commands: self.host.rules.told_commands(),
                }]
            }
            Request::Forget { key } => vec![self.forget(key)],
            Request::StartSensor(spec) => match agent.take_descriptors::<3>() {
                Some(streams) => vec![self.start_sensor(spec, &streams)],
                None => vec![refused_sensor(
                    &spec,
                    "three descriptors must come with the request: the launcher may be out of them (ulimit -n)".into(),
                )],
            },
            Request::StopSensor { pid, signal } => {
                if self.sensors.contains_key(&pid) {
                    // Gone already is what is wanted.
                    let group = nix::unistd::Pid::from_raw(pid);
                    if let Ok(signal) = nix::sys::signal::Signal::try_from(signal) {
                        let _ = nix::sys::signal::killpg(group, signal);
                    }
                }
                Vec::new()
            }
        })
    }

    fn launch(&mut self, document: LaunchDocument, attached: Option<Vec<OwnedFd>>) -> Vec<Notice> {
        let key = document.key;
        let needs_script = document.start.has_script();
        let Some(attached) = attached else {
            let what = if needs_script { "no script" } else { "no streams" };
            let text = format!("{what} came with the document: the launcher may be out of descriptors (ulimit -n)");
            return vec![refused(key, Refusal::of_host(text))];
        };
        let script_bytes = match attached.last().filter(|_| needs_script).map_or(Ok(0), script::size) {
            Ok(bytes) => bytes,
            Err(refusal) => return vec![refused(key, refusal)],
        };
        let dir = TaskDir::new(&key);
        if let Err(lack) = health::room_for(script_bytes) {
            return if dir.exists() {
                self.answer_again(key, &dir)
            } else {
                vec![refused(key, Refusal::of_host(lack.to_string()))]
            };
        }
        self.host.rules.refresh();
        if let Err(refusal) = self.host.rules.check(&document, &self.host.folder) {
            return vec![refused(key, refusal)];
        }
        self.tell_kept_nice(document.nice);
        match self.spares.create(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.answer_again(key, &dir),
            Err(error) => vec![refused(
                key,
                Refusal::of_host(format!("{}: {error}", dir.file("").display())),
            )],
            Ok(()) => {
                self.starting.push(PendingStart { document, attached });
                Vec::new()
            }
        }
    }

    /// A repeated order is answered with what it already did.
    fn answer_again(&self, key: TaskKey, dir: &TaskDir) -> Vec<Notice> {
        if let Some(ended) = shepherd::ended(dir) {
            return vec![ended];
        }
        let executed = self.tasks.get(&key).and_then(|task| task.executed);
        let executed = executed.map(|(pid, boot_ms)| Notice::Executed { key, pid, boot_ms });
        [Notice::Accepted { key }].into_iter().chain(executed).collect()
    }

    pub(super) fn signal(&mut self, key: TaskKey, order: TaskOrder) -> Vec<Notice> {
        let Some(task) = self.tasks.get_mut(&key) else {
            let dir = TaskDir::new(&key);
            let ended = shepherd::ended(&dir);
            return vec![ended.unwrap_or_else(|| refused(key, Refusal::of_job("no such task on this host")))];
        };
        match task.token.and_then(|token| self.shepherds.connection(token)) {
            // A shepherd that cannot be written to has ended: its end is on the way.
            Some(connection) => drop(connection.send(&Request::Signal { key, order })),
            None => task.waiting = Some(order.behind(task.waiting)),
        }
        Vec::new()
    }

    fn list(&self) -> io::Result<Vec<TaskSummary>> {
        Ok(task_dir::all_keys()?.into_iter().map(|key| self.summary(key)).collect())
    }

    fn summary(&self, key: TaskKey) -> TaskSummary {
        let dir = TaskDir::new(&key);
        let result = dir.read_result();
        let executed = self.tasks.get(&key).and_then(|task| task.executed);
        let state = match (&result, executed) {
            (Some(_), _) => TaskState::Ended,
            (None, Some(_)) => TaskState::Running,
            (None, None) => TaskState::Preparing,
        };
        let (pid, started_boot_ms) = executed.unwrap_or((0, 0));
        TaskSummary {
            key,
            state,
            pid,
            started_boot_ms,
            result,
        }
    }

    fn forget(&mut self, key: TaskKey) -> Notice {
        let dir = TaskDir::new(&key);
        if !self.results.contains(&key) && dir.exists() && !dir.has_result() {
            return refused(key, Refusal::of_job("the task has not ended"));
        }
        match self.spares.remove(&dir) {
            Ok(()) => {
                self.journal.forget(&key);
                self.results.forget(&key);
                Notice::Forgotten { key }
            }
            Err(error) => refused(
                key,
                Refusal::of_host(format!("its directory cannot be removed: {error}")),
            ),
        }
    }

    fn start_sensor(&mut self, spec: SensorSpec, streams: &[OwnedFd; 3]) -> Notice {
        if let Err(failure) = sensor::check(&spec) {
            return refused_sensor(&spec, failure.to_string());
        }
        self.know_sensors();
        self.host.rules.refresh();
        match sys::fork() {
            Ok(Fork::Child) => sensor::run(&self.host, &spec, streams),
            Ok(Fork::Parent(pid)) => {
                self.sensors.insert(pid, spec.id);
                Notice::SensorStarted { id: spec.id, pid }
            }
            Err(error) => refused_sensor(&spec, format!("cannot start a process: {error}")),
        }
    }
}
