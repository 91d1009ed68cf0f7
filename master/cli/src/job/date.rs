//! `[[CC]YY]MMDDhhmm[.SS]`, read in the time zone of the shell.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proto::time::Wall;

/// Reads a date as `-a`, `-dl`, `-b` and `-e` take it. A missing year is this year, a missing
/// century 20 below 70 and 19 from there.
///
/// # Errors
/// The first line of what 8.1.9 prints about it.
pub fn parse(text: &str, this_year: i16, zone: &TimeZone) -> Result<Wall, &'static str> {
    let (digits, seconds) = match text.split_once('.') {
        Some((digits, "")) => (digits, 0),
        Some((digits, seconds)) => (
            digits,
            two_digits(seconds)
                .filter(|_| seconds.len() == 2)
                .ok_or("Invalid format of seconds field.")?,
        ),
        None => (text, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || ![8, 10, 12].contains(&digits.len()) {
        return Err("Invalid format of date/hour-minute field.");
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
        ((1..=12).contains(&month), "Invalid month specification."),
        ((1..=31).contains(&day), "Invalid day specification."),
        (hour < 24, "Invalid hour specification."),
        (minute < 60, "Invalid minute specification."),
        (seconds < 62, "Invalid seconds specification."),
    ] {
        if !ok {
            return Err(error);
        }
    }
    let civil =
        DateTime::new(year, month, day, hour, minute, seconds.min(59), 0).map_err(|_| "Invalid day specification.")?;
    let moment = civil
        .to_zoned(zone.clone())
        .map_err(|_| "Invalid format of date/hour-minute field.")?;
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
            assert_eq!(parse(text, 2026, &TimeZone::UTC), expected, "{text}");
        }
    }
}
