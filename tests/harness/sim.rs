//! A whole cluster on one seed and virtual time: the master's core and scheduler, many agent cores,
//! and pretended launchers, shepherds, hosts, networks and users around them.
//!
//! The shells around the cores keep the contract of the daemons exactly: nothing leaves the master
//! before the events behind it are durable, one stream keeps its order until it breaks, what a
//! launcher has on disk survives everything. Faults are drawn from the seed; after every event the
//! invariants are checked, so that a failing seed names the step at which things went wrong.
//!
//! Not simulated: certificates and joining, load sensors, the reader thread, the bytes of the wire,
//! and disks that lie. What is checked and which mutations that finds is in `tests/README.md`.

mod accounts;
mod administrator;
mod advance;
mod agenda;
mod agent;
mod apart;
mod books;
mod checks;
mod faults;
mod kept;
mod launcher;
mod link;
mod master;
mod planner;
mod promises;
mod quotas;
mod random;
mod rival;
mod rules;
mod runner;
#[cfg(test)]
mod scenarios;
mod setting;
mod slaves;
mod trace;
mod users;
mod watch;
mod witness;
mod workload;
mod world;

pub use faults::{Counts, Faults};
pub use runner::{run_many, run_one};
pub use world::{Checks, Pace, Plan, Watch, World};
