//! The script of a job.

use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::launch::MAX_SCRIPT_BYTES;
use proto::text;
use std::io::Read;

/// The prefix of directive lines where `-C` names none.
pub const DIRECTIVE_PREFIX: &str = "#$";

/// Reads a script from a file.
///
/// # Errors
/// A file that is missing (exit code 14), unreadable or too large (4).
pub fn read_file(path: &str) -> Result<Vec<u8>, Fail> {
    let file = std::fs::File::open(text::to_os(path)).map_err(|error| {
        let reason = os_words(&error);
        let what = format!("Unable to read script file because of error: error opening {path}: {reason}");
        let refusal = Diagnostic::new(Code::SystemRefused, what).fix("name an existing script; for a program use -b y");
        Fail::new(exit::SCRIPT_MISSING, refusal)
    })?;
    read(file, path)
}

/// Reads a script from standard input.
///
/// # Errors
/// An empty input (exit code 4), or one that cannot be read or is too large.
pub fn read_stdin() -> Result<Vec<u8>, Fail> {
    let content = read(std::io::stdin().lock(), "standard input")?;
    if content.is_empty() {
        let refusal = Diagnostic::new(
            Code::JobRejected,
            "Unable to read script file because of error: no input read from stdin",
        );
        return Err(Fail::new(
            exit::SCRIPT_UNREADABLE,
            refusal.fix("name a script, or pipe one into qsub"),
        ));
    }
    Ok(content)
}

fn read(source: impl Read, place: &str) -> Result<Vec<u8>, Fail> {
    let refuse = |why: String| {
        let refusal = Diagnostic::new(
            Code::SystemRefused,
            "Unable to read script file because of error: cannot read it",
        );
        Fail::new(exit::SCRIPT_UNREADABLE, refusal.at(place).why(why))
    };
    let mut content = Vec::new();
    source
        .take(MAX_SCRIPT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| refuse(os_words(&error)))?;
    if content.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(refuse(format!("it is larger than {} MiB", MAX_SCRIPT_BYTES >> 20)));
    }
    Ok(content)
}

/// The system's words for an error, without Rust's `(os error N)`.
pub fn os_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
