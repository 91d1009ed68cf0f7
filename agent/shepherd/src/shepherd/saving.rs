//! The state of a checkpointing job: when it is written, by what, and whether that went well
//! (checkpoint(5)).

use super::child::ChildCommand;
use super::ending::Action;
use super::supervisor::{Supervisor, spawn};
use crate::sys;
use proto::launch::{Checkpointing, EndCause, Method, TaskOrder};
use std::io;

/// Milliseconds that a command may take after the job has ended, as procedures may.
const AFTER_JOB_MS: u64 = 120_000;

/// How far the state of one job is kept.
#[derive(Debug, Default)]
pub struct Saving {
    /// Milliseconds between two checkpoints; none where there are none by the clock.
    interval_ms: Option<u64>,
    /// When the next one is due.
    next: Option<u64>,
    /// The command that writes the state now.
    command: Option<i32>,
    /// Whether a command has written the state.
    saved: bool,
    /// Whether a command failed of late.
    failed: bool,
    /// Whether the job is to go on elsewhere.
    migrating: bool,
}

impl Saving {
    /// The job runs from now on.
    pub fn begin(&mut self, checkpointing: Option<&Checkpointing>, now: u64) {
        let interval_s = checkpointing.map_or(0, |checkpointing| checkpointing.interval_s);
        self.interval_ms = (interval_s > 0).then(|| interval_s.saturating_mul(1000));
        self.next = self.interval_ms.map(|ms| now.saturating_add(ms));
    }

    /// When the next checkpoint is due.
    pub fn next_at(&self) -> u64 {
        self.next.filter(|_| !self.migrating).unwrap_or(u64::MAX)
    }

    /// Whether a command has written the state.
    pub fn is_saved(&self) -> bool {
        self.saved
    }

    /// Takes note of a child that has ended, with its wait status.
    pub fn reaped(&mut self, pid: i32, status: i32) {
        if self.command == Some(pid) {
            self.command = None;
            self.saved |= status == 0;
            self.failed |= status != 0;
        }
    }

    /// The job runs still: one that a command could not move stays, and may be moved later.
    fn outlived(&mut self) {
        if std::mem::take(&mut self.failed) && self.command.is_none() {
            self.migrating = false;
        }
    }

    /// Whether a checkpoint is to be made at `now`. One that is still being made is not begun
    /// again.
    fn is_due(&mut self, now: u64) -> bool {
        if self.next_at() > now {
            return false;
        }
        self.next = self.interval_ms.map(|ms| now.saturating_add(ms));
        self.command.is_none()
    }
}

impl Supervisor<'_> {
    /// Makes the checkpoint that the clock demands.
    pub(super) fn keep_saving(&mut self, now: u64) {
        let Some(checkpointing) = self.context.document.checkpoint.as_ref() else {
            return;
        };
        self.saving.outlived();
        if self.running().is_some() && !self.ending.has_begun() && self.saving.is_due(now) {
            self.save(&checkpointing.save);
        }
    }

    /// Writes the state and ends the job. Without a command for it, and before the job runs, its
    /// processes are killed.
    pub(super) fn migrate(&mut self, now: u64) {
        let Some(checkpointing) = self.context.document.checkpoint.as_ref() else {
            return;
        };
        if self.saving.migrating || self.ending.has_begun() {
            return;
        }
        self.saving.migrating = true;
        match &checkpointing.migrate {
            method @ Method::Command(_) if self.running().is_some() => self.save(method),
            Method::Default | Method::Signal(_) | Method::Command(_) => {
                let termination = &self.context.document.termination;
                let actions = self.ending.order(TaskOrder::Kill, termination, now);
                actions.into_iter().for_each(|action| self.act(action));
            }
        }
    }

    fn save(&mut self, method: &Method) {
        match method {
            Method::Default => {}
            // A job that knows the signal is told; the shell that only waits for it is not.
            Method::Signal(signal) => self.act(Action::Announce(*signal)),
            Method::Command(command) => {
                let started = self.spawn_checkpoint(command);
                self.saving.command = started;
            }
        }
    }

    /// Starts a command beside the job; none if that fails, which is only noted.
    fn spawn_checkpoint(&self, command: &str) -> Option<i32> {
        let command = command.replace("$job_pid", &self.job.map_or(0, |job| job.pid).to_string());
        match spawn(self.context, &ChildCommand::Checkpoint(&command)) {
            Ok((pid, _setup)) => Some(pid),
            Err(error) => {
                crate::log::line(format_args!("task {}: {command}: {error}", self.context.document.key));
                None
            }
        }
    }

    /// Lets a command that ended the job finish what it does.
    pub(super) fn await_saved(&mut self) -> io::Result<()> {
        let Some(pid) = self.saving.command else { return Ok(()) };
        self.attend(pid, Some(sys::boot_ms() + AFTER_JOB_MS)).map(|_| ())
    }

    /// Removes the state of a job that does not go on from it, as in 8.1.9 also after its deletion.
    pub(super) fn clean_saved(&mut self, cause: &EndCause) -> io::Result<()> {
        let goes_on =
            self.saving.migrating && !matches!(cause, EndCause::Exited(_)) || *cause == EndCause::ShepherdDied;
        self.saving.saved &= goes_on;
        let clean = self
            .context
            .document
            .checkpoint
            .as_ref()
            .and_then(|checkpointing| checkpointing.clean.as_deref());
        let Some(clean) = clean.filter(|_| !goes_on) else {
            return Ok(());
        };
        let Some(pid) = self.spawn_checkpoint(clean) else {
            return Ok(());
        };
        self.attend(pid, Some(sys::boot_ms() + AFTER_JOB_MS))?;
        self.end_remains()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saving(interval_s: u64) -> Saving {
        let mut saving = Saving::default();
        let (save, migrate) = (Method::Command("ckpt".to_owned()), Method::Default);
        saving.begin(
            Some(&Checkpointing {
                save,
                interval_s,
                migrate,
                clean: None,
            }),
            1_000,
        );
        saving
    }

    #[test]
    fn a_checkpoint_is_due_at_each_interval_unless_the_last_one_still_runs() {
        let mut saving = saving(2);
        assert_eq!(saving.next_at(), 3_000);
        assert!(!saving.is_due(2_999));
        assert!(saving.is_due(3_100));
        saving.command = Some(7);
        assert!(!saving.is_due(5_100), "the last one still runs");
        saving.reaped(7, 0);
        assert!(saving.is_due(7_100) && saving.is_saved());
    }

    #[test]
    fn nothing_is_due_without_an_interval_or_while_the_job_moves() {
        assert_eq!(saving(0).next_at(), u64::MAX);
        let mut saving = saving(2);
        saving.migrating = true;
        assert!(!saving.is_due(9_000));
    }

    #[test]
    fn a_command_that_fails_has_saved_nothing_and_moved_nothing() {
        let mut saving = saving(2);
        (saving.command, saving.migrating) = (Some(7), true);
        saving.reaped(8, 0);
        saving.reaped(7, 256);
        assert!(!saving.is_saved() && saving.command.is_none() && saving.migrating);
        saving.outlived();
        assert!(!saving.migrating);
    }
}
