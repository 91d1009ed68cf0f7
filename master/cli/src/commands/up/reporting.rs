//! Whether this host itself reports, which the count of all that report does not say.

use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::folder::Folder;
use proto::diagnostic::Diagnostic;
use proto::id::HostName;
use proto::wire::client::{HostFilter, Query};
use proto::wire::view::{Data, HostView};
use quic::PeerIdentity;
use std::path::Path;
use std::time::{Duration, Instant};

/// What there is to know of this host's reports.
pub struct HostReports {
    /// The name in this host's certificate.
    host: HostName,
    address: CellAddress,
    /// When an agent was started here; a report that is older is one of its predecessor's.
    started: Option<Instant>,
}

impl HostReports {
    /// The host whose state directory is `dir`; none before it has a certificate.
    pub fn of_directory(dir: &Path, started: Option<Instant>) -> Option<Self> {
        let certificate = Folder::open(&dir.join("agent")).ok()?.read("host.crt").ok()?;
        let host = PeerIdentity::from_pem(&certificate).ok()?.host;
        Some(Self {
            host,
            address: CellAddress::at(dir),
            started,
        })
    }

    /// The host.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// Whether its first report is in.
    ///
    /// # Errors
    /// Why the master could not be asked, or its refusal.
    pub fn is_in(&self) -> Result<bool, Diagnostic> {
        let filter = HostFilter {
            hosts: vec![self.host.to_string()],
            ..HostFilter::default()
        };
        let reply = Client::connect(&self.address, "gridwright")?.query(Query::Hosts(filter))?;
        if let Some(refusal) = reply.answers.iter().find_map(proto::wire::client::Answer::refusal) {
            return Err(refusal.clone());
        }
        let Some(Data::Hosts(hosts)) = reply.data else {
            return Ok(false);
        };
        Ok(hosts.iter().any(|view| view.host == self.host && self.is_fresh(view)))
    }

    fn is_fresh(&self, view: &HostView) -> bool {
        let age = view.report_age_ms.map(Duration::from_millis);
        view.connected && age.is_some_and(|age| self.started.is_none_or(|started| age <= started.elapsed()))
    }
}
