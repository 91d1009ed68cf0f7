//! A cell in a temporary directory with its master, and an agent that is no more than a connection.

use proto::cell_version::CellVersion;
use proto::diagnostic::Diagnostic;
use proto::id::{Epoch, HostName, JobNumber, RequestId, UserName};
use proto::job::{JobSpec, Owner, Program, Requests, Validation};
use proto::load::LoadReport;
use proto::request::TaskRange;
use proto::usage::{Exit, FailedCode, Rusage, TaskResult, Usage};
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage, MasterWelcome, PROTOCOL_VERSION, Vouch};
use proto::wire::client::{ClientHello, ClientMessage, Command, Query, Reply};
use proto::wire::frame::{Frame, Kind};
use proto::wire::view::{CellStatus, Data};
use quic::{Client, Connection, Credentials, FrameLimits, MasterAddress, StreamReceiver, StreamSender, blocking};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);

const LIMIT: usize = 64 << 20;

const MASTER: &str = env!("CARGO_BIN_EXE_gridwright-master");

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A cell whose master runs.
pub struct Cell {
    top: PathBuf,
    dir: PathBuf,
    port: u16,
    master: Child,
}

impl Cell {
    pub fn new() -> Self {
        Self::in_directory("cell")
    }

    /// A cell in a directory of that name.
    pub fn in_directory(name: &str) -> Self {
        Self::make(name, "")
    }

    /// A cell with these lines in `etc/master.toml`.
    pub fn with_settings(lines: &str) -> Self {
        Self::make("cell", lines)
    }

    fn make(name: &str, settings: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("gridwright-daemon-{}-{count}", std::process::id()));
        let dir = top.join(name);
        let port = std::net::UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let made = command(
            &dir,
            "init",
            &["--port", &port.to_string(), "--slots", "4", "--host", "node1"],
        );
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let file = dir.join("etc/master.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}\n{settings}\n")).unwrap();
        let master = start(&dir);
        Self { top, dir, port, master }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn kill_and_restart(&mut self) {
        self.master.kill().unwrap();
        self.master.wait().unwrap();
        let _ = std::fs::remove_file(self.path("run/master/ready"));
        self.master = start(&self.dir);
    }

    /// Ends the master as a service manager does, and waits for it.
    pub fn terminate(&self) {
        let pid = nix::unistd::Pid::from_raw(self.master.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        wait_until("the lock is free", || {
            let lock = std::fs::File::open(self.path("run/master/lock")).unwrap();
            nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusiveNonblock).is_ok()
        });
    }

    pub fn check(&self) -> String {
        let output = command(&self.dir, "check", &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What another master in the same directory says.
    pub fn second_master(&self) -> String {
        let output = command(&self.dir, "run", &[]);
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn accounting_lines(&self) -> usize {
        std::fs::read_to_string(self.path("default/common/accounting"))
            .unwrap()
            .lines()
            .count()
    }

    pub fn status(&self) -> CellStatus {
        match self.query(Query::Status).data {
            Some(Data::Status(status)) => *status,
            other => panic!("no status: {other:?}"),
        }
    }

    pub fn query(&self, query: Query) -> Reply {
        let mut stream = self.connect();
        ask(&mut stream, 1, &ClientMessage::Query(query))
    }

    /// The refusal of a frame that is no request; the connection goes on.
    pub fn send_garbage_then_status(&self) -> Diagnostic {
        let mut stream = self.connect();
        blocking::send(&mut stream, Kind::Request, 1, &"nonsense", LIMIT).unwrap();
        let refusal = blocking::recv(&mut stream, LIMIT).unwrap().unwrap();
        assert_eq!((refusal.kind, refusal.id), (Kind::Refusal, 1));
        let reply = ask(&mut stream, 2, &ClientMessage::Query(Query::Status));
        assert!(matches!(reply.data, Some(Data::Status(_))));
        refusal.message().unwrap()
    }

    /// A command that has said hello and nothing more.
    pub fn connect(&self) -> UnixStream {
        let mut stream = self.connect_silently();
        let hello = ClientHello {
            version: PROTOCOL_VERSION,
            program: "test".to_owned(),
            task: None,
        };
        // A refusal may have been faster.
        let _ = blocking::send(&mut stream, Kind::Hello, 0, &hello, LIMIT);
        stream
    }

    /// A connection without a word.
    pub fn connect_silently(&self) -> UnixStream {
        let run = std::fs::File::open(self.path("run/master")).unwrap();
        let stream = UnixStream::connect(format!("/proc/self/fd/{}/master.sock", run.as_raw_fd())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let _ = self.master.kill();
        let _ = self.master.wait();
        let _ = std::fs::remove_dir_all(&self.top);
    }
}

/// Asks without waiting for the answer.
pub fn begin(stream: &mut UnixStream, query: Query) {
    blocking::send(stream, Kind::Request, 1, &ClientMessage::Query(query), LIMIT).unwrap();
}

/// The next reply, or the refusal in its place.
pub fn reply(stream: &mut UnixStream) -> Result<Reply, Diagnostic> {
    let frame = blocking::recv(stream, LIMIT).unwrap().unwrap();
    match frame.kind {
        Kind::Refusal => Err(frame.message().unwrap()),
        _ => Ok(frame.message().unwrap()),
    }
}

fn ask(stream: &mut UnixStream, id: u64, message: &ClientMessage) -> Reply {
    blocking::send(stream, Kind::Request, id, message, LIMIT).unwrap();
    let frame = blocking::recv(stream, LIMIT).unwrap().unwrap();
    assert_eq!((frame.kind, frame.id), (Kind::Reply, id));
    frame.message().unwrap()
}

fn command(dir: &Path, subcommand: &str, args: &[&str]) -> Output {
    std::process::Command::new(MASTER)
        .arg(subcommand)
        .arg("--dir")
        .arg(dir)
        .args(args)
        .output()
        .unwrap()
}

fn start(dir: &Path) -> Child {
    let log = std::fs::File::create(dir.join("log/master.log")).unwrap();
    let child = std::process::Command::new(MASTER)
        .args(["run", "--dir"])
        .arg(dir)
        .stderr(log)
        .spawn()
        .unwrap();
    wait_until("the master is ready", || dir.join("run/master/ready").exists());
    child
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not within {} s: {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The agent of the first host, as far as the master sees it.
pub struct Agent {
    connection: Connection,
    sender: StreamSender,
    receiver: StreamReceiver,
    reports: u64,
    _client: Client,
}

impl Agent {
    /// Connects, says hello, and is welcomed.
    pub async fn connect(cell: &Cell) -> Self {
        let pem = |name: &str| std::fs::read_to_string(cell.path("agent").join(name)).unwrap();
        let credentials = Credentials::from_pem(&pem("host.crt"), &pem("host.key"), &pem("ca.crt")).unwrap();
        let client = Client::new(&credentials).unwrap();
        let master = MasterAddress {
            host: "127.0.0.1".to_owned(),
            port: cell.port,
        };
        let connection = client.connect(&master).await.unwrap();
        let (mut sender, mut receiver) = connection.open_bi(FrameLimits::CONTROL).await.unwrap();
        let hello = AgentHello {
            version: PROTOCOL_VERSION,
            cell_version: CellVersion::NEWEST,
            software: "test".to_owned(),
            host: HostName::new("node1"),
            instance: 1,
            epoch: Epoch(0),
            tasks: Vec::new(),
            wall_ms: 0,
            takes_tickets: true,
            binds_cores: true,
            boot_ms: 0,
            marks: Vec::new(),
        };
        sender.send(Kind::Hello, 0, &hello).await.unwrap();
        let frame = next(&mut receiver).await;
        assert_eq!(frame.kind, Kind::Hello, "{:?}", frame.message::<Diagnostic>());
        let welcome: MasterWelcome = frame.message().unwrap();
        assert_eq!(welcome.config.report_interval_ms, 5_000);
        Self {
            connection,
            sender,
            receiver,
            reports: 0,
            _client: client,
        }
    }

    pub async fn report_load(&mut self) {
        self.reports += 1;
        let values = [
            ("num_proc", "4"),
            ("load_avg", "0.01"),
            ("np_load_avg", "0.01"),
            ("arch", "lx-amd64"),
        ];
        let values = values
            .into_iter()
            .map(|(name, value)| (name.into(), value.to_owned()))
            .collect();
        let report = LoadReport {
            sequence: self.reports,
            full: true,
            values: [(HostName::new("node1"), values)].into(),
            ..LoadReport::default()
        };
        self.connection.send_report(Kind::Load, 0, &report).await.unwrap();
    }

    pub async fn say(&mut self, message: AgentMessage) {
        self.sender.send(Kind::Control, 0, &message).await.unwrap();
    }

    pub async fn message(&mut self) -> MasterMessage {
        let frame = next(&mut self.receiver).await;
        assert_eq!(frame.kind, Kind::Control, "{:?}", frame.message::<Diagnostic>());
        frame.message().unwrap()
    }

    /// Submits a job for a user of this host.
    pub async fn submit(&mut self, spec: JobSpec) -> JobNumber {
        let id = u128::from(u64::from_ne_bytes(*b"random!!")) + u128::from(self.reports) + random();
        match self.change(id, Command::Submit(Box::new(spec))).await {
            Reply {
                data: Some(Data::Submitted { number, .. }),
                ..
            } => number,
            other => panic!("not submitted: {other:?}"),
        }
    }

    /// Sends a change on a stream of its own, for a user of this host.
    pub async fn change(&mut self, id: u128, command: Command) -> Reply {
        self.request(
            "alice",
            ClientMessage::Change {
                id: RequestId(id),
                command,
            },
        )
        .await
    }

    /// Asks for a user of this host.
    pub async fn ask(&mut self, user: &str, query: Query) -> Reply {
        self.request(user, ClientMessage::Query(query)).await
    }

    async fn request(&mut self, user: &str, message: ClientMessage) -> Reply {
        let (mut sender, mut receiver) = self.connection.open_bi(FrameLimits::REPLY).await.unwrap();
        let owner = Owner {
            user: UserName::from(user),
            ..owner()
        };
        sender.send(Kind::Hello, 0, &Vouch { owner, task: None }).await.unwrap();
        sender.send(Kind::Request, 5, &message).await.unwrap();
        let frame = next(&mut receiver).await;
        assert_eq!(
            (frame.kind, frame.id),
            (Kind::Reply, 5),
            "{:?}",
            frame.message::<Diagnostic>()
        );
        frame.message().unwrap()
    }
}

async fn next(receiver: &mut StreamReceiver) -> Frame {
    tokio::time::timeout(PATIENCE, receiver.recv())
        .await
        .unwrap()
        .unwrap()
        .unwrap()
}

fn random() -> u128 {
    Instant::now().elapsed().as_nanos() + std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos()
}

fn owner() -> Owner {
    Owner {
        user: UserName::from("alice"),
        uid: 5000,
        gid: 5000,
        group: "users".to_owned(),
        groups: Vec::new(),
    }
}

/// A job that runs `true`.
pub fn job(name: &str, tasks: Option<&str>) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        program: Program::Script {
            path: "job.sh".to_owned(),
            content: Arc::from(*b"#!/bin/sh\ntrue\n"),
        },
        args: Vec::new(),
        owner: owner().into(),
        submit_host: HostName::new("node1"),
        submit_directory: "/".to_owned(),
        directory: None,
        directory_on: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdin: Vec::new(),
        merge_stderr: false,
        shell: Vec::new(),
        use_shell: None,
        environment: Vec::new().into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Requests::default().into(),
        array: tasks.map(|text| TaskRange::parse(text).unwrap()),
        task_concurrency: None,
        holds: Default::default(),
        predecessors: Vec::new(),
        array_predecessors: Vec::new(),
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: Vec::new(),
        context: Vec::new(),
        validation: Validation::None,
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}

/// The result of a task that did what it should.
pub fn success() -> TaskResult {
    TaskResult {
        exit: Exit::Code(0),
        failed: FailedCode::NO,
        reason: String::new(),
        wallclock_ms: 10,
        ended_ago_ms: 0,
        usage: Usage::default(),
        rusage: Rusage::default(),
        limit: None,
        refused_limits: Vec::new(),
        saved_pid: None,
        blame: Default::default(),
    }
}
