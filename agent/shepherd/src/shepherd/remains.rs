//! What is left of a task: processes to end, a directory to remove. Neither holds the task's slot
//! for ever.

use super::supervisor::{Supervisor, everyone, signal_all};
use super::tmpdir;
use crate::proc::{self, ProcessStat};
use crate::sys::{self, Wait};
use std::io;

/// How long processes may take to end after SIGKILL. Those that do not hang in the kernel, in a
/// file system as a rule.
const END_MS: u64 = 10_000;

/// How long the main process may take, which has the memory of the job to give back.
const MAIN_END_MS: u64 = 60_000;

/// How long the removal of the temporary directory may hold up the result.
const REMOVAL_MS: u64 = 10_000;

/// The state of a process that waits in the kernel and takes no signal (proc(5)).
const UNINTERRUPTIBLE: u8 = b'D';

impl Supervisor<'_> {
    pub(super) fn kill_all(&mut self) {
        self.killed_at.get_or_insert_with(sys::boot_ms);
        if let Some(group) = self.context.control.group() {
            group.kill();
        }
        self.context.control.thaw();
        if let Some(main) = &self.main {
            // In one step: processes that fork faster than they are found end together. A kernel
            // before 6.9 cannot, and the walks below find the same.
            let _ = sys::signal_group(main, libc::SIGKILL);
        }
        // A process that forks while the others die is found by the next walk.
        for _ in 0..100 {
            let left = everyone();
            if left.iter().all(|process| process.state == UNINTERRUPTIBLE) && left.len() <= self.left as usize {
                return;
            }
            signal_all(&left, libc::SIGKILL);
        }
    }

    /// Whether a child takes no SIGKILL: it is not waited for any longer.
    pub(super) fn is_stuck(&self, pid: i32, now: u64) -> bool {
        let hangs = || proc::stat(pid).is_some_and(|process| process.state == UNINTERRUPTIBLE);
        self.killed_at.is_some_and(|at| now >= at.saturating_add(MAIN_END_MS)) && hangs()
    }

    /// Kills and reaps every descendant: a subreaper without children is the proof that nothing is
    /// left. Counts those that do not end in time, and goes on without them.
    pub(super) fn end_remains(&mut self) -> io::Result<()> {
        let deadline = sys::boot_ms() + END_MS;
        loop {
            loop {
                match sys::wait_any() {
                    Wait::Ended(waited) => self.sampler.add_reaped(&waited),
                    Wait::NoChild => {
                        self.left = 0;
                        return Ok(());
                    }
                    Wait::StillRunning => break,
                }
            }
            let left = everyone();
            let hang = |processes: &[ProcessStat]| processes.iter().all(|process| process.state == UNINTERRUPTIBLE);
            let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            let are_known = self.left > 0 && count <= self.left;
            if hang(&left) && (are_known || sys::boot_ms() >= deadline) {
                self.give_up(count);
                return Ok(());
            }
            self.kill_all();
            self.sleep_until(sys::boot_ms() + 100)?;
            self.obey();
        }
    }

    fn give_up(&mut self, count: u32) {
        if self.left != count {
            let key = self.context.document.key;
            crate::log::line(format_args!(
                "task {key}: {count} processes take no SIGKILL: they hang in the kernel"
            ));
        }
        // A child that is not reaped keeps this shepherd from another task.
        self.left = count.max(1);
    }

    /// Removes the temporary directory and the control group. A directory that takes long is
    /// removed behind the end of the task.
    pub(super) fn clean(&mut self) -> io::Result<()> {
        let document = &self.context.document;
        if let Some(tmpdir) = &document.tmpdir {
            let account = &document.account;
            let place = format!("{}/{}", tmpdir.base, tmpdir.name);
            match tmpdir::start_removal(tmpdir, account.uid, account.gid, &document.key) {
                Ok(pid) => self.await_removal(pid, &place)?,
                Err(error) => {
                    crate::log::line(format_args!("task {}: {place} stays: {error}", document.key));
                    self.note_remains(&place, &error);
                }
            }
        }
        if let Some(group) = self.context.control.group() {
            group.remove();
        }
        Ok(())
    }

    fn await_removal(&mut self, pid: i32, place: &str) -> io::Result<()> {
        let deadline = sys::boot_ms() + REMOVAL_MS;
        loop {
            if let Some(waited) = self.reap(pid) {
                if libc::WIFEXITED(waited.status) && libc::WEXITSTATUS(waited.status) > 0 {
                    self.note_remains(place, &io::Error::from_raw_os_error(libc::WEXITSTATUS(waited.status)));
                }
                return Ok(());
            }
            if sys::boot_ms() >= deadline {
                self.has_remover = true;
                return Ok(());
            }
            self.sleep_until(deadline)?;
            self.obey();
        }
    }

    fn note_remains(&mut self, place: &str, error: &io::Error) {
        self.notes.push(format!(
            "the temporary directory {place} could not be removed whole: {error}"
        ));
    }
}
