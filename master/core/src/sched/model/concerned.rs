//! Which jobs an event concerns: their tasks may become ready to start or not, or may count among
//! running ones or not.

use crate::event::Event;
use proto::id::{ReservationId, SubmitSeq};

/// The job that an event concerns.
pub fn job_of(event: &Event) -> Option<SubmitSeq> {
    match event {
        Event::JobSubmitted { seq, .. }
        | Event::JobAltered { seq, .. }
        | Event::HoldsChanged { seq, .. }
        | Event::TasksDeleted { seq, .. }
        | Event::ErrorCleared { seq, .. }
        | Event::JobFinished { seq } => Some(*seq),
        Event::TaskPlaced { key, .. }
        | Event::TaskEnded { key, .. }
        | Event::TaskUnconfirmed { key, .. }
        | Event::TaskConfirmedGone { key, .. }
        | Event::TaskSuspended { key, .. }
        | Event::TaskThresholdSuspended { key, .. } => Some(key.seq),
        Event::CellCreated { .. }
        | Event::EpochRaised { .. }
        | Event::WallJumped { .. }
        | Event::SlavePlaced { .. }
        | Event::SlaveStarted { .. }
        | Event::SlaveEnded { .. }
        | Event::TaskStarted { .. }
        | Event::UsageCharged { .. }
        | Event::UsageCleared { .. }
        | Event::TaskDeletionRequested { .. }
        | Event::TaskRescheduleRequested { .. }
        | Event::TaskMigrationRequested { .. }
        | Event::TaskPreempted { .. }
        | Event::InstanceChanged { .. }
        | Event::ReservationGranted { .. }
        | Event::ReservationChanged { .. }
        | Event::ReservationEnded { .. }
        | Event::ObjectsChanged(_)
        | Event::CertificateIssued { .. }
        | Event::HostRevoked { .. }
        | Event::HostTasksBound { .. }
        | Event::TokenCreated(_)
        | Event::TokenRevoked { .. }
        | Event::TokenUsed { .. }
        | Event::NumbersContinued { .. }
        | Event::RequestAnswered { .. } => None,
    }
}

/// The advance reservation whose jobs an event concerns.
pub fn advance_of(event: &Event) -> Option<ReservationId> {
    match event {
        Event::ReservationChanged { id, .. } | Event::ReservationEnded { id } => Some(*id),
        _ => None,
    }
}
