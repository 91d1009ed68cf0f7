//! More commands at once than a cell ever sees.

use crate::attacker::Attacker;
use crate::launch::socket;
use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Account, Cell, CellPlan, long_or, wait_until};
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::{ClientHello, ClientMessage, JobFilter, Query};
use proto::wire::frame::Kind;
use quic::blocking;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[Attack {
    name: "crowd",
    claim: "hundreds of clients at once are all answered, and jobs run meanwhile",
    needs: &[Requirement::Root],
    run: crowd,
}];

/// The longest answer.
const LIMIT: usize = 64 << 20;

/// Clients of one process.
const OF_ONE: usize = 50;

/// Processes of one user: fewer clients than a user may have.
const OF_USER: usize = 5;

/// Words: a socket and a number. So many clients connect, all of them ask, and then all of them
/// read their answers.
pub fn ask(words: &[String]) {
    let [path, count] = words else {
        panic!("a socket and a number")
    };
    let count: usize = count.parse().expect("a number");
    let mut clients: Vec<UnixStream> = (0..count)
        .map(|_| UnixStream::connect(path).expect("it listens"))
        .collect();
    for client in &mut clients {
        client
            .set_read_timeout(Some(Duration::from_secs(300)))
            .expect("a socket has timeouts");
        let hello = ClientHello {
            version: PROTOCOL_VERSION,
            program: "crowd".to_owned(),
            task: None,
        };
        blocking::send(client, Kind::Hello, 0, &hello, LIMIT).expect("it reads");
        let question = ClientMessage::Query(Query::Jobs(JobFilter::default()));
        blocking::send(client, Kind::Request, 1, &question, LIMIT).expect("it reads");
    }
    let is_answered = |client: &mut UnixStream| {
        let frame = blocking::recv(client, LIMIT).expect("an answer").expect("an answer");
        frame.kind == Kind::Reply
    };
    let answered = clients.iter_mut().map(is_answered).filter(|is| *is).count();
    println!("{answered} answered");
}

fn crowd() {
    let cell = Cell::with(CellPlan::default().slots(4));
    cell.write("job.sh", "#!/bin/sh\nsleep 0.1\n", 0o755);
    let job = cell.submit(&["-o", "/dev/null", "-t", "1-30", "job.sh"]);
    let path = socket(&cell, "master.sock").display().to_string();
    let count = OF_ONE.to_string();
    let users: Vec<Account> = (0..long_or(8, 2)).map(|_| Account::another()).collect();
    let of = |user: &Account| Attacker {
        uid: user.uid,
        gid: user.gid,
    };
    let processes = users.iter().flat_map(|user| std::iter::repeat_n(of(user), OF_USER));
    let crowd: Vec<_> = processes
        .map(|user| user.start(&cell, "ask", &[&path, &count]))
        .collect();
    for part in &crowd {
        wait_until(|| part.printed(), || part.printed().contains("answered"));
        assert_eq!(part.printed(), format!("{count} answered\n"));
    }
    let records = cell.accounted(&job, 30);
    assert!(
        records.iter().all(|record| record.value("failed") == "0"),
        "{records:?}"
    );
}
