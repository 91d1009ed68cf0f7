//! The CA at work: certificates for hosts that join or renew, and for simulated hosts.

use crate::clock::wall_now;
use crate::layout::Layout;
use crate::messages::DriverInput;
use master_core::effect::{Input, ReplyTo};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::time::Wall;
use proto::wire::client::Reply;
use proto::wire::view::{Data, IssuedCertificate};
use quic::{CaCertificate, ClusterCa, Credentials, HostKey, IdentityError, PeerIdentity};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

const DAY_S: i64 = 86_400;

/// The cluster CA with what it needs to issue.
#[derive(Debug)]
pub struct Issuer {
    ca: Arc<ClusterCa>,
    validity_s: i64,
    inputs: mpsc::Sender<DriverInput>,
}

/// A certificate that was issued, with what the core has to know of it.
#[derive(Debug)]
pub struct NewCertificate {
    /// The certificate in PEM.
    pub certificate: String,
    /// Its serial, in lower-case hex.
    pub serial: String,
    /// The end of its validity.
    pub not_after: Wall,
}

/// The keys of the cell cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file is missing or unreadable.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: IdentityError,
    },
    /// A renewed certificate cannot be served with.
    #[error("the renewed certificate cannot be served with")]
    NotServed(#[source] quic::BindError),
}

/// Reads the CA of the cell.
///
/// # Errors
/// As [`KeyError`].
pub fn read_ca(layout: &Layout) -> Result<ClusterCa, KeyError> {
    let (certificate, key) = (read(layout.master("ca.crt"))?, read(layout.master("ca.key"))?);
    // By itself first, so that the message names the file.
    CaCertificate::from_pem(&certificate).map_err(unusable(layout, "ca.crt"))?;
    ClusterCa::from_pem(&certificate, &key).map_err(unusable(layout, "ca.key"))
}

fn unusable(layout: &Layout, name: &str) -> impl FnOnce(IdentityError) -> KeyError {
    let path = layout.master(name);
    move |source| KeyError::Unusable { path, source }
}

/// Reads what the master serves with; makes a new certificate in time before the old one ends, with
/// the same key.
///
/// # Errors
/// As [`KeyError`].
pub fn master_credentials(layout: &Layout, ca: &ClusterCa, now: Wall) -> Result<Credentials, KeyError> {
    let (mut certificate, key) = (read(layout.master("master.crt"))?, read(layout.master("master.key"))?);
    let identity = PeerIdentity::from_pem(&certificate).map_err(unusable(layout, "master.crt"))?;
    HostKey::from_pem(&key).map_err(unusable(layout, "master.key"))?;
    if identity.needs_renewal(now) {
        let renew = || {
            let csr = HostKey::from_pem(&key)?.csr_pem()?;
            ca.sign_master_csr(&csr, &identity.host, now, quic::DEFAULT_VALIDITY_S)
        };
        certificate = renew().map_err(unusable(layout, "master.key"))?;
        let path = layout.master("master.crt");
        // It is signed anew at each start until the file can be written.
        if let Err(error) = replace(&path, &certificate) {
            tracing::warn!("cannot keep the renewed certificate in {}: {error}", path.display());
        }
    }
    Credentials::from_pem(&certificate, &key, &ca.certificate().to_pem()).map_err(unusable(layout, "master.crt"))
}

/// Writes a file so that it is whole, the old one or the new one, whatever happens.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, path)
}

fn read(path: PathBuf) -> Result<String, KeyError> {
    std::fs::read_to_string(&path).map_err(|source| KeyError::Unreadable { path, source })
}

impl Issuer {
    /// An issuer of certificates that are valid for `days`.
    pub fn new(ca: Arc<ClusterCa>, days: i64, inputs: mpsc::Sender<DriverInput>) -> Self {
        Self {
            ca,
            validity_s: days * DAY_S,
            inputs,
        }
    }

    /// The CA.
    pub fn ca(&self) -> &ClusterCa {
        &self.ca
    }

    /// Signs the request of a host. It is admitted only once the core has said so.
    ///
    /// # Errors
    /// As [`ClusterCa::sign_csr`].
    pub fn sign(&self, csr: &str, host: &HostName) -> Result<NewCertificate, IdentityError> {
        let certificate = self.ca.sign_csr(csr, host, wall_now(), self.validity_s)?;
        let PeerIdentity { serial, not_after, .. } = PeerIdentity::from_pem(&certificate)?;
        Ok(NewCertificate {
            certificate,
            serial: serial.to_string(),
            not_after,
        })
    }

    /// Issues certificates for simulated hosts beside the driver, has the core admit them, and
    /// answers.
    pub fn issue_simulated(self: &Arc<Self>, to: ReplyTo, hosts: Vec<HostName>, runtime: &Handle) {
        let issuer = self.clone();
        runtime.spawn_blocking(move || {
            let reply = issuer.simulated(hosts).unwrap_or_else(|error| {
                Reply::refusal(Diagnostic::new(Code::SystemRefused, "cannot issue certificates").why(error.to_string()))
            });
            // A closed queue is the end of the master: the command hears that its connection broke.
            let _ = issuer.inputs.blocking_send(DriverInput::Deliver(to, Box::new(reply)));
        });
    }

    fn simulated(&self, hosts: Vec<HostName>) -> Result<Reply, IdentityError> {
        let mut certificates = Vec::with_capacity(hosts.len());
        for host in hosts {
            let key = HostKey::generate()?;
            let NewCertificate {
                certificate,
                serial,
                not_after,
            } = self.sign(&key.csr_pem()?, &host)?;
            let input = Input::CertificateRenewed {
                host: host.clone(),
                serial,
                not_after,
            };
            let _ = self.inputs.blocking_send(DriverInput::Core(input));
            certificates.push(IssuedCertificate {
                host,
                certificate,
                key: key.to_pem(),
            });
        }
        Ok(Reply::data(Data::Certificates(certificates)))
    }
}
