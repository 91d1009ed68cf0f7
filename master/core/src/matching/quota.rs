//! Resource quotas: which rule of each set is about a job in a place, what is in use of it, and
//! what is left (ALGORITHMS.md section 15).
//!
//! What is in use is counted as tasks are booked and freed, in the
//! [`Ledger`](crate::ledger::Ledger): nothing walks over jobs. One code serves the scheduler, the
//! check of its orders, `-w` and `qquota`. How long jobs may run is no business of a quota, and a
//! quota that becomes smaller ends no job.

mod budget;
mod claim;
mod view;

pub use budget::QuotaBudget;
pub use view::rows;
