//! Each text parser against seeded mutations of recorded texts. `GRIDWRIGHT_FUZZ=INPUTS` tries more
//! of them, and with `GRIDWRIGHT_SEED` other ones.

use gridwright_tests::fuzz::mutate::Mutator;
use gridwright_tests::fuzz::{TARGETS, Target};

/// Inputs of each target, fewer of slow ones, unless the environment says otherwise: all together
/// take some seconds.
const INPUTS: u64 = 4_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn run(name: &str) {
    let Target { run, seeds, cost, .. } = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("a target of that name");
    seeds().iter().for_each(|text| run(text));
    let mut mutator = Mutator::new(seeds(), number("GRIDWRIGHT_SEED", 1));
    for count in 0..number("GRIDWRIGHT_FUZZ", INPUTS) / cost {
        let text = mutator.text();
        if std::panic::catch_unwind(|| run(&text)).is_err() {
            panic!("{name}: input {count} is mishandled:\n{text:?}");
        }
    }
}

#[test]
fn complex_files_are_read_or_refused() {
    run("complex");
}

#[test]
fn files_of_objects_are_read_or_refused() {
    run("objects");
}

#[test]
fn resource_quota_sets_are_read_or_refused() {
    run("rqs");
}

#[test]
fn calendars_are_read_or_refused() {
    run("calendar");
}

#[test]
fn requests_are_read_or_refused() {
    run("request");
}

#[test]
fn expressions_are_read_or_refused() {
    run("expression");
}

#[test]
fn amounts_are_read_or_refused() {
    run("amount");
}

#[test]
fn ranges_are_read_or_refused() {
    run("range");
}

#[test]
fn output_of_load_sensors_is_read_or_refused() {
    run("sensor");
}
