//! Soft requests: what a job would like (MATCH-10, SEMANTICS section 8).

use super::Cluster;
use super::demand::{Demand, Request};
use super::fit::serves;
use super::pattern::is_in_queue_list;
use crate::ledger::Level;
use proto::id::QueueInstanceName;

impl Cluster<'_> {
    /// How many wishes of a job a queue instance leaves open: each soft request, and the soft queue list.
    pub fn violations(&self, instance: &QueueInstanceName, demand: &Demand) -> u32 {
        let levels = [Level::Global, Level::Host(instance.host.clone()), Level::Instance(instance.clone())];
        let unmet = demand.soft.iter().filter(|request| !self.meets(&levels, request)).count();
        let elsewhere = !is_in_queue_list(self.config, &demand.soft_queues, instance);
        u32::try_from(unmet).unwrap_or(u32::MAX).saturating_add(u32::from(elsewhere))
    }

    /// Whether each level that defines an attribute serves a request for one slot, and at least one does.
    fn meets(&self, levels: &[Level], request: &Request) -> bool {
        let offers: Vec<_> =
            levels.iter().flat_map(|level| self.offers(&self.spot(level), &request.attribute)).collect();
        !offers.is_empty() && offers.iter().all(|offer| serves(request, offer))
    }
}
