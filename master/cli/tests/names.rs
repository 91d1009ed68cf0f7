//! The program under its names. That this test exists also makes `cargo test` build the program, which the end-to-end tests start.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// `gridwright` called as `name`.
fn called_as(name: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gridwright"));
    command.arg0(name).args(words).output().expect("the program is built")
}

#[test]
fn a_name_and_a_first_word_lead_to_the_same_command() {
    for name in ["qsub", "qstat", "qconf", "qhost", "qdel", "qacct"] {
        let (link, word) = (called_as(name, &["-help"]), called_as("gridwright", &[name, "-help"]));
        assert!(link.status.success() && !link.stdout.is_empty(), "{name}: {link:?}");
        assert_eq!(link, word, "{name}");
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_one() {
    let output = called_as("gridwright", &["qsubb"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("did you mean qsub?"), "{said}");
}
