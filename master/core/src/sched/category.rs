//! Categories: jobs that ask for the same share one answer (CATALOGUE CAT).

use crate::matching::{Demand, Request, Value};
use proto::complex::Complex;
use proto::id::AttributeName;
use proto::job::JobSpec;
use std::collections::BTreeSet;

/// Everything about a job that matters to where it may run, in one canonical form: `1G` is `1024M`, order does not count (CAT-02).
///
/// The owner is no part of it, because nothing refers to single users yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CategoryKey {
    hard: BTreeSet<(AttributeName, Value)>,
    unknown: BTreeSet<String>,
    soft: BTreeSet<(AttributeName, Value)>,
    hard_queues: BTreeSet<String>,
    soft_queues: BTreeSet<String>,
    master_queues: BTreeSet<String>,
    pe: Option<(String, String)>,
    project: Option<String>,
    immediate: bool,
}

impl CategoryKey {
    /// The category of a job under a complex.
    pub fn of(complex: &Complex, spec: &JobSpec) -> CategoryKey {
        CategoryKey::new(&Demand::new(complex, spec), spec)
    }

    /// The category of a job whose demand is known.
    pub fn new(demand: &Demand, spec: &JobSpec) -> CategoryKey {
        let requests = &spec.requests;
        CategoryKey {
            hard: values(&demand.hard),
            unknown: demand.unknown.iter().cloned().collect(),
            soft: values(&demand.soft),
            hard_queues: requests.hard_queues.iter().cloned().collect(),
            soft_queues: requests.soft_queues.iter().cloned().collect(),
            master_queues: requests.master_queues.iter().cloned().collect(),
            pe: requests.pe.as_ref().map(|pe| (pe.name.clone(), pe.slots.to_string())),
            project: spec.project.clone(),
            immediate: spec.immediate,
        }
    }
}

fn values(requests: &[Request]) -> BTreeSet<(AttributeName, Value)> {
    let asked = requests.iter().filter(|request| !request.implied);
    asked.map(|request| (request.attribute.name.clone(), request.wanted.value())).collect()
}
