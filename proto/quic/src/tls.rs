//! TLS 1.3 as the cell uses it: who may speak, under which protocol name, verified by the cell's CA
//! alone.
//!
//! Time is not judged here. A handshake that fails says only "certificate expired"; one that
//! succeeds lets both sides compare clocks and say which of them is wrong, so chains are verified
//! at the nearest moment of the certificate's time and [`crate::connection`] judges the time before
//! anything else is exchanged.

use crate::error::IdentityError;
use crate::identity::{CaCertificate, Credentials, Fingerprint, PeerIdentity};
use crate::ticket::TicketKeys;
use proto::time::Wall;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;

/// The protocol of hosts: both sides have certificates of the cell's CA.
pub(crate) const ALPN_HOST: &[u8] = b"gridwright/1";

/// The protocol of enrolment: only the master is authenticated.
pub(crate) const ALPN_JOIN: &[u8] = b"gridwright-join/1";

/// The name that clients ask for. It selects nothing: the master is known by its CA and by what its
/// certificate is for, so that it may have any number of names and addresses.
pub(crate) const SERVER_NAME: &str = "gridwright-master";

/// The server's side: both protocols on one port, early data off, tickets under keys that persist.
pub(crate) fn server_config(credentials: &Credentials, tickets: TicketKeys) -> Result<QuicServerConfig, Error> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(HostVerifier::new(credentials.ca())?))
        .with_single_cert(credentials.chain(), credentials.key())?;
    config.alpn_protocols = vec![ALPN_HOST.to_vec(), ALPN_JOIN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Arc::new(tickets);
    config.send_tls13_tickets = 1;
    config.max_early_data_size = 0;
    QuicServerConfig::try_from(config).map_err(|_| no_initial_suite())
}

/// A host's side, with its certificate.
pub(crate) fn host_config(credentials: &Credentials) -> Result<QuicClientConfig, Error> {
    let verifier = MasterVerifier::new(Trust::Ca(credentials.ca().clone()));
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(credentials.chain(), credentials.key())?;
    quic_client(config, ALPN_HOST)
}

/// The side of a host that has nothing but a token yet. Of the protocols it can speak [`ALPN_JOIN`]
/// alone with success.
pub(crate) fn anonymous_config(ca: Fingerprint, protocol: &[u8]) -> Result<QuicClientConfig, Error> {
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(MasterVerifier::new(Trust::Fingerprint(ca))))
        .with_no_client_auth();
    quic_client(config, protocol)
}

/// A client that offers `protocol`. Early data stays off, which is the library's default.
fn quic_client(mut config: rustls::ClientConfig, protocol: &[u8]) -> Result<QuicClientConfig, Error> {
    config.alpn_protocols = vec![protocol.to_vec()];
    config.enable_early_data = false;
    QuicClientConfig::try_from(config).map_err(|_| no_initial_suite())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn no_initial_suite() -> Error {
    Error::General("the cryptographic library lacks the cipher suite that QUIC begins with".to_owned())
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}

fn roots(ca: &CaCertificate) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone())?;
    Ok(roots)
}

/// The moment at which the chain of `certificate` is verified (see the head of this module).
fn moment(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<UnixTime, Error> {
    let identity = PeerIdentity::from_der(certificate).map_err(|_| bad_encoding())?;
    let now = Wall::from_seconds(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let seconds = identity.nearest_valid(now).seconds();
    Ok(UnixTime::since_unix_epoch(Duration::from_secs(
        u64::try_from(seconds).unwrap_or(0),
    )))
}

fn bad_encoding() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}

/// Verifies hosts at the master. A peer without a certificate passes: enrolment needs none, and the
/// server refuses it afterwards for anything else, with a reason that can be read.
#[derive(Debug)]
struct HostVerifier(Arc<dyn ClientCertVerifier>);

impl HostVerifier {
    fn new(ca: &CaCertificate) -> Result<Self, Error> {
        let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider())
            .allow_unauthenticated()
            .build()
            .map_err(|e| Error::General(e.to_string()))?;
        Ok(Self(inner))
    }
}

impl ClientCertVerifier for HostVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// A foreign CA's certificate comes with that CA in its chain; only ours counts, so
    /// intermediates are left aside.
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.verify_client_cert(end_entity, &[], moment(end_entity, now)?)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// By what a client knows the right master.
#[derive(Debug)]
enum Trust {
    Ca(CaCertificate),
    Fingerprint(Fingerprint),
}

/// Verifies the master at a host: a certificate for serving, from the trusted CA.
#[derive(Debug)]
struct MasterVerifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl MasterVerifier {
    fn new(trust: Trust) -> Self {
        Self {
            trust,
            algorithms: algorithms(),
        }
    }

    /// The CA to verify with: the one we know, or the one in the chain that has the fingerprint.
    fn ca(&self, intermediates: &[CertificateDer<'_>]) -> Result<CaCertificate, Error> {
        match &self.trust {
            Trust::Ca(ca) => Ok(ca.clone()),
            Trust::Fingerprint(wanted) => find_ca(intermediates, *wanted)
                .ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?
                .map_err(|_| bad_encoding()),
        }
    }
}

fn find_ca(chain: &[CertificateDer<'_>], wanted: Fingerprint) -> Option<Result<CaCertificate, IdentityError>> {
    let found = chain.iter().find(|der| Fingerprint::of_certificate(der) == wanted)?;
    Some(CaCertificate::from_der(found.clone().into_owned()))
}

impl ServerCertVerifier for MasterVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let roots = roots(&self.ca(intermediates)?)?;
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let moment = moment(end_entity, now)?;
        verify_server_cert_signed_by_trust_anchor(&certificate, &roots, &[], moment, self.algorithms.all)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
