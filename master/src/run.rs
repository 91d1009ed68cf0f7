//! `gridwright-master run`: everything put together, and taken apart again at the end.

use crate::args::RunOptions;
use crate::clock::{Clock, wall_now};
use crate::config::{CellConfig, ConfigError, MasterConfig};
use crate::connections::AdmittedSerials;
use crate::driver::{Disk, Driver, Outlets};
use crate::followers::accounting_file::{AccountingError, AccountingFile, AccountingFileRules};
use crate::followers::mail::Mailer;
use crate::followers::mail::sender::MailQueue;
use crate::followers::reporting::ReportingFile;
use crate::followers::schedule_file::ScheduleFile;
use crate::followers::snapshots::Snapshots;
use crate::followers::subscribers::Subscribers;
use crate::followers::{Files, Followers};
use crate::issuer::{self, Issuer, KeyError};
use crate::layout::Layout;
use crate::lock::{LockError, MasterLock};
use crate::messages::{DriverInput, ReaderInput};
use crate::model::{Model, StaticFacts};
use crate::notify;
use crate::quarantine::{CORE_THREAD, Quarantine};
use crate::reader::{QueryQueues, Reader};
use crate::renewal::Renewal;
use crate::replay::{ReplayedState, replay};
use crate::reserve::Reserve;
use crate::scheduler::SchedulerThread;
use crate::server::{Desk, ReadingPlaces, agents, unix};
use crate::signs::Signs;
use crate::slaves::Slaves;
use crate::store::{AccountingFormat, Store, StoreError, probe_room};
use crate::tickets::Tickets;
use crate::verifiers::VerifierQueue;
use jiff::tz::TimeZone;
use master_core::core::Core;
use master_core::effect::{LoadLimits, MasterHost};
use master_core::state::State;
use proto::diagnostic::Diagnostic;
use proto::host::names::Naming;
use proto::time::Zone;
use quic::{BindError, ClusterCa, Credentials, Server, ServerLimits, Shares};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Inputs of the reader thread that may wait; beyond them the core waits for its readers.
const EVENT_QUEUE: usize = 16_384;

/// The master cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another master runs, or the lock cannot be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The accounting file cannot be kept.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// `listen` of `etc/master.toml` is no address.
    #[error("listen of etc/master.toml is {0:?}, no address")]
    Listen(String),
    /// The UDP port cannot be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The database is another cell's than `etc/cell.toml` says.
    #[error("{} belongs to another cell than etc/cell.toml says", path.display())]
    OtherCell {
        /// The database.
        path: PathBuf,
    },
    /// `default/common/bootstrap` says something that cannot be.
    #[error("{0}")]
    Bootstrap(Box<Diagnostic>),
    /// The directory is a copy of a cell's.
    #[error("{0}")]
    Copy(Box<Diagnostic>),
    /// A thread, a socket or a file cannot be had.
    #[error("cannot {action}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

fn system(action: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::System { action, source }
}

/// Runs the master until SIGTERM, SIGINT, or `qconf -km`.
///
/// # Errors
/// As [`RunError`]: before it is ready, or when an event cannot be made durable.
pub fn run(options: &RunOptions) -> Result<(), RunError> {
    let layout = Layout::new(&options.dir);
    crate::copy::refuse(&layout).map_err(RunError::Copy)?;
    let cell = CellConfig::read(&layout.etc("cell.toml"))?;
    let config = MasterConfig::read(&layout.etc("master.toml"))?;
    logging::limit_bytes(config.log_bytes);
    // Held to the end: by it the others know that this master lives.
    let _lock = MasterLock::take(&layout)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("master-io")
        .build()
        .map_err(system("start the threads"))?;
    let _log = runtime.spawn(reopen_log(hangup(&runtime)?));
    let mut reserve = Reserve::new(layout.master("reserve"), config.disk_reserve_bytes);
    let store = open_store(&layout, &mut reserve)?;
    let state = restore(&store, &cell, &layout)?;
    let master = Master::start(&runtime, &layout, &cell, config, Disk { store, reserve }, state)?;
    let outcome = runtime.block_on(master.serve(&layout));
    // Tasks that are left belong to connections that are closed.
    runtime.shutdown_background();
    outcome
}

/// Opens the database. Where the disk has not even room for that, the reserve is given up for it.
fn open_store(layout: &Layout, reserve: &mut Reserve) -> Result<Store, StoreError> {
    match Store::open(&layout.database()) {
        Err(error) if error.is_disk_full(probe_room) && reserve.release() => Store::open(&layout.database()),
        opened => opened,
    }
}

fn restore(store: &Store, cell: &CellConfig, layout: &Layout) -> Result<State, RunError> {
    let ReplayedState {
        state,
        snapshot,
        events,
        passed_over,
    } = replay(store)?;
    for line in &passed_over {
        tracing::warn!("{line}");
    }
    if state.cell != cell.cell {
        return Err(RunError::OtherCell {
            path: layout.database(),
        });
    }
    tracing::info!(
        "{events} events replayed behind the snapshot after event {}",
        snapshot.0
    );
    Ok(state)
}

/// The running parts.
struct Master {
    desk: Arc<Desk>,
    server: Arc<Server>,
    tickets: Tickets,
    renewal: Renewal,
    revocations: mpsc::UnboundedReceiver<quic::Serial>,
    threads: Threads,
}

/// The three threads that are no tokio's, and the verifier of the cell.
struct Threads {
    driver: JoinHandle<Result<(), StoreError>>,
    driver_ended: oneshot::Receiver<()>,
    reader: JoinHandle<()>,
    scheduler: JoinHandle<()>,
    verifiers: VerifierQueue,
}

/// The receiving ends of the queues between the threads.
struct Queues {
    inputs: mpsc::Receiver<DriverInput>,
    to_reader: mpsc::Sender<ReaderInput>,
    from_driver: mpsc::Receiver<ReaderInput>,
    queries: QueryQueues,
}

impl Master {
    fn start(
        runtime: &Runtime,
        layout: &Layout,
        cell: &CellConfig,
        config: MasterConfig,
        disk: Disk,
        state: State,
    ) -> Result<Self, RunError> {
        let ca = issuer::read_ca(layout)?;
        let credentials = issuer::master_credentials(layout, &ca, wall_now())?;
        let tickets = Tickets::read(layout)?;
        let admitted = Arc::new(AdmittedSerials::of_state(&state));
        let server = bind(runtime, cell, &config, &credentials, &tickets, &admitted)?;
        let (desk, queues) = open_desk(layout, cell, config, ca, Slaves::of_state(&state));
        let (revoked, revocations) = mpsc::unbounded_channel();
        let threads = Threads::start(
            runtime.handle(),
            layout,
            &desk,
            queues,
            Start {
                disk,
                state,
                admitted,
                revoked,
            },
        )?;
        let server = Arc::new(server);
        let served = credentials.identity().clone();
        let renewal = Renewal::new(layout.clone(), desk.issuer.clone(), server.clone(), served);
        Ok(Self {
            desk,
            server,
            tickets,
            renewal,
            revocations,
            threads,
        })
    }

    /// Serves until a signal or the core ends the master, then ends everything in order.
    async fn serve(self, layout: &Layout) -> Result<(), RunError> {
        let Self {
            desk,
            server,
            tickets,
            renewal,
            revocations,
            threads,
        } = self;
        let socket = unix::listen(layout).map_err(system("listen on run/master/master.sock"))?;
        let mut terminate = signal(SignalKind::terminate()).map_err(system("wait for signals"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system("wait for signals"))?;
        let doors = [
            tokio::spawn(unix::accept(socket, desk.clone())),
            tokio::spawn(agents::accept(server.clone(), desk.clone())),
            tokio::spawn(revoke(server.clone(), revocations)),
            tokio::spawn(tickets.rotate()),
            tokio::spawn(renewal.keep()),
        ];
        let address = server.local_addr().map_err(system("use the UDP socket"))?;
        notify::ready(layout).map_err(system("write run/master/ready"))?;
        tracing::info!(
            "master of cell {:016x} on {} serves udp {address}",
            desk.cell.0,
            desk.host
        );
        let Threads {
            driver,
            mut driver_ended,
            reader,
            scheduler,
            verifiers,
        } = threads;
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: the master ends"),
            _ = interrupt.recv() => tracing::info!("SIGINT: the master ends"),
            _ = &mut driver_ended => {}
        }
        notify::stopping(layout);
        doors.iter().for_each(|door| door.abort());
        desk.signs.stop();
        verifiers.stop().await;
        // The driver may have ended by itself: then nobody takes this, and nobody has to.
        let _ = desk.inputs.send(DriverInput::Stop).await;
        let outcome = tokio::task::spawn_blocking(move || {
            let outcome = driver.join();
            let rest = [reader.join(), scheduler.join()];
            (outcome, rest)
        });
        let ended = outcome.await.map_err(|error| RunError::System {
            action: "end the threads",
            source: error.into(),
        })?;
        server.shutdown().await;
        let (Ok(stored), _) = ended else {
            return Err(system("go on: a thread panicked")(io::ErrorKind::Other.into()));
        };
        Ok(stored?)
    }
}

fn bind(
    runtime: &Runtime,
    cell: &CellConfig,
    config: &MasterConfig,
    credentials: &Credentials,
    tickets: &Tickets,
    admitted: &Arc<AdmittedSerials>,
) -> Result<Server, RunError> {
    let listen: IpAddr = config
        .listen
        .parse()
        .map_err(|_| RunError::Listen(config.listen.clone()))?;
    let judge = admitted.clone();
    let admission: quic::Admission = Arc::new(move |peer| judge.judge(peer));
    let _inside = runtime.enter();
    let address = SocketAddr::new(listen, cell.port);
    Ok(Server::bind(
        address,
        credentials,
        tickets.keys(),
        ServerLimits::default(),
        admission,
    )?)
}

/// The desk, and the other ends of its queues.
fn open_desk(
    layout: &Layout,
    cell: &CellConfig,
    config: MasterConfig,
    ca: ClusterCa,
    slaves: Slaves,
) -> (Arc<Desk>, Queues) {
    let (inputs, input_receiver) = mpsc::channel(config.input_queue);
    let (questions, question_receiver) = mpsc::channel(config.query_queue);
    let (more, more_receiver) = mpsc::channel(config.query_queue);
    let (subscribers, subscriber_receiver) = mpsc::channel(config.query_queue);
    let (to_reader, from_driver) = mpsc::channel(EVENT_QUEUE);
    let desk = Desk {
        inputs: inputs.clone(),
        questions,
        more,
        subscribers,
        replies: Arc::default(),
        joins: Arc::default(),
        connections: Arc::default(),
        slaves: Arc::new(slaves),
        signs: Signs::default(),
        issuer: Arc::new(Issuer::new(Arc::new(ca), config.certificate_days, inputs)),
        database: layout.database(),
        waits: Shares::new(config.waits, config.waits_per_user),
        readings: ReadingPlaces::new(config.accounting_readers),
        cell: cell.cell,
        host: cell.master_host.clone(),
        port: cell.port,
        last_connection: AtomicU64::new(0),
        config,
    };
    let queries = QueryQueues {
        questions: question_receiver,
        more: more_receiver,
        subscribers: subscriber_receiver,
    };
    (
        Arc::new(desk),
        Queues {
            inputs: input_receiver,
            to_reader,
            from_driver,
            queries,
        },
    )
}

/// What the threads begin with.
struct Start {
    disk: Disk,
    state: State,
    admitted: Arc<AdmittedSerials>,
    revoked: mpsc::UnboundedSender<quic::Serial>,
}

impl Threads {
    fn start(
        runtime: &Handle,
        layout: &Layout,
        desk: &Arc<Desk>,
        queues: Queues,
        Start {
            disk,
            state,
            admitted,
            revoked,
        }: Start,
    ) -> Result<Self, RunError> {
        let Queues {
            inputs,
            to_reader,
            from_driver,
            queries,
        } = queues;
        let clock = Clock::continue_from(state.now);
        let naming = naming(layout)?;
        let reader = reader(
            runtime,
            layout,
            desk,
            Model::new(state.clone(), statics(layout, desk, naming.clone(), clock)),
        )?;
        let on = runtime.clone();
        let reader = spawn("master-reader", move || reader.run(from_driver, queries, &on))?;
        let (to_scheduler, scheduler_inputs) = mpsc::unbounded_channel();
        let zone = crate::zone::local();
        let scheduler = SchedulerThread::new(
            state.clone(),
            zone.clone(),
            clock,
            desk.inputs.clone(),
            to_reader.clone(),
        );
        let on = runtime.clone();
        let scheduler = spawn("master-sched", move || scheduler.run(scheduler_inputs, &on))?;
        let verifiers = verifiers(runtime, layout, desk);
        let outlets = Outlets {
            verifiers: verifiers.clone(),
            reader: to_reader,
            scheduler: to_scheduler,
            joins: desk.joins.clone(),
            connections: desk.connections.clone(),
            slaves: desk.slaves.clone(),
            signs: desk.signs.clone(),
            admitted,
            issuer: desk.issuer.clone(),
            revoked,
        };
        let quarantine = Quarantine::read(layout.master("aborts"));
        quarantine.note_panics();
        let core = Core::new(state).at(master_host(desk, naming, zone));
        let driver = Driver::new(core, disk, clock, inputs, outlets, quarantine, runtime.clone())?;
        let (ended, driver_ended) = oneshot::channel::<()>();
        let driver = spawn(CORE_THREAD, move || {
            // Dropped when the thread ends, however that comes about.
            let _ended = ended;
            driver.run()
        })?;
        Ok(Self {
            driver,
            driver_ended,
            reader,
            scheduler,
            verifiers,
        })
    }
}

fn verifiers(runtime: &Handle, layout: &Layout, desk: &Desk) -> VerifierQueue {
    let (queue, work) = VerifierQueue::new(desk.inputs.clone(), layout.dir().to_owned());
    runtime.spawn(work);
    queue
}

/// How hosts are named. The files are read once: a change of them takes effect with the next start.
fn naming(layout: &Layout) -> Result<Naming, RunError> {
    let read = |name: &str, what: &'static str| match std::fs::read_to_string(layout.common(name)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(system(what)(error)),
    };
    let bootstrap = read("bootstrap", "read default/common/bootstrap")?;
    let naming = Naming::default().with_bootstrap(&bootstrap).map_err(|refusal| {
        let place = format!("{} {}", layout.common("bootstrap").display(), refusal.place);
        RunError::Bootstrap(Box::new(refusal.at(place)))
    })?;
    Ok(naming.with_aliases(&read("host_aliases", "read default/common/host_aliases")?))
}

fn master_host(desk: &Desk, naming: Naming, zone: Zone) -> MasterHost {
    let load = LoadLimits {
        values: desk.config.load_values,
        bytes: desk.config.load_value_bytes,
    };
    MasterHost {
        master_host: Some(desk.host.clone()),
        naming,
        load,
        users: desk.config.users,
        zone,
    }
}

fn statics(layout: &Layout, desk: &Desk, naming: Naming, clock: Clock) -> StaticFacts {
    let run_log = layout.common("schedd_runlog");
    StaticFacts {
        host: desk.host.to_string(),
        port: desk.port,
        naming,
        clock,
        zone: crate::zone::local(),
        run_log,
    }
}

fn reader(runtime: &Handle, layout: &Layout, desk: &Desk, model: Model) -> Result<Reader, RunError> {
    let store = Store::open(&layout.database())?;
    let (accounting, json_lines) = accounting_files(layout, desk, &store)?;
    let reporting = ReportingFile::new(layout.common("reporting"), desk.host.to_string(), &model.state);
    let schedule = ScheduleFile::new(layout.common("schedule"));
    let files = Files {
        accounting,
        json_lines,
        reporting,
        schedule,
    };
    // The unit of systemd names the relay; without it the master runs the mailer itself.
    let relay = std::env::var_os("GRIDWRIGHT_MAIL_SOCKET").map(Into::into);
    let (mails, mailing) = MailQueue::new(relay);
    runtime.spawn(mailing);
    let config = &desk.config;
    let snapshots = Snapshots::new(
        &model.state,
        config.snapshot_events,
        config.trim_log,
        desk.signs.clone(),
    );
    let followers = Followers::new(
        files,
        Mailer::new(TimeZone::system(), mails),
        Subscribers::new(config.event_queue),
        snapshots,
    );
    Ok(Reader::new(model, store, followers, desk.replies.clone()))
}

/// The accounting file, and the one of JSON lines if that is asked for.
fn accounting_files(
    layout: &Layout,
    desk: &Desk,
    store: &Store,
) -> Result<(AccountingFile, Option<AccountingFile>), RunError> {
    let rules = |format| AccountingFileRules {
        format,
        limits: desk.config.accounting_rotation,
    };
    let classic = AccountingFile::open(&layout.common("accounting"), rules(AccountingFormat::Classic), store)?;
    let path = layout.accounting("accounting.jsonl");
    let json_lines = desk
        .config
        .accounting_jsonl
        .then(|| AccountingFile::open_behind(&path, rules(AccountingFormat::JsonLines)));
    Ok((classic, json_lines.transpose()?))
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, RunError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(system("start a thread"))
}

/// SIGHUP, which ends a process that does not wait for it: also while it replays a long log.
fn hangup(runtime: &Runtime) -> Result<Signal, RunError> {
    let _inside = runtime.enter();
    signal(SignalKind::hangup()).map_err(system("wait for signals"))
}

/// Opens the log anew at each SIGHUP.
async fn reopen_log(mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        logging::reopen();
    }
}

/// Closes what is open with revoked certificates. The admission knows of the revocation before the
/// serial comes here.
async fn revoke(server: Arc<Server>, mut revocations: mpsc::UnboundedReceiver<quic::Serial>) {
    while let Some(serial) = revocations.recv().await {
        let closed = server.revoke(serial);
        tracing::info!("certificate {serial} is revoked, {closed} connections closed");
    }
}
