//! Projects and users with shares (`project(5)`, `user(5)`).
//!
//! Whether the access lists of a project and the default project of a user exist is deliberately
//! not known here.

#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::object::reader::Reader;
use crate::object::value::{self, MalformedValue, NameList, OptionalValue, Reference};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};

/// The attributes of a project in the order of `qconf -sprj`.
pub const PROJECT_KEYS: &[&str] = &names::<{ PROJECT_MEANINGS.len() }>(PROJECT_MEANINGS);

/// What each attribute means, for the manual page.
pub const PROJECT_MEANINGS: &[(&str, &str)] = &[
    ("name", "The name."),
    ("oticket", "The override tickets of the project."),
    ("fshare", "The functional shares of the project."),
    (
        "acl",
        "The access lists whose users may submit to it; `NONE` admits everybody.",
    ),
    (
        "xacl",
        "The access lists whose users may not submit to it; wins over `acl`.",
    ),
];

/// The attributes of a user in the order of `qconf -suser`.
pub const USER_KEYS: &[&str] = &names::<{ USER_MEANINGS.len() }>(USER_MEANINGS);

/// What each attribute means, for the manual page.
pub const USER_MEANINGS: &[(&str, &str)] = &[
    ("name", "The login name."),
    ("oticket", "The override tickets of the user."),
    ("fshare", "The functional shares of the user."),
    (
        "delete_time",
        "When the object may be deleted by itself, in seconds since 1970; 0 is never.",
    ),
    ("default_project", "The project of jobs submitted without `-P`."),
];

/// A project, to which jobs belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// The name.
    pub name: String,
    /// Override tickets.
    pub oticket: u32,
    /// Functional shares.
    pub fshare: u32,
    /// The access lists whose users may submit to it; empty admits everybody.
    pub acl: NameList<String>,
    /// The access lists whose users may not; wins over `acl`.
    pub xacl: NameList<String>,
}

/// A user as an object of the cell: shares, and the project of jobs that name none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The login name.
    pub name: String,
    /// Override tickets.
    pub oticket: u32,
    /// Functional shares.
    pub fshare: u32,
    /// When the object may be deleted by itself, in seconds since 1970; 0 is never.
    pub delete_time: u32,
    /// The project of jobs that name none.
    pub default_project: OptionalValue<Reference>,
}

/// The name of a user object: a login name, which may hold more than names of other objects.
fn user_name(text: &str) -> Result<String, MalformedValue> {
    match crate::userset::check_entry(text) {
        Ok(()) if !text.starts_with('@') && !text.contains('/') => Ok(text.to_owned()),
        Ok(()) | Err(_) => Err(MalformedValue::new("the name of a user")),
    }
}

impl Object for Project {
    fn template(name: &str) -> Self {
        let name = if name.is_empty() { "template" } else { name }.to_owned();
        Self {
            name,
            oticket: 0,
            fshare: 0,
            acl: NameList::default(),
            xacl: NameList::default(),
        }
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut project = Self::template("");
        let mut reader = Reader::new(ObjectKind::Project, fields, PROJECT_KEYS, PROJECT_KEYS);
        reader.read("name", &mut project.name, value::name);
        reader.read("oticket", &mut project.oticket, value::count);
        reader.read("fshare", &mut project.fshare, value::count);
        reader.read("acl", &mut project.acl, str::parse);
        reader.read("xacl", &mut project.xacl, str::parse);
        reader.finish(project)
    }

    fn write(&self) -> Fields {
        let Self {
            name,
            oticket,
            fshare,
            acl,
            xacl,
        } = self;
        let values = [
            name.clone(),
            oticket.to_string(),
            fshare.to_string(),
            acl.to_string(),
            xacl.to_string(),
        ];
        PROJECT_KEYS.iter().copied().zip(values).collect()
    }
}

impl Object for User {
    fn template(name: &str) -> Self {
        let name = if name.is_empty() { "template" } else { name }.to_owned();
        Self {
            name,
            oticket: 0,
            fshare: 0,
            delete_time: 0,
            default_project: OptionalValue::NONE,
        }
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut user = Self::template("");
        let mut reader = Reader::new(ObjectKind::User, fields, USER_KEYS, USER_KEYS);
        reader.read("name", &mut user.name, user_name);
        reader.read("oticket", &mut user.oticket, value::count);
        reader.read("fshare", &mut user.fshare, value::count);
        reader.read("delete_time", &mut user.delete_time, value::count);
        reader.read("default_project", &mut user.default_project, str::parse);
        reader.finish(user)
    }

    fn write(&self) -> Fields {
        let Self {
            name,
            oticket,
            fshare,
            delete_time,
            default_project,
        } = self;
        let values = [
            name.clone(),
            oticket.to_string(),
            fshare.to_string(),
            delete_time.to_string(),
            default_project.to_string(),
        ];
        USER_KEYS.iter().copied().zip(values).collect()
    }
}
