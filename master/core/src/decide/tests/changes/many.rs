//! A change of many tasks of an array is one event, however many they are.

use super::*;

#[test]
fn a_million_tasks_are_held_as_one() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("max_aj_tasks", "0")]);
    cell.submit(array("1-1000000"));
    assert_eq!(
        alter(&mut cell, "u1", "1", hold(USER)),
        ["modified hold of job-array tasks 1.1-1000000:1"]
    );
    assert!(cell.job(1).tasks.is_empty() && cell.job(1).spec.holds.user);
    assert_eq!(
        cell.qdel("u1", &["1.1-999999"]),
        ["u1 has deleted job-array tasks 1-999999:1 of job 1"]
    );
    assert_eq!(cell.job(1).untouched.ranges(), [TaskRange::parse("1000000").unwrap()]);
    assert_eq!(cell.job(1).ended.len(), 1000);
    cell.assert_replay_is_live();
}

#[test]
fn every_second_of_many_tasks_is_held_by_one_short_event() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("max_aj_tasks", "0")]);
    cell.submit(array("1-10000"));
    assert_eq!(
        alter(&mut cell, "u1", "1.1-10000:2", hold(USER)),
        ["modified hold of job-array tasks 1.1-9999:2"]
    );
    assert_eq!((cell.job(1).tasks.len(), cell.job(1).untouched.len()), (5_000, 5_000));
    assert_eq!(
        alter(&mut cell, "u1", "1", release(USER)),
        ["modified hold of job-array tasks 1.1-9999:2"]
    );
    assert!(!cell.task(1, 9_999).holds.any());
    cell.assert_replay_is_live();
}
