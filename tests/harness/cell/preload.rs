//! Libraries that replace calls of the C library in single programs, which load them first.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether such a library can be built here.
pub(super) fn can_be_built() -> bool {
    Command::new("cc").arg("--version").output().is_ok()
}

/// Builds `NAME.so` in a directory that the programs must be able to read.
///
/// # Panics
/// If the compiler refuses it.
pub(super) fn build(dir: &Path, name: &str, text: &str) -> PathBuf {
    let (source, library) = (dir.join(format!("{name}.c")), dir.join(format!("{name}.so")));
    std::fs::write(&source, text).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    let output = command.output().unwrap_or_else(|error| panic!("cc: {error}"));
    assert!(
        output.status.success(),
        "cc: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    library
}
