//! The commands that root runs for the queues and parallel environments of a host, as the host's
//! own file lists them.
//!
//! A line is a whole command, as the queue or the parallel environment has it behind `root@`: the
//! program and its arguments, pseudo variables (queue_conf(5), sge_pe(5)) among them. The launcher
//! compares word by word, so an agent that was taken over chooses neither the program nor the
//! arguments. A pseudo variable stands for the value that the launcher knows of the task. Where it
//! knows none (`$host`, `$queue`, `$pe`, `$pe_slots`, `$sge_cell`) it takes a plain name, which is
//! no path and no option.
//!
//! A program that is listed alone gets no arguments but numbers and names of the task that the
//! launcher knows for certain.

use super::rules::Refusal;
use proto::launch::{LISTED_OTHERWISE, LaunchDocument, NOT_LISTED};
use proto::root_commands::{CONSTANTS, FILE_STAGING, admits};
use std::collections::BTreeSet;
use std::path::Path;

/// The listed commands, as words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootCommands {
    lines: Vec<Vec<String>>,
}

/// The most bytes of a plain name, as of a host's.
const MAX_PLAIN: usize = 255;

/// Pseudo variables whose value only the agent knows.
const PLAIN: [&str; 5] = ["host", "queue", "pe", "pe_slots", "sge_cell"];

impl RootCommands {
    /// The commands of these lines.
    pub fn new(lines: &[String]) -> Self {
        let words = |line: &String| line.split_ascii_whitespace().map(str::to_owned).collect();
        RootCommands {
            lines: lines.iter().map(words).collect(),
        }
    }

    /// The lines, each with single blanks between its words.
    pub fn lines(&self) -> Vec<String> {
        self.lines.iter().map(|words| words.join(" ")).collect()
    }

    /// Whether a command may run as root for a task whose launcher works in `folder`.
    ///
    /// # Errors
    /// The command is not listed. The text names it and says how to list it. The queue is to blame,
    /// unless the command is a listed one but for the job's name, which its owner chooses.
    pub fn check(&self, command: &str, document: &LaunchDocument, folder: &Path) -> Result<(), Refusal> {
        self.check_facts(command, &TaskFacts::from_document(document, folder))
    }

    fn check_facts(&self, command: &str, facts: &TaskFacts) -> Result<(), Refusal> {
        let given: Vec<&str> = command.split_ascii_whitespace().collect();
        if self.lines.iter().any(|line| is_admitted(line, &given, facts)) {
            return Ok(());
        }
        let program = given.first().copied().unwrap_or_default();
        if self.lines.iter().any(|line| differs_by_name(line, &given, facts)) {
            return Err(Refusal::of_job(format!(
                "root@{command}: root runs no command with this name of a job; choose another one (qalter -N)"
            )));
        }
        if self
            .lines
            .iter()
            .any(|line| line.first().is_some_and(|listed| listed == program))
        {
            return Err(Refusal::of_queue(format!(
                "root@{command}: {LISTED_OTHERWISE}; write the whole command there as the queue or parallel \
                 environment has it, pseudo variables such as $job_id included"
            )));
        }
        Err(Refusal::of_queue(format!("root@{program}: {NOT_LISTED}")))
    }
}

/// The facts about a task that the launcher itself knows.
#[derive(Clone)]
struct TaskFacts {
    variables: [(&'static str, String); 5],
    job_name: String,
    task: String,
}

impl TaskFacts {
    fn from_document(document: &LaunchDocument, folder: &Path) -> Self {
        let root = folder.to_string_lossy().into_owned();
        let host_file = format!("{root}/{}/{}/pe_hostfile", crate::task_dir::TASKS, document.key);
        TaskFacts {
            variables: [
                ("job_id", document.job_number.to_string()),
                ("job_owner", document.account.user.clone()),
                ("pe_hostfile", host_file),
                ("sge_root", root),
                ("processors", "UNDEFINED".to_owned()),
            ],
            job_name: document.job_name.clone(),
            task: document.key.task.to_string(),
        }
    }

    /// The values that a pseudo variable may have; `None` for a text that is none.
    fn values(&self, name: &str) -> Option<Piece> {
        if PLAIN.contains(&name) {
            return Some(Piece::Plain);
        }
        if name == "job_name" {
            return Some(Piece::JobName);
        }
        let value = self
            .variables
            .iter()
            .find(|(variable, _)| *variable == name)
            .map(|(_, value)| vec![value.clone()]);
        let values = value.or_else(|| match name {
            "ja_task_id" => Some(vec![self.task.clone(), "0".to_owned()]),
            _ if name.starts_with(FILE_STAGING) => Some(vec!["\"\"".to_owned(), "0".to_owned()]),
            _ => None,
        });
        values.map(Piece::OneOf)
    }

    /// Whether a program that is listed alone may have this argument. The owner of a job chooses
    /// its name, so that is none.
    fn is_certain(&self, argument: &str) -> bool {
        let is_variable = self.variables.iter().any(|(_, value)| value == argument);
        is_variable || argument == self.task || CONSTANTS.contains(&argument)
    }
}

/// How a command may have the job's name in it, whose words have single blanks between them.
fn names_in_command(name: &str) -> Vec<String> {
    let is_blank = |c: char| c.is_ascii_whitespace();
    let inner: Vec<&str> = name.split_ascii_whitespace().collect();
    let inner = inner.join(" ");
    let front: &[&str] = if name.starts_with(is_blank) { &["", " "] } else { &[""] };
    let back: &[&str] = if name.ends_with(is_blank) { &["", " "] } else { &[""] };
    front
        .iter()
        .flat_map(|front| back.iter().map(move |back| (front, back)))
        .map(|(front, back)| format!("{front}{inner}{back}"))
        .collect()
}

/// The names of the job that a listed command may have in it. The shepherd replaces `$stdin_path`
/// and the like by paths that the owner chose, and the text around a name can complete such a word:
/// no name with a `$` is admitted.
fn admitted_names(facts: &TaskFacts) -> Vec<String> {
    let is_admitted = !facts.job_name.contains('$');
    Vec::from_iter(is_admitted.then(|| facts.job_name.clone()))
}

/// A part of a listed word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    OneOf(Vec<String>),
    Plain,
    JobName,
}

fn is_admitted(line: &[String], given: &[&str], facts: &TaskFacts) -> bool {
    admits(
        line,
        given,
        |argument| facts.is_certain(argument),
        |word, text| is_word(word, text, facts),
    )
}

/// Whether a text is what a listed word stands for. A value in front makes no option of a word that
/// is none.
fn is_word(word: &str, text: &str, facts: &TaskFacts) -> bool {
    let pieces = pieces(word, facts);
    let begins_with_value = !matches!(pieces.first(), Some(Piece::Text(_)) | None);
    !(begins_with_value && text.starts_with('-')) && fits(&pieces, text, &admitted_names(facts))
}

/// Whether a command is a listed one but for the rules for the job's name: that is an option,
/// several words, or has a `$`.
fn differs_by_name(line: &[String], given: &[&str], facts: &TaskFacts) -> bool {
    let pieces = pieces(&line.join(" "), facts);
    pieces.contains(&Piece::JobName) && fits(&pieces, &given.join(" "), &names_in_command(&facts.job_name))
}

/// Whether the pieces make up a text, with one of these names of the job. An agent chooses the
/// text: each piece looks once at each place where the one before it may end, and those are few.
fn fits(pieces: &[Piece], text: &str, names: &[String]) -> bool {
    let text = text.as_bytes();
    let mut ends = BTreeSet::from([0]);
    for piece in pieces {
        ends = ends
            .iter()
            .flat_map(|&start| piece.lengths(&text[start..], names).map(move |length| start + length))
            .collect();
    }
    ends.contains(&text.len())
}

impl Piece {
    /// The lengths that the piece may have at the start of a text.
    fn lengths(&self, text: &[u8], names: &[String]) -> impl Iterator<Item = usize> {
        let of_value = |value: &String| text.starts_with(value.as_bytes()).then_some(value.len());
        let lengths: Vec<usize> = match self {
            Piece::Text(value) => of_value(value).into_iter().collect(),
            Piece::OneOf(values) => values.iter().filter_map(of_value).collect(),
            Piece::JobName => names.iter().filter_map(of_value).collect(),
            Piece::Plain => (1..=text.iter().take(MAX_PLAIN).take_while(|&&byte| is_plain(byte)).count()).collect(),
        };
        lengths.into_iter()
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte)
}

/// Splits a listed word at its pseudo variables, `$name` and `${name}`.
fn pieces(word: &str, facts: &TaskFacts) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        rest = &rest[at..];
        let (name, length) = variable(rest);
        pieces.push(
            facts
                .values(name)
                .unwrap_or_else(|| Piece::Text(rest[..length].to_owned())),
        );
        rest = &rest[length..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

/// The name at the start of a text that begins with `$`, and how many bytes it takes.
fn variable(text: &str) -> (&str, usize) {
    let body = &text[1..];
    if let Some(inner) = body.strip_prefix('{') {
        return inner.find('}').map_or(("", 1), |end| (&inner[..end], end + 3));
    }
    let end = body
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(body.len());
    (&body[..end], end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::launch::Blame;

    fn facts() -> TaskFacts {
        TaskFacts {
            variables: [
                ("job_id", "7".to_owned()),
                ("job_owner", "ann".to_owned()),
                ("pe_hostfile", "/cell/tasks/k/pe_hostfile".to_owned()),
                ("sge_root", "/cell".to_owned()),
                ("processors", "UNDEFINED".to_owned()),
            ],
            job_name: "--rm".to_owned(),
            task: "3".to_owned(),
        }
    }

    fn is_run(line: &str, command: &str) -> bool {
        let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        let given: Vec<&str> = command.split_ascii_whitespace().collect();
        is_admitted(&words, &given, &facts())
    }

    #[test]
    fn a_command_runs_with_the_arguments_that_are_listed_and_no_others() {
        for (line, command, expected) in [
            ("/x/prolog", "/x/prolog", true),
            ("/x/prolog", "/x/other", false),
            (
                "/x/prolog",
                "/x/prolog 7 3 ann /cell/tasks/k/pe_hostfile $stdout_path",
                true,
            ),
            ("/x/prolog", "/x/prolog 8", false),
            ("/x/prolog", "/x/prolog node1", false),
            ("/x/prolog", "/x/prolog --rm", false),
            ("/x/prolog -q", "/x/prolog -q", true),
            ("/x/prolog -q", "/x/prolog", false),
            ("/x/prolog -q", "/x/prolog -q 7", false),
            ("/x/prolog $job_id $host", "/x/prolog 7 node1.example.org", true),
            ("/x/prolog $job_id $host", "/x/prolog 8 node1", false),
            ("/x/prolog $host", "/x/prolog /etc/shadow", false),
            ("/x/prolog $host", "/x/prolog -rf", false),
            ("/x/prolog $job_name", "/x/prolog --rm", false),
            ("/x/prolog --name=$job_name", "/x/prolog --name=--rm", true),
            (
                "/x/prolog job=${job_id}.$ja_task_id@$queue",
                "/x/prolog job=7.0@all.q",
                true,
            ),
            (
                "/x/prolog job=${job_id}.$ja_task_id@$queue",
                "/x/prolog job=7.3@all.q",
                true,
            ),
            (
                "/x/prolog job=${job_id}.$ja_task_id@$queue",
                "/x/prolog job=7.4@all.q",
                false,
            ),
            (
                "/x/prolog $stdout_path $fs_stdin_path",
                "/x/prolog $stdout_path \"\"",
                true,
            ),
            ("/x/prolog $stdout_path", "/x/prolog /etc/shadow", false),
            (
                "/x/start $pe_hostfile $pe_slots",
                "/x/start /cell/tasks/k/pe_hostfile 16",
                true,
            ),
            ("/x/start $pe_hostfile", "/x/start /tmp/pe_hostfile", false),
        ] {
            assert_eq!(is_run(line, command), expected, "{line}: {command}");
        }
    }

    #[test]
    fn the_values_of_known_variables_are_certain() {
        let facts = facts();
        for name in proto::root_commands::KNOWN {
            let Some(Piece::OneOf(values)) = facts.values(name) else {
                panic!("{name} is known")
            };
            assert!(values.iter().all(|value| facts.is_certain(value)), "{name}: {values:?}");
        }
    }

    #[test]
    fn a_name_that_its_owner_chose_is_the_jobs_fault_and_a_missing_program_the_queues() {
        let lines = [
            "/x/prolog $job_name",
            "/x/named -n $job_name",
            "/x/plain $host",
            "/x/alone",
            "/x/around=$job_name.log",
        ];
        let commands = RootCommands::new(&lines.map(str::to_owned));
        let blame = |name: &str, command: &str| {
            let facts = TaskFacts {
                job_name: name.to_owned(),
                ..facts()
            };
            commands.check_facts(command, &facts).err().map(|refusal| refusal.blame)
        };
        for (name, command, expected) in [
            ("--rm", "/x/prolog --rm", Some(Blame::Job)),
            ("two words", "/x/prolog two words", Some(Blame::Job)),
            ("two \twords ", "/x/prolog two words", Some(Blame::Job)),
            (" a b ", "/x/around= a b .log", Some(Blame::Job)),
            ("--rm", "/x/named -n --rm", Some(Blame::Job)),
            ("name", "/x/prolog name", None),
            ("name", "/x/prolog -v name", Some(Blame::Queue)),
            ("name", "/x/prolog 7 name", Some(Blame::Queue)),
            ("name", "/x/prolog --rm", Some(Blame::Queue)),
            ("--rm", "/x/prolog two words", Some(Blame::Queue)),
            ("--rm", "/x/prolog \"\"", Some(Blame::Queue)),
            ("name", "/x/named -m name", Some(Blame::Queue)),
            ("--rm", "/x/plain --rm", Some(Blame::Queue)),
            ("--rm", "/x/alone --rm", Some(Blame::Queue)),
            ("--rm", "/x/other --rm", Some(Blame::Queue)),
        ] {
            assert_eq!(blame(name, command), expected, "{name}: {command}");
        }
    }

    #[test]
    fn a_name_that_the_shepherd_could_replace_by_a_path_is_not_admitted() {
        for (line, name, is_admitted) in [
            ("/x/prolog --name=$job_name", "$stdin_path", false),
            ("/x/prolog --name=$job_name", "a$stdout_path", false),
            ("/x/prolog --name=$job_name", "$HOME", false),
            ("/x/prolog --log=${job_name}_path", "$stdin", false),
            ("/x/prolog --log=$job_name$job_name", "_path$stdin", false),
            ("/x/prolog --name=$job_name", "a", true),
        ] {
            let facts = TaskFacts {
                job_name: name.to_owned(),
                ..facts()
            };
            let command = line.replace("${job_name}", name).replace("$job_name", name);
            let checked = RootCommands::new(&[line.to_owned()]).check_facts(&command, &facts);
            assert_eq!(
                checked.map_err(|refusal| refusal.blame),
                if is_admitted { Ok(()) } else { Err(Blame::Job) },
                "{command}"
            );
        }
    }

    #[test]
    fn a_plain_name_is_no_longer_than_names_are() {
        assert!(is_run(
            "/x/prolog $host",
            &format!("/x/prolog {}", "n".repeat(MAX_PLAIN))
        ));
        assert!(!is_run(
            "/x/prolog $host",
            &format!("/x/prolog {}", "n".repeat(MAX_PLAIN + 1))
        ));
    }
}
