//! A connection whose peer is known, with framed streams on it.

use crate::error::StreamError;
use crate::identity::{CaCertificate, PeerIdentity};
use crate::stream::{FrameLimits, FrameReceiver, FrameSender};
use proto::time::Wall;
use proto::wire::frame::Kind;
use quinn::{ConnectionError, VarInt};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why a side closes a connection. The numbers travel: a code is never given a new meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// All is said.
    Done = 0,
    /// The daemon stops.
    ShuttingDown = 1,
    /// The peer sent what it must not send.
    Misbehaved = 2,
    /// The protocol asks for a certificate and there was none, or one of another kind.
    CertificateRequired = 3,
    /// The certificate is not admitted.
    Revoked = 4,
    /// The certificate is out of its time.
    OutOfTime = 5,
    /// A limit is reached.
    Overloaded = 6,
    /// A newer connection of the same host took this one's place.
    Replaced = 7,
    /// The peer took too long.
    TooSlow = 8,
}

impl CloseCode {
    const ALL: [Self; 9] = [
        Self::Done,
        Self::ShuttingDown,
        Self::Misbehaved,
        Self::CertificateRequired,
        Self::Revoked,
        Self::OutOfTime,
        Self::Overloaded,
        Self::Replaced,
        Self::TooSlow,
    ];

    /// The code in words.
    fn words(self) -> &'static str {
        match self {
            Self::Done => "it has said all",
            Self::ShuttingDown => "it stops",
            Self::Misbehaved => "it was sent what it must not be sent",
            Self::CertificateRequired => "it was shown no certificate of the kind that it asks for",
            Self::Revoked => "the certificate is not admitted",
            Self::OutOfTime => "the certificate is out of its time",
            Self::Overloaded => "a limit is reached",
            Self::Replaced => "a newer connection of the same host took its place",
            Self::TooSlow => "it was kept waiting for too long",
        }
    }

    pub(crate) fn number(self) -> VarInt {
        VarInt::from_u32(self as u32)
    }

    /// The code of that number, unless a newer release made it.
    pub(crate) fn from_number(number: VarInt) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// This side closed it.
    Here,
    /// The peer closed it.
    ByPeer {
        /// Why; `None` for a code of a newer release.
        code: Option<CloseCode>,
        /// In its words.
        reason: String,
    },
    /// The peer has been silent for 45 s.
    Silent,
    /// The transport gave up, or the peer has lost its state (it was restarted).
    Broken {
        /// In the words of the transport.
        why: String,
    },
}

impl fmt::Display for ConnectionEnd {
    /// How it ended, as a log has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("the connection was closed here"),
            Self::ByPeer { code: _, reason } if !reason.is_empty() => f.write_str(reason),
            Self::ByPeer {
                code: Some(code),
                reason: _,
            } => {
                write!(f, "the other side closed the connection: {}", code.words())
            }
            Self::ByPeer { code: None, reason: _ } => f.write_str("the other side closed the connection"),
            Self::Silent => f.write_str("the other side has been silent for 45 s"),
            Self::Broken { why } => f.write_str(why),
        }
    }
}

impl From<ConnectionError> for ConnectionEnd {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Here,
            ConnectionError::TimedOut => Self::Silent,
            ConnectionError::ApplicationClosed(close) => Self::ByPeer {
                code: CloseCode::from_number(close.error_code),
                reason: String::from_utf8_lossy(&close.reason).into_owned(),
            },
            ConnectionError::VersionMismatch
            | ConnectionError::TransportError(_)
            | ConnectionError::ConnectionClosed(_)
            | ConnectionError::Reset
            | ConnectionError::CidsExhausted => Self::Broken { why: error.to_string() },
        }
    }
}

/// The first frame of the master on every connection: it says that the peer is admitted, and what
/// time it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) wall: Wall,
}

/// A connection as all who use it share it: it closes when the last of them, streams included, is
/// gone.
pub(crate) struct Link {
    quic: quinn::Connection,
    /// What ends with the connection: its place in a register, its share of a limit.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl Link {
    pub(crate) fn new(quic: quinn::Connection, guard: Option<Box<dyn Any + Send + Sync>>) -> Self {
        Self { quic, _guard: guard }
    }

    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        self.quic.close(code.number(), reason.as_bytes());
    }

    /// Sends the master's first frame.
    pub(crate) async fn welcome(self: &Arc<Self>, wall: Wall) -> Result<(), StreamError> {
        self.send_once(Kind::Hello, 0, &Welcome { wall }, FrameLimits::JOIN)
            .await
    }

    /// Receives the master's first frame.
    pub(crate) async fn welcomed(self: &Arc<Self>) -> Result<Welcome, StreamError> {
        let mut receiver = self.accept_uni(FrameLimits::JOIN).await?;
        let frame = receiver.recv().await?.ok_or(StreamError::Truncated { got: 0 })?;
        Ok(frame.message()?)
    }

    pub(crate) fn close_reason(&self) -> Option<ConnectionError> {
        self.quic.close_reason()
    }

    async fn send_once<T: Serialize>(
        self: &Arc<Self>,
        kind: Kind,
        id: u64,
        message: &T,
        limits: FrameLimits,
    ) -> Result<(), StreamError> {
        let mut sender = self.sender(self.quic.open_uni().await.map_err(gone)?, limits);
        sender.send(kind, id, message).await?;
        sender.finish().await
    }

    async fn open_bi(self: &Arc<Self>, limits: FrameLimits) -> Result<(StreamSender, StreamReceiver), StreamError> {
        let (send, recv) = self.quic.open_bi().await.map_err(gone)?;
        Ok((self.sender(send, limits), self.receiver(recv, limits)))
    }

    async fn accept_bi(self: &Arc<Self>, limits: FrameLimits) -> Result<(StreamSender, StreamReceiver), StreamError> {
        let (send, recv) = self.quic.accept_bi().await.map_err(gone)?;
        Ok((self.sender(send, limits), self.receiver(recv, limits)))
    }

    async fn accept_uni(self: &Arc<Self>, limits: FrameLimits) -> Result<StreamReceiver, StreamError> {
        Ok(self.receiver(self.quic.accept_uni().await.map_err(gone)?, limits))
    }

    fn sender(self: &Arc<Self>, stream: quinn::SendStream, limits: FrameLimits) -> StreamSender {
        FrameSender::new(
            SendHalf {
                stream,
                _link: self.clone(),
            },
            limits,
        )
    }

    fn receiver(self: &Arc<Self>, stream: quinn::RecvStream, limits: FrameLimits) -> StreamReceiver {
        FrameReceiver::new(
            RecvHalf {
                stream,
                _link: self.clone(),
            },
            limits,
        )
    }

    fn remote_address(&self) -> SocketAddr {
        let address = self.quic.remote_address();
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }
}

/// Why no stream can be opened is told by [`Connection::closed`].
fn gone(_: ConnectionError) -> StreamError {
    StreamError::Disconnected
}

/// The certificates that the peer showed, its own first; empty if none.
pub(crate) fn peer_chain(quic: &quinn::Connection) -> Vec<CertificateDer<'static>> {
    quic.peer_identity()
        .and_then(|any| any.downcast().ok())
        .map(|chain| *chain)
        .unwrap_or_default()
}

/// An authenticated connection between a host and the master. Clones are the same connection, which
/// closes when the last clone and the last stream are dropped.
#[derive(Clone)]
pub struct Connection {
    link: Arc<Link>,
    peer: Arc<PeerIdentity>,
    clock_offset_ms: Option<i64>,
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>, peer: PeerIdentity, clock_offset_ms: Option<i64>) -> Self {
        Self {
            link,
            peer: Arc::new(peer),
            clock_offset_ms,
        }
    }

    /// Who the peer is by its certificate: at the master the host, at a host the master.
    pub fn peer(&self) -> &PeerIdentity {
        &self.peer
    }

    /// How far the master's wall clock was ahead of ours when the connection was made, in
    /// milliseconds, to within one round trip. `None` at the master, which learns its hosts' clocks
    /// from their reports.
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.clock_offset_ms
    }

    /// Where the peer's packets come from now; it may change while the connection lives.
    pub fn remote_address(&self) -> SocketAddr {
        self.link.remote_address()
    }

    /// How many datagrams have come on this connection: it grows while the peer is there.
    pub fn received_datagrams(&self) -> u64 {
        self.link.quic.stats().udp_rx.datagrams
    }

    /// A number that no other connection of this process has.
    pub fn id(&self) -> usize {
        self.link.quic.stable_id()
    }

    /// Opens a stream with an answer. Waits while 8 are open. The peer learns of it with the first
    /// frame.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn open_bi(&self, limits: FrameLimits) -> Result<(StreamSender, StreamReceiver), StreamError> {
        self.link.open_bi(limits).await
    }

    /// The next stream with an answer that the peer opened.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn accept_bi(&self, limits: FrameLimits) -> Result<(StreamSender, StreamReceiver), StreamError> {
        self.link.accept_bi(limits).await
    }

    /// The next stream without an answer that the peer opened.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn accept_uni(&self, limits: FrameLimits) -> Result<StreamReceiver, StreamError> {
        self.link.accept_uni(limits).await
    }

    /// Opens a stream without an answer. Waits while 8 are open.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn open_uni(&self, limits: FrameLimits) -> Result<StreamSender, StreamError> {
        let stream = self.link.quic.open_uni().await.map_err(gone)?;
        Ok(self.link.sender(stream, limits))
    }

    /// Sends one report on a stream of its own, so that it delays nothing and nothing delays it.
    /// Returns when the report is handed to the transport; whether it arrived, only an answer
    /// tells.
    ///
    /// # Errors
    /// As [`FrameSender::send`].
    pub async fn send_report<T: Serialize>(&self, kind: Kind, id: u64, message: &T) -> Result<(), StreamError> {
        self.link.send_once(kind, id, message, FrameLimits::REPORT).await
    }

    /// Closes the connection at once, for all clones and streams. Of `reason` the peer sees about a
    /// thousand bytes.
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.link.close(code, reason);
    }

    /// Waits until the connection has ended, and says how.
    pub async fn closed(&self) -> ConnectionEnd {
        self.link.quic.closed().await.into()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.peer.host)
            .field("from", &self.remote_address())
            .finish()
    }
}

/// A connection for enrolment: the master is known by the token's fingerprint, the host by nothing
/// but its token. It carries one stream.
pub struct JoinConnection {
    link: Arc<Link>,
    ca: CaCertificate,
}

impl JoinConnection {
    pub(crate) fn new(link: Arc<Link>, ca: CaCertificate) -> Self {
        Self { link, ca }
    }

    /// The CA of the cell, which the host keeps and trusts from now on.
    pub fn ca(&self) -> &CaCertificate {
        &self.ca
    }

    /// Where the peer's packets come from.
    pub fn remote_address(&self) -> SocketAddr {
        self.link.remote_address()
    }

    /// Opens the one stream, at the host.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn open(&self) -> Result<(StreamSender, StreamReceiver), StreamError> {
        self.link.open_bi(FrameLimits::JOIN).await
    }

    /// Waits for the one stream, at the master.
    ///
    /// # Errors
    /// `Disconnected`.
    pub async fn accept(&self) -> Result<(StreamSender, StreamReceiver), StreamError> {
        self.link.accept_bi(FrameLimits::JOIN).await
    }

    /// Closes the connection at once.
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.link.close(code, reason);
    }

    /// Waits until the connection has ended, and says how. The master waits here after its answer,
    /// so that the answer is not cut off: the host closes once it has it.
    pub async fn closed(&self) -> ConnectionEnd {
        self.link.quic.closed().await.into()
    }
}

impl std::fmt::Debug for JoinConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinConnection")
            .field("from", &self.remote_address())
            .finish()
    }
}

/// The sending half of a stream of frames on a connection. Dropped, it ends the stream in order.
pub type StreamSender = FrameSender<SendHalf>;

/// The receiving half of a stream of frames on a connection. Dropped early, it tells the peer to
/// stop sending.
pub type StreamReceiver = FrameReceiver<RecvHalf>;

/// The bytes of a [`StreamSender`].
pub struct SendHalf {
    stream: quinn::SendStream,
    _link: Arc<Link>,
}

/// The bytes of a [`StreamReceiver`].
pub struct RecvHalf {
    stream: quinn::RecvStream,
    _link: Arc<Link>,
}

impl AsyncWrite for SendHalf {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.stream), cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.stream), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.stream), cx)
    }
}

impl AsyncRead for RecvHalf {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.stream), cx, buffer)
    }
}
