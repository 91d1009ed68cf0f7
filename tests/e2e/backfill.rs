//! Reservation and backfill with real processes (`qsub -R y`, `max_reservation`).

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

#[test]
fn a_job_with_a_reservation_starts_before_those_that_would_end_after_it() {
    let cell = Cell::with(CellPlan::default().slots(2));
    cell.set_scheduler("max_reservation", "5");
    let long = |name: &str| cell.submit(&["-N", name, "-l", "h_rt=1000", "-b", "y", "sleep", "900"]);
    let running = [long("first"), long("second")];
    running.iter().for_each(|job| cell.wait_for_state(job, "r"));
    let big = cell.submit(&["-R", "y", "-pe", "mpi", "2", "-l", "h_rt=100", "-b", "y", "true"]);
    let late = cell.submit(&["-l", "h_rt=2000", "-b", "y", "true"]);
    let endless = cell.submit(&["-b", "y", "true"]);
    let explained = |job: &str| cell.user(&["explain", job]).ok().out;
    wait_until(
        || explained(&big),
        || explained(&big).contains("slots are kept for it from"),
    );
    // One slot is free now, and for as long as the other job may run: enough for one that is short.
    cell.user(&["qdel", &running[0]]).ok();
    let short = cell.submit(&["-l", "h_rt=10", "-b", "y", "true"]);
    assert_eq!(cell.accounted(&short, 1)[0].value("exit_status"), "0");
    for waiting in [&big, &late, &endless] {
        cell.wait_for_state(waiting, "qw");
    }
    wait_until(
        || explained(&late),
        || explained(&late).contains("kept for jobs of higher priority"),
    );
    cell.user(&["qdel", &running[1]]).ok();
    let ended: Vec<_> = [&big, &late, &endless]
        .map(|job| cell.accounted(job, 1).remove(0))
        .into();
    assert!(ended.iter().all(|record| record.value("exit_status") == "0"));
}
