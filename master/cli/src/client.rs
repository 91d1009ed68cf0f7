//! The conversation with the master: one request, the parts of its answer, and repeats of changes
//! whose outcome is not known.

mod shown;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use shown::ShownReply;

use crate::cell_address::CellAddress;
use crate::interrupt::Interrupt;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{RequestId, TaskKey};
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::{Answer, ClientHello, ClientMessage, Command, Query, Reply};
use proto::wire::frame::{Frame, Kind};
use proto::wire::view::Data;
use quic::{StreamError, blocking};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The largest frame that a command accepts or sends: a script with its environment, or one part of
/// a long listing.
pub const FRAME_LIMIT: usize = 64 << 20;

/// How long a change is repeated after its connection broke (ARCHITECTURE.md "Time, keys and
/// requests").
const REPEAT_FOR: Duration = Duration::from_secs(60);

/// How long a master of this host that is away is waited for before its absence is told: it may
/// just be starting anew.
const RESTART: Duration = Duration::from_secs(3);

/// How long a command that waits for a job looks for a master that is away; each time anew.
const LOOK_FOR: Duration = Duration::from_secs(600);

/// An attempt that lasted longer than this had reached the master: an agent without one says so
/// earlier.
const REACHED: Duration = Duration::from_secs(10);

/// The pause between two attempts to reach a master that is being started again.
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

/// A connection to the master, or to the agent that passes commands on.
pub struct Client {
    address: CellAddress,
    program: String,
    stream: Option<UnixStream>,
    /// Whether the stream has answered something: from then on it may have been closed as idle.
    has_answered: bool,
    next_id: u64,
    repeat_for: Duration,
    look_for: Duration,
    restart: Duration,
    /// How long one answer may take to begin or go on. `None` means no limit.
    patience: Option<Duration>,
    /// The task that this process belongs to, where the agent is to vouch for it.
    task: Option<TaskKey>,
    values: ValueForm,
}

/// The form of values in answers: see [`shown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    /// For people: control characters in values are escaped.
    Shown,
    /// Unescaped, as the master stores them.
    Raw,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// `NoMaster` if no daemon of the cell answers.
    pub fn connect(address: &CellAddress, program: &str) -> Result<Self, Diagnostic> {
        Self::connect_with(address, program, None)
    }

    /// Connects to the agent of this host, which is to vouch that this process belongs to a task.
    ///
    /// # Errors
    /// `NoMaster` if it does not answer.
    pub fn inside(address: &CellAddress, program: &str, task: TaskKey) -> Result<Self, Diagnostic> {
        Self::connect_with(address, program, Some(task))
    }

    fn connect_with(address: &CellAddress, program: &str, task: Option<TaskKey>) -> Result<Self, Diagnostic> {
        let mut client = Self {
            address: address.clone(),
            program: program.to_owned(),
            stream: None,
            has_answered: false,
            next_id: 1,
            repeat_for: REPEAT_FOR,
            look_for: LOOK_FOR,
            restart: RESTART,
            patience: None,
            task,
            values: ValueForm::Shown,
        };
        client.open()?;
        Ok(client)
    }

    /// Another connection for one last request, whose answer is waited for that long and not
    /// repeated.
    ///
    /// # Errors
    /// `NoMaster` if no daemon of the cell answers.
    pub fn hurried(&self, patience: Duration) -> Result<Self, Diagnostic> {
        let mut client = Self {
            address: self.address.clone(),
            program: self.program.clone(),
            stream: None,
            repeat_for: Duration::ZERO,
            restart: Duration::ZERO,
            patience: Some(patience),
            ..*self
        };
        client.open()?;
        Ok(client)
    }

    /// Returns a client whose answers are not escaped, for values that are not printed as text or
    /// go back to the master.
    pub fn with_raw_values(self) -> Self {
        Self {
            values: ValueForm::Raw,
            ..self
        }
    }

    /// Returns the connection, for a thread that ends it with `shutdown(2)` while another thread
    /// reads an answer. `None` if it is closed.
    ///
    /// # Errors
    /// `SystemRefused` without a free descriptor.
    pub fn connection(&self) -> Result<Option<UnixStream>, Diagnostic> {
        let copied = self.stream.as_ref().map(UnixStream::try_clone).transpose();
        copied.map_err(|error| {
            Diagnostic::new(Code::SystemRefused, "error: cannot copy a connection").why(error.to_string())
        })
    }

    /// Asks, and returns the whole answer.
    ///
    /// # Errors
    /// `NoMaster` if the connection broke. Refusals of the master are in the reply.
    pub fn query(&mut self, query: Query) -> Result<Reply, Diagnostic> {
        self.exchange(&ClientMessage::Query(query))
    }

    /// Asks for what is answered late, and returns the whole answer; nothing if an interrupt came
    /// first. A master that goes away is looked for quietly for ten minutes and asked again.
    ///
    /// # Errors
    /// `NoMaster` or `Overloaded` as of the last attempt. Other refusals of the master are in the
    /// reply.
    pub fn wait(&mut self, query: Query, interrupt: &Interrupt) -> Result<Option<Reply>, Diagnostic> {
        // The pauses between attempts end with an interrupt, those within an attempt do not.
        let restart = std::mem::replace(&mut self.restart, Duration::ZERO);
        let outcome = self.ask_until_answered(query, interrupt);
        self.restart = restart;
        outcome
    }

    fn ask_until_answered(&mut self, query: Query, interrupt: &Interrupt) -> Result<Option<Reply>, Diagnostic> {
        let message = ClientMessage::Query(query);
        let mut give_up = Instant::now() + self.look_for;
        loop {
            let began = Instant::now();
            let error = match self.exchange_unless(&message, interrupt) {
                Ok(None) => return Ok(None),
                Ok(Some(reply)) => match not_taken(&reply) {
                    Some(refusal) => refusal.clone(),
                    None => return Ok(Some(reply)),
                },
                Err(error) => error,
            };
            self.stream = None;
            let ended = Instant::now();
            if ended.duration_since(began) > REACHED {
                give_up = ended + self.look_for;
            }
            if ended >= give_up {
                return Err(error);
            }
            if interrupt.comes_within(REPEAT_PAUSE)? {
                return Ok(None);
            }
        }
    }

    /// Asks, and gives each part of the answer to `each`: what is long is never held whole.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn query_parts(&mut self, query: Query, mut each: impl FnMut(Reply)) -> Result<(), Diagnostic> {
        self.query_while(query, |part| {
            each(part);
            ControlFlow::Continue(())
        })
    }

    /// The same until `each` says that it has enough: then the connection is closed.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn query_while(
        &mut self,
        query: Query,
        mut each: impl FnMut(Reply) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        let (id, sent) = self.send(&ClientMessage::Query(query))?;
        if let Err(StreamError::Frame(error)) = sent {
            // It is the only part.
            let _ = each(Reply::refusal(error.diagnostic()));
            return Ok(());
        }
        self.receive_parts(id, sent, each)
    }

    /// Changes something, once: where the connection breaks, the same request is repeated for a
    /// minute and the master answers a repeat with its first answer. An agent that says it has no
    /// connection has passed nothing on: that is final at the first attempt, and says nothing about
    /// the outcome at a repeat.
    ///
    /// # Errors
    /// `NoMaster` if nothing was sent, `OutcomeUnknown` if it was and no answer came.
    pub fn change(&mut self, command: Command) -> Result<Reply, Diagnostic> {
        Ok(self
            .repeat(command, None)?
            .expect("without an interrupt there is an answer or an error"))
    }

    /// Changes something like [`Client::change`]; nothing if an interrupt comes before the answer.
    /// The change may have been made then.
    ///
    /// # Errors
    /// See [`Client::change`].
    pub fn change_unless(&mut self, command: Command, interrupt: &Interrupt) -> Result<Option<Reply>, Diagnostic> {
        self.repeat(command, Some(interrupt))
    }

    fn repeat(&mut self, command: Command, interrupt: Option<&Interrupt>) -> Result<Option<Reply>, Diagnostic> {
        let message = ClientMessage::Change {
            id: random_request()?,
            command,
        };
        let give_up = Instant::now() + self.repeat_for;
        let mut sent = false;
        loop {
            let error = match self.attempt(&message, &mut sent, interrupt) {
                Ok(outcome) => return Ok(outcome),
                Err(error) if !sent => return Err(error),
                Err(error) => error,
            };
            self.stream = None;
            if Instant::now() >= give_up {
                return Err(unknown_outcome(&error));
            }
            match interrupt {
                Some(interrupt) if interrupt.comes_within(REPEAT_PAUSE)? => return Ok(None),
                Some(_) => {}
                None => std::thread::sleep(REPEAT_PAUSE),
            }
        }
    }

    /// One attempt at a change; `sent` says whether there was one before, and from here on that
    /// there was.
    fn attempt(
        &mut self,
        message: &ClientMessage,
        sent: &mut bool,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<Reply>, Diagnostic> {
        self.ready()?;
        let is_repeat = std::mem::replace(sent, true);
        let reply = match interrupt {
            Some(interrupt) => self.exchange_unless(message, interrupt)?,
            None => Some(self.exchange(message)?),
        };
        let Some(reply) = reply else { return Ok(None) };
        match not_taken(&reply).filter(|refusal| is_repeat || refusal.code == Code::OutcomeUnknown) {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(Some(reply)),
        }
    }

    /// The open stream; a new one where the last one broke, or was closed while nothing was asked,
    /// as under an editor.
    fn ready(&mut self) -> Result<&mut UnixStream, Diagnostic> {
        match self
            .stream
            .take()
            .filter(|stream| !self.has_answered || is_quiet(stream))
        {
            Some(stream) => Ok(self.stream.insert(stream)),
            None => self.open(),
        }
    }

    fn open(&mut self) -> Result<&mut UnixStream, Diagnostic> {
        let mut stream = match self.task {
            Some(_) => self.address.connect_to_agent(),
            None => self.address.connect(self.restart),
        }?;
        let hello = ClientHello {
            version: PROTOCOL_VERSION,
            program: self.program.clone(),
            task: self.task,
        };
        let limited = stream
            .set_read_timeout(self.patience)
            .and_then(|()| stream.set_write_timeout(self.patience));
        limited.map_err(|error| broken(&self.address, &error))?;
        blocking::send(&mut stream, Kind::Hello, 0, &hello, FRAME_LIMIT)
            .map_err(|error| broken(&self.address, &error))?;
        self.has_answered = false;
        Ok(self.stream.insert(stream))
    }

    fn exchange(&mut self, message: &ClientMessage) -> Result<Reply, Diagnostic> {
        let (id, sent) = self.send(message)?;
        self.receive(id, sent)
    }

    /// The same; nothing if an interrupt comes before the answer.
    fn exchange_unless(&mut self, message: &ClientMessage, interrupt: &Interrupt) -> Result<Option<Reply>, Diagnostic> {
        let (id, sent) = self.send(message)?;
        if let Some(stream) = &self.stream
            && interrupt.comes_before(stream)?
        {
            return Ok(None);
        }
        self.receive(id, sent).map(Some)
    }

    /// Sends a request under a new id; the inner result is what the stream said of it.
    fn send(&mut self, message: &ClientMessage) -> Result<(u64, Result<(), StreamError>), Diagnostic> {
        let id = self.next_id;
        self.next_id += 1;
        let sent = blocking::send(self.ready()?, Kind::Request, id, message, FRAME_LIMIT);
        Ok((id, sent))
    }

    fn receive(&mut self, id: u64, sent: Result<(), StreamError>) -> Result<Reply, Diagnostic> {
        if let Err(StreamError::Frame(error)) = sent {
            return Ok(Reply::refusal(error.diagnostic()));
        }
        let mut whole = Reply::default();
        self.receive_parts(id, sent, |part| {
            append(&mut whole, part);
            ControlFlow::Continue(())
        })?;
        Ok(whole)
    }

    /// Gives each part of an answer to `each` while that wants more. The stream is the one that the
    /// request was sent on.
    fn receive_parts(
        &mut self,
        id: u64,
        sent: Result<(), StreamError>,
        mut each: impl FnMut(Reply) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        let values = self.values;
        let address = &self.address;
        let stream = self
            .stream
            .as_mut()
            .ok_or_else(|| broken(address, &"the connection was closed"))?;
        loop {
            // Also where sending failed: an agent without a master refuses and closes before it has
            // read anything.
            let received = blocking::recv(stream, FRAME_LIMIT).map_err(|error| broken(address, &error))?;
            let Some(frame) = received else {
                let closed = || broken(address, &"the connection was closed");
                return Err(sent.err().map_or_else(closed, |error| broken(address, &error)));
            };
            let Some(part) = part_of(&frame, id, values)? else {
                continue;
            };
            let more = part.more;
            if each(part).is_break() {
                self.stream = None;
                return Ok(());
            }
            if !more {
                self.has_answered = true;
                return Ok(());
            }
        }
    }
}

/// Whether nothing has come on a stream on which nothing was asked: neither its end nor a reason
/// for it.
fn is_quiet(stream: &UnixStream) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(stream.as_raw_fd(), &mut [0], flags) == Err(Errno::EAGAIN)
}

/// The part of the answer to `id` in a frame; none if the frame answers something else.
fn part_of(frame: &Frame, id: u64, values: ValueForm) -> Result<Option<Reply>, Diagnostic> {
    let malformed = |error: proto::wire::frame::FrameError| error.diagnostic();
    match frame.kind {
        Kind::Reply if frame.id == id => match values {
            ValueForm::Raw => frame.message().map(Some).map_err(malformed),
            ValueForm::Shown => frame
                .message::<shown::ShownReply>()
                .map(|reply| Some(reply.into()))
                .map_err(malformed),
        },
        Kind::Refusal if frame.id == id || frame.id == 0 => {
            Ok(Some(Reply::refusal(frame.message::<Diagnostic>().map_err(malformed)?)))
        }
        Kind::Hello
        | Kind::Request
        | Kind::Reply
        | Kind::Control
        | Kind::Load
        | Kind::Slave
        | Kind::Refusal
        | Kind::Unknown => Ok(None),
    }
}

/// Appends one part of an answer to what is there.
fn append(whole: &mut Reply, part: Reply) {
    whole.answers.extend(part.answers);
    match (&mut whole.data, part.data) {
        (Some(Data::Jobs(rows)), Some(Data::Jobs(more))) => rows.extend(more),
        (Some(Data::JobDetails(rows)), Some(Data::JobDetails(more))) => rows.extend(more),
        (Some(Data::Queues(rows)), Some(Data::Queues(more))) => rows.extend(more),
        (Some(Data::Hosts(rows)), Some(Data::Hosts(more))) => rows.extend(more),
        (Some(Data::Accounting(rows)), Some(Data::Accounting(more))) => rows.extend(more),
        (Some(Data::Changes(history)), Some(Data::Changes(part))) => {
            history.changes.extend(part.changes);
            history.left_out += part.left_out;
            history.log = part.log.or(history.log);
        }
        (Some(Data::Names(rows)), Some(Data::Names(more))) => rows.extend(more),
        (Some(Data::Quotas(rows)), Some(Data::Quotas(more))) => rows.extend(more),
        (Some(Data::Shares(rows)), Some(Data::Shares(more))) => rows.extend(more),
        (Some(Data::Kept(rows)), Some(Data::Kept(more))) => rows.extend(more),
        (Some(Data::Categories(rows)), Some(Data::Categories(more))) => rows.extend(more),
        (Some(Data::Reasons(rows)), Some(Data::Reasons(more))) => rows.extend(more),
        (Some(Data::Tokens(rows)), Some(Data::Tokens(more))) => rows.extend(more),
        (data, Some(more)) => *data = Some(more),
        (_, None) => {}
    }
}

/// The refusal of a daemon that did not take a request, and so does not know whether an earlier
/// attempt was carried out, or that passed it on and got no answer.
fn not_taken(reply: &Reply) -> Option<&Diagnostic> {
    const CODES: [Code; 3] = [Code::NoMaster, Code::Overloaded, Code::OutcomeUnknown];
    match reply.answers.as_slice() {
        [Answer::Refused(refusal)] if CODES.contains(&refusal.code) => Some(refusal),
        _ => None,
    }
}

fn unknown_outcome(error: &Diagnostic) -> Diagnostic {
    Diagnostic::new(
        Code::OutcomeUnknown,
        "error: no answer from qmaster: the outcome is unknown",
    )
    .why(error.to_string())
    .fix("look with qstat or qconf whether the change was made before repeating it")
}

fn broken(address: &CellAddress, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::new(
        Code::NoMaster,
        "error: unable to send message to qmaster: the connection broke",
    )
    .why(error.to_string())
    .fix(address.where_to_look())
}

/// A request id that no other request of the cell has.
fn random_request() -> Result<RequestId, Diagnostic> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| {
            Diagnostic::new(Code::SystemRefused, "error: cannot draw a random number")
                .at("/dev/urandom")
                .why(error.to_string())
        })?;
    Ok(RequestId(u128::from_ne_bytes(bytes)))
}
