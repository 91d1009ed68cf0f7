//! Runs the mailer: `mailer -s SUBJECT ADDRESS` with the text on standard input, as the account of
//! the master. Where the unit of the master keeps it from running one, a [relay](super::relay)
//! does.

use super::Mail;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Mail that may wait; beyond it mail is lost, and the log says so.
const QUEUE: usize = 1_000;

/// How long the mailer may take for one address.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much longer than the mailer a relay may take.
const RELAY_PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of a relay's answer that are read.
const ANSWER_BYTES: u64 = 4_096;

/// A mail to one address, as it goes to a relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The program that sends it.
    pub mailer: String,
    /// The address.
    pub address: String,
    /// What it is about.
    pub subject: String,
    /// What it says.
    pub text: String,
}

/// Takes mail.
#[derive(Clone, Debug)]
pub struct MailQueue(mpsc::Sender<Mail>);

impl MailQueue {
    /// An outbox and the work behind it, which ends with the last outbox. Mail goes to the relay
    /// behind the socket `relay`, if there is one.
    pub fn new(relay: Option<PathBuf>) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), work(receiver, relay))
    }

    /// Takes a mail; one that finds no room is lost.
    pub fn put(&self, mail: Mail) {
        if let Err(error) = self.0.try_send(mail) {
            tracing::warn!("a mail is lost: {QUEUE} others wait for the mailer ({error})");
        }
    }
}

async fn work(mut waiting: mpsc::Receiver<Mail>, relay: Option<PathBuf>) {
    while let Some(mail) = waiting.recv().await {
        for address in &mail.to {
            let letter = Letter {
                mailer: mail.mailer.clone(),
                address: address.clone(),
                subject: mail.subject.clone(),
                text: mail.text.clone(),
            };
            let sent = match &relay {
                Some(socket) => hand_over(socket, &letter).await,
                None => run_mailer(&letter).await,
            };
            if let Err(why) = sent {
                tracing::warn!("no mail \"{}\" to {address}: {} {why}", mail.subject, mail.mailer);
            }
        }
    }
}

/// A mail was not sent. The text completes "MAILER".
#[derive(Debug, thiserror::Error)]
pub enum MailerError {
    /// The mailer would take the address for an option.
    #[error("is not run: the address looks like an option")]
    AddressIsOption,
    /// The system does not start the mailer.
    #[error("cannot be run: {0}")]
    NotRun(io::Error),
    /// The mailer took too long.
    #[error("has not ended after {} s and is killed", PATIENCE.as_secs())]
    TimedOut,
    /// The system does not say how the mailer ended.
    #[error(transparent)]
    NotAwaited(io::Error),
    /// The mailer failed.
    #[error("ended with {0}")]
    Failed(ExitStatus),
    /// The relay cannot read the letter.
    #[error("is not run: the letter cannot be read: {0}")]
    Letter(serde_json::Error),
    /// The unit of the relay does not name the mailer.
    #[error(
        "is not run: gridwright-mail@.service admits {} alone; add --mailer {mailer} there (systemctl edit gridwright-mail@)",
        admitted.join(", ")
    )]
    NotAdmitted {
        /// The mailers that the unit names.
        admitted: Vec<String>,
        /// The mailer of the letter.
        mailer: String,
    },
    /// The relay took too long.
    #[error("is not run: {} does not answer", .0.display())]
    NoRelay(PathBuf),
    /// The relay cannot be reached.
    #[error("is not run: {}: {error}", socket.display())]
    Relay {
        /// The socket of the relay.
        socket: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The relay was not able to send it, for this reason.
    #[error("{0}")]
    Relayed(String),
}

/// Gives a letter to the relay behind a socket. Its answer is empty if the mailer took it.
async fn hand_over(socket: &Path, letter: &Letter) -> Result<(), MailerError> {
    let talk = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(&serde_json::to_vec(letter)?).await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES).read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    match timeout(PATIENCE + RELAY_PATIENCE, talk).await {
        Err(_) => Err(MailerError::NoRelay(socket.to_owned())),
        Ok(Err(error)) => {
            let socket = socket.to_owned();
            Err(MailerError::Relay { socket, error })
        }
        Ok(Ok(answer)) if answer.is_empty() => Ok(()),
        Ok(Ok(why)) => Err(MailerError::Relayed(why)),
    }
}

/// Runs the mailer of a letter.
///
/// # Errors
/// As [`MailerError`].
pub async fn run_mailer(letter: &Letter) -> Result<(), MailerError> {
    if letter.address.starts_with('-') {
        return Err(MailerError::AddressIsOption);
    }
    let mut command = Command::new(&letter.mailer);
    command
        .args(["-s", &letter.subject, &letter.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().map_err(MailerError::NotRun)?;
    let mut stdin = child.stdin.take();
    let run = async {
        if let Some(stdin) = &mut stdin {
            // A mailer that reads nothing says by its exit what it thinks.
            let _ = stdin.write_all(letter.text.as_bytes()).await;
        }
        drop(stdin.take());
        child.wait().await
    };
    match timeout(PATIENCE, run).await {
        Err(_) => Err(MailerError::TimedOut),
        Ok(Err(error)) => Err(MailerError::NotAwaited(error)),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(MailerError::Failed(status)),
    }
}
