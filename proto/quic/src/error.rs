//! What can go wrong, by where it does. Errors that a person meets give a [`Diagnostic`] with the
//! remedy.

use crate::identity::readable;
use proto::diagnostic::{Code, Diagnostic};
use proto::time::Wall;
use proto::wire::frame::FrameError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A key, certificate or request cannot be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Not a certificate as a cluster CA issues it.
    #[error("not a certificate of a cluster CA: {0}")]
    BadCertificate(CertificateFault),
    /// Not a private key, or not one that can be used.
    #[error("not a usable private key: {0}")]
    BadKey(KeyFault),
    /// The key belongs to another certificate.
    #[error("the key does not belong to the certificate")]
    KeyMismatch,
    /// Not a signing request, or not signed with its own key.
    #[error("not a valid signing request")]
    BadRequest(#[source] rcgen::Error),
    /// Empty, longer than 64 bytes, `global`, or with characters that no host name has.
    #[error("{0:?} cannot be the name of a host in a certificate")]
    BadHostName(String),
    /// Not 32 hexadecimal digits.
    #[error("{0:?} is not a serial number (32 hexadecimal digits)")]
    BadSerial(String),
    /// The system gave no random numbers.
    #[error("the system gave no random numbers")]
    NoRandomness,
    /// A signature or a key could not be made.
    #[error("signing failed")]
    Signing(#[source] rcgen::Error),
}

/// Why something is not a certificate of a cluster CA. Errors of libraries stay inside.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CertificateFault(CertificateFaultKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateFaultKind {
    #[error("{file}: {reason}")]
    Unreadable { file: &'static str, reason: io::Error },
    #[error(transparent)]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error(transparent)]
    Form(#[from] x509_parser::nom::Err<x509_parser::error::X509Error>),
    #[error(transparent)]
    Issuer(#[from] rcgen::Error),
    #[error("it names no host")]
    NoHost,
    #[error("it names no cell")]
    NoCell,
    #[error("its serial is above 128 bits")]
    LongSerial,
    #[error("it is not a CA's")]
    NotOfCa,
}

/// Why something is not a key that can be used. Errors of libraries stay inside.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KeyFault(KeyFaultKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFaultKind {
    #[error(transparent)]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error(transparent)]
    Form(#[from] rcgen::Error),
    #[error(transparent)]
    Pair(#[from] rustls::Error),
    #[error("these are not ticket keys")]
    NotTicketKeys,
}

impl IdentityError {
    /// The file of a certificate, named below the state directory, cannot be read.
    pub fn unreadable(file: &'static str, reason: io::Error) -> Self {
        Self::bad_certificate(CertificateFaultKind::Unreadable { file, reason })
    }

    pub(crate) fn bad_certificate(fault: impl Into<CertificateFaultKind>) -> Self {
        Self::BadCertificate(CertificateFault(fault.into()))
    }

    pub(crate) fn bad_key(fault: impl Into<KeyFaultKind>) -> Self {
        Self::BadKey(KeyFault(fault.into()))
    }
}

impl From<rustls::Error> for BindError {
    fn from(error: rustls::Error) -> Self {
        Self::Credentials(KeyFault(error.into()))
    }
}

/// The server's port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The system refused the socket.
    #[error("cannot listen on udp {listen}")]
    Socket {
        /// The address asked for.
        listen: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The certificate or key cannot be served with.
    #[error("cannot serve with this certificate and key: {0}")]
    Credentials(KeyFault),
}

/// A connection to the master did not come about. Every variant has a remedy: see
/// [`ConnectError::diagnostic`].
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The master's name has no address.
    #[error("no address for host {host}")]
    Unresolved {
        /// The name.
        host: String,
        /// The resolver's reason.
        #[source]
        source: io::Error,
    },
    /// Nothing came back.
    #[error("no answer from {host} udp/{port}: firewall?")]
    NoAnswer {
        /// The master as it was named.
        host: String,
        /// Its UDP port.
        port: u16,
    },
    /// What answers there speaks another protocol, or another release.
    #[error("{host} udp/{port} does not speak this protocol")]
    WrongProtocol {
        /// The master as it was named.
        host: String,
        /// Its UDP port.
        port: u16,
    },
    /// The master's certificate is not of the CA that we trust, or not of the token's.
    #[error("the master at {host} is not the one of this cell")]
    ForeignMaster {
        /// The master as it was named.
        host: String,
    },
    /// The master does not accept our certificate: none, another cell's, or damaged.
    #[error("the master refuses this host's certificate: {why}")]
    CertificateRefused {
        /// In the words of the master or of TLS.
        why: String,
    },
    /// The master does not admit this certificate any more.
    #[error("this host's certificate is revoked: {why}")]
    Revoked {
        /// In the words of the master.
        why: String,
    },
    /// Our certificate ended more than 90 days ago, by the master's clock, or has not begun.
    #[error("this host's certificate is out of its time: {why}")]
    OutOfTime {
        /// In the words of the master, with both times.
        why: String,
    },
    /// The clocks of the two machines differ so much that certificates seem out of their time.
    #[error("the clocks differ: here it is {}, at the master {}", readable(*.ours), readable(*.theirs))]
    ClockSkew {
        /// What this machine's clock shows.
        ours: Wall,
        /// What the master's clock shows.
        theirs: Wall,
    },
    /// The master's own certificate is out of its time by both clocks.
    #[error("the master's certificate is valid from {} to {} only", readable(*.not_before), readable(*.not_after))]
    MasterOutOfTime {
        /// Its begin.
        not_before: Wall,
        /// Its end.
        not_after: Wall,
    },
    /// The master is at one of its limits.
    #[error("the master has no room for another connection: {why}")]
    Overloaded {
        /// Which limit.
        why: String,
    },
    /// This machine gave no UDP socket.
    #[error("cannot open a UDP socket")]
    Socket(#[source] io::Error),
    /// The connection ended in another way.
    #[error("the connection broke: {why}")]
    Broken {
        /// In the words of the transport.
        why: String,
    },
}

impl ConnectError {
    /// The refusal for the person in front of this machine, with the remedy.
    pub fn diagnostic(&self) -> Diagnostic {
        let (code, fix) = self.code_and_fix();
        let why = std::error::Error::source(self)
            .map(ToString::to_string)
            .unwrap_or_default();
        Diagnostic::new(code, self.to_string()).why(why).fix(fix)
    }

    /// Whether something at the master's address answered, rather than this machine or nobody.
    pub(crate) fn is_from_master(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::NoAnswer { .. } | Self::Socket(_) | Self::Broken { .. } => false,
            Self::WrongProtocol { .. }
            | Self::ForeignMaster { .. }
            | Self::CertificateRefused { .. }
            | Self::Revoked { .. }
            | Self::OutOfTime { .. }
            | Self::ClockSkew { .. }
            | Self::MasterOutOfTime { .. }
            | Self::Overloaded { .. } => true,
        }
    }

    fn code_and_fix(&self) -> (Code, &'static str) {
        match self {
            Self::Unresolved { .. } => (Code::NoMaster, "give the master's full name or address"),
            Self::NoAnswer { .. } => (
                Code::NoMaster,
                "check that the master runs there and that firewalls let UDP through to this port",
            ),
            Self::WrongProtocol { .. } => (
                Code::WrongCell,
                "check host and port, and that both sides are at most one release apart",
            ),
            Self::ForeignMaster { .. } => (Code::WrongCell, "check host and port, or join this host to that cell"),
            Self::CertificateRefused { .. } | Self::Revoked { .. } | Self::OutOfTime { .. } => (
                Code::BadCertificate,
                "ask an administrator for a token and join this host again",
            ),
            Self::ClockSkew { .. } => (
                Code::BadCertificate,
                "set the clock that is wrong, best by NTP on both machines",
            ),
            Self::MasterOutOfTime { .. } => (Code::BadCertificate, "restart the master, which renews its certificate"),
            Self::Overloaded { .. } => (Code::Overloaded, "try again in a moment"),
            Self::Socket(_) => (
                Code::SystemRefused,
                "check the limit on open files and the network of this machine",
            ),
            Self::Broken { .. } => (Code::NoMaster, "see the master's log for the reason"),
        }
    }
}

/// A stream or connection does not carry frames as it should.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame, after {got} bytes of it")]
    Truncated {
        /// The bytes of the last frame that came, its length prefix included.
        got: usize,
    },
    /// A frame is too long or does not decode. After a malformed frame the stream goes on behind
    /// it; after one that is too long it does not.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer gave the stream up.
    #[error("the peer reset the stream")]
    Reset,
    /// Nothing more, or not enough, came or went within this time.
    #[error("no progress for {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The connection is gone.
    #[error("the connection is closed")]
    Disconnected,
    /// The system refused a read or write.
    #[error("reading or writing failed")]
    Io(#[source] io::Error),
}

impl StreamError {
    /// Whether the stream can be read on: only one frame was refused.
    pub fn is_single_frame(&self) -> bool {
        matches!(
            self,
            Self::Frame(FrameError::Malformed(_) | FrameError::Unsendable { .. })
        )
    }
}

impl From<io::Error> for StreamError {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the kinds are the standard library's")]
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Self::Reset,
            io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe => Self::Disconnected,
            _ => Self::Io(error),
        }
    }
}
