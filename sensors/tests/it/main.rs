//! The load-sensor machine against real processes, and the shipped sensors against stand-ins for
//! the commands they call.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy knows only functions marked as such"
)]

mod driver;
mod machines;
mod misbehaviour;
mod scripts;
