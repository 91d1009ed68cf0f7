//! The classic accounting file, accounting(5): one line for each record, because tools read it.
//!
//! The database is the truth; the file follows it. How far it is known to be on disk is noted in
//! the database from time to time. After a crash what lies behind that point is compared with the
//! records behind it, and only what is missing is written: no line is lost and none is there twice.
//! A file that somebody moved away is begun anew.

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

/// The most records that are compared with the file, or written into it, at a time.
const PART: usize = if cfg!(test) { 4 } else { 10_000 };

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
        let failed = |source| AccountingError::File {
            path: path.to_owned(),
            source,
        };
        let opened = open(path).map_err(failed)?;
        let inode = opened.metadata().map_err(failed)?.ino();
        let mut file = Self {
            path: path.to_owned(),
            file: opened,
            inode,
            last: EventSeq(0),
            is_behind: true,
        };
        while file.is_behind {
            file.catch_up(store)?;
        }
        file.keep_cursor(store)?;
        Ok(file)
    }

    /// Brings the file nearer to the database by [`PART`] records at most, and notes how far it is
    /// then: an attempt that fails later begins there.
    fn catch_up(&mut self, store: &Store) -> Result<(), AccountingError> {
        let failed = |source| AccountingError::File {
            path: self.path.clone(),
            source,
        };
        let mut file = open(&self.path).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        let cursor = store.accounting_cursor()?;
        let known = if cursor.inode == inode { cursor.bytes } else { 0 };
        let MissingLines { text, last, more } = missing(store, cursor.seq, PART)?;
        let bytes = reconcile(&mut file, known, &text).map_err(failed)?;
        if more {
            file.sync_data().map_err(failed)?;
            store.keep_accounting_cursor(AccountingCursor {
                seq: last,
                bytes,
                inode,
            })?;
        }
        (self.file, self.inode, self.last, self.is_behind) = (file, inode, last, more);
        Ok(())
    }

    /// Whether the database has records that the file has not, and [`Self::sync`] is to be called
    /// again.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Lets the records among these events go by, where `accounting=false` holds; whether there
    /// were any that the file has not.
    pub fn skip<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        if self.is_behind {
            return false;
        }
        let new = lines_of(records, self.last).1;
        self.last = new.unwrap_or(self.last);
        new.is_some()
    }

    /// Writes the records among these events, but for those that the file got out of the database
    /// while they were on their way here; whether there were any. What cannot be written now is
    /// written by [`Self::sync`], once that is possible.
    pub fn append<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        let (text, last) = lines_of(records, self.last);
        let Some(last) = last else { return false };
        if self.is_behind {
            return true;
        }
        match self.write(&text) {
            Ok(()) => self.last = last,
            Err(source) => {
                self.is_behind = true;
                let error = AccountingError::File {
                    path: self.path.clone(),
                    source,
                };
                tracing::error!(
                    "{}; the database has the records, they are written when that is possible again",
                    crate::error_chain(&error)
                );
            }
        }
        true
    }

    /// Makes durable what was written, and notes it. Of what could not be written before it writes
    /// a part: as long as the file [is behind](Self::is_behind), it is to be called again.
    ///
    /// # Errors
    /// As [`AccountingError`].
    pub fn sync(&mut self, store: &Store) -> Result<(), AccountingError> {
        if self.is_behind {
            self.catch_up(store)?;
            if self.is_behind {
                return Ok(());
            }
            tracing::info!("{} has all accounting records again", self.path.display());
        }
        self.keep_cursor(store)
    }

    fn keep_cursor(&self, store: &Store) -> Result<(), AccountingError> {
        let failed = |source| AccountingError::File {
            path: self.path.clone(),
            source,
        };
        self.file.sync_data().map_err(failed)?;
        let bytes = self.file.metadata().map_err(failed)?.len();
        Ok(store.keep_accounting_cursor(AccountingCursor {
            seq: self.last,
            bytes,
            inode: self.inode,
        })?)
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

/// The lines of the records behind an event, and the last of them.
fn lines_of<R: Borrow<Record>>(records: &[R], after: EventSeq) -> (String, Option<EventSeq>) {
    let (mut text, mut last) = (String::new(), None);
    for record in records.iter().map(Borrow::borrow).filter(|record| record.seq > after) {
        if let Some(ended) = record.event.accounting() {
            ended.write_line(&mut text);
            text.push('\n');
            last = Some(record.seq);
        }
    }
    (text, last)
}

/// Lines of the database behind an event.
struct MissingLines {
    text: String,
    /// The event of the last one.
    last: EventSeq,
    /// Whether there may be more behind it.
    more: bool,
}

/// The lines of `most` records behind an event.
fn missing(store: &Store, after: EventSeq, most: usize) -> Result<MissingLines, StoreError> {
    let mut missing = MissingLines {
        text: String::new(),
        last: after,
        more: false,
    };
    let mut count = 0;
    store.accounting(after, None, |row| {
        match row {
            Ok(row) => {
                row.record.write_line(&mut missing.text);
                missing.text.push('\n');
                missing.last = row.seq;
            }
            Err(damage) => {
                tracing::error!(
                    "accounting records up to event {} are damaged and left out: {}",
                    damage.seq.0,
                    damage.why
                );
                missing.last = damage.seq;
            }
        }
        count += 1;
        missing.more = count >= most;
        !missing.more
    })?;
    Ok(missing)
}

/// Makes the file hold `expected` behind its first `known` bytes: keeps what agrees, cuts a torn
/// rest, writes what is missing at the end. Returns where more is to be looked for.
fn reconcile(file: &mut File, known: u64, expected: &str) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let known = known.min(len);
    file.seek(SeekFrom::Start(known))?;
    let mut there = Vec::new();
    (&*file).take(expected.len() as u64).read_to_end(&mut there)?;
    let same = there
        .iter()
        .zip(expected.as_bytes())
        .take_while(|(a, b)| a == b)
        .count();
    // Only a line that was torn by the crash is cut; text that somebody else put there stays, and
    // lines are written behind it.
    let is_torn = known + there.len() as u64 == len && !there[same..].contains(&b'\n');
    if is_torn && same < there.len() {
        file.set_len(known + same as u64)?;
    }
    let whole_lines = expected.as_bytes()[..same]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let from = if is_torn { same } else { whole_lines };
    if from == expected.len() {
        return Ok(known + from as u64);
    }
    file.write_all(&expected.as_bytes()[from..])?;
    Ok(file.metadata()?.len())
}
