//! The master daemon of a cell.

fn main() {}
