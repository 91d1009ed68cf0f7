//! A cell of one host: certificates, a state directory, a master on a free port, and the agent's
//! process.

use proto::id::{CellId, Epoch, HostName, JobNumber, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec, Owner, Program, Requests, Validation};
use proto::load::LoadReport;
use proto::time::Wall;
use proto::wire::agent::{
    AgentConfig, AgentHello, AgentMessage, MasterMessage, MasterWelcome, PROTOCOL_VERSION, QueueExecution, StartOrder,
    TaskReport,
};
use proto::wire::frame::Kind;
use quic::{
    AcceptedConnection, Admission, ClusterCa, Connection, Credentials, DEFAULT_VALIDITY_S, FrameLimits, HostKey,
    Server, ServerLimits, StreamReceiver, StreamSender, TicketKeys, Verdict,
};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// No test waits longer than this for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The cell of all tests.
pub(crate) const CELL: CellId = CellId(0xce11);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Waits for what must happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("{what} never came"))
}

fn wall_now() -> Wall {
    Wall(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
            .try_into()
            .unwrap(),
    )
}

/// The state directory of one test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let name = format!(
            "gridwright-agent-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        for below in ["etc", "agent", "run/launcher", "run/master", "tasks"] {
            std::fs::create_dir_all(path.join(below)).unwrap();
        }
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A cell with its CA and master.
pub(crate) struct Cell {
    pub(crate) directory: Directory,
    pub(crate) server: Server,
    pub(crate) ca: ClusterCa,
}

impl Cell {
    pub(crate) fn new() -> Self {
        Self::with_host_certificate_from(wall_now())
    }

    /// A cell whose host got its certificate then.
    pub(crate) fn with_host_certificate_from(then: Wall) -> Self {
        let directory = Directory::new();
        let ca = ClusterCa::create(CELL, wall_now()).unwrap();
        let trusted = ca.certificate().to_pem();
        let (key, host_key) = (HostKey::generate().unwrap(), HostKey::generate().unwrap());
        let csr = key.csr_pem().unwrap();
        let served = ca
            .sign_master_csr(&csr, &HostName::new("master"), wall_now(), DEFAULT_VALIDITY_S)
            .unwrap();
        let credentials = Credentials::from_pem(&served, &key.to_pem(), &trusted).unwrap();
        let csr = host_key.csr_pem().unwrap();
        let host = ca
            .sign_csr(&csr, &HostName::new("node1"), then, DEFAULT_VALIDITY_S)
            .unwrap();
        let admission: Admission = Arc::new(|_| Verdict::Admit);
        let tickets = TicketKeys::generate(wall_now()).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(listen, &credentials, tickets, ServerLimits::default(), admission).unwrap();
        let port = server.local_addr().unwrap().port();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("agent/ca.crt", &trusted);
        write("agent/host.crt", &host);
        write("agent/host.key", &host_key.to_pem());
        write(
            "etc/agent.toml",
            &format!("host = \"node1\"\nmaster_host = \"127.0.0.1\"\nport = {port}\n"),
        );
        Self { directory, server, ca }
    }

    /// A new certificate for a host's request.
    pub(crate) fn sign(&self, csr: &str) -> String {
        self.sign_for(csr, &HostName::new("node1"))
    }

    pub(crate) fn sign_for(&self, csr: &str, host: &HostName) -> String {
        self.ca.sign_csr(csr, host, wall_now(), DEFAULT_VALIDITY_S).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the agent; sensors run as whoever runs the tests.
    pub(crate) fn start_agent(&self) -> Agent {
        let uid = nix::unistd::getuid().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gridwright-agent"));
        command.args(["run", "--sensor-user", &uid, "--dir"]).arg(self.path());
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path().join("agent.log"))
            .unwrap();
        Agent(command.stdin(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// The next host that connects and says hello, still without an answer.
    pub(crate) async fn accept(&self) -> (AgentHello, Host) {
        soon("a connection of the agent", async {
            let Some(AcceptedConnection::Host(connection)) = self.server.accept().await else {
                panic!("a host was expected")
            };
            let (sender, mut receiver) = connection.accept_bi(FrameLimits::CONTROL).await.unwrap();
            let frame = receiver.recv().await.unwrap().unwrap();
            assert_eq!(frame.kind, Kind::Hello);
            (
                frame.message().unwrap(),
                Host {
                    connection,
                    sender,
                    receiver,
                },
            )
        })
        .await
    }

    /// The next host, welcomed with this configuration.
    pub(crate) async fn welcome(&self, config: AgentConfig) -> (AgentHello, Host) {
        let (hello, mut host) = self.accept().await;
        let welcome = MasterWelcome {
            version: PROTOCOL_VERSION,
            software: "test".to_owned(),
            cell: CELL,
            epoch: Epoch(1),
            config,
            wall_ms: wall_now().0,
        };
        host.sender.send(Kind::Hello, 0, &welcome).await.unwrap();
        (hello, host)
    }
}

/// The agent's process; killed when dropped.
pub(crate) struct Agent(pub(crate) Child);

impl Agent {
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.0.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Waits for the end of the process and gives its exit code.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        let waited = tokio::task::spawn_blocking(move || self.0.wait().unwrap().code());
        soon("the end of the agent", waited).await.unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The master's end of a host's connection.
pub(crate) struct Host {
    pub(crate) connection: Connection,
    pub(crate) sender: StreamSender,
    pub(crate) receiver: StreamReceiver,
}

impl Host {
    pub(crate) async fn say(&mut self, message: MasterMessage) {
        self.sender.send(Kind::Control, 0, &message).await.unwrap();
    }

    /// The next news of a task.
    pub(crate) async fn task_report(&mut self) -> TaskReport {
        loop {
            if let AgentMessage::Task(report) = self.message().await {
                return report;
            }
        }
    }

    pub(crate) async fn message(&mut self) -> AgentMessage {
        let frame = soon("a message of the agent", self.receiver.recv())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(frame.kind, Kind::Control);
        frame.message().unwrap()
    }

    pub(crate) async fn load_report(&self) -> LoadReport {
        soon("a load report", async {
            let mut stream = self.connection.accept_uni(FrameLimits::REPORT).await.unwrap();
            stream.recv().await.unwrap().unwrap().message().unwrap()
        })
        .await
    }
}

/// A configuration that reports often.
pub(crate) fn often() -> AgentConfig {
    AgentConfig {
        report_interval_ms: 200,
        ..AgentConfig::default()
    }
}

pub(crate) fn key(seq: u64) -> TaskKey {
    TaskKey {
        cell: CELL,
        seq: SubmitSeq(seq),
        task: TaskId(1),
        pe_task: 0,
        attempt: 1,
    }
}

/// The description of job `seq` and the order to start it.
pub(crate) fn job(seq: u64) -> [MasterMessage; 2] {
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: HostName::new("node1"),
    };
    let order = StartOrder {
        key: key(seq),
        number: JobNumber(7),
        array: None,
        granted: vec![GrantedSlots { instance, slots: 1 }],
        pe: None,
        control_slaves: false,
        pe_start: None,
        pe_stop: None,
        limits: Default::default(),
        queue: QueueExecution {
            tmpdir: "/tmp".to_owned(),
            shell: "/bin/sh".to_owned(),
            ..Default::default()
        }
        .into(),
        restarted: 0,
        maps: Vec::new(),
        binding: Vec::new(),
        devices: None,
        container: None,
        checkpoint: None,
        slave: None,
    };
    let describe = MasterMessage::Describe {
        job: SubmitSeq(seq),
        spec: Arc::new(spec()),
    };
    [describe, MasterMessage::Start(Box::new(order))]
}

fn spec() -> JobSpec {
    JobSpec {
        name: "job.sh".to_owned(),
        program: Program::Script {
            path: "job.sh".to_owned(),
            content: (*b"#!/bin/sh\n").into(),
        },
        args: vec![],
        owner: Owner {
            user: "u1".into(),
            uid: 2001,
            gid: 2001,
            group: "u1".to_owned(),
            groups: vec![],
        }
        .into(),
        submit_host: HostName::new("login"),
        submit_directory: "/home/u1".to_owned(),
        directory: None,
        directory_on: Vec::new(),
        stdout: vec![],
        stderr: vec![],
        stdin: vec![],
        merge_stderr: false,
        shell: vec![],
        use_shell: None,
        environment: Vec::new().into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Requests::default().into(),
        array: None,
        task_concurrency: None,
        holds: Default::default(),
        predecessors: vec![],
        array_predecessors: vec![],
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: vec![],
        context: vec![],
        validation: Validation::None,
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}
