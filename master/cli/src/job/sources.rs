//! Where options come from: request files, script directives and the command line, weakest first. A
//! file that `-@` names stands for its words, wherever it is named.

use super::options::{QSUB, Rule, row_of};
use crate::args::{CommandLine, GivenOption};
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::text;
use proto::wire::client::{Answer, Reply};
use std::io;
use std::path::{Path, PathBuf};

/// How deep `-@` files may name `-@` files.
const MAX_FILE_DEPTH: u32 = 10;

/// What is said before a refusal of what a script holds, as in 8.1.9.
const OF_SCRIPT: &str = "Unable to read script file because of error: ";

/// Which source it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// All request files together.
    RequestFiles,
    /// The directive lines of the script.
    Script,
    /// The command line.
    CommandLine,
}

/// Options that stand on one line. `-soft` and `-scope` end with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// File and line; empty for the command line.
    pub place: String,
    /// The options in their order.
    pub given: Vec<GivenOption>,
}

/// All that one source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which it is.
    pub origin: Origin,
    /// Its lines in their order.
    pub lines: Vec<Line>,
}

impl Source {
    /// The command line.
    pub fn command_line(given: Vec<GivenOption>) -> Self {
        Self {
            origin: Origin::CommandLine,
            lines: vec![Line {
                place: String::new(),
                given,
            }],
        }
    }

    /// The options of all lines.
    pub fn given(&self) -> impl DoubleEndedIterator<Item = &GivenOption> {
        self.lines.iter().flat_map(|line| &line.given)
    }
}

impl Origin {
    /// A refusal with its place, as 8.1.9 words those of this source: the name of the command is
    /// said on the command line alone.
    pub fn refusal(self, fail: Fail, place: &str) -> Fail {
        let instead = match self {
            Origin::CommandLine => return fail,
            Origin::RequestFiles => "",
            Origin::Script => OF_SCRIPT,
        };
        let line = |line: &str| match line.strip_prefix("qsub: ") {
            Some(rest) => format!("{instead}{rest}"),
            None => line.to_owned(),
        };
        let what = fail.diagnostic.what.lines().map(line).collect::<Vec<_>>().join("\n");
        Fail {
            diagnostic: within(
                place,
                Diagnostic {
                    what,
                    ..fail.diagnostic
                },
            ),
            ..fail
        }
    }

    /// Reads one line of a file of options.
    ///
    /// # Errors
    /// An option that `qsub` does not have, a word that is not an option, a NUL byte; a file of
    /// `-@` as [`expand_files`] says.
    pub fn line(self, bytes: &[u8], place: String) -> Result<Line, Fail> {
        match options(bytes).and_then(expand_files) {
            Ok(parsed) => Ok(Line {
                place,
                given: parsed.given,
            }),
            Err(fail) => Err(self.refusal(fail, &place)),
        }
    }
}

/// The options of a line. A word that is not one is refused: it was lost without a word otherwise,
/// as the second half of `-l h_rt=5, mem_free=1G`.
fn options(bytes: &[u8]) -> Result<CommandLine, Fail> {
    if bytes.contains(&0) {
        let refusal = Diagnostic::new(Code::BadSyntax, "qsub: a line of options holds a NUL byte");
        return Err(Fail::new(exit::USAGE, refusal.fix("take it out of the line")));
    }
    let parsed = QSUB.parse(line_words(&text::from_bytes(bytes)))?;
    match parsed.operands.first() {
        None => Ok(parsed),
        Some(word) if word == "-" => Err(Fail::new(
            exit::USAGE,
            Diagnostic::new(Code::BadSyntax, "qsub: invalid option argument \"-\""),
        )),
        Some(word) => {
            let refusal = Diagnostic::new(Code::BadSyntax, "qsub: Unknown option")
                .why(format!("\"{word}\" is not an option"))
                .fix("put a value with blanks between quotation marks; words behind a # are a comment");
            Err(Fail::new(exit::UNKNOWN_OPTION, refusal))
        }
    }
}

/// Whether an operand stands for a script on standard input. Words behind it are arguments of the
/// script.
pub fn is_standard_input(word: &str) -> bool {
    word == "-" || word == "--"
}

/// The words of one line, which a blank parts unless it is between two quotation marks of a kind. A
/// word that begins with `#` begins a comment. A backslash is a character like others, as in 8.1.9;
/// one that stands alone at the end of the line is left out. An unclosed quotation mark reaches to
/// the end of the line.
pub fn line_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.trim_end_matches(['\r', '\n']).chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.filter(|word| word != "\\" || quote.is_some()));
    words
}

/// The command line with every `-@ FILE` replaced by the options of the file.
///
/// # Errors
/// A file that cannot be read, or files that name each other without end.
pub fn expand_files(parsed: CommandLine) -> Result<CommandLine, Fail> {
    expand(parsed, 0)
}

fn expand(parsed: CommandLine, depth: u32) -> Result<CommandLine, Fail> {
    let mut whole = CommandLine {
        operands: parsed.operands,
        ..CommandLine::default()
    };
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
        let content = std::fs::read(text::to_os(file)).map_err(|error| unreadable(file, &error))?;
        for (line, place) in lines(&content, file) {
            let inner = options(line)
                .and_then(|parsed| expand(parsed, depth + 1))
                .map_err(|fail| placed(fail, &place))?;
            whole.given.extend(inner.given);
        }
    }
    Ok(whole)
}

/// The lines of a file with their places.
fn lines<'a>(content: &'a [u8], file: &'a str) -> impl Iterator<Item = (&'a [u8], String)> {
    content
        .split(|byte| *byte == b'\n')
        .enumerate()
        .map(move |(index, line)| (line, format!("{file} line {}", index + 1)))
}

fn placed(fail: Fail, place: &str) -> Fail {
    let place = if fail.diagnostic.place.is_empty() {
        place.to_owned()
    } else {
        fail.diagnostic.place
    };
    Fail {
        diagnostic: Diagnostic {
            place,
            ..fail.diagnostic
        },
        ..fail
    }
}

/// A refusal of something in a line.
fn within(line: &str, refusal: Diagnostic) -> Diagnostic {
    let place = match refusal.place.as_str() {
        "" => line.to_owned(),
        within => format!("{line}: {within}"),
    };
    Diagnostic { place, ..refusal }
}

/// What the master says of a job, with the file and line of each option that did not come from the
/// command line.
pub fn with_lines(mut reply: Reply, sources: &[Source]) -> Reply {
    for answer in &mut reply.answers {
        let (Answer::Refused(said) | Answer::Warning(said)) = answer else {
            continue;
        };
        if let Some(line) = line_of(sources, &said.place) {
            *said = within(line, said.clone());
        }
    }
    reply
}

/// The file and line where an option stands. `place` is the option, perhaps with a part of its
/// value, and perhaps behind another option. `None` if the command line has it, or several lines
/// may be meant.
fn line_of<'a>(sources: &'a [Source], place: &str) -> Option<&'a str> {
    let last = place.rfind(" -").map_or(place, |at| &place[at + 1..]);
    let (name, part) = last.split_once(' ').unwrap_or((last, ""));
    let lines = sources.iter().rev().flat_map(|source| source.lines.iter().rev());
    let having: Vec<(&Line, &GivenOption)> = lines
        .flat_map(|line| line.given.iter().rev().map(move |given| (line, given)))
        .collect();
    let uses: Vec<&(&Line, &GivenOption)> = having.iter().filter(|(_, given)| given.name == name).collect();
    let replaces =
        |given: &GivenOption| row_of(name, !given.values.is_empty()).is_some_and(|row| row.rule == Rule::Last);
    let meant = match uses[..] {
        [] => None,
        [only] => Some(only),
        [last, ..] if replaces(last.1) => Some(last),
        _ => uses
            .iter()
            .find(|(_, given)| given.values.iter().any(|value| names(value, part)))
            .copied(),
    };
    meant
        .map(|(line, _)| line.place.as_str())
        .filter(|line| !line.is_empty())
}

/// Whether a list has a part, with its value or without.
fn names(list: &str, part: &str) -> bool {
    let is_meant = |entry: &str| entry == part || entry.split('=').next() == Some(part);
    list.split(',').any(|entry| is_meant(entry.trim()))
}

fn unreadable(file: &str, error: &io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, format!("{OF_SCRIPT}error opening {file}"));
    Fail::new(
        exit::SCRIPT_UNREADABLE,
        refusal.why(error.to_string()).fix("name a readable file after -@"),
    )
}

/// Options of the request files: of the cell, of the user's home, of the working directory.
///
/// # Errors
/// A file that is there and cannot be read, or a line of one, as [`Origin::line`].
pub fn request_files(cell_common: &Path) -> Result<Source, Fail> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let mut files = vec![cell_common.join("sge_request")];
    files.extend([home, here].into_iter().flatten().map(|dir| dir.join(".sge_request")));
    files.dedup();
    let mut source = Source {
        origin: Origin::RequestFiles,
        lines: Vec::new(),
    };
    for file in files {
        let name = text::from_os(file.as_os_str());
        let content = match std::fs::read(&file) {
            Ok(content) => content,
            Err(error) if is_absent(&error) => continue,
            Err(error) => {
                let refusal = Diagnostic::new(Code::SystemRefused, "qsub: cannot read a file of default options");
                return Err(Fail::new(
                    exit::SCRIPT_UNREADABLE,
                    refusal.at(name).why(error.to_string()),
                ));
            }
        };
        for (line, place) in lines(&content, &name) {
            source.lines.push(Origin::RequestFiles.line(line, place)?);
        }
    }
    Ok(source)
}

/// Whether nobody has put a file there.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The options in the directive lines of a script; an empty prefix means that there are none.
///
/// # Errors
/// As [`Origin::line`].
pub fn directives(content: &[u8], prefix: &str, path: &str) -> Result<Source, Fail> {
    let mut source = Source {
        origin: Origin::Script,
        lines: Vec::new(),
    };
    if prefix.is_empty() {
        return Ok(source);
    }
    let prefix = text::to_bytes(prefix);
    for (line, place) in lines(content, path) {
        if let Some(rest) = line.strip_prefix(prefix.as_ref()) {
            source.lines.push(Origin::Script.line(rest, place)?);
        }
    }
    Ok(source)
}

/// Everything behind the last `-clear`: what follows it in its source, and the sources after that.
pub fn after_clear(mut sources: Vec<Source>) -> Vec<Source> {
    let clear = |line: &Line| line.given.iter().rposition(|given| given.name == "-clear");
    let in_source = |source: &Source| {
        source
            .lines
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, line)| Some((index, clear(line)?)))
    };
    let last = sources
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, source)| Some((index, in_source(source)?)));
    if let Some((source, (line, option))) = last {
        sources.drain(..source);
        sources[0].lines.drain(..line);
        sources[0].lines[0].given.drain(..=option);
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_quotes_and_comments() {
        for (line, words) in [
            (
                r#" -N 'a b' -v X="y z",W=q -l ''"#,
                &["-N", "a b", "-v", "X=y z,W=q", "-l", ""][..],
            ),
            (r"-v RE=a\.b,P=C:\x", &["-v", r"RE=a\.b,P=C:\x"]),
            ("-A x # -p -5", &["-A", "x"]),
            ("# -A x", &[]),
            ("-v A=x#y -N \"a # b\"", &["-v", "A=x#y", "-N", "a # b"]),
            ("-p -5 \\\r", &["-p", "-5"]),
            ("-A 'open # word", &["-A", "open # word"]),
            ("-v \"A=it's\"", &["-v", "A=it's"]),
        ] {
            assert_eq!(line_words(line), words, "{line}");
        }
    }

    #[test]
    fn directives_are_options_with_a_place() {
        let script = b"#!/bin/sh\n#$ -N dir -j y\n#$-l h_rt=5\necho\n#% -N no\n";
        let source = directives(script, "#$", "job.sh").unwrap();
        let names = |line: &Line| line.given.iter().map(|given| given.name).collect::<Vec<_>>();
        assert_eq!(
            source.lines.iter().map(names).collect::<Vec<_>>(),
            [vec!["-N", "-j"], vec!["-l"]]
        );
        assert!(directives(script, "", "job.sh").unwrap().lines.is_empty());
    }

    #[test]
    fn what_a_script_gets_wrong_is_said_with_its_file_and_line() {
        for (line, exit, what) in [
            ("-nosuchopt", 2, "invalid option argument \"-nosuchopt\""),
            ("-N", 2, "-N option must have argument"),
            ("-l h_rt=5, mem_free=1G", 5, "Unknown option"),
            ("-N n sleep", 5, "Unknown option"),
            ("-", 2, "invalid option argument \"-\""),
            ("-N a\0b", 2, "a line of options holds a NUL byte"),
        ] {
            let script = format!("#!/bin/sh\n#$ {line}\n");
            let fail = directives(script.as_bytes(), "#$", "dir/job.sh").unwrap_err();
            assert_eq!(
                (fail.exit, fail.diagnostic.what),
                (exit, format!("{OF_SCRIPT}{what}")),
                "{line}"
            );
            assert_eq!(fail.diagnostic.place, "dir/job.sh line 2");
        }
    }

    #[test]
    fn what_the_master_says_of_a_script_has_its_file_and_line() {
        let script = b"#$ -l lic=1,h_rt=zzz -p 5\n#$ -l mem=1G\n#$ -p 6 -P a\n#$ -scope slave -l x=1\n\
            #$ -l hostname=* -hold_jid a,b\n#$ -l h=nohost -hold_jid 9x\n";
        let line = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            Source::command_line(QSUB.parse(words.collect()).unwrap().given)
        };
        let sources = [
            directives(script, "#$", "job.sh").unwrap(),
            line(&["-P", "b", "-l", "disk=1"]),
        ];
        for (place, shown) in [
            ("-l h_rt=zzz", "job.sh line 1: -l h_rt=zzz"),
            ("-l lic", "job.sh line 1: -l lic"),
            ("-l mem=1G", "job.sh line 2: -l mem=1G"),
            ("-scope slave -l x=1", "job.sh line 4: -scope slave -l x=1"),
            ("-p", "job.sh line 3: -p"),
            ("-P", "-P"),
            ("-l disk=1", "-l disk=1"),
            ("-l other", "-l other"),
            ("-l h=nohost", "job.sh line 6: -l h=nohost"),
            ("-l hostname", "job.sh line 5: -l hostname"),
            ("-hold_jid b", "job.sh line 5: -hold_jid b"),
            ("-hold_jid 9x", "job.sh line 6: -hold_jid 9x"),
            ("-N", "-N"),
            ("jobs_per_user of etc/master.toml", "jobs_per_user of etc/master.toml"),
            ("", ""),
        ] {
            let said = Diagnostic::new(Code::BadValue, "no").at(place);
            for answer in [Answer::Refused(said.clone()), Answer::Warning(said)] {
                let reply = with_lines(
                    Reply {
                        answers: vec![answer],
                        ..Reply::default()
                    },
                    &sources,
                );
                let (Answer::Refused(said) | Answer::Warning(said)) = &reply.answers[0] else {
                    unreachable!()
                };
                assert_eq!(said.place, shown);
            }
        }
    }

    #[test]
    fn bytes_of_a_directive_are_kept() {
        let source = directives(b"#$ -v A=\xff\xe9\n", "#$", "job.sh").unwrap();
        let value = &source.lines[0].given[0].values[0];
        assert_eq!(text::to_bytes(value).as_ref(), b"A=\xff\xe9");
    }

    #[test]
    fn clear_drops_what_came_before() {
        let source = |lines: &[&[&'static str]]| Source {
            origin: Origin::Script,
            lines: lines
                .iter()
                .map(|names| Line {
                    place: String::new(),
                    given: given(names),
                })
                .collect(),
        };
        fn given(names: &[&'static str]) -> Vec<GivenOption> {
            names.iter().map(|name| GivenOption { name, values: vec![] }).collect()
        }
        let cleared = |sources: &[Source]| -> Vec<Vec<&'static str>> {
            let sources = after_clear(sources.to_vec());
            sources
                .iter()
                .map(|source| source.given().map(|given| given.name).collect())
                .collect()
        };
        assert_eq!(cleared(&[source(&[&["-h", "-clear", "-V"]])]), [["-V"]]);
        let three = [
            source(&[&["-clear"]]),
            source(&[&["-h"], &["-cwd", "-clear", "-h"], &["-R"]]),
            source(&[&["-V"]]),
        ];
        assert_eq!(cleared(&three), [vec!["-h", "-R"], vec!["-V"]]);
        assert_eq!(cleared(&[source(&[&["-h"]]), source(&[&["-V"]])]), [["-h"], ["-V"]]);
    }
}
