mod reports;

use super::cell::result;
use super::*;
use crate::effect::{ConnectionId, Effect, Input};
use crate::observe::Observation;
use crate::state::job::TaskPlace;
use proto::cell_version::CellVersion;
use proto::id::{Epoch, HostName, TaskKey};
use proto::job::JobSpec;
use proto::load::LoadReport;
use proto::object::ObjectKind;
use proto::usage::{Exit, FailedCode};
use proto::wire::agent::{AgentHello, MasterMessage, PROTOCOL_VERSION, TaskReport, TaskReportState, TaskSignal};
use proto::wire::client::{AttributeEdit, Command, ModifyAction, ObjectAction, ObjectChange};

fn is_ready(cell: &Cell, host: &str) -> bool {
    cell.core.observations().is_ready(&host.into())
}

fn refused(cell: &Cell) -> Option<String> {
    let why = |effect: &Effect| {
        if let Effect::Disconnect { why, .. } = effect {
            Some(why.what.clone())
        } else {
            None
        }
    };
    cell.effects.iter().find_map(why)
}

#[test]
fn a_host_gets_starts_from_its_connect_to_its_loss() {
    let mut cell = Cell::new();
    assert!(!is_ready(&cell, "h1"));
    cell.connect("h1");
    assert!(is_ready(&cell, "h1"));
    assert!(
        cell.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Observed(Observation::Contact { connected: true, .. })))
    );
    cell.disconnect("h1");
    assert!(!is_ready(&cell, "h1"));
}

#[test]
fn a_second_agent_under_one_name_is_refused_and_a_reconnect_is_not() {
    let mut cell = Cell::new();
    let first = cell.connect_with("h1", 1, Vec::new());
    cell.connect_with("h1", 2, Vec::new());
    assert_eq!(refused(&cell), Some("an agent of host h1 is connected already".into()));
    assert_eq!(cell.connection("h1"), first);
    let again = cell.connect_with("h1", 1, Vec::new());
    assert_eq!(cell.connection("h1"), again);
    assert!(
        cell.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Disconnect { connection, .. } if *connection == first))
    );
    cell.input(Input::AgentLost { connection: first });
    assert!(is_ready(&cell, "h1"), "the end of the old connection is no news");
}

#[test]
fn an_agent_that_was_killed_gives_way_to_the_next_and_one_that_lives_does_not() {
    let mut cell = Cell::new();
    let first = cell.connect_with("h1", 1, Vec::new());
    cell.pass(100);
    cell.connect_with("h1", 2, Vec::new());
    assert!(
        cell.sent().contains(&&MasterMessage::ReportNow),
        "the first is asked whether it lives"
    );
    cell.pass(100);
    let report = Box::new(LoadReport {
        sequence: 1,
        full: true,
        ..LoadReport::default()
    });
    cell.input(Input::LoadReport {
        connection: first,
        report,
    });
    cell.pass(3_000);
    cell.connect_with("h1", 2, Vec::new());
    assert!(refused(&cell).is_some(), "it has answered, and is asked again");
    cell.pass(1_000);
    cell.connect_with("h1", 2, Vec::new());
    assert!(refused(&cell).is_some(), "it has time to answer");
    cell.pass(1_000);
    let second = cell.connect_with("h1", 2, Vec::new());
    assert_eq!(cell.connection("h1"), second, "it was silent");
}

#[test]
fn strangers_are_refused() {
    let mut cell = Cell::new();
    cell.connect("h9");
    assert_eq!(
        refused(&cell),
        Some("host h9 is no execution, submit or administrative host of this cell".into())
    );
}

#[test]
fn an_agent_that_has_obeyed_a_newer_master_is_turned_away() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    cell.run(number, 1, "h1");
    cell.disconnect("h1");
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        cell_version: CellVersion::NEWEST,
        software: "test".to_owned(),
        host: "h1".into(),
        instance: 1,
        epoch: Epoch(2),
        tasks: Vec::new(),
        wall_ms: cell.now.wall.0,
        takes_tickets: true,
        binds_cores: true,
        boot_ms: 0,
        marks: Vec::new(),
    };
    let connection = ConnectionId(900);
    cell.input(Input::AgentConnected {
        connection,
        host: "h1".into(),
        hello: Box::new(hello),
    });
    assert!(
        refused(&cell).is_some_and(|why| why.contains("epoch 2")),
        "{:?}",
        cell.effects
    );
    assert!(
        cell.task(number, 1).place.placement().is_some(),
        "what it does not know is not lost"
    );
}

#[test]
fn what_an_agent_said_before_it_connected_again_does_not_count() {
    let mut cell = Cell::ready();
    cell.pass(10_000);
    cell.connect("h1");
    let number = cell.submit(job());
    cell.run(number, 1, "h1");
    cell.disconnect("h1");
    let hello = |boot_ms: u64, instance: u128| AgentHello {
        version: PROTOCOL_VERSION,
        cell_version: CellVersion::NEWEST,
        software: "test".to_owned(),
        host: "h1".into(),
        instance,
        epoch: Epoch(1),
        tasks: Vec::new(),
        wall_ms: 0,
        takes_tickets: true,
        binds_cores: true,
        boot_ms,
        marks: Vec::new(),
    };
    let late = hello(cell.now.tick.0 - 5_000, 1);
    let connection = ConnectionId(900);
    cell.input(Input::AgentConnected {
        connection,
        host: "h1".into(),
        hello: Box::new(late),
    });
    assert_eq!(
        refused(&cell),
        Some("the agent of h1 has connected again since".to_owned())
    );
    assert!(
        cell.task(number, 1).place.placement().is_some(),
        "it did not know yet of what runs now"
    );
    // Another boot has another clock, and an older agent tells no time: what they say is new.
    for (number, boot_ms) in [(901, 5), (902, 0)] {
        let connection = ConnectionId(number);
        cell.input(Input::AgentConnected {
            connection,
            host: "h1".into(),
            hello: Box::new(hello(boot_ms, 2)),
        });
        assert_eq!(cell.connection("h1"), connection, "{boot_ms}");
    }
    assert!(!cell.exists(number));
    cell.assert_replay_is_live();
}

#[test]
fn a_task_the_host_forgot_is_lost_and_run_again_if_it_may() {
    for (rerunnable, waits) in [(false, false), (true, true)] {
        let mut cell = Cell::ready();
        let number = cell.submit(JobSpec {
            rerunnable: Some(rerunnable),
            ..job()
        });
        cell.run(number, 1, "h1");
        cell.disconnect("h1");
        cell.pass(10_000);
        cell.connect("h1");
        assert_eq!(cell.exists(number), waits);
        let record = cell.records()[0];
        assert_eq!(
            (record.failed, record.wallclock_ms),
            (FailedCode::IN_RECOGNIZING_JOB, 10_000)
        );
        cell.assert_replay_is_live();
    }
}

#[test]
fn an_order_that_never_arrived_is_sent_again() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.order(number, 1, "h1").unwrap();
    cell.disconnect("h1");
    cell.connect("h1");
    let sent = cell.sent();
    assert!(
        matches!(
            sent[..],
            [MasterMessage::Configure(_), MasterMessage::Describe { .. }, _]
        ),
        "{sent:?}"
    );
    assert!(
        sent.iter()
            .any(|message| matches!(message, MasterMessage::Start(order) if order.key == key))
    );
    assert_eq!(cell.records().len(), 0);
}

#[test]
fn a_task_that_goes_on_over_a_reconnect_is_left_alone() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.disconnect("h1");
    let events = cell.log.len();
    cell.connect_with(
        "h1",
        1,
        vec![TaskReport {
            key,
            state: TaskReportState::Running { for_ms: 5 },
        }],
    );
    assert_eq!(cell.log.len(), events);
    assert!(
        cell.sent()
            .iter()
            .all(|message| !matches!(message, MasterMessage::Signal { .. }))
    );
}

#[test]
fn a_task_that_ended_while_the_host_was_away_is_accounted_on_its_return() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.disconnect("h1");
    let ended = TaskReportState::Ended(Box::new(result(Exit::Code(0), FailedCode::NO, "")));
    cell.connect_with("h1", 1, vec![TaskReport { key, state: ended }]);
    assert!(!cell.exists(number));
    assert!(
        cell.sent()
            .iter()
            .any(|message| matches!(message, MasterMessage::Forget { .. }))
    );
}

#[test]
fn what_was_asked_for_while_the_host_was_away_is_said_on_its_return() {
    let mut cell = Cell::ready();
    let (first, second) = (cell.submit(job()), cell.submit(job()));
    let keys = [cell.run(first, 1, "h1"), cell.run(second, 1, "h1")];
    cell.qmod("u1", ModifyAction::SuspendJob, "2");
    cell.disconnect("h1");
    cell.qdel("u1", &["1"]);
    cell.qmod("u1", ModifyAction::UnsuspendJob, "2");
    let running = |key| TaskReport {
        key,
        state: TaskReportState::Running { for_ms: 5 },
    };
    cell.connect_with("h1", 1, keys.map(running).to_vec());
    let signal = |message: &MasterMessage| {
        if let MasterMessage::Signal { signal, .. } = message {
            Some(*signal)
        } else {
            None
        }
    };
    let signals: Vec<TaskSignal> = cell.sent().into_iter().filter_map(signal).collect();
    assert_eq!(signals, [TaskSignal::Terminate, TaskSignal::Resume]);
}

#[test]
fn a_deleted_task_that_never_reached_its_host_leaves_without_a_record() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    cell.order(number, 1, "h1").unwrap();
    cell.disconnect("h1");
    cell.qdel("u1", &["1"]);
    cell.connect("h1");
    assert!(!cell.exists(number));
    assert!(cell.records().is_empty());
    cell.assert_replay_is_live();
}

#[test]
fn an_order_without_an_answer_is_repeated() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.order(number, 1, "h1").unwrap();
    assert!(cell.core.next_timer().is_some());
    cell.pass(31_000);
    assert!(
        matches!(cell.sent()[..], [MasterMessage::Start(_)]),
        "{:?}",
        cell.sent()
    );
    cell.report(key, "h1", TaskReportState::Accepted);
    cell.pass(31_000);
    assert!(cell.sent().is_empty());
}

#[test]
fn a_start_that_a_host_could_not_use_is_repeated_with_its_description_and_not_at_once() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.order(number, 1, "h1").unwrap();
    cell.report(key, "h1", TaskReportState::Unknown);
    assert!(cell.sent().is_empty(), "it would answer the same for ever");
    cell.pass(31_000);
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Describe { .. }, MasterMessage::Start(_)]
    ));
}

#[test]
fn another_hosts_word_for_a_task_does_not_count() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h2", 0);
    assert!(cell.exists(number));
    assert!(matches!(cell.sent()[..], [MasterMessage::Forget { .. }]));
}

#[test]
fn a_host_that_is_not_heard_loses_its_values_and_its_rerunnable_tasks() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("reschedule_unknown", "0:1:0")]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(number, 1, "h1");
    load(&mut cell, "h1", 1, true, &[("h1", "load_avg", "0.5")]);
    cell.disconnect("h1");
    cell.pass(300_000);
    assert!(
        cell.effects
            .contains(&Effect::Observed(Observation::Unheard { host: "h1".into() }))
    );
    assert!(!cell.core.observations().load.contains_key("h1"));
    cell.pass(60_000);
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    cell.connect_with(
        "h1",
        1,
        vec![TaskReport {
            key,
            state: TaskReportState::Running { for_ms: 5 },
        }],
    );
    assert!(cell.sent().iter().any(|message| matches!(
        message,
        MasterMessage::Signal {
            signal: TaskSignal::Terminate,
            ..
        }
    )));
    cell.assert_replay_is_live();
}

#[test]
fn a_shorter_wait_for_unknown_hosts_holds_at_once() {
    let mut cell = Cell::ready();
    cell.pass(1_000);
    let (attribute, value) = ("max_unheard".to_owned(), "0:0:10".to_owned());
    let action = ObjectAction::Attribute {
        edit: AttributeEdit::Replace,
        attribute,
        value,
    };
    let change = ObjectChange {
        kind: ObjectKind::ClusterConf,
        name: "global".to_owned(),
        action,
    };
    cell.command("boss", Command::Objects(vec![change]));
    cell.disconnect("h1");
    cell.pass(9_000);
    assert!(
        cell.effects
            .contains(&Effect::Observed(Observation::Unheard { host: "h1".into() })),
        "{:?}",
        cell.effects
    );
}

#[test]
fn the_master_ends_overdue_tasks_of_unknown_hosts_if_it_is_to() {
    let limited = |seconds: &str| {
        let mut spec = job();
        spec.requests.hard = super::cell::resources(&format!("h_rt={seconds}"));
        spec
    };
    for (params, is_ended) in [("none", false), ("ENABLE_ENFORCE_MASTER_LIMIT=true", true)] {
        let mut cell = Cell::ready();
        cell.set_cluster(&[("qmaster_params", params)]);
        cell.set_scheduler(&[("params", "DURATION_OFFSET=0:0:30")]);
        let (short, long, free) = (
            cell.submit(limited("600")),
            cell.submit(limited("900")),
            cell.submit(job()),
        );
        [short, long, free].into_iter().for_each(|number| {
            cell.run(number, 1, "h1");
        });
        cell.disconnect("h1");
        cell.pass(301_000);
        cell.pass(328_000);
        assert!(cell.exists(short), "its time and the grace are not over");
        cell.pass(1_000);
        assert_eq!(!cell.exists(short), is_ended, "{params}");
        assert!(cell.exists(long) && cell.exists(free));
        if is_ended {
            let record = cell.records()[0];
            assert_eq!((record.failed, record.exit_status), (FailedCode::LIMIT_ENFORCED, 137));
            assert_eq!(
                record.limit.as_ref().map(|hit| (hit.limit.as_str(), hit.value)),
                Some(("h_rt", 600))
            );
            let running = |number| TaskReport {
                key: cell.placement(number, 1).key,
                state: TaskReportState::Running { for_ms: 600_000 },
            };
            let tasks = vec![running(long), running(free)];
            cell.connect_with("h1", 1, tasks.clone());
            cell.pass(200_000);
            cell.report(tasks[0].key, "h1", tasks[0].state.clone());
            cell.pass(200_000);
            assert!(cell.exists(long), "its host is heard again and decides by itself");
        }
        cell.assert_replay_is_live();
    }
}

/// A task that was given up with its host and waits.
fn given_up(cell: &mut Cell) -> (u32, TaskKey) {
    cell.set_cluster(&[("reschedule_unknown", "0:1:0")]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(number, 1, "h1");
    cell.disconnect("h1");
    cell.pass(300_000);
    cell.pass(60_000);
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
    (number, key)
}

#[test]
fn a_task_goes_back_to_the_host_that_lost_it_only_once_it_is_gone_there() {
    // The host is heard again while the first attempt still runs there.
    let mut cell = Cell::ready();
    let (number, key) = given_up(&mut cell);
    let other = cell.submit(job());
    cell.connect_with(
        "h1",
        1,
        vec![TaskReport {
            key,
            state: TaskReportState::Running { for_ms: 5 },
        }],
    );
    let why = cell.order(number, 1, "h1").unwrap_err();
    assert_eq!(why, "an earlier attempt may still run on host h1");
    cell.run(other, 1, "h1");
    cell.exit(key, "h1", 137);
    cell.run(number, 1, "h1");
    assert!(cell.core.state().unconfirmed.is_empty());
    cell.assert_replay_is_live();
}

#[test]
fn a_host_that_knows_nothing_of_a_lost_task_may_have_it_again() {
    let mut cell = Cell::ready();
    let (number, _) = given_up(&mut cell);
    cell.connect("h1");
    cell.run(number, 1, "h1");
    cell.assert_replay_is_live();
}

#[test]
fn a_lost_task_that_ran_elsewhere_is_forgotten_with_its_job() {
    let mut cell = Cell::ready();
    let (number, _) = given_up(&mut cell);
    let key = cell.run(number, 1, "h2");
    cell.exit(key, "h2", 0);
    assert!(cell.core.state().unconfirmed.is_empty());
    cell.assert_replay_is_live();
}

#[test]
fn no_user_runs_more_than_maxujobs() {
    let mut cell = Cell::ready();
    cell.set_scheduler(&[("maxujobs", "1")]);
    let (first, second) = (cell.submit(job()), cell.submit(job()));
    let key = cell.run(first, 1, "h1");
    let why = cell.order(second, 1, "h2").unwrap_err();
    assert_eq!(
        why,
        "1 jobs of its owner run, as many as maxujobs of the scheduler configuration allows"
    );
    cell.exit(key, "h1", 0);
    cell.run(second, 1, "h2");
}

fn load(cell: &mut Cell, host: &str, sequence: u64, full: bool, values: &[(&str, &str, &str)]) {
    let mut report = LoadReport {
        sequence,
        full,
        ..LoadReport::default()
    };
    for (subject, name, text) in values {
        report
            .values
            .entry(HostName::new(subject))
            .or_default()
            .insert((*name).into(), (*text).to_owned());
    }
    send(cell, host, report);
}

fn send(cell: &mut Cell, host: &str, report: LoadReport) {
    let connection = cell.connection(host);
    cell.input(Input::LoadReport {
        connection,
        report: Box::new(report),
    });
}

#[test]
fn a_restarted_master_gives_up_hosts_that_do_not_come_back() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("reschedule_unknown", "0:1:0")]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    cell.run(number, 1, "h1");
    cell.core = crate::core::Core::new(cell.core.state().clone());
    cell.pass(1);
    assert!(cell.core.next_timer().is_some());
    cell.pass(300_000);
    cell.pass(60_000);
    assert_eq!(cell.task(number, 1).place, TaskPlace::Pending { error: None });
}

#[test]
fn a_jump_of_the_wall_clock_is_an_event() {
    let mut cell = Cell::ready();
    let expected = proto::time::Wall(cell.now.wall.0 + 1_000);
    cell.now.wall = proto::time::Wall(cell.now.wall.0 - 3_600_000);
    cell.pass(1_000);
    assert_eq!(
        cell.log.last().map(|record| record.event.clone()),
        Some(crate::event::Event::WallJumped { expected })
    );
    let events = cell.log.len();
    cell.pass(59_000);
    assert_eq!(cell.log.len(), events);
}
