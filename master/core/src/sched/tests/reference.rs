//! A pass that is slow and obviously right: every job by its priority, every queue instance by its rank, each asked anew for each
//! task. Nothing is remembered. Without reservations, `maxujobs` and immediate jobs.

use super::lab::{Lab, place_text};
use crate::ledger::{Grant, Ledger};
use crate::matching::{Cluster, Demand, Mode};
use crate::sched::assign::{Assignment, assign_parallel, assign_serial, fit_globally};
use crate::sched::rank::{host_value, rank};
use crate::sched::suitability::Suitability;
use proto::id::{CellId, QueueInstanceName, SubmitSeq, TaskKey};
use std::cmp::Reverse;

/// What a pass places, as [`Lab::placed`] tells it.
pub fn placements(lab: &Lab) -> Vec<String> {
    let (model, now) = (lab.scheduler.model(), lab.now);
    let range = model.queue.range(model.state(), now);
    let mut turns: Vec<(Reverse<i128>, SubmitSeq)> = Vec::new();
    for job in model.state().jobs.values().filter(|job| !model.startable(job, now, 1).is_empty()) {
        let bucket = model.queue.bucket(job.seq).expect("a job is filed");
        let range = range.expect("a job counts");
        turns.push((Reverse(model.queue.head(model.state(), bucket, job.seq, range, now).priority), job.seq));
    }
    turns.sort();
    let (mut planned, mut placed) = (Ledger::default(), Vec::new());
    for (_, seq) in turns {
        let job = &model.state().jobs[&seq];
        let demand = Demand::of_job(model.state(), job);
        for task in model.startable(job, now, model.room_in(job)) {
            let cluster = Cluster {
                planned: Some(&planned),
                now: now.tick,
                ..Cluster::of(model.state(), model.observations(), Mode::Now)
            };
            let Some(Assignment { granted, pe }) = assign(&cluster, &demand) else { break };
            let name = if job.spec.array.is_some() { format!("{}.{task}", seq.0) } else { seq.0.to_string() };
            let places: Vec<String> = granted.iter().map(place_text).collect();
            placed.push(format!("{name} {}", places.join(" ")));
            let key = TaskKey { cell: CellId(0), seq, task, pe_task: 0, attempt: 0 };
            let grant = Grant::of_slots(&granted, pe.as_ref());
            planned.book(&model.state().config, key, model.state().booking(&job.spec, grant, now.tick));
        }
    }
    placed
}

fn assign(cluster: &Cluster<'_>, demand: &Demand) -> Option<Assignment> {
    let globally = fit_globally(cluster, demand);
    if !globally.reasons.is_empty() {
        return None;
    }
    let suitability = Suitability::new(cluster, demand);
    let takes = |instance: &&QueueInstanceName| {
        let site = cluster.site(instance);
        suitability.unsuitable(&site).is_none()
            && cluster.out_of_service(&site).is_none()
            && !cluster.is_in_alarm(&site)
    };
    let mut order: Vec<QueueInstanceName> = cluster.config.resolved.keys().filter(takes).cloned().collect();
    order.sort_by_cached_key(|instance| {
        let all = cluster.config.resolved.keys();
        let site = cluster.site(instance);
        let of_host: Vec<_> = all.filter(|other| other.host == instance.host).map(|all| cluster.site(all)).collect();
        let value = host_value(cluster, &site.host, &of_host);
        (cluster.violations(instance, demand), rank(cluster, &site, value), instance.clone())
    });
    if demand.pe.is_some() {
        return assign_parallel(cluster, demand, &globally, &order).ok();
    }
    order.iter().find_map(|instance| assign_serial(cluster, demand, &globally, &cluster.site(instance)).ok())
}
