//! The plan for the time to come: until when tasks run, when calendars close, and which slots are
//! kept for which task.

use crate::config::Configuration;
use crate::ledger::keys::{block_key, block_of};
use crate::ledger::timeline::{Span, TimeLine, Window};
use crate::ledger::{Booking, Grant, Ledger};
use crate::sched::assign::Assignment;
use crate::sched::duration;
use crate::sched::filter::categories::CategoryId;
use crate::sched::reserve::SearchResult;
use crate::sched::reserve::closings::Closings;
use crate::state::State;
use crate::state::reservation::AdvanceReservation;
use proto::id::{HostName, PeName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec};
use proto::reservation::ReservationState;
use proto::time::{Now, Tick, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// Slots that are kept for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// When it is to start.
    pub at: Tick,
    /// How long it needs them, in milliseconds. `None` means for ever.
    pub length_ms: Option<u64>,
    /// Where; the first entry holds the master.
    pub granted: Vec<GrantedSlots>,
    /// The parallel environment, if any.
    pub pe: Option<PeName>,
}

/// The reservations of one pass.
pub type Reservations = BTreeMap<(SubmitSeq, TaskId), Reservation>;

/// Everything that is known of the time to come. It is empty while `max_reservation` is 0 and there
/// is no advance reservation.
#[derive(Clone, Debug)]
pub struct Lookahead {
    line: TimeLine,
    /// What has to be made anew before anybody reads it.
    outdated: Option<Staleness>,
    closings: Closings,
    reservations: Reservations,
    /// Where the search for each category ended in this pass.
    searches: BTreeMap<CategoryId, (SearchResult, usize)>,
    /// Categories for which the last search found no time at all.
    doubtful: BTreeSet<CategoryId>,
    /// The hosts where something was taken in this pass, in that order.
    taken: Vec<HostName>,
    disturbances: u64,
}

/// How much may not be true any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Staleness {
    /// The ends of tasks, the advance reservations, and the closings of calendars.
    Ends,
    /// Also which amounts count. The line is empty until it is drawn anew.
    All,
}

/// The most searches that are kept. With more, they begin anew.
const SEARCHES_KEPT: usize = 200;

/// The most categories that are remembered to have found no time. The oldest is forgotten.
const DOUBTFUL_KEPT: usize = 10_000;

impl Lookahead {
    /// A plan of which nothing is known yet. Calendars use the clock of `zone`.
    pub fn new(zone: Zone) -> Lookahead {
        Lookahead {
            line: TimeLine::default(),
            outdated: None,
            closings: Closings::new(zone),
            reservations: BTreeMap::new(),
            searches: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            taken: Vec::new(),
            disturbances: 0,
        }
    }

    /// The plan for a state in which these reservations have been made.
    pub fn of_state(state: &State, zone: Zone, reservations: &Reservations, now: Now) -> Lookahead {
        let mut ahead = Lookahead::new(zone);
        ahead.draw_line(state, None, plans_ahead(state), now);
        ahead.pass_time(&state.config, now);
        for ((seq, task), reservation) in reservations {
            if let Some(job) = state.jobs.get(seq).filter(|_| ahead.is_on()) {
                ahead.keep(state, &job.spec, (*seq, *task), reservation.clone());
            }
        }
        ahead
    }

    /// Whether anybody plans ahead.
    pub fn is_on(&self) -> bool {
        self.line.is_on()
    }

    /// How often kept slots were given up; 0 while nobody plans ahead.
    pub fn generation(&self) -> u64 {
        if self.is_on() { self.line.generation() } else { 0 }
    }

    /// The time line.
    pub fn line(&self) -> &TimeLine {
        &self.line
    }

    /// When calendars close.
    pub fn closings(&self) -> &Closings {
        &self.closings
    }

    /// The reservations.
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// The plan for a state without its reservations, for a caller who plans ahead whatever the
    /// configuration says.
    pub fn for_advance(state: &State, zone: Zone, now: Now) -> Lookahead {
        let mut ahead = Lookahead::new(zone);
        ahead.draw_line(state, None, true, now);
        ahead.pass_time(&state.config, now);
        ahead
    }

    /// Who plans ahead, or what is counted, may have changed: all that is known is to be made anew
    /// before it is looked at, see [`Lookahead::draw`]. Nothing is kept any more but advance
    /// reservations.
    pub fn outdate(&mut self, state: &State) {
        self.clear(plans_ahead(state));
        self.outdated = Some(Staleness::All);
    }

    /// How long tasks run, which advance reservations there are, or when calendars close may have
    /// changed, and nothing else.
    pub fn outdate_ends(&mut self, state: &State) {
        if plans_ahead(state) != self.is_on() {
            return self.outdate(state);
        }
        self.outdated = self.outdated.max(Some(Staleness::Ends));
    }

    /// Whether something is to be made anew.
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_some()
    }

    /// Makes anew what has to be. Changes come together, and there are many tasks.
    pub fn draw(&mut self, state: &State, planned: &Ledger) {
        match self.outdated {
            Some(Staleness::All) => self.draw_line(state, Some(planned), plans_ahead(state), state.now),
            Some(Staleness::Ends) => self.draw_ends(state, planned),
            None => {}
        }
    }

    fn clear(&mut self, is_on: bool) {
        self.line = self.line.emptied(is_on);
        self.forget_found();
    }

    /// Forgets results for jobs, and when calendars close.
    fn forget_found(&mut self) {
        self.closings.forget();
        self.reservations.clear();
        self.doubtful.clear();
        self.search_anew();
    }

    fn draw_line(&mut self, state: &State, planned: Option<&Ledger>, is_on: bool, now: Now) {
        self.clear(is_on);
        self.outdated = None;
        for ledger in [Some(&state.ledger), planned].into_iter().flatten() {
            ledger.keys().for_each(|key| self.runs(state, key, ledger, now));
        }
        self.keep_advance(state, now);
    }

    /// Draws the line anew where most tasks keep their ends.
    fn draw_ends(&mut self, state: &State, planned: &Ledger) {
        self.outdated = None;
        self.forget_found();
        self.line.give_up_all();
        let ledgers = [&state.ledger, planned];
        self.line
            .retain(|key| ledgers.iter().any(|ledger| ledger.booking(key).is_some()));
        for ledger in ledgers {
            for (key, booking) in ledger.bookings() {
                if !self.line.is_running(key, end(state, key, booking, state.now), booking) {
                    self.runs(state, key, ledger, state.now);
                }
            }
        }
        self.keep_advance(state, state.now);
        debug_assert!(
            self.line.is_like(&self.line_of(state, planned)),
            "what was not drawn anew is as it would be"
        );
    }

    fn line_of(&self, state: &State, planned: &Ledger) -> TimeLine {
        let mut anew = self.clone();
        anew.draw_line(state, Some(planned), self.is_on(), state.now);
        anew.line
    }

    /// Keeps the slots of advance reservations whose time has not come. Those whose time has come
    /// are booked like tasks.
    fn keep_advance(&mut self, state: &State, now: Now) {
        let is_waiting = |advance: &&AdvanceReservation| advance.state == ReservationState::Waiting;
        for advance in state.reservations.values().filter(is_waiting) {
            let (from, until) = advance.span(now);
            let key = block_key(advance.id);
            self.line.keep(key, Span { from, until }, |ledger| {
                ledger.hold(key, advance.block.clone())
            });
        }
    }

    /// Notes that a booked task runs from now on, or is about to.
    pub fn runs(&mut self, state: &State, key: TaskKey, ledger: &Ledger, now: Now) {
        if !self.line.is_on() || self.outdated == Some(Staleness::All) {
            return;
        }
        if let Some(booking) = ledger.booking(key) {
            self.line.run(key, end(state, key, booking, now), booking, ledger);
            self.taken
                .extend(booking.granted().iter().map(|part| part.instance.host.clone()));
        }
    }

    /// Notes that a task has ended, or does not start after all.
    pub fn over(&mut self, key: TaskKey) {
        self.line.over(key);
        self.search_anew();
    }

    /// Notes that a task has another key from now on.
    pub fn renamed(&mut self, key: TaskKey) {
        self.line.over(key);
    }

    /// Notes that something may be free earlier than a search found.
    pub fn search_anew(&mut self) {
        self.searches.clear();
        self.taken.clear();
    }

    /// Takes out where the search for a category ended, with the hosts where something was taken
    /// since.
    pub fn last_search(&mut self, category: CategoryId) -> Option<(SearchResult, Vec<HostName>)> {
        let (found, seen) = self.searches.remove(&category)?;
        Some((found, self.taken[seen..].to_vec()))
    }

    /// Keeps where the search for a category ended: the next one need not look at earlier times.
    pub fn keep_search(&mut self, category: CategoryId, found: SearchResult) {
        if self.searches.len() >= SEARCHES_KEPT {
            self.search_anew();
        }
        self.searches.insert(category, (found, self.taken.len()));
    }

    /// Notes that something else happened than that slots were kept, or a planned task entered the
    /// time line.
    pub fn disturbed(&mut self) {
        self.disturbances += 1;
    }

    /// How often something else happened.
    pub fn disturbances(&self) -> u64 {
        self.disturbances
    }

    /// Whether the last search for a category found no time at all.
    pub fn is_doubtful(&self, category: CategoryId) -> bool {
        self.doubtful.contains(&category)
    }

    /// Notes whether a search for a category found a time.
    pub fn searched(&mut self, category: CategoryId, has_found: bool) {
        if has_found {
            self.doubtful.remove(&category);
        } else {
            self.doubtful.insert(category);
            if self.doubtful.len() > DOUBTFUL_KEPT {
                self.doubtful.pop_first();
            }
        }
    }

    /// Sets the time, and gives kept slots up: jobs that still want them ask again.
    pub fn pass_time(&mut self, config: &Configuration, now: Now) {
        if !self.line.is_on() {
            return;
        }
        self.line.pass_time(now.tick, grace_ms(config));
        self.line.give_up();
        self.reservations.clear();
        self.search_anew();
        self.closings.refresh(config, now.wall);
    }

    /// Sets the time like [`Lookahead::pass_time`], and keeps the reservations. If the time of one
    /// has come, all are given up, and the result is false.
    pub fn pass_time_keeping(&mut self, config: &Configuration, now: Now) -> bool {
        if self.reservations.values().any(|kept| kept.at <= now.tick) {
            self.pass_time(config, now);
            return false;
        }
        self.line.pass_time(now.tick, grace_ms(config));
        self.search_anew();
        self.closings.refresh(config, now.wall);
        true
    }

    /// Gives up what is kept for a task, if anything is.
    pub fn give_up(&mut self, seq: SubmitSeq, task: TaskId) -> Option<Reservation> {
        let reservation = self.reservations.remove(&(seq, task))?;
        self.line.give_up_one(crate::ledger::keys::plan_key(seq, task));
        Some(reservation)
    }

    /// Keeps slots for a task.
    pub fn keep(&mut self, state: &State, spec: &JobSpec, (seq, task): (SubmitSeq, TaskId), reservation: Reservation) {
        let Reservation {
            at,
            length_ms,
            granted,
            pe,
        } = &reservation;
        let key = crate::ledger::keys::plan_key(seq, task);
        let grant = Grant::of_slots(granted, pe.as_ref());
        self.line.keep(key, Span::new(*at, *length_ms), |ledger| {
            ledger.book(&state.config, key, state.booking(spec, grant, *at));
        });
        self.taken
            .extend(reservation.granted.iter().map(|part| part.instance.host.clone()));
        self.reservations.insert((seq, task), reservation);
    }

    /// The calendars that close within the time that a job needs from now on.
    pub fn closing(&self, now: Now, length_ms: Option<u64>) -> BTreeSet<String> {
        if self.is_on() {
            self.closings.within(now, Span::new(now.tick, length_ms))
        } else {
            BTreeSet::new()
        }
    }

    /// The stretch of time that a job needs from now on. `None` if nobody plans ahead.
    pub fn window<'a>(&'a self, now: Now, length_ms: Option<u64>, closing: &'a BTreeSet<String>) -> Option<Window<'a>> {
        let span = Span::new(now.tick, length_ms);
        self.is_on().then_some(Window {
            line: &self.line,
            span,
            closing,
        })
    }
}

/// The end of a booking, as far as is known.
fn end(state: &State, key: TaskKey, booking: &Booking, now: Now) -> Tick {
    let advance = block_of(key).and_then(|id| state.reservations.get(&id));
    advance.map_or_else(|| duration::end(&state.config, booking), |advance| advance.span(now).1)
}

/// Whether there is anything to plan ahead for: reservations may be made, or there is an advance
/// reservation.
fn plans_ahead(state: &State) -> bool {
    state.config.scheduler.max_reservation > 0 || !state.reservations.is_empty()
}

/// How long an overdue task is expected to continue: until the next pass at the latest.
pub(crate) fn grace_ms(config: &Configuration) -> u64 {
    config
        .scheduler
        .schedule_interval
        .seconds()
        .unwrap_or(0)
        .saturating_mul(1000)
        .max(1)
}

impl Reservation {
    /// A reservation from the result of a search.
    pub fn new(at: Tick, length_ms: Option<u64>, assignment: Assignment) -> Reservation {
        Reservation {
            at,
            length_ms,
            granted: assignment.granted,
            pe: assignment.pe,
        }
    }
}
