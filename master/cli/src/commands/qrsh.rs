//! Interactive jobs (`qrsh`, `qlogin`, `qsh`), and `qrsh -inherit`.

mod escape;
mod inherit;
mod local_terminal;
mod options;
mod printer;
mod session;
mod specification;
mod talk;
mod xterm;

use crate::commands::Outcome;
use options::SessionCommand;
pub use options::{QLOGIN, QRSH, QSH};

/// Runs `qrsh`.
pub fn run(words: Vec<String>) -> Outcome {
    if options::is_inherit(&words) {
        return inherit::run(words);
    }
    session::run(SessionCommand::Qrsh, words)
}

/// Runs `qlogin`.
pub fn run_qlogin(words: Vec<String>) -> Outcome {
    session::run(SessionCommand::Qlogin, words)
}

/// Runs `qsh`.
pub fn run_qsh(words: Vec<String>) -> Outcome {
    xterm::run(words)
}
