//! Mail about advance reservations, for those who asked for it with `qrsub -m`. The texts are our
//! own.

use super::{Mail, Mailer, mailer};
use master_core::event::{Actor, InstanceState, Record};
use master_core::state::State;
use master_core::state::reservation::AdvanceReservation;
use proto::id::{QueueInstanceName, ReservationId};
use proto::reservation::ReservationState;

/// `-m b` when it begins, `-m e` when its time is over, `-m a` when somebody deletes it before.
pub(super) fn changed(
    mailer: &Mailer,
    state: &State,
    id: ReservationId,
    now: ReservationState,
    record: &Record,
) -> Option<Mail> {
    let reservation = state.reservations.get(&id)?;
    let wish = reservation.spec.mail;
    let (is_wanted, what) = match (now, &record.actor) {
        (ReservationState::Waiting, _) => return None,
        (ReservationState::Running, _) => (wish.begin, "Started".to_owned()),
        (ReservationState::Deleted, Actor::User { user, host }) if record.now.wall < reservation.end => {
            (wish.abort, format!("Deleted by {user}@{host}"))
        }
        (ReservationState::Deleted, _) => (wish.end, "Ended".to_owned()),
    };
    let (start, end) = (mailer.time(reservation.start), mailer.time(reservation.end));
    let text = format!(
        "{}\n User       = {}\n Start Time = {start}\n End Time   = {end}\n",
        named(reservation),
        reservation.spec.owner.user
    );
    is_wanted.then(|| mail(state, reservation, &what, text))
}

/// `-m a` when a queue instance that it has is closed by hand or by a failure, and when that is
/// over.
pub(super) fn failing(state: &State, instance: &QueueInstanceName, now: &InstanceState) -> Vec<Mail> {
    let is_closed = |state: &InstanceState| state.disabled || state.suspended || !state.errors.is_empty();
    let was_closed = state.instances.get(instance).is_some_and(is_closed);
    if was_closed == is_closed(now) {
        return Vec::new();
    }
    let what = if was_closed { "Works Again" } else { "Fails" };
    let text = |reservation: &AdvanceReservation| {
        let how = if was_closed {
            "takes its jobs again"
        } else {
            "takes no jobs"
        };
        format!("{}: queue instance {instance} {how}\n", named(reservation))
    };
    let concerned = state
        .reservations
        .values()
        .filter(|known| known.spec.mail.abort && known.has(instance));
    concerned
        .map(|reservation| mail(state, reservation, what, text(reservation)))
        .collect()
}

fn named(reservation: &AdvanceReservation) -> String {
    match reservation.spec.name.as_str() {
        "" => format!("Advance Reservation {}", reservation.id),
        name => format!("Advance Reservation {} ({name})", reservation.id),
    }
}

/// To those whom `-M` names, else to the owner on the host of the master.
fn mail(state: &State, reservation: &AdvanceReservation, what: &str, text: String) -> Mail {
    let spec = &reservation.spec;
    let to = if spec.mail_to.is_empty() {
        vec![spec.owner.user.to_string()]
    } else {
        spec.mail_to.clone()
    };
    Mail {
        mailer: mailer(state),
        to,
        subject: format!("{} {what}", named(reservation)),
        text,
    }
}
