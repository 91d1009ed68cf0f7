//! Where options come from: request files, `-@` files, script directives and the command line, weakest first.

use super::options::QSUB;
use crate::args::{Given, Parsed};
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use std::path::{Path, PathBuf};

/// How deep `-@` files may name `-@` files.
const MAX_FILE_DEPTH: u32 = 10;

/// Splits text into words as a shell would, for quotes and backslashes only; `#` at the start of a line begins a comment.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        words.extend(line_words(line));
    }
    words
}

/// The words of one line. An unclosed quote reaches to the end of the line.
pub fn line_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.trim_end_matches('\r').chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The command line with every `-@ FILE` replaced by the words of the file.
///
/// # Errors
/// A file that cannot be read, or files that name each other without end.
pub fn expand_files(parsed: Parsed) -> Result<Parsed, Fail> {
    expand(parsed, 0)
}

fn expand(parsed: Parsed, depth: u32) -> Result<Parsed, Fail> {
    let mut whole = Parsed { operands: parsed.operands, ..Parsed::default() };
    for given in parsed.given {
        if given.name != "-@" {
            whole.given.push(given);
            continue;
        }
        let file = &given.values[0];
        if depth >= MAX_FILE_DEPTH {
            let refusal = Diagnostic::new(
                Code::BadSyntax,
                format!("qsub: option files are nested more than {MAX_FILE_DEPTH} deep"),
            );
            return Err(Fail::new(exit::USAGE, refusal.at(file)));
        }
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        let inner = expand(QSUB.read(words(&text)).map_err(|refusal| refusal.at(file))?, depth + 1)?;
        whole.given.extend(inner.given);
        if whole.operands.is_empty() {
            whole.operands = inner.operands;
        }
    }
    Ok(whole)
}

fn unreadable(file: &str, error: &std::io::Error) -> Fail {
    let refusal = Diagnostic::new(
        Code::SystemRefused,
        format!("Unable to read script file because of error: error opening {file}"),
    );
    Fail::new(exit::SCRIPT_UNREADABLE, refusal.why(error.to_string()).fix("name a readable file after -@"))
}

/// Options of the request files, each line a source of its own, weakest first: of the cell, of the user's home, of the working directory.
///
/// # Errors
/// A file with an option that `qsub` does not have, or that does not parse.
pub fn request_files(cell_common: &Path) -> Result<Vec<Vec<Given>>, Fail> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let mut files = vec![cell_common.join("sge_request")];
    files.extend([home, here].into_iter().flatten().map(|dir| dir.join(".sge_request")));
    files.dedup();
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#')) {
            let place = || format!("{} line {}", file.display(), index + 1);
            let parsed = QSUB.read(line_words(line)).map_err(|refusal| refusal.at(place()))?;
            sources.push(expand_files(parsed)?.given);
        }
    }
    Ok(sources)
}

/// Everything behind the last `-clear`: of its source what follows it, and the sources after that.
pub fn after_clear(mut sources: Vec<Vec<Given>>) -> Vec<Vec<Given>> {
    let clear = |source: &Vec<Given>| source.iter().rposition(|given| given.name == "-clear");
    let last = sources.iter().enumerate().rev().find_map(|(index, source)| Some((index, clear(source)?)));
    if let Some((source, option)) = last {
        sources.drain(..source);
        sources[0].drain(..=option);
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_quotes_and_backslashes() {
        assert_eq!(line_words(r#" -N 'a b' -v X="y z",W=\"q -l ''"#), ["-N", "a b", "-v", "X=y z,W=\"q", "-l", ""]);
        assert_eq!(words("# comment\n-N x\n\n  -j y\r\n"), ["-N", "x", "-j", "y"]);
    }

    #[test]
    fn clear_drops_what_came_before() {
        let given = |names: &[&'static str]| -> Vec<Given> {
            names.iter().map(|name| Given { name, values: vec![] }).collect()
        };
        let cleared = |sources: &[&[&'static str]]| after_clear(sources.iter().map(|source| given(source)).collect());
        assert_eq!(cleared(&[&["-h", "-clear", "-V"]]), [given(&["-V"])]);
        assert_eq!(cleared(&[&["-clear"], &["-h", "-clear"], &["-V"]]), [given(&[]), given(&["-V"])]);
        assert_eq!(cleared(&[&["-h"], &["-V"]]), [given(&["-h"]), given(&["-V"])]);
    }
}
