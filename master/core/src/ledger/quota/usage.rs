//! What placed tasks have in use of each quota.

use crate::config::Configuration;
use crate::ledger::quota::{JobOwner, QuotaLimits, Scope};
use crate::ledger::{Booking, Total};
use proto::amount::Amount;
use proto::id::{AttributeName, PeName, QuotaName, TaskKey, UserName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counters of use.
///
/// Invariant: `used` is the sum over `tasks`; nothing of zero is kept. All of it follows from what
/// is booked and the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaUsage {
    tasks: BTreeMap<TaskKey, ScopeAmounts>,
    used: BTreeMap<Arc<Scope>, BTreeMap<AttributeName, Total>>,
    cache: LimitCache,
}

/// By scope and attribute.
type ScopeAmounts = Vec<(Arc<Scope>, AttributeName, Total)>;

/// The most different jobs whose limits are kept.
const KNOWN_MAX: usize = 4_096;

/// What limits jobs of which tasks were counted, by their users, so that it is not found anew for
/// each task: it changes with the objects, and then all is counted anew. It says nothing that the
/// rest does not, so it is neither compared nor copied.
#[derive(Debug, Default)]
struct LimitCache {
    of_user: BTreeMap<UserName, Vec<CachedLimits>>,
    count: usize,
}

#[derive(Debug)]
struct CachedLimits {
    who: Arc<JobOwner>,
    pe: Option<PeName>,
    limits: Arc<QuotaLimits>,
}

impl LimitCache {
    fn get(&self, who: &JobOwner, pe: Option<&PeName>) -> Option<&Arc<QuotaLimits>> {
        let jobs = self.of_user.get(&who.user)?;
        jobs.iter()
            .find(|job| job.pe.as_ref() == pe && *job.who == *who)
            .map(|job| &job.limits)
    }

    fn keep(&mut self, who: &Arc<JobOwner>, pe: Option<&PeName>, limits: Arc<QuotaLimits>) {
        if self.count == KNOWN_MAX {
            *self = Self::default();
        }
        let job = CachedLimits {
            who: who.clone(),
            pe: pe.cloned(),
            limits,
        };
        self.of_user.entry(who.user.clone()).or_default().push(job);
        self.count += 1;
    }
}

impl Clone for LimitCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for LimitCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl QuotaUsage {
    /// How much of an attribute is in use.
    pub fn used(&self, scope: &Scope, attribute: &str) -> Amount {
        let total = self.used.get(scope).and_then(|attributes| attributes.get(attribute));
        total.map_or(Amount::ZERO, |total| total.amount())
    }

    /// Those who use something of a rule of a set, in order; rules are counted from 0.
    pub fn scopes<'a>(&'a self, set: &'a QuotaName, rule: usize) -> impl Iterator<Item = &'a Scope> {
        let first = Scope {
            set: set.clone(),
            rule,
            user: None,
            project: None,
            pe: None,
            queue: None,
            host: None,
        };
        let later = self.used.range::<Scope, _>(first..).map(|(scope, _)| &**scope);
        later.take_while(move |scope| scope.set == *set && scope.rule == rule)
    }

    /// What a task counts for.
    pub(crate) fn of_task(&self, key: TaskKey) -> impl Iterator<Item = (&Scope, &AttributeName, Total)> {
        let amounts = self.tasks.get(&key).into_iter().flatten();
        amounts.map(|(scope, attribute, amount)| (&**scope, attribute, *amount))
    }

    /// The tasks that use an attribute of a scope, each with its amount.
    pub fn holders<'a>(
        &'a self,
        scope: &'a Scope,
        attribute: &'a AttributeName,
    ) -> impl Iterator<Item = (TaskKey, Amount)> + 'a {
        let amount_of = move |amounts: &ScopeAmounts| {
            let is_meant = |of: &Arc<Scope>, name: &AttributeName| **of == *scope && name == attribute;
            amounts
                .iter()
                .find(|(of, name, _)| is_meant(of, name))
                .map(|(_, _, total)| total.amount())
        };
        self.tasks
            .iter()
            .filter_map(move |(key, amounts)| Some((*key, amount_of(amounts)?)))
    }

    /// What limits a job, as it was found when one of its tasks was counted, or else is found now.
    pub fn limits(&self, config: &Configuration, who: &JobOwner, pe: Option<&PeName>) -> Arc<QuotaLimits> {
        let known = self.cache.get(who, pe);
        known
            .cloned()
            .unwrap_or_else(|| Arc::new(QuotaLimits::of_job(config, who, pe)))
    }

    /// Counts a task; what was counted for it is replaced.
    pub(crate) fn count(&mut self, config: &Configuration, key: TaskKey, booking: &Booking) {
        self.forget(key);
        let Some(who) = booking.who().filter(|_| config.enabled_quotas().next().is_some()) else {
            return;
        };
        let limits = self.limits(config, who, booking.pe());
        if self.cache.get(who, booking.pe()).is_none() {
            self.cache.keep(who, booking.pe(), limits.clone());
        }
        let amounts = amounts(config, &limits, who, booking);
        for (scope, attribute, amount) in &amounts {
            let attributes = match self.used.get_mut(scope) {
                Some(attributes) => attributes,
                None => self.used.entry(scope.clone()).or_default(),
            };
            attributes.entry(attribute.clone()).or_default().add_all(*amount);
        }
        if !amounts.is_empty() {
            self.tasks.insert(key, amounts);
        }
    }

    /// Stops counting a task.
    pub(crate) fn forget(&mut self, key: TaskKey) {
        let Some(amounts) = self.tasks.remove(&key) else { return };
        for (scope, attribute, amount) in amounts {
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
fn amounts(config: &Configuration, limits: &QuotaLimits, who: &JobOwner, booking: &Booking) -> ScopeAmounts {
    let mut amounts = ScopeAmounts::new();
    for (instance, taken) in &booking.in_instances() {
        for (_, limited) in limits.at(config, who, booking.pe(), instance) {
            for attribute in limited.counted.iter() {
                if let Some((_, amount)) = taken.iter().find(|(name, _)| name == attribute) {
                    let mut total = Total::default();
                    total.add(*amount);
                    amounts.push((limited.scope.clone(), attribute.clone(), total));
                }
            }
        }
    }
    // Those of one instance are in order, of the sets and in a set of the attributes.
    if booking.granted().len() > 1 {
        amounts.sort_by(|(scope, attribute, _), other| (scope, attribute).cmp(&(&other.0, &other.1)));
        amounts.dedup_by(|(scope, attribute, amount), kept| {
            let is_same = *scope == kept.0 && *attribute == kept.1;
            if is_same {
                kept.2.add_all(*amount);
            }
            is_same
        });
    }
    amounts
}
