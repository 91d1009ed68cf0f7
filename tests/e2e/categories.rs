//! Categories of jobs as `qconf -scatl` and `-scat` show them.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

#[test]
fn categories_are_listed_with_how_many_jobs_each_has() {
    let cell = Cell::with(CellPlan::default().slots(2));
    let none = cell.user(&["qconf", "-scatl"]);
    assert_eq!((none.code, none.err.as_str()), (1, "no category defined\n"));
    let hold = |options: &[&str]| cell.submit(&[&["-h"], options, &["-b", "y", "true"]].concat());
    // The same amounts, however they are written and in whatever order.
    hold(&["-l", "h_rt=60,mem_free=1G"]);
    hold(&["-l", "mem_free=1024M", "-l", "h_rt=0:1:0"]);
    let parallel = hold(&["-pe", "mpi", "2-4", "-q", "all.q", "-R", "y"]);
    let listed = || cell.user(&["qconf", "-scatl"]).out;
    wait_until(listed, || listed().lines().count() == 4);
    let rows: Vec<String> = listed()
        .lines()
        .skip(2)
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let [one, other] = rows.as_slice() else {
        panic!("two categories: {rows:?}")
    };
    let (number, rest) = one.split_once(' ').expect("a number");
    assert_eq!(rest, "2 -l h_rt=00:01:00,mem_free=1G");
    assert!(other.ends_with(" 1 -q all.q -pe mpi 2-4"), "{other}");
    let shown = cell.user(&["qconf", "-scat", number]).ok().out;
    assert_eq!(
        shown,
        format!("id      {number}\nrcount  2\nstr     -l h_rt=00:01:00,mem_free=1G\n")
    );
    let json: serde_json::Value =
        serde_json::from_str(&cell.user(&["qconf", "-scatl", "-fmt", "json"]).ok().out).expect("JSON");
    assert_eq!(json["categories"][0]["jobs"], 2);
    // The last job of a category takes it along.
    cell.user(&["qdel", &parallel]).ok();
    wait_until(listed, || listed().lines().count() == 3);
    let unknown = cell.user(&["qconf", "-scat", "4711"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.err.starts_with("job category \"4711\" does not exist"),
        "{}",
        unknown.err
    );
    let wrong = cell.user(&["qconf", "-scat", "some"]);
    assert!(
        wrong.code != 0 && wrong.err.contains("\"some\" is no number of a category"),
        "{}",
        wrong.err
    );
}
