//! What the tests share: the simulator, real cells, and the text parsers as targets of fuzzing.

pub mod cell;
pub mod fuzz;
pub mod sim;
