//! Execution hosts as objects: what an administrator says about a host.
//!
//! What a host reports, its load values and processors, is no part of the object: it is only shown
//! with it.

#[cfg(test)]
mod tests;

pub mod names;

use crate::amount::Millionths;
use crate::diagnostic::Diagnostic;
use crate::hostgroup::host_name;
use crate::id::{AttributeName, HostName};
use crate::object::reader::Reader;
use crate::object::value::{Assignments, MalformedValue, NameList, Weight, stored_as_text};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The attributes of an execution host in the order of `qconf -se`.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    (
        "hostname",
        "The name of the host; `global` stands for the whole cluster.",
    ),
    (
        "load_scaling",
        "Factors by which reported load values are multiplied, such as `np_load_avg=0.5`.",
    ),
    (
        "complex_values",
        "Capacities of consumables and fixed values of other attributes, such as \
         `lic=4,h_vmem=64G`.",
    ),
    ("load_values", "The load values that the host reports; shown, not set."),
    ("processors", "The processors of the host; shown, not set."),
    (
        "user_lists",
        "The access lists whose users may use the host; `NONE` admits everybody.",
    ),
    (
        "xuser_lists",
        "The access lists whose users may not use the host; wins over `user_lists`.",
    ),
    (
        "projects",
        "The projects that may use the host; `NONE` admits all jobs.",
    ),
    (
        "xprojects",
        "The projects that may not use the host; wins over `projects`.",
    ),
    (
        "usage_scaling",
        "Factors for `cpu`, `mem` and `io` usage in the share tree, and for `acct_cpu`, \
         `acct_mem` and `acct_io` in accounting.",
    ),
    (
        "report_variables",
        "The load values that are written to the reporting file.",
    ),
];

/// The attributes that the text must state. `load_values` and `processors` are shown, not set.
const REQUIRED: &[&str] = &[
    "hostname",
    "load_scaling",
    "complex_values",
    "user_lists",
    "xuser_lists",
    "projects",
    "xprojects",
    "usage_scaling",
    "report_variables",
];

/// The names that `usage_scaling` may scale: usage as it is measured, and as accounting counts it.
const USAGE_NAMES: &[&str] = &["cpu", "mem", "io", "acct_cpu", "acct_mem", "acct_io"];

/// An execution host, or the pseudo host `global` with what belongs to the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecHost {
    /// The host.
    pub name: HostName,
    /// Factors by which reported load values are multiplied.
    pub load_scaling: Scaling,
    /// Capacities of consumables and fixed values of other attributes.
    pub complex_values: Assignments,
    /// The access lists whose users may use the host; empty admits everybody.
    pub user_lists: NameList<String>,
    /// The access lists whose users may not use the host; wins over `user_lists`.
    pub xuser_lists: NameList<String>,
    /// The projects that may use the host; empty admits all jobs.
    pub projects: NameList<String>,
    /// The projects that may not use the host; wins over `projects`.
    pub xprojects: NameList<String>,
    /// Factors for `cpu`, `mem` and `io` usage in the share tree.
    pub usage_scaling: Scaling,
    /// The load values written to the reporting file.
    pub report_variables: NameList<AttributeName>,
}

impl ExecHost {
    /// What `qconf -ae` opens, and what a host that registers itself gets: nothing set.
    pub fn template(name: HostName) -> Self {
        Self {
            name,
            load_scaling: Scaling::default(),
            complex_values: Assignments::default(),
            user_lists: NameList::default(),
            xuser_lists: NameList::default(),
            projects: NameList::default(),
            xprojects: NameList::default(),
            usage_scaling: Scaling::default(),
            report_variables: NameList::default(),
        }
    }

    /// Reads a host. `load_values` and `processors`, which `qconf -se` shows, are passed over.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or has a value it cannot have.
    pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut host = Self::template(HostName::new("template"));
        let mut reader = Reader::new(ObjectKind::ExecHost, fields, KEYS, REQUIRED);
        reader.read("hostname", &mut host.name, host_name);
        reader.read("load_scaling", &mut host.load_scaling, str::parse);
        reader.read("complex_values", &mut host.complex_values, str::parse);
        reader.read("user_lists", &mut host.user_lists, str::parse);
        reader.read("xuser_lists", &mut host.xuser_lists, str::parse);
        reader.read("projects", &mut host.projects, str::parse);
        reader.read("xprojects", &mut host.xprojects, str::parse);
        reader.read("usage_scaling", &mut host.usage_scaling, usage_scaling);
        reader.read("report_variables", &mut host.report_variables, str::parse);
        reader.finish(host)
    }

    /// The host as text fields, in the order of `qconf -se` without what the host reports: the text
    /// that is edited.
    pub fn to_fields(&self) -> Fields {
        let mut fields = self.shown(&Assignments::default(), 0);
        fields.remove("load_values");
        fields.remove("processors");
        fields
    }

    /// The host as `qconf -se` shows it, with the load values and the processors that it reported.
    pub fn shown(&self, load_values: &Assignments, processors: u32) -> Fields {
        let Self {
            name,
            load_scaling,
            complex_values,
            user_lists,
            xuser_lists,
            projects,
            xprojects,
            usage_scaling,
            report_variables,
        } = self;
        let values = [
            name.to_string(),
            load_scaling.to_string(),
            complex_values.to_string(),
            load_values.to_string(),
            processors.to_string(),
            user_lists.to_string(),
            xuser_lists.to_string(),
            projects.to_string(),
            xprojects.to_string(),
            usage_scaling.to_string(),
            report_variables.to_string().replace(' ', ","),
        ];
        KEYS.iter().copied().zip(values).collect()
    }
}

/// Factors by name, each name once, printed with six decimals as `name=1.500000`. `NONE` is empty:
/// every factor is 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scaling(Vec<(AttributeName, Weight)>);

impl Scaling {
    /// The factor for a name; 1 if none is set.
    pub fn factor(&self, name: &str) -> Millionths {
        let set = self.0.iter().find(|(scaled, _)| scaled.as_str() == name);
        set.map_or(Millionths::ONE, |(_, factor)| factor.0)
    }

    /// The names with their factors, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&AttributeName, Millionths)> {
        self.0.iter().map(|(name, factor)| (name, factor.0))
    }
}

impl FromStr for Scaling {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let texts: Assignments = text.parse()?;
        let factor = |(name, text): &(AttributeName, String)| Ok((name.clone(), text.parse()?));
        texts
            .iter()
            .map(factor)
            .collect::<Result<_, MalformedValue>>()
            .map(Scaling)
    }
}

impl fmt::Display for Scaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self
            .0
            .iter()
            .map(|(name, factor)| (name.clone(), factor.to_string()))
            .collect();
        Assignments(texts).fmt(f)
    }
}

stored_as_text!(Scaling);

fn usage_scaling(text: &str) -> Result<Scaling, MalformedValue> {
    let scaling: Scaling = text.parse()?;
    if scaling.iter().all(|(name, _)| USAGE_NAMES.contains(&name.as_str())) {
        Ok(scaling)
    } else {
        Err(MalformedValue::new(format!(
            "a factor for none but {}",
            USAGE_NAMES.join(", ")
        )))
    }
}

impl Object for ExecHost {
    fn template(name: &str) -> Self {
        Self::template(HostName::from(if name.is_empty() { "template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}

/// The architecture that this program was built for, in Grid Engine's words: `lx-amd64` for 64-bit
/// x86.
pub fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "lx-amd64",
        "x86" => "lx-x86",
        "aarch64" => "lx-arm64",
        "arm" => "lx-armhf",
        "powerpc64" if cfg!(target_endian = "little") => "lx-ppc64le",
        "powerpc64" => "lx-ppc64",
        "riscv64" => "lx-riscv64",
        "s390x" => "lx-s390x",
        _ => "lx-unknown",
    }
}
