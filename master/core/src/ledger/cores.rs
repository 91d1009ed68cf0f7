//! The cores of hosts that tasks have.

use super::Ledger;
use proto::binding::{HostBinding, Topology};
use proto::id::HostName;
use std::collections::BTreeMap;

/// The cores in use by host, each task's as marks in the topology that its host had. Only hosts
/// with bound tasks are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoresInUse(BTreeMap<HostName, BTreeMap<String, u32>>);

impl CoresInUse {
    pub(super) fn give(&mut self, binding: &HostBinding) {
        if let Some(cores) = binding.bound() {
            let used = self.0.entry(binding.host.clone()).or_default();
            *used.entry(cores.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn take_back(&mut self, binding: &HostBinding) {
        let Some(cores) = binding.bound() else { return };
        let used = self.0.get_mut(&binding.host).expect("cores that a task has are in use");
        let count = used.get_mut(cores).expect("cores that a task has are in use");
        *count -= 1;
        if *count == 0 {
            used.remove(cores);
        }
        if used.is_empty() {
            self.0.remove(&binding.host);
        }
    }
}

impl Ledger {
    /// Whether a task has cores of the host.
    pub fn has_cores(&self, host: &HostName) -> bool {
        self.cores.0.contains_key(host)
    }

    /// Marks the cores of a host that tasks have.
    pub fn mark_cores(&self, host: &HostName, topology: &mut Topology) {
        let used = self.cores.0.get(host).into_iter().flat_map(BTreeMap::keys);
        used.filter_map(|cores| Topology::parse(cores).ok())
            .for_each(|cores| topology.mark_all(&cores));
    }
}
