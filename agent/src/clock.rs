//! The clocks of this machine, read here and nowhere else in the agent.

use nix::time::{ClockId, clock_gettime};
use proto::time::{Tick, Wall};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds of `CLOCK_BOOTTIME`, which the shepherds use too.
pub fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("CLOCK_BOOTTIME exists since Linux 2.6.39");
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec()) * 1000 + part(time.tv_nsec()) / 1_000_000
}

/// The same as the tick that the sensors' machines count in.
pub fn tick() -> Tick {
    Tick(boot_ms())
}

/// How long it is until `then`; nothing if that has passed.
pub fn until(then: Tick) -> Duration {
    Duration::from_millis(then.since_ms(tick()))
}

/// This boot of the machine; empty where the kernel does not say.
pub fn boot_id() -> String {
    procfs::sys::kernel::random::boot_id().unwrap_or_default()
}

/// What the wall clock shows.
pub fn wall() -> Wall {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
