//! Messages between the tasks of the agent: inputs of the driver, requests for the launcher, and
//! notices for the sensors.
//!
//! They stand here, and not beside their receivers, so that tasks that send to each other do not
//! import each other.

use crate::launcher_process::LauncherProcess;
use agent_core::core::MainProcess;
use proto::id::TaskKey;
use proto::launch::{Notice, Request};
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage, MasterWelcome};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// An input of the driver.
#[derive(Debug)]
pub enum DriverInput {
    /// A connection to the master is open. The reply has the hello, and the messages that follow.
    Open(oneshot::Sender<ConnectionStart>),
    /// The master answered the hello.
    Welcome(Box<MasterWelcome>),
    /// A message of the master.
    Master(Box<MasterMessage>),
    /// The connection to the master ended.
    MasterLost,
    /// A launcher is connected: this process, where that is known.
    LauncherConnected(Option<LauncherProcess>),
    /// The launcher is gone.
    LauncherLost,
    /// A notice of the launcher about tasks.
    Launcher(Box<Notice>),
    /// A message for the master that may be lost.
    Soft(Box<AgentMessage>),
    /// A timer of the core is due.
    Tick,
    /// A question for the main process of a task that runs here.
    MainProcess(TaskKey, oneshot::Sender<MainProcess>),
    /// The administrator of the host ends its tasks.
    EndTasks,
}

/// The beginning of a new connection. Messages that are made after the hello are in the outbox.
#[derive(Debug)]
pub struct ConnectionStart {
    /// The hello.
    pub hello: AgentHello,
    /// The messages to send after the welcome. Its end means: disconnect.
    pub outbox: mpsc::Receiver<AgentMessage>,
}

/// A request with the descriptors that belong to it.
#[derive(Debug)]
pub struct LauncherRequest {
    /// The request.
    pub request: Request,
    /// The descriptors, or a script that becomes one.
    pub attached: Attachment,
}

/// The descriptors that belong to a request.
#[derive(Debug)]
pub enum Attachment {
    /// Nothing.
    Nothing,
    /// The script of a job, which is passed as a sealed memory file.
    Script(Arc<[u8]>),
    /// Standard input, output and error of a sensor or a task.
    Streams([OwnedFd; 3]),
    /// Those of an interactive job, and its script.
    Session([OwnedFd; 3], Arc<[u8]>),
}

/// A notice of the launcher about sensors.
#[derive(Debug)]
pub enum SensorNotice {
    /// A sensor runs.
    Started {
        /// The sensor.
        id: u64,
        /// Its process.
        pid: i32,
    },
    /// A sensor's process ended.
    Ended {
        /// The sensor.
        id: u64,
        /// Its process.
        pid: i32,
        /// Its exit code, or 128 + signal.
        status: i32,
    },
    /// A sensor was not started.
    Refused {
        /// The sensor.
        id: u64,
        /// The reason.
        text: String,
    },
    /// The launcher is gone, and its sensors with it.
    Lost,
}
