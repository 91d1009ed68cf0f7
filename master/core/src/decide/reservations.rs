//! `qrsub` and `qrdel`, and what time makes of advance reservations.

use crate::decide::jobs::delete;
use crate::decide::submit::{advice, checks};
use crate::decide::{Caller, Turn};
use crate::event::Event;
use crate::explain::sentence;
use crate::matching::Demand;
use crate::sched::assign::Assignment;
use crate::sched::reserve::advance::find;
use crate::state::State;
use crate::state::reservation::AdvanceReservation;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::ReservationId;
use proto::reservation::{ReservationSpec, ReservationState};
use proto::restring::Wildcards;
use proto::time::Wall;
use proto::userset::RESERVATION_USERS;
use proto::wire::client::{Answer, Reply};
use proto::wire::view::Data;
use std::sync::Arc;

/// Reservations at a time, whatever `max_advance_reservations` says.
const RESERVATIONS_MAX: usize = 1_000;

/// The most lines that tell why nothing can be reserved.
const LINES_MAX: usize = 100;

/// Decides `qrsub`.
pub(super) fn reserve(turn: &mut Turn<'_>, caller: &Caller, spec: ReservationSpec) -> Reply {
    let mut spec = ReservationSpec {
        owner: caller.owner.clone(),
        ..spec
    };
    let advice = advice::multiplied_times(&turn.state().config.complex, &spec.requests);
    spec.requests.make_canonical(&turn.state().config.complex);
    match accept(turn, caller, spec) {
        Ok(Some(id)) => Reply {
            answers: advice,
            ..Reply::data(Data::Reserved(id))
        },
        Ok(None) => Reply::answers(vec![Answer::Done("verification: found suitable queue(s)".to_owned())]),
        Err(refusals) => Reply::answers(refusals.into_iter().map(Answer::Refused).collect()),
    }
}

/// Grants a reservation; none if it was only to be verified.
fn accept(
    turn: &mut Turn<'_>,
    caller: &Caller,
    spec: ReservationSpec,
) -> Result<Option<ReservationId>, Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    caller.must_be_on_submit_host(turn.state()).map_err(one)?;
    may_reserve(turn.state(), caller).map_err(one)?;
    let (start, end) = times(&spec, turn.now.wall).map_err(one)?;
    checks::check_reservation(turn.state(), &spec)?;
    let demand = Demand::of_reservation(&turn.state().config, &spec);
    let zone = turn.site().zone.clone();
    let found = find(turn.state(), turn.observations(), zone, &demand, (start, end), turn.now);
    let Assignment { granted, pe } = found.map_err(|reasons| {
        let mut lines: Vec<String> = reasons
            .iter()
            .map(|reason| format!("Your job {}", sentence(reason, &demand.text)))
            .collect();
        lines.dedup();
        lines.truncate(LINES_MAX);
        let why = lines.join("\n");
        match spec.verify {
            true => one(Diagnostic::new(
                Code::NotSuitable,
                format!("{why}\nverification: no suitable queues"),
            )),
            false => one(Diagnostic::new(Code::NotSuitable, "advance_reservation: no suitable queues").why(why)),
        }
    })?;
    if spec.verify {
        return Ok(None);
    }
    check_count(turn.state()).map_err(one)?;
    let id = next_number(turn.state());
    turn.record(Event::ReservationGranted {
        id,
        spec: Arc::new(spec),
        start,
        end,
        granted,
        pe,
    });
    Ok(Some(id))
}

/// Managers, operators and the members of `arusers`.
fn may_reserve(state: &State, caller: &Caller) -> Result<(), Diagnostic> {
    if caller.is_operator() || state.config.is_in_list(&caller.owner, RESERVATION_USERS) {
        return Ok(());
    }
    let user = caller.user();
    let what = format!("denied: \"{user}\" must be manager or in userset \"{RESERVATION_USERS}\"");
    Err(Diagnostic::new(Code::NotPermitted, what)
        .fix(format!("an operator adds it: qconf -au {user} {RESERVATION_USERS}")))
}

/// Begin and end from the two of three that were given.
fn times(spec: &ReservationSpec, now: Wall) -> Result<(Wall, Wall), Diagnostic> {
    let wrong = |what: &str, place: &str, fix: &str| Err(Diagnostic::new(Code::BadValue, what).at(place).fix(fix));
    let start = spec.start.unwrap_or(now);
    let duration_ms = spec
        .duration_s
        .filter(|seconds| *seconds > 0)
        .map(|seconds| i64::try_from(seconds * 1000).unwrap_or(i64::MAX));
    // Times are given in seconds: now is none of the past.
    if start.0 / 1000 < now.0 / 1000 {
        return wrong("start time is in the past", "-a", "name a later start, or leave -a out");
    }
    let end = match (spec.end, duration_ms) {
        (None, None) => {
            let what = "missing value for \"end time or duration\" in advance reservation request";
            return wrong(what, "-d", "say how long with -d, or until when with -e");
        }
        (None, Some(duration_ms)) => Wall(start.0.saturating_add(duration_ms)),
        (Some(end), None) => end,
        (Some(end), Some(duration_ms)) if spec.start.is_none() => {
            return Ok((Wall(end.0.saturating_sub(duration_ms)).max(now), end));
        }
        (Some(end), Some(duration_ms)) if end.0.saturating_sub(start.0) == duration_ms => end,
        (Some(_), Some(_)) => {
            let what = "difference between end and start time does not correspond to duration";
            return wrong(what, "-d", "give two of -a, -d and -e");
        }
    };
    if end <= start {
        return wrong(
            "start time is later than end time",
            "-e",
            "name an end behind the start",
        );
    }
    Ok((start, end))
}

/// `max_advance_reservations`.
fn check_count(state: &State) -> Result<(), Diagnostic> {
    let limit = state.config.settings.max_advance_reservations as usize;
    let limit = if limit == 0 {
        RESERVATIONS_MAX
    } else {
        limit.min(RESERVATIONS_MAX)
    };
    if state.reservations.len() < limit {
        return Ok(());
    }
    let what = format!("advance reservation rejected: only {limit} advance reservations are allowed per cluster");
    Err(Diagnostic::new(Code::JobLimit, what).fix("qrdel others, or raise max_advance_reservations: qconf -mconf"))
}

/// The next number that no reservation has.
fn next_number(state: &State) -> ReservationId {
    let mut number = state.last_reservation;
    loop {
        number = if number == u32::MAX { 1 } else { number + 1 };
        if !state.reservations.contains_key(&ReservationId(number)) {
            return ReservationId(number);
        }
    }
}

/// Decides `qrdel`.
pub(super) fn delete(turn: &mut Turn<'_>, caller: &Caller, targets: &[String], users: &[String], force: bool) -> Reply {
    if let Err(refusal) = caller
        .must_be_on_known_host(turn.state())
        .and_then(|()| may_reserve(turn.state(), caller))
    {
        return Reply::refusal(refusal);
    }
    let is_owner = |reservation: &AdvanceReservation| {
        users.is_empty()
            || users
                .iter()
                .any(|user| matches(user, reservation.spec.owner.user.as_str()))
    };
    let named = |target: &String| -> Vec<ReservationId> {
        let all = turn
            .state()
            .reservations
            .values()
            .filter(|reservation| is_owner(reservation));
        let meant = all.filter(|reservation| is_named(reservation, target));
        meant.map(|reservation| reservation.id).collect()
    };
    let everything = ["*".to_owned()];
    let asked: Vec<(&String, Vec<ReservationId>)> = match targets.is_empty() {
        true => everything.iter().map(|target| (target, named(target))).collect(),
        false => targets.iter().map(|target| (target, named(target))).collect(),
    };
    let mut answers = Vec::new();
    for (target, ids) in asked {
        if ids.is_empty() {
            let what = match targets.is_empty() {
                true => {
                    format!(
                        "There is no advance_reservation registered for the following users: {}",
                        users.join(",")
                    )
                }
                false => format!("denied: advance_reservation \"{target}\" does not exist"),
            };
            answers.push(Answer::Refused(
                Diagnostic::new(Code::UnknownObject, what).fix("qrstat lists them"),
            ));
        }
        answers.extend(ids.into_iter().map(|id| delete_one(turn, caller, id, force)));
    }
    Reply::answers(answers)
}

fn matches(pattern: &str, name: &str) -> bool {
    Wildcards::new(pattern).matches(name)
}

/// By its number, or by its name or a pattern of it.
fn is_named(reservation: &AdvanceReservation, target: &str) -> bool {
    match target.parse::<u32>() {
        Ok(number) => reservation.id == ReservationId(number),
        Err(_) => target == "*" || !reservation.spec.name.is_empty() && matches(target, &reservation.spec.name),
    }
}

fn delete_one(turn: &mut Turn<'_>, caller: &Caller, id: ReservationId, force: bool) -> Answer {
    let Some(reservation) = turn.state().reservations.get(&id) else {
        let what = format!("denied: advance_reservation \"{id}\" does not exist");
        return Answer::Refused(Diagnostic::new(Code::UnknownObject, what).fix("qrstat lists them"));
    };
    if !caller.may_act_for(&reservation.spec.owner.user) {
        let what = format!(
            "{} - you do not have the necessary privileges to delete the advance_reservation \"{id}\"",
            caller.user()
        );
        return Answer::Refused(Diagnostic::new(Code::NotPermitted, what));
    }
    end(turn, id, force);
    match turn.state().reservations.contains_key(&id) {
        true => Answer::Done(format!(
            "{} has registered the advance_reservation {id} for deletion",
            caller.user()
        )),
        false => Answer::Done(format!("{} has deleted advance_reservation {id}", caller.user())),
    }
}

/// A reservation is over: its jobs are deleted, and it is gone once they are.
fn end(turn: &mut Turn<'_>, id: ReservationId, force: bool) {
    let Some(reservation) = turn.state().reservations.get(&id) else {
        return;
    };
    if reservation.state != ReservationState::Deleted {
        turn.record(Event::ReservationChanged {
            id,
            state: ReservationState::Deleted,
        });
    }
    let jobs: Vec<_> = turn.state().index.jobs_within(id).collect();
    for seq in jobs {
        delete::remove(
            turn,
            seq,
            force.then(|| format!("the deletion of advance reservation {id} was forced")),
        );
    }
    if turn.state().index.jobs_within(id).next().is_none() {
        turn.record(Event::ReservationEnded { id });
    }
}

/// When time makes something of a reservation for the next time.
pub(crate) fn next_time(state: &State) -> Option<Wall> {
    state.index.next_reservation().map(|(at, _)| at)
}

/// Begins and ends the reservations whose time has come, and forgets those whose jobs are gone.
pub(super) fn follow(turn: &mut Turn<'_>) {
    let now = turn.now.wall;
    let ids = turn.state().index.due_reservations(now);
    for id in ids {
        let Some(reservation) = turn.state().reservations.get(&id) else {
            continue;
        };
        let (is_over, is_due) = (reservation.end <= now, reservation.start <= now);
        match reservation.state {
            ReservationState::Waiting | ReservationState::Running if is_over => end(turn, id, false),
            ReservationState::Waiting if is_due => {
                turn.record(Event::ReservationChanged {
                    id,
                    state: ReservationState::Running,
                });
            }
            ReservationState::Deleted if turn.state().index.jobs_within(id).next().is_none() => {
                turn.record(Event::ReservationEnded { id });
            }
            ReservationState::Waiting | ReservationState::Running | ReservationState::Deleted => {}
        }
    }
}
