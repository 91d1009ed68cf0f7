//! Which jobs an event concerns: their tasks may become ready to start or not, or may count among
//! running ones or not.

use crate::event::{Event, EventSubject};
use proto::id::{ReservationId, SubmitSeq};

/// The job that an event concerns. An event that is not known here to change nothing counts.
pub fn job_of(event: &Event) -> Option<SubmitSeq> {
    let changes_nothing = matches!(
        event,
        Event::TaskStarted { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::TaskMigrationRequested { .. }
            | Event::TaskPreempted { .. }
    );
    match event.subject() {
        EventSubject::Job(seq) => Some(seq),
        EventSubject::Task(key) => (!changes_nothing).then_some(key.seq),
        // Slave tasks take nothing that their job does not have.
        EventSubject::SlaveTask(_)
        | EventSubject::Instance(_)
        | EventSubject::Reservation(_)
        | EventSubject::Objects
        | EventSubject::Host(_)
        | EventSubject::Cell => None,
    }
}

/// The advance reservation whose jobs an event concerns.
pub fn advance_of(event: &Event) -> Option<ReservationId> {
    if let Event::ReservationChanged { id, .. } | Event::ReservationEnded { id } = event {
        Some(*id)
    } else {
        None
    }
}
