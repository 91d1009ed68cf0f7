//! Consumables of the whole cluster: what is taken or given back of them on one host may make a difference on every other.

use super::model::Model;
use crate::event::Event;
use crate::ledger::{At, Booking};
use crate::state::config::Configuration;
use proto::amount::Amount;
use proto::id::{AttributeName, HostName};
use proto::object::value::Assignments;
use proto::queue::Setting;

impl Model {
    /// Whether an event gives back something that the whole cluster shares.
    pub(super) fn gives_back_shared(&self, event: &Event) -> bool {
        match event {
            Event::TaskEnded { key, .. } => {
                self.state.ledger.booking(*key).is_some_and(|booking| self.is_shared(booking))
            }
            Event::ReservationChanged { .. } | Event::ReservationEnded { .. } => {
                names(&self.state.config).next().is_some()
            }
            _ => false,
        }
    }

    /// Whether a booking takes something that the whole cluster shares.
    pub(super) fn is_shared(&self, booking: &Booking) -> bool {
        names(&self.state.config).any(|name| booking.amount(At::Global, name) > Amount::ZERO)
    }

    /// Whether a booking takes something of the whole cluster from which the order of queue instances follows: each of them then is elsewhere in it, not
    /// only those of its hosts.
    pub(super) fn moves_others(&self, booking: &Booking) -> bool {
        self.is_shared(booking) && moves_standings(&self.state.config)
    }

    /// Wishes that were left open, and alarms, may be so no longer, wherever they are. What a queue instance has too little of itself is a
    /// matter of its host.
    pub(super) fn gave_back_shared(&mut self) {
        self.changes.shared();
        let config = &self.state.config;
        if moves_standings(config) {
            self.everything_changed();
        }
    }
}

/// Whether which queue instances take jobs, and in which order, follows from how much the whole cluster has left of something.
pub(super) fn moves_standings(config: &Configuration) -> bool {
    names(config).any(|name| is_weighed(config, name))
}

/// Whether the whole cluster has a value of anything.
pub(super) fn offers_anything(config: &Configuration) -> bool {
    names(config).next().is_some()
}

/// The attributes of which the whole cluster has a value, by their full names.
fn names(config: &Configuration) -> impl Iterator<Item = &AttributeName> {
    let global = config.exec_hosts.get(&HostName::global());
    let named = global.into_iter().flat_map(|global| global.complex_values.iter());
    named.filter_map(|(name, _)| Some(&config.complex.lookup(name.as_str())?.name))
}

/// Whether which queue instances take jobs, and in which order, follows from how much is left of an attribute.
fn is_weighed(config: &Configuration, name: &AttributeName) -> bool {
    let is_it = |used: &str| config.complex.lookup(used).is_some_and(|attribute| attribute.name == *name);
    let is_in =
        |list: &Setting<Assignments>| list.values().flat_map(|list| list.iter()).any(|(used, _)| is_it(used.as_str()));
    config.queues.values().any(|queue| is_in(&queue.load_thresholds) || is_in(&queue.suspend_thresholds))
        || config.scheduler.load_formula.attributes().any(|used| is_it(used.as_str()))
}
