//! One stream to the master and the client that it serves: what was asked and not yet answered, and
//! who waits for a job.

use super::overloaded;
use super::pulse::DUE;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::Owner;
use proto::wire::client::{ClientMessage, Query};
use proto::wire::frame::{Frame, Kind};
use quic::{FrameReceiver, FrameSender, Share, ShareRefusal, Shares, StreamReceiver, StreamSender};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

/// How long a stream is kept after the last answer, for a command that goes on asking.
const LINGER: Duration = Duration::from_secs(2);

/// Requests of one client that may be unanswered; the next is refused.
const REQUESTS: usize = 64;

/// The longest request that may be one for a wait: nothing else is looked into.
const WAIT_BYTES: usize = 256;

/// The kind of a changing request, as MessagePack writes [`ClientMessage::Change`]. It stands in
/// the first `KIND_BYTES` bytes.
const CHANGE: &[u8] = b"change";
const KIND_BYTES: usize = 12;

/// How a stream's service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All is answered and nothing more was asked for a while.
    Answered,
    /// The client has gone, or the master.
    Gone,
}

/// What is known of one stream while it is used.
pub(super) struct Exchange<'a> {
    waits: &'a Shares,
    owner: &'a Owner,
    /// Requests without their last answer; those that wait for a job with their place.
    open: Mutex<BTreeMap<u64, Option<Share>>>,
    /// Whether a change was passed on.
    changes: AtomicBool,
    /// Woken when a request or the end of an answer has passed.
    moved: Notify,
}

/// Of a reply, whether another part follows.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    more: bool,
}

impl<'a> Exchange<'a> {
    /// Nothing is asked yet.
    pub(super) fn new(waits: &'a Shares, owner: &'a Owner) -> Self {
        Self {
            waits,
            owner,
            open: Mutex::default(),
            changes: AtomicBool::new(false),
            moved: Notify::new(),
        }
    }

    /// Passes frames on in both directions.
    pub(super) async fn run(
        &self,
        first: Frame,
        from_client: &mut FrameReceiver<OwnedReadHalf>,
        to_client: &mut FrameSender<OwnedWriteHalf>,
        to_master: StreamSender,
        from_master: StreamReceiver,
    ) -> End {
        // As many as one client may have open: the half that reads waits for nobody.
        let (refusals, refused) = mpsc::channel(REQUESTS);
        tokio::select! {
            // The rest of an answer goes before the news that nothing follows.
            biased;
            end = self.replies(from_master, refused, to_client) => end,
            end = self.requests(first, from_client, to_master, refusals) => end,
            end = self.quiet() => end,
        }
    }

    /// From the client to the master, until the client has gone.
    async fn requests(
        &self,
        first: Frame,
        from: &mut FrameReceiver<OwnedReadHalf>,
        mut to: StreamSender,
        refusals: mpsc::Sender<(u64, Diagnostic)>,
    ) -> End {
        let mut next = Some(first);
        while let Some(frame) = next {
            match self.admit(&frame) {
                Ok(()) => {
                    if to.send_frame(&frame).await.is_err() {
                        return End::Gone;
                    }
                }
                Err(refusal) => {
                    if refusals.send((frame.id, refusal)).await.is_err() {
                        return End::Gone;
                    }
                }
            }
            next = from.recv().await.ok().flatten();
        }
        End::Gone
    }

    /// From the master to the client, until either has gone.
    async fn replies(
        &self,
        mut from: StreamReceiver,
        mut refused: mpsc::Receiver<(u64, Diagnostic)>,
        to: &mut FrameSender<OwnedWriteHalf>,
    ) -> End {
        loop {
            let sent = tokio::select! {
                frame = from.recv() => match frame {
                    Ok(Some(frame)) => {
                        let sent = to.send_frame(&frame).await;
                        self.answered(&frame);
                        sent
                    }
                    Ok(None) | Err(_) => return End::Gone,
                },
                Some((id, refusal)) = refused.recv() => to.send(Kind::Refusal, id, &refusal).await,
            };
            if sent.is_err() {
                return End::Gone;
            }
        }
    }

    /// Until nothing is unanswered for a while.
    async fn quiet(&self) -> End {
        loop {
            let is_quiet = self.open().is_empty();
            tokio::select! {
                biased;
                () = self.moved.notified() => {}
                () = sleep(LINGER), if is_quiet => return End::Answered,
            }
        }
    }

    /// Completes once an answer is due for a while and the master is gone, as `is_gone` finds out.
    /// Those who wait for jobs are patient.
    pub(super) async fn is_forsaken<F: Future<Output = bool>>(&self, is_gone: impl Fn() -> F) {
        loop {
            sleep(DUE).await;
            if self.is_answer_due() && is_gone().await && self.is_answer_due() {
                return;
            }
        }
    }

    fn is_answer_due(&self) -> bool {
        self.open().values().any(Option::is_none)
    }

    /// Whether a change was passed on.
    pub(super) fn may_have_changed(&self) -> bool {
        self.changes.load(Ordering::Relaxed)
    }

    /// Notes a request; refused if it is one too many, or would wait where all places of those who
    /// wait are taken.
    fn admit(&self, frame: &Frame) -> Result<(), Diagnostic> {
        if frame.kind != Kind::Request {
            return Ok(());
        }
        if self.open().len() >= REQUESTS {
            let what = format!("error: {REQUESTS} requests of this command are unanswered already");
            return Err(Diagnostic::new(Code::Overloaded, what).fix("wait for their answers"));
        }
        let place = if is_wait(frame) {
            let share = self.waits.take(self.owner.uid);
            Some(share.map_err(|full| self.no_wait(full))?)
        } else {
            None
        };
        self.open().insert(frame.id, place);
        if is_change(frame) {
            self.changes.store(true, Ordering::Relaxed);
        }
        // Before it is sent, which may take long.
        self.moved.notify_one();
        Ok(())
    }

    fn no_wait(&self, full: ShareRefusal) -> Diagnostic {
        let (what, key) = match full {
            ShareRefusal::All { limit } => (
                format!("error: {limit} commands of this host wait for jobs already"),
                "waits",
            ),
            ShareRefusal::Each { limit } => {
                let user = &self.owner.user;
                (
                    format!("error: {limit} commands of {user} wait for jobs on this host already"),
                    "waits_per_user",
                )
            }
        };
        overloaded(what, key).why("each holds one of the host's streams to the master until its job ends")
    }

    fn answered(&self, frame: &Frame) {
        match frame.kind {
            Kind::Reply if frame.message::<Part>().is_ok_and(|part| part.more) => {}
            // What answers everything.
            Kind::Refusal if frame.id == 0 => self.open().clear(),
            Kind::Hello
            | Kind::Request
            | Kind::Reply
            | Kind::Control
            | Kind::Load
            | Kind::Slave
            | Kind::Refusal
            | Kind::Unknown => drop(self.open().remove(&frame.id)),
        }
        self.moved.notify_one();
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Share>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request changes something: the name of its kind is at its beginning, and nothing else
/// is looked into.
fn is_change(frame: &Frame) -> bool {
    let begin = &frame.body[..frame.body.len().min(KIND_BYTES)];
    begin.windows(CHANGE.len()).any(|part| part == CHANGE)
}

/// Whether a request is answered only when a job has ended or started, or as long as the client
/// likes.
fn is_wait(frame: &Frame) -> bool {
    let asks = |message| {
        matches!(
            message,
            ClientMessage::Query(Query::Wait { .. } | Query::WaitPlaced { .. } | Query::Events(_))
        )
    };
    frame.body.len() <= WAIT_BYTES && frame.message().is_ok_and(asks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::RequestId;
    use proto::wire::client::Command;

    #[test]
    fn a_change_is_told_from_a_question_by_its_first_bytes() {
        let change = ClientMessage::Change {
            id: RequestId(7),
            command: Command::TriggerScheduling,
        };
        for (message, expected) in [(change, true), (ClientMessage::Query(Query::Status), false)] {
            assert_eq!(
                is_change(&Frame::new(Kind::Request, 1, &message)),
                expected,
                "{message:?}"
            );
        }
    }
}
