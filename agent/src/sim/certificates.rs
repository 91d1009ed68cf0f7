//! Certificates for the simulated hosts, from the master's Unix socket: the kernel tells it who
//! asks.

use super::SimOptions;
use crate::backoff::Backoff;
use crate::layout::Layout;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::RequestId;
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::{Answer, ClientHello, ClientMessage, Command, Reply};
use proto::wire::frame::Kind;
use proto::wire::view::{Data, IssuedCertificate};
use quic::{FrameLimits, FrameReceiver, FrameSender, StreamError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

/// How long the master may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for certificates of that many hosts.
///
/// # Errors
/// The master's refusal, or that it does not answer.
pub(super) async fn obtain(layout: &Layout, options: &SimOptions) -> Result<Vec<IssuedCertificate>, Diagnostic> {
    let stream = connect(layout).await?;
    let reply = ask(stream, options)
        .await
        .map_err(|error| no_master(&error.to_string()))?;
    let Reply { answers, data, more: _ } = reply;
    for answer in answers {
        match answer {
            Answer::Refused(refusal) => return Err(refusal),
            Answer::Warning(warning) => tracing::warn!("{warning}"),
            Answer::Done(text) => tracing::info!("{text}"),
        }
    }
    match data {
        Some(Data::Certificates(issued)) => Ok(issued),
        Some(_) | None => Err(Diagnostic::new(
            Code::BadMessage,
            "the master's answer holds no certificates",
        )),
    }
}

async fn connect(layout: &Layout) -> Result<UnixStream, Diagnostic> {
    let give_up = Instant::now() + PATIENCE;
    let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));
    loop {
        let attempt = match layout.socket("master") {
            Ok(path) => UnixStream::connect(&path).await,
            Err(error) => Err(error),
        };
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= give_up => return Err(no_master(&error.to_string())),
            Err(_) => sleep(backoff.pause()).await,
        }
    }
}

async fn ask(stream: UnixStream, options: &SimOptions) -> Result<Reply, StreamError> {
    let (reader, writer) = stream.into_split();
    let mut sender = FrameSender::new(writer, FrameLimits::REQUEST);
    let mut receiver = FrameReceiver::new(reader, FrameLimits::REPLY);
    let hello = ClientHello {
        version: PROTOCOL_VERSION,
        program: "gridwright-agent sim".to_owned(),
        task: None,
    };
    sender.send(Kind::Hello, 0, &hello).await?;
    let command = Command::SimulatedHosts {
        count: options.count,
        slots: options.slots,
    };
    let change = ClientMessage::Change {
        id: RequestId(crate::random()),
        command,
    };
    sender.send(Kind::Request, 1, &change).await?;
    let mut whole = Reply::default();
    while let Some(frame) = receiver.recv().await? {
        if frame.kind == Kind::Refusal {
            return Ok(Reply::refusal(frame.message()?));
        }
        let part: Reply = frame.message()?;
        whole.answers.extend(part.answers);
        match (&mut whole.data, part.data) {
            (Some(Data::Certificates(all)), Some(Data::Certificates(some))) => all.extend(some),
            (data, Some(some)) => *data = Some(some),
            (_, None) => {}
        }
        if !part.more {
            return Ok(whole);
        }
    }
    Err(StreamError::Disconnected)
}

fn no_master(why: &str) -> Diagnostic {
    Diagnostic::new(
        Code::NoMaster,
        "error: unable to send message to qmaster: no certificates for simulated hosts",
    )
    .why(why)
    .fix("start the master of this directory first: gridwright up")
}
