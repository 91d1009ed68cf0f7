//! Owns the core in one task: everything that happens becomes an input, and the effects are handed
//! to whom they concern.
//!
//! A message for the master goes into the outbox of the present connection. There is no other place
//! for it: what must not be lost is in the core, and the next hello repeats it. An outbox that is
//! full, or a master that is rejected, ends the connection by dropping the outbox.

use crate::launcher_link::LauncherQueue;
use crate::launcher_process::LauncherProcess;
use crate::messages::{Attachment, ConnectionStart, DriverInput, LauncherRequest};
use crate::slaves::{InputKind, Slaves};
use crate::{clock, directory};
use agent_core::core::{Core, Effect, Input, Now};
use proto::cell_version::CellVersion;
use proto::id::{Epoch, HostName, TaskKey, UserName};
use proto::launch::{Request, Start};
use proto::usage::Usage;
use proto::wire::agent::{AgentConfig, AgentHello, AgentMessage, PROTOCOL_VERSION};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Inputs that wait for the core; whoever brings more waits.
pub const INPUT_QUEUE: usize = 1024;

/// Messages that wait for the master on one connection; more end it, and the next hello says
/// everything.
const OUTBOX: usize = 4096;

/// Whom effects concern.
pub struct Ports {
    /// The launcher, real or pretended.
    pub launcher: LauncherQueue,
    /// The configuration in force.
    pub config: watch::Sender<AgentConfig>,
    /// Woken for a full load report.
    pub report_now: Arc<Notify>,
    /// True once the tasks of this host are known.
    pub ready: watch::Sender<bool>,
    /// True once the master wants the agent to end.
    pub stop: watch::Sender<bool>,
    /// The streams of slave tasks; none for simulated hosts.
    pub slaves: Option<Slaves>,
    /// Where the highest epoch that was obeyed is kept; none for simulated hosts.
    pub epoch_file: Option<PathBuf>,
    /// The file in which the launcher writes its marks. `None` on simulated hosts.
    pub marks_file: Option<PathBuf>,
    /// The directory in which the launcher has a directory for each task that it has begun. `None`
    /// on simulated hosts.
    pub tasks: Option<PathBuf>,
}

/// The core and what it works through.
pub struct Driver {
    core: Core,
    host: HostName,
    instance: u128,
    boot_id: String,
    ports: Ports,
    outbox: Option<mpsc::Sender<AgentMessage>>,
    /// The process of the launcher that was connected last.
    launcher: Option<LauncherProcess>,
    usage: BTreeMap<TaskKey, Usage>,
    usage_interval: Duration,
    usage_due: Instant,
    /// Whether the master was last told that this host cannot start tasks.
    is_unfit: bool,
}

impl Driver {
    /// A driver of `core` on `host`; `instance` as [`clock::instance`] names it.
    pub fn new(core: Core, host: HostName, instance: u128, ports: Ports) -> Self {
        Self {
            core,
            host,
            instance,
            boot_id: clock::boot_id(),
            ports,
            outbox: None,
            launcher: None,
            usage: BTreeMap::new(),
            usage_interval: Duration::ZERO,
            usage_due: Instant::now(),
            is_unfit: false,
        }
    }

    /// Works until nobody is left who brings inputs, or the master ends the agent.
    pub async fn run(mut self, mut inputs: mpsc::Receiver<DriverInput>) {
        loop {
            let timer = self.core.next_timer();
            let input = tokio::select! {
                input = inputs.recv() => input,
                () = until_boot_ms(timer) => Some(DriverInput::Tick),
                () = sleep_until(self.usage_due), if !self.usage.is_empty() => {
                    self.send_usage();
                    continue;
                }
            };
            let Some(input) = input else { return };
            if self.take(input).is_break() {
                return;
            }
        }
    }

    fn take(&mut self, input: DriverInput) -> ControlFlow<()> {
        let input = match input {
            DriverInput::Open(reply) => {
                // A link that is gone by now opens anew.
                let _ = reply.send(self.open());
                return ControlFlow::Continue(());
            }
            DriverInput::Soft(message) => {
                self.send_soft(*message);
                return ControlFlow::Continue(());
            }
            DriverInput::MainProcess(key, reply) => {
                // Who does not wait any more does not want to know.
                let _ = reply.send(self.core.main_process(key));
                return ControlFlow::Continue(());
            }
            DriverInput::MasterLost => {
                self.outbox = None;
                Input::MasterLost
            }
            DriverInput::Welcome(welcome) => Input::Welcome(welcome),
            DriverInput::Master(message) => Input::Master(message),
            DriverInput::LauncherConnected(process) => {
                self.launcher = process;
                Input::LauncherConnected
            }
            DriverInput::LauncherLost => Input::LauncherLost,
            DriverInput::EndTasks => Input::EndTasks,
            DriverInput::Launcher(notice) => Input::Launcher(notice),
            DriverInput::Tick => Input::Tick,
        };
        self.decide(input)
    }

    fn decide(&mut self, input: Input) -> ControlFlow<()> {
        let epoch = self.core.epoch();
        let boot_id = std::mem::take(&mut self.boot_id);
        let effects = self.core.handle(
            input,
            &Now {
                boot_ms: clock::boot_ms(),
                boot_id: &boot_id,
            },
        );
        self.boot_id = boot_id;
        if self.core.epoch() != epoch {
            self.keep_epoch();
        }
        effects.into_iter().try_for_each(|effect| self.perform(effect))
    }

    fn open(&mut self) -> ConnectionStart {
        let (sender, outbox) = mpsc::channel(OUTBOX);
        self.outbox = Some(sender);
        let now = Now {
            boot_ms: clock::boot_ms(),
            boot_id: &self.boot_id,
        };
        let hello = AgentHello {
            version: PROTOCOL_VERSION,
            cell_version: CellVersion::NEWEST,
            software: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host.clone(),
            instance: self.instance,
            epoch: self.core.epoch(),
            tasks: self.core.reports(&now),
            wall_ms: clock::wall().0,
            takes_tickets: self.core.takes_tickets(),
            binds_cores: true,
            boot_ms: now.boot_ms,
            marks: self
                .ports
                .marks_file
                .as_deref()
                .map(directory::marks)
                .unwrap_or_default(),
        };
        ConnectionStart { hello, outbox }
    }

    fn perform(&mut self, effect: Effect) -> ControlFlow<()> {
        match effect {
            Effect::Send(message) => match *message {
                AgentMessage::Usage(usage) => self.collect_usage(usage),
                AgentMessage::Health { unfit, root_commands } => {
                    let was_unfit = std::mem::replace(&mut self.is_unfit, unfit.is_some());
                    match &unfit {
                        Some(why) => tracing::warn!("this host cannot start jobs: {why}"),
                        None if was_unfit => tracing::info!("this host can start jobs again"),
                        None => {}
                    }
                    self.send(AgentMessage::Health { unfit, root_commands });
                }
                AgentMessage::Task(_) | AgentMessage::Sensors(_) | AgentMessage::Refused(_) => self.send(*message),
            },
            Effect::Launcher { request, script } => {
                let attached = match (script, self.streams_for(&request)) {
                    (None, attached) => attached,
                    (Some(script), Attachment::Streams(streams)) => Attachment::Session(streams, script),
                    (Some(script), _) => Attachment::Script(script),
                };
                self.ports.launcher.push(LauncherRequest {
                    request: *request,
                    attached,
                });
            }
            Effect::Configure(config) => {
                self.usage_interval = Duration::from_millis(config.usage_interval_ms);
                self.ports.config.send_replace(config);
            }
            Effect::FindUnbegun(keys) => return self.decide(Input::Unbegun(self.unbegun(keys))),
            Effect::ReportNow => self.ports.report_now.notify_one(),
            Effect::Ready => drop(self.ports.ready.send_replace(true)),
            Effect::Reject(refusal) => {
                tracing::error!("the master is rejected: {refusal}");
                self.outbox = None;
            }
            Effect::Stop => {
                tracing::info!("the master ends this agent");
                self.ports.stop.send_replace(true);
                return ControlFlow::Break(());
            }
            Effect::Warn(diagnostic) => tracing::warn!("{diagnostic}"),
        }
        ControlFlow::Continue(())
    }

    /// Returns the tasks that the last launcher had not begun. The list is empty while it may be
    /// alive.
    fn unbegun(&self, mut keys: Vec<TaskKey>) -> Vec<TaskKey> {
        let (Some(tasks), Some(true)) = (&self.ports.tasks, self.launcher.map(LauncherProcess::is_gone)) else {
            return Vec::new();
        };
        let is_missing = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        keys.retain(|key| tasks.join(key.to_string()).symlink_metadata().is_err_and(is_missing));
        keys
    }

    /// The streams of a slave task that is to be started. Those of one that is forgotten go.
    fn streams_for(&self, request: &Request) -> Attachment {
        match (request, &self.ports.slaves) {
            (Request::Launch(document), Some(slaves)) => {
                let pipe = |has_input| if has_input { InputKind::Pipe } else { InputKind::None };
                let owner = || Some(UserName::from(document.account.user.as_str()));
                let (owner, input) = match document.start {
                    Start::Connected { has_input, .. } => (None, pipe(has_input)),
                    Start::Session { terminal: Some(_), .. } => (owner(), InputKind::Terminal),
                    Start::Session { has_input, .. } => (owner(), pipe(has_input)),
                    Start::Script { .. } | Start::Command { .. } | Start::Starter { .. } | Start::Direct { .. } => {
                        return Attachment::Nothing;
                    }
                };
                match slaves.begin(document.key, owner, input) {
                    Ok(streams) => Attachment::Streams(streams),
                    Err(error) => {
                        // The launcher refuses it without them.
                        tracing::error!("no pipes can be made for task {}: {error}", document.key);
                        Attachment::Nothing
                    }
                }
            }
            (Request::Forget { key }, Some(slaves)) => {
                slaves.forget(*key);
                Attachment::Nothing
            }
            _ => Attachment::Nothing,
        }
    }

    fn send(&mut self, message: AgentMessage) {
        if let Some(Err(mpsc::error::TrySendError::Full(_))) = self.outbox.as_ref().map(|box_| box_.try_send(message)) {
            tracing::warn!("the master does not take {OUTBOX} messages: connecting anew");
            self.outbox = None;
        }
    }

    /// A message that may be lost leaves the room to those that may not.
    fn send_soft(&mut self, message: AgentMessage) {
        if let Some(outbox) = self.outbox.as_ref().filter(|outbox| outbox.capacity() > OUTBOX / 2) {
            // Full or closed: the next one replaces it.
            let _ = outbox.try_send(message);
        }
    }

    /// Of each task the latest use counts.
    fn collect_usage(&mut self, usage: Vec<(TaskKey, Usage)>) {
        if self.usage_interval.is_zero() || self.outbox.is_none() {
            return;
        }
        if self.usage.is_empty() {
            self.usage_due = self.usage_due.max(Instant::now());
        }
        self.usage.extend(usage);
    }

    fn send_usage(&mut self) {
        self.usage_due = Instant::now() + self.usage_interval;
        let usage = std::mem::take(&mut self.usage).into_iter().collect();
        self.send_soft(AgentMessage::Usage(usage));
    }

    fn keep_epoch(&self) {
        let Some(path) = &self.ports.epoch_file else { return };
        // An epoch that could not be kept is learned again from the next welcome.
        if let Err(error) = write_epoch(path, self.core.epoch()) {
            tracing::error!("cannot write {}: {error}", path.display());
        }
    }
}

/// Waits until the boot clock shows so many milliseconds; for ever where nothing is due.
async fn until_boot_ms(at: Option<u64>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(clock::boot_ms()))).await,
        None => std::future::pending().await,
    }
}

fn write_epoch(path: &PathBuf, epoch: Epoch) -> std::io::Result<()> {
    let draft = path.with_extension("new");
    std::fs::write(&draft, format!("{}\n", epoch.0))?;
    std::fs::File::open(&draft)?.sync_all()?;
    std::fs::rename(draft, path)
}

/// The highest epoch that an earlier life of this agent has obeyed; 0 if there was none.
pub fn read_epoch(path: &std::path::Path) -> Epoch {
    Epoch(
        std::fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0),
    )
}
