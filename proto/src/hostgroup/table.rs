//! All host groups of a cell: resolution to hosts, with cycles refused.

use super::{HostGroup, HostOrGroup};
use crate::diagnostic::{Code, Diagnostic};
use crate::id::{HostGroupName, HostName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The host groups of a cell by name.
///
/// No group contains itself, directly or through others: [`HostGroupTable::check`] refuses what
/// would bring that about, and resolution visits each group once even so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostGroupTable {
    groups: BTreeMap<HostGroupName, Arc<HostGroup>>,
}

impl HostGroupTable {
    /// The group of that name.
    pub fn group(&self, name: &HostGroupName) -> Option<&HostGroup> {
        self.groups.get(name).map(AsRef::as_ref)
    }

    /// The groups in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &HostGroup> {
        self.groups.values().map(AsRef::as_ref)
    }

    /// Adds a group, or replaces the one of its name.
    pub fn insert(&mut self, group: impl Into<Arc<HostGroup>>) {
        let group = group.into();
        self.groups.insert(group.name.clone(), group);
    }

    /// Takes a group out.
    pub fn remove(&mut self, name: &HostGroupName) -> Option<Arc<HostGroup>> {
        self.groups.remove(name)
    }

    /// Whether a group could be added or replace the one of its name.
    ///
    /// # Errors
    ///
    /// It names a group that does not exist, or would contain itself; the chain of groups is in the
    /// refusal.
    pub fn check(&self, group: &HostGroup) -> Result<(), Diagnostic> {
        for name in subgroups(group) {
            if *name != group.name && !self.groups.contains_key(name) {
                return Err(Diagnostic::new(
                    Code::UnknownObject,
                    format!("denied: host group \"{name}\" does not exist"),
                )
                .at("hostlist")
                .fix(format!("add {name} first, or remove it from the hostlist")));
            }
            if let Some(chain) = self.chain(name, &group.name, &mut BTreeSet::new()) {
                let chain: Vec<&str> = std::iter::once(&group.name)
                    .chain(chain)
                    .map(HostGroupName::as_str)
                    .collect();
                return Err(Diagnostic::new(
                    Code::Immutable,
                    format!(
                        "Hostgroup \"{name}\" in specification of \"{}\" would create a cycle",
                        group.name
                    ),
                )
                .at("hostlist")
                .why(chain.join(" contains "))
                .fix(format!("remove {name} from the hostlist")));
            }
        }
        Ok(())
    }

    /// The hosts of a group and of the groups in it, in the order of their names. Unknown groups
    /// have none.
    pub fn hosts_of(&self, name: &HostGroupName) -> BTreeSet<HostName> {
        let mut hosts = BTreeSet::new();
        self.collect(name, &mut BTreeSet::new(), &mut hosts);
        hosts
    }

    /// The hosts of a list of hosts and groups: the instances of a cluster queue.
    pub fn resolve<'a>(&self, list: impl IntoIterator<Item = &'a HostOrGroup>) -> BTreeSet<HostName> {
        let mut hosts = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for member in list {
            self.collect_member(member, &mut seen, &mut hosts);
        }
        hosts
    }

    /// The groups that contain a host, directly or through other groups.
    pub fn groups_of(&self, host: &HostName) -> BTreeSet<HostGroupName> {
        let mut found = BTreeSet::new();
        let mut wanted = vec![HostOrGroup::Host(host.clone())];
        while let Some(member) = wanted.pop() {
            for group in self.groups.values().filter(|group| group.members.contains(&member)) {
                if found.insert(group.name.clone()) {
                    wanted.push(HostOrGroup::Group(group.name.clone()));
                }
            }
        }
        found
    }

    /// For each host in any group the groups that contain it, as [`HostGroupTable::groups_of`]
    /// says, in one walk.
    pub fn groups_by_host(&self) -> BTreeMap<HostName, BTreeSet<HostGroupName>> {
        let mut groups: BTreeMap<HostName, BTreeSet<HostGroupName>> = BTreeMap::new();
        for name in self.groups.keys() {
            for host in self.hosts_of(name) {
                groups.entry(host).or_default().insert(name.clone());
            }
        }
        groups
    }

    /// The groups in whose member lists a group stands: while there are any, it is not deleted.
    pub fn parents_of(&self, name: &HostGroupName) -> Vec<&HostGroupName> {
        let holds = |group: &&Arc<HostGroup>| subgroups(group).any(|member| member == name);
        self.groups.values().filter(holds).map(|group| &group.name).collect()
    }

    /// The lines of `qconf -shgrp_tree`: members below their group, three blanks deeper.
    pub fn tree(&self, name: &HostGroupName) -> Vec<String> {
        let mut lines = Vec::new();
        self.tree_below(name, 0, &mut lines);
        lines
    }

    /// Depth is bounded by the number of groups, so that a table with a cycle in it still prints.
    fn tree_below(&self, name: &HostGroupName, depth: usize, lines: &mut Vec<String>) {
        lines.push(format!("{:1$}{name}", "", 3 * depth));
        let members = self
            .groups
            .get(name)
            .filter(|_| depth <= self.groups.len())
            .map(|group| &group.members);
        for member in members.into_iter().flat_map(|members| members.iter()) {
            match member {
                HostOrGroup::Host(host) => lines.push(format!("{:1$}{host}", "", 3 * (depth + 1))),
                HostOrGroup::Group(group) => self.tree_below(group, depth + 1, lines),
            }
        }
    }

    fn collect(&self, name: &HostGroupName, seen: &mut BTreeSet<HostGroupName>, hosts: &mut BTreeSet<HostName>) {
        if !seen.insert(name.clone()) {
            return;
        }
        let members = self.groups.get(name).map(|group| &group.members);
        for member in members.into_iter().flat_map(|members| members.iter()) {
            self.collect_member(member, seen, hosts);
        }
    }

    fn collect_member(&self, member: &HostOrGroup, seen: &mut BTreeSet<HostGroupName>, hosts: &mut BTreeSet<HostName>) {
        match member {
            HostOrGroup::Host(host) => {
                hosts.insert(host.clone());
            }
            HostOrGroup::Group(group) => self.collect(group, seen, hosts),
        }
    }

    /// The groups from `from` to `to`, both included, each containing the next; `None` if there is
    /// no such chain.
    fn chain<'a>(
        &'a self,
        from: &'a HostGroupName,
        to: &HostGroupName,
        seen: &mut BTreeSet<&'a HostGroupName>,
    ) -> Option<Vec<&'a HostGroupName>> {
        if from == to {
            return Some(vec![from]);
        }
        if !seen.insert(from) {
            return None;
        }
        let next = subgroups(self.groups.get(from)?).find_map(|next| self.chain(next, to, seen))?;
        Some(std::iter::once(from).chain(next).collect())
    }
}

fn subgroups(group: &HostGroup) -> impl Iterator<Item = &HostGroupName> {
    group.members.iter().filter_map(|member| match member {
        HostOrGroup::Host(_) => None,
        HostOrGroup::Group(name) => Some(name),
    })
}
