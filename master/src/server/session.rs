//! One command: its requests in, its answers out, in order, as many under way as the limit allows.
//! One that neither asks nor waits is disconnected after a while, and what it waited for is given
//! up with it.

use super::readings::DatabaseReading;
use super::{Desk, overloaded};
use crate::messages::{MoreRequest, Question, Stream, SubscribeRequest};
use crate::query::{Accounting, AnswerPart, Changes};
use crate::verifiers::url;
use data_encoding::HEXLOWER;
use master_core::effect::Input;
use master_core::state::slaves::task_of;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, RequestId, TaskKey};
use proto::job::{Owner, Program};
use proto::wire::client::{Answer, ClientHello, ClientMessage, Command, Query, Reply};
use proto::wire::frame::{Frame, Kind};
use proto::wire::stream::Subscription;
use proto::wire::view::Data;
use quic::{FrameReceiver, FrameSender, JoinToken, Share, ShareRefusal, StreamError};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// Who sends requests.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The user.
    pub(super) owner: Owner,
    /// The host that the user is on.
    pub(super) host: HostName,
    /// The task that the command is a process of, where the agent of that host vouches for it.
    pub(super) task: Option<TaskKey>,
}

impl Caller {
    /// Whether the command is a process of a task or of one of its slave tasks.
    fn is_process_of(&self, task: TaskKey) -> bool {
        self.task.is_some_and(|inside| task_of(inside) == task)
    }
}

fn not_inside() -> Diagnostic {
    Diagnostic::new(Code::NotPermitted, "error: this command is no process of a running job")
        .why("slave tasks are started by the job itself, on one of its hosts")
        .fix("call qrsh -inherit in the script of a job that was submitted with qsub -pe")
}

/// An answer that is under way.
enum PendingAnswer {
    Change(oneshot::Receiver<Reply>, Option<JoinToken>),
    /// In one or more parts, each asked for when the one before has come.
    Query(oneshot::Receiver<AnswerPart>),
    /// What may take as long as a job: given up when the client goes.
    Wait(oneshot::Receiver<AnswerPart>, Share),
    /// The event stream, until the client goes or is cut off.
    Events(oneshot::Receiver<Result<Stream, Diagnostic>>),
    /// Read from the database and sent part by part, when its turn has come.
    Reading(DatabaseReading),
    Now(Reply),
    /// A frame that could not be read as a request.
    Refused(Diagnostic),
}

/// Serves a client until it goes.
pub(super) async fn serve<R, W>(desk: Arc<Desk>, caller: Caller, receiver: FrameReceiver<R>, sender: FrameSender<W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (queue, answers) = mpsc::channel(desk.config.client_requests);
    let (here, gone) = watch::channel(());
    let activity = Activity::new();
    let reading = async {
        let mut reader = RequestReader {
            desk: &desk,
            caller: &caller,
            receiver,
            activity: &activity,
            queue,
        };
        if let Err(error) = reader.read().await {
            tracing::info!(
                "client {}@{}: {}",
                caller.owner.user,
                caller.host,
                crate::error_chain(&error)
            );
        }
        drop((reader, here));
    };
    let writing = Writer {
        desk: &desk,
        sender,
        activity: &activity,
        gone,
    }
    .write(answers);
    // Both end by themselves: reading at the end of the stream, writing when everything asked by
    // then is answered or cannot be sent.
    let ((), sent) = tokio::join!(reading, writing);
    if let Err(error) = sent {
        tracing::debug!(
            "client {}@{}: {}",
            caller.owner.user,
            caller.host,
            crate::error_chain(&error)
        );
    }
}

/// When something of a client last happened.
struct Activity {
    under_way: AtomicUsize,
    last: Mutex<Instant>,
}

impl Activity {
    fn new() -> Self {
        Self {
            under_way: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        }
    }

    fn happened(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn began(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.happened();
    }

    /// When the client has been idle for `limit`; none while something of it is under way.
    fn idle_at(&self, limit: Duration) -> Option<Instant> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (self.under_way.load(Ordering::Relaxed) == 0).then_some(last + limit)
    }
}

/// The half that takes requests.
struct RequestReader<'a, R> {
    desk: &'a Arc<Desk>,
    caller: &'a Caller,
    receiver: FrameReceiver<R>,
    activity: &'a Activity,
    queue: mpsc::Sender<(u64, PendingAnswer)>,
}

/// The client was silent for too long.
struct ClientTimeout;

impl<R: AsyncRead + Unpin> RequestReader<'_, R> {
    async fn read(&mut self) -> Result<(), StreamError> {
        let mut limit = self.desk.config.client_first;
        loop {
            let Ok(received) = self.receive(limit).await else {
                self.queue(0, PendingAnswer::Refused(too_silent(limit))).await;
                return Ok(());
            };
            limit = self.desk.config.client_idle;
            let frame = match received {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(StreamError::Frame(error)) => {
                    let is_over = !StreamError::Frame(error).is_single_frame();
                    let refusal = Diagnostic::new(Code::BadMessage, "a frame was refused");
                    if !self.queue(0, PendingAnswer::Refused(refusal)).await || is_over {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            // The writer is gone when the client does not read: then nothing more is read either.
            let Some(answering) = begin(self.desk, self.caller, &frame).await else {
                continue;
            };
            if !self.queue(frame.id, answering).await {
                return Ok(());
            }
        }
    }

    /// The next frame of a client that may be idle for `limit`.
    async fn receive(&mut self, limit: Duration) -> Result<Result<Option<Frame>, StreamError>, ClientTimeout> {
        loop {
            let due = self.activity.idle_at(limit).unwrap_or_else(|| Instant::now() + limit);
            if let Ok(received) = timeout_at(due, self.receiver.recv()).await {
                self.activity.happened();
                return Ok(received);
            }
            if self.activity.idle_at(limit).is_some_and(|at| at <= Instant::now()) {
                return Err(ClientTimeout);
            }
        }
    }

    /// Hands an answer to the writer; false once that is gone.
    async fn queue(&self, id: u64, answering: PendingAnswer) -> bool {
        self.activity.began();
        self.queue.send((id, answering)).await.is_ok()
    }
}

fn too_silent(limit: Duration) -> Diagnostic {
    let what = format!("the connection was idle for {} s", limit.as_secs());
    Diagnostic::new(Code::Overloaded, what)
        .fix("connect again; client_first_s and client_idle_s of etc/master.toml are the limits")
}

/// Sets a request on its way; none if the frame asks for nothing.
async fn begin(desk: &Arc<Desk>, caller: &Caller, frame: &Frame) -> Option<PendingAnswer> {
    match frame.kind {
        Kind::Hello => {
            let hello = frame.message::<ClientHello>();
            tracing::trace!("client {}@{}: {hello:?}", caller.owner.user, caller.host);
            None
        }
        Kind::Request => Some(match frame.message::<ClientMessage>() {
            Ok(ClientMessage::Change { id, command }) => change(desk, caller, id, command).await,
            Ok(ClientMessage::Query(query)) => ask(desk, caller, query),
            Err(error) => PendingAnswer::Refused(error.diagnostic()),
        }),
        Kind::Reply | Kind::Control | Kind::Load | Kind::Slave | Kind::Refusal | Kind::Unknown => {
            let refusal = Diagnostic::new(Code::BadMessage, "this kind of frame is not known here")
                .fix("check that both sides run versions at most one release apart");
            Some(PendingAnswer::Refused(refusal))
        }
    }
}

async fn change(desk: &Arc<Desk>, caller: &Caller, id: RequestId, command: Command) -> PendingAnswer {
    let verifiers = url::named_in(&command);
    if !verifiers.is_empty() {
        // Only those who may make the change learn whether there is such a file.
        match rehearse(desk, caller, id, &command).await {
            Some(reply) if reply.answers.iter().any(Answer::is_refusal) => return PendingAnswer::Now(reply),
            Some(_) => {}
            None => return PendingAnswer::Now(Reply::refusal(ending())),
        }
        if let Err(refusal) = url::check(verifiers).await {
            return PendingAnswer::Now(Reply::refusal(refusal));
        }
    }
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the core decides about all other commands"
    )]
    let (token, entropy) = match &command {
        Command::Submit(spec) if matches!(spec.program, Program::Stored { .. }) => {
            let what = "error: a job is submitted with its script, not with the checksum of one";
            return PendingAnswer::Now(Reply::refusal(Diagnostic::new(Code::BadMessage, what).fix("use qsub")));
        }
        Command::CreateToken { .. } => match new_token(desk) {
            Ok((token, hash)) => (Some(token), hash),
            Err(refusal) => return PendingAnswer::Now(Reply::refusal(refusal)),
        },
        Command::StartSlave(request) if !caller.is_process_of(request.task) => {
            return PendingAnswer::Now(Reply::refusal(not_inside()));
        }
        _ => (None, [0; 32]),
    };
    let (reply_to, answer) = desk.replies.expect();
    let Caller { owner, host, task: _ } = caller.clone();
    let input = Input::Command {
        reply_to,
        id,
        owner,
        host,
        entropy,
        command: Box::new(command),
    };
    match desk.input(input).await {
        Ok(()) => PendingAnswer::Change(answer, token),
        Err(super::CoreExit) => PendingAnswer::Now(Reply::refusal(ending())),
    }
}

/// What the core would answer to a change of objects. `None` means that it is gone.
async fn rehearse(desk: &Arc<Desk>, caller: &Caller, id: RequestId, command: &Command) -> Option<Reply> {
    let rehearsal = if matches!(command, Command::DryRun(_)) {
        command.clone()
    } else {
        Command::DryRun(Box::new(command.clone()))
    };
    let (reply_to, answer) = desk.replies.expect();
    let input = Input::Command {
        reply_to,
        id,
        owner: caller.owner.clone(),
        host: caller.host.clone(),
        entropy: [0; 32],
        command: Box::new(rehearsal),
    };
    desk.input(input).await.ok()?;
    answer.await.ok()
}

/// A token, and the hash of it as the core gets it.
fn new_token(desk: &Desk) -> Result<(JoinToken, [u8; 32]), Diagnostic> {
    let refuse = |why: String| Diagnostic::new(Code::SystemRefused, "cannot make a join token").why(why);
    let fingerprint = desk.issuer.ca().certificate().fingerprint();
    let token = JoinToken::generate(desk.cell, fingerprint).map_err(|error| refuse(error.to_string()))?;
    let hash = HEXLOWER.decode(token.hash().to_string().as_bytes()).ok();
    let hash = hash
        .and_then(|hash| hash.try_into().ok())
        .ok_or_else(|| refuse("its hash is not 32 bytes".to_owned()))?;
    Ok((token, hash))
}

fn ask(desk: &Arc<Desk>, caller: &Caller, query: Query) -> PendingAnswer {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the reader answers all other questions")]
    let query = match query {
        Query::Accounting(filter) => {
            return PendingAnswer::Reading(desk.readings.accounting(&desk.database, filter));
        }
        Query::Changes(filter) => {
            return match desk.readings.changes(&desk.database, filter, &caller.owner) {
                Ok(reading) => PendingAnswer::Reading(reading),
                Err(refusal) => PendingAnswer::Now(Reply::refusal(refusal)),
            };
        }
        Query::Events(subscription) => return subscribe(desk, caller, subscription),
        query => query,
    };
    let place = if let Query::Wait { .. } | Query::WaitPlaced { .. } = query {
        match desk.waits.take(caller.owner.uid) {
            Ok(place) => Some(place),
            Err(full) => return PendingAnswer::Now(Reply::refusal(no_wait(full, &caller.owner))),
        }
    } else {
        None
    };
    let (answer, receiver) = oneshot::channel();
    let (from, asker) = (caller.host.clone(), Some(caller.owner.clone()));
    match desk.questions.try_send(Question {
        query,
        from,
        asker,
        answer,
    }) {
        Ok(()) => match place {
            Some(place) => PendingAnswer::Wait(receiver, place),
            None => PendingAnswer::Query(receiver),
        },
        Err(mpsc::error::TrySendError::Full(_)) => {
            let what = format!("{} questions wait for an answer already", desk.config.query_queue);
            PendingAnswer::Now(Reply::refusal(overloaded(what, "query_queue")))
        }
        Err(mpsc::error::TrySendError::Closed(_)) => PendingAnswer::Now(Reply::refusal(ending())),
    }
}

fn subscribe(desk: &Desk, caller: &Caller, subscription: Subscription) -> PendingAnswer {
    let Caller { owner, host, task: _ } = caller.clone();
    let (answer, receiver) = oneshot::channel();
    match desk.subscribers.try_send(SubscribeRequest {
        subscription,
        owner,
        host,
        answer,
    }) {
        Ok(()) => PendingAnswer::Events(receiver),
        Err(_) => PendingAnswer::Now(Reply::refusal(overloaded(
            format!("{} event clients wait to be let in already", desk.config.query_queue),
            "query_queue",
        ))),
    }
}

fn no_wait(full: ShareRefusal, owner: &Owner) -> Diagnostic {
    match full {
        ShareRefusal::All { limit } => overloaded(format!("{limit} commands wait for jobs already"), "waits"),
        ShareRefusal::Each { limit } => overloaded(
            format!("{limit} commands of {} wait for jobs already", owner.user),
            "waits_per_user",
        ),
    }
}

/// The half that gives answers.
pub(super) struct Writer<'a, W> {
    pub(super) desk: &'a Arc<Desk>,
    pub(super) sender: FrameSender<W>,
    activity: &'a Activity,
    /// Closed once the client sends nothing more.
    pub(super) gone: watch::Receiver<()>,
}

impl<W: AsyncWrite + Unpin> Writer<'_, W> {
    async fn write(mut self, mut answers: mpsc::Receiver<(u64, PendingAnswer)>) -> Result<(), StreamError> {
        while let Some((id, answering)) = answers.recv().await {
            if self.answer(id, answering).await?.is_break() {
                return Ok(());
            }
            self.activity.answered();
        }
        self.sender.finish().await
    }

    async fn answer(&mut self, id: u64, answering: PendingAnswer) -> Result<ControlFlow<()>, StreamError> {
        let replies = match answering {
            PendingAnswer::Now(reply) => vec![reply],
            PendingAnswer::Query(answer) => {
                self.parts(id, answer).await?;
                Vec::new()
            }
            PendingAnswer::Wait(answer, _place) => tokio::select! {
                answered = answer => answered.unwrap_or_else(|_| no_answer()).replies,
                // Nothing is ever sent here: it ends with the half that reads.
                _ = self.gone.changed() => Vec::new(),
            },
            PendingAnswer::Events(stream) => match stream.await {
                Ok(Ok(stream)) => return self.events(id, stream).await,
                Ok(Err(refusal)) => vec![Reply::refusal(refusal)],
                Err(_) => vec![Reply::refusal(ending())],
            },
            PendingAnswer::Reading(reading) => {
                self.read(id, reading).await?;
                Vec::new()
            }
            PendingAnswer::Change(answer, token) => match answer.await {
                Ok(reply) => vec![shown(reply, token.as_ref())],
                // Without an answer the client repeats its request at the next master, which tells
                // what became of it.
                Err(_) => return Ok(ControlFlow::Break(())),
            },
            PendingAnswer::Refused(refusal) => {
                self.sender.send(Kind::Refusal, id, &refusal).await?;
                Vec::new()
            }
        };
        for reply in &replies {
            self.sender.send(Kind::Reply, id, reply).await?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Sends one part while the next is made: two are in memory.
    async fn parts(&mut self, id: u64, answer: oneshot::Receiver<AnswerPart>) -> Result<(), StreamError> {
        let mut coming = Some(answer);
        while let Some(answer) = coming.take() {
            let AnswerPart { replies, rest } = answer.await.unwrap_or_else(|_| no_answer());
            if let Some(rest) = rest {
                let (answer, next) = oneshot::channel();
                // Where nobody takes it any more, nobody answers either.
                let _ = self.desk.more.send(MoreRequest { rest, answer }).await;
                coming = Some(next);
            }
            for reply in &replies {
                self.sender.send(Kind::Reply, id, reply).await?;
            }
        }
        Ok(())
    }

    /// Reads one part, sends it, reads the next: one part of the answer is in memory, and nothing
    /// is read for a client that has gone.
    async fn read(&mut self, id: u64, reading: DatabaseReading) -> Result<(), StreamError> {
        let mut reading = Some(reading);
        while let Some(next) = reading.take() {
            let part = next.next(&mut self.gone).await;
            let Some((reply, rest)) = part.map_err(|_| StreamError::Disconnected)? else {
                return Ok(());
            };
            reading = rest;
            // A part in which nothing matched is not worth a frame.
            if !reply.more || (reply != Accounting::nothing_yet() && reply != Changes::nothing_yet()) {
                self.sender.send(Kind::Reply, id, &reply).await?;
            }
        }
        Ok(())
    }
}

/// Puts the token in the place of its hash, the only time that it is shown.
fn shown(mut reply: Reply, token: Option<&JoinToken>) -> Reply {
    match (&reply.data, token) {
        (Some(Data::Token(hash)), Some(token)) if *hash == token.hash().to_string() => {
            reply.data = Some(Data::Token(token.to_string()));
            reply
        }
        (Some(Data::Token(_)), _) => Reply::refusal(
            Diagnostic::new(Code::WrongState, "this token was made and shown already").fix("make a new one"),
        ),
        _ => reply,
    }
}

/// What is said where the reader thread is gone.
fn no_answer() -> AnswerPart {
    vec![Reply::refusal(ending())].into()
}

pub(super) fn ending() -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "the master ends").fix("try again in a moment")
}
