//! The end of a slave task's streams on its own host: bytes from and to its pipes, counted.

use super::Pipes;
use crate::messages::DriverInput;
use proto::id::TaskKey;
use proto::launch::terminal::{MAX_TYPED_BYTES, TerminalInput, WindowSize};
use proto::wire::agent::{MasterMessage, TaskSignal};
use proto::wire::slave::flow::{IncomingStream, OutgoingStream, PIECE, WINDOW};
use proto::wire::slave::{Message, SILENCE, SlaveMessage, Stream};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How long a task may take to end by itself after its command has gone: daemons of a parallel
/// program end a moment after it.
const GRACE: Duration = Duration::from_secs(2);

/// One task.
pub(super) struct Flow {
    key: TaskKey,
    to_master: mpsc::Sender<Message>,
    driver: mpsc::Sender<DriverInput>,
    output: OutputSource,
    error: OutputSource,
    input: Option<Sender>,
    /// Whether the input is written in pieces of [`TerminalInput`].
    is_terminal: bool,
    /// A new size of the terminal that is not written yet.
    window: Option<WindowSize>,
    /// Whether the end of a terminal's input is written.
    is_end_typed: bool,
    received: IncomingStream,
    unwritten: VecDeque<u8>,
    /// Whether a command has said how far it has got: nothing is read before.
    is_attached: bool,
    /// Whether the command has gone: what the task still says is for nobody.
    has_left: bool,
    /// When it is ended, if it has not ended by then.
    end_at: Option<Instant>,
    /// Whether it is an interactive job, which ends after [`SILENCE`] without its command.
    is_session: bool,
}

/// One stream of the task's output.
struct OutputSource {
    pipe: Receiver,
    outgoing: OutgoingStream,
}

impl OutputSource {
    fn new(pipe: Receiver, stream: Stream) -> Self {
        Self {
            pipe,
            outgoing: OutgoingStream::new(stream),
        }
    }

    /// Waits for bytes and takes them in, or the end.
    async fn read(&mut self) {
        let mut chunk = [0; PIECE];
        let room = self.outgoing.room().min(PIECE);
        match self.pipe.read(&mut chunk[..room]).await {
            Ok(0) | Err(_) => self.outgoing.end(),
            Ok(count) => self.outgoing.push(&chunk[..count]),
        }
    }
}

impl Flow {
    pub(super) fn new(
        key: TaskKey,
        pipes: Pipes,
        to_master: mpsc::Sender<Message>,
        driver: mpsc::Sender<DriverInput>,
        is_session: bool,
    ) -> Self {
        let Pipes {
            input,
            is_terminal,
            is_resumed,
            output,
            error,
        } = pipes;
        Self {
            key,
            to_master,
            driver,
            output: OutputSource::new(output, Stream::Output),
            error: OutputSource::new(error, Stream::Error),
            input,
            is_terminal,
            window: None,
            is_end_typed: false,
            received: if is_resumed && is_terminal {
                IncomingStream::resumed()
            } else {
                IncomingStream::default()
            },
            unwritten: VecDeque::new(),
            is_attached: false,
            has_left: false,
            end_at: is_session.then(|| Instant::now() + SILENCE),
            is_session,
        }
    }

    /// Works until everything is delivered, or nobody needs it any more.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<SlaveMessage>) {
        self.send(SlaveMessage::Present).await;
        while !self.is_over() {
            let reads = |source: &OutputSource| source.outgoing.room() > 0;
            let may_read = self.is_attached || self.has_left;
            let piece = self.next_typed();
            let may_write = piece.is_some() || !self.is_terminal && !self.unwritten.is_empty();
            tokio::select! {
                part = inbox.recv() => match part {
                    Some(part) => self.take(part).await,
                    None => return,
                },
                () = self.output.read(), if may_read && reads(&self.output) => {}
                () = self.error.read(), if may_read && reads(&self.error) => {}
                () = until(self.end_at) => self.end().await,
                written = write(&mut self.input, &self.unwritten, piece.as_ref()), if may_write => match piece {
                    Some(piece) => self.typed(written, piece).await,
                    None => self.wrote(written).await,
                },
            }
            self.send_output().await;
        }
    }

    fn is_over(&self) -> bool {
        let is_over = |source: &OutputSource| match self.has_left {
            true => source.outgoing.has_ended(),
            false => source.outgoing.is_delivered(),
        };
        is_over(&self.output) && is_over(&self.error)
    }

    async fn take(&mut self, part: SlaveMessage) {
        if self.is_session && !self.has_left {
            self.end_at = Some(Instant::now() + SILENCE);
        }
        match part {
            SlaveMessage::Attach { output, error } => {
                self.is_attached = true;
                self.output.outgoing.rewind(output);
                self.error.outgoing.rewind(error);
                self.send(SlaveMessage::Attached {
                    input: self.received.have(),
                })
                .await;
            }
            SlaveMessage::Have {
                stream: Stream::Output,
                until,
            } => self.output.outgoing.confirm(until),
            SlaveMessage::Have {
                stream: Stream::Error,
                until,
            } => self.error.outgoing.confirm(until),
            SlaveMessage::Data {
                stream: Stream::Input,
                at,
                bytes,
            } => self.take_input(at, &bytes).await,
            SlaveMessage::Left => {
                self.has_left = true;
                self.end_at = Some(Instant::now() + GRACE);
            }
            SlaveMessage::Window(size) => self.window = Some(size),
            SlaveMessage::CommandAlive => self.send(SlaveMessage::TaskAlive).await,
            // Said by this end, or by none.
            SlaveMessage::Data { .. }
            | SlaveMessage::Have { .. }
            | SlaveMessage::Attached { .. }
            | SlaveMessage::Present
            | SlaveMessage::TaskAlive
            | SlaveMessage::Over { .. }
            | SlaveMessage::Refused(_) => {}
        }
    }

    async fn end(&mut self) {
        tracing::info!("the command of task {} has gone: the task is ended", self.key);
        self.end_at = None;
        self.has_left = true;
        let signal = MasterMessage::Signal {
            key: self.key,
            signal: TaskSignal::Terminate,
        };
        // Without a driver the agent ends.
        let _ = self.driver.send(DriverInput::Master(Box::new(signal))).await;
    }

    async fn take_input(&mut self, at: u64, bytes: &[u8]) {
        // An honest end sends no more than there is room for; what it repeats is beyond that.
        if self.unwritten.len() + bytes.len() > 2 * WINDOW {
            return;
        }
        let new = self.received.accept(at, bytes);
        if self.input.is_some() {
            self.unwritten.extend(new);
        } else {
            self.send(SlaveMessage::Have {
                stream: Stream::Input,
                until: self.received.have(),
            })
            .await;
        }
        self.end_input_if_written();
    }

    /// Some of the input is in the pipe, or the task does not read any more.
    async fn wrote(&mut self, written: io::Result<usize>) {
        match written {
            Ok(count) => drop(self.unwritten.drain(..count)),
            Err(_) => {
                self.unwritten.clear();
                self.input = None;
            }
        }
        let until = self.received.have() - self.unwritten.len() as u64;
        self.send(SlaveMessage::Have {
            stream: Stream::Input,
            until,
        })
        .await;
        self.end_input_if_written();
    }

    /// What is to be written to a terminal next: its size, the next bytes, or the end.
    fn next_typed(&self) -> Option<TerminalInput> {
        if !self.is_terminal || self.input.is_none() {
            return None;
        }
        if let Some(size) = self.window {
            return Some(TerminalInput::Window(size));
        }
        if !self.unwritten.is_empty() {
            let bytes = self.unwritten.iter().take(MAX_TYPED_BYTES).copied().collect();
            return Some(TerminalInput::Bytes(bytes));
        }
        (self.received.has_ended() && !self.is_end_typed).then_some(TerminalInput::End)
    }

    /// A piece is in the pipe as a whole, or the terminal is gone.
    async fn typed(&mut self, written: io::Result<usize>, piece: TerminalInput) {
        if written.is_err() {
            self.input = None;
            self.unwritten.clear();
        }
        match piece {
            TerminalInput::Bytes(bytes) => self.wrote(Ok(bytes.len().min(self.unwritten.len()))).await,
            TerminalInput::Window(_) => self.window = None,
            TerminalInput::End => self.is_end_typed = true,
        }
    }

    fn end_input_if_written(&mut self) {
        if self.is_terminal {
            return;
        }
        if self.received.has_ended() && self.unwritten.is_empty() {
            self.input = None;
        }
    }

    /// What nobody reads any more is thrown away, so that the task does not wait for a reader while
    /// it is ended.
    async fn send_output(&mut self) {
        while let Some(part) = self
            .output
            .outgoing
            .next_piece()
            .or_else(|| self.error.outgoing.next_piece())
        {
            if !self.has_left {
                self.send(part).await;
            } else if let SlaveMessage::Data { stream, at, bytes } = part {
                let source = if stream == Stream::Output {
                    &mut self.output
                } else {
                    &mut self.error
                };
                source.outgoing.confirm(at + bytes.len() as u64);
            }
        }
    }

    async fn send(&self, part: SlaveMessage) {
        let message = Message {
            key: self.key,
            user: None,
            part,
        };
        // The receiver ends with the agent.
        let _ = self.to_master.send(message).await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Writes to the task: bytes, or a piece for its terminal, which is shorter than what a pipe takes
/// at once and is written as a whole.
async fn write(input: &mut Option<Sender>, bytes: &VecDeque<u8>, piece: Option<&TerminalInput>) -> io::Result<usize> {
    match (input, piece) {
        (Some(input), Some(piece)) => input.write(&piece.encode()).await,
        (Some(input), None) => input.write(bytes.as_slices().0).await,
        (None, _) => Ok(bytes.len()),
    }
}
