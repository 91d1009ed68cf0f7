//! What the job submission verifier of a cell costs those who submit, and the master.

use crate::clock::{median, tell};
use crate::latency::submit_held;
use crate::usage;
use gridwright_tests::cell::{Cell, CellPlan};
use std::time::Instant;

/// Submissions whose median counts.
const SUBMISSIONS: u32 = 200;

/// Commands that submit at the same time.
const COMMANDS: u32 = 8;

/// Milliseconds of one `qsub` without a verifier and with one in each language, and how many go
/// through it in a second.
pub fn measure() {
    let cell = Cell::with(CellPlan::default().slots(2));
    one_after_the_other(&cell, "none");
    for example in ["jsv.sh", "jsv.pl", "jsv.py"] {
        let path = cell.dir().join("util/resources/jsv").join(example);
        cell.set_global("jsv_url", &path.display().to_string());
        // The process is started with the first job.
        submit_held(&cell);
        one_after_the_other(&cell, example);
    }
    at_the_same_time(&cell);
}

fn one_after_the_other(cell: &Cell, verifier: &str) {
    let before = usage::of_daemons(cell);
    let times = (0..SUBMISSIONS).map(|_| submit_held(cell)).collect();
    let more = usage::per_piece(before, usage::of_daemons(cell), SUBMISSIONS);
    tell(
        &format!("one qsub, verifier {verifier}, median"),
        median(times),
        "ms",
        &more,
    );
}

fn at_the_same_time(cell: &Cell) {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..COMMANDS {
            scope.spawn(|| {
                (0..SUBMISSIONS).for_each(|_| {
                    submit_held(cell);
                })
            });
        }
    });
    let jobs = f64::from(COMMANDS * SUBMISSIONS);
    let what = format!("{COMMANDS} qsub at the same time, verifier jsv.py");
    tell(&what, jobs / begin.elapsed().as_secs_f64(), "jobs/s", "");
}
