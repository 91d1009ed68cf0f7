//! Which rule of a set decides for a job in a place, and who shares its limits.

use crate::config::Configuration;
use crate::config::pattern::is_host;
use crate::ledger::SLOTS;
use proto::amount::Type;
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName, QueueName, QuotaName, UserName};
use proto::job::{JobSpec, Owner};
use proto::quota::{Filter, QuotaSet, Rule};
use proto::restring::Expression;
use proto::userset::UserSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The owner of a job, as quotas and access lists see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOwner {
    /// The owner.
    pub user: UserName,
    /// The owner's groups, the primary one first.
    pub groups: Vec<String>,
    /// The project, if any.
    pub project: Option<String>,
}

impl JobOwner {
    /// The owner of a job.
    pub fn of_spec(spec: &JobSpec) -> JobOwner {
        JobOwner::of_owner(&spec.owner, spec.project.clone())
    }

    /// A user with a project.
    pub fn of_owner(owner: &Owner, project: Option<String>) -> JobOwner {
        let groups = std::iter::once(&owner.group).chain(&owner.groups).cloned().collect();
        JobOwner {
            user: owner.user.clone(),
            groups,
            project,
        }
    }
}

/// The jobs that share the limits of a rule: one name for each filter with a limit per name; the
/// other filters mean all that match.
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
    fn new(
        set: &QuotaSet,
        index: usize,
        who: &JobOwner,
        pe: Option<&PeName>,
        place: Option<&QueueInstanceName>,
    ) -> Scope {
        let Rule {
            users,
            projects,
            pes,
            queues,
            hosts,
            ..
        } = &set.rules[index];
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
    /// In the form of 8.1.9's messages: `u1/////`, `//mpi//node1/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map_or("", UserName::as_str);
        let pe = self.pe.as_ref().map_or("", PeName::as_str);
        let queue = self.queue.as_ref().map_or("", QueueName::as_str);
        let host = self.host.as_ref().map_or("", HostName::as_str);
        write!(
            f,
            "{user}/{}/{pe}/{queue}/{host}/",
            self.project.as_deref().unwrap_or("")
        )
    }
}

/// The sets that limit a job, each with what is known of it before a place is chosen: that is the
/// expensive part.
#[derive(Debug, Default)]
pub struct QuotaLimits {
    sets: Vec<(Arc<QuotaSet>, DecidingRules)>,
}

/// The rules of a set that may decide for a job.
#[derive(Debug)]
enum DecidingRules {
    /// One rule decides, wherever the job runs.
    Anywhere(Arc<CountedScope>),
    /// The first rule that matches the place decides. Rules are counted from 0, each with the
    /// attributes whose use is counted.
    ByPlace(Vec<(usize, Arc<[AttributeName]>)>),
}

/// A scope, and the attributes whose use is counted.
#[derive(Debug)]
pub struct CountedScope {
    /// The scope.
    pub scope: Arc<Scope>,
    /// By name.
    pub counted: Arc<[AttributeName]>,
}

impl QuotaLimits {
    /// The limits of a user's job, of a parallel environment if it is parallel.
    pub fn of_job(config: &Configuration, who: &JobOwner, pe: Option<&PeName>) -> QuotaLimits {
        let rules = |set: &Arc<QuotaSet>| {
            let mut by_place = Vec::new();
            for (index, rule) in set
                .rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| is_for_job(config, rule, who, pe))
            {
                let counted = counted(config, rule);
                if rule.queues.is_some() || rule.hosts.is_some() {
                    by_place.push((index, counted));
                    continue;
                }
                if by_place.is_empty() {
                    let scope = Arc::new(Scope::new(set, index, who, pe, None));
                    return Some((
                        set.clone(),
                        DecidingRules::Anywhere(Arc::new(CountedScope { scope, counted })),
                    ));
                }
                // Later rules are not looked at.
                by_place.push((index, counted));
                break;
            }
            (!by_place.is_empty()).then(|| (set.clone(), DecidingRules::ByPlace(by_place)))
        };
        QuotaLimits {
            sets: config
                .quotas
                .values()
                .filter(|set| set.enabled.0)
                .filter_map(rules)
                .collect(),
        }
    }

    /// Whether no set has a rule for the job.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Each set with a rule for the job wherever it runs, with its scope.
    pub fn anywhere(&self) -> impl Iterator<Item = (&Arc<QuotaSet>, &Arc<CountedScope>)> {
        self.sets.iter().filter_map(|(set, rules)| match rules {
            DecidingRules::Anywhere(limited) => Some((set, limited)),
            DecidingRules::ByPlace(_) => None,
        })
    }

    /// Each set with a rule for the job in a queue instance, with the scope of the first that
    /// matches; ordered by the names of the sets.
    pub fn at<'a>(
        &'a self,
        config: &'a Configuration,
        who: &'a JobOwner,
        pe: Option<&'a PeName>,
        instance: &'a QueueInstanceName,
    ) -> impl Iterator<Item = (&'a Arc<QuotaSet>, Arc<CountedScope>)> {
        self.sets.iter().filter_map(move |(set, rules)| match rules {
            DecidingRules::Anywhere(limited) => Some((set, limited.clone())),
            DecidingRules::ByPlace(rules) => {
                let (index, counted) = rules
                    .iter()
                    .find(|(index, _)| is_for_place(config, &set.rules[*index], instance))?;
                let scope = Arc::new(Scope::new(set, *index, who, pe, Some(instance)));
                Some((
                    set,
                    Arc::new(CountedScope {
                        scope,
                        counted: counted.clone(),
                    }),
                ))
            }
        })
    }
}

/// The attributes whose use is counted: consumables, and slots if a job may have the scope alone.
fn counted(config: &Configuration, rule: &Rule) -> Arc<[AttributeName]> {
    let mut counted = BTreeSet::new();
    for limit in &rule.limits {
        let Some(attribute) = config.complex.lookup(limit.attribute.as_str()) else {
            continue;
        };
        if attribute.consumable.is_consumable() {
            counted.insert(attribute.name.clone());
        }
        if attribute.is_exclusive() {
            counted.insert(SLOTS.into());
        }
    }
    counted.into_iter().collect()
}

fn is_for_job(config: &Configuration, rule: &Rule, who: &JobOwner, pe: Option<&PeName>) -> bool {
    admits(rule.users.as_ref(), Some(()), |element, ()| {
        is_user(config, element, who)
    }) && admits(rule.projects.as_ref(), who.project.as_deref(), is_name)
        && admits(rule.pes.as_ref(), pe.map(PeName::as_str), is_name)
}

fn is_for_place(config: &Configuration, rule: &Rule, instance: &QueueInstanceName) -> bool {
    admits(rule.queues.as_ref(), Some(instance.queue.as_str()), is_name)
        && admits(rule.hosts.as_ref(), Some(&instance.host), |element, host| {
            is_on(config, element, host)
        })
}

/// Whether a filter matches a value, or the absence of one (ALGORITHMS.md section 15).
///
/// Excluded values never match. A list of exclusions alone matches everything else, also no value.
fn admits<T: Copy>(filter: Option<&Filter>, value: Option<T>, is: impl Fn(&Expression, T) -> bool) -> bool {
    let Some(Filter { included, excluded, .. }) = filter else {
        return true;
    };
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
pub(crate) fn is_user(config: &Configuration, element: &Expression, who: &JobOwner) -> bool {
    match element.as_str().strip_prefix('@') {
        Some(_) => is_member(config, element, who),
        None => is_name(element, who.user.as_str()),
    }
}

/// A member of an access list that the element names, by name or by one of the groups.
fn is_member(config: &Configuration, element: &Expression, who: &JobOwner) -> bool {
    let has = |set: &UserSet| set.has_user(who.user.as_str()) || who.groups.iter().any(|group| set.has_group(group));
    config
        .user_sets
        .values()
        .any(|set| has(set) && element.matches(&format!("@{}", set.name), Type::String))
}

/// A host, or a host in a group.
pub(crate) fn is_on(config: &Configuration, element: &Expression, host: &HostName) -> bool {
    if !element.as_str().starts_with('@') {
        return is_any(element) || is_host(element, host.as_str());
    }
    let groups = config.groups_of.get(host);
    groups.is_some_and(|groups| groups.iter().any(|group| element.matches(group.as_str(), Type::String)))
}
