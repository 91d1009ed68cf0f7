//! What one placed task takes at each level.

use super::charges::{Charges, Taken};
use super::{At, Level};
use crate::quota::Who;
use crate::state::config::Configuration;
use proto::amount::{Amount, Type};
use proto::complex::Complex;
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName};
use proto::job::Granted;
use proto::rsmap::GrantedIds;
use proto::time::Tick;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one task takes, with the requests that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Booking {
    at: Tick,
    charges: Arc<Charges>,
    /// Its slots, the master first, each instance once.
    granted: Vec<Granted>,
    pe: Option<PeUse>,
    /// The ids that it has of resource maps.
    maps: Vec<GrantedIds>,
    /// What it has of attributes of which it has ids: these count, whatever is charged.
    held: Vec<Entry>,
    /// Whose it is; none of a task from before that was kept.
    who: Option<Arc<Who>>,
}

/// A booking as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    at: Tick,
    requested: Vec<(AttributeName, Amount)>,
    /// None of a task from before it was kept: [`super::Ledger::rebook`] finds it out.
    #[serde(default)]
    taken: Vec<Taken>,
    granted: Vec<Granted>,
    pe: Option<PeUse>,
    #[serde(default)]
    maps: Vec<GrantedIds>,
    #[serde(default)]
    held: Vec<Entry>,
    #[serde(default)]
    who: Option<Arc<Who>>,
}

impl From<Stored> for Booking {
    fn from(stored: Stored) -> Booking {
        let Stored { at, requested, taken, granted, pe, maps, held, who } = stored;
        Booking { at, charges: Arc::new(Charges::stored(requested, taken)), granted, pe, maps, held, who }
    }
}

impl From<Booking> for Stored {
    fn from(booking: Booking) -> Stored {
        let Booking { at, charges, granted, pe, maps, held, who } = booking;
        let (requested, taken) = (charges.requests().to_vec(), charges.taken().to_vec());
        Stored { at, requested, taken, granted, pe, maps, held, who }
    }
}

/// The parallel environment of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeUse {
    /// The environment.
    pub name: PeName,
    /// Whether the master is no task of it and takes one more slot where it runs (CONS-18).
    pub extra_master_slot: bool,
}

/// An amount that is taken at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where.
    pub level: Level,
    /// Of what.
    pub attribute: AttributeName,
    /// How much: above zero, in the base unit of the attribute's type. Slots for an exclusive attribute.
    pub amount: Amount,
}

/// How a task uses one level.
pub(super) struct Use<'a> {
    pub(super) at: At<'a>,
    pub(super) slots: u32,
    /// Whether the master is in it.
    pub(super) master: bool,
    /// How often a consumable of kind HOST is charged here.
    pub(super) hosts: u32,
}

/// What was given to a task.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// Its slots, the master's first.
    pub slots: &'a [Granted],
    /// Its parallel environment, if any.
    pub pe: Option<&'a PeName>,
    /// The ids that it has of resource maps.
    pub maps: &'a [GrantedIds],
}

impl<'a> Grant<'a> {
    /// Slots without ids, as they are planned.
    pub fn of_slots(slots: &'a [Granted], pe: Option<&'a PeName>) -> Grant<'a> {
        Grant { slots, pe, maps: &[] }
    }
}

impl Booking {
    /// What a task with such hard requests takes of what it was given at `at`.
    pub fn new(config: &Configuration, charges: Arc<Charges>, grant: Grant<'_>, at: Tick) -> Booking {
        let pe = grant.pe.map(|name| PeUse {
            name: name.clone(),
            extra_master_slot: config.pes.get(name).is_some_and(|pe| !pe.job_is_first_task.0),
        });
        let mut granted = merged(grant.slots);
        if pe.as_ref().is_some_and(|pe| pe.extra_master_slot)
            && let Some(master) = granted.first_mut()
        {
            master.slots += 1;
        }
        let maps = grant.maps.to_vec();
        let held = held(&config.complex, &maps);
        Booking { at, charges, granted, pe, maps, held, who: None }
    }

    /// The same task under another complex.
    pub fn rebooked(self, complex: &Complex) -> Booking {
        let charges = Charges::of(complex, self.charges.requests().to_vec());
        let held = held(complex, &self.maps);
        Booking { charges: Arc::new(charges), held, ..self }
    }

    /// The same task with its owner.
    pub fn of(self, who: Arc<Who>) -> Booking {
        Booking { who: Some(who), ..self }
    }

    /// Whose the task was when it was placed, if that is known.
    pub fn who(&self) -> Option<&Who> {
        self.who.as_deref()
    }

    /// What tasks like it are charged.
    pub fn charges(&self) -> &Charges {
        &self.charges
    }

    /// When the task was placed.
    pub fn at(&self) -> Tick {
        self.at
    }

    /// The amounts by level and attribute, each pair once.
    pub fn entries(&self) -> Vec<Entry> {
        self.uses().flat_map(|place| self.entries_of(&place)).collect()
    }

    /// The amounts at a level by attribute, each once.
    pub fn entries_at(&self, level: At<'_>) -> Vec<Entry> {
        self.use_at(level).map_or_else(Vec::new, |place| self.entries_of(&place))
    }

    fn entries_of(&self, place: &Use<'_>) -> Vec<Entry> {
        let level = place.at.to_level();
        let mut entries = Vec::new();
        self.each_at(place, |attribute, amount| {
            entries.push(Entry { level: level.clone(), attribute: attribute.clone(), amount });
        });
        entries
    }

    /// What the task takes in each of its queue instances, by attribute.
    pub fn in_instances(&self) -> Vec<(&QueueInstanceName, Vec<(AttributeName, Amount)>)> {
        let mut instances = Vec::with_capacity(self.granted.len());
        for place in self.uses() {
            let At::Instance(instance) = place.at else { continue };
            let mut taken = Vec::new();
            self.each_at(&place, |attribute, amount| taken.push((attribute.clone(), amount)));
            instances.push((instance, taken));
        }
        instances
    }

    /// Tells what the task takes at a level, each attribute once.
    pub(super) fn each_at(&self, place: &Use<'_>, mut tell: impl FnMut(&AttributeName, Amount)) {
        let held = || self.held.iter().filter(|entry| At::from(&entry.level) == place.at);
        for taken in self.charges.taken() {
            let amount = taken.at(place);
            if amount > Amount::ZERO && !held().any(|entry| entry.attribute == taken.attribute) {
                tell(&taken.attribute, amount);
            }
        }
        held().for_each(|entry| tell(&entry.attribute, entry.amount));
    }

    /// How much of a consumable the task takes at a level.
    pub fn amount<'l, N: ?Sized>(&self, level: impl Into<At<'l>>, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let level = level.into();
        let of_ids = |entry: &&Entry| entry.attribute == *attribute && At::from(&entry.level) == level;
        if let Some(entry) = self.held.iter().find(of_ids) {
            return entry.amount;
        }
        let taken = self.charges.taken().iter().find(|taken| taken.attribute == *attribute);
        let place = || self.use_at(level);
        taken.and_then(|taken| Some(taken.at(&place()?))).unwrap_or(Amount::ZERO)
    }

    /// What the task asked for of a numeric attribute, for each slot.
    pub fn requested<N: ?Sized>(&self, attribute: &N) -> Option<Amount>
    where
        AttributeName: PartialEq<N>,
    {
        self.charges.requested(attribute)
    }

    /// The task's slots, the master first.
    pub fn granted(&self) -> &[Granted] {
        &self.granted
    }

    /// The queue instance of a task of one slot that is in no parallel environment.
    pub fn only_slot(&self) -> Option<&QueueInstanceName> {
        match self.granted.as_slice() {
            [Granted { instance, slots: 1 }] if self.pe.is_none() => Some(instance),
            _ => None,
        }
    }

    /// Its parallel environment, if any.
    pub fn pe(&self) -> Option<&PeName> {
        self.pe.as_ref().map(|pe| &pe.name)
    }

    /// The ids that it has of resource maps.
    pub fn maps(&self) -> &[GrantedIds] {
        &self.maps
    }

    /// The task's slots at a level.
    pub fn slots_at<'l>(&self, level: impl Into<At<'l>>) -> u32 {
        match level.into() {
            At::Global => self.slots(|_| true),
            At::Host(host) => self.slots(|instance| instance.host == *host),
            At::Instance(instance) => self.slots(|known| known == instance),
        }
    }

    /// How much of a numeric attribute the task asked for at a level, for all of its slots there.
    pub fn asked<'l, N: ?Sized>(&self, level: impl Into<At<'l>>, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let level = level.into();
        match self.amount(level, attribute) {
            Amount::ZERO => self.requested(attribute).map_or(Amount::ZERO, |amount| amount.times(self.slots_at(level))),
            amount => amount,
        }
    }

    /// The levels with what the task has there: global, each host, each instance.
    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        let (single, several) = match self.granted.as_slice() {
            [Granted { instance, slots }] => {
                let levels = [At::Global, At::Host(&instance.host), At::Instance(instance)];
                (Some(levels.map(|at| Use { at, slots: *slots, master: true, hosts: 1 })), Vec::new())
            }
            _ => (None, self.uses_of_several()),
        };
        single.into_iter().flatten().chain(several)
    }

    fn uses_of_several(&self) -> Vec<Use<'_>> {
        let mut hosts: BTreeMap<&HostName, Use<'_>> = BTreeMap::new();
        let mut instances = Vec::with_capacity(self.granted.len());
        for (index, Granted { instance, slots }) in self.granted.iter().enumerate() {
            let at = At::Host(&instance.host);
            let host = hosts.entry(&instance.host).or_insert(Use { at, slots: 0, master: index == 0, hosts: 1 });
            let is_first = u32::from(host.slots == 0);
            host.slots += slots;
            instances.push(Use { at: At::Instance(instance), slots: *slots, master: index == 0, hosts: is_first });
        }
        let global = self.use_at(At::Global);
        global.into_iter().chain(hosts.into_values()).chain(instances).collect()
    }

    /// How the task uses a level; none if it does not.
    fn use_at<'a>(&self, at: At<'a>) -> Option<Use<'a>> {
        let first = self.granted.first()?;
        let (slots, master, hosts) = match at {
            At::Global => (self.slots(|_| true), true, self.hosts()),
            At::Host(host) => (self.slots(|known| known.host == *host), first.instance.host == *host, 1),
            At::Instance(instance) => {
                let is_first = u32::from(self.is_first_on_host(instance));
                (self.slots(|known| known == instance), first.instance == *instance, is_first)
            }
        };
        (slots > 0).then_some(Use { at, slots, master, hosts })
    }

    fn slots(&self, counts: impl Fn(&QueueInstanceName) -> bool) -> u32 {
        self.granted.iter().filter(|granted| counts(&granted.instance)).map(|granted| granted.slots).sum()
    }

    /// How many hosts it has.
    fn hosts(&self) -> u32 {
        let count = match self.granted.as_slice() {
            [_] => 1,
            several => several.iter().map(|granted| &granted.instance.host).collect::<BTreeSet<_>>().len(),
        };
        u32::try_from(count).expect("a task has fewer hosts than slots, which are counted in 32 bits")
    }

    fn is_first_on_host(&self, instance: &QueueInstanceName) -> bool {
        let first = self.granted.iter().find(|granted| granted.instance.host == instance.host);
        first.is_some_and(|granted| granted.instance == *instance)
    }
}

/// What a task has of resource maps is as much as it has ids, however the map is charged now: an id is never free while a task
/// has it.
fn held(complex: &Complex, maps: &[GrantedIds]) -> Vec<Entry> {
    let is_map = |name: &str| complex.lookup(name).is_some_and(|attribute| attribute.r#type == Type::RsMap);
    let maps = maps.iter().filter(|map| is_map(map.attribute.as_str()));
    let entry = |map: &GrantedIds| {
        let amount = Amount::from_base(i64::try_from(map.ids.len()).expect("a map has at most IDS_MAX ids"));
        Entry { level: Level::of_host(&map.host), attribute: map.attribute.clone(), amount }
    };
    maps.map(entry).collect()
}

/// The slots with each instance once, in the order of their first mention.
fn merged(granted: &[Granted]) -> Vec<Granted> {
    let mut once: Vec<Granted> = Vec::with_capacity(granted.len());
    for part in granted {
        match once.iter_mut().find(|known| known.instance == part.instance) {
            Some(known) => known.slots += part.slots,
            None => once.push(part.clone()),
        }
    }
    once
}
