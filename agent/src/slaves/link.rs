//! The stream of this host's slave tasks to the master: opened when it is needed, and anew with
//! every connection.

use super::Slaves;
use crate::link::ConnectionWatch;
use proto::wire::frame::Kind;
use proto::wire::slave::Message;
use quic::{Connection, FrameLimits, StreamError, StreamReceiver, StreamSender};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The pause before a stream that broke on a good connection is opened again.
const PAUSE: Duration = Duration::from_millis(200);

/// Works until the agent ends.
pub async fn run(slaves: Slaves, mut messages: mpsc::Receiver<Message>, mut online: ConnectionWatch) {
    loop {
        let connection = match online.wait_for(Option::is_some).await {
            Ok(online) => online.clone(),
            Err(_) => return,
        };
        let Some(connection) = connection else { continue };
        let mut first = None;
        if !slaves.is_used() {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => first = Some(message),
                    None => return,
                },
                _ = connection.closed() => continue,
            }
        }
        if let Err(error) = serve(&slaves, &connection, first, &mut messages).await {
            tracing::debug!("the stream of slave tasks broke: {error}");
        }
        sleep(PAUSE).await;
    }
}

async fn serve(
    slaves: &Slaves,
    connection: &Connection,
    first: Option<Message>,
    messages: &mut mpsc::Receiver<Message>,
) -> Result<(), StreamError> {
    let (mut to_master, from_master) = connection.open_bi(FrameLimits::REQUEST).await?;
    to_master.send(Kind::Slave, 0, &()).await?;
    for message in slaves.announcements().into_iter().chain(first) {
        to_master.send(Kind::Slave, 0, &message).await?;
    }
    tokio::select! {
        end = send_all(to_master, messages) => end,
        end = receive_all(slaves, from_master) => end,
        _ = connection.closed() => Ok(()),
    }
}

async fn send_all(mut to_master: StreamSender, messages: &mut mpsc::Receiver<Message>) -> Result<(), StreamError> {
    while let Some(message) = messages.recv().await {
        to_master.send(Kind::Slave, 0, &message).await?;
    }
    Ok(())
}

async fn receive_all(slaves: &Slaves, mut from_master: StreamReceiver) -> Result<(), StreamError> {
    while let Some(frame) = from_master.recv().await? {
        match frame.message() {
            Ok(message) => slaves.deliver(message),
            Err(error) => tracing::warn!("a message about a slave task is refused: {error}"),
        }
    }
    Ok(())
}
