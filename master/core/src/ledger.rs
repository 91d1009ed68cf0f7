//! The ledger: what placed tasks take from the consumables of the cluster, hosts and queue
//! instances (ALGORITHMS.md section 4.1).
//!
//! Every consumable is booked at every level, whether a capacity is set there or not, so that a
//! capacity that is added later is compared with the real use. Capacities and load values are
//! deliberately unknown here: the ledger only says what was booked since a value was sampled.

mod booking;
mod charges;
mod cores;
mod ids;
pub(crate) mod keys;
mod level;
pub mod quota;
mod takers;
#[cfg(test)]
mod tests;
pub mod timeline;

pub use booking::{Booking, Entry, Grant, PeUse};
pub use charges::{Charges, CountRule, RequestScope, default_apart};
pub use ids::{choose_ids, free_ids, ill_and_idle};
pub(crate) use level::Total;
pub use level::{HostBookings, Level, LevelBookings, LevelRef};

use crate::collections::by_host::ByHost;
use crate::collections::paged::SharedMap;
use crate::config::Configuration;
use booking::LevelUse;
use cores::CoresInUse;
use ids::IdsInUse;
use proto::amount::Amount;
use proto::complex::Complex;
use proto::id::{AttributeName, CellId, HostName, PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::JobSpec;
use proto::time::Tick;
use quota::{JobOwner, QuotaUsage, Scope};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use takers::Takers;

/// The implicit consumable: each slot of a task takes one.
pub const SLOTS: &str = "slots";

/// What placed tasks take, by level and attribute.
///
/// A [`Booking`] is made once, when a task is placed, from the request and the complex of that
/// moment, and is given back as it was booked, whatever was configured since: so a sum never goes
/// below zero. [`Ledger::book`] counts it also for quotas and parallel environments,
/// [`Ledger::hold`] counts neither (the block of an advance reservation), [`Ledger::release`] takes
/// back either. Reading (`booked`, `slots`, `quota_used`) is by level and costs no walk over tasks.
///
/// There is one ledger in the state, one for each running advance reservation, and one of planned
/// tasks in the scheduler; a [`Cluster`](crate::matching::Cluster) adds up those that count. The
/// ledger has no capacities and refuses nothing: whether something fits is the matcher's question.
///
/// Invariant, checked by [`Ledger::check`]: `global`, `hosts`, `pe_slots`, `ids` and `cores` are
/// exactly the sums over the entries of `tasks`; no total is below zero and none of zero is kept.
/// `quotas` counts the bookings by the resource quota sets. `takers`, if it is kept, leads to the
/// tasks that share something. Only `tasks` is stored.
///
/// The fold of events books and releases; the scheduler does the same in a ledger of planned tasks.
/// After a change of the complex call [`Ledger::rebook`], after a change of quotas or of what they
/// name [`Ledger::recount`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<TaskKey, Booking>")]
pub struct Ledger {
    tasks: SharedMap<TaskKey, Arc<Booking>>,
    global: LevelBookings,
    /// The entry of a queue instance that no task uses any more stays, and is empty.
    hosts: ByHost<HostBookings>,
    pe_slots: BTreeMap<PeName, u32>,
    ids: IdsInUse,
    cores: CoresInUse,
    quotas: QuotaUsage,
    /// `None` in ledgers whose holders nobody asks for, such as those of the time line.
    takers: Option<Box<Takers>>,
}

impl Ledger {
    /// The least key: a search by time begins there.
    pub const FIRST_KEY: TaskKey = TaskKey {
        cell: CellId(0),
        seq: SubmitSeq(0),
        task: TaskId(0),
        pe_task: 0,
        attempt: 0,
    };

    /// An empty ledger that keeps the takers of what is shared.
    pub fn with_takers() -> Ledger {
        Ledger {
            takers: Some(Box::default()),
            ..Ledger::default()
        }
    }

    /// A copy to be stored: it shares the bookings and has no sums.
    pub fn image(&self) -> Ledger {
        Ledger {
            tasks: self.tasks.clone(),
            ..Ledger::default()
        }
    }

    /// Books what a task takes from now on: its hard requests and the defaults of consumables that
    /// it does not request. Quotas count it.
    ///
    /// A booking under the same key is replaced.
    pub fn book(&mut self, config: &Configuration, key: TaskKey, booking: Arc<Booking>) {
        self.quotas.count(config, key, &booking);
        self.add(key, booking);
    }

    /// Books something that no quota counts. A booking under the same key is replaced.
    pub fn hold(&mut self, key: TaskKey, booking: Arc<Booking>) {
        self.quotas.forget(key);
        self.add(key, booking);
    }

    /// Books everything that another ledger books, like [`Ledger::book`].
    pub fn adopt(&mut self, config: &Configuration, other: &Ledger) {
        for (key, booking) in other.tasks.iter() {
            self.quotas.count(config, *key, booking);
            self.add(*key, booking.clone());
        }
    }

    /// Keeps the takers of parallel environments from now on, and those of these attributes of the
    /// whole cluster.
    pub fn keep_takers(&mut self, names: &BTreeSet<AttributeName>) {
        if self.takers.as_ref().is_some_and(|takers| takers.names() == names) {
            return;
        }
        let mut takers = Takers::new(names.clone());
        self.tasks.iter().for_each(|(key, booking)| takers.add(*key, booking));
        self.takers = Some(Box::new(takers));
    }

    /// The tasks with slots in a parallel environment, oldest job first.
    pub fn takers_of_pe<'a>(&'a self, pe: &'a PeName) -> Box<dyn Iterator<Item = TaskKey> + 'a> {
        match &self.takers {
            Some(takers) => Box::new(takers.of_pe(pe)),
            None => Box::new(self.keys_where(move |booking| booking.pe() == Some(pe))),
        }
    }

    /// The tasks that take an attribute of the whole cluster, oldest job first.
    pub fn takers_of_cluster<'a>(&'a self, attribute: &'a str) -> Box<dyn Iterator<Item = TaskKey> + 'a> {
        match self.takers.as_ref().and_then(|takers| takers.of_cluster(attribute)) {
            Some(takers) => Box::new(takers),
            None => {
                Box::new(self.keys_where(move |booking| booking.amount(LevelRef::Global, attribute) > Amount::ZERO))
            }
        }
    }

    fn keys_where<'a>(&'a self, is_meant: impl Fn(&Booking) -> bool + 'a) -> impl Iterator<Item = TaskKey> + 'a {
        let tasks = self.tasks.iter().filter(move |(_, booking)| is_meant(booking));
        tasks.map(|(key, _)| *key)
    }

    /// Releases the booking of a task. Returns false if there was none.
    pub fn release(&mut self, key: TaskKey) -> bool {
        let Some(booking) = self.tasks.remove(&key) else {
            return false;
        };
        self.quotas.forget(key);
        self.subtract(key, &booking);
        true
    }

    /// Subtracts the amounts of a task.
    fn subtract(&mut self, key: TaskKey, booking: &Booking) {
        self.each_level(booking, |there, place| there.leave(place, key, booking));
        booking.maps().iter().for_each(|map| self.ids.take_back(map));
        booking.cores().iter().for_each(|binding| self.cores.take_back(binding));
        if let Some(takers) = &mut self.takers {
            takers.remove(key, booking);
        }
        if let Some(pe) = booking.pe() {
            let slots = self
                .pe_slots
                .get_mut(pe)
                .expect("every booked parallel task is counted");
            *slots -= booking.slots_at(&Level::Global);
            if *slots == 0 {
                self.pe_slots.remove(pe);
            }
        }
    }

    /// Books every task anew after a change of the complex: what is consumable, how it is charged,
    /// or a default may be different.
    ///
    /// A task keeps the requests with which it was placed, whatever happened to its job's since.
    /// Counts of quotas are forgotten until [`Ledger::recount`].
    pub fn rebook(&mut self, complex: &Complex) {
        let rebooked = self
            .tasks
            .iter()
            .map(|(key, booking)| (*key, Booking::clone(booking).rebooked(complex)));
        let rebooked = Ledger::from(rebooked.collect::<BTreeMap<_, _>>());
        let takers = std::mem::replace(self, rebooked).takers;
        takers.into_iter().for_each(|takers| self.keep_takers(takers.names()));
    }

    /// Counts for the quotas anew, after a change of them or of what they name.
    pub fn recount(&mut self, config: &Configuration) {
        self.quotas = QuotaUsage::default();
        for (key, booking) in self.tasks.iter() {
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

    /// Restores the owner of a task whose booking was stored before owners were. Counts of quotas
    /// are forgotten until [`Ledger::recount`].
    pub fn own(&mut self, key: TaskKey, spec: &JobSpec) {
        let booking = self.tasks.get(&key).filter(|booking| booking.who().is_none());
        if let Some(booking) =
            booking.map(|booking| Booking::clone(booking).with_owner(Arc::new(JobOwner::of_spec(spec))))
        {
            self.hold(key, Arc::new(booking));
        }
    }

    /// How much of an attribute a quota has in use.
    pub fn quota_used(&self, scope: &Scope, attribute: &str) -> Amount {
        self.quotas.used(scope, attribute)
    }

    /// The use of the quotas.
    pub fn quotas(&self) -> &QuotaUsage {
        &self.quotas
    }

    /// How much of an attribute is taken at a level; INFINITY if a task took without bound.
    pub fn booked<'l>(&self, level: impl Into<LevelRef<'l>>, attribute: &str) -> Amount {
        self.level(level).map_or(Amount::ZERO, |there| there.booked(attribute))
    }

    /// The bookings at a level, if tasks use it.
    pub fn level<'l>(&self, level: impl Into<LevelRef<'l>>) -> Option<&LevelBookings> {
        match level.into() {
            LevelRef::Global => Some(&self.global).filter(|global| !global.is_empty()),
            LevelRef::Host(host) => self.on_host(host).map(HostBookings::host),
            LevelRef::Instance(instance) => self.on_host(&instance.host)?.instance(&instance.queue),
        }
    }

    /// The bookings on a host and its queue instances, if tasks use it.
    pub fn on_host(&self, host: &HostName) -> Option<&HostBookings> {
        self.hosts.get(host).filter(|there| !there.host().is_empty())
    }

    fn used_hosts(&self) -> impl Iterator<Item = (&HostName, &HostBookings)> {
        self.hosts.iter().filter(|(_, there)| !there.host().is_empty())
    }

    /// The queue instances that tasks use.
    pub fn used_instances(&self) -> impl Iterator<Item = QueueInstanceName> {
        self.used_hosts().flat_map(|(host, there)| {
            there.used_instances().map(|(queue, _)| QueueInstanceName {
                queue: queue.clone(),
                host: host.clone(),
            })
        })
    }

    /// Slots that are taken at a level.
    pub fn slots(&self, level: &Level) -> u32 {
        let slots = self
            .booked(level, SLOTS)
            .finite()
            .and_then(|slots| u32::try_from(slots).ok());
        slots.unwrap_or(u32::MAX)
    }

    /// Slots that tasks of a parallel environment take together.
    pub fn pe_slots(&self, pe: &PeName) -> u32 {
        self.pe_slots.get(pe).copied().unwrap_or(0)
    }

    /// The tasks that have a booking.
    pub fn keys(&self) -> impl Iterator<Item = TaskKey> {
        self.tasks.keys().copied()
    }

    /// The bookings, in the order of their keys.
    pub fn bookings(&self) -> impl Iterator<Item = (TaskKey, &Arc<Booking>)> {
        self.tasks.iter().map(|(key, booking)| (*key, booking))
    }

    /// The booking of a task.
    pub fn booking(&self, key: TaskKey) -> Option<&Arc<Booking>> {
        self.tasks.get(&key)
    }

    /// Asserts the invariant.
    ///
    /// # Panics
    /// If the totals are not the sums over the tasks: a bug, after which nothing may be booked any
    /// more.
    pub fn check(&self) {
        let mut fresh = Ledger::default();
        self.tasks
            .iter()
            .for_each(|(key, booking)| fresh.add(*key, booking.clone()));
        fresh.quotas = self.quotas.clone();
        self.takers.iter().for_each(|takers| fresh.keep_takers(takers.names()));
        assert!(*self == fresh, "the ledger's totals are not the sums over its tasks");
    }

    /// The tasks at a level that were placed at `since` or later, by time.
    pub fn since(&self, level: &Level, since: Tick) -> impl Iterator<Item = (Tick, &Booking)> {
        self.level(level).into_iter().flat_map(move |there| there.since(since))
    }

    /// Adds the amounts of a task, after those under the same key were subtracted.
    fn add(&mut self, key: TaskKey, booking: Arc<Booking>) {
        if let Some(old) = self.tasks.insert(key, booking.clone()) {
            self.subtract(key, &old);
        }
        self.each_level(&booking, |there, place| there.enter(place, key, &booking));
        booking.maps().iter().for_each(|map| self.ids.give(map));
        booking.cores().iter().for_each(|binding| self.cores.give(binding));
        if let Some(takers) = &mut self.takers {
            takers.add(key, &booking);
        }
        if let Some(pe) = booking.pe() {
            *self.pe_slots.entry(pe.clone()).or_default() += booking.slots_at(&Level::Global);
        }
    }

    /// Changes the bookings at each level that a task uses.
    fn each_level(&mut self, booking: &Booking, mut change: impl FnMut(&mut LevelBookings, &LevelUse<'_>)) {
        let Ledger { global, hosts, .. } = self;
        if let [only] = booking.granted() {
            // Most tasks are on one host, which is looked up once.
            let there = hosts.or_default(&only.instance.host);
            booking
                .uses()
                .for_each(|place| change(there.at_mut(global, place.at), &place));
        } else {
            for place in booking.uses() {
                match place.at.host() {
                    Some(host) => change(hosts.or_default(host).at_mut(global, place.at), &place),
                    None => change(global, &place),
                }
            }
        }
    }
}

/// The bookings alone are stored, and everything else follows from them.
impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        let Ledger {
            tasks,
            global,
            hosts: _,
            pe_slots,
            ids,
            cores,
            quotas,
            takers,
        } = self;
        *tasks == other.tasks
            && *global == other.global
            && self.used_hosts().eq(other.used_hosts())
            && *pe_slots == other.pe_slots
            && *ids == other.ids
            && *cores == other.cores
            && *quotas == other.quotas
            && *takers == other.takers
    }
}

impl From<BTreeMap<TaskKey, Booking>> for Ledger {
    fn from(tasks: BTreeMap<TaskKey, Booking>) -> Ledger {
        let mut ledger = Ledger::default();
        for (key, booking) in tasks {
            ledger.add(key, Arc::new(booking));
        }
        ledger
    }
}

impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.tasks.iter())
    }
}

/// The sum of amounts; INFINITY if it is too large for a number.
pub(crate) fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    amounts.fold(Amount::ZERO, Amount::saturating_add)
}
