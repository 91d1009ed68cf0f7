//! What an idle cell uses at a report interval of ten seconds.

use crate::clock::tell;
use crate::usage::{DAEMONS, memory_kib, of_daemons};
use gridwright_tests::cell::{Cell, CellPlan};
use std::time::Duration;

/// Memory and CPU of each daemon over `time`.
pub fn measure(time: Duration) {
    let cell = Cell::with(CellPlan::default());
    cell.set_global("load_report_time", "00:00:10");
    // What start-up and the change of the interval cost is not idling.
    std::thread::sleep(Duration::from_secs(5));
    let before = of_daemons(&cell);
    std::thread::sleep(time);
    let after = of_daemons(&cell);
    for ((daemon, before), after) in DAEMONS.iter().zip(before).zip(after) {
        let (rss, pss) = memory_kib(cell.pid(daemon));
        let used = (after - before) / time.as_secs_f64();
        let more = format!("RSS {rss} KiB, PSS {pss} KiB, over {} s", time.as_secs());
        tell(&format!("idle {daemon}"), used, "ms/s", &more);
    }
}
