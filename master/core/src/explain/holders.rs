//! Who has what a job waits for, and when it is given back.

use super::advice::wall;
use super::numbers::number;
use super::plain::ReasonWriter;
use crate::ledger::keys::{block_key, block_of};
use crate::ledger::timeline::NEVER;
use crate::ledger::{Ledger, Level, SLOTS};
use crate::reason::facts::ReasonSubject;
use crate::reason::{QuotaDenial, Reason, Value};
use crate::sched::expected_end;
use crate::state::State;
use proto::amount::{Amount, Type};
use proto::id::{AttributeName, PeName, TaskKey};
use proto::time::Wall;
use proto::wire::view::Holder;
use std::collections::BTreeSet;

/// Holders that are named with a reason.
const HOLDERS_SHOWN: usize = 5;

/// Holders of which those are shown that give the good back first. Where there are more, these are
/// the oldest.
const HOLDERS_COMPARED: u32 = 10_000;

/// A good that jobs or reservations hold.
enum HeldResource<'a> {
    Attribute {
        level: &'a Level,
        name: &'a str,
        r#type: Type,
    },
    PeSlots(&'a PeName),
    /// What a limit of a resource quota set counts.
    Quota(&'a QuotaDenial),
}

/// Returns the holders of the missing good, those first that give it back first, and how many there
/// are in all. The list is empty if others do not hold it.
pub(super) fn holders(state: &State, teller: &ReasonWriter<'_>, reason: &Reason) -> (Vec<Holder>, u32) {
    let Some(good) = good(teller, &reason.level, reason.what.facts().about) else {
        return (Vec::new(), 0);
    };
    // There may be very many, so what costs more than a comparison is done for those alone that are
    // shown, and no more than so many are compared.
    let mut first: BTreeSet<(bool, Option<Wall>, TaskKey, Amount)> = BTreeSet::new();
    let mut count: u32 = 0;
    let ledger = &teller.cluster.ledger;
    good.each(state, ledger, &mut |key, amount| {
        let Some(booking) = ledger.booking(key).filter(|_| amount > Amount::ZERO) else {
            return;
        };
        count = count.saturating_add(1);
        if count > HOLDERS_COMPARED {
            return;
        }
        let until = expected_end(teller.cluster.config, booking);
        let until = (until != NEVER && until > teller.now.tick).then(|| wall(teller.now, until));
        first.insert((until.is_none(), until, key, amount));
        if first.len() > HOLDERS_SHOWN {
            first.pop_last();
        }
    });
    let shown = first
        .into_iter()
        .map(|(_, until, key, amount)| holder(state, key, number(&Value::Amount(amount), good.r#type()), until));
    (shown.collect(), count)
}

impl HeldResource<'_> {
    /// Gives every booking that may hold the good to `found`, with its amount, which may be zero.
    fn each(&self, state: &State, ledger: &Ledger, found: &mut dyn FnMut(TaskKey, Amount)) {
        match self {
            HeldResource::Attribute { level, name, .. } => match level.host() {
                Some(host) => {
                    let blocks = state.reservations.keys().map(|id| block_key(*id));
                    for key in state.index.on_host(host).chain(blocks) {
                        ledger
                            .booking(key)
                            .into_iter()
                            .for_each(|booking| found(key, booking.amount(*level, *name)));
                    }
                }
                None => ledger
                    .takers_of_cluster(name)
                    .filter_map(|key| Some((key, ledger.booking(key)?)))
                    .for_each(|(key, booking)| found(key, booking.amount(*level, *name))),
            },
            HeldResource::PeSlots(pe) => ledger
                .takers_of_pe(pe)
                .filter_map(|key| Some((key, ledger.booking(key)?)))
                .for_each(|(key, booking)| {
                    found(key, Amount::from_base(i64::from(booking.slots_at(&Level::Global))));
                }),
            HeldResource::Quota(denial) => {
                let holders = ledger.quotas().holders(&denial.scope, &denial.attribute);
                holders.for_each(|(key, amount)| found(key, amount));
            }
        }
    }

    fn r#type(&self) -> Type {
        match self {
            HeldResource::Attribute { r#type, .. } => *r#type,
            HeldResource::PeSlots(_) => Type::Int,
            HeldResource::Quota(denial) => denial.r#type,
        }
    }
}

/// Returns the missing good if others hold it.
fn good<'a>(teller: &ReasonWriter<'_>, level: &'a Level, about: ReasonSubject<'a>) -> Option<HeldResource<'a>> {
    let is_exclusive = |name: &AttributeName| {
        let attribute = teller.cluster.config.complex.get(name);
        attribute.is_some_and(proto::complex::Attribute::is_exclusive)
    };
    let slots = HeldResource::Attribute {
        level,
        name: SLOTS,
        r#type: Type::Int,
    };
    match about {
        ReasonSubject::Shortage(shortage) if is_exclusive(&shortage.attribute) => Some(slots),
        ReasonSubject::Shortage(shortage) => {
            shortage.capacity?;
            Some(HeldResource::Attribute {
                level,
                name: shortage.attribute.as_str(),
                r#type: shortage.r#type,
            })
        }
        ReasonSubject::Slots(_) | ReasonSubject::Exclusive { is_asked: true, .. } => Some(slots),
        ReasonSubject::Exclusive {
            attribute,
            is_asked: false,
        } => Some(HeldResource::Attribute {
            level,
            name: attribute.as_str(),
            r#type: Type::Int,
        }),
        ReasonSubject::PeSlots { pe, of: Some(_), .. } => Some(HeldResource::PeSlots(pe)),
        ReasonSubject::Room(room) => good(teller, level, room.why.facts().about),
        ReasonSubject::Quota(denial) => denial.used.is_some().then_some(HeldResource::Quota(denial)),
        ReasonSubject::PeSlots { of: None, .. }
        | ReasonSubject::Nothing
        | ReasonSubject::Attribute(_)
        | ReasonSubject::Threshold(_) => None,
    }
}

fn holder(state: &State, key: TaskKey, amount: String, until: Option<Wall>) -> Holder {
    if let Some(id) = block_of(key) {
        let reservation = state.reservations.get(&id);
        let owner = reservation.map_or_else(String::new, |reservation| reservation.spec.owner.user.to_string());
        let until = reservation.map(|reservation| reservation.end);
        return Holder {
            reservation: Some(id),
            owner,
            amount,
            until,
            ..Holder::default()
        };
    }
    let job = state.jobs.get(&key.seq);
    Holder {
        job: job.map(|job| job.number),
        task: job.filter(|job| job.spec.array.is_some()).map(|_| key.task),
        reservation: None,
        owner: job.map_or_else(String::new, |job| job.spec.owner.user.to_string()),
        amount,
        until,
    }
}
