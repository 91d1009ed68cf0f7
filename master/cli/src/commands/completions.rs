//! `gridwright completions`: what lets a shell complete options, values and names.

use crate::args::{CommandDef, Operands, flag};
use crate::commands::Outcome;
use crate::completion::Shell;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};

pub const COMPLETIONS: CommandDef = CommandDef {
    name: "gridwright completions",
    summary: "Prints the completions of all commands for a shell. To use them at once: source <(gridwright completions bash).",
    operand_placeholder: "bash | zsh | fish",
    operands: Operands::Anywhere,
    options: &[flag("-help", "print this help"), flag("--help", "print this help")],
    exit_codes: "0 printed; 2 wrong option, or no such shell",
};

/// Runs `gridwright completions`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = COMPLETIONS.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&COMPLETIONS.help());
        return Ok(exit::OK);
    }
    let shell = match parsed.operands.as_slice() {
        [name] => name.parse::<Shell>().ok(),
        _ => None,
    };
    let Some(shell) = shell else {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright completions: name one shell");
        return Err(Fail::new(exit::USAGE, refusal.fix("bash, zsh or fish")));
    };
    // A reader that went away is not an error.
    output::raw(&shell.script()).unwrap_or_default();
    Ok(exit::OK)
}
