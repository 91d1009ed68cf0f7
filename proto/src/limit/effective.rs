//! Which limits are in force for a task on a host (ALGORITHMS.md section 12).

use super::{BoundKind, Bounds, LimitKind, LimitSet};
use crate::amount::Amount;
use crate::complex::{Attribute, Complex, Consumable};
use crate::id::AttributeName;
use crate::request::ResolvedRequest;
use std::collections::BTreeSet;

/// What one queue instance of the host gives a task.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The limits that the queue configures there. INFINITY sets no limit.
    pub queue: &'a LimitSet,
    /// The consumables with a capacity at this instance, its host or the cluster: only their
    /// defaults count.
    pub managed: &'a BTreeSet<AttributeName>,
    /// The slots of the task in this instance, at least one.
    pub slots: u32,
}

/// The limits of a task on one host.
///
/// For each attribute the hard request counts; else the default of a managed consumable, unless it
/// is 0; else the queue's limit, unless it is INFINITY. Floors come first, then the value is
/// multiplied by the slots, except for kinds that hold for the task as a whole and for JOB and HOST
/// consumables. Several instances on the host add up what holds for a slot and take the least of
/// what does not. A soft limit is lowered to its hard one, and is the hard one where there is no
/// other. `params` are the limits of `execd_params`, which hold for each slot too.
pub fn effective(complex: &Complex, requests: &[ResolvedRequest], grants: &[Grant<'_>], params: &LimitSet) -> LimitSet {
    let mut limits = LimitSet::default();
    for kind in LimitKind::ATTRIBUTES {
        let in_force = |bound| on_host(kind, kind.name(bound), bound, complex, requests, grants);
        limits.set(kind, ordered(in_force(BoundKind::Soft), in_force(BoundKind::Hard)));
    }
    let slots = grants.iter().fold(0u32, |sum, grant| sum.saturating_add(grant.slots));
    for kind in LimitKind::PARAMS {
        let Bounds { soft, hard } = params.get(kind);
        let scaled = |amount| bounded(kind, amount, slots.max(1));
        // One alone counts for both.
        limits.set(kind, ordered(soft.or(hard).map(scaled), hard.or(soft).map(scaled)));
    }
    limits
}

/// The limits of a task that has slots of two kinds on one host, each kind with limits of its own:
/// what holds for a slot adds up, but for the attributes that are `alone`; of these and of the rest
/// those of `own` are in force.
pub fn together(complex: &Complex, own: &LimitSet, others: &LimitSet, alone: &[ResolvedRequest]) -> LimitSet {
    let mut limits = own.clone();
    let of_slots = |kind: LimitKind, bound| {
        let name = LimitKind::ATTRIBUTES.contains(&kind).then(|| kind.name(bound));
        let attribute = name.and_then(|name| complex.lookup(name));
        let is_alone = alone.iter().any(|request| name == Some(request.attribute.as_str()));
        kind.is_per_slot() && !is_alone && !attribute.is_some_and(is_booked_once)
    };
    for kind in LimitKind::ATTRIBUTES.into_iter().chain(LimitKind::PARAMS) {
        let sum = |bound| match (own.get(kind).get(bound), others.get(kind).get(bound)) {
            (own, _) if !of_slots(kind, bound) => own,
            (Some(own), Some(others)) => Some(own.saturating_add(others).min(kind.ceiling())),
            (None, _) | (_, None) => None,
        };
        limits.set(kind, ordered(sum(BoundKind::Soft), sum(BoundKind::Hard)));
    }
    limits
}

/// The two limits with the soft one at most the hard one.
fn ordered(soft: Option<Amount>, hard: Option<Amount>) -> Bounds {
    let soft = match (soft, hard) {
        (Some(soft), Some(hard)) => Some(soft.min(hard)),
        (None, hard) => hard,
        (soft, None) => soft,
    };
    Bounds { soft, hard }
}

/// One limit over all instances of the host; none as soon as an instance sets none.
fn on_host(
    kind: LimitKind,
    name: &str,
    bound: BoundKind,
    complex: &Complex,
    requests: &[ResolvedRequest],
    grants: &[Grant<'_>],
) -> Option<Amount> {
    let is_limited = |grant: &Grant<'_>| {
        !grant.managed.is_empty()
            || grant
                .queue
                .get(kind)
                .get(bound)
                .is_some_and(|limit| !limit.is_infinite())
    };
    if !grants.iter().any(is_limited) && !requests.iter().any(|request| request.attribute.as_str() == name) {
        return None;
    }
    let attribute = complex.lookup(name);
    let is_scaled = kind.is_per_slot() && !attribute.is_some_and(is_booked_once);
    let of_grant = |grant: &Grant<'_>| {
        let amount = granted((kind, name), bound, attribute, requests, grant)?;
        Some(bounded(kind, amount, if is_scaled { grant.slots } else { 1 }))
    };
    let mut amounts = grants.iter().map(of_grant);
    if is_scaled {
        let total = amounts.try_fold(Amount::ZERO, |sum, amount| Some(sum.saturating_add(amount?)))?;
        // Without a grant there is no slot and so no limit.
        return (!grants.is_empty()).then_some(total);
    }
    amounts.flatten().min()
}

/// Whether the attribute is a consumable that a task takes once, however many slots it has.
fn is_booked_once(attribute: &Attribute) -> bool {
    match attribute.consumable {
        Consumable::Job | Consumable::Host => true,
        Consumable::No | Consumable::Yes => false,
    }
}

/// The value of one instance for one slot.
fn granted(
    (kind, name): (LimitKind, &str),
    bound: BoundKind,
    attribute: Option<&Attribute>,
    requests: &[ResolvedRequest],
    grant: &Grant<'_>,
) -> Option<Amount> {
    let requested = requests.iter().find(|request| request.attribute.as_str() == name);
    requested
        .and_then(|request| request.value.amount())
        .or_else(|| default(attribute?, grant.managed))
        .or_else(|| grant.queue.get(kind).get(bound).filter(|limit| !limit.is_infinite()))
}

/// The default of a consumable that is managed here. A default of 0 sets no limit.
fn default(attribute: &Attribute, managed: &BTreeSet<AttributeName>) -> Option<Amount> {
    let counts = attribute.consumable.is_consumable() && managed.contains(&attribute.name);
    counts
        .then(|| attribute.default_amount())
        .filter(|default| *default != Amount::ZERO)
}

/// At least the floor, then as often as there are slots, then at most the ceiling.
fn bounded(kind: LimitKind, amount: Amount, slots: u32) -> Amount {
    amount.max(kind.floor()).times(slots).min(kind.ceiling())
}
