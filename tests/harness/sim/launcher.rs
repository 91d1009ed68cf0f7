//! A pretended launcher with its shepherds. Task directories survive everything; shepherds survive
//! the agent and the launcher; a task whose shepherd died is ended whole by the launcher, and
//! recorded so.

mod session;

use super::agenda::{Happening, HostIndex};
use super::world::World;
use proto::id::{Epoch, TaskKey};
use proto::launch::{
    Blame, EndCause, Failure, LaunchDocument, LaunchResult, Notice, TaskOrder, TaskState, TaskSummary, TaskUsage,
    unframe,
};
use std::collections::VecDeque;

/// What a job of the workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) runs_ms: u64,
    pub(super) exit: u8,
    /// A start that fails with this code of `failed`; 0 starts well.
    pub(super) start_fails: u8,
}

/// A running launcher: the socket of the agent, if there is one.
#[derive(Debug, Default)]
pub(super) struct Launcher {
    session: Option<u64>,
    requests: VecDeque<Vec<u8>>,
    notices: VecDeque<Vec<u8>>,
    last: [u64; 2],
}

/// `tasks/KEY/`.
#[derive(Clone, Debug)]
pub(super) struct TaskDirectory {
    boot: u64,
    program: Program,
    pub(super) shepherd: Shepherd,
    ordered: bool,
}

/// How far the shepherd is.
#[derive(Clone, Debug)]
pub(super) enum Shepherd {
    Preparing,
    Running {
        started_boot_ms: u64,
        left_ms: u64,
        since: Option<u64>,
        run: u64,
    },
    /// The shepherd is dead; `started_boot_ms` if the exec record is there. Nobody has ended the
    /// rest yet.
    Dead {
        started_boot_ms: Option<u64>,
    },
    Ended(Box<LaunchResult>),
}

impl Shepherd {
    fn started_boot_ms(&self) -> Option<u64> {
        match self {
            Shepherd::Preparing => None,
            Shepherd::Running { started_boot_ms, .. } => Some(*started_boot_ms),
            Shepherd::Dead { started_boot_ms } => *started_boot_ms,
            Shepherd::Ended(result) => result.executed.then_some(result.started_boot_ms),
        }
    }
}

/// A message after its way through the launcher's own format.
fn reread<R: proto::launch::pairs::Record>(bytes: &[u8]) -> R {
    let (message, taken) = unframe(bytes)
        .expect("a message decodes")
        .expect("a message is complete");
    assert_eq!(taken, bytes.len());
    message
}

/// What a task has used after so long.
fn used_in(ms: u64) -> TaskUsage {
    TaskUsage {
        cpu_ms: ms,
        mem_byte_ms: u128::from(ms) * 3_072,
        io_bytes: ms / 2,
        ..TaskUsage::default()
    }
}

impl World {
    pub(super) fn launcher_starts(&mut self, host: HostIndex) {
        let node = &mut self.nodes[host];
        if !node.is_up || node.launcher.is_some() {
            return;
        }
        node.launcher = Some(Launcher::default());
        self.trace(|| format!("launcher of host {host} starts"));
        // Directories without a shepherd and without a result: of an earlier boot, or the shepherd
        // died unseen.
        let node = &self.nodes[host];
        let (boot, is_orphan) = (node.boot, |dir: &TaskDirectory| {
            !matches!(dir.shepherd, Shepherd::Ended(_))
                && (dir.boot != node.boot || matches!(dir.shepherd, Shepherd::Dead { .. }))
        });
        let orphans: Vec<TaskKey> = node
            .directories
            .iter()
            .filter(|(_, dir)| is_orphan(dir))
            .map(|(key, _)| *key)
            .collect();
        for key in orphans {
            let wait = self.random.between(1, 200);
            self.soon(wait, Happening::Undertaker { host, key, boot });
        }
    }

    pub(super) fn launcher_dies(&mut self, host: HostIndex) {
        if !self.launcher_gone(host) {
            return;
        }
        self.counts.launcher_crashes += 1;
        self.trace(|| format!("launcher of host {host} dies"));
        // Mostly it is started again at once; without it for long, orders go back to the master.
        let wait = if self.random.chance(200) {
            self.random.between(5_000, 60_000)
        } else {
            self.random.around(2_000)
        };
        self.soon(wait, Happening::LauncherStarts { host });
    }

    /// A launcher can start nothing for a while: its disk is full, or it has no process, and it may
    /// not know that.
    pub(super) fn host_falls_ill(&mut self, host: HostIndex) {
        self.counts.illnesses += 1;
        let length = self.random.between(1_000, 60_000);
        let node = &mut self.nodes[host];
        (node.sick_until, node.knows_sickness) = (self.time + length, self.random.chance(700));
        let knows = node.knows_sickness;
        self.trace(|| format!("host {host} is ill for {length} ms and knows it: {knows}"));
    }

    fn is_ill(&self, host: HostIndex) -> bool {
        self.nodes[host].sick_until > self.time
    }

    fn examine(&self, host: HostIndex) -> Notice {
        let is_known = self.is_ill(host) && self.nodes[host].knows_sickness;
        Notice::Health {
            trouble: is_known.then(|| "no space left".to_owned()),
            root_commands: None,
        }
    }

    /// The launcher is gone, whether it comes back or not; false if there was none.
    pub(super) fn launcher_gone(&mut self, host: HostIndex) -> bool {
        if self.nodes[host].launcher.take().is_none() {
            return false;
        }
        self.session_ends(host);
        true
    }

    fn launch(&mut self, host: HostIndex, document: &LaunchDocument) -> Vec<Notice> {
        let key = document.key;
        if let Some(known) = self.nodes[host].directories.get(&key) {
            return match &known.shepherd {
                Shepherd::Ended(result) => vec![Notice::Ended(result.clone())],
                Shepherd::Preparing => vec![Notice::Accepted { key }],
                Shepherd::Running { .. } | Shepherd::Dead { .. } => {
                    let executed =
                        known
                            .shepherd
                            .started_boot_ms()
                            .map(|boot_ms| Notice::Executed { key, pid: 1, boot_ms });
                    [Notice::Accepted { key }].into_iter().chain(executed).collect()
                }
            };
        }
        if self.is_ill(host) {
            self.counts.host_refusals += 1;
            let text = "no space left".to_owned();
            return vec![Notice::Refused {
                key: Some(key),
                sensor: None,
                text,
                blame: Blame::Host,
            }];
        }
        let program = self.program(&document.job_name);
        let boot = self.nodes[host].boot;
        let directory = TaskDirectory {
            boot,
            program,
            shepherd: Shepherd::Preparing,
            ordered: false,
        };
        self.nodes[host].directories.insert(key, directory);
        let wait = if self.random.chance(50) {
            self.random.between(1_000, 10_000)
        } else {
            self.random.between(1, 30)
        };
        self.soon(wait, Happening::TaskExecutes { host, key, boot });
        vec![Notice::Accepted { key }]
    }

    fn signal(&mut self, host: HostIndex, key: TaskKey, order: TaskOrder) -> Vec<Notice> {
        let (now, boot) = (self.time, self.nodes[host].boot);
        let refused = |text: &str| {
            vec![Notice::Refused {
                key: Some(key),
                sensor: None,
                text: text.to_owned(),
                blame: Blame::Job,
            }]
        };
        let Some(directory) = self.nodes[host].directories.get_mut(&key) else {
            return refused("no such task");
        };
        let mut plan = None;
        match (&mut directory.shepherd, order) {
            (Shepherd::Ended(result), _) => return vec![Notice::Ended(result.clone())],
            (Shepherd::Dead { .. }, _) => {}
            (
                Shepherd::Preparing | Shepherd::Running { .. },
                TaskOrder::Terminate | TaskOrder::Kill | TaskOrder::Migrate,
            ) => {
                directory.ordered = true;
                plan = Some(Happening::TaskTerminated { host, key, boot });
            }
            (
                Shepherd::Running {
                    left_ms, since, run, ..
                },
                TaskOrder::Suspend,
            ) => {
                if let Some(since) = since.take() {
                    *left_ms = left_ms.saturating_sub(now - since);
                    *run += 1;
                }
            }
            (
                Shepherd::Running {
                    left_ms, since, run, ..
                },
                TaskOrder::Resume,
            ) => {
                if since.is_none() {
                    *since = Some(now);
                    *run += 1;
                    let (left, run) = (*left_ms, *run);
                    self.soon(left, Happening::TaskEnds { host, key, boot, run });
                }
            }
            (Shepherd::Preparing, TaskOrder::Suspend | TaskOrder::Resume) => {}
            (Shepherd::Preparing | Shepherd::Running { .. }, TaskOrder::User1 | TaskOrder::User2) => {}
        }
        if let Some(plan) = plan {
            let wait = self.random.between(1, 3_000);
            self.soon(wait, plan);
        }
        Vec::new()
    }

    fn summaries(&self, host: HostIndex) -> Vec<TaskSummary> {
        let summary = |(key, directory): (&TaskKey, &TaskDirectory)| {
            let started = directory.shepherd.started_boot_ms();
            let result = match &directory.shepherd {
                Shepherd::Ended(result) => Some((**result).clone()),
                Shepherd::Preparing | Shepherd::Running { .. } | Shepherd::Dead { .. } => None,
            };
            let state = match (&result, started) {
                (Some(_), _) => TaskState::Ended,
                (None, Some(_)) => TaskState::Running,
                (None, None) => TaskState::Preparing,
            };
            let pid = i32::from(started.is_some());
            TaskSummary {
                key: *key,
                state,
                pid,
                started_boot_ms: started.unwrap_or(0),
                result,
            }
        };
        self.nodes[host].directories.iter().map(summary).collect()
    }

    fn forget(&mut self, host: HostIndex, key: TaskKey) -> Vec<Notice> {
        match self.nodes[host]
            .directories
            .get(&key)
            .map(|directory| &directory.shepherd)
        {
            Some(Shepherd::Ended(_)) | None => {
                self.nodes[host].directories.remove(&key);
                vec![Notice::Forgotten { key }]
            }
            Some(Shepherd::Preparing | Shepherd::Running { .. } | Shepherd::Dead { .. }) => {
                let text = "the task has not ended".to_owned();
                vec![Notice::Refused {
                    key: Some(key),
                    sensor: None,
                    text,
                    blame: Blame::Job,
                }]
            }
        }
    }

    /// A task of a host, if it is of the present boot and has come no further than a shepherd's
    /// life.
    fn directory(&mut self, host: HostIndex, key: TaskKey, boot: u64) -> Option<&mut TaskDirectory> {
        let node = &mut self.nodes[host];
        if node.boot != boot || !node.is_up {
            return None;
        }
        node.directories.get_mut(&key)
    }

    pub(super) fn task_executes(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let (now, started_boot_ms) = (self.time, self.boot_ms(host));
        let Some(directory) = self.directory(host, key, boot) else {
            return;
        };
        if !matches!(directory.shepherd, Shepherd::Preparing) {
            return;
        }
        let Program {
            runs_ms, start_fails, ..
        } = directory.program;
        if start_fails > 0 {
            let text = "it was to fail".to_owned();
            let failure = Failure {
                failed: start_fails,
                text,
                errno: 2,
                path: String::new(),
            };
            return self.write_result(host, key, EndCause::FailedToStart(failure), false);
        }
        directory.shepherd = Shepherd::Running {
            started_boot_ms,
            left_ms: runs_ms,
            since: Some(now),
            run: 1,
        };
        self.soon(
            runs_ms,
            Happening::TaskEnds {
                host,
                key,
                boot,
                run: 1,
            },
        );
        let name = self.nodes[host].name.clone();
        self.trace(|| format!("host {host} executes {key}"));
        self.witness.execute(key, host, &name);
        self.tell(
            host,
            &Notice::Executed {
                key,
                pid: 1,
                boot_ms: started_boot_ms,
            },
        );
        self.plan_slaves(host, key, boot);
        self.plan_usage(host, key, boot);
    }

    /// Whether a task has processes there.
    pub(super) fn is_running(&mut self, host: HostIndex, key: TaskKey, boot: u64) -> bool {
        let directory = self.directory(host, key, boot);
        directory.is_some_and(|directory| matches!(directory.shepherd, Shepherd::Running { .. }))
    }

    fn plan_usage(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let wait = 100 + self.random.around(self.plan.pace.usage_ms);
        self.soon(wait, Happening::UsageKnown { host, key, boot });
    }

    /// What a task uses is told now and then while it runs.
    pub(super) fn usage_known(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let now_ms = self.boot_ms(host);
        let Some(directory) = self.directory(host, key, boot) else {
            return;
        };
        let Shepherd::Running { started_boot_ms, .. } = directory.shepherd else {
            return;
        };
        let used = used_in(now_ms.saturating_sub(started_boot_ms));
        if !self.healed {
            self.counts.usages += 1;
            self.tell(host, &Notice::Usage { key, usage: used });
            self.plan_usage(host, key, boot);
        }
    }

    pub(super) fn task_ends(&mut self, host: HostIndex, key: TaskKey, boot: u64, of_run: u64) {
        let Some(directory) = self.directory(host, key, boot) else {
            return;
        };
        let exit = directory.program.exit;
        match directory.shepherd {
            Shepherd::Running {
                run, since: Some(_), ..
            } if run == of_run => {
                self.write_result(host, key, EndCause::Exited(exit), true);
            }
            Shepherd::Running { .. } | Shepherd::Preparing | Shepherd::Dead { .. } | Shepherd::Ended(_) => {}
        }
    }

    pub(super) fn task_terminated(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let Some(directory) = self.directory(host, key, boot) else {
            return;
        };
        match directory.shepherd {
            Shepherd::Running { .. } => {
                self.write_result(host, key, EndCause::Signalled { signal: 9, core: false }, true)
            }
            Shepherd::Preparing => self.write_result(host, key, EndCause::Signalled { signal: 9, core: false }, false),
            Shepherd::Dead { .. } | Shepherd::Ended(_) => {}
        }
    }

    fn write_result(&mut self, host: HostIndex, key: TaskKey, cause: EndCause, executed: bool) {
        let (ended_boot_ms, boot_id) = (self.boot_ms(host), self.nodes[host].boot_id());
        let Some(directory) = self.nodes[host].directories.get_mut(&key) else {
            return;
        };
        let started_boot_ms = directory.shepherd.started_boot_ms().unwrap_or(0);
        let wallclock_ms = if executed {
            ended_boot_ms.saturating_sub(started_boot_ms)
        } else {
            0
        };
        // Nobody has measured those that were killed.
        let usage = if matches!(cause, EndCause::Exited(_)) {
            used_in(wallclock_ms)
        } else {
            TaskUsage::default()
        };
        let result = Box::new(LaunchResult {
            key,
            cause,
            after: None,
            executed,
            ordered: directory.ordered,
            limit: None,
            refused_limits: Vec::new(),
            procedures: Vec::new(),
            usage,
            wallclock_ms,
            started_boot_ms,
            ended_boot_ms,
            boot_id,
            saved_pid: None,
            left_processes: None,
            note: None,
        });
        directory.shepherd = Shepherd::Ended(result.clone());
        self.trace(|| format!("host {host} result of {key}: {:?}", result.cause));
        self.witness.exit(key);
        self.tell(host, &Notice::Ended(result));
    }

    /// Some shepherd of a host dies; the processes of its task live until somebody ends them.
    pub(super) fn some_shepherd_dies(&mut self, host: HostIndex) {
        let node = &self.nodes[host];
        let is_alive = |dir: &TaskDirectory| {
            dir.boot == node.boot && matches!(dir.shepherd, Shepherd::Preparing | Shepherd::Running { .. })
        };
        let alive: Vec<TaskKey> = node
            .directories
            .iter()
            .filter(|(_, dir)| is_alive(dir))
            .map(|(key, _)| *key)
            .collect();
        let boot = node.boot;
        if let Some(key) = self.random.pick(&alive) {
            self.shepherd_dies(host, key, boot);
        }
    }

    pub(super) fn shepherd_dies(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let Some(directory) = self.directory(host, key, boot) else {
            return;
        };
        if !matches!(directory.shepherd, Shepherd::Preparing | Shepherd::Running { .. }) {
            return;
        }
        directory.shepherd = Shepherd::Dead {
            started_boot_ms: directory.shepherd.started_boot_ms(),
        };
        self.counts.shepherd_deaths += 1;
        self.trace(|| format!("shepherd of {key} dies"));
        if self.nodes[host].launcher.is_some() {
            let wait = self.random.between(1, 200);
            self.soon(wait, Happening::Undertaker { host, key, boot });
        }
    }

    /// What is left of a task without a shepherd is ended, and its result written.
    pub(super) fn undertaker(&mut self, host: HostIndex, key: TaskKey, boot: u64) {
        let node = &self.nodes[host];
        if !node.is_up || node.boot != boot || node.launcher.is_none() {
            return;
        }
        let Some(directory) = node.directories.get(&key) else {
            return;
        };
        if matches!(directory.shepherd, Shepherd::Ended(_)) {
            return;
        }
        if directory.shepherd.started_boot_ms().is_some() {
            return self.write_result(host, key, EndCause::ShepherdDied, true);
        }
        self.write_result(host, key, EndCause::FailedToStart(Failure::of_shepherd()), false);
    }

    /// The machine goes down with everything that runs on it, and comes back with what was on its
    /// disk.
    pub(super) fn host_reboots(&mut self, host: HostIndex) {
        if !self.nodes[host].is_up {
            return;
        }
        self.counts.reboots += 1;
        self.trace(|| format!("host {host} reboots"));
        let node = &mut self.nodes[host];
        node.is_up = false;
        let (life, had_agent) = (node.agent_life, node.agent.take().is_some());
        node.launcher = None;
        if had_agent {
            self.break_links_of(super::agenda::Side::Agent, life, Some(host));
        }
        let keys: Vec<TaskKey> = self.nodes[host].directories.keys().copied().collect();
        keys.into_iter().for_each(|key| self.witness.exit(key));
        if self.random.chance(250) {
            self.disk_is_lost(host);
        }
        let wait = self.random.between(5_000, 120_000);
        self.soon(wait, Happening::HostBoots { host });
    }

    /// The machine comes back with an empty disk: neither its tasks nor the master that it obeyed
    /// are known there any more.
    fn disk_is_lost(&mut self, host: HostIndex) {
        self.counts.disks_lost += 1;
        self.trace(|| format!("host {host} loses its disk"));
        let node = &mut self.nodes[host];
        node.directories.clear();
        node.epoch = Epoch::default();
        self.witness.forgets(host);
    }

    pub(super) fn host_boots(&mut self, host: HostIndex) {
        let now = self.time;
        let node = &mut self.nodes[host];
        if !std::mem::replace(&mut node.is_up, true) {
            node.boot += 1;
            node.booted = now;
            let (agent, launcher) = (self.random.between(10, 3_000), self.random.between(10, 3_000));
            self.soon(launcher, Happening::LauncherStarts { host });
            self.soon(agent, Happening::AgentStarts { host });
        }
    }
}
