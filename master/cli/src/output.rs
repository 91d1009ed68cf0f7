//! Printing: data on stdout, everything else on stderr, a broken pipe is not an error.
//!
//! Everything that is printed passes [`escape::text`] here. Values of others have lost their line
//! breaks before, where they come in ([`crate::client`]), because only there a value and the lines
//! around it are apart.

pub mod escape;
pub mod json;
pub mod time;
pub mod value;
pub mod xml;

use crate::exit;
use proto::diagnostic::Diagnostic;
use proto::text;
use proto::wire::client::Answer;
use std::io::Write;

/// Writes data to stdout at once. A reader that went away (`| head`) is no error.
pub fn data(text: &str) {
    // Nothing is left to tell a reader that is gone.
    let _ = try_data(text);
}

/// Writes data to stdout at once.
///
/// # Errors
/// If nobody reads it any more.
pub fn try_data(text: &str) -> std::io::Result<()> {
    raw(&escape::text(text))
}

/// Writes to stdout what is not for people: text for a shell, or what is meant to move the cursor.
///
/// # Errors
/// If nobody reads it any more.
pub fn raw(shown: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(&text::to_bytes(shown)).and_then(|()| out.flush())
}

/// Writes one line that is not data to stderr.
pub fn note(line: &str) {
    let mut shown = text::to_bytes(&escape::text(line)).into_owned();
    shown.push(b'\n');
    let _ = std::io::stderr().lock().write_all(&shown);
}

/// Writes a refusal or warning with its details to stderr.
pub fn diagnostic(diagnostic: &Diagnostic) {
    note(&diagnostic.what);
    for line in diagnostic.detail_lines() {
        note(&line);
    }
}

/// Prints answers in order: what was done on stdout, the rest on stderr. Returns the exit code of
/// the last refusal, or 0.
pub fn answers(answers: &[Answer]) -> u8 {
    let mut code = exit::OK;
    for answer in answers {
        match answer {
            Answer::Done(text) => data(&format!("{text}\n")),
            Answer::Warning(warning) => diagnostic(warning),
            Answer::Refused(refusal) => {
                diagnostic(refusal);
                code = refusal.code.exit_code();
            }
        }
    }
    code
}
