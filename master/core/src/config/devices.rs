//! The devices that the resource maps of a host name.

use super::Configuration;
use proto::amount::Type;
use proto::device::{DEVICES, DeviceFile, DeviceMode, DeviceOrder, Runtime, UUID};
use proto::host::ExecHost;
use proto::id::{AttributeName, HostName};
use proto::rsmap::{GrantedIds, IdMap};
use std::collections::{BTreeMap, BTreeSet};

impl Configuration {
    /// The resource maps of a host whose ids have characteristics.
    pub fn maps_of<'a>(&'a self, host: &'a ExecHost) -> impl Iterator<Item = (&'a AttributeName, IdMap)> {
        host.complex_values.iter().filter_map(|(name, text)| {
            // Most values are plain, and this is asked with every start.
            let attribute = self.complex.lookup(name.as_str()).filter(|_| text.contains('['))?;
            let map = IdMap::parse(text).ok().filter(|_| attribute.r#type == Type::RsMap)?;
            Some((name, map))
        })
    }

    /// The devices of a task with these ids at one of its hosts. `None` where no map names any.
    pub fn devices_at(&self, host: &HostName, granted: &[GrantedIds]) -> Option<Box<DeviceOrder>> {
        let places = [HostName::global(), host.clone()];
        let hosts = places.iter().filter_map(|place| self.exec_hosts.get(place));
        let mut found = FoundDevices::default();
        for host in hosts {
            for (name, map) in self.maps_of(host) {
                let ids = granted
                    .iter()
                    .find(|ids| ids.attribute == *name && ids.host == host.name)
                    .map_or(&[][..], |ids| &ids.ids);
                found.add(&map, ids);
            }
        }
        Some(Box::new(found.order())).filter(|order| !order.is_empty())
    }
}

/// The devices of the maps of a host, sorted into those of the task and others.
#[derive(Default)]
struct FoundDevices {
    granted: BTreeMap<String, DeviceMode>,
    named: BTreeSet<String>,
    uuids: BTreeMap<Runtime, Vec<String>>,
}

impl FoundDevices {
    fn add(&mut self, map: &IdMap, granted: &[String]) {
        for (id, characteristics) in map.described() {
            // Both were checked when the map was set.
            let files = characteristics.value(DEVICES).map(DeviceFile::parse_list);
            for file in files.and_then(Result::ok).unwrap_or_default() {
                if granted.iter().any(|own| own == id) {
                    let mode = self.granted.entry(file.path.clone()).or_insert(file.mode);
                    *mode = mode.or(file.mode);
                }
                self.named.insert(file.path);
            }
        }
        // In the order in which the ids are told; an id that the task has twice is one device.
        for id in granted {
            let Some(characteristics) = map.characteristics(id) else {
                continue;
            };
            let runtime = Runtime::of(characteristics).unwrap_or(Runtime::None);
            let uuids = self.uuids.entry(runtime).or_default();
            if let Some(uuid) = characteristics.value(UUID)
                && !uuids.iter().any(|known| known == uuid)
            {
                uuids.push(uuid.to_owned());
            }
        }
    }

    fn order(self) -> DeviceOrder {
        let withheld = self.named.iter().filter(|path| !self.granted.contains_key(*path));
        DeviceOrder {
            withheld: withheld.cloned().collect(),
            granted: self
                .granted
                .into_iter()
                .map(|(path, mode)| DeviceFile { path, mode })
                .collect(),
            variables: self
                .uuids
                .iter()
                .flat_map(|(runtime, uuids)| runtime.variables(&uuids.iter().map(String::as_str).collect::<Vec<_>>()))
                .collect(),
        }
    }
}
