//! The host's certificate renews itself in its last third, over the connection that it is still
//! good for.

use crate::clock;
use crate::identity::{self, CredentialsError};
use crate::layout::Layout;
use proto::diagnostic::Diagnostic;
use proto::wire::frame::Kind;
use proto::wire::join::{RenewReply, RenewRequest};
use quic::{Client, Connection, FrameLimits, IdentityError, StreamError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often the end of the certificate is looked at, and a renewal that failed is tried again.
const EVERY: Duration = Duration::from_secs(6 * 3600);

/// How long the master may take to issue.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a renewal needs.
pub(super) struct Renewal<'a> {
    /// Where the certificate is kept; none for hosts that are simulated.
    pub(super) layout: Option<&'a Layout>,
    /// The connection.
    pub(super) connection: &'a Connection,
}

/// There is no new certificate.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("a frame does not decode: {0}")]
    Frame(#[from] proto::wire::frame::FrameError),
    #[error("{0}")]
    Refused(Diagnostic),
    #[error("no answer in time")]
    TimedOut,
    #[error("it cannot be kept: {0}")]
    Unwritable(#[from] std::io::Error),
}

impl Renewal<'_> {
    /// Waits until a new certificate is there and gives the client that uses it.
    pub(super) async fn run(self, client: &Client) -> Client {
        let Some(layout) = self.layout else {
            return std::future::pending().await;
        };
        loop {
            match self.renew_if_due(layout, client).await {
                Ok(Some(client)) => return client,
                Ok(None) => {}
                Err(error) => tracing::warn!("the certificate of this host was not renewed: {error}"),
            }
            sleep(EVERY).await;
        }
    }

    async fn renew_if_due(&self, layout: &Layout, client: &Client) -> Result<Option<Client>, RenewalError> {
        if !identity::read(layout)?.identity().needs_renewal(clock::wall()) {
            return Ok(None);
        }
        let csr = identity::renewal_request(layout)?;
        let certificate = timeout(DEADLINE, self.ask(csr))
            .await
            .map_err(|_| RenewalError::TimedOut)??;
        identity::write_file(&layout.agent("host.crt"), &certificate, 0o644)?;
        let renewed = client.with_credentials(&identity::read(layout)?)?;
        tracing::info!("the certificate of this host was renewed");
        Ok(Some(renewed))
    }

    async fn ask(&self, csr: String) -> Result<String, RenewalError> {
        let (mut sender, mut receiver) = self.connection.open_bi(FrameLimits::JOIN).await?;
        sender.send(Kind::Request, 1, &RenewRequest { csr }).await?;
        let frame = receiver.recv().await?.ok_or(StreamError::Disconnected)?;
        if frame.kind == Kind::Refusal {
            return Err(RenewalError::Refused(frame.message()?));
        }
        Ok(frame.message::<RenewReply>()?.certificate)
    }
}
