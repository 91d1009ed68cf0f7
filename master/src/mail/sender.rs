//! Runs the mailer: `mailer -s SUBJECT ADDRESS` with the text on standard input, as the account of
//! the master.

use super::Mail;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Mail that may wait; beyond it mail is lost, and the log says so.
const QUEUE: usize = 1_000;

/// How long the mailer may take for one address.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes mail.
#[derive(Clone, Debug)]
pub struct MailQueue(mpsc::Sender<Mail>);

impl MailQueue {
    /// An outbox and the work behind it, which ends with the last outbox.
    pub fn new() -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), work(receiver))
    }

    /// Takes a mail; one that finds no room is lost.
    pub fn put(&self, mail: Mail) {
        if let Err(error) = self.0.try_send(mail) {
            tracing::warn!("a mail is lost: {QUEUE} others wait for the mailer ({error})");
        }
    }
}

async fn work(mut waiting: mpsc::Receiver<Mail>) {
    while let Some(mail) = waiting.recv().await {
        for address in &mail.to {
            if let Err(why) = send(&mail, address).await {
                tracing::warn!("no mail \"{}\" to {address}: {} {why}", mail.subject, mail.mailer);
            }
        }
    }
}

async fn send(mail: &Mail, address: &str) -> Result<(), String> {
    if address.starts_with('-') {
        return Err("is not run: the address looks like an option".to_owned());
    }
    let mut command = Command::new(&mail.mailer);
    command
        .args(["-s", &mail.subject, address])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be run: {error}"))?;
    let mut stdin = child.stdin.take();
    let run = async {
        if let Some(stdin) = &mut stdin {
            // A mailer that reads nothing says by its exit what it thinks.
            let _ = stdin.write_all(mail.text.as_bytes()).await;
        }
        drop(stdin.take());
        child.wait().await
    };
    match timeout(PATIENCE, run).await {
        Err(_) => Err(format!("has not ended after {} s and is killed", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("ended with {status}")),
    }
}
