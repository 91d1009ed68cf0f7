use crate::collections::ranges::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn range(text: &str) -> TaskRange {
    TaskRange::parse(text).unwrap()
}

fn numbers(set: &TaskRanges) -> Vec<u32> {
    set.iter().map(|task| task.0).collect()
}

#[test]
fn a_job_that_is_no_array_has_task_one() {
    assert_eq!(numbers(&TaskRanges::all(None)), [1]);
    assert!(TaskRanges::none(None).is_empty());
}

#[test]
fn a_million_tasks_are_one_range_and_a_hole_makes_two() {
    let mut set = TaskRanges::all(Some(range("1-1000000")));
    assert_eq!(set.len(), 1_000_000);
    assert!(set.take(TaskId(500)));
    assert!(!set.take(TaskId(500)));
    assert_eq!(set.ranges(), [range("1-499"), range("501-1000000")]);
    assert!(set.insert(TaskId(500)));
    assert_eq!(set, TaskRanges::all(Some(range("1-1000000"))));
}

#[test]
fn tasks_between_the_steps_are_never_in_the_set() {
    let mut set = TaskRanges::all(Some(range("2-10:4")));
    assert_eq!(numbers(&set), [2, 6, 10]);
    assert!(!set.contains(TaskId(4)) && !set.take(TaskId(4)));
    assert_eq!(numbers(&set.intersection(&[range("1-7")])), [2, 6]);
    assert_eq!(set.take_ranges(&[range("6-6"), range("5-6"), range("9-99")]), 2);
    assert_eq!(numbers(&set), [2]);
}

#[test]
fn single_tasks_at_even_distances_are_told_as_one_range() {
    let mut set = TaskRanges::all(Some(range("1-100000")));
    set.take_ranges(&[range("2-100000:2")]);
    assert_eq!(set.ranges(), [range("1-99999:2")]);
    assert_eq!(TaskRanges::of_job(Some(range("1-100000")), &set.ranges()), set);
    set.take(TaskId(5));
    assert_eq!(set.ranges(), [range("1"), range("3"), range("7-99999:2")]);
}

#[test]
fn stored_runs_that_overlap_are_refused() {
    for runs in ["[[0,1],[1,2]]", "[[0,1],[2,2]]", "[[2,1]]", "[[0,10]]"] {
        let text = format!(r#"{{"lattice":"1-10:1","runs":{runs}}}"#);
        assert!(serde_json::from_str::<TaskRanges>(&text).is_err(), "{runs}");
    }
}

proptest! {
    #[test]
    fn a_set_of_runs_behaves_as_a_set(
        first in 1u32..5, count in 1u32..300, step in 1u32..4,
        changes in prop::collection::vec((any::<bool>(), 0u32..300, 1u32..600, 1u32..5), 0..60),
    ) {
        let lattice = TaskRange::new(first, first + (count - 1) * step, step).unwrap();
        let mut runs = TaskRanges::all(Some(lattice));
        let mut model: BTreeSet<TaskId> = lattice.iter().collect();
        let whole = runs.clone();
        for (add, place, length, by) in changes {
            let task = TaskId(first + (place % count) * step);
            if add {
                prop_assert_eq!(runs.insert(task), model.insert(task));
            } else {
                let cut = TaskRange::new(task.0, task.0 + length, by).unwrap();
                let expected = model.iter().filter(|task| cut.contains(**task)).count();
                prop_assert_eq!(runs.intersection(&[cut]).len() as usize, expected);
                prop_assert_eq!(runs.take_ranges(&[cut]) as usize, expected);
                model.retain(|task| !cut.contains(*task));
            }
            prop_assert_eq!(runs.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(runs.len() as usize, model.len());
            let told: Vec<TaskId> = runs.ranges().into_iter().flat_map(TaskRange::iter).collect();
            prop_assert_eq!(told, model.iter().copied().collect::<Vec<_>>());
            prop_assert!(runs.without(None).eq(model.iter().copied()));
            prop_assert!(whole.without(Some(&runs)).eq(lattice.iter().filter(|task| !model.contains(task))));
            let cut = TaskRange::new(task.0, task.0 + length, by).unwrap();
            let others = whole.intersection(&[cut]);
            prop_assert!(runs.without(Some(&others)).eq(model.iter().copied().filter(|task| !cut.contains(*task))));
        }
        let text = serde_json::to_string(&runs).unwrap();
        prop_assert_eq!(serde_json::from_str::<TaskRanges>(&text).unwrap(), runs);
    }
}
