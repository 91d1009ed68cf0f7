//! Decisions, tested as a small language: a cell, what people and hosts do, what is true and said
//! afterwards.

mod access;
mod admission;
mod advance;
mod bookings;
mod bulk_commands;
mod causes;
mod cell;
mod changes;
mod checkpoints;
mod clones;
mod cluster;
mod containers;
mod cores;
mod external;
mod fitness;
mod hosts;
mod life;
mod maps;
mod names;
mod objects;
mod replay;
mod requests;
mod rights;
mod scopes;
mod sessions;
mod slaves;
mod stream;
mod submission;
mod tickets;
mod usage;
mod verification;
mod versions;

use cell::{Cell, array, job};
