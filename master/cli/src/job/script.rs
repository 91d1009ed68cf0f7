//! The script of a job: reading it, and the options in its directive lines.

use super::options::QSUB;
use super::sources::line_words;
use crate::args::Given;
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::launch::MAX_SCRIPT_BYTES;
use std::io::Read;

/// The prefix of directive lines where `-C` names none.
pub const DIRECTIVE_PREFIX: &str = "#$";

/// Reads a script from a file.
///
/// # Errors
/// A file that is missing (exit code 14), unreadable or too large (4).
pub fn read_file(path: &str) -> Result<Vec<u8>, Fail> {
    let file = std::fs::File::open(path).map_err(|error| {
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
        let refusal =
            Diagnostic::new(Code::JobRejected, "Unable to read script file because of error: no input read from stdin");
        return Err(Fail::new(exit::SCRIPT_UNREADABLE, refusal.fix("name a script, or pipe one into qsub")));
    }
    Ok(content)
}

fn read(source: impl Read, place: &str) -> Result<Vec<u8>, Fail> {
    let refuse = |why: String| {
        let refusal =
            Diagnostic::new(Code::SystemRefused, "Unable to read script file because of error: cannot read it");
        Fail::new(exit::SCRIPT_UNREADABLE, refusal.at(place).why(why))
    };
    let mut content = Vec::new();
    source.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut content).map_err(|error| refuse(os_words(&error)))?;
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

/// The options in the directive lines of a script, each line a source of its own; an empty prefix means that there are none.
///
/// # Errors
/// A line with an option that `qsub` does not have, with its number.
pub fn directives(content: &[u8], prefix: &str) -> Result<Vec<Vec<Given>>, Fail> {
    let mut sources = Vec::new();
    if prefix.is_empty() {
        return Ok(sources);
    }
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let Some(rest) = line.strip_prefix(prefix.as_bytes()) else { continue };
        let words = line_words(&String::from_utf8_lossy(rest));
        let parsed = QSUB.read(words).map_err(|refusal| bad_directive(refusal, index + 1))?;
        sources.push(parsed.given);
    }
    Ok(sources)
}

fn bad_directive(refusal: Diagnostic, line: usize) -> Fail {
    let what = refusal.what.strip_prefix("qsub: ").unwrap_or(&refusal.what).to_owned();
    let what = format!("Unable to read script file because of error: {what}");
    let place = format!("line {line} of the script");
    Fail::new(exit::USAGE, Diagnostic { what, ..refusal }.at(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_options_with_a_place() {
        let script = b"#!/bin/sh\n#$ -N dir -j y\n#$-l h_rt=5\necho\n#% -N no\n";
        let lines = directives(script, "#$").unwrap();
        let names = |line: &Vec<Given>| line.iter().map(|given| given.name).collect::<Vec<_>>();
        assert_eq!(lines.iter().map(names).collect::<Vec<_>>(), [vec!["-N", "-j"], vec!["-l"]]);
        assert!(directives(script, "").unwrap().is_empty());
        let fail = directives(b"#!/bin/sh\n#$ -nosuchopt\n", "#$").unwrap_err();
        assert_eq!(fail.exit, 2);
        assert_eq!(
            fail.diagnostic.what,
            "Unable to read script file because of error: invalid option argument \"-nosuchopt\""
        );
        assert_eq!(fail.diagnostic.place, "line 2 of the script");
    }
}
