//! What one command costs, and how soon a job starts on an idle cell.

use crate::clock::{median, tell};
use gridwright_tests::cell::{Cell, CellPlan, CommandUser};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Submissions whose median counts.
const SUBMISSIONS: usize = 200;

/// Jobs whose start is timed.
const STARTS: usize = 50;

/// Milliseconds of one `qsub`, and from its beginning to the start of the job.
pub fn measure() {
    let cell = Cell::with(CellPlan::default().slots(2));
    let held = (0..SUBMISSIONS).map(|_| submit_held(&cell)).collect();
    tell("one qsub, median", median(held), "ms", &format!("of {SUBMISSIONS}"));
    let bare = (0..SUBMISSIONS).map(|_| bare_command(&cell)).collect();
    tell(
        "  of which: qsub -help, median",
        median(bare),
        "ms",
        "the program's own start",
    );
    cell.admin(&["qdel", "-u", "*"]);
    let starts = (0..STARTS).map(|_| start(&cell)).collect();
    tell(
        "submission to start, idle cell, median",
        median(starts),
        "ms",
        &format!("of {STARTS}, qsub included"),
    );
}

/// A held job: nothing else happens meanwhile.
pub fn submit_held(cell: &Cell) -> f64 {
    let begin = Instant::now();
    cell.user(&[
        "qsub",
        "-h",
        "-terse",
        "-b",
        "y",
        "-o",
        "/dev/null",
        "-j",
        "y",
        "-shell",
        "n",
        "/bin/true",
    ])
    .ok();
    milliseconds(begin.elapsed())
}

fn bare_command(cell: &Cell) -> f64 {
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.args(["qsub", "-help"]).stdout(std::process::Stdio::null());
    let begin = Instant::now();
    let _ = command.status().expect("the program is there");
    milliseconds(begin.elapsed())
}

/// The job itself says when it runs.
fn start(cell: &Cell) -> f64 {
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let job = cell.submit(&[
        "-sync",
        "y",
        "-b",
        "y",
        "-o",
        "started",
        "-shell",
        "n",
        "/bin/date",
        "+%s%N",
    ]);
    assert!(!job.is_empty(), "qsub -terse prints the number");
    let text = cell.read("started");
    let said: u64 = text
        .lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .expect("date printed a number");
    milliseconds(Duration::from_nanos(said).saturating_sub(begin))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
