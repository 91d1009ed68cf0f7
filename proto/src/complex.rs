//! The complex: the one cluster-wide list of resource attributes, what each may be and how it is
//! compared (`complex(5)`).
//!
//! A [`Complex`] always keeps the rules of `rules.rs`, however it was made. Which hosts, queues and
//! quotas use an attribute is deliberately not known here: the master checks that.

mod built_in;
mod file;
mod rules;
#[cfg(test)]
mod tests;

pub use file::MEANINGS;

use crate::amount::{Amount, Millionths, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::AttributeName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How a request is compared with what is offered: `request RELOP offer` (ALGORITHMS.md section
/// 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Relop {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `EXCL`: whoever asks for it has the object alone (ALGORITHMS.md section 14).
    Exclusive,
}

impl Relop {
    /// Every operator.
    pub const ALL: [Relop; 7] = [
        Relop::Equal,
        Relop::NotEqual,
        Relop::Less,
        Relop::LessEqual,
        Relop::Greater,
        Relop::GreaterEqual,
        Relop::Exclusive,
    ];

    /// As the complex file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Relop::Equal => "==",
            Relop::NotEqual => "!=",
            Relop::Less => "<",
            Relop::LessEqual => "<=",
            Relop::Greater => ">",
            Relop::GreaterEqual => ">=",
            Relop::Exclusive => "EXCL",
        }
    }

    /// Whether `request RELOP offer` holds. EXCL compares as `==` does; what it means beyond that
    /// is in ALGORITHMS.md section 14.
    pub fn holds(self, request: Amount, offer: Amount) -> bool {
        match self {
            Relop::Equal | Relop::Exclusive => request == offer,
            Relop::NotEqual => request != offer,
            Relop::Less => request < offer,
            Relop::LessEqual => request <= offer,
            Relop::Greater => request > offer,
            Relop::GreaterEqual => request >= offer,
        }
    }
}

/// Whether a job may or must ask for an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Requestable {
    /// `NO`: a request is refused.
    No,
    /// `YES`: a job may ask.
    Yes,
    /// `FORCED`: where an object lists the attribute, only jobs that ask for it run there.
    Forced,
}

impl Requestable {
    /// Every value.
    pub const ALL: [Requestable; 3] = [Requestable::No, Requestable::Yes, Requestable::Forced];

    /// As the complex file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Requestable::No => "NO",
            Requestable::Yes => "YES",
            Requestable::Forced => "FORCED",
        }
    }
}

/// Whether jobs use an attribute up, and how a parallel job is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Consumable {
    /// `NO`: nothing is booked.
    No,
    /// `YES`: the request is booked for each slot.
    Yes,
    /// `JOB`: the request is booked once, where the master task runs.
    Job,
    /// `HOST`: the request is booked once on each host of the job.
    Host,
}

impl Consumable {
    /// Every value.
    pub const ALL: [Consumable; 4] = [Consumable::No, Consumable::Yes, Consumable::Job, Consumable::Host];

    /// As the complex file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Consumable::No => "NO",
            Consumable::Yes => "YES",
            Consumable::Job => "JOB",
            Consumable::Host => "HOST",
        }
    }

    /// Whether anything is booked.
    pub fn is_consumable(self) -> bool {
        self != Consumable::No
    }
}

/// One line of the complex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The full name, unique over all names and shortcuts.
    pub name: AttributeName,
    /// The short name, unique likewise; often the name itself.
    pub shortcut: String,
    /// The type, and so the unit, of its values.
    pub r#type: Type,
    /// How requests are compared.
    pub relop: Relop,
    /// Whether jobs may or must ask for it.
    pub requestable: Requestable,
    /// Whether and how it is used up.
    pub consumable: Consumable,
    /// What a job takes of a consumable that it does not ask for, as it was written; `0`, `0:0:0`
    /// or `NONE` is nothing.
    pub default: String,
    /// What a requested unit adds to a job's urgency.
    pub urgency: Millionths,
}

impl Attribute {
    /// The default in base units; zero for the string types.
    pub fn default_amount(&self) -> Amount {
        Amount::parse(&self.default, self.r#type).unwrap_or(Amount::ZERO)
    }

    /// Whether a job alone on the object is what this attribute means.
    pub fn is_exclusive(&self) -> bool {
        self.relop == Relop::Exclusive
    }
}

/// What replacing the complex did to one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeChange {
    /// The attribute is new.
    Added(AttributeName),
    /// The attribute has another definition.
    Modified(AttributeName),
    /// The attribute is gone.
    Removed(AttributeName),
}

impl fmt::Display for AttributeChange {
    /// In the words of 8.1.9, after the `user@host ` that its message begins with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeChange::Added(name) => write!(f, "added \"{name}\" to complex entry list"),
            AttributeChange::Modified(name) => write!(f, "modified \"{name}\" in complex entry list"),
            AttributeChange::Removed(name) => write!(f, "removed \"{name}\" from complex list"),
        }
    }
}

/// All attributes of the cell.
///
/// Names and shortcuts are unique over their union, and each attribute keeps the rules of
/// `rules.rs`; [`Complex::new`] is the one place that checks this, also when a stored complex is
/// read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Attribute>", into = "Vec<Attribute>")]
pub struct Complex {
    attributes: BTreeMap<AttributeName, Arc<Attribute>>,
    names_by_shortcut: BTreeMap<String, AttributeName>,
    /// Those that count for jobs that do not ask, so that nobody looks through all for them.
    consumables: Vec<(Arc<Attribute>, Amount)>,
    forced: Vec<AttributeName>,
}

impl Complex {
    /// The complex of these attributes.
    ///
    /// # Errors
    /// With every rule that an attribute breaks, if any does.
    pub fn new(attributes: Vec<Attribute>) -> Result<Complex, Vec<Diagnostic>> {
        let mut refusals = Vec::new();
        let mut complex = Complex {
            attributes: BTreeMap::new(),
            names_by_shortcut: BTreeMap::new(),
            consumables: Vec::new(),
            forced: Vec::new(),
        };
        for attribute in attributes {
            rules::check(&attribute, &mut refusals);
            complex.insert(attribute, &mut refusals);
        }
        let booked = complex
            .attributes
            .values()
            .filter(|attribute| attribute.consumable.is_consumable());
        complex.consumables = booked
            .map(|attribute| (attribute.clone(), attribute.default_amount()))
            .collect();
        let forced = complex
            .iter()
            .filter(|attribute| attribute.requestable == Requestable::Forced);
        complex.forced = forced.map(|attribute| attribute.name.clone()).collect();
        if refusals.is_empty() {
            Ok(complex)
        } else {
            Err(refusals)
        }
    }

    /// The attributes that every cell has, with the definitions that 8.1.9 ships.
    pub fn built_in() -> Complex {
        built_in::complex()
    }

    /// The attribute of that name or, failing that, shortcut.
    pub fn lookup(&self, name: &str) -> Option<&Attribute> {
        self.shared(name).map(AsRef::as_ref)
    }

    /// The same for those who keep it: all share one.
    pub fn shared(&self, name: &str) -> Option<&Arc<Attribute>> {
        self.attributes
            .get(name)
            .or_else(|| self.attributes.get(self.names_by_shortcut.get(name)?))
    }

    /// The attribute of that name, or shortcut, as [`Complex::lookup`] finds it; sooner where the
    /// name is the full one.
    pub fn get(&self, name: &AttributeName) -> Option<&Attribute> {
        self.attributes
            .get(name)
            .map(AsRef::as_ref)
            .or_else(|| self.lookup(name.as_str()))
    }

    /// Every attribute in the order of the names, as `qconf -sc` prints them.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.values().map(AsRef::as_ref)
    }

    /// The consumables in the order of the names, each with what a job takes that does not ask for
    /// it, in base units.
    pub fn consumables(&self) -> impl Iterator<Item = (&Arc<Attribute>, Amount)> {
        self.consumables
            .iter()
            .map(|(attribute, default)| (attribute, *default))
    }

    /// The attributes for which a job has to ask (FORCED), in their order.
    pub fn forced(&self) -> impl Iterator<Item = &AttributeName> {
        self.forced.iter()
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// Refuses to remove an attribute that every complex has.
    ///
    /// # Errors
    /// The attribute is built in.
    pub fn check_removal(name: &AttributeName) -> Result<(), Diagnostic> {
        rules::check_removal(name.as_str()).map_or(Ok(()), Err)
    }

    /// What changes if `new` takes this complex's place; nothing if they are equal.
    ///
    /// # Errors
    /// If a built-in attribute would be gone or have another type. Conversions among STRING,
    /// CSTRING and RESTRING are allowed, as are all conversions of a site's own attributes. If a
    /// new or changed attribute has a default of another type.
    pub fn replace(&self, new: &Complex) -> Result<Vec<AttributeChange>, Vec<Diagnostic>> {
        let mut refusals: Vec<Diagnostic> = self.iter().filter_map(|old| rules::check_built_in(old, new)).collect();
        let is_kept =
            |attribute: &&Attribute| self.attributes.get(&attribute.name).map(AsRef::as_ref) == Some(*attribute);
        refusals.extend(
            new.iter()
                .filter(|attribute| !is_kept(attribute))
                .filter_map(rules::check_new_default),
        );
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let removed = self.iter().filter(|old| !new.attributes.contains_key(&old.name));
        let mut changes: Vec<AttributeChange> = removed.map(|old| AttributeChange::Removed(old.name.clone())).collect();
        changes.extend(
            new.iter()
                .filter_map(|attribute| match self.attributes.get(&attribute.name) {
                    None => Some(AttributeChange::Added(attribute.name.clone())),
                    Some(old) => (old.as_ref() != attribute).then(|| AttributeChange::Modified(attribute.name.clone())),
                }),
        );
        Ok(changes)
    }

    /// Adds an attribute unless its name or shortcut is taken.
    fn insert(&mut self, attribute: Attribute, refusals: &mut Vec<Diagnostic>) {
        let Attribute { name, shortcut, .. } = &attribute;
        if self.lookup(name.as_str()).is_some() || self.lookup(shortcut).is_some() {
            let what = format!("complex with name {name} or shortcut {shortcut} already exists");
            let why = "names and shortcuts are unique over both";
            refusals.push(
                Diagnostic::new(Code::AlreadyExists, what)
                    .at(format!("attribute {name}"))
                    .why(why),
            );
            return;
        }
        self.names_by_shortcut.insert(shortcut.clone(), name.clone());
        self.attributes.insert(name.clone(), Arc::new(attribute));
    }
}

/// Whether every cell has an attribute of that name, which can neither be deleted nor get another
/// type.
pub fn is_built_in(name: &str) -> bool {
    built_in::is_built_in(name)
}

impl TryFrom<Vec<Attribute>> for Complex {
    type Error = Diagnostic;

    fn try_from(attributes: Vec<Attribute>) -> Result<Complex, Diagnostic> {
        Complex::new(attributes).map_err(|mut refusals| refusals.swap_remove(0))
    }
}

impl From<Complex> for Vec<Attribute> {
    fn from(complex: Complex) -> Vec<Attribute> {
        complex.attributes.into_values().map(Arc::unwrap_or_clone).collect()
    }
}
