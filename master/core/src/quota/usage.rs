//! What placed tasks have in use of each quota.

use super::Scope;
use crate::ledger::{Booking, SLOTS, Total};
use crate::state::config::Configuration;
use proto::amount::Amount;
use proto::id::{AttributeName, QuotaName, TaskKey};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of use.
///
/// Invariant: `used` is the sum over `tasks`; nothing of zero is kept. All of it follows from what is booked and the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    tasks: BTreeMap<TaskKey, Amounts>,
    used: BTreeMap<Scope, BTreeMap<AttributeName, Total>>,
}

type Amounts = BTreeMap<(Scope, AttributeName), Total>;

impl Usage {
    /// How much of an attribute is in use.
    pub fn used(&self, scope: &Scope, attribute: &str) -> Amount {
        let total = self.used.get(scope).and_then(|attributes| attributes.get(attribute));
        total.map_or(Amount::ZERO, |total| total.amount())
    }

    /// Those who use something of a rule of a set, in order; rules are counted from 0.
    pub fn scopes<'a>(&'a self, set: &'a QuotaName, rule: usize) -> impl Iterator<Item = &'a Scope> {
        let first = Scope { set: set.clone(), rule, user: None, project: None, pe: None, queue: None, host: None };
        let later = self.used.range(first..).map(|(scope, _)| scope);
        later.take_while(move |scope| scope.set == *set && scope.rule == rule)
    }

    /// What a task counts for.
    pub(crate) fn of_task(&self, key: TaskKey) -> impl Iterator<Item = (&Scope, &AttributeName, Total)> {
        let amounts = self.tasks.get(&key).into_iter().flatten();
        amounts.map(|((scope, attribute), amount)| (scope, attribute, *amount))
    }

    /// Counts a task; what was counted for it is replaced.
    pub(crate) fn count(&mut self, config: &Configuration, key: TaskKey, booking: &Booking) {
        self.forget(key);
        if config.enabled_quotas().next().is_none() {
            return;
        }
        let amounts = amounts(config, booking);
        for ((scope, attribute), amount) in &amounts {
            let attributes = self.used.entry(scope.clone()).or_default();
            attributes.entry(attribute.clone()).or_default().add_all(*amount);
        }
        if !amounts.is_empty() {
            self.tasks.insert(key, amounts);
        }
    }

    /// Stops counting a task.
    pub(crate) fn forget(&mut self, key: TaskKey) {
        let Some(amounts) = self.tasks.remove(&key) else { return };
        for ((scope, attribute), amount) in amounts {
            let attributes = self.used.get_mut(&scope).expect("what is counted has a counter");
            let total = attributes.get_mut(&attribute).expect("what is counted has a counter");
            total.subtract_all(amount);
            if total.is_zero() {
                attributes.remove(&attribute);
                if attributes.is_empty() {
                    self.used.remove(&scope);
                }
            }
        }
    }
}

/// What a task takes of each quota.
fn amounts(config: &Configuration, booking: &Booking) -> Amounts {
    let mut amounts = Amounts::new();
    let Some(who) = booking.who() else { return amounts };
    let instances = booking.in_instances();
    for set in config.enabled_quotas() {
        for (instance, taken) in &instances {
            let Some(scope) = Scope::of(config, set, who, booking.pe(), instance) else { continue };
            for attribute in counted(config, &set.rules[scope.rule].limits) {
                if let Some((_, amount)) = taken.iter().find(|(name, _)| *name == attribute) {
                    amounts.entry((scope.clone(), attribute)).or_default().add(*amount);
                }
            }
        }
    }
    amounts
}

/// The attributes of which use is counted: consumables, and slots where somebody may have the scope alone.
fn counted(config: &Configuration, limits: &[proto::quota::Limit]) -> BTreeSet<AttributeName> {
    let mut counted = BTreeSet::new();
    for limit in limits {
        let Some(attribute) = config.complex.lookup(limit.attribute.as_str()) else { continue };
        if attribute.consumable.is_consumable() {
            counted.insert(attribute.name.clone());
        }
        if attribute.is_exclusive() {
            counted.insert(SLOTS.into());
        }
    }
    counted
}
