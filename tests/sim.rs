//! The simulator on many seeds. `GRIDWRIGHT_SEED=7 cargo test -p gridwright-tests --test sim
//! one_seed --
//! --nocapture` repeats one aloud; `GRIDWRIGHT_SEEDS=1001-100000` makes the thousand another range; `GRIDWRIGHT_LONG=200` runs so many long ones, and makes `one_seed` repeat one of those; `GRIDWRIGHT_CALM=1`
//! makes it repeat a calm one.

use gridwright_tests::sim::{Plan, run_many, run_one};

/// The seeds that every change has to pass.
const SEEDS: (u64, u64) = (1, 1_000);

/// So many calm days are run.
const CALM_SEEDS: u64 = 40;

#[test]
fn a_quiet_day_of_a_small_cluster_ends_with_every_task_accounted_once() {
    let counts = run_many(1, 5, Plan::quiet).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
    assert!(counts.tasks_executed > 0 && counts.tasks_executed <= counts.attempts_accounted);
}

#[test]
fn whatever_breaks_no_task_is_lost_and_none_runs_twice() {
    let (first, last) = std::env::var("GRIDWRIGHT_SEEDS").map_or(SEEDS, |range| read_range(&range));
    let counts = run_many(first, last, Plan::stormy).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
}

/// On days on which nothing breaks and jobs end in time, no reservation moves to a later time for a
/// job of lower priority.
#[test]
fn who_has_a_reservation_is_not_delayed_by_others_of_lower_priority() {
    let counts = run_many(1, CALM_SEEDS, Plan::calm).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
    assert!(counts.promises > 20 * CALM_SEEDS, "hardly any reservation was made");
}

/// A quarter of an hour of a thousand hosts. The whole day is `gridwright-bench day`.
#[test]
fn a_while_of_a_large_cluster() {
    let counts = run_many(1, 1, |seed| Plan::large(seed, 15)).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
    assert!(counts.tasks_executed > 0 && counts.slaves_placed > 0 && counts.reservations_granted > 0);
}

/// Longer runs of a larger cluster with every state checked: `GRIDWRIGHT_LONG=200` runs so many of
/// them.
#[test]
fn long_runs_of_a_larger_cluster() {
    let Ok(count) = std::env::var("GRIDWRIGHT_LONG") else { return };
    let last = count.parse().expect("GRIDWRIGHT_LONG is a number");
    let counts = run_many(1, last, Plan::long).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
}

/// Repeats the seed of `GRIDWRIGHT_SEED`, and prints everything that happens.
#[test]
fn one_seed() {
    let Ok(seed) = std::env::var("GRIDWRIGHT_SEED") else { return };
    let seed = seed.parse().expect("GRIDWRIGHT_SEED is a number");
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let plan = match () {
        () if is_set("GRIDWRIGHT_LONG") => Plan::long(seed),
        () if is_set("GRIDWRIGHT_CALM") => Plan::calm(seed),
        () => Plan::stormy(seed),
    };
    let counts = run_one(plan, true).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
}

fn read_range(text: &str) -> (u64, u64) {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    (first.parse().expect("a number"), last.parse().expect("a number"))
}
