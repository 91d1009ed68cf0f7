//! An advance reservation with real processes: its job runs in it, others wait, and its end takes
//! what is left with it, also where the master was killed meanwhile.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};
use std::process::Command;

/// A moment from now as `qrsub -a` takes it.
fn moment(seconds: u32) -> String {
    let output = Command::new("date")
        .args(["-d", &format!("+{seconds} seconds"), "+%Y%m%d%H%M.%S"])
        .output();
    String::from_utf8(output.expect("there is a clock").stdout)
        .expect("a date is text")
        .trim()
        .to_owned()
}

/// The state of the only reservation, as `qrstat` shows it; none if it is gone.
fn state(cell: &Cell) -> Option<String> {
    let shown = cell.user(&["qrstat"]).ok().out;
    let row = shown.lines().nth(2)?.to_owned();
    row.split_whitespace().nth(3).map(str::to_owned)
}

#[test]
fn a_reservation_keeps_its_slots_over_a_kill_of_the_master_and_ends_what_is_left() {
    let cell = Cell::with(CellPlan::default().slots(2));
    let user = cell.account().name.clone();
    cell.admin(&["qconf", "-au", &user, "arusers"]).ok();
    let granted = cell
        .user(&["qrsub", "-N", "mine", "-a", &moment(12), "-d", "60", "-pe", "mpi", "2"])
        .ok();
    assert_eq!(granted.out, "Your advance reservation 1 has been granted\n");
    assert_eq!(state(&cell).as_deref(), Some("w"));
    let long = ["-b", "y", "sleep", "600"];
    let inside = cell.submit(&[&["-ar", "1"], &long[..]].concat());
    let outside = cell.submit(&long);
    let short = cell.submit(&["-ar", "1", "-N", "short", "-b", "y", "true"]);
    cell.wait_for_state(&inside, "r");
    assert_eq!(cell.accounted(&short, 1)[0].value("exit_status"), "0");
    let shown = cell.user(&["qstat", "-f"]).ok().out;
    assert!(shown.contains(" 2/1/2 "), "{shown}");
    cell.kill("master");
    cell.bring_up(&[]).ok();
    assert_eq!(state(&cell).as_deref(), Some("r"));
    cell.wait_for_state(&outside, "qw");
    let record = &cell.accounted(&inside, 1)[0];
    assert_ne!(record.value("exit_status"), "0", "it was ended before its time");
    cell.wait_for_state(&outside, "r");
    wait_until(
        || format!("no reservation; {:?}", state(&cell)),
        || state(&cell).is_none(),
    );
}
