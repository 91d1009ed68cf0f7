//! `gridwright man`: the manual pages, made from the tables that the programs themselves use.

use crate::args::{CommandDef, Operands, flag};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::manual;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use std::io;
use std::path::Path;

pub const MAN: CommandDef = CommandDef {
    name: "gridwright man",
    summary: "Writes the manual pages of all commands, file formats and daemons below DIR, into man1, man5 and man8.",
    operand_placeholder: "DIR",
    operands: Operands::Anywhere,
    options: &[flag("-help", "print this help"), flag("--help", "print this help")],
    exit_codes: "0 written; 1 a file cannot be written; 2 wrong option, or no directory",
};

/// Runs `gridwright man`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = MAN.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&MAN.help());
        return Ok(exit::OK);
    }
    let [dir] = parsed.operands.as_slice() else {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright man: name one directory");
        return Err(Fail::new(exit::USAGE, refusal.fix("gridwright man /usr/share/man")));
    };
    let pages = manual::pages();
    if !Path::new(dir).is_dir()
        && pages
            .iter()
            .any(|page| Path::new(&page.path).file_stem() == Some(dir.as_ref()))
    {
        let refusal = Diagnostic::new(
            Code::BadValue,
            format!("gridwright man: {dir} is a page, not a directory"),
        );
        let fix =
            format!("to read the page: man {dir}; to write all pages into this directory: gridwright man ./{dir}");
        return Err(Fail::new(exit::USAGE, refusal.fix(fix)));
    }
    for page in &pages {
        let path = Path::new(dir).join(&page.path);
        write(&path, &page.text).map_err(|error| {
            let refusal = Diagnostic::new(Code::SystemRefused, "error: cannot write a manual page");
            Fail::from(refusal.at(path.display().to_string()).why(error.to_string()))
        })?;
    }
    output::data(&format!(
        "{} manual pages written below {dir}\nread them: MANPATH={dir}: man qsub\n",
        pages.len()
    ));
    Ok(exit::OK)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}
