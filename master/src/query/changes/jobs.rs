//! What people do to jobs of others.

use master_core::event::{Actor, Event};
use proto::id::{JobNumber, SubmitSeq, UserName};
use proto::request::TaskRange;
use proto::wire::view::ChangeAction;
use std::collections::BTreeMap;

/// The facts about a job by which a change of it is told.
pub(super) struct JobEntry {
    pub(super) number: JobNumber,
    pub(super) owner: UserName,
}

/// The jobs of the log that have not left.
#[derive(Default)]
pub(super) struct PresentJobs(BTreeMap<SubmitSeq, JobEntry>);

impl PresentJobs {
    /// Follows an event. Returns what it did to a job if a user did it who is not the owner, with
    /// the number of tasks.
    pub(super) fn follow(&mut self, actor: &Actor, event: &Event) -> Option<(&JobEntry, ChangeAction, u64)> {
        if let Event::JobSubmitted { seq, number, spec, .. } = event {
            let owner = spec.owner.user.clone();
            self.0.insert(*seq, JobEntry { number: *number, owner });
            return None;
        }
        if let Event::JobFinished { seq } = event {
            self.0.remove(seq);
            return None;
        }
        let Actor::User { user, .. } = actor else { return None };
        let (seq, action, tasks) = action(event)?;
        let job = self.0.get(&seq).filter(|job| job.owner != *user)?;
        Some((job, action, tasks))
    }
}

/// What an event does to a job, if people cause such events.
fn action(event: &Event) -> Option<(SubmitSeq, ChangeAction, u64)> {
    let count = |tasks: &[TaskRange]| tasks.iter().map(|range| u64::from(range.count())).sum();
    Some(match event {
        Event::JobAltered { seq, .. } => (*seq, ChangeAction::Modified, 0),
        Event::HoldsChanged { seq, tasks, change } => {
            let action = if change.set.any() {
                ChangeAction::Held
            } else {
                ChangeAction::Released
            };
            (*seq, action, count(tasks))
        }
        Event::TasksDeleted { seq, tasks } => (*seq, ChangeAction::Deleted, count(tasks)),
        Event::ErrorCleared { seq, tasks } => (*seq, ChangeAction::ErrorCleared, count(tasks)),
        Event::TaskDeletionRequested { key } => (key.seq, ChangeAction::Deleted, 1),
        Event::TaskRescheduleRequested { key } | Event::TaskMigrationRequested { key } => {
            (key.seq, ChangeAction::Rescheduled, 1)
        }
        Event::TaskSuspended { key, suspended: true } => (key.seq, ChangeAction::Suspended, 1),
        Event::TaskSuspended { key, suspended: false } => (key.seq, ChangeAction::Resumed, 1),
        Event::CellCreated { .. }
        | Event::EpochRaised { .. }
        | Event::WallJumped { .. }
        | Event::JobSubmitted { .. }
        | Event::TaskPlaced { .. }
        | Event::TaskStarted { .. }
        | Event::TaskEnded { .. }
        | Event::SlavePlaced { .. }
        | Event::SlaveStarted { .. }
        | Event::SlaveEnded { .. }
        | Event::UsageCharged { .. }
        | Event::UsageCleared { .. }
        | Event::TaskUnconfirmed { .. }
        | Event::TaskConfirmedGone { .. }
        | Event::TaskThresholdSuspended { .. }
        | Event::TaskPreempted { .. }
        | Event::JobFinished { .. }
        | Event::InstanceChanged { .. }
        | Event::NumbersContinued { .. }
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
        | Event::RequestAnswered { .. } => return None,
    })
}
