//! The `gridwright` command and the q* names it answers to.
//!
//! `gridwright qstat …` is `qstat …`. Everything is a table of options ([`args`]), a conversation
//! with the master over a Unix socket ([`client`]), and a printer ([`output`]). Nothing here
//! decides anything about the cell.
//!
//! The program `gridwright` is [`main`]. [`library`] is the part that `libdrmaa` uses as well.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod accounts;
mod args;
mod cell_address;
mod client;
mod commands;
mod completion;
mod daemons;
mod directory;
mod exit;
mod fail;
mod folder;
#[cfg(test)]
mod fuzz;
mod host_devices;
mod interrupt;
mod job;
mod keys;
mod manual;
mod output;
mod programs;

use proto::text;
use std::process::ExitCode;

/// What `libdrmaa` shares with the commands: the conversation with the master, and how options
/// become a job.
pub mod library {
    pub use crate::cell_address::CellAddress;
    pub use crate::client::Client;
    pub use crate::commands::JobTemplate;
}

/// Runs the command that this process was called as, or its first word names.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os()
        .map(|word| text::from_os(&word))
        .collect::<Vec<_>>()
        .into_iter();
    let called_as = words.next().unwrap_or_default();
    let name = called_as.rsplit('/').next().unwrap_or_default().to_owned();
    commands::run(&name, words.collect())
}
