//! Inputs that ended the master: the one in hand at two aborts in a row is set aside
//! (ARCHITECTURE.md "One input").
//!
//! What is in hand is noted in memory alone. An assertion that fails writes it to `master/aborts`
//! on its way out, so that a turn costs nothing for it. An input is known again by its mark: the id
//! of a request, which commands repeat after a restart, the host of a hello or a report, the task
//! and what its host says of it. Time that passes has a mark and cannot be set aside.

use master_core::core::Core;
use master_core::decide::Caller;
use master_core::effect::Step;
use master_core::effect::{Effect, Input};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, RequestId, TaskKey};
use proto::job::Owner;
use proto::wire::agent::{AgentMessage, TaskReportState};
use proto::wire::client::Reply;
use proto::wire::stream::Order;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The thread whose panics are of the input in hand.
pub const CORE_THREAD: &str = "master-core";

/// Aborts in a row after which an input is set aside.
const ABORTS_MAX: u32 = 2;

/// The most marks in the file; the oldest go first.
const MARKS_MAX: usize = 64;

/// The version whose aborts count: another one may have been mended.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the core thread has in hand, and what it is not to take any more.
#[derive(Clone, Debug)]
pub struct Quarantine {
    path: PathBuf,
    in_hand: Arc<Mutex<InputMark>>,
    marks: Vec<String>,
}

/// By what an input is known again after a restart; its text is one line.
#[derive(Clone, Debug)]
enum InputMark {
    /// News of a task. There are so many that they are put in words only when they are needed.
    Task {
        key: TaskKey,
        stage: &'static str,
        host: Option<HostName>,
    },
    /// Everything else.
    Words(Cow<'static, str>),
}

impl fmt::Display for InputMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputMark::Task { key, stage, host } => {
                write!(
                    f,
                    "task {key} {stage} on host {}",
                    host.as_ref().map_or("nobody", HostName::as_str)
                )
            }
            InputMark::Words(words) => f.write_str(words),
        }
    }
}

impl Quarantine {
    /// What is set aside by the file, which need not be there.
    pub fn read(path: PathBuf) -> Self {
        let aborts = Aborts::read(&path);
        let marks: Vec<String> = aborts
            .0
            .into_iter()
            .filter(|(_, count)| *count >= ABORTS_MAX)
            .map(|(mark, _)| mark)
            .collect();
        for mark in &marks {
            tracing::error!("set aside, because it ended the master {ABORTS_MAX} times: {mark}; report this");
        }
        Self {
            path,
            in_hand: Arc::new(Mutex::new(InputMark::Words(Cow::default()))),
            marks,
        }
    }

    /// From now on a panic of the core thread notes what is in hand, after what it does otherwise.
    pub fn note_panics(&self) {
        let (before, noter) = (std::panic::take_hook(), self.clone());
        std::panic::set_hook(Box::new(move |info| {
            before(info);
            if std::thread::current().name() == Some(CORE_THREAD) {
                noter.note();
            }
        }));
    }

    /// Takes an input into hand for the core.
    ///
    /// # Errors
    /// With what happens instead, if it is set aside.
    pub fn admit(&self, core: &Core, input: Input) -> Result<Input, Step> {
        let mark = mark(core, &input);
        if !self.marks.is_empty() && !matches!(input, Input::Tick) {
            let words = mark.to_string();
            if self.marks.contains(&words) {
                return Err(instead(input, &words));
            }
        }
        *self.in_hand.lock().unwrap_or_else(PoisonError::into_inner) = mark;
        Ok(input)
    }

    fn note(&self) {
        let mark = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner).to_string();
        let mut aborts = Aborts::read(&self.path);
        aborts.count(mark);
        if let Err(error) = aborts.write(&self.path) {
            tracing::error!("cannot note in {} what was in hand: {error}", self.path.display());
        }
    }
}

/// Marks with how often each ended the master, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct Aborts(Vec<(String, u32)>);

impl Aborts {
    /// Those of this version; a line is `COUNT VERSION MARK`.
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = |line: &str| {
            let (count, rest) = line.split_once(' ')?;
            let (version, mark) = rest.split_once(' ')?;
            (version == VERSION).then(|| Some((mark.to_owned(), count.parse().ok()?)))?
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// One more abort. One that was not followed by another of the same input is forgotten.
    fn count(&mut self, mark: String) {
        let before = self
            .0
            .iter()
            .find(|(known, _)| *known == mark)
            .map_or(0, |(_, count)| *count);
        self.0.retain(|(known, count)| *known != mark && *count >= ABORTS_MAX);
        self.0.push((mark, before + 1));
        let over = self.0.len().saturating_sub(MARKS_MAX);
        self.0.drain(..over);
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (mark, count) in &self.0 {
            let _ = writeln!(text, "{count} {VERSION} {mark}");
        }
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)
    }
}

fn mark(core: &Core, input: &Input) -> InputMark {
    let host_of = |connection| core.host_of(connection).map_or("nobody", |host| host.as_str());
    let words = match input {
        Input::Command { id, owner, host, .. } => request(*id, owner, host),
        Input::AgentConnected { host, .. } => format!("hello of host {host}"),
        Input::AgentLost { connection } => format!("end of the connection of host {}", host_of(*connection)),
        Input::AgentMessage { connection, message } => match &**message {
            AgentMessage::Task(report) => {
                let host = core.host_of(*connection).cloned();
                return InputMark::Task {
                    key: report.key,
                    stage: stage(&report.state),
                    host,
                };
            }
            AgentMessage::Usage(_) => format!("use of tasks on host {}", host_of(*connection)),
            AgentMessage::Sensors(_) => format!("sensors of host {}", host_of(*connection)),
            AgentMessage::Health { .. } => format!("health of host {}", host_of(*connection)),
            AgentMessage::Refused(_) => format!("refusal of host {}", host_of(*connection)),
        },
        Input::LoadReport { connection, .. } => format!("load report of host {}", host_of(*connection)),
        // A pass plans on a state, so its first order comes first again.
        Input::Orders { scheduler, orders } => format!("orders of scheduler {scheduler} from {}", first(orders)),
        Input::Verified { id, .. } => match core.submission(*id) {
            Some((id, owner, host)) => request(id, owner, host),
            None => "a job that was verified too late".to_owned(),
        },
        Input::Join { host, .. } => format!("join of host {host}"),
        Input::CertificateRenewed { host, .. } => format!("renewal of host {host}"),
        Input::Tickets(_) => return InputMark::Words("tickets of running tasks".into()),
        // What a command has left is done as time passes: the command is what comes again.
        Input::Tick => match core.bulk_command() {
            Some((id, Caller { owner, host, .. })) => request(id, owner, host),
            None => return InputMark::Words("time".into()),
        },
    };
    InputMark::Words(words.into())
}

fn request(id: RequestId, owner: &Owner, host: &HostName) -> String {
    format!("request {:032x} of {}@{host}", id.0, owner.user)
}

fn first(orders: &[Order]) -> String {
    match orders.first() {
        None => "none".to_owned(),
        Some(Order::Start { seq, task, .. }) => format!("the start of {}.{task}", seq.0),
        Some(Order::RejectImmediate { seq }) => format!("the rejection of {}", seq.0),
        Some(Order::SuspendByThreshold { key, .. }) => format!("the suspension of {key}"),
    }
}

fn stage(state: &TaskReportState) -> &'static str {
    match state {
        TaskReportState::Accepted => "accepted",
        TaskReportState::Running { .. } => "running",
        TaskReportState::Ended(_) => "ended",
        TaskReportState::Unknown => "unknown",
    }
}

/// What happens in place of an input that is set aside.
fn instead(input: Input, mark: &str) -> Step {
    let why = Diagnostic::new(Code::SystemRefused, format!("set aside: {mark}"))
        .why(format!("it ended the master {ABORTS_MAX} times"))
        .fix("report it with log/master.log; after an update it is tried again, or once master/aborts is removed");
    let warn = Effect::Warn(why.clone());
    let effects = match input {
        Input::Command { reply_to, .. } => {
            vec![
                warn,
                Effect::Reply {
                    to: reply_to,
                    reply: Box::new(Reply::refusal(why)),
                },
            ]
        }
        Input::AgentConnected { connection, .. } => vec![warn, Effect::Disconnect { connection, why }],
        Input::Join { reply_to, .. } => vec![
            warn,
            Effect::Joined {
                to: reply_to,
                outcome: Err(why),
            },
        ],
        Input::Orders { scheduler, orders } => {
            let refused = orders.into_iter().map(|order| Effect::OrderRefused {
                scheduler: scheduler.clone(),
                order: Box::new(order),
                why: why.clone(),
            });
            std::iter::once(warn).chain(refused).collect()
        }
        Input::AgentLost { .. }
        | Input::Verified { .. }
        | Input::AgentMessage { .. }
        | Input::LoadReport { .. }
        | Input::CertificateRenewed { .. }
        | Input::Tickets(_)
        | Input::Tick => vec![warn],
    };
    Step {
        events: Vec::new(),
        effects,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use master_core::effect::ReplyTo;
    use master_core::state::State;
    use proto::id::RequestId;
    use proto::job::Owner;
    use proto::wire::client::{Answer, Command};

    fn request(id: u128) -> Input {
        Input::Command {
            reply_to: ReplyTo(7),
            id: RequestId(id),
            owner: Owner {
                user: "u1".into(),
                uid: 2001,
                gid: 2001,
                group: "u1".into(),
                groups: Vec::new(),
            },
            host: HostName::new("node1"),
            entropy: [0; 32],
            command: Box::new(Command::TriggerScheduling),
        }
    }

    /// A master that starts, gets a request and aborts over it, as a release does: nothing runs
    /// behind the hook.
    fn abort_over(path: &Path, id: u128) {
        let quarantine = Quarantine::read(path.to_owned());
        let core = Core::new(State::new());
        assert!(quarantine.admit(&core, request(id)).is_ok(), "it is not set aside yet");
        quarantine.note();
    }

    fn is_refused(path: &Path, id: u128) -> bool {
        let quarantine = Quarantine::read(path.to_owned());
        let refused = quarantine.admit(&Core::new(State::new()), request(id));
        refused.is_err_and(|step| {
            let answers = |effect: &Effect| matches!(effect, Effect::Reply { to: ReplyTo(7), reply } if reply.answers.iter().any(Answer::is_refusal));
            let warns = |effect: &Effect| matches!(effect, Effect::Warn(_));
            step.events.is_empty() && step.effects.iter().any(answers) && step.effects.iter().any(warns)
        })
    }

    #[test]
    fn what_is_in_hand_at_two_aborts_in_a_row_is_refused_at_the_third_start() {
        let dir = TempDir::new("aborts");
        let path = dir.path().join("aborts");
        abort_over(&path, 1);
        assert!(!is_refused(&path, 1));
        abort_over(&path, 1);
        assert!(is_refused(&path, 1) && !is_refused(&path, 2));
        abort_over(&path, 2);
        assert!(
            is_refused(&path, 1),
            "what is set aside stays so when another input aborts"
        );
    }

    #[test]
    fn aborts_over_different_inputs_are_not_in_a_row() {
        let dir = TempDir::new("aborts");
        let path = dir.path().join("aborts");
        for id in [1, 2, 1, 2] {
            abort_over(&path, id);
        }
        assert!(!is_refused(&path, 1) && !is_refused(&path, 2));
    }

    #[test]
    fn an_update_tries_again_and_time_is_never_set_aside() {
        let dir = TempDir::new("aborts");
        let path = dir.path().join("aborts");
        let mark = mark(&Core::new(State::new()), &request(1));
        fs::write(&path, format!("2 0.0.1 {mark}\n2 {VERSION} time\nrubbish\n")).unwrap();
        assert!(!is_refused(&path, 1));
        let quarantine = Quarantine::read(path);
        assert!(quarantine.admit(&Core::new(State::new()), Input::Tick).is_ok());
    }

    #[test]
    fn a_panic_of_the_core_thread_is_noted() {
        let dir = TempDir::new("aborts");
        let path = dir.path().join("aborts");
        let quarantine = Quarantine::read(path.clone());
        quarantine.note_panics();
        for name in ["master-reader", CORE_THREAD] {
            let quarantine = quarantine.clone();
            let work = move || {
                let core = Core::new(State::new());
                let _ = quarantine.admit(&core, request(9));
                panic!("an assertion of {name}");
            };
            assert!(
                std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(work)
                    .unwrap()
                    .join()
                    .is_err()
            );
        }
        let _ = std::panic::take_hook();
        let noted = fs::read_to_string(path).unwrap();
        assert_eq!(noted, format!("1 {VERSION} request {:032x} of u1@node1\n", 9));
    }
}
