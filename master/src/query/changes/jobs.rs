//! What people do to jobs of others.

use super::tracker::change;
use crate::store::EventHead;
use master_core::event::{Actor, Event};
use proto::id::{JobNumber, SubmitSeq, UserName};
use proto::request::TaskRange;
use proto::wire::view::{ChangeAction, ChangeView};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The facts about a job by which a change of it is told.
struct JobEntry {
    number: JobNumber,
    owner: UserName,
}

/// The fields of an event with a job's specification that are needed here. The specification itself
/// may take megabytes: it is never decoded.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum JobSummary {
    /// A job was submitted.
    JobSubmitted {
        seq: SubmitSeq,
        number: JobNumber,
        spec: SpecSummary,
    },
    /// A job was altered.
    JobAltered { seq: SubmitSeq },
}

impl JobSummary {
    /// The kinds of these events.
    pub(super) const KINDS: &[&str] = &["job-submitted", "job-altered"];
}

/// The owner of a job.
#[derive(Deserialize)]
pub(super) struct SpecSummary {
    owner: OwnerSummary,
}

#[derive(Deserialize)]
struct OwnerSummary {
    user: UserName,
}

/// What a user did to a job of somebody else.
pub(super) struct JobChange<'a> {
    job: &'a JobEntry,
    action: ChangeAction,
    /// The number of tasks that it was done to.
    tasks: u64,
}

impl JobChange<'_> {
    /// The change in an answer.
    pub(super) fn view(&self, head: &EventHead) -> ChangeView {
        ChangeView {
            owner: Some(self.job.owner.clone()),
            tasks: self.tasks,
            ..change(head, self.action, "job", self.job.number.to_string())
        }
    }
}

/// The jobs of the log that have not left.
#[derive(Default)]
pub(super) struct PresentJobs(BTreeMap<SubmitSeq, JobEntry>);

impl PresentJobs {
    /// Follows an event with a specification. Returns what it did to a job of somebody else.
    pub(super) fn summary(&mut self, actor: &Actor, summary: JobSummary) -> Option<JobChange<'_>> {
        match summary {
            JobSummary::JobSubmitted { seq, number, spec } => {
                let owner = spec.owner.user;
                self.0.insert(seq, JobEntry { number, owner });
                None
            }
            JobSummary::JobAltered { seq } => self.change(actor, seq, ChangeAction::Modified, 0),
        }
    }

    /// Follows another event. Returns what it did to a job of somebody else.
    pub(super) fn follow(&mut self, actor: &Actor, event: &Event) -> Option<JobChange<'_>> {
        if let Event::JobFinished { seq } = event {
            self.0.remove(seq);
            return None;
        }
        let (seq, action, tasks) = action(event)?;
        self.change(actor, seq, action, tasks)
    }

    /// Whether a user did something to a job whose submission the log does not have.
    pub(super) fn is_of_unknown(&self, actor: &Actor, event: &Event) -> bool {
        let seq = action(event).map(|(seq, ..)| seq);
        matches!(actor, Actor::User { .. }) && seq.is_some_and(|seq| !self.0.contains_key(&seq))
    }

    /// Whether a user altered a job whose submission the log does not have.
    pub(super) fn is_altered_unknown(&self, actor: &Actor, summary: &JobSummary) -> bool {
        let JobSummary::JobAltered { seq } = summary else {
            return false;
        };
        matches!(actor, Actor::User { .. }) && !self.0.contains_key(seq)
    }

    /// What was done to a job, if a user did it who is not the owner.
    fn change(&self, actor: &Actor, seq: SubmitSeq, action: ChangeAction, tasks: u64) -> Option<JobChange<'_>> {
        let Actor::User { user, .. } = actor else { return None };
        let job = self.0.get(&seq).filter(|job| job.owner != *user)?;
        Some(JobChange { job, action, tasks })
    }
}

/// What an event does to a job, if people cause such events.
fn action(event: &Event) -> Option<(SubmitSeq, ChangeAction, u64)> {
    let count = |tasks: &[TaskRange]| tasks.iter().map(|range| u64::from(range.count())).sum();
    Some(match event {
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
        | Event::CellVersionRaised { .. }
        | Event::EpochRaised { .. }
        | Event::WallJumped { .. }
        | Event::JobSubmitted { .. }
        | Event::JobAltered { .. }
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
        | Event::TaskRebooked { .. }
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
