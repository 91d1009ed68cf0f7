//! `libdrmaa.so`: the C binding of DRMAA 1.0 (GFD.133), with the semantics of Grid Engine 8.1.9.
//!
//! A call enters by [`ffi`], which turns C arguments into safe ones and holds all `unsafe`.
//! [`api`] is the binding in safe Rust. It finds the [`session`](session::Session) of the process,
//! which has three parts: the connections for requests ([`requests`]), a thread that reads the
//! event stream ([`reader`]), and the table of the session's jobs ([`table`]). A waiting call
//! sleeps until the reader has put the end of its job into the table.
//!
//! Deliberately absent: an allocator, a signal handler, a handler for `fork(2)`, output of any
//! kind, and polling.

mod api;
mod control;
mod ended;
mod error;
pub mod ffi;
mod handles;
mod ids;
mod moment;
mod reader;
mod requests;
mod session;
mod table;
mod template;
