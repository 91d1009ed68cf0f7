//! What the daemons of a cell use: CPU from the scheduler's own account, memory from the kernel's.

use gridwright_tests::cell::Cell;
use nix::time::ClockId;
use std::fs;

/// The daemons.
pub const DAEMONS: [&str; 3] = ["master", "agent", "launcher"];

/// Milliseconds of CPU that all threads of a process have used.
pub fn cpu_ms(pid: i32) -> f64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0.0;
    };
    let text = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("schedstat")).ok();
    let ns = threads
        .flatten()
        .filter_map(text)
        .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok());
    ns.sum::<f64>() / 1e6
}

/// Milliseconds of CPU that this process has used, with its threads that have ended.
pub fn own_cpu_ms() -> f64 {
    let used = ClockId::CLOCK_PROCESS_CPUTIME_ID
        .now()
        .expect("every process has that clock");
    used.tv_sec() as f64 * 1000.0 + used.tv_nsec() as f64 / 1e6
}

/// CPU of each daemon, in the order of [`DAEMONS`].
pub fn of_daemons(cell: &Cell) -> [f64; 3] {
    DAEMONS.map(|daemon| cpu_ms(cell.pid(daemon)))
}

/// CPU per piece of work, in words.
pub fn per_piece(before: [f64; 3], after: [f64; 3], pieces: u32) -> String {
    let parts = DAEMONS.iter().zip(before).zip(after);
    let parts = parts.map(|((daemon, before), after)| format!("{daemon} {:.2}", (after - before) / f64::from(pieces)));
    format!("ms CPU each: {}", parts.collect::<Vec<_>>().join(", "))
}

/// Resident and proportional memory of a process in KiB.
pub fn memory_kib(pid: i32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    };
    (value("Rss:"), value("Pss:"))
}
