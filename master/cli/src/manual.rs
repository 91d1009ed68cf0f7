//! The manual: a page for each command, file format and daemon, made from the tables that the
//! parsers use. Only descriptions, examples and references have tables of their own.
//!
//! Pages of commands are in section 1, of formats in section 5, of daemons in section 8.

mod commands;
mod daemons;
mod formats;
mod page;
#[cfg(test)]
mod tests;
mod words;

pub use page::File;

/// All files of the manual, in the order of their sections.
pub fn pages() -> Vec<File> {
    [commands::pages(), formats::pages(), daemons::pages()].concat()
}
