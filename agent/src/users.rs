//! Commands of users on this host: a Unix socket whose clients the kernel names, and a stream to the master for each.
//!
//! The agent vouches for the user and passes frames on as they are; it does not look into them.

mod account;

use crate::link::Online;
use account::who;
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::agent::Vouch;
use proto::wire::frame::Kind;
use quic::{
    AGENT_STREAMS, Connection, FrameLimits, FrameReceiver, FrameSender, StreamError, StreamReceiver, StreamSender,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// Clients at once; more wait in the socket's queue.
const CLIENTS: usize = 256;

/// Streams of users at once: what the transport allows without the control stream and a renewal. A command has one while it runs,
/// `qsub -sync y` until its job ends; more commands wait in their order for one that is free.
const STREAMS: usize = AGENT_STREAMS as usize - 2;

/// How long a client waits for a connection to the master that is just being made.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(3);

/// What a client's connection needs.
#[derive(Clone)]
struct Desk {
    online: Online,
    hurry: Arc<Notify>,
    streams: Arc<Semaphore>,
}

/// Serves clients of the socket until the agent ends.
pub async fn serve(listener: UnixListener, online: Online, hurry: Arc<Notify>) {
    let desk = Desk { online, hurry, streams: Arc::new(Semaphore::new(STREAMS)) };
    let clients = Arc::new(Semaphore::new(CLIENTS));
    while let Ok(place) = clients.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let desk = desk.clone();
                tokio::spawn(async move {
                    desk.client(stream).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("a client of agent.sock was not accepted: {error}");
                // Out of descriptors, as a rule: that passes when others leave.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Desk {
    /// One client from its connection to its end. A refusal under the id 0 answers whatever it asks.
    async fn client(mut self, stream: UnixStream) {
        let vouch = who(&stream).await.map(|owner| Vouch { owner });
        let (reader, writer) = stream.into_split();
        let mut sender = FrameSender::new(writer, FrameLimits::REPLY);
        let receiver = FrameReceiver::new(reader, FrameLimits::REQUEST);
        let outcome = match vouch {
            Ok(vouch) => self.pass_on(vouch, receiver, &mut sender).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = outcome {
            // A client that is gone needs no answer.
            let _ = sender.send(Kind::Refusal, 0, &refusal).await;
        }
    }

    async fn pass_on(
        &mut self,
        vouch: Vouch,
        from_client: FrameReceiver<OwnedReadHalf>,
        to_client: &mut FrameSender<OwnedWriteHalf>,
    ) -> Result<(), Diagnostic> {
        let ends = |_| no_master("this host's agent ends");
        let _stream = self.streams.clone().acquire_owned().await.map_err(ends)?;
        let connection = self.connection().await?;
        let broken = |error: StreamError| no_master(&error.to_string());
        let (mut to_master, from_master) = connection.open_bi(FrameLimits::REPLY).await.map_err(broken)?;
        to_master.send(Kind::Hello, 0, &vouch).await.map_err(broken)?;
        tokio::select! {
            end = requests(from_client, to_master) => end,
            end = replies(from_master, to_client) => end,
        }
        Ok(())
    }

    /// The present connection. Where one is being made, the attempt is hurried on and waited for.
    async fn connection(&mut self) -> Result<Connection, Diagnostic> {
        if let Some(connection) = self.online.borrow().clone() {
            return Ok(connection);
        }
        self.hurry.notify_one();
        let wait = timeout(CONNECTION_PATIENCE, self.online.wait_for(Option::is_some));
        let online = wait.await.ok().and_then(Result::ok).and_then(|online| online.clone());
        online.ok_or_else(|| no_master("this host's agent has no connection to it"))
    }
}

/// From the client to the master, until the client has gone.
async fn requests(mut from: FrameReceiver<OwnedReadHalf>, mut to: StreamSender) {
    while let Ok(Some(frame)) = from.recv().await {
        if to.send_frame(&frame).await.is_err() {
            break;
        }
    }
}

/// From the master to the client, until either has gone.
async fn replies(mut from: StreamReceiver, to: &mut FrameSender<OwnedWriteHalf>) {
    while let Ok(Some(frame)) = from.recv().await {
        if to.send_frame(&frame).await.is_err() {
            break;
        }
    }
}

fn no_master(why: &str) -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "error: unable to send message to qmaster: no connection to the master")
        .why(why)
        .fix("check that the master runs and that UDP passes between the hosts: gridwright doctor")
}
