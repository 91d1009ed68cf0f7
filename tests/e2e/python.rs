//! The Python package in a real cell: its own tests, the examples of its guide, and a master that
//! is killed while a program waits.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, Process, available, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the system: those of users may lack cloudpickle.
const PYTHON: &str = "/usr/bin/python3";

fn can_run() -> bool {
    let import = Command::new(PYTHON).args(["-c", "import cloudpickle"]).output();
    available(
        "python3 with cloudpickle",
        import.is_ok_and(|done| done.status.success()),
    )
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../master/python")
}

/// A command that runs a program as the user. The package is copied: the account may not be allowed
/// to read the checkout.
fn python(cell: &Cell, words: &[&str]) -> Command {
    let copy = cell.top().join("package");
    if !copy.exists() {
        let copied = Command::new("cp").arg("-rL").arg(package()).arg(&copy).status();
        assert!(copied.unwrap().success());
        let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(&copy).status();
        assert!(opened.unwrap().success());
    }
    let programs = std::fs::read_dir(cell.dir().join("bin")).unwrap().next().unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.unwrap().path().display());
    let mut command = cell.command(CommandUser::User, Path::new(PYTHON));
    command
        .args(words)
        .env("PYTHONPATH", copy.join("src"))
        .env("PATH", path);
    command
}

fn run(cell: &Cell, program: &str) -> CommandOutput {
    let path = cell.top().join("package").join(program);
    CommandOutput::run(python(cell, &[&path.display().to_string()]))
}

#[test]
fn the_tests_of_the_package_pass_in_a_cell() {
    if !can_run() {
        return;
    }
    let cell = Cell::up();
    let said = run(&cell, "tests/test_cell.py");
    assert!(said.err.contains("\nOK"), "{said}");
}

#[test]
fn the_examples_of_the_guide_of_the_package_print_what_it_shows() {
    if !can_run() {
        return;
    }
    let cell = Cell::up();
    let guide = std::fs::read_to_string(package().join("README.md")).unwrap();
    for name in ["first", "sweep", "executor"] {
        let text = std::fs::read_to_string(package().join(format!("examples/{name}.py"))).unwrap();
        let (_, below) = guide
            .split_once(&format!("```python\n{text}```\n\n```text\n"))
            .unwrap_or_else(|| panic!("the guide does not show {name}.py as it is"));
        let shown = below.split("```").next().unwrap();
        let printed = run(&cell, &format!("examples/{name}.py")).ok().out;
        // What the first look at a job finds is a matter of milliseconds.
        let sure = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.contains("Status("));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(sure(&printed), sure(shown), "{name}.py");
    }
}

#[test]
fn a_program_that_waits_misses_nothing_when_the_master_is_killed() {
    if !can_run() {
        return;
    }
    let cell = Cell::up();
    let program = "\
import gridwright, os
jobs = [gridwright.submit('while [ ! -e go ]; do sleep 0.05; done; exit $SGE_TASK_ID', tasks=3) for _ in range(2)]
print('submitted', flush=True)
for job in gridwright.as_completed(jobs, 120):
    print([record.exit_status for record in job.wait().records], flush=True)
";
    cell.write("waits.py", program, 0o644);
    let path = cell.work().join("waits.py");
    let command = python(&cell, &[&path.display().to_string()]);
    let mut waiting = Process::start(command, &cell.top().join("printed"));
    wait_until(|| waiting.printed(), || waiting.printed().contains("submitted"));
    cell.kill("master");
    // The first tasks end while there is no master.
    cell.write("go", "", 0o644);
    cell.bring_up(&["--detach"]).ok();
    wait_until(|| cell.read("../printed"), || waiting.ended().is_some());
    assert_eq!(waiting.printed(), "submitted\n[1, 2, 3]\n[1, 2, 3]\n");
}
