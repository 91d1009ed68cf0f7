//! The script for zsh: a call of `_arguments` for each command.

use super::{CompletedCommand, CompletionSource, Names, commands, may_have_none};
use crate::args::{OptionDef, ValueCount};
use std::fmt::Write as _;

const ENGINE: &str = r#"
# A list of names with commas between them. _arguments puts options for compadd in front of the kind.
_gridwright_list() {
    local kind=$@[-1]
    local -a names
    names=(${(f)"$(_gridwright_names $kind)"})
    compset -P '*,'
    if [[ $kind == resources ]]; then
        compadd "${@[1,-2]}" -S '' -a names
    else
        compadd "${@[1,-2]}" -qS , -a names
    fi
}

_gridwright() {
    local command=$service
    if [[ $command == gridwright ]]; then
        if (( CURRENT == 2 )); then
            _describe command _gridwright_commands
            return
        fi
        command=$words[2]
        shift words
        (( CURRENT-- ))
    fi
    (( $+functions[_gridwright_$command] )) && _gridwright_$command
}

if [[ $funcstack[1] == _gridwright ]]; then
    _gridwright "$@"
else
"#;

/// The whole script.
pub fn script() -> String {
    let commands = commands();
    let classic: Vec<&str> = commands
        .iter()
        .filter(|command| command.is_classic())
        .map(|command| command.name)
        .collect();
    let names = format!("gridwright {}", classic.join(" "));
    let mut text = format!(
        "#compdef {names}\n# Completions of Gridwright {} for zsh: gridwright completions zsh\n\n",
        version::RELEASE
    );
    text.push_str("typeset -ga _gridwright_commands\n_gridwright_commands=(\n    'help:lists the commands'\n");
    for command in &commands {
        let _ = writeln!(
            text,
            "    {}",
            quoted(&format!("{}:{}", command.name, command.line.replace(':', "\\:")))
        );
    }
    text.push_str(")\n\n_gridwright_names() {\n    case $1 in\n");
    for names in Names::ALL {
        let _ = writeln!(text, "    {}) {} ;;", names.word(), names.command());
    }
    text.push_str("    esac 2>/dev/null\n}\n");
    commands.iter().for_each(|command| function(&mut text, command));
    let _ = writeln!(text, "{ENGINE}    compdef _gridwright {names}\nfi");
    text
}

fn function(text: &mut String, command: &CompletedCommand) {
    let _ = write!(text, "\n_gridwright_{}() {{\n    _arguments", command.name);
    for option in &command.options {
        let _ = write!(text, " \\\n        {}", quoted(&spec(option)));
    }
    let operands = format!("*:{}:{}", "operand", action(&command.operands));
    let _ = writeln!(text, " \\\n        {}\n}}", quoted(&operands));
}

/// `*-N[specify job name]:name: `: the option may come again, what it does, its value.
fn spec(option: &OptionDef) -> String {
    let help = option
        .help
        .replace('\\', "\\\\")
        .replace('[', "\\[")
        .replace(']', "\\]")
        .replace(':', "\\:");
    let value = CompletionSource::of_option(option).map_or_else(String::new, |source| {
        let optional = if may_have_none(option) { ":" } else { "" };
        let placeholder = option.placeholder.replace(':', "\\:");
        let second = if option.values == ValueCount::Two { ": : " } else { "" };
        format!(":{optional}{placeholder}:{}{second}", action(&source))
    });
    format!("*{}[{help}]{value}", option.name)
}

fn action(source: &CompletionSource) -> String {
    match source {
        CompletionSource::Choices(words) => format!("({})", words.join(" ")),
        CompletionSource::Names(names) => format!("_gridwright_list {}", names.word()),
        CompletionSource::Files => "_files".to_owned(),
        CompletionSource::Directories => "_files -/".to_owned(),
        CompletionSource::Nothing => " ".to_owned(),
    }
}

/// A word of zsh.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
