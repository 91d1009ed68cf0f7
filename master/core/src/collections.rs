//! Containers that the state and the scheduler are made of. They know nothing of jobs.

pub mod by_host;
pub mod paged;
pub mod ranges;
pub mod seldom;
