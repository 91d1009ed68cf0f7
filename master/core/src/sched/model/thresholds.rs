//! Suspend thresholds: tasks that are suspended while the load is too high, and go on when it is
//! not (ALGORITHMS.md section 6.5).
//!
//! The scheduler judges the load and orders; the core makes it true. Whether an instance takes jobs
//! while its alarm lasts is the filter's business.

use crate::matching::{Cluster, Mode};
use crate::sched::model::Model;
use crate::state::job::Placement;
use proto::id::{QueueInstanceName, TaskKey};
use proto::queue::QueueInstanceSettings;
use proto::time::{Now, Tick};
use proto::wire::stream::Order;
use std::collections::BTreeMap;

/// When tasks of a queue instance may be suspended or resumed again. An instance that did nothing
/// yet may at once.
pub(crate) type Rhythm = BTreeMap<QueueInstanceName, Tick>;

/// What is to be done in one queue instance now: `nsuspend` tasks, with `suspend_interval` in
/// between.
///
/// Tasks go on before others are suspended: an instance does one or the other. Nothing is done
/// where the instance is suspended anyway, or where the load of the host is not known at all.
pub(crate) fn orders(model: &Model, rhythm: &mut Rhythm, now: Now) -> Vec<Order> {
    let config = &model.state().config;
    let mut orders = without_threshold(model);
    let instances = config
        .causes
        .thresholds
        .iter()
        .flat_map(|queue| config.instances_of(queue));
    for (instance, settings) in instances.filter(|(_, settings)| has_thresholds(settings)) {
        if rhythm.get(instance).is_some_and(|due| *due > now.tick) || !is_judged(model, instance) {
            continue;
        }
        let due = of_instance(model, instance, settings, now);
        if !due.is_empty() {
            let interval_s = settings.suspend_interval.seconds().unwrap_or(0);
            rhythm.insert(instance.clone(), now.tick.plus_ms(interval_s.saturating_mul(1000)));
            orders.extend(due);
        }
    }
    rhythm.retain(|_, due| *due > now.tick);
    orders
}

/// Whether an instance suspends tasks at all.
fn has_thresholds(settings: &QueueInstanceSettings) -> bool {
    let QueueInstanceSettings {
        suspend_thresholds,
        nsuspend,
        suspend_interval,
        ..
    } = settings;
    !suspend_thresholds.is_empty() && *nsuspend > 0 && suspend_interval.seconds().is_some_and(|seconds| seconds > 0)
}

/// Whether the load of an instance counts: its host is there and has told it, and nothing else
/// suspends the instance.
fn is_judged(model: &Model, instance: &QueueInstanceName) -> bool {
    let host = model.observations().hosts.get(&instance.host);
    let is_known = host.is_some_and(|host| host.connected && host.reported.is_some() && !host.unheard);
    is_known
        && !model
            .state()
            .instances
            .get(instance)
            .is_some_and(|state| state.stops_tasks())
}

/// Tasks whose instance suspends none any more go on at once: else nothing would ever let them.
fn without_threshold(model: &Model) -> Vec<Order> {
    let state = model.state();
    let is_over = |key: &TaskKey| {
        let settings = state
            .placed(*key)
            .and_then(|(_, _, placement)| state.config.resolved.get(placement.master()));
        settings.is_none_or(|settings| !has_thresholds(settings))
    };
    let over = state.index.threshold_suspended().filter(is_over);
    over.map(|key| Order::SuspendByThreshold { key, suspended: false })
        .collect()
}

fn of_instance(model: &Model, instance: &QueueInstanceName, settings: &QueueInstanceSettings, now: Now) -> Vec<Order> {
    let state = model.state();
    let tasks = state.tasks_in(instance).into_iter().filter_map(|key| state.placed(key));
    let is_here = |placement: &&Placement| placement.master() == instance;
    let mut tasks: Vec<&Placement> = tasks.map(|(_, _, placement)| placement).filter(is_here).collect();
    // Most instances of a large cell have no tasks, and their load need not be looked up.
    if tasks.is_empty() {
        return Vec::new();
    }
    let cluster = Cluster {
        now: now.tick,
        ..Cluster::of_state(state, model.observations(), Mode::Now)
    };
    let alarm = !cluster.suspend_alarms(instance).is_empty();
    tasks.retain(|placement| match alarm {
        true => placement.started.is_some() && !placement.deleting && !state.is_stopped(placement),
        false => placement.suspended_by_threshold,
    });
    tasks.sort_by_key(|placement| (placement.placed_tick, placement.key));
    if alarm {
        tasks.reverse();
    }
    let count = usize::try_from(settings.nsuspend).unwrap_or(usize::MAX);
    let order = |placement: &Placement| Order::SuspendByThreshold {
        key: placement.key,
        suspended: alarm,
    };
    tasks.into_iter().take(count).map(order).collect()
}
