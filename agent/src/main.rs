//! The agent daemon of one execution host.

fn main() {}
