//! The charges of tasks with equal hard requests, computed once for all of them.

use super::booking::LevelUse;
use super::{LevelRef, SLOTS};
use proto::amount::Amount;
use proto::complex::{Attribute, Complex, Consumable};
use proto::id::AttributeName;
use proto::job::Requests;
use proto::request::ResourceRequest;
use serde::{Deserialize, Serialize};

/// The slots of a parallel job that a request is for (`-scope`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestScope {
    /// Each slot.
    #[default]
    All,
    /// The master's alone.
    Master,
    /// Each slot except the master's.
    Slaves,
}

impl RequestScope {
    fn is_all(&self) -> bool {
        *self == RequestScope::All
    }
}

/// How often a task's request counts at a level, for an attribute that it is not charged for: a
/// load value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountRule {
    /// For each slot.
    EachSlot,
    /// Once. Of separate requests of master and slaves the larger counts: each is matched against
    /// everything there is.
    Once,
}

/// The numbers in the hard requests of a task, and what it takes of consumables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// Numeric hard requests for each slot, by full name. None is negative.
    requested: Vec<(AttributeName, Amount)>,
    /// Separate requests of the master and of the other slots. Their attributes are not in
    /// `requested`.
    apart: Vec<NumericRequest>,
    /// The amount of each consumable, `slots` first; none is zero. The amount of the master comes
    /// before that of the others.
    taken: Vec<AttributeCharge>,
    /// What a task of one slot takes at each level, by name. It follows from `taken`.
    one_slot: Vec<(AttributeName, Amount)>,
}

/// A numeric hard request of the master, or of each other slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NumericRequest {
    attribute: AttributeName,
    whose: RequestScope,
    amount: Amount,
}

/// What a task takes of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttributeCharge {
    pub(super) attribute: AttributeName,
    kind: Consumable,
    exclusive: bool,
    /// Per slot, or in all, as the kind says.
    amount: Amount,
    #[serde(default, skip_serializing_if = "RequestScope::is_all")]
    pub(super) whose: RequestScope,
}

impl Charges {
    /// The charges of tasks with these hard requests: the requests, else the defaults of
    /// consumables.
    pub fn new(complex: &Complex, requests: &Requests) -> Charges {
        let numbers = |list: &[ResourceRequest]| -> Vec<(AttributeName, Amount)> {
            list.iter().filter_map(|request| numeric(complex, request)).collect()
        };
        let of = |list, whose| {
            let asked = move |(attribute, amount)| NumericRequest {
                attribute,
                whose,
                amount,
            };
            numbers(list).into_iter().map(asked)
        };
        let apart = of(&requests.master, RequestScope::Master).chain(of(&requests.slaves, RequestScope::Slaves));
        Charges::from_requests(complex, numbers(&requests.hard), apart.collect())
    }

    /// The charges of requests that were read before, perhaps under another complex. Bookings of
    /// earlier versions may name an attribute twice: the later request holds, as it does in the
    /// form in which requests are kept.
    pub(super) fn from_requests(
        complex: &Complex,
        mut requested: Vec<(AttributeName, Amount)>,
        mut apart: Vec<NumericRequest>,
    ) -> Charges {
        keep_last(&mut requested, |(one, _), (other, _)| one == other);
        keep_last(&mut apart, |one, other| {
            (&one.attribute, one.whose) == (&other.attribute, other.whose)
        });
        let slots = complex
            .lookup(SLOTS)
            .map_or_else(|| SLOTS.into(), |attribute| attribute.name.clone());
        let (kind, exclusive, whose) = (Consumable::Yes, false, RequestScope::All);
        let mut taken = vec![AttributeCharge {
            attribute: slots,
            kind,
            exclusive,
            amount: Amount::from_base(1),
            whose,
        }];
        for (attribute, default) in complex
            .consumables()
            .filter(|(attribute, _)| attribute.name.as_str() != SLOTS)
        {
            let mut take = |whose, amount| {
                let (kind, exclusive) = (attribute.consumable, attribute.is_exclusive());
                let one = AttributeCharge {
                    attribute: attribute.name.clone(),
                    kind,
                    exclusive,
                    amount,
                    whose,
                };
                taken.extend((amount > Amount::ZERO).then_some(one));
            };
            let asked = requested.iter().find(|(name, _)| *name == attribute.name);
            if asked.is_some() || apart.iter().all(|asked| asked.attribute != attribute.name) {
                take(RequestScope::All, asked.map_or(default, |(_, amount)| *amount));
                continue;
            }
            for whose in [RequestScope::Master, RequestScope::Slaves] {
                let of = |asked: &&NumericRequest| asked.attribute == attribute.name && asked.whose == whose;
                let asked = apart.iter().find(of).map(|asked| asked.amount);
                take(whose, asked.or(default_apart(attribute, default)).unwrap_or_default());
            }
        }
        Charges::stored(requested, apart, taken)
    }

    /// Stored charges.
    pub(super) fn stored(
        requested: Vec<(AttributeName, Amount)>,
        apart: Vec<NumericRequest>,
        taken: Vec<AttributeCharge>,
    ) -> Charges {
        let place = LevelUse {
            at: LevelRef::Global,
            slots: 1,
            master: true,
            hosts: 1,
            slaves: 0,
            slave_hosts: 0,
        };
        let amounts = taken.iter().map(|taken| (taken.attribute.clone(), taken.at(&place)));
        let mut one_slot: Vec<_> = amounts.filter(|(_, amount)| *amount > Amount::ZERO).collect();
        one_slot.sort_by(|(one, _), (other, _)| one.cmp(other));
        Charges {
            requested,
            apart,
            taken,
            one_slot,
        }
    }

    /// The separate numeric requests of the master and of the other slots.
    pub(super) fn requests_apart(&self) -> &[NumericRequest] {
        &self.apart
    }

    /// Whether the master takes something else than the other slots do.
    pub(super) fn is_apart(&self) -> bool {
        !self.apart.is_empty()
    }

    /// The request for a numeric attribute by the slots with which a task uses a level.
    pub(super) fn asked_at<N: ?Sized>(&self, place: &LevelUse<'_>, attribute: &N, counted: CountRule) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        let each = self.requested.iter().find(|(name, _)| name == attribute);
        let each = each.map(|(_, amount)| (*amount, place.slots));
        let apart = self
            .apart
            .iter()
            .filter(|asked| asked.attribute == *attribute)
            .map(|asked| {
                let slots = if asked.whose == RequestScope::Master {
                    u32::from(place.master)
                } else {
                    place.slaves
                };
                (asked.amount, slots)
            });
        let all = each.into_iter().chain(apart);
        match counted {
            CountRule::EachSlot => all
                .map(|(amount, slots)| amount.times(slots))
                .fold(Amount::ZERO, Amount::saturating_add),
            CountRule::Once => all
                .map(|(amount, slots)| amount.times(slots.min(1)))
                .max()
                .unwrap_or_default(),
        }
    }

    /// The numeric requests per slot.
    pub(super) fn requests(&self) -> &[(AttributeName, Amount)] {
        &self.requested
    }

    /// The request for a numeric attribute per slot, else of the master's slot.
    pub fn requested<N: ?Sized>(&self, attribute: &N) -> Option<Amount>
    where
        AttributeName: PartialEq<N>,
    {
        let each = self
            .requested
            .iter()
            .find(|(name, _)| name == attribute)
            .map(|(_, amount)| *amount);
        let of_master = |asked: &&NumericRequest| asked.whose == RequestScope::Master && asked.attribute == *attribute;
        each.or_else(|| self.apart.iter().find(of_master).map(|asked| asked.amount))
    }

    /// What a task takes of an attribute with one slot, at each level.
    pub fn of_one_slot(&self, attribute: &AttributeName) -> Amount {
        let taken = self.one_slot.iter().find(|(name, _)| name == attribute);
        taken.map_or(Amount::ZERO, |(_, amount)| *amount)
    }

    /// The attributes that are requested in numbers, or taken. Some come more than once.
    pub fn attributes(&self) -> impl Iterator<Item = &AttributeName> {
        let asked = self
            .requested
            .iter()
            .map(|(name, _)| name)
            .chain(self.apart.iter().map(|asked| &asked.attribute));
        asked.chain(self.taken.iter().map(|taken| &taken.attribute))
    }

    /// What a task takes with one slot, at each level, by name.
    pub(super) fn all_of_one_slot(&self) -> &[(AttributeName, Amount)] {
        &self.one_slot
    }

    /// The request of a task with one slot for an attribute, in the sense of
    /// [`Booking::asked`](super::Booking::asked).
    pub fn asked_for_one_slot(&self, attribute: &AttributeName) -> Amount {
        match self.of_one_slot(attribute) {
            Amount::ZERO => self.requested(attribute).unwrap_or(Amount::ZERO),
            amount => amount,
        }
    }

    /// The amount of each consumable.
    pub(super) fn taken(&self) -> &[AttributeCharge] {
        &self.taken
    }
}

impl AttributeCharge {
    /// How much is taken at a level that a task uses so.
    pub(super) fn at(&self, place: &LevelUse<'_>) -> Amount {
        let (slots, master, hosts) = match self.whose {
            RequestScope::All => (place.slots, place.master, place.hosts),
            RequestScope::Master => (u32::from(place.master), place.master, u32::from(place.master)),
            RequestScope::Slaves => (place.slaves, false, place.slave_hosts),
        };
        match (self.kind, self.exclusive) {
            (Consumable::No, _) => Amount::ZERO,
            (Consumable::Job, _) if !master => Amount::ZERO,
            // For an exclusive task the number of slots is all that is shown: TRUE is not a
            // quantity.
            (Consumable::Yes | Consumable::Job | Consumable::Host, true) => Amount::from_base(i64::from(slots)),
            (Consumable::Yes, false) => self.amount.times(slots),
            (Consumable::Job, false) => self.amount,
            (Consumable::Host, false) => self.amount.times(hosts),
        }
    }
}

/// What a slot takes of a consumable that only slots of the other kind request: its default. A
/// charge per job or host is only for slots that request it.
pub fn default_apart(attribute: &Attribute, default: Amount) -> Option<Amount> {
    match attribute.consumable {
        Consumable::Yes => Some(default),
        Consumable::Job | Consumable::Host | Consumable::No => None,
    }
}

/// A numeric request, by the attribute's full name. Unknown attributes, texts and negative numbers
/// are not booked.
/// Takes out what is like something later in the list.
fn keep_last<T>(list: &mut Vec<T>, is_alike: impl Fn(&T, &T) -> bool) {
    let mut at = 0;
    while at < list.len() {
        match list[at + 1..].iter().any(|later| is_alike(&list[at], later)) {
            true => drop(list.remove(at)),
            false => at += 1,
        }
    }
}

fn numeric(complex: &Complex, request: &ResourceRequest) -> Option<(AttributeName, Amount)> {
    let attribute = complex.lookup(&request.name)?;
    let amount = Amount::parse(request.value.as_deref().unwrap_or("TRUE"), attribute.r#type).ok()?;
    Some((attribute.name.clone(), amount.max(Amount::ZERO)))
}
