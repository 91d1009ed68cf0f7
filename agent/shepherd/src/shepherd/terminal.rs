//! The terminal of an interactive job: a pseudo terminal of this host, and the bytes between it and
//! the pipes of the agent.
//!
//! The shepherd holds both ends, so that the session goes on while the agent is away. Nothing here
//! waits: a pipe that is full keeps the terminal from being read, and so the job from writing.

use crate::account::Identity;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::PollFlags;
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::stat::{Mode, fchmod};
use nix::sys::termios::{SpecialCharacterIndices, tcgetattr};
use nix::unistd::{Gid, Uid, fchown, read, write};
use proto::launch::terminal::{TerminalInput, WindowSize};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes that are read at once.
const CHUNK: usize = 4096;

/// Pieces that are passed on before limits and orders are looked at again.
const PIECES: usize = 64;

/// The terminal's side of the shepherd.
pub struct Terminal {
    master: OwnedFd,
    /// What the agent writes, in pieces.
    input: OwnedFd,
    /// What the agent reads.
    output: OwnedFd,
    /// The beginning of a piece whose end has not come.
    unread: Vec<u8>,
    typed: VecDeque<u8>,
    printed: VecDeque<u8>,
    is_input_over: bool,
    last_typed: Option<u8>,
}

/// What one step did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved,
    Blocked,
}

impl Terminal {
    /// Makes a pseudo terminal between two pipes of the agent. Returns the end that the job gets.
    ///
    /// # Errors
    /// Those of openpty(3) and fcntl(2).
    pub fn make(input: OwnedFd, output: OwnedFd, size: WindowSize) -> io::Result<(Self, OwnedFd)> {
        let OpenptyResult { master, slave } = openpty(&winsize(size), None)?;
        for end in [&master, &slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
        for end in [&master, &input, &output] {
            let flags = OFlag::from_bits_retain(fcntl(end, FcntlArg::F_GETFL)?);
            fcntl(end, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        let terminal = Self {
            master,
            input,
            output,
            unread: Vec::new(),
            typed: VecDeque::new(),
            printed: VecDeque::new(),
            is_input_over: false,
            last_typed: None,
        };
        Ok((terminal, slave))
    }

    /// What to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let input = (!self.is_input_over && self.typed.is_empty()).then(|| (self.input.as_fd(), PollFlags::POLLIN));
        let mut of_master = PollFlags::empty();
        of_master.set(PollFlags::POLLIN, self.printed.is_empty());
        of_master.set(PollFlags::POLLOUT, !self.typed.is_empty());
        let master = (!of_master.is_empty()).then(|| (self.master.as_fd(), of_master));
        let output = (!self.printed.is_empty()).then(|| (self.output.as_fd(), PollFlags::POLLOUT));
        input.into_iter().chain(master).chain(output)
    }

    /// Passes on what is there, in both directions.
    pub fn pump(&mut self) {
        for _ in 0..PIECES {
            let steps = [self.take_input(), self.type_bytes(), self.take_output(), self.print()];
            if steps.iter().all(|step| *step == Step::Blocked) {
                return;
            }
        }
    }

    /// Whether everything that the job has written is in the agent's pipe.
    pub fn is_drained(&mut self) -> bool {
        self.pump();
        self.printed.is_empty() && self.take_output() == Step::Blocked
    }

    fn take_input(&mut self) -> Step {
        if self.is_input_over || !self.typed.is_empty() {
            return Step::Blocked;
        }
        let mut chunk = [0; CHUNK];
        match read(&self.input, &mut chunk) {
            Ok(count) if count > 0 => self.unread.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return Step::Blocked,
        }
        loop {
            match TerminalInput::take_from(&mut self.unread) {
                Ok(Some(TerminalInput::Bytes(bytes))) => {
                    self.last_typed = bytes.last().copied().or(self.last_typed);
                    self.typed.extend(bytes);
                }
                Ok(Some(TerminalInput::Window(size))) => self.resize(size),
                Ok(Some(TerminalInput::End)) => self.end_input(),
                Ok(None) => return Step::Moved,
                Err(_) => {
                    self.is_input_over = true;
                    return Step::Moved;
                }
            }
        }
    }

    fn resize(&self, size: WindowSize) {
        // A terminal that has hung up has no size.
        let _ = crate::sys::terminal::set_window_size(&self.master, &winsize(size));
    }

    /// Types the character that ends an input, behind a line that is not ended twice: the first one
    /// ends the line.
    fn end_input(&mut self) {
        let end = tcgetattr(&self.master).map_or(4, |settings| {
            settings.control_chars[SpecialCharacterIndices::VEOF as usize]
        });
        let is_within_line = self.last_typed.is_some_and(|byte| byte != b'\n' && byte != b'\r');
        self.typed
            .extend(std::iter::repeat_n(end, if is_within_line { 2 } else { 1 }));
    }

    fn type_bytes(&mut self) -> Step {
        if self.typed.is_empty() {
            return Step::Blocked;
        }
        match write(&self.master, self.typed.as_slices().0) {
            Ok(count) => {
                self.typed.drain(..count);
                Step::Moved
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Step::Blocked,
            Err(_) => {
                self.typed.clear();
                self.is_input_over = true;
                Step::Blocked
            }
        }
    }

    fn take_output(&mut self) -> Step {
        if !self.printed.is_empty() {
            return Step::Blocked;
        }
        let mut chunk = [0; CHUNK];
        match read(&self.master, &mut chunk) {
            Ok(count) if count > 0 => {
                self.printed.extend(&chunk[..count]);
                Step::Moved
            }
            Ok(_) | Err(_) => Step::Blocked,
        }
    }

    fn print(&mut self) -> Step {
        if self.printed.is_empty() {
            return Step::Blocked;
        }
        match write(&self.output, self.printed.as_slices().0) {
            Ok(count) => {
                self.printed.drain(..count);
                Step::Moved
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Step::Blocked,
            Err(_) => {
                self.printed.clear();
                Step::Moved
            }
        }
    }
}

fn winsize(size: WindowSize) -> Winsize {
    let number = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
    Winsize {
        ws_row: number(size.rows),
        ws_col: number(size.columns),
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Gives the job's end of a terminal to its user, as login(1) does.
///
/// # Errors
/// Those of fchown(2) and fchmod(2).
pub fn give_to(slave: &OwnedFd, identity: &Identity) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    fchown(slave, Some(uid), Some(gid))?;
    fchmod(slave, Mode::S_IRUSR | Mode::S_IWUSR)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pipe2;
    use std::os::fd::AsRawFd;

    /// A terminal, the job's end of it, and the agent's ends of the pipes.
    fn terminal() -> (Terminal, OwnedFd, OwnedFd, OwnedFd) {
        let (input, agent_writes) = pipe2(OFlag::O_CLOEXEC).expect("made");
        let (agent_reads, output) = pipe2(OFlag::O_CLOEXEC).expect("made");
        let (terminal, slave) = Terminal::make(input, output, WindowSize::default()).expect("made");
        (terminal, slave, agent_writes, agent_reads)
    }

    #[test]
    fn typed_bytes_reach_the_job_and_their_echo_the_agent() {
        let (mut terminal, slave, agent_writes, agent_reads) = terminal();
        for piece in [TerminalInput::Bytes(b"hi\r".to_vec()), TerminalInput::End] {
            write(&agent_writes, &piece.encode()).expect("written");
        }
        terminal.pump();
        let mut line = [0; 16];
        assert_eq!(read(&slave, &mut line).map(|count| &line[..count]), Ok(&b"hi\n"[..]));
        let mut end = [0; 16];
        assert_eq!(read(&slave, &mut end), Ok(0), "the end of the input");
        assert!(terminal.is_drained());
        let mut echo = [0; 16];
        assert_eq!(
            read(&agent_reads, &mut echo).map(|count| &echo[..count]),
            Ok(&b"hi\r\n"[..])
        );
    }

    #[test]
    fn a_new_size_of_the_window_is_that_of_the_terminal() {
        let (mut terminal, slave, agent_writes, _agent_reads) = terminal();
        let piece = TerminalInput::Window(WindowSize { rows: 40, columns: 120 });
        write(&agent_writes, &piece.encode()).expect("written");
        terminal.pump();
        let size = crate::sys::terminal::window_size(&slave.as_raw_fd()).expect("a terminal");
        assert_eq!((size.ws_row, size.ws_col), (40, 120));
    }

    #[test]
    fn output_that_nobody_reads_is_held_and_bounded() {
        let (mut terminal, slave, _agent_writes, agent_reads) = terminal();
        let flags = OFlag::from_bits_retain(fcntl(&slave, FcntlArg::F_GETFL).expect("asked"));
        fcntl(&slave, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).expect("set");
        let mut written = 0;
        loop {
            terminal.pump();
            match write(&slave, &[b'x'; 1000]) {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        assert!(!terminal.is_drained() && terminal.printed.len() <= CHUNK);
        let mut found = 0;
        let mut chunk = [0; 65536];
        while found < written {
            found += read(&agent_reads, &mut chunk).expect("read");
            terminal.pump();
        }
        assert_eq!(found, written);
        assert!(terminal.is_drained());
    }
}
