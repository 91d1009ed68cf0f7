//! Whether this host can start tasks at all: what its launcher says, and how long it has been without one.
//!
//! The master is told as soon as the answer changes, and gives the host nothing more meanwhile. Orders that crossed that word are kept for
//! [`LAUNCHER_PATIENCE_MS`] and then given back: no launcher was told of them, so none can carry them out later.

use super::{Core, Effect, Now, Task, launcher};
use crate::outcome::in_words;
use proto::id::TaskKey;
use proto::launch::Request;
use proto::wire::agent::AgentMessage;

/// How long an order waits for a launcher before the master gets it back: longer than a launcher takes that is started again.
pub const LAUNCHER_PATIENCE_MS: u64 = 10_000;

/// The interval between examinations while the launcher finds nothing wrong.
const EXAMINE_MS: u64 = 10_000;

/// The interval between examinations while something is wrong. It is short, so the host serves again soon
/// after the repair.
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
    /// The trouble that this connection has reported to the master.
    told: Option<String>,
    /// When orders that wait for a launcher are given back; `None` while none waits.
    give_back_at: Option<u64>,
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
    /// One that comes and goes without a list of its tasks counts as away since it was of use last.
    pub(super) fn launcher_lost(&mut self, now_ms: u64) {
        if !matches!(self.launcher, Launcher::Away { .. }) {
            self.launcher = Launcher::Away { since: now_ms };
        }
    }

    pub(super) fn launcher_listed(&mut self, examines: bool, now_ms: u64) {
        self.launcher = if examines { Launcher::Next { at: now_ms } } else { Launcher::Silent };
        self.trouble = None;
    }

    /// The launcher said what keeps it from starting tasks, if anything does.
    pub(super) fn examined(&mut self, trouble: Option<String>, now_ms: u64) {
        let wait_ms = if trouble.is_some() { EXAMINE_AGAIN_MS } else { EXAMINE_MS };
        self.trouble = trouble.map(|trouble| in_words(&trouble));
        if let Launcher::Asked { .. } = self.launcher {
            self.launcher = Launcher::Next { at: now_ms.saturating_add(wait_ms) };
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
        self.told = None;
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
        let unfit = if self.closing { Some(CLOSING.to_owned()) } else { self.health.unfit() };
        if self.connected && unfit != self.health.told {
            self.health.told.clone_from(&unfit);
            effects.push(Effect::Send(Box::new(AgentMessage::Health { unfit })));
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

    /// Gives the master back what has waited too long for a launcher.
    fn give_back(&mut self, now: &Now<'_>) -> Vec<Effect> {
        let held = self.tasks.iter().filter(|(_, task)| matches!(task, Task::Held(..)));
        let held: Vec<TaskKey> = held.map(|(key, _)| *key).collect();
        let Launcher::Away { since } = self.health.launcher else {
            self.health.give_back_at = None;
            return Vec::new();
        };
        let at = since.saturating_add(LAUNCHER_PATIENCE_MS);
        if at > now.boot_ms {
            self.health.give_back_at = (!held.is_empty()).then_some(at);
            return Vec::new();
        }
        self.health.give_back_at = None;
        let text = self.health.unfit().unwrap_or_default();
        held.into_iter().flat_map(|key| self.give_back_one(key, &text, now)).collect()
    }
}
