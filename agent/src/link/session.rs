//! One connection: the hello and its answer, then both directions of the control stream until one
//! of them ends.

use super::outgoing::Starts;
use crate::messages::{ConnectionStart, DriverInput};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::agent::{AgentMessage, MasterMessage, MasterWelcome};
use proto::wire::frame::{Frame, FrameError, Kind};
use quic::{Connection, ConnectionEnd, FrameLimits, StreamError, StreamReceiver, StreamSender};
use std::fmt;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// How long the master may take to answer the hello.
const WELCOME_DEADLINE: Duration = Duration::from_secs(30);

/// The most messages that go out together.
const TOGETHER: usize = 64;

/// Why a session ended.
#[derive(Debug)]
pub(super) enum SessionEnd {
    /// There was no connection.
    NotConnected(Diagnostic),
    /// The master refused the hello or the connection.
    Refused(Diagnostic),
    /// The master ended the stream before it answered the hello.
    NoWelcome,
    /// The master did not answer the hello within [`WELCOME_DEADLINE`].
    LateWelcome,
    /// The master ended the control stream.
    StreamEnded,
    /// The control stream broke.
    StreamBroke(StreamError),
    /// The answer to the hello cannot be read.
    Malformed(FrameError),
    /// The connection ended.
    Closed(ConnectionEnd),
    /// The core gave the master up.
    GivenUp,
    /// There is a new certificate to connect with.
    Renewed,
    /// The agent ends.
    AgentEnds,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(diagnostic) => write!(f, "{diagnostic}"),
            Self::Refused(diagnostic) => write!(f, "it refuses this host: {diagnostic}"),
            Self::NoWelcome => f.write_str("the connection ended: it answered no hello"),
            Self::LateWelcome => f.write_str("the connection ended: it did not answer the hello in time"),
            Self::StreamEnded => f.write_str("the connection ended: it ended the control stream"),
            Self::StreamBroke(why) => write!(f, "the connection ended: {why}"),
            Self::Malformed(why) => write!(f, "the connection ended: {why}"),
            Self::Closed(why) => write!(f, "the connection ended: {why}"),
            Self::GivenUp => f.write_str("this agent disconnects"),
            Self::Renewed => f.write_str("connecting anew with a new certificate"),
            Self::AgentEnds => f.write_str("this agent ends"),
        }
    }
}

/// The control stream after the welcome, and what is to be sent on it.
pub(super) struct Control {
    sender: StreamSender,
    receiver: StreamReceiver,
    outbox: mpsc::Receiver<AgentMessage>,
}

/// Opens the control stream, says hello and hands the welcome to the driver.
pub(super) async fn hello(connection: &Connection, driver: &mpsc::Sender<DriverInput>) -> Result<Control, SessionEnd> {
    let (mut sender, mut receiver) = connection
        .open_bi(FrameLimits::CONTROL)
        .await
        .map_err(SessionEnd::StreamBroke)?;
    let (reply, opening) = oneshot::channel();
    driver
        .send(DriverInput::Open(reply))
        .await
        .map_err(|_| SessionEnd::AgentEnds)?;
    let ConnectionStart { hello, outbox } = opening.await.map_err(|_| SessionEnd::AgentEnds)?;
    sender
        .send(Kind::Hello, 0, &hello)
        .await
        .map_err(SessionEnd::StreamBroke)?;
    let frame = match timeout(WELCOME_DEADLINE, receiver.recv()).await {
        Ok(Ok(Some(frame))) => frame,
        Ok(Ok(None)) => return Err(SessionEnd::NoWelcome),
        Ok(Err(error)) => return Err(how_it_closed(connection, error).await),
        Err(_) => return Err(SessionEnd::LateWelcome),
    };
    if frame.kind == Kind::Refusal {
        return Err(SessionEnd::Refused(frame.message().map_err(SessionEnd::Malformed)?));
    }
    let welcome: MasterWelcome = frame.message().map_err(SessionEnd::Malformed)?;
    driver
        .send(DriverInput::Welcome(Box::new(welcome)))
        .await
        .map_err(|_| SessionEnd::AgentEnds)?;
    Ok(Control {
        sender,
        receiver,
        outbox,
    })
}

/// Both directions until one ends.
pub(super) async fn converse(
    connection: &Connection,
    control: Control,
    driver: &mpsc::Sender<DriverInput>,
) -> SessionEnd {
    let Control {
        sender,
        receiver,
        outbox,
    } = control;
    let end = tokio::select! {
        end = send_all(sender, outbox) => end,
        end = receive_all(receiver, driver) => end,
        closed = connection.closed() => return SessionEnd::Closed(closed),
    };
    match end {
        Ok(end) => end,
        Err(error) => how_it_closed(connection, error).await,
    }
}

/// What waits goes out together, and starts a moment late.
async fn send_all(
    mut sender: StreamSender,
    mut outbox: mpsc::Receiver<AgentMessage>,
) -> Result<SessionEnd, StreamError> {
    let (mut waiting, mut starts) = (Vec::new(), Starts::default());
    for id in 1.. {
        let more = outbox.recv_many(&mut waiting, TOGETHER);
        let came = match starts.due() {
            Some(due) => timeout_at(due, more).await.ok(),
            None => Some(more.await),
        };
        if came == Some(0) {
            break;
        }
        let now = Instant::now();
        for message in waiting.drain(..).filter_map(|message| starts.sift(message, now)) {
            sender.add(Kind::Control, id, &message)?;
        }
        for message in starts.leave(now) {
            sender.add(Kind::Control, id, &message)?;
        }
        if sender.added() > 0 {
            sender.send_added().await?;
        }
    }
    Ok(SessionEnd::GivenUp)
}

async fn receive_all(
    mut receiver: StreamReceiver,
    driver: &mpsc::Sender<DriverInput>,
) -> Result<SessionEnd, StreamError> {
    loop {
        let input = match receiver.recv().await {
            Ok(Some(frame)) => understand(&frame),
            Ok(None) => return Ok(SessionEnd::StreamEnded),
            Err(error) if error.is_single_frame() => refuse(Diagnostic::new(Code::BadMessage, error.to_string())),
            Err(error) => return Err(error),
        };
        if driver.send(input).await.is_err() {
            return Ok(SessionEnd::AgentEnds);
        }
    }
}

/// What a frame of the master means. What is not understood is refused singly.
fn understand(frame: &Frame) -> DriverInput {
    match frame.kind {
        Kind::Control => match frame.message::<MasterMessage>() {
            Ok(message) => DriverInput::Master(Box::new(message)),
            Err(error) => refuse(error.diagnostic()),
        },
        Kind::Refusal => match frame.message::<Diagnostic>() {
            Ok(refusal) => DriverInput::Master(Box::new(MasterMessage::Refused(refusal))),
            Err(error) => refuse(error.diagnostic()),
        },
        Kind::Hello | Kind::Request | Kind::Reply | Kind::Load | Kind::Slave | Kind::Unknown => refuse(
            Diagnostic::new(Code::BadMessage, "this kind of frame is not known on a control stream"),
        ),
    }
}

fn refuse(refusal: Diagnostic) -> DriverInput {
    tracing::warn!("a message of the master is refused: {refusal}");
    DriverInput::Soft(Box::new(AgentMessage::Refused(refusal)))
}

/// A stream that breaks with its connection: why the connection ended says more.
async fn how_it_closed(connection: &Connection, error: StreamError) -> SessionEnd {
    const MOMENT: Duration = Duration::from_millis(100);
    match timeout(MOMENT, connection.closed()).await {
        Ok(closed) => SessionEnd::Closed(closed),
        Err(_) => SessionEnd::StreamBroke(error),
    }
}
