//! The records of advance reservations: `new_ar` and `ar_attr` when one is granted, `ar_log` for
//! what becomes of it, `ar_acct` for each of its queue instances when it is gone.

use super::ReportingFile;
use super::lines::{Lines, plain};
use crate::query::fails;
use master_core::event::{Event, Record};
use master_core::observe::Observations;
use master_core::state::State;
use master_core::state::reservation::AdvanceReservation;
use proto::id::ReservationId;
use proto::reporting;
use proto::reservation::ReservationState;

/// What has happened to a reservation: its new state, the event, and the message of 8.1.9.
type ReservationStep = (char, &'static str, &'static str);

const UNSATISFIED: (&str, &str) = ("RESOURCES UNSATISFIED", "AR resources unsatisfied");
const SATISFIED: (&str, &str) = ("RESOURCES SATISFIED", "AR resources satisfied");

impl ReportingFile {
    /// Notes what an event says of a reservation that it takes away.
    pub(super) fn reservations_before(&mut self, state: &State, record: &Record) {
        let Event::ReservationEnded { id } = &record.event else {
            return;
        };
        let Some(reservation) = state.reservations.get(id) else {
            return;
        };
        let is_over = reservation.end <= record.now.wall;
        let step = if is_over {
            ('x', "TERMINATED", "end time of AR reached")
        } else {
            ('d', "DELETED", "AR deleted")
        };
        let at = record.now.wall.seconds();
        self.failing.remove(id);
        self.note(state, |lines| {
            lines.of_step(at, reservation, step);
            lines.of_slots(at, reservation);
        });
    }

    /// Notes what an event has made of reservations.
    pub(super) fn reservations_after(&mut self, state: &State, observations: &Observations, record: &Record) {
        let at = record.now.wall.seconds();
        #[allow(clippy::wildcard_enum_match_arm, reason = "only these events concern reservations")]
        match &record.event {
            Event::ReservationGranted { id, .. } => {
                self.of_one(state, *id, |lines, reservation| lines.of_grant(at, reservation))
            }
            Event::ReservationChanged {
                id,
                state: ReservationState::Running,
            } => {
                let is_failing = state
                    .reservations
                    .get(id)
                    .is_some_and(|known| fails(state, observations, known));
                let letter = if is_failing { 'E' } else { 'r' };
                if is_failing {
                    self.failing.insert(*id);
                }
                self.of_one(state, *id, |lines, reservation| {
                    lines.of_step(
                        at,
                        reservation,
                        (letter, "START TIME REACHED", "start time of AR reached"),
                    );
                });
            }
            Event::InstanceChanged { .. } | Event::ObjectsChanged(_) => self.failures(state, observations, at),
            _ => {}
        }
    }

    fn of_one(&mut self, state: &State, id: ReservationId, add: impl FnOnce(&mut Lines<'_>, &AdvanceReservation)) {
        if let Some(reservation) = state.reservations.get(&id) {
            self.note(state, |lines| add(lines, reservation));
        }
    }

    /// Notes which reservations have begun or ceased to fail.
    pub(super) fn failures(&mut self, state: &State, observations: &Observations, at: i64) {
        if !self.params.reporting {
            return;
        }
        for reservation in state.reservations.values() {
            let is_running = match reservation.state {
                ReservationState::Running => true,
                ReservationState::Waiting => false,
                ReservationState::Deleted => continue,
            };
            let (was_failing, is_failing) = (
                self.failing.contains(&reservation.id),
                fails(state, observations, reservation),
            );
            let (letter, (event, message)) = match (was_failing, is_failing, is_running) {
                (false, true, true) => ('E', UNSATISFIED),
                (false, true, false) => ('W', UNSATISFIED),
                (true, false, true) => ('r', SATISFIED),
                (true, false, false) => ('w', SATISFIED),
                (true, true, _) | (false, false, _) => continue,
            };
            if is_failing {
                self.failing.insert(reservation.id);
            } else {
                self.failing.remove(&reservation.id);
            }
            self.note(state, |lines| lines.of_step(at, reservation, (letter, event, message)));
        }
    }
}

impl Lines<'_> {
    fn of_grant(&mut self, at: i64, reservation: &AdvanceReservation) {
        let AdvanceReservation {
            id,
            spec,
            start,
            end,
            submitted,
            pe,
            ..
        } = reservation;
        let (owner, submitted) = (&spec.owner.user, submitted.seconds());
        self.line(at, &reporting::NEW_AR, &format!("{submitted}:{id}:{owner}"));
        let asked: Vec<String> = spec.requests.hard.iter().map(ToString::to_string).collect();
        let asked = if asked.is_empty() {
            "NONE".to_owned()
        } else {
            plain(&asked.join(","))
        };
        let (name, account) = (plain(&spec.name), plain(spec.account.as_deref().unwrap_or("sge")));
        let (start, end) = (start.seconds(), end.seconds());
        let pe = pe.as_ref().map_or("", |pe| pe.as_str());
        self.line(
            at,
            &reporting::AR_ATTR,
            &format!("{at}:{submitted}:{id}:{name}:{account}:{start}:{end}:{pe}:{asked}"),
        );
    }

    fn of_step(&mut self, at: i64, reservation: &AdvanceReservation, (state, event, message): ReservationStep) {
        let (id, submitted) = (reservation.id, reservation.submitted.seconds());
        self.line(
            at,
            &reporting::AR_LOG,
            &format!("{at}:{submitted}:{id}:{state}:{event}:{message}"),
        );
    }

    fn of_slots(&mut self, at: i64, reservation: &AdvanceReservation) {
        let (id, submitted) = (reservation.id, reservation.submitted.seconds());
        for granted in &reservation.granted {
            let instance = &granted.instance;
            let slots = granted.slots;
            self.line(
                at,
                &reporting::AR_ACCT,
                &format!("{at}:{submitted}:{id}:{}:{}:{slots}", instance.queue, instance.host),
            );
        }
    }
}
