//! What local clocks show: a time zone as a table of its changes, so that the cores need no time
//! zone library.
//!
//! The shell makes the table once, when it starts, from the time zone of its machine.

use super::Wall;
use serde::{Deserialize, Serialize};

/// Seconds of a day on a local clock, days on which the clock is changed apart.
pub const DAY_S: u32 = 86_400;

/// A day on a local calendar, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Day(pub i32);

/// What a local clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalTime {
    /// The day.
    pub day: Day,
    /// Seconds since its midnight as the clock shows them, below [`DAY_S`].
    pub second: u32,
}

/// A time zone: by how many seconds local clocks are ahead of UTC, and when that changes.
///
/// Invariant: `changes` rise, and are more than two days apart as far as [`Zone::instants`] is to
/// be exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    first: i32,
    changes: Vec<(i64, i32)>,
}

impl Day {
    /// A day by year, month and day of the month; none if the calendar has no such day.
    pub fn from_ymd(year: i32, month: u32, day: u32) -> Option<Day> {
        if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
            return None;
        }
        let before = |year: i32| {
            (year - 1) * 365 + (year - 1).div_euclid(4) - (year - 1).div_euclid(100) + (year - 1).div_euclid(400)
        };
        let months: u32 = (1..month).map(|month| days_in(year, month)).sum();
        Some(Day(before(year) - before(1970) + (months + day - 1).cast_signed()))
    }

    /// The day of the week, Monday 0 to Sunday 6.
    pub fn weekday(self) -> u8 {
        // 1 January 1970 was a Thursday.
        u8::try_from((i64::from(self.0) + 3).rem_euclid(7)).expect("a remainder of seven")
    }

    /// The day so many days later, or earlier.
    pub fn plus(self, days: i32) -> Day {
        Day(self.0.saturating_add(days))
    }
}

fn days_in(year: i32, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl LocalTime {
    /// Seconds that a clock in UTC would have counted since 1970 to show this.
    fn seconds(self) -> i64 {
        i64::from(self.day.0) * i64::from(DAY_S) + i64::from(self.second)
    }
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Zone {
        Zone::default()
    }

    /// A zone that is `first` seconds ahead of UTC until the first of its changes. Each change is
    /// when, in seconds since 1970 in UTC, and how many seconds local clocks are ahead from then
    /// on.
    pub fn new(first: i32, mut changes: Vec<(i64, i32)>) -> Zone {
        changes.sort_unstable();
        Zone { first, changes }
    }

    /// What a local clock shows at a time.
    pub fn local(&self, at: Wall) -> LocalTime {
        let local = at.seconds() + i64::from(self.ahead(at.seconds()));
        let (day, second) = (local.div_euclid(i64::from(DAY_S)), local.rem_euclid(i64::from(DAY_S)));
        LocalTime {
            day: Day(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })),
            second: u32::try_from(second).expect("a remainder of a day"),
        }
    }

    /// When a local clock shows a time: never where it was put forward over it, twice where it was
    /// put back.
    pub fn instants(&self, local: LocalTime) -> impl Iterator<Item = Wall> + '_ {
        let local = local.seconds();
        let (before, after) = (
            self.ahead(local - i64::from(DAY_S)),
            self.ahead(local + i64::from(DAY_S)),
        );
        let ahead = [Some(before), (after != before).then_some(after)];
        let times = ahead
            .into_iter()
            .flatten()
            .map(move |ahead| (local - i64::from(ahead), ahead));
        times
            .filter(|(at, ahead)| self.ahead(*at) == *ahead)
            .map(|(at, _)| Wall::from_seconds(at))
    }

    /// When local clocks are changed, from one time to another, both included.
    pub fn changes(&self, from: Wall, to: Wall) -> impl Iterator<Item = Wall> + '_ {
        let times = self.changes.iter().map(|(at, _)| Wall::from_seconds(*at));
        times.filter(move |at| (from..=to).contains(at))
    }

    fn ahead(&self, seconds: i64) -> i32 {
        let passed = self.changes.partition_point(|(at, _)| *at <= seconds);
        passed.checked_sub(1).map_or(self.first, |last| self.changes[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central Europe in 2026: summer time from 29 March to 25 October, each at 01:00 UTC.
    fn berlin() -> Zone {
        Zone::new(3600, vec![(1_774_746_000, 7200), (1_792_890_000, 3600)])
    }

    #[test]
    fn days_are_counted_and_have_weekdays() {
        for (year, month, day, expected) in [
            (1970, 1, 1, Some((0, 3))),
            (2026, 11, 22, Some((20_779, 6))),
            (2024, 2, 29, Some((19_782, 3))),
            (2026, 2, 29, None),
            (2026, 4, 31, None),
            (2000, 2, 29, Some((11_016, 1))),
            (2100, 2, 29, None),
            (2026, 13, 1, None),
            (2026, 1, 0, None),
        ] {
            let found = Day::from_ymd(year, month, day).map(|day| (day.0, day.weekday()));
            assert_eq!(found, expected, "{day}.{month}.{year}");
        }
    }

    #[test]
    fn a_local_clock_is_put_forward_and_back() {
        let zone = berlin();
        let march = Day::from_ymd(2026, 3, 29).unwrap();
        let shown = |seconds| zone.local(Wall::from_seconds(seconds));
        assert_eq!(
            shown(1_774_745_999),
            LocalTime {
                day: march,
                second: 7199
            }
        );
        assert_eq!(
            shown(1_774_746_000),
            LocalTime {
                day: march,
                second: 10_800
            }
        );
        let at = |day, second| {
            zone.instants(LocalTime { day, second })
                .map(Wall::seconds)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(march, 9_000), Vec::<i64>::new(), "half past two is skipped");
        assert_eq!(at(march, 10_800), [1_774_746_000]);
        let october = Day::from_ymd(2026, 10, 25).unwrap();
        assert_eq!(
            at(october, 9_000),
            [1_792_890_000 - 1800, 1_792_890_000 + 1800],
            "half past two comes twice"
        );
        assert_eq!(at(october, 3_600), [1_792_882_800]);
    }
}
