//! `qstat` and `qstat -j`: jobs with their tasks.

mod detail;
mod filter;
mod row;
mod walk;

pub use walk::Walk;
