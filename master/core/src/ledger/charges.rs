//! What tasks with equal hard requests ask for and take, found out once for all of them.

use super::booking::Use;
use super::{At, SLOTS};
use proto::amount::Amount;
use proto::complex::{Attribute, Complex, Consumable};
use proto::id::AttributeName;
use proto::job::Requests;
use proto::request::ResourceRequest;
use serde::{Deserialize, Serialize};

/// Which slots of a parallel job something is asked for (`-scope`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Each slot.
    #[default]
    All,
    /// The master's alone.
    Master,
    /// Each that is not the master's.
    Slaves,
}

impl Whose {
    fn is_all(&self) -> bool {
        *self == Whose::All
    }
}

/// How often what a task asks for counts at a level, of an attribute of which it is charged nothing: a load value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// For each slot.
    EachSlot,
    /// Once. Where the master and its slaves ask apart, what the one asks for who asks for more: each is matched against all there is.
    Once,
}

/// The numbers in the hard requests of a task, and what it takes of consumables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// Numeric hard requests for each slot, by full name. None is negative.
    requested: Vec<(AttributeName, Amount)>,
    /// Those of the master and of the other slots apart. Their attributes are not among `requested`.
    apart: Vec<Asked>,
    /// What is taken of each consumable, `slots` first; none is zero. What the master takes of one stands before what the others take.
    taken: Vec<Taken>,
    /// What a task of one slot takes at each level, by name: it follows from `taken`.
    one_slot: Vec<(AttributeName, Amount)>,
}

/// A numeric hard request of the master, or of each other slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    attribute: AttributeName,
    whose: Whose,
    amount: Amount,
}

/// What a task takes of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) attribute: AttributeName,
    kind: Consumable,
    exclusive: bool,
    /// For each slot, or in all, as the kind says.
    amount: Amount,
    #[serde(default, skip_serializing_if = "Whose::is_all")]
    pub(super) whose: Whose,
}

impl Charges {
    /// What tasks with these hard requests take: what they ask for, else the defaults of consumables.
    pub fn new(complex: &Complex, requests: &Requests) -> Charges {
        let numbers = |list: &[ResourceRequest]| -> Vec<(AttributeName, Amount)> {
            list.iter().filter_map(|request| numeric(complex, request)).collect()
        };
        let of = |list, whose| {
            let asked = move |(attribute, amount)| Asked { attribute, whose, amount };
            numbers(list).into_iter().map(asked)
        };
        let apart = of(&requests.master, Whose::Master).chain(of(&requests.slaves, Whose::Slaves));
        Charges::of(complex, numbers(&requests.hard), apart.collect())
    }

    /// The same of requests that were read before, perhaps under another complex.
    pub(super) fn of(complex: &Complex, requested: Vec<(AttributeName, Amount)>, apart: Vec<Asked>) -> Charges {
        let slots = complex.lookup(SLOTS).map_or_else(|| SLOTS.into(), |attribute| attribute.name.clone());
        let (kind, exclusive, whose) = (Consumable::Yes, false, Whose::All);
        let mut taken = vec![Taken { attribute: slots, kind, exclusive, amount: Amount::from_base(1), whose }];
        for (attribute, default) in complex.consumables().filter(|(attribute, _)| attribute.name.as_str() != SLOTS) {
            let mut take = |whose, amount| {
                let (kind, exclusive) = (attribute.consumable, attribute.is_exclusive());
                let one = Taken { attribute: attribute.name.clone(), kind, exclusive, amount, whose };
                taken.extend((amount > Amount::ZERO).then_some(one));
            };
            let asked = requested.iter().find(|(name, _)| *name == attribute.name);
            if asked.is_some() || apart.iter().all(|asked| asked.attribute != attribute.name) {
                take(Whose::All, asked.map_or(default, |(_, amount)| *amount));
                continue;
            }
            for whose in [Whose::Master, Whose::Slaves] {
                let of = |asked: &&Asked| asked.attribute == attribute.name && asked.whose == whose;
                let asked = apart.iter().find(of).map(|asked| asked.amount);
                take(whose, asked.or(default_apart(attribute, default)).unwrap_or_default());
            }
        }
        Charges::stored(requested, apart, taken)
    }

    /// What was stored.
    pub(super) fn stored(requested: Vec<(AttributeName, Amount)>, apart: Vec<Asked>, taken: Vec<Taken>) -> Charges {
        let place = Use { at: At::Global, slots: 1, master: true, hosts: 1, slaves: 0, slave_hosts: 0 };
        let amounts = taken.iter().map(|taken| (taken.attribute.clone(), taken.at(&place)));
        let mut one_slot: Vec<_> = amounts.filter(|(_, amount)| *amount > Amount::ZERO).collect();
        one_slot.sort_by(|(one, _), (other, _)| one.cmp(other));
        Charges { requested, apart, taken, one_slot }
    }

    /// The numeric requests of the master and of the other slots apart.
    pub(super) fn requests_apart(&self) -> &[Asked] {
        &self.apart
    }

    /// Whether the master takes something else than the other slots do.
    pub(super) fn is_apart(&self) -> bool {
        !self.apart.is_empty()
    }

    /// What is asked for of a numeric attribute by the slots with which a task uses a level.
    pub(super) fn asked_at<N: ?Sized>(&self, place: &Use<'_>, attribute: &N, counted: Counted) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let each = self.requested.iter().find(|(name, _)| name == attribute);
        let each = each.map(|(_, amount)| (*amount, place.slots));
        let apart = self.apart.iter().filter(|asked| asked.attribute == *attribute).map(|asked| {
            let slots = if asked.whose == Whose::Master { u32::from(place.master) } else { place.slaves };
            (asked.amount, slots)
        });
        let all = each.into_iter().chain(apart);
        match counted {
            Counted::EachSlot => {
                all.map(|(amount, slots)| amount.times(slots)).fold(Amount::ZERO, Amount::saturating_add)
            }
            Counted::Once => all.map(|(amount, slots)| amount.times(slots.min(1))).max().unwrap_or_default(),
        }
    }

    /// The numeric requests for each slot.
    pub(super) fn requests(&self) -> &[(AttributeName, Amount)] {
        &self.requested
    }

    /// What is asked for of a numeric attribute, for each slot, or else for the master's.
    pub fn requested<N: ?Sized>(&self, attribute: &N) -> Option<Amount>
    where
        AttributeName: PartialEq<N>,
    {
        let each = self.requested.iter().find(|(name, _)| name == attribute).map(|(_, amount)| *amount);
        let of_master = |asked: &&Asked| asked.whose == Whose::Master && asked.attribute == *attribute;
        each.or_else(|| self.apart.iter().find(of_master).map(|asked| asked.amount))
    }

    /// What a task takes of an attribute with one slot, at each level.
    pub fn of_one_slot(&self, attribute: &AttributeName) -> Amount {
        let taken = self.one_slot.iter().find(|(name, _)| name == attribute);
        taken.map_or(Amount::ZERO, |(_, amount)| *amount)
    }

    /// The attributes of which something is asked for in numbers, or taken; some more than once.
    pub fn attributes(&self) -> impl Iterator<Item = &AttributeName> {
        let asked = self.requested.iter().map(|(name, _)| name).chain(self.apart.iter().map(|asked| &asked.attribute));
        asked.chain(self.taken.iter().map(|taken| &taken.attribute))
    }

    /// What a task takes with one slot, at each level, by name.
    pub(super) fn all_of_one_slot(&self) -> &[(AttributeName, Amount)] {
        &self.one_slot
    }

    /// What a task asks for of an attribute with one slot, as [`Booking::asked`](super::Booking::asked) has it.
    pub fn asked_for_one_slot(&self, attribute: &AttributeName) -> Amount {
        match self.of_one_slot(attribute) {
            Amount::ZERO => self.requested(attribute).unwrap_or(Amount::ZERO),
            amount => amount,
        }
    }

    /// What is taken of each consumable.
    pub(super) fn taken(&self) -> &[Taken] {
        &self.taken
    }
}

impl Taken {
    /// How much of it is taken at a level that a task uses so.
    pub(super) fn at(&self, place: &Use<'_>) -> Amount {
        let (slots, master, hosts) = match self.whose {
            Whose::All => (place.slots, place.master, place.hosts),
            Whose::Master => (u32::from(place.master), place.master, u32::from(place.master)),
            Whose::Slaves => (place.slaves, false, place.slave_hosts),
        };
        match (self.kind, self.exclusive) {
            (Consumable::No, _) => Amount::ZERO,
            (Consumable::Job, _) if !master => Amount::ZERO,
            // How many slots an exclusive task has is all that is shown of it: TRUE is no quantity.
            (Consumable::Yes | Consumable::Job | Consumable::Host, true) => Amount::from_base(i64::from(slots)),
            (Consumable::Yes, false) => self.amount.times(slots),
            (Consumable::Job, false) => self.amount,
            (Consumable::Host, false) => self.amount.times(hosts),
        }
    }
}

/// What a slot takes of a consumable for which only slots of the other kind ask: its default. What is charged once, for a job or a host, is
/// charged for those who ask alone.
pub fn default_apart(attribute: &Attribute, default: Amount) -> Option<Amount> {
    match attribute.consumable {
        Consumable::Yes => Some(default),
        Consumable::Job | Consumable::Host | Consumable::No => None,
    }
}

/// A request of a number, by the attribute's full name. Nothing is booked for what is unknown, a text or below zero.
fn numeric(complex: &Complex, request: &ResourceRequest) -> Option<(AttributeName, Amount)> {
    let attribute = complex.lookup(&request.name)?;
    let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
    Some((attribute.name.clone(), amount.max(Amount::ZERO)))
}
