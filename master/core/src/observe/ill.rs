//! Ids of resource maps whose device a sensor calls ill: nobody gets them.

use super::{Loads, Observations};
use proto::amount::Type;
use proto::complex::Attribute;
use proto::device::{DEVICES, DeviceFile, UUID};
use proto::id::{AttributeName, HostName};
use proto::load::{DEVICES_ILL, lists_ill_devices};
use proto::rsmap::{Characteristics, IdMap};
use std::collections::BTreeMap;

/// Ids that are not given out, each with the reason in the sensor's words.
pub type IllIds = BTreeMap<String, String>;

impl Observations {
    /// The ids of a resource map of a host, or of the cluster, whose device is ill.
    ///
    /// A sensor names a device by its `uuid`, by one of its files, or as `ATTRIBUTE:ID`.
    pub fn ill_ids(&self, host: &HostName, attribute: &AttributeName, map: &IdMap) -> IllIds {
        let Some(loads) = self.load.get(host) else {
            return IllIds::new();
        };
        let reported: BTreeMap<&str, &str> = loads
            .ill()
            .flat_map(|text| text.split(';'))
            .map(|entry| entry.split_once('=').unwrap_or((entry, "a sensor says so")))
            .map(|(device, why)| (device.trim(), why.trim()))
            .collect();
        let found = map.ids().iter().filter_map(|id| {
            let own = format!("{attribute}:{id}");
            let by_name = reported.get(own.as_str());
            let why = by_name.or_else(|| reported_of(&reported, map.characteristics(id)?))?;
            Some((id.clone(), (*why).to_owned()))
        });
        found.collect()
    }

    /// The ids that are ill of what a host sets for an attribute. Empty unless it is a resource
    /// map.
    pub fn ill_of(&self, host: &HostName, attribute: &Attribute, text: &str) -> Option<(IdMap, IllIds)> {
        if attribute.r#type != Type::RsMap || self.load.get(host)?.ill().next().is_none() {
            return None;
        }
        let map = IdMap::parse(text).ok()?;
        let ill = self.ill_ids(host, &attribute.name, &map);
        Some((map, ill)).filter(|(_, ill)| !ill.is_empty())
    }
}

impl Loads {
    /// The lists of ill devices. Names rise, so they stand together.
    fn ill(&self) -> impl Iterator<Item = &str> {
        let first = self.0.partition_point(|(name, _)| name.as_str() < DEVICES_ILL);
        let near = self.0[first..].iter();
        near.take_while(|(name, _)| name.as_str().starts_with(DEVICES_ILL))
            .filter(|(name, _)| lists_ill_devices(name.as_str()))
            .map(|(_, entry)| entry.text.as_str())
    }
}

/// What is reported of the device of an id, by its uuid or its files.
fn reported_of<'a>(reported: &'a BTreeMap<&str, &'a str>, own: &Characteristics) -> Option<&'a &'a str> {
    let uuid = own.value(UUID).and_then(|uuid| reported.get(uuid));
    uuid.or_else(|| {
        let files = DeviceFile::parse_list(own.value(DEVICES)?).ok()?;
        files.iter().find_map(|file| reported.get(file.path.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::LoadEntry;
    use proto::time::Tick;

    #[test]
    fn a_device_is_named_by_its_uuid_its_file_or_its_id() {
        let map = "4(a[uuid=GPU-1] b[devices=/dev/nvidia1:rw] c d)";
        let map = IdMap::parse(map).unwrap();
        let ill = |text: &str| {
            let mut observations = Observations::default();
            let loads = observations.load.or_default(&"h1".into());
            // Two lists, and names beside them that are none.
            let texts = [("", "gpu:d=dead"), ("ness", "gpu:a=x"), (".2", text), ("/", "gpu:b=x")];
            for (ending, text) in texts {
                let entry = LoadEntry {
                    text: text.to_owned(),
                    reporter: "h1".into(),
                    sampled: Tick(1),
                };
                loads.insert(AttributeName::from(format!("{DEVICES_ILL}{ending}")), entry);
            }
            let found = observations.ill_ids(&"h1".into(), &"gpu".into(), &map);
            found
                .into_iter()
                .map(|(id, why)| format!("{id}: {why}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (text, expected) in [
            (
                "GPU-1=uncorrected ECC errors: 2",
                "a: uncorrected ECC errors: 2, d: dead",
            ),
            ("/dev/nvidia1=hot;gpu:c", "b: hot, c: a sensor says so, d: dead"),
            ("GPU-9=hot;c=hot", "d: dead"),
            ("", "d: dead"),
        ] {
            assert_eq!(ill(text), expected, "{text}");
        }
    }
}
