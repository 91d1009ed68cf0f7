//! Ranks reasons: the smaller the value, the closer the job is to starting.

use super::reason::{Reason, Shortage, What};
use crate::matching::Value;

/// Reasons that end by themselves come first, then shortages in thousandths of what is missing, and
/// last what nobody changes.
pub fn nearness(reason: &Reason) -> (u32, u64) {
    match &reason.what {
        What::Offers(shortage) => (u32::from(shortage.capacity.is_none()), missing(shortage)),
        What::PeOffers { slots, needed, .. } => (0, missing_slots(*slots, *needed)),
        What::NoMore(no_more) => (0, missing_slots(no_more.slots, no_more.wanted)),
        What::Full { .. } | What::InUse { .. } | What::Quota(_) => (0, 1000),
        What::Overloaded(_) | What::SuspendAlarm(_) | What::Subordinate | What::Preempted => (1, 0),
        What::NoContact
        | What::HostUnfit { .. }
        | What::MayRunThere
        | What::Suspended
        | What::InError
        | What::Ambiguous
        | What::Disabled
        | What::ClosedByCalendar
        | What::SuspendedByCalendar => (2, 0),
        What::UnknownResource { .. } | What::Forced { .. } | What::WrongType { .. } => (3, 0),
        What::NotInPe { .. }
        | What::NotInCkptList { .. }
        | What::NotInMasterQueues
        | What::NotInSlaveQueues
        | What::NoAccess { .. }
        | What::NoProject { .. }
        | What::NoPeAccess { .. } => (4, 0),
        What::NoSuchPe { .. } | What::NoInstances | What::NoSuchJob | What::WrongSlots { .. } => (0, 0),
        What::NotInQueueList | What::NotReserved { .. } => (5, 0),
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
