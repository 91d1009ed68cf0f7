//! Enrolment with a token, and what is said when it is refused.

use crate::cell::{CELL, Cell, Directory, soon};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::frame::Kind;
use proto::wire::join::{JoinReply, JoinRequest};
use quic::{AcceptedConnection, Credentials, JoinToken};
use std::path::Path;
use std::process::Output;

async fn join(master: String, token: String, dir: &Path) -> Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_gridwright-agent"));
    command
        .args(["join", &master, &token, "--host", "Node7", "--dir"])
        .arg(dir);
    soon("the end of join", command.output()).await.unwrap()
}

fn address(cell: &Cell) -> String {
    format!("127.0.0.1:{}", cell.server.local_addr().unwrap().port())
}

/// Answers one enrolment.
async fn answer(cell: &Cell, refusal: Option<Diagnostic>) -> JoinRequest {
    let Some(AcceptedConnection::Join(connection)) = soon("an enrolment", cell.server.accept()).await else {
        panic!("an enrolment was expected")
    };
    let (mut sender, mut receiver) = connection.accept().await.unwrap();
    let frame = receiver.recv().await.unwrap().unwrap();
    let request: JoinRequest = frame.message().unwrap();
    match refusal {
        Some(refusal) => sender.send(Kind::Refusal, frame.id, &refusal).await.unwrap(),
        None => {
            let reply = JoinReply {
                certificate: cell.sign_for(&request.csr, &request.host),
                ca: cell.ca.certificate().to_pem(),
                cell: CELL,
                master_host: HostName::new("master"),
            };
            sender.send(Kind::Reply, frame.id, &reply).await.unwrap();
        }
    }
    sender.finish().await.unwrap();
    connection.closed().await;
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_joins_and_has_what_its_agent_needs() {
    let (cell, home) = (Cell::new(), Directory::new());
    let token = JoinToken::generate(CELL, cell.ca.certificate().fingerprint())
        .unwrap()
        .to_string();
    let dir = home.path().join("new");
    let (output, request) = tokio::join!(join(address(&cell), token.clone(), &dir), answer(&cell, None));
    assert!(output.status.success(), "{output:?}");
    assert_eq!((request.host.as_str(), request.token), ("node7", token));
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let credentials =
        Credentials::from_pem(&text("agent/host.crt"), &text("agent/host.key"), &text("agent/ca.crt")).unwrap();
    assert_eq!(credentials.identity().host.as_str(), "node7");
    assert!(text("etc/agent.toml").contains("master_host = \"127.0.0.1\""));
    assert!(text("etc/cell.toml").contains("cell = \"000000000000ce11\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_and_a_silent_master_are_told_with_the_remedy() {
    let (cell, home) = (Cell::new(), Directory::new());
    let token = JoinToken::generate(CELL, cell.ca.certificate().fingerprint())
        .unwrap()
        .to_string();
    let used = Diagnostic::new(Code::BadToken, "the join token is used up");
    let (output, _) = tokio::join!(
        join(address(&cell), token.clone(), home.path()),
        answer(&cell, Some(used))
    );
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("used up") && said(&output).contains("gridwright token create"),
        "{output:?}"
    );
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    let output = join(nowhere, token, home.path()).await;
    assert!(
        said(&output).contains("firewall?") && said(&output).contains("fix:"),
        "{output:?}"
    );
    let output = join(address(&cell), "gwj-mistyped".to_owned(), home.path()).await;
    assert_eq!(output.status.code(), Some(1));
}
