//! What the tests share: the simulator.

pub mod sim;
