//! Containers: which image and runtime a host is told.

use super::Cell;
use super::cell::{job, resources, texts};
use proto::complex::Complex;
use proto::job::{JobSpec, Requests};
use proto::object::{Object, ObjectKind};
use proto::wire::agent::MasterMessage;
use proto::wire::client::{AttributeEdit, Command, ObjectAction, ObjectChange};

fn change(cell: &mut Cell, kind: ObjectKind, name: &str, action: ObjectAction) -> String {
    let change = ObjectChange {
        kind,
        name: name.to_owned(),
        action,
    };
    texts(&cell.command("boss", Command::Objects(vec![change]))).join("|")
}

fn set(cell: &mut Cell, kind: ObjectKind, name: &str, value: &str) -> String {
    let action = ObjectAction::Attribute {
        edit: AttributeEdit::Replace,
        attribute: "complex_values".to_owned(),
        value: value.to_owned(),
    };
    change(cell, kind, name, action)
}

fn cell_with_attribute() -> Cell {
    let mut cell = Cell::ready();
    let text = format!("{}\ncontainer container STRING != YES NO NONE 0", Complex::built_in());
    let table = Complex::parse(&text).unwrap();
    change(
        &mut cell,
        ObjectKind::ComplexTable,
        "",
        ObjectAction::Replace(table.write()),
    );
    cell
}

fn asking(image: &str) -> JobSpec {
    JobSpec {
        requests: Requests {
            hard: resources(&format!("container={image}")),
            ..Requests::default()
        }
        .into(),
        ..job()
    }
}

/// The runtime and the image of the last start.
fn told(cell: &Cell) -> Option<String> {
    let start = cell.sent().into_iter().rev().find_map(|message| match message {
        MasterMessage::Start(order) => Some(order.container.clone()),
        _ => None,
    });
    let container = start.expect("a start was sent")?;
    Some(format!("{} {}", container.runtime, container.image))
}

#[test]
fn a_job_runs_in_its_image_by_the_runtime_of_its_queue_or_host() {
    let mut cell = cell_with_attribute();
    let image = "/images/a.sif";
    cell.submit(asking(image));
    assert!(cell.order(1, 1, "h1").is_err(), "no queue and no host has a runtime");
    set(&mut cell, ObjectKind::ExecHost, "h1", "container=podman");
    cell.order(1, 1, "h1").unwrap();
    assert_eq!(told(&cell).as_deref(), Some("podman /images/a.sif"));
    set(&mut cell, ObjectKind::Queue, "all.q", "container=apptainer");
    cell.submit(asking(image));
    cell.order(2, 1, "h1").unwrap();
    assert_eq!(told(&cell).as_deref(), Some("apptainer /images/a.sif"));
    cell.submit(job());
    cell.order(3, 1, "h1").unwrap();
    assert_eq!(told(&cell), None);
    cell.assert_replay_is_live();
}

#[test]
fn a_runtime_that_is_not_known_is_refused_where_it_is_set() {
    let mut cell = cell_with_attribute();
    for (kind, name) in [(ObjectKind::ExecHost, "h1"), (ObjectKind::Queue, "all.q")] {
        let said = set(&mut cell, kind, name, "container=docker");
        assert_eq!(said, "denied: \"docker\" is not a container runtime");
    }
    assert!(
        Cell::ready().try_submit(asking("a.sif")).is_err(),
        "off unless configured"
    );
}
