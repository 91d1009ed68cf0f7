//! The cores of hosts: those that tasks have, and those that a task gets which is placed now.

use super::State;
use crate::ledger::{Grant, Ledger};
use crate::observe::Observations;
use proto::binding::{BindingObstacle, BindingOutcome, HostBinding, Topology, choose};
use proto::id::HostName;
use proto::job::JobSpec;
use std::collections::BTreeMap;

impl State {
    /// Marks the cores of a host that tasks have, those of advance reservations too.
    pub fn mark_cores(&self, host: &HostName, topology: &mut Topology) {
        self.core_ledgers().for_each(|ledger| ledger.mark_cores(host, topology));
    }

    /// Whether a task has cores of the host.
    pub fn has_cores(&self, host: &HostName) -> bool {
        self.core_ledgers().any(|ledger| ledger.has_cores(host))
    }

    fn core_ledgers(&self) -> impl Iterator<Item = &Ledger> {
        let within = self.reservations.values().map(|reservation| &reservation.ledger);
        std::iter::once(&self.ledger).chain(within)
    }

    /// What a task of this description gets of its request for cores, with these slots: for each of
    /// its hosts cores that no task has, or the reason why it has none there. Empty if it asks for
    /// none.
    pub fn choose_cores(&self, observations: &Observations, spec: &JobSpec, grant: Grant<'_>) -> Vec<HostBinding> {
        let Some(request) = &spec.requests.binding else {
            return Vec::new();
        };
        let mut slots: BTreeMap<&HostName, u32> = BTreeMap::new();
        for granted in grant.slots {
            *slots.entry(&granted.instance.host).or_default() += granted.slots;
        }
        let hosts = grant.slots.iter().map(|granted| &granted.instance.host);
        let once = hosts.filter_map(|host| Some((host, slots.remove(host)?)));
        once.map(|(host, slots)| {
            let free = self.free_cores(observations, host);
            let chosen = free.and_then(|topology| choose(&topology, &request.strategy, slots));
            let outcome = match chosen {
                Ok(cores) => BindingOutcome::Bound(cores.to_string()),
                Err(why) => BindingOutcome::Unbound(why),
            };
            let host = host.clone();
            HostBinding { host, outcome }
        })
        .collect()
    }

    /// The topology of a host with the cores in use marked.
    fn free_cores(&self, observations: &Observations, host: &HostName) -> Result<Topology, BindingObstacle> {
        if !self.config.settings_of(host).execd().enable_binding {
            return Err(BindingObstacle::Disabled);
        }
        let mut topology = observations.topology(host).ok_or(BindingObstacle::NoTopology)?;
        self.mark_cores(host, &mut topology);
        Ok(topology)
    }
}
