//! The simulator of the tests, on a cluster of a thousand hosts: what a day of it costs with every
//! event checked.

use crate::clock::tell;
use crate::usage::own_cpu_ms;
use gridwright_tests::sim::{Plan, run_one};
use std::time::Instant;

/// So many hours from a seed; a broken invariant ends the program with what happened last.
pub fn measure(hours: u64, seed: u64) {
    let (begin, before) = (Instant::now(), own_cpu_ms());
    let counts = run_one(Plan::large(seed, hours * 60), false).unwrap_or_else(|report| panic!("{report}"));
    let cpu_s = (own_cpu_ms() - before) / 1000.0;
    let about = format!(
        "{:.1} s by the clock, seed {seed}; {counts:?}",
        begin.elapsed().as_secs_f64()
    );
    tell(
        &format!("day: {hours} hours of 1,000 hosts, checked"),
        cpu_s,
        "s CPU",
        &about,
    );
}
