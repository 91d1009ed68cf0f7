//! Datagrams from anybody at the master's UDP port: noise, and handshakes that nobody goes on with.
//! Loopback only.

use crate::seed::Seed;
use crate::stage::Attack;
use gridwright_tests::cell::{Cell, long_or, resident_kib};
use quinn::crypto::rustls::QuicClientConfig;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "junk-datagrams",
        claim: "noise at the UDP port costs the master no memory, and questions are answered meanwhile",
        needs: &[],
        run: junk_datagrams,
    },
    Attack {
        name: "half-open-handshakes",
        claim: "handshakes that nobody ends cost a bounded memory, and hosts connect meanwhile",
        needs: &[],
        run: half_open_handshakes,
    },
];

/// The UDP address of a cell's master.
fn address(cell: &Cell) -> SocketAddr {
    let text = std::fs::read_to_string(cell.dir().join("etc/cell.toml")).expect("the cell has it");
    let table: toml::Table = text.parse().expect("it is TOML");
    let port = table["port"]
        .as_integer()
        .and_then(|port| u16::try_from(port).ok())
        .expect("a port");
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a port is free")
}

/// Something that looks like a datagram of QUIC for as long as nobody looks closely.
fn noise(seed: &mut Seed) -> Vec<u8> {
    let length = usize::try_from(seed.below(1300) + 1).expect("small");
    let mut bytes = seed.bytes(length.max(20));
    match seed.below(4) {
        // A version that nobody has, which asks for the versions that there are.
        0 => bytes[..5].copy_from_slice(&[0xc0, 0x0a, 0x1a, 0x2a, 0x3a]),
        // A first packet of version 1 whose rest is noise.
        1 => bytes[..7].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8, 8]),
        // A packet of a connection that was there once.
        2 => bytes[0] = 0x40 | bytes[0] & 0x3f,
        _ => {}
    }
    bytes
}

/// What the master may grow by.
const GROWTH_KIB: u64 = 32 << 10;

fn junk_datagrams() {
    let cell = Cell::up();
    let master = cell.pid("master");
    let (to, from) = (address(&cell), socket());
    let before = resident_kib(master);
    let mut seed = Seed::new(3);
    for n in 0..long_or(300_000, 6_000) {
        // A full buffer drops it, which is its sender's matter.
        let _ = from.send_to(&noise(&mut seed), to);
        if n % 2_000 == 0 {
            cell.user(&["qstat"]).ok();
        }
    }
    let after = resident_kib(master);
    assert!(
        after < before + GROWTH_KIB,
        "the master grew from {before} to {after} KiB"
    );
    assert_eq!(cell.pid("master"), master);
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// First datagrams of genuine handshakes, each of another connection.
fn first_datagrams(count: usize) -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let listener = socket();
    listener.set_nonblocking(true).expect("a socket can");
    let to = listener.local_addr().expect("it is bound");
    let mut roots = rustls::RootCertStore::empty();
    roots.extend([]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3 is there")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"gridwright/1".to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("it speaks TLS 1.3")));
    runtime.block_on(async {
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port is free");
        let listener = tokio::net::UdpSocket::from_std(listener).expect("it does not block");
        let mut found = BTreeMap::new();
        let mut buffer = [0; 2_000];
        while found.len() < count {
            let before = found.len();
            let _connecting = endpoint
                .connect_with(config.clone(), to, "master")
                .expect("it may connect");
            while found.len() == before {
                let heard = tokio::time::timeout(Duration::from_secs(60), listener.recv_from(&mut buffer)).await;
                let (length, _) = heard.expect("the endpoint sends").expect("it is received");
                if let Some(connection) = connection_of_first(&buffer[..length]) {
                    found
                        .entry(connection.to_vec())
                        .or_insert_with(|| buffer[..length].to_vec());
                }
            }
        }
        found.into_values().collect()
    })
}

/// The connection to which a first packet belongs: one of version 1 is long and padded, and repeats
/// bear the same number (RFC 9000, section 17.2.2).
fn connection_of_first(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.len() < 1_200 || datagram[0] & 0xf0 != 0xc0 {
        return None;
    }
    datagram[6..].get(..usize::from(datagram[5]))
}

fn half_open_handshakes() {
    let cell = Cell::up();
    let master = cell.pid("master");
    let to = address(&cell);
    let datagrams = first_datagrams(long_or(10_000, 400));
    let before = resident_kib(master);
    let sockets: Vec<UdpSocket> = (0..20).map(|_| socket()).collect();
    for (n, datagram) in datagrams.iter().enumerate() {
        let _ = sockets[n % sockets.len()].send_to(datagram, to);
    }
    cell.user(&["qstat"]).ok();
    // A host connects, although so many have begun to.
    cell.kill("agent");
    cell.bring_up(&[]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
    let after = resident_kib(master);
    assert!(
        after < before + GROWTH_KIB,
        "the master grew from {before} to {after} KiB"
    );
    assert_eq!(cell.pid("master"), master);
}
