//! Commands of users on this host: a Unix socket whose clients the kernel names, and a stream to
//! the master for each.
//!
//! The agent vouches for the user and passes frames on as they are. A stream is taken when a client
//! asks something and given back when it is answered and nothing follows: clients that are idle
//! hold none, and those that wait for jobs have a share of their own.

mod account;
mod exchange;
mod inside;
mod pulse;
mod slave;

use crate::config::UserLimits;
use crate::link::ConnectionWatch;
use crate::messages::DriverInput;
use crate::slaves::Slaves;
use account::who;
use exchange::{End, Exchange};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::agent::Vouch;
use proto::wire::frame::{Frame, Kind};
use pulse::{Pulse, SILENCE};
use quic::{
    AGENT_STREAMS, Connection, FrameLimits, FrameReceiver, FrameSender, Share, ShareRefusal, Shares, StreamError,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::timeout;

/// Streams of users at once: what the transport allows without the control stream, a renewal and
/// that of slave tasks. A command has one while it is answered, `qsub -sync y` until its job ends.
const STREAMS: usize = AGENT_STREAMS as usize - 3;

/// Commands that talk to slave tasks at once: one for each slave task of the parallel jobs whose
/// master is on this host.
const SLAVE_COMMANDS: usize = 4096;

/// Of these, commands of one user.
const SLAVE_COMMANDS_PER_USER: usize = 2048;

/// Streams that remain for commands that do not wait, however many do.
const STREAMS_WITHOUT_WAITS: usize = 16;

/// How long a command waits for a stream before it is refused.
const STREAM_PATIENCE: Duration = Duration::from_secs(30);

/// How long a client may take from its connection to its first frame.
const FIRST_FRAME: Duration = Duration::from_secs(10);

/// How long a client waits for a connection to the master that is just being made.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(3);

/// What a client's connection needs.
#[derive(Clone)]
struct Desk {
    online: ConnectionWatch,
    hurry: Arc<Notify>,
    streams: Arc<Semaphore>,
    waits: Shares,
    limits: UserLimits,
    driver: mpsc::Sender<DriverInput>,
    slaves: Slaves,
    slave_commands: Shares,
    pulse: Pulse,
}

/// What the users' commands are served with.
pub struct Counter {
    /// The present connection to the master.
    pub online: ConnectionWatch,
    /// Woken when a command cannot wait for the next attempt to connect.
    pub hurry: Arc<Notify>,
    /// What users may take.
    pub limits: UserLimits,
    /// Knows the tasks of this host.
    pub driver: mpsc::Sender<DriverInput>,
    /// Streams of slave tasks.
    pub slaves: Slaves,
}

/// Serves clients of the socket until the agent ends.
pub async fn serve(listener: UnixListener, counter: Counter) {
    let Counter {
        online,
        hurry,
        limits,
        driver,
        slaves,
    } = counter;
    let waits = Shares::new(limits.waits.min(STREAMS - STREAMS_WITHOUT_WAITS), limits.waits_per_user);
    let streams = Arc::new(Semaphore::new(STREAMS));
    let slave_commands = Shares::new(SLAVE_COMMANDS, SLAVE_COMMANDS_PER_USER);
    let pulse = Pulse::default();
    let desk = Desk {
        online,
        hurry,
        streams,
        waits,
        limits,
        driver,
        slaves,
        slave_commands,
        pulse,
    };
    let clients = Shares::new(limits.clients, limits.clients_per_user);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let desk = desk.clone();
                let place = place(&clients, &stream);
                tokio::spawn(async move {
                    match place {
                        Ok(place) => desk.client(stream, place).await,
                        Err(refusal) => refuse(stream, &refusal).await,
                    }
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

/// A place for a client, by the user that the kernel names.
fn place(clients: &Shares, stream: &UnixStream) -> Result<Share, Diagnostic> {
    let unknown = |error: std::io::Error| {
        Diagnostic::new(Code::SystemRefused, "error: the user of this command is not known").why(error.to_string())
    };
    let uid = stream.peer_cred().map_err(unknown)?.uid();
    clients.take(uid).map_err(|full| match full {
        ShareRefusal::All { limit } => overloaded(
            format!("error: {limit} commands of this host are connected already"),
            "clients",
        ),
        ShareRefusal::Each { limit } => overloaded(
            format!("error: {limit} commands of user id {uid} are connected already on this host"),
            "clients_per_user",
        ),
    })
}

async fn refuse(stream: UnixStream, refusal: &Diagnostic) {
    tracing::info!("{refusal}");
    // A client that is gone needs no answer.
    let _ = FrameSender::new(stream, FrameLimits::REPLY)
        .send(Kind::Refusal, 0, refusal)
        .await;
}

/// A refusal because a limit is reached, with the key that sets it.
fn overloaded(what: String, key: &str) -> Diagnostic {
    let fix = format!("end some of them or try again later; {key} of etc/agent.toml is the limit");
    Diagnostic::new(Code::Overloaded, what).fix(fix)
}

impl Desk {
    /// One client from its connection to its end. A refusal under the id 0 answers whatever it
    /// asks.
    async fn client(mut self, stream: UnixStream, place: Share) {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let vouch = who(&stream).await.map(|owner| Vouch { owner, task: None });
        let mut place = Some(place);
        let (reader, writer) = stream.into_split();
        let mut sender = FrameSender::new(writer, FrameLimits::REPLY);
        let receiver = FrameReceiver::new(reader, FrameLimits::REQUEST);
        let outcome = match vouch {
            Ok(vouch) => self.serve(vouch, pid, &mut place, receiver, &mut sender).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = outcome {
            // A client that is gone needs no answer.
            let _ = sender.send(Kind::Refusal, 0, &refusal).await;
        }
        drop(place);
    }

    /// Passes on what the client asks, each time it does, until it goes or is silent for too long.
    async fn serve(
        &mut self,
        mut vouch: Vouch,
        pid: Option<i32>,
        place: &mut Option<Share>,
        mut from_client: FrameReceiver<OwnedReadHalf>,
        to_client: &mut FrameSender<OwnedWriteHalf>,
    ) -> Result<(), Diagnostic> {
        let mut hello = None;
        loop {
            let patience = if hello.is_some() {
                self.limits.client_idle
            } else {
                FIRST_FRAME
            };
            match timeout(patience, from_client.recv()).await {
                Err(_) => {
                    let what = format!("the connection was idle for {} s", patience.as_secs());
                    return Err(overloaded(what, "client_idle_s"));
                }
                Ok(Ok(Some(frame))) if frame.kind == Kind::Hello => {
                    vouch.task = inside::task(&self.driver, &frame, pid).await;
                    hello = Some(frame);
                }
                Ok(Ok(Some(frame))) if frame.kind == Kind::Slave => {
                    let _own = self.slave_commands.take(vouch.owner.uid).map_err(too_many_slaves)?;
                    // It stays as long as its task, and does not count among commands that come and
                    // go.
                    *place = None;
                    return slave::attend(&self.slaves, &vouch, &frame, &mut from_client, to_client).await;
                }
                Ok(Ok(Some(frame))) => {
                    match self
                        .pass_on(&vouch, hello.as_ref(), frame, &mut from_client, to_client)
                        .await?
                    {
                        End::Answered => {}
                        End::Gone => return Ok(()),
                    }
                }
                Ok(Ok(None) | Err(_)) => return Ok(()),
            }
        }
    }

    /// One stream to the master, from a first request until nothing more is asked for the moment.
    async fn pass_on(
        &mut self,
        vouch: &Vouch,
        hello: Option<&Frame>,
        first: Frame,
        from_client: &mut FrameReceiver<OwnedReadHalf>,
        to_client: &mut FrameSender<OwnedWriteHalf>,
    ) -> Result<End, Diagnostic> {
        let _stream = match timeout(STREAM_PATIENCE, self.streams.clone().acquire_owned()).await {
            Ok(place) => place.map_err(|_| no_master("this host's agent ends"))?,
            Err(_) => return Err(busy()),
        };
        let connection = self.connection().await?;
        let broken = |error: StreamError| no_master(&error.to_string());
        let before = connection.received_datagrams();
        let (mut to_master, from_master) = connection.open_bi(FrameLimits::REPLY).await.map_err(broken)?;
        to_master.send(Kind::Hello, 0, vouch).await.map_err(broken)?;
        if let Some(hello) = hello {
            to_master.send_frame(hello).await.map_err(broken)?;
        }
        // Nothing that changes the cell goes into the dark: what was not passed on was surely not
        // done.
        if !self.pulse.beats(&connection, before).await {
            return Err(silent());
        }
        let exchange = Exchange::new(&self.waits, &vouch.owner);
        let end = tokio::select! {
            end = exchange.run(first, from_client, to_client, to_master, from_master) => end,
            () = exchange.is_forsaken(|| self.pulse.is_gone(&connection, vouch)) => {
                return Err(if exchange.may_have_changed() { unanswered() } else { silent() });
            }
        };
        Ok(end)
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

fn too_many_slaves(full: ShareRefusal) -> Diagnostic {
    let (ShareRefusal::All { limit } | ShareRefusal::Each { limit }) = full;
    let what = format!("error: {limit} commands of this host talk to slave tasks already");
    Diagnostic::new(Code::Overloaded, what).fix("end some of them or try again later")
}

fn busy() -> Diagnostic {
    let what = format!("error: all {STREAMS} streams of this host to the master are in use");
    let why = format!("none was free within {} s", STREAM_PATIENCE.as_secs());
    Diagnostic::new(Code::Overloaded, what)
        .why(why)
        .fix("try again in a moment, or from the master's host")
}

fn silent() -> Diagnostic {
    no_master(&format!("it has not answered for {} s", SILENCE.as_secs()))
}

/// A change was passed on, and nobody knows whether it arrived: the command repeats it, with the
/// same id.
fn unanswered() -> Diagnostic {
    Diagnostic::new(
        Code::OutcomeUnknown,
        "error: no answer from qmaster: the outcome is unknown",
    )
    .why(silent().why)
    .fix("look with qstat or qconf whether the change was made before repeating it")
}

fn no_master(why: &str) -> Diagnostic {
    Diagnostic::new(
        Code::NoMaster,
        "error: unable to send message to qmaster: no connection to the master",
    )
    .why(why)
    .fix("check that the master runs and that UDP passes between the hosts: gridwright doctor")
}
