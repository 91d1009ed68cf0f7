//! What resource quotas allow, told apart from the code under test: every task that is placed is
//! added up over all that run.
//!
//! Only the forms of rules that the administrators of the simulator write are understood here.

use super::books::{Books, Task};
use master_core::config::Configuration;
use master_core::ledger::Level;
use proto::amount::Amount;
use proto::hostgroup::HostOrGroup;
use proto::id::{AttributeName, PeName, QueueInstanceName, TaskKey};
use proto::quota::{Filter, LimitValue, QuotaSet};
use std::collections::BTreeMap;

/// A rule, and the single names that have its limit for themselves.
type Share = (usize, Vec<String>);

/// What tasks take of what sets limit, by the name of a set.
type QuotaSums = BTreeMap<String, BTreeMap<(Share, AttributeName), i64>>;

/// What the placed tasks take of each limit, from event to event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Quotas(QuotaSums);

impl Quotas {
    /// The sums over all placed tasks.
    pub(super) fn added_up(config: &Configuration, books: &Books) -> Quotas {
        let mut quotas = Quotas::default();
        books.tasks().for_each(|task| quotas.place(config, task));
        quotas
    }

    pub(super) fn place(&mut self, config: &Configuration, task: &Task) {
        self.change(config, task, 1);
    }

    pub(super) fn end(&mut self, config: &Configuration, task: &Task) {
        self.change(config, task, -1);
    }

    fn change(&mut self, config: &Configuration, task: &Task, times: i64) {
        for set in enabled(config) {
            let mut takes = BTreeMap::new();
            add(
                &mut takes,
                set,
                config,
                task.user.as_str(),
                task.pe.as_ref(),
                &task.takes,
            );
            let sums = self.0.entry(set.name.to_string()).or_default();
            for (place, amount) in takes {
                let sum = sums.entry(place.clone()).or_default();
                *sum += times * amount;
                if *sum == 0 {
                    sums.remove(&place);
                }
            }
        }
        self.0.retain(|_, sums| !sums.is_empty());
    }

    /// The sums are those over all placed tasks.
    pub(super) fn audit(&self, config: &Configuration, books: &Books) {
        assert_eq!(
            *self,
            Quotas::added_up(config, books),
            "the sums of this simulator itself"
        );
    }

    /// No limit of a set is passed by a task that is placed.
    pub(super) fn judge(
        &self,
        key: TaskKey,
        user: &str,
        pe: Option<&PeName>,
        takes: &BTreeMap<(Level, AttributeName), i64>,
        config: &Configuration,
    ) {
        for set in enabled(config) {
            let mut wanted = BTreeMap::new();
            add(&mut wanted, set, config, user, pe, takes);
            let used = self.0.get(set.name.as_str());
            for ((share, attribute), amount) in wanted {
                let taken = amount
                    + used
                        .and_then(|used| used.get(&(share.clone(), attribute.clone())))
                        .unwrap_or(&0);
                for limit in set.rules[share.0]
                    .limits
                    .iter()
                    .filter(|limit| limit.attribute == attribute)
                {
                    let LimitValue::Fixed(text) = &limit.value else {
                        continue;
                    };
                    let kind = config
                        .complex
                        .lookup(attribute.as_str())
                        .expect("a limited attribute is there")
                        .r#type;
                    let limit = Amount::parse(text, kind)
                        .expect("a limit reads")
                        .finite()
                        .unwrap_or(i64::MAX);
                    assert!(
                        taken <= limit,
                        "{key} makes {taken} of {limit} {attribute} for {share:?} of {}",
                        set.name
                    );
                }
            }
        }
    }
}

fn enabled(config: &Configuration) -> impl Iterator<Item = &QuotaSet> {
    config.quotas.values().map(AsRef::as_ref).filter(|set| set.enabled.0)
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
        let Some(share) = share(set, config, user, pe, instance) else {
            continue;
        };
        if set.rules[share.0]
            .limits
            .iter()
            .any(|limit| limit.attribute == *attribute)
        {
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
