//! `subordinate_list`: the queues that it names exist, and none is above itself.

use crate::config::Configuration;
use crate::decide::objects::change::Refusals;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::QueueName;
use proto::object::suggest::nearest;
use proto::queue::{ClusterQueue, Subordinates};
use std::collections::BTreeSet;

/// What a queue names as subordinate that cannot be.
pub(super) fn of_queue(config: &Configuration, queue: &ClusterQueue) -> Refusals {
    let named = names(queue);
    let unknown = named
        .iter()
        .filter(|name| **name != queue.name && !config.queues.contains_key(*name));
    let mut refusals: Refusals = unknown.map(|name| absent(config, queue, name)).collect();
    refusals.extend(circle(config, queue, &named).map(|way| {
        let what = format!("Cluster queue \"{}\" can't get subordinated by itself", queue.name);
        let refusal = Diagnostic::new(Code::BadValue, what).at("subordinate_list");
        refusal
            .why(way.join(" is above "))
            .fix("take one of these out of the list of the one before it")
    }));
    refusals
}

/// The queues that name this one, itself apart.
pub(super) fn above(config: &Configuration, name: &QueueName) -> Vec<QueueName> {
    let is_above = |queue: &&std::sync::Arc<ClusterQueue>| queue.name != *name && names(queue).contains(name);
    config
        .queues
        .values()
        .filter(is_above)
        .map(|queue| queue.name.clone())
        .collect()
}

/// The queues that a queue has below it, on any of its hosts.
fn names(queue: &ClusterQueue) -> BTreeSet<QueueName> {
    let lists = queue.subordinate_list.values().filter_map(|list| list.value());
    lists.flat_map(Subordinates::names).cloned().collect()
}

fn absent(config: &Configuration, queue: &ClusterQueue, name: &QueueName) -> Diagnostic {
    let what = format!(
        "Subordinated cluster queue \"{name}\" referenced in \"{}\" does not exist",
        queue.name
    );
    let refusal = Diagnostic::new(Code::UnknownObject, what).at("subordinate_list");
    match nearest(name.as_str(), config.queues.keys().map(QueueName::as_str)) {
        Some(near) => refusal.fix(format!("did you mean {near}?")),
        None => refusal.fix(format!("add it first: qconf -aq {name}")),
    }
}

/// A way from a queue down to itself.
fn circle(config: &Configuration, queue: &ClusterQueue, named: &BTreeSet<QueueName>) -> Option<Vec<String>> {
    let mut open: Vec<Vec<QueueName>> = named
        .iter()
        .map(|name| vec![queue.name.clone(), name.clone()])
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(way) = open.pop() {
        let last = way.last().expect("a way has an end");
        if *last == queue.name {
            return Some(way.iter().map(ToString::to_string).collect());
        }
        if seen.insert(last.clone())
            && let Some(next) = config.queues.get(last)
        {
            open.extend(
                names(next)
                    .into_iter()
                    .map(|name| way.iter().cloned().chain([name]).collect()),
            );
        }
    }
    None
}
