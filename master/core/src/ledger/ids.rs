//! The ids of resource maps that tasks have, and those that a task gets which is placed now.

use super::{Booking, Charges, Grant, Ledger, Level};
use crate::config::Configuration;
use crate::observe::{IllIds, Observations};
use proto::amount::Type;
use proto::complex::Attribute;
use proto::id::{AttributeName, HostName};
use proto::job::JobSpec;
use proto::rsmap::{GrantedIds, IdMap};
use proto::time::Tick;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often each id is in use, by attribute and host (`global` is the cluster). Only ids in use
/// are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct IdsInUse(BTreeMap<(AttributeName, HostName), BTreeMap<String, u32>>);

impl IdsInUse {
    pub(super) fn give(&mut self, map: &GrantedIds) {
        let used = self.0.entry((map.attribute.clone(), map.host.clone())).or_default();
        map.ids.iter().for_each(|id| *used.entry(id.clone()).or_default() += 1);
    }

    pub(super) fn take_back(&mut self, map: &GrantedIds) {
        let place = (map.attribute.clone(), map.host.clone());
        let used = self.0.get_mut(&place).expect("ids that a task has are in use");
        for id in &map.ids {
            let count = used.get_mut(id).expect("ids that a task has are in use");
            *count -= 1;
            if *count == 0 {
                used.remove(id);
            }
        }
        if used.is_empty() {
            self.0.remove(&place);
        }
    }
}

/// The ids that a task gets with these slots: at the cluster and at each of its hosts that has a
/// map of what the task takes, the first ids of the map that are well and free in all these
/// ledgers.
///
/// `None` if too few are free. That never happens where the amounts fit: at least as much is booked
/// as there are ids in use.
pub fn choose_ids<'l>(
    ledgers: impl Iterator<Item = &'l Ledger> + Clone,
    config: &Configuration,
    observations: &Observations,
    spec: &JobSpec,
    grant: Grant<'_>,
) -> Option<Vec<GrantedIds>> {
    // Only booked attributes have ids, and there are few of them.
    if !config.complex.consumables().any(|(attribute, _)| is_map(attribute)) {
        return Some(Vec::new());
    }
    let charges = Arc::new(Charges::new(&config.complex, &spec.requests));
    let booking = Booking::new(config, charges, grant, Tick(0));
    let mut chosen = Vec::new();
    for entry in booking.entries() {
        let Some((host, map)) = map_at(config, &entry.level, &entry.attribute) else {
            continue;
        };
        let count = usize::try_from(entry.amount.finite()?).ok()?;
        let used = ids_in_use(ledgers.clone(), &entry.attribute, &host);
        let ill = observations.ill_ids(&host, &entry.attribute, &map);
        let ids = free(used, &map, &ill).take(count).cloned().collect::<Vec<_>>();
        if ids.len() < count {
            return None;
        }
        chosen.push(GrantedIds {
            attribute: entry.attribute.clone(),
            host,
            ids,
        });
    }
    Some(chosen)
}

/// The ids of a resource map of a host, or of the cluster, that are well and free in all these
/// ledgers. `None` if it has no such map.
pub fn free_ids<'l>(
    ledgers: impl Iterator<Item = &'l Ledger>,
    config: &Configuration,
    observations: &Observations,
    attribute: &AttributeName,
    host: &HostName,
) -> Option<Vec<String>> {
    let (host, map) = map_at(config, &Level::of_host(host), attribute)?;
    let ill = observations.ill_ids(&host, attribute, &map);
    let used = ids_in_use(ledgers, attribute, &host);
    Some(free(used, &map, &ill).cloned().collect())
}

/// How many ids of a map are ill and not in use.
pub fn ill_and_idle<'l>(
    ledgers: impl Iterator<Item = &'l Ledger>,
    attribute: &AttributeName,
    host: &HostName,
    map: &IdMap,
    ill: &IllIds,
) -> usize {
    let used = ids_in_use(ledgers, attribute, host);
    let well = IllIds::new();
    let idle = free(used, map, &well);
    idle.filter(|id| ill.contains_key(*id)).count()
}

fn ids_in_use<'l>(
    ledgers: impl Iterator<Item = &'l Ledger>,
    attribute: &AttributeName,
    host: &HostName,
) -> BTreeMap<String, u32> {
    let mut used = BTreeMap::new();
    for (id, times) in ledgers.flat_map(|ledger| ledger.ids_in_use(attribute, host)) {
        *used.entry(id).or_default() += times;
    }
    used
}

/// The units that are free, in the order in which they are given out.
fn free<'a>(mut used: BTreeMap<String, u32>, map: &'a IdMap, ill: &'a IllIds) -> impl Iterator<Item = &'a String> + 'a {
    map.ids().iter().filter(move |id| match used.get_mut(*id) {
        Some(times) if *times > 0 => {
            *times -= 1;
            false
        }
        Some(_) | None => !ill.contains_key(*id),
    })
}

impl Ledger {
    /// How often each id of an attribute is in use at a host, or globally for the host `global`.
    fn ids_in_use(&self, attribute: &AttributeName, host: &HostName) -> BTreeMap<String, u32> {
        self.ids
            .0
            .get(&(attribute.clone(), host.clone()))
            .cloned()
            .unwrap_or_default()
    }
}

fn is_map(attribute: &Attribute) -> bool {
    attribute.r#type == Type::RsMap
}

/// The resource map of an attribute at a level, with the host object that has it.
fn map_at(config: &Configuration, level: &Level, name: &AttributeName) -> Option<(HostName, IdMap)> {
    let host = match level {
        Level::Global => HostName::global(),
        Level::Host(host) => host.clone(),
        Level::Instance(_) => return None,
    };
    config
        .complex
        .lookup(name.as_str())
        .filter(|attribute| is_map(attribute))?;
    let text = config.exec_hosts.get(&host)?.complex_values.value(name.as_str())?;
    IdMap::parse(text).ok().map(|map| (host, map))
}
