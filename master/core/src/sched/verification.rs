//! Whether a job could run at all (`-w`).

use super::assign::{assign_parallel, assign_serial, fit_globally};
use crate::ledger::Level;
use crate::matching::{Cluster, Demand, Mode};
use crate::observe::Observations;
use crate::reason::{Obstacle, Reason};
use crate::state::State;
use proto::job::JobSpec;

/// Whether some queue instance could run a job, on an empty cluster or now. Load thresholds do not
/// count.
///
/// # Errors
/// With the reasons of every queue instance if none could.
pub fn verify(state: &State, observations: &Observations, spec: &JobSpec, mode: Mode) -> Result<(), Vec<Reason>> {
    let demand = Demand::new(&state.config, spec);
    let cluster = Cluster::of_state(state, observations, mode).of_demand(state, &demand);
    let globally = fit_globally(&cluster, &demand);
    let instances: Vec<_> = state.config.resolved.keys().cloned().collect();
    if instances.is_empty() {
        return Err(vec![Reason::new(Level::Global, Obstacle::NoInstances)]);
    }
    if demand.pe.is_some() {
        return assign_parallel(&cluster, &demand, &globally, &instances).map(|_| ());
    }
    if !globally.holds(1) {
        return Err(globally.reasons);
    }
    let mut reasons = Vec::new();
    for instance in &instances {
        match assign_serial(&cluster, &demand, &globally, &cluster.site(instance)) {
            Ok(_) => return Ok(()),
            Err(why) => reasons.extend(why),
        }
    }
    Err(reasons)
}
