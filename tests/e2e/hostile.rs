//! Hostile peers at the master's UDP port: each is refused with one line in the log, costs nothing
//! lasting, and the master serves on.

mod peer;

use gridwright_tests::cell::{Cell, PATIENCE, long_or, resident_kib, wait_for, wait_until};
use peer::{Certificate, Peer};
use std::time::Duration;

const HOST: &[u8] = b"gridwright/1";
const JOIN: &[u8] = b"gridwright-join/1";

/// A frame says its length in four bytes: one of 1 GiB, and one of 64 bytes of which three come.
const GIBIBYTE: &[u8] = &[0x40, 0, 0, 0, 1];
const TRUNCATED: &[u8] = &[0, 0, 0, 64, 1, 2, 3];

/// Lines of the master's log about refused peers and broken conversations.
fn lines_about(cell: &Cell, port: u16) -> Vec<String> {
    cell.log("master")
        .lines()
        .filter(|line| line.contains(&format!(":{port}")))
        .map(str::to_owned)
        .collect()
}

/// What one hostile peer does, and what the log says of it.
struct HostileCase {
    certificate: Certificate,
    protocol: &'static [u8],
    bytes: &'static [u8],
    /// Whether the stream ends behind the bytes, or stays open.
    ends: bool,
    logged: &'static str,
}

fn cases(cell: &Cell) -> Vec<HostileCase> {
    let case = |certificate, protocol, bytes, ends, logged| HostileCase {
        certificate,
        protocol,
        bytes,
        ends,
        logged,
    };
    let none = || Certificate::None;
    vec![
        case(none(), HOST, b"", false, "a certificate of this cell is required"),
        case(Certificate::foreign("vm"), HOST, b"", false, "connection refused"),
        case(none(), b"h3", b"", false, "connection refused"),
        case(none(), JOIN, TRUNCATED, true, "inside a frame"),
        case(none(), JOIN, GIBIBYTE, false, "above the limit"),
        case(Certificate::of_agent(cell), HOST, TRUNCATED, true, "inside a frame"),
        case(Certificate::of_agent(cell), HOST, GIBIBYTE, false, "above the limit"),
    ]
}

#[test]
fn every_hostile_peer_is_refused_with_one_line_and_the_master_serves_on() {
    let cell = Cell::up();
    let master = cell.pid("master");
    for case in cases(&cell) {
        let peer = Peer::connect(&cell, &case.certificate, case.protocol);
        let name = String::from_utf8_lossy(case.protocol).into_owned();
        peer.send(case.bytes, case.ends);
        assert!(peer.is_closed_within(PATIENCE), "{name} {:?}", case.bytes);
        wait_until(
            || format!("{name} {:?}: {:?}", case.bytes, cell.log("master")),
            || !lines_about(&cell, peer.port()).is_empty(),
        );
        let lines = lines_about(&cell, peer.port());
        assert!(
            lines.len() == 1 && lines[0].contains(case.logged),
            "{}: {lines:?}",
            case.logged
        );
        cell.user(&["qstat"]).ok();
    }
    assert_eq!(cell.pid("master"), master);
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

#[test]
fn a_peer_that_sends_a_byte_now_and_then_is_given_up() {
    let cell = Cell::up();
    let peer = Peer::connect(&cell, &Certificate::None, JOIN);
    peer.send(&TRUNCATED[..4], false);
    let closed = wait_for(PATIENCE, || {
        peer.send(b"x", false);
        peer.is_closed_within(Duration::from_millis(200))
    });
    assert!(closed, "it goes on for ever");
    let lines = || lines_about(&cell, peer.port());
    wait_until(|| cell.log("master"), || !lines().is_empty());
    let lines = lines();
    assert!(lines.len() == 1, "{lines:?}");
}

/// Of so many waves in a row the one after which the master has least counts.
const SETTLED: usize = 3;

#[test]
fn a_hundred_hostile_peers_at_a_time_leave_the_masters_memory_as_it_was() {
    let cell = Cell::up();
    let certificates = [Certificate::None, Certificate::foreign("vm")];
    let wave = || {
        let peers: Vec<Peer> = (0..100)
            .filter_map(|n| {
                let protocol = [HOST, JOIN, b"h3".as_slice(), JOIN][n % 4];
                let peer = Peer::try_connect(&cell, &certificates[usize::from(n % 8 == 0)], protocol)?;
                peer.send([b"".as_slice(), GIBIBYTE, b"", TRUNCATED][n % 4], false);
                Some(peer)
            })
            .collect();
        cell.user(&["qstat"]).ok();
        peers.len()
    };
    // Waves and not seconds: on a machine that is busy few waves would fit, and the master's memory
    // had not settled.
    let (warm_up, lasting) = long_or((200, 200), (20, 30));
    let during = |waves| {
        let mut resident = Vec::new();
        for _ in 0..waves {
            wave();
            resident.push(resident_kib(cell.pid("master")));
        }
        // What stays is in every figure; what the last wave has not given back yet is not.
        resident
            .iter()
            .rev()
            .take(SETTLED)
            .min()
            .copied()
            .expect("there are waves")
    };
    let before = during(warm_up);
    let after = during(lasting);
    println!("resident memory of the master: {before} KiB, then {after} KiB");
    assert!(after < before + 1024, "the master grew from {before} to {after} KiB");
}
