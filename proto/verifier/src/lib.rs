//! Job submission verifiers (JSV, `jsv(1)` of Grid Engine): programs of a site that see every job
//! before it is accepted, and accept, change or reject it.
//!
//! [`offer`] says what a verifier is told of a job, [`dialog`] is the conversation as a machine
//! without I/O, [`correction`] applies what the verifier changed, and [`process`] runs the program
//! and bounds each step in time and size. Commands run the verifiers of users, the master those of
//! the cell: both go through [`process::Verifier`].
//!
//! Which verifier sees which job, and in which order, is deliberately not known here.

pub mod binding;
pub mod correction;
pub mod date;
pub mod dialog;
pub mod offer;
pub mod process;
