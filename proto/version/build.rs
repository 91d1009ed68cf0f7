//! Finds the commit that an optimised build is made from.
//!
//! A debug build has none: it would be made anew after each commit. `GRIDWRIGHT_COMMIT` replaces
//! the answer of git, for builds outside of a checkout.

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
    // Each commit and each change of the branch adds a line to this file.
    println!(
        "cargo::rerun-if-changed={}",
        git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?
    );
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(words)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
