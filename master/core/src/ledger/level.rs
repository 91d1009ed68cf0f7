//! The bookings at one level.

use super::booking::LevelUse;
use super::{Booking, CountRule};
use crate::collections::paged::PagedMap;
use proto::amount::Amount;
use proto::id::{AttributeName, HostName, QueueInstanceName, QueueName, TaskKey};
use proto::time::Tick;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

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
        if *host == HostName::global() {
            Level::Global
        } else {
            Level::Host(host.clone())
        }
    }
}

impl Level {
    /// The host. `None` for the cluster.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Level::Global => None,
            Level::Host(host) => Some(host),
            Level::Instance(instance) => Some(&instance.host),
        }
    }
}

/// A level with borrowed names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelRef<'a> {
    /// The cluster as a whole.
    Global,
    /// An execution host.
    Host(&'a HostName),
    /// A queue instance.
    Instance(&'a QueueInstanceName),
}

impl<'a> From<&'a Level> for LevelRef<'a> {
    fn from(level: &'a Level) -> LevelRef<'a> {
        match level {
            Level::Global => LevelRef::Global,
            Level::Host(host) => LevelRef::Host(host),
            Level::Instance(instance) => LevelRef::Instance(instance),
        }
    }
}

impl<'a> LevelRef<'a> {
    /// The level with owned names.
    pub fn to_level(self) -> Level {
        match self {
            LevelRef::Global => Level::Global,
            LevelRef::Host(host) => Level::Host(host.clone()),
            LevelRef::Instance(instance) => Level::Instance(instance.clone()),
        }
    }

    /// The host. `None` for the cluster.
    pub fn host(self) -> Option<&'a HostName> {
        match self {
            LevelRef::Global => None,
            LevelRef::Host(host) => Some(host),
            LevelRef::Instance(instance) => Some(&instance.host),
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

/// The bookings at one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelBookings {
    /// In the order of the names. There are few, so they are searched one by one.
    totals: Vec<(AttributeName, Total)>,
    /// How many tasks use it.
    users: usize,
    /// These tasks, by the time at which they were placed. Empty for a queue instance.
    recent: PagedMap<(Tick, TaskKey), Arc<Booking>>,
}

/// The bookings on one host.
#[derive(Clone, Debug, Default)]
pub struct HostBookings {
    /// Those of the host as a whole.
    host: LevelBookings,
    /// Those of its queue instances that tasks have used, by name.
    instances: Vec<(QueueName, LevelBookings)>,
}

impl HostBookings {
    /// The bookings of the host as a whole.
    pub fn host(&self) -> &LevelBookings {
        &self.host
    }

    /// The bookings in the instance of a queue there, if tasks use it.
    pub fn instance(&self, queue: &QueueName) -> Option<&LevelBookings> {
        self.used_instances()
            .find(|(known, _)| known == queue)
            .map(|(_, there)| there)
    }

    pub(super) fn used_instances(&self) -> impl Iterator<Item = &(QueueName, LevelBookings)> {
        self.instances.iter().filter(|(_, there)| !there.is_empty())
    }

    /// The bookings at one of the levels of a task there, to be changed.
    pub(super) fn at_mut<'l>(&'l mut self, global: &'l mut LevelBookings, at: LevelRef<'_>) -> &'l mut LevelBookings {
        match at {
            LevelRef::Global => global,
            LevelRef::Host(_) => &mut self.host,
            LevelRef::Instance(instance) => self.instance_mut(&instance.queue),
        }
    }

    fn instance_mut(&mut self, queue: &QueueName) -> &mut LevelBookings {
        let at = self.instances.partition_point(|(known, _)| known < queue);
        if self.instances.get(at).is_none_or(|(known, _)| known != queue) {
            self.instances.insert(at, (queue.clone(), LevelBookings::default()));
        }
        &mut self.instances[at].1
    }
}

/// The bookings alone are stored, and everything else follows from them.
impl PartialEq for HostBookings {
    fn eq(&self, other: &Self) -> bool {
        self.host == other.host && self.used_instances().eq(other.used_instances())
    }
}

impl LevelBookings {
    /// How much of an attribute is taken; INFINITY if a task took without bound.
    pub fn booked<N: ?Sized>(&self, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let total = self.totals.iter().find(|(name, _)| name == attribute);
        total.map_or(Amount::ZERO, |(_, total)| total.amount())
    }

    /// The tasks that were placed at `since` or later, by time. Those of queue instances are kept
    /// with their hosts only.
    pub fn since(&self, since: Tick) -> impl Iterator<Item = (Tick, &Booking)> {
        let newer = self.recent.range((since, super::Ledger::FIRST_KEY)..);
        newer.map(|((at, _), booking)| (*at, booking.as_ref()))
    }

    /// The requests for a numeric attribute, consumable or not, of tasks here, at `level`, that
    /// were placed at `since` or later.
    ///
    /// A load value that was sampled at `since` does not show their use yet (ALGORITHMS.md section
    /// 6.2).
    pub fn requested_since(
        &self,
        level: LevelRef<'_>,
        attribute: &AttributeName,
        counted: CountRule,
        since: Tick,
    ) -> Amount {
        let mut total = Total::default();
        self.since(since)
            .for_each(|(_, booking)| total.add(booking.asked(level, attribute, counted)));
        total.amount()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.users == 0
    }

    /// Adds a task that uses the level so.
    pub(super) fn enter(&mut self, place: &LevelUse<'_>, key: TaskKey, booking: &Arc<Booking>) {
        match booking.alike() {
            Some(taken) => self.add_all(taken),
            None => booking.each_at(place, |attribute, amount| self.add(attribute, amount)),
        }
        self.users += 1;
        if !matches!(place.at, LevelRef::Instance(_)) {
            self.recent.insert((booking.at(), key), booking.clone());
        }
    }

    /// Removes a task that used the level so.
    pub(super) fn leave(&mut self, place: &LevelUse<'_>, key: TaskKey, booking: &Booking) {
        match booking.alike() {
            Some(taken) => self.subtract_all(taken),
            None => booking.each_at(place, |attribute, amount| self.subtract(attribute, amount)),
        }
        self.users -= 1;
        if !matches!(place.at, LevelRef::Instance(_)) {
            self.recent.remove(&(booking.at(), key));
        }
    }

    /// Adds amounts that are in the order of the names.
    fn add_all(&mut self, taken: &[(AttributeName, Amount)]) {
        if self.totals.is_empty() {
            self.totals.reserve(taken.len());
        }
        let mut at = 0;
        for (attribute, amount) in taken {
            at += self.totals[at..]
                .iter()
                .take_while(|(name, _)| name < attribute)
                .count();
            match self.totals.get_mut(at).filter(|(name, _)| name == attribute) {
                Some((_, total)) => total.add(*amount),
                None => self.totals.insert(at, (attribute.clone(), Total::from_amount(*amount))),
            }
            at += 1;
        }
    }

    /// Subtracts amounts that are in the order of the names.
    fn subtract_all(&mut self, taken: &[(AttributeName, Amount)]) {
        let mut taken = taken.iter().peekable();
        self.totals.retain_mut(|(name, total)| {
            if let Some((_, amount)) = taken.next_if(|(attribute, _)| attribute == name) {
                total.subtract(*amount);
            }
            !total.is_zero()
        });
        assert!(taken.next().is_none(), "what was booked is in the totals");
    }

    fn add(&mut self, attribute: &AttributeName, amount: Amount) {
        match self.totals.iter_mut().find(|(name, _)| name == attribute) {
            Some((_, total)) => total.add(amount),
            None => {
                let at = self.totals.partition_point(|(name, _)| name < attribute);
                self.totals.insert(at, (attribute.clone(), Total::from_amount(amount)));
            }
        }
    }

    fn subtract(&mut self, attribute: &AttributeName, amount: Amount) {
        let at = self.totals.iter().position(|(name, _)| name == attribute);
        let at = at.expect("what was booked is in the totals");
        self.totals[at].1.subtract(amount);
        if self.totals[at].1.is_zero() {
            self.totals.remove(at);
        }
    }
}

/// A sum of amounts from which each can be subtracted again, INFINITY included.
///
/// It is never below zero. The finite part cannot overflow: it has 64 bits more than an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    finite: i128,
    infinite: u32,
}

impl Total {
    pub(crate) fn from_amount(amount: Amount) -> Total {
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

    /// The sum of both.
    pub(crate) fn and(mut self, other: Total) -> Total {
        self.add_all(other);
        self
    }

    pub(crate) fn subtract_all(&mut self, other: Total) {
        self.finite -= other.finite;
        self.infinite = self
            .infinite
            .checked_sub(other.infinite)
            .expect("what is released was booked");
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
