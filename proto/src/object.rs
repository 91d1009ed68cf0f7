//! Configuration objects as `qconf` shows and reads them: their kinds, their text form, and edits
//! of single attributes.
//!
//! The text form is the same for all of them, ordered pairs of an attribute and its value. What a
//! value means is the business of the typed objects ([`crate::queue`], [`crate::host`],
//! [`crate::hostgroup`], [`crate::pe`], [`crate::conf`], [`crate::policy`]). Whether an object
//! refers to others that exist, and whether Gridwright supports what it names, is deliberately not
//! checked here: that needs the state of a cell.

pub mod edit;
pub mod fields;
mod kind;
pub(crate) mod reader;
pub mod suggest;
pub mod value;

#[cfg(test)]
mod tests;

pub use fields::{Field, Fields, Wrap};
pub use kind::{Form, Object, ObjectKind};
