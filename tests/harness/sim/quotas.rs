//! What resource quotas allow, told apart from the code under test: every task that is placed is added up over all that run.
//!
//! Only the forms of rules that the administrators of the simulator write are understood here.

use super::books::Books;
use master_core::ledger::Level;
use master_core::state::State;
use master_core::state::config::Configuration;
use proto::amount::Amount;
use proto::hostgroup::HostOrGroup;
use proto::id::{AttributeName, PeName, QueueInstanceName, TaskKey};
use proto::job::{Granted, JobSpec};
use proto::quota::{Filter, LimitValue, QuotaSet};
use std::collections::BTreeMap;

/// A rule, and the single names that have its limit for themselves.
type Share = (usize, Vec<String>);

/// No limit of a set is passed by a task that is placed.
pub(super) fn judge(
    books: &Books,
    key: TaskKey,
    spec: &JobSpec,
    granted: &[Granted],
    pe: Option<&PeName>,
    before: &State,
) {
    let config = &before.config;
    let takes = Books::would_take(config, spec, granted, pe);
    for set in config.quotas.values().filter(|set| set.enabled.0) {
        let mut wanted = BTreeMap::new();
        add(&mut wanted, set, config, spec.owner.user.as_str(), pe, &takes);
        if wanted.is_empty() {
            continue;
        }
        let mut used = BTreeMap::new();
        for (other, takes) in books.tasks() {
            let job = &before.jobs[&other.seq];
            let placement = job.tasks[&other.task].place.placement().expect("what is booked is placed");
            add(&mut used, set, config, job.spec.owner.user.as_str(), placement.pe.as_ref(), takes);
        }
        for ((share, attribute), amount) in wanted {
            let taken = amount + used.get(&(share.clone(), attribute.clone())).copied().unwrap_or(0);
            for limit in set.rules[share.0].limits.iter().filter(|limit| limit.attribute == attribute) {
                let LimitValue::Fixed(text) = &limit.value else { continue };
                let kind = config.complex.lookup(attribute.as_str()).expect("a limited attribute is there").r#type;
                let limit = Amount::parse(text, kind).expect("a limit reads").finite().unwrap_or(i64::MAX);
                assert!(taken <= limit, "{key} makes {taken} of {limit} {attribute} for {share:?} of {}", set.name);
            }
        }
    }
}

/// Adds what a task takes to what it takes of a set.
fn add(
    sums: &mut BTreeMap<(Share, AttributeName), i64>,
    set: &QuotaSet,
    config: &Configuration,
    user: &str,
    pe: Option<&PeName>,
    takes: &BTreeMap<(Level, AttributeName), i64>,
) {
    for ((level, attribute), amount) in takes {
        let Level::Instance(instance) = level else { continue };
        let Some(share) = share(set, config, user, pe, instance) else { continue };
        if set.rules[share.0].limits.iter().any(|limit| limit.attribute == *attribute) {
            *sums.entry((share, attribute.clone())).or_insert(0) += amount;
        }
    }
}

/// The first rule about a task in an instance.
fn share(
    set: &QuotaSet,
    config: &Configuration,
    user: &str,
    pe: Option<&PeName>,
    instance: &QueueInstanceName,
) -> Option<Share> {
    set.rules.iter().enumerate().find_map(|(index, rule)| {
        let mut names = Vec::new();
        let mut is_in = |filter: &Option<Filter>, value: Option<&str>, is: &dyn Fn(&str, &str) -> bool| {
            let Some(filter) = filter else { return true };
            if let Some(value) = value.filter(|_| filter.expanded) {
                names.push(value.to_owned());
            }
            let has = |list: &[proto::restring::Expression]| {
                value.is_some_and(|value| list.iter().any(|element| is(element.as_str(), value)))
            };
            !has(&filter.excluded) && (filter.included.is_empty() || has(&filter.included))
        };
        let is_name = |element: &str, value: &str| element == "*" || element == value;
        let is_host = |element: &str, value: &str| {
            let group = config.host_groups.get(element);
            let has = |member: &HostOrGroup| matches!(member, HostOrGroup::Host(host) if host.as_str() == value);
            is_name(element, value) || group.is_some_and(|group| group.members.iter().any(has))
        };
        let matches = is_in(&rule.users, Some(user), &is_name)
            && is_in(&rule.pes, pe.map(PeName::as_str), &is_name)
            && is_in(&rule.queues, Some(instance.queue.as_str()), &is_name)
            && is_in(&rule.hosts, Some(instance.host.as_str()), &is_host);
        matches.then_some((index, names))
    })
}
