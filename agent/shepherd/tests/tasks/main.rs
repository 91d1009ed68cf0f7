//! The real launcher, driven over its socket as an agent drives it.
//!
//! As root, tasks run as an account made for the tests; otherwise in the single-user form.

#![allow(clippy::unwrap_used)]

mod account;
mod binding;
mod cell;
mod containers;
mod deaths;
mod devices;
mod groups;
mod leftovers;
mod limits;
mod methods;
mod priority;
mod reuse;
mod rights;
mod root;
mod single_user;
mod speed;
mod starts;
