//! What the descriptions of many jobs have in common, kept once: who submitted them, what they ask
//! for, their environments.

use super::requests;
use crate::config::Configuration;
use crate::ledger::quota::JobOwner;
use crate::ledger::{Booking, Charges, Grant};
use proto::common::Common;
use proto::complex::Complex;
use proto::job::{JobSpec, Owner, Requests};
use proto::time::Tick;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts of the descriptions of all jobs that may be shared, each with how many jobs have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commons {
    /// With who they are to quotas, without a project.
    owners: PartTable<Owner, Arc<JobOwner>>,
    /// In the form in which requests are kept.
    requests: PartTable<Requests, Arc<Charges>>,
    environments: PartTable<Vec<(String, String)>, ()>,
}

/// Parts by their contents, each with how many jobs have it and what follows from it.
type PartTable<T, F> = BTreeMap<Common<T>, (u32, F)>;

impl Commons {
    /// A description that shares with others what it has in common with them: the same one if it
    /// does already.
    pub fn shared(&self, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
        let owner = other(&self.owners, &spec.owner);
        let requests = other(&self.requests, &spec.requests);
        let environment = other(&self.environments, &spec.environment);
        if owner.is_none() && requests.is_none() && environment.is_none() {
            return spec.clone();
        }
        let mut spec = (**spec).clone();
        spec.owner = owner.unwrap_or(spec.owner);
        spec.requests = requests.unwrap_or(spec.requests);
        spec.environment = environment.unwrap_or(spec.environment);
        Arc::new(spec)
    }

    /// A description as a state keeps it: shared, and its requests in their form.
    pub(super) fn kept(&self, complex: &Complex, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
        match self.requests.contains_key(&spec.requests) {
            true => self.shared(spec),
            false => self.shared(&requests::kept(complex, spec)),
        }
    }

    /// Requests of jobs that are not in the form in which they are kept, after a change of the
    /// complex, each with that form.
    pub(super) fn renewable(&self, complex: &Complex) -> BTreeMap<Common<Requests>, Common<Requests>> {
        let renewed = |old: &Common<Requests>| Some((old.clone(), requests::renewed(complex, old)?.into()));
        self.requests.keys().filter_map(renewed).collect()
    }

    /// A job has this description.
    pub fn enter(&mut self, complex: &Complex, spec: &JobSpec) {
        enter(&mut self.owners, &spec.owner, || {
            Arc::new(JobOwner::of_owner(&spec.owner, None))
        });
        enter(&mut self.requests, &spec.requests, || {
            Arc::new(Charges::new(complex, &spec.requests))
        });
        enter(&mut self.environments, &spec.environment, || ());
    }

    /// What a task with the description of a job takes of what it is given at `at`, or would.
    ///
    /// # Panics
    /// If no job has this description.
    pub fn booking(&self, config: &Configuration, spec: &JobSpec, grant: Grant<'_>, at: Tick) -> Arc<Booking> {
        let (_, charges) = self.requests.get(&spec.requests).expect("requests of a job are known");
        Arc::new(Booking::new(config, charges.clone(), grant, at).with_owner(self.who(spec)))
    }

    /// Whose a job with this description is.
    pub fn who(&self, spec: &JobSpec) -> Arc<JobOwner> {
        match self.owners.get(&spec.owner) {
            Some((_, who)) if spec.project.is_none() => who.clone(),
            Some(_) | None => Arc::new(JobOwner::of_spec(spec)),
        }
    }

    /// The complex has changed.
    pub fn recharge(&mut self, complex: &Complex) {
        for (requests, (_, charges)) in &mut self.requests {
            *charges = Arc::new(Charges::new(complex, requests));
        }
    }

    /// A job no longer has this description.
    pub fn leave(&mut self, spec: &JobSpec) {
        leave(&mut self.owners, &spec.owner);
        leave(&mut self.requests, &spec.requests);
        leave(&mut self.environments, &spec.environment);
    }
}

/// The equal one that others have, if it is another.
fn other<T: Ord, F>(known: &PartTable<T, F>, part: &Common<T>) -> Option<Common<T>> {
    let (theirs, _) = known.get_key_value(part)?;
    (!theirs.is_shared_with(part)).then(|| theirs.clone())
}

fn enter<T: Ord, F>(known: &mut PartTable<T, F>, part: &Common<T>, follows: impl FnOnce() -> F) {
    match known.get_mut(part) {
        Some((count, _)) => *count += 1,
        None => {
            known.insert(part.clone(), (1, follows()));
        }
    }
}

fn leave<T: Ord, F>(known: &mut PartTable<T, F>, part: &Common<T>) {
    let (count, _) = known.get_mut(part).expect("what a job leaves it has entered");
    *count -= 1;
    if *count == 0 {
        known.remove(part);
    }
}
