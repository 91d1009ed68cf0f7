//! The two clocks (ARCHITECTURE.md "Time, keys and requests"). Neither is ever read here: a shell
//! reads them and passes [`Now`] in.

mod zone;

pub use zone::{DAY_S, Day, LocalTime, Zone};

use serde::{Deserialize, Serialize};

/// Milliseconds on the monotone clock of the master, continued over restarts. Timers, durations and
/// limits use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tick(pub u64);

impl Tick {
    /// Milliseconds from `earlier` to this tick; 0 if `earlier` is later.
    pub fn since_ms(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The tick `ms` milliseconds later, at most the last one.
    pub fn plus_ms(self, ms: u64) -> Tick {
        Tick(self.0.saturating_add(ms))
    }
}

/// Milliseconds since the epoch in UTC, as a wall clock showed it. It may jump: only `-a`,
/// calendars and accounting use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);

impl Wall {
    /// Whole seconds since the epoch, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The wall time `seconds` after the epoch.
    pub fn from_seconds(seconds: i64) -> Wall {
        Wall(seconds.saturating_mul(1000))
    }
}

/// What time it is, as the shell read it just before it called a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The monotone clock.
    pub tick: Tick,
    /// The wall clock.
    pub wall: Wall,
}
