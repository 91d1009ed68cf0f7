//! Calendars: when queues are open, closed or suspended, by the local clock of the master
//! (ALGORITHMS.md section 16, `calendar_conf(5)`).
//!
//! What a calendar says is a pure function of what a local clock shows; [`Zone`] tells what that
//! is. Which queues use a calendar is no part of this.

mod parse;

#[cfg(test)]
mod tests;

use crate::diagnostic::{Code, Diagnostic};
use crate::id::CalendarName;
use crate::object::reader::Reader;
use crate::object::value;
use crate::object::{Fields, Object, ObjectKind, names};
use crate::time::{DAY_S, Day, LocalTime, Wall, Zone};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The attributes of a calendar in the order of `qconf -scal`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("calendar_name", "The name."),
    (
        "year",
        "Entries for days of the year, such as `24.12.2026-26.12.2026=off` or \
         `1.5.2026=8-12,13-17=suspended`. If one of them is about a day, it decides for this day.",
    ),
    (
        "week",
        "Entries for days of the week, such as `mon-fri=20-6`, `sat,sun=off` or \
         `12-18=suspended`. An entry is `[DAYS=][TIMES=]STATE`. Without a time it is about the \
         whole day, without a state it means `off`.",
    ),
];

/// Days in which a week calendar shows everything that it can do, changes of the clock included.
const WEEK_AND_MORE: i32 = 9;

/// What a calendar says about the queues that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalendarState {
    /// Open.
    #[default]
    On,
    /// Suspended: running tasks are stopped, none is started (`C`). Wins over off.
    Suspended,
    /// Closed: running tasks go on, none is started (`D`).
    Off,
}

/// A calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    /// The name.
    pub name: CalendarName,
    /// What is said about days of years. Where it speaks of a day, `week` does not count on that
    /// day.
    pub year: Schedule,
    /// What is said about days of the week.
    pub week: Schedule,
}

/// One of the two fields of a calendar: its text as it was written, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    text: String,
    entries: Vec<Entry>,
}

/// At these times on these days, this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    days: Days,
    /// From and until, in seconds of a day, rising; all day if there is none.
    times: Vec<(u32, u32)>,
    state: CalendarState,
}

/// Some days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Days {
    Every,
    /// One bit a day of the week, Monday first.
    Week(u8),
    /// From and to, both included.
    Ranges(Vec<(Day, Day)>),
}

impl Calendar {
    /// What `qconf -acal` opens: a calendar of that name that says nothing.
    pub fn template(name: CalendarName) -> Self {
        Self {
            name,
            year: Schedule::none(),
            week: Schedule::none(),
        }
    }

    /// Reads a calendar.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or does not follow its grammar; it
    /// names the word at fault.
    pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut calendar = Self::template(CalendarName::from("template"));
        let mut reader = Reader::new(ObjectKind::Calendar, fields, KEYS, KEYS);
        reader.read("calendar_name", &mut calendar.name, value::name);
        for (key, field, target) in [
            ("year", parse::CalendarField::Year, &mut calendar.year),
            ("week", parse::CalendarField::Week, &mut calendar.week),
        ] {
            match fields.value(key).map(|text| parse::schedule(field, text)) {
                Some(Ok(schedule)) => *target = schedule,
                Some(Err(fault)) => {
                    let what = format!("error in disabled_{key} of calendar \"{}\": {fault}", calendar.name);
                    let refusal = Diagnostic::new(Code::BadValue, what).at(fields.place(key));
                    reader.refuse(refusal.fix(field.example()));
                }
                None => {}
            }
        }
        reader.finish(calendar)
    }

    /// The calendar as text fields, in the order of `qconf -scal`.
    pub fn to_fields(&self) -> Fields {
        let Self { name, year, week } = self;
        let fields = [
            ("calendar_name", name.to_string()),
            ("year", year.text.clone()),
            ("week", week.text.clone()),
        ];
        fields.into_iter().collect()
    }

    /// What the calendar says at a time on the local clock.
    ///
    /// Within a field on wins over suspended, and suspended over off; what no entry speaks of is
    /// on. Where the year speaks of a day the week does not count.
    pub fn state_at(&self, at: LocalTime) -> CalendarState {
        let of_day = |schedule: &Schedule| schedule.entries.iter().any(|entry| entry.days.contains(at.day));
        let schedule = if of_day(&self.year) { &self.year } else { &self.week };
        let entries = schedule.entries.iter().filter(|entry| entry.covers(at));
        entries.map(|entry| entry.state).min().unwrap_or_default()
    }

    /// When the calendar says something else for the first time after `now`, and what; none if it
    /// never does.
    ///
    /// Exact: changes of the clock are counted in, and a time that a clock is put forward over
    /// counts from then on.
    pub fn next_change(&self, zone: &Zone, now: Wall) -> Option<(Wall, CalendarState)> {
        let current = self.state_at(zone.local(now));
        let days = self.days_to_look_at(zone.local(now).day);
        let marks = self.marks();
        let mut times: BTreeSet<Wall> = BTreeSet::new();
        for day in days {
            times.extend(
                marks
                    .iter()
                    .flat_map(|second| zone.instants(LocalTime { day, second: *second })),
            );
        }
        let (first, last) = (*times.first()?, *times.last()?);
        times.extend(zone.changes(first, last));
        let later = times
            .into_iter()
            .filter(|at| *at > now)
            .map(|at| (at, self.state_at(zone.local(at))));
        later.into_iter().find(|(_, state)| *state != current)
    }

    /// The seconds of a day at which anything may change.
    fn marks(&self) -> BTreeSet<u32> {
        let entries = self.year.entries.iter().chain(&self.week.entries);
        let ends = entries
            .flat_map(|entry| &entry.times)
            .flat_map(|(from, until)| [*from, *until]);
        ends.filter(|second| *second < DAY_S).chain([0]).collect()
    }

    /// The days on which the next change may be: those ahead, and those around each end of what the
    /// year speaks of. Between these each day is as the one a week before.
    fn days_to_look_at(&self, today: Day) -> BTreeSet<Day> {
        let ranges = self.year.entries.iter().flat_map(|entry| match &entry.days {
            Days::Ranges(ranges) => ranges.as_slice(),
            Days::Every | Days::Week(_) => &[],
        });
        let ends = ranges
            .flat_map(|(first, last)| [*first, *last])
            .filter(|day| *day >= today);
        let around = |day: Day| (-1..=WEEK_AND_MORE).map(move |days| day.plus(days));
        ends.chain([today]).flat_map(around).collect()
    }
}

impl Object for Calendar {
    fn template(name: &str) -> Self {
        Self::template(CalendarName::from(if name.is_empty() { "template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}

impl Schedule {
    /// `NONE`: nothing is said.
    pub fn none() -> Self {
        Self {
            text: "NONE".to_owned(),
            entries: Vec::new(),
        }
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Entry {
    fn covers(&self, at: LocalTime) -> bool {
        let is_time = |(from, until): &(u32, u32)| (*from..*until).contains(&at.second);
        self.days.contains(at.day) && (self.times.is_empty() || self.times.iter().any(is_time))
    }
}

impl Days {
    fn contains(&self, day: Day) -> bool {
        match self {
            Days::Every => true,
            Days::Week(days) => days & (1 << day.weekday()) != 0,
            Days::Ranges(ranges) => ranges.iter().any(|(first, last)| (*first..=*last).contains(&day)),
        }
    }
}
