//! Time, load of the machine, and lines of the table.

use std::time::{Duration, Instant};

/// The pause between two looks at what is waited for: small against everything that is measured.
const POLL: Duration = Duration::from_millis(2);

/// Waits until something holds and says how long that took.
///
/// # Panics
/// If it does not within ten minutes.
pub fn time_until(what: &str, begin: Instant, mut holds: impl FnMut() -> bool) -> Duration {
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(600),
            "not within ten minutes: {what}"
        );
        std::thread::sleep(POLL);
    }
    begin.elapsed()
}

/// Prints one line: what was measured, the figure, and the load average, without which no figure
/// means much.
pub fn tell(what: &str, figure: f64, unit: &str, more: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("{what:<44} {figure:>10.1} {unit:<8} load {load:<6} {more}");
}

/// The figure in the middle.
///
/// # Panics
/// If there is none.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
