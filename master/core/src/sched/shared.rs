//! Consumables of the whole cluster: what is taken or given back of them on one host may make a difference on every other.

use super::model::Model;
use crate::event::Event;
use crate::ledger::{At, Booking};

impl Model {
    /// Whether an event gives back something that the whole cluster shares.
    pub(super) fn gives_back_shared(&self, event: &Event) -> bool {
        match event {
            Event::TaskEnded { key, .. } => {
                self.state.ledger.booking(*key).is_some_and(|booking| self.is_shared(booking))
            }
            Event::ReservationChanged { .. } | Event::ReservationEnded { .. } => {
                !self.state.config.shared.names.is_empty()
            }
            _ => false,
        }
    }

    /// Whether a booking takes something that the whole cluster shares.
    pub(super) fn is_shared(&self, booking: &Booking) -> bool {
        booking.takes_any(At::Global, &self.state.config.shared.names)
    }

    /// Whether a booking takes something of the whole cluster from which the order of queue instances follows: each of them then is elsewhere in it, not
    /// only those of its hosts.
    pub(super) fn moves_others(&self, booking: &Booking) -> bool {
        self.state.config.shared.moves_standings && self.is_shared(booking)
    }

    /// Wishes that were left open, and alarms, may be so no longer, wherever they are. What a queue instance has too little of itself is a
    /// matter of its host.
    pub(super) fn gave_back_shared(&mut self) {
        self.changes.shared();
        if self.state.config.shared.moves_standings {
            self.everything_changed();
        }
    }
}
