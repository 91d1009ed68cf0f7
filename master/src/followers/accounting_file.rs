//! The accounting files: one line for each record, because tools read them. The classic one,
//! accounting(5), and the same records as JSON lines.
//!
//! The database is the truth; a file follows it. How far it is known to be on disk is noted in
//! the database from time to time. After a crash what lies behind that point is compared with the
//! records behind it, and only what is missing is written: no line is lost and none is there twice.
//! A file that somebody moved away is begun anew. The master itself puts a file aside only after
//! everything in it is durable and noted: wherever a crash interrupts that, the next start finds
//! the file under one of its two names, and goes on behind its last record.

mod indexing;
mod rotation;
#[cfg(test)]
mod tests;

pub use rotation::RotationLimits;

use crate::store::{AccountingCursor, AccountingFormat, Store, StoreError};
use indexing::Indexer;
use master_core::event::Record;
use proto::accounting::{AccountingRecord, JsonRecord};
use proto::id::EventSeq;
use rotation::{FilePlace, SWEEP};
use std::borrow::Borrow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// What is written, and how it is turned over.
#[derive(Clone, Copy, Debug)]
pub struct AccountingFileRules {
    /// The form of the lines.
    pub format: AccountingFormat,
    /// When the file is put aside.
    pub limits: RotationLimits,
}

/// The open file.
pub struct AccountingFile {
    path: PathBuf,
    rules: AccountingFileRules,
    indexer: Indexer,
    /// When the files that were put aside were last looked through. `None` before the first time.
    swept: Option<SystemTime>,
    /// Whether the file could not be put aside, so that the log was told.
    is_stuck: bool,
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
    pub fn open(path: &Path, rules: AccountingFileRules, store: &Store) -> Result<Self, AccountingError> {
        let mut file = Self::open_behind(path, rules)?;
        while file.is_behind {
            file.catch_up(store)?;
        }
        file.keep_cursor(store)?;
        Ok(file)
    }

    /// Opens a file that [is behind](Self::is_behind) until [`Self::sync`] has brought it up to
    /// date: a file that is new in an old cell gets all records, while the master works already.
    ///
    /// # Errors
    /// As [`AccountingError`].
    pub fn open_behind(path: &Path, rules: AccountingFileRules) -> Result<Self, AccountingError> {
        let failed = |source| AccountingError::File {
            path: path.to_owned(),
            source,
        };
        let opened = open(path).map_err(failed)?;
        let inode = opened.metadata().map_err(failed)?.ino();
        Ok(Self {
            path: path.to_owned(),
            rules,
            indexer: Indexer::default(),
            swept: None,
            is_stuck: false,
            file: opened,
            inode,
            last: EventSeq(0),
            is_behind: true,
        })
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
        let cursor = store.accounting_cursor(self.rules.format)?;
        let known = if cursor.inode == inode { cursor.bytes } else { 0 };
        let MissingLines { text, last, more } = missing(store, self.rules.format, cursor.seq, PART)?;
        let bytes = reconcile(&mut file, known, &text).map_err(failed)?;
        if more {
            file.sync_data().map_err(failed)?;
            let cursor = AccountingCursor {
                seq: last,
                bytes,
                inode,
            };
            store.keep_accounting_cursor(self.rules.format, cursor)?;
        }
        (self.file, self.inode, self.last, self.is_behind) = (file, inode, last, more);
        Ok(())
    }

    /// Whether the database has records that the file has not, and [`Self::sync`] is to be called
    /// again.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Whether the file is ever put aside.
    pub fn has_limits(&self) -> bool {
        self.rules.limits.is_on()
    }

    /// Lets the records among these events go by, where `accounting=false` holds; whether there
    /// were any that the file has not.
    pub fn skip<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        if self.is_behind {
            return false;
        }
        let is_end = |record: &&Record| record.seq > self.last && record.event.accounting().is_some();
        let new = records.iter().map(Borrow::borrow).rfind(is_end);
        let Some(Record { seq, .. }) = new else { return false };
        self.last = *seq;
        true
    }

    /// Writes the records among these events, but for those that the file got out of the database
    /// while they were on their way here; whether there were any. What cannot be written now is
    /// written by [`Self::sync`], once that is possible.
    pub fn append<R: Borrow<Record>>(&mut self, records: &[R]) -> bool {
        let (text, last) = lines_of(records, self.rules.format, self.last);
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

    /// Makes durable what was written, notes it, and puts the file aside if that is due. Of what
    /// could not be written before it writes a part: as long as the file
    /// [is behind](Self::is_behind), it is to be called again.
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
        self.keep_cursor(store)?;
        if self.has_limits() {
            self.turn_over(store, SystemTime::now())?;
        }
        Ok(())
    }

    /// Puts the file aside if it is large or old enough, and removes what is beyond the limits.
    /// Everything that was written is durable and noted.
    fn turn_over(&mut self, store: &Store, now: SystemTime) -> Result<(), AccountingError> {
        let failed = |source| AccountingError::File {
            path: self.path.clone(),
            source,
        };
        let limits = self.rules.limits;
        let found = self.file.metadata().map_err(failed)?;
        let is_due = limits.reached(&found, now) && !self.is_stuck && self.is_at_its_path();
        let is_sweep_due = self
            .swept
            .is_none_or(|last| now.duration_since(last).is_ok_and(|pause| pause >= SWEEP));
        if !is_due && !is_sweep_due {
            return Ok(());
        }
        let place = FilePlace::find(&self.path).map_err(failed)?;
        if is_due && let Err(source) = place.put_aside(now) {
            self.is_stuck = true;
            tracing::error!(
                "{}: cannot be turned over: {source}; it grows on until the next start. The master needs the right to rename it: \
                 man 5 accounting says how",
                self.path.display()
            );
        } else if is_due {
            self.file = open(&self.path).map_err(failed)?;
            self.inode = self.file.metadata().map_err(failed)?.ino();
            self.keep_cursor(store)?;
        }
        self.sweep(&place, now);
        Ok(())
    }

    fn sweep(&mut self, place: &FilePlace, now: SystemTime) {
        self.swept = Some(now);
        match place.sweep(&self.rules.limits, now) {
            Ok(0) => {}
            Ok(removed) => tracing::info!(
                "{}: {removed} old accounting files are removed, as master.toml says",
                place.dir.display()
            ),
            Err(error) => tracing::warn!("{}: old accounting files stay: {error}", place.dir.display()),
        }
        if self.rules.format == AccountingFormat::Classic {
            self.indexer.begin(place.clone());
        }
    }

    fn keep_cursor(&self, store: &Store) -> Result<(), AccountingError> {
        let failed = |source| AccountingError::File {
            path: self.path.clone(),
            source,
        };
        self.file.sync_data().map_err(failed)?;
        let bytes = self.file.metadata().map_err(failed)?.len();
        let cursor = AccountingCursor {
            seq: self.last,
            bytes,
            inode: self.inode,
        };
        Ok(store.keep_accounting_cursor(self.rules.format, cursor)?)
    }

    /// Whether nobody has moved the file away.
    fn is_at_its_path(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|there| there.ino() == self.inode)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        // Log rotation moves the file away; tools then expect a new one.
        if !self.is_at_its_path() {
            self.file = open(&self.path)?;
            self.inode = self.file.metadata()?.ino();
        }
        self.file.write_all(text.as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Writes a record as a line.
fn write_line(format: AccountingFormat, record: &AccountingRecord, text: &mut String) {
    match format {
        AccountingFormat::Classic => record.write_line(text),
        AccountingFormat::JsonLines => {
            let object = serde_json::to_string(&JsonRecord(record));
            text.push_str(&object.expect("all keys are texts, and nothing in a record refuses to be written"));
        }
    }
    text.push('\n');
}

/// The lines of the records behind an event, and the last of them.
fn lines_of<R: Borrow<Record>>(records: &[R], format: AccountingFormat, after: EventSeq) -> (String, Option<EventSeq>) {
    let (mut text, mut last) = (String::new(), None);
    for record in records.iter().map(Borrow::borrow).filter(|record| record.seq > after) {
        if let Some(ended) = record.event.accounting() {
            write_line(format, ended, &mut text);
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
fn missing(store: &Store, format: AccountingFormat, after: EventSeq, most: usize) -> Result<MissingLines, StoreError> {
    let mut missing = MissingLines {
        text: String::new(),
        last: after,
        more: false,
    };
    let mut count = 0;
    store.accounting(after, None, |row| {
        match row {
            Ok(row) => {
                write_line(format, &row.record, &mut missing.text);
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
