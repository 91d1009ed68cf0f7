//! The gridwright command and the q* names it answers to.

fn main() {}
