//! Which jobs and tasks `qstat` shows.

use crate::query::Model;
use crate::query::select::{self, Patterns};
use master_core::matching::QueuePattern;
use proto::id::{JobNumber, QueueInstanceName};
use proto::job::{Condition, JobSpec, Phase};
use proto::wire::client::{HoldFilter, JobFilter, JobStates};
use proto::wire::view::{JobRow, PendingTasks};

/// A filter, its patterns parsed.
pub(super) struct Chosen<'a> {
    filter: &'a JobFilter,
    users: Patterns,
    queues: Vec<QueuePattern>,
    pes: Patterns,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(filter: &'a JobFilter) -> Self {
        Self {
            filter,
            users: Patterns::new(&filter.users),
            queues: filter.queues.iter().map(|text| QueuePattern::new(text)).collect(),
            pes: Patterns::new(&filter.pes),
        }
    }

    /// Whether a job is meant at all.
    pub(super) fn admits(&self, spec: &JobSpec, number: JobNumber) -> bool {
        let jobs = &self.filter.jobs;
        self.users.admit(spec.owner.user.as_str())
            && (jobs.is_empty() || jobs.iter().any(|job| select::names_job(job, number, &spec.name)))
            && (self.filter.pes.is_empty() || spec.requests.pe.as_ref().is_some_and(|pe| self.pes.any(&pe.name)))
    }

    /// Leaves the tasks that are meant.
    pub(super) fn keep_tasks(&self, model: &Model, row: &mut JobRow) {
        let JobStates { pending, only_holds, .. } = self.filter.states;
        let allows = self.allows_pending(model, &row.requests.hard_queues);
        let waits = !row.waits_for.is_empty();
        row.pending.retain(|group| pending && allows && has_hold(group, only_holds, waits));
        row.tasks.retain(|task| {
            let is_there = task.granted.iter().any(|granted| self.is_queue(model, &granted.instance));
            self.has_state(&task.condition) && (self.queues.is_empty() || is_there)
        });
    }

    /// Whether a pending job may go to a queue that is meant.
    fn allows_pending(&self, model: &Model, hard_queues: &[String]) -> bool {
        if self.queues.is_empty() || hard_queues.is_empty() {
            return true;
        }
        let config = &model.state.config;
        let wanted: Vec<QueuePattern> = hard_queues.iter().map(|text| QueuePattern::new(text)).collect();
        let meant = config.resolved.keys().filter(|instance| self.is_queue(model, instance));
        meant.into_iter().any(|instance| wanted.iter().any(|pattern| pattern.matches(config, instance)))
    }

    fn is_queue(&self, model: &Model, instance: &QueueInstanceName) -> bool {
        self.queues.iter().any(|pattern| pattern.matches(&model.state.config, instance))
    }

    fn has_state(&self, condition: &Condition) -> bool {
        let JobStates { pending: _, running, suspended, finished, only_holds: _ } = self.filter.states;
        let is_stopped = condition.suspended || condition.queue_suspended || condition.threshold_suspended;
        match condition.phase {
            Phase::Pending => false,
            Phase::Transferring | Phase::Running if is_stopped => suspended,
            Phase::Transferring | Phase::Running => running,
            Phase::Finished => finished,
        }
    }
}

fn has_hold(group: &PendingTasks, only: HoldFilter, waits: bool) -> bool {
    if only == HoldFilter::default() {
        return true;
    }
    let HoldFilter { user, operator, system, dependency, start_time } = only;
    let held_by_others = waits || (group.condition.held && !group.holds.any());
    (user && group.holds.user)
        || (operator && group.holds.operator)
        || (system && group.holds.system)
        || (dependency && held_by_others)
        || (start_time && group.since.0 > 0 && !group.condition.held)
}
