//! One rule: whom and where it is about, and what it limits.

use crate::amount::Amount;
use crate::complex::{Attribute, Complex};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::AttributeName;
use crate::object::value::{check_name, is_none};
use crate::policy::LoadFormula;
use crate::restring::Expression;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rule of a resource quota set. A filter that is missing matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Users, and access lists with `@`.
    pub users: Option<Filter>,
    /// Projects.
    pub projects: Option<Filter>,
    /// Parallel environments.
    pub pes: Option<Filter>,
    /// Cluster queues.
    pub queues: Option<Filter>,
    /// Hosts, and host groups with `@`.
    pub hosts: Option<Filter>,
    /// What is limited; nothing for a rule that only keeps later rules from matching.
    pub limits: Vec<Limit>,
}

/// A list of names in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Whether each name has the limit for itself (`{…}`), not all of them together.
    pub expanded: bool,
    /// Names and patterns that match; empty if only some are excluded.
    pub included: Vec<Expression>,
    /// Names and patterns that do not match, whatever else does: those with `!`.
    pub excluded: Vec<Expression>,
}

/// How much there may be of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The attribute, by its name or its shortcut.
    pub attribute: AttributeName,
    /// How much.
    pub value: LimitValue,
}

/// The value of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitValue {
    /// A value of the attribute's type, as it was written.
    Fixed(String),
    /// A formula of values of the host in question, such as `$num_proc*2`.
    Dynamic(LoadFormula),
}

impl Rule {
    /// The filters that are there, with their names, in the order in which they are printed.
    pub fn filters(&self) -> impl Iterator<Item = (&'static str, &Filter)> {
        let all = [
            ("users", &self.users),
            ("projects", &self.projects),
            ("pes", &self.pes),
            ("queues", &self.queues),
            ("hosts", &self.hosts),
        ];
        all.into_iter()
            .filter_map(|(name, filter)| Some((name, filter.as_ref()?)))
    }

    fn filter_mut(&mut self, name: &str) -> Option<&mut Option<Filter>> {
        Some(match name {
            "users" => &mut self.users,
            "projects" => &mut self.projects,
            "pes" => &mut self.pes,
            "queues" => &mut self.queues,
            "hosts" => &mut self.hosts,
            _ => return None,
        })
    }

    /// Whether the rule may have limits that depend on the host.
    pub fn is_per_host(&self) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.expanded)
    }

    /// Refuses limits that depend on the host in a rule that is not for each host.
    pub(super) fn check_dynamic(&self) -> Result<(), Diagnostic> {
        let dynamic = self
            .limits
            .iter()
            .find(|limit| matches!(limit.value, LimitValue::Dynamic(_)));
        match dynamic.filter(|_| !self.is_per_host()) {
            None => Ok(()),
            Some(limit) => Err(Diagnostic::new(
                Code::BadSyntax,
                "dynamic limits are only supported for per host rules",
            )
            .why(format!(
                "\"{limit}\" depends on a host, and the rule does not say that each host has the limit"
            ))
            .fix("add hosts {*}, or a number as limit")),
        }
    }
}

impl FromStr for Rule {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let words = words(text)?;
        let mut words = words.iter().map(String::as_str);
        let mut rule = Rule::default();
        let mut has_limits = false;
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or_else(|| incomplete(word, text));
            match word {
                "name" if rule.name.is_some() => return Err(twice(word)),
                "name" => rule.name = Some(rule_name(next()?)?),
                "to" if has_limits => return Err(twice(word)),
                "to" => {
                    rule.limits = limits(next()?)?;
                    has_limits = true;
                }
                _ => match rule.filter_mut(word) {
                    Some(Some(_)) => return Err(twice(word)),
                    Some(filter) => *filter = Some(next()?.parse()?),
                    None => return Err(unknown(word.split('=').next().unwrap_or(word))),
                },
            }
        }
        if !has_limits {
            return Err(incomplete("to", text));
        }
        rule.check_dynamic()?;
        Ok(rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "name {name} ")?;
        }
        for (name, filter) in self.filters() {
            write!(f, "{name} {filter} ")?;
        }
        let limits: Vec<String> = self.limits.iter().map(ToString::to_string).collect();
        write!(
            f,
            "to {}",
            if limits.is_empty() {
                "NONE".to_owned()
            } else {
                limits.join(",")
            }
        )
    }
}

impl TryFrom<String> for Rule {
    type Error = Diagnostic;

    fn try_from(text: String) -> Result<Self, Diagnostic> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> String {
        rule.to_string()
    }
}

impl FromStr for Filter {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let (expanded, list) = match text.strip_prefix('{') {
            None => (false, text),
            Some(rest) => (true, rest.strip_suffix('}').ok_or_else(|| no_list(text))?),
        };
        let mut filter = Filter {
            expanded,
            included: Vec::new(),
            excluded: Vec::new(),
        };
        for element in list.split(',') {
            let (names, name) = match element.strip_prefix('!') {
                Some(name) => (&mut filter.excluded, name),
                None => (&mut filter.included, element),
            };
            if name.is_empty() || name == "@" || name.contains(['{', '}']) || is_none(name) {
                return Err(bad_element(text, element));
            }
            let name = Expression::parse(name).map_err(|error| bad_element(text, element).why(error.to_string()))?;
            names.push(name);
        }
        Ok(filter)
    }
}

impl Filter {
    /// The names as they are written, those that are excluded last, with `!`.
    pub fn elements(&self) -> impl Iterator<Item = String> {
        let excluded = self.excluded.iter().map(|name| format!("!{name}"));
        self.included.iter().map(ToString::to_string).chain(excluded)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.elements().collect::<Vec<_>>().join(",");
        if self.expanded {
            write!(f, "{{{list}}}")
        } else {
            f.write_str(&list)
        }
    }
}

impl FromStr for Limit {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let bad = |fix: &str| {
            Diagnostic::new(Code::BadSyntax, format!("\"{text}\" is no limit"))
                .why("a limit is an attribute, \"=\" and a value")
                .fix(fix)
        };
        let (attribute, value) = text.split_once('=').ok_or_else(|| bad("write it like slots=10"))?;
        if check_name(attribute).is_err() || value.is_empty() || value.contains(['{', '}', '!']) {
            return Err(bad("write it like slots=10"));
        }
        let value = if value.contains('$') {
            let formula = value
                .parse()
                .map_err(|_| bad("write a formula like $num_proc*2+1, without blanks"))?;
            LimitValue::Dynamic(formula)
        } else {
            LimitValue::Fixed(value.to_owned())
        };
        Ok(Limit {
            attribute: AttributeName::from(attribute),
            value,
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.attribute, self.value)
    }
}

impl fmt::Display for LimitValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitValue::Fixed(value) => f.write_str(value),
            LimitValue::Dynamic(formula) => formula.fmt(f),
        }
    }
}

impl Limit {
    /// What of the limit cannot be under a complex.
    pub(super) fn check(&self, complex: &Complex) -> Vec<Diagnostic> {
        let Some(attribute) = complex.lookup(self.attribute.as_str()) else {
            return vec![no_attribute("resource_quota", self.attribute.as_str())];
        };
        match &self.value {
            LimitValue::Fixed(value) => self.check_fixed(attribute, value).into_iter().collect(),
            LimitValue::Dynamic(_) if !attribute.r#type.is_numeric() => {
                let refusal = Diagnostic::new(Code::BadValue, format!("\"{self}\" is no limit"));
                vec![refusal.why(format!(
                    "{} has texts as values, and a formula gives numbers",
                    attribute.name
                ))]
            }
            LimitValue::Dynamic(formula) => {
                let unknown = formula
                    .attributes()
                    .filter(|name| complex.lookup(name.as_str()).is_none());
                unknown
                    .map(|name| no_attribute("dynamical_limit", name.as_str()))
                    .collect()
            }
        }
    }

    fn check_fixed(&self, attribute: &Attribute, value: &str) -> Option<Diagnostic> {
        if !attribute.r#type.is_numeric() {
            return None;
        }
        match Amount::parse(value, attribute.r#type) {
            Err(error) => {
                let what = format!(
                    "attribute \"{}\" is not a {} value",
                    self.attribute,
                    attribute.r#type.value_word()
                );
                Some(Diagnostic {
                    what,
                    ..error.diagnostic(self.attribute.as_str(), value)
                })
            }
            Ok(amount) if amount.is_negative() => Some(
                Diagnostic::new(Code::BadValue, format!("\"{self}\" is no limit"))
                    .why("nobody can use less than nothing")
                    .fix("write 0 or more"),
            ),
            Ok(_) => None,
        }
    }
}

fn no_attribute(place: &str, name: &str) -> Diagnostic {
    let what = format!("\"{place}\" references not existing complex attribute \"{name}\"");
    Diagnostic::new(Code::UnknownResource, what)
}

/// The limits after `to`.
fn limits(text: &str) -> Result<Vec<Limit>, Diagnostic> {
    if is_none(text) {
        Ok(Vec::new())
    } else {
        text.split(',').map(str::parse).collect()
    }
}

/// A rule's name stands behind a slash where a rule is named.
fn rule_name(text: &str) -> Result<String, Diagnostic> {
    check_name(text)
        .map(|()| text.to_owned())
        .map_err(|malformed| malformed.refusal("name", text))
}

/// The words of a rule. Blanks between braces and around commas do not separate.
fn words(text: &str) -> Result<Vec<String>, Diagnostic> {
    let mut words: Vec<String> = Vec::new();
    let mut in_braces = false;
    let mut is_new = true;
    for letter in text.chars() {
        if letter.is_ascii_whitespace() {
            is_new |= !in_braces;
            continue;
        }
        let goes_on = letter == ',' || words.last().is_some_and(|word| word.ends_with(','));
        match words.last_mut().filter(|_| !is_new || goes_on) {
            Some(word) => word.push(letter),
            None => words.push(letter.to_string()),
        }
        is_new = false;
        match letter {
            '{' => in_braces = true,
            '}' => in_braces = false,
            _ => {}
        }
    }
    if in_braces { Err(no_list(text)) } else { Ok(words) }
}

fn no_list(text: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, "no valid expanded list")
        .why(format!("a \"{{\" in \"{text}\" has no \"}}\" at the end of its list"))
        .fix("write lists like {u1,u2}")
}

fn bad_element(list: &str, element: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, format!("\"{list}\" is no list of names"))
        .why(format!("\"{element}\" is no name, pattern or list with \"@\""))
        .fix("write names between commas, such as u1,@staff,!u2")
}

fn twice(word: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, format!("attribute \"{word}\" appears more than once")).fix("write one list of it")
}

fn unknown(word: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, format!("unknown attribute name \"{word}\""))
        .why("a rule is made of name, users, projects, pes, queues, hosts, each with a list, and to with limits")
        .fix("write it like: limit users {u1,u2} hosts @group to slots=10")
}

fn incomplete(word: &str, text: &str) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, format!("\"{word}\" is not followed by its value"))
        .why(format!("\"limit {text}\" is no whole rule"))
        .fix("write it like: limit users {u1,u2} hosts @group to slots=10; a rule without limits ends with \"to NONE\"")
}
