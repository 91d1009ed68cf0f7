//! A cell of 8.1.9 that had one of everything, taken over from what its own `save_sge_config.sh`
//! wrote: every `qconf -s…` is compared line by line with what 8.1.9 showed
//! (`captures/saved-cell`).

use std::path::{Path, PathBuf};

use crate::case::{Answer, Case, Verdict};
use crate::cell::{self, Cell};
use crate::normalise;

/// Lines that differ by design: the file of `shown`, how the line begins, and why.
const BY_DESIGN: &[(&str, &str, &str)] = &[
    (
        "sq",
        "shell_start_mode",
        "scripts of new queues start by their #! line; imported queues keep what they have",
    ),
    ("sq_high.q=n1", "qtype", "no blank at the end of a line"),
    ("sq_high.q=n2", "qtype", "no blank at the end of a line"),
    ("sq_high.q=n3", "qtype", "no blank at the end of a line"),
    ("sq_low.q=n1", "qtype", "no blank at the end of a line"),
    ("sq_low.q=n3", "qtype", "no blank at the end of a line"),
    (
        "sq_high.q=n1",
        "subordinate_list",
        "8.1.9 shows low.q=2=0=0=0 of an instance, which it does not read",
    ),
    (
        "sq_high.q=n2",
        "subordinate_list",
        "8.1.9 shows low.q=2=0=0=0 of an instance, which it does not read",
    ),
    (
        "sq_high.q=n3",
        "subordinate_list",
        "8.1.9 shows low.q=2=0=0=0 of an instance, which it does not read",
    ),
    (
        "sq_high.q=n1",
        "complex_values",
        "an instance shows its lists as its queue does, separated by commas",
    ),
    (
        "srqs",
        "",
        "quota sets are listed by name, and were in the order of their making; each is compared by itself",
    ),
    (
        "sq_low.q=n1",
        "load_thresholds",
        "an instance shows its lists as its queue does, separated by commas",
    ),
];

/// Options whose names hold what separates them from their argument.
const LONG: [&str; 2] = ["shgrp_tree", "shgrp_resolved"];

fn saved_cell() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/saved-cell")
}

#[test]
fn a_saved_cell_of_8_1_9_is_taken_over_and_shows_the_same() {
    if !gridwright_tests::cell::available("root", gridwright_tests::cell::is_root()) {
        return;
    }
    let _private = cell::enter_name_spaces();
    let cell = Cell::up();
    cell.prepare(None, "until qhost -h vm -F cpu | grep -q cpu=; do sleep 0.05; done");
    cell.prepare(None, &format!("cp -r {} saved", saved_cell().join("saved").display()));
    cell.prepare(None, "qconf -import saved --dry-run && test $(qconf -sql) = all.q");
    cell.prepare(None, "qconf -import saved");
    let files = std::fs::read_dir(saved_cell().join("shown")).expect("the recording is there");
    let mut names: Vec<String> = files
        .map(|file| file.expect("it lists").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let differences: Vec<String> = names.iter().filter_map(|name| difference(&cell, name)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    BY_DESIGN
        .iter()
        .for_each(|(file, line, why)| println!("by design {file} ({line}): {why}"));
    numbers_go_on(&cell);
    an_export_is_the_same_cell(&cell);
}

/// The option of a file of `shown` and its argument.
fn option(name: &str) -> (&str, String) {
    let long = LONG
        .iter()
        .find_map(|option| Some((*option, name.strip_prefix(option)?)));
    let (option, rest) = long.unwrap_or_else(|| name.split_at(name.find('_').unwrap_or(name.len())));
    let argument = rest.trim_start_matches('_').replace('=', "@");
    let argument = if option.ends_with("sstnode") {
        argument.replace('.', "/")
    } else {
        argument
    };
    (option, argument)
}

/// Where what we show first differs from what 8.1.9 showed, except by design.
fn difference(cell: &Cell, name: &str) -> Option<String> {
    let (option, argument) = option(name);
    let command = format!("qconf -{option} {argument}").trim_end().to_owned();
    let text = std::fs::read_to_string(saved_cell().join("shown").join(name)).expect("the recording is there");
    let shown = |lines: Vec<String>| Answer {
        stdout: without_design(name, lines),
        ..Answer::default()
    };
    let recorded = shown(text.lines().map(str::to_owned).collect());
    let case = Case {
        name: name.to_owned(),
        user: None,
        command: command.clone(),
        instead: None,
        recorded: recorded.clone(),
        verdict: Verdict::Agrees,
        is_exact: false,
    };
    let Answer { stdout, stderr, .. } = cell.run(None, &command);
    let ours = shown(stdout.into_iter().chain(stderr).collect());
    normalise::first_difference(&case, &recorded, &ours).map(|difference| format!("{command}: {difference}"))
}

/// The lines of a file without those that differ by design.
fn without_design(file: &str, lines: Vec<String>) -> Vec<String> {
    let differs = |line: &String| {
        BY_DESIGN
            .iter()
            .any(|(of, start, _)| *of == file && line.starts_with(start))
    };
    lines.into_iter().filter(|line| !differs(line)).collect()
}

/// The last job of the saved cell was 5.
fn numbers_go_on(cell: &Cell) {
    let answer = cell.run(
        Some("u1"),
        "qsub -terse -h -q all.q -P gemini -b y true || qsub -terse -h -q all.q -b y true",
    );
    assert_eq!(answer.stdout, ["6"], "{answer:?}");
}

/// What is exported and imported into the same cell changes nothing, and the same cell exports the
/// same bytes.
fn an_export_is_the_same_cell(cell: &Cell) {
    cell.prepare(
        None,
        "qconf -export once && qconf -import once && qconf -export again && diff -r once again",
    );
    let answer = cell.run(None, "qconf -import once --dry-run");
    assert!(answer.stdout.is_empty(), "{answer:?}");
}
