//! Two endpoints on loopback, and what must not get through.

mod cell;
mod hostile;

use crate::*;
use cell::{Cell, echo, host_of, refusal};
use proto::wire::frame::Kind;
use std::net::UdpSocket;
use std::time::Duration;

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn host_and_master_know_each_other_and_exchange_frames() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("Node1")).unwrap();
    let (near, far) = cell.connect(&client).await;
    assert_eq!(
        (near.peer().host.as_str(), far.peer().host.as_str()),
        ("master", "node1")
    );
    assert_eq!(near.peer().cell, far.peer().cell);
    assert!(near.clock_offset_ms().unwrap().abs() < 60_000);
    echo(&near, &far).await;
    near.send_report(Kind::Load, 9, &("load_avg", 3)).await.unwrap();
    let mut report = far.accept_uni(FrameLimits::REPORT).await.unwrap();
    assert_eq!(report.recv().await.unwrap().unwrap().id, 9);
    assert_eq!(report.recv().await.unwrap(), None);
    near.close(CloseCode::Done, "bye");
    assert_eq!(
        far.closed().await,
        ConnectionEnd::ByPeer {
            code: Some(CloseCode::Done),
            reason: "bye".to_owned()
        }
    );
    assert_eq!(near.closed().await, ConnectionEnd::Here);
}

#[tokio::test]
async fn streams_keep_a_connection_open_and_the_last_one_closes_it() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1")).unwrap();
    let (near, far) = cell.connect(&client).await;
    let (mut sender, receiver) = near.open_bi(FrameLimits::CONTROL).await.unwrap();
    drop(near);
    sender.send(Kind::Control, 1, &"still here").await.unwrap();
    let (_back, mut control) = far.accept_bi(FrameLimits::CONTROL).await.unwrap();
    assert_eq!(control.recv().await.unwrap().unwrap().id, 1);
    drop((sender, receiver));
    assert!(matches!(far.closed().await, ConnectionEnd::ByPeer { .. }));
}

#[tokio::test]
async fn revoking_closes_open_connections_and_refuses_resumed_ones() {
    let cell = Cell::start();
    let credentials = cell.host("node1");
    let client = Client::new(&credentials).unwrap();
    let (near, far) = cell.connect(&client).await;
    echo(&near, &far).await;
    near.close(CloseCode::Done, "");
    far.closed().await;
    let (near, far) = cell.connect(&client).await;
    assert_eq!(cell.tickets.resumed_count(), 1);
    assert_eq!(far.peer(), credentials.identity());
    cell.revoke(credentials.identity().serial);
    assert!(matches!(
        near.closed().await,
        ConnectionEnd::ByPeer {
            code: Some(CloseCode::Revoked),
            ..
        }
    ));
    let error = refusal(client.connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::Revoked { .. }), "{error}");
    assert_eq!(cell.tickets.resumed_count(), 2);
}

#[tokio::test]
async fn a_certificate_may_be_late_by_ninety_days_but_not_more() {
    let cell = Cell::start();
    let late = cell.host_issued_days_ago("node1", 375);
    assert!(late.identity().needs_renewal(cell.now));
    let (_near, far) = cell.connect(&Client::new(&late).unwrap()).await;
    assert_eq!(far.peer().not_after, late.identity().not_after);
    let too_late = Client::new(&cell.host_issued_days_ago("node2", 365 + 91)).unwrap();
    let error = refusal(too_late.connect(&cell.address()).await);
    assert!(
        matches!(&error, ConnectError::OutOfTime { why } if why.contains("the master's clock shows")),
        "{error}"
    );
    let early = Client::new(&cell.host_issued_days_ago("node3", -2)).unwrap();
    assert!(matches!(
        early.connect(&cell.address()).await,
        Err(ConnectError::OutOfTime { .. })
    ));
}

#[tokio::test]
async fn a_master_with_an_old_certificate_is_told_from_a_wrong_clock() {
    let cell = Cell::start_with(|cell| cell.master_issued_days_ago(400));
    let error = refusal(Client::new(&cell.host("node1")).unwrap().connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::MasterOutOfTime { .. }), "{error}");
    assert!(error.diagnostic().fix.contains("restart the master"));
}

#[tokio::test]
async fn the_master_renews_its_certificate_without_closing_connections() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1")).unwrap();
    let (near, far) = cell.connect(&client).await;
    let renewed = cell.master_issued_days_ago(0);
    cell.server.replace_credentials(&renewed).unwrap();
    echo(&near, &far).await;
    let fresh = Client::new(&cell.host("node2")).unwrap();
    let (second, _far) = cell.connect(&fresh).await;
    assert_eq!(second.peer().serial, renewed.identity().serial);
}

#[tokio::test]
async fn a_host_that_reconnects_replaces_its_oldest_connections() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1")).unwrap();
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(cell.connect(&client).await);
    }
    assert!(matches!(
        open[0].0.closed().await,
        ConnectionEnd::ByPeer {
            code: Some(CloseCode::Replaced),
            ..
        }
    ));
    echo(&open[1].0, &open[1].1).await;
    echo(&open[4].0, &open[4].1).await;
}

#[tokio::test]
async fn a_host_joins_by_the_fingerprint_in_its_token_and_is_then_admitted() {
    let cell = Cell::start();
    let token = JoinToken::generate(cell.id, cell.ca.certificate().fingerprint()).unwrap();
    let host = async {
        let join = Client::join(&cell.address(), token.ca_fingerprint(), PATIENCE)
            .await
            .unwrap();
        let key = HostKey::generate().unwrap();
        let (mut sender, mut receiver) = join.open().await.unwrap();
        sender
            .send(Kind::Request, 1, &(token.to_string(), key.csr_pem().unwrap()))
            .await
            .unwrap();
        let certificate: String = receiver.recv().await.unwrap().unwrap().message().unwrap();
        join.close(CloseCode::Done, "joined");
        Credentials::from_pem(&certificate, &key.to_pem(), &join.ca().to_pem()).unwrap()
    };
    let master = async {
        let Some(AcceptedConnection::Join(join)) = cell.server.accept().await else {
            panic!("a join was expected")
        };
        let (mut sender, mut receiver) = join.accept().await.unwrap();
        let (shown, csr): (String, String) = receiver.recv().await.unwrap().unwrap().message().unwrap();
        assert_eq!(shown.parse::<JoinToken>().unwrap().hash(), token.hash());
        sender.send(Kind::Reply, 1, &cell.sign(&csr, "node7")).await.unwrap();
        join.closed().await
    };
    let (credentials, _) = tokio::join!(host, master);
    let (near, far) = cell.connect(&Client::new(&credentials).unwrap()).await;
    assert_eq!(far.peer().host.as_str(), "node7");
    echo(&near, &far).await;
}

#[tokio::test]
async fn one_address_may_not_begin_many_enrolments_at_once() {
    let cell = Cell::start();
    let (ca, address, deadline) = (cell.ca.certificate().fingerprint(), cell.address(), PATIENCE);
    let mut open = Vec::new();
    for _ in 0..ServerLimits::default().joins_per_address {
        let (near, far) = tokio::join!(Client::join(&address, ca, deadline), cell.server.accept());
        open.push((near.unwrap(), far));
    }
    let error = refusal(Client::join(&address, ca, deadline).await);
    assert!(matches!(error, ConnectError::Overloaded { .. }), "{error}");
}

#[tokio::test]
async fn a_stopping_master_says_so() {
    let cell = Cell::start();
    let (near, _far) = cell.connect(&Client::new(&cell.host("node1")).unwrap()).await;
    cell.server.shutdown().await;
    assert!(matches!(
        near.closed().await,
        ConnectionEnd::ByPeer {
            code: Some(CloseCode::ShuttingDown),
            ..
        }
    ));
    assert!(cell.server.accept().await.is_none());
}

#[tokio::test]
async fn peers_of_a_master_that_was_killed_learn_it_from_the_next_one() {
    let authority = cell::Authority::new();
    let (credentials, host) = (authority.master_issued_days_ago(0), authority.host("node1"));
    let tickets = TicketKeys::generate(authority.now).unwrap();
    let serve = |listen| {
        let admission: Admission = std::sync::Arc::new(|_| Verdict::Admit);
        Server::bind(
            listen,
            &credentials,
            tickets.clone(),
            ServerLimits::default(),
            admission,
        )
    };
    let doomed = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = {
        let _inside = doomed.enter();
        serve("127.0.0.1:0".parse().unwrap()).unwrap()
    };
    let listen = server.local_addr().unwrap();
    let address = MasterAddress {
        host: "127.0.0.1".to_owned(),
        port: listen.port(),
    };
    let client = Client::new(&host).unwrap();
    let (near, far) = tokio::join!(client.connect(&address), server.accept());
    let near = near.unwrap();
    // With its runtime the master loses every chance to say goodbye.
    std::thread::spawn(move || doomed.shutdown_timeout(PATIENCE))
        .join()
        .unwrap();
    drop((far, server));
    let _next = loop {
        match serve(listen) {
            Ok(next) => break next,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    near.send_report(Kind::Load, 1, &"load").await.unwrap();
    let closed = tokio::time::timeout(PATIENCE, near.closed()).await;
    assert!(matches!(closed, Ok(ConnectionEnd::Broken { .. })), "{closed:?}");
}

#[tokio::test]
async fn a_port_that_never_answers_is_named_with_its_protocol() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = MasterAddress {
        host: "localhost".to_owned(),
        port: silent.local_addr().unwrap().port(),
    };
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1"))
        .unwrap()
        .with_deadline(Duration::from_millis(500));
    let error = refusal(client.connect(&address).await);
    assert_eq!(
        error.to_string(),
        format!("no answer from localhost udp/{}: firewall?", address.port)
    );
    assert!(!error.diagnostic().fix.is_empty());
}

#[tokio::test]
async fn a_name_without_address_and_a_port_in_use_are_refused_with_a_reason() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1")).unwrap();
    let nowhere = MasterAddress {
        host: "no such name".to_owned(),
        port: 1,
    };
    assert!(matches!(
        client.connect(&nowhere).await,
        Err(ConnectError::Unresolved { .. })
    ));
    let taken = cell.server.local_addr().unwrap();
    let again = Server::bind(
        taken,
        &cell.master_issued_days_ago(0),
        TicketKeys::generate(cell.now).unwrap(),
        ServerLimits::default(),
        std::sync::Arc::new(|_| Verdict::Admit),
    );
    assert!(matches!(again, Err(BindError::Socket { listen, .. }) if listen == taken));
    assert_eq!(host_of(&cell.host("x")), "x");
}
