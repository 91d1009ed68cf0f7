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

/// The names of a table of attributes and their meanings, in its order.
pub(crate) const fn names<const N: usize>(table: &[(&'static str, &'static str)]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = table[at].0;
        at += 1;
    }
    names
}

pub use fields::{Field, Fields, LineWrap};
pub use kind::{Form, Object, ObjectKind};
