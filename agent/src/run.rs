//! `gridwright-agent run`: the agent of this host. Puts the parts together and takes them apart.

use crate::config::{self, Config};
use crate::driver::{Driver, INPUT_QUEUE, Ports, read_epoch};
use crate::launcher_link::{self, LauncherLink, LauncherQueue};
use crate::layout::{CELL_NAME, DaemonLock, Layout};
use crate::link::Link;
use crate::messages::{DriverInput, SensorNotice};
use crate::reports::{LoggedFaults, Reporter, Source};
use crate::sensors::{SensorSite, Sensors};
use crate::slaves::Slaves;
use crate::users::Counter;
use crate::{Failure, clock, directory, identity, notify, sensors, slaves, users};
use agent_core::core::Core;
use agent_core::host_paths::HostPaths;
use proto::binding::ProcessorMap;
use proto::id::TaskKey;
use proto::wire::agent::AgentConfig;
use quic::Client;
use std::ffi::OsString;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, Semaphore, mpsc, watch};

/// The account that load sensors run under where nothing says otherwise.
const SENSOR_USER: &str = "gridwright-sensor";

/// News of sensors that wait for their tasks.
const SENSOR_NOTICES: usize = 256;

/// How the agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The state directory.
    pub dir: PathBuf,
    /// Under whom load sensors run: `NAME` or `UID:GID`.
    pub sensor_user: Option<String>,
}

/// Runs the agent until a signal or the master ends it.
///
/// # Errors
/// What keeps it from starting.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    let layout = Layout::new(&options.dir).map_err(Failure::new)?;
    directory::refuse_copy(&layout)?;
    let _lock = DaemonLock::take(&layout, "agent").map_err(Failure::new)?;
    let config = config::read(&layout.etc("agent.toml")).map_err(Failure::new)?;
    logging::limit_bytes(config.log_bytes);
    let credentials = identity::read(&layout).map_err(Failure::new)?;
    let client = Client::new(&credentials).map_err(Failure::new)?;
    let host = credentials.identity().host.clone();
    if host != config.host {
        tracing::warn!(
            "etc/agent.toml names this host {}, its certificate {host}, which counts",
            config.host
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let agent = Agent {
        layout,
        config: Config { host, ..config },
        client,
        options: options.clone(),
    };
    let outcome = runtime.block_on(agent.run());
    // A name service or file system that hangs must not keep the agent from ending.
    runtime.shutdown_background();
    outcome
}

/// What the parts are made of.
struct Agent {
    layout: Layout,
    config: Config,
    client: Client,
    options: RunOptions,
}

/// The channels between the parts.
struct Wires {
    driver: mpsc::Sender<DriverInput>,
    launcher: LauncherQueue,
    config: watch::Receiver<AgentConfig>,
    report_now: Arc<Notify>,
    online: watch::Sender<Option<quic::Connection>>,
    ready: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    hurry: Arc<Notify>,
}

impl Agent {
    async fn run(self) -> Result<(), Failure> {
        let listener = self.listen().map_err(Failure::new)?;
        let (inputs, driver_inputs) = mpsc::channel(INPUT_QUEUE);
        let (launcher, launcher_requests) = launcher_link::queue();
        let (config_sender, config) = watch::channel(AgentConfig::default());
        let (ready_sender, ready) = watch::channel(false);
        let wires = Wires {
            driver: inputs,
            launcher,
            config,
            report_now: Arc::default(),
            online: watch::channel(None).0,
            ready,
            stop: watch::channel(false).0,
            hurry: Arc::default(),
        };
        let (slaves, slave_messages) = Slaves::new(self.layout.agent("slaves"), wires.driver.clone());
        let exists = |key: TaskKey| self.layout.dir().join("tasks").join(key.to_string()).exists();
        slaves.recover(exists).map_err(Failure::new)?;
        tokio::spawn(slaves::link::run(
            slaves.clone(),
            slave_messages,
            wires.online.subscribe(),
        ));
        let driver = self.driver(&wires, slaves.clone(), config_sender, ready_sender);
        tokio::spawn(driver.run(driver_inputs));
        tokio::spawn(end_tasks_on_signal(wires.driver.clone()));
        let (notices, sensor_notices) = mpsc::channel(SENSOR_NOTICES);
        let (layout, driver) = (self.layout.clone(), wires.driver.clone());
        tokio::spawn(
            LauncherLink {
                layout,
                queue: launcher_requests,
                driver,
                sensors: notices,
            }
            .run(),
        );
        let counter = Counter {
            online: wires.online.subscribe(),
            hurry: wires.hurry.clone(),
            limits: self.config.users,
            driver: wires.driver.clone(),
            slaves,
        };
        tokio::spawn(users::serve(listener, counter));
        tokio::spawn(crate::disk::watch(self.layout.clone()));
        notify::tell_manager("READY=1");
        tracing::info!("agent {} of {} starts", env!("CARGO_PKG_VERSION"), self.config.host);
        let last_words = self.work(&wires, sensor_notices);
        tokio::select! {
            () = last_words => {}
            () = end_on_signal(wires.stop.clone()) => {}
        }
        // The socket of users is in the way of nothing; the next agent makes it anew.
        let _ = self
            .layout
            .folder("agent")
            .and_then(|folder| folder.remove("agent.sock"));
        Ok(())
    }

    /// The core of the agent with its files, and the channels on which it tells the other parts.
    fn driver(
        &self,
        wires: &Wires,
        slaves: Slaves,
        config: watch::Sender<AgentConfig>,
        ready: watch::Sender<bool>,
    ) -> Driver {
        let ports = Ports {
            slaves: Some(slaves),
            launcher: wires.launcher.clone(),
            config,
            report_now: wires.report_now.clone(),
            ready,
            stop: wires.stop.clone(),
            epoch_file: Some(self.layout.agent("epoch")),
            marks_file: Some(self.layout.dir().join("tasks/marks")),
            tasks: Some(self.layout.dir().join("tasks")),
        };
        let epoch = read_epoch(&self.layout.agent("epoch"));
        let host = self.config.host.clone();
        let instance = clock::instance(&self.layout.root(), host.as_str());
        Driver::new(Core::new(self.host_paths(), epoch), host, instance, ports)
    }

    /// The parts that end in order when the agent ends: sensors leave, the master hears of it.
    fn work(&self, wires: &Wires, notices: mpsc::Receiver<SensorNotice>) -> impl Future<Output = ()> + use<> {
        let (sensors, answers, asks) = Sensors::new(self.sensor_site(), wires.launcher.clone());
        let reporter = Reporter {
            host: self.config.host.clone(),
            source: Source::Machine(Box::default()),
            sensors: Some(answers),
            online: wires.online.subscribe(),
            config: wires.config.clone(),
            report_now: wires.report_now.clone(),
            driver: wires.driver.clone(),
            faults: LoggedFaults::default(),
        };
        let link = Link {
            host: self.config.host.clone(),
            master: self.config.master.clone(),
            client: self.client.clone(),
            layout: Some(self.layout.clone()),
            driver: wires.driver.clone(),
            online: wires.online.clone(),
            ready: wires.ready.clone(),
            stop: wires.stop.subscribe(),
            hurry: wires.hurry.clone(),
            handshakes: Arc::new(Semaphore::new(1)),
        };
        let sensors = sensors.run(wires.config.clone(), notices, asks, wires.stop.subscribe());
        tokio::spawn(reporter.run());
        let (link, sensors) = (tokio::spawn(link.run()), tokio::spawn(sensors));
        async move {
            // A part that panicked has logged why; the others end as they should.
            let _ = tokio::join!(link, sensors);
        }
    }

    fn listen(&self) -> std::io::Result<UnixListener> {
        let folder = self.layout.folder("agent")?;
        folder.remove("agent.sock")?;
        let path = folder.short_path("agent.sock");
        let listener = UnixListener::bind(&path)?;
        // Who a client is, the kernel says; everybody may ask.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
        Ok(listener)
    }

    fn host_paths(&self) -> HostPaths {
        HostPaths {
            host: self.config.host.clone(),
            root: self.layout.root(),
            cell_name: CELL_NAME.to_owned(),
            arch: proto::host::arch().to_owned(),
            processors: crate::processors(),
            cores: cores(),
            time_zone: std::env::var("TZ").ok().filter(|zone| !zone.is_empty()),
            environment: own_environment(),
            cgroup_parent: self.config.cgroup_parent.clone(),
        }
    }

    fn sensor_site(&self) -> SensorSite {
        let Config {
            host,
            sensor_user,
            sensors,
            ..
        } = &self.config;
        let user = self.options.sensor_user.clone().or_else(|| sensor_user.clone());
        SensorSite {
            names: sensors::self_names(host),
            environment: sensors::environment(&self.layout.root(), host),
            binaries: self.layout.dir().join("bin").join(proto::host::arch()),
            user: user.unwrap_or_else(|| SENSOR_USER.to_owned()),
            settings: sensors.clone(),
        }
    }
}

/// Variables that are about the agent and its unit, or that a job has of its own user.
const NOT_INHERITED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "MAIL",
    "SHELL",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "MAINPID",
    "MANAGERPID",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "CREDENTIALS_DIRECTORY",
    "STATE_DIRECTORY",
    "RUNTIME_DIRECTORY",
];

/// The processors of each core of this host. A host that does not tell them reports no topology
/// either, and gets no task that is bound.
fn cores() -> ProcessorMap {
    let found = ::sensors::topology::read_topology(Path::new("/"));
    found.map(|topology| topology.processors).unwrap_or_default()
}

/// What jobs inherit where `INHERIT_ENV` is set: what a launch document can carry.
fn own_environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let is_ours = |name: &str| NOT_INHERITED.contains(&name) || name.starts_with("GRIDWRIGHT_");
    std::env::vars_os()
        .filter_map(text)
        .filter(|(name, _)| !is_ours(name))
        .collect()
}

/// SIGUSR2 of `gridwright down --kill-jobs` ends the tasks of this host; the agent stays to tell
/// the master.
async fn end_tasks_on_signal(driver: mpsc::Sender<DriverInput>) {
    let Ok(mut ends) = signal(SignalKind::user_defined2()) else {
        return;
    };
    while ends.recv().await.is_some() {
        tracing::info!("the administrator of this host ends its tasks; none is started any more");
        if driver.send(DriverInput::EndTasks).await.is_err() {
            return;
        }
    }
}

/// Ends the agent at SIGTERM or SIGINT; a second signal ends it at once. SIGHUP opens the log anew.
pub async fn end_on_signal(stop: watch::Sender<bool>) {
    let streams = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let [Ok(mut term), Ok(mut int), Ok(mut hup)] = streams else {
        tracing::error!("signals cannot be received; SIGKILL ends the agent, and nothing is lost by it");
        return std::future::pending().await;
    };
    let mut ends = 0;
    while ends < 2 {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hup.recv() => {
                logging::reopen();
                continue;
            }
        }
        ends += 1;
        tracing::info!("the agent ends; jobs go on");
        notify::tell_manager("STOPPING=1");
        stop.send_replace(true);
    }
}
