//! What the descriptions of many jobs have in common, kept once: who submitted them, what they ask for, their environments.

use proto::common::Common;
use proto::job::{JobSpec, Owner, Requests};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts of the descriptions of all jobs that may be shared, each with how many jobs have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commons {
    owners: Shared<Owner>,
    requests: Shared<Requests>,
    environments: Shared<Vec<(String, String)>>,
}

type Shared<T> = BTreeMap<Common<T>, u32>;

impl Commons {
    /// A description that shares with others what it has in common with them: the same one if it does already.
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

    /// A job has this description.
    pub fn enter(&mut self, spec: &JobSpec) {
        *self.owners.entry(spec.owner.clone()).or_default() += 1;
        *self.requests.entry(spec.requests.clone()).or_default() += 1;
        *self.environments.entry(spec.environment.clone()).or_default() += 1;
    }

    /// A job no longer has this description.
    pub fn leave(&mut self, spec: &JobSpec) {
        leave(&mut self.owners, &spec.owner);
        leave(&mut self.requests, &spec.requests);
        leave(&mut self.environments, &spec.environment);
    }
}

/// The equal one that others have, if it is another.
fn other<T: Ord>(known: &Shared<T>, part: &Common<T>) -> Option<Common<T>> {
    let (theirs, _) = known.get_key_value(part)?;
    (!theirs.is_shared_with(part)).then(|| theirs.clone())
}

fn leave<T: Ord>(known: &mut Shared<T>, part: &Common<T>) {
    let count = known.get_mut(part).expect("what a job leaves it has entered");
    *count -= 1;
    if *count == 0 {
        known.remove(part);
    }
}
