//! What the tests share: the simulator, cells on this machine, captures.
