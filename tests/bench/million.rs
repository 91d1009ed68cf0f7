//! What an array of a million tasks costs to submit and to keep.

use crate::clock::{median, tell};
use crate::usage::memory_kib;
use gridwright_tests::cell::{Cell, CellPlan, CommandUser};
use std::process::Stdio;
use std::time::Instant;

/// Submissions whose median counts.
const SUBMISSIONS: usize = 20;

/// Milliseconds from the begin of `qsub -t 1-1000000` to its end, and by how much each made the
/// master grow, scheduler and query side included. All queues are disabled, so that the tasks wait.
pub fn measure() {
    let cell = Cell::with(CellPlan::default());
    cell.admin(&["qmod", "-d", "*"]).ok();
    // The limit for tasks of an array is lower where it is not raised.
    cell.set_global("max_aj_tasks", "1000000");
    submit(&cell);
    let (before, _) = memory_kib(cell.pid("master"));
    let times = (0..SUBMISSIONS).map(|_| submit(&cell)).collect();
    let (after, _) = memory_kib(cell.pid("master"));
    tell(
        "qsub -t 1-1000000, median",
        median(times),
        "ms",
        &format!("of {SUBMISSIONS}"),
    );
    let grown = after.saturating_sub(before) as f64 / SUBMISSIONS as f64;
    tell(
        "  by which the master grew, each",
        grown,
        "KiB",
        &format!("{before} to {after} KiB"),
    );
}

fn submit(cell: &Cell) -> f64 {
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.args([
        "qsub",
        "-t",
        "1-1000000",
        "-b",
        "y",
        "-o",
        "/dev/null",
        "-j",
        "y",
        "/bin/true",
    ]);
    command.stdout(Stdio::null());
    let begin = Instant::now();
    let status = command.status().expect("the program is there");
    let took = begin.elapsed();
    assert!(status.success(), "the array is taken");
    took.as_secs_f64() * 1e3
}
