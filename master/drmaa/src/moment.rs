//! The partial times of `drmaa_start_time`: `[[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu]`.

use crate::error::{DrmaaError, Errno};
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, Timestamp, Zoned};
use proto::time::Wall;

/// Reads a time. A part that is left out is the one of `now`; a time that has passed then means the
/// next one of its kind: the next day, month or year.
///
/// # Errors
/// `Denied`, as 8.1.9 has it at the submission.
pub fn parse(text: &str, now: &Zoned) -> Result<Wall, DrmaaError> {
    read(text, now)
        .map(|moment| Wall::from_seconds(moment.as_second()))
        .ok_or_else(|| DrmaaError::new(Errno::Denied, "Error parsing DRMAA date string"))
}

/// The largest part of a date that is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OmittedPart {
    None,
    Year,
    Month,
    Day,
}

fn read(text: &str, now: &Zoned) -> Option<Timestamp> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let zone = match words.last() {
        Some(word) if word.starts_with(['+', '-']) => {
            let zone = offset(word)?;
            words.pop();
            zone
        }
        _ => now.time_zone().clone(),
    };
    let now = now.with_time_zone(zone.clone());
    let (date, time) = match words[..] {
        [time] => (None, time),
        [date, time] => (Some(date), time),
        _ => return None,
    };
    let (date, omitted) = match date {
        Some(date) => read_date(date, now.date())?,
        None => (now.date(), OmittedPart::Day),
    };
    let moment = |date: Date| Some(date.to_datetime(clock(time)?).to_zoned(zone.clone()).ok()?.timestamp());
    let found = moment(date)?;
    if found >= now.timestamp() {
        return Some(found);
    }
    let step = match omitted {
        OmittedPart::None => return Some(found),
        OmittedPart::Year => Span::new().years(1),
        OmittedPart::Month => Span::new().months(1),
        OmittedPart::Day => Span::new().days(1),
    };
    moment(date.checked_add(step).ok()?)
}

fn read_date(text: &str, today: Date) -> Option<(Date, OmittedPart)> {
    let parts: Vec<&str> = text.split('/').collect();
    let (year, month, day, omitted) = match parts[..] {
        [day] => (today.year(), today.month(), two_digits(day)?, OmittedPart::Month),
        [month, day] => (today.year(), two_digits(month)?, two_digits(day)?, OmittedPart::Year),
        [year, month, day] => (
            read_year(year, today)?,
            two_digits(month)?,
            two_digits(day)?,
            OmittedPart::None,
        ),
        _ => return None,
    };
    Some((Date::new(year, month, day).ok()?, omitted))
}

fn read_year(text: &str, today: Date) -> Option<i16> {
    match text.len() {
        2 => Some(today.year() / 100 * 100 + i16::from(two_digits(text)?)),
        4 => digits(text)?.parse().ok(),
        _ => None,
    }
}

fn clock(text: &str) -> Option<Time> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (two_digits(hour)?, two_digits(minute)?, 0),
        [hour, minute, second] => (two_digits(hour)?, two_digits(minute)?, two_digits(second)?),
        _ => return None,
    };
    Time::new(hour, minute, second, 0).ok()
}

fn offset(text: &str) -> Option<TimeZone> {
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    if minutes > 59 {
        return None;
    }
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    let signed = if text.starts_with('-') { -seconds } else { seconds };
    Offset::from_seconds(signed).ok().map(TimeZone::fixed)
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn two_digits(text: &str) -> Option<i8> {
    digits(text).filter(|text| text.len() <= 2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_left_out_is_the_next_one() {
        let now: Zoned = "2026-11-26T12:00:00[UTC]".parse().unwrap();
        for (text, expected) in [
            ("2030/01/02 03:04:05", "2030-01-02T03:04:05Z"),
            ("30/01/02 03:04", "2030-01-02T03:04:00Z"),
            ("11:12", "2026-11-27T11:12:00Z"),
            ("12:30:10", "2026-11-26T12:30:10Z"),
            ("25 10:00", "2026-12-25T10:00:00Z"),
            ("26 13:00", "2026-11-26T13:00:00Z"),
            ("11/25 10:00", "2027-11-25T10:00:00Z"),
            ("12/01 10:00", "2026-12-01T10:00:00Z"),
            ("2020/01/01 00:00", "2020-01-01T00:00:00Z"),
            ("2030/01/02 03:04:05 +01:00", "2030-01-02T02:04:05Z"),
            ("12:30 -02:00", "2026-11-26T14:30:00Z"),
            ("09:30 -02:00", "2026-11-27T11:30:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(
                parse(text, &now),
                Ok(Wall::from_seconds(expected.as_second())),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_refused() {
        let now: Zoned = "2026-11-26T12:00:00[UTC]".parse().unwrap();
        for text in [
            "",
            "nonsense",
            "25:00",
            "12",
            "2026/13/01 10:00",
            "1/2/3/4 10:00",
            "10:00 +1",
            "10:00 x y",
            "203/01/01 10:00",
        ] {
            assert_eq!(
                parse(text, &now).unwrap_err().text,
                "Error parsing DRMAA date string",
                "{text}"
            );
        }
    }
}
