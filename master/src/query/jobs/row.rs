//! One job as `qstat` shows it.

use crate::model::Model;
use crate::query::conditions;
use master_core::config::Configuration;
use master_core::matching;
use master_core::sched::{TaskPhase, contribution, urgency_slots};
use master_core::state::eligible;
use master_core::state::job::{FinishedJob, FinishedTask, Job, Placement, Task, TaskPlace};
use proto::id::{JobNumber, SubmitSeq, TaskId, TaskKey};
use proto::job::{JobSpec, Requests};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::usage::Usage;
use proto::wire::view::{JobRow, PendingTasks, PriorityNumbers, TaskRow};

/// `-A` of a job that names none.
const DEFAULT_ACCOUNT: &str = "sge";

/// A job that has tasks left, with all of them.
pub(super) fn present(model: &Model, job: &Job) -> JobRow {
    let mut row = common(&model.state.config, job.seq, job.number, &job.spec, job.submitted);
    let number = |seq: &SubmitSeq| model.state.jobs.get(seq).map(|job| job.number);
    row.waits_for = job.waits_for.iter().filter_map(number).collect();
    row.array_waits_for = job.array_waits_for.iter().filter_map(number).collect();
    row.priority = model.scheduling.priority(job.seq, TaskPhase::Pending);
    row.contributions = contributions(&model.state.config, &row.requests);
    row.pending = pending(model, job);
    row.tasks = job
        .tasks
        .iter()
        .filter_map(|(id, task)| placed(model, job, *id, task))
        .collect();
    row
}

/// The first tasks of a job on hosts, of those in the ranges; no range means all.
pub(super) fn on_hosts(model: &Model, job: &Job, ranges: &[TaskRange], most: usize) -> Vec<TaskRow> {
    let is_meant = |id: &TaskId| ranges.is_empty() || ranges.iter().any(|range| range.contains(*id));
    let meant = job.tasks.iter().filter(|(id, _)| is_meant(id));
    meant
        .filter_map(|(id, task)| placed(model, job, *id, task))
        .take(most)
        .collect()
}

/// A job that has left, with the tasks that are still known.
pub(super) fn finished(config: &Configuration, job: &FinishedJob) -> JobRow {
    let mut row = common(config, job.seq, job.number, &job.spec, job.submitted);
    row.tasks = job.tasks.iter().map(finished_task).collect();
    row
}

fn common(config: &Configuration, seq: SubmitSeq, number: JobNumber, spec: &JobSpec, submitted: Wall) -> JobRow {
    JobRow {
        seq,
        number,
        name: spec.name.clone(),
        owner: spec.owner.user.clone(),
        group: spec.owner.group.clone(),
        project: spec.project.clone(),
        department: config.access.department_of(&spec.owner).to_owned(),
        account: spec.account.clone().unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()),
        posix_priority: spec.priority,
        job_share: spec.job_share,
        override_tickets: spec.override_tickets,
        submitted,
        deadline: spec.deadline,
        start_after: spec.start_after,
        array: spec.array,
        task_concurrency: spec.task_concurrency,
        requests: (*spec.requests).clone(),
        checkpoint: spec.checkpoint.clone(),
        contributions: Vec::new(),
        slots: urgency_slots(config, spec.requests.pe.as_ref()),
        predecessors: spec.predecessors.clone(),
        waits_for: Vec::new(),
        array_predecessors: spec.array_predecessors.clone(),
        array_waits_for: Vec::new(),
        priority: Default::default(),
        pending: Vec::new(),
        tasks: Vec::new(),
    }
}

/// What each hard request contributes to the urgency; nothing where the complex knows one of them
/// no longer.
fn contributions(config: &Configuration, requests: &Requests) -> Vec<i64> {
    if requests.hard.is_empty() {
        return Vec::new();
    }
    let slots = urgency_slots(config, requests.pe.as_ref());
    let known = matching::requests(&config.complex, &requests.hard).unwrap_or_default();
    known
        .iter()
        .map(|request| i64::try_from(contribution(request, slots)).unwrap_or(i64::MAX))
        .collect()
}

/// Pending tasks, those in one condition together. The untouched of an array are one group unless
/// they wait for tasks of another array, where each may differ.
fn pending(model: &Model, job: &Job) -> Vec<PendingTasks> {
    let concurrency_blocked = is_concurrency_blocked(model, job);
    let mut groups: Vec<PendingTasks> = Vec::new();
    let mut add = |task: TaskId, ranges: Vec<TaskRange>| {
        let condition = conditions::pending(&model.state, job, task);
        let holds = job.tasks.get(&task).map_or(job.spec.holds, |task| task.holds);
        let since = since(job, task);
        match groups
            .iter_mut()
            .find(|group| (group.condition, group.holds) == (condition, holds))
        {
            Some(group) => {
                group.tasks.extend(ranges);
                group.since = group.since.max(since);
            }
            None => {
                let error = job
                    .tasks
                    .get(&task)
                    .and_then(|task| task.place.error())
                    .map(str::to_owned);
                groups.push(PendingTasks {
                    tasks: ranges,
                    condition,
                    holds,
                    error,
                    since,
                    concurrency_blocked,
                });
            }
        }
    };
    if job.array_waits_for.is_empty() {
        if let Some(first) = job.untouched.first() {
            add(first, job.untouched.ranges());
        }
    } else {
        for task in job.untouched.iter() {
            add(task, single(task));
        }
    }
    for (task, _) in job
        .tasks
        .iter()
        .filter(|(_, task)| matches!(task.place, TaskPlace::Pending { .. }))
    {
        add(*task, single(*task));
    }
    groups
}

/// When a task was requeued if it ran before, else when it was submitted: a task in error shows
/// that too.
fn since(job: &Job, task: TaskId) -> Wall {
    let restarted = job.tasks.get(&task).filter(|task| task.restarted);
    restarted.map_or(job.submitted, |task| task.since)
}

fn single(task: TaskId) -> Vec<TaskRange> {
    TaskRange::new(task.0, task.0, 1).into_iter().collect()
}

fn is_concurrency_blocked(model: &Model, job: &Job) -> bool {
    use eligible::IneligibleReason;
    let wall = model.statics.clock.now().wall;
    matches!(
        eligible::job_eligible(&model.state, job, wall),
        Err(IneligibleReason::TaskConcurrency(_) | IneligibleReason::ArrayInstances(_))
    )
}

fn placed(model: &Model, job: &Job, id: TaskId, task: &Task) -> Option<TaskRow> {
    let placement = task.place.placement()?;
    let condition = conditions::placed(&model.state, task, placement);
    let priority = model.scheduling.priority(job.seq, TaskPhase::Running);
    let is_apart = condition.suspended || condition.threshold_suspended;
    let priority = if is_apart {
        without_tickets(model, priority)
    } else {
        priority
    };
    Some(TaskRow {
        task: id,
        condition,
        granted: placement.granted.clone(),
        pe: placement.pe.as_ref().map(ToString::to_string),
        maps: placement.maps.clone(),
        binding: placement.binding.clone(),
        started: placement.started.unwrap_or(placement.placed),
        usage: usage(model, placement),
        priority,
        exit_status: None,
        failed: None,
    })
}

/// The numbers of a task that takes no part in any policy until it goes on.
fn without_tickets(model: &Model, numbers: PriorityNumbers) -> PriorityNumbers {
    if numbers.tckts == 0 {
        return numbers;
    }
    let weight = model.state.config.scheduler.weight_ticket.millionths();
    let term = i128::from(weight) * i128::from(numbers.ntckts) / 1_000_000;
    let prior = numbers.prior.saturating_sub(i64::try_from(term).unwrap_or(i64::MAX));
    PriorityNumbers {
        prior,
        ntckts: 0,
        otckt: 0,
        ftckt: 0,
        stckt: 0,
        tckts: 0,
        share: 0,
        ..numbers
    }
}

/// What a task uses, with its slave tasks on other hosts.
fn usage(model: &Model, placement: &Placement) -> Usage {
    let of = |key: &TaskKey| model.observations.usage.get(key).copied().unwrap_or_default();
    let slaves = placement.slaves();
    let live = slaves.live.keys().map(|number| {
        of(&TaskKey {
            pe_task: *number,
            ..placement.key
        })
    });
    live.fold(of(&placement.key).plus(slaves.used), Usage::plus)
}

fn finished_task(task: &FinishedTask) -> TaskRow {
    TaskRow {
        task: task.task,
        condition: conditions::finished(task),
        granted: task.granted.clone(),
        pe: None,
        maps: Vec::new(),
        binding: Vec::new(),
        started: task.started,
        usage: Usage::default(),
        priority: Default::default(),
        exit_status: Some(task.exit_status),
        failed: Some(task.failed),
    }
}
