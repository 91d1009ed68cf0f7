//! What the tests share: the simulator, and real cells.

pub mod cell;
pub mod sim;
