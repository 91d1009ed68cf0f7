//! Accounting files that are turned over while jobs end and the master is killed, the records as
//! JSON lines, and what `qacct` makes of all files together.

use gridwright_tests::cell::{Cell, records, wait_until};
use std::collections::BTreeSet;
use std::path::PathBuf;

const TASKS: usize = 24;

/// A cell whose accounting files are put aside whenever they hold anything.
fn turning() -> Cell {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let file = cell.dir().join("etc/master.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("{text}\naccounting_rotate_bytes = 1\naccounting_jsonl = true\n"),
    )
    .unwrap();
    cell.bring_up(&[]).ok();
    cell
}

/// The files that one accounting file was turned over to, and the file itself.
fn parts(cell: &Cell, name: &str) -> Vec<PathBuf> {
    let aside = format!("{name}-");
    let mut found: Vec<PathBuf> = std::fs::read_dir(cell.dir().join("accounting"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let file = path.file_name().unwrap().to_str().unwrap();
            file == name || file.starts_with(&aside) && !file.contains(".index")
        })
        .collect();
    found.sort();
    found
}

fn lines(cell: &Cell, name: &str) -> Vec<String> {
    let text: String = parts(cell, name)
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    text.lines().map(str::to_owned).collect()
}

fn tasks_of_lines(cell: &Cell) -> Vec<usize> {
    lines(cell, "accounting")
        .iter()
        .map(|line| line.split(':').nth(35).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn files_are_turned_over_and_kills_of_the_master_lose_and_double_no_record() {
    let cell = turning();
    let range = format!("1-{TASKS}");
    let job = cell.submit(&["-b", "y", "-t", &range, "-ac", "cost_centre=42", "true"]);
    for done in [TASKS / 4, TASKS / 2] {
        wait_until(
            || cell.state_of(&job),
            || records(&cell.user(&["qacct", "-j", &job]).out).len() >= done,
        );
        cell.kill("master");
        cell.bring_up(&[]).ok();
    }
    cell.accounted(&job, TASKS);
    for name in ["accounting", "accounting.jsonl"] {
        let found = || lines(&cell, name).len();
        wait_until(|| format!("{} lines of {name}", found()), || found() == TASKS);
        wait_until(
            || format!("{:?}", parts(&cell, name)),
            || {
                parts(&cell, name).len() > 1
                    && std::fs::read(cell.dir().join("accounting").join(name)).is_ok_and(|text| text.is_empty())
            },
        );
    }
    let once: BTreeSet<usize> = tasks_of_lines(&cell).into_iter().collect();
    assert_eq!((once.len(), tasks_of_lines(&cell).len()), (TASKS, TASKS));

    let file = cell.dir().join("default/common/accounting").display().to_string();
    let all = cell.user(&["qacct", "-f", &file, "-rotated", "-j", &job]).ok();
    assert_eq!(records(&all.out).len(), TASKS);
    cell.user(&["qacct", "-f", &file, "-j", &job])
        .refused(&["not found", "-rotated"]);
    let index = parts(&cell, "accounting")[1].with_extension("index");
    wait_until(|| format!("{}", index.display()), || index.exists());
    let archive = cell.work().join("archive");
    let archive = archive.to_str().unwrap();
    cell.user(&["qacct", "-archive", archive]).ok();
    let kept = cell.user(&["qacct", "-f", archive, "-j", &job, "-t", "7"]).ok();
    assert_eq!(records(&kept.out).len(), 1);
}

#[test]
fn json_lines_say_who_deleted_a_job_and_have_its_context() {
    let cell = turning();
    let job = cell.submit(&["-b", "y", "-ac", "cost_centre=42,text=a:b", "sleep", "1000"]);
    cell.wait_for_state(&job, "r");
    cell.admin(&["qdel", &job]).ok();
    cell.accounted(&job, 1);
    let found = || lines(&cell, "accounting.jsonl");
    wait_until(|| format!("{:?}", found()), || found().len() == 1);
    let object: serde_json::Value = serde_json::from_str(&found()[0]).unwrap();
    assert_eq!(
        (&object["context"]["cost_centre"], &object["context"]["text"]),
        (&"42".into(), &"a:b".into())
    );
    let by = object["deleted_by"].as_str().unwrap();
    assert!(by.contains('@'), "{by}");
    let block = cell.user(&["qacct", "-j", &job]).ok();
    assert!(block.out.contains(&format!("\ndeleted_by   {by}\n")), "{}", block.out);
}
