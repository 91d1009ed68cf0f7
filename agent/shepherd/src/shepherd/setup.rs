//! What a shepherd learns of a child between fork and execve, and how long it waits for that.

use super::report::{self, SetupReport};
use super::supervisor::Supervisor;
use crate::proc;
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proto::launch::{FailedCodes, Failure, HostRefusedLimit, ProcessLimit};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

/// How far a child has come on its way to execve.
pub(super) enum Setup {
    /// It executes the program, or does not.
    Done(SetupReport),
    /// It waits for the other end of a named pipe: the pipe to it, and its words so far.
    Waits(OwnedFd, Vec<u8>),
}

impl Setup {
    /// Whether the job counts as running.
    pub(super) fn has_begun(&self) -> bool {
        match self {
            Setup::Done(report) => report.failure.is_none(),
            Setup::Waits(..) => true,
        }
    }

    /// Whether the processors of the binding were refused, as far as is known now.
    pub(super) fn is_unbound(&self) -> bool {
        match self {
            Setup::Done(report) => report.unbound,
            Setup::Waits(..) => false,
        }
    }

    /// The limits that the kernel refused, as far as is known now.
    pub(super) fn refused(&self) -> &[HostRefusedLimit] {
        match self {
            Setup::Done(report) => &report.refused,
            Setup::Waits(..) => &[],
        }
    }

    /// The whole report, once the child is not waited for any longer.
    ///
    /// A child that hangs in the kernel still holds its end of the pipe, so the pipe is not read to
    /// its end but as far as it is filled.
    pub(super) fn end(self, limits: &[ProcessLimit]) -> SetupReport {
        match self {
            Setup::Done(report) => report,
            Setup::Waits(pipe, mut bytes) => {
                if fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_ok() {
                    // Words that cannot be read count as not said.
                    let _ = File::from(pipe).read_to_end(&mut bytes);
                }
                report::parse(&bytes, limits)
            }
        }
    }
}

impl Supervisor<'_> {
    /// Waits until execve has closed the pipe, or the child said why not, or that it waits itself.
    pub(super) fn await_setup(&mut self, pid: i32, pipe: OwnedFd, patience_ms: u64) -> Setup {
        let mut bytes = Vec::new();
        let mut chunk = [0; 1024];
        let deadline = sys::boot_ms() + patience_ms;
        loop {
            let left = deadline.saturating_sub(sys::boot_ms());
            let mut wait = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            match poll(
                &mut wait,
                PollTimeout::try_from(left as u32).unwrap_or(PollTimeout::MAX),
            ) {
                Ok(0) => return Setup::Done(self.setup_hangs(pid, report::is_at_users_files(&bytes))),
                Err(Errno::EINTR) => continue,
                Ok(_) | Err(_) => {}
            }
            match nix::unistd::read(&pipe, &mut chunk) {
                Ok(0) => return Setup::Done(report::parse(&bytes, &self.context.document.limits)),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    let failure = Failure::of_host(format!("{NOT_PREPARED}: {errno}"), errno as i32);
                    return Setup::Done(hung(failure));
                }
            }
            if report::is_waiting(&bytes) {
                return Setup::Waits(pipe, bytes);
            }
        }
    }

    /// The progress of the child decides who is blamed: a user can name a pipe as output that
    /// nobody reads.
    fn setup_hangs(&mut self, pid: i32, is_at_users_files: bool) -> SetupReport {
        // One that hangs in the kernel is not waited for without end.
        self.killed_at.get_or_insert_with(sys::boot_ms);
        if let Some(process) = proc::stat(pid) {
            proc::signal(&process, libc::SIGKILL);
        }
        if is_at_users_files {
            let text = format!("{NOT_PREPARED}: the user's working directory or files could not be opened in time");
            return hung(Failure {
                failed: FailedCodes::BEFORE_JOB,
                text,
                errno: 0,
                path: String::new(),
            });
        }
        let why = "the name service or the place of temporary directories did not answer in time";
        hung(Failure::of_host(format!("{NOT_PREPARED}: {why}"), 0))
    }
}

/// How the failures of a child begin that said nothing by itself.
const NOT_PREPARED: &str = "the job could not be prepared";

fn hung(failure: Failure) -> SetupReport {
    SetupReport {
        failure: Some(failure),
        ..SetupReport::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{pipe, write};

    /// A child that hangs in the kernel keeps the writing end for ever.
    #[test]
    fn a_child_that_keeps_its_end_of_the_pipe_is_not_waited_for() {
        let (read, held) = pipe().expect("a pipe");
        write(&held, b"S\x02\x01\0\0\0\0\0\0W").expect("it has room");
        let report = Setup::Waits(read, b"UW".to_vec()).end(&[]);
        assert!(report.died);
        assert_eq!(report.error_file_bytes, Some(258));
        drop(held);
    }
}
