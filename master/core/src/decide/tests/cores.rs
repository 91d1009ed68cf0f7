//! Core binding: which cores tasks get, that nobody else gets them meanwhile, and what is told when
//! there are none.

use super::Cell;
use super::cell::{job, texts};
use crate::effect::{ConnectionId, Input};
use crate::state::State;
use proto::binding::{BindingInstance, BindingObstacle, BindingOutcome, BindingRequest, Topology};
use proto::cell_version::CellVersion;
use proto::id::Epoch;
use proto::job::{JobChanges, JobSpec, Requests};
use proto::load::LoadReport;
use proto::wire::agent::{AgentHello, MasterMessage, PROTOCOL_VERSION};
use proto::wire::client::Command;
use std::collections::BTreeMap;

/// `h1` has two sockets of two cores with two threads each, `h2` tells nothing.
fn cell() -> Cell {
    let mut cell = Cell::ready();
    tell(&mut cell, "h1", "SCTTCTTSCTTCTT");
    cell
}

fn tell(cell: &mut Cell, host: &str, topology: &str) {
    let values = BTreeMap::from([("m_topology".into(), topology.to_owned())]);
    let report = Box::new(LoadReport {
        sequence: 1,
        full: true,
        values: BTreeMap::from([(host.into(), values)]),
        ..LoadReport::default()
    });
    let connection = cell.connection(host);
    cell.input(Input::LoadReport { connection, report });
}

fn request(text: &str) -> BindingRequest {
    BindingRequest {
        instance: BindingInstance::Set,
        strategy: text.parse().unwrap(),
    }
}

fn asking(text: &str) -> JobSpec {
    JobSpec {
        requests: Requests {
            binding: Some(Box::new(request(text))),
            ..Requests::default()
        }
        .into(),
        ..job()
    }
}

/// The cores of a task, or why it has none.
fn cores(cell: &Cell, number: u32) -> String {
    let told = |outcome: &BindingOutcome| match outcome {
        BindingOutcome::Bound(cores) => cores.clone(),
        BindingOutcome::Unbound(why) => why.to_string(),
    };
    let binding = &cell.placement(number, 1).binding;
    binding
        .iter()
        .map(|binding| told(&binding.outcome))
        .collect::<Vec<_>>()
        .join(",")
}

fn in_use(cell: &Cell, host: &str) -> String {
    let mut topology = Topology::parse("SCTTCTTSCTTCTT").unwrap();
    cell.core.state().mark_cores(&host.into(), &mut topology);
    topology.to_string()
}

#[test]
fn tasks_get_cores_of_their_own_until_they_are_gone_and_one_without_runs_all_the_same() {
    let mut cell = cell();
    for text in ["linear:1", "linear:2", "linear:2", "explicit:0,0"] {
        cell.submit(asking(text));
    }
    let first = cell.run(1, 1, "h1");
    cell.run(2, 1, "h1");
    cell.run(3, 1, "h1");
    assert_eq!(
        [1, 2].map(|number| cores(&cell, number)),
        ["ScttCTTSCTTCTT", "SCTTCTTScttctt"]
    );
    assert_eq!(cores(&cell, 3), "it asks for 2 free cores, and the host has 1");
    assert_eq!(in_use(&cell, "h1"), "ScttCTTScttctt");
    cell.exit(first, "h1", 0);
    assert_eq!(in_use(&cell, "h1"), "SCTTCTTScttctt");
    cell.run(4, 1, "h1");
    assert_eq!(cores(&cell, 4), "ScttCTTSCTTCTT");
    cell.assert_replay_is_live();
    let stored = rmp_serde::to_vec_named(cell.core.state()).unwrap();
    assert!(rmp_serde::from_slice::<State>(&stored).unwrap().restored() == *cell.core.state());
}

#[test]
fn cores_are_free_again_however_a_task_ends() {
    let mut cell = cell();
    cell.submit(asking("linear:4"));
    cell.run(1, 1, "h1");
    assert_eq!(in_use(&cell, "h1"), "ScttcttScttctt");
    cell.disconnect("h1");
    assert_eq!(in_use(&cell, "h1"), "ScttcttScttctt", "the host may still run it");
    cell.qdel_force("boss", &["1"]);
    assert_eq!(in_use(&cell, "h1"), "SCTTCTTSCTTCTT");
}

#[test]
fn the_host_is_told_the_cores_with_the_start() {
    let mut cell = cell();
    cell.submit(asking("striding:2:2"));
    cell.order(1, 1, "h1").unwrap();
    let told = cell.sent().into_iter().find_map(|message| match message {
        MasterMessage::Start(order) => Some(order.binding.clone()),
        _ => None,
    });
    assert_eq!(told.unwrap()[0].bound(), Some("ScttCTTScttCTT"));
}

#[test]
fn a_host_that_cannot_bind_says_why() {
    let mut cell = cell();
    cell.submit(asking("linear:1"));
    cell.run(1, 1, "h2");
    assert_eq!(cores(&cell, 1), BindingObstacle::NoTopology.to_string());
    tell(&mut cell, "h2", "nonsense");
    cell.submit(asking("linear:1"));
    cell.run(2, 1, "h2");
    assert_eq!(cores(&cell, 2), BindingObstacle::NoTopology.to_string());
    cell.set_cluster(&[("execd_params", "ENABLE_BINDING=false")]);
    cell.submit(asking("linear:1"));
    cell.run(3, 1, "h1");
    assert_eq!(cores(&cell, 3), BindingObstacle::Disabled.to_string());
    cell.submit(job());
    cell.run(4, 1, "h1");
    assert_eq!(cores(&cell, 4), "", "it asks for none");
}

#[test]
fn a_request_for_no_cores_is_refused_at_its_submission_and_not_by_qalter() {
    let mut cell = cell();
    for text in ["linear:0", "striding:0:1"] {
        assert_eq!(
            cell.try_submit(asking(text)).unwrap_err(),
            "job rejected: binding parameter not consistent with strategy (BN_parameter_n is 0)"
        );
    }
    let number = cell.submit(job());
    for text in ["linear:2", "linear:0"] {
        let changes = JobChanges {
            binding: Some(request(text)),
            ..JobChanges::default()
        };
        let jobs = super::cell::selection(&[&number.to_string()]);
        let reply = cell.command(
            "u1",
            Command::Alter {
                jobs,
                changes: Box::new(changes),
            },
        );
        assert_eq!(texts(&reply), [format!("modified binding of job {number}")]);
    }
    cell.run(number, 1, "h1");
    assert_eq!(cores(&cell, number), BindingObstacle::Nothing.to_string());
}

#[test]
fn a_task_is_not_bound_where_the_agent_is_of_an_older_version() {
    let mut cell = cell();
    cell.disconnect("h1");
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        software: "older".to_owned(),
        host: "h1".into(),
        instance: 1,
        epoch: Epoch(1),
        tasks: Vec::new(),
        wall_ms: cell.now.wall.0,
        takes_tickets: true,
        binds_cores: false,
        cell_version: CellVersion::NEWEST,
        boot_ms: 0,
        marks: Vec::new(),
    };
    cell.input(Input::AgentConnected {
        connection: ConnectionId(900),
        host: "h1".into(),
        hello: Box::new(hello),
    });
    tell(&mut cell, "h1", "SCC");
    cell.submit(asking("linear:1"));
    cell.run(1, 1, "h1");
    assert_eq!(cores(&cell, 1), BindingObstacle::OldAgent.to_string());
}
