//! Whether this host can start tasks at all: what its launcher says, and how long it has been
//! without one.
//!
//! The master is told as soon as the answer changes, and gives the host nothing more meanwhile.
//! Orders that no launcher was told of are kept for [`LAUNCHER_PATIENCE_MS`] and then given back.
//! Orders that went to a launcher in the moment of its death are given back too if it had not begun
//! them: nobody can carry them out later.

use super::{Core, Effect, Now, Task, launcher};
use crate::outcome::in_words;
use proto::id::TaskKey;
use proto::launch::Request;
use proto::wire::agent::AgentMessage;

/// How long an order waits for a launcher before the master gets it back: longer than a launcher
/// takes that is started again.
pub const LAUNCHER_PATIENCE_MS: u64 = 10_000;

/// The interval between examinations while the launcher finds nothing wrong.
const EXAMINE_MS: u64 = 10_000;

/// The interval between examinations while something is wrong. It is short, so the host serves
/// again soon after the repair.
const EXAMINE_AGAIN_MS: u64 = 2_000;

/// A launcher that does not answer for this long counts as hanging.
const ANSWER_MS: u64 = 30_000;

/// The reason of a host whose administrator ends its tasks.
pub(super) const CLOSING: &str = "its administrator ends its tasks (gridwright down --kill-jobs)";

/// The facts about the host's ability to start tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    launcher: Launcher,
    /// What the launcher found at its last examination.
    trouble: Option<String>,
    /// The commands that root runs here, as the launcher last said.
    root_commands: Option<Vec<String>>,
    /// The trouble and the commands that this connection has reported to the master.
    reported: (Option<String>, Option<Vec<String>>),
    /// When orders that wait for a launcher are given back; `None` while none waits.
    give_back_at: Option<u64>,
    /// When it is found out next which orders the dead launcher had not begun; 0 before the first
    /// time.
    look_at: u64,
}

/// How the launcher stands.
#[derive(Clone, Copy, Debug, Default)]
enum Launcher {
    /// No launcher has connected so far.
    #[default]
    NeverSeen,
    /// It has been away since this moment of the boot clock.
    Away { since: u64 },
    /// It is there, and cannot say how its host is.
    Silent,
    /// It is examined at this moment.
    Next { at: u64 },
    /// It was asked at this moment and has not answered.
    Asked { at: u64 },
}

impl Health {
    /// The connection to the launcher has ended. If the launcher was away before and this one never
    /// listed its tasks, the absence goes on from its first moment.
    pub(super) fn launcher_lost(&mut self, now_ms: u64) {
        if !matches!(self.launcher, Launcher::Away { .. }) {
            self.launcher = Launcher::Away { since: now_ms };
            self.look_at = 0;
        }
    }

    pub(super) fn launcher_listed(&mut self, examines: bool, now_ms: u64) {
        self.launcher = if examines {
            Launcher::Next { at: now_ms }
        } else {
            Launcher::Silent
        };
        self.trouble = None;
    }

    /// The launcher said what keeps it from starting tasks, if anything does.
    pub(super) fn examined(&mut self, trouble: Option<String>, root_commands: Option<Vec<String>>, now_ms: u64) {
        self.root_commands = root_commands;
        let wait_ms = if trouble.is_some() {
            EXAMINE_AGAIN_MS
        } else {
            EXAMINE_MS
        };
        self.trouble = trouble.map(|trouble| in_words(&trouble));
        if let Launcher::Asked { .. } = self.launcher {
            self.launcher = Launcher::Next {
                at: now_ms.saturating_add(wait_ms),
            };
        }
    }

    /// A start was refused by the host's own fault: it is examined at once.
    pub(super) fn doubted(&mut self, now_ms: u64) {
        if let Launcher::Next { .. } = self.launcher {
            self.launcher = Launcher::Next { at: now_ms };
        }
    }

    /// The master begins to count this host as one that can start tasks.
    pub(super) fn welcomed(&mut self) {
        self.reported = (None, None);
    }

    pub(super) fn next_timer(&self) -> Option<u64> {
        let launcher = match self.launcher {
            Launcher::NeverSeen | Launcher::Away { .. } | Launcher::Silent => None,
            Launcher::Next { at } => Some(at),
            Launcher::Asked { at } if self.trouble.is_none() => Some(at.saturating_add(ANSWER_MS)),
            Launcher::Asked { .. } => None,
        };
        launcher.into_iter().chain(self.give_back_at).min()
    }

    /// Returns the reason why no task can start. `None` means that tasks can start.
    fn unfit(&self) -> Option<String> {
        match self.launcher {
            Launcher::NeverSeen | Launcher::Away { .. } => {
                Some("its launcher does not run: start gridwright-shepherd launch there (gridwright up)".to_owned())
            }
            Launcher::Silent | Launcher::Next { .. } | Launcher::Asked { .. } => self.trouble.clone(),
        }
    }
}

impl Core {
    /// Does what is due, and tells the master what it does not know yet.
    pub(super) fn keep_health(&mut self, now: &Now<'_>) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self.examine(now.boot_ms).into_iter().collect();
        effects.extend(self.give_back(now));
        let unfit = if self.closing {
            Some(CLOSING.to_owned())
        } else {
            self.health.unfit()
        };
        let (last_unfit, last_commands) = &self.health.reported;
        let is_news = unfit != *last_unfit || self.health.root_commands != *last_commands;
        if self.connected && is_news {
            let root_commands = self.health.root_commands.clone();
            self.health.reported = (unfit.clone(), root_commands.clone());
            effects.push(Effect::Send(Box::new(AgentMessage::Health { unfit, root_commands })));
        }
        effects
    }

    fn examine(&mut self, now_ms: u64) -> Option<Effect> {
        match self.health.launcher {
            Launcher::Next { at } if at <= now_ms => {
                self.health.launcher = Launcher::Asked { at: now_ms };
                Some(launcher(Request::Examine))
            }
            Launcher::Asked { at } if at.saturating_add(ANSWER_MS) <= now_ms => {
                let hangs = || format!("its launcher has not answered for {} s", ANSWER_MS / 1000);
                self.health.trouble.get_or_insert_with(hangs);
                None
            }
            Launcher::NeverSeen
            | Launcher::Away { .. }
            | Launcher::Silent
            | Launcher::Next { .. }
            | Launcher::Asked { .. } => None,
        }
    }

    /// Gives the master back the orders that have waited too long for a launcher.
    fn give_back(&mut self, now: &Now<'_>) -> Vec<Effect> {
        self.health.give_back_at = None;
        let Launcher::Away { since } = self.health.launcher else {
            return Vec::new();
        };
        let (held, asked) = self.unanswered();
        let at = since.saturating_add(LAUNCHER_PATIENCE_MS);
        if at > now.boot_ms {
            self.health.give_back_at = (!held.is_empty() || !asked.is_empty()).then_some(at);
            return Vec::new();
        }
        let text = self.health.unfit().unwrap_or_default();
        let mut effects: Vec<Effect> = held
            .into_iter()
            .flat_map(|key| self.give_back_one(key, &text, now))
            .collect();
        if !asked.is_empty() {
            if self.health.look_at <= now.boot_ms {
                self.health.look_at = now.boot_ms.saturating_add(LAUNCHER_PATIENCE_MS);
                effects.push(Effect::FindUnbegun(asked));
            }
            self.health.give_back_at = Some(self.health.look_at);
        }
        effects
    }

    /// The tasks whose orders no launcher was told of, and those whose orders a launcher was told
    /// of and has not answered.
    fn unanswered(&self) -> (Vec<TaskKey>, Vec<TaskKey>) {
        let (mut held, mut asked) = (Vec::new(), Vec::new());
        for (key, task) in &self.tasks {
            match task {
                Task::Held(..) => held.push(*key),
                Task::Asked(..) => asked.push(*key),
                Task::Accepted | Task::Running { .. } | Task::Ended(_) => {}
            }
        }
        (held, asked)
    }

    /// Takes orders for unsent that the dead launcher had not begun. Does nothing once another
    /// launcher has listed its tasks, which is asked for them again.
    pub(super) fn hold_again(&mut self, keys: &[TaskKey]) {
        if self.listed {
            return;
        }
        for key in keys {
            if let Some(Task::Asked(order, spec)) = self.tasks.get(key) {
                let held = Task::Held(order.clone(), spec.clone());
                self.tasks.insert(*key, held);
            }
        }
    }
}
