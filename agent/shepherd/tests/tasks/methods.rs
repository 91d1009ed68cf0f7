//! Suspend, resume and terminate methods: what they are told, and that neither one that hangs nor
//! one that does nothing holds a task for ever.

use super::cell::{Cell, direct, is_alive, until};
use proto::launch::{EndCause, Method, TaskOrder};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A script as a method.
fn method(cell: &Cell, name: &str, text: &str, words: &str) -> Method {
    let path = cell.work.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Method::Command(format!("{} {words}", path.display()))
}

#[test]
fn methods_are_told_the_process_of_the_job() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["sleep", "1000"]));
    let termination = &mut document.termination;
    termination.suspend = method(&cell, "suspend", "kill -STOP $1; echo $1 > suspended", "$job_pid");
    termination.resume = method(&cell, "resume", "kill -CONT $1; echo $1 > resumed", "$job_pid");
    termination.terminate = method(&cell, "terminate", "kill -TERM $1", "$job_pid");
    let key = cell.launch(document);
    let pid = cell.executed_of(key);
    for (order, said) in [(TaskOrder::Suspend, "suspended"), (TaskOrder::Resume, "resumed")] {
        cell.order(key, order);
        assert_eq!(cell.read_when_there(said).trim(), pid.to_string(), "{said}");
    }
    cell.order(key, TaskOrder::Terminate);
    let expected = EndCause::Signalled {
        signal: libc::SIGTERM,
        core: false,
    };
    assert_eq!(cell.ended(key).cause, expected);
}

#[test]
fn a_method_that_hangs_is_killed_with_all_that_it_started() {
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["sleep", "1000"]));
    document.termination.method_timeout_s = Some(1);
    document.termination.suspend = method(&cell, "hangs", "sleep 1000 & echo $$ $! > hanging; wait", "");
    let key = cell.launch(document);
    let job = cell.executed_of(key);
    cell.order(key, TaskOrder::Suspend);
    let said = cell.read_when_there("hanging");
    let pids: Vec<i32> = said.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    until("the end of the method", || {
        pids.iter().all(|pid| !is_alive(*pid)).then_some(())
    });
    assert!(is_alive(job) && pids.len() == 2, "the job goes on");
    cell.order(key, TaskOrder::Kill);
    assert_eq!(cell.ended(key).cause, EndCause::Signalled { signal: 9, core: false });
}

#[test]
fn a_job_that_its_terminate_method_does_not_end_is_killed_after_its_time() {
    let mut cell = Cell::start();
    let mut document = cell.shell("trap '' TERM; echo ready > ready; while :; do sleep 0.1; done");
    document.termination.terminate = Method::Signal(libc::SIGTERM);
    document.termination.method_timeout_s = Some(1);
    let key = cell.launch(document);
    cell.read_when_there("ready");
    cell.order(key, TaskOrder::Terminate);
    let result = cell.ended(key);
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert!(result.wallclock_ms >= 1000, "{}", result.wallclock_ms);
}
