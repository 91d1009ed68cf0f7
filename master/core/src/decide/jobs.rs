//! Commands about jobs that are there already: altering, holding, deleting, resubmitting, and how
//! one command names many of them.

pub mod alter;
pub(crate) mod bulk_commands;
pub(crate) mod category_line;
pub(crate) mod delete;
pub(crate) mod dependency;
pub(crate) mod modify;
pub(crate) mod resubmit;
pub(crate) mod select;
