//! Simulated hosts: certificates from the master's socket, a connection each, and jobs that are
//! only pretended.

use crate::cell::{Agent, Cell, Host, job, key, often, soon};
use nix::sys::signal::Signal;
use proto::id::HostName;
use proto::wire::agent::{AgentHello, TaskReportState};
use proto::wire::client::{Answer, ClientMessage, Command, Reply};
use proto::wire::frame::Kind;
use proto::wire::view::{Data, IssuedCertificate};
use quic::{FrameLimits, FrameReceiver, FrameSender, HostKey};
use std::collections::BTreeMap;
use std::process::Stdio;
use tokio::net::UnixListener;

const HOSTS: u32 = 20;

fn start(cell: &Cell) -> Agent {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gridwright-agent"));
    std::fs::write(cell.path().join("load"), "load_avg=0.25\nlic=7\n").unwrap();
    command
        .args(["sim", "--count", &HOSTS.to_string(), "--slots", "3", "--dir"])
        .arg(cell.path());
    command.arg("--load").arg(cell.path().join("load"));
    let log = std::fs::File::create(cell.path().join("sim.log")).unwrap();
    Agent(command.stdin(Stdio::null()).stderr(log).spawn().unwrap())
}

/// Answers one request on the master's socket with certificates.
async fn issue(cell: &Cell, listener: &UnixListener) {
    let (stream, _) = soon("a request for certificates", listener.accept()).await.unwrap();
    let (reader, writer) = stream.into_split();
    let mut receiver = FrameReceiver::new(reader, FrameLimits::REQUEST);
    assert_eq!(receiver.recv().await.unwrap().unwrap().kind, Kind::Hello);
    let frame = receiver.recv().await.unwrap().unwrap();
    let ClientMessage::Change { command, .. } = frame.message().unwrap() else {
        panic!("a change was expected")
    };
    assert_eq!(
        command,
        Command::SimulatedHosts {
            count: HOSTS,
            slots: Some(3)
        }
    );
    let issued = (1..=HOSTS).map(|number| {
        let (key, host) = (HostKey::generate().unwrap(), HostName::new(&format!("sim{number:04}")));
        let certificate = cell.sign_for(&key.csr_pem().unwrap(), &host);
        IssuedCertificate {
            host,
            certificate,
            key: key.to_pem(),
        }
    });
    let data = Some(Data::Certificates(issued.collect()));
    let reply = Reply {
        more: false,
        answers: vec![Answer::Done("issued".to_owned())],
        data,
    };
    FrameSender::new(writer, FrameLimits::REPLY)
        .send(Kind::Reply, frame.id, &reply)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_hosts_connect_report_and_pretend_to_run_a_job() {
    let cell = Cell::new();
    let listener = UnixListener::bind(cell.path().join("run/master/master.sock")).unwrap();
    let simulated = start(&cell);
    issue(&cell, &listener).await;
    let mut hosts: BTreeMap<HostName, Host> = BTreeMap::new();
    for _ in 0..HOSTS {
        let (AgentHello { host, .. }, end): (AgentHello, Host) = cell.welcome(often()).await;
        hosts.insert(host, end);
    }
    assert_eq!(hosts.len(), 20);
    let host = hosts.get_mut("sim0020").unwrap();
    let report = host.load_report().await;
    assert!(report.full);
    assert_eq!(
        (
            report.values["sim0020"]["load_avg"].as_str(),
            report.values["sim0020"]["lic"].as_str()
        ),
        ("0.25", "7")
    );
    assert!(report.values["sim0020"].contains_key("mem_total"), "{report:?}");
    for message in job(1) {
        host.say(message).await;
    }
    let mut state = TaskReportState::Unknown;
    while !matches!(state, TaskReportState::Ended(_)) {
        let report = host.task_report().await;
        assert_eq!(report.key, key(1));
        state = report.state;
    }
    let TaskReportState::Ended(end) = state else {
        unreachable!("the loop ended with it")
    };
    assert_eq!(end.exit.status(), 0);
    assert!(end.wallclock_ms >= 1000, "{end:?}");
    simulated.signal(Signal::SIGTERM);
    assert_eq!(simulated.ended().await, Some(0));
}
