//! What others wrote reaches no terminal as anything but text.

use gridwright_tests::cell::{Cell, Said};

/// Moves the cursor, rings the bell, and forges a line.
const NAME: &str = "\u{1b}[31mEVIL\u{7}";
const CONTEXT: &str = "key=\u{9b}2J\u{7f}";
const ARGUMENT: &str = "one\nhard resource_list:         forged=1\ttwo";

#[track_caller]
fn has_no_control_characters(said: &Said) {
    let is_form = |character: char| matches!(character, '\n' | '\t');
    let found =
        said.out.chars().chain(said.err.chars()).find(|character| character.is_control() && !is_form(*character));
    assert_eq!(found, None, "{said:?}");
}

#[test]
fn control_characters_of_a_job_are_shown_and_not_obeyed() {
    let cell = Cell::up();
    let words =
        ["-h", "-N", NAME, "-A", NAME, "-ac", CONTEXT, "-v", "X=a\u{1b}c", "-o", "/dev/null", "-j", "y", "-b", "y"];
    let submitted = cell.user(&[&["qsub"], &words[..], &["echo", ARGUMENT]].concat()).ok();
    has_no_control_characters(&submitted);
    let job = submitted.out.split_whitespace().nth(2).expect("a number").to_owned();
    for words in [
        &["qstat"][..],
        &["qstat", "-r"],
        &["qstat", "-ext"],
        &["qstat", "-f"],
        &["qstat", "-g", "d"],
        &["qstat", "-j", &job],
        &["qhost", "-j"],
        &["explain", &job],
        &["qstat", "-xml"],
        &["qstat", "-j", &job, "-xml"],
        &["qstat", "-fmt", "json"],
        &["qalter", "-N", NAME, &job],
    ] {
        has_no_control_characters(&cell.user(words).ok());
    }
    let details = cell.user(&["qstat", "-j", &job]).ok().out;
    assert!(!details.lines().any(|line| line.starts_with("hard resource_list")), "{details}");
    assert!(details.contains("\\u{1b}[31mEVIL\\u{7}") && details.contains("one\\nhard resource_list"), "{details}");
    let json = cell.user(&["qstat", "-j", &job, "-fmt", "json"]).ok().out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json.to_string().contains("\\u001b[31mEVIL\\u0007"), "{json}");
    cell.user(&["qrls", &job]).ok();
    cell.accounted(&job, 1);
    for words in [&["qacct", "-j", &job][..], &["qacct", "-A"], &["qacct", "-j", NAME]] {
        has_no_control_characters(&cell.user(words));
    }
    has_no_control_characters(&cell.user(&["qdel", NAME]).refused(&["EVIL"]));
}
