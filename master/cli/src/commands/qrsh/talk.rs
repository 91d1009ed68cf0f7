//! The streams of a slave task or an interactive job from here to its end: over the agent of this
//! host, and over its next life if it is started again.

use super::escape::{self, Escape, TypedInput};
use super::local_terminal::{RawTerminal, window_size};
use super::printer::{PrintReport, Printer};
use crate::cell_address::CellAddress;
use crate::interrupt::Interrupt;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::TaskKey;
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::ClientHello;
use proto::wire::frame::{Frame, Kind};
use proto::wire::slave::flow::{IncomingStream, OutgoingStream, PIECE};
use proto::wire::slave::{HEARTBEAT, Message, SILENCE, SlaveMessage, Stream};
use quic::{FrameLimits, FrameReceiver, FrameSender, StreamError};
use std::io::Read;
use std::task::Poll;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};

/// How long an agent that is away is looked for; each time anew.
const LOOK_FOR: Duration = Duration::from_secs(600);

/// The pause between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(200);

/// Ticks of [`HEARTBEAT`] without a message after which the connection of an interactive job counts
/// as lost. A command that was stopped in between has not waited.
const SILENT_TICKS: u64 = SILENCE.as_secs() / HEARTBEAT.as_secs();

/// How long the rest of the output may take after the end of the task is on record: the host that
/// had it may be gone.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What is talked to.
#[derive(Clone, Copy, Debug)]
pub struct TalkRequest {
    /// The slave task or the interactive job.
    pub key: TaskKey,
    /// The task that this process belongs to, for a slave task. `None` for an interactive job,
    /// whose owner is the user of this process.
    pub inside: Option<TaskKey>,
    /// Whether standard input is passed on.
    pub has_input: bool,
    /// Whether the task has a terminal: the one of this command is raw then, if it has one.
    pub has_terminal: bool,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TalkEnd {
    /// The end of the task is on record.
    Over {
        /// Its exit status, 128 plus the signal's number for a signal.
        status: u32,
        /// The fault on its host, if any.
        reason: String,
    },
    /// Nobody reads this command's standard output any more.
    ReaderGone,
    /// A signal ends this command.
    Interrupted,
    /// The person at the terminal leaves by the escape.
    Left,
}

/// Carries the streams until the end. `held` has kept back signals that end the command; a signal
/// ends an interactive job's command by [`TalkEnd::Interrupted`].
///
/// # Errors
/// The agent refuses, or is away for too long.
pub fn until_over(address: &CellAddress, request: TalkRequest, held: Option<Interrupt>) -> Result<TalkEnd, Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(no_wait)?;
    let outcome = runtime.block_on(async {
        let signals = match request.inside {
            Some(_) => Vec::new(),
            None => end_signals()?,
        };
        // A signal that came before is caught from here on.
        drop(held);
        let raw = if request.has_terminal {
            RawTerminal::enter()
        } else {
            None
        };
        let escape = raw.as_ref().map(|_| {
            let setting = std::env::var(escape::VARIABLE).ok();
            Escape::new(setting.as_deref())
        });
        let input = request.has_input.then(own_input);
        let mut talk = Talk::new(request, input, signals)?;
        talk.escape = escape;
        let end = talk.run(address).await;
        drop(raw);
        end
    });
    // A read of standard input may never end.
    runtime.shutdown_background();
    outcome
}

fn no_wait(error: std::io::Error) -> Diagnostic {
    Diagnostic::new(Code::SystemRefused, "error: cannot wait for the task").why(error.to_string())
}

/// The signals that end the command of an interactive job.
fn end_signals() -> Result<Vec<Signal>, Diagnostic> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::quit(),
        SignalKind::hangup(),
    ];
    kinds.into_iter().map(|kind| signal(kind).map_err(no_wait)).collect()
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
    request: TalkRequest,
    pieces: Option<mpsc::Receiver<Vec<u8>>>,
    signals: Vec<Signal>,
    /// Looked for in what is typed at a raw terminal.
    escape: Option<Escape>,
    resized: Signal,
    input: OutgoingStream,
    output: IncomingStream,
    error: IncomingStream,
    printer: Printer,
    /// Bytes of output and of errors that are printed.
    printed: [u64; 2],
    tick: Interval,
    silent_ticks: u64,
    over: Option<TalkEnd>,
    /// When the rest of the output is given up.
    give_up: Option<Instant>,
}

/// Why a connection is of no more use.
enum Break {
    /// It ended: the next one goes on.
    Lost,
    /// It said no.
    Refused(Diagnostic),
    /// This command ends.
    Ended(TalkEnd),
}

impl From<StreamError> for Break {
    fn from(_: StreamError) -> Self {
        Self::Lost
    }
}

type Sender = FrameSender<OwnedWriteHalf>;
type Receiver = FrameReceiver<OwnedReadHalf>;

impl Talk {
    fn new(
        request: TalkRequest,
        pieces: Option<mpsc::Receiver<Vec<u8>>>,
        signals: Vec<Signal>,
    ) -> Result<Self, Diagnostic> {
        let mut tick = interval(HEARTBEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            request,
            pieces,
            signals,
            escape: None,
            resized: signal(SignalKind::window_change()).map_err(no_wait)?,
            input: OutgoingStream::new(Stream::Input),
            output: IncomingStream::default(),
            error: IncomingStream::default(),
            printer: Printer::start(),
            printed: [0; 2],
            tick,
            silent_ticks: 0,
            over: None,
            give_up: None,
        })
    }

    fn is_session(&self) -> bool {
        self.request.inside.is_none()
    }

    async fn run(mut self, address: &CellAddress) -> Result<TalkEnd, Diagnostic> {
        let mut give_up = Instant::now() + LOOK_FOR;
        loop {
            let refusal = match address.connect_to_agent() {
                Ok(stream) => match self.converse(stream).await {
                    Ok(end) | Err(Break::Ended(end)) => return Ok(end),
                    Err(Break::Refused(refusal)) => return Err(refusal),
                    Err(Break::Lost) => {
                        give_up = Instant::now() + LOOK_FOR;
                        lost()
                    }
                },
                Err(refusal) => refusal,
            };
            if let Some(end) = self.over.take() {
                self.print_all().await;
                return Ok(end);
            }
            if Instant::now() >= give_up {
                return Err(refusal);
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = any(&mut self.signals) => return Ok(TalkEnd::Interrupted),
            }
        }
    }

    /// Waits until everything that came is written, or nobody reads it.
    async fn print_all(&mut self) {
        while !self.printer.is_idle() {
            self.printer.next().await;
        }
    }

    /// One connection, until the task is over.
    async fn converse(&mut self, stream: std::os::unix::net::UnixStream) -> Result<TalkEnd, Break> {
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
            task: self.request.inside,
        };
        to.send(Kind::Hello, 0, &hello).await?;
        self.attach(&mut to).await?;
        loop {
            let has_all = self.output.has_ended() && self.error.has_ended() && self.printer.is_idle();
            let is_late = self.give_up.is_some_and(|at| Instant::now() >= at);
            if let Some(end) = self.over.take_if(|_| has_all || is_late) {
                self.print_all().await;
                return Ok(end);
            }
            self.step(&mut from, &mut to).await?;
        }
    }

    async fn attach(&self, to: &mut Sender) -> Result<(), Break> {
        let part = SlaveMessage::Attach {
            output: self.output.have(),
            error: self.error.have(),
        };
        self.say(to, part).await?;
        self.tell_size(to).await
    }

    async fn tell_size(&self, to: &mut Sender) -> Result<(), Break> {
        match window_size().filter(|_| self.request.has_terminal) {
            Some(size) => self.say(to, SlaveMessage::Window(size)).await,
            None => Ok(()),
        }
    }

    async fn say(&self, to: &mut Sender, part: SlaveMessage) -> Result<(), Break> {
        let message = Message {
            key: self.request.key,
            user: None,
            part,
        };
        Ok(to.send(Kind::Slave, 0, &message).await?)
    }

    /// Waits for whatever comes next.
    async fn step(&mut self, from: &mut Receiver, to: &mut Sender) -> Result<(), Break> {
        let may_read = self.input.room() >= PIECE && self.over.is_none();
        let is_session = self.is_session();
        let give_up = self.give_up.filter(|_| self.printer.is_idle());
        tokio::select! {
            frame = from.recv() => {
                self.silent_ticks = 0;
                self.take(frame?, to).await
            }
            piece = next(&mut self.pieces), if may_read => {
                self.take_piece(piece)?;
                self.send_input(to).await
            }
            _ = self.resized.recv() => self.tell_size(to).await,
            printed = self.printer.next() => self.confirm(printed, to).await,
            () = any(&mut self.signals) => Err(Break::Ended(TalkEnd::Interrupted)),
            () = until(give_up) => Ok(()),
            _ = self.tick.tick(), if is_session => self.heed_silence(to).await,
        }
    }

    /// Takes what was typed, or the end of it.
    fn take_piece(&mut self, piece: Option<Vec<u8>>) -> Result<(), Break> {
        let Some(bytes) = piece else {
            self.pieces = None;
            self.input.end();
            return Ok(());
        };
        match self.escape.as_mut().map(|escape| escape.take(&bytes)) {
            None => self.input.push(&bytes),
            Some(TypedInput::Bytes(bytes)) => self.input.push(&bytes),
            Some(TypedInput::Leave(_)) => return Err(Break::Ended(TalkEnd::Left)),
        }
        Ok(())
    }

    /// Asks the other end whether it is there, and gives up after a while without an answer.
    async fn heed_silence(&mut self, to: &mut Sender) -> Result<(), Break> {
        self.silent_ticks += 1;
        match self.silent_ticks {
            ticks if ticks > SILENT_TICKS => Err(Break::Refused(silent())),
            1 | 2 => Ok(()),
            _ => self.attach(to).await,
        }
    }

    async fn send_input(&mut self, to: &mut Sender) -> Result<(), Break> {
        while let Some(piece) = self.input.next_piece() {
            self.say(to, piece).await?;
        }
        Ok(())
    }

    /// Lets further output come in the place of what is written. A slave task goes on when nobody
    /// reads its output.
    async fn confirm(&mut self, printed: PrintReport, to: &mut Sender) -> Result<(), Break> {
        let PrintReport { stream, count, is_read } = printed;
        if !is_read && self.is_session() && stream == Stream::Output {
            return Err(Break::Ended(TalkEnd::ReaderGone));
        }
        let total = &mut self.printed[usize::from(stream == Stream::Error)];
        *total += count;
        let until = *total;
        if let Some(at) = &mut self.give_up {
            *at = Instant::now() + LAST_WORDS;
        }
        self.say(to, SlaveMessage::Have { stream, until }).await
    }

    async fn take(&mut self, frame: Option<Frame>, to: &mut Sender) -> Result<(), Break> {
        let frame = frame.ok_or(Break::Lost)?;
        if frame.kind == Kind::Refusal {
            return Err(Break::Refused(frame.message().unwrap_or_else(|_| lost())));
        }
        let Ok(Message { key, part, user: _ }) = frame.message::<Message>() else {
            return Ok(());
        };
        if key != self.request.key {
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
            } => self.printer.print(Stream::Output, self.output.accept(at, &bytes)),
            SlaveMessage::Data {
                stream: Stream::Error,
                at,
                bytes,
            } => self.printer.print(Stream::Error, self.error.accept(at, &bytes)),
            SlaveMessage::Over { status, reason } => {
                self.over = Some(TalkEnd::Over { status, reason });
                self.give_up = Some(Instant::now() + LAST_WORDS);
            }
            SlaveMessage::Refused(refusal) => return Err(Break::Refused(refusal)),
            SlaveMessage::TaskAlive => {}
            // Said by this end.
            SlaveMessage::Attach { .. }
            | SlaveMessage::Left
            | SlaveMessage::Window(_)
            | SlaveMessage::CommandAlive
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

/// Completes when one of the signals comes.
async fn any(signals: &mut [Signal]) {
    std::future::poll_fn(|context| {
        let has_come = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if has_come { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn lost() -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "error: the agent of this host is away").fix("look into log/agent.log on this host")
}

fn silent() -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "error: the connection to the job is lost")
        .why(format!(
            "nothing was heard of it for {} s, so it is ended",
            SILENCE.as_secs()
        ))
        .fix("look with qacct -j how it ended; check the network between the hosts: gridwright doctor")
}
