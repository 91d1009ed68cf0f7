//! A text in an editor: a file that only its owner reads, removed unless it is kept.

use crate::fail::Fail;
use nix::unistd::mkstemp;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file with the text. It goes when the value does, unless [`Draft::keep`] was called.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    written: Stamp,
    is_kept: bool,
}

/// What changes when an editor saves: it writes the file again, or puts another in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Draft {
    /// Writes the text to a new file of mode 0600 in `dir`.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn new(dir: &Path, text: &str) -> Result<Self, Fail> {
        let (descriptor, path) =
            mkstemp(&dir.join("qconf-XXXXXX")).map_err(|error| refused("made", dir, &error.into()))?;
        let mut file = File::from(descriptor);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.metadata());
        match written {
            Ok(metadata) => Ok(Self {
                path,
                written: Stamp::from_metadata(&metadata),
                is_kept: false,
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(refused("written", &path, &error))
            }
        }
    }

    /// Runs the editor, a command of the shell, and waits for it. Returns the text if it was saved.
    ///
    /// # Errors
    /// If the editor cannot be run or ends badly, or the text cannot be read. A text that was saved
    /// is kept then.
    pub fn edit(&mut self, editor: &str) -> Result<Option<String>, Fail> {
        let status = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("{editor} \"$1\""))
            .arg("sh")
            .arg(&self.path)
            .status();
        let status = status.map_err(|error| refused("edited", &self.path, &error))?;
        let is_saved = std::fs::metadata(&self.path).is_ok_and(|now| Stamp::from_metadata(&now) != self.written);
        if !status.success() {
            self.is_kept = is_saved;
            let refusal = Diagnostic::new(Code::SystemRefused, "error: edit failed").why(format!("{editor}: {status}"));
            let refusal = if is_saved { refusal.at(self.place()) } else { refusal };
            return Err(refusal.fix("set EDITOR to an editor that works here").into());
        }
        if !is_saved {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&self.path);
        self.is_kept = text.is_err();
        text.map(Some).map_err(|error| refused("read", &self.path, &error))
    }

    /// Keeps the file, so that the work in it is not lost. Returns where it is.
    pub fn keep(mut self) -> String {
        self.is_kept = true;
        self.place()
    }

    /// Where the file is.
    pub fn place(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            // A file that an editor removed already is as good.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn refused(what: &str, path: &Path, error: &std::io::Error) -> Fail {
    let refusal = Diagnostic::new(Code::SystemRefused, format!("error: the text cannot be {what}"));
    refusal
        .at(path.display().to_string())
        .why(error.to_string())
        .fix("set TMPDIR to a directory that can be written")
        .into()
}
