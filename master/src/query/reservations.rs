//! `qrstat`: advance reservations, with what fails in them.

use super::select::Patterns;
use crate::model::Model;
use master_core::event::InstanceState;
use master_core::observe::Observations;
use master_core::state::State;
use master_core::state::reservation::AdvanceReservation;
use proto::calendar::CalendarState;
use proto::id::{QueueInstanceName, ReservationId};
use proto::reservation::{ReservationState, ReservationView};
use proto::wire::client::Reply;
use proto::wire::view::Data;

/// The answer to [`proto::wire::client::Query::Reservations`].
pub(super) fn views(model: &Model, ids: &[ReservationId], users: &[String]) -> Reply {
    let patterns = (!users.is_empty()).then(|| Patterns::new(users));
    let is_meant = |reservation: &&AdvanceReservation| {
        let owner = reservation.spec.owner.user.as_str();
        (ids.is_empty() || ids.contains(&reservation.id))
            && patterns.as_ref().is_none_or(|patterns| patterns.any(owner))
    };
    let meant = model.state.reservations.values().filter(is_meant);
    Reply::data(Data::Reservations(
        meant.map(|reservation| view(model, reservation)).collect(),
    ))
}

fn view(model: &Model, reservation: &AdvanceReservation) -> ReservationView {
    let AdvanceReservation {
        id,
        spec,
        start,
        end,
        submitted,
        granted,
        pe,
        ..
    } = reservation;
    let failures = granted.iter().filter_map(|granted| {
        let what = failure(&model.state, &model.observations, &granted.instance)?;
        Some(format!("reserved queue {} is {what}", granted.instance))
    });
    let messages: Vec<String> = failures.collect();
    let state = match (reservation.state, messages.is_empty()) {
        (ReservationState::Deleted, _) => 'd',
        (ReservationState::Waiting, true) => 'w',
        (ReservationState::Running, true) => 'r',
        // As 8.1.9 shows it, whatever -he says: that only decides whether its jobs wait.
        (ReservationState::Running, false) => 'E',
        (ReservationState::Waiting, false) => 'W',
    };
    ReservationView {
        id: *id,
        spec: (**spec).clone(),
        state,
        start: *start,
        end: *end,
        submitted: *submitted,
        granted: granted.clone(),
        pe: pe.as_ref().map(ToString::to_string),
        messages,
    }
}

/// Whether one of the queue instances of a reservation takes no jobs, as far as is known: a host
/// that was not heard of since the start of the master does not count.
pub fn fails(state: &State, observations: &Observations, reservation: &AdvanceReservation) -> bool {
    let is_known = |instance: &QueueInstanceName| observations.hosts.contains_key(&instance.host);
    let instances = reservation.granted.iter().map(|granted| &granted.instance);
    instances
        .filter(|instance| is_known(instance))
        .any(|instance| failure(state, observations, instance).is_some())
}

/// Why a queue instance takes no jobs of a reservation, in a word of 8.1.9.
fn failure(state: &State, observations: &Observations, instance: &QueueInstanceName) -> Option<&'static str> {
    let config = &state.config;
    if !config.resolved.contains_key(instance) {
        return Some("deleted");
    }
    let InstanceState {
        disabled,
        suspended,
        errors,
        calendar,
        ..
    } = state.instances.get(instance).cloned().unwrap_or_default();
    let host = observations.hosts.get(&instance.host);
    let is_unknown = !host.is_some_and(|host| host.connected && !host.unheard);
    let causes = [
        (config.ambiguous.contains_key(instance), "ambiguous"),
        (disabled, "disabled"),
        (suspended, "suspended"),
        (is_unknown, "unknown"),
        (!errors.is_empty(), "in error state"),
        (calendar == CalendarState::Off, "calendar disabled"),
        (calendar == CalendarState::Suspended, "calendar suspended"),
    ];
    causes.into_iter().find(|(is_set, _)| *is_set).map(|(_, what)| what)
}
