//! What placed tasks take from the consumables of the cluster, hosts and queue instances (SEMANTICS section 4.1).
//!
//! Every consumable is booked at every level, whether a capacity is set there or not, so that a capacity that is added later is
//! compared with what is really in use. Capacities are deliberately not known here, and neither are load values: the ledger
//! only tells what was booked since a value was sampled.

mod booking;
mod ids;
#[cfg(test)]
mod tests;

pub use booking::{Booking, Entry, Grant, PeUse};

use crate::quota::{Scope, Usage, Who};
use crate::state::config::Configuration;
use ids::IdsInUse;
use proto::amount::Amount;
use proto::complex::Complex;
use proto::id::{AttributeName, CellId, HostName, PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::JobSpec;
use proto::time::Tick;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The implicit consumable of which each slot of a task takes one.
pub const SLOTS: &str = "slots";

/// An object that offers resources, from the widest level to the narrowest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The cluster as a whole.
    Global,
    /// An execution host.
    Host(HostName),
    /// A queue instance.
    Instance(QueueInstanceName),
}

impl Level {
    /// The level of an execution host object: `global` is the cluster.
    pub fn of_host(host: &HostName) -> Level {
        if *host == HostName::global() { Level::Global } else { Level::Host(host.clone()) }
    }
}

impl Level {
    /// The host; none of the cluster.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Level::Global => None,
            Level::Host(host) => Some(host),
            Level::Instance(instance) => Some(&instance.host),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Global => f.write_str("global"),
            Level::Host(host) => host.fmt(f),
            Level::Instance(instance) => instance.fmt(f),
        }
    }
}

/// What placed tasks take, by level and attribute.
///
/// Invariant, checked by [`Ledger::check`]: `levels`, `pe_slots` and `ids` are exactly the sums over the entries of `tasks`; no
/// total is below zero and none of zero is kept. `quotas` counts what is booked as the resource quota sets say. Only `tasks` is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<TaskKey, Booking>", into = "BTreeMap<TaskKey, Booking>")]
pub struct Ledger {
    tasks: BTreeMap<TaskKey, Booking>,
    levels: BTreeMap<Level, AtLevel>,
    pe_slots: BTreeMap<PeName, u32>,
    ids: IdsInUse,
    quotas: Usage,
}

/// What is booked at one level that tasks use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtLevel {
    totals: BTreeMap<AttributeName, Total>,
    /// The tasks, by when they were placed.
    recent: BTreeSet<(Tick, TaskKey)>,
}

impl AtLevel {
    /// How much of an attribute is taken; INFINITY if a task took without bound.
    pub fn booked(&self, attribute: &str) -> Amount {
        self.totals.get(attribute).map_or(Amount::ZERO, |total| total.amount())
    }

    fn subtract(&mut self, entry: &Entry) {
        let total = self.totals.get_mut(&entry.attribute).expect("what was booked is in the totals");
        total.subtract(entry.amount);
        if total.is_zero() {
            self.totals.remove(&entry.attribute);
        }
    }
}

impl Ledger {
    /// The least key: where a search by time begins.
    pub const FIRST_KEY: TaskKey =
        TaskKey { cell: CellId(0), seq: SubmitSeq(0), task: TaskId(0), pe_task: 0, attempt: 0 };

    /// Books what a task takes from now on: its hard requests and the defaults of consumables that it does not ask for.
    ///
    /// `tick` is when it was placed. What was booked under the key is replaced.
    pub fn book(&mut self, config: &Configuration, spec: &JobSpec, key: TaskKey, grant: Grant<'_>, tick: Tick) {
        self.release(key);
        let booking = Booking::new(config, &spec.requests.hard, grant, tick).of(Who::of(spec));
        self.quotas.count(config, key, &booking);
        self.add(key, booking);
    }

    /// Books something that no quota counts. What was booked under the key is replaced.
    pub fn hold(&mut self, key: TaskKey, booking: Booking) {
        self.release(key);
        self.add(key, booking);
    }

    /// Books all that another ledger books, as [`Ledger::book`] does.
    pub fn adopt(&mut self, config: &Configuration, other: Ledger) {
        for (key, booking) in other.tasks {
            self.quotas.count(config, key, &booking);
            self.add(key, booking);
        }
    }

    /// Gives back what a task took; false if nothing was booked for it.
    pub fn release(&mut self, key: TaskKey) -> bool {
        let Some(booking) = self.tasks.remove(&key) else { return false };
        self.quotas.forget(key);
        for (level, entries) in booking.by_level() {
            let there = self.levels.get_mut(&level).expect("every booked task is known at its levels");
            entries.for_each(|entry| there.subtract(entry));
            there.recent.remove(&(booking.at(), key));
            if there.recent.is_empty() {
                self.levels.remove(&level);
            }
        }
        booking.maps().iter().for_each(|map| self.ids.take_back(map));
        if let Some(pe) = booking.pe() {
            let slots = self.pe_slots.get_mut(pe).expect("every booked parallel task is counted");
            *slots -= booking.slots_at(&Level::Global);
            if *slots == 0 {
                self.pe_slots.remove(pe);
            }
        }
        true
    }

    /// Books every task anew after the complex changed: what is consumable, how it is charged, or a default may be different.
    ///
    /// A task keeps the requests with which it was placed, whatever became of its job's since. What quotas count is forgotten until
    /// [`Ledger::recount`].
    pub fn rebook(&mut self, complex: &Complex) {
        let tasks = std::mem::take(&mut self.tasks);
        let rebooked = tasks.into_iter().map(|(key, booking)| (key, booking.rebooked(complex)));
        *self = Ledger::from(rebooked.collect::<BTreeMap<_, _>>());
    }

    /// Counts for the quotas anew, after they or what they name have changed.
    pub fn recount(&mut self, config: &Configuration) {
        self.quotas = Usage::default();
        for (key, booking) in &self.tasks {
            self.quotas.count(config, *key, booking);
        }
    }

    /// Counts tasks anew for the quotas.
    pub fn recount_tasks(&mut self, config: &Configuration, keys: impl Iterator<Item = TaskKey>) {
        for key in keys {
            if let Some(booking) = self.tasks.get(&key) {
                self.quotas.count(config, key, booking);
            }
        }
    }

    /// Notes whose a task is of which that was not kept when it was placed.
    pub fn own(&mut self, key: TaskKey, spec: &JobSpec) {
        if let Some(booking) = self.tasks.get_mut(&key).filter(|booking| booking.who().is_none()) {
            *booking = booking.clone().of(Who::of(spec));
        }
    }

    /// How much of an attribute is in use of a quota.
    pub fn quota_used(&self, scope: &Scope, attribute: &str) -> Amount {
        self.quotas.used(scope, attribute)
    }

    /// What is in use of the quotas.
    pub fn quotas(&self) -> &Usage {
        &self.quotas
    }

    /// How much of an attribute is taken at a level; INFINITY if a task took without bound.
    pub fn booked(&self, level: &Level, attribute: &str) -> Amount {
        self.level(level).map_or(Amount::ZERO, |there| there.booked(attribute))
    }

    /// What is booked at a level, if tasks use it.
    pub fn level(&self, level: &Level) -> Option<&AtLevel> {
        self.levels.get(level)
    }

    /// Slots that are taken at a level.
    pub fn slots(&self, level: &Level) -> u32 {
        let slots = self.booked(level, SLOTS).finite().and_then(|slots| u32::try_from(slots).ok());
        slots.unwrap_or(u32::MAX)
    }

    /// Slots that tasks of a parallel environment take together.
    pub fn pe_slots(&self, pe: &PeName) -> u32 {
        self.pe_slots.get(pe).copied().unwrap_or(0)
    }

    /// How much of a numeric attribute tasks asked for at a level that were placed at `since` or later, consumable or not.
    ///
    /// A load value that was sampled at `since` does not show their use yet (DESIGN section 5).
    pub fn requested_since(&self, level: &Level, attribute: &str, since: Tick) -> Amount {
        let mut total = Total::default();
        for (_, booking) in self.since(level, since) {
            total.add(booking.asked(level, attribute));
        }
        total.amount()
    }

    /// The tasks for which something is booked.
    pub fn keys(&self) -> impl Iterator<Item = TaskKey> {
        self.tasks.keys().copied()
    }

    /// What is booked for a task.
    pub fn booking(&self, key: TaskKey) -> Option<&Booking> {
        self.tasks.get(&key)
    }

    /// Asserts the invariant.
    ///
    /// # Panics
    /// If the totals are not the sums over the tasks: a bug, after which nothing may be booked any more.
    pub fn check(&self) {
        let mut fresh = Ledger::from(self.tasks.clone());
        fresh.quotas = self.quotas.clone();
        assert!(*self == fresh, "the ledger's totals are not the sums over its tasks");
    }

    /// The tasks at a level that were placed at `since` or later, by time.
    pub fn since(&self, level: &Level, since: Tick) -> impl Iterator<Item = (Tick, &Booking)> {
        let first = (since, Self::FIRST_KEY);
        let newer = self.level(level).into_iter().flat_map(move |there| there.recent.range(first..));
        newer.map(|(at, key)| (*at, self.tasks.get(key).expect("the index names booked tasks only")))
    }

    /// The tasks at a level.
    pub fn at(&self, level: &Level) -> impl Iterator<Item = (TaskKey, &Booking)> {
        let keys = self.level(level).into_iter().flat_map(|there| &there.recent).map(|(_, key)| *key);
        keys.map(|key| (key, self.tasks.get(&key).expect("the index names booked tasks only")))
    }

    fn add(&mut self, key: TaskKey, booking: Booking) {
        for (level, entries) in booking.by_level() {
            let there = self.levels.entry(level).or_default();
            for entry in entries {
                there.totals.entry(entry.attribute.clone()).or_default().add(entry.amount);
            }
            there.recent.insert((booking.at(), key));
        }
        booking.maps().iter().for_each(|map| self.ids.give(map));
        if let Some(pe) = booking.pe() {
            *self.pe_slots.entry(pe.clone()).or_default() += booking.slots_at(&Level::Global);
        }
        self.tasks.insert(key, booking);
    }
}

impl From<BTreeMap<TaskKey, Booking>> for Ledger {
    fn from(tasks: BTreeMap<TaskKey, Booking>) -> Ledger {
        let mut ledger = Ledger::default();
        for (key, booking) in tasks {
            ledger.add(key, booking);
        }
        ledger
    }
}

impl From<Ledger> for BTreeMap<TaskKey, Booking> {
    fn from(ledger: Ledger) -> Self {
        ledger.tasks
    }
}

/// A sum of amounts from which each can be taken again, INFINITY included.
///
/// Never below zero. The finite part cannot overflow: it has 64 bits more than an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    finite: i128,
    infinite: u32,
}

impl Total {
    pub(crate) fn of(amount: Amount) -> Total {
        let mut total = Total::default();
        total.add(amount);
        total
    }

    pub(crate) fn add(&mut self, amount: Amount) {
        match amount.finite() {
            Some(units) => self.finite += i128::from(units),
            None => self.infinite += 1,
        }
    }

    fn subtract(&mut self, amount: Amount) {
        match amount.finite() {
            Some(units) => self.finite -= i128::from(units),
            None => self.infinite = self.infinite.checked_sub(1).expect("what is released was booked"),
        }
        assert!(self.finite >= 0, "less than nothing is booked");
    }

    pub(crate) fn add_all(&mut self, other: Total) {
        self.finite += other.finite;
        self.infinite += other.infinite;
    }

    pub(crate) fn subtract_all(&mut self, other: Total) {
        self.finite -= other.finite;
        self.infinite = self.infinite.checked_sub(other.infinite).expect("what is released was booked");
        assert!(self.finite >= 0, "less than nothing is booked");
    }

    pub(crate) fn is_zero(self) -> bool {
        self == Total::default()
    }

    pub(crate) fn amount(self) -> Amount {
        match i64::try_from(self.finite) {
            Ok(units) if self.infinite == 0 => Amount::from_base(units),
            Ok(_) | Err(_) => Amount::INFINITY,
        }
    }
}
