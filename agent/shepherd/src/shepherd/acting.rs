//! What a shepherd does to the processes of its task: announce, stop, resume and end.

use super::child::ChildCommand;
use super::ending::Action;
use super::supervisor::{Supervisor, everyone, signal_all, spawn};
use crate::proc;
use crate::sys;
use proto::launch::{Method, SessionShell, Start};

/// The command of a suspend, resume or terminate method that runs: a child that is not reaped yet,
/// so that its number is no other process's.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningMethod {
    /// Its process.
    pub(super) pid: i32,
    /// When it is killed. `None` means never, or that it was.
    pub(super) kill_at: Option<u64>,
}

impl Supervisor<'_> {
    pub(super) fn act(&mut self, action: Action) {
        let termination = &self.context.document.termination;
        match action {
            Action::Announce(signal) => self.announce(signal),
            Action::Signal(signal) => {
                signal_all(&everyone(), signal);
                if signal == libc::SIGCONT {
                    self.context.control.thaw();
                }
            }
            Action::Kill => self.kill_all(),
            Action::Terminate => match &termination.terminate {
                Method::Default => self.kill_all(),
                method @ (Method::Signal(_) | Method::Command(_)) => self.apply(method, libc::SIGKILL),
            },
            // The group is frozen only while the job runs: what comes before and after it must not
            // enter a group that is stopped.
            Action::Suspend
                if self.running().is_some() && self.killed_at.is_none() && termination.suspend == Method::Default =>
            {
                if !self.context.control.freeze() {
                    self.apply(&termination.suspend, libc::SIGSTOP);
                }
            }
            Action::Suspend => self.apply(&termination.suspend, libc::SIGSTOP),
            Action::Resume => {
                // A job may have a handler for SIGCONT, and gets it also if it was frozen.
                self.apply(&termination.resume, libc::SIGCONT);
                self.context.control.thaw();
            }
        }
    }

    /// An announcement is for the program. The shell that only waits for a command would die of it
    /// and take the program along, so it is left out, unless it has a handler for the signal: then
    /// the command line of the job set a trap.
    fn announce(&self, signal: i32) {
        let mut processes = everyone();
        let start = &self.context.document.start;
        let is_wrapped = matches!(
            start,
            Start::Command { .. }
                | Start::Connected { shell: Some(_), .. }
                | Start::Session {
                    shell: SessionShell::Command,
                    ..
                }
        );
        if let Some(job) = self
            .job
            .filter(|job| is_wrapped && processes.len() > 1 && !proc::catches(job.pid, signal))
        {
            processes.retain(|process| process.pid != job.pid);
        }
        signal_all(&processes, signal);
    }

    /// Kills the commands of methods that have had their time, with all that they started.
    pub(super) fn keep_methods(&mut self, now: u64) {
        let is_late = |method: &&mut RunningMethod| method.kill_at.is_some_and(|at| at <= now);
        for method in self.methods.iter_mut().filter(is_late) {
            crate::log::line(format_args!(
                "task {}: the process {} of a method has not ended within METHOD_TIMEOUT and is killed",
                self.context.document.key, method.pid
            ));
            signal_all(&proc::descendants(method.pid), libc::SIGKILL);
            if let Some(process) = proc::stat(method.pid) {
                proc::signal(&process, libc::SIGKILL);
            }
            // One that hangs in the kernel is left to the end of the task.
            method.kill_at = None;
        }
    }

    fn apply(&mut self, method: &Method, default_signal: i32) {
        match method {
            Method::Default => signal_all(&everyone(), default_signal),
            Method::Signal(signal) => signal_all(&everyone(), *signal),
            Method::Command(command) => {
                let pid = self.job.map_or(0, |job| job.pid);
                let command = command.replace("$job_pid", &pid.to_string());
                // The method is a child like any other: reaped by the loop, ended with the task.
                let timeout_s = self.context.document.termination.method_timeout_s;
                match spawn(self.context, &ChildCommand::Method(&command)) {
                    Ok((pid, _)) => self.methods.push(RunningMethod {
                        pid,
                        kill_at: timeout_s.map(|seconds| sys::boot_ms() + u64::from(seconds) * 1000),
                    }),
                    Err(error) => {
                        crate::log::line(format_args!("task {}: {command}: {error}", self.context.document.key));
                    }
                }
            }
        }
    }
}
