//! Ctrl-C while a command waits: SIGINT and SIGTERM become something to wait for beside the answer,
//! as long as an [`Interrupt`] lives.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use proto::diagnostic::{Code, Diagnostic};
use std::os::fd::AsFd;
use std::time::Duration;

/// SIGINT and SIGTERM, held back from their default action. Dropped, they end the process again,
/// one that is still unread too.
pub struct Interrupt {
    held: SigSet,
    signals: SignalFd,
}

impl Interrupt {
    /// Holds the signals back from here on. One that comes before somebody waits is kept.
    ///
    /// # Errors
    /// `SystemRefused` without a free descriptor.
    pub fn hold() -> Result<Self, Diagnostic> {
        let held: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        let signals = SignalFd::new(&held).map_err(refused)?;
        held.thread_block().map_err(refused)?;
        Ok(Self { held, signals })
    }

    /// Waits until a signal comes or `other` can be read; true if a signal came, which takes it.
    ///
    /// # Errors
    /// `SystemRefused` if the system cannot wait.
    pub fn comes_before(&self, other: &impl AsFd) -> Result<bool, Diagnostic> {
        self.comes(Some(PollFd::new(other.as_fd(), PollFlags::POLLIN)), PollTimeout::NONE)
    }

    /// Waits for a signal; false if none came within `patience`.
    ///
    /// # Errors
    /// `SystemRefused` if the system cannot wait.
    pub fn comes_within(&self, patience: Duration) -> Result<bool, Diagnostic> {
        self.comes(None, PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX))
    }

    fn comes(&self, other: Option<PollFd<'_>>, patience: PollTimeout) -> Result<bool, Diagnostic> {
        let signals = PollFd::new(self.signals.as_fd(), PollFlags::POLLIN);
        let mut waited_for: Vec<PollFd<'_>> = [signals].into_iter().chain(other).collect();
        loop {
            match poll(&mut waited_for, patience) {
                Ok(_) if waited_for[0].any().unwrap_or(false) => {
                    self.signals.read_signal().map_err(refused)?;
                    return Ok(true);
                }
                Ok(_) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // It can fail for a wrong argument alone.
        let _ = self.held.thread_unblock();
    }
}

fn refused(errno: Errno) -> Diagnostic {
    Diagnostic::new(Code::SystemRefused, "error: cannot wait for signals")
        .why(errno.to_string())
        .fix("raise the limit of open files: ulimit -n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::pthread::{pthread_kill, pthread_self};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_signal_that_is_held_back_is_told_once_and_before_an_answer() {
        let interrupt = Interrupt::hold().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        assert!(!interrupt.comes_before(&near).unwrap());
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            pthread_kill(pthread_self(), signal).unwrap();
            assert!(interrupt.comes_before(&near).unwrap());
            assert!(!interrupt.comes_within(Duration::ZERO).unwrap());
        }
    }
}
