//! The ticket policies: override, functional and share tree (ALGORITHMS.md sections 10 and 11).
//!
//! Tickets are computed per [`class`]: jobs of one user, project, department, job share and
//! override tickets differ only in when they were submitted. The first of them have tickets of
//! their own, and all others those of the last one that has. So the cost follows from the number of
//! classes, not of jobs.
//!
//! Tickets are floating-point numbers, as in 8.1.9, whose digits are matched. Nothing that is
//! replayed depends on them, and each operation on them is exact by IEEE 754 on every machine.

pub mod class;
mod functional;
mod greedy;
mod line;
mod overriding;
pub mod prices;
mod pricing;
pub mod rules;
mod shares;
pub mod targets;
pub mod tree;

pub use class::{Class, ClassId, Classes};
pub use prices::{Prices, Tickets};
pub use pricing::{PRICED_TASKS, TaskCounts, TreeTargets, price};
pub use rules::TicketRules;
