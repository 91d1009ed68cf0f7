//! What people call a host: short name, full name, any case, an alias; all lead to one name (CATALOGUE HST-06, NET-07).
//!
//! Reading the alias file and asking a name service are deliberately absent: the text of the file is given, and a host is known by
//! the name in its certificate.

use crate::id::HostName;
use std::collections::{BTreeMap, BTreeSet};

/// Names and addresses by which every machine knows itself.
const LOCAL: [&str; 4] = ["localhost", "127.0.0.1", "127.0.1.1", "::1"];

/// Other names of hosts, as `default/common/host_aliases` has them (`host_aliases(5)`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAliases(BTreeMap<HostName, HostName>);

impl HostAliases {
    /// Reads the file: one host a line, its name in the cell first, then its other names. Lines that begin with `#` are comments.
    /// A name that two lines give is the first one's.
    pub fn parse(text: &str) -> Self {
        let mut aliases = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let mut names = line.split_whitespace().map(normal);
            let Some(host) = names.next() else { continue };
            names.for_each(|alias| {
                aliases.entry(alias).or_insert_with(|| host.clone());
            });
        }
        Self(aliases)
    }
}

/// The hosts of a cell by every name that people may call them.
///
/// The known ones are kept by the part before the first dot.
#[derive(Clone, Debug)]
pub struct HostNames<'a> {
    known: BTreeMap<&'a str, BTreeSet<&'a HostName>>,
    aliases: &'a HostAliases,
    here: &'a HostName,
}

impl<'a> HostNames<'a> {
    /// The names of `known` hosts; `here` is what `localhost` means: the host on which the name was written.
    pub fn new(known: impl IntoIterator<Item = &'a HostName>, aliases: &'a HostAliases, here: &'a HostName) -> Self {
        let mut by_short: BTreeMap<&str, BTreeSet<&HostName>> = BTreeMap::new();
        known.into_iter().for_each(|host| {
            by_short.entry(host.short()).or_default().insert(host);
        });
        Self { known: by_short, aliases, here }
    }

    /// The one name of a host: that of a known host if the text names one, else the text in lower case.
    ///
    /// An exact name comes first, then an alias; then a short name finds the full one and the other way round, unless several
    /// hosts of different domains share the short name.
    ///
    /// ```
    /// use gridwright_proto::host::names::{HostAliases, HostNames};
    /// let (known, aliases) = (["node1".into(), "node2.example.org".into()], HostAliases::parse("node1 login-a"));
    /// let names = HostNames::new(&known, &aliases, &known[0]);
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
        let name = self.aliases.0.get(&name).cloned().unwrap_or(name);
        if self.is_known(&name) {
            return name;
        }
        let of_short = self.known.get(name.short()).into_iter().flatten();
        let mut called = of_short.filter(|host| host.is_called(name.as_str()));
        match (called.next(), called.next()) {
            (Some(host), None) => (*host).clone(),
            (Some(_), Some(_)) | (None, _) => name,
        }
    }

    fn is_known(&self, name: &HostName) -> bool {
        self.known.get(name.short()).is_some_and(|hosts| hosts.contains(name))
    }
}

/// Whether two names are one host's as far as the names alone tell: in any case, and where one of the two has no domain, by the
/// part before the first dot.
pub fn is_same(one: &str, other: &str) -> bool {
    match (one.split_once('.'), other.split_once('.')) {
        (Some(_), Some(_)) | (None, None) => one.eq_ignore_ascii_case(other),
        (Some((short, _)), None) => short.eq_ignore_ascii_case(other),
        (None, Some((short, _))) => one.eq_ignore_ascii_case(short),
    }
}

/// Lower case, without the dot at the end that says a name is complete.
fn normal(text: &str) -> HostName {
    HostName::new(text.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: &[&str], text: &str, expected: &str) {
        let known: Vec<HostName> = known.iter().map(|host| HostName::new(host)).collect();
        let aliases = HostAliases::parse("# canonical first\nn1 n1-ib\tN1-ETH\n\nother  n1-ib gone\n");
        let here = HostName::new("login");
        assert_eq!(HostNames::new(&known, &aliases, &here).canonical(text).as_str(), expected, "{text} of {known:?}");
    }

    #[test]
    fn every_name_of_a_host_leads_to_it() {
        for text in ["n1", "N1", "n1.", " n1 ", "n1.example.org", "N1.Example.ORG.", "n1-ib", "n1-eth"] {
            check(&["n1", "n2"], text, "n1");
        }
        check(&["n1.a.org", "n2"], "n1", "n1.a.org");
        check(&["n1.a.org", "n2"], "n1-ib", "n1.a.org");
        check(&["n1"], "127.0.1.1", "login");
        check(&["global", "n1"], "GLOBAL", "global");
    }

    #[test]
    fn what_names_several_hosts_or_none_stays_as_it_is() {
        check(&["n1.a.org", "n1.b.org"], "n1", "n1");
        check(&["n1.a.org", "n1.b.org"], "n1.b.org", "n1.b.org");
        check(&["n1.a.org"], "n1.b.org", "n1.b.org");
        check(&["n1"], "N7", "n7");
        check(&["n1"], "gone", "other");
        check(&["10.0.0.1"], "10.0.0.2", "10.0.0.2");
    }
}
