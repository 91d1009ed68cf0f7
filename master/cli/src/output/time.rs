//! Moments as people and programs read them, in the time zone of the shell and in no locale.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proto::time::Wall;

/// The time zone that moments are printed in.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: TimeZone,
}

impl Clock {
    /// The zone of this shell (`TZ`, else `/etc/localtime`).
    pub fn local() -> Self {
        Self {
            zone: TimeZone::system(),
        }
    }

    /// Any zone, for tests.
    #[cfg(test)]
    pub fn new(zone: TimeZone) -> Self {
        Self { zone }
    }

    /// `11/21/2026 01:09:55`, as `qstat` prints it.
    pub fn slashes(&self, moment: Wall) -> String {
        self.format(moment, "%m/%d/%Y %H:%M:%S")
    }

    /// `Sat Nov 21 01:09:55 2026`, as asctime(3) prints it.
    pub fn asctime(&self, moment: Wall) -> String {
        self.format(moment, "%a %b %e %H:%M:%S %Y")
    }

    /// `2026-11-21T01:09:55`: no zone and no fraction, because programs parse it so.
    pub fn iso(&self, moment: Wall) -> String {
        self.format(moment, "%Y-%m-%dT%H:%M:%S")
    }

    /// The year it is now.
    pub fn this_year(&self) -> i16 {
        Timestamp::now().to_zoned(self.zone.clone()).year()
    }

    /// The zone itself, to read what was written in it.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    fn format(&self, moment: Wall, form: &str) -> String {
        self.zoned(moment).strftime(form).to_string()
    }

    /// What lies outside the calendar is shown as the epoch: no moment of a cell does.
    fn zoned(&self, moment: Wall) -> Zoned {
        Timestamp::from_second(moment.seconds())
            .unwrap_or(Timestamp::UNIX_EPOCH)
            .to_zoned(self.zone.clone())
    }
}

/// Now, on the wall.
pub fn now() -> Wall {
    Wall(Timestamp::now().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_reads_in_three_ways() {
        let (clock, moment) = (Clock::new(TimeZone::UTC), Wall(1_795_223_395_999));
        assert_eq!(clock.slashes(moment), "11/21/2026 01:09:55");
        assert_eq!(clock.asctime(moment), "Sat Nov 21 01:09:55 2026");
        assert_eq!(clock.iso(moment), "2026-11-21T01:09:55");
    }

    #[test]
    fn a_day_of_one_digit_is_padded_as_asctime_does() {
        assert_eq!(
            Clock::new(TimeZone::UTC).asctime(Wall::from_seconds(1_793_494_800)),
            "Sun Nov  1 01:00:00 2026"
        );
    }

    #[test]
    fn moments_outside_the_calendar_do_not_panic() {
        for moment in [Wall(i64::MIN), Wall(i64::MAX)] {
            assert_eq!(Clock::new(TimeZone::UTC).iso(moment), "1970-01-01T00:00:00");
        }
    }
}
