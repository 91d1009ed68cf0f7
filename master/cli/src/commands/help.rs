//! `gridwright help`, `--help`, `--version`: what there is, a line for each command, and the ways
//! in which people ask for it.

use super::{COMMANDS, CommandEntry};
use crate::{exit, output};
use std::io::IsTerminal;

const BEGIN: &str = "\
usage: gridwright COMMAND [options] | help COMMAND | --version
A first cell: gridwright up --detach
";

/// Answers `gridwright help [COMMAND]` and its variants. `None` means that the word is not one of
/// them.
pub fn answer(name: &str, words: &[String]) -> Option<u8> {
    match name {
        "gridwright" => Some(nothing_asked()),
        "help" | "-help" | "--help" | "-h" => Some(match words.first() {
            Some(command) if is_command(command) => super::call(command, vec!["-help".to_owned()]),
            Some(command) => super::unsupported::refuse(command).unwrap_or_else(|| super::unknown(command)),
            None => {
                output::data(&overview());
                exit::OK
            }
        }),
        "version" | "-version" | "--version" | "-V" => Some(version()),
        _ => None,
    }
}

fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|entry| entry.name == name)
}

/// Whether the words of a command ask for its version alone.
pub fn is_version(words: &[String]) -> bool {
    matches!(words, [word] if word == "--version" || word == "-version")
}

/// Prints product and version.
pub fn version() -> u8 {
    output::data(&version::line("Gridwright"));
    exit::OK
}

/// The words with `-help` where `--help` or `-h` alone asks for it. An `-h` that means something
/// alone is left: `qacct -h`, and `qsub -h` with a script on its input.
pub fn spelt_out(name: &str, words: Vec<String>) -> Vec<String> {
    let asks = match words.as_slice() {
        [word] if word == "--help" => true,
        [word] if word == "-h" => match name {
            "qacct" => false,
            "qsub" => std::io::stdin().is_terminal(),
            _ => true,
        },
        _ => false,
    };
    if asks { vec!["-help".to_owned()] } else { words }
}

fn nothing_asked() -> u8 {
    output::note("gridwright: no command is given");
    output::note("  fix: gridwright help lists the commands; a first cell: gridwright up --detach");
    exit::USAGE
}

fn product() -> String {
    format!("Gridwright {}", version::RELEASE)
}

fn overview() -> String {
    let (classic, own): (Vec<&CommandEntry>, Vec<&CommandEntry>) =
        COMMANDS.iter().partition(|entry| entry.name.starts_with('q'));
    let lines = |entries: &[&CommandEntry]| -> String {
        entries
            .iter()
            .map(|CommandEntry { name, line, .. }| format!("   {name:<12}{line}\n"))
            .collect()
    };
    format!(
        "{}\n{BEGIN}\n{}\nOf Grid Engine, also called by their names alone:\n{}",
        product(),
        lines(&own),
        lines(&classic)
    )
}
