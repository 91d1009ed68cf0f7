//! Edits of single attributes: `qconf -aattr`, `-mattr`, `-dattr`, `-rattr` and `-purge`.
//!
//! Pure functions from fields to fields. The result is text: the typed object that is read from it
//! decides whether the new value can be.

use super::fields::unknown_attribute;
use super::value::{is_none, spelt_with_commas};
use super::{Fields, ObjectKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::hostgroup::HostOrGroup;
use crate::queue::{QueueType, brackets, split_default};
use crate::rsmap::split_at_commas;
use serde::{Deserialize, Serialize};

/// What is done with the given value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// `-aattr`: elements are added to the list; one that is there stays as it is.
    Add,
    /// `-mattr`: elements that are there get the new value, and go to the end with it; others are
    /// added. A name that is there keeps its place.
    Modify,
    /// `-dattr`: elements are taken out of the list; one that is not there is none to be taken out.
    /// A part of a queue that has no list of its own gets none.
    Delete,
    /// `-rattr`: the value takes the place of the old one.
    Replace,
}

/// What the value of an attribute is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One value.
    Single,
    /// Names, each its own key, joined by blanks.
    Names,
    /// `name=value` pairs with the name as their key, joined by commas.
    Assignments,
    /// Letters, each its own key, written as one word.
    Letters,
}

/// An object after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditResult {
    /// The object.
    pub fields: Fields,
    /// What 8.1.9 tells besides, in its words, such as that a list was empty.
    pub notes: Vec<String>,
    /// Whether 8.1.9 says that the object was modified: not where all that a host is to be given is
    /// there.
    pub is_told: bool,
}

/// What the value of an attribute is made of; `None` if objects of this kind do not have it.
pub fn shape_of(kind: ObjectKind, key: &str) -> Option<Shape> {
    if !kind.keys().contains(&key) && !kind.later_keys().contains(&key) {
        return None;
    }
    Some(match key {
        "complex_values" | "load_thresholds" | "suspend_thresholds" | "load_scaling" | "usage_scaling" => {
            Shape::Assignments
        }
        "hostlist" | "qtype" | "subordinate_list" | "pe_list" | "ckpt_list" | "owner_list" | "user_lists"
        | "xuser_lists" | "projects" | "xprojects" | "report_variables" | "entries" | "acl" | "xacl" => Shape::Names,
        "when" if kind == ObjectKind::Checkpoint => Shape::Letters,
        _ => Shape::Single,
    })
}

/// Changes one attribute of an object.
///
/// `domain` is the part of a cluster queue to which the value applies (`queue@host`,
/// `queue@@group`); `None` is the value for all hosts, and the only choice for other kinds. The
/// value for a queue may also name domains itself, `[host=value]`, with or without a value for all
/// hosts in front. What a domain gets starts from what it has itself, not from the value for all
/// hosts.
///
/// # Errors
///
/// Objects of this kind do not have the attribute, it names or reports the object and is not
/// edited, the domain is given for what is the same on all hosts, it has no value for a domain to
/// delete, `Delete` is asked of what is no list, or no elements are named that a list is to gain or
/// lose.
pub fn edit(
    kind: ObjectKind,
    fields: &Fields,
    operation: Operation,
    key: &str,
    value: &str,
    domain: Option<&HostOrGroup>,
) -> Result<EditResult, Diagnostic> {
    let shape = editable(kind, key, value, domain)?;
    let mut setting = SettingText::read(kind, fields, key)?;
    // Grid Engine 8.1.9 sets the type of a queue as a whole, although it is written as a list.
    let shape = if key == "qtype" && operation == Operation::Modify {
        Shape::Single
    } else {
        shape
    };
    let mut notes = Vec::new();
    for (domain, given) in given_parts(kind, key, value, domain)? {
        check_elements(operation, shape, key, &given)?;
        let is_of_part = domain.is_some() && shape != Shape::Single;
        if operation == Operation::Delete && is_of_part && setting.value(domain.as_ref()).is_none() {
            continue;
        }
        let old = setting.value(domain.as_ref()).unwrap_or("NONE").to_owned();
        let change = ValueChange {
            kind,
            key,
            name: name_of(kind, fields),
            old: &old,
            given: &given,
        };
        setting = change.apply(operation, shape, setting, domain, &mut notes)?;
    }
    let mut edited = fields.clone();
    edited.set(key, setting.print());
    let is_told = kind != ObjectKind::ExecHost || operation != Operation::Add || edited != *fields;
    Ok(EditResult {
        fields: edited,
        notes,
        is_told,
    })
}

/// What is given for each part of an object; `None` stands for all hosts.
fn given_parts(
    kind: ObjectKind,
    key: &str,
    value: &str,
    domain: Option<&HostOrGroup>,
) -> Result<Vec<(Option<HostOrGroup>, String)>, Diagnostic> {
    let parts = match domain {
        Some(domain) => vec![(Some(domain.clone()), value.trim_ascii().to_owned())],
        None => SettingText::of(kind, key, value.trim_ascii())?.by_domain(),
    };
    if kind != ObjectKind::Queue {
        return Ok(parts);
    }
    let refused = |given: &str| {
        let refusal = given.parse::<QueueType>().err()?.refusal(key, given).at(key);
        let what = format!("{}\nError during parsing of attribute value \"{given}\"", refusal.what);
        Some(Diagnostic { what, ..refusal })
    };
    if let Some(refusal) = parts
        .iter()
        .filter(|_| key == "qtype")
        .find_map(|(_, given)| refused(given))
    {
        return Err(refusal);
    }
    let is_assigned = shape_of(kind, key) == Some(Shape::Assignments);
    let spelt = |given: String| if is_assigned { spelt_with_commas(&given) } else { given };
    Ok(parts
        .into_iter()
        .map(|(domain, given)| (domain, spelt(given)))
        .collect())
}

/// Takes the value of one domain out of a cluster queue, so that the value of a wider one holds
/// there (`qconf -purge`). `None` if the domain has no value of its own.
///
/// # Errors
///
/// Objects of this kind do not have the attribute, or it is the same on all hosts.
pub fn purge(kind: ObjectKind, fields: &Fields, key: &str, domain: &HostOrGroup) -> Result<Option<Fields>, Diagnostic> {
    if let Err(refusal) = editable(kind, key, "NONE", Some(domain)) {
        return Err(Diagnostic {
            what: not_found(key, domain),
            ..refusal
        });
    }
    let Some(setting) = SettingText::read(kind, fields, key)?.without(domain) else {
        return Ok(None);
    };
    let mut fields = fields.clone();
    fields.set(key, setting.print());
    Ok(Some(fields))
}

/// That there is nothing to be purged, in the words of 8.1.9.
pub fn not_found(key: &str, domain: &HostOrGroup) -> String {
    format!("Attribute name (\"{key}\") and/or value (\"{domain}\") not found")
}

/// The shape of an attribute that is to get a value.
///
/// # Errors
///
/// Objects of this kind do not have the attribute, or the value is empty.
pub fn check_attribute(kind: ObjectKind, key: &str, value: &str) -> Result<Shape, Diagnostic> {
    let what = invalid_value(key, value);
    if value.trim_ascii().is_empty() && shape_of(kind, key).is_some() {
        let refusal = Diagnostic::new(Code::BadValue, what).why("the value is empty").at(key);
        return Err(refusal.fix("-rattr with NONE sets the attribute to nothing"));
    }
    shape_of(kind, key).ok_or_else(|| {
        let known = [kind.keys(), kind.later_keys()].concat();
        Diagnostic {
            what,
            ..unknown_attribute(kind, key, &known)
        }
        .at(key)
    })
}

/// The shape of an attribute that may be edited there.
fn editable(kind: ObjectKind, key: &str, value: &str, domain: Option<&HostOrGroup>) -> Result<Shape, Diagnostic> {
    let shape = check_attribute(kind, key, value)?;
    if kind.keys().first() == Some(&key) || matches!(key, "load_values" | "processors" if kind == ObjectKind::ExecHost)
    {
        return Err(Diagnostic::new(
            Code::Immutable,
            format!("attribute \"{key}\" of a {kind} cannot be modified"),
        )
        .at(key));
    }
    if domain.is_some() && (kind != ObjectKind::Queue || key == "hostlist") {
        return Err(Diagnostic::new(
            Code::BadSyntax,
            format!("attribute \"{key}\" of a {kind} is the same on all hosts"),
        )
        .at(key)
        .fix("name the object without \"@\""));
    }
    Ok(shape)
}

/// Refuses a value without elements, or with `NONE` among its elements, where elements of a list
/// are to be changed: the list would stay as it is, and the caller would believe it changed. Grid
/// Engine 8.1.9 refuses `NONE` for `-mattr` alone, in these words.
///
/// # Errors
///
/// The value names no element or `NONE`, and the list is edited, not replaced.
pub fn check_elements(operation: Operation, shape: Shape, key: &str, given: &str) -> Result<(), Diagnostic> {
    let option = match (operation, shape) {
        (Operation::Replace, _) | (_, Shape::Single) => return Ok(()),
        (Operation::Add, Shape::Names | Shape::Assignments | Shape::Letters) => "-aattr",
        (Operation::Modify, Shape::Names | Shape::Assignments | Shape::Letters) => "-mattr",
        (Operation::Delete, Shape::Names | Shape::Assignments | Shape::Letters) => "-dattr",
    };
    let elements = split(shape, given);
    let holds_none = elements.iter().any(|element| is_none(element));
    if !elements.is_empty() && !holds_none {
        return Ok(());
    }
    let what = match holds_none || is_none(given.trim_ascii()) {
        true => format!("\"NONE\" is not a valid list attribute value for {option}.  Try using -rattr instead."),
        false => invalid_value(key, given),
    };
    Err(Diagnostic::new(Code::BadValue, what)
        .at(key)
        .fix("name elements of the list; -rattr with NONE empties it"))
}

fn invalid_value(key: &str, value: &str) -> String {
    format!("The attribute name (\"{key}\") and/or value (\"{value}\") is invalid")
}

fn no_list(kind: ObjectKind, key: &str) -> Diagnostic {
    Diagnostic::new(
        Code::BadSyntax,
        format!("attribute \"{key}\" of a {kind} is not a list"),
    )
    .at(key)
    .why("only elements of lists are deleted")
    .fix("\"qconf -rattr\" sets another value, \"qconf -purge\" removes that of a host")
}

/// What messages call an object: a queue by its name, others by their kind.
fn name_of(kind: ObjectKind, fields: &Fields) -> &str {
    let own = kind
        .keys()
        .first()
        .and_then(|key| fields.value(key))
        .unwrap_or_default();
    kind.attr_name().filter(|_| kind != ObjectKind::Queue).unwrap_or(own)
}

/// A value, what is given to change it, and how messages call it.
struct ValueChange<'a> {
    kind: ObjectKind,
    key: &'a str,
    name: &'a str,
    old: &'a str,
    given: &'a str,
}

impl ValueChange<'_> {
    /// The setting with the changed value for a domain, or for all hosts.
    fn apply(
        &self,
        operation: Operation,
        shape: Shape,
        setting: SettingText,
        domain: Option<HostOrGroup>,
        notes: &mut Vec<String>,
    ) -> Result<SettingText, Diagnostic> {
        Ok(match (operation, shape, domain) {
            (Operation::Replace, Shape::Single | Shape::Names | Shape::Assignments | Shape::Letters, domain)
            | (Operation::Add | Operation::Modify, Shape::Single, domain) => {
                setting.with(domain, self.given.to_owned())
            }
            (Operation::Add, Shape::Names | Shape::Assignments | Shape::Letters, domain) => {
                setting.with(domain, self.extended(shape, notes))
            }
            (Operation::Modify, Shape::Names | Shape::Assignments | Shape::Letters, domain) => {
                setting.with(domain, self.merged(shape, notes))
            }
            (Operation::Delete, Shape::Names | Shape::Assignments | Shape::Letters, domain) => {
                setting.with(domain, self.reduced(shape, notes))
            }
            (Operation::Delete, Shape::Single, Some(domain)) => {
                setting.without(&domain).ok_or_else(|| self.absent(&domain))?
            }
            (Operation::Delete, Shape::Single, None) => return Err(no_list(self.kind, self.key)),
        })
    }

    /// The old elements, and the given ones whose key is new.
    fn extended(&self, shape: Shape, notes: &mut Vec<String>) -> String {
        let Self { key, name, .. } = self;
        let mut elements = split(shape, self.old);
        for element in split(shape, self.given) {
            let own = element_key(element);
            if elements.iter().any(|old| element_key(old) == own) {
                notes.push(format!(
                    "No modification because \"{own}\" already exists in \"{key}\" of \"{name}\""
                ));
            } else {
                elements.push(element);
            }
        }
        join(shape, &elements)
    }

    /// The given elements in place of those of the same key, at the end, the new ones last. A name
    /// without a value keeps its place.
    fn merged(&self, shape: Shape, notes: &mut Vec<String>) -> String {
        let Self { key, name, old, .. } = self;
        let mut elements = split(shape, old);
        let mut new: Vec<&str> = Vec::new();
        if is_none(old) {
            notes.push(format!("\"{key}\" of \"{name}\" is empty - Adding new element(s)."));
        }
        for element in split(shape, self.given) {
            let own = element_key(element);
            if matches!(shape, Shape::Names | Shape::Letters) && elements.contains(&element) {
                continue;
            }
            let count = elements.len();
            elements.retain(|old| element_key(old) != own);
            if elements.len() < count {
                elements.push(element);
                continue;
            }
            if !is_none(old) && !new.iter().any(|earlier| element_key(earlier) == own) {
                notes.push(format!(
                    "Unable to find \"{own}\" in \"{key}\" of \"{name}\" - Adding new element."
                ));
            }
            new.retain(|earlier| element_key(earlier) != own);
            new.push(element);
        }
        elements.extend(new);
        join(shape, &elements)
    }

    /// The old elements without those whose key is given.
    fn reduced(&self, shape: Shape, notes: &mut Vec<String>) -> String {
        let mut elements = split(shape, self.old);
        for element in split(shape, self.given) {
            let own = element_key(element);
            let count = elements.len();
            elements.retain(|old| element_key(old) != own);
            if elements.len() == count {
                notes.push(format!(
                    "\"{own}\" does not exist in \"{}\" of \"{}\"",
                    self.key, self.name
                ));
            }
        }
        join(shape, &elements)
    }

    /// The refusal to delete what is not there.
    fn absent(&self, element: &dyn std::fmt::Display) -> Diagnostic {
        let Self {
            kind,
            key,
            name,
            old,
            given: _,
        } = self;
        Diagnostic::new(
            Code::UnknownObject,
            format!("\"{element}\" does not exist in \"{key}\" of \"{name}\""),
        )
        .at(*key)
        .why(format!("{key} of this {kind} is {old}"))
    }
}

fn split(shape: Shape, text: &str) -> Vec<&str> {
    if is_none(text) {
        return Vec::new();
    }
    if shape == Shape::Names && text.contains('(') {
        // The tree of slot-wise subordination (ALGORITHMS.md section 16) has commas inside and is
        // one element.
        return vec![text];
    }
    if shape == Shape::Letters {
        let text = text.trim_ascii();
        return text
            .char_indices()
            .map(|(at, letter)| &text[at..at + letter.len_utf8()])
            .collect();
    }
    let is_between = |letter: char| letter == ',' || letter.is_ascii_whitespace();
    let elements: Vec<&str> = match shape {
        Shape::Names => text.split(is_between).collect(),
        Shape::Assignments => split_at_commas(text),
        Shape::Single | Shape::Letters => text.split(',').collect(),
    };
    elements
        .into_iter()
        .map(str::trim_ascii)
        .filter(|element| !element.is_empty())
        .collect()
}

fn join(shape: Shape, elements: &[&str]) -> String {
    if elements.is_empty() {
        return "NONE".to_owned();
    }
    match shape {
        Shape::Single | Shape::Names => elements.join(" "),
        Shape::Assignments => elements.join(","),
        Shape::Letters => elements.concat(),
    }
}

/// What tells an element from the others of its list.
fn element_key(element: &str) -> &str {
    element.split_once('=').map_or(element, |(key, _)| key)
}

/// A value with its overrides, all as text.
struct SettingText {
    default: String,
    overrides: Vec<(HostOrGroup, String)>,
}

impl SettingText {
    /// The value of an attribute of an object.
    fn read(kind: ObjectKind, fields: &Fields, key: &str) -> Result<Self, Diagnostic> {
        Self::of(kind, key, fields.value(key).unwrap_or("NONE"))
    }

    /// A value of an attribute. Only those of cluster queues have overrides.
    fn of(kind: ObjectKind, key: &str, text: &str) -> Result<Self, Diagnostic> {
        if kind == ObjectKind::Queue && key != "hostlist" {
            return Self::parse(text).map_err(|refusal| refusal.at(key));
        }
        Ok(Self {
            default: text.to_owned(),
            overrides: Vec::new(),
        })
    }

    fn parse(text: &str) -> Result<Self, Diagnostic> {
        let bad = |why: String| Diagnostic::new(Code::BadSyntax, format!("invalid value \"{text}\"")).why(why);
        let (default, rest) = split_default(text);
        let mut overrides = Vec::new();
        for bracket in brackets(rest).map_err(|malformed| bad(malformed.to_string()))? {
            let (id, value) = bracket
                .split_once('=')
                .ok_or_else(|| bad(format!("[{bracket}] has no \"=\"")))?;
            let id = id
                .trim_ascii()
                .parse()
                .map_err(|malformed: super::value::MalformedValue| bad(malformed.to_string()))?;
            overrides.push((id, value.trim_ascii().to_owned()));
        }
        Ok(Self {
            default: default.to_owned(),
            overrides,
        })
    }

    /// What is set for exactly this domain.
    fn value(&self, domain: Option<&HostOrGroup>) -> Option<&str> {
        let Some(domain) = domain else {
            return Some(&self.default);
        };
        self.overrides
            .iter()
            .find(|(id, _)| id == domain)
            .map(|(_, value)| value.as_str())
    }

    /// Each value with its domain; none for all hosts if only overrides are given.
    fn by_domain(self) -> Vec<(Option<HostOrGroup>, String)> {
        let default = (!self.default.is_empty() || self.overrides.is_empty()).then_some((None, self.default));
        default
            .into_iter()
            .chain(self.overrides.into_iter().map(|(id, value)| (Some(id), value)))
            .collect()
    }

    fn with(mut self, domain: Option<HostOrGroup>, new: String) -> Self {
        let Some(domain) = domain else {
            return Self { default: new, ..self };
        };
        match self.overrides.iter_mut().find(|(id, _)| *id == domain) {
            Some((_, value)) => *value = new,
            None => self.overrides.push((domain, new)),
        }
        self
    }

    /// The same without the override of a domain; `None` if there is none.
    fn without(mut self, domain: &HostOrGroup) -> Option<Self> {
        let at = self.overrides.iter().position(|(id, _)| id == domain)?;
        self.overrides.remove(at);
        Some(self)
    }

    fn print(&self) -> String {
        let overrides = self.overrides.iter().map(|(id, value)| format!(",[{id}={value}]"));
        std::iter::once(self.default.clone()).chain(overrides).collect()
    }
}

#[cfg(test)]
mod tests;
