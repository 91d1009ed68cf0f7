//! What travels on the launcher's Unix stream socket, and on the socket of each shepherd.
//!
//! A message is a 4-byte little-endian length and a document. Descriptors ride with the first byte
//! of their message (`SCM_RIGHTS`): the script of [`Request::Launch`], then standard input, output
//! and error of [`Request::StartSensor`].

use super::document::LaunchDocument;
use super::pairs::{
    DecodeError, FIRST_VERSION, MAX_DOCUMENT_BYTES, PairReader, Record, Slot, Writer, put_kind, read_kind, record,
    words,
};
use super::result::{LaunchResult, TaskUsage};
use crate::id::TaskKey;
use crate::usage::Blame;

/// The bytes of the length in front of each message.
pub const FRAME_PREFIX_BYTES: usize = 4;

/// A message ready to be written.
pub fn frame<R: Record>(message: &R) -> Vec<u8> {
    let body = message.encode();
    let mut out = Vec::with_capacity(FRAME_PREFIX_BYTES + body.len());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    out
}

/// The first message of a buffer and how many bytes it took; `None` while it is not complete.
///
/// # Errors
/// A length over [`MAX_DOCUMENT_BYTES`] or a body that does not decode: the connection is of no
/// more use.
pub fn unframe<R: Record>(buffer: &[u8]) -> Result<Option<(R, usize)>, DecodeError> {
    let Some((length, rest)) = buffer.split_first_chunk::<FRAME_PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_DOCUMENT_BYTES {
        return Err(DecodeError::TooLarge);
    }
    match rest.get(..length) {
        Some(body) => Ok(Some((R::decode(body)?, FRAME_PREFIX_BYTES + length))),
        None => Ok(None),
    }
}

/// What the agent asks of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Run a task. One descriptor, the script, if the start is a script. Answered by `Accepted` or
    /// `Refused`, later by `Executed` and `Ended`. A task that exists already is answered with what
    /// became of it.
    Launch(Box<LaunchDocument>),
    /// Act on a task. Not answered if the task runs; `Refused` if it does not exist.
    Signal {
        /// The task.
        key: TaskKey,
        /// What to do.
        order: TaskOrder,
    },
    /// Give the processes of a running task another share of the host. Sent only to a launcher
    /// whose `Tasks` offered it; not answered.
    Reprioritize {
        /// The task.
        key: TaskKey,
        /// The nice value; none is that of its document.
        nice: Option<i32>,
        /// The weight of its control group, where it has one: 1 to 10000, none is the usual 100.
        cpu_weight: Option<u32>,
    },
    /// Name every task directory. Answered by `Tasks`.
    List,
    /// Find out whether a task could be started now. Sent only to a launcher whose `Tasks` offered
    /// it. Answered by `Health`.
    Examine,
    /// Remove the directory of a task that has ended. Answered by `Forgotten`, also if there is
    /// none.
    Forget {
        /// The task.
        key: TaskKey,
    },
    /// Start a load sensor. Three descriptors: its standard input, output and error. Answered by
    /// `SensorStarted` or `Refused`, later by `SensorEnded`.
    StartSensor(SensorSpec),
    /// Send a signal to the process group of a sensor.
    StopSensor {
        /// The pid from `SensorStarted`.
        pid: i32,
        /// The signal, SIGTERM or SIGKILL as a rule.
        signal: i32,
    },
}

/// A load sensor to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorSpec {
    /// Chosen by the agent; comes back in the answers.
    pub id: u64,
    /// The absolute path of the program.
    pub path: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// As whom it runs; ignored where everything runs as one user.
    pub user: String,
    /// Its whole environment as `NAME=value`.
    pub environment: Vec<String>,
}
record!(SensorSpec {
    id,
    path,
    args,
    user,
    environment
});

/// What is done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrder {
    /// The termination sequence: announcement if the job wants one, then the terminate method.
    Terminate,
    /// SIGKILL to all processes at once.
    Kill,
    /// Announcement if the job wants one, then the suspend method.
    Suspend,
    /// The resume method; takes back a suspension that was announced.
    Resume,
    /// Writes the state of a checkpointing job and ends it, so that it can go on elsewhere.
    Migrate,
    /// SIGUSR1 to all processes.
    User1,
    /// SIGUSR2 to all processes.
    User2,
}
impl TaskOrder {
    /// The order that counts where this one came behind an earlier one that has not been carried
    /// out: the later, except that nothing takes back an end, and only an end the writing of a
    /// state that leads to one.
    pub fn behind(self, earlier: Option<TaskOrder>) -> TaskOrder {
        let weight = |order| match order {
            TaskOrder::Suspend | TaskOrder::Resume | TaskOrder::User1 | TaskOrder::User2 => 0,
            TaskOrder::Migrate => 1,
            TaskOrder::Terminate => 2,
            TaskOrder::Kill => 3,
        };
        earlier
            .filter(|earlier| weight(*earlier) > weight(self))
            .unwrap_or(self)
    }
}
words!(TaskOrder {
    Terminate = "terminate",
    Kill = "kill",
    Suspend = "suspend",
    Resume = "resume",
    Migrate = "migrate",
    User1 = "usr1",
    User2 = "usr2",
});

words!(Blame { Job = "job", Host = "host", Queue = "queue" });

/// What the launcher tells the agent; the shepherds use the same words to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The task's directory exists and its shepherd was started.
    Accepted {
        /// The task.
        key: TaskKey,
    },
    /// A request was refused. Nothing was started.
    Refused {
        /// The task, if the request named one.
        key: Option<TaskKey>,
        /// The sensor, if the request named one.
        sensor: Option<u64>,
        /// What, where, why and how to fix it.
        text: String,
        /// The party at fault. An older launcher does not send it; then the job is.
        blame: Blame,
    },
    /// The job's execve happened.
    Executed {
        /// The task.
        key: TaskKey,
        /// The main process.
        pid: i32,
        /// `CLOCK_BOOTTIME` in milliseconds at execve.
        boot_ms: u64,
    },
    /// A sample.
    Usage {
        /// The task.
        key: TaskKey,
        /// Used so far.
        usage: TaskUsage,
    },
    /// The task ended and its result is in its directory. Repeated on reconnection through `List`.
    Ended(Box<LaunchResult>),
    /// The shepherd of a task that ended can take another one. Said by a shepherd to its launcher
    /// alone.
    Idle {
        /// The task that ended.
        key: TaskKey,
    },
    /// Every task directory of this host.
    Tasks {
        /// One entry each.
        tasks: Vec<TaskSummary>,
        /// Whether the launcher knows [`Request::Reprioritize`]: an older one does not say so.
        reprioritizes: bool,
        /// Whether the launcher knows [`Request::Examine`]: an older one does not say so.
        examines: bool,
        /// What this host enforces and how, a line each; empty from an older launcher.
        enforces: Vec<String>,
    },
    /// Whether tasks can be started.
    Health {
        /// The reason why no task can start. `None` means that tasks can start.
        trouble: Option<String>,
        /// The lines of `etc/root-commands`. `None` where the host has no such list, or a very long
        /// one.
        root_commands: Option<Vec<String>>,
    },
    /// The task's directory is gone.
    Forgotten {
        /// The task.
        key: TaskKey,
    },
    /// A sensor runs.
    SensorStarted {
        /// The sensor.
        id: u64,
        /// Its pid, also its process group.
        pid: i32,
    },
    /// A sensor ended.
    SensorEnded {
        /// The sensor.
        id: u64,
        /// Its pid.
        pid: i32,
        /// Its exit code, or 128 + signal.
        status: i32,
    },
}

/// One task directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSummary {
    /// The task.
    pub key: TaskKey,
    /// How far it is.
    pub state: TaskState,
    /// The main process; 0 before execve.
    pub pid: i32,
    /// `CLOCK_BOOTTIME` in milliseconds at execve; 0 before it.
    pub started_boot_ms: u64,
    /// The result of a task that ended.
    pub result: Option<LaunchResult>,
}
record!(TaskSummary {
    key,
    state,
    pid,
    started_boot_ms,
    result
});

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Its shepherd prepares it; execve has not happened.
    Preparing,
    /// It runs.
    Running,
    /// Its result is there.
    Ended,
}
words!(TaskState { Preparing = "preparing", Running = "running", Ended = "ended" });

impl Record for Request {
    fn version(&self) -> u8 {
        match self {
            Request::Launch(document) => document.version(),
            Request::Signal { .. }
            | Request::Reprioritize { .. }
            | Request::List
            | Request::Examine
            | Request::Forget { .. }
            | Request::StartSensor(_)
            | Request::StopSensor { .. } => FIRST_VERSION,
        }
    }

    fn write_pairs(&self, writer: &mut Writer) {
        match self {
            Request::Launch(document) => {
                put_kind(writer, "launch");
                writer.put("document", &**document);
            }
            Request::Signal { key, order } => {
                put_kind(writer, "signal");
                key.write("key", writer);
                order.write("order", writer);
            }
            Request::Reprioritize { key, nice, cpu_weight } => {
                put_kind(writer, "reprioritize");
                key.write("key", writer);
                nice.write("nice", writer);
                cpu_weight.write("cpu_weight", writer);
            }
            Request::List => put_kind(writer, "list"),
            Request::Examine => put_kind(writer, "examine"),
            Request::Forget { key } => {
                put_kind(writer, "forget");
                key.write("key", writer);
            }
            Request::StartSensor(spec) => {
                put_kind(writer, "start-sensor");
                spec.write("sensor", writer);
            }
            Request::StopSensor { pid, signal } => {
                put_kind(writer, "stop-sensor");
                pid.write("pid", writer);
                signal.write("signal", writer);
            }
        }
    }

    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match read_kind(reader)?.as_str() {
            "launch" => Slot::read("document", reader).map(|document| Request::Launch(Box::new(document))),
            "signal" => Ok(Request::Signal {
                key: Slot::read("key", reader)?,
                order: Slot::read("order", reader)?,
            }),
            "reprioritize" => Ok(Request::Reprioritize {
                key: Slot::read("key", reader)?,
                nice: Slot::read("nice", reader)?,
                cpu_weight: Slot::read("cpu_weight", reader)?,
            }),
            "list" => Ok(Request::List),
            "examine" => Ok(Request::Examine),
            "forget" => Ok(Request::Forget {
                key: Slot::read("key", reader)?,
            }),
            "start-sensor" => Slot::read("sensor", reader).map(Request::StartSensor),
            "stop-sensor" => Ok(Request::StopSensor {
                pid: Slot::read("pid", reader)?,
                signal: Slot::read("signal", reader)?,
            }),
            _ => Err(DecodeError::BadValue("kind")),
        }
    }
}

impl Record for Notice {
    fn write_pairs(&self, writer: &mut Writer) {
        match self {
            Notice::Accepted { key } => put_keyed(writer, "accepted", key),
            Notice::Idle { key } => put_keyed(writer, "idle", key),
            Notice::Refused {
                key,
                sensor,
                text,
                blame,
            } => {
                put_kind(writer, "refused");
                key.write("key", writer);
                sensor.write("sensor", writer);
                text.write("text", writer);
                // An older agent does not know the queue's fault, and its host does no harm to
                // other users' jobs either.
                (*blame != Blame::Job).then_some(Blame::Host).write("blame", writer);
                (*blame == Blame::Queue).then_some(true).write("of_queue", writer);
            }
            Notice::Executed { key, pid, boot_ms } => {
                put_keyed(writer, "executed", key);
                pid.write("pid", writer);
                boot_ms.write("boot_ms", writer);
            }
            Notice::Usage { key, usage } => {
                put_keyed(writer, "usage", key);
                usage.write("usage", writer);
            }
            Notice::Ended(result) => {
                put_kind(writer, "ended");
                writer.put("result", &**result);
            }
            Notice::Tasks {
                tasks,
                reprioritizes,
                examines,
                enforces,
            } => {
                put_kind(writer, "tasks");
                tasks.write("task", writer);
                reprioritizes.then_some(true).write("reprioritizes", writer);
                examines.then_some(true).write("examines", writer);
                enforces.write("enforces", writer);
            }
            Notice::Health { trouble, root_commands } => {
                put_kind(writer, "health");
                trouble.write("trouble", writer);
                if let Some(lines) = root_commands {
                    true.write("lists", writer);
                    lines.write("root_command", writer);
                }
            }
            Notice::Forgotten { key } => put_keyed(writer, "forgotten", key),
            Notice::SensorStarted { id, pid } => {
                put_kind(writer, "sensor-started");
                id.write("id", writer);
                pid.write("pid", writer);
            }
            Notice::SensorEnded { id, pid, status } => {
                put_kind(writer, "sensor-ended");
                id.write("id", writer);
                pid.write("pid", writer);
                status.write("status", writer);
            }
        }
    }

    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match read_kind(reader)?.as_str() {
            "accepted" => Ok(Notice::Accepted {
                key: Slot::read("key", reader)?,
            }),
            "idle" => Ok(Notice::Idle {
                key: Slot::read("key", reader)?,
            }),
            "refused" => Ok(Notice::Refused {
                key: Slot::read("key", reader)?,
                sensor: Slot::read("sensor", reader)?,
                text: Slot::read("text", reader)?,
                blame: read_blame(reader)?,
            }),
            "executed" => Ok(Notice::Executed {
                key: Slot::read("key", reader)?,
                pid: Slot::read("pid", reader)?,
                boot_ms: Slot::read("boot_ms", reader)?,
            }),
            "usage" => Ok(Notice::Usage {
                key: Slot::read("key", reader)?,
                usage: Slot::read("usage", reader)?,
            }),
            "ended" => Slot::read("result", reader).map(|result| Notice::Ended(Box::new(result))),
            "tasks" => Ok(Notice::Tasks {
                tasks: Slot::read("task", reader)?,
                reprioritizes: Option::<bool>::read("reprioritizes", reader)?.unwrap_or(false),
                examines: Option::<bool>::read("examines", reader)?.unwrap_or(false),
                enforces: Slot::read("enforces", reader)?,
            }),
            "health" => {
                let trouble = Slot::read("trouble", reader)?;
                let lists = Option::<bool>::read("lists", reader)?.unwrap_or(false);
                let lines = Vec::read("root_command", reader)?;
                Ok(Notice::Health {
                    trouble,
                    root_commands: lists.then_some(lines),
                })
            }
            "forgotten" => Ok(Notice::Forgotten {
                key: Slot::read("key", reader)?,
            }),
            "sensor-started" => Ok(Notice::SensorStarted {
                id: Slot::read("id", reader)?,
                pid: Slot::read("pid", reader)?,
            }),
            "sensor-ended" => Ok(Notice::SensorEnded {
                id: Slot::read("id", reader)?,
                pid: Slot::read("pid", reader)?,
                status: Slot::read("status", reader)?,
            }),
            _ => Err(DecodeError::BadValue("kind")),
        }
    }
}

fn read_blame(reader: &mut PairReader<'_>) -> Result<Blame, DecodeError> {
    let blame = Option::<Blame>::read("blame", reader)?.unwrap_or_default();
    let is_queues = Option::<bool>::read("of_queue", reader)?.unwrap_or(false);
    Ok(if is_queues { Blame::Queue } else { blame })
}

fn put_keyed(writer: &mut Writer, kind: &str, key: &TaskKey) {
    put_kind(writer, kind);
    key.write("key", writer);
}
