//! What people call a host: short name, full name, any case, an alias; all lead to one name.
//!
//! This is the one place that decides it. Whatever comes from outside – a command, a question, a
//! load report, a host that joins – is brought to the cell's own names here before anything looks
//! at it. Reading files and asking a name service are deliberately absent: texts are given, and a
//! host is known by the name in its certificate.

use crate::complex::Complex;
use crate::diagnostic::{Code, Diagnostic};
use crate::id::HostName;
use crate::request::ResourceRequest;
use std::collections::{BTreeMap, BTreeSet};

/// Names and addresses by which every machine knows itself.
const LOCAL: [&str; 4] = ["localhost", "127.0.0.1", "127.0.1.1", "::1"];

/// Characters with which a word is a pattern, or no word of a host at all.
const NOT_IN_NAMES: [char; 7] = ['*', '?', '[', ']', '@', '"', '\''];

/// What separates the words of an expression (`sge_types(5)`).
const OPERATORS: [char; 6] = ['!', '&', '|', '(', ')', ' '];

/// How a cell names its hosts: the files `host_aliases` and `bootstrap` of `default/common`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The name in the cell by each other name.
    aliases: BTreeMap<HostName, HostName>,
    domains: Domains,
}

/// What the part behind the first dot means (`bootstrap(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
enum Domains {
    /// `ignore_fqdn true`: nothing.
    Ignored,
    /// `ignore_fqdn false`: hosts of two domains are two. A name without a domain is in the default
    /// one, or where there is none in any.
    Compared { default: Option<String> },
}

/// No aliases, and domains do not count, as in a cell that nobody has changed.
impl Default for Naming {
    fn default() -> Self {
        Self {
            aliases: BTreeMap::new(),
            domains: Domains::Ignored,
        }
    }
}

impl Naming {
    /// Reads the alias file: one host a line, its name in the cell first, then its other names
    /// (`host_aliases(5)`). Lines that begin with `#` are comments. A name that two lines give is
    /// the first one's.
    pub fn with_aliases(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let mut names = line.split_whitespace().map(normal);
            let Some(host) = names.next() else { continue };
            for alias in names {
                self.aliases.entry(alias).or_insert_with(|| host.clone());
            }
        }
        self
    }

    /// Reads `ignore_fqdn` (default `true`) and `default_domain` (default `none`) of the bootstrap
    /// file; other lines are for scripts.
    ///
    /// # Errors
    /// A value that is no truth, or no domain, with its line.
    pub fn with_bootstrap(mut self, text: &str) -> Result<Self, Diagnostic> {
        let (mut ignored, mut default) = (true, None);
        for (line, number) in text.lines().zip(1..) {
            let mut words = line.split_whitespace();
            let (key, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let bad = |fix: &str| {
                let what = format!("{key} of the bootstrap file cannot be \"{value}\"");
                Diagnostic::new(Code::BadValue, what)
                    .at(format!("line {number}"))
                    .fix(fix)
            };
            match key {
                "ignore_fqdn" => ignored = truth(value).ok_or_else(|| bad("write true or false"))?,
                "default_domain" => default = domain(value).ok_or_else(|| bad("write a domain, or none"))?,
                _ => {}
            }
        }
        self.domains = if ignored {
            Domains::Ignored
        } else {
            Domains::Compared { default }
        };
        Ok(self)
    }

    /// Whether two names that are no aliases are one host's.
    fn is_same(&self, one: &str, other: &str) -> bool {
        match &self.domains {
            Domains::Ignored => short(one).eq_ignore_ascii_case(short(other)),
            Domains::Compared { default: None } => is_same(one, other),
            Domains::Compared { default: Some(domain) } => full(one, domain) == full(other, domain),
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// `none` is no domain.
fn domain(text: &str) -> Option<Option<String>> {
    let text = text.trim_matches('.').to_ascii_lowercase();
    let is_domain = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    is_domain.then(|| (text != "none").then_some(text))
}

/// A sorted collection of hosts that a cell has.
pub trait KnownHosts {
    /// Those with this part before the first dot.
    fn of_short(&self, short: &str) -> Vec<&HostName>;
}

/// The names of which `short` is the part before the dot are neighbours: `.` is followed by `/`.
fn dotted(short: &str) -> (HostName, HostName) {
    (HostName::new(&format!("{short}.")), HostName::new(&format!("{short}/")))
}

impl KnownHosts for BTreeSet<HostName> {
    fn of_short(&self, short: &str) -> Vec<&HostName> {
        let (from, to) = dotted(short);
        self.get(short).into_iter().chain(self.range(from..to)).collect()
    }
}

impl<V> KnownHosts for BTreeMap<HostName, V> {
    fn of_short(&self, short: &str) -> Vec<&HostName> {
        let (from, to) = dotted(short);
        let exact = self.get_key_value(short).map(|(host, _)| host);
        exact
            .into_iter()
            .chain(self.range(from..to).map(|(host, _)| host))
            .collect()
    }
}

/// The hosts of a cell by every name that people may call them.
#[derive(Clone)]
pub struct HostNames<'a> {
    known: Vec<&'a dyn KnownHosts>,
    naming: &'a Naming,
    here: &'a HostName,
}

impl<'a> HostNames<'a> {
    /// The names of `known` hosts; `here` is what `localhost` means: the host on which the name was
    /// written.
    pub fn new(known: Vec<&'a dyn KnownHosts>, naming: &'a Naming, here: &'a HostName) -> Self {
        Self { known, naming, here }
    }

    /// The one name of a host: that of a known host if the text names one, else the text in lower
    /// case.
    ///
    /// An exact name comes first, then an alias; then, as the cell's rules of domains say, a name
    /// that differs in the domain alone, unless several known hosts could be meant.
    ///
    /// ```
    /// use gridwright_proto::host::names::{HostNames, Naming};
    /// use gridwright_proto::id::HostName;
    /// use std::collections::BTreeSet;
    /// let known: BTreeSet<HostName> = ["node1".into(), "node2.example.org".into()].into();
    /// let (naming, here) = (Naming::default().with_aliases("node1 login-a"), "node1".into());
    /// let names = HostNames::new(vec![&known], &naming, &here);
    /// for text in ["NODE1", "node1.example.org", "login-a", "localhost"] {
    ///     assert_eq!(names.canonical(text).as_str(), "node1");
    /// }
    /// assert_eq!(names.canonical("node2").as_str(), "node2.example.org");
    /// assert_eq!(names.canonical("Node3").as_str(), "node3");
    /// ```
    pub fn canonical(&self, text: &str) -> HostName {
        let name = normal(text);
        if self.is_known(&name) {
            return name;
        }
        if LOCAL.contains(&name.as_str()) {
            return self.here.clone();
        }
        let name = self.naming.aliases.get(&name).cloned().unwrap_or(name);
        if self.is_known(&name) {
            return name;
        }
        let called = self
            .of_short(name.short())
            .filter(|host| self.naming.is_same(host.as_str(), name.as_str()));
        let called: BTreeSet<&HostName> = called.collect();
        match (called.first(), called.len()) {
            (Some(host), 1) => (*host).clone(),
            (Some(_) | None, _) => name,
        }
    }

    fn of_short<'s>(&'s self, short: &'s str) -> impl Iterator<Item = &'a HostName> + 's {
        self.known.iter().flat_map(move |known| known.of_short(short))
    }

    fn is_known(&self, name: &HostName) -> bool {
        self.of_short(name.short()).any(|host| host == name)
    }

    /// The same expression, such as `login-a|node2`, with the cell's names of the hosts in it.
    /// Patterns, and names that lead nowhere, stay as they are. A name alone is written as the cell
    /// writes it; within an expression only another name is replaced.
    pub fn in_expression(&self, text: &str) -> String {
        let name = self.word(text);
        if !text.contains(OPERATORS) && name.eq_ignore_ascii_case(text) && !name.contains(NOT_IN_NAMES) {
            let host = normal(text);
            return if self.is_known(&host) { host.to_string() } else { name };
        }
        let word = |part: &str| {
            let name = part.trim_end_matches(OPERATORS);
            self.word(name) + &part[name.len()..]
        };
        text.split_inclusive(OPERATORS).map(word).collect()
    }

    fn word(&self, word: &str) -> String {
        if word.is_empty() || word.contains(NOT_IN_NAMES) {
            return word.to_owned();
        }
        let name = self.canonical(word);
        if name.as_str().eq_ignore_ascii_case(word) {
            word.to_owned()
        } else {
            name.to_string()
        }
    }

    /// The same `queue@host` with the cell's name of the host; other patterns of queues stay as
    /// they are.
    pub fn in_queue(&self, text: &str) -> String {
        match text.split_once('@') {
            Some((queue, hosts)) if !hosts.starts_with('@') => format!("{queue}@{}", self.in_expression(hosts)),
            Some(_) | None => text.to_owned(),
        }
    }

    /// Brings requests for attributes of type HOST, such as `-l h=login-a`, to the cell's names.
    pub fn in_requests(&self, requests: &mut [ResourceRequest], complex: &Complex) {
        let is_host = |name: &str| {
            complex
                .lookup(name)
                .is_some_and(|attribute| attribute.r#type == crate::amount::Type::Host)
        };
        for request in requests.iter_mut().filter(|request| is_host(&request.name)) {
            request.value = request.value.take().map(|value| self.in_expression(&value));
        }
    }
}

/// Whether two names are one host's as far as the names alone tell: in any case, and where one of
/// the two has no domain, by the part before the first dot.
pub fn is_same(one: &str, other: &str) -> bool {
    let has_domain = |name: &str| short(name).len() < name.len();
    match (has_domain(one), has_domain(other)) {
        (true, true) | (false, false) => one.eq_ignore_ascii_case(other),
        (true, false) | (false, true) => short(one).eq_ignore_ascii_case(short(other)),
    }
}

/// The part of a name before its first dot; the whole of an address.
pub(crate) fn short(name: &str) -> &str {
    let is_address = name
        .rsplit('.')
        .next()
        .is_some_and(|last| !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()));
    if is_address {
        name
    } else {
        name.split('.').next().unwrap_or(name)
    }
}

/// A name in lower case with its domain.
fn full(name: &str, domain: &str) -> String {
    let name = name.to_ascii_lowercase();
    if name.contains('.') {
        name
    } else {
        format!("{name}.{domain}")
    }
}

/// Lower case, without the dot at the end that says a name is complete.
fn normal(text: &str) -> HostName {
    HostName::new(text.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
