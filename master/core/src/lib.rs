//! The master's decisions, without a clock, socket, file, thread or random order inside
//! (ARCHITECTURE.md "One input").
//!
//! [`Core::handle`](core::Core::handle) takes one input and the time and gives back events and
//! effects. The state is the fold of the events by [`State::apply`](state::State::apply) and
//! nothing else; the scheduler in [`sched`] is a client of the same events and hands back orders,
//! which the core checks before it believes them.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod collections;
pub mod config;
pub mod core;
pub mod decide;
pub mod effect;
pub mod event;
pub mod explain;
pub mod ledger;
pub mod matching;
pub mod names;
pub mod observe;
pub mod policy;
pub mod reason;
pub mod sched;
pub mod state;
pub mod stream;
#[cfg(test)]
mod testing;
