//! The agent as a process, between a master and a launcher of the tests' own.

mod cell;
mod control;
mod launcher;
mod sensors;
mod users;
