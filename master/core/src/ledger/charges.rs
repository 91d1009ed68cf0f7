//! What tasks with equal hard requests ask for and take, found out once for all of them.

use super::booking::Use;
use super::{At, SLOTS};
use proto::amount::Amount;
use proto::complex::{Complex, Consumable};
use proto::id::AttributeName;
use proto::request::ResourceRequest;
use serde::{Deserialize, Serialize};

/// The numbers in the hard requests of a task, and what it takes of consumables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// Numeric hard requests for each slot, by full name. None is negative.
    requested: Vec<(AttributeName, Amount)>,
    /// What is taken of each consumable, `slots` first; none is zero.
    taken: Vec<Taken>,
}

/// What a task takes of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) attribute: AttributeName,
    kind: Consumable,
    exclusive: bool,
    /// For each slot, or in all, as the kind says.
    amount: Amount,
}

impl Charges {
    /// What tasks with these hard requests take: what they ask for, else the defaults of consumables.
    pub fn new(complex: &Complex, hard: &[ResourceRequest]) -> Charges {
        Charges::of(complex, hard.iter().filter_map(|request| numeric(complex, request)).collect())
    }

    /// The same of requests that were read before, perhaps under another complex.
    pub(super) fn of(complex: &Complex, requested: Vec<(AttributeName, Amount)>) -> Charges {
        let slots = complex.lookup(SLOTS).map_or_else(|| SLOTS.into(), |attribute| attribute.name.clone());
        let one = Taken { attribute: slots, kind: Consumable::Yes, exclusive: false, amount: Amount::from_base(1) };
        let mut taken = vec![one];
        for (attribute, default) in complex.consumables().filter(|(attribute, _)| attribute.name.as_str() != SLOTS) {
            let asked = requested.iter().find(|(name, _)| *name == attribute.name);
            let amount = asked.map_or(default, |(_, amount)| *amount);
            if amount > Amount::ZERO {
                let (kind, exclusive) = (attribute.consumable, attribute.is_exclusive());
                taken.push(Taken { attribute: attribute.name.clone(), kind, exclusive, amount });
            }
        }
        Charges { requested, taken }
    }

    /// What was stored.
    pub(super) fn stored(requested: Vec<(AttributeName, Amount)>, taken: Vec<Taken>) -> Charges {
        Charges { requested, taken }
    }

    /// The numeric requests for each slot.
    pub(super) fn requests(&self) -> &[(AttributeName, Amount)] {
        &self.requested
    }

    /// What is asked for of a numeric attribute, for each slot.
    pub fn requested<N: ?Sized>(&self, attribute: &N) -> Option<Amount>
    where
        AttributeName: PartialEq<N>,
    {
        self.requested.iter().find(|(name, _)| name == attribute).map(|(_, amount)| *amount)
    }

    /// What a task takes of an attribute with one slot, at each level.
    pub fn of_one_slot(&self, attribute: &AttributeName) -> Amount {
        let one_slot = Use { at: At::Global, slots: 1, master: true, hosts: 1 };
        let taken = self.taken.iter().find(|taken| taken.attribute == *attribute);
        taken.map_or(Amount::ZERO, |taken| taken.at(&one_slot))
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
        match (self.kind, self.exclusive) {
            (Consumable::No, _) => Amount::ZERO,
            (Consumable::Job, _) if !place.master => Amount::ZERO,
            // How many slots an exclusive task has is all that is shown of it: TRUE is no quantity.
            (Consumable::Yes | Consumable::Job | Consumable::Host, true) => Amount::from_base(i64::from(place.slots)),
            (Consumable::Yes, false) => self.amount.times(place.slots),
            (Consumable::Job, false) => self.amount,
            (Consumable::Host, false) => self.amount.times(place.hosts),
        }
    }
}

/// A request of a number, by the attribute's full name. Nothing is booked for what is unknown, a text or below zero.
fn numeric(complex: &Complex, request: &ResourceRequest) -> Option<(AttributeName, Amount)> {
    let attribute = complex.lookup(&request.name)?;
    let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
    Some((attribute.name.clone(), amount.max(Amount::ZERO)))
}
