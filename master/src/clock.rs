//! The two clocks (ARCHITECTURE.md "Time, keys and requests"), read here and nowhere else.

use proto::time::{Now, Tick, Wall};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The wall clock now.
pub fn wall_now() -> Wall {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    Wall(i64::try_from(since).unwrap_or(i64::MAX))
}

/// The monotone clock of a cell, continued over restarts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    first: Tick,
}

impl Clock {
    /// Goes on from the time of the last event. The time since then counts as far as the wall clock
    /// shows it: a clock that was set back meanwhile makes no time, and cannot be told from a pause
    /// if it was set forward.
    pub fn continue_from(last: Now) -> Self {
        let pause_ms = u64::try_from(wall_now().0.saturating_sub(last.wall.0)).unwrap_or(0);
        Self {
            started: Instant::now(),
            first: last.tick.plus_ms(pause_ms),
        }
    }

    /// What time it is.
    pub fn now(&self) -> Now {
        Now {
            tick: self.tick(),
            wall: wall_now(),
        }
    }

    /// The monotone clock alone.
    pub fn tick(&self) -> Tick {
        self.first.plus_ms(self.uptime_ms())
    }

    /// Milliseconds since this process began to count.
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
