//! The vocabulary of Gridwright and the messages its processes exchange.
//!
//! Everything here is a value: parsing, printing, comparing and encoding. There is no I/O, no
//! clock, no thread and no unsafe code, so that the master, the agents, the commands and the
//! simulator share one meaning of every word.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod accounting;
pub mod amount;
pub mod binding;
pub mod calendar;
pub mod cell_version;
pub mod checkpoint;
pub mod common;
pub mod complex;
pub mod conf;
pub mod container;
pub mod device;
pub mod diagnostic;
pub mod directory;
pub mod host;
pub mod hostgroup;
pub mod id;
pub mod job;
pub mod jsv;
pub mod launch;
pub mod limit;
pub mod load;
pub mod log;
mod name;
pub mod object;
pub mod pe;
pub mod policy;
pub mod program;
pub mod project;
pub mod queue;
pub mod quota;
pub mod reporting;
pub mod request;
pub mod reservation;
pub mod restring;
pub mod root_commands;
pub mod rsmap;
pub mod sharetree;
pub mod text;
pub mod time;
pub mod usage;
pub mod userset;
pub mod wire;
