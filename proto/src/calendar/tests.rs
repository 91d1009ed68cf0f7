use super::*;
use proptest::prelude::*;

fn calendar(year: &str, week: &str) -> Result<Calendar, Vec<Diagnostic>> {
    let fields = [
        ("calendar_name", "c".to_owned()),
        ("year", year.to_owned()),
        ("week", week.to_owned()),
    ];
    Calendar::from_fields(&fields.into_iter().collect())
}

fn at(day: (i32, u32, u32), time: (u32, u32)) -> LocalTime {
    let (year, month, day) = day;
    LocalTime {
        day: Day::from_ymd(year, month, day).unwrap(),
        second: time.0 * 3600 + time.1 * 60,
    }
}

/// Central Europe in 2026.
fn berlin() -> Zone {
    Zone::new(3600, vec![(1_774_746_000, 7200), (1_792_890_000, 3600)])
}

/// The week of Monday, 16 November 2026.
const MON: (i32, u32, u32) = (2026, 11, 16);
const TUE: (i32, u32, u32) = (2026, 11, 17);
const FRI: (i32, u32, u32) = (2026, 11, 20);
const SAT: (i32, u32, u32) = (2026, 11, 21);
const SUN: (i32, u32, u32) = (2026, 11, 22);

#[test]
fn the_worked_examples_hold() {
    use CalendarState::{Off, On, Suspended};
    for (year, week, day, time, expected) in [
        ("NONE", "mon-fri=20-6 sat-sun", FRI, (21, 0), Off),
        ("NONE", "mon-fri=20-6 sat-sun", SAT, (12, 0), Off),
        ("NONE", "mon-fri=20-6 sat-sun", SUN, (23, 59), Off),
        ("NONE", "mon-fri=20-6 sat-sun", MON, (5, 59), Off),
        ("NONE", "mon-fri=20-6 sat-sun", MON, (6, 0), On),
        ("NONE", "mon-fri=20-6 sat-sun", MON, (19, 59), On),
        ("NONE", "mon-fri=20-6 sat-sun", MON, (20, 0), Off),
        // Both parts of 20-6 are of the same day.
        ("NONE", "fri=20-6", FRI, (5, 59), Off),
        ("NONE", "fri=20-6", FRI, (6, 0), On),
        ("NONE", "fri=20-6", FRI, (23, 59), Off),
        ("NONE", "fri=20-6", SAT, (0, 0), On),
        ("NONE", "12-18 tue=13-17=on", TUE, (14, 0), On),
        ("NONE", "12-18 tue=13-17=on", TUE, (12, 30), Off),
        ("NONE", "12-18 tue=13-17=on", MON, (14, 0), Off),
        ("NONE", "12-18 tue=13-17=on", MON, (18, 0), On),
        // On beats suspended beats off, whatever the order.
        ("NONE", "off mon=suspended mon=8-9=on", MON, (8, 30), On),
        ("NONE", "off mon=suspended mon=8-9=on", MON, (9, 0), Suspended),
        ("NONE", "off mon=suspended mon=8-9=on", TUE, (9, 0), Off),
        ("NONE", "mon=suspended mon=off", MON, (9, 0), Suspended),
        // A year entry takes the whole day from the week.
        ("17.11.2026=0-1", "off", TUE, (12, 0), On),
        ("17.11.2026=0-1", "off", TUE, (0, 30), Off),
        ("17.11.2026=0-1", "off", MON, (12, 0), Off),
        (
            "17.November.2026=suspended 17.11.2026=8-17=on",
            "NONE",
            TUE,
            (7, 0),
            Suspended,
        ),
        ("16.11.2026-20.11.2026=on", "off", FRI, (23, 59), On),
        ("16.11.2026-20.11.2026=on", "off", SAT, (0, 0), Off),
        ("NONE", "NONE", MON, (0, 0), On),
        // A range of days may go over Sunday.
        ("NONE", "sat-mon=off", SUN, (12, 0), Off),
        ("NONE", "sat-mon=off", TUE, (12, 0), On),
        ("NONE", "monday, FRI = 20 - 24", FRI, (23, 59), Off),
        ("NONE", "Mon=0:30:30-1=SUSPENDED", MON, (0, 31), Suspended),
    ] {
        let calendar = calendar(year, week).unwrap();
        assert_eq!(
            calendar.state_at(at(day, time)),
            expected,
            "year {year} week {week} at {day:?} {time:?}"
        );
    }
}

#[test]
fn what_is_printed_is_what_was_written() {
    let written = calendar("24.12.2026-26.12.2026=off", "mon-fri=6-20=off").unwrap();
    let fields = written.to_fields();
    assert_eq!(fields.value("year"), Some("24.12.2026-26.12.2026=off"));
    assert_eq!(fields.value("week"), Some("mon-fri=6-20=off"));
    assert_eq!(Calendar::from_fields(&fields), Ok(written));
}

/// A year, a week, and the refusal.
const FAULTS: [(&str, &str, &str); 14] = [
    (
        "NONE",
        "foo=off",
        "error in disabled_week of calendar \"c\": \"foo\" is not a weekday",
    ),
    (
        "32.1.2026=off",
        "NONE",
        "error in disabled_year of calendar \"c\": \"32\" outside of range 1-31 of day",
    ),
    (
        "1.13.2026",
        "NONE",
        "error in disabled_year of calendar \"c\": \"13\" outside of range 1-12 of month",
    ),
    (
        "31.4.2026",
        "NONE",
        "error in disabled_year of calendar \"c\": \"31.4.2026\": that month has no day 31",
    ),
    (
        "2.1.2026-1.1.2026",
        "NONE",
        "error in disabled_year of calendar \"c\": first yearday in range must be before second yearday: 2.1.2026-1.1.2026",
    ),
    (
        "mon=off",
        "NONE",
        "error in disabled_year of calendar \"c\": \"mon\" is not a day of a year: day.month.year is expected",
    ),
    (
        "NONE",
        "mon=25-26",
        "error in disabled_week of calendar \"c\": \"25\" outside of range 0-24 of hour specification",
    ),
    (
        "NONE",
        "mon=24:01-3",
        "error in disabled_week of calendar \"c\": \"24:01\" is not a time of a day: hour[:minute[:second]] is expected",
    ),
    (
        "NONE",
        "mon=6-6",
        "error in disabled_week of calendar \"c\": \"6-6\" has no length; leave it out for all day",
    ),
    (
        "NONE",
        "mon=6",
        "error in disabled_week of calendar \"c\": \"6\" is not a range of times: FROM-UNTIL is expected",
    ),
    (
        "NONE",
        "mon=6-8=closed",
        "error in disabled_week of calendar \"c\": \"closed\" is not a state specifier",
    ),
    (
        "NONE",
        "mon=6-8=off=on",
        "error in disabled_week of calendar \"c\": \"on\" behind the state in \"mon=6-8=off=on\"",
    ),
    (
        "NONE",
        "mon==off",
        "error in disabled_week of calendar \"c\": \"\" is not a state specifier",
    ),
    (
        "NONE",
        "mon=6-x",
        "error in disabled_week of calendar \"c\": \"x\" is no number of the hour specification",
    ),
];

#[test]
fn faults_name_the_word_and_the_field() {
    for (year, week, expected) in FAULTS {
        let refusals = calendar(year, week).unwrap_err();
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        assert_eq!(refusals[0].what, expected);
        assert!(!refusals[0].fix.is_empty());
    }
}

#[test]
fn the_next_change_is_exact_over_changes_of_the_clock() {
    use CalendarState::{Off, On};
    let zone = berlin();
    for (week, now, expected) in [
        // Sunday, 29 March 2026: 02:30 never comes; the queue is closed from 03:00 on.
        ("sun=2:30-5", 1_774_740_000, (1_774_746_000, Off)),
        // And opened at 05:00 summer time, three hours later by the clock and two by time.
        ("sun=2:30-5", 1_774_746_000, (1_774_753_200, On)),
        // Sunday, 25 October 2026: closed from half past two until three. The clock shows that
        // twice: 00:30 to 01:00, and again 01:30 to 02:00 in UTC.
        ("sun=2:30-3", 1_792_880_000, (1_792_888_200, Off)),
        ("sun=2:30-3", 1_792_888_200, (1_792_890_000, On)),
        ("sun=2:30-3", 1_792_890_000, (1_792_891_800, Off)),
        ("sun=2:30-3", 1_792_891_800, (1_792_893_600, On)),
    ] {
        let found = calendar("NONE", week)
            .unwrap()
            .next_change(&zone, Wall::from_seconds(now));
        assert_eq!(
            found,
            Some((Wall::from_seconds(expected.0), expected.1)),
            "{week} at {now}"
        );
    }
}

#[test]
fn changes_far_ahead_and_changes_that_never_come_are_known() {
    let now = Wall::from_seconds(1_792_900_000);
    let next = |year, week| calendar(year, week).unwrap().next_change(&Zone::utc(), now);
    assert_eq!(next("NONE", "NONE"), None);
    assert_eq!(next("NONE", "off"), None, "it is off for ever");
    assert_eq!(next("1.1.2000=off", "NONE"), None, "that day is over");
    let day = |year, month, day| Wall::from_seconds(i64::from(Day::from_ymd(year, month, day).unwrap().0) * 86_400);
    assert_eq!(
        next("1.1.2199=off", "NONE"),
        Some((day(2199, 1, 1), CalendarState::Off))
    );
    assert_eq!(
        next("1.1.2020-31.12.2150=off", "NONE"),
        Some((day(2151, 1, 1), CalendarState::On))
    );
    assert_eq!(
        next("1.1.2020-31.12.2150=off 1.1.2100-3.1.2100=on", "NONE"),
        Some((day(2100, 1, 1), CalendarState::On))
    );
    assert_eq!(next("1.1.2020-31.12.2150=off", "off"), None);
    // The year ends on a Friday; the week closes on the Thursday after.
    assert_eq!(
        next("1.1.2020-31.12.2027=on", "thu"),
        Some((day(2028, 1, 6), CalendarState::Off))
    );
}

fn words() -> impl Strategy<Value = (String, String)> {
    let times = prop::sample::select(vec!["", "=20-6", "=8:30-12,13-17", "=0-24", "=1:59:30-2:30", "=22-2"]);
    let states = prop::sample::select(vec!["", "=on", "=off", "=suspended"]);
    let weekdays = prop::sample::select(vec!["mon", "tue-thu", "sat-mon", "sun", "fri,sun", "mon-sun"]);
    let dates = prop::sample::select(vec![
        "27.3.2026",
        "28.3.2026-30.3.2026",
        "24.10.2026,26.10.2026",
        "2.4.2026-9.4.2026",
    ]);
    let week = prop::collection::vec((weekdays, times.clone(), states.clone()), 0..4);
    let year = prop::collection::vec((dates, times, states), 0..3);
    let text = |entries: Vec<(&str, &str, &str)>| {
        let entries: Vec<String> = entries
            .iter()
            .map(|(days, times, state)| format!("{days}{times}{state}"))
            .collect();
        if entries.is_empty() {
            "NONE".to_owned()
        } else {
            entries.join(" ")
        }
    };
    (year.prop_map(text), week.prop_map(text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Looking at every half minute of eighteen days finds the change that is foretold, and none
    /// before.
    #[test]
    fn the_next_change_is_the_first_one(
        (year, week) in words(),
        start in prop::sample::select(vec![1_774_600_000i64, 1_792_700_000, 1_774_745_970, 1_792_890_000]),
    ) {
        let (zone, calendar) = (berlin(), calendar(&year, &week).unwrap());
        let start = start / 30 * 30;
        let state = |seconds| calendar.state_at(zone.local(Wall::from_seconds(seconds)));
        let seen = (1..18 * 2880).map(|half| start + half * 30).find(|seconds| state(*seconds) != state(start));
        let told = calendar.next_change(&zone, Wall::from_seconds(start));
        let seen = seen.map(|seconds| (Wall::from_seconds(seconds), state(seconds)));
        prop_assert_eq!(told.filter(|(at, _)| at.seconds() < start + 18 * 86_400 - 30), seen);
    }

    /// A parser of text from outside never panics, and what it takes it prints again.
    #[test]
    fn any_text_is_read_or_refused(year in "[0-9a-z.,=: -]{0,30}", week in "[0-9a-z.,=: -]{0,30}|(mon|tue|sun|on|off|[0-9]{1,2}|[-=,: ]){0,9}") {
        if let Ok(read) = calendar(&year, &week) {
            let again = Calendar::from_fields(&read.to_fields());
            prop_assert_eq!(again, Ok(read.clone()));
            read.next_change(&berlin(), Wall::from_seconds(1_774_600_000));
        }
    }
}
