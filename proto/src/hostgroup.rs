//! Host groups: named sets of hosts, which may contain each other.
//!
//! Whether the hosts exist is deliberately not known here.

mod table;

#[cfg(test)]
mod tests;

pub use table::HostGroupTable;

use crate::diagnostic::Diagnostic;
use crate::id::{HostGroupName, HostName};
use crate::object::reader::Reader;
use crate::object::value::{self, MalformedValue, stored_as_text};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The attributes of a host group in the order of `qconf -shgrp`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("group_name", "The name, which begins with `@`."),
    ("hostlist", "The hosts and host groups in it, or `NONE`."),
];

/// A host, or a group of hosts, which starts with `@`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostOrGroup {
    /// One host.
    Host(HostName),
    /// A group by its name with `@`.
    Group(HostGroupName),
}

impl FromStr for HostOrGroup {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        if text.starts_with('@') {
            group_name(text).map(Self::Group)
        } else {
            host_name(text).map(Self::Host)
        }
    }
}

impl fmt::Display for HostOrGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostOrGroup::Host(host) => host.fmt(f),
            HostOrGroup::Group(group) => group.fmt(f),
        }
    }
}

stored_as_text!(HostOrGroup);

/// Reads a host name: letters, digits, `-`, `_` and dots, at most 253 characters (RFC 1123 section
/// 2.1).
///
/// # Errors
///
/// The text is no such name.
pub fn host_name(text: &str) -> Result<HostName, MalformedValue> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.is_empty() || text.len() > 253 || text.starts_with(['-', '.']) || !text.chars().all(is_allowed) {
        return Err(MalformedValue::new("a host name"));
    }
    if value::is_none(text) {
        return Err(MalformedValue::new("a host name other than the keyword NONE"));
    }
    Ok(HostName::new(text))
}

/// Reads the name of a host group: `@` and an object name.
///
/// # Errors
///
/// The text does not start with `@`, or what follows is no object name.
pub fn group_name(text: &str) -> Result<HostGroupName, MalformedValue> {
    let no_group = || {
        let what = format!("host group name \"{text}\" is not valid");
        MalformedValue::with_words(what, "a host group name, which starts with \"@\",")
    };
    let bare = text.strip_prefix('@').ok_or_else(no_group)?;
    value::check_name(bare)?;
    Ok(HostGroupName::from(text))
}

/// Hosts and groups in order, each once; blanks and commas separate them on input, single blanks on
/// output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostList(pub Vec<HostOrGroup>);

impl Deref for HostList {
    type Target = [HostOrGroup];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromStr for HostList {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut members: Vec<HostOrGroup> = Vec::new();
        for word in value::elements(text) {
            let member = word.parse()?;
            // A host that is named twice is in the list all the same: 8.1.9 takes such lists too.
            if !members.contains(&member) {
                members.push(member);
            }
        }
        Ok(HostList(members))
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("NONE");
        }
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&words.join(" "))
    }
}

/// A host group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGroup {
    /// The name with its `@`.
    pub name: HostGroupName,
    /// The hosts and groups it contains.
    pub members: HostList,
}

impl HostGroup {
    /// What `qconf -ahgrp` opens: a group of that name without members.
    pub fn template(name: HostGroupName) -> Self {
        Self {
            name,
            members: HostList::default(),
        }
    }

    /// Reads a group.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or has a value it cannot have.
    pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut group = Self::template(HostGroupName::from("@template"));
        let mut reader = Reader::new(ObjectKind::HostGroup, fields, KEYS, KEYS);
        reader.read("group_name", &mut group.name, group_name);
        reader.read("hostlist", &mut group.members, str::parse);
        reader.finish(group)
    }

    /// The group as text fields, in the order of `qconf -shgrp`.
    pub fn to_fields(&self) -> Fields {
        let Self { name, members } = self;
        [("group_name", name.to_string()), ("hostlist", members.to_string())]
            .into_iter()
            .collect()
    }
}

impl Object for HostGroup {
    fn template(name: &str) -> Self {
        Self::template(HostGroupName::from(if name.is_empty() { "@template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}
