//! What a job can never have as the cluster is configured, whatever runs and whatever is full.

use crate::ledger::Level;
use crate::matching::{Cluster, Demand, Mode, total_exceeded, verify};
use crate::observe::Observations;
use crate::sched::assign::{assign_parallel, assign_serial, fit_globally};
use crate::sched::reason::{Reason, What};
use crate::state::State;
use proto::id::{HostName, QueueInstanceName};
use proto::job::JobSpec;
use std::collections::BTreeMap;

/// Why no queue instance can ever take a job. `None` if one can, or if that is not known because a host does not report.
pub(super) fn forever(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    match verify(state, observations, spec, Mode::EmptyCluster) {
        Err(reasons) => (!is_perhaps_reported(observations, &reasons)).then_some(reasons),
        Ok(()) => above_totals(state, observations, spec),
    }
}

/// Why no queue instance can ever take a job, as [`forever`], but as soon as one is found that
/// takes it, no others are asked.
pub fn never_suits(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    let demand = Demand::new(&state.config, spec);
    let cluster = Cluster::of(state, observations, Mode::EmptyCluster).of_demand(state, &demand);
    let globally = fit_globally(&cluster, &demand);
    let now = Cluster { mode: Mode::Now, ..cluster };
    let takes = |instance: &QueueInstanceName| {
        total_exceeded(&now, &now.ground(&instance.host).spot, &demand).is_none()
            && assign_serial(&cluster, &demand, &globally, &cluster.site(instance)).is_ok()
    };
    let is_taken = demand.pe.is_none() && globally.holds(1) && state.config.resolved.keys().any(takes);
    if is_taken { None } else { forever(state, observations, spec) }
}

/// Whether one of the reasons is that an attribute is not known on a host whose load values are not known either.
fn is_perhaps_reported(observations: &Observations, reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| match (&reason.what, &reason.level) {
        (What::UnknownResource { .. }, Level::Instance(instance)) => {
            observations.hosts.get(&instance.host).is_none_or(|host| host.reported.is_none() || host.unheard)
        }
        (_, _) => false,
    })
}

/// Requests of memory that no host has in all. A load value that changes counts for nothing on an empty cluster, but it never exceeds the total
/// that its host reports.
fn above_totals(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    let demand = Demand::new(&state.config, spec);
    let cluster = Cluster::of(state, observations, Mode::EmptyCluster).of_demand(state, &demand);
    let now = Cluster { mode: Mode::Now, ..cluster };
    let mut small: BTreeMap<&HostName, What> = BTreeMap::new();
    let mut left: Vec<QueueInstanceName> = Vec::new();
    for instance in state.config.resolved.keys() {
        match total_exceeded(&now, &now.ground(&instance.host).spot, &demand) {
            Some(what) => drop(small.insert(&instance.host, what)),
            None => left.push(instance.clone()),
        }
    }
    if small.is_empty() {
        return None;
    }
    let others = against(&cluster, &demand, &left)?;
    let small = small.into_iter().map(|(host, what)| Reason::new(Level::Host(host.clone()), what));
    Some(small.chain(others).collect())
}

/// Returns the reasons why these queue instances never take a job. `None` means that one takes it.
fn against(cluster: &Cluster<'_>, demand: &Demand, instances: &[QueueInstanceName]) -> Option<Vec<Reason>> {
    let globally = fit_globally(cluster, demand);
    if demand.pe.is_some() {
        return assign_parallel(cluster, demand, &globally, instances).err();
    }
    let mut reasons = Vec::new();
    for instance in instances {
        reasons.extend(assign_serial(cluster, demand, &globally, &cluster.site(instance)).err()?);
    }
    Some(reasons)
}
