//! Who is in which access list and department, found by user and by group.
//!
//! Only lists that a queue, a host or a parallel environment names matter to where jobs run, so
//! only those are looked up: jobs of users whom no list in use tells apart stay in one category.

use crate::config::Configuration;
use proto::job::Owner;
use proto::userset::{DEFAULT_DEPARTMENT, UserSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Access lists in use and departments, by who is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    in_use: BTreeSet<String>,
    lists: SetIndex,
    departments: SetIndex,
}

/// Sets by their entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SetIndex {
    users: SetsByEntry,
    /// Without the `@` that an entry of a group begins with.
    groups: SetsByEntry,
}

type SetsByEntry = BTreeMap<String, BTreeSet<String>>;

impl SetIndex {
    fn from_sets<'a>(sets: impl Iterator<Item = &'a Arc<UserSet>>) -> SetIndex {
        let mut index = SetIndex::default();
        for set in sets {
            for entry in set.entries.iter() {
                let (entries, name) = match entry.strip_prefix('@') {
                    Some(group) => (&mut index.groups, group),
                    None => (&mut index.users, entry.as_str()),
                };
                entries.entry(name.to_owned()).or_default().insert(set.name.clone());
            }
        }
        index
    }

    /// The sets with a user, then those with the groups.
    fn of_user<'a, 'o>(
        &'a self,
        user: &str,
        groups: impl Iterator<Item = &'o str>,
    ) -> impl Iterator<Item = &'a String> {
        self.users
            .get(user)
            .into_iter()
            .chain(groups.filter_map(|group| self.groups.get(group)))
            .flatten()
    }
}

/// The groups of a submission: the primary one, then the others.
fn groups(owner: &Owner) -> impl Iterator<Item = &str> {
    std::iter::once(owner.group.as_str()).chain(owner.groups.iter().map(String::as_str))
}

impl Access {
    /// Everything from the objects.
    pub(crate) fn from_config(config: &Configuration) -> Access {
        Access::with(config, lists_in_use(config))
    }

    fn with(config: &Configuration, in_use: BTreeSet<String>) -> Access {
        let lists = SetIndex::from_sets(config.user_sets.values().filter(|set| in_use.contains(&set.name)));
        let departments = SetIndex::from_sets(config.user_sets.values().filter(|set| set.is_department()));
        Access {
            in_use,
            lists,
            departments,
        }
    }

    /// The same after objects changed; none if it stays as it is. `sets` says whether access lists
    /// themselves changed.
    pub(crate) fn renewed(&self, config: &Configuration, sets: bool) -> Option<Access> {
        let in_use = lists_in_use(config);
        if !sets && in_use == self.in_use {
            return None;
        }
        Some(Access::with(config, in_use)).filter(|renewed| renewed != self)
    }

    /// The access lists in use that the owner of a job is in.
    pub fn lists_of(&self, owner: &Owner) -> BTreeSet<String> {
        if self.in_use.is_empty() {
            return BTreeSet::new();
        }
        self.lists
            .of_user(owner.user.as_str(), groups(owner))
            .cloned()
            .collect()
    }

    /// The access lists in use that a user is in, by name alone.
    pub fn lists_of_user(&self, user: &str) -> BTreeSet<String> {
        self.lists.of_user(user, std::iter::empty()).cloned().collect()
    }

    /// The department of the owner of a job: the first by name that has the user, else the first
    /// that has one of the groups, else the default.
    pub fn department_of(&self, owner: &Owner) -> &str {
        let mut known = self.departments.of_user(owner.user.as_str(), groups(owner));
        known.next().map_or(DEFAULT_DEPARTMENT, |name| name.as_str())
    }
}

/// The access lists that queues, hosts and parallel environments name.
fn lists_in_use(config: &Configuration) -> BTreeSet<String> {
    let hosts = config
        .exec_hosts
        .values()
        .flat_map(|host| [&host.user_lists, &host.xuser_lists]);
    let pes = config.pes.values().flat_map(|pe| [&pe.user_lists, &pe.xuser_lists]);
    let queues = config
        .queues
        .values()
        .flat_map(|queue| queue.user_lists.values().chain(queue.xuser_lists.values()));
    hosts
        .chain(pes)
        .chain(queues)
        .flat_map(|list| list.iter())
        .cloned()
        .collect()
}

impl Configuration {
    /// Whether the owner of a job is in an access list, by name or by one of the groups.
    pub fn is_in_list(&self, owner: &Owner, list: &str) -> bool {
        let Some(set) = self.user_sets.get(list) else {
            return false;
        };
        set.has_user(owner.user.as_str()) || groups(owner).any(|group| set.has_group(group))
    }

    /// Whether lists admit the owner of a job: none of the second has the owner, and one of the
    /// first, if there are any.
    pub fn admits(&self, owner: &Owner, admitted: &[String], excluded: &[String]) -> bool {
        let is_in = |list: &String| self.is_in_list(owner, list);
        !excluded.iter().any(is_in) && (admitted.is_empty() || admitted.iter().any(is_in))
    }
}
