//! The load sensors of this host: one task each, kept in step with the configuration, asked just
//! before a report.
//!
//! What a sensor says means is decided by [`::sensors::protocol::Machine`]; this module owns the
//! pipes and has the launcher start and signal the processes.

mod file;
mod process;
mod task;

pub use file::check as check_file;
pub use process::{Output, Process};

use crate::clock;
use crate::config::SensorSettings;
use crate::launcher_link::LauncherQueue;
use crate::messages::SensorNotice;
use ::sensors::config::{SensorSpec, parse_load_sensor};
use ::sensors::host::SelfNames;
use ::sensors::protocol::{Block, Settings};
use proto::load::SensorStatus;
use proto::wire::agent::AgentConfig;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use task::SensorTask;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Inputs that wait for one sensor; more are dropped, as a sensor that does not take them is ended
/// anyway.
const SENSOR_QUEUE: usize = 64;

/// How long a report waits for a sensor's answer beyond what the machine itself asks for.
const ANSWER_PATIENCE: Duration = Duration::from_millis(1500);

/// How long sensors may take to leave when the agent ends, before their groups are killed.
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(1);

/// What all sensors of a host share.
#[derive(Clone, Debug)]
pub struct SensorSite {
    /// Every name of this host.
    pub names: SelfNames,
    /// The whole environment of a sensor, `NAME=value`.
    pub environment: Vec<String>,
    /// The directory of binaries, in which `qloadsensor` and `qidle` are looked for.
    pub binaries: PathBuf,
    /// Under whom sensors run unless their own settings say otherwise.
    pub user: String,
    /// Settings of single sensors.
    pub settings: Vec<SensorSettings>,
}

/// What a sensor has for a report.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its newest complete block, unless it is too old.
    pub values: Option<SampledBlock>,
    /// How it fares.
    pub status: SensorStatus,
}

/// A block of a sensor and how old its values are.
#[derive(Clone, Debug)]
pub struct SampledBlock {
    /// The block.
    pub block: Arc<Block>,
    /// How long before `received` the sensor was asked for it.
    pub ago: Duration,
    /// When this was said.
    pub received: Instant,
}

impl SampledBlock {
    /// How long before `now` its values were taken.
    pub fn age(&self, now: Instant) -> Duration {
        self.ago + now.saturating_duration_since(self.received)
    }
}

/// What a sensor's task is told.
#[derive(Debug)]
enum SensorInput {
    /// A report is due.
    Ask(oneshot::Sender<Answer>),
    /// News of its process.
    Notice(SensorNotice),
    /// It is no longer wanted.
    Stop,
    /// It is to be gone at once.
    Kill,
}

/// Asks all sensors; cheap to clone.
#[derive(Clone, Debug)]
pub struct SensorAnswers {
    asks: mpsc::Sender<oneshot::Sender<Vec<oneshot::Receiver<Answer>>>>,
}

impl SensorAnswers {
    /// Asks every sensor and waits at most about a second for what they say. In the order of the
    /// configuration: later ones override values of earlier ones.
    pub async fn ask(&self) -> Vec<Answer> {
        let (reply, receivers) = oneshot::channel();
        if self.asks.send(reply).await.is_err() {
            return Vec::new();
        }
        let receivers = receivers.await.unwrap_or_default();
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut answers = Vec::with_capacity(receivers.len());
        for receiver in receivers {
            let answer = tokio::time::timeout_at(deadline, receiver).await;
            answers.extend(answer.ok().and_then(Result::ok));
        }
        answers
    }
}

/// One sensor that is wanted.
struct WantedSensor {
    id: u64,
    spec: SensorSpec,
    settings: Settings,
    inputs: mpsc::Sender<SensorInput>,
}

/// All sensors of the host.
pub struct Sensors {
    site: SensorSite,
    launcher: LauncherQueue,
    wanted: Vec<WantedSensor>,
    /// Tasks that run, those of sensors that are no longer wanted among them.
    tasks: JoinSet<u64>,
    /// Where news of a process goes, also that of a sensor that is being ended.
    routes: Vec<(u64, mpsc::Sender<SensorInput>)>,
    last_id: u64,
}

impl Sensors {
    /// The sensors of a host, none yet, and how to ask them.
    pub fn new(site: SensorSite, launcher: LauncherQueue) -> (Self, SensorAnswers, SensorAsks) {
        let (sender, asks) = mpsc::channel(1);
        let sensors = Self {
            site,
            launcher,
            wanted: Vec::new(),
            tasks: JoinSet::new(),
            routes: Vec::new(),
            last_id: 0,
        };
        (sensors, SensorAnswers { asks: sender }, SensorAsks(asks))
    }

    /// Follows the configuration until the agent ends, and sees the sensors off then.
    pub async fn run(
        mut self,
        mut config: watch::Receiver<AgentConfig>,
        mut notices: mpsc::Receiver<SensorNotice>,
        mut asks: SensorAsks,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            tokio::select! {
                changed = config.changed() => match changed {
                    Ok(()) => self.adapt(&config.borrow_and_update().clone()),
                    Err(_) => break,
                },
                notice = notices.recv() => match notice {
                    Some(notice) => self.route(notice),
                    None => break,
                },
                Some(reply) = asks.0.recv() => {
                    let receivers = self.wanted.iter().map(|sensor| ask(&sensor.inputs)).collect();
                    // A report that is no longer made needs no answers.
                    let _ = reply.send(receivers);
                }
                Some(ended) = self.tasks.join_next() => self.forget(ended.ok()),
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        self.see_off(&mut notices).await;
    }

    /// Starts what is wanted and was not, ends what is no longer wanted; what stays, stays.
    fn adapt(&mut self, config: &AgentConfig) {
        let specs = specs(&config.load_sensors, &self.site.binaries, config.use_qidle);
        let mut before = std::mem::take(&mut self.wanted);
        for spec in specs {
            let settings = self.settings(&spec, config);
            let known = before
                .iter()
                .position(|known| known.spec == spec && known.settings == settings);
            let sensor = match known {
                Some(at) => before.remove(at),
                None => self.start(spec, settings),
            };
            self.wanted.push(sensor);
        }
        for gone in before {
            // Its task ends when its process has; a full queue means that it does not listen.
            let _ = gone.inputs.try_send(SensorInput::Stop);
        }
    }

    fn start(&mut self, spec: SensorSpec, settings: Settings) -> WantedSensor {
        self.last_id += 1;
        let id = self.last_id;
        let (sender, inputs) = mpsc::channel(SENSOR_QUEUE);
        let task = SensorTask::new(
            id,
            spec.clone(),
            self.user(&spec),
            settings,
            &self.site,
            self.launcher.clone(),
        );
        self.routes.push((id, sender.clone()));
        self.tasks.spawn(async move {
            task.run(inputs).await;
            id
        });
        WantedSensor {
            id,
            spec,
            settings,
            inputs: sender,
        }
    }

    fn settings_of(&self, spec: &SensorSpec) -> Option<&SensorSettings> {
        self.site.settings.iter().find(|settings| settings.path == spec.path)
    }

    fn user(&self, spec: &SensorSpec) -> String {
        self.settings_of(spec)
            .and_then(|settings| settings.user.clone())
            .unwrap_or_else(|| self.site.user.clone())
    }

    fn settings(&self, spec: &SensorSpec, config: &AgentConfig) -> Settings {
        let own = self.settings_of(spec);
        let ms = |seconds: Option<u32>| seconds.map(|seconds| u64::from(seconds) * 1000);
        let standard = Settings::default();
        let interval_ms = match config.report_interval_ms {
            0 => standard.interval_ms,
            interval_ms => interval_ms,
        };
        Settings {
            interval_ms: ms(own.and_then(|own| own.interval_s)).unwrap_or(interval_ms),
            deadline_ms: ms(own.and_then(|own| own.deadline_s)).unwrap_or(standard.deadline_ms),
            ..standard
        }
    }

    fn route(&self, notice: SensorNotice) {
        let id = match &notice {
            SensorNotice::Started { id, .. } | SensorNotice::Ended { id, .. } | SensorNotice::Refused { id, .. } => *id,
            SensorNotice::Lost => {
                for (_, inputs) in &self.routes {
                    let _ = inputs.try_send(SensorInput::Notice(SensorNotice::Lost));
                }
                return;
            }
        };
        if let Some((_, inputs)) = self.routes.iter().find(|(known, _)| *known == id) {
            // A sensor that does not take its news is one that has ended.
            let _ = inputs.try_send(SensorInput::Notice(notice));
        }
    }

    fn forget(&mut self, ended: Option<u64>) {
        self.routes
            .retain(|(id, inputs)| Some(*id) != ended && !inputs.is_closed());
        self.wanted.retain(|sensor| Some(sensor.id) != ended);
    }

    /// Tells every sensor to leave, and kills what does not.
    async fn see_off(&mut self, notices: &mut mpsc::Receiver<SensorNotice>) {
        for last_word in [|| SensorInput::Stop, || SensorInput::Kill] {
            for (_, inputs) in &self.routes {
                let _ = inputs.try_send(last_word());
            }
            // Without an answer of the launcher there is nothing more to be done for them.
            let _ = timeout(LEAVE_PATIENCE, self.until_all_ended(notices)).await;
        }
    }

    async fn until_all_ended(&mut self, notices: &mut mpsc::Receiver<SensorNotice>) {
        while !self.tasks.is_empty() {
            tokio::select! {
                Some(notice) = notices.recv() => self.route(notice),
                Some(ended) = self.tasks.join_next() => self.forget(ended.ok()),
                else => return,
            }
        }
    }
}

/// The receiving end of [`SensorAnswers`].
#[derive(Debug)]
pub struct SensorAsks(mpsc::Receiver<oneshot::Sender<Vec<oneshot::Receiver<Answer>>>>);

fn ask(inputs: &mpsc::Sender<SensorInput>) -> oneshot::Receiver<Answer> {
    let (reply, answer) = oneshot::channel();
    // A sensor that cannot be asked has nothing to say: the receiver sees the sender go.
    let _ = inputs.try_send(SensorInput::Ask(reply));
    answer
}

/// The sensors that the configuration names. The master has refused what cannot be; what slipped
/// through is logged.
///
/// As in 8.1.9 `qloadsensor` of the directory of binaries is always among them, and `qidle` if it
/// is wanted; what stands there when the agent starts or its configuration changes counts.
fn specs(entries: &[String], binaries: &Path, use_qidle: bool) -> Vec<SensorSpec> {
    let names = [Some("qloadsensor"), use_qidle.then_some("qidle")];
    let paths = names.into_iter().flatten().map(|name| binaries.join(name));
    let standard: Vec<String> = paths
        .filter(|path| path.is_file())
        .map(|path| path.display().to_string())
        .collect();
    let mut specs: Vec<SensorSpec> = Vec::new();
    for entry in standard.iter().chain(entries) {
        match parse_load_sensor(entry) {
            Ok(parsed) => parsed.into_iter().for_each(|spec| {
                if !specs.contains(&spec) {
                    specs.push(spec);
                }
            }),
            Err(refusal) => tracing::warn!("{refusal}"),
        }
    }
    specs
}

/// The whole environment of the sensors of a host.
pub fn environment(root: &str, host: &proto::id::HostName) -> Vec<String> {
    let job_spool_dir = format!("{root}/tasks");
    let site = ::sensors::launch::SensorEnvironment {
        sge_root: root,
        sge_cell: crate::layout::CELL_NAME,
        host,
        job_spool_dir: &job_spool_dir,
    };
    ::sensors::launch::environment(&site)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Every name by which this host is known to itself.
pub fn self_names(host: &proto::id::HostName) -> SelfNames {
    let own = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    SelfNames::new(host, own.as_deref(), ::sensors::host::Domains::Compare)
}

/// Seconds in milliseconds, for people.
fn seconds(ms: u64) -> u64 {
    ms / 1000
}

/// Seconds from now to a tick.
fn seconds_until(then: proto::time::Tick) -> u64 {
    clock::until(then).as_secs()
}
