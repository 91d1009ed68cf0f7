//! The scheduler: a model of its own, kept current by events and observations, on which passes plan orders (ARCHITECTURE.md "The scheduler on one page").
//!
//! A pass goes through its phases for one job after the other: [`order`](order_phase) says which job is next, [`filter`] which
//! queue instances suit it, [`rank`] which of them is best, [`assign`] how many slots it gets where, and [`reserve`] from when
//! on slots are kept for a job that asks for that and cannot start. What is planned counts as taken in the model until the core's
//! verdict: its event, or its refusal. A job that goes where the one before it went, because the best queue instance still has room and
//! nothing else decides, starts without the phases (`Model::start_known`), to the same effect.

pub mod advance;
mod ahead;
pub mod algorithm;
pub mod assign;
mod categories;
pub mod category;
pub mod census;
mod changes;
mod closings;
mod columns;
pub mod concerned;
pub mod diagram;
mod duration;
mod fcfs;
mod filing;
mod filling;
mod filter;
pub mod finding;
mod heads;
mod immediate;
mod live;
pub mod model;
mod nearness;
mod numbers;
pub mod order;
mod order_phase;
mod pass;
mod places;
mod plans;
pub mod rank;
mod ready;
pub mod reason;
mod reserve;
mod running;
mod share_nodes;
mod shared;
mod standings;
mod suitability;
#[cfg(test)]
pub(crate) mod tests;
mod thresholds;
pub mod timeline;
mod urgency;

pub use ahead::{Ahead, Reservation, Reservations};
pub use categories::Listed;
pub use duration::{end as expected_end, expected_ms};
pub use filing::{Listing, Priorities};
pub use nearness::nearness;
pub use numbers::Of;
pub use urgency::{contribution, urgency_slots};

use crate::event::Record;
use crate::observe::Observation;
use crate::state::State;
use algorithm::UnderWay;
use model::Model;
use order::Order;
use proto::time::{Now, Zone};

/// What becomes of the reservations of the pass before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserving {
    /// All are made anew, in the order of priority.
    #[default]
    Anew,
    /// They stay, unless the time of one has come: for passes in between where making them takes long. Until the next ones are made, a
    /// job of higher priority may wait for one of lower that has its reservation already.
    Keep,
}

/// What a part of a pass came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// What the core is asked to do.
    pub orders: Vec<Order>,
    /// Whether the pass is over.
    pub finished: bool,
}

/// The scheduler: one of the [algorithms](algorithm) on its model.
#[derive(Clone, Debug)]
pub struct Scheduler {
    model: Model,
    pass: Option<UnderWay>,
}

impl Scheduler {
    /// A scheduler that begins with a state and knows nothing of the hosts yet. Calendars go by the clock of `zone`.
    pub fn new(state: State, zone: Zone) -> Scheduler {
        Scheduler { model: Model::new(state, zone), pass: None }
    }

    /// Takes a record of the stream in.
    pub fn apply(&mut self, record: &Record) {
        self.model.apply(record);
    }

    /// Takes an observation in.
    pub fn observe(&mut self, observation: &Observation) {
        self.model.observe(observation);
    }

    /// Takes a planned start back that the core did not believe.
    pub fn refused(&mut self, order: &Order) {
        self.model.refused(order);
    }

    /// Begins a pass by the algorithm that is configured now, or begins anew if one is under way.
    pub fn begin(&mut self, now: Now, reserving: Reserving) {
        self.pass = Some(UnderWay::new(&mut self.model, now, reserving));
    }

    /// Makes no pass, because others place jobs: what an earlier one has kept for the time to come is given up.
    pub fn stand_by(&mut self, now: Now) {
        self.pass = None;
        self.model.pass_time(now, Reserving::Anew);
    }

    /// Goes on with the pass for about `budget` steps; a step tries one task. The stream may be applied between slices.
    pub fn next(&mut self, budget: usize) -> Slice {
        let Some(pass) = &mut self.pass else {
            return Slice { orders: Vec::new(), finished: true };
        };
        let slice = pass.next(&mut self.model, budget);
        if slice.finished {
            self.pass = None;
        }
        slice
    }

    /// Goes on with a listing of the priority numbers of all jobs, with what this pass has started, by at most `count` jobs; whether all are in it.
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
