//! `-archive FILE`: the chosen records as an accounting file of their own, which `qacct -f` reads.

use super::entry::AccountingEntry;
use crate::commands::ask::Format;
use crate::exit;
use crate::fail::Fail;
use proto::accounting::JsonRecord;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// An archive that is being written. It gets its name when it is whole.
pub struct Archive {
    path: PathBuf,
    draft: PathBuf,
    file: BufWriter<File>,
    format: Format,
    count: usize,
    failure: Option<io::Error>,
}

impl Archive {
    /// Begins an archive of classic lines, or of JSON lines with `-fmt json`.
    ///
    /// # Errors
    /// If the file exists, or cannot be made.
    pub fn begin(path: &str, format: Format) -> Result<Self, Fail> {
        let path = PathBuf::from(path);
        if path.symlink_metadata().is_ok() {
            return Err(refused(&path, "a file of that name exists").fix("name another file, or remove it"));
        }
        let mut draft = path.clone().into_os_string();
        draft.push(format!(".part-{}", std::process::id()));
        let draft = PathBuf::from(draft);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft)
            .map_err(|error| refused(&draft, &error.to_string()))?;
        Ok(Self {
            path,
            draft,
            file: BufWriter::with_capacity(1 << 20, file),
            format,
            count: 0,
            failure: None,
        })
    }

    /// Adds a record. A failure is reported at the end.
    pub fn add(&mut self, entry: &AccountingEntry) {
        if self.failure.is_none() {
            self.failure = self.write(entry).err();
        }
        self.count += 1;
    }

    fn write(&mut self, entry: &AccountingEntry) -> io::Result<()> {
        match self.format {
            Format::Json => serde_json::to_writer(&mut self.file, &JsonRecord(&entry.record))?,
            Format::Text | Format::Xml => self.file.write_all(entry.record.to_line().as_bytes())?,
        }
        self.file.write_all(b"\n")
    }

    /// Makes the archive durable under its name. Returns the number of records.
    ///
    /// # Errors
    /// If a record could not be written.
    pub fn finish(mut self) -> Result<usize, Fail> {
        let written = match self.failure.take() {
            Some(error) => Err(error),
            None => self.file.flush().and_then(|()| self.file.get_ref().sync_all()),
        };
        let done = written.and_then(|()| fs::rename(&self.draft, &self.path));
        done.map_err(|error| refused(&self.path, &error.to_string()))?;
        Ok(self.count)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.draft);
    }
}

fn refused(path: &Path, why: &str) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, "error: the archive cannot be written");
    Fail::new(exit::FAILED, refusal.at(path.display().to_string()).why(why))
}
