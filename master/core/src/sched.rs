//! The scheduler: a model of its own, kept current by events and observations, on which passes plan
//! orders (ARCHITECTURE.md "The scheduler on one page").
//!
//! A pass goes through its phases for one job after the other: [`order`] says which
//! job is next, [`filter`] which queue instances suit it, [`rank`] which of them is best,
//! [`assign`] how many slots it gets where, and [`reserve`] from when on slots are kept for a job
//! that asks for that and cannot start. A planned start counts as taken in the model until the
//! core's verdict: its event, or its refusal. A start whose place is known skips the phases
//! (`pass/shortcut.rs`), to the same effect.

pub mod algorithm;
pub mod assign;
mod duration;
mod fcfs;
mod filter;
pub mod model;
pub mod order;
mod pass;
pub mod rank;
pub mod report;
pub(crate) mod reserve;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod verification;

pub use duration::{end as expected_end, expected_ms};
pub use filter::categories::CategoryRow;
pub use model::filing::{Listing, Priorities};
pub use order::numbers::TaskPhase;
pub use order::urgency::{contribution, urgency_slots};
pub use pass::Slice;
pub use reserve::ReservationMode;
pub use reserve::ahead::{Lookahead, Reservation, Reservations};

use crate::event::Record;
use crate::observe::Observation;
use crate::state::State;
use algorithm::RunningPass;
use model::Model;
use proto::time::{Now, Zone};
use proto::wire::stream::Order;

/// The scheduler: one of the [algorithms](algorithm) on its model.
#[derive(Clone, Debug)]
pub struct Scheduler {
    model: Model,
    pass: Option<RunningPass>,
}

impl Scheduler {
    /// A scheduler that begins with a state and knows nothing of the hosts yet. Calendars use the
    /// clock of `zone`.
    pub fn new(state: State, zone: Zone) -> Scheduler {
        Scheduler {
            model: Model::new(state, zone),
            pass: None,
        }
    }

    /// Folds a record of the stream into the model.
    pub fn apply(&mut self, record: &Record) {
        self.model.apply(record);
    }

    /// Folds an observation into the model.
    pub fn observe(&mut self, observation: &Observation) {
        self.model.observe(observation);
    }

    /// Takes a planned start back that the core refused.
    pub fn refused(&mut self, order: &Order) {
        self.model.refused(order);
    }

    /// Begins a pass by the configured algorithm. A pass under way is given up.
    pub fn begin(&mut self, now: Now, reserving: ReservationMode) {
        self.pass = Some(RunningPass::new(&mut self.model, now, reserving));
    }

    /// Makes no pass, because another scheduler places jobs. Slots that an earlier pass kept are
    /// given up.
    pub fn stand_by(&mut self, now: Now) {
        self.pass = None;
        self.model.pass_time(now, ReservationMode::Anew);
    }

    /// Continues the pass for about `budget` steps; a step tries one task. The stream may be
    /// applied between slices.
    pub fn next(&mut self, budget: usize) -> Slice {
        let Some(pass) = &mut self.pass else {
            return Slice {
                orders: Vec::new(),
                finished: true,
            };
        };
        let slice = pass.next(&mut self.model, budget);
        if slice.finished {
            self.pass = None;
        }
        slice
    }

    /// Continues a listing of the priority numbers of all jobs, starts of this pass included, by at
    /// most `count` jobs. Returns whether it is complete.
    pub fn list(&mut self, listing: &mut Listing, count: usize, now: Now) -> bool {
        if listing.is_new() {
            self.model.price(now);
        }
        self.model.list(listing, count, now)
    }

    /// The model, for priorities and tests.
    pub fn model(&self) -> &Model {
        &self.model
    }
}
