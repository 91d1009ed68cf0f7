//! Which rule of a set is about a job in a place, and who shares its limits.

use crate::matching::is_host;
use crate::state::config::Configuration;
use proto::amount::Type;
use proto::id::{HostName, PeName, QueueInstanceName, QueueName, QuotaName, UserName};
use proto::job::{JobSpec, Owner};
use proto::quota::{Filter, QuotaSet, Rule};
use proto::restring::Expression;
use proto::userset::UserSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose a job is, as far as quotas and access lists ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The owner.
    pub user: UserName,
    /// The owner's groups, the primary one first.
    pub groups: Vec<String>,
    /// The project, if any.
    pub project: Option<String>,
}

impl Who {
    /// Whose a job is.
    pub fn of(spec: &JobSpec) -> Who {
        Who::of_owner(&spec.owner, spec.project.clone())
    }

    /// A user with a project.
    pub fn of_owner(owner: &Owner, project: Option<String>) -> Who {
        let groups = std::iter::once(&owner.group).chain(&owner.groups).cloned().collect();
        Who { user: owner.user.clone(), groups, project }
    }
}

/// Those who share the limits of a rule: one name for each filter that has its limit for each name, else all that match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The set.
    pub set: QuotaName,
    /// Which of its rules, counted from 0.
    pub rule: usize,
    /// The user.
    pub user: Option<UserName>,
    /// The project.
    pub project: Option<String>,
    /// The parallel environment.
    pub pe: Option<PeName>,
    /// The cluster queue.
    pub queue: Option<QueueName>,
    /// The host.
    pub host: Option<HostName>,
}

impl Scope {
    /// The rule of a set that is about a job in a queue instance: the first that matches.
    pub fn of(
        config: &Configuration,
        set: &QuotaSet,
        who: &Who,
        pe: Option<&PeName>,
        instance: &QueueInstanceName,
    ) -> Option<Scope> {
        let matches = |rule: &Rule| is_for_job(config, rule, who, pe) && is_for_place(config, rule, instance);
        let index = set.rules.iter().position(matches)?;
        Some(Scope::new(set, index, who, pe, Some(instance)))
    }

    /// The rule of a set that is about a job wherever it runs; none if that depends on the place, or if no rule is about it.
    pub fn anywhere(config: &Configuration, set: &QuotaSet, who: &Who, pe: Option<&PeName>) -> Option<Scope> {
        let index = set.rules.iter().position(|rule| is_for_job(config, rule, who, pe))?;
        let rule = &set.rules[index];
        (rule.queues.is_none() && rule.hosts.is_none()).then(|| Scope::new(set, index, who, pe, None))
    }

    fn new(set: &QuotaSet, index: usize, who: &Who, pe: Option<&PeName>, place: Option<&QueueInstanceName>) -> Scope {
        let Rule { users, projects, pes, queues, hosts, .. } = &set.rules[index];
        let each = |filter: &Option<Filter>| filter.as_ref().is_some_and(|filter| filter.expanded);
        Scope {
            set: set.name.clone(),
            rule: index,
            user: each(users).then(|| who.user.clone()),
            project: who.project.clone().filter(|_| each(projects)),
            pe: pe.cloned().filter(|_| each(pes)),
            queue: place.map(|place| place.queue.clone()).filter(|_| each(queues)),
            host: place.map(|place| place.host.clone()).filter(|_| each(hosts)),
        }
    }
}

impl fmt::Display for Scope {
    /// As messages of 8.1.9 have it: `u1/////`, `//mpi//node1/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map_or("", UserName::as_str);
        let pe = self.pe.as_ref().map_or("", PeName::as_str);
        let queue = self.queue.as_ref().map_or("", QueueName::as_str);
        let host = self.host.as_ref().map_or("", HostName::as_str);
        write!(f, "{user}/{}/{pe}/{queue}/{host}/", self.project.as_deref().unwrap_or(""))
    }
}

fn is_for_job(config: &Configuration, rule: &Rule, who: &Who, pe: Option<&PeName>) -> bool {
    admits(rule.users.as_ref(), Some(()), |element, ()| is_user(config, element, who))
        && admits(rule.projects.as_ref(), who.project.as_deref(), is_name)
        && admits(rule.pes.as_ref(), pe.map(PeName::as_str), is_name)
}

fn is_for_place(config: &Configuration, rule: &Rule, instance: &QueueInstanceName) -> bool {
    admits(rule.queues.as_ref(), Some(instance.queue.as_str()), is_name)
        && admits(rule.hosts.as_ref(), Some(&instance.host), |element, host| is_on(config, element, host))
}

/// Whether a filter matches a value, or that there is none (SEMANTICS section 15).
///
/// What is excluded never matches; a list that only excludes matches everything else, what has no value too.
fn admits<T: Copy>(filter: Option<&Filter>, value: Option<T>, is: impl Fn(&Expression, T) -> bool) -> bool {
    let Some(Filter { included, excluded, .. }) = filter else { return true };
    match value {
        None => included.is_empty(),
        Some(value) => {
            !excluded.iter().any(|element| is(element, value))
                && (included.is_empty() || included.iter().any(|element| is(element, value)))
        }
    }
}

fn is_name(element: &Expression, name: &str) -> bool {
    is_any(element) || element.matches(name, Type::String)
}

fn is_any(element: &Expression) -> bool {
    element.as_str() == "*"
}

/// A user, or a member of an access list.
pub(super) fn is_user(config: &Configuration, element: &Expression, who: &Who) -> bool {
    match element.as_str().strip_prefix('@') {
        Some(_) => is_member(config, element, who),
        None => is_name(element, who.user.as_str()),
    }
}

/// A member of an access list that the element names, by name or by one of the groups.
fn is_member(config: &Configuration, element: &Expression, who: &Who) -> bool {
    let has = |set: &UserSet| set.has_user(who.user.as_str()) || who.groups.iter().any(|group| set.has_group(group));
    config.user_sets.values().any(|set| has(set) && element.matches(&format!("@{}", set.name), Type::String))
}

/// A host, or a host in a group.
pub(super) fn is_on(config: &Configuration, element: &Expression, host: &HostName) -> bool {
    if !element.as_str().starts_with('@') {
        return is_any(element) || is_host(element, host.as_str());
    }
    let groups = config.groups_of.get(host);
    groups.is_some_and(|groups| groups.iter().any(|group| element.matches(group.as_str(), Type::String)))
}
