//! Ranks reasons: the smaller the value, the closer the job is to starting.

use crate::reason::Value;
use crate::reason::{Obstacle, Reason, Shortage};

/// Reasons that end by themselves come first, then shortages in thousandths of what is missing, and
/// last what nobody changes.
pub fn nearness(reason: &Reason) -> (u32, u64) {
    match &reason.what {
        Obstacle::Offers(shortage) => (u32::from(shortage.capacity.is_none()), missing(shortage)),
        Obstacle::PeOffers { slots, needed, .. } => (0, missing_slots(*slots, *needed)),
        Obstacle::NoMore(no_more) => (0, missing_slots(no_more.slots, no_more.wanted)),
        Obstacle::Full { .. } | Obstacle::InUse { .. } | Obstacle::Quota(_) => (0, 1000),
        Obstacle::Overloaded(_) | Obstacle::SuspendAlarm(_) | Obstacle::Subordinate | Obstacle::Preempted => (1, 0),
        Obstacle::NoContact
        | Obstacle::HostUnfit { .. }
        | Obstacle::MayRunThere
        | Obstacle::Suspended
        | Obstacle::InError
        | Obstacle::Ambiguous
        | Obstacle::Disabled
        | Obstacle::ClosedByCalendar
        | Obstacle::SuspendedByCalendar => (2, 0),
        Obstacle::UnknownResource { .. } | Obstacle::Forced { .. } | Obstacle::WrongType { .. } => (3, 0),
        Obstacle::NotInPe { .. }
        | Obstacle::NotInCkptList { .. }
        | Obstacle::NotInMasterQueues
        | Obstacle::NotInSlaveQueues
        | Obstacle::NoAccess { .. }
        | Obstacle::NoProject { .. }
        | Obstacle::NoPeAccess { .. } => (4, 0),
        Obstacle::NoSuchPe { .. } | Obstacle::NoInstances | Obstacle::NoSuchJob | Obstacle::WrongSlots { .. } => (0, 0),
        Obstacle::NotInQueueList | Obstacle::NotReserved { .. } => (5, 0),
    }
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
