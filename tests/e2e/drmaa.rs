//! `libdrmaa.so` in real cells: C programs that are compiled against `drmaa.h` of the cell and
//! linked with the library of the cell.

use gridwright_tests::cell::{Cell, CellPlan, CommandOutput, CommandUser, Process, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the library in a cell.
fn library_dir(cell: &Cell) -> PathBuf {
    let lib = cell.dir().join("lib");
    let arch = std::fs::read_dir(&lib).unwrap().next().unwrap().unwrap();
    arch.path()
}

/// Compiles a program of `tests/e2e/drmaa` against a cell.
fn compile(cell: &Cell, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("e2e/drmaa/{name}.c"));
    let (program, lib) = (cell.top().join(name), library_dir(cell));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(source);
    cc.arg("-I").arg(cell.dir().join("include")).arg("-L").arg(&lib);
    cc.args(["-ldrmaa", &format!("-Wl,-rpath,{}", lib.display())]);
    CommandOutput::run(cc).ok();
    program
}

/// A compiled program with words, as the ordinary account in the working directory. Where
/// `GRIDWRIGHT_DRMAA_VALGRIND` is set, valgrind(1) looks at what it does with memory.
fn command(cell: &Cell, name: &str, words: &[&str]) -> Command {
    let program = compile(cell, name);
    if std::env::var_os("GRIDWRIGHT_DRMAA_VALGRIND").is_none() {
        let mut command = cell.command(CommandUser::User, &program);
        command.args(words);
        return command;
    }
    let mut command = cell.command(CommandUser::User, Path::new("/usr/bin/valgrind"));
    let leaks = [
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
    ];
    command.args(["--quiet", "--error-exitcode=9"]).args(leaks);
    command.arg(program).args(words);
    command
}

/// Runs a program to its end.
fn passes(cell: &Cell, name: &str, words: &[&str]) {
    let command = command(cell, name, words);
    let said = CommandOutput::run(command);
    assert!(said.code == 0 && said.out.ends_with("passed\n"), "{name}: {said}");
}

/// A number of the environment, by which the longer form of these tests is larger.
fn number(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_c_program_submits_a_job_and_reads_its_usage() {
    let cell = Cell::up();
    cell.write("in", "from stdin\n", 0o644);
    passes(&cell, "begin", &[]);
}

#[test]
fn every_function_and_error_code_of_the_binding_is_as_recorded() {
    passes(&Cell::up(), "every", &[]);
}

#[test]
fn a_child_has_no_session_and_its_parent_keeps_its_own() {
    passes(&Cell::up(), "fork", &[]);
}

#[test]
fn random_calls_of_the_binding_crash_nothing() {
    let cell = Cell::up();
    let calls = number("GRIDWRIGHT_DRMAA_CALLS", 3_000).to_string();
    for seed in 1..=number("GRIDWRIGHT_DRMAA_SEEDS", 3) {
        passes(&cell, "random", &[&seed.to_string(), &calls]);
    }
}

#[test]
fn each_job_of_several_threads_is_reaped_once_though_the_master_is_killed() {
    let cell = Cell::with(CellPlan::default().slots(16));
    let (threads, jobs) = (4, number("GRIDWRIGHT_DRMAA_JOBS", 200) / 4);
    let command = command(&cell, "threads", &[&threads.to_string(), &jobs.to_string()]);
    let mut process = Process::start(command, &cell.top().join("threads.out"));
    // A third of the jobs later each time: the number of the newest job tells.
    for part in 1..=3 {
        let wanted = part * threads * jobs / 4;
        let is_there = || cell.user(&["qstat", "-u", "*", "-s", "prsz"]).out;
        wait_until(|| process.printed(), || last_job(&is_there()) >= wanted);
        cell.kill("master");
        cell.bring_up(&[]).ok();
    }
    // Each wait is for progress: many jobs take their time.
    let mut status = None;
    while status.is_none() {
        let before = process.printed().len();
        wait_until(
            || format!("progress of the threads beyond {before} bytes"),
            || {
                status = process.ended();
                status.is_some() || process.printed().len() > before
            },
        );
    }
    assert!(process.printed().ends_with("passed\n"), "{}", process.printed());
}

/// The highest number of a job in a list of `qstat`.
fn last_job(listing: &str) -> u64 {
    let first = |line: &str| line.split_whitespace().next().and_then(|word| word.parse().ok());
    listing.lines().filter_map(first).max().unwrap_or(0)
}
