//! The simulator on many seeds, all of them where `GRIDWRIGHT_TESTS_FULL` is set (as in `.ci/run`),
//! else a quarter.
//!
//! - `GRIDWRIGHT_SEED=7 cargo test -p gridwright-tests --test sim one_seed -- --nocapture` repeats
//!   one aloud; with `GRIDWRIGHT_CALM=1` a calm one, with `GRIDWRIGHT_LONG` a long one.
//! - `GRIDWRIGHT_SEEDS=1001-100000` runs another range.
//! - `GRIDWRIGHT_LONG=200` runs so many long ones.

use gridwright_tests::sim::{Plan, run_many, run_one};

/// So many seeds every change has to pass, from 1 on.
const SEEDS: u64 = 1_000;

/// So many calm days every change has to pass.
const CALM_SEEDS: u64 = 40;

/// All of them in CI, a quarter for who waits at a terminal.
fn part(all: u64) -> u64 {
    let is_full = std::env::var_os("GRIDWRIGHT_TESTS_FULL").is_some();
    if is_full { all } else { all.div_ceil(4) }
}

#[test]
fn a_quiet_day_of_a_small_cluster_ends_with_every_task_accounted_once() {
    let counts = run_many(1, 5, Plan::quiet).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
    assert!(counts.tasks_executed > 0 && counts.tasks_executed <= counts.attempts_accounted);
}

#[test]
fn whatever_breaks_no_task_is_lost_and_none_runs_twice() {
    let (first, last) = std::env::var("GRIDWRIGHT_SEEDS").map_or((1, part(SEEDS)), |range| read_range(&range));
    let counts = run_many(first, last, Plan::stormy).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
}

/// On days on which nothing breaks and jobs end in time, no reservation moves to a later time for a
/// job of lower priority.
#[test]
fn who_has_a_reservation_is_not_delayed_by_others_of_lower_priority() {
    let seeds = part(CALM_SEEDS);
    let counts = run_many(1, seeds, Plan::calm).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
    assert!(counts.promises > 20 * seeds, "hardly any reservation was made");
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
    let Ok(count) = std::env::var("GRIDWRIGHT_LONG") else {
        return;
    };
    let last = count.parse().expect("GRIDWRIGHT_LONG is a number");
    let counts = run_many(1, last, Plan::long).unwrap_or_else(|report| panic!("{report}"));
    println!("{counts:#?}");
}

/// Repeats the seed of `GRIDWRIGHT_SEED`, and prints everything that happens.
#[test]
fn one_seed() {
    let Ok(seed) = std::env::var("GRIDWRIGHT_SEED") else {
        return;
    };
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
