//! Whether a job may run on a queue instance: what each level offers against what the job asks for (SEMANTICS section 3).
//!
//! One matcher serves the scheduler, the core when it checks an order, `-w`, `qselect -l` and the values that `qhost -F` and
//! `qstat -F` show. They differ only in the [`Mode`]. Which of several suitable instances is best is not decided here.

mod access;
mod demand;
mod exclusive;
mod fit;
mod load;
mod offer;
mod pattern;
mod select;
mod service;
mod soft;
mod suits;
#[cfg(test)]
mod tests;
mod verify;
mod view;

pub use access::may_use_pe;
pub use demand::{Demand, Request, Value, Wanted};
pub use fit::{Fit, Role};
pub use load::is_static_load;
pub use offer::{Offer, Source};
pub(crate) use pattern::is_host;
pub use pattern::{QueuePattern, is_in_queue_list};
pub use select::requests;
pub use verify::{check_start, verify};
pub use view::message_text;

use crate::event::InstanceState;
use crate::ledger::{Ledger, Level};
use crate::observe::Observations;
use crate::quota::Scope;
use crate::state::State;
use crate::state::config::Configuration;
use proto::amount::Amount;
use proto::id::{PeName, QueueInstanceName};
use proto::time::Tick;
use std::collections::BTreeMap;

/// What counts when a job is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing runs and only load values that never change are known: `-w e`, `-w w`, `-w v`, `qselect -l`.
    ///
    /// A request for a load value that a host reports but that may change is taken to be satisfiable.
    EmptyCluster,
    /// What runs and what is reported now: the scheduler, `-w p`.
    Now,
    /// What runs now without load values, which may have changed since the order was planned: checking an order.
    Order,
}

impl Mode {
    fn counts_bookings(self) -> bool {
        match self {
            Mode::EmptyCluster => false,
            Mode::Now | Mode::Order => true,
        }
    }

    fn counts_load(self) -> bool {
        match self {
            Mode::Now => true,
            Mode::EmptyCluster | Mode::Order => false,
        }
    }
}

/// A cluster as the matcher sees it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The configuration objects.
    pub config: &'a Configuration,
    /// Queue instances that are not in the default state.
    pub instances: &'a BTreeMap<QueueInstanceName, InstanceState>,
    /// What placed tasks take.
    pub ledger: &'a Ledger,
    /// What tasks take that are planned and not yet placed.
    pub planned: Option<&'a Ledger>,
    /// Load values and contact.
    pub observations: &'a Observations,
    /// The time, for the decay of load adjustments.
    pub now: Tick,
    /// What counts.
    pub mode: Mode,
}

impl<'a> Cluster<'a> {
    /// The cluster of a state, nothing planned.
    pub fn of(state: &'a State, observations: &'a Observations, mode: Mode) -> Cluster<'a> {
        Cluster {
            config: &state.config,
            instances: &state.instances,
            ledger: &state.ledger,
            planned: None,
            observations,
            now: state.now.tick,
            mode,
        }
    }

    /// How much of an attribute is taken at a level, planned tasks included; nothing on an empty cluster.
    pub fn booked(&self, level: &Level, attribute: &str) -> Amount {
        let amounts = self.ledgers().map(|ledger| ledger.booked(level, attribute));
        amounts.fold(Amount::ZERO, |sum, amount| sum.checked_add(amount).unwrap_or(Amount::INFINITY))
    }

    /// Slots that are taken at a level, planned tasks included; none on an empty cluster.
    pub fn slots_taken(&self, level: &Level) -> u32 {
        self.ledgers().map(|ledger| ledger.slots(level)).fold(0, u32::saturating_add)
    }

    /// Slots that tasks of a parallel environment take, planned tasks included; none on an empty cluster.
    pub fn pe_slots_taken(&self, pe: &PeName) -> u32 {
        self.ledgers().map(|ledger| ledger.pe_slots(pe)).fold(0, u32::saturating_add)
    }

    /// How much of an attribute is in use of a quota, planned tasks included; nothing on an empty cluster.
    pub fn quota_used(&self, scope: &Scope, attribute: &str) -> Amount {
        let amounts = self.ledgers().map(|ledger| ledger.quota_used(scope, attribute));
        amounts.fold(Amount::ZERO, |sum, amount| sum.checked_add(amount).unwrap_or(Amount::INFINITY))
    }

    /// The ledgers that count.
    fn ledgers(&self) -> impl Iterator<Item = &'a Ledger> {
        let counted = self.mode.counts_bookings();
        [Some(self.ledger), self.planned].into_iter().flatten().filter(move |_| counted)
    }
}
