//! How QUIC is set up on both sides: small windows, few streams, a large socket buffer.

use proto::time::Wall;
use quinn::{
    ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use ring::hmac;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Streams with an answer that an agent may have open to the master: its control stream, a renewal,
/// the stream of slave tasks, and one for each command of users on its host. The transport keeps
/// state for every stream that may be opened (31 kB per connection at 8, 371 kB at 4,096, so about
/// 36 kB here); further commands wait for their turn at the agent.
pub const AGENT_STREAMS: u32 = 65;

/// Streams with an answer that a master may have open to an agent: it opens none today.
const MASTER_STREAMS: u32 = 8;

/// Streams without an answer (reports) that a peer may have open.
pub(crate) const UNI_STREAMS: u32 = 8;

/// Bytes that a peer may have sent on one stream before we have read them.
const STREAM_WINDOW: u32 = 256 << 10;

/// Bytes that a peer may have sent on one connection before we have read them: what it can make us
/// hold.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes that we hold for a peer that does not acknowledge.
const SEND_WINDOW: u64 = 1 << 20;

/// How often an idle agent shows that it is alive. The agent sends; the master's answer keeps its
/// own side open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Silence after which a connection is given up: three keep-alives.
const IDLE_TIMEOUT_MS: u32 = 45_000;

/// Receive buffer that is asked for. With 1,000 connections on one socket the system's default
/// loses packets.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// Which end of a connection is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Host,
    Master,
}

/// The transport parameters of one end.
pub(crate) fn transport_config(end: End) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(match end {
            End::Master => AGENT_STREAMS,
            End::Host => MASTER_STREAMS,
        }))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(SEND_WINDOW)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .keep_alive_interval((end == End::Host).then_some(KEEP_ALIVE))
        .datagram_receive_buffer_size(None);
    Arc::new(config)
}

/// Least time between two stateless resets: a restarted master tells a thousand of its former peers
/// in a second.
const RESET_INTERVAL: Duration = Duration::from_millis(1);

/// The bytes of a connection's identifier.
const CONNECTION_ID_BYTES: usize = 8;

/// Identifiers that say nothing, so that those of a former life of the master are answered, too:
/// quinn's own are sealed with a key that dies with the process, and drop them in silence.
struct ConnectionIds(ring::rand::SystemRandom);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CONNECTION_ID_BYTES];
        // Without randomness no handshake comes this far.
        let _ = ring::rand::SecureRandom::fill(&self.0, &mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The endpoint of a master whose private key is `secret`. A packet of a connection that it does
/// not know, because it was restarted, is answered with a stateless reset that the peer believes
/// (RFC 9000 section 10.3): agents come back at once instead of after 45 s of silence. The reset
/// key follows from the private key, which outlives the process.
pub(crate) fn master_config(secret: &[u8]) -> EndpointConfig {
    let seed = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        b"gridwright stateless reset",
    );
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, seed.as_ref())));
    config
        .cid_generator(|| Box::new(ConnectionIds(ring::rand::SystemRandom::new())))
        .min_reset_interval(RESET_INTERVAL);
    config
}

/// An endpoint on a UDP socket with a large buffer; what the system granted is logged for a server.
pub(crate) fn endpoint(
    listen: SocketAddr,
    config: EndpointConfig,
    server: Option<ServerConfig>,
) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(listen), Type::DGRAM, Some(Protocol::UDP))?;
    if listen.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A refusal is no reason to stop: the buffer is as large as it is, and its size is logged.
    let asked = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.bind(&listen.into())?;
    if server.is_some() {
        log_buffer(&socket, asked.is_ok());
    }
    Endpoint::new(config, server, socket.into(), Arc::new(TokioRuntime))
}

/// The kernel reports twice what it grants, for its own bookkeeping (socket(7)).
fn log_buffer(socket: &Socket, accepted: bool) {
    let granted_bytes = socket.recv_buffer_size().unwrap_or(0) / 2;
    if accepted && granted_bytes >= RECEIVE_BUFFER_BYTES {
        tracing::info!(granted_bytes, "UDP receive buffer");
    } else {
        tracing::warn!(
            granted_bytes,
            asked_bytes = RECEIVE_BUFFER_BYTES,
            "UDP receive buffer is small: raise net.core.rmem_max if more than a few hundred hosts connect"
        );
    }
}

/// What this machine's wall clock shows.
pub(crate) fn wall_now() -> Wall {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
