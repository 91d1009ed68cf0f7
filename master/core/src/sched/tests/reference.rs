//! A pass that is slow and obviously right: every job by its priority, every queue instance by its
//! rank, each asked anew for each task. Nothing is remembered. What is kept for later is judged in
//! [`later`](super::later).

use super::lab::{Lab, place_text};
use crate::ledger::{Grant, Ledger};
use crate::matching::{Cluster, Demand, Mode};
use crate::sched::assign::{Assignment, assign_parallel, assign_serial, fit_globally};
use crate::sched::filter::suitability::Suitability;
use crate::sched::order::queue::JobStanding;
use crate::sched::order::urgency::{Range, parts};
use crate::sched::rank::{host_value, rank};
use crate::state::job::Job;
use proto::id::{CellId, QueueInstanceName, SubmitSeq, TaskId, TaskKey, UserName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What a pass does without reservations.
#[derive(Debug, Default)]
pub struct PassOutcome {
    /// What it places, as [`Lab::placed`] tells it.
    pub placed: Vec<String>,
    /// The jobs that it gives up, because they are to start at once or never.
    pub rejected: BTreeSet<String>,
}

/// The jobs that may start, in their turns.
pub fn turns(lab: &Lab) -> Vec<SubmitSeq> {
    let (model, now) = (lab.scheduler.model(), lab.now);
    let range = model.queue.range(model.state(), now);
    assert_eq!(range, plain_range(lab));
    let mut turns: Vec<(Reverse<i128>, SubmitSeq)> = Vec::new();
    for job in model
        .state()
        .jobs
        .values()
        .filter(|job| !model.startable(job, now, 1).is_empty())
    {
        let bucket = model.queue.bucket(job.seq).expect("a job is filed");
        let range = range.expect("a job counts");
        turns.push((
            Reverse(model.queue.head(model.state(), bucket, job.seq, range, now).priority),
            job.seq,
        ));
    }
    turns.sort();
    turns.into_iter().map(|(_, seq)| seq).collect()
}

/// The range of all urgencies that count, found job by job: those of jobs that run, and of jobs
/// that wait, whether their owner may start more or not.
fn plain_range(lab: &Lab) -> Option<Range> {
    let (model, now) = (lab.scheduler.model(), lab.now);
    let counts = |job: &&Job| {
        let filed = model.queue.filed(job.seq).expect("a job is filed");
        filed.rests == JobStanding::Pending || filed.rests == JobStanding::Running
    };
    let jobs = model.state().jobs.values().filter(counts);
    let urgencies = jobs.map(|job| {
        let bucket = model.queue.at(model.queue.bucket(job.seq).expect("a job is filed"));
        parts(model.state(), job.seq, bucket.urgency, now).sum()
    });
    urgencies.fold(None, |range, urgency| Some(Range::with(range, urgency)))
}

/// What a pass does.
pub fn outcome(lab: &Lab) -> PassOutcome {
    let (mut planned, mut outcome) = (ReferencePlan::default(), PassOutcome::default());
    for seq in turns(lab) {
        let job = &lab.state().jobs[&seq];
        let model = lab.scheduler.model();
        // A job that is to start at once starts with all its tasks or not at all.
        let is_whole = job.spec.immediate && job.active == 0;
        let tasks = if is_whole {
            model.eligible(seq)
        } else {
            model.startable(job, lab.now, model.room_in(job))
        };
        let before = planned.clone();
        let mut placed = Vec::new();
        for task in &tasks {
            let is_one_too_many = placed.len() >= model.room_in(job);
            match (!is_one_too_many).then(|| planned.place(lab, job, *task)).flatten() {
                Some(line) => placed.push(line),
                None => break,
            }
        }
        if is_whole && placed.len() < tasks.len() {
            planned = before;
            outcome.rejected.insert(format!("{} rejected", seq.0));
        } else {
            outcome.placed.extend(placed);
        }
    }
    outcome
}

/// What a pass has placed so far.
#[derive(Clone, Debug, Default)]
struct ReferencePlan {
    ledger: Ledger,
    of_users: BTreeMap<UserName, u32>,
}

impl ReferencePlan {
    /// Whether the owner of a job runs as many tasks as `maxujobs` allows.
    fn is_owner_full(&self, lab: &Lab, job: &Job) -> bool {
        let (limit, owner) = (lab.state().config.scheduler.maxujobs, &job.spec.owner.user);
        let jobs = lab
            .state()
            .jobs
            .values()
            .filter(|other| other.spec.owner.user == *owner);
        let running: usize = jobs.map(|other| other.placements().count()).sum();
        limit > 0 && running as u32 + self.of_users.get(owner).copied().unwrap_or(0) >= limit
    }

    /// Places a task, if there is room for it, and tells where.
    fn place(&mut self, lab: &Lab, job: &Job, task: TaskId) -> Option<String> {
        let (model, now) = (lab.scheduler.model(), lab.now.tick);
        if self.is_owner_full(lab, job) {
            return None;
        }
        let demand = Demand::of_job(model.state(), job);
        let cluster = Cluster::of_state(model.state(), model.observations(), Mode::Now);
        let cluster = Cluster {
            planned: Some(&self.ledger),
            now,
            ..cluster
        };
        let Assignment { granted, pe } = assign(&cluster, &demand)?;
        let name = if job.spec.array.is_some() {
            format!("{}.{task}", job.seq.0)
        } else {
            job.seq.0.to_string()
        };
        let places: Vec<String> = granted.iter().map(place_text).collect();
        let key = TaskKey {
            cell: CellId(0),
            seq: job.seq,
            task,
            pe_task: 0,
            attempt: 0,
        };
        let grant = Grant::of_slots(&granted, pe.as_ref());
        self.ledger
            .book(&model.state().config, key, model.state().booking(&job.spec, grant, now));
        *self.of_users.entry(job.spec.owner.user.clone()).or_default() += 1;
        Some(format!("{name} {}", places.join(" ")))
    }
}

/// Slots for one task.
pub fn assign(cluster: &Cluster<'_>, demand: &Demand) -> Option<Assignment> {
    let globally = fit_globally(cluster, demand);
    if !globally.reasons.is_empty() {
        return None;
    }
    let suitability = Suitability::new(cluster, demand);
    let takes = |instance: &&QueueInstanceName| {
        let site = cluster.site(instance);
        suitability.unsuitable(&site).is_none()
            && cluster.out_of_service(&site).is_none()
            // What the load will be later is not known.
            && (cluster.mode == Mode::Later || !cluster.is_in_alarm(&site))
    };
    let mut order: Vec<QueueInstanceName> = cluster.config.resolved.keys().filter(takes).cloned().collect();
    order.sort_by_cached_key(|instance| {
        let all = cluster.config.resolved.keys();
        let site = cluster.site(instance);
        let of_host: Vec<_> = all
            .filter(|other| other.host == instance.host)
            .map(|all| cluster.site(all))
            .collect();
        let value = host_value(cluster, &site.host, &of_host);
        (
            cluster.violations(instance, demand),
            rank(cluster, &site, value),
            instance.clone(),
        )
    });
    if demand.pe.is_some() {
        return assign_parallel(cluster, demand, &globally, &order).ok();
    }
    order
        .iter()
        .find_map(|instance| assign_serial(cluster, demand, &globally, &cluster.site(instance)).ok())
}
