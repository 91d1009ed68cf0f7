//! Who changed what, told by `gridwright changes`.

use gridwright_tests::cell::{Cell, is_root};

#[test]
fn changes_of_objects_and_of_jobs_of_others_are_told_after_a_restart_too() {
    let cell = Cell::up();
    cell.admin(&["qconf", "-rattr", "queue", "slots", "5", "all.q"]).ok();
    cell.admin(&["qconf", "-rattr", "queue", "slots", "7", "all.q"]).ok();
    cell.admin(&["qmod", "-d", "all.q"]).ok();
    let job = cell.submit(&["-h", "-b", "y", "true"]);
    cell.admin(&["qdel", &job]).ok();
    cell.down(&[]).ok();
    cell.bring_up(&[]).ok();
    let said = cell
        .user(&["changes", "--since", "1h", "--object", "all.q,all.q@*"])
        .ok();
    for words in [
        "modified cluster queue all.q\n    slots: 5 -> 7\n",
        " disabled queue instance all.q@",
    ] {
        assert!(said.out.contains(words), "{words:?}: {said}");
    }
    let (first, second) = (said.out.find("-> 5").unwrap(), said.out.find("-> 7").unwrap());
    assert!(first < second, "the newest change is last: {said}");
    assert!(said.err.contains("the log goes back to"), "{said}");
    let of_job = cell.user(&["changes", "--object", &job]).ok();
    // In a cell of an ordinary user nobody else can be an operator.
    assert_eq!(
        of_job.out.contains(&format!("deleted job {job} of ")),
        is_root(),
        "{of_job}"
    );
    let nobody = cell.user(&["changes", "--by", "nobody-at-all", "-fmt", "json"]).ok();
    assert!(nobody.out.contains("\"changes\": []"), "{nobody}");
    cell.user(&["changes", "--since", "yesterday"])
        .refused(&["yesterday", "fix:"]);
}
