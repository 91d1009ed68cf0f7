//! Access lists and departments: named sets of users and of Unix groups (`access_list(5)`).

#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::object::reader::Reader;
use crate::object::value::{self, MalformedValue, stored_as_text};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The attributes of a user set in the order of `qconf -su`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("name", "The name."),
    (
        "type",
        "What it is good for: `ACL` admits and excludes, `DEPT` is a department, `ACL DEPT` is \
         both.",
    ),
    ("fshare", "The functional shares of the department."),
    ("oticket", "The override tickets of the department."),
    (
        "entries",
        "Users, and Unix groups with `@` in front, separated by commas.",
    ),
];

/// The set whose members may set a deadline (`qsub -dl`).
pub const DEADLINE_USERS: &str = "deadlineusers";

/// The set whose members may make advance reservations (`qrsub`).
pub const RESERVATION_USERS: &str = "arusers";

/// The department of everybody who is in no other one. It has no entries of its own.
pub const DEFAULT_DEPARTMENT: &str = "defaultdepartment";

/// The set whose members may reserve resources in advance.
pub const AR_USERS: &str = "arusers";

/// What a set of users is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum UserSetKind {
    /// `ACL`: it admits and excludes.
    AccessList,
    /// `DEPT`: its users form a department.
    Department,
    /// `ACL DEPT`: both.
    Both,
}

impl FromStr for UserSetKind {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let (mut is_list, mut is_department) = (false, false);
        for word in value::elements(text) {
            match word.to_ascii_uppercase().as_str() {
                "ACL" => is_list = true,
                "DEPT" => is_department = true,
                _ => {
                    let what = format!("reading conf file: unknown specifier \"{word}\" for userset type");
                    return Err(MalformedValue::with_words(what, "ACL, DEPT or ACL DEPT"));
                }
            }
        }
        match (is_list, is_department) {
            (true, true) => Ok(Self::Both),
            (true, false) => Ok(Self::AccessList),
            (false, true) => Ok(Self::Department),
            (false, false) => Err(MalformedValue::new("ACL, DEPT or ACL DEPT")),
        }
    }
}

impl fmt::Display for UserSetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AccessList => "ACL",
            Self::Department => "DEPT",
            Self::Both => "ACL DEPT",
        })
    }
}

stored_as_text!(UserSetKind);

/// Users and, with `@` in front, Unix groups, in order. Commas and blanks separate them on input,
/// commas on output. `NONE` is empty. As in 8.1.9 a name may occur twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Entries(pub Vec<String>);

impl Deref for Entries {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// Checks one entry: the name of a user, or `@` and the name of a group.
///
/// # Errors
///
/// It is empty, holds blanks, commas, control characters or an `@` inside, or is the keyword NONE.
pub fn check_entry(text: &str) -> Result<(), MalformedValue> {
    let name = text.strip_prefix('@').unwrap_or(text);
    let is_allowed = |letter: char| !letter.is_control() && !letter.is_whitespace() && !",@\\\"".contains(letter);
    if name.is_empty() || !name.chars().all(is_allowed) || value::is_none(name) {
        return Err(MalformedValue::new(format!(
            "a user, or a group with @ in front, not \"{text}\","
        )));
    }
    Ok(())
}

impl FromStr for Entries {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let words = value::elements(text);
        words.iter().try_for_each(|word| check_entry(word))?;
        Ok(Self(words.into_iter().map(str::to_owned).collect()))
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.pad("NONE")
        } else {
            f.pad(&self.0.join(","))
        }
    }
}

/// An access list, a department, or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSet {
    /// The name.
    pub name: String,
    /// What it is good for.
    pub purpose: UserSetKind,
    /// The functional shares of a department.
    pub fshare: u32,
    /// The override tickets of a department.
    pub oticket: u32,
    /// Who is in it.
    pub entries: Entries,
}

impl UserSet {
    /// Whether jobs of departments may be in it.
    pub fn is_department(&self) -> bool {
        matches!(self.purpose, UserSetKind::Department | UserSetKind::Both)
    }

    /// Whether a user is in it, by name.
    pub fn has_user(&self, user: &str) -> bool {
        !user.starts_with('@') && self.entries.iter().any(|entry| entry == user)
    }

    /// Whether a Unix group is in it.
    pub fn has_group(&self, group: &str) -> bool {
        self.entries.iter().any(|entry| entry.strip_prefix('@') == Some(group))
    }
}

impl Object for UserSet {
    fn template(name: &str) -> Self {
        Self {
            name: if name.is_empty() { "template" } else { name }.to_owned(),
            purpose: UserSetKind::AccessList,
            fshare: 0,
            oticket: 0,
            entries: Entries::default(),
        }
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut set = Self::template("");
        let mut reader = Reader::new(ObjectKind::UserSet, fields, KEYS, KEYS);
        reader.read("name", &mut set.name, value::name);
        reader.read("type", &mut set.purpose, str::parse);
        reader.read("fshare", &mut set.fshare, value::count);
        reader.read("oticket", &mut set.oticket, value::count);
        reader.read("entries", &mut set.entries, str::parse);
        reader.finish(set)
    }

    fn write(&self) -> Fields {
        let Self {
            name,
            purpose,
            fshare,
            oticket,
            entries,
        } = self;
        let values = [
            name.clone(),
            purpose.to_string(),
            fshare.to_string(),
            oticket.to_string(),
            entries.to_string(),
        ];
        KEYS.iter().copied().zip(values).collect()
    }
}
