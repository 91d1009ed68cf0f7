//! A peer that speaks QUIC and nothing of ours: it trusts everybody, and says what it is told to.

use gridwright_tests::cell::{Cell, PATIENCE};
use proto::id::{CellId, HostName};
use proto::time::Wall;
use quic::{ClusterCa, DEFAULT_VALIDITY_S, HostKey};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// What a peer shows.
pub enum Certificate {
    /// Nothing.
    None,
    /// A certificate and its key, as text.
    Some(String, String),
}

impl Certificate {
    /// Of a CA that is not the cell's.
    pub fn foreign(host: &str) -> Self {
        let now = Wall::from_seconds(i64::try_from(UnixTime::now().as_secs()).unwrap());
        let ca = ClusterCa::create(CellId(7), now).unwrap();
        let key = HostKey::generate().unwrap();
        let csr = key.csr_pem().unwrap();
        Self::Some(
            ca.sign_csr(&csr, &HostName::new(host), now, DEFAULT_VALIDITY_S)
                .unwrap(),
            key.to_pem(),
        )
    }

    /// Of this machine's agent.
    pub fn of_agent(cell: &Cell) -> Self {
        let read = |name: &str| std::fs::read_to_string(cell.dir().join("agent").join(name)).unwrap();
        Self::Some(read("host.crt"), read("host.key"))
    }
}

/// A connection, or what became of it. Everything that it does is done within its own runtime.
pub struct Peer {
    runtime: Runtime,
    endpoint: quinn::Endpoint,
    connection: Option<quinn::Connection>,
    stream: Mutex<Option<quinn::SendStream>>,
}

impl Peer {
    /// A peer whose handshake may fail: that is a refusal, too.
    pub fn connect(cell: &Cell, certificate: &Certificate, protocol: &[u8]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let guard = runtime.enter();
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        drop(guard);
        let address = format!("127.0.0.1:{}", port(cell)).parse().unwrap();
        let connection = runtime.block_on(async {
            let connecting = endpoint
                .connect_with(config(certificate, protocol), address, "peer")
                .unwrap();
            timeout(PATIENCE, connecting)
                .await
                .expect("the master answers within a minute")
                .ok()
        });
        Self {
            runtime,
            endpoint,
            connection,
            stream: Mutex::default(),
        }
    }

    /// The same; none if the handshake failed.
    pub fn try_connect(cell: &Cell, certificate: &Certificate, protocol: &[u8]) -> Option<Self> {
        Some(Self::connect(cell, certificate, protocol)).filter(|peer| peer.connection.is_some())
    }

    /// Its own UDP port, by which the log knows it.
    pub fn port(&self) -> u16 {
        self.endpoint.local_addr().unwrap().port()
    }

    /// Sends bytes on one stream, and ends the stream if told to. A peer that was refused sends to
    /// nobody.
    pub fn send(&self, bytes: &[u8], ends: bool) {
        let Some(connection) = self.connection.as_ref().filter(|_| !bytes.is_empty()) else {
            return;
        };
        self.runtime.block_on(async {
            let mut slot = self.stream.lock().await;
            if slot.is_none() {
                *slot = timeout(PATIENCE, connection.open_bi())
                    .await
                    .unwrap()
                    .ok()
                    .map(|(sender, _)| sender);
            }
            if let Some(stream) = slot.as_mut() {
                let _ = stream.write_all(bytes).await;
                if ends {
                    let _ = stream.finish();
                }
            }
        });
    }

    /// Whether the master closes the connection, or has never opened it.
    pub fn is_closed_within(&self, patience: Duration) -> bool {
        let Some(connection) = &self.connection else {
            return true;
        };
        self.runtime
            .block_on(async { timeout(patience, connection.closed()).await.is_ok() })
    }
}

/// The UDP port of a cell's master.
fn port(cell: &Cell) -> u16 {
    let text = std::fs::read_to_string(cell.dir().join("etc/cell.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    u16::try_from(table["port"].as_integer().unwrap()).unwrap()
}

fn config(certificate: &Certificate, protocol: &[u8]) -> quinn::ClientConfig {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(CredulousVerifier));
    let mut config = match certificate {
        Certificate::None => builder.with_no_client_auth(),
        Certificate::Some(chain, key) => {
            let chain = CertificateDer::pem_slice_iter(chain.as_bytes())
                .collect::<Result<_, _>>()
                .unwrap();
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()))
}

/// Believes every server.
#[derive(Debug)]
struct CredulousVerifier;

impl ServerCertVerifier for CredulousVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
