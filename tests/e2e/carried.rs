//! Settings of a Grid Engine cell that work as they did there: mail, the reporting file, starters
//! and procedures.

use gridwright_tests::cell::{Cell, wait_until};
use std::path::Path;

/// A program of the test that everybody may run.
fn program(cell: &Cell, name: &str, text: &str) -> String {
    cell.write_top(name, &format!("#!/bin/sh\n{text}"), 0o755)
        .display()
        .to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_job_is_mailed_about_and_reported() {
    let cell = Cell::up();
    let mails = cell.write_top("mails", "", 0o666);
    cell.set_global(
        "mailer",
        &program(
            &cell,
            "mailer",
            &format!("{{ echo \"to $3: $2\"; cat; }} >> {}\n", mails.display()),
        ),
    );
    cell.set_global(
        "reporting_params",
        "reporting=true joblog=true log_consumables=true flush_time=0:0:0",
    );
    let job = cell.submit(&["-m", "bea", "-M", "a@x", "-b", "y", "exit", "3"]);
    cell.accounted(&job, 1);
    wait_until(|| read(&mails), || read(&mails).contains(" Exit Status      = 3\n"));
    let told = read(&mails);
    assert!(
        told.starts_with(&format!("to a@x: Job {job} (exit) Started\n")),
        "{told}"
    );
    let path = cell.dir().join("default/common/reporting");
    wait_until(|| read(&path), || read(&path).contains(":job deleted by scheduler\n"));
    let reported = read(&path);
    for record in [":new_job:", ":job_log:", ":acct:", ":queue_consumable:"] {
        assert!(reported.contains(record), "{record} in {reported}");
    }
}

#[test]
fn a_starter_method_starts_jobs_and_procedures_surround_parallel_ones() {
    let cell = Cell::up();
    let starter = program(
        &cell,
        "starter",
        "echo \"by $0: $SGE_STARTER_SHELL_PATH\"\nexec \"$@\"\n",
    );
    cell.admin(&["qconf", "-rattr", "queue", "starter_method", &starter, "all.q"])
        .ok();
    let procedure = program(&cell, "procedure", "echo \"$1 $2 `cat $PE_HOSTFILE | wc -l`\"\n");
    for (key, command) in [
        ("start_proc_args", format!("{procedure} start $pe")),
        ("stop_proc_args", format!("{procedure} stop $pe_slots")),
    ] {
        cell.admin(&["qconf", "-rattr", "pe", key, &command, "smp"]).ok();
    }
    let record = cell.run_script("#!/bin/sh\necho the job\n", &["-j", "y", "-pe", "smp", "1"]);
    assert_eq!(cell.output(&record), format!("by {starter}: /bin/sh\nthe job\n"));
    let of_procedures = format!("{}.po{}", record.value("jobname"), record.value("jobnumber"));
    assert_eq!(cell.read(&of_procedures), "start smp 1\nstop 1 1\n");
}
