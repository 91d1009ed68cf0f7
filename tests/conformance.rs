//! The recorded cases of a real Grid Engine 8.1.9, replayed: same commands, same users, one cell a folder, and what came back compared
//! with what was recorded. `cargo test -p gridwright-tests --test conformance -- --nocapture` prints what agrees, what differs by
//! design (a row of master/COMPATIBILITY.md each) and what is missing; `GRIDWRIGHT_CONFORMANCE=05sub` replays one folder.
//!
//! Normalised on both sides, in `conformance/normalise.rs`: dates and times, job numbers in the answer to a submission, values of load
//! and usage, priorities other than 0, process numbers, names of spool files. Ours and ignored: lines of stderr that begin with two
//! blanks (where, why, fix). The host is called `vm` and the users `u1 u2 u3`, in name spaces of the test's own.
//!
//! Deliberately absent: what the other issues bring (`@ later` in `captures/`), which is counted and printed all the same.

#[path = "conformance/case.rs"]
mod case;
#[path = "conformance/cell.rs"]
mod cell;
#[path = "conformance/normalise.rs"]
mod normalise;
#[path = "conformance/numbers.rs"]
mod numbers;
#[path = "conformance/report.rs"]
mod report;

use case::{Case, Step, Verdict};
use cell::Cell;
use report::Report;

/// The folders of captures that are replayed, each with a cell of its own.
const FOLDERS: [&str; 1] = ["05sub"];

/// Of the cases that this version covers, so many in a hundred have to agree.
const REQUIRED_PERCENT: usize = 90;

#[test]
fn commands_answer_as_recorded() {
    if !gridwright_tests::cell::available("root", gridwright_tests::cell::is_root()) {
        return;
    }
    cell::enter_name_spaces();
    let wanted = std::env::var("GRIDWRIGHT_CONFORMANCE").ok();
    let mut report = Report::default();
    for folder in FOLDERS.iter().filter(|folder| wanted.as_deref().is_none_or(|wanted| wanted.contains(**folder))) {
        replay(folder, &mut report);
    }
    print!("{report}");
    assert!(report.different().is_empty(), "no longer as recorded: {:?}", report.different());
    assert!(report.percent_agreed() >= REQUIRED_PERCENT, "only {} of 100 covered cases agree", report.percent_agreed());
}

/// Replays one folder in a fresh cell.
fn replay(folder: &str, report: &mut Report) {
    let mut cell = Cell::up();
    for step in case::read(folder) {
        match step {
            Step::Prepare { user, job, command } => cell.prepare(user.as_deref(), job.as_deref(), &command),
            Step::Case(case) => report.add(folder, &case, judge(&mut cell, &case)),
        }
    }
}

/// Runs a case unless it is marked as one that cannot agree, and says where it first differs.
fn judge(cell: &mut Cell, case: &Case) -> Option<String> {
    match case.verdict {
        Verdict::Missing(_) | Verdict::Later(_) => None,
        Verdict::Agrees | Verdict::Design(_) => {
            let answer = cell.run(case.user.as_deref(), &case.command);
            normalise::first_difference(case, &answer)
        }
    }
}
