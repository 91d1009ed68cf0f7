//! The Unix socket to the launcher: requests out with their descriptors, notices in. It connects
//! again when the launcher dies.
//!
//! While there is no launcher, requests are dropped: after its list the core asks again for what it
//! still wants, and a sensor is told that it was not started.

mod socket;

use crate::launcher_process::LauncherProcess;
use crate::layout::Layout;
use crate::messages::{DriverInput, LauncherRequest, SensorNotice};
use proto::launch::{Blame, FRAME_PREFIX_BYTES, Notice, Request, frame, unframe};
use socket::{descriptors, send_message};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

/// Requests that wait for the launcher; more end the connection, and the core asks again after the
/// next list.
const REQUEST_QUEUE: usize = 4096;

/// The pause before the first and between later attempts to reach the launcher. Both are short: the
/// socket is on this machine.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Bytes that one read asks for.
const READ_BYTES: usize = 64 << 10;

/// Where requests for the launcher go.
#[derive(Clone, Debug)]
pub struct LauncherQueue {
    requests: mpsc::Sender<LauncherRequest>,
    /// Woken to give up a launcher that does not read.
    reset: Arc<Notify>,
}

/// The other end of a [`LauncherQueue`].
#[derive(Debug)]
pub struct LauncherRequests {
    /// In the order in which they were made.
    pub requests: mpsc::Receiver<LauncherRequest>,
    reset: Arc<Notify>,
}

/// A queue of requests.
pub fn queue() -> (LauncherQueue, LauncherRequests) {
    let (sender, requests) = mpsc::channel(REQUEST_QUEUE);
    let reset = Arc::new(Notify::new());
    (
        LauncherQueue {
            requests: sender,
            reset: reset.clone(),
        },
        LauncherRequests { requests, reset },
    )
}

impl LauncherQueue {
    /// Adds a request, never waiting.
    pub fn push(&self, request: LauncherRequest) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.requests.try_send(request) {
            self.reset.notify_one();
        }
    }
}

/// The link and whom it talks to.
pub struct LauncherLink {
    /// The state directory.
    pub layout: Layout,
    /// What to send.
    pub queue: LauncherRequests,
    /// What concerns tasks.
    pub driver: mpsc::Sender<DriverInput>,
    /// What concerns sensors.
    pub sensors: mpsc::Sender<SensorNotice>,
}

impl LauncherLink {
    /// Works until nobody makes requests or nobody listens any more.
    pub async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connect().await {
                Ok(stream) => {
                    pause = FIRST_PAUSE;
                    let Some(end) = self.converse(&stream).await else {
                        return;
                    };
                    tracing::warn!("the launcher is gone: {end}");
                }
                Err(error) if pause == LAST_PAUSE => tracing::debug!("no launcher yet: {error}"),
                Err(error) => {
                    pause = (pause * 2).min(LAST_PAUSE);
                    if pause == LAST_PAUSE {
                        let path = self.layout.run("launcher").join("launcher.sock");
                        tracing::warn!("no launcher answers at {}: {error}; trying on", path.display());
                    }
                }
            }
            if !self.wait(pause).await {
                return;
            }
        }
    }

    async fn connect(&self) -> io::Result<UnixStream> {
        let path = self.layout.socket("launcher")?;
        UnixStream::connect(&path).await
    }

    /// Drops requests for a while; false once nobody makes any.
    async fn wait(&mut self, pause: Duration) -> bool {
        let wake = sleep(pause);
        tokio::pin!(wake);
        loop {
            let request = tokio::select! {
                () = &mut wake => return true,
                request = self.queue.requests.recv() => request,
            };
            let Some(LauncherRequest { request, attached: _ }) = request else {
                return false;
            };
            if let Request::StartSensor(spec) = request {
                let text = "the launcher is not running".to_owned();
                if self
                    .sensors
                    .send(SensorNotice::Refused { id: spec.id, text })
                    .await
                    .is_err()
                {
                    return false;
                }
            }
        }
    }

    /// One connection; none once there is nothing more to do for anybody.
    async fn converse(&mut self, stream: &UnixStream) -> Option<String> {
        let process = stream
            .peer_cred()
            .ok()
            .and_then(|peer| peer.pid())
            .and_then(LauncherProcess::find);
        self.driver.send(DriverInput::LauncherConnected(process)).await.ok()?;
        let Self {
            queue,
            driver,
            sensors,
            layout: _,
        } = self;
        let end = tokio::select! {
            end = write(stream, &mut queue.requests, driver) => end?,
            end = read(stream, driver, sensors) => end?,
            () = queue.reset.notified() => format!("it does not take {REQUEST_QUEUE} requests"),
        };
        self.sensors.send(SensorNotice::Lost).await.ok()?;
        self.driver.send(DriverInput::LauncherLost).await.ok()?;
        Some(end)
    }
}

async fn write(
    stream: &UnixStream,
    requests: &mut mpsc::Receiver<LauncherRequest>,
    driver: &mpsc::Sender<DriverInput>,
) -> Option<String> {
    loop {
        let LauncherRequest { request, attached } = requests.recv().await?;
        let descriptors = match descriptors(attached) {
            Ok(descriptors) => descriptors,
            Err(error) => {
                driver
                    .send(DriverInput::Launcher(Box::new(not_passed_on(&request, &error))))
                    .await
                    .ok()?;
                continue;
            }
        };
        if let Err(error) = send_message(stream, &frame(&request), &descriptors).await {
            return Some(error.to_string());
        }
    }
}

/// The answer to a request whose script found no memory file: the launcher never hears of it.
fn not_passed_on(request: &Request, error: &io::Error) -> Notice {
    let key = if let Request::Launch(document) = request {
        Some(document.key)
    } else {
        None
    };
    let text = format!("the agent cannot pass the script on: {error}");
    Notice::Refused {
        key,
        sensor: None,
        text,
        blame: Blame::Host,
    }
}

async fn read(
    stream: &UnixStream,
    driver: &mpsc::Sender<DriverInput>,
    sensors: &mpsc::Sender<SensorNotice>,
) -> Option<String> {
    let mut buffer = Vec::with_capacity(FRAME_PREFIX_BYTES);
    let mut told = Vec::new();
    loop {
        match unframe::<Notice>(&buffer) {
            Ok(Some((notice, taken))) => {
                buffer.drain(..taken);
                tell_limits(&notice, &mut told);
                deliver(notice, driver, sensors).await?;
            }
            Ok(None) => match fill(stream, &mut buffer).await {
                Ok(0) => return Some("it closed the connection".to_owned()),
                Ok(_) => {}
                Err(error) => return Some(error.to_string()),
            },
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// Logs what this host enforces, once per launcher.
fn tell_limits(notice: &Notice, told: &mut Vec<String>) {
    let Notice::Tasks { enforces, .. } = notice else { return };
    if enforces != told {
        enforces.iter().for_each(|line| tracing::info!("{line}"));
        told.clone_from(enforces);
    }
}

async fn fill(stream: &UnixStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        buffer.reserve(READ_BYTES);
        match stream.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

async fn deliver(
    notice: Notice,
    driver: &mpsc::Sender<DriverInput>,
    sensors: &mpsc::Sender<SensorNotice>,
) -> Option<()> {
    let for_sensor = match notice {
        Notice::SensorStarted { id, pid } => SensorNotice::Started { id, pid },
        Notice::SensorEnded { id, pid, status } => SensorNotice::Ended { id, pid, status },
        Notice::Refused {
            sensor: Some(id),
            key: _,
            text,
            blame: _,
        } => SensorNotice::Refused { id, text },
        notice @ (Notice::Accepted { .. }
        | Notice::Refused { sensor: None, .. }
        | Notice::Executed { .. }
        | Notice::Idle { .. }
        | Notice::Usage { .. }
        | Notice::Ended(_)
        | Notice::Tasks { .. }
        | Notice::Health { .. }
        | Notice::Forgotten { .. }) => return driver.send(DriverInput::Launcher(Box::new(notice))).await.ok(),
    };
    sensors.send(for_sensor).await.ok()
}
