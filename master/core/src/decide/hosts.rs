//! Execution hosts: their agents, what these report, and how well they start tasks.

pub mod agents;
pub mod fitness;
pub(crate) mod load;
pub(crate) mod reconcile;
