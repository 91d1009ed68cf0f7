//! Commands of users through the agent's socket.

use crate::cell::{Agent, Cell, Host, often, soon};
use crate::launcher::{Launcher, Session};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::wire::agent::{PROTOCOL_VERSION, Vouch};
use proto::wire::client::{ClientHello, ClientMessage, Query, Reply};
use proto::wire::frame::{Frame, Kind};
use quic::{AGENT_STREAMS, FrameLimits, FrameReceiver, FrameSender, StreamReceiver, StreamSender};
use std::path::Path;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

async fn client(dir: &Path) -> (FrameSender<OwnedWriteHalf>, FrameReceiver<OwnedReadHalf>) {
    asking(dir, Query::Status).await
}

async fn asking(dir: &Path, query: Query) -> (FrameSender<OwnedWriteHalf>, FrameReceiver<OwnedReadHalf>) {
    let (mut sender, receiver) = silent(dir).await;
    sender
        .send(Kind::Request, 5, &ClientMessage::Query(query))
        .await
        .unwrap();
    (sender, receiver)
}

/// A command that has said hello and nothing more.
async fn silent(dir: &Path) -> (FrameSender<OwnedWriteHalf>, FrameReceiver<OwnedReadHalf>) {
    let stream = UnixStream::connect(dir.join("run/agent/agent.sock")).await.unwrap();
    let (reader, writer) = stream.into_split();
    let mut sender = FrameSender::new(writer, FrameLimits::REQUEST);
    let hello = ClientHello {
        version: PROTOCOL_VERSION,
        program: "qstat".to_owned(),
        task: None,
    };
    sender.send(Kind::Hello, 0, &hello).await.unwrap();
    (sender, FrameReceiver::new(reader, FrameLimits::REPLY))
}

/// A cell whose agent is connected to the master and the launcher.
struct ConnectedHost {
    host: Host,
    _session: Session,
    _agent: Agent,
    _launcher: Launcher,
    cell: Cell,
}

impl ConnectedHost {
    async fn new() -> Self {
        let cell = Cell::new();
        let launcher = Launcher::new(cell.path());
        let agent = cell.start_agent();
        let session = launcher.accept(vec![]);
        let (_, host) = cell.welcome(often()).await;
        // The first report says that the agent has taken the welcome in.
        host.load_report().await;
        Self {
            host,
            _session: session,
            _agent: agent,
            _launcher: launcher,
            cell,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reaches_the_master_under_the_name_that_the_kernel_gives_it() {
    let ConnectedHost { cell, host, .. } = &ConnectedHost::new().await;
    let (_sender, mut replies) = client(cell.path()).await;
    let stream = host.connection.accept_bi(FrameLimits::REQUEST);
    let (mut to_client, mut from_client) = soon("a stream of a user", stream).await.unwrap();
    let vouch: Vouch = from_client.recv().await.unwrap().unwrap().message().unwrap();
    assert_eq!(vouch.owner.uid, nix::unistd::getuid().as_raw());
    assert_eq!(from_client.recv().await.unwrap().unwrap().kind, Kind::Hello);
    let request = from_client.recv().await.unwrap().unwrap();
    assert_eq!(
        request.message::<ClientMessage>().unwrap(),
        ClientMessage::Query(Query::Status)
    );
    to_client
        .send(Kind::Reply, request.id, &Reply::default())
        .await
        .unwrap();
    let reply = soon("the reply", replies.recv()).await.unwrap().unwrap();
    assert_eq!((reply.kind, reply.id), (Kind::Reply, 5));
}

/// The next stream with a request, and the request. Where answers are due for some seconds, as on a
/// busy machine, the agent also opens streams without one: it asks for a sign of life.
async fn request_of(host: &Host) -> (StreamSender, StreamReceiver, Frame) {
    loop {
        let stream = host.connection.accept_bi(FrameLimits::REQUEST);
        let (to_client, mut from_client) = soon("a stream of a user", stream).await.unwrap();
        while let Ok(Some(frame)) = soon("a frame", from_client.recv()).await {
            if frame.kind == Kind::Request {
                return (to_client, from_client, frame);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_waits_while_all_streams_are_in_use() {
    let ConnectedHost { cell, host, .. } = &ConnectedHost::new().await;
    let mut long = Vec::new();
    for _ in 0..AGENT_STREAMS - 3 {
        let user = client(cell.path()).await;
        let (to_client, from_client, _) = request_of(host).await;
        long.push((user, (to_client, from_client)));
    }
    let (_sender, mut replies) = client(cell.path()).await;
    // The one that leaves makes room for the one that waits.
    drop(long.remove(0));
    let (mut to_client, _from_client, frame) = request_of(host).await;
    to_client.send(Kind::Reply, frame.id, &Reply::default()).await.unwrap();
    assert_eq!(
        soon("the reply", replies.recv()).await.unwrap().unwrap().kind,
        Kind::Reply
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_master_a_command_is_told_so() {
    let cell = Cell::new();
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    // Without the launcher's list there is no hello, so there is no connection either.
    let stream = soon(
        "the agent",
        tokio::task::spawn_blocking(move || launcher.accept(vec![])),
    )
    .await
    .unwrap();
    cell.server.shutdown().await;
    let (_sender, mut replies) = client(cell.path()).await;
    let refusal = soon("a refusal", replies.recv()).await.unwrap().unwrap();
    assert_eq!(refusal.kind, Kind::Refusal);
    let refusal: Diagnostic = refusal.message().unwrap();
    assert_eq!(refusal.code, Code::NoMaster);
    assert!(
        refusal.what.starts_with("error: unable to send message to qmaster"),
        "{refusal}"
    );
    drop(stream);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_ask_nothing_hold_no_stream() {
    let ConnectedHost { cell, host, .. } = &ConnectedHost::new().await;
    let mut idle = Vec::new();
    for _ in 0..AGENT_STREAMS + 10 {
        idle.push(silent(cell.path()).await);
    }
    let _asks = client(cell.path()).await;
    let stream = host.connection.accept_bi(FrameLimits::REQUEST);
    soon("the stream of the one that asks", stream).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_of_one_user_leave_streams_to_others() {
    let ConnectedHost { cell, host, .. } = &ConnectedHost::new().await;
    let wait = || Query::Wait { job: JobNumber(1) };
    let mut waiting = Vec::new();
    // The default of waits_per_user.
    for _ in 0..23 {
        let user = asking(cell.path(), wait()).await;
        let (to_client, mut from_client) = soon("a stream", host.connection.accept_bi(FrameLimits::REQUEST))
            .await
            .unwrap();
        // Who waits is counted when the request is passed on, not when its stream is opened.
        while soon("the request", from_client.recv()).await.unwrap().unwrap().kind != Kind::Request {}
        waiting.push((user, to_client, from_client));
    }
    let (_sender, mut replies) = asking(cell.path(), wait()).await;
    let _stream = soon("a stream", host.connection.accept_bi(FrameLimits::REQUEST))
        .await
        .unwrap();
    let refusal = soon("a refusal", replies.recv()).await.unwrap().unwrap();
    assert_eq!((refusal.kind, refusal.id), (Kind::Refusal, 5));
    let refusal: Diagnostic = refusal.message().unwrap();
    assert_eq!(refusal.code, Code::Overloaded);
    assert!(refusal.fix.contains("waits_per_user"), "{refusal}");
    let _asks = client(cell.path()).await;
    soon(
        "the stream of the one that asks",
        host.connection.accept_bi(FrameLimits::REQUEST),
    )
    .await
    .unwrap();
}
