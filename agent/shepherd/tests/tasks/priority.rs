//! The share of the host that running tasks get, as the agent says.

use super::cell::{Cell, until};
use nix::unistd::Uid;
use proto::launch::{Request, TaskOrder};
use std::fs;

/// The nice value of a process or thread, field 19 of its `stat`.
fn nice(path: &str) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{path}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(16)?.parse().ok()
}

#[test]
fn the_nice_value_of_all_processes_of_a_task_follows_the_agent() {
    let ours = nice("self").unwrap();
    // An ordinary user only raises the value with which the tests were started.
    let base = if Uid::effective().is_root() { 0 } else { ours };
    let above = |steps: i32| (base + steps).min(19);
    let mut cell = Cell::start();
    // It says its number from its own session: before, it could leave the group that is about to
    // get another value.
    let mut document = cell.shell("setsid sh -c 'echo $$ > escaped; exec sleep 1000' & sleep 1000");
    document.nice = above(3);
    let key = cell.launch(document);
    let main = cell.executed(key);
    let escaped: i32 = cell.read_when_there("escaped").parse().unwrap();
    let set = |cell: &mut Cell, nice_value: Option<i32>, expected: i32| {
        cell.send(&Request::Reprioritize {
            key,
            nice: nice_value,
            cpu_weight: Some(250),
        });
        for pid in [main, escaped] {
            until("the nice value", || {
                (nice(&pid.to_string()) == Some(expected)).then_some(())
            });
        }
    };
    set(&mut cell, Some(above(7)), above(7));
    cell.restart_launcher();
    cell.found(key);
    set(&mut cell, Some(above(12)), above(12));
    // Only root gives back what it took.
    if Uid::effective().is_root() {
        set(&mut cell, Some(0), 0);
        set(&mut cell, None, 3);
    }
    assert_eq!(nice("self"), Some(ours), "and nobody else's");
    cell.order(key, TaskOrder::Kill);
    cell.ended(key);
}

#[test]
fn jobs_run_also_if_the_launcher_was_started_with_a_nice_value_that_it_may_not_lower() {
    let mut cell = Cell::start_niced();
    let own = nice("self").unwrap();
    let result = cell.run("nice");
    // Root sets what the queue says, and so does everybody whose own value is below that.
    let expected = if Uid::effective().is_root() {
        0
    } else {
        (own + 5).clamp(0, 19)
    };
    assert_eq!(cell.output(&result, 'o'), format!("{expected}\n"), "{result:?}");
}
