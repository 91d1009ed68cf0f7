//! One sensor from its start to its end: performs what the machine says, tells it what happens.

use super::process::{Output, Process};
use super::{Answer, SampledBlock, SensorInput, SensorSite, file, seconds, seconds_until};
use crate::clock;
use crate::launcher_link::LauncherQueue;
use crate::messages::{Attachment, LauncherRequest, SensorNotice};
use ::sensors::config::SensorSpec;
use ::sensors::protocol::{Action, Exit, Machine, Settings, Signal};
use ::sensors::safety::{FileChange, FileStamp, Uid, file_change};
use nix::unistd::User;
use proto::launch;
use proto::load::{SensorStatus, ValueFaults};
use proto::time::Tick;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How long the name service may take to say who the sensor's user is.
const NAME_SERVICE_PATIENCE: Duration = Duration::from_secs(2);

/// The exit code that stands for a signal in the launcher's words: 128 + signal.
const SIGNAL_BASE: i32 = 128;

/// One sensor.
pub(super) struct SensorTask {
    id: u64,
    spec: SensorSpec,
    user: String,
    environment: Vec<String>,
    machine: Machine,
    launcher: LauncherQueue,
    process: Option<Process>,
    /// The file as it was when the process was started.
    started_from: Option<FileStamp>,
    /// A report that waits for an answer.
    reply: Option<oneshot::Sender<Answer>>,
    /// Whether the last start was refused rather than failed.
    is_refused: bool,
}

impl SensorTask {
    pub(super) fn new(
        id: u64,
        spec: SensorSpec,
        user: String,
        settings: Settings,
        site: &SensorSite,
        launcher: LauncherQueue,
    ) -> Self {
        Self {
            id,
            spec,
            user,
            environment: site.environment.clone(),
            machine: Machine::new(settings, site.names.clone(), clock::tick()),
            launcher,
            process: None,
            started_from: None,
            reply: None,
            is_refused: false,
        }
    }

    /// Runs until the sensor was stopped and its process is gone, or nobody knows of it any more.
    pub(super) async fn run(mut self, mut inputs: mpsc::Receiver<SensorInput>) {
        loop {
            let actions = self.machine.tick(clock::tick());
            if self.perform(actions).await.is_break() {
                return;
            }
            self.answer_if_ready();
            let next = self.next_timer();
            let flow = tokio::select! {
                input = inputs.recv() => match input {
                    Some(input) => self.take(input).await,
                    None => ControlFlow::Break(()),
                },
                output = output(&mut self.process, &self.machine) => self.take_output(output).await,
                () = until(next) => ControlFlow::Continue(()),
            };
            if flow.is_break() {
                return;
            }
        }
    }

    /// The next moment at which something is due by itself.
    fn next_timer(&self) -> Option<Tick> {
        let now = clock::tick();
        let for_report = self.reply.as_ref().and_then(|_| self.machine.wait_until(now));
        [self.machine.next_timer(), for_report, self.machine.pause_until(now)]
            .into_iter()
            .flatten()
            .min()
    }

    async fn take(&mut self, input: SensorInput) -> ControlFlow<()> {
        let now = clock::tick();
        let actions = match input {
            SensorInput::Ask(reply) => return self.ask(reply).await,
            SensorInput::Stop => self.machine.stop(now),
            SensorInput::Kill => {
                self.signal(Signal::Kill);
                Vec::new()
            }
            SensorInput::Notice(SensorNotice::Started { pid, .. }) => match &mut self.process {
                Some(process) => {
                    process.pid = Some(pid);
                    self.is_refused = false;
                    self.machine.started(now)
                }
                None => Vec::new(),
            },
            SensorInput::Notice(SensorNotice::Ended { pid, status, .. }) => match &self.process {
                // The end of a process of an earlier life of this agent is no news of ours.
                Some(process) if process.pid == Some(pid) => return self.ended(exit(status)).await,
                Some(_) | None => Vec::new(),
            },
            SensorInput::Notice(SensorNotice::Refused { text, .. }) => self.not_started(&text),
            SensorInput::Notice(SensorNotice::Lost) => match &self.process {
                // The launcher's sensors end with it.
                Some(process) if process.pid.is_some() => return self.ended(Exit::Signal(15)).await,
                Some(_) => self.not_started("the launcher is gone"),
                None => Vec::new(),
            },
        };
        self.perform(actions).await
    }

    fn not_started(&mut self, reason: &str) -> Vec<Action> {
        if self.process.take().is_none() {
            return Vec::new();
        }
        self.refused(reason)
    }

    /// The log says why at once: a sensor that was never started looks like one that has nothing to
    /// say.
    fn refused(&mut self, reason: &str) -> Vec<Action> {
        if !std::mem::replace(&mut self.is_refused, true) {
            tracing::warn!("load sensor {} is not started: {reason}", self.spec);
        }
        self.machine.start_failed(reason, clock::tick())
    }

    async fn ask(&mut self, reply: oneshot::Sender<Answer>) -> ControlFlow<()> {
        self.reply = Some(reply);
        let now_on_disk = file::stamp(&self.spec.path).await;
        let changed = file_change(self.started_from.as_ref(), now_on_disk.as_ref()) == FileChange::Changed;
        let now = clock::tick();
        let actions = if changed && self.started_from.is_some() {
            tracing::info!("load sensor {}: its file changed, starting it again", self.spec);
            self.started_from = now_on_disk;
            self.machine.restart(now)
        } else {
            self.machine.request(now)
        };
        self.perform(actions).await
    }

    fn answer_if_ready(&mut self) {
        let now = clock::tick();
        if self.machine.wait_until(now).is_some() {
            return;
        }
        if let Some(reply) = self.reply.take() {
            let values = self.machine.values_for_report(now).map(|fresh| SampledBlock {
                block: fresh.block,
                ago: Duration::from_millis(fresh.sampled_ago_ms),
                received: Instant::now(),
            });
            // A report that is no longer made needs no answer.
            let _ = reply.send(Answer {
                values,
                status: self.status(now),
            });
        }
    }

    async fn take_output(&mut self, output: Output) -> ControlFlow<()> {
        let now = clock::tick();
        let actions = match output {
            Output::Out(bytes) => self.machine.bytes(&bytes, now),
            Output::OutEnd => self.machine.eof(now),
            Output::Err(bytes) => self.machine.stderr(&bytes, now),
        };
        self.perform(actions).await
    }

    /// The process is gone: what is left in its pipes counts first.
    async fn ended(&mut self, exit: Exit) -> ControlFlow<()> {
        let now = clock::tick();
        let mut actions = Vec::new();
        if let Some(process) = &mut self.process {
            let (out, err) = process.rest();
            actions.extend(self.machine.bytes(&out, now));
            actions.extend(self.machine.stderr(&err, now));
        }
        actions.extend(self.machine.exited(exit, now));
        let flow = self.perform(actions).await;
        // Only now: the actions may still signal its group. A new process is never started by
        // `exited`.
        self.process = None;
        flow
    }

    async fn perform(&mut self, actions: Vec<Action>) -> ControlFlow<()> {
        let mut queue = VecDeque::from(actions);
        while let Some(action) = queue.pop_front() {
            match action {
                Action::Start => queue.extend(self.start().await),
                Action::Write(request) => {
                    if let Some(process) = &self.process {
                        process.write(request.as_bytes());
                    }
                }
                Action::CloseStdin => {
                    if let Some(process) = &mut self.process {
                        process.close_stdin();
                    }
                }
                Action::SignalGroup(signal) => self.signal(signal),
                Action::Warn(warning) => tracing::warn!("load sensor {}: {}", self.spec, warning.text),
                Action::Health { from, to } => tracing::info!("load sensor {}: {from} -> {to}", self.spec),
                Action::Stderr(line) => tracing::info!("load sensor {} says: {line}", self.spec),
                Action::Block(_) | Action::Line { .. } => {}
                Action::Ended => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    async fn start(&mut self) -> Vec<Action> {
        if let Some(user) = uid(&self.user).await
            && let Err(reason) = file::check(&self.spec.path, user).await
        {
            return self.refused(&reason.to_string());
        }
        self.started_from = file::stamp(&self.spec.path).await;
        let (process, streams) = match Process::new() {
            Ok(pipes) => pipes,
            Err(error) => return self.machine.start_failed(&format!("no pipes: {error}"), clock::tick()),
        };
        self.process = Some(process);
        let request = launch::Request::StartSensor(launch::SensorSpec {
            id: self.id,
            path: self.spec.path.clone(),
            args: self.spec.arguments.clone(),
            user: user_name(&self.user).to_owned(),
            environment: self.environment.clone(),
        });
        self.launcher.push(LauncherRequest {
            request,
            attached: Attachment::Streams(streams),
        });
        Vec::new()
    }

    fn signal(&self, signal: Signal) {
        let Some(pid) = self.process.as_ref().and_then(|process| process.pid) else {
            return;
        };
        let signal = match signal {
            Signal::Terminate => nix::sys::signal::Signal::SIGTERM as i32,
            Signal::Kill => nix::sys::signal::Signal::SIGKILL as i32,
        };
        let request = launch::Request::StopSensor { pid, signal };
        self.launcher.push(LauncherRequest {
            request,
            attached: Attachment::Nothing,
        });
    }

    fn status(&self, now: Tick) -> SensorStatus {
        let status = self.machine.status(now);
        let health = if self.is_refused {
            "refused".to_owned()
        } else {
            status.health.to_string()
        };
        SensorStatus {
            command: self.spec.to_string(),
            health,
            user: self.user.clone(),
            pid: self
                .process
                .as_ref()
                .and_then(|process| process.pid)
                .and_then(|pid| u32::try_from(pid).ok()),
            interval_s: seconds(status.interval_ms),
            deadline_s: seconds(status.deadline_ms),
            back_off_s: status
                .next_start
                .filter(|_| status.failures_in_row > 0)
                .map(seconds_until),
            age_s: status.value_age_ms.map(seconds),
            restarts: status.restarts.into(),
            last_error: status.last_error.unwrap_or_default(),
            stderr: status.stderr,
            values: u64::try_from(status.values).unwrap_or(u64::MAX),
            faults: ValueFaults::default(),
        }
    }
}

async fn output(process: &mut Option<Process>, machine: &Machine) -> Output {
    let read_out = machine.pause_until(clock::tick()).is_none();
    match process {
        Some(process) => process.output(read_out).await,
        None => std::future::pending().await,
    }
}

async fn until(then: Option<Tick>) {
    match then {
        Some(then) => sleep(clock::until(then)).await,
        None => std::future::pending().await,
    }
}

fn exit(status: i32) -> Exit {
    if status > SIGNAL_BASE {
        Exit::Signal(status - SIGNAL_BASE)
    } else {
        Exit::Status(status)
    }
}

/// The part of `NAME` or `UID:GID` that the launcher takes.
fn user_name(user: &str) -> &str {
    user.split(':').next().unwrap_or(user)
}

/// The uid of the sensor's user; none if the name service does not say, and the launcher's look has
/// to do.
async fn uid(user: &str) -> Option<Uid> {
    let name = user_name(user).to_owned();
    if let Ok(uid) = name.parse() {
        return Some(Uid(uid));
    }
    let asked = tokio::task::spawn_blocking(move || User::from_name(&name).ok().flatten());
    let user = timeout(NAME_SERVICE_PATIENCE, asked).await.ok()?.ok()??;
    Some(Uid(user.uid.as_raw()))
}
