//! The process of a launcher, known by its number and start time, so that its end can be told from
//! a connection that was lost.

use procfs::ProcError;
use procfs::process::Process;

/// The state of a process that has ended and was not waited for, and of one that is just being
/// removed (proc_pid_stat(5)).
const GONE: [char; 3] = ['Z', 'X', 'x'];

/// A process that listens at the launcher's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LauncherProcess {
    pid: i32,
    start_ticks: u64,
}

impl LauncherProcess {
    /// The process with a number, if it is there and can be seen.
    pub fn find(pid: i32) -> Option<Self> {
        let stat = Process::new(pid).and_then(|process| process.stat()).ok()?;
        Some(Self {
            pid,
            start_ticks: stat.starttime,
        })
    }

    /// Whether it has certainly ended.
    pub fn is_gone(self) -> bool {
        match Process::new(self.pid).and_then(|process| process.stat()) {
            Ok(stat) => stat.starttime != self.start_ticks || GONE.contains(&stat.state),
            Err(error) => matches!(error, ProcError::NotFound(_)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_has_ended_is_gone_before_and_after_it_was_waited_for() {
        let mut child = Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = LauncherProcess::find(child.id().cast_signed()).unwrap();
        assert!(!process.is_gone());
        child.kill().unwrap();
        while !process.is_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(process.is_gone());
        let own = LauncherProcess::find(std::process::id().cast_signed()).unwrap();
        assert!(
            !own.is_gone()
                && LauncherProcess {
                    start_ticks: own.start_ticks + 1,
                    ..own
                }
                .is_gone()
        );
    }
}
