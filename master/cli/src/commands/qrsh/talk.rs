//! The streams of a slave task from here to its end: over the agent of this host, and over its next
//! life if it is started again.

use crate::cell_address::CellAddress;
use crate::output;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::TaskKey;
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::ClientHello;
use proto::wire::frame::{Frame, Kind};
use proto::wire::slave::flow::{IncomingStream, OutgoingStream, PIECE};
use proto::wire::slave::{Message, SlaveMessage, Stream};
use quic::{FrameLimits, FrameReceiver, FrameSender, StreamError};
use std::io::{Read, Write};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// How long an agent that is away is looked for; each time anew.
const LOOK_FOR: Duration = Duration::from_secs(600);

/// The pause between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(200);

/// How long the rest of the output may take after the end of the task is on record: the host that
/// had it may be gone.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Carries the streams of a slave task until its end; its exit status. `task` is what this process
/// belongs to.
///
/// # Errors
/// The agent refuses, or is away for too long.
pub fn until_over(address: &CellAddress, task: TaskKey, key: TaskKey, has_input: bool) -> Result<u32, Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Diagnostic::new(Code::SystemRefused, "error: cannot wait for the slave task").why(error.to_string())
    })?;
    let outcome = runtime.block_on(async {
        let input = if has_input { Some(own_input()) } else { None };
        Talk::new(key, input).run(address, task).await
    });
    // A read of standard input may never end.
    runtime.shutdown_background();
    outcome
}

/// What comes on standard input, read by a thread of its own: nothing else can wait for any kind of
/// file.
fn own_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut chunk = [0; PIECE];
        // What cannot be read has ended.
        while let Ok(count) = std::io::stdin().lock().read(&mut chunk) {
            if count == 0 || sender.blocking_send(chunk[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}

/// This end of the streams.
struct Talk {
    key: TaskKey,
    pieces: Option<mpsc::Receiver<Vec<u8>>>,
    input: OutgoingStream,
    output: IncomingStream,
    error: IncomingStream,
    status: Option<u32>,
}

/// Why a connection is of no more use.
enum Break {
    /// It ended: the next one goes on.
    Lost,
    /// It said no.
    Refused(Diagnostic),
}

impl From<StreamError> for Break {
    fn from(_: StreamError) -> Self {
        Self::Lost
    }
}

type Sender = FrameSender<OwnedWriteHalf>;
type Receiver = FrameReceiver<OwnedReadHalf>;

impl Talk {
    fn new(key: TaskKey, pieces: Option<mpsc::Receiver<Vec<u8>>>) -> Self {
        let (output, error) = (IncomingStream::default(), IncomingStream::default());
        Self {
            key,
            pieces,
            input: OutgoingStream::new(Stream::Input),
            output,
            error,
            status: None,
        }
    }

    async fn run(mut self, address: &CellAddress, task: TaskKey) -> Result<u32, Diagnostic> {
        let mut give_up = Instant::now() + LOOK_FOR;
        loop {
            let refusal = match address.connect_to_agent() {
                Ok(stream) => match self.converse(stream, task).await {
                    Ok(status) => return Ok(status),
                    Err(Break::Refused(refusal)) => return Err(refusal),
                    Err(Break::Lost) => {
                        give_up = Instant::now() + LOOK_FOR;
                        lost()
                    }
                },
                Err(refusal) => refusal,
            };
            if let Some(status) = self.status {
                return Ok(status);
            }
            if Instant::now() >= give_up {
                return Err(refusal);
            }
            sleep(PAUSE).await;
        }
    }

    /// One connection, until the task is over.
    async fn converse(&mut self, stream: std::os::unix::net::UnixStream, task: TaskKey) -> Result<u32, Break> {
        let stream = stream
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(stream))
            .map_err(|_| Break::Lost)?;
        let (read, write) = stream.into_split();
        let (mut from, mut to) = (
            FrameReceiver::new(read, FrameLimits::REPLY),
            FrameSender::new(write, FrameLimits::REQUEST),
        );
        let hello = ClientHello {
            version: PROTOCOL_VERSION,
            program: "qrsh".to_owned(),
            task: Some(task),
        };
        to.send(Kind::Hello, 0, &hello).await?;
        self.attach(&mut to).await?;
        loop {
            if let Some(status) = self.status {
                let has_all = self.output.has_ended() && self.error.has_ended();
                match if has_all {
                    None
                } else {
                    timeout(LAST_WORDS, from.recv()).await.ok()
                } {
                    Some(frame) => self.take(frame?, &mut to).await?,
                    None => return Ok(status),
                }
                continue;
            }
            self.step(&mut from, &mut to).await?;
        }
    }

    async fn attach(&self, to: &mut Sender) -> Result<(), Break> {
        self.say(
            to,
            SlaveMessage::Attach {
                output: self.output.have(),
                error: self.error.have(),
            },
        )
        .await
    }

    async fn say(&self, to: &mut Sender, part: SlaveMessage) -> Result<(), Break> {
        Ok(to.send(Kind::Slave, 0, &Message { key: self.key, part }).await?)
    }

    /// Waits for a message or for input.
    async fn step(&mut self, from: &mut Receiver, to: &mut Sender) -> Result<(), Break> {
        let may_read = self.input.room() >= PIECE;
        tokio::select! {
            frame = from.recv() => self.take(frame?, to).await,
            piece = next(&mut self.pieces), if may_read => {
                match piece {
                    Some(bytes) => self.input.push(&bytes),
                    None => {
                        self.pieces = None;
                        self.input.end();
                    }
                }
                self.send_input(to).await
            }
        }
    }

    async fn send_input(&mut self, to: &mut Sender) -> Result<(), Break> {
        while let Some(piece) = self.input.next_piece() {
            self.say(to, piece).await?;
        }
        Ok(())
    }

    async fn take(&mut self, frame: Option<Frame>, to: &mut Sender) -> Result<(), Break> {
        let frame = frame.ok_or(Break::Lost)?;
        if frame.kind == Kind::Refusal {
            return Err(Break::Refused(frame.message().unwrap_or_else(|_| lost())));
        }
        let Ok(Message { key, part }) = frame.message::<Message>() else {
            return Ok(());
        };
        if key != self.key {
            return Ok(());
        }
        match part {
            SlaveMessage::Present => self.attach(to).await?,
            SlaveMessage::Attached { input } => {
                self.input.rewind(input);
                self.send_input(to).await?;
            }
            SlaveMessage::Have {
                stream: Stream::Input,
                until,
            } => self.input.confirm(until),
            SlaveMessage::Data {
                stream: Stream::Output,
                at,
                bytes,
            } => {
                print(&mut std::io::stdout(), self.output.accept(at, &bytes));
                self.say(
                    to,
                    SlaveMessage::Have {
                        stream: Stream::Output,
                        until: self.output.have(),
                    },
                )
                .await?;
            }
            SlaveMessage::Data {
                stream: Stream::Error,
                at,
                bytes,
            } => {
                print(&mut std::io::stderr(), self.error.accept(at, &bytes));
                self.say(
                    to,
                    SlaveMessage::Have {
                        stream: Stream::Error,
                        until: self.error.have(),
                    },
                )
                .await?;
            }
            SlaveMessage::Over { status, reason } => {
                self.status = Some(status);
                if !reason.is_empty() {
                    output::note(&format!("error: the slave task failed: {reason}"));
                }
            }
            SlaveMessage::Refused(refusal) => return Err(Break::Refused(refusal)),
            // Said by this end.
            SlaveMessage::Attach { .. }
            | SlaveMessage::Left
            | SlaveMessage::Data { .. }
            | SlaveMessage::Have { .. } => {}
        }
        Ok(())
    }
}

/// The next piece of input; never where there is none, or no more.
async fn next(pieces: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => std::future::pending().await,
    }
}

/// A reader that has gone does not want the rest: the task goes on.
fn print(to: &mut impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

fn lost() -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "error: the agent of this host is away").fix("look into log/agent.log on this host")
}
