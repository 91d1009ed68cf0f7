//! What travels between the processes: frames, and the messages in them.
//!
//! Encoding only. `quic` moves frames over streams, the daemons and commands over Unix sockets.

pub mod agent;
pub mod client;
pub mod frame;
pub mod join;
pub mod slave;
pub mod stream;
pub mod view;
