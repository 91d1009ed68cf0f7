//! Tasks from order to forget, and what outlives a broken connection.

use crate::cell::{Cell, job, key, often, soon};
use crate::launcher::{Launcher, result};
use nix::sys::signal::Signal;
use proto::launch::{Notice, Request, TaskOrder, TaskState, TaskSummary};
use proto::wire::agent::{MasterMessage, TaskReportState, TaskSignal};
use proto::wire::frame::Kind;
use proto::wire::join::{RenewReply, RenewRequest};
use quic::{CloseCode, ConnectionEnd, FrameLimits, PeerIdentity};
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_goes_from_order_to_forget_with_its_script() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let session = launcher.accept(vec![]);
    let (hello, mut host) = cell.welcome(often()).await;
    assert_eq!((hello.host.as_str(), hello.tasks.len()), ("node1", 0));
    for message in job(1) {
        host.say(message).await;
    }
    let (request, script) = session.next();
    assert!(
        matches!(&request, Request::Launch(document) if document.key == key(1)),
        "{request:?}"
    );
    assert_eq!(script.as_deref(), Some(&b"#!/bin/sh\n"[..]));
    session.say(&Notice::Accepted { key: key(1) });
    assert_eq!(host.task_report().await.state, TaskReportState::Accepted);
    session.say(&Notice::Executed {
        key: key(1),
        pid: 9,
        boot_ms: 1,
    });
    assert!(matches!(
        host.task_report().await.state,
        TaskReportState::Running { .. }
    ));
    host.say(MasterMessage::Signal {
        key: key(1),
        signal: TaskSignal::Terminate,
    })
    .await;
    assert_eq!(
        session.next().0,
        Request::Signal {
            key: key(1),
            order: TaskOrder::Terminate
        }
    );
    session.say(&Notice::Ended(Box::new(result(key(1)))));
    let TaskReportState::Ended(end) = host.task_report().await.state else {
        panic!("an end was expected")
    };
    assert_eq!(end.exit.status(), 3);
    host.say(MasterMessage::Forget { key: key(1) }).await;
    assert_eq!(session.next().0, Request::Forget { key: key(1) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hello_is_said_before_the_launcher_has_listed_its_tasks() {
    let cell = Cell::new();
    let agent = cell.start_agent();
    let launcher = Launcher::new(cell.path());
    let running = TaskSummary {
        key: key(1),
        state: TaskState::Running,
        pid: 9,
        started_boot_ms: 1,
        result: None,
    };
    let session = launcher.accept(vec![running]);
    let (hello, _host) = cell.welcome(often()).await;
    assert_eq!(hello.tasks.len(), 1);
    drop((session, agent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_of_the_time_without_a_master_is_in_the_next_hello() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let session = launcher.accept(vec![]);
    let (first, mut host) = cell.welcome(often()).await;
    for message in job(1) {
        host.say(message).await;
    }
    session.next();
    host.connection.close(CloseCode::ShuttingDown, "the master stops");
    session.say(&Notice::Ended(Box::new(result(key(1)))));
    // The end may arrive just after the hello was made: then it follows on the control stream.
    let (second, mut host) = cell.welcome(often()).await;
    assert_eq!((second.instance, second.tasks.len()), (first.instance, 1));
    let mut state = second.tasks[0].state.clone();
    while !matches!(state, TaskReportState::Ended(_)) {
        state = host.task_report().await.state;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_killed_finds_its_tasks_at_the_launcher() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let agent = cell.start_agent();
    let session = launcher.accept(vec![]);
    let (first, host) = cell.welcome(often()).await;
    // The first report says that the agent has taken the welcome in.
    host.load_report().await;
    agent.signal(Signal::SIGKILL);
    agent.ended().await;
    drop(session);
    let _agent = cell.start_agent();
    let over = TaskSummary {
        key: key(4),
        state: TaskState::Ended,
        pid: 9,
        started_boot_ms: 1,
        result: Some(result(key(4))),
    };
    let _session = launcher.accept(vec![over]);
    let (second, _host) = cell.welcome(often()).await;
    assert_eq!(
        first.instance, second.instance,
        "the master takes the new connection for the dead one's"
    );
    assert_eq!(second.epoch.0, 1, "the epoch is kept over restarts");
    assert!(matches!(second.tasks[0].state, TaskReportState::Ended(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dying_launcher_did_not_do_is_asked_of_the_next() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(often()).await;
    for message in job(1) {
        host.say(message).await;
    }
    session.next();
    session.close();
    let session = launcher.accept(vec![]);
    let (request, script) = session.next();
    assert!(matches!(request, Request::Launch(_)));
    assert!(script.is_some());
    session.say(&Notice::Accepted { key: key(1) });
    assert_eq!(host.task_report().await.state, TaskReportState::Accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_the_agent_in_order_and_leaves_the_master_a_word() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, host) = cell.welcome(often()).await;
    host.load_report().await;
    agent.signal(Signal::SIGTERM);
    let closed = soon("the end of the connection", host.connection.closed()).await;
    assert!(
        matches!(
            closed,
            ConnectionEnd::ByPeer {
                code: Some(CloseCode::Done),
                ..
            }
        ),
        "{closed:?}"
    );
    assert_eq!(agent.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_agent_of_one_directory_is_refused() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _first = cell.start_agent();
    let _session = launcher.accept(vec![]);
    assert_eq!(cell.start_agent().ended().await, Some(1));
    let log = std::fs::read_to_string(cell.path().join("agent.log")).unwrap();
    assert!(log.contains("runs already as process"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_report_of_a_connection_is_full_and_the_next_names_changes() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(often()).await;
    let first = host.load_report().await;
    assert!(first.full && first.sequence == 1);
    assert!(first.values["node1"].contains_key("num_proc"), "{first:?}");
    let second = host.load_report().await;
    assert!(
        !second.full
            && !second
                .values
                .get("node1")
                .is_some_and(|own| own.contains_key("num_proc"))
    );
    host.say(MasterMessage::ReportNow).await;
    while !host.load_report().await.full {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_in_its_last_third_renews_itself() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let long_ago = i64::try_from(now).unwrap() - 300 * 86_400;
    let cell = Cell::with_host_certificate_from(proto::time::Wall::from_seconds(long_ago));
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, host) = cell.welcome(often()).await;
    let old = host.connection.peer().serial;
    let (mut sender, mut receiver) = soon("a renewal", host.connection.accept_bi(FrameLimits::REQUEST))
        .await
        .unwrap();
    let frame = receiver.recv().await.unwrap().unwrap();
    let RenewRequest { csr } = frame.message().unwrap();
    let certificate = cell.sign(&csr);
    sender
        .send(
            Kind::Reply,
            frame.id,
            &RenewReply {
                certificate: certificate.clone(),
            },
        )
        .await
        .unwrap();
    let (_, host) = cell.welcome(often()).await;
    let serial = PeerIdentity::from_pem(&certificate).unwrap().serial;
    assert_eq!(host.connection.peer().serial, serial);
    assert_ne!(old, serial);
}
