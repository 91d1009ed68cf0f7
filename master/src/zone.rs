//! The time zone of this machine as a table, for the core: calendars go by the local clock.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proto::time::Zone;

/// Changes of the clock that are looked ahead at: those of more than two hundred years.
const CHANGES: usize = 1_000;

/// The machine's time zone, from `TZ` or the system. Read once: another zone takes effect with the
/// next start.
pub fn local() -> Zone {
    zone_of(&TimeZone::system())
}

fn zone_of(zone: &TimeZone) -> Zone {
    let first = Timestamp::UNIX_EPOCH;
    let changes = zone
        .following(first)
        .take(CHANGES)
        .map(|change| (change.timestamp().as_second(), change.offset().seconds()));
    Zone::new(zone.to_offset(first).seconds(), changes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::time::{Day, LocalTime, Wall};

    #[test]
    fn the_table_shows_what_the_time_zone_shows() {
        let central = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let table = zone_of(&central);
        for seconds in (1_700_000_000..5_000_000_000_i64)
            .step_by(1_234_567)
            .chain([1_774_745_999, 1_774_746_000])
        {
            let expected = Timestamp::from_second(seconds).unwrap().to_zoned(central.clone());
            let day = Day::from_ymd(
                expected.year().into(),
                expected.month().cast_unsigned().into(),
                expected.day().cast_unsigned().into(),
            );
            let second = expected.hour() as u32 * 3600 + expected.minute() as u32 * 60 + expected.second() as u32;
            assert_eq!(
                table.local(Wall::from_seconds(seconds)),
                LocalTime {
                    day: day.unwrap(),
                    second
                },
                "{expected}"
            );
        }
        assert_eq!(zone_of(&TimeZone::UTC), Zone::utc());
    }
}
