//! QUIC transport and identity: endpoints, cluster CA, join tokens, frames on streams.
//!
//! The only crate that knows quinn and rustls; none of their types leaves it. Deliberately absent:
//! files (the caller stores what is exported as text here), the rules of a token (uses, expiry,
//! host pattern), the list of revoked serials and the meaning of messages, which are the master's.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod blocking;
mod ca;
mod client;
mod connection;
mod error;
mod identity;
mod server;
mod shares;
mod stream;
mod ticket;
mod tls;
mod token;
mod transport;

pub use ca::{ClusterCa, DEFAULT_VALIDITY_S, HostKey};
pub use client::{Client, MasterAddress};
pub use connection::{
    CloseCode, Connection, ConnectionEnd, JoinConnection, RecvHalf, SendHalf, StreamReceiver, StreamSender,
};
pub use error::{BindError, CertificateFault, ConnectError, IdentityError, KeyFault, StreamError};
pub use identity::{CaCertificate, Credentials, Fingerprint, LATE_RENEWAL_S, PeerIdentity, Serial};
pub use server::{AcceptedConnection, Admission, Server, ServerLimits, Verdict};
pub use shares::{Share, ShareRefusal, Shares};
pub use stream::{FrameLimits, FrameReceiver, FrameSender};
pub use ticket::{ROTATE_AFTER_S, TicketKeys};
pub use token::{BadToken, JoinToken, TokenHash};
pub use transport::AGENT_STREAMS;

#[cfg(test)]
mod tests;
