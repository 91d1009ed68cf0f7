//! Resource maps of hosts and of the cluster: their ids, and the characteristics of these.

use super::{bad_value, not_in_complex, unknown};
use crate::config::Configuration;
use proto::amount::Type;
use proto::complex::{Attribute, Complex};
use proto::device::{DEVICES, DeviceError, DeviceFile, Runtime};
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::rsmap::{Characteristics, IdMap};

/// Why a host or the cluster cannot have this much of an attribute.
pub(super) fn bad_capacity(complex: &Complex, attribute: &Attribute, value: &str) -> Option<Diagnostic> {
    if attribute.r#type != Type::RsMap {
        return bad_value(complex, attribute, value);
    }
    match IdMap::parse(value) {
        Ok(map) => map
            .described()
            .find_map(|(id, characteristics)| bad_characteristics(complex, attribute, id, characteristics)),
        Err(error) => {
            let what = format!("denied: invalid value \"{value}\" of attribute \"{}\"", attribute.name);
            let fix = "write the number of ids and the ids, such as 4(0-3), 2(left right) or 1(gpu0[devices=/dev/nvidia0:rw])";
            Some(Diagnostic::new(Code::BadValue, what).why(error.to_string()).fix(fix))
        }
    }
}

/// The first characteristic of an id that is not an attribute, or whose value has another type.
fn bad_characteristics(
    complex: &Complex,
    attribute: &Attribute,
    id: &str,
    characteristics: &Characteristics,
) -> Option<Diagnostic> {
    let place = format!("characteristics of id \"{id}\" of attribute \"{}\"", attribute.name);
    let refuse = |what: String| Diagnostic::new(Code::BadValue, what).at(place.clone());
    let mut bad = characteristics.iter().filter_map(|(name, value)| {
        let Some(known) = complex.lookup(name.as_str()) else {
            let fix = format!("add it first: qconf -mc, {name} {name} STRING == NO NO NONE 0");
            return unknown(complex, name.as_str(), &place, not_in_complex).map(|refusal| refusal.fix(fix));
        };
        if known.r#type == Type::RsMap {
            return Some(refuse(format!(
                "denied: attribute \"{name}\" is a resource map, which no id can have"
            )));
        }
        if name.as_str() == DEVICES
            && let Err(error) = DeviceFile::parse_list(value)
        {
            return Some(bad_device(&refuse, value, &error));
        }
        bad_value(complex, known, value).map(|refusal| refusal.at(place.clone()))
    });
    bad.next().or_else(|| {
        Runtime::of(characteristics)
            .err()
            .map(|error| bad_device(&refuse, "runtime", &error))
    })
}

fn bad_device(refuse: &dyn Fn(String) -> Diagnostic, value: &str, error: &DeviceError) -> Diagnostic {
    refuse(format!("denied: invalid characteristic \"{value}\"")).why(error.to_string())
}

/// Whether an id of a map of the host has a characteristic of such a name.
pub(super) fn is_characteristic(config: &Configuration, host: &ExecHost, is_meant: impl Fn(&str) -> bool) -> bool {
    config.maps_of(host).any(|(_, map)| {
        map.described()
            .any(|(_, characteristics)| characteristics.iter().any(|(name, _)| is_meant(name.as_str())))
    })
}
