//! `[[CC]YY]MMDDhhmm[.SS]`, read and printed in a time zone.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proto::time::Wall;

/// The part of a date that does not read, in the words of 8.1.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DateError {
    /// The text behind the point.
    #[error("Invalid format of seconds field.")]
    SecondsFormat,
    /// The digits before the point.
    #[error("Invalid format of date/hour-minute field.")]
    Format,
    /// A month above 12, or 0.
    #[error("Invalid month specification.")]
    Month,
    /// A day that the month does not have.
    #[error("Invalid day specification.")]
    Day,
    /// An hour above 23.
    #[error("Invalid hour specification.")]
    Hour,
    /// A minute above 59.
    #[error("Invalid minute specification.")]
    Minute,
    /// Seconds above 61.
    #[error("Invalid seconds specification.")]
    Seconds,
}

/// By which clock dates are read and printed.
#[derive(Clone, Debug)]
pub struct LocalCalendar {
    /// The time zone.
    pub zone: TimeZone,
    /// The year of dates without one.
    pub this_year: i16,
}

impl LocalCalendar {
    /// The calendar of this process.
    pub fn here() -> Self {
        let now = Zoned::now();
        Self {
            this_year: now.year(),
            zone: now.time_zone().clone(),
        }
    }

    /// Reads a date.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse(&self, text: &str) -> Result<Wall, DateError> {
        parse(text, self.this_year, &self.zone)
    }

    /// Prints a date as `CCYYMMDDhhmm.SS`. A time that no calendar has is printed as the first one.
    pub fn print(&self, at: Wall) -> String {
        let time = Timestamp::from_millisecond(at.0).unwrap_or_default();
        time.to_zoned(self.zone.clone()).strftime("%Y%m%d%H%M.%S").to_string()
    }
}

/// Reads a date as `-a`, `-dl`, `-b` and `-e` take it. A missing year is this year, a missing
/// century 20 below 70 and 19 from there.
///
/// # Errors
/// If a part of it does not read.
pub fn parse(text: &str, this_year: i16, zone: &TimeZone) -> Result<Wall, DateError> {
    let (digits, seconds) = match text.split_once('.') {
        Some((digits, "")) => (digits, 0),
        Some((digits, seconds)) => (
            digits,
            two_digits(seconds)
                .filter(|_| seconds.len() == 2)
                .ok_or(DateError::SecondsFormat)?,
        ),
        None => (text, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || ![8, 10, 12].contains(&digits.len()) {
        return Err(DateError::Format);
    }
    let (year, rest) = digits.split_at(digits.len() - 8);
    let year = match (year.len(), year.parse::<i16>().unwrap_or_default()) {
        (0, _) => this_year,
        (2, year) if year < 70 => 2000 + year,
        (2, year) => 1900 + year,
        (_, year) => year,
    };
    let field = |at: usize| two_digits(&rest[at..at + 2]).unwrap_or_default();
    let (month, day, hour, minute) = (field(0), field(2), field(4), field(6));
    for (ok, error) in [
        ((1..=12).contains(&month), DateError::Month),
        ((1..=31).contains(&day), DateError::Day),
        (hour < 24, DateError::Hour),
        (minute < 60, DateError::Minute),
        (seconds < 62, DateError::Seconds),
    ] {
        if !ok {
            return Err(error);
        }
    }
    let civil = DateTime::new(year, month, day, hour, minute, seconds.min(59), 0).map_err(|_| DateError::Day)?;
    let moment = civil.to_zoned(zone.clone()).map_err(|_| DateError::Format)?;
    Ok(Wall(moment.timestamp().as_millisecond()))
}

fn two_digits(text: &str) -> Option<i8> {
    text.get(..2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_the_manual_says() {
        for (text, expected) in [
            ("203001010000", Ok("2030-01-01T00:00:00Z")),
            ("203001010000.30", Ok("2030-01-01T00:00:30Z")),
            ("203001010000.", Ok("2030-01-01T00:00:00Z")),
            ("203001010000.5", Err("Invalid format of seconds field.")),
            ("3001010000", Ok("2030-01-01T00:00:00Z")),
            ("7001010000", Ok("1970-01-01T00:00:00Z")),
            ("01020304", Ok("2026-01-02T03:04:00Z")),
            ("203013010000", Err("Invalid month specification.")),
            ("203002300000", Err("Invalid day specification.")),
            ("203001012400", Err("Invalid hour specification.")),
            ("bad", Err("Invalid format of date/hour-minute field.")),
            ("2030é1010000", Err("Invalid format of date/hour-minute field.")),
        ] {
            let expected = expected.map(|time| Wall(time.parse::<jiff::Timestamp>().unwrap().as_millisecond()));
            let read = parse(text, 2026, &TimeZone::UTC).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_printed_date_is_read_as_the_same() {
        let calendar = LocalCalendar {
            zone: TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(),
            this_year: 2026,
        };
        let date = calendar.parse("203001010000").unwrap();
        assert_eq!(calendar.print(date), "203001010000.00");
        assert_eq!(calendar.parse("203001010000.00"), Ok(date));
    }
}
