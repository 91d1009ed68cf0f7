//! Copies: of a host with its certificate, and of a whole cell.

use super::cell::{Cell, job};
use crate::core::Core;
use crate::effect::Effect;
use crate::event::{Event, Record};
use crate::state::State;
use proto::id::{Epoch, TaskKey};
use proto::job::JobSpec;
use proto::usage::FailedCode;
use proto::wire::agent::{TaskReport, TaskReportState};
use proto::wire::client::{Answer, Command};
use std::sync::Arc;

fn refusal(cell: &Cell) -> Option<String> {
    let why = |effect: &Effect| {
        if let Effect::Disconnect { why, .. } = effect {
            Some(why.to_string())
        } else {
            None
        }
    };
    cell.effects.iter().find_map(why)
}

fn runs(cell: &Cell, number: u32) -> bool {
    cell.exists(number) && cell.job(number).placements().next().is_some()
}

fn running(key: TaskKey) -> Vec<TaskReport> {
    vec![TaskReport {
        key,
        state: TaskReportState::Running { for_ms: 10 },
    }]
}

/// A cell with a task on `h1`, whose agent has shown the mark `a` and is away.
fn with_a_task() -> (Cell, u32, TaskKey) {
    let mut cell = Cell::ready();
    cell.disconnect("h1");
    cell.connect_marked("h1", 1, Vec::new(), &["a"]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(number, 1, "h1");
    cell.disconnect("h1");
    (cell, number, key)
}

#[test]
fn a_clone_of_a_host_is_refused_and_the_tasks_of_the_original_are_not_lost() {
    for marks in [&["z"][..], &["z", "0"]] {
        let (mut cell, number, key) = with_a_task();
        cell.connect_marked("h1", 2, Vec::new(), marks);
        let why = refusal(&cell).expect("it is refused");
        assert!(
            why.contains("task directory") && why.contains("gridwright host rebind h1"),
            "{why}"
        );
        assert!(runs(&cell, number));
        cell.connect_marked("h1", 1, running(key), &["b", "a"]);
        assert_eq!(
            refusal(&cell),
            None,
            "the original comes back, and its launcher was started again"
        );
        assert!(runs(&cell, number));
        cell.assert_replay_is_live();
    }
}

#[test]
fn the_mark_of_a_host_is_remembered_over_a_restart_of_the_master() {
    let (mut cell, number, _) = with_a_task();
    let mut state = State::new();
    for record in &cell.log {
        state.apply(record);
    }
    cell.core = Core::new(state);
    cell.connect_marked("h1", 2, Vec::new(), &["z"]);
    assert!(refusal(&cell).is_some() && runs(&cell, number));
}

#[test]
fn a_directory_that_lost_a_task_is_believed_as_before_where_its_mark_is_the_hosts() {
    let (mut cell, number, _) = with_a_task();
    cell.connect_marked("h1", 1, Vec::new(), &["a"]);
    assert_eq!(refusal(&cell), None);
    assert!(!runs(&cell, number));
}

#[test]
fn an_agent_that_knows_no_marks_is_let_in() {
    let (mut cell, number, key) = with_a_task();
    cell.connect_marked("h1", 1, running(key), &[]);
    assert!(refusal(&cell).is_none() && runs(&cell, number));
}

#[test]
fn a_new_task_directory_is_taken_where_no_task_is_lost_by_it() {
    let (mut cell, number, key) = with_a_task();
    cell.connect_marked("h1", 2, running(key), &["z"]);
    assert!(refusal(&cell).is_none() && runs(&cell, number));
    cell.exit(key, "h1", 0);
    cell.disconnect("h1");
    cell.connect_marked("h1", 3, Vec::new(), &["y"]);
    assert_eq!(refusal(&cell), None, "a host whose disk does not outlive a boot");
}

#[test]
fn a_host_that_was_bound_anew_or_revoked_is_let_in_and_its_tasks_are_lost() {
    for command in [
        Command::RebindHost { host: "H1".to_owned() },
        Command::RevokeHost { host: "h1".to_owned() },
    ] {
        let (mut cell, number, _) = with_a_task();
        let (host, serial) = ("h1".into(), "1".to_owned());
        cell.fact(Event::CertificateIssued {
            host,
            serial,
            not_after: cell.now.wall,
        });
        let reply = cell.command("boss", command);
        assert!(matches!(reply.answers.as_slice(), [Answer::Done(_)]), "{reply:?}");
        cell.connect_marked("h1", 2, Vec::new(), &["z"]);
        assert_eq!(refusal(&cell), None);
        assert!(!runs(&cell, number));
        cell.assert_replay_is_live();
    }
    let mut cell = Cell::ready();
    let reply = cell.command("boss", Command::RebindHost { host: "h1".to_owned() });
    assert!(reply.answers[0].refusal().is_some(), "{reply:?}");
}

#[test]
fn in_a_copied_cell_nothing_runs_and_nothing_starts_and_the_books_say_why() {
    let (mut cell, started, key) = with_a_task();
    let placed = cell.submit(job());
    cell.order(placed, 1, "h2").unwrap();
    let waiting = cell.submit(job());
    cell.part_from_original("the cell is a copy of /a");
    assert_eq!(cell.core.state().epoch, Epoch(2));
    assert!(!cell.exists(started) && !runs(&cell, placed) && cell.exists(placed) && cell.exists(waiting));
    let end = |record: &Arc<Record>| match &record.event {
        Event::TaskEnded {
            key: of,
            record: Some(record),
            ..
        } if *of == key => Some(record.clone()),
        _ => None,
    };
    let record = cell.log.iter().find_map(end).expect("its end is accounted");
    assert_eq!(
        (record.failed, record.exit_status),
        (FailedCode::IN_RECOGNIZING_JOB, 137)
    );
    assert!(record.reason.contains("a copy of /a"), "{record:?}");
    assert!(cell.order(waiting, 1, "h2").is_err(), "its queues are disabled");
    cell.connect_marked("h1", 2, Vec::new(), &["z"]);
    assert_eq!(refusal(&cell), None, "the copy of the host may have any directory");
    cell.assert_replay_is_live();
}
