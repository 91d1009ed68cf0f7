//! What passes found out, for people and files: why jobs wait, how many do, the schedule file, and
//! the shares that the share tree grants.

pub mod census;
pub mod finding;
pub mod schedule_file;
pub(crate) mod share_tree;
