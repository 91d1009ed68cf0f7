//! The terminal of the person who calls `qrsh`: raw while the job has a terminal of its own, and as
//! it was afterwards.

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use proto::launch::terminal::WindowSize;
use std::io::{IsTerminal, stdin, stdout};

/// Settings that are put back when this is dropped.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Makes the terminal of standard input raw; `None` if it is not a terminal.
    pub fn enter() -> Option<Self> {
        if !stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(stdin(), SetArg::TCSADRAIN, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

/// The size of the window of standard input or, if that is not a terminal, of standard output.
pub fn window_size() -> Option<WindowSize> {
    let size = rustix::termios::tcgetwinsize(stdin())
        .or_else(|_| rustix::termios::tcgetwinsize(stdout()))
        .ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| WindowSize {
        rows: u32::from(size.ws_row),
        columns: u32::from(size.ws_col),
    })
}

/// Whether standard input is a terminal.
pub fn is_terminal() -> bool {
    stdin().is_terminal()
}
