//! Slave tasks of parallel jobs, and interactive jobs: what they read and write, between their
//! processes, the commands that started them, and the master.
//!
//! On the host of a slave task its three streams are named pipes below `agent/slaves`, which its
//! shepherd holds open: an agent that comes after this one opens them again, and the task notices
//! nothing but the end of its input. On the host of the command (`qrsh -inherit`) the agent passes
//! messages on. Both use the one stream of this host's slave tasks ([`link`]).

mod flow;
pub mod link;
mod pipes;

pub use pipes::{InputKind, Pipes};

use crate::messages::DriverInput;
use flow::Flow;
use proto::id::{TaskKey, UserName};
use proto::wire::slave::{Message, SlaveMessage};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Messages that wait for the stream to the master: tasks and commands wait then.
const TO_MASTER: usize = 256;

/// Parts that wait for one end here. An end of this protocol never has as many under way; of
/// another one the surplus is dropped.
const INBOX: usize = 256;

/// Ends of slave tasks whose command has not come for the rest of their output: the oldest is
/// dropped beyond so many.
const ENDED_KEPT: usize = 256;

/// Where slave tasks and their commands are on this host.
#[derive(Clone, Debug)]
pub struct Slaves {
    shared: Arc<SlavesState>,
}

#[derive(Debug)]
struct SlavesState {
    folder: PathBuf,
    driver: mpsc::Sender<DriverInput>,
    to_master: mpsc::Sender<Message>,
    ends: Mutex<StreamEnds>,
}

/// The ends of both kinds.
#[derive(Debug, Default)]
struct StreamEnds {
    tasks: BTreeMap<TaskKey, TaskEnd>,
    /// By task and, for an interactive job, by the user of the command: the master says whether
    /// that is the job's owner.
    commands: BTreeMap<CommandEnd, mpsc::Sender<SlaveMessage>>,
    /// Tasks that are forgotten and still listed, oldest first.
    forgotten: Vec<TaskKey>,
}

/// A command of this host: the task that it talks to, and its user for an interactive job.
pub type CommandEnd = (TaskKey, Option<UserName>);

/// A task of this host.
#[derive(Clone, Debug)]
struct TaskEnd {
    /// The owner of an interactive job, whose commands alone it hears. `None` for a slave task.
    owner: Option<UserName>,
    inbox: mpsc::Sender<SlaveMessage>,
}

impl Slaves {
    /// With pipes in `folder`; tasks whose commands have gone are ended through the driver. What
    /// [`link::run`] is to send comes out of the receiver.
    pub fn new(folder: PathBuf, driver: mpsc::Sender<DriverInput>) -> (Self, mpsc::Receiver<Message>) {
        let (to_master, messages) = mpsc::channel(TO_MASTER);
        let shared = SlavesState {
            folder,
            driver,
            to_master,
            ends: Mutex::default(),
        };
        (
            Self {
                shared: Arc::new(shared),
            },
            messages,
        )
    }

    /// Makes the streams of a task that is about to be started, and gives those that are the
    /// task's. `owner` is that of an interactive job.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(&self, key: TaskKey, owner: Option<UserName>, input: InputKind) -> io::Result<[OwnedFd; 3]> {
        let (pipes, streams) = Pipes::make(&self.shared.folder, key, input)?;
        pipes::write_owner(&self.shared.folder, key, owner.as_ref())?;
        self.spawn(key, owner, pipes);
        Ok(streams)
    }

    /// Finds the streams of tasks that an earlier agent started. `exists` says whether the host
    /// still knows a task.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn recover(&self, exists: impl Fn(TaskKey) -> bool) -> io::Result<()> {
        for key in pipes::found(&self.shared.folder)? {
            if !exists(key) {
                pipes::remove(&self.shared.folder, key);
                continue;
            }
            match Pipes::open(&self.shared.folder, key) {
                Ok(pipes) => self.spawn(key, pipes::owner(&self.shared.folder, key)?, pipes),
                Err(error) => tracing::warn!("the output of slave task {key} is lost: {error}"),
            }
        }
        Ok(())
    }

    fn spawn(&self, key: TaskKey, owner: Option<UserName>, pipes: Pipes) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let own = sender.downgrade();
        let is_session = owner.is_some();
        self.ends().tasks.insert(key, TaskEnd { owner, inbox: sender });
        let wires = (self.shared.to_master.clone(), self.shared.driver.clone());
        let flow = Flow::new(key, pipes, wires.0, wires.1, is_session);
        let slaves = self.clone();
        tokio::spawn(async move {
            flow.run(inbox).await;
            let mut ends = slaves.ends();
            // A start that is repeated has pipes of its own.
            if own.upgrade().is_some_and(|own| {
                ends.tasks
                    .get(&key)
                    .is_some_and(|present| present.inbox.same_channel(&own))
            }) {
                ends.tasks.remove(&key);
            }
        });
    }

    /// The host forgets a task: its pipes need no name any more. What its command has not read yet
    /// stays for a while.
    pub fn forget(&self, key: TaskKey) {
        let mut ends = self.ends();
        let StreamEnds { tasks, forgotten, .. } = &mut *ends;
        if key.pe_task == 0 && !tasks.contains_key(&key) {
            return;
        }
        pipes::remove(&self.shared.folder, key);
        if !tasks.contains_key(&key) {
            return;
        }
        forgotten.retain(|key| tasks.contains_key(key));
        forgotten.push(key);
        if forgotten.len() > ENDED_KEPT {
            tasks.remove(&forgotten.remove(0));
        }
    }

    /// A command of this host is there; the parts that are for it come out of the receiver. It
    /// takes the place of an earlier one.
    pub fn enter(&self, command: CommandEnd) -> mpsc::Receiver<SlaveMessage> {
        let (sender, parts) = mpsc::channel(INBOX);
        self.ends().commands.insert(command, sender);
        parts
    }

    /// A command has gone.
    pub fn leave(&self, command: &CommandEnd, parts: mpsc::Receiver<SlaveMessage>) {
        drop(parts);
        let mut ends = self.ends();
        // Another one may have taken its place meanwhile.
        if ends.commands.get(command).is_some_and(mpsc::Sender::is_closed) {
            ends.commands.remove(command);
        }
    }

    /// Says something to the other end.
    pub async fn send(&self, message: Message) {
        // The receiver ends with the agent.
        let _ = self.shared.to_master.send(message).await;
    }

    /// Takes a message of the master.
    fn deliver(&self, message: Message) {
        let Message { key, user, part } = message;
        let ends = self.ends();
        let end = if is_for_the_task(&part) {
            let task = ends.tasks.get(&key);
            if let Some(task) = task.filter(|task| task.owner != user) {
                let owner = task.owner.as_ref().map_or("no user", UserName::as_str);
                tracing::warn!("task {key} of {owner}: a message of another user ({user:?}) is dropped");
                return;
            }
            task.map(|task| &task.inbox)
        } else {
            ends.commands.get(&(key, user))
        };
        if end.is_some_and(|end| matches!(end.try_send(part), Err(mpsc::error::TrySendError::Full(_)))) {
            tracing::warn!("slave task {key}: {INBOX} messages wait already, one is dropped");
        }
    }

    /// What is to be said on a new stream to the master: tasks are here. Commands are told to say
    /// it themselves.
    fn announcements(&self) -> Vec<Message> {
        let ends = self.ends();
        for command in ends.commands.values() {
            // One whose inbox is full has enough to answer.
            let _ = command.try_send(SlaveMessage::Present);
        }
        ends.tasks
            .keys()
            .map(|key| Message {
                key: *key,
                user: None,
                part: SlaveMessage::Present,
            })
            .collect()
    }

    fn is_used(&self) -> bool {
        let ends = self.ends();
        !ends.tasks.is_empty() || !ends.commands.is_empty()
    }

    fn ends(&self) -> MutexGuard<'_, StreamEnds> {
        self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a part may come from a command: of the kinds that a command sends, and no larger than a
/// command sends it. Others would speak for the task.
pub(crate) fn is_of_a_command(part: &SlaveMessage) -> bool {
    is_for_the_task(part) && !part.is_oversized()
}

/// Whether a part comes from a command.
fn is_for_the_task(part: &SlaveMessage) -> bool {
    use proto::wire::slave::Stream;
    match part {
        SlaveMessage::Attach { .. }
        | SlaveMessage::Left
        | SlaveMessage::Window(_)
        | SlaveMessage::CommandAlive
        | SlaveMessage::Data {
            stream: Stream::Input, ..
        } => true,
        SlaveMessage::Have { stream, .. } => *stream != Stream::Input,
        SlaveMessage::Attached { .. }
        | SlaveMessage::Present
        | SlaveMessage::TaskAlive
        | SlaveMessage::Data { .. }
        | SlaveMessage::Over { .. }
        | SlaveMessage::Refused(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, SubmitSeq, TaskId};

    const KEY: TaskKey = TaskKey {
        cell: CellId(1),
        seq: SubmitSeq(1),
        task: TaskId(1),
        pe_task: 0,
        attempt: 1,
    };

    /// What the next message to the master says.
    async fn next(messages: &mut mpsc::Receiver<Message>) -> SlaveMessage {
        messages.recv().await.expect("a message").part
    }

    #[tokio::test]
    async fn an_interactive_job_hears_its_owner_alone_also_under_the_next_agent() {
        let folder = std::env::temp_dir().join(format!("gridwright-sessions-{}", std::process::id()));
        let (driver, _orders) = mpsc::channel(1);
        let (slaves, mut messages) = Slaves::new(folder.clone(), driver.clone());
        let _streams = slaves
            .begin(KEY, Some("alice".into()), InputKind::Terminal)
            .expect("made");
        let attach = |user: Option<&str>| Message {
            key: KEY,
            user: user.map(UserName::from),
            part: SlaveMessage::Attach { output: 0, error: 0 },
        };
        let heard = SlaveMessage::Attached { input: 0 };
        assert_eq!(next(&mut messages).await, SlaveMessage::Present);
        for user in [Some("bob"), None, Some("alice")] {
            slaves.deliver(attach(user));
        }
        assert_eq!(next(&mut messages).await, heard);
        tokio::task::yield_now().await;
        assert!(messages.try_recv().is_err(), "one was heard");
        let (later, mut messages) = Slaves::new(folder.clone(), driver);
        later.recover(|_| true).expect("found");
        assert_eq!(next(&mut messages).await, SlaveMessage::Present);
        later.deliver(attach(Some("bob")));
        later.deliver(attach(Some("alice")));
        assert_eq!(next(&mut messages).await, heard);
        tokio::task::yield_now().await;
        assert!(messages.try_recv().is_err(), "one was heard");
        std::fs::remove_dir_all(&folder).expect("cleaned");
    }
}
