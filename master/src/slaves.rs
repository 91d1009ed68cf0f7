//! The streams of slave tasks of parallel jobs, passed on between the agents of their hosts.
//!
//! Each agent has one stream for all slave tasks. The master stores nothing: a message whose
//! receiver is away is dropped, and when it is back the two ends say how far they have got
//! (`proto::wire::slave`). The events decide who may talk to whom.

use master_core::event::{Event, Record};
use master_core::state::State;
use master_core::state::slaves::{ENDED_SLAVES_KEPT, task_of};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, TaskKey};
use proto::wire::frame::Kind;
use proto::wire::slave::{Message, SlaveMessage, Stream};
use quic::{StreamReceiver, StreamSender};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Messages that wait for one agent. Further output of tasks waits at the agents that send it. An
/// agent that does not take the end of a task is cut off and opens its stream anew.
const OUTBOX: usize = 1024;

/// Slave tasks, and the streams of the agents.
#[derive(Debug, Default)]
pub struct Slaves {
    inner: Mutex<SlaveRoutes>,
}

#[derive(Debug, Default)]
struct SlaveRoutes {
    routes: BTreeMap<TaskKey, Route>,
    outboxes: BTreeMap<HostName, mpsc::Sender<Message>>,
}

/// The two ends of a slave task.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    /// Where it runs.
    host: HostName,
    /// Where the command is that started it.
    from: HostName,
    /// Its exit status once its end is on record.
    status: Option<u32>,
}

/// Who sends a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartSender {
    Command,
    Task,
    Master,
}

fn sender(part: &SlaveMessage) -> PartSender {
    match part {
        SlaveMessage::Attach { .. } | SlaveMessage::Left => PartSender::Command,
        SlaveMessage::Attached { .. } | SlaveMessage::Present => PartSender::Task,
        SlaveMessage::Data {
            stream: Stream::Input, ..
        } => PartSender::Command,
        SlaveMessage::Data {
            stream: Stream::Output | Stream::Error,
            ..
        } => PartSender::Task,
        SlaveMessage::Have {
            stream: Stream::Input, ..
        } => PartSender::Task,
        SlaveMessage::Have {
            stream: Stream::Output | Stream::Error,
            ..
        } => PartSender::Command,
        SlaveMessage::Over { .. } | SlaveMessage::Refused(_) => PartSender::Master,
    }
}

impl Slaves {
    /// The slave tasks of a state.
    pub fn of_state(state: &State) -> Self {
        let mut routes = BTreeMap::new();
        for (_, placement) in state.jobs.values().flat_map(|job| job.placements()) {
            let key = |number: u32| TaskKey {
                pe_task: number,
                ..placement.key
            };
            for (number, slave) in &placement.slaves().live {
                let (host, from) = (slave.instance.host.clone(), slave.from.clone());
                routes.insert(
                    key(*number),
                    Route {
                        host,
                        from,
                        status: None,
                    },
                );
            }
            for (number, from, status) in &placement.slaves().ended {
                let route = Route {
                    host: from.clone(),
                    from: from.clone(),
                    status: Some(*status),
                };
                routes.insert(key(*number), route);
            }
        }
        Self {
            inner: Mutex::new(SlaveRoutes {
                routes,
                outboxes: BTreeMap::new(),
            }),
        }
    }

    /// Follows durable events: a command learns of the end of its task.
    pub fn apply(&self, records: &[Arc<Record>]) {
        for record in records {
            #[allow(clippy::wildcard_enum_match_arm, reason = "routes begin and end with slave tasks")]
            match &record.event {
                Event::SlavePlaced {
                    key, instance, from, ..
                } => {
                    let (host, from) = (instance.host.clone(), from.clone());
                    self.inner().routes.insert(
                        *key,
                        Route {
                            host,
                            from,
                            status: None,
                        },
                    );
                }
                Event::SlaveEnded {
                    key,
                    exit_status,
                    reason,
                    ..
                } => {
                    self.inner().ended(*key, *exit_status, reason.clone());
                }
                Event::TaskEnded { key, .. } => self.inner().routes.retain(|slave, _| task_of(*slave) != *key),
                _ => {}
            }
        }
    }

    /// The receiver of a host's message, and the answer to the host itself.
    fn route(&self, host: &HostName, message: &Message) -> (Option<mpsc::Sender<Message>>, Option<SlaveMessage>) {
        let inner = self.inner();
        let Some(route) = inner.routes.get(&message.key) else {
            return (
                None,
                (sender(&message.part) == PartSender::Command).then(|| SlaveMessage::Refused(unknown())),
            );
        };
        let (is_right, to) = match sender(&message.part) {
            PartSender::Command => (route.from == *host, &route.host),
            PartSender::Task => (route.host == *host, &route.from),
            PartSender::Master => (false, host),
        };
        if !is_right {
            return (None, None);
        }
        let status = route
            .status
            .filter(|_| matches!(message.part, SlaveMessage::Attach { .. }));
        (
            inner.outboxes.get(to).cloned(),
            status.map(|status| SlaveMessage::Over {
                status,
                reason: String::new(),
            }),
        )
    }

    /// Enters the stream of a host, in place of an earlier one. Only the table keeps its outbox,
    /// which ends with its place there.
    fn enter(&self, host: &HostName) -> (mpsc::WeakSender<Message>, mpsc::Receiver<Message>) {
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let own = outbox.downgrade();
        self.inner().outboxes.insert(host.clone(), outbox);
        (own, messages)
    }

    fn leave(&self, host: &HostName, own: &mpsc::WeakSender<Message>) {
        let Some(own) = own.upgrade() else { return };
        let mut inner = self.inner();
        if inner
            .outboxes
            .get(host)
            .is_some_and(|present| present.same_channel(&own))
        {
            inner.outboxes.remove(host);
        }
    }

    fn inner(&self) -> MutexGuard<'_, SlaveRoutes> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlaveRoutes {
    fn ended(&mut self, key: TaskKey, status: u32, reason: String) {
        let Some(route) = self.routes.get_mut(&key) else { return };
        route.status = Some(status);
        let from = route.from.clone();
        let message = Message {
            key,
            part: SlaveMessage::Over { status, reason },
        };
        if self
            .outboxes
            .get(&from)
            .is_some_and(|outbox| outbox.try_send(message).is_err())
        {
            // Its stream ends with the outbox.
            self.outboxes.remove(&from);
        }
        let forgotten = key
            .pe_task
            .checked_sub(u32::try_from(ENDED_SLAVES_KEPT).unwrap_or(u32::MAX));
        if let Some(number) = forgotten {
            let old = TaskKey { pe_task: number, ..key };
            if self.routes.get(&old).is_some_and(|route| route.status.is_some()) {
                self.routes.remove(&old);
            }
        }
    }
}

fn unknown() -> Diagnostic {
    Diagnostic::new(
        Code::UnknownJob,
        "error: the slave task of this command is not known any more",
    )
    .why("its job has ended, or it ended long ago")
}

/// Serves the stream of one agent until it ends.
pub async fn serve(slaves: &Slaves, host: &HostName, stream: StreamSender, receiver: StreamReceiver) {
    let (own, messages) = slaves.enter(host);
    let end = tokio::select! {
        end = read(slaves, host, receiver, &own) => end,
        end = write(stream, messages) => end,
    };
    slaves.leave(host, &own);
    tracing::debug!("the stream of slave tasks of {host} ended: {end}");
}

/// Passes an agent's message on. If the receiver is slow, this waits for it, and so does the
/// sender.
async fn read(slaves: &Slaves, host: &HostName, mut from: StreamReceiver, own: &mpsc::WeakSender<Message>) -> String {
    loop {
        let message = match from.recv().await {
            Ok(Some(frame)) => frame.message::<Message>(),
            Ok(None) => return "it ended".to_owned(),
            Err(error) => return crate::error_chain(&error),
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::info!("a message about a slave task of {host} is refused: {error}");
                continue;
            }
        };
        let (to, answer) = slaves.route(host, &message);
        let key = message.key;
        if let Some(to) = to {
            // A receiver that was away says how far it has got when it is back.
            let _ = to.send(message).await;
        }
        if let (Some(part), Some(own)) = (answer, own.upgrade()) {
            let _ = own.send(Message { key, part }).await;
        }
    }
}

async fn write(mut to: StreamSender, mut messages: mpsc::Receiver<Message>) -> String {
    while let Some(message) = messages.recv().await {
        if let Err(error) = to.send(Kind::Slave, 0, &message).await {
            return crate::error_chain(&error);
        }
    }
    "another one took its place, or it did not take its messages".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, SubmitSeq, TaskId};

    const KEY: TaskKey = TaskKey {
        cell: CellId(1),
        seq: SubmitSeq(1),
        task: TaskId(1),
        pe_task: 1,
        attempt: 1,
    };

    /// Slave task 1 of a job runs on `h2`; its command is on `h1`.
    fn slaves() -> Slaves {
        let slaves = Slaves::default();
        let route = Route {
            host: "h2".into(),
            from: "h1".into(),
            status: None,
        };
        slaves.inner().routes.insert(KEY, route);
        slaves
    }

    fn data(stream: Stream) -> SlaveMessage {
        SlaveMessage::Data {
            stream,
            at: 0,
            bytes: b"x".to_vec(),
        }
    }

    #[test]
    fn each_end_is_heard_from_its_own_host_alone() {
        let slaves = slaves();
        let streams = ["h1", "h2", "h3"].map(|host| slaves.enter(&host.into()));
        let goes_to = |host: &str, part: SlaveMessage| {
            let (to, answer) = slaves.route(&host.into(), &Message { key: KEY, part });
            assert_eq!(answer, None);
            let is_its =
                |own: &mpsc::WeakSender<Message>| to.as_ref().is_some_and(|to| own.upgrade().unwrap().same_channel(to));
            ["h1", "h2", "h3"]
                .into_iter()
                .zip(&streams)
                .find(|(_, (own, _))| is_its(own))
                .map(|(host, _)| host)
        };
        let attach = || SlaveMessage::Attach { output: 0, error: 0 };
        for (part, right, to) in [
            (attach(), "h1", "h2"),
            (SlaveMessage::Left, "h1", "h2"),
            (data(Stream::Input), "h1", "h2"),
            (data(Stream::Output), "h2", "h1"),
            (SlaveMessage::Present, "h2", "h1"),
            (
                SlaveMessage::Have {
                    stream: Stream::Input,
                    until: 1,
                },
                "h2",
                "h1",
            ),
            (
                SlaveMessage::Have {
                    stream: Stream::Error,
                    until: 1,
                },
                "h1",
                "h2",
            ),
        ] {
            for host in ["h1", "h2", "h3"] {
                let expected = (host == right).then_some(to);
                assert_eq!(goes_to(host, part.clone()), expected, "{part:?} of {host}");
            }
        }
        assert_eq!(
            goes_to(
                "h1",
                SlaveMessage::Over {
                    status: 0,
                    reason: String::new()
                }
            ),
            None,
            "the end is the master's to say"
        );
    }

    #[test]
    fn a_command_that_comes_late_is_told_the_end() {
        let slaves = slaves();
        let (_, mut told) = slaves.enter(&"h1".into());
        slaves.inner().ended(KEY, 3, "why".to_owned());
        assert_eq!(
            told.try_recv().unwrap().part,
            SlaveMessage::Over {
                status: 3,
                reason: "why".to_owned()
            }
        );
        let message = |key| Message {
            key,
            part: SlaveMessage::Attach { output: 0, error: 0 },
        };
        let (_, again) = slaves.route(&"h1".into(), &message(KEY));
        assert_eq!(
            again,
            Some(SlaveMessage::Over {
                status: 3,
                reason: String::new()
            })
        );
        let (_, unknown) = slaves.route(&"h1".into(), &message(TaskKey { pe_task: 2, ..KEY }));
        assert!(matches!(unknown, Some(SlaveMessage::Refused(_))));
    }

    #[test]
    fn a_stream_that_was_replaced_takes_nothing_with_it() {
        let slaves = slaves();
        let (first, _) = slaves.enter(&"h1".into());
        let (second, _messages) = slaves.enter(&"h1".into());
        slaves.leave(&"h1".into(), &first);
        assert!(second.upgrade().is_some());
        slaves.leave(&"h1".into(), &second);
        assert!(second.upgrade().is_none());
    }
}
