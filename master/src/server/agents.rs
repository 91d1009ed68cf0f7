//! Connections of hosts: one control stream, reports on streams of their own, and streams of users
//! for whom the host vouches.

use super::session::{self, Caller};
use super::{CoreExit, Desk, join};
use crate::connections::{AgentReceivers, OutgoingMessage};
use master_core::effect::{ConnectionId, Input};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::load::LoadReport;
use proto::wire::agent::{AgentHello, AgentMessage, MasterMessage, Vouch};
use proto::wire::frame::{Frame, Kind};
use proto::wire::join::{RenewReply, RenewRequest};
use quic::{
    AcceptedConnection, CloseCode, Connection, ConnectionEnd, FrameLimits, Server, StreamError, StreamReceiver,
    StreamSender,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a host may take from the end of the handshake to its hello.
const HELLO_DEADLINE: Duration = Duration::from_secs(30);

/// How long a refused host may take to read why.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

/// Bytes above which nothing more is put into one write.
const WRITE_BYTES: usize = 64 << 10;

/// Why a connection ends, for the log.
type EndReason = String;

/// Serves hosts until the server is shut down.
pub async fn accept(server: Arc<Server>, desk: Arc<Desk>) {
    let slots = Arc::new(Semaphore::new(desk.config.agents));
    while let Some(accepted) = server.accept().await {
        let desk = desk.clone();
        match accepted {
            AcceptedConnection::Join(connection) => drop(tokio::spawn(join::serve(connection, desk))),
            AcceptedConnection::Host(connection) => match slots.clone().try_acquire_owned() {
                Ok(slot) => drop(tokio::spawn(async move {
                    serve(connection, desk).await;
                    drop(slot);
                })),
                Err(_) => {
                    let why = format!(
                        "{} hosts are connected already (agents of etc/master.toml)",
                        desk.config.agents
                    );
                    tracing::warn!("{} is refused: {why}", connection.peer().host);
                    connection.close(CloseCode::Overloaded, &why);
                }
            },
        }
    }
}

async fn serve(connection: Connection, desk: Arc<Desk>) {
    let host = connection.peer().host.clone();
    let address = connection.remote_address();
    let end = match timeout(HELLO_DEADLINE, hello(&connection)).await {
        Ok(Ok((hello, sender, receiver))) => {
            let end = converse(&connection, &desk, hello, sender, receiver).await;
            tracing::warn!("the agent of host {host} at {address} is gone: {end}");
            end
        }
        Ok(Err(end)) if was_a_visit(&connection).await => end,
        Ok(Err(end)) => no_agent(&host, &connection, end),
        Err(_) => no_agent(&host, &connection, "it said no hello in time".to_owned()),
    };
    connection.close(CloseCode::Done, &end);
}

/// Whether a host came, looked and went with a word, as `gridwright doctor` does.
async fn was_a_visit(connection: &Connection) -> bool {
    let closed = timeout(Duration::ZERO, connection.closed()).await;
    matches!(
        closed,
        Ok(ConnectionEnd::ByPeer {
            code: Some(CloseCode::Done),
            ..
        })
    )
}

/// Logs the end of a connection that never became an agent's.
fn no_agent(host: &HostName, connection: &Connection, end: EndReason) -> EndReason {
    tracing::info!("agent {host} at {}: {end}", connection.remote_address());
    end
}

/// The first stream is the control stream, and the first frame on it the agent's hello.
async fn hello(connection: &Connection) -> Result<(AgentHello, StreamSender, StreamReceiver), EndReason> {
    let broken = |error: StreamError| crate::error_chain(&error);
    let (sender, mut receiver) = connection.accept_bi(FrameLimits::CONTROL).await.map_err(broken)?;
    let frame = receiver
        .recv()
        .await
        .map_err(broken)?
        .ok_or("it went without a hello")?;
    let hello = frame.message().map_err(|error| error.to_string());
    if frame.kind == Kind::Hello {
        Ok((hello?, sender, receiver))
    } else {
        Err("its first frame is no hello".to_owned())
    }
}

/// One connection from its hello to its end.
async fn converse(
    connection: &Connection,
    desk: &Arc<Desk>,
    hello: AgentHello,
    sender: StreamSender,
    receiver: StreamReceiver,
) -> EndReason {
    let (id, host) = (desk.new_connection(), connection.peer().host.clone());
    tracing::info!(
        "agent {host} at {} connects, version {}",
        connection.remote_address(),
        hello.software
    );
    let outbox = desk.connections.enter(id, host.clone(), desk.config.agent_queue);
    let connected = Input::AgentConnected {
        connection: id,
        host,
        hello: Box::new(hello),
    };
    if desk.input(connected).await.is_err() {
        return "the master ends".to_owned();
    }
    // Each direction is a task of its own, so that a packet or a message wakes nobody else.
    let mut control = JoinSet::new();
    control.spawn(control_in(desk.clone(), id, receiver));
    control.spawn(control_out(sender, outbox));
    let end = tokio::select! {
        Some(end) = control.join_next() => end.unwrap_or_else(|error| error.to_string()),
        end = reports(connection, desk, id) => end,
        end = streams(connection, desk) => end,
        closed = connection.closed() => closed.to_string(),
    };
    control.shutdown().await;
    desk.connections.leave(id);
    // At the end of the master nobody has to know any more.
    let _ = desk.input(Input::AgentLost { connection: id }).await;
    end
}

/// Messages of the agent, in order. One that does not decode is refused singly.
async fn control_in(desk: Arc<Desk>, connection: ConnectionId, mut receiver: StreamReceiver) -> EndReason {
    loop {
        let frame = match receiver.recv().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return "it ended its control stream".to_owned(),
            Err(error) if error.is_single_frame() => {
                refuse(
                    &desk,
                    connection,
                    Diagnostic::new(Code::BadMessage, crate::error_chain(&error)),
                );
                continue;
            }
            Err(error) => return crate::error_chain(&error),
        };
        match control_message(&frame) {
            Ok(message) => {
                if desk
                    .input(Input::AgentMessage {
                        connection,
                        message: Box::new(message),
                    })
                    .await
                    .is_err()
                {
                    return "the master ends".to_owned();
                }
            }
            Err(refusal) => refuse(&desk, connection, refusal),
        }
    }
}

fn control_message(frame: &Frame) -> Result<AgentMessage, Diagnostic> {
    match frame.kind {
        Kind::Control => frame.message().map_err(|error| error.diagnostic()),
        Kind::Hello | Kind::Request | Kind::Reply | Kind::Load | Kind::Slave | Kind::Refusal | Kind::Unknown => Err(
            Diagnostic::new(Code::BadMessage, "this kind of frame is not known on a control stream"),
        ),
    }
}

fn refuse(desk: &Desk, connection: ConnectionId, refusal: Diagnostic) {
    let message = OutgoingMessage::Message(Box::new(MasterMessage::Refused(refusal)));
    desk.connections.send(connection, message);
}

/// What the core has to say, in order. What waits goes out together.
async fn control_out(mut sender: StreamSender, outbox: AgentReceivers) -> EndReason {
    let AgentReceivers {
        mut outgoing,
        mut overrun,
    } = outbox;
    loop {
        let mut next = tokio::select! {
            biased;
            why = &mut overrun => return why.map_or_else(|_| "replaced".to_owned(), |why| why.to_string()),
            next = outgoing.recv() => next,
        };
        while let Some(bag) = next {
            for say in bag {
                let added = match say {
                    OutgoingMessage::Welcome(welcome) => sender.add(Kind::Hello, 0, &welcome),
                    OutgoingMessage::Message(message) => sender.add(Kind::Control, 0, &message),
                    OutgoingMessage::Close(why) => {
                        let end = why.to_string();
                        // It may be deaf: the connection is closed all the same.
                        let _ = timeout(REFUSAL_DEADLINE, say_why(sender, &why)).await;
                        return end;
                    }
                };
                if let Err(error) = added {
                    return crate::error_chain(&error);
                }
            }
            next = if sender.added() < WRITE_BYTES {
                outgoing.try_recv().ok()
            } else {
                None
            };
        }
        if sender.added() == 0 {
            return "replaced".to_owned();
        }
        if let Err(error) = sender.send_added().await {
            return crate::error_chain(&error);
        }
    }
}

async fn say_why(mut sender: StreamSender, why: &Diagnostic) -> Result<(), StreamError> {
    sender.send(Kind::Refusal, 0, why).await?;
    sender.finish().await?;
    // The close that follows would overtake what is still on its way.
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

/// Load reports, each on a stream of its own; the transport bounds how many a host may have open.
async fn reports(connection: &Connection, desk: &Arc<Desk>, id: ConnectionId) -> EndReason {
    loop {
        match connection.accept_uni(FrameLimits::REPORT).await {
            Ok(stream) => drop(tokio::spawn(report(
                desk.clone(),
                id,
                stream,
                connection.peer().host.to_string(),
            ))),
            Err(error) => return crate::error_chain(&error),
        }
    }
}

async fn report(desk: Arc<Desk>, connection: ConnectionId, mut stream: StreamReceiver, host: String) {
    let frame = match stream.recv().await {
        Ok(Some(frame)) => frame,
        Ok(None) => return,
        Err(error) => return tracing::info!("a report of {host} is refused: {}", crate::error_chain(&error)),
    };
    match frame.message::<LoadReport>() {
        Ok(report) if frame.kind == Kind::Load => {
            let _ = desk
                .input(Input::LoadReport {
                    connection,
                    report: Box::new(report),
                })
                .await;
        }
        Ok(_) | Err(_) => tracing::info!("a report of {host} is refused: it is none"),
    }
}

/// Further streams with an answer: users of the host, and renewals of its certificate.
async fn streams(connection: &Connection, desk: &Arc<Desk>) -> EndReason {
    loop {
        match connection.accept_bi(FrameLimits::REQUEST).await {
            Ok((sender, receiver)) => drop(tokio::spawn(stream(connection.clone(), desk.clone(), sender, receiver))),
            Err(error) => return crate::error_chain(&error),
        }
    }
}

async fn stream(connection: Connection, desk: Arc<Desk>, mut sender: StreamSender, mut receiver: StreamReceiver) {
    let host = connection.peer().host.clone();
    let frame = match timeout(HELLO_DEADLINE, receiver.recv()).await {
        Ok(Ok(Some(frame))) => frame,
        Ok(Ok(None) | Err(_)) | Err(_) => return tracing::info!("a stream of {host} ended without a word"),
    };
    let outcome = match frame.kind {
        Kind::Hello => match frame.message::<Vouch>() {
            // Root of the master's host comes to the master's own socket, where the kernel says who
            // it is and not an agent.
            Ok(Vouch { owner, .. }) if owner.uid == 0 && host == desk.host => {
                let refusal = Diagnostic::new(Code::HostNotPermitted, "an agent does not speak for root of this host");
                Err(refusal.fix("use the master's own socket: run/master/master.sock below its state directory"))
            }
            Ok(Vouch { owner, task }) => {
                return session::serve(desk, Caller { owner, host, task }, receiver, sender).await;
            }
            Err(error) => Err(error.diagnostic()),
        },
        Kind::Slave => return crate::slaves::serve(&desk.slaves, &host, sender, receiver).await,
        Kind::Request => renew(&connection, &desk, &frame).await,
        Kind::Reply | Kind::Control | Kind::Load | Kind::Refusal | Kind::Unknown => Err(Diagnostic::new(
            Code::BadMessage,
            "a stream begins with a hello or a request",
        )),
    };
    let sent = match outcome {
        Ok(reply) => sender.send(Kind::Reply, frame.id, &reply).await,
        Err(refusal) => sender.send(Kind::Refusal, frame.id, &refusal).await,
    };
    if let Err(error) = sent {
        tracing::info!("a stream of {host}: {}", crate::error_chain(&error));
    }
}

/// A new certificate for the host of the connection, admitted before it is handed out.
async fn renew(connection: &Connection, desk: &Arc<Desk>, frame: &Frame) -> Result<RenewReply, Diagnostic> {
    let RenewRequest { csr } = frame.message().map_err(|error| error.diagnostic())?;
    let host = connection.peer().host.clone();
    let issued = desk.issuer.sign(&csr, &host).map_err(|error| join::refusal(&error))?;
    let input = Input::CertificateRenewed {
        host,
        serial: issued.serial,
        not_after: issued.not_after,
    };
    let ended = |CoreExit| Diagnostic::new(Code::NoMaster, "the master ends");
    desk.input(input).await.map_err(ended)?;
    desk.until_durable().await.map_err(ended)?;
    Ok(RenewReply {
        certificate: issued.certificate,
    })
}
