//! The commands that root runs for the queues and parallel environments of a host, as the host's own file lists them.

/// The most bytes of a list that a launcher sends to the master, with one for the end of each line.
pub const MAX_SENT_BYTES: usize = 32 << 10;

/// Whether a list is short enough to be sent to the master, and to be kept there.
pub fn is_sendable(lines: &[String]) -> bool {
    lines.iter().map(|line| line.len() + 1).sum::<usize>() <= MAX_SENT_BYTES
}
