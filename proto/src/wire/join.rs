//! Enrolment and renewal: how a host gets its certificates.
//!
//! A host that joins opens the one stream of its join connection and sends [`JoinRequest`] as a
//! [`Kind::Request`](super::frame::Kind::Request); the answer is [`JoinReply`], or a
//! [`Kind::Refusal`](super::frame::Kind::Refusal) with a
//! [`Diagnostic`](crate::diagnostic::Diagnostic). A host that has a certificate renews it on a
//! bidirectional stream of its connection, whose first frame is [`RenewRequest`] as a request,
//! answered by [`RenewReply`] or a refusal.

use crate::id::{CellId, HostName};
use serde::{Deserialize, Serialize};

/// What a host that joins says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// [`PROTOCOL_VERSION`](super::agent::PROTOCOL_VERSION) of the host.
    pub version: u32,
    /// The whole token, as the person typed it.
    pub token: String,
    /// The name that the host claims.
    pub host: HostName,
    /// A signing request in PEM for the key that the host made for itself.
    pub csr: String,
}

/// Without the token, which is a secret.
impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// The certificate of a host that was let in, and what it needs to find the master again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinReply {
    /// The host's certificate in PEM.
    pub certificate: String,
    /// The certificate of the CA in PEM.
    pub ca: String,
    /// The cell.
    pub cell: CellId,
    /// The master's host, as its cell names it.
    pub master_host: HostName,
}

/// A host's wish for a new certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRequest {
    /// A signing request in PEM.
    pub csr: String,
}

/// The new certificate. The old one stays good until it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewReply {
    /// The host's certificate in PEM.
    pub certificate: String,
}
