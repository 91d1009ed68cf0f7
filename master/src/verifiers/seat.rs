//! One process of the verifier, here or behind a relay.

use super::account;
use super::relay::RelayClient;
use proto::diagnostic::{Code, Diagnostic};
use proto::jsv::JsvUrl;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;
use verifier::dialog::{JsvAnswer, JsvLogLine};
use verifier::offer::JsvOffer;
use verifier::process::Verifier;

/// A job, and the verifier that is to look at it.
pub(super) struct JobInput<'a> {
    pub url: &'a JsvUrl,
    pub patience: Duration,
    /// The directory of the cell.
    pub root: &'a Path,
    pub offer: &'a JsvOffer,
}

/// Where the process is.
enum Occupant {
    Here(Box<Verifier>),
    Relayed(RelayClient),
}

/// A place for one process, which is started with the first job.
#[derive(Default)]
pub(super) struct Seat {
    occupant: Option<(JsvUrl, Occupant)>,
}

impl Seat {
    /// Asks about a job.
    ///
    /// # Errors
    /// If there is no answer: the job is to be refused.
    pub(super) async fn verify(
        &mut self,
        input: JobInput<'_>,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> Result<JsvAnswer, Diagnostic> {
        if self.occupant.as_ref().is_some_and(|(url, _)| url != input.url) {
            drop(self.take());
        }
        let mut occupant = match self.occupant.take() {
            Some((_, occupant)) => occupant,
            None => occupant(&input)?,
        };
        let answered = match &mut occupant {
            Occupant::Here(verifier) => {
                verifier.set_patience(input.patience);
                verifier
                    .verify(input.offer, log)
                    .await
                    .map_err(|fault| fault.diagnostic())
            }
            Occupant::Relayed(relay) => relay.verify(&input, log).await,
        };
        self.occupant = Some((input.url.clone(), occupant));
        answered
    }

    /// Ends the process. What is returned ends with it.
    pub(super) fn quit(mut self) -> Option<JoinHandle<()>> {
        self.take()
    }

    fn take(&mut self) -> Option<JoinHandle<()>> {
        match self.occupant.take()? {
            (_, Occupant::Here(mut verifier)) => verifier.quit(),
            // The relay ends the process with the connection.
            (_, Occupant::Relayed(_)) => None,
        }
    }
}

/// A verifier of the account of the master runs here, one of another account behind its relay.
fn occupant(input: &JobInput<'_>) -> Result<Occupant, Diagnostic> {
    let own = account::own();
    let is_own = |user: &str| own.as_ref().is_some_and(|own| own.name == user);
    if let Some(user) = input.url.user.as_deref().filter(|user| !is_own(user)) {
        return Ok(Occupant::Relayed(RelayClient::new(user)));
    }
    if nix::unistd::geteuid().is_root() {
        let what = "the job submission verifier is not run: the master runs as root";
        return Err(Diagnostic::new(Code::NotPermitted, what).fix("name an account in jsv_url: user@path"));
    }
    let launch = account::launch(&input.url.path, input.root, input.patience);
    Ok(Occupant::Here(Box::new(Verifier::new(launch))))
}
