//! The control stream between an agent and the master.
//!
//! The agent opens one bidirectional stream and sends [`AgentHello`]; the master answers
//! [`MasterWelcome`]; then [`AgentMessage`] and [`MasterMessage`] flow in
//! [`Kind::Control`](super::frame::Kind::Control) frames. Load reports travel in
//! [`Kind::Load`](super::frame::Kind::Load) frames on a unidirectional stream each. Commands of
//! users on the agent's host travel on bidirectional streams of their own, opened by the agent with
//! a [`Vouch`].

use crate::amount::Type;
use crate::binding::HostBinding;
use crate::cell_version::CellVersion;
use crate::common::Common;
use crate::container::Container;
use crate::device::DeviceOrder;
use crate::diagnostic::Diagnostic;
use crate::id::{AttributeName, CellId, Epoch, HostName, JobNumber, PeName, QueueInstanceName, SubmitSeq, TaskKey};
use crate::job::{GrantedSlots, JobSpec, Owner};
use crate::limit::{LimitSet, VmemMeaning};
use crate::load::SensorStatus;
use crate::request::TaskRange;
use crate::rsmap::GrantedIds;
use crate::usage::{TaskResult, Usage};
use crate::wire::slave::SlaveSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of these messages. A peer one release apart is understood.
pub const PROTOCOL_VERSION: u32 = 1;

/// First from the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// [`PROTOCOL_VERSION`] of the agent.
    pub version: u32,
    /// Its software version, for people.
    pub software: String,
    /// The host. It must equal the name in the certificate.
    pub host: HostName,
    /// Identifies the agent of one directory in one boot of its machine, over its own restarts too,
    /// so that the master tells a reconnect from a second agent under one name.
    pub instance: u128,
    /// The highest epoch of a master it has obeyed.
    pub epoch: Epoch,
    /// Every task it knows, running or ended and not yet forgotten.
    pub tasks: Vec<TaskReport>,
    /// The host's wall clock in milliseconds since the epoch, for a warning about skew only.
    #[serde(default)]
    pub wall_ms: i64,
    /// Whether it takes [`MasterMessage::Tickets`].
    #[serde(default)]
    pub takes_tickets: bool,
    /// Whether it binds tasks to the cores of [`StartOrder::binding`].
    #[serde(default)]
    pub binds_cores: bool,
    /// When it wrote this, in milliseconds since the boot of its machine, so that one which comes
    /// late does not count after a later one of the same instance; 0 of an agent that does not say.
    #[serde(default)]
    pub boot_ms: u64,
    /// The marks that the host's launchers left beside the journal of its tasks, newest first;
    /// empty from an agent that does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<TasksMark>,
    /// The newest version of a cell that it knows. An older agent does not say: the first.
    #[serde(default)]
    pub cell_version: CellVersion,
}

/// A random word that each launcher leaves beside the journal of tasks when it starts. A directory
/// whose marks lack the one that was shown last is another one, or an older state of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TasksMark(pub String);

/// First from the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterWelcome {
    /// [`PROTOCOL_VERSION`] of the master.
    pub version: u32,
    /// Its software version.
    pub software: String,
    /// The cell.
    pub cell: CellId,
    /// The master's epoch; an agent that has obeyed a higher one disconnects.
    pub epoch: Epoch,
    /// How the agent is to behave.
    pub config: AgentConfig,
    /// The master's wall clock in milliseconds since the epoch.
    #[serde(default)]
    pub wall_ms: i64,
}

/// The part of the cluster and host configuration that an agent needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    /// `load_report_time` in milliseconds.
    pub report_interval_ms: u64,
    /// `load_sensor`, entry by entry; none is empty.
    pub load_sensors: Vec<String>,
    /// `MEM_FREE=classic` of `execd_params`.
    pub mem_free_classic: bool,
    /// `KEEP_ACTIVE=true` of `execd_params`: directories of ended tasks stay.
    pub keep_active: bool,
    /// The environment of every job beside its own.
    pub job_environment: Vec<(String, String)>,
    /// Interval of usage reports of running tasks in milliseconds; 0 is none.
    pub usage_interval_ms: u64,
    /// `PDC_INTERVAL` of `execd_params` in milliseconds: how often a task is sampled; 0 is never,
    /// and then no limit of the whole task is enforced but those of the clock. An older master does
    /// not tell it: each second.
    pub sample_interval_ms: Option<u32>,
    /// `NOTIFY_KILL` of `execd_params`: the signal that announces SIGKILL, 0 for none; SIGUSR2
    /// where it is not told.
    pub notify_kill_signal: Option<i32>,
    /// `NOTIFY_SUSP` of `execd_params`: the signal that announces SIGSTOP, 0 for none; SIGUSR1
    /// where it is not told.
    pub notify_suspend_signal: Option<i32>,
    /// `SCRIPT_TIMEOUT` of `execd_params`. An older master does not say: 120.
    pub script_timeout_s: Option<u32>,
    /// `METHOD_TIMEOUT` of `execd_params`. `None` means no timeout.
    pub method_timeout_s: Option<u32>,
    /// `SET_LIB_PATH` of `execd_params`: the library path of jobs begins with the cell's
    /// `lib/ARCH`.
    pub set_lib_path: bool,
    /// `INHERIT_ENV` of `execd_params`: jobs get the environment that the agent was started with.
    pub inherit_env: bool,
    /// `USE_QIDLE` of `execd_params`: a program `qidle` in the directory of binaries is a load
    /// sensor.
    pub use_qidle: bool,
    /// `USE_CGROUPS` of `execd_params`: whether each task gets a control group of its own where the
    /// host has a place for them; as the host's own file says where it is not told.
    pub use_cgroups: Option<bool>,
    /// `H_VMEM` of `execd_params`: what `h_vmem` and `s_vmem` limit. An older master does not say:
    /// address space.
    pub vmem: VmemMeaning,
    /// The nice values among which running tasks are placed by their tickets (`reprioritize`); none
    /// leaves them to the queue.
    pub reprioritize: Option<NiceRange>,
    /// The types of the attributes of the complex, by which values of load sensors are judged;
    /// empty from a master that does not tell them, and then no value is.
    pub attribute_types: Arc<BTreeMap<AttributeName, Type>>,
}

/// A range of nice values: `PTF_MAX_PRIORITY` and `PTF_MIN_PRIORITY` of `execd_params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NiceRange {
    /// The value of a task that is far behind its share; usually 0.
    pub most_urgent: i32,
    /// The value of a task that is far ahead of it; usually 20.
    pub least_urgent: i32,
}

/// From the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMessage {
    /// News of a task. `Ended` and `Refused` repeat after every reconnect until the master says
    /// forget.
    Task(TaskReport),
    /// Use of running tasks so far. Soft: may be lost, the next one replaces it.
    Usage(Vec<(TaskKey, Usage)>),
    /// Health of the load sensors. Soft.
    Sensors(Vec<SensorStatus>),
    /// A refusal of something the master sent that names no task.
    Refused(Diagnostic),
    /// Whether the host can start tasks, told when that changes. After a welcome it can until this
    /// says otherwise.
    Health {
        /// The reason why the host cannot start tasks. `None` means that it can.
        unfit: Option<String>,
        /// The lines of `etc/root-commands` of the host, in every message. `None` if the host does
        /// not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root_commands: Option<Vec<String>>,
    },
}

/// Where a task is, as its host sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// The attempt.
    pub key: TaskKey,
    /// Where it is.
    pub state: TaskReportState,
}

/// The stages of a task on its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskReportState {
    /// The order is in hand; the job process does not run yet.
    Accepted,
    /// The exec record is durable on the host and the job process runs.
    Running {
        /// How long it has run when this message was made, in milliseconds.
        for_ms: u64,
    },
    /// It is over, whatever happened. One that ran may never have been said to run.
    Ended(Box<TaskResult>),
    /// The host has never seen this attempt, or has forgotten it on the master's word. Answers
    /// [`MasterMessage::Signal`].
    Unknown,
}

impl TaskReportState {
    /// Whether it says that a task begins; an end that follows says as much.
    pub fn is_start(&self) -> bool {
        match self {
            Self::Accepted | Self::Running { .. } => true,
            Self::Ended(_) | Self::Unknown => false,
        }
    }
}

/// From the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MasterMessage {
    /// A job that starts will follow for. The agent keeps it until [`MasterMessage::Discard`] or
    /// the connection ends.
    Describe {
        /// The job.
        job: SubmitSeq,
        /// Its specification, script included.
        spec: Arc<JobSpec>,
    },
    /// No further starts of this job will come on this connection unless described again.
    Discard {
        /// The job.
        job: SubmitSeq,
    },
    /// Start a task of a described job. Answered by a [`TaskReport`]; a repeat gets the present
    /// state.
    Start(Box<StartOrder>),
    /// Do something to a running task. A repeat does no harm.
    Signal {
        /// The attempt.
        key: TaskKey,
        /// What to do.
        signal: TaskSignal,
    },
    /// The end of this attempt is durable at the master: forget it and remove its directory.
    Forget {
        /// The attempt.
        key: TaskKey,
    },
    /// The tickets of all tasks that run on this host, in millionths, each with its slave tasks
    /// there. Sent only to an agent whose hello says that it takes them. Soft: the next one
    /// replaces it.
    Tickets(Vec<(TaskKey, i64)>),
    /// The configuration changed.
    Configure(AgentConfig),
    /// Send a full load report now.
    ReportNow,
    /// End the agent; running jobs stay unless `kill_jobs`.
    Shutdown {
        /// Whether to terminate the jobs first (`qconf -kej`).
        kill_jobs: bool,
    },
    /// A refusal of something the agent sent.
    Refused(Diagnostic),
}

/// What can be done to a running task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSignal {
    /// End it: terminate method or SIGKILL, after SIGUSR2 and the notify time where asked for.
    Terminate,
    /// Stop it: suspend method or SIGSTOP, after SIGUSR1 and the notify time where asked for.
    Suspend,
    /// Continue it: resume method or SIGCONT.
    Resume,
    /// Write the state of a checkpointing job and end it: it goes on elsewhere.
    Migrate,
}

/// One start. Everything the host needs beside the job's specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartOrder {
    /// The attempt.
    pub key: TaskKey,
    /// The job number that people see.
    pub number: JobNumber,
    /// The range of an array; none for a job that is no array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<TaskRange>,
    /// All granted queue instances of the task; the first holds the master slot.
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe: Option<PeName>,
    /// `control_slaves` of the parallel environment: the job starts tasks on its other hosts by
    /// `qrsh -inherit`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_slaves: bool,
    /// `start_proc_args` of the parallel environment, with its pseudo variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe_start: Option<String>,
    /// `stop_proc_args` of the parallel environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe_stop: Option<String>,
    /// The effective limits of the task on this host, scaled by its slots here.
    pub limits: LimitSet,
    /// What the granted queue says about running jobs.
    pub queue: Common<QueueExecution>,
    /// `RESTARTED`: 0 first run, 1 rescheduled, 2 restarted from a checkpoint.
    pub restarted: u8,
    /// The ids that the task has of resource maps, on all of its hosts and of the cluster
    /// (`SGE_HGR_name`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<GrantedIds>,
    /// The cores that the task has on each host, if it asked for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binding: Vec<HostBinding>,
    /// The devices of the host that the task may open and those that it may not. `None` where no
    /// map of the host names devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Box<DeviceOrder>>,
    /// The container that the job runs in, if it asks for one. Slave tasks run outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<Container>>,
    /// How the state of a checkpointing job is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointOrder>,
    /// What a slave task of a parallel job is; none for the job itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slave: Option<SlaveOrder>,
}

/// A slave task of a parallel job. Limits and queue settings of its [`StartOrder`] are those of its
/// own host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlaveOrder {
    /// The queue instance of its host.
    pub instance: QueueInstanceName,
    /// What `qrsh -inherit` asked for.
    pub spec: Arc<SlaveSpec>,
}

/// The checkpointing environment of a job, as far as its host needs it (checkpoint(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointOrder {
    /// Its name (`SGE_CKPT_ENV`).
    pub name: String,
    /// `ckpt_dir` (`SGE_CKPT_DIR`).
    pub directory: String,
    /// `ckpt_command` of an interface that saves by commands, with its pseudo variables.
    pub save: Option<String>,
    /// `migr_command` of such an interface; without one the job is killed when it is to migrate.
    pub migrate: Option<String>,
    /// `restart_command`, if this attempt goes on from a state that a command wrote.
    pub restart: Option<String>,
    /// `clean_command` of an interface that saves by commands.
    pub clean: Option<String>,
    /// `signal`, as it was written.
    pub signal: String,
    /// The number of the signal by which the job of another interface is told to write its state.
    pub save_signal: Option<i32>,
    /// Seconds between two checkpoints, if there are any by the clock.
    pub interval_s: Option<u64>,
    /// The main process of the attempt whose state was written (`$job_pid` of `restart_command`).
    pub saved_pid: Option<i32>,
}

/// The settings of a queue instance that matter while a job runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueExecution {
    /// `tmpdir`.
    pub tmpdir: String,
    /// `shell`.
    pub shell: String,
    /// `shell_start_mode`: `unix_behavior`, `posix_compliant`, `script_from_stdin`.
    pub shell_start_mode: String,
    /// `login_shells` of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub login_shells: Vec<String>,
    /// `prolog`, with its pseudo variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prolog: Option<String>,
    /// `epilog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epilog: Option<String>,
    /// `starter_method`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starter_method: Option<String>,
    /// `suspend_method`: a signal name or a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_method: Option<String>,
    /// `resume_method`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_method: Option<String>,
    /// `terminate_method`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_method: Option<String>,
    /// `notify` in seconds.
    pub notify_s: u32,
    /// `priority`: the nice value.
    pub nice: i32,
    /// `min_uid` of the cluster: a job of a lower user id is refused by the host too.
    pub min_uid: u32,
    /// `min_gid` of the cluster.
    pub min_gid: u32,
}

/// First on a stream that carries a user's commands: the agent's word for who is at the other end
/// of its Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vouch {
    /// The user, as the kernel and the name service of the agent's host say.
    pub owner: Owner,
    /// The task of this host that the command is a process of, where it said that it is one and the
    /// kernel agrees.
    #[serde(default)]
    pub task: Option<TaskKey>,
}
