//! Whom a sensor's value is for: the host field of its lines (sensors/README.md "The protocol").

use proto::id::HostName;
use std::collections::BTreeSet;

/// The host that a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostSpec {
    /// The host on which the sensor runs.
    This,
    /// The cluster as a whole.
    Global,
    /// Another host; whether a sensor may speak for it is the master's policy.
    Other(HostName),
}

impl HostSpec {
    /// The host's name where this host is called `this`.
    pub fn resolve(&self, this: &HostName) -> HostName {
        match self {
            HostSpec::This => this.clone(),
            HostSpec::Global => HostName::global(),
            HostSpec::Other(host) => host.clone(),
        }
    }
}

/// Every name by which this host is known.
///
/// Invariant: the names are in lower case, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfNames {
    names: BTreeSet<String>,
    domains: Domains,
}

/// Whether `node1.a.org` and `node1.b.org` are one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domains {
    /// They are two.
    Compare,
    /// They are one: the cell has `ignore_fqdn`.
    Ignore,
}

impl SelfNames {
    /// The names of the host with the canonical name `host` and further names such as its FQDN,
    /// `host_aliases` entries and addresses. `localhost` is always among them.
    ///
    /// Where no name has a domain, domains are ignored: then `hostname -f` of this very host cannot
    /// be told from a stranger's.
    pub fn new<'a>(host: &'a HostName, aliases: impl IntoIterator<Item = &'a str>, domains: Domains) -> Self {
        let local = ["localhost", "127.0.0.1", "127.0.1.1", "::1"];
        let own: Vec<&str> = std::iter::once(host.as_str()).chain(aliases).collect();
        let knows_a_domain = own
            .iter()
            .any(|name| name.contains('.') && name.parse::<std::net::IpAddr>().is_err());
        let domains = if knows_a_domain { domains } else { Domains::Ignore };
        let names = own
            .into_iter()
            .chain(local)
            .map(normal)
            .filter(|name| !name.is_empty())
            .collect();
        Self { names, domains }
    }

    fn has(&self, field: &str) -> bool {
        let may_compare_short = !field.contains('.') || self.domains == Domains::Ignore;
        self.names.contains(field) || (may_compare_short && self.names.iter().any(|name| short(name) == short(field)))
    }
}

/// Whom the host field of a sensor's line means. Case, blanks around it and a dot at its end do not
/// matter; an empty field means this host.
///
/// ```
/// use gridwright_sensors::host::{Domains, HostSpec, SelfNames, host_matches};
/// let names = SelfNames::new(&"node1.example.org".into(), [], Domains::Compare);
/// assert_eq!(host_matches("NODE1", &names), HostSpec::This);
/// assert_eq!(host_matches("global", &names), HostSpec::Global);
/// assert_eq!(host_matches("node2", &names), HostSpec::Other("node2".into()));
/// ```
pub fn host_matches(field: &str, self_names: &SelfNames) -> HostSpec {
    let field = normal(field);
    match field.as_str() {
        "" => HostSpec::This,
        "global" => HostSpec::Global,
        name if self_names.has(name) => HostSpec::This,
        name => HostSpec::Other(HostName::new(name)),
    }
}

fn normal(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

fn short(name: &str) -> &str {
    if name.parse::<std::net::IpAddr>().is_ok() {
        return name;
    }
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &SelfNames, field: &str, expected: HostSpec) {
        assert_eq!(host_matches(field, names), expected, "{field:?}");
    }

    #[test]
    fn short_name_fqdn_alias_and_any_case_mean_this_host() {
        let names = SelfNames::new(&"node1.example.org".into(), ["login-a", "10.0.0.7"], Domains::Compare);
        let own = [
            "node1",
            "NODE1",
            "node1.example.org",
            "Node1.Example.Org.",
            " node1 ",
            "LOGIN-A",
            "localhost",
            "10.0.0.7",
            "",
        ];
        for field in own {
            check(&names, field, HostSpec::This);
        }
        check(&names, "Global", HostSpec::Global);
        for (field, other) in [
            ("node2", "node2"),
            ("node1.elsewhere.net", "node1.elsewhere.net"),
            ("10.0.0.8", "10.0.0.8"),
        ] {
            check(&names, field, HostSpec::Other(other.into()));
        }
    }

    #[test]
    fn a_host_that_knows_no_domain_takes_its_short_name_from_any() {
        let names = SelfNames::new(&"vm".into(), [], Domains::Compare);
        check(&names, "VM", HostSpec::This);
        check(&names, "vm.example.org", HostSpec::This);
        check(&names, "vm2.example.org", HostSpec::Other("vm2.example.org".into()));
    }

    #[test]
    fn with_ignore_fqdn_domains_do_not_matter() {
        let names = SelfNames::new(&"node1.a.org".into(), [], Domains::Ignore);
        check(&names, "node1.b.org", HostSpec::This);
    }
}
