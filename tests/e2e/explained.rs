//! `gridwright explain`: what it takes as a job, and what it says of jobs that wait, run, and have
//! ended.

use gridwright_tests::cell::{Cell, wait_until};

/// What is said of a word.
fn explained(cell: &Cell, word: &str) -> String {
    cell.user(&["explain", word]).ok().out
}

fn wait_for_words(cell: &Cell, word: &str, text: &str) {
    let said = || cell.user(&["explain", word]).to_string();
    wait_until(|| format!("{text:?} in {}", said()), || said().contains(text));
}

#[test]
fn explain_takes_what_qsub_prints_and_what_other_commands_take() {
    let cell = Cell::up();
    let first = cell.submit(&["-N", "first", "-b", "y", "sleep", "600"]);
    cell.wait_for_state(&first, "r");
    let printed = cell
        .user(&[
            "qsub", "-terse", "-h", "-N", "arr", "-t", "1-4", "-b", "y", "sleep", "1",
        ])
        .ok()
        .out;
    let printed = printed.trim();
    let (array, range) = printed.split_once('.').expect("an array is printed with its tasks");
    assert_eq!(range, "1-4:1");
    let held = "it is held: user hold (u)";
    for word in [printed, array, &format!("{array}.3"), "arr", "arr.3", "ar*"] {
        let said = explained(&cell, word);
        assert!(
            said.starts_with(&format!("job {array}: It may not start yet.")) && said.contains(held),
            "{word}: {said}"
        );
    }
    let both = cell.user(&["explain", &first, &format!("{array}.2")]).ok().out;
    assert!(
        both.contains(&format!("job {first}: It runs.")) && both.contains(held),
        "{both}"
    );
    let runs = explained(&cell, "first");
    assert!(
        runs.contains("state r on all.q@") && runs.contains("since ") && !runs.contains("order:"),
        "{runs}"
    );
    cell.user(&["explain", &format!("{array}.9")])
        .refused(&["has no task 9"]);
    let some = cell.user(&["explain", &first, "4711"]);
    assert!(
        some.code == 1 && some.out.contains("It runs.") && some.err.contains("4711"),
        "{some}"
    );
}

#[test]
fn a_job_that_has_ended_is_explained_from_the_accounting() {
    let cell = Cell::up();
    let plain = cell.submit(&["-N", "plain", "-b", "y", "true"]);
    let array = cell.submit(&["-N", "several", "-t", "1-3", "-b", "y", "false"]);
    cell.accounted(&plain, 1);
    cell.accounted(&array, 3);
    for word in [plain.as_str(), "plain"] {
        let said = explained(&cell, word);
        assert!(
            said.starts_with(&format!("job {plain}: It has ended.")) && said.contains("exit status 0"),
            "{said}"
        );
    }
    let said = explained(&cell, &array);
    assert!(
        said.contains("3 of its tasks have ended, of which 3 failed.") && said.contains("exit status 1"),
        "{said}"
    );
    let said = explained(&cell, &format!("{array}.2"));
    assert!(said.contains("task 2 on all.q@") && !said.contains("task 1 "), "{said}");
    let json = cell.user(&["explain", "-fmt", "json", &plain]).ok().out;
    assert!(
        json.contains("\"version\":1") && json.contains("\"ended\":[{"),
        "{json}"
    );
    let held = cell.submit(&["-h", "-b", "y", "true"]);
    cell.user(&["qdel", &held]).ok();
    cell.user(&["explain", &held])
        .refused(&["does not exist", "it was deleted before it ran"]);
}

#[test]
fn the_order_is_shown_where_it_is_asked_for_and_json_has_all_that_the_text_says() {
    let cell = Cell::up();
    cell.add_complex("lic lic INT <= YES YES 0 0\n");
    cell.admin(&["qconf", "-mattr", "exechost", "complex_values", "lic=1", "global"])
        .ok();
    let holder = cell.submit(&["-l", "lic=1,h_rt=1:0:0", "-b", "y", "sleep", "600"]);
    cell.wait_for_state(&holder, "r");
    let waits = cell.submit(&["-l", "lic=1", "-b", "y", "sleep", "1"]);
    wait_for_words(
        &cell,
        &waits,
        &format!("held by: job {holder} of {}", cell.account().name),
    );
    let said = explained(&cell, &waits);
    assert!(
        said.contains("lic: needed 1, free 0, of 1") && said.contains(", free by "),
        "{said}"
    );
    assert!(!said.contains("order:") && !said.contains("gc:lic"), "{said}");
    let ordered = cell.user(&["explain", "--order", &waits]).ok().out;
    assert!(
        ordered.contains("order: place 1 of 1") && ordered.contains("posix priority"),
        "{ordered}"
    );
    let json = cell.user(&["explain", "-fmt", "json", &waits]).ok().out;
    for part in [
        "\"version\":1",
        "\"holders\":[{",
        &format!("\"job\":{holder}"),
        "\"order\":{",
        "\"needed\":\"1\"",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
}
