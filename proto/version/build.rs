//! Finds the commit that an optimised build is made from.
//!
//! A debug build has none: it would be made anew after each commit. `GRIDWRIGHT_COMMIT` replaces
//! the answer of git, for builds outside of a checkout. Sources below another checkout, such as one
//! of a package, have no commit of their own. A `+` stands behind a commit whose files were
//! changed.

use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "GRIDWRIGHT_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let is_debug = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let given = std::env::var(VARIABLE).ok();
    let commit = given.or_else(|| if is_debug { None } else { commit_of_checkout() });
    println!("cargo::rustc-env={VARIABLE}={}", commit.unwrap_or_default());
}

fn commit_of_checkout() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if !is_workspace(Path::new(&top)) {
        return None;
    }
    // Each commit and each change of the branch adds a line to this file. Git may be told not to
    // write it, and cargo would run this program each time if it were not there.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    let sources = ["agent", "master", "proto", "sensors", "Cargo.toml", "Cargo.lock"];
    let sources = sources.map(|name| Path::new(&top).join(name));
    for path in sources.iter().map(PathBuf::as_path).chain([Path::new(&log)]) {
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some();
    Some(if changed { commit + "+" } else { commit })
}

/// Whether a directory is the one of this workspace: this package is `proto/version` in it.
fn is_workspace(top: &Path) -> bool {
    let package = std::env::var("CARGO_MANIFEST_DIR").ok();
    let ours = package.and_then(|package| Path::new(&package).join("../..").canonicalize().ok());
    ours.is_some_and(|ours| top.canonicalize().is_ok_and(|top| top == ours))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(words)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
