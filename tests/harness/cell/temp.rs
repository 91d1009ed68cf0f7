//! Temporary directories and files of tests.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that everybody may read, removed with this value.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    files: AtomicU32,
}

impl TempDir {
    /// Makes one.
    ///
    /// # Panics
    /// If the system refuses it.
    #[expect(
        clippy::new_without_default,
        reason = "it makes a directory, which nobody expects of a default"
    )]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gridwright-e2e-{}-{}.", run(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the directory is ours");
        Self {
            path,
            files: AtomicU32::new(0),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A number that no file of it has yet.
    pub(super) fn number(&self) -> u32 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed is in the temporary directory and harms nobody.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The variable that tells a program that it runs in namespaces of its own, and what its run is
/// called.
pub(super) const INSIDE: &str = "GRIDWRIGHT_TESTS_INSIDE";

/// A name of this run of the program that no other one on this machine has: process ids repeat in
/// namespaces.
pub fn run() -> String {
    std::env::var(INSIDE).unwrap_or_else(|_| std::process::id().to_string())
}

/// Writes a file with these rights.
pub(super) fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
}
