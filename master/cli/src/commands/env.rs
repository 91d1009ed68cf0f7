//! `gridwright env`: what a shell needs to find the cell and the q* commands.

use crate::args::{CommandDef, Operands, flag};
use crate::cell_address::place::{self, Purpose};
use crate::commands::{Outcome, up};
use crate::{directory, exit, output};
use proto::diagnostic::{Code, Diagnostic};

pub const ENV: CommandDef = CommandDef {
    name: "gridwright env",
    summary: "Prints shell commands that put the q* names on PATH and name the cell: eval \"$(gridwright env --dir DIR)\".",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        place::DIR,
        flag("--csh", "for csh and tcsh"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 printed; 1 there is no cell; 2 wrong option",
};

/// Runs `gridwright env`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = ENV.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&ENV.help());
        return Ok(exit::OK);
    }
    let dir = up::directory(&parsed, Purpose::Use)?;
    let settings = dir.join(if parsed.has("--csh") {
        "default/common/settings.csh"
    } else {
        "default/common/settings.sh"
    });
    let text = std::fs::read_to_string(&settings).map_err(|error| {
        let refusal =
            Diagnostic::new(Code::UnknownObject, "error: there is no cell").at(settings.display().to_string());
        refusal
            .why(error.to_string())
            .fix(format!("create one: gridwright up --dir {} --detach", dir.display()))
    })?;
    output::raw(&directory::settings_in_place(&dir, text)).unwrap_or_default();
    Ok(exit::OK)
}
