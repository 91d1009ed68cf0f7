//! `gridwright doctor`: what is wrong with this host or with the cell, and the remedy for each.

mod cell;
mod checks;
mod finding;

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::place::{self, Purpose};
use crate::commands::{Outcome, up};
use crate::{exit, output};
use finding::Finding;
use proto::diagnostic::{Code, Diagnostic};

pub const DOCTOR: CommandDef = CommandDef {
    name: "gridwright doctor",
    summary: "Examines this host: name, daemons, certificate, UDP reach, clock, control groups, name service, space, sensors.\n\
              With --cell, the master says how all hosts and load sensors of the cell do.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag(
            "--cell",
            "examine the cell: a line for the master, each host and each load sensor, what is wrong first",
        ),
        place::DIR,
        with("-fmt", ValueCount::One, "text|json", "how to print (default: text)"),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 nothing is wrong; 1 something is, each with its remedy; 2 wrong option",
};

/// Runs `gridwright doctor`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = DOCTOR.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&DOCTOR.help());
        return Ok(exit::OK);
    }
    let is_json = super::sensor::is_json(&parsed)?;
    let dir = up::directory(&parsed, Purpose::Use)?;
    if !place::is_cell(&dir) {
        let refusal = Diagnostic::new(Code::UnknownObject, "error: there is no cell").at(dir.display().to_string());
        return Err(refusal.fix("name its state directory with --dir").into());
    }
    let findings = if parsed.has("--cell") {
        cell::all(&dir)
    } else {
        checks::all(&dir)
    };
    if is_json {
        output::data(&output::json::line(
            &serde_json::json!({ "version": 1, "checks": findings }),
        ));
    } else {
        output::data(&findings.iter().map(Finding::text).collect::<String>());
        output::data(&summary(findings.iter().filter(|finding| !finding.fine).count()));
    }
    Ok(if findings.iter().all(|finding| finding.fine) {
        exit::OK
    } else {
        exit::FAILED
    })
}

/// Warns about this host as `gridwright doctor` does, where `gridwright up` succeeds all the same:
/// its name, and a disk that is nearly full.
pub fn warn(dir: &std::path::Path) {
    let worth_telling = checks::of_surroundings(dir)
        .into_iter()
        .filter(|finding| !finding.fix.is_empty());
    for finding in worth_telling {
        output::note(&format!("warning: {}; {}", finding.found, finding.fix));
    }
}

/// The last line, which is seen also where many lines are fine.
fn summary(wrong: usize) -> String {
    match wrong {
        0 => "nothing is wrong\n".to_owned(),
        1 => "1 thing is wrong: see BAD above\n".to_owned(),
        wrong => format!("{wrong} things are wrong: see BAD above\n"),
    }
}
