//! One command: its requests in, its answers out, in order, as many under way as the limit allows.

use super::{Desk, overloaded};
use crate::query::{self, Question};
use data_encoding::HEXLOWER;
use master_core::effect::Input;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, RequestId};
use proto::job::Owner;
use proto::wire::client::{ClientHello, ClientMessage, Command, Query, Reply};
use proto::wire::frame::{Frame, Kind};
use proto::wire::view::Data;
use quic::{FrameReceiver, FrameSender, JoinToken, StreamError};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

/// Who sends requests.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The user.
    pub(super) owner: Owner,
    /// The host that the user is on.
    pub(super) host: HostName,
}

/// An answer that is under way.
enum Answering {
    Change(oneshot::Receiver<Reply>, Option<JoinToken>),
    Query(oneshot::Receiver<Vec<Reply>>),
    Now(Reply),
    /// A frame that could not be read as a request.
    Refused(Diagnostic),
}

/// Serves a client until it goes.
pub(super) async fn serve<R, W>(desk: Arc<Desk>, caller: Caller, mut receiver: FrameReceiver<R>, sender: FrameSender<W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (queue, answers) = mpsc::channel(desk.config.client_requests);
    let reading = async {
        let end = read(&desk, &caller, &mut receiver, queue).await;
        if let Err(error) = end {
            tracing::info!("client {}@{}: {}", caller.owner.user, caller.host, crate::error_chain(&error));
        }
    };
    // Both end by themselves: reading at the end of the stream, writing when everything asked by then is answered or cannot be sent.
    let ((), sent) = tokio::join!(reading, write(sender, answers));
    if let Err(error) = sent {
        tracing::debug!("client {}@{}: {}", caller.owner.user, caller.host, crate::error_chain(&error));
    }
}

async fn read<R: AsyncRead + Unpin>(
    desk: &Arc<Desk>,
    caller: &Caller,
    receiver: &mut FrameReceiver<R>,
    queue: mpsc::Sender<(u64, Answering)>,
) -> Result<(), StreamError> {
    loop {
        let frame = match receiver.recv().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(StreamError::Frame(error)) => {
                let is_over = !StreamError::Frame(error).is_single_frame();
                let refusal = Diagnostic::new(Code::BadMessage, "a frame was refused");
                if queue.send((0, Answering::Refused(refusal))).await.is_err() || is_over {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        // The writer is gone when the client does not read: then nothing more is read either.
        let Some(answering) = begin(desk, caller, &frame).await else { continue };
        if queue.send((frame.id, answering)).await.is_err() {
            return Ok(());
        }
    }
}

/// Sets a request on its way; none if the frame asks for nothing.
async fn begin(desk: &Arc<Desk>, caller: &Caller, frame: &Frame) -> Option<Answering> {
    match frame.kind {
        Kind::Hello => {
            let hello = frame.message::<ClientHello>();
            tracing::trace!("client {}@{}: {hello:?}", caller.owner.user, caller.host);
            None
        }
        Kind::Request => Some(match frame.message::<ClientMessage>() {
            Ok(ClientMessage::Change { id, command }) => change(desk, caller, id, command).await,
            Ok(ClientMessage::Query(query)) => ask(desk, caller.host.clone(), query),
            Err(error) => Answering::Refused(error.diagnostic()),
        }),
        Kind::Reply | Kind::Control | Kind::Load | Kind::Refusal | Kind::Unknown => {
            let refusal = Diagnostic::new(Code::BadMessage, "this kind of frame is not known here")
                .fix("check that both sides run versions at most one release apart");
            Some(Answering::Refused(refusal))
        }
    }
}

async fn change(desk: &Arc<Desk>, caller: &Caller, id: RequestId, command: Command) -> Answering {
    let (token, entropy) = match &command {
        Command::CreateToken { .. } => match new_token(desk) {
            Ok((token, hash)) => (Some(token), hash),
            Err(refusal) => return Answering::Now(Reply::refusal(refusal)),
        },
        _ => (None, [0; 32]),
    };
    let (reply_to, answer) = desk.replies.expect();
    let Caller { owner, host } = caller.clone();
    let input = Input::Command { reply_to, id, owner, host, entropy, command: Box::new(command) };
    match desk.input(input).await {
        Ok(()) => Answering::Change(answer, token),
        Err(super::Ended) => Answering::Now(Reply::refusal(ending())),
    }
}

/// A token, and the hash of it as the core gets it.
fn new_token(desk: &Desk) -> Result<(JoinToken, [u8; 32]), Diagnostic> {
    let refuse = |why: String| Diagnostic::new(Code::SystemRefused, "cannot make a join token").why(why);
    let fingerprint = desk.issuer.ca().certificate().fingerprint();
    let token = JoinToken::generate(desk.cell, fingerprint).map_err(|error| refuse(error.to_string()))?;
    let hash = HEXLOWER.decode(token.hash().to_string().as_bytes()).ok();
    let hash =
        hash.and_then(|hash| hash.try_into().ok()).ok_or_else(|| refuse("its hash is not 32 bytes".to_owned()))?;
    Ok((token, hash))
}

fn ask(desk: &Arc<Desk>, from: HostName, query: Query) -> Answering {
    let (answer, receiver) = oneshot::channel();
    if let Query::Accounting(filter) = query {
        let database = desk.database.clone();
        tokio::task::spawn_blocking(move || {
            // Whoever asked may have gone.
            let _ = answer.send(query::accounting(&database, &filter));
        });
        return Answering::Query(receiver);
    }
    match desk.questions.try_send(Question { query, from, answer }) {
        Ok(()) => Answering::Query(receiver),
        Err(mpsc::error::TrySendError::Full(_)) => {
            let what = format!("{} questions wait for an answer already", desk.config.query_queue);
            Answering::Now(Reply::refusal(overloaded(what, "query_queue")))
        }
        Err(mpsc::error::TrySendError::Closed(_)) => Answering::Now(Reply::refusal(ending())),
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut sender: FrameSender<W>,
    mut answers: mpsc::Receiver<(u64, Answering)>,
) -> Result<(), StreamError> {
    while let Some((id, answering)) = answers.recv().await {
        let replies = match answering {
            Answering::Now(reply) => vec![reply],
            Answering::Query(answer) => answer.await.unwrap_or_else(|_| vec![Reply::refusal(ending())]),
            Answering::Change(answer, token) => match answer.await {
                Ok(reply) => vec![shown(reply, token.as_ref())],
                // Without an answer the client repeats its request at the next master, which tells what became of it.
                Err(_) => return Ok(()),
            },
            Answering::Refused(refusal) => {
                sender.send(Kind::Refusal, id, &refusal).await?;
                continue;
            }
        };
        for reply in &replies {
            sender.send(Kind::Reply, id, reply).await?;
        }
    }
    sender.finish().await
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

fn ending() -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "the master ends").fix("try again in a moment")
}
