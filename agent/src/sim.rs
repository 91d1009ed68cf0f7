//! `gridwright-agent sim`: many simulated hosts in one process. Each has a certificate, a
//! connection and a core of its own, as a real host has. It starts no processes: its launcher only
//! says that tasks start and end. All hosts report the load of this machine.

mod certificates;
mod load;
mod pretend;

use crate::config::{self, Config};
use crate::driver::{Driver, INPUT_QUEUE, Ports};
use crate::launcher_link;
use crate::layout::{CELL_NAME, DaemonLock, Layout};
use crate::link::Link;
use crate::reports::{LoggedFaults, Reporter, Source};
use crate::{Failure, clock, notify, run};
use ::sensors::collector::Values;
use agent_core::core::Core;
use agent_core::host_paths::HostPaths;
use load::SharedLoad;
use pretend::PretendLauncher;
use proto::id::{Epoch, HostName};
use proto::wire::agent::AgentConfig;
use proto::wire::view::IssuedCertificate;
use quic::{CaCertificate, Client, Credentials, IdentityError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Hosts that shake hands at once: well below what the master admits without making peers prove
/// their address.
const HANDSHAKES: usize = 24;

/// Hosts that share a socket. Real ones have one each; where thousands share one, the system drops
/// what it has no room for.
const SOCKET_HOSTS: usize = 100;

/// Threads of the runtime. Hosts that are simulated must leave processors to the master.
const THREADS: usize = 2;

/// How the hosts are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// The state directory of the master.
    pub dir: PathBuf,
    /// How many hosts.
    pub count: u32,
    /// Slots of each, where they are not to have the queue's.
    pub slots: Option<u32>,
    /// A file of `name=value` lines that replace load values of this machine.
    pub load: Option<PathBuf>,
}

/// Runs the hosts until a signal ends them.
///
/// # Errors
/// What keeps them from starting.
pub fn run(options: &SimOptions) -> Result<(), Failure> {
    let layout = Layout::new(&options.dir).map_err(Failure::new)?;
    let _lock = DaemonLock::take(&layout, "sim").map_err(Failure::new)?;
    let config = config::read(&layout.etc("agent.toml")).map_err(Failure::new)?;
    let mut load = SharedLoad::new(options.load.clone()).map_err(Failure::new)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::new)?;
    let outcome = runtime.block_on(async {
        let issued = certificates::obtain(&layout, options).await.map_err(Failure::new)?;
        let values = load.sample().await.map_err(Failure::new)?;
        let (sender, values) = watch::channel(values);
        tokio::spawn(load.keep_fresh(sender));
        Fleet {
            layout,
            config,
            values,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
        }
        .run(issued)
        .await
    });
    runtime.shutdown_background();
    outcome
}

/// What all hosts share.
struct Fleet {
    layout: Layout,
    config: Config,
    values: watch::Receiver<Arc<Values>>,
    handshakes: Arc<Semaphore>,
}

impl Fleet {
    async fn run(self, issued: Vec<IssuedCertificate>) -> Result<(), Failure> {
        let begin = Instant::now();
        let stop = watch::channel(false).0;
        let (mut links, mut first) = (JoinSet::new(), JoinSet::new());
        let count = issued.len();
        let mut client: Option<Client> = None;
        for (n, certificate) in issued.into_iter().enumerate() {
            let credentials = self.credentials(&certificate).map_err(Failure::new)?;
            let own = match client.as_ref().filter(|_| n % SOCKET_HOSTS != 0) {
                Some(client) => client.with_credentials(&credentials),
                None => Client::new(&credentials),
            };
            let own = client.insert(own.map_err(Failure::new)?).clone();
            let (link, mut online) = self.host(certificate.host, own, &stop);
            links.spawn(link.run());
            first.spawn(async move { online.wait_for(Option::is_some).await.is_ok() });
        }
        notify::tell_manager("READY=1");
        tracing::info!("{count} simulated hosts start");
        tokio::spawn(async move {
            first.join_all().await;
            tracing::info!(
                "{count} simulated hosts are connected after {:.1} s",
                begin.elapsed().as_secs_f32()
            );
        });
        tokio::select! {
            _ = async { while links.join_next().await.is_some() {} } => {}
            () = run::end_on_signal(stop) => {}
        }
        Ok(())
    }

    /// What makes one certificate of the master's usable. The CA's is that of this machine's agent.
    fn credentials(&self, certificate: &IssuedCertificate) -> Result<Credentials, IdentityError> {
        let ca = std::fs::read_to_string(self.layout.agent("ca.crt"))
            .map_err(|reason| IdentityError::unreadable("agent/ca.crt", reason))?;
        let ca = CaCertificate::from_pem(&ca)?.to_pem();
        Credentials::from_pem(&certificate.certificate, &certificate.key, &ca)
    }

    /// The parts of one host. Its link is the caller's to run; all others run by themselves.
    fn host(
        &self,
        host: HostName,
        client: Client,
        stop: &watch::Sender<bool>,
    ) -> (Link, watch::Receiver<Option<quic::Connection>>) {
        let (driver, inputs) = mpsc::channel(INPUT_QUEUE);
        let (launcher, requests) = launcher_link::queue();
        let (config_sender, config) = watch::channel(AgentConfig::default());
        let (ready_sender, ready) = watch::channel(false);
        let report_now: Arc<Notify> = Arc::default();
        let own_stop = stopped_with(stop);
        let ports = Ports {
            slaves: None,
            launcher,
            config: config_sender,
            report_now: report_now.clone(),
            ready: ready_sender,
            stop: own_stop.clone(),
            epoch_file: None,
            marks_file: None,
            tasks: None,
        };
        let core = Core::new(self.host_paths(&host), Epoch::default());
        let instance = clock::instance(&self.layout.root(), host.as_str());
        tokio::spawn(Driver::new(core, host.clone(), instance, ports).run(inputs));
        tokio::spawn(PretendLauncher::new(requests, driver.clone()).run());
        let (online_sender, online) = watch::channel(None);
        let source = Source::Shared(self.values.clone());
        let (online_for_reports, driver_for_reports) = (online.clone(), driver.clone());
        let reporter = Reporter {
            host,
            source,
            sensors: None,
            online: online_for_reports,
            config,
            report_now,
            driver: driver_for_reports,
            faults: LoggedFaults::default(),
        };
        tokio::spawn(reporter.run());
        let link = Link {
            host: self.config.host.clone(),
            master: self.config.master.clone(),
            client,
            layout: None,
            driver,
            online: online_sender,
            ready,
            stop: own_stop.subscribe(),
            hurry: Arc::default(),
            handshakes: self.handshakes.clone(),
        };
        (link, online)
    }

    fn host_paths(&self, host: &HostName) -> HostPaths {
        HostPaths {
            host: host.clone(),
            root: self.layout.root(),
            cell_name: CELL_NAME.to_owned(),
            arch: proto::host::arch().to_owned(),
            processors: crate::processors(),
            cores: Default::default(),
            time_zone: None,
            environment: Vec::new(),
            cgroup_parent: None,
        }
    }
}

/// A signal to stop one host, which is given when all are to stop.
fn stopped_with(all: &watch::Sender<bool>) -> watch::Sender<bool> {
    let own = watch::channel(false).0;
    let (mut all, stop) = (all.subscribe(), own.clone());
    tokio::spawn(async move {
        // The sender is gone only when the process ends.
        if all.wait_for(|stop| *stop).await.is_ok() {
            stop.send_replace(true);
        }
    });
    own
}
