//! The protocol of external load sensors, as a machine without clock, process or pipe.
//!
//! A sensor is asked with an empty line, answers with `begin`, lines `host:name:value` and `end`,
//! and leaves on `quit`. What real sensors make of that is in sensors/README.md "What is
//! tolerated"; each row there is a test here.
//!
//! * [`mod@line`] says what one line means, [`assembler`] makes lines of bytes, [`reader`] makes
//!   blocks of lines: all bounded.
//! * [`machine`] is the life of one sensor: start, request, deadline, back-off, end, health.
//!
//! The driver owns the process. It calls a method of [`Machine`] for everything that happens and
//! performs the [`Action`]s it gets back, in order. Deliberately absent: the schedule of reports
//! and the merging of several sensors.

pub mod assembler;
pub mod line;
pub mod machine;
pub mod reader;
pub mod warning;

pub use line::{Doubt, Fault, Meaning, Value};
pub use machine::{Action, Exit, Health, Machine, Request, Settings, Signal, Status, Trace};
pub use reader::{Block, Limits, LongLines};
pub use warning::{Warning, WarningKind};
