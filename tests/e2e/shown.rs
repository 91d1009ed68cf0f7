//! What commands show: text of others as text alone, queues that have no host, jobs that were
//! altered, lines of scripts.

use gridwright_tests::cell::{Cell, CommandOutput};

/// Moves the cursor, rings the bell, and forges a line.
const NAME: &str = "\u{1b}[31mEVIL\u{7}";
const CONTEXT: &str = "key=\u{9b}2J\u{7f}";
const ARGUMENT: &str = "one\nhard resource_list:         forged=1\ttwo";

#[track_caller]
fn has_no_control_characters(said: &CommandOutput) {
    let is_form = |character: char| matches!(character, '\n' | '\t');
    let found = said
        .out
        .chars()
        .chain(said.err.chars())
        .find(|character| character.is_control() && !is_form(*character));
    assert_eq!(found, None, "{said:?}");
}

#[test]
fn control_characters_of_a_job_are_shown_and_not_obeyed() {
    let cell = Cell::up();
    let words = [
        "-h",
        "-N",
        "shown",
        "-A",
        NAME,
        "-ac",
        CONTEXT,
        "-v",
        "X=a\u{1b}c",
        "-o",
        "/dev/null",
        "-j",
        "y",
        "-b",
        "y",
    ];
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
        &["qalter", "-A", NAME, &job],
    ] {
        has_no_control_characters(&cell.user(words).ok());
    }
    // A name goes into file names and commands: it may have none.
    for words in [
        &["qalter", "-N", NAME, &job][..],
        &["qsub", "-N", NAME, "-b", "y", "true"],
    ] {
        has_no_control_characters(&cell.user(words).refused(&["\\u{1b} not allowed in objectname"]));
    }
    let details = cell.user(&["qstat", "-j", &job]).ok().out;
    assert!(
        !details.lines().any(|line| line.starts_with("hard resource_list")),
        "{details}"
    );
    assert!(
        details.contains("\\u{1b}[31mEVIL\\u{7}") && details.contains("one\\nhard resource_list"),
        "{details}"
    );
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

#[test]
fn a_selection_of_nothing_fails_unless_a_queue_has_no_host() {
    let cell = Cell::up();
    let queue = cell.admin(&["qconf", "-sq", "all.q"]).ok().out;
    let line = |line: &str| match line.split_whitespace().next() {
        Some("qname") => "qname b.q".to_owned(),
        Some(_) | None => line.to_owned(),
    };
    let add = |text: String| {
        let file = cell.write_top("queue", &text, 0o644).display().to_string();
        cell.admin(&["qconf", "-Aq", &file]).ok();
    };
    let b_queue = queue.lines().map(line).collect::<Vec<_>>().join("\n");
    add(b_queue.clone());
    let codes = |words: &[&[&str]]| -> Vec<i32> {
        words
            .iter()
            .map(|words| cell.user(&[&["qselect"], *words].concat()).code)
            .collect()
    };
    let nothing: [&[&str]; 5] = [
        &["-qs", "E"],
        &["-q", "b.q", "-qs", "a"],
        &["-l", "arch=nosuch"],
        &["-q", "e.q"],
        &["-q", "nosuch"],
    ];
    assert_eq!(codes(&nothing), [1, 1, 1, 1, 1]);
    let empty = b_queue.replace("qname b.q", "qname e.q");
    let without_hosts = |line: &str| match line.split_whitespace().next() {
        Some("hostlist") => "hostlist NONE".to_owned(),
        Some("pe_list") => "pe_list NONE".to_owned(),
        Some(_) | None => line.to_owned(),
    };
    add(empty.lines().map(without_hosts).collect::<Vec<_>>().join("\n"));
    assert_eq!(codes(&nothing), [0, 0, 0, 1, 1]);
    assert_eq!(codes(&[&[], &["-q", "b.q"]]), [0, 0]);
    let summary = cell.user(&["qstat", "-g", "c", "-q", "b.q", "-pe", "make"]).ok().out;
    let names: Vec<&str> = summary
        .lines()
        .skip(2)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["b.q", "e.q"], "{summary}");
}

#[test]
fn what_the_master_says_of_a_script_names_its_line() {
    let cell = Cell::up();
    let script = cell
        .write_top("job.sh", "#!/bin/sh\n#$ -N x\n#$ -l h_rt=zzz\ntrue\n", 0o644)
        .display()
        .to_string();
    let said = cell.user(&["qsub", &script]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains(&format!("where: {script} line 3: -l h_rt=zzz")),
        "{said:?}"
    );
}

#[test]
fn alterations_of_a_job_are_counted() {
    let cell = Cell::up();
    let job = cell.submit(&["-h", "-b", "y", "true"]);
    let details = || cell.user(&["qstat", "-j", &job]).ok().out;
    assert!(!details().contains("version:"));
    cell.user(&["qalter", "-N", "other", &job]).ok();
    assert!(details().contains("\nversion:                    1\n"), "{}", details());
    assert!(
        cell.user(&["qstat", "-xml", "-j", &job])
            .ok()
            .out
            .contains("<JB_version>1</JB_version>")
    );
}
