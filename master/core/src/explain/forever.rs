//! What a job can never have as the cluster is configured, whatever runs and whatever is full.

use crate::ledger::Level;
use crate::matching::{Cluster, Demand, InstanceView, Mode, total_exceeded};
use crate::observe::Observations;
use crate::reason::Value;
use crate::reason::{Obstacle, Reason};
use crate::sched::assign::{Supply, assign_parallel, assign_serial, fit_globally, try_parallel};
use crate::sched::verification::verify;
use crate::state::State;
use proto::id::{HostName, QueueInstanceName};
use proto::job::JobSpec;
use proto::queue::QueueInstanceSettings;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

/// Why no queue instance can ever take a job. `None` if one can, or if that is not known because a
/// host does not report.
pub(crate) fn forever(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    match verify(state, observations, spec, Mode::EmptyCluster) {
        Err(reasons) => (!is_perhaps_reported(observations, &reasons)).then_some(reasons),
        Ok(()) => above_totals(state, observations, spec),
    }
}

/// Why no queue instance can ever take a job, as [`forever`]. As soon as the job has a place, no
/// other queue instances are asked. The reasons name no value that changes while hosts run.
pub fn never_suits(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    let demand = Demand::new(&state.config, spec);
    let cluster = Cluster::of_state(state, observations, Mode::EmptyCluster).of_demand(state, &demand);
    if has_place(&cluster.untold(), &demand) {
        return None;
    }
    let mut reasons = forever(state, observations, spec)?;
    reasons.iter_mut().for_each(tell_total);
    Some(reasons)
}

/// Whether a job has a place on an empty cluster, on hosts that have as much as it asks for in all.
fn has_place(cluster: &Cluster<'_>, demand: &Demand) -> bool {
    let globally = fit_globally(cluster, demand);
    let now = Cluster {
        mode: Mode::Now,
        ..*cluster
    };
    let is_large = |host: &HostName| total_exceeded(&now, &now.host_view(host).view, demand).is_none();
    if demand.pe.is_some() {
        let mut large = Large::new(cluster, is_large);
        return try_parallel(cluster, demand, &globally, &mut large).found.is_ok();
    }
    let takes = |instance: &QueueInstanceName| {
        is_large(&instance.host) && assign_serial(cluster, demand, &globally, &cluster.site(instance)).is_ok()
    };
    globally.holds(1) && cluster.config.resolved.keys().any(takes)
}

/// Replaces the free amount by the total of the host, because the empty cluster is asked about.
fn tell_total(reason: &mut Reason) {
    if let Obstacle::Offers(shortage) = &mut reason.what
        && let Some(total) = shortage.capacity
    {
        shortage.free = Value::Amount(total);
    }
}

/// The queue instances of large hosts, by name, looked up as far as they are needed.
struct Large<'c, 'a, F> {
    cluster: &'c Cluster<'a>,
    is_large: F,
    rest: btree_map::Keys<'a, QueueInstanceName, Arc<QueueInstanceSettings>>,
    order: Vec<InstanceView<'a, 'a>>,
}

impl<'c, 'a, F: Fn(&HostName) -> bool> Large<'c, 'a, F> {
    fn new(cluster: &'c Cluster<'a>, is_large: F) -> Self {
        Large {
            cluster,
            is_large,
            rest: cluster.config.resolved.keys(),
            order: Vec::new(),
        }
    }
}

impl<'a, F: Fn(&HostName) -> bool> Supply<'a, 'a> for Large<'_, 'a, F> {
    fn get(&mut self, at: usize) -> Option<InstanceView<'a, 'a>> {
        while self.order.len() <= at {
            let instance = self.rest.find(|instance| (self.is_large)(&instance.host))?;
            self.order.push(self.cluster.site(instance));
        }
        self.order.get(at).copied()
    }

    fn beside(&mut self, site: InstanceView<'a, 'a>) -> Vec<InstanceView<'a, 'a>> {
        let config = self.cluster.config;
        let host = &site.instance.host;
        let queues = config
            .sites
            .get(host)
            .into_iter()
            .flat_map(|site| &site.instances)
            .map(|(queue, _)| queue);
        let instances = queues.map(|queue| QueueInstanceName {
            queue: queue.clone(),
            host: host.clone(),
        });
        let known = instances.filter_map(|instance| config.resolved.get_key_value(&instance));
        let mut sites: Vec<_> = known.map(|(instance, _)| self.cluster.site(instance)).collect();
        sites.sort_by_key(|site| site.instance);
        sites
    }

    fn is_short(&self) -> bool {
        true
    }
}

/// Whether one of the reasons is that an attribute is not known on a host whose load values are not
/// known either.
fn is_perhaps_reported(observations: &Observations, reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| match (&reason.what, &reason.level) {
        (Obstacle::UnknownResource { .. }, Level::Instance(instance)) => observations
            .hosts
            .get(&instance.host)
            .is_none_or(|host| host.reported.is_none() || host.unheard),
        (_, _) => false,
    })
}

/// Requests of memory that no host has in all. A load value that changes counts for nothing on an
/// empty cluster, but it never exceeds the total that its host reports.
fn above_totals(state: &State, observations: &Observations, spec: &JobSpec) -> Option<Vec<Reason>> {
    let demand = Demand::new(&state.config, spec);
    let cluster = Cluster::of_state(state, observations, Mode::EmptyCluster).of_demand(state, &demand);
    let now = Cluster {
        mode: Mode::Now,
        ..cluster
    };
    let mut small: BTreeMap<&HostName, Obstacle> = BTreeMap::new();
    let mut left: Vec<QueueInstanceName> = Vec::new();
    for instance in state.config.resolved.keys() {
        match total_exceeded(&now, &now.host_view(&instance.host).view, &demand) {
            Some(what) => drop(small.insert(&instance.host, what)),
            None => left.push(instance.clone()),
        }
    }
    if small.is_empty() {
        return None;
    }
    let others = against(&cluster, &demand, &left).filter(|others| !is_perhaps_reported(observations, others))?;
    let small = small
        .into_iter()
        .map(|(host, what)| Reason::new(Level::Host(host.clone()), what));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::lab::Lab;
    use proto::id::SubmitSeq;
    use std::cell::Cell;

    #[test]
    fn no_more_hosts_are_looked_at_than_the_first_place_of_a_parallel_job_needs() {
        for (request, looked_at) in [("4", 2), ("1-6", 3), ("2", 1), ("21", 10)] {
            let mut lab = Lab::new();
            let hosts: Vec<String> = (0..10).map(|number| format!("h{number}")).collect();
            hosts.iter().for_each(|host| lab.line(&format!("host {host}")));
            lab.line("pe mpi 999 $fill_up");
            lab.line(&format!("queue all.q {} slots=2 pe_list=mpi", hosts.join(",")));
            lab.line(&format!("job 1 -pe mpi {request}"));
            let (state, observations) = (lab.state(), lab.scheduler.model().observations());
            let demand = Demand::new(&state.config, &state.jobs[&SubmitSeq(1)].spec);
            let cluster = Cluster::of_state(state, observations, Mode::EmptyCluster).untold();
            let asked = Cell::new(0);
            let is_large = |_: &HostName| {
                asked.set(asked.get() + 1);
                true
            };
            let found = try_parallel(
                &cluster,
                &demand,
                &fit_globally(&cluster, &demand),
                &mut Large::new(&cluster, is_large),
            );
            assert_eq!(
                (found.found.is_ok(), asked.get()),
                (request != "21", looked_at),
                "{request}"
            );
        }
    }
}
