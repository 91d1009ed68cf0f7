//! The classic accounting file, accounting(5): one line for each record, because tools read it.
//!
//! The database is the truth; the file follows it. How far it is known to be on disk is noted in the database from time to time.
//! After a crash what lies behind that point is compared with the records behind it, and only what is missing is written: no line
//! is lost and none is there twice. A file that somebody moved away is begun anew.

#[cfg(test)]
mod tests;

use crate::store::{AccountingCursor, Store, StoreError};
use master_core::event::Record;
use proto::id::EventSeq;
use std::borrow::Borrow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum AccountingError {
    /// The file cannot be read or written.
    #[error("cannot write accounting records to {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The database cannot.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The open file.
pub struct AccountingFile {
    path: PathBuf,
    file: File,
    inode: u64,
    /// The last record that was written.
    last: EventSeq,
    /// Whether a write failed, so that the file has to be compared with the database.
    is_behind: bool,
}

impl AccountingFile {
    /// Opens the file and brings it up to date with the database.
    ///
    /// # Errors
    /// As [`AccountingError`].
    pub fn open(path: &Path, store: &Store) -> Result<Self, AccountingError> {
        let file = Self::bring_up_to_date(path, store)?;
        file.keep_cursor(store)?;
        Ok(file)
    }

    fn bring_up_to_date(path: &Path, store: &Store) -> Result<Self, AccountingError> {
        let failed = |source| AccountingError::File { path: path.to_owned(), source };
        let mut file = open(path).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        let cursor = store.accounting_cursor()?;
        let known = if cursor.inode == inode { cursor.bytes } else { 0 };
        let (expected, last) = lines_after(store, cursor.seq)?;
        reconcile(&mut file, known, &expected).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, inode, last, is_behind: false })
    }

    /// Lets the records among these events go by, where `accounting=false` holds; whether there were any.
    pub fn skip<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        let is_end = |record: &&R| (*record).borrow().event.accounting().is_some();
        let Some(last) = records.iter().rev().find(is_end).filter(|_| !self.is_behind) else { return false };
        self.last = last.borrow().seq;
        true
    }

    /// Writes the records among these events; whether there were any. What cannot be written now is written by [`Self::sync`], once that is possible.
    pub fn append<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        let (text, last) = lines_of(records);
        let Some(last) = last else { return false };
        if self.is_behind {
            return true;
        }
        match self.write(&text) {
            Ok(()) => self.last = last,
            Err(source) => {
                self.is_behind = true;
                let error = AccountingError::File { path: self.path.clone(), source };
                tracing::error!(
                    "{}; the database has the records, they are written when that is possible again",
                    crate::error_chain(&error)
                );
            }
        }
        true
    }

    /// Makes durable what was written, and notes it. Writes before what could not be written then.
    ///
    /// # Errors
    /// As [`AccountingError`].
    pub fn sync(&mut self, store: &Store) -> Result<(), AccountingError> {
        if self.is_behind {
            *self = Self::bring_up_to_date(&self.path, store)?;
            tracing::info!("{} has all accounting records again", self.path.display());
        }
        self.keep_cursor(store)
    }

    fn keep_cursor(&self, store: &Store) -> Result<(), AccountingError> {
        let failed = |source| AccountingError::File { path: self.path.clone(), source };
        self.file.sync_data().map_err(failed)?;
        let bytes = self.file.metadata().map_err(failed)?.len();
        Ok(store.keep_accounting_cursor(AccountingCursor { seq: self.last, bytes, inode: self.inode })?)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        // Log rotation moves the file away; tools then expect a new one.
        let is_ours = std::fs::metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if !is_ours {
            self.file = open(&self.path)?;
            self.inode = self.file.metadata()?.ino();
        }
        self.file.write_all(text.as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

fn lines_of<R: Borrow<Record>>(records: &[R]) -> (String, Option<EventSeq>) {
    let (mut text, mut last) = (String::new(), None);
    for record in records {
        let record = record.borrow();
        if let Some(ended) = record.event.accounting() {
            ended.write_line(&mut text);
            text.push('\n');
            last = Some(record.seq);
        }
    }
    (text, last)
}

fn lines_after(store: &Store, after: EventSeq) -> Result<(String, EventSeq), StoreError> {
    let (mut text, mut last) = (String::new(), after);
    store.accounting(after, None, |row| {
        match row {
            Ok(row) => {
                row.record.write_line(&mut text);
                text.push('\n');
                last = row.seq;
            }
            Err(damage) => {
                tracing::error!(
                    "accounting records up to event {} are damaged and left out: {}",
                    damage.seq.0,
                    damage.why
                );
                last = damage.seq;
            }
        }
        true
    })?;
    Ok((text, last))
}

/// Makes the file end with `expected` behind its first `known` bytes: keeps what agrees, cuts a torn rest, writes what is missing.
fn reconcile(file: &mut File, known: u64, expected: &str) -> io::Result<()> {
    let len = file.metadata()?.len();
    let known = known.min(len);
    file.seek(SeekFrom::Start(known))?;
    let mut there = Vec::new();
    file.take(expected.len() as u64).read_to_end(&mut there)?;
    let same = there.iter().zip(expected.as_bytes()).take_while(|(a, b)| a == b).count();
    // Only a line that was torn by the crash is cut; text that somebody else put there stays, and lines are written behind it.
    let is_torn = !there[same..].contains(&b'\n');
    if is_torn && same < there.len() {
        file.set_len(known + same as u64)?;
    }
    let whole_lines = expected.as_bytes()[..same].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let from = if is_torn { same } else { whole_lines };
    file.write_all(&expected.as_bytes()[from..])
}
