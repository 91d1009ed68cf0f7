//! Jobs that start at once or never (`-now y`).

use crate::sched::filter::categories::CategoryId;
use crate::sched::model::Model;
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::stream::Order;

/// Starts all tasks of a job. Rejects it if only some fit. Returns no orders if none fits: then the
/// whole category is to be rejected.
pub fn start_whole(model: &mut Model, seq: SubmitSeq, category: CategoryId, now: Now) -> Vec<Order> {
    let tasks = model.eligible(seq);
    let mut orders = Vec::new();
    for task in &tasks {
        let job = model.state.jobs.get(&seq);
        // The limits on running tasks of one job and of one user count as well.
        let may_start = job.is_some_and(|job| model.is_startable(job, *task, now)) && !model.is_owner_full(seq);
        let Some(assignment) = model.assign(category, now).filter(|_| may_start) else {
            break;
        };
        model.plan(seq, *task, &assignment, now);
        orders.push(Order::Start {
            seq,
            task: *task,
            granted: assignment.granted,
            pe: assignment.pe,
        });
    }
    if orders.is_empty() || orders.len() == tasks.len() {
        return orders;
    }
    orders.iter().for_each(|order| model.take_back(order));
    model.give_up(seq);
    vec![Order::RejectImmediate { seq }]
}

/// Rejects the jobs of an immediate category of which nothing has started.
pub fn reject(model: &mut Model, category: CategoryId) -> Vec<Order> {
    if !model.is_immediate(category) {
        return Vec::new();
    }
    let alike = model.queue.buckets().filter(|(other, _)| other.category == category);
    let jobs = alike
        .flat_map(|(_, id)| model.queue.jobs(id))
        .filter(|seq| model.starts_whole(*seq));
    let jobs: Vec<SubmitSeq> = jobs.collect();
    jobs.iter().for_each(|seq| model.give_up(*seq));
    jobs.into_iter().map(|seq| Order::RejectImmediate { seq }).collect()
}
