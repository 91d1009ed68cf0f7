//! Consumables of the whole cluster: a change of their free amount on one host may matter on every
//! other.

use crate::event::Event;
use crate::ledger::{Booking, LevelRef};
use crate::sched::model::Model;
use crate::sched::model::concerned::advance_of;

impl Model {
    /// Whether an event gives back something that the whole cluster shares.
    pub(crate) fn gives_back_shared(&self, event: &Event) -> bool {
        if let Event::TaskEnded { key, .. } | Event::TaskRebooked { key } = event {
            let booking = self.state.ledger.booking(*key);
            return booking.is_some_and(|booking| self.is_shared(booking));
        }
        advance_of(event).is_some() && !self.state.config.shared.names.is_empty()
    }

    /// Whether a booking takes something that the whole cluster shares.
    pub(crate) fn is_shared(&self, booking: &Booking) -> bool {
        booking.takes_any(LevelRef::Global, &self.state.config.shared.names)
    }

    /// Whether a booking takes a shared consumable that the order of queue instances depends on.
    /// Then the rank of every instance changes, not only that of its hosts.
    pub(crate) fn moves_others(&self, booking: &Booking) -> bool {
        self.state.config.shared.moves_standings && self.is_shared(booking)
    }

    /// Notes that a shared consumable was given back: unmet soft requests and alarms may have ended
    /// anywhere. A shortage of one host is not concerned.
    pub(crate) fn gave_back_shared(&mut self) {
        self.changes.shared();
        if self.state.config.shared.moves_standings {
            self.everything_changed();
        }
    }
}
