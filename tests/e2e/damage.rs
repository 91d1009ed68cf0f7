//! A damaged database: what can be read is shown, and what cannot is named.

use gridwright_tests::cell::{Cell, records};

#[test]
fn one_damaged_row_of_accounting_records_hides_no_other() {
    let cell = Cell::up();
    let jobs: Vec<String> = (0..3)
        .map(|_| {
            let record = cell.run_script("#!/bin/sh\ntrue\n", &[]);
            record.value("jobnumber").to_owned()
        })
        .collect();
    cell.down(&[]).ok();
    let database = rusqlite::Connection::open(cell.dir().join("master/state.db")).unwrap();
    let damage = "UPDATE ends SET body = x'c1ff' WHERE last IN (SELECT last FROM ends_of_job WHERE job_number = ?1)";
    assert_eq!(database.execute(damage, [&jobs[1]]).unwrap(), 1);
    drop(database);
    cell.bring_up(&[]).ok();
    let named = format!("cannot be read and are left out: {}", jobs[1]);
    let all = cell.user(&["qacct", "-j"]);
    let shown: Vec<String> = records(&all.out)
        .iter()
        .map(|record| record.value("jobnumber").to_owned())
        .collect();
    assert_eq!(shown, [jobs[0].as_str(), jobs[2].as_str()], "{all}");
    all.refused(&[&named, "fix: look for them in default/common/accounting"]);
    cell.user(&["qacct", "-o"]).refused(&[&named, "OWNER"]);
    cell.user(&["qacct", "-j", &jobs[1]]).refused(&[&named]);
    cell.user(&["qacct", "-j", &jobs[0]]).ok();
}
