//! Values that differ from host to host: `default,[@group=value],[host=value]`.

use crate::hostgroup::HostOrGroup;
use crate::id::{HostGroupName, HostName};
use crate::object::value::MalformedValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A value for all hosts, and others for some hosts and host groups. No host or group has two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting<T> {
    /// The value where nothing else is said.
    pub default: T,
    /// Other values: as in 8.1.9 those of groups before those of hosts, else in the order in which
    /// they were written.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<(HostOrGroup, T)>,
}

/// Groups of a host set different values for an attribute, and no setting for the host itself
/// decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambiguity {
    /// The attribute.
    pub attribute: String,
    /// The groups that the host is in, each with its value.
    pub candidates: Vec<(HostGroupName, String)>,
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let candidates: Vec<String> = self
            .candidates
            .iter()
            .map(|(group, value)| format!("{group}={value}"))
            .collect();
        write!(
            f,
            "attribute \"{}\" configuration ambiguous: {}",
            self.attribute,
            candidates.join(", ")
        )
    }
}

impl<T> Setting<T> {
    /// The same value for all hosts.
    pub fn uniform(default: T) -> Self {
        Self {
            default,
            overrides: Vec::new(),
        }
    }

    /// The value for all hosts, and then the others in their order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.default).chain(self.overrides.iter().map(|(_, value)| value))
    }

    /// The same to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.default).chain(self.overrides.iter_mut().map(|(_, value)| value))
    }

    /// Reads `default,[@group=value],[host=value]`. Blanks may stand beside the commas.
    ///
    /// # Errors
    ///
    /// The default is missing, a bracket is open, a host or group occurs twice, or `parse` refuses
    /// a value.
    pub fn parse(text: &str, parse: impl Fn(&str) -> Result<T, MalformedValue>) -> Result<Self, MalformedValue> {
        let (default, rest) = split_default(text);
        if default.is_empty() {
            return Err(MalformedValue::new(
                "a value for all hosts in front of the first bracket",
            ));
        }
        let parse = |value: &str| parse(value).map_err(|malformed| malformed.in_setting(value));
        let mut setting = Setting::uniform(parse(default)?);
        for bracket in brackets(rest)? {
            let (id, value) = bracket
                .split_once('=')
                .ok_or_else(|| MalformedValue::new("[host=value] or [@group=value]"))?;
            let id: HostOrGroup = id.trim_ascii().parse()?;
            if setting.overrides.iter().any(|(earlier, _)| *earlier == id) {
                return Err(MalformedValue::new(format!("one value for {id}")));
            }
            setting.overrides.push((id, parse(value.trim_ascii())?));
        }
        setting
            .overrides
            .sort_by_key(|(id, _)| matches!(id, HostOrGroup::Host(_)));
        Ok(setting)
    }
}

impl<T: Clone + PartialEq + fmt::Display> Setting<T> {
    /// The value on a host that is in `groups`; see [`super::ClusterQueue::resolve`].
    pub fn resolve(
        &self,
        attribute: &str,
        host: &HostName,
        groups: &BTreeSet<HostGroupName>,
        ambiguities: &mut Vec<Ambiguity>,
    ) -> T {
        if let Some((_, value)) = self
            .overrides
            .iter()
            .find(|(id, _)| matches!(id, HostOrGroup::Host(name) if name == host))
        {
            return value.clone();
        }
        let candidates: Vec<(&HostGroupName, &T)> = self
            .overrides
            .iter()
            .filter_map(|(id, value)| Some((group_in(id, groups)?, value)))
            .collect();
        match candidates.as_slice() {
            [] => self.default.clone(),
            [(_, first), others @ ..] if others.iter().all(|(_, value)| value == first) => (*first).clone(),
            _ => {
                let candidates = candidates
                    .iter()
                    .map(|(group, value)| ((*group).clone(), value.to_string()))
                    .collect();
                ambiguities.push(Ambiguity {
                    attribute: attribute.to_owned(),
                    candidates,
                });
                self.default.clone()
            }
        }
    }
}

fn group_in<'a>(id: &'a HostOrGroup, groups: &BTreeSet<HostGroupName>) -> Option<&'a HostGroupName> {
    match id {
        HostOrGroup::Host(_) => None,
        HostOrGroup::Group(group) => groups.contains(group).then_some(group),
    }
}

impl<T: fmt::Display> fmt::Display for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.default)?;
        self.overrides
            .iter()
            .try_for_each(|(id, value)| write!(f, ",[{id}={value}]"))
    }
}

/// The value for all hosts, and what follows it from the first bracket on.
///
/// A bracket opens an override only at the start or behind a comma: commands may hold brackets of
/// their own.
pub(crate) fn split_default(text: &str) -> (&str, &str) {
    let is_override = |at: &usize| matches!(text[..*at].trim_ascii_end().bytes().last(), None | Some(b','));
    let at = text
        .match_indices('[')
        .map(|(at, _)| at)
        .find(is_override)
        .unwrap_or(text.len());
    let default = text[..at].trim_ascii();
    (
        default
            .strip_suffix(',')
            .filter(|_| at < text.len())
            .unwrap_or(default)
            .trim_ascii_end(),
        &text[at..],
    )
}

/// What stands in each pair of brackets; commas and blanks separate the pairs.
pub(crate) fn brackets(text: &str) -> Result<Vec<&str>, MalformedValue> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let inner = rest
            .strip_prefix('[')
            .ok_or_else(|| MalformedValue::new("\"[\" after the comma"))?;
        let end = closing(inner).ok_or_else(|| MalformedValue::new("\"]\" at the end of each override"))?;
        found.push(&inner[..end]);
        rest = inner[end + 1..].trim_ascii_start();
        if !rest.is_empty() {
            rest = rest
                .strip_prefix(',')
                .ok_or_else(|| MalformedValue::new("a comma between overrides"))?
                .trim_ascii_start();
        }
    }
    Ok(found)
}

/// The first `]` that the text ends with or a comma follows: values may hold others.
fn closing(text: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let rest = text[at + 1..].trim_ascii_start();
        rest.is_empty() || rest.starts_with(',')
    };
    text.match_indices(']').map(|(at, _)| at).find(is_end)
}
