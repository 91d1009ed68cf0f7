//! The agent as a process, between a master and a launcher of the tests' own.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy knows only functions marked as such"
)]

mod cell;
mod control;
mod join;
mod launcher;
mod sensor_check;
mod sensors;
mod sim;
mod users;
