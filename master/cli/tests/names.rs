//! The program under its names. That this test exists also makes `cargo test` build the program,
//! which the end-to-end tests start.

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
    assert!(
        output.status.code() == Some(2) && said.contains("did you mean qsub?"),
        "{said}"
    );
}

/// Each name in the overview.
fn names() -> Vec<String> {
    let overview = called_as("gridwright", &["help"]);
    let text = String::from_utf8(overview.stdout).expect("it is text");
    let lines = text.lines().filter(|line| line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// `GRIDWRIGHT_HELP_WRITE=1` writes the overview anew.
#[test]
fn the_overview_is_the_one_that_was_agreed_on() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/overview.txt");
    let overview = called_as("gridwright", &["help"]);
    let text = String::from_utf8(overview.stdout.clone()).expect("it is text");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    if std::env::var_os("GRIDWRIGHT_HELP_WRITE").is_some() {
        std::fs::write(path, &text).expect("the checkout can be written");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("the overview is there"));
    assert!(overview.status.success() && overview.stderr.is_empty(), "{overview:?}");
    for word in ["--help", "-h", "-help"] {
        assert_eq!(called_as("gridwright", &[word]), overview, "{word}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "it fits a terminal");
}

#[test]
fn every_command_prints_its_help_however_it_is_asked() {
    let names = names();
    assert!(names.len() > 30, "{names:?}");
    for name in &names {
        let help = called_as("gridwright", &[name, "-help"]);
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(help.status.success() && help.stderr.is_empty(), "{name}: {help:?}");
        let usage = text
            .lines()
            .find(|line| line.starts_with("usage: "))
            .unwrap_or_default();
        assert!(
            usage.contains(name.as_str()) && text.starts_with("Gridwright "),
            "{name}: {text}"
        );
        let has_short = !["qacct", "qsub"].contains(&name.as_str());
        let short = has_short.then_some([name.as_str(), "-h"]);
        for words in [[name.as_str(), "--help"], ["help", name]].into_iter().chain(short) {
            assert_eq!(called_as("gridwright", &words), help, "{words:?}");
        }
        if name.starts_with('q') {
            assert_eq!(called_as(name, &["--help"]), help, "{name}");
        }
    }
}

#[test]
fn every_command_tells_its_version() {
    let version = format!("Gridwright {}\n", env!("CARGO_PKG_VERSION"));
    let own = [["--version"], ["-V"], ["version"]].map(|words| called_as("gridwright", &words));
    let names = names();
    let ask = |word| names.iter().map(move |name| called_as(name, &[word]));
    for output in own.into_iter().chain(ask("--version")).chain(ask("-version")) {
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stdout)),
            (Some(0), version.as_str().into())
        );
    }
}

#[test]
fn no_command_at_all_is_an_error_that_says_where_they_are_listed() {
    let output = called_as("gridwright", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("gridwright help"),
        "{said}"
    );
}
