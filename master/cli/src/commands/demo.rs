//! `gridwright demo`: a tour that only spawns public commands, prints them, and verifies every
//! step.

mod account;
mod interrupt;
mod steps;
mod tour;

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use tour::Tour;

pub const DEMO: CommandDef = CommandDef {
    name: "gridwright demo",
    summary: "Brings a cell up in a temporary directory, shows the main job, and verifies every step.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("--keep", "leave the directory behind"),
        with(
            "--sabotage",
            ValueCount::One,
            "STEP",
            "leave out what a step shows, so that it must fail (used by the tests)",
        ),
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 every step was verified; 1 one was not, and the message says which",
};

/// Runs `gridwright demo`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = DEMO.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&DEMO.help());
        return Ok(exit::OK);
    }
    let sabotage = parsed.value("--sabotage");
    if let Some(step) = sabotage.filter(|step| !steps::ALL.iter().any(|(name, ..)| name == step)) {
        let names: Vec<&str> = steps::ALL.iter().map(|(name, ..)| *name).collect();
        return Err(
            Fail::bad_value(format!("gridwright demo: no step \"{step}\"")).fix(format!("one of {}", names.join(", ")))
        );
    }
    interrupt::catch();
    let mut tour = Tour::begin()?;
    let outcome = walk(&mut tour, sabotage);
    tour.end(parsed.has("--keep"));
    outcome?;
    output::data("\nA cell of your own: gridwright up --detach\n");
    output::data("demo: every step was verified\n");
    Ok(exit::OK)
}

fn walk(tour: &mut Tour, sabotage: Option<&str>) -> Result<(), Fail> {
    for ((name, shows, step), number) in steps::ALL.into_iter().zip(1..) {
        tour.headline(&format!("{number}/{} {name}: {shows}", steps::ALL.len()));
        step(tour, sabotage == Some(name)).map_err(|mut fail| {
            if interrupt::is_interrupted() {
                fail.diagnostic.what = "interrupted; the cell is taken down and its directory removed".to_owned();
                return fail;
            }
            fail.diagnostic.what = format!("error: demo step \"{name}\" failed: {}", fail.diagnostic.what);
            fail
        })?;
    }
    Ok(())
}
