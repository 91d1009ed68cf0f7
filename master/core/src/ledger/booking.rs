//! What one placed task takes at each level.

use super::{Level, SLOTS};
use crate::quota::Who;
use crate::state::config::Configuration;
use proto::amount::{Amount, Type};
use proto::complex::{Complex, Consumable};
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName};
use proto::job::Granted;
use proto::request::ResourceRequest;
use proto::rsmap::GrantedIds;
use proto::time::Tick;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one task takes, with the requests that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    at: Tick,
    /// Numeric hard requests for each slot, by full name. None is negative.
    requested: Vec<(AttributeName, Amount)>,
    /// Its slots, the master first, each instance once.
    granted: Vec<Granted>,
    pe: Option<PeUse>,
    /// The ids that it has of resource maps.
    #[serde(default)]
    maps: Vec<GrantedIds>,
    entries: Vec<Entry>,
    /// Whose it is; none of a task from before that was kept.
    #[serde(default)]
    who: Option<Arc<Who>>,
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
struct Use {
    level: Level,
    slots: u32,
    /// Whether the master is in it.
    master: bool,
    /// How often a consumable of kind HOST is charged here.
    hosts: u32,
}

/// What a task takes of one attribute.
struct Taken {
    attribute: AttributeName,
    kind: Consumable,
    exclusive: bool,
    /// For each slot, or in all, as the kind says.
    amount: Amount,
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
    /// What a task with these hard requests takes of what it was given at `at`.
    pub fn new(config: &Configuration, hard: &[ResourceRequest], grant: Grant<'_>, at: Tick) -> Booking {
        let (complex, maps) = (&config.complex, grant.maps.to_vec());
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
        let requested = hard.iter().filter_map(|request| numeric(complex, request)).collect();
        Booking { at, requested, granted, pe, maps, entries: Vec::new(), who: None }.rebooked(complex)
    }

    /// The same task under another complex.
    pub fn rebooked(mut self, complex: &Complex) -> Booking {
        let taken = self.taken(complex);
        self.entries.clear();
        for place in self.uses() {
            self.entries.extend(taken.iter().filter_map(|taken| taken.at(&place)));
        }
        self.count_ids(complex);
        self
    }

    /// What a task has of a resource map is as much as it has ids, however the map is charged now: an id is never free while a task
    /// has it.
    fn count_ids(&mut self, complex: &Complex) {
        let is_map = |name: &str| complex.lookup(name).is_some_and(|attribute| attribute.r#type == Type::RsMap);
        for map in self.maps.iter().filter(|map| is_map(map.attribute.as_str())) {
            let amount = Amount::from_base(i64::try_from(map.ids.len()).expect("a map has at most IDS_MAX ids"));
            let (level, attribute) = (Level::of_host(&map.host), map.attribute.clone());
            let entry = Entry { level, attribute, amount };
            self.entries.retain(|known| known.level != entry.level || known.attribute != entry.attribute);
            self.entries.push(entry);
        }
    }

    /// The same task with its owner.
    pub fn of(self, who: Who) -> Booking {
        Booking { who: Some(Arc::new(who)), ..self }
    }

    /// Whose the task was when it was placed, if that is known.
    pub fn who(&self) -> Option<&Who> {
        self.who.as_deref()
    }

    /// When the task was placed.
    pub fn at(&self) -> Tick {
        self.at
    }

    /// The amounts by level and attribute, each pair once.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How much of a consumable the task takes at a level.
    pub fn amount(&self, level: &Level, attribute: &str) -> Amount {
        let is_meant = |entry: &&Entry| entry.attribute.as_str() == attribute && entry.level == *level;
        self.entries.iter().find(is_meant).map_or(Amount::ZERO, |entry| entry.amount)
    }

    /// What the task asked for of a numeric attribute, for each slot.
    pub fn requested(&self, attribute: &str) -> Option<Amount> {
        self.requested.iter().find(|(name, _)| name.as_str() == attribute).map(|(_, amount)| *amount)
    }

    /// The task's slots, the master first.
    pub fn granted(&self) -> &[Granted] {
        &self.granted
    }

    /// Its parallel environment, if any.
    pub fn pe(&self) -> Option<&PeName> {
        self.pe.as_ref().map(|pe| &pe.name)
    }

    /// The ids that it has of resource maps.
    pub fn maps(&self) -> &[GrantedIds] {
        &self.maps
    }

    /// The levels that the task uses, widest first, each with what it takes there.
    pub fn by_level(&self) -> impl Iterator<Item = (Level, impl Iterator<Item = &Entry>)> {
        let entries = |level: &Level| {
            let level = level.clone();
            self.entries.iter().filter(move |entry| entry.level == level)
        };
        self.uses().into_iter().map(move |place| {
            let entries = entries(&place.level);
            (place.level, entries)
        })
    }

    /// The task's slots at a level.
    pub fn slots_at(&self, level: &Level) -> u32 {
        let counts = |granted: &&Granted| match level {
            Level::Global => true,
            Level::Host(host) => granted.instance.host == *host,
            Level::Instance(instance) => granted.instance == *instance,
        };
        self.granted.iter().filter(counts).map(|granted| granted.slots).sum()
    }

    /// How much of a numeric attribute the task asked for at a level, for all of its slots there.
    pub fn asked(&self, level: &Level, attribute: &str) -> Amount {
        match self.amount(level, attribute) {
            Amount::ZERO => self.requested(attribute).map_or(Amount::ZERO, |amount| amount.times(self.slots_at(level))),
            amount => amount,
        }
    }

    /// What is taken of each consumable: what was asked for, else the default.
    fn taken(&self, complex: &Complex) -> Vec<Taken> {
        let one =
            Taken { attribute: SLOTS.into(), kind: Consumable::Yes, exclusive: false, amount: Amount::from_base(1) };
        let mut taken = vec![one];
        for (attribute, default) in complex.consumables().filter(|(attribute, _)| attribute.name.as_str() != SLOTS) {
            let requested = self.requested.iter().find(|(name, _)| *name == attribute.name);
            let amount = requested.map_or(default, |(_, amount)| *amount);
            if amount > Amount::ZERO {
                let (kind, exclusive) = (attribute.consumable, attribute.is_exclusive());
                taken.push(Taken { attribute: attribute.name.clone(), kind, exclusive, amount });
            }
        }
        taken
    }

    /// The levels with what the task has there: global, each host, each instance.
    fn uses(&self) -> Vec<Use> {
        let mut hosts: BTreeMap<&HostName, u32> = BTreeMap::new();
        for granted in &self.granted {
            *hosts.entry(&granted.instance.host).or_default() += granted.slots;
        }
        let master = self.granted.first().map(|granted| &granted.instance);
        let all = self.granted.iter().map(|granted| granted.slots).sum();
        let count =
            u32::try_from(hosts.len()).expect("a task has fewer hosts than slots, which are counted in 32 bits");
        let mut uses = vec![Use { level: Level::Global, slots: all, master: true, hosts: count }];
        uses.extend(hosts.iter().map(|(host, slots)| Use {
            level: Level::Host((*host).clone()),
            slots: *slots,
            master: master.is_some_and(|master| master.host == **host),
            hosts: 1,
        }));
        uses.extend(self.granted.iter().map(|granted| Use {
            level: Level::Instance(granted.instance.clone()),
            slots: granted.slots,
            master: master == Some(&granted.instance),
            hosts: u32::from(self.is_first_on_host(&granted.instance)),
        }));
        uses
    }

    fn is_first_on_host(&self, instance: &QueueInstanceName) -> bool {
        let first = self.granted.iter().find(|granted| granted.instance.host == instance.host);
        first.is_some_and(|granted| granted.instance == *instance)
    }
}

impl Taken {
    fn at(&self, place: &Use) -> Option<Entry> {
        let amount = match (self.kind, self.exclusive) {
            (Consumable::No, _) => return None,
            (Consumable::Job, _) if !place.master => return None,
            // How many slots an exclusive task has is all that is shown of it: TRUE is no quantity.
            (Consumable::Yes | Consumable::Job | Consumable::Host, true) => Amount::from_base(i64::from(place.slots)),
            (Consumable::Yes, false) => self.amount.times(place.slots),
            (Consumable::Job, false) => self.amount,
            (Consumable::Host, false) => self.amount.times(place.hosts),
        };
        let entry = Entry { level: place.level.clone(), attribute: self.attribute.clone(), amount };
        (amount > Amount::ZERO).then_some(entry)
    }
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

/// A request of a number, by the attribute's full name. Nothing is booked for what is unknown, a text or below zero.
fn numeric(complex: &Complex, request: &ResourceRequest) -> Option<(AttributeName, Amount)> {
    let attribute = complex.lookup(&request.name)?;
    let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
    Some((attribute.name.clone(), amount.max(Amount::ZERO)))
}
