//! One module a command, and the table of names.

mod ask;
#[cfg(test)]
mod captured;
mod demo;
mod doctor;
mod down;
mod env;
mod events;
mod explain;
mod hold;
mod join;
mod qacct;
mod qalter;
mod qconf;
mod qdel;
mod qevent;
mod qhost;
mod qmod;
mod qping;
mod qquota;
mod qrdel;
mod qrsh;
mod qrstat;
mod qrsub;
mod qsched;
mod qselect;
mod qstat;
mod qsub;
mod sensor;
mod shares;
mod token;
mod unsupported;
mod up;

use crate::fail::Fail;
use crate::{exit, output};
use std::process::ExitCode;

/// What a command returns: its exit code, or a refusal that ends it.
pub type Outcome = Result<u8, Fail>;

/// A command: its name and the function behind it.
type Entry = (&'static str, fn(Vec<String>) -> Outcome);

/// Every name that `gridwright` answers to, as a link or as its first word.
const COMMANDS: &[Entry] = &[
    ("up", up::run),
    ("down", down::run),
    ("env", env::run),
    ("join", join::run),
    ("demo", demo::run),
    ("doctor", doctor::run),
    ("events", events::run),
    ("explain", explain::run),
    ("sensor", sensor::run),
    ("shares", shares::run),
    ("token", token::create),
    ("host", token::host),
    ("qsub", qsub::run),
    ("qdel", qdel::run),
    ("qhold", hold::hold),
    ("qrls", hold::release),
    ("qalter", qalter::alter),
    ("qresub", qalter::resubmit),
    ("qmod", qmod::run),
    ("qconf", qconf::run),
    ("qacct", qacct::run),
    ("qevent", qevent::run),
    ("qhost", qhost::run),
    ("qping", qping::run),
    ("qquota", qquota::run),
    ("qrsh", qrsh::run),
    ("qrsub", qrsub::run),
    ("qrdel", qrdel::run),
    ("qrstat", qrstat::run),
    ("qsched", qsched::run),
    ("qselect", qselect::run),
    ("qstat", qstat::run),
];

/// Runs the command of that name; `gridwright NAME …` is `NAME …`.
pub fn run(name: &str, mut words: Vec<String>) -> ExitCode {
    let mut name = name.to_owned();
    if name == "gridwright" && !words.is_empty() {
        name = words.remove(0);
    }
    let code = match COMMANDS.iter().find(|(known, _)| *known == name) {
        Some((_, command)) => command(words).unwrap_or_else(|fail| {
            output::diagnostic(&fail.diagnostic);
            fail.exit
        }),
        None => unsupported::refuse(&name).unwrap_or_else(|| unknown(&name)),
    };
    ExitCode::from(code)
}

/// What `gridwright` alone says.
fn overview() -> u8 {
    let names: Vec<&str> = COMMANDS.iter().map(|(known, _)| *known).collect();
    let (own, classic): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| !name.starts_with('q'));
    output::note("gridwright: no command is given");
    output::note(&format!("  of gridwright: {}\n  of Grid Engine: {}", own.join(" "), classic.join(" ")));
    output::note("  fix: gridwright COMMAND -help; a first cell: gridwright up --detach");
    exit::USAGE
}

fn unknown(name: &str) -> u8 {
    if matches!(name, "gridwright" | "help" | "-help" | "--help" | "-h") {
        return overview();
    }
    let near = COMMANDS.iter().map(|(known, _)| *known).min_by_key(|known| crate::args::distance(known, name));
    output::note(&format!("gridwright: no command \"{name}\""));
    match near.filter(|near| crate::args::distance(near, name) <= 2) {
        Some(near) => output::note(&format!("  fix: did you mean {near}?")),
        None => output::note("  fix: gridwright help lists the commands"),
    }
    exit::USAGE
}
