//! Who has what a job waits for, and when it is given back.

use super::advice::wall;
use super::numbers::number;
use super::plain::Teller;
use crate::ledger::{Booking, Level, SLOTS};
use crate::matching::Value;
use crate::sched::expected_end;
use crate::sched::reason::{Reason, What};
use crate::sched::timeline::NEVER;
use crate::state::State;
use crate::state::reservation::block_of;
use proto::amount::{Amount, Type};
use proto::id::{AttributeName, PeName, TaskKey};
use proto::time::Wall;
use proto::wire::view::Holder;
use std::collections::BTreeSet;

/// Holders that are named with a reason.
const HOLDERS_SHOWN: usize = 5;

/// A good that jobs or reservations hold.
enum Good<'a> {
    Attribute { level: &'a Level, name: &'a str, r#type: Type },
    PeSlots(&'a PeName),
}

/// Who has what is missing, those first that give it back first, and how many there are in all. Nobody, where it is not a matter of others.
pub(super) fn holders(state: &State, teller: &Teller<'_>, reason: &Reason) -> (Vec<Holder>, u32) {
    let Some(good) = good(teller, &reason.level, &reason.what) else { return (Vec::new(), 0) };
    // All bookings are looked at, so what costs more than a comparison is done for those alone that are shown.
    let mut first: BTreeSet<(bool, Option<Wall>, TaskKey, Amount)> = BTreeSet::new();
    let mut count: u32 = 0;
    for (key, booking) in teller.cluster.ledger.bookings() {
        let amount = good.amount(booking);
        if amount <= Amount::ZERO {
            continue;
        }
        count = count.saturating_add(1);
        let until = expected_end(teller.cluster.config, booking);
        let until = (until != NEVER && until > teller.now.tick).then(|| wall(teller.now, until));
        first.insert((until.is_none(), until, key, amount));
        if first.len() > HOLDERS_SHOWN {
            first.pop_last();
        }
    }
    let shown = first
        .into_iter()
        .map(|(_, until, key, amount)| holder(state, key, number(&Value::Amount(amount), good.r#type()), until));
    (shown.collect(), count)
}

impl Good<'_> {
    fn amount(&self, booking: &Booking) -> Amount {
        match self {
            Good::Attribute { level, name, .. } => booking.amount(*level, *name),
            Good::PeSlots(pe) if booking.pe() == Some(*pe) => {
                Amount::from_base(i64::from(booking.slots_at(&Level::Global)))
            }
            Good::PeSlots(_) => Amount::ZERO,
        }
    }

    fn r#type(&self) -> Type {
        match self {
            Good::Attribute { r#type, .. } => *r#type,
            Good::PeSlots(_) => Type::Int,
        }
    }
}

/// Returns the missing good if others hold it.
fn good<'a>(teller: &Teller<'_>, level: &'a Level, what: &'a What) -> Option<Good<'a>> {
    let is_exclusive = |name: &AttributeName| {
        let attribute = teller.cluster.config.complex.get(name);
        attribute.is_some_and(proto::complex::Attribute::is_exclusive)
    };
    let slots = Good::Attribute { level, name: SLOTS, r#type: Type::Int };
    match what {
        What::Offers(shortage) if is_exclusive(&shortage.attribute) => Some(slots),
        What::Offers(shortage) => {
            shortage.capacity?;
            Some(Good::Attribute { level, name: shortage.attribute.as_str(), r#type: shortage.r#type })
        }
        What::InUse { attribute } => Some(Good::Attribute { level, name: attribute.as_str(), r#type: Type::Int }),
        What::Full { .. } => Some(slots),
        What::PeOffers { pe, of: Some(_), .. } => Some(Good::PeSlots(pe)),
        What::NoMore(no_more) => good(teller, level, &no_more.why),
        What::PeOffers { .. }
        | What::Quota(_)
        | What::Disabled
        | What::Suspended
        | What::ClosedByCalendar
        | What::SuspendedByCalendar
        | What::Subordinate
        | What::Preempted
        | What::InError
        | What::Ambiguous
        | What::NoContact
        | What::HostUnfit { .. }
        | What::Overloaded(_)
        | What::SuspendAlarm(_)
        | What::NotInQueueList
        | What::NotReserved { .. }
        | What::NotInMasterQueues
        | What::NotInSlaveQueues
        | What::WrongType { .. }
        | What::NotInPe { .. }
        | What::NotInCkptList { .. }
        | What::MayRunThere
        | What::NoAccess { .. }
        | What::NoProject { .. }
        | What::NoPeAccess { .. }
        | What::UnknownResource { .. }
        | What::Forced { .. }
        | What::NoSuchPe { .. }
        | What::NoInstances
        | What::NoSuchJob
        | What::WrongSlots { .. } => None,
    }
}

fn holder(state: &State, key: TaskKey, amount: String, until: Option<Wall>) -> Holder {
    if let Some(id) = block_of(key) {
        let reservation = state.reservations.get(&id);
        let owner = reservation.map_or_else(String::new, |reservation| reservation.spec.owner.user.to_string());
        let until = reservation.map(|reservation| reservation.end);
        return Holder { reservation: Some(id), owner, amount, until, ..Holder::default() };
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
