//! Which values of a sensor the cell can use: those of attributes that its complex has, of their
//! types, for hosts that it knows.

use crate::host::HostSpec;
use crate::report::HostValues;
use proto::amount::{Amount, Type};
use proto::id::{AttributeName, HostName};
use proto::load::{ValueFaults, lists_ill_devices};
use proto::rsmap::IdMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Faults that are described one by one.
const DESCRIBED: usize = 10;

/// Characters of a value that are shown.
const CHARS_SHOWN: usize = 60;

/// The attributes of a cell's complex with their types. Empty where they are not known: then
/// nothing is judged.
pub type AttributeTypes = BTreeMap<AttributeName, Type>;

/// Why the cell cannot use a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueFault {
    /// The complex has no such attribute.
    UnknownAttribute,
    /// The text is not a value of the attribute's type.
    NotOfType(Type),
}

/// One value that the cell cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyValue {
    /// Whom it is for.
    pub host: HostSpec,
    /// Its attribute.
    pub name: AttributeName,
    /// The text.
    pub text: String,
    /// The fault of the value.
    pub fault: ValueFault,
}

/// The values of one block, judged.
#[derive(Clone, Debug)]
pub struct Verdicts<'a> {
    /// The values of the right type. Another source of the same attribute counts in place of a
    /// dropped value.
    pub usable: Cow<'a, HostValues>,
    /// The values that the cell cannot use, by host and name.
    pub faulty: Vec<FaultyValue>,
}

/// Judges the values of a block. A value of an unknown attribute hides no other, and stays: the
/// attribute may be added.
pub fn judge<'a>(values: &'a HostValues, types: &AttributeTypes) -> Verdicts<'a> {
    let faulty: Vec<FaultyValue> = values
        .iter()
        .filter_map(|((host, name), text)| {
            let fault = fault(name, text, types)?;
            Some(FaultyValue {
                host: host.clone(),
                name: name.clone(),
                text: text.clone(),
                fault,
            })
        })
        .collect();
    let mut usable = Cow::Borrowed(values);
    for value in faulty
        .iter()
        .filter(|value| value.fault != ValueFault::UnknownAttribute)
    {
        usable.to_mut().remove(&(value.host.clone(), value.name.clone()));
    }
    Verdicts { usable, faulty }
}

/// Returns the fault of a value, if it has one.
pub fn fault(name: &AttributeName, text: &str, types: &AttributeTypes) -> Option<ValueFault> {
    // Ill devices concern ids of resource maps; the complex does not list the name.
    if types.is_empty() || lists_ill_devices(name.as_str()) {
        return None;
    }
    let Some(r#type) = types.get(name) else {
        return Some(ValueFault::UnknownAttribute);
    };
    let is_read = match r#type {
        Type::RsMap => IdMap::amount_of(text).is_some(),
        Type::Int | Type::Double | Type::Memory | Type::Time | Type::Bool => Amount::parse(text, *r#type).is_ok(),
        Type::String | Type::CString | Type::ReString | Type::Host => true,
    };
    (!is_read).then_some(ValueFault::NotOfType(*r#type))
}

impl Verdicts<'_> {
    /// The faults as the status of the sensor tells them, and for which other hosts it reports.
    pub fn faults(&self, values: &HostValues) -> ValueFaults {
        let mut other_hosts: BTreeMap<HostName, u64> = BTreeMap::new();
        for (host, _) in values.keys() {
            if let HostSpec::Other(host) = host {
                *other_hosts.entry(host.clone()).or_default() += 1;
            }
        }
        ValueFaults {
            count: u64::try_from(self.faulty.len()).unwrap_or(u64::MAX),
            examples: self.faulty.iter().take(DESCRIBED).map(ToString::to_string).collect(),
            other_hosts,
        }
    }
}

impl fmt::Display for FaultyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.host {
            HostSpec::This => "this host".to_owned(),
            HostSpec::Global => "the whole cluster".to_owned(),
            HostSpec::Other(host) => format!("host {host}"),
        };
        match self.fault {
            ValueFault::UnknownAttribute => {
                write!(
                    f,
                    "{} for {place}: the complex has no such attribute",
                    shown(self.name.as_str())
                )
            }
            ValueFault::NotOfType(r#type) => {
                write!(
                    f,
                    "{} for {place}: \"{}\" is not of type {type}",
                    shown(self.name.as_str()),
                    shown(&self.text)
                )
            }
        }
    }
}

/// A text of a sensor as a log can bear it: no control characters, not endless.
fn shown(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            String::from(c)
        }
    };
    let kept: String = text.chars().take(CHARS_SHOWN).map(escaped).collect();
    if text.chars().nth(CHARS_SHOWN).is_some() {
        kept + "…"
    } else {
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> AttributeTypes {
        let types = [
            ("slow", Type::Int),
            ("mem", Type::Memory),
            ("name", Type::String),
            ("gpu", Type::RsMap),
        ];
        types.map(|(name, r#type)| (AttributeName::from(name), r#type)).into()
    }

    fn values(entries: &[(HostSpec, &str, &str)]) -> HostValues {
        let entry = |(host, name, text): &(HostSpec, &str, &str)| {
            ((host.clone(), AttributeName::from(*name)), (*text).to_owned())
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn a_value_must_be_of_the_type_of_an_attribute_of_the_complex() {
        for (name, text, expected) in [
            ("slow", "3", None),
            ("slow", "abc", Some(ValueFault::NotOfType(Type::Int))),
            ("mem", "3.5G", None),
            ("mem", "much", Some(ValueFault::NotOfType(Type::Memory))),
            ("name", "abc", None),
            ("gpu", "2(0 1)", None),
            ("nosuch", "3", Some(ValueFault::UnknownAttribute)),
        ] {
            assert_eq!(fault(&name.into(), text, &types()), expected, "{name}={text}");
            assert_eq!(
                fault(&name.into(), text, &AttributeTypes::new()),
                None,
                "nothing is known of the complex"
            );
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_left_out_and_each_fault_is_described() {
        let block = values(&[
            (HostSpec::This, "slow", "abc"),
            (HostSpec::This, "mem", "1G"),
            (HostSpec::Global, "nosuch", "3"),
            (HostSpec::Other("other".into()), "slow", "4"),
        ]);
        let verdicts = judge(&block, &types());
        let kept: Vec<&str> = verdicts.usable.keys().map(|(_, name)| name.as_str()).collect();
        assert_eq!(kept, ["mem", "nosuch", "slow"]);
        let faults = verdicts.faults(&block);
        assert_eq!(faults.count, 2);
        assert_eq!(
            faults.examples,
            [
                "slow for this host: \"abc\" is not of type INT",
                "nosuch for the whole cluster: the complex has no such attribute",
            ]
        );
        assert_eq!(faults.other_hosts, BTreeMap::from([("other".into(), 1)]));
    }
}
