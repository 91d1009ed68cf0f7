//! Resource quota sets: how much of which resources users, projects, parallel environments, queues
//! and hosts may use (`sge_resource_quota(5)`).
//!
//! Whether the groups, lists and attributes that a set names exist only the cell knows; what is in
//! use is the master's business.

mod edit;
mod file;
mod rule;
#[cfg(test)]
mod tests;

pub use edit::{edit, set_and_rule};
pub use file::{parse_sets, print_sets};
pub use rule::{Filter, Limit, LimitValue, Rule};

use crate::complex::Complex;
use crate::diagnostic::{Code, Diagnostic};
use crate::id::QuotaName;
use crate::object::value::{self, Flag, OptionalValue, UninterpretedText};
use crate::object::{Fields, Object, ObjectKind, names};
use serde::{Deserialize, Serialize};

/// The attributes of a resource quota set as `qconf -srqs` prints them. Each rule is an attribute
/// `limit` of its own.
pub const KEYS: &[&str] = &names::<{ MEANINGS.len() }>(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("name", "The name of the set."),
    ("description", "Words about the set, for people."),
    ("enabled", "Whether the set counts: `TRUE` or `FALSE`."),
    (
        "limit",
        "A rule: `limit [name NAME] [users LIST] [projects LIST] [pes LIST] [queues LIST] [hosts \
         LIST] to RESOURCE=VALUE,...`. A list in braces limits each of its members on its own. \
         `!` in front of a member leaves it out. The first rule of a set that applies counts; all \
         sets must agree. A value such as `$num_proc*2` is computed for each host.",
    ),
];

/// What the fields of rules begin with when a set is stored or travels: `limit.1`, `limit.2` and so
/// on, in their order.
const RULE: &str = "limit.";

/// The most rules in a set: each is looked at for each instance of a job.
pub const RULES_MAX: usize = 10_000;

/// A resource quota set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSet {
    /// The name.
    pub name: QuotaName,
    /// What people wrote about it.
    pub description: OptionalValue<UninterpretedText>,
    /// Whether it limits anything.
    pub enabled: Flag,
    /// The rules: for each job in each place the first that matches counts. At least one, at most
    /// [`RULES_MAX`].
    pub rules: Vec<Rule>,
}

impl QuotaSet {
    /// What `qconf -arqs` opens.
    pub fn template(name: QuotaName) -> Self {
        let rules = "to slots=0".parse().map(|rule| vec![rule]).unwrap_or_default();
        Self {
            name,
            description: OptionalValue::NONE,
            enabled: Flag(false),
            rules,
        }
    }

    /// Reads a set.
    ///
    /// # Errors
    ///
    /// One refusal for each field that is unknown, missing or has a value it cannot have.
    pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut refusals = Vec::new();
        let mut set = Self::template(QuotaName::from("template"));
        set.rules.clear();
        for field in fields.iter() {
            let key = field.key.as_str();
            let read = match key {
                "name" => object_name(&field.value).map(|name| set.name = name),
                "description" => {
                    let read = field.value.parse().map(|text| set.description = text);
                    read.map_err(|malformed| malformed.refusal(key, &field.value))
                }
                "enabled" => field.value.parse().map(|flag| set.enabled = flag).map_err(|malformed| {
                    let what = format!("error parsing value \"{}\"", field.value);
                    Diagnostic {
                        what,
                        ..malformed.refusal(key, &field.value)
                    }
                    .fix("write TRUE or FALSE")
                }),
                key if key.starts_with(RULE) => field.value.parse().map(|rule| set.rules.push(rule)),
                key => Err(unknown_attribute(key)),
            };
            refusals.extend(read.err().map(|refusal| refusal.at(fields.place(key))));
        }
        refusals.extend(missing(fields, set.rules.len()));
        if refusals.is_empty() { Ok(set) } else { Err(refusals) }
    }

    /// The set as text fields, one for each rule.
    pub fn to_fields(&self) -> Fields {
        let Self {
            name,
            description,
            enabled,
            rules,
        } = self;
        let mut fields: Fields = [
            ("name", name.to_string()),
            ("description", description.to_string()),
            ("enabled", enabled.to_string()),
        ]
        .into_iter()
        .collect();
        for (number, rule) in (1..).zip(rules) {
            fields.set(&format!("{RULE}{number}"), rule.to_string());
        }
        fields
    }

    /// The field in which a rule is stored; rules are counted from 0.
    pub fn rule_key(index: usize) -> String {
        format!("{RULE}{}", index + 1)
    }

    /// The rule that people call so: by its name, or by its number counted from 1.
    pub fn rule_called(&self, name: &str) -> Option<usize> {
        let named = self.rules.iter().position(|rule| rule.name.as_deref() == Some(name));
        let numbered = || {
            name.parse::<usize>()
                .ok()?
                .checked_sub(1)
                .filter(|index| *index < self.rules.len())
        };
        named.or_else(numbered)
    }

    /// What messages call a rule: `set/name`, or `set/2` if it has none. Rules are counted from 0.
    pub fn rule_name(&self, index: usize) -> String {
        match self.rules.get(index).and_then(|rule| rule.name.as_deref()) {
            Some(name) => format!("{}/{name}", self.name),
            None => format!("{}/{}", self.name, index + 1),
        }
    }

    /// What of a set cannot be under a complex: limits of attributes that are not there, or with
    /// values of another type. The place of a refusal is the rule.
    pub fn check(&self, complex: &Complex) -> Vec<Diagnostic> {
        let limits = self.rules.iter().enumerate().flat_map(|(index, rule)| {
            let refusals = rule.limits.iter().flat_map(|limit| limit.check(complex));
            refusals.map(move |refusal| refusal.at(self.rule_name(index)))
        });
        limits.collect()
    }
}

impl Object for QuotaSet {
    fn template(name: &str) -> Self {
        QuotaSet::template(QuotaName::from(if name.is_empty() { "template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        QuotaSet::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}

/// A name of a set; 8.1.9 has words of its own for two characters.
fn object_name(text: &str) -> Result<QuotaName, Diagnostic> {
    value::name(text).map_err(|malformed| {
        let refusal = malformed.refusal("name", text);
        let what = match text.chars().find(|letter| *letter == ' ' || *letter == '/') {
            Some(' ') => "Space (' ') not allowed in objectname".to_owned(),
            Some(_) => "Slash ('/') not allowed in objectname".to_owned(),
            None => refusal.what.clone(),
        };
        Diagnostic { what, ..refusal }
    })
}

fn unknown_attribute(key: &str) -> Diagnostic {
    crate::object::fields::unknown_attribute(ObjectKind::ResourceQuota, key, KEYS)
}

/// Refusals of what a set must have and has not.
fn missing(fields: &Fields, rules: usize) -> Vec<Diagnostic> {
    let mut refusals = Vec::new();
    if fields.value("name").is_none() {
        let refusal = Diagnostic::new(Code::BadSyntax, "resource quota set has no name");
        refusals.push(refusal.fix("add a line that starts with \"name\""));
    }
    if fields.value("enabled").is_none() {
        refusals.push(
            Diagnostic::new(Code::BadSyntax, "required attribute \"enabled\" is missing")
                .why("a set that does not say whether it counts would silently limit nothing")
                .fix("add a line \"enabled TRUE\" or \"enabled FALSE\""),
        );
    }
    if rules == 0 && !fields.iter().any(|field| field.key.starts_with(RULE)) {
        let refusal = Diagnostic::new(Code::BadSyntax, "resource quota set has no rules");
        refusals.push(refusal.fix("add a line that starts with \"limit\", such as \"limit users {*} to slots=10\""));
    }
    if rules > RULES_MAX {
        let refusal = Diagnostic::new(Code::Overloaded, "resource quota set has too many rules");
        refusals.push(
            refusal
                .why(format!("a set has at most {RULES_MAX} rules"))
                .fix("divide it into several sets"),
        );
    }
    refusals
}
