//! The files that `-f FILE -rotated` means: FILE, and what it was turned over to, by the master, by
//! logrotate(8) or by the `logchecker` of Grid Engine.

use crate::exit;
use crate::fail::Fail;
use proto::accounting::RotationAge;
use proto::diagnostic::{Code, Diagnostic};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file to read.
#[derive(Debug)]
pub struct AccountingSource {
    /// Its path.
    pub path: PathBuf,
    /// The file that was found there.
    identity: FileIdentity,
    /// The file itself, where it was opened before the others were looked for.
    opened: Option<File>,
}

/// A file, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn new(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

impl AccountingSource {
    /// Opens the file.
    ///
    /// # Errors
    /// Errors of the file system, and if another file has its name by now.
    pub fn open(&mut self) -> io::Result<File> {
        if let Some(file) = self.opened.take() {
            return Ok(file);
        }
        let changed = || io::Error::other("accounting files were turned over in this moment: repeat the command");
        let file = File::open(&self.path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                changed()
            } else {
                error
            }
        })?;
        if FileIdentity::new(&file.metadata()?) == self.identity {
            Ok(file)
        } else {
            Err(changed())
        }
    }
}

/// The file alone.
///
/// # Errors
/// Errors of the file system.
pub fn single(path: &Path) -> io::Result<Vec<AccountingSource>> {
    let file = File::open(path)?;
    let identity = FileIdentity::new(&file.metadata()?);
    Ok(vec![AccountingSource {
        path: path.to_owned(),
        identity,
        opened: Some(file),
    }])
}

/// The file and what it was turned over to, oldest first. The file is opened before the others are
/// looked for: if it is put aside in between, it is found twice and read once.
///
/// # Errors
/// Errors of the file system, and an older file that is compressed by something else than gzip(1).
pub fn family(path: &Path) -> Result<Vec<AccountingSource>, Fail> {
    let refuse = |error: io::Error| super::file::unreadable(path, &error);
    let mut current = single(path).map_err(refuse)?;
    let mut older = Vec::new();
    for place in places(path) {
        for (age, path) in parts(&place).map_err(refuse)? {
            let found = fs::metadata(&path).map_err(refuse)?;
            let identity = FileIdentity::new(&found);
            let is_known = |known: &AccountingSource| known.identity == identity;
            if !current.iter().any(is_known) && !older.iter().any(|(_, known)| is_known(known)) {
                let opened = None;
                older.push((age, AccountingSource { path, identity, opened }));
            }
        }
    }
    older.sort_by_key(|(age, _)| *age);
    let mut sources: Vec<_> = older.into_iter().map(|(_, source)| source).collect();
    sources.append(&mut current);
    if let Some(strange) = sources.iter().find(|source| is_strange(&source.path)) {
        let what = format!("{}: is compressed by something else than gzip", strange.path.display());
        let refusal = Diagnostic::new(Code::SystemRefused, what);
        return Err(Fail::new(
            exit::FAILED,
            refusal
                .why("without its records the answer would be short")
                .fix("decompress it, or move it to another directory"),
        ));
    }
    Ok(sources)
}

/// Whether files lie beside it that it was turned over to.
pub fn has_family(path: &Path) -> bool {
    places(path)
        .iter()
        .any(|place| parts(place).is_ok_and(|parts| !parts.is_empty()))
}

/// Where older files may lie: beside the name, and beside the file behind a link.
fn places(path: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut places = vec![absolute];
    places.extend(fs::canonicalize(path));
    places.dedup();
    places
}

/// The parts of a file in its directory.
fn parts(path: &Path) -> io::Result<Vec<(RotationAge, PathBuf)>> {
    let (Some(dir), Some(base)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some((age, ending)) = name.to_str().and_then(|name| RotationAge::parse(base, name)) else {
            continue;
        };
        if !matches!(ending, ".index" | ".index-draft") {
            found.push((age, dir.join(&name)));
        }
    }
    Ok(found)
}

/// Whether a name ends like that of a file that cannot be read.
fn is_strange(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("bz2" | "xz" | "zst" | "lz4" | "Z" | "lzma" | "zip"))
}
