//! The master's end: one UDP port, both protocols, and what an unknown peer may cost.

mod gate;
mod register;

use crate::connection::{CloseCode, Connection, JoinConnection, Link, peer_chain};
use crate::error::BindError;
use crate::identity::{CaCertificate, Credentials, LATE_RENEWAL_S, PeerIdentity, Serial, readable};
use crate::ticket::TicketKeys;
use crate::tls::{ALPN_HOST, ALPN_JOIN, server_config};
use crate::transport::{End, endpoint, master_config, transport_config, wall_now};
use gate::{JoinGate, RefusalLog};
use proto::time::Wall;
use quinn::crypto::rustls::HandshakeData;
use quinn::{Endpoint, Incoming, VarInt};
use register::Register;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

/// How long a peer may take from its first packet to the end of the handshake.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How long an enrolment may take altogether.
const JOIN_DEADLINE: Duration = Duration::from_secs(60);

/// Connections that wait for [`Server::accept`]; beyond them handshakes wait.
const BACKLOG: usize = 64;

/// First packets that wait for a handshake slot; beyond them the peer is refused and tries again
/// later.
const INCOMING_MAX: usize = 4_096;

/// Bytes of first packets kept for one waiting peer, and for all of them.
const INCOMING_BYTES: u64 = 8 << 10;
const INCOMING_BYTES_TOTAL: u64 = 4 << 20;

/// How long a stopping server waits for peers to hear of it.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(2);

/// What unknown peers may cost at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Handshakes at the same time (64); each holds some 50 kB. From the half on, peers must prove
    /// their address first (RFC 9000 section 8.1.2).
    pub handshakes: usize,
    /// Enrolments at the same time (64).
    pub joins: usize,
    /// Enrolments at the same time from one address (16).
    pub joins_per_address: usize,
    /// Enrolments that one address may begin in a row (64).
    pub join_burst: u32,
    /// Further enrolments that it may begin per second (8).
    pub joins_per_s: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            handshakes: 64,
            joins: 64,
            joins_per_address: 16,
            join_burst: 64,
            joins_per_s: 8,
        }
    }
}

/// Whether a certificate of our CA is still good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Admit,
    /// It is not: revoked, or never issued.
    Refuse {
        /// For the host's administrator.
        why: String,
    },
}

/// Asked on every connection of a host, resumed or not, with what its certificate says. It must not
/// block.
pub type Admission = Arc<dyn Fn(&PeerIdentity) -> Verdict + Send + Sync>;

/// A connection that passed its checks.
#[derive(Debug)]
pub enum AcceptedConnection {
    /// From a host with an admitted certificate.
    Host(Connection),
    /// From somebody who wants to join and has shown nothing yet.
    Join(JoinConnection),
}

/// The master's end of all connections. Dropped, it closes them.
pub struct Server {
    shared: Arc<ServerState>,
    accepted: Mutex<mpsc::Receiver<AcceptedConnection>>,
}

/// What the handshakes share.
struct ServerState {
    endpoint: Endpoint,
    ca: RwLock<CaCertificate>,
    tickets: TicketKeys,
    admission: Admission,
    register: Arc<Register>,
    joins: Arc<JoinGate>,
    handshakes: Arc<Semaphore>,
    limits: ServerLimits,
    refusals: RefusalLog,
}

/// Why a peer was not accepted, for the log.
struct Refusal(String);

impl Server {
    /// Opens the port and begins to accept; to be called inside a tokio runtime. Port 0 takes a
    /// free one.
    ///
    /// # Errors
    /// `Socket` if the address is taken or not ours, `Credentials` if they cannot be served with.
    pub fn bind(
        listen: SocketAddr,
        credentials: &Credentials,
        tickets: TicketKeys,
        limits: ServerLimits,
        admission: Admission,
    ) -> Result<Self, BindError> {
        let config = quic_config(credentials, &tickets)?;
        let own = master_config(credentials.key().secret_der());
        let endpoint = endpoint(listen, own, Some(config)).map_err(|source| BindError::Socket { listen, source })?;
        let shared = Arc::new(ServerState {
            endpoint,
            ca: RwLock::new(credentials.ca().clone()),
            tickets,
            admission,
            register: Arc::default(),
            joins: Arc::new(JoinGate::new(limits)),
            handshakes: Arc::new(Semaphore::new(limits.handshakes)),
            limits,
            refusals: RefusalLog::default(),
        });
        let (sender, receiver) = mpsc::channel(BACKLOG);
        tokio::spawn(accept_all(shared.clone(), sender));
        Ok(Self {
            shared,
            accepted: Mutex::new(receiver),
        })
    }

    /// The address and port that is served.
    ///
    /// # Errors
    /// The system's, if the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.endpoint.local_addr()
    }

    /// The next connection that passed its checks; `None` once the server is shut down. Cancel
    /// safe.
    pub async fn accept(&self) -> Option<AcceptedConnection> {
        self.accepted.lock().await.recv().await
    }

    /// Closes the open connections of a certificate; returns how many. New ones are refused by the
    /// [`Admission`], which must know of the revocation before this is called.
    pub fn revoke(&self, serial: Serial) -> usize {
        self.shared
            .register
            .close_all(serial, CloseCode::Revoked, "the certificate was revoked")
    }

    /// Serves new connections with a renewed certificate; open ones stay.
    ///
    /// # Errors
    /// `Credentials` if they cannot be served with.
    pub fn replace_credentials(&self, credentials: &Credentials) -> Result<(), BindError> {
        let config = quic_config(credentials, &self.shared.tickets)?;
        *self.shared.ca.write().unwrap_or_else(PoisonError::into_inner) = credentials.ca().clone();
        self.shared.endpoint.set_server_config(Some(config));
        Ok(())
    }

    /// Closes all connections and waits up to 2 s until the peers know.
    pub async fn shutdown(&self) {
        self.shared
            .endpoint
            .close(CloseCode::ShuttingDown.number(), b"the master stops");
        // A peer that is gone already does not answer: there is nothing to do about it.
        let _ = timeout(SHUTDOWN_DEADLINE, self.shared.endpoint.wait_idle()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared
            .endpoint
            .close(CloseCode::ShuttingDown.number(), b"the master stops");
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("listen", &self.local_addr())
            .finish_non_exhaustive()
    }
}

fn quic_config(credentials: &Credentials, tickets: &TicketKeys) -> Result<quinn::ServerConfig, BindError> {
    let crypto = server_config(credentials, tickets.clone())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(transport_config(End::Master))
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_BYTES_TOTAL);
    Ok(config)
}

/// Takes first packets one by one, each into a handshake of its own, as many at once as the limit
/// allows.
async fn accept_all(shared: Arc<ServerState>, accepted: mpsc::Sender<AcceptedConnection>) {
    while let Ok(slot) = shared.handshakes.clone().acquire_owned().await {
        let Some(incoming) = shared.endpoint.accept().await else {
            return;
        };
        let loaded = shared.handshakes.available_permits() < shared.limits.handshakes / 2;
        if loaded && incoming.may_retry() && !incoming.remote_address_validated() {
            // Fails only for a peer whose address is validated already.
            let _ = incoming.retry();
            continue;
        }
        tokio::spawn(handshake(shared.clone(), incoming, accepted.clone(), slot));
    }
}

/// One peer from its first packet until it is accepted or refused with one line in the log.
async fn handshake(
    shared: Arc<ServerState>,
    incoming: Incoming,
    accepted: mpsc::Sender<AcceptedConnection>,
    _slot: OwnedSemaphorePermit,
) {
    let address = incoming.remote_address();
    let outcome = timeout(HANDSHAKE_DEADLINE, shared.admit(incoming)).await;
    match outcome.unwrap_or_else(|_| Err(Refusal("it did not finish the handshake in time".to_owned()))) {
        // The receiver is gone only when the server is.
        Ok(connection) => drop(accepted.send(connection).await),
        Err(Refusal(why)) => shared.refusals.log(address, &why),
    }
}

impl ServerState {
    async fn admit(&self, incoming: Incoming) -> Result<AcceptedConnection, Refusal> {
        let connecting = incoming.accept().map_err(|e| Refusal(e.to_string()))?;
        let quic = connecting.await.map_err(|e| Refusal(e.to_string()))?;
        match protocol(&quic).as_deref() {
            Some(ALPN_HOST) => self.admit_host(quic).await,
            Some(ALPN_JOIN) => self.admit_join(quic).await,
            Some(_) | None => Err(refuse(
                &quic,
                CloseCode::Misbehaved,
                "no protocol was chosen".to_owned(),
            )),
        }
    }

    async fn admit_host(&self, quic: quinn::Connection) -> Result<AcceptedConnection, Refusal> {
        let chain = peer_chain(&quic);
        let Some(certificate) = chain.first() else {
            let why = "a certificate of this cell is required".to_owned();
            return Err(refuse(&quic, CloseCode::CertificateRequired, why));
        };
        let peer = PeerIdentity::from_der(certificate)
            .map_err(|e| refuse(&quic, CloseCode::CertificateRequired, e.to_string()))?;
        // Entered before it is judged: a revocation in between finds the connection, or the judge
        // knows of it already.
        let register = self.register.clone();
        let link = Arc::new_cyclic(|link: &Weak<Link>| {
            let place = register.enter(peer.serial, link.clone());
            Link::new(quic.clone(), Some(Box::new(place)))
        });
        judge(&peer, self.ca().cell(), wall_now(), &self.admission)
            .map_err(|(code, why)| refuse(&quic, code, format!("{}: {why}", peer.host)))?;
        self.register.keep_newest(peer.serial);
        welcome(&link).await?;
        Ok(AcceptedConnection::Host(Connection::new(link, peer, None)))
    }

    async fn admit_join(&self, quic: quinn::Connection) -> Result<AcceptedConnection, Refusal> {
        let slot = JoinGate::enter(&self.joins, quic.remote_address().ip(), tokio::time::Instant::now())
            .map_err(|why| refuse(&quic, CloseCode::Overloaded, why.to_string()))?;
        quic.set_max_concurrent_uni_streams(VarInt::from_u32(0));
        quic.set_max_concurrent_bi_streams(VarInt::from_u32(1));
        let link = Arc::new(Link::new(quic, Some(Box::new(slot))));
        tokio::spawn(close_late(Arc::downgrade(&link)));
        welcome(&link).await?;
        Ok(AcceptedConnection::Join(JoinConnection::new(link, self.ca())))
    }

    fn ca(&self) -> CaCertificate {
        self.ca.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn welcome(link: &Arc<Link>) -> Result<(), Refusal> {
    link.welcome(wall_now())
        .await
        .map_err(|e| Refusal(format!("it left before it was welcomed: {e}")))
}

/// An enrolment that takes too long holds a place that others need.
async fn close_late(link: Weak<Link>) {
    tokio::time::sleep(JOIN_DEADLINE).await;
    if let Some(link) = link.upgrade() {
        link.close(CloseCode::TooSlow, "joining took too long");
    }
}

/// Tells the peer why, and gives the same reason for the log.
fn refuse(quic: &quinn::Connection, code: CloseCode, why: String) -> Refusal {
    quic.close(code.number(), why.as_bytes());
    Refusal(why)
}

fn protocol(quic: &quinn::Connection) -> Option<Vec<u8>> {
    quic.handshake_data()?.downcast::<HandshakeData>().ok()?.protocol
}

/// Whether a certificate that our CA signed is admitted now: its cell, its time, and what the
/// master knows of its serial.
fn judge(
    peer: &PeerIdentity,
    cell: proto::id::CellId,
    now: Wall,
    admission: &Admission,
) -> Result<(), (CloseCode, String)> {
    let here = readable(now);
    if peer.cell != cell {
        return Err((
            CloseCode::CertificateRequired,
            "the certificate is of another cell".to_owned(),
        ));
    }
    if now < peer.not_before {
        let why = format!(
            "the certificate begins {}, the master's clock shows {here}",
            readable(peer.not_before)
        );
        return Err((CloseCode::OutOfTime, why));
    }
    if now.seconds() > peer.not_after.seconds().saturating_add(LATE_RENEWAL_S) {
        let why = format!(
            "the certificate ended {}, the master's clock shows {here}",
            readable(peer.not_after)
        );
        return Err((CloseCode::OutOfTime, why));
    }
    match admission(peer) {
        Verdict::Admit => Ok(()),
        Verdict::Refuse { why } => Err((CloseCode::Revoked, why)),
    }
}
