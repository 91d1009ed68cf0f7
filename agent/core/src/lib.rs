//! The agent's decisions, without a clock, socket, file, thread or random order inside
//! (ARCHITECTURE.md "Bird's eye").
//!
//! [`Core::handle`](core::Core::handle) takes what the master, the launcher or a timer says and
//! gives back what to do. The same code runs in the daemon, in simulated hosts and in the
//! simulator.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod binding;
pub mod core;
mod document;
pub mod environment;
pub mod host_paths;
pub mod outcome;
mod priority;
pub mod substitute;

#[cfg(test)]
mod testing;
