//! The keys of a new cell: its CA, the master's certificate, the first host's, and the keys of
//! session tickets.

use super::{InitError, tree};
use crate::layout::Layout;
use proto::id::{CellId, HostName};
use proto::time::Wall;
use quic::{ClusterCa, DEFAULT_VALIDITY_S, HostKey, IdentityError, PeerIdentity, Serial, TicketKeys};

/// Everything by which the daemons of a new cell know each other.
pub(super) struct Identity {
    ca: ClusterCa,
    tickets: TicketKeys,
    master: CertificatePair,
    agent: CertificatePair,
    /// The serial of the agent's certificate.
    pub(super) agent_serial: Serial,
    /// The end of its validity.
    pub(super) agent_not_after: Wall,
}

/// A certificate with its key, both in PEM.
struct CertificatePair {
    certificate: String,
    key: String,
}

impl Identity {
    pub(super) fn create(cell: CellId, host: &HostName, now: Wall) -> Result<Self, IdentityError> {
        let ca = ClusterCa::create(cell, now)?;
        let (master_key, agent_key) = (HostKey::generate()?, HostKey::generate()?);
        let master = ca.sign_master_csr(&master_key.csr_pem()?, host, now, DEFAULT_VALIDITY_S)?;
        let agent = ca.sign_csr(&agent_key.csr_pem()?, host, now, DEFAULT_VALIDITY_S)?;
        let PeerIdentity { serial, not_after, .. } = PeerIdentity::from_pem(&agent)?;
        Ok(Self {
            tickets: TicketKeys::generate(now)?,
            master: CertificatePair {
                certificate: master,
                key: master_key.to_pem(),
            },
            agent: CertificatePair {
                certificate: agent,
                key: agent_key.to_pem(),
            },
            agent_serial: serial,
            agent_not_after: not_after,
            ca,
        })
    }

    pub(super) fn write(&self, layout: &Layout) -> Result<(), InitError> {
        let ca = self.ca.certificate().to_pem();
        for (path, text, mode) in [
            (layout.master("ca.crt"), &ca, 0o644),
            (layout.master("ca.key"), &self.ca.key_pem(), 0o600),
            (layout.master("master.crt"), &self.master.certificate, 0o644),
            (layout.master("master.key"), &self.master.key, 0o600),
            (layout.master("tickets.key"), &self.tickets.export(), 0o600),
            (layout.agent("ca.crt"), &ca, 0o644),
            (layout.agent("host.crt"), &self.agent.certificate, 0o644),
            (layout.agent("host.key"), &self.agent.key, 0o600),
        ] {
            tree::write(&path, text, mode)?;
        }
        Ok(())
    }
}
