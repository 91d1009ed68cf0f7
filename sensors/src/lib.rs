//! Host facts and the external load-sensor protocol.
//!
//! Two halves that share only the text form of a load value:
//!
//! * **Facts**: one module per source, each with `read_x(root)` (the files) apart from
//!   `parse_x(&str)` (their meaning); [`collector`] turns them into the standard load values of
//!   `load_parameters(5)`.
//! * **Sensors**: [`protocol`] is the whole life of one external load sensor as a machine without
//!   I/O; [`host`], [`config`], [`launch`] and [`safety`] decide whom a value is for, what to
//!   start, how, and whether it may be started at all; [`check`] explains a run to the author of a
//!   sensor.
//!
//! [`report`] merges both and says what changed since the last report. Deliberately absent:
//! processes, pipes, timers and the network (the agent drives the machine). [`judge`] says which
//! values a cell can use, by the types that the master tells.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod cgroup;
pub mod check;
pub mod collector;
pub mod config;
pub mod cpu;
pub mod disk;
pub mod error;
pub mod gpu;
pub mod host;
pub mod judge;
pub mod launch;
pub mod load;
pub mod memory;
pub mod pressure;
pub mod protocol;
pub mod report;
pub mod safety;
pub mod swap;
pub mod text;
pub mod topology;
pub mod uptime;
