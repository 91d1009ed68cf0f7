//! A sensor's file: whether it may be run, and whether it is still the same. The file system may
//! hang, so it is asked beside the task, with patience.

use ::sensors::safety::{FileFacts, FileKind, FileStamp, Uid, judge};
use proto::diagnostic::Diagnostic;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// How long the file system may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// What tells this version of the file from the next; none where there is no file, or no answer.
pub(super) async fn stamp(path: &str) -> Option<FileStamp> {
    let metadata = timeout(PATIENCE, tokio::fs::metadata(path)).await.ok()?.ok()?;
    Some(FileStamp {
        identity: (metadata.dev(), metadata.ino()),
        modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
    })
}

/// The file of a sensor may not be run.
#[derive(Debug, thiserror::Error)]
pub enum UnsafeSensor {
    /// The file system took too long.
    #[error("its file system does not answer")]
    NoAnswer,
    /// The system does not show the file.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// Somebody else could change the program.
    #[error("{}. {}", .0.why, .0.fix)]
    Unsafe(Box<Diagnostic>),
}

/// Checks that the file may be run as `user`. A file that only its own user can see is left to the
/// launcher, which looks as that user.
pub async fn check(path: &str, user: Uid) -> Result<(), UnsafeSensor> {
    let path = path.to_owned();
    let look = tokio::task::spawn_blocking(move || look(&path, user));
    match timeout(PATIENCE, look).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) | Err(_) => Err(UnsafeSensor::NoAnswer),
    }
}

fn look(path: &str, user: Uid) -> Result<(), UnsafeSensor> {
    let file = match std::fs::metadata(path) {
        Ok(metadata) => facts(&metadata),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        Err(reason) => {
            let path = path.to_owned();
            return Err(UnsafeSensor::Unreadable { path, reason });
        }
    };
    let directories: Vec<(&str, FileFacts)> = Path::new(path)
        .ancestors()
        .skip(1)
        .filter_map(|directory| Some((directory.to_str()?, facts(&std::fs::metadata(directory).ok()?))))
        .collect();
    judge(path, &file, &directories, user).map_err(|refusal| UnsafeSensor::Unsafe(Box::new(refusal)))
}

fn facts(metadata: &Metadata) -> FileFacts {
    let kind = if metadata.is_file() {
        FileKind::Regular
    } else if metadata.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Special
    };
    FileFacts {
        kind,
        owner: Uid(metadata.uid()),
        mode: metadata.mode() & 0o7777,
    }
}
