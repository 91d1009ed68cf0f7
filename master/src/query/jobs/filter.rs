//! Which jobs and tasks `qstat` shows.

use crate::model::Model;
use crate::query::queues::Selection;
use crate::query::select::{self, Patterns};
use master_core::config::pattern::{QueuePattern, is_in_queue_list};
use master_core::ledger::Level;
use master_core::matching::{self, Mode};
use proto::diagnostic::Diagnostic;
use proto::id::{JobNumber, QueueInstanceName};
use proto::job::{Condition, Holds, JobSpec, Phase, Requests};
use proto::wire::client::{HoldFilter, JobFilter, JobStates};
use proto::wire::view::{JobRow, PendingTasks, TaskRow};
use std::collections::BTreeSet;

/// A filter, its patterns parsed.
pub(super) struct ParsedFilter {
    states: JobStates,
    jobs: select::Jobs,
    users: Patterns,
    /// The queue instances that `-q`, `-l` and `-pe` mean; none where every one is meant.
    instances: Option<BTreeSet<QueueInstanceName>>,
}

impl ParsedFilter {
    /// # Errors
    /// A resource that the complex does not know.
    pub(super) fn new(model: &Model, filter: &JobFilter) -> Result<Self, Box<Diagnostic>> {
        let selection = Selection::new(model, &filter.queues, &filter.pes, &filter.resources)?;
        let meant = model
            .state
            .config
            .resolved
            .iter()
            .filter(|(name, settings)| selection.admits(name, settings));
        Ok(Self {
            states: filter.states,
            jobs: select::Jobs::new(&filter.jobs),
            users: Patterns::new(&filter.users),
            instances: (!selection.is_all()).then(|| meant.map(|(name, _)| name.clone()).collect()),
        })
    }

    /// Which jobs are meant by what they are called.
    pub(super) fn jobs(&self) -> &select::Jobs {
        &self.jobs
    }

    /// Whether jobs that have left are meant too.
    pub(super) fn has_finished(&self) -> bool {
        self.states.finished
    }

    /// Whether a job is meant at all.
    pub(super) fn admits(&self, spec: &JobSpec, number: JobNumber) -> bool {
        self.users.admit(spec.owner.user.as_str()) && (self.jobs.is_empty() || self.jobs.any(number, &spec.name))
    }

    /// Leaves the tasks that are meant.
    pub(super) fn keep_tasks(&self, model: &Model, row: &mut JobRow) {
        let JobStates {
            pending, only_holds, ..
        } = self.states;
        let allows = self.allows_pending(model, &row.requests);
        let waits = row.waits();
        row.pending
            .retain(|group| pending && allows && has_hold(group, only_holds, waits));
        let is_there = |instances: &BTreeSet<QueueInstanceName>, task: &TaskRow| {
            task.granted.iter().any(|granted| instances.contains(&granted.instance))
        };
        let job = model.state.job(row.number);
        let is_held = |task: &TaskRow| {
            let known = job.and_then(|job| job.tasks.get(&task.task));
            let is_on_host = task.condition.phase != Phase::Finished;
            is_on_host && known.is_some_and(|known| has_named_hold(known.holds, self.states.held_on_hosts))
        };
        row.tasks.retain(|task| {
            let is_meant = self
                .instances
                .as_ref()
                .is_none_or(|instances| is_there(instances, task));
            (self.has_state(&task.condition) || is_held(task)) && is_meant
        });
    }

    /// Whether a queue instance that is meant is in the job's queue list and has what the job asks
    /// for. As 8.1.9 does, one that would have it by a load value that changes counts as one
    /// without, and the parallel environment does not matter.
    fn allows_pending(&self, model: &Model, requests: &Requests) -> bool {
        let Some(instances) = &self.instances else { return true };
        let config = &model.state.config;
        let Ok(hard) = matching::requests(&config.complex, &requests.hard) else {
            return false;
        };
        let wanted: Vec<QueuePattern> = requests
            .hard_queues
            .iter()
            .map(|text| QueuePattern::new(text))
            .collect();
        // By what queue instances are, whatever runs there.
        let cluster = model.cluster(Mode::EmptyCluster);
        instances.iter().any(|instance| {
            is_in_queue_list(config, &wanted, instance) && cluster.has(&Level::Instance(instance.clone()), &hard)
        })
    }

    fn has_state(&self, condition: &Condition) -> bool {
        let JobStates {
            pending: _,
            running,
            suspended,
            finished,
            only_holds: _,
            held_on_hosts: _,
        } = self.states;
        let is_stopped = condition.suspended || condition.queue_suspended || condition.threshold_suspended;
        match condition.phase {
            Phase::Pending => false,
            Phase::Transferring | Phase::Running if is_stopped => suspended,
            Phase::Transferring | Phase::Running => running,
            Phase::Finished => finished,
        }
    }
}

/// Whether one of the holds that somebody set is meant.
fn has_named_hold(holds: Holds, meant: HoldFilter) -> bool {
    let HoldFilter {
        user,
        operator,
        system,
        dependency: _,
        start_time: _,
    } = meant;
    (user && holds.user) || (operator && holds.operator) || (system && holds.system)
}

fn has_hold(group: &PendingTasks, only: HoldFilter, waits: bool) -> bool {
    if only == HoldFilter::default() {
        return true;
    }
    let HoldFilter {
        dependency, start_time, ..
    } = only;
    let held_by_others = waits || (group.condition.held && !group.holds.any());
    has_named_hold(group.holds, only)
        || (dependency && held_by_others)
        || (start_time && group.since.0 > 0 && !group.condition.held)
}
