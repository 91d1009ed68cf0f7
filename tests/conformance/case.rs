//! The captures: one text file a folder, with the steps that bring about the state a case assumes.
//!
//! `# NAME [USER]` begins a case, `$ COMMAND`, `= EXIT CODE`, `> LINE` of stdout, `! LINE` of
//! stderr are what was recorded, and `@ design|missing|later: REASON` says why it does not agree.
//! `~ COMMAND` is run instead where the recorded one names a number or a time of its cell; `{port}`
//! and `{dir}` are those of ours. `% [USER:] COMMAND` prepares. `* every digit`: priorities,
//! urgencies, tickets and shares of the cases from there on are compared as they are. Other lines
//! say what they are.
//!
//! What we answer where an answer differs by design is in `captures/ours`, one file a folder in the
//! same form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One step of a folder.
#[derive(Debug)]
pub enum Step {
    /// A command that has to succeed, before the next case.
    Prepare {
        /// Who runs it; root if nobody is named.
        user: Option<String>,
        /// For the shell.
        command: String,
    },
    /// A recorded case.
    Case(Case),
}

/// What a case is expected to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as recorded.
    Agrees,
    /// Answer otherwise, on purpose.
    Design(String),
    /// Not run: its state cannot be had, or it does not work yet.
    Missing(String),
    /// Not run: another issue brings it.
    Later(String),
}

/// What came back from a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The exit code.
    pub exit: i32,
    /// Lines of stdout.
    pub stdout: Vec<String>,
    /// Lines of stderr.
    pub stderr: Vec<String>,
}

/// A recorded case.
#[derive(Debug)]
pub struct Case {
    /// Its name in the folder.
    pub name: String,
    /// Who ran it; root if nobody is named.
    pub user: Option<String>,
    /// For the shell.
    pub command: String,
    /// What is run here, where that is not the recorded command.
    pub instead: Option<String>,
    /// What came back.
    pub recorded: Answer,
    /// What we expect of it.
    pub verdict: Verdict,
    /// Whether every digit of it counts.
    pub is_exact: bool,
}

/// Where the captures of a folder are, or what we answer otherwise (`ours/FOLDER`).
pub fn path(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("captures")
        .join(format!("{folder}.txt"))
}

/// What we answer to the cases of a folder that differ by design.
pub fn ours(folder: &str) -> BTreeMap<String, Answer> {
    let folder = format!("ours/{folder}");
    if !path(&folder).exists() {
        return BTreeMap::new();
    }
    let cases = read(&folder).into_iter().filter_map(|step| match step {
        Step::Case(case) => Some((case.name, case.recorded)),
        Step::Prepare { .. } => None,
    });
    cases.collect()
}

impl Case {
    /// Why it does not agree; empty where it does.
    pub fn reason(&self) -> &str {
        match &self.verdict {
            Verdict::Agrees => "",
            Verdict::Design(reason) | Verdict::Missing(reason) | Verdict::Later(reason) => reason,
        }
    }
}

/// The steps of a folder, in order.
pub fn read(folder: &str) -> Vec<Step> {
    let path = path(folder);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut steps, mut is_exact) = (Vec::new(), false);
    for line in text.lines() {
        let mut chars = line.chars();
        let kind = chars.next();
        let rest = chars.as_str();
        match kind {
            Some('#') => steps.push(Step::Case(begin(rest.trim(), is_exact))),
            Some('*') => is_exact = rest.trim() == "every digit",
            Some('%') => steps.push(preparation(rest)),
            Some('$' | '~' | '=' | '>' | '!' | '@') => match steps.last_mut() {
                Some(Step::Case(case)) => add(case, kind.unwrap_or_default(), rest.strip_prefix(' ').unwrap_or(rest)),
                Some(Step::Prepare { .. }) | None => panic!("{folder}: a line outside of cases: {line}"),
            },
            Some(_) | None => {}
        }
    }
    steps
}

fn begin(head: &str, is_exact: bool) -> Case {
    let mut words = head.split_whitespace();
    let name = words.next().expect("a case has a name").to_owned();
    let user = words.next().map(str::to_owned);
    let (command, recorded) = (String::new(), Answer::default());
    Case {
        name,
        user,
        command,
        instead: None,
        recorded,
        verdict: Verdict::Agrees,
        is_exact,
    }
}

fn add(case: &mut Case, kind: char, text: &str) {
    match kind {
        '$' => text.clone_into(&mut case.command),
        '~' => case.instead = Some(text.to_owned()),
        '=' => {
            case.recorded.exit = text
                .parse()
                .unwrap_or_else(|_| panic!("{}: no exit code: {text}", case.name))
        }
        '>' => case.recorded.stdout.push(text.to_owned()),
        '!' => case.recorded.stderr.push(text.to_owned()),
        _ => case.verdict = verdict(text),
    }
}

fn verdict(text: &str) -> Verdict {
    let (kind, reason) = text
        .split_once(": ")
        .unwrap_or_else(|| panic!("a verdict has a reason: {text}"));
    match kind {
        "design" => Verdict::Design(reason.to_owned()),
        "missing" => Verdict::Missing(reason.to_owned()),
        "later" => Verdict::Later(reason.to_owned()),
        _ => panic!("unknown verdict {kind}"),
    }
}

fn preparation(text: &str) -> Step {
    let text = text.trim_start();
    let named = text
        .split_once(": ")
        .filter(|(user, _)| user.len() == 2 && user.starts_with('u'));
    let (user, command) = named.map_or((None, text), |(user, command)| (Some(user.to_owned()), command));
    Step::Prepare {
        user,
        command: command.to_owned(),
    }
}
