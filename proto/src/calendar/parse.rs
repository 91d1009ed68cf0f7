//! The grammar of the two fields of a calendar: entries separated by blanks, each
//! `[days=][times=]state`, where at least one of the three is given.

use super::{CalendarState, Days, Entry, Schedule};
use crate::object::value::is_none;
use crate::time::{DAY_S, Day};

/// A field of a calendar cannot be read. The texts are those of 8.1.9 where they are known, and
/// name the word at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScheduleError {
    #[error("{0} entries are more than {ENTRIES}")]
    TooManyEntries(usize),
    #[error("\"{more}\" behind the state in \"{entry}\"")]
    TextBehindState { more: String, entry: String },
    #[error("\"{word}\" is not a state specifier")]
    UnknownState { word: String },
    #[error("first yearday in range must be before second yearday: {range}")]
    DaysReversed { range: String },
    #[error("\"{word}\" is not a weekday")]
    UnknownWeekday { word: String },
    #[error("\"{word}\" is not a day of a year: day.month.year is expected")]
    NotAYearDay { word: String },
    #[error("\"{word}\": that month has no day {day}")]
    NoSuchDay { word: String, day: u32 },
    #[error("\"{word}\" is not a range of times: FROM-UNTIL is expected")]
    NotATimeRange { word: String },
    #[error("\"{range}\" has no length; leave it out for all day")]
    EmptyTimeRange { range: String },
    #[error("\"{word}\" is not a time of a day: hour[:minute[:second]] is expected")]
    NotADaytime { word: String },
    #[error("\"{word}\" outside of range {low}-{high} of {part}")]
    OutOfRange {
        word: String,
        low: u32,
        high: u32,
        part: &'static str,
    },
    #[error("\"{word}\" is no number of the {part}")]
    NotANumber { word: String, part: &'static str },
}

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Entries that one field may have.
const ENTRIES: usize = 1_000;

/// Which field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CalendarField {
    Year,
    Week,
}

impl CalendarField {
    /// How it is done.
    pub(super) fn example(self) -> &'static str {
        match self {
            CalendarField::Year => {
                "write NONE, or entries like 24.12.2026-26.12.2026=off or 1.5.2026=8-12,13-17=suspended"
            }
            CalendarField::Week => "write NONE, or entries like mon-fri=20-6 or sat,sun=off or 12-18=suspended",
        }
    }
}

/// Reads a field.
///
/// # Errors
///
/// [`ScheduleError`] for the first word at fault.
pub(super) fn schedule(field: CalendarField, text: &str) -> Result<Schedule, ScheduleError> {
    let text = text.trim_ascii();
    if is_none(text) {
        return Ok(Schedule::none());
    }
    let joined = without_blanks_inside(text);
    let entries: Vec<Entry> = joined
        .split(' ')
        .map(|word| entry(field, word))
        .collect::<Result<_, _>>()?;
    if entries.len() > ENTRIES {
        return Err(ScheduleError::TooManyEntries(entries.len()));
    }
    Ok(Schedule {
        text: text.to_owned(),
        entries,
    })
}

/// Blanks separate entries; beside a mark they mean nothing.
fn without_blanks_inside(text: &str) -> String {
    let is_mark = |letter: Option<char>| letter.is_some_and(|letter| "=,-:.".contains(letter));
    let mut joined = String::new();
    for word in text.split_ascii_whitespace() {
        if !joined.is_empty() && !is_mark(joined.chars().last()) && !is_mark(word.chars().next()) {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

fn entry(field: CalendarField, text: &str) -> Result<Entry, ScheduleError> {
    let mut parts = text.split('=').peekable();
    let found = parts
        .next_if(|part| is_days(field, part))
        .map(|part| days(field, part))
        .transpose()?;
    let days = found.unwrap_or(Days::Every);
    let times = parts
        .next_if(|part| part.starts_with(|letter: char| letter.is_ascii_digit()))
        .map(times)
        .transpose()?;
    let state = parts.next().map(state).transpose()?;
    match parts.next() {
        Some(more) => Err(ScheduleError::TextBehindState {
            more: more.to_owned(),
            entry: text.to_owned(),
        }),
        None => Ok(Entry {
            days,
            times: times.unwrap_or_default(),
            state: state.unwrap_or(CalendarState::Off),
        }),
    }
}

/// Whether a part of an entry tells days: of a year with dots, of a week in words.
fn is_days(field: CalendarField, part: &str) -> bool {
    match field {
        CalendarField::Year => {
            part.contains('.') || !(part.starts_with(|letter: char| letter.is_ascii_digit()) || is_state(part))
        }
        CalendarField::Week => !part.starts_with(|letter: char| letter.is_ascii_digit()) && !is_state(part),
    }
}

fn is_state(word: &str) -> bool {
    state(word).is_ok()
}

fn state(word: &str) -> Result<CalendarState, ScheduleError> {
    match word.to_ascii_lowercase().as_str() {
        "on" => Ok(CalendarState::On),
        "off" => Ok(CalendarState::Off),
        "suspended" => Ok(CalendarState::Suspended),
        _ => Err(ScheduleError::UnknownState { word: word.to_owned() }),
    }
}

fn days(field: CalendarField, text: &str) -> Result<Days, ScheduleError> {
    match field {
        CalendarField::Week => {
            let mut ranges = text.split(',').map(|range| pair(range, weekday));
            ranges
                .try_fold(0, |days, range| Ok(days | week_range(range?)))
                .map(Days::Week)
        }
        CalendarField::Year => text
            .split(',')
            .map(year_range)
            .collect::<Result<_, _>>()
            .map(Days::Ranges),
    }
}

/// The days from one to another, over Sunday too.
fn week_range((first, last): (u8, u8)) -> u8 {
    let days = (last + 7 - first) % 7;
    (0..=days).fold(0, |set, days| set | 1 << ((first + days) % 7))
}

fn year_range(text: &str) -> Result<(Day, Day), ScheduleError> {
    let (first, last) = pair(text, year_day)?;
    if first > last {
        return Err(ScheduleError::DaysReversed { range: text.to_owned() });
    }
    Ok((first, last))
}

/// `A-B`, or `A` alone, which is both.
fn pair<T: Copy>(text: &str, read: impl Fn(&str) -> Result<T, ScheduleError>) -> Result<(T, T), ScheduleError> {
    match text.split_once('-') {
        Some((first, last)) => Ok((read(first)?, read(last)?)),
        None => read(text).map(|day| (day, day)),
    }
}

/// Whether a word is a name, in full or by its first three letters.
fn is_called(name: &str, word: &str) -> bool {
    word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3])
}

fn weekday(word: &str) -> Result<u8, ScheduleError> {
    let found = WEEKDAYS.iter().position(|day| is_called(day, word));
    let found = found.and_then(|day| u8::try_from(day).ok());
    found.ok_or_else(|| ScheduleError::UnknownWeekday { word: word.to_owned() })
}

fn year_day(text: &str) -> Result<Day, ScheduleError> {
    let parts: Vec<&str> = text.split('.').collect();
    let [day, month, year] = parts.as_slice() else {
        return Err(ScheduleError::NotAYearDay { word: text.to_owned() });
    };
    let day_of_month = number(day, 1, 31, "day")?;
    let named = MONTHS
        .iter()
        .position(|name| is_called(name, month))
        .and_then(|at| u32::try_from(at + 1).ok());
    let month = named.map_or_else(|| number(month, 1, 12, "month"), Ok)?;
    let year = number(year, 1970, 9999, "year")?;
    let found = Day::from_ymd(year.cast_signed(), month, day_of_month);
    found.ok_or_else(|| ScheduleError::NoSuchDay {
        word: text.to_owned(),
        day: day_of_month,
    })
}

fn times(text: &str) -> Result<Vec<(u32, u32)>, ScheduleError> {
    let ranges: Vec<Vec<(u32, u32)>> = text.split(',').map(time_range).collect::<Result<_, _>>()?;
    Ok(ranges.concat())
}

/// What ends before it begins is two areas of the same day.
fn time_range(text: &str) -> Result<Vec<(u32, u32)>, ScheduleError> {
    let Some((from, until)) = text.split_once('-') else {
        return Err(ScheduleError::NotATimeRange { word: text.to_owned() });
    };
    let (from, until) = (daytime(from)?, daytime(until)?);
    if from == until {
        return Err(ScheduleError::EmptyTimeRange { range: text.to_owned() });
    }
    if from < until {
        return Ok(vec![(from, until)]);
    }
    let areas = [(from, DAY_S), (0, until)];
    Ok(areas.into_iter().filter(|(from, until)| from < until).collect())
}

fn daytime(text: &str) -> Result<u32, ScheduleError> {
    let mut parts = text.split(':');
    let hour = number(parts.next().unwrap_or_default(), 0, 24, "hour specification")?;
    let minute = parts
        .next()
        .map_or(Ok(0), |text| number(text, 0, 59, "minute specification"))?;
    let second = parts
        .next()
        .map_or(Ok(0), |text| number(text, 0, 59, "second specification"))?;
    let time = hour * 3600 + minute * 60 + second;
    if parts.next().is_some() || time > DAY_S {
        return Err(ScheduleError::NotADaytime { word: text.to_owned() });
    }
    Ok(time)
}

fn number(text: &str, low: u32, high: u32, part: &'static str) -> Result<u32, ScheduleError> {
    let is_number = !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    let word = text.to_owned();
    match number {
        Some(number) if (low..=high).contains(&number) => Ok(number),
        None if !is_number => Err(ScheduleError::NotANumber { word, part }),
        Some(_) | None => Err(ScheduleError::OutOfRange { word, low, high, part }),
    }
}
