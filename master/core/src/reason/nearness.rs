//! Ranks reasons: the smaller the value, the closer the job is to starting.

use crate::reason::facts::ReasonSubject;
use crate::reason::{Reason, Shortage, Value};

/// The distance of the obstacle, then what is missing in thousandths of what is needed.
pub fn nearness(reason: &Reason) -> (u32, u64) {
    let facts = reason.what.facts();
    let missing = match facts.about {
        ReasonSubject::Shortage(shortage) => missing(shortage),
        ReasonSubject::PeSlots { slots, needed, .. } => missing_slots(slots, needed),
        ReasonSubject::Room(room) => missing_slots(room.slots, room.wanted),
        ReasonSubject::Slots(_) | ReasonSubject::Exclusive { .. } | ReasonSubject::Quota(_) => 1000,
        ReasonSubject::Nothing | ReasonSubject::Attribute(_) | ReasonSubject::Threshold(_) => 0,
    };
    (facts.distance, missing)
}

fn missing_slots(slots: u32, needed: u32) -> u64 {
    thousandths(u64::from(needed.saturating_sub(slots)), u64::from(needed))
}

fn missing(shortage: &Shortage) -> u64 {
    let (Value::Amount(needed), Value::Amount(free)) = (&shortage.needed, &shortage.free) else {
        return 1000;
    };
    let (Some(needed), Some(free)) = (needed.finite(), free.finite()) else {
        return 1000;
    };
    thousandths(needed.abs_diff(free), needed.unsigned_abs())
}

fn thousandths(part: u64, whole: u64) -> u64 {
    let quotient = u128::from(part) * 1000 / u128::from(whole.max(1));
    u64::try_from(quotient).unwrap_or(u64::MAX)
}
