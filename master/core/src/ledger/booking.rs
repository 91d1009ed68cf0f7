//! The booking of one placed task: what it takes at each level.

use super::charges::{AttributeCharge, Charges, NumericRequest, RequestScope};
use super::{CountRule, Level, LevelRef};
use crate::config::Configuration;
use crate::ledger::quota::JobOwner;
use proto::amount::{Amount, Type};
use proto::binding::HostBinding;
use proto::complex::Complex;
use proto::id::{AttributeName, HostName, PeName, QueueInstanceName};
use proto::job::GrantedSlots;
use proto::rsmap::GrantedIds;
use proto::time::Tick;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one task takes, with the requests behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredBooking", into = "StoredBooking")]
pub struct Booking {
    at: Tick,
    charges: Arc<Charges>,
    /// Its slots, the master first, each instance once.
    granted: Box<[GrantedSlots]>,
    // Most tasks have only the fields above, and there are many tasks.
    pe: Option<Box<PeUse>>,
    ids: Option<Box<Ids>>,
    /// The owner, for quotas. `None` only for tasks that were stored before owners were.
    who: Option<Arc<JobOwner>>,
}

/// The units with names that a task has: ids of resource maps, and cores.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ids {
    maps: Vec<GrantedIds>,
    cores: Vec<HostBinding>,
    /// The amounts of attributes of which it has ids. They count, whatever is charged.
    held: Vec<Entry>,
}

impl Ids {
    fn new(maps: Vec<GrantedIds>, mut cores: Vec<HostBinding>, held: Vec<Entry>) -> Option<Box<Ids>> {
        cores.retain(|binding| binding.bound().is_some());
        let has_any = !maps.is_empty() || !cores.is_empty();
        has_any.then(|| Box::new(Ids { maps, cores, held }))
    }
}

/// A booking as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredBooking {
    at: Tick,
    requested: Vec<(AttributeName, Amount)>,
    /// Empty for a task that was stored before it was kept; [`super::Ledger::rebook`] computes it.
    #[serde(default)]
    taken: Vec<AttributeCharge>,
    granted: Vec<GrantedSlots>,
    pe: Option<PeUse>,
    #[serde(default)]
    maps: Vec<GrantedIds>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cores: Vec<HostBinding>,
    #[serde(default)]
    held: Vec<Entry>,
    #[serde(default)]
    who: Option<Arc<JobOwner>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requested_apart: Vec<NumericRequest>,
}

impl From<StoredBooking> for Booking {
    fn from(stored: StoredBooking) -> Booking {
        let StoredBooking {
            at,
            requested,
            taken,
            granted,
            pe,
            maps,
            cores,
            held,
            who,
            requested_apart,
        } = stored;
        let charges = Arc::new(Charges::stored(requested, requested_apart, taken));
        Booking {
            at,
            charges,
            granted: granted.into(),
            pe: pe.map(Box::new),
            ids: Ids::new(maps, cores, held),
            who,
        }
    }
}

impl From<Booking> for StoredBooking {
    fn from(booking: Booking) -> StoredBooking {
        let Booking {
            at,
            charges,
            granted,
            pe,
            ids,
            who,
        } = booking;
        let (maps, cores, held) = ids.map_or_else(Default::default, |ids| (ids.maps, ids.cores, ids.held));
        let (granted, pe) = (granted.into(), pe.map(|pe| *pe));
        let (requested, taken) = (charges.requests().to_vec(), charges.taken().to_vec());
        let requested_apart = charges.requests_apart().to_vec();
        StoredBooking {
            at,
            requested,
            taken,
            granted,
            pe,
            maps,
            cores,
            held,
            who,
            requested_apart,
        }
    }
}

/// The parallel environment of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeUse {
    /// The environment.
    pub name: PeName,
    /// Whether the master is not a task of it, and takes one more slot where it runs.
    pub extra_master_slot: bool,
    /// Whether slots on the master's host are spared what only slaves request
    /// (`ign_sreq_on_mhost`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub spares_companions: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// An amount that is taken at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where.
    pub level: Level,
    /// Of what.
    pub attribute: AttributeName,
    /// How much: above zero, in the base unit of the attribute's type. Slots for an exclusive
    /// attribute.
    pub amount: Amount,
}

/// How a task uses one level.
pub(super) struct LevelUse<'a> {
    pub(super) at: LevelRef<'a>,
    pub(super) slots: u32,
    /// Whether the master is in it.
    pub(super) master: bool,
    /// How often a HOST consumable is charged here.
    pub(super) hosts: u32,
    /// The slots here to which requests of slaves apply. This and `slave_hosts` are not counted for
    /// a job without such requests.
    pub(super) slaves: u32,
    /// How often a HOST consumable that slaves request is charged here.
    pub(super) slave_hosts: u32,
}

/// The slots and ids that were given to a task.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// Its slots, the master's first.
    pub slots: &'a [GrantedSlots],
    /// Its parallel environment, if any.
    pub pe: Option<&'a PeName>,
    /// The ids that it has of resource maps.
    pub maps: &'a [GrantedIds],
    /// What came of its request for cores.
    pub binding: &'a [HostBinding],
}

impl<'a> Grant<'a> {
    /// Slots without ids, as they are planned.
    pub fn of_slots(slots: &'a [GrantedSlots], pe: Option<&'a PeName>) -> Grant<'a> {
        Grant {
            slots,
            pe,
            maps: &[],
            binding: &[],
        }
    }
}

impl Booking {
    /// The booking of a task with these hard requests, for the slots that it got at `at`.
    pub fn new(config: &Configuration, charges: Arc<Charges>, grant: Grant<'_>, at: Tick) -> Booking {
        let pe = grant.pe.map(|name| {
            let pe = config.pes.get(name);
            Box::new(PeUse {
                name: name.clone(),
                extra_master_slot: pe.is_some_and(|pe| !pe.job_is_first_task.0),
                spares_companions: pe.is_some_and(|pe| pe.ign_sreq_on_mhost.0),
            })
        });
        let mut granted = merged(grant.slots);
        if pe.as_ref().is_some_and(|pe| pe.extra_master_slot)
            && let Some(master) = granted.first_mut()
        {
            master.slots += 1;
        }
        let held = held(&config.complex, grant.maps);
        let ids = Ids::new(grant.maps.to_vec(), grant.binding.to_vec(), held);
        Booking {
            at,
            charges,
            granted: granted.into(),
            pe,
            ids,
            who: None,
        }
    }

    /// The booking under another complex.
    pub fn rebooked(self, complex: &Complex) -> Booking {
        let charges = &self.charges;
        let charges = Charges::from_requests(complex, charges.requests().to_vec(), charges.requests_apart().to_vec());
        let held = held(complex, self.maps());
        let ids = self.ids.and_then(|ids| Ids::new(ids.maps, ids.cores, held));
        Booking {
            charges: Arc::new(charges),
            ids,
            ..self
        }
    }

    /// The booking with its owner.
    pub fn with_owner(self, who: Arc<JobOwner>) -> Booking {
        Booking { who: Some(who), ..self }
    }

    /// The owner of the task when it was placed, if that is known.
    pub fn who(&self) -> Option<&Arc<JobOwner>> {
        self.who.as_ref()
    }

    /// The charges of tasks with the same requests.
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
    pub fn entries_at(&self, level: LevelRef<'_>) -> Vec<Entry> {
        self.use_at(level)
            .map_or_else(Vec::new, |place| self.entries_of(&place))
    }

    fn entries_of(&self, place: &LevelUse<'_>) -> Vec<Entry> {
        let level = place.at.to_level();
        let mut entries = Vec::new();
        self.each_at(place, |attribute, amount| {
            entries.push(Entry {
                level: level.clone(),
                attribute: attribute.clone(),
                amount,
            });
        });
        entries
    }

    /// What the task takes in each of its queue instances, by attribute.
    pub fn in_instances(&self) -> Vec<(&QueueInstanceName, Vec<(AttributeName, Amount)>)> {
        let mut instances = Vec::with_capacity(self.granted.len());
        for place in self.uses() {
            let LevelRef::Instance(instance) = place.at else {
                continue;
            };
            let mut taken = Vec::new();
            self.each_at(&place, |attribute, amount| taken.push((attribute.clone(), amount)));
            instances.push((instance, taken));
        }
        instances
    }

    /// What the task takes at each of its levels, by name, if that is the same everywhere: it has
    /// one slot and no ids.
    pub(super) fn alike(&self) -> Option<&[(AttributeName, Amount)]> {
        let is_one = matches!(*self.granted, [GrantedSlots { slots: 1, .. }]) && self.held().is_empty();
        is_one.then(|| self.charges.all_of_one_slot())
    }

    /// Calls back with what the task takes at a level, each attribute once.
    pub(super) fn each_at(&self, place: &LevelUse<'_>, mut tell: impl FnMut(&AttributeName, Amount)) {
        let held = || {
            self.held()
                .iter()
                .filter(|entry| LevelRef::from(&entry.level) == place.at)
        };
        let mut all = self.charges.taken().iter().peekable();
        while let Some(taken) = all.next() {
            let mut amount = taken.at(place);
            // The amount of the other slots follows that of the master.
            if let Some(more) =
                all.next_if(|next| next.whose == RequestScope::Slaves && next.attribute == taken.attribute)
            {
                amount = amount.saturating_add(more.at(place));
            }
            if amount > Amount::ZERO && !held().any(|entry| entry.attribute == taken.attribute) {
                tell(&taken.attribute, amount);
            }
        }
        held().for_each(|entry| tell(&entry.attribute, entry.amount));
    }

    /// Whether the task takes any of these attributes at a level.
    pub fn takes_any<'l>(&self, level: impl Into<LevelRef<'l>>, of: &BTreeSet<AttributeName>) -> bool {
        let level = level.into();
        let held = self.held().iter().map(|entry| &entry.attribute);
        let taken = held.chain(self.charges.taken().iter().map(|taken| &taken.attribute));
        taken
            .filter(|attribute| of.contains(*attribute))
            .any(|attribute| self.amount(level, attribute) > Amount::ZERO)
    }

    /// How much of a consumable the task takes at a level.
    pub fn amount<'l, N: ?Sized>(&self, level: impl Into<LevelRef<'l>>, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let level = level.into();
        let of_ids = |entry: &&Entry| entry.attribute == *attribute && LevelRef::from(&entry.level) == level;
        if let Some(entry) = self.held().iter().find(of_ids) {
            return entry.amount;
        }
        let all = self.charges.taken();
        let Some(first) = all.iter().position(|taken| taken.attribute == *attribute) else {
            return Amount::ZERO;
        };
        let Some(place) = self.use_at(level) else {
            return Amount::ZERO;
        };
        let more = all
            .get(first + 1)
            .filter(|next| next.whose == RequestScope::Slaves && next.attribute == *attribute);
        let amount = all[first].at(&place);
        more.map_or(amount, |more| amount.saturating_add(more.at(&place)))
    }

    /// The task's request for a numeric attribute, per slot.
    pub fn requested<N: ?Sized>(&self, attribute: &N) -> Option<Amount>
    where
        AttributeName: PartialEq<N>,
    {
        self.charges.requested(attribute)
    }

    /// The task's slots, the master first.
    pub fn granted(&self) -> &[GrantedSlots] {
        &self.granted
    }

    /// Its parallel environment, if any.
    pub fn pe(&self) -> Option<&PeName> {
        self.pe.as_ref().map(|pe| &pe.name)
    }

    /// The ids that it has of resource maps.
    pub fn maps(&self) -> &[GrantedIds] {
        self.ids.as_ref().map_or(&[], |ids| &ids.maps)
    }

    /// The cores that it has, on each host where it is bound.
    pub fn cores(&self) -> &[HostBinding] {
        self.ids.as_ref().map_or(&[], |ids| &ids.cores)
    }

    fn held(&self) -> &[Entry] {
        self.ids.as_ref().map_or(&[], |ids| &ids.held)
    }

    /// The task's slots at a level.
    pub fn slots_at<'l>(&self, level: impl Into<LevelRef<'l>>) -> u32 {
        match level.into() {
            LevelRef::Global => self.slots(|_| true),
            LevelRef::Host(host) => self.slots(|instance| instance.host == *host),
            LevelRef::Instance(instance) => self.slots(|known| known == instance),
        }
    }

    /// How much of a numeric attribute the task takes at a level; or what it requested there, if it
    /// is charged nothing.
    pub fn asked<'l, N: ?Sized>(&self, level: impl Into<LevelRef<'l>>, attribute: &N, counted: CountRule) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let level = level.into();
        match self.amount(level, attribute) {
            Amount::ZERO => {
                let asked = |place| self.charges.asked_at(&place, attribute, counted);
                self.use_at(level).map_or(Amount::ZERO, asked)
            }
            amount => amount,
        }
    }

    /// The levels of the task, with its use of each: global, each host, each instance.
    pub(super) fn uses(&self) -> impl Iterator<Item = LevelUse<'_>> {
        let (single, several) = match &*self.granted {
            [GrantedSlots { instance, slots }] => {
                let levels = [
                    LevelRef::Global,
                    LevelRef::Host(&instance.host),
                    LevelRef::Instance(instance),
                ];
                let slaves = self.slaves_among(0, *slots);
                let slave_hosts = u32::from(slaves > 0);
                let whole = levels.map(|at| LevelUse {
                    at,
                    slots: *slots,
                    master: true,
                    hosts: 1,
                    slaves,
                    slave_hosts,
                });
                (Some(whole), Vec::new())
            }
            _ => (None, self.uses_of_several()),
        };
        single.into_iter().flatten().chain(several)
    }

    fn uses_of_several(&self) -> Vec<LevelUse<'_>> {
        let mut hosts: BTreeMap<&HostName, LevelUse<'_>> = BTreeMap::new();
        let mut instances = Vec::with_capacity(self.granted.len());
        for (index, GrantedSlots { instance, slots }) in self.granted.iter().enumerate() {
            let (master, slaves) = (index == 0, self.slaves_among(index, *slots));
            let none = LevelUse {
                at: LevelRef::Host(&instance.host),
                slots: 0,
                master,
                hosts: 1,
                slaves: 0,
                slave_hosts: 0,
            };
            let host = hosts.entry(&instance.host).or_insert(none);
            let is_first = u32::from(host.slots == 0);
            let slave_hosts = u32::from(host.slaves == 0 && slaves > 0);
            host.slots += slots;
            host.slaves += slaves;
            host.slave_hosts = u32::from(host.slaves > 0);
            let at = LevelRef::Instance(instance);
            instances.push(LevelUse {
                at,
                slots: *slots,
                master,
                hosts: is_first,
                slaves,
                slave_hosts,
            });
        }
        let global = self.use_at(LevelRef::Global);
        global.into_iter().chain(hosts.into_values()).chain(instances).collect()
    }

    /// How the task uses a level, if it does.
    fn use_at<'a>(&self, at: LevelRef<'a>) -> Option<LevelUse<'a>> {
        let first = self.granted.first()?;
        let (slots, master, hosts) = match at {
            LevelRef::Global => (self.slots(|_| true), true, self.hosts()),
            LevelRef::Host(host) => (self.slots(|known| known.host == *host), first.instance.host == *host, 1),
            LevelRef::Instance(instance) => {
                let is_first = u32::from(self.is_first_on_host(instance));
                (
                    self.slots(|known| known == instance),
                    first.instance == *instance,
                    is_first,
                )
            }
        };
        let (slaves, slave_hosts) = if self.charges.is_apart() {
            self.slaves_at(at)
        } else {
            (0, 0)
        };
        (slots > 0).then_some(LevelUse {
            at,
            slots,
            master,
            hosts,
            slaves,
            slave_hosts,
        })
    }

    /// The number of slots, among those in one of its queue instances, to which requests of slaves
    /// apply.
    fn slaves_among(&self, index: usize, slots: u32) -> u32 {
        let is_spared = || {
            let of_master = self.granted.first().map(|master| &master.instance.host);
            self.pe.as_ref().is_some_and(|pe| pe.spares_companions)
                && of_master == self.granted.get(index).map(|granted| &granted.instance.host)
        };
        match (self.charges.is_apart(), index) {
            (false, _) => 0,
            (true, _) if is_spared() => 0,
            (true, 0) => slots.saturating_sub(1),
            (true, _) => slots,
        }
    }

    /// The slots at a level to which requests of slaves apply, and the hosts for which these count
    /// there.
    fn slaves_at(&self, at: LevelRef<'_>) -> (u32, u32) {
        let (mut slots, mut hosts) = (0, BTreeSet::new());
        for (index, granted) in self.granted.iter().enumerate() {
            let slaves = self.slaves_among(index, granted.slots);
            let is_first = slaves > 0 && hosts.insert(&granted.instance.host);
            match at {
                LevelRef::Global => slots += slaves,
                LevelRef::Host(host) if granted.instance.host == *host => slots += slaves,
                LevelRef::Instance(instance) if granted.instance == *instance => return (slaves, u32::from(is_first)),
                LevelRef::Host(_) | LevelRef::Instance(_) => {}
            }
        }
        let hosts =
            u32::try_from(hosts.len()).expect("a task has fewer hosts than slots, which are counted in 32 bits");
        (
            slots,
            if at == LevelRef::Global {
                hosts
            } else {
                u32::from(slots > 0)
            },
        )
    }

    fn slots(&self, counts: impl Fn(&QueueInstanceName) -> bool) -> u32 {
        self.granted
            .iter()
            .filter(|granted| counts(&granted.instance))
            .map(|granted| granted.slots)
            .sum()
    }

    /// How many hosts it has.
    fn hosts(&self) -> u32 {
        let count = match &*self.granted {
            [_] => 1,
            several => several
                .iter()
                .map(|granted| &granted.instance.host)
                .collect::<BTreeSet<_>>()
                .len(),
        };
        u32::try_from(count).expect("a task has fewer hosts than slots, which are counted in 32 bits")
    }

    fn is_first_on_host(&self, instance: &QueueInstanceName) -> bool {
        let first = self
            .granted
            .iter()
            .find(|granted| granted.instance.host == instance.host);
        first.is_some_and(|granted| granted.instance == *instance)
    }
}

/// A task has as much of a resource map as it has ids, however the map is charged now: an id is
/// never free while a task has it.
fn held(complex: &Complex, maps: &[GrantedIds]) -> Vec<Entry> {
    let is_map = |name: &str| {
        complex
            .lookup(name)
            .is_some_and(|attribute| attribute.r#type == Type::RsMap)
    };
    let maps = maps.iter().filter(|map| is_map(map.attribute.as_str()));
    let entry = |map: &GrantedIds| {
        let amount = Amount::from_base(i64::try_from(map.ids.len()).expect("a map has at most IDS_MAX ids"));
        Entry {
            level: Level::of_host(&map.host),
            attribute: map.attribute.clone(),
            amount,
        }
    };
    maps.map(entry).collect()
}

/// The slots with each instance once, in the order of first mention.
fn merged(granted: &[GrantedSlots]) -> Vec<GrantedSlots> {
    let mut once: Vec<GrantedSlots> = Vec::with_capacity(granted.len());
    for part in granted {
        match once.iter_mut().find(|known| known.instance == part.instance) {
            Some(known) => known.slots += part.slots,
            None => once.push(part.clone()),
        }
    }
    once
}
