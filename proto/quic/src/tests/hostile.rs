//! Peers without a right, and peers with one that misbehave.

use super::cell::{Authority, Cell, echo, refusal};
use crate::client::quic_config;
use crate::tls::{ALPN_HOST, SERVER_NAME, anonymous_config, host_config};
use crate::*;
use proto::wire::frame::{Frame, FrameError, Kind};
use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The cell still serves a host as it should.
async fn still_serves(cell: &Cell) {
    let (near, far) = cell.connect(&Client::new(&cell.host("honest")).unwrap()).await;
    echo(&near, &far).await;
}

#[tokio::test]
async fn a_peer_without_a_certificate_is_refused() {
    let cell = Cell::start();
    let client = Client::with_config(anonymous_config(cell.ca.certificate().fingerprint(), ALPN_HOST).unwrap());
    let error = refusal(client.connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::CertificateRefused { .. }), "{error}");
    assert!(error.diagnostic().fix.contains("token"));
    still_serves(&cell).await;
}

#[tokio::test]
async fn a_certificate_of_a_foreign_ca_is_refused_even_for_the_same_cell_id() {
    let (cell, foreign) = (Cell::start(), Authority::new());
    let key = HostKey::generate().unwrap();
    let certificate = foreign.sign(&key.csr_pem().unwrap(), "node1");
    let ours = cell.ca.certificate().to_pem();
    let mixed = Credentials::from_pem(&certificate, &key.to_pem(), &ours).unwrap();
    let error = refusal(Client::new(&mixed).unwrap().connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::CertificateRefused { .. }), "{error}");
    still_serves(&cell).await;
}

#[tokio::test]
async fn a_host_refuses_the_master_of_another_cell() {
    let (cell, foreign) = (Cell::start(), Authority::new());
    let error = refusal(
        Client::new(&foreign.host("node1"))
            .unwrap()
            .connect(&cell.address())
            .await,
    );
    assert!(matches!(error, ConnectError::ForeignMaster { .. }), "{error}");
    let fingerprint = foreign.ca.certificate().fingerprint();
    let error = refusal(Client::join(&cell.address(), fingerprint, super::PATIENCE).await);
    assert!(matches!(error, ConnectError::ForeignMaster { .. }), "{error}");
}

#[tokio::test]
async fn a_host_cannot_pose_as_the_master_nor_the_master_as_a_host() {
    let cell = Cell::start_with(|authority| authority.host("node1"));
    let error = refusal(Client::new(&cell.host("node2")).unwrap().connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::ForeignMaster { .. }), "{error}");
    let cell = Cell::start();
    let error = refusal(
        Client::new(&cell.master_issued_days_ago(0))
            .unwrap()
            .connect(&cell.address())
            .await,
    );
    assert!(matches!(error, ConnectError::CertificateRefused { .. }), "{error}");
}

#[tokio::test]
async fn another_protocol_is_refused() {
    let cell = Cell::start();
    let client = Client::with_config(anonymous_config(cell.ca.certificate().fingerprint(), b"h3").unwrap());
    let error = refusal(client.connect(&cell.address()).await);
    assert!(matches!(error, ConnectError::WrongProtocol { .. }), "{error}");
    still_serves(&cell).await;
}

#[tokio::test]
async fn datagrams_of_garbage_are_ignored() {
    let cell = Cell::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..200_usize {
        let bytes: Vec<u8> = (0..n * 7)
            .map(|i| (i * 31 + n) as u8 | if n % 2 == 0 { 0xc0 } else { 0 })
            .collect();
        socket.send_to(&bytes, cell.server.local_addr().unwrap()).unwrap();
    }
    still_serves(&cell).await;
}

/// What is logged on this thread, which runs the whole test.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Waits until something about refused peers is logged, and takes it.
    async fn next_refusals(&self) -> Vec<String> {
        let logged = async {
            loop {
                match self.refusals() {
                    none if none.is_empty() => tokio::task::yield_now().await,
                    lines => return lines,
                }
            }
        };
        tokio::time::timeout(super::PATIENCE, logged)
            .await
            .expect("a refusal is logged")
    }

    /// Takes the lines about refused peers.
    fn refusals(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines()
            .filter(|line| line.contains("connection refused"))
            .map(str::to_owned)
            .collect()
    }
}

#[tokio::test]
async fn every_refusal_is_one_line_in_the_log_that_says_why() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let cell = Cell::start();
    let fingerprint = cell.ca.certificate().fingerprint();
    let anonymous = |protocol: &[u8]| Client::with_config(anonymous_config(fingerprint, protocol).unwrap());
    let late = Client::new(&cell.host_issued_days_ago("late", 500)).unwrap();
    for (client, why) in [
        (anonymous(ALPN_HOST), "a certificate of this cell is required"),
        (anonymous(b"h3"), "error 120"),
        (late, "late: the certificate ended"),
    ] {
        refusal(client.connect(&cell.address()).await);
        let logged = lines.next_refusals().await;
        assert!(
            logged.len() == 1 && logged[0].contains(why) && logged[0].contains("127.0.0.1"),
            "{why}: {logged:?}"
        );
    }
}

/// What the master's receiver says about `bytes` on a stream of an admitted host that then ends it,
/// or leaves it open.
async fn received(bytes: &[u8], end: bool) -> Result<Option<Frame>, StreamError> {
    let cell = Cell::start();
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = quic_config(host_config(&cell.host("node1")).unwrap());
    let connecting = endpoint
        .connect_with(config, cell.server.local_addr().unwrap(), SERVER_NAME)
        .unwrap();
    let (near, far) = tokio::join!(connecting, cell.server.accept());
    let (near, Some(AcceptedConnection::Host(far))) = (near.unwrap(), far) else {
        panic!("a host was expected")
    };
    let (mut raw, _back) = near.open_bi().await.unwrap();
    raw.write_all(bytes).await.unwrap();
    if end {
        raw.finish().unwrap();
    }
    let limits = FrameLimits {
        frame_deadline: Duration::from_millis(200),
        ..FrameLimits::CONTROL
    };
    let (_sender, mut receiver) = far.accept_bi(limits).await.unwrap();
    let result = receiver.recv().await;
    still_serves(&cell).await;
    result
}

#[tokio::test]
async fn bad_bytes_on_a_stream_are_refused_by_what_is_wrong_with_them() {
    let whole = Frame::new(Kind::Control, 1, &"order").to_bytes(1024).unwrap();
    assert_eq!(received(&whole, true).await.unwrap().unwrap().id, 1);
    let truncated = received(&whole[..whole.len() - 1], true).await;
    assert!(matches!(truncated, Err(StreamError::Truncated { .. })), "{truncated:?}");
    let gigabyte = received(&[0x40, 0, 0, 0, 1], false).await;
    assert!(
        matches!(gigabyte, Err(StreamError::Frame(FrameError::TooLong { .. }))),
        "{gigabyte:?}"
    );
    let slow = received(&whole[..5], false).await;
    assert!(matches!(slow, Err(StreamError::TimedOut(_))), "{slow:?}");
    let garbage = received(&[0, 0, 0, 4, 0xc1, 1, 2, 3], false).await;
    assert!(
        matches!(garbage, Err(StreamError::Frame(FrameError::Malformed(_)))),
        "{garbage:?}"
    );
}

#[tokio::test]
async fn a_peer_that_resets_its_stream_is_told_apart_from_one_that_vanished() {
    let cell = Cell::start();
    let client = Client::new(&cell.host("node1")).unwrap();
    let (near, far) = cell.connect(&client).await;
    let (mut sender, _receiver) = near.open_bi(FrameLimits::CONTROL).await.unwrap();
    sender.send(Kind::Control, 1, &"x").await.unwrap();
    let (mut back, mut receiver) = far.accept_bi(FrameLimits::CONTROL).await.unwrap();
    assert!(receiver.recv().await.unwrap().is_some());
    near.close(CloseCode::Done, "");
    assert!(matches!(receiver.recv().await, Err(StreamError::Disconnected)));
    assert!(matches!(
        back.send(Kind::Reply, 1, &"x").await,
        Err(StreamError::Disconnected)
    ));
    assert!(matches!(
        far.open_bi(FrameLimits::CONTROL).await,
        Err(StreamError::Disconnected)
    ));
}
