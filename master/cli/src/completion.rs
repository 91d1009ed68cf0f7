//! What shells complete: commands, options, and the values of options, from the tables that the
//! parsers use.
//!
//! What follows an option is told by its placeholder, such as `wc_queue_list`. Names of objects are
//! asked of the cell when they are needed.

mod bash;
mod fish;
#[cfg(test)]
mod tests;
mod zsh;

use crate::args::{CommandDef, OptionDef, Support, ValueCount};
use crate::commands::COMMANDS;
use std::str::FromStr;

/// A shell for which there is a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// GNU bash, 4.4 or later.
    Bash,
    /// zsh, 5 or later.
    Zsh,
    /// fish, 3 or later.
    Fish,
}

impl FromStr for Shell {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "bash" => Ok(Shell::Bash),
            "zsh" => Ok(Shell::Zsh),
            "fish" => Ok(Shell::Fish),
            _ => Err(()),
        }
    }
}

impl Shell {
    /// The script that the shell reads.
    pub fn script(self) -> String {
        match self {
            Shell::Bash => bash::script(),
            Shell::Zsh => zsh::script(),
            Shell::Fish => fish::script(),
        }
    }
}

/// Names that the cell knows, or the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    Queues,
    Environments,
    Checkpoints,
    Resources,
    Projects,
    Hosts,
    HostGroups,
    Calendars,
    AccessLists,
    QuotaSets,
    Jobs,
    Users,
}

impl Names {
    const ALL: [Names; 12] = [
        Names::Queues,
        Names::Environments,
        Names::Checkpoints,
        Names::Resources,
        Names::Projects,
        Names::Hosts,
        Names::HostGroups,
        Names::Calendars,
        Names::AccessLists,
        Names::QuotaSets,
        Names::Jobs,
        Names::Users,
    ];

    /// The word for them in the scripts.
    fn word(self) -> &'static str {
        match self {
            Names::Queues => "queues",
            Names::Environments => "environments",
            Names::Checkpoints => "checkpoints",
            Names::Resources => "resources",
            Names::Projects => "projects",
            Names::Hosts => "hosts",
            Names::HostGroups => "hostgroups",
            Names::Calendars => "calendars",
            Names::AccessLists => "accesslists",
            Names::QuotaSets => "quotasets",
            Names::Jobs => "jobs",
            Names::Users => "users",
        }
    }

    /// The command that prints them, one on a line. A master that does not answer delays nobody.
    fn command(self) -> &'static str {
        match self {
            Names::Queues => "timeout 2 qconf -sql",
            Names::Environments => "timeout 2 qconf -spl",
            Names::Checkpoints => "timeout 2 qconf -sckptl",
            Names::Resources => "timeout 2 qconf -sc | sed -n '/^#/!s/ .*/=/p'",
            Names::Projects => "timeout 2 qconf -sprjl",
            Names::Hosts => "timeout 2 qconf -sel",
            Names::HostGroups => "timeout 2 qconf -shgrpl",
            Names::Calendars => "timeout 2 qconf -scall",
            Names::AccessLists => "timeout 2 qconf -sul",
            Names::QuotaSets => "timeout 2 qconf -srqsl",
            Names::Jobs => "timeout 2 qstat | sed -n 's/^ *\\([0-9][0-9]*\\) .*/\\1/p' | sort -un",
            Names::Users => "getent passwd | cut -d: -f1",
        }
    }
}

/// What can stand at a place of a command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CompletionSource {
    /// One of these words.
    Choices(Vec<String>),
    /// One name, or several with commas between them.
    Names(Names),
    /// A file.
    Files,
    /// A directory.
    Directories,
    /// Something that only the user knows.
    Nothing,
}

impl CompletionSource {
    /// What stands behind an option. `None` where nothing has to.
    fn of_option(option: &OptionDef) -> Option<CompletionSource> {
        match option.values {
            ValueCount::None => None,
            ValueCount::Optional | ValueCount::AtLeast(0) => Some(CompletionSource::of_placeholder(option.placeholder))
                .filter(|source| *source != CompletionSource::Nothing),
            ValueCount::One | ValueCount::Led(_) | ValueCount::Two | ValueCount::AtLeast(_) => {
                Some(CompletionSource::of_placeholder(option.placeholder))
            }
        }
    }

    /// What the operands of a command are.
    fn of_operands(def: &CommandDef) -> CompletionSource {
        let verb = |part: &str| {
            let word = part
                .trim_start_matches('[')
                .split([' ', ']'])
                .next()
                .unwrap_or_default()
                .to_owned();
            (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(word)
        };
        let verbs: Option<Vec<String>> = def.operand_placeholder.split(" | ").map(verb).collect();
        match verbs {
            Some(verbs) if verbs.len() > 1 => CompletionSource::Choices(verbs),
            Some(_) | None => CompletionSource::of_placeholder(def.operand_placeholder),
        }
    }

    fn of_placeholder(placeholder: &str) -> CompletionSource {
        let word = placeholder
            .trim_matches(['[', ']', '{', '}'])
            .split(' ')
            .next()
            .unwrap_or_default();
        if let Some(choices) = choices(placeholder) {
            return CompletionSource::Choices(choices);
        }
        let word = word.to_lowercase();
        let names = match word.as_str() {
            "group" => Names::HostGroups,
            "listname_list" => Names::AccessLists,
            "rqs_list" => Names::QuotaSets,
            "calendar_name" => Names::Calendars,
            "ckpt_name" | "ckpt-name" => Names::Checkpoints,
            "dir" | "working_directory" => return CompletionSource::Directories,
            word if word.contains("file") || ["fname", "path_list", "command|-|--}", "script"].contains(&word) => {
                return CompletionSource::Files;
            }
            word if word.contains("queue") => Names::Queues,
            word if (word.starts_with("job") && word != "job_share") || word.starts_with("jid") => Names::Jobs,
            word if ["pe_", "pe-", "wc_pe"].iter().any(|start| word.starts_with(start)) => Names::Environments,
            word if word.starts_with("resource") || word.starts_with("attr=") => Names::Resources,
            word if word.contains("project") => Names::Projects,
            word if word.contains("host") || word == "server" => Names::Hosts,
            word if word.starts_with("user") || word == "owner" => Names::Users,
            _ => return CompletionSource::Nothing,
        };
        CompletionSource::Names(names)
    }
}

/// Whether an option works without a value and with one.
fn may_have_none(option: &OptionDef) -> bool {
    matches!(option.values, ValueCount::Optional | ValueCount::AtLeast(0))
}

/// The words of a placeholder such as `y[es]|n[o]`, `text|json` or `{a|c|A}`. `None` where it names
/// kinds of values.
fn choices(placeholder: &str) -> Option<Vec<String>> {
    let inner = placeholder.trim_matches(['{', '}']);
    let words: Vec<String> = inner
        .split('|')
        .map(|part| part.split('[').next().unwrap_or_default().to_owned())
        .collect();
    let is_word = |word: &String| {
        let is_short = word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_short || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    (words.len() > 1 && words.iter().all(is_word)).then_some(words)
}

/// A command as shells see it.
struct CompletedCommand {
    /// `qsub`, or `up` for `gridwright up`.
    name: &'static str,
    line: &'static str,
    options: Vec<&'static OptionDef>,
    operands: CompletionSource,
}

impl CompletedCommand {
    fn is_classic(&self) -> bool {
        self.name.starts_with('q')
    }
}

/// Every command with the options that work.
fn commands() -> Vec<CompletedCommand> {
    let completed = |entry: &crate::commands::CommandEntry| {
        let defs = (entry.defs)();
        let mut options: Vec<&'static OptionDef> = Vec::new();
        for option in defs.iter().flat_map(|def| def.options) {
            if option.support == Support::Yes && options.iter().all(|known| known.name != option.name) {
                options.push(option);
            }
        }
        let operands = defs
            .first()
            .map_or(CompletionSource::Nothing, |def| CompletionSource::of_operands(def));
        CompletedCommand {
            name: entry.name,
            line: entry.line,
            options,
            operands,
        }
    };
    COMMANDS.iter().map(completed).collect()
}
