//! Whether a job may run on a queue instance: what each level offers against what the job asks for
//! (ALGORITHMS.md section 3).
//!
//! One matcher serves the scheduler, the core when it checks an order, `-w`, `qselect -l` and the
//! values that `qhost -F` and `qstat -F` show. They differ only in the [`Mode`]. Which of several
//! suitable instances is best is not decided here.

mod access;
mod demand;
mod exclusive;
mod fit;
pub(crate) mod formula;
mod headroom;
mod level_view;
mod load;
mod offer;
pub mod quota;
mod scoped_request;
mod select;
mod service;
mod soft;
mod suits;
mod tally;
#[cfg(test)]
mod tests;
mod total;
mod view;

pub use access::{Barrier, may_use_pe, pe_barrier};
pub(crate) use demand::resolved;
pub use demand::{Demand, Request, WantedValue};
pub use fit::{Fit, SlotRole};
pub use headroom::Headroom;
pub use level_view::{HostView, InstanceView, LevelView};
pub use load::is_static_load;
pub use offer::{Offer, Source, is_ordered};
pub use scoped_request::ScopedRequest;
pub use select::{UnusableRequest, requests};
pub use tally::Tally;
pub use total::total_exceeded;
pub use view::message_text;

use crate::config::Configuration;
use crate::event::InstanceState;
use crate::ledger::quota::Scope;
use crate::ledger::timeline::{ClusterResource, Window};
use crate::ledger::{Ledger, LevelRef, SLOTS, sum};
use crate::observe::Observations;
use crate::state::State;
use crate::state::reservation::AdvanceReservation;
use proto::amount::Amount;
use proto::id::{AttributeName, PeName, QueueInstanceName};
use proto::time::Tick;
use std::collections::BTreeMap;

/// What counts when a job is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing runs, and only load values that never change are known: `-w e`, `-w w`, `-w v`,
    /// `qselect -l`.
    ///
    /// A request for a load value that is reported and may change counts as satisfiable.
    EmptyCluster,
    /// The present tasks and load values: the scheduler, `-w p`.
    Now,
    /// The present tasks without load values, which may have changed since the order was planned:
    /// the check of an order.
    Order,
    /// The tasks of a later time, for which no load is known: reservations.
    Later,
}

impl Mode {
    fn counts_bookings(self) -> bool {
        match self {
            Mode::EmptyCluster => false,
            Mode::Now | Mode::Order | Mode::Later => true,
        }
    }

    fn counts_load(self) -> bool {
        match self {
            Mode::Now => true,
            Mode::EmptyCluster | Mode::Order | Mode::Later => false,
        }
    }
}

/// A cluster as the matcher sees it. It is a bundle of references, made anew for each question: it
/// caches nothing.
///
/// Everything that asks whether, where or how well a job fits goes through it, so that the
/// scheduler, the check of its orders, `-w`, `qselect` and the reasons in `qstat -j` cannot
/// disagree. They differ in the [`Mode`], in which ledgers count (`planned`, `share`), and in the
/// `window` in which slots that are kept for others are looked at.
///
/// - [`Cluster::of_state`] for present or empty clusters, then [`Cluster::of_demand`]: it must be
///   called for each job, since jobs of an advance reservation see the reservation's slots and no
///   others.
/// - [`Cluster::site`] and the views that it leads to look up a queue instance with its host once;
///   the functions that compare take views, so that nothing is looked up twice for a host.
/// - Amounts come from [`Cluster::booked`] and the offers, never from a ledger directly.
///
/// It must not be kept over a change of what it refers to, which the compiler sees to, and it must
/// not learn to cache: what is remembered between questions belongs to the scheduler's model, with
/// its rules for what invalidates it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The configuration objects.
    pub config: &'a Configuration,
    /// Queue instances that are not in the default state.
    pub instances: &'a BTreeMap<QueueInstanceName, InstanceState>,
    /// The bookings of placed tasks.
    pub ledger: &'a Ledger,
    /// The bookings of tasks that are planned and not placed yet.
    pub planned: Option<&'a Ledger>,
    /// Load values and contact.
    pub observations: &'a Observations,
    /// The time, for the decay of load adjustments.
    pub now: Tick,
    /// What counts.
    pub mode: Mode,
    /// The stretch of time for which slots are searched, if anybody plans ahead. Otherwise only the
    /// present use counts.
    pub window: Option<Window<'a>>,
    /// Whose slots and amounts are meant.
    pub share: Share<'a>,
    /// Whether reasons are wanted. A pass only places tasks and wants none.
    pub explains: bool,
}

/// Whose slots and amounts are meant, as to advance reservations.
#[derive(Clone, Copy, Debug)]
pub enum Share<'a> {
    /// Those of jobs without a reservation. Reservations whose time has come count as taken.
    Open,
    /// Those of one reservation, for its jobs: nothing else exists.
    Within(&'a AdvanceReservation),
    /// The use by tasks, whoever they belong to: for showing.
    InUse(&'a State),
}

impl<'a> Cluster<'a> {
    /// The cluster of a state, nothing planned.
    pub fn of_state(state: &'a State, observations: &'a Observations, mode: Mode) -> Cluster<'a> {
        Cluster {
            config: &state.config,
            instances: &state.instances,
            ledger: &state.ledger,
            planned: None,
            observations,
            now: state.now.tick,
            mode,
            window: None,
            share: Share::Open,
            explains: true,
        }
    }

    /// The cluster of a state as it is shown: amounts that are only kept for advance reservations
    /// are not in use.
    pub fn in_use(state: &'a State, observations: &'a Observations, mode: Mode) -> Cluster<'a> {
        Cluster {
            share: Share::InUse(state),
            ..Cluster::of_state(state, observations, mode)
        }
    }

    /// The cluster for a caller that wants no reasons.
    pub fn untold(self) -> Cluster<'a> {
        Cluster {
            explains: false,
            ..self
        }
    }

    /// The cluster for one demand. A job of an advance reservation can only have what the
    /// reservation has.
    pub fn of_demand(self, state: &'a State, demand: &Demand) -> Cluster<'a> {
        match demand.reservation.and_then(|id| state.reservations.get(&id)) {
            Some(reservation) => Cluster {
                ledger: &reservation.ledger,
                planned: None,
                window: None,
                share: Share::Within(reservation),
                ..self
            },
            None => self,
        }
    }

    /// The reservation whose slots are meant, if any.
    pub fn within(&self) -> Option<&'a AdvanceReservation> {
        match self.share {
            Share::Within(reservation) => Some(reservation),
            Share::Open | Share::InUse(_) => None,
        }
    }

    /// How much of an attribute is taken at a level, by planned tasks too; nothing on an empty
    /// cluster. Within a window it is the largest use at any time of it.
    pub fn booked<'l>(&self, level: impl Into<LevelRef<'l>>, attribute: &str) -> Amount {
        let level = level.into();
        match (self.window, self.share) {
            (Some(window), _) => window.line.booked(self.ledgers(), level, attribute, window.span),
            (None, Share::InUse(state)) if self.mode.counts_bookings() => state.in_use(level, attribute),
            (None, _) => sum(self.ledgers().map(|ledger| ledger.booked(level, attribute))),
        }
    }

    /// Does what [`Cluster::booked`] does for a level that was looked up.
    pub fn booked_at<N: AsRef<str> + ?Sized>(&self, view: &LevelView<'_, '_>, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        match (self.window.filter(|window| !window.is_now()), self.share) {
            (None, Share::Open | Share::Within(_)) => view.booked_now(attribute),
            (Some(Window { line, span, .. }), _) if view.level != LevelRef::Global => {
                line.booked_by(view.tenants, || view.booked_now(attribute), view.level, attribute, span)
            }
            (Some(_), _) | (None, Share::InUse(_)) => self.booked(view.level, attribute.as_ref()),
        }
    }

    /// Slots that are taken at a level, as [`Cluster::booked`] counts.
    pub fn slots_taken(&self, view: &LevelView<'_, '_>) -> u32 {
        count(self.booked_at(view, SLOTS))
    }

    /// Slots that tasks of a parallel environment take, as [`Cluster::booked`] counts.
    pub fn pe_slots_taken(&self, pe: &PeName) -> u32 {
        let now = || {
            let slots = self
                .ledgers()
                .map(|ledger| ledger.pe_slots(pe))
                .fold(0, u32::saturating_add);
            Amount::from_base(i64::from(slots))
        };
        let taken = match self.window {
            Some(window) => window.line.shared(|| ClusterResource::Pe(pe.clone()), now, window.span),
            None => now(),
        };
        count(taken)
    }

    /// How much of an attribute is in use of a quota, as [`Cluster::booked`] counts.
    pub fn quota_used(&self, scope: &Scope, attribute: &str) -> Amount {
        let now = || sum(self.ledgers().map(|ledger| ledger.quota_used(scope, attribute)));
        match self.window {
            Some(window) => window.line.shared(
                || ClusterResource::Quota(scope.clone(), attribute.into()),
                now,
                window.span,
            ),
            None => now(),
        }
    }

    /// The ledgers that count.
    fn ledgers(&self) -> impl Iterator<Item = &'a Ledger> + Clone + use<'a> {
        let counted = self.mode.counts_bookings();
        [Some(self.ledger), self.planned]
            .into_iter()
            .flatten()
            .filter(move |_| counted)
    }
}

/// An amount of slots as a number. An unknown one is the largest number.
fn count(slots: Amount) -> u32 {
    slots
        .finite()
        .and_then(|slots| u32::try_from(slots).ok())
        .unwrap_or(u32::MAX)
}
