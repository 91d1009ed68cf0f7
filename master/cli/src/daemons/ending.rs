//! Whether a process that still exists is at its end already.
//!
//! The kernel frees the memory of a process before it closes its files: for that time a daemon that
//! was killed holds its lock and does nothing any more. `proc_pid_stat(5)` and `proc_pid_status(5)`
//! tell.

use nix::unistd::Pid;

/// `PF_EXITING` of the kernel: the thread is in `exit(2)`.
const EXITING: u64 = 0x4;

/// SIGKILL in a set of signals, where signal 1 is bit 0.
const KILL: u64 = 1 << (nix::libc::SIGKILL - 1);

/// What the kernel keeps of the name of a program.
const NAME_LENGTH: usize = 15;

/// Whether the process `pid` is an instance of `program` that is at its end. A process of another
/// program, or none at all, says nothing of the daemon: its pid file is older than the daemon.
pub fn is_ending(pid: Pid, program: &str) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, status) = (read("stat"), read("status"));
    is_of(&stat, program) && (has_exited(&stat) || is_killed(&status))
}

/// Whether a process runs a program. The name may hold blanks and brackets; the last bracket closes
/// it.
pub fn is_of(stat: &str, program: &str) -> bool {
    let name = stat
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'))
        .map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name == program.get(..NAME_LENGTH).unwrap_or(program))
}

/// By `/proc/PID/stat`: a zombie, dead, or in `exit(2)`.
fn has_exited(stat: &str) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_whitespace();
    let state = fields.next();
    // Of ppid, pgrp, session, tty_nr, tpgid and flags the last.
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    matches!(state, Some("Z" | "X" | "x")) || flags.is_some_and(|flags| flags & EXITING != 0)
}

/// By `/proc/PID/status`: SIGKILL has been sent and cannot be declined, or a core is being written.
fn is_killed(status: &str) -> bool {
    let value = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    let is_sent = |name: &str| {
        let set = value(name).and_then(|set| u64::from_str_radix(set, 16).ok());
        set.is_some_and(|set| set & KILL != 0)
    };
    is_sent("ShdPnd") || is_sent("SigPnd") || value("CoreDumping") == Some("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel writes it, in front of the state and behind the flags.
    fn stat(state: &str, flags: u64) -> String {
        format!("6860 (gridwright-mast) {state} 6847 6847 4660 0 -1 {flags} 100 0 0 0 0 0 0 0 20 0 1 0 95626 3133440\n")
    }

    #[test]
    fn a_process_has_exited_by_its_state_or_its_flags() {
        let cases = [
            (stat("S", 4_194_304), false),
            (stat("R", 4_194_304 | EXITING), true),
            (stat("Z", 4_194_304), true),
            (stat("X", 0), true),
            ("12 (a) Z (b) S 1 1 1 0 -1 4194304 0\n".to_owned(), false),
            ("12 (a) S (b) Z 1 1 1 0 -1 4194304 0\n".to_owned(), true),
            ("12 (a) S 1 1 1 0 -1 many 0\n".to_owned(), false),
            ("12 (a) S".to_owned(), false),
            (String::new(), false),
        ];
        for (stat, expected) in cases {
            assert_eq!(has_exited(&stat), expected, "{stat}");
        }
    }

    #[test]
    fn a_process_is_killed_once_the_signal_is_sent() {
        let cases = [
            (
                "CoreDumping:\t0\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n",
                false,
            ),
            (
                "CoreDumping:\t0\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n",
                true,
            ),
            ("SigPnd:\t0000000000004100\nShdPnd:\t0000000000000000\n", true),
            (
                "SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\nSigBlk:\t0000000000000100\n",
                false,
            ),
            ("CoreDumping:\t1\nSigPnd:\t0000000000000000\n", true),
            ("ShdPnd:\tmany\n", false),
            ("", false),
        ];
        for (status, expected) in cases {
            assert_eq!(is_killed(status), expected, "{status}");
        }
    }

    #[test]
    fn a_process_of_another_program_is_not_the_daemon() {
        let cases = [
            (stat("S", 0), "gridwright-master", true),
            (stat("S", 0), "gridwright-agent", false),
            ("7 (up) S 1\n".to_owned(), "up", true),
            ("7 (a (b) c) S 1\n".to_owned(), "a (b) c", true),
            (String::new(), "", false),
        ];
        for (stat, program, expected) in cases {
            assert_eq!(is_of(&stat, program), expected, "{stat}");
        }
    }

    #[test]
    fn a_child_that_was_killed_and_not_waited_for_is_at_its_end() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(!is_ending(pid, "sleep"));
        child.kill().unwrap();
        assert!(is_ending(pid, "sleep") && !is_ending(pid, "gridwright-master"));
        child.wait().unwrap();
        assert!(!is_ending(pid, "sleep"));
    }
}
