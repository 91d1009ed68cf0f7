//! Many hosts without agents: certificates of the master, a connection and a hello for each, and
//! nothing else.

use crate::talk::Talk;
use proto::cell_version::CellVersion;
use proto::id::{Epoch, HostName, RequestId};
use proto::wire::agent::{AgentHello, PROTOCOL_VERSION};
use proto::wire::client::{ClientMessage, Command};
use proto::wire::frame::Kind;
use proto::wire::view::{Data, IssuedCertificate};
use quic::{Client, Connection, Credentials, FrameLimits, MasterAddress};
use std::path::Path;

/// A connected host. Its control stream is kept open.
pub struct Host {
    /// Its name.
    pub name: HostName,
    /// Its connection.
    pub connection: Connection,
    _control: (quic::StreamSender, quic::StreamReceiver),
}

/// Connects `count` hosts to the master of the cell in `dir`.
pub async fn connect(dir: &Path, count: u32) -> Vec<Host> {
    let command = Command::SimulatedHosts { count, slots: None };
    let request = ClientMessage::Change {
        id: RequestId(u128::from(std::process::id())),
        command,
    };
    let replies = Talk::open(dir).await.ask(&request).await.expect("the master answers");
    let issued = replies.into_iter().filter_map(|reply| match reply.data {
        Some(Data::Certificates(issued)) => Some(issued),
        _ => None,
    });
    let ca = std::fs::read_to_string(dir.join("agent/ca.crt")).expect("the agent has the CA's certificate");
    let master = MasterAddress {
        host: "127.0.0.1".to_owned(),
        port: port(dir),
    };
    let mut hosts = Vec::new();
    for certificate in issued.flatten() {
        hosts.push(connect_one(certificate, &ca, &master).await);
    }
    hosts
}

async fn connect_one(certificate: IssuedCertificate, ca: &str, master: &MasterAddress) -> Host {
    let credentials = Credentials::from_pem(&certificate.certificate, &certificate.key, ca).expect("the master's own");
    let connection = Client::new(&credentials)
        .expect("a socket")
        .connect(master)
        .await
        .expect("the master answers");
    let (mut sender, mut receiver) = connection
        .open_bi(FrameLimits::CONTROL)
        .await
        .expect("a control stream");
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        cell_version: CellVersion::NEWEST,
        software: "bench".to_owned(),
        host: certificate.host.clone(),
        instance: 1,
        epoch: Epoch::default(),
        tasks: Vec::new(),
        wall_ms: 0,
        takes_tickets: true,
        binds_cores: true,
        boot_ms: 0,
        marks: Vec::new(),
    };
    sender.send(Kind::Hello, 0, &hello).await.expect("the hello is sent");
    receiver.recv().await.expect("the hello is answered");
    Host {
        name: certificate.host,
        connection,
        _control: (sender, receiver),
    }
}

/// The port that the master serves, as its log says.
fn port(dir: &Path) -> u16 {
    let log = std::fs::read_to_string(dir.join("log/master.log")).unwrap_or_default();
    let place = log
        .lines()
        .rev()
        .find_map(|line| line.split(" serves udp ").nth(1))
        .expect("the log names the port");
    let port = place
        .split_whitespace()
        .next()
        .and_then(|place| place.rsplit(':').next()?.parse().ok());
    port.expect("an address ends in a port")
}
