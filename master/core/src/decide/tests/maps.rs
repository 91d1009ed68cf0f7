//! Resource maps: which ids tasks get, and that nobody else gets them meanwhile.

use super::cell::{job, resources, texts};
use super::{Cell, array};
use crate::effect::Input;
use crate::state::State;
use proto::complex::Complex;
use proto::id::{QueueInstanceName, ReservationId, TaskId};
use proto::job::{GrantedSlots, JobSpec, PeRequest, Requests};
use proto::load::LoadReport;
use proto::object::{Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::request::SlotRange;
use proto::reservation::ReservationSpec;
use proto::wire::agent::MasterMessage;
use proto::wire::client::{AttributeEdit, Command, ObjectAction, ObjectChange};
use proto::wire::stream::Order;

fn change(cell: &mut Cell, kind: ObjectKind, name: &str, action: ObjectAction) -> String {
    let change = ObjectChange {
        kind,
        name: name.to_owned(),
        action,
    };
    texts(&cell.command("boss", Command::Objects(vec![change]))).join("|")
}

fn complex(cell: &mut Cell, lines: &str) -> String {
    let table = Complex::parse(&format!("{}\n{lines}", Complex::built_in())).unwrap();
    change(cell, ObjectKind::ComplexTable, "", ObjectAction::Replace(table.write()))
}

fn values(cell: &mut Cell, kind: ObjectKind, name: &str, value: &str) -> String {
    let (edit, attribute) = (AttributeEdit::Replace, "complex_values".to_owned());
    change(
        cell,
        kind,
        name,
        ObjectAction::Attribute {
            edit,
            attribute,
            value: value.to_owned(),
        },
    )
}

/// Four devices on `h1`, two on `h2`, charged in that way.
fn cell(kind: &str) -> Cell {
    let mut cell = Cell::ready();
    complex(&mut cell, &format!("gpu gpu RSMAP <= YES {kind} 0 0"));
    values(&mut cell, ObjectKind::ExecHost, "h1", "gpu=4(0-3)");
    values(&mut cell, ObjectKind::ExecHost, "h2", "gpu=2(left right)");
    cell
}

fn asking(request: &str) -> JobSpec {
    JobSpec {
        requests: Requests {
            hard: resources(request),
            ..Requests::default()
        }
        .into(),
        ..job()
    }
}

fn maps(cell: &Cell, number: u32) -> String {
    let maps = &cell.placement(number, 1).maps;
    maps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[test]
fn a_task_gets_the_first_free_ids_and_keeps_them_until_it_is_gone() {
    let mut cell = cell("YES");
    for request in ["gpu=1", "gpu=2", "gpu=1", "gpu=2"] {
        cell.submit(asking(request));
    }
    let first = cell.run(1, 1, "h1");
    cell.run(2, 1, "h1");
    cell.exit(first, "h1", 0);
    cell.run(4, 1, "h1");
    assert_eq!(maps(&cell, 2), "gpu=h1=(1 2)");
    assert_eq!(maps(&cell, 4), "gpu=h1=(0 3)");
    assert_eq!(cell.records()[0].maps[0].ids, ["0"], "the accounting record tells them");
    let refusal = cell.order(3, 1, "h1").unwrap_err();
    assert!(refusal.contains("gpu"), "{refusal}");
    cell.run(3, 1, "h2");
    assert_eq!(maps(&cell, 3), "gpu=h2=(left)");
    cell.assert_replay_is_live();
    let stored = rmp_serde::to_vec_named(cell.core.state()).unwrap();
    assert!(rmp_serde::from_slice::<State>(&stored).unwrap().restored() == *cell.core.state());
}

#[test]
fn the_host_is_told_the_ids_with_the_start() {
    let mut cell = cell("YES");
    cell.submit(asking("gpu=2"));
    cell.order(1, 1, "h2").unwrap();
    let told = cell.sent().into_iter().find_map(|message| match message {
        MasterMessage::Start(order) => Some(order.maps.clone()),
        _ => None,
    });
    assert_eq!(told.expect("a start was sent")[0].to_string(), "gpu=h2=(left right)");
}

#[test]
fn a_parallel_task_gets_ids_for_each_slot_once_or_on_each_host() {
    for (kind, expected) in [
        ("YES", "gpu=h1=(0 1 2),gpu=h2=(left)"),
        ("JOB", "gpu=h1=(0)"),
        ("HOST", "gpu=h1=(0),gpu=h2=(left)"),
    ] {
        let mut cell = cell(kind);
        let mut pe = ParallelEnvironment::template("mpi".into()).to_fields();
        pe.set("slots", "10");
        pe.set("allocation_rule", "$round_robin");
        change(&mut cell, ObjectKind::Pe, "mpi", ObjectAction::Add(pe));
        cell.set_queue(&[("pe_list", "mpi")]);
        let pe = PeRequest {
            name: "mpi".to_owned(),
            slots: SlotRange::parse("4").unwrap(),
        };
        cell.submit(JobSpec {
            requests: Requests {
                pe: Some(pe),
                ..(*asking("gpu=1").requests).clone()
            }
            .into(),
            ..job()
        });
        let part = |host: &str, slots| {
            let instance = QueueInstanceName {
                queue: "all.q".into(),
                host: host.into(),
            };
            GrantedSlots { instance, slots }
        };
        let (seq, granted) = (cell.job(1).seq, vec![part("h1", 3), part("h2", 1)]);
        let order = Order::Start {
            seq,
            task: TaskId(1),
            granted,
            pe: Some("mpi".into()),
        };
        cell.input(crate::effect::Input::Orders {
            scheduler: "any".to_owned(),
            orders: vec![order],
        });
        assert_eq!(maps(&cell, 1), expected, "{kind}");
    }
}

#[test]
fn each_task_of_an_array_has_ids_of_its_own_and_a_repeated_id_is_shared() {
    let mut cell = cell("YES");
    values(&mut cell, ObjectKind::ExecHost, "h1", "gpu=4(0 0 1 1)");
    cell.submit(JobSpec {
        requests: asking("gpu=1").requests,
        ..array("1-4")
    });
    for (task, id) in [(1, "0"), (2, "0"), (3, "1"), (4, "1")] {
        cell.run(1, task, "h1");
        assert_eq!(cell.placement(1, task).maps[0].ids, [id]);
    }
}

#[test]
fn ids_of_the_cluster_are_given_beside_those_of_the_host() {
    let mut cell = cell("YES");
    values(&mut cell, ObjectKind::ExecHost, "global", "gpu=5(a-0 b c d e)");
    cell.submit(asking("gpu=2"));
    cell.run(1, 1, "h2");
    assert_eq!(maps(&cell, 1), "gpu=global=(a-0 b),gpu=h2=(left right)");
}

#[test]
fn a_map_that_shrinks_under_running_tasks_takes_nothing_from_them_and_gives_nothing_twice() {
    let mut cell = cell("YES");
    for _ in 0..3 {
        cell.submit(asking("gpu=2"));
    }
    let first = cell.run(1, 1, "h1");
    cell.run(2, 1, "h1");
    // Ids 2 and 3 are in use and no longer in the map; 0 and 1 are in use and still there.
    values(&mut cell, ObjectKind::ExecHost, "h1", "gpu=2(0 1)");
    assert_eq!(maps(&cell, 2), "gpu=h1=(2 3)");
    cell.exit(first, "h1", 0);
    let refusal = cell.order(3, 1, "h1").unwrap_err();
    assert!(refusal.contains("gpu"), "2 of 2 are booked: {refusal}");
    values(&mut cell, ObjectKind::ExecHost, "h1", "gpu=4(0 1 4 5)");
    cell.run(3, 1, "h1");
    assert_eq!(maps(&cell, 3), "gpu=h1=(0 1)");
}

#[test]
fn an_id_is_in_use_however_its_map_is_charged_meanwhile() {
    let mut cell = cell("YES");
    cell.submit(asking("gpu=2"));
    cell.submit(asking("gpu=3"));
    cell.run(1, 1, "h1");
    for kind in ["JOB", "HOST"] {
        complex(&mut cell, &format!("gpu gpu RSMAP <= YES {kind} 0 0"));
        assert!(cell.order(2, 1, "h1").is_err(), "{kind}: 2 of 4 ids are free");
    }
}

#[test]
fn what_is_no_map_is_refused_where_it_is_set() {
    let mut cell = cell("YES");
    for (kind, name, value, expected) in [
        (
            ObjectKind::ExecHost,
            "h1",
            "gpu=3(0 1)",
            "denied: invalid value \"3(0 1)\" of attribute \"gpu\"",
        ),
        (
            ObjectKind::ExecHost,
            "global",
            "gpu=2(0",
            "denied: invalid value \"2(0\" of attribute \"gpu\"",
        ),
        (
            ObjectKind::Queue,
            "all.q",
            "gpu=2(0 1)",
            "denied: attribute \"gpu\" is a resource map, which a queue cannot have",
        ),
        (
            ObjectKind::Queue,
            "all.q",
            "gpu=2",
            "denied: attribute \"gpu\" is a resource map, which a queue cannot have",
        ),
    ] {
        assert_eq!(values(&mut cell, kind, name, value), expected, "{name} {value}");
    }
    let refusals = Complex::parse(&format!("{}\ngpu gpu RSMAP <= YES NO 0 0", Complex::built_in())).unwrap_err();
    assert_eq!(
        refusals[0].what,
        "Complex \"gpu\" of type \"RSMAP\" must be a consumable"
    );
    assert!(Complex::parse(&format!("{}\ngpu gpu RSMAP == YES YES 0 0", Complex::built_in())).is_err());
    assert!(
        cell.try_submit(asking("gpu=1(0)")).is_err(),
        "which ids is not for the job to say"
    );
}

#[test]
fn an_advance_reservation_keeps_as_many_and_its_jobs_get_those_that_are_free() {
    let mut cell = cell("YES");
    let other = cell.submit(asking("gpu=1"));
    cell.run(other, 1, "h1");
    let owner = r#"{"owner": {"user": "boss", "uid": 1, "gid": 1, "group": "boss"}}"#;
    let spec = ReservationSpec {
        duration_s: Some(100),
        users: vec!["u1".to_owned()],
        requests: Requests {
            hard: resources("gpu=3"),
            ..Requests::default()
        },
        ..serde_json::from_str(owner).unwrap()
    };
    let reply = cell.command("boss", Command::Reserve(Box::new(spec.clone())));
    assert_eq!(texts(&reply), Vec::<String>::new(), "as much as is left");
    let refused = cell.command("boss", Command::Reserve(Box::new(spec)));
    assert!(!texts(&refused).is_empty(), "there is no more");
    cell.pass(1);
    let late = cell.submit(asking("gpu=1"));
    assert!(
        cell.order(late, 1, "h1").unwrap_err().contains("gpu"),
        "the rest is kept"
    );
    let within = |request: &str| JobSpec {
        reservation: Some(ReservationId(1)),
        ..asking(request)
    };
    let (first, second) = (cell.submit(within("gpu=2")), cell.submit(within("gpu=3")));
    let first_key = cell.run(first, 1, "h1");
    assert_eq!(
        (maps(&cell, other), maps(&cell, first)),
        ("gpu=h1=(0)".to_owned(), "gpu=h1=(1 2)".to_owned())
    );
    cell.exit(first_key, "h1", 0);
    assert!(
        cell.order(late, 1, "h1").unwrap_err().contains("gpu"),
        "what it gave back is the reservation's"
    );
    cell.run(second, 1, "h1");
    assert_eq!(maps(&cell, second), "gpu=h1=(1 2 3)");
    cell.pass(100_000);
    let third = cell.submit(asking("gpu=2"));
    assert!(cell.order(third, 1, "h1").is_err(), "its job has them until it is gone");
    cell.run(third, 1, "h2");
    cell.assert_replay_is_live();
}

/// A map whose ids have device files and names.
const CARDS: &str = "gpu=2(left[devices=/dev/nvidia0:rw;/dev/nvidiactl:r,uuid=GPU-11111111-2222-3333-4444-555555555555] \
                     right[devices=/dev/nvidia1:rw;/dev/nvidiactl:r,uuid=GPU-61111111-2222-3333-4444-555555555555])";

fn described_cell() -> Cell {
    let mut cell = cell("YES");
    let text = "STRING == NO NO NONE 0";
    complex(
        &mut cell,
        &format!(
            "gpu gpu RSMAP <= YES YES 0 0\ndevices devices {text}\nuuid uuid {text}\nruntime runtime {text}\nroom room MEMORY <= NO NO 0 0"
        ),
    );
    values(&mut cell, ObjectKind::ExecHost, "h2", CARDS);
    cell
}

#[test]
fn the_host_is_told_which_devices_a_task_has_and_which_it_has_not() {
    let mut cell = described_cell();
    cell.submit(asking("gpu=1"));
    cell.submit(job());
    let mut told = |number| {
        cell.order(number, 1, "h2").unwrap();
        let start = cell.sent().into_iter().rev().find_map(|message| match message {
            MasterMessage::Start(order) => Some(order),
            _ => None,
        });
        *start
            .expect("a start was sent")
            .devices
            .clone()
            .expect("the host has devices")
    };
    let of_first = told(1);
    let granted: Vec<String> = of_first.granted.iter().map(ToString::to_string).collect();
    assert_eq!(granted, ["/dev/nvidia0:rw", "/dev/nvidiactl:r"]);
    assert_eq!(of_first.withheld, ["/dev/nvidia1"]);
    let variable = (
        "CUDA_VISIBLE_DEVICES".to_owned(),
        "GPU-11111111-2222-3333-4444-555555555555".to_owned(),
    );
    assert!(of_first.variables.contains(&variable), "{:?}", of_first.variables);
    let of_second = told(2);
    assert_eq!(of_second.withheld, ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]);
    assert!(of_second.granted.is_empty() && of_second.variables.is_empty());
    cell.submit(job());
    cell.order(3, 1, "h1").unwrap();
    let is_free = cell.sent().into_iter().any(|message| match message {
        MasterMessage::Start(order) => order.devices.is_none(),
        _ => false,
    });
    assert!(is_free, "the maps of h1 name no devices");
}

#[test]
fn characteristics_are_attributes_with_values_of_their_types() {
    let mut cell = described_cell();
    for (value, expected) in [
        (
            "gpu=1(a[devices=/dev/nvidia0:rw,room=80G,runtime=cuda])",
            "modified \"h2\"",
        ),
        (
            "gpu=1(a[color=red])",
            "denied: attribute \"color\" is not a complex attribute",
        ),
        (
            "gpu=1(a[gpu=1])",
            "denied: attribute \"gpu\" is a resource map, which no id can have",
        ),
        ("gpu=1(a[room=big])", "attribute \"room\" is not a memory value"),
        (
            "gpu=1(a[devices=nvidia0])",
            "denied: invalid characteristic \"nvidia0\"",
        ),
        ("gpu=1(a[runtime=opencl])", "denied: invalid characteristic \"runtime\""),
        (
            "gpu=1(a[room=1G)",
            "denied: invalid value \"1(a[room=1G)\" of attribute \"gpu\"",
        ),
    ] {
        let said = values(&mut cell, ObjectKind::ExecHost, "h2", value);
        assert!(said.contains(expected), "{value}: {said}");
    }
    values(&mut cell, ObjectKind::ExecHost, "h2", CARDS);
    let without = complex(&mut cell, "gpu gpu RSMAP <= YES YES 0 0");
    assert!(
        without.contains("devices"),
        "an attribute that an id has stays: {without}"
    );
    cell.assert_replay_is_live();
}

/// A report of `h2` with which devices are ill.
fn report_ill(cell: &mut Cell, sequence: u64, devices: &str) {
    let values = [("h2".into(), [("devices_ill".into(), devices.to_owned())].into())].into();
    let report = Box::new(LoadReport {
        sequence,
        full: true,
        values,
        ..LoadReport::default()
    });
    let connection = cell.connection("h2");
    cell.input(Input::LoadReport { connection, report });
}

#[test]
fn an_id_whose_device_is_ill_is_given_to_nobody() {
    let mut cell = described_cell();
    for _ in 0..2 {
        cell.submit(asking("gpu=1"));
    }
    report_ill(&mut cell, 100, "/dev/nvidia0=it is too hot");
    cell.run(1, 1, "h2");
    assert_eq!(maps(&cell, 1), "gpu=h2=(right)");
    let refusal = cell.order(2, 1, "h2").unwrap_err();
    assert!(refusal.contains("hc:gpu=0"), "{refusal}");
    report_ill(&mut cell, 101, "");
    cell.run(2, 1, "h2");
    assert_eq!(maps(&cell, 2), "gpu=h2=(left)");
}
