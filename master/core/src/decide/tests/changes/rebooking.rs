//! `qalter -when now`: what running tasks give back.

use super::*;
use crate::ledger::Level;
use proto::amount::Amount;
use proto::complex::Complex;
use proto::object::{Object as _, ObjectKind};
use proto::wire::client::{AttributeEdit, ObjectAction, ObjectChange};

/// A cell with job 1, which runs on `h1` with four licences.
fn running() -> Cell {
    let mut cell = Cell::ready();
    let lines = "lic lic INT <= YES YES 0 0\nfoo foo INT <= YES YES 0 0";
    let table = Complex::parse(&format!("{}\n{lines}", Complex::built_in())).unwrap();
    let change = ObjectChange {
        kind: ObjectKind::ComplexTable,
        name: String::new(),
        action: ObjectAction::Replace(table.write()),
    };
    let capacity = ObjectChange {
        kind: ObjectKind::ExecHost,
        name: "h1".to_owned(),
        action: ObjectAction::Attribute {
            edit: AttributeEdit::Replace,
            attribute: "complex_values".to_owned(),
            value: "lic=10,foo=10".to_owned(),
        },
    };
    cell.command("boss", Command::Objects(vec![change, capacity]));
    let mut spec = super::super::cell::job();
    spec.requests.hard = resources("lic=4,h_rt=600");
    cell.submit(spec);
    cell.run(1, 1, "h1");
    cell
}

fn now(hard: &str) -> JobChanges {
    changed(|to| {
        to.hard = Some(resources(hard));
        to.for_running = true;
    })
}

fn licences(cell: &Cell) -> Amount {
    cell.core.state().ledger.booked(&Level::Host("h1".into()), "lic")
}

#[test]
fn a_running_task_gives_licences_back_at_once() {
    let mut cell = running();
    assert_eq!(licences(&cell), Amount::from_base(4));
    let said = alter(&mut cell, "u1", "1", now("lic=1,h_rt=600"));
    assert_eq!(
        said,
        [
            "modified hard resource list of job 1",
            "1 running tasks of job 1 gave resources back"
        ]
    );
    assert_eq!(licences(&cell), Amount::from_base(1));
    cell.core.state().ledger.check();
    cell.assert_replay_is_live();
    alter(&mut cell, "u1", "1", now("h_rt=600"));
    assert_eq!(licences(&cell), Amount::ZERO);
}

#[test]
fn later_alterations_hold_for_running_tasks_once_somebody_says_so() {
    let mut cell = running();
    let later = changed(|to| to.hard = Some(resources("lic=2,h_rt=600")));
    alter(&mut cell, "u1", "1", later);
    assert_eq!(licences(&cell), Amount::from_base(4));
    alter(&mut cell, "u1", "1", changed(|to| to.for_running = true));
    assert_eq!(licences(&cell), Amount::from_base(2));
}

#[test]
fn a_running_task_takes_no_more_and_keeps_its_limits() {
    let mut cell = running();
    for (hard, why) in [
        ("lic=5,h_rt=600", "it would take more of lic"),
        ("lic=1,foo=1,h_rt=600", "it would take more of foo"),
        ("lic=1,h_rt=60", "its limits are set on its host"),
    ] {
        let reply = cell.command(
            "u1",
            Command::Alter {
                jobs: selection(&["1"]),
                changes: Box::new(now(hard)),
            },
        );
        let Some(Answer::Refused(refusal)) = reply.answers.first() else {
            panic!("{hard}: {reply:?}");
        };
        assert_eq!(refusal.why, why, "{hard}");
    }
    assert_eq!(licences(&cell), Amount::from_base(4));
}
