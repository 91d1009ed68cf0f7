//! Categories: jobs that ask for the same share one answer (CATALOGUE CAT).

use crate::matching::{Demand, Request, Value};
use crate::state::State;
use crate::state::job::Job;
use proto::id::{AttributeName, HostName, ReservationId, UserName};
use proto::quota::QuotaSet;
use std::collections::BTreeSet;

/// Everything about a job that matters to where it may run, in one canonical form: `1G` is `1024M`, order does not count (CAT-02).
///
/// The owner is part of it only while `maxujobs` limits what each user runs, users are sorted, or resource quota sets name users; else only by the access
/// lists in use that have the owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CategoryKey {
    /// By name; of one name in the order given, as the first counts.
    hard: Vec<(AttributeName, Value)>,
    unknown: BTreeSet<String>,
    soft: Vec<(AttributeName, Value)>,
    hard_queues: BTreeSet<String>,
    soft_queues: BTreeSet<String>,
    master_queues: BTreeSet<String>,
    pe: Option<(String, String)>,
    checkpoint: Option<String>,
    project: Option<String>,
    immediate: bool,
    reservation: Option<ReservationId>,
    avoided_hosts: BTreeSet<HostName>,
    owner: Option<UserName>,
    lists: BTreeSet<String>,
}

impl CategoryKey {
    /// The category of a job of which the demand is known.
    pub fn new(state: &State, job: &Job, demand: &Demand) -> CategoryKey {
        let spec = &job.spec;
        let requests = &spec.requests;
        CategoryKey {
            hard: values(&demand.hard),
            unknown: demand.unknown.iter().cloned().collect(),
            soft: values(&demand.soft),
            hard_queues: requests.hard_queues.iter().cloned().collect(),
            soft_queues: requests.soft_queues.iter().cloned().collect(),
            master_queues: requests.master_queues.iter().cloned().collect(),
            pe: requests.pe.as_ref().map(|pe| (pe.name.clone(), pe.slots.to_string())),
            checkpoint: spec.checkpoint.clone(),
            project: spec.project.clone(),
            immediate: spec.immediate,
            reservation: spec.reservation,
            avoided_hosts: demand.avoided_hosts.clone(),
            lists: demand.lists.clone(),
            owner: is_owner_asked(state).then(|| spec.owner.user.clone()),
        }
    }
}

/// Whether it matters to where a job may run whose it is.
fn is_owner_asked(state: &State) -> bool {
    let names_users = |set: &QuotaSet| set.rules.iter().any(|rule| rule.users.is_some());
    let conf = &state.config.scheduler;
    conf.maxujobs > 0 || conf.user_sort() || state.config.enabled_quotas().any(names_users)
}

fn values(requests: &[Request]) -> Vec<(AttributeName, Value)> {
    let asked = requests.iter().filter(|request| !request.implied);
    let mut values: Vec<_> = asked.map(|request| (request.attribute.name.clone(), request.wanted.value())).collect();
    values.sort_by(|(one, _), (other, _)| one.cmp(other));
    values
}
