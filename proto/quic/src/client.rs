//! A host's end: it dials out to the master, with its certificate or, to join, with a token's
//! fingerprint.

use crate::connection::{CloseCode, Connection, JoinConnection, Link, Welcome, peer_chain};
use crate::error::{ConnectError, IdentityError};
use crate::identity::{CaCertificate, Credentials, Fingerprint, PeerIdentity};
use crate::tls::{ALPN_JOIN, SERVER_NAME, anonymous_config, host_config};
use crate::transport::{End, endpoint, transport_config, wall_now};
use proto::time::Wall;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, ConnectionError, Endpoint, EndpointConfig, TransportErrorCode};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout_at};

/// How long the master may take to answer, the check of our certificate included.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// How much later each further address of the master is tried (RFC 8305): a name may have addresses
/// that do not work.
const ADDRESS_DELAY: Duration = Duration::from_millis(250);

/// TLS alerts (RFC 8446 section 6) in which one side rejects the other's certificate.
const CERTIFICATE_ALERTS: [u8; 10] = [42, 43, 44, 45, 46, 48, 49, 51, 113, 116];

/// TLS alert: the sides have no protocol in common.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// Where the master listens, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAddress {
    /// Its name, or its address.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
}

/// `HOST udp/PORT`.
impl fmt::Display for MasterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} udp/{}", self.host, self.port)
    }
}

/// The sockets from which connections go out, one per address family, opened when first needed.
#[derive(Default)]
struct Sockets {
    v4: Mutex<Option<Endpoint>>,
    v6: Mutex<Option<Endpoint>>,
}

/// Dials the master. Keeps the sessions that the master gave, so that a reconnect is cheaper.
#[derive(Clone)]
pub struct Client {
    sockets: Arc<Sockets>,
    config: ClientConfig,
    deadline: Duration,
}

impl Client {
    /// A client that proves itself with `credentials`. After a renewal, make a new one with
    /// [`Client::with_credentials`].
    ///
    /// # Errors
    /// `BadKey` if certificate and key cannot be used together.
    pub fn new(credentials: &Credentials) -> Result<Self, IdentityError> {
        let config = host_config(credentials).map_err(IdentityError::bad_key)?;
        Ok(Self::with_config(config))
    }

    pub(crate) fn with_config(config: QuicClientConfig) -> Self {
        Self {
            sockets: Arc::default(),
            config: quic_config(config),
            deadline: CONNECT_DEADLINE,
        }
    }

    /// A client with other credentials on the same sockets: after a renewal, or for many simulated
    /// hosts.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_credentials(&self, credentials: &Credentials) -> Result<Self, IdentityError> {
        let mut client = Self::new(credentials)?;
        (client.sockets, client.deadline) = (self.sockets.clone(), self.deadline);
        Ok(client)
    }

    /// The same client with another limit on how long the master may take (default 10 s).
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Connects to the master and waits until it has admitted us. All addresses of its name are
    /// tried.
    ///
    /// # Errors
    /// As [`ConnectError`]; `NoAnswer` after the deadline.
    pub async fn connect(&self, master: &MasterAddress) -> Result<Connection, ConnectError> {
        let GreetedConnection {
            link,
            identity,
            chain: _,
            offset_ms,
        } = dial(&self.sockets, &self.config, master, self.deadline).await?;
        Ok(Connection::new(link, identity, Some(offset_ms)))
    }

    /// Connects to join the cell whose CA has the fingerprint `ca`.
    ///
    /// # Errors
    /// As [`ConnectError`]; `ForeignMaster` if the fingerprint is another's.
    pub async fn join(
        master: &MasterAddress,
        ca: Fingerprint,
        deadline: Duration,
    ) -> Result<JoinConnection, ConnectError> {
        let config = anonymous_config(ca, ALPN_JOIN).map_err(|e| ConnectError::Broken { why: e.to_string() })?;
        let GreetedConnection {
            link,
            identity: _,
            chain,
            offset_ms: _,
        } = dial(&Arc::default(), &quic_config(config), master, deadline).await?;
        let ca = chain.into_iter().find(|der| Fingerprint::of_certificate(der) == ca);
        let ca = ca.and_then(|der| CaCertificate::from_der(der).ok());
        let ca = ca.ok_or_else(|| ConnectError::ForeignMaster {
            host: master.host.clone(),
        })?;
        Ok(JoinConnection::new(link, ca))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

pub(crate) fn quic_config(crypto: QuicClientConfig) -> ClientConfig {
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport_config(End::Host));
    config
}

/// A connection on which the master has said that we are admitted.
struct GreetedConnection {
    link: Arc<Link>,
    identity: PeerIdentity,
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    offset_ms: i64,
}

/// Tries all addresses of the master, each a little after the one before. The first that admits us
/// wins; a reason that one of them gave is worth more than the silence of the others.
async fn dial(
    sockets: &Arc<Sockets>,
    config: &ClientConfig,
    master: &MasterAddress,
    deadline: Duration,
) -> Result<GreetedConnection, ConnectError> {
    let until = tokio::time::Instant::now() + deadline;
    let silence = || ConnectError::NoAnswer {
        host: master.host.clone(),
        port: master.port,
    };
    let addresses = timeout_at(until, resolve(master)).await.map_err(|_| silence())??;
    let mut attempts = JoinSet::new();
    for (address, order) in addresses.into_iter().zip(0..) {
        let (sockets, config, master) = (sockets.clone(), config.clone(), master.clone());
        attempts.spawn(async move {
            sleep(ADDRESS_DELAY * order).await;
            attempt(&sockets, config, address, &master).await
        });
    }
    let mut reason = None;
    while let Ok(next) = timeout_at(until, attempts.join_next()).await {
        match next {
            None => return Err(reason.unwrap_or_else(silence)),
            Some(Ok(Ok(greeted))) => return Ok(greeted),
            Some(Ok(Err(error))) => reason = telling(reason, error),
            Some(Err(error)) => reason = telling(reason, ConnectError::Broken { why: error.to_string() }),
        }
    }
    Err(reason.filter(ConnectError::is_from_master).unwrap_or_else(silence))
}

/// Of two addresses' errors the one that says more: what the master says before what this machine
/// says.
fn telling(before: Option<ConnectError>, after: ConnectError) -> Option<ConnectError> {
    match before {
        Some(before) if before.is_from_master() => Some(before),
        Some(_) | None => Some(after),
    }
}

async fn resolve(master: &MasterAddress) -> Result<Vec<SocketAddr>, ConnectError> {
    let unresolved = |source| ConnectError::Unresolved {
        host: master.host.clone(),
        source,
    };
    let found = tokio::net::lookup_host((master.host.as_str(), master.port))
        .await
        .map_err(unresolved)?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        Err(unresolved(std::io::ErrorKind::NotFound.into()))
    } else {
        Ok(addresses)
    }
}

/// One address: handshake, the master's verdict on us, ours on its certificate and clock.
async fn attempt(
    sockets: &Sockets,
    config: ClientConfig,
    address: SocketAddr,
    master: &MasterAddress,
) -> Result<GreetedConnection, ConnectError> {
    let connecting = sockets
        .endpoint(address)?
        .connect_with(config, address, SERVER_NAME)
        .map_err(|e| ConnectError::Broken { why: e.to_string() })?;
    let quic = connecting.await.map_err(|e| refused(e, master))?;
    let link = Arc::new(Link::new(quic.clone(), None));
    let welcome = link.welcomed().await.map_err(|error| match link.close_reason() {
        Some(reason) => refused(reason, master),
        None => ConnectError::Broken { why: error.to_string() },
    })?;
    let chain = peer_chain(&quic);
    let foreign = || ConnectError::ForeignMaster {
        host: master.host.clone(),
    };
    let identity = chain
        .first()
        .and_then(|der| PeerIdentity::from_der(der).ok())
        .ok_or_else(foreign)?;
    let ours = wall_now();
    judge_time(&identity, ours, welcome).inspect_err(|error| link.close(CloseCode::OutOfTime, &error.to_string()))?;
    Ok(GreetedConnection {
        link,
        identity,
        chain,
        offset_ms: welcome.wall.0.saturating_sub(ours.0),
    })
}

/// Whether the master's certificate is valid now. If it is by its clock and not by ours, the clocks
/// are the reason.
fn judge_time(identity: &PeerIdentity, ours: Wall, welcome: Welcome) -> Result<(), ConnectError> {
    let theirs = welcome.wall;
    match (identity.is_valid_at(ours), identity.is_valid_at(theirs)) {
        (true, _) => Ok(()),
        (false, true) => Err(ConnectError::ClockSkew { ours, theirs }),
        (false, false) => Err(ConnectError::MasterOutOfTime {
            not_before: identity.not_before,
            not_after: identity.not_after,
        }),
    }
}

impl Sockets {
    fn endpoint(&self, towards: SocketAddr) -> Result<Endpoint, ConnectError> {
        let (slot, any): (_, IpAddr) = match towards {
            SocketAddr::V4(_) => (&self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*slot {
            return Ok(open.clone());
        }
        let opened =
            endpoint(SocketAddr::new(any, 0), EndpointConfig::default(), None).map_err(ConnectError::Socket)?;
        Ok(slot.insert(opened).clone())
    }
}

/// What the end of a connection that was never good for anything means.
fn refused(error: ConnectionError, master: &MasterAddress) -> ConnectError {
    let MasterAddress { host, port } = master.clone();
    let why = error.to_string();
    match error {
        ConnectionError::TimedOut => ConnectError::NoAnswer { host, port },
        ConnectionError::VersionMismatch => ConnectError::WrongProtocol { host, port },
        ConnectionError::ApplicationClosed(close) => closed_by_master(
            CloseCode::from_number(close.error_code),
            String::from_utf8_lossy(&close.reason).into_owned(),
        ),
        ConnectionError::TransportError(error) if is_certificate_alert(error.code) => {
            ConnectError::ForeignMaster { host }
        }
        ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
            ConnectError::Overloaded { why }
        }
        ConnectionError::ConnectionClosed(close) if is_certificate_alert(close.error_code) => {
            ConnectError::CertificateRefused { why }
        }
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL) =>
        {
            ConnectError::WrongProtocol { host, port }
        }
        ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => ConnectError::Broken { why },
    }
}

fn closed_by_master(code: Option<CloseCode>, why: String) -> ConnectError {
    match code {
        Some(CloseCode::CertificateRequired) => ConnectError::CertificateRefused { why },
        Some(CloseCode::Revoked) => ConnectError::Revoked { why },
        Some(CloseCode::OutOfTime) => ConnectError::OutOfTime { why },
        Some(CloseCode::Overloaded) => ConnectError::Overloaded { why },
        Some(
            CloseCode::Done
            | CloseCode::ShuttingDown
            | CloseCode::Misbehaved
            | CloseCode::Replaced
            | CloseCode::TooSlow,
        )
        | None => ConnectError::Broken { why },
    }
}

fn is_certificate_alert(code: TransportErrorCode) -> bool {
    CERTIFICATE_ALERTS
        .iter()
        .any(|&alert| code == TransportErrorCode::crypto(alert))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;
    use proto::id::{CellId, HostName};

    #[test]
    fn a_wrong_clock_is_told_apart_from_an_old_certificate() {
        let identity = PeerIdentity {
            host: HostName::new("m"),
            serial: Serial::new([1; 16]),
            not_before: Wall::from_seconds(1_000_000),
            not_after: Wall::from_seconds(2_000_000),
            cell: CellId(1),
        };
        let judge = |ours, theirs| {
            judge_time(
                &identity,
                Wall::from_seconds(ours),
                Welcome {
                    wall: Wall::from_seconds(theirs),
                },
            )
        };
        assert!(judge(1_500_000, 1_500_600).is_ok());
        let skew = judge(0, 1_500_000).unwrap_err();
        assert_eq!(
            skew.to_string(),
            "the clocks differ: here it is Jan  1 00:00:00 1970 +00:00, at the master Jan 18 08:40:00 1970 +00:00"
        );
        assert!(matches!(
            judge(3_000_000, 3_000_000),
            Err(ConnectError::MasterOutOfTime { .. })
        ));
    }
}
