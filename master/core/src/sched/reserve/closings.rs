//! When calendars close the queue instances that use them, as far ahead as anybody plans.

use crate::config::Configuration;
use crate::ledger::timeline::{NEVER, Span};
use proto::calendar::{Calendar, CalendarState};
use proto::id::CalendarName;
use proto::time::{Now, Tick, Wall, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// Changes of a calendar that are looked ahead at. After them it counts as open.
const CHANGES_AHEAD: usize = 64;

/// When each calendar in use is closed or suspended.
#[derive(Clone, Debug)]
pub struct Closings {
    zone: Zone,
    /// In the order of time; the last may have no end.
    known: BTreeMap<CalendarName, Vec<(Wall, Option<Wall>)>>,
    /// The wall clock at which they were looked up. `None` if they have to be looked up again.
    since: Option<Wall>,
}

impl Closings {
    /// Closings of which nothing is known yet.
    pub fn new(zone: Zone) -> Closings {
        Closings {
            zone,
            known: BTreeMap::new(),
            since: None,
        }
    }

    /// Notes that calendars, or the queues that use them, have changed.
    pub fn forget(&mut self) {
        self.since = None;
    }

    /// Looks up calendars again whose closing is over; all of them if they changed or the clock was
    /// set back.
    pub fn refresh(&mut self, config: &Configuration, now: Wall) {
        let is_over = |closing: &&(Wall, Option<Wall>)| closing.1.is_some_and(|until| until <= now);
        let is_current = self.since.is_some_and(|since| since <= now);
        if is_current
            && !self
                .known
                .values()
                .filter_map(|closings| closings.first())
                .any(|first| is_over(&first))
        {
            return;
        }
        let used: BTreeSet<&CalendarName> = config.causes.calendars.values().flatten().collect();
        let calendars = used
            .into_iter()
            .filter_map(|name| Some((name, config.calendars.get(name)?)));
        self.known = calendars
            .map(|(name, calendar)| (name.clone(), closings(calendar, &self.zone, now)))
            .collect();
        self.since = Some(now);
    }

    /// Whether no calendar is in use.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The calendars that close their queue instances within a stretch of time.
    pub fn within(&self, now: Now, span: Span) -> BTreeSet<String> {
        let closes = |closings: &[(Wall, Option<Wall>)]| {
            closings.iter().any(|(from, until)| {
                let until = until.map_or(NEVER, |until| tick(now, until));
                Span {
                    from: tick(now, *from),
                    until,
                }
                .overlaps(&span)
            })
        };
        let closing = self.known.iter().filter(|(_, closings)| closes(closings));
        closing.map(|(name, _)| name.to_string()).collect()
    }

    /// When calendars open their queue instances again, in the order of time.
    pub fn openings(&self, now: Now) -> Vec<(Tick, CalendarName)> {
        let ends = self.known.iter().flat_map(|(name, closings)| {
            closings
                .iter()
                .filter_map(move |(_, until)| Some((tick(now, (*until)?), name.clone())))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort();
        ends
    }
}

/// The tick at which the wall clock will show a time, unless it jumps. A past time is now.
fn tick(now: Now, at: Wall) -> Tick {
    now.tick
        .plus_ms(u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0))
}

fn closings(calendar: &Calendar, zone: &Zone, now: Wall) -> Vec<(Wall, Option<Wall>)> {
    let mut closings = Vec::new();
    let mut state = calendar.state_at(zone.local(now));
    let mut from = now;
    for _ in 0..CHANGES_AHEAD {
        let next = calendar.next_change(zone, from);
        if state != CalendarState::On {
            closings.push((from, next.map(|(at, _)| at)));
        }
        let Some((at, after)) = next else { break };
        (from, state) = (at, after);
    }
    closings
}
