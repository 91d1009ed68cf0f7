//! The script for fish: one `complete` for each command and option.

use super::{CompletedCommand, CompletionSource, Names, commands, may_have_none};
use crate::args::OptionDef;
use std::fmt::Write as _;

/// The whole script.
pub fn script() -> String {
    let mut text = format!(
        "# Completions of Gridwright {} for fish: gridwright completions fish\n",
        version::RELEASE
    );
    text.push_str("function __gridwright_names\n    switch $argv[1]\n");
    for names in Names::ALL {
        let _ = writeln!(text, "        case {}\n            {}", names.word(), names.command());
    }
    text.push_str("    end 2>/dev/null\nend\n\n");
    // Lists have commas: what stands in front of the last one is kept.
    text.push_str(
        "function __gridwright_list\n    set -l prefix (string match -r '.*,' -- (commandline -ct))\n    \
         __gridwright_names $argv[1] | sed \"s#^#$prefix#\"\nend\n\n",
    );
    text.push_str(
        "function __gridwright_is\n    set -l words (commandline -opc)\n    test \"$words[2]\" = \"$argv[1]\"\nend\n\n",
    );
    let commands = commands();
    let is_first = "test (count (commandline -opc)) -eq 1";
    let _ = writeln!(
        text,
        "complete -c gridwright -n '{is_first}' -f -a help -d 'lists the commands'"
    );
    for command in &commands {
        let _ = writeln!(
            text,
            "complete -c gridwright -n '{is_first}' -f -a {} -d {}",
            command.name,
            quoted(command.line)
        );
    }
    for command in &commands {
        complete(
            &mut text,
            command,
            &format!("complete -c gridwright -n '__gridwright_is {}'", command.name),
        );
        if command.is_classic() {
            complete(&mut text, command, &format!("complete -c {}", command.name));
        }
    }
    text
}

fn complete(text: &mut String, command: &CompletedCommand, begin: &str) {
    for option in &command.options {
        let source = CompletionSource::of_option(option);
        let value = match &source {
            Some(source) if !may_have_none(option) => format!(" {}", candidates(source, true)),
            Some(_) | None => String::new(),
        };
        let _ = writeln!(text, "{begin} {}{value} -d {}", name(option), quoted(option.help));
    }
    let _ = writeln!(text, "{begin} {}", candidates(&command.operands, false));
}

/// `--dir` as a long option, `-cwd` and `-l` as old-style ones. Among options of one letter fish
/// would take `-terse` for `-t erse`.
fn name(option: &OptionDef) -> String {
    match option.name.strip_prefix("--") {
        Some(bare) => format!("-l {bare}"),
        None => format!("-o {}", option.name.trim_start_matches('-')),
    }
}

fn candidates(source: &CompletionSource, is_value: bool) -> String {
    let exclusive = if is_value { "-x" } else { "-f" };
    match source {
        CompletionSource::Choices(words) => format!("{exclusive} -a {}", quoted(&words.join(" "))),
        CompletionSource::Names(names) => format!("{exclusive} -a '(__gridwright_list {})'", names.word()),
        CompletionSource::Files if is_value => "-r -F".to_owned(),
        CompletionSource::Files => "-F".to_owned(),
        CompletionSource::Directories => format!("{exclusive} -a '(__fish_complete_directories)'"),
        CompletionSource::Nothing => exclusive.to_owned(),
    }
}

/// A word of fish.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
