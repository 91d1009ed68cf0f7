//! The streams of slave tasks of parallel jobs and of interactive jobs, passed on between the
//! agents of their hosts.
//!
//! Each agent has one stream for all of them. The master stores nothing: a message whose
//! receiver is away is dropped, and when it is back the two ends say how far they have got
//! (`proto::wire::slave`). The events decide who may talk to whom.

use master_core::event::{Event, Record};
use master_core::state::State;
use master_core::state::job::{Job, Placement};
use master_core::state::slaves::{ENDED_SLAVES_KEPT, task_of};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, TaskKey, UserName};
use proto::wire::frame::Kind;
use proto::wire::slave::{Message, SlaveMessage, Stream};
use quic::{StreamReceiver, StreamSender};
use std::collections::{BTreeMap, VecDeque};
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
    /// Interactive jobs that have ended, oldest first: at most [`ENDED_SESSIONS`].
    ended_sessions: VecDeque<TaskKey>,
    outboxes: BTreeMap<HostName, mpsc::Sender<Message>>,
}

/// How many ends of interactive jobs are kept for commands that were away. A command that comes
/// later asks for the end of its job.
const ENDED_SESSIONS: usize = 1000;

/// The two ends of a slave task or of an interactive job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    /// The owner of an interactive job, who alone may talk to it. `None` for a slave task.
    user: Option<UserName>,
    /// Where it runs.
    host: HostName,
    /// Where the command is that started it.
    from: HostName,
    /// Its exit status once its end is on record.
    status: Option<u32>,
}

impl Route {
    fn of_slave(host: HostName, from: HostName, status: Option<u32>) -> Self {
        Self {
            user: None,
            host,
            from,
            status,
        }
    }

    /// The route of an interactive job that has been placed; `None` for a batch job.
    fn of_session(job: &Job, placement: &Placement) -> Option<Self> {
        job.spec.session.as_ref()?;
        Some(Self {
            user: Some(job.spec.owner.user.clone()),
            host: placement.host().clone(),
            from: job.spec.submit_host.clone(),
            status: None,
        })
    }
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
        SlaveMessage::Attach { .. } | SlaveMessage::Left | SlaveMessage::Window(_) | SlaveMessage::CommandAlive => {
            PartSender::Command
        }
        SlaveMessage::Attached { .. } | SlaveMessage::Present | SlaveMessage::TaskAlive => PartSender::Task,
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
        let placed = state
            .jobs
            .values()
            .flat_map(|job| job.placements().map(move |(_, placement)| (job, placement)));
        for (job, placement) in placed {
            if let Some(route) = Route::of_session(job, placement) {
                routes.insert(placement.key, route);
            }
            let key = |number: u32| TaskKey {
                pe_task: number,
                ..placement.key
            };
            for (number, slave) in &placement.slaves().live {
                let (host, from) = (slave.instance.host.clone(), slave.from.clone());
                routes.insert(key(*number), Route::of_slave(host, from, None));
            }
            for (number, from, status) in &placement.slaves().ended {
                routes.insert(key(*number), Route::of_slave(from.clone(), from.clone(), Some(*status)));
            }
        }
        Self {
            inner: Mutex::new(SlaveRoutes {
                routes,
                ..SlaveRoutes::default()
            }),
        }
    }

    /// Follows durable events, which `state` has folded: a command learns of the end of its task.
    pub fn apply(&self, records: &[Arc<Record>], state: &State) {
        for record in records {
            #[allow(clippy::wildcard_enum_match_arm, reason = "routes begin and end with slave tasks")]
            match &record.event {
                Event::SlavePlaced {
                    key, instance, from, ..
                } => {
                    let (host, from) = (instance.host.clone(), from.clone());
                    self.inner().routes.insert(*key, Route::of_slave(host, from, None));
                }
                Event::TaskPlaced { key, .. } => {
                    let route = state
                        .placed(*key)
                        .and_then(|(job, _, placement)| Route::of_session(job, placement));
                    if let Some(route) = route {
                        self.inner().routes.insert(*key, route);
                    }
                }
                Event::SlaveEnded {
                    key,
                    exit_status,
                    reason,
                    ..
                } => {
                    self.inner().slave_ended(*key, *exit_status, reason.clone());
                }
                Event::TaskEnded { key, record, .. } => {
                    let mut inner = self.inner();
                    inner
                        .routes
                        .retain(|slave, _| slave.pe_task == 0 || task_of(*slave) != *key);
                    if let Some(record) = record {
                        inner.session_ended(*key, record.exit_status, record.reason.clone());
                    } else {
                        inner.routes.remove(key);
                    }
                }
                _ => {}
            }
        }
    }

    /// The receiver of a host's message, and the answer to the host itself. The message gets the
    /// owner whose command it is for, where that is an interactive job's.
    fn route(&self, host: &HostName, message: &mut Message) -> (Option<mpsc::Sender<Message>>, Option<SlaveMessage>) {
        let inner = self.inner();
        let route = inner
            .routes
            .get(&message.key)
            .filter(|route| sender(&message.part) != PartSender::Command || route.user == message.user);
        let Some(route) = route else {
            return (
                None,
                (sender(&message.part) == PartSender::Command).then(|| SlaveMessage::Refused(unknown())),
            );
        };
        let (is_right, to) = match sender(&message.part) {
            PartSender::Command => (route.from == *host, &route.host),
            // An agent vouches for users alone: what comes from a user is not the task's.
            PartSender::Task => (route.host == *host && message.user.is_none(), &route.from),
            PartSender::Master => (false, host),
        };
        if !is_right {
            return (None, None);
        }
        message.user.clone_from(&route.user);
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
            user: route.user.clone(),
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
    }

    /// The route of an interactive job stays for a while: its command may be away at the moment.
    fn session_ended(&mut self, key: TaskKey, status: u32, reason: String) {
        if !self.routes.contains_key(&key) {
            return;
        }
        self.ended(key, status, reason);
        self.ended_sessions.push_back(key);
        if self.ended_sessions.len() > ENDED_SESSIONS
            && let Some(oldest) = self.ended_sessions.pop_front()
        {
            self.routes.remove(&oldest);
        }
    }

    fn slave_ended(&mut self, key: TaskKey, status: u32, reason: String) {
        self.ended(key, status, reason);
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
        "error: the task of this command is not known any more",
    )
    .why("its job has ended, or it ended long ago, or it belongs to another user")
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
        let mut message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::info!("a message about a slave task of {host} is refused: {error}");
                continue;
            }
        };
        if message.part.is_oversized() {
            tracing::info!("a message about a slave task of {host} is refused: it is too long");
            continue;
        }
        let (to, answer) = slaves.route(host, &mut message);
        let (key, user) = (message.key, message.user.clone());
        if let Some(to) = to {
            // A receiver that was away says how far it has got when it is back.
            let _ = to.send(message).await;
        }
        if let (Some(part), Some(own)) = (answer, own.upgrade()) {
            let _ = own.send(Message { key, user, part }).await;
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
        let route = Route::of_slave("h2".into(), "h1".into(), None);
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
            let (to, answer) = slaves.route(
                &host.into(),
                &mut Message {
                    key: KEY,
                    user: None,
                    part,
                },
            );
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
    fn what_a_user_sends_is_never_taken_for_the_tasks_own() {
        let slaves = slaves();
        let key = TaskKey { pe_task: 0, ..KEY };
        let route = Route {
            user: Some(UserName::from("ann")),
            ..Route::of_slave("h2".into(), "h1".into(), None)
        };
        slaves.inner().routes.insert(key, route);
        let _streams = ["h1", "h2"].map(|host| slaves.enter(&host.into()));
        let is_passed_on = |user: Option<&str>, part: SlaveMessage| {
            let user = user.map(UserName::from);
            let (to, _) = slaves.route(&"h2".into(), &mut Message { key, user, part });
            to.is_some()
        };
        for part in [data(Stream::Output), SlaveMessage::Present, SlaveMessage::TaskAlive] {
            assert!(is_passed_on(None, part.clone()), "{part:?} of the task");
            for user in ["bob", "ann"] {
                assert!(!is_passed_on(Some(user), part.clone()), "{part:?} of {user}");
            }
        }
    }

    #[test]
    fn a_command_that_comes_late_is_told_the_end() {
        let slaves = slaves();
        let (_, mut told) = slaves.enter(&"h1".into());
        slaves.inner().slave_ended(KEY, 3, "why".to_owned());
        assert_eq!(
            told.try_recv().unwrap().part,
            SlaveMessage::Over {
                status: 3,
                reason: "why".to_owned()
            }
        );
        let message = |key| Message {
            key,
            user: None,
            part: SlaveMessage::Attach { output: 0, error: 0 },
        };
        let (_, again) = slaves.route(&"h1".into(), &mut message(KEY));
        assert_eq!(
            again,
            Some(SlaveMessage::Over {
                status: 3,
                reason: String::new()
            })
        );
        let (_, unknown) = slaves.route(&"h1".into(), &mut message(TaskKey { pe_task: 2, ..KEY }));
        assert!(matches!(unknown, Some(SlaveMessage::Refused(_))));
    }

    #[test]
    fn an_interactive_job_hears_its_owner_on_the_host_of_submission_alone() {
        let slaves = Slaves::default();
        let key = TaskKey { pe_task: 0, ..KEY };
        let route = Route {
            user: Some("alice".into()),
            host: "h2".into(),
            from: "h1".into(),
            status: None,
        };
        slaves.inner().routes.insert(key, route);
        let _streams = ["h1", "h2", "h3"].map(|host| slaves.enter(&host.into()));
        let attach = SlaveMessage::Attach { output: 0, error: 0 };
        for (host, user, is_heard, is_refused) in [
            ("h1", Some("alice"), true, false),
            ("h1", Some("bob"), false, true),
            ("h1", None, false, true),
            ("h2", Some("alice"), false, false),
            ("h3", Some("alice"), false, false),
        ] {
            let part = attach.clone();
            let user = user.map(UserName::from);
            let (to, answer) = slaves.route(
                &host.into(),
                &mut Message {
                    key,
                    user: user.clone(),
                    part,
                },
            );
            let refused = matches!(answer, Some(SlaveMessage::Refused(_)));
            assert_eq!((to.is_some(), refused), (is_heard, is_refused), "{user:?} on {host}");
        }
        let mut output = Message {
            key,
            user: None,
            part: data(Stream::Output),
        };
        assert!(slaves.route(&"h2".into(), &mut output).0.is_some());
        assert_eq!(output.user, Some("alice".into()), "the master says for whom it is");
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
