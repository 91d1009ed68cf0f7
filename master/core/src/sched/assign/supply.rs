//! The queue instances that a parallel job may have, looked up as far as they are needed.

use crate::matching::InstanceView;
use proto::id::HostName;
use std::collections::BTreeMap;

/// Queue instances that are open to a parallel job, best first.
pub trait Supply<'a, 'l> {
    /// The instance with this number in the order. `None` behind the last.
    fn get(&mut self, at: usize) -> Option<InstanceView<'a, 'l>>;

    /// All instances on the host of one of them, itself included, in their order.
    fn beside(&mut self, site: InstanceView<'a, 'l>) -> Vec<InstanceView<'a, 'l>>;

    /// Whether to stop at the first hosts that decide which slots the job gets.
    fn is_short(&self) -> bool;
}

/// A supply whose instances are all looked at.
#[derive(Debug)]
pub struct WholeSupply<'o, 'a, 'l> {
    order: &'o [InstanceView<'a, 'l>],
    by_host: BTreeMap<&'l HostName, Vec<InstanceView<'a, 'l>>>,
}

impl<'o, 'a, 'l> WholeSupply<'o, 'a, 'l> {
    /// A supply of queue instances in their order.
    pub fn new(order: &'o [InstanceView<'a, 'l>]) -> WholeSupply<'o, 'a, 'l> {
        let mut by_host: BTreeMap<&HostName, Vec<InstanceView<'_, '_>>> = BTreeMap::new();
        for site in order {
            by_host.entry(&site.instance.host).or_default().push(*site);
        }
        WholeSupply { order, by_host }
    }
}

impl<'a, 'l> Supply<'a, 'l> for WholeSupply<'_, 'a, 'l> {
    fn get(&mut self, at: usize) -> Option<InstanceView<'a, 'l>> {
        self.order.get(at).copied()
    }

    fn beside(&mut self, site: InstanceView<'a, 'l>) -> Vec<InstanceView<'a, 'l>> {
        self.by_host.get(&site.instance.host).cloned().unwrap_or_default()
    }

    fn is_short(&self) -> bool {
        false
    }
}
