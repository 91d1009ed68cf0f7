//! Soft requests (ALGORITHMS.md section 8).

use super::demand::{Demand, Request};
use super::fit::serves;
use super::{Cluster, LevelView};
use crate::config::pattern::is_in_queue_list;
use crate::ledger::LevelRef;
use proto::id::QueueInstanceName;

impl Cluster<'_> {
    /// The unmet soft requests of a job at a queue instance: each soft `-l`, and the soft queue
    /// list.
    pub fn violations(&self, instance: &QueueInstanceName, demand: &Demand) -> u32 {
        let views = if demand.soft.is_empty() {
            Vec::new()
        } else {
            self.above(LevelRef::Instance(instance))
        };
        let unmet = demand
            .soft
            .iter()
            .filter(|request| !self.meets(&views, request))
            .count();
        let elsewhere = !is_in_queue_list(self.config, &demand.soft_queues, instance);
        u32::try_from(unmet)
            .unwrap_or(u32::MAX)
            .saturating_add(u32::from(elsewhere))
    }

    /// Whether each level that defines an attribute serves a request for one slot, and at least one
    /// does.
    fn meets(&self, views: &[LevelView<'_, '_>], request: &Request) -> bool {
        let mut offers = views
            .iter()
            .flat_map(|view| self.offers(view, &request.attribute))
            .peekable();
        offers.peek().is_some() && offers.all(|offer| serves(request, &offer))
    }
}
