//! The result of a task: kept on disk, and told to the launcher.

use super::Supervisor;
use crate::sys;
use proto::launch::{EndCause, Failure, LaunchResult, Notice, TaskUsage, frame};
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a result that found no room on the disk waits until it is written again.
const DISK_PAUSE: Duration = Duration::from_secs(1);

/// How long the launcher may take to hear the last word.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// A full disk must not make a job that ended well one whose shepherd died: the result waits
    /// until there is room.
    fn write_result(&self, result: &LaunchResult) -> io::Result<()> {
        let mut told = false;
        loop {
            match self.context.dir.write_result(result) {
                Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                    if !std::mem::replace(&mut told, true) {
                        crate::log::line(format_args!(
                            "task {}: its result waits for disk space: {error}",
                            result.key
                        ));
                    }
                    std::thread::sleep(DISK_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    /// Leaves the result of a task that has ended, and tells the launcher, if it hears.
    pub(super) fn finish(
        mut self,
        cause: EndCause,
        after: Option<Failure>,
        usage: TaskUsage,
        wallclock_ms: u64,
    ) -> io::Result<Option<UnixStream>> {
        let document = &self.context.document;
        let result = LaunchResult {
            key: document.key,
            cause,
            after,
            executed: self.job.is_some(),
            ordered: self.ordered,
            limit: self.limit.take(),
            refused_limits: std::mem::take(&mut self.refused),
            procedures: std::mem::take(&mut self.procedures),
            usage,
            wallclock_ms,
            started_boot_ms: self.job.map_or(0, |job| job.started_boot_ms),
            ended_boot_ms: sys::boot_ms(),
            boot_id: self.context.boot_id.clone(),
            saved_pid: self.job.map(|job| job.pid).filter(|_| self.saving.is_saved()),
            left_processes: Some(self.left),
            note: Some(self.notes.join("; ")).filter(|note| !note.is_empty()),
        };
        self.write_result(&result)?;
        if !document.keep_active {
            self.context.dir.clean_active();
        }
        let ended = Notice::Ended(Box::new(result));
        self.take_signals();
        let is_reusable = !self.shuts_down && !self.has_remover && self.left == 0;
        let control = if is_reusable { self.peers.only_control() } else { None };
        if let Some(mut control) = control {
            let mut words = frame(&ended);
            words.extend(frame(&Notice::Idle { key: document.key }));
            let waits = control
                .set_nonblocking(false)
                .and_then(|()| control.set_write_timeout(Some(LAST_WORDS)));
            if waits.and_then(|()| control.write_all(&words)).is_ok() {
                return Ok(Some(control));
            }
        } else if self.peers.tell_last(&ended) {
            return Ok(None);
        }
        // Nobody heard: the next launcher finds it.
        self.context.dir.sync_result()?;
        Ok(None)
    }
}
