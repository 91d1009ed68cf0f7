//! Slave tasks of parallel jobs: who may start how many where, what ends them, and what is
//! accounted.

use super::cell::{Cell, job, resources, result, texts};
use crate::effect::{Effect, Input};
use crate::event::Event;
use crate::state::usage::Account;
use proto::amount::Amount;
use proto::id::{PeName, QueueInstanceName, RequestId, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec, PeRequest, Requests};
use proto::limit::LimitKind;
use proto::object::ObjectKind;
use proto::pe::ParallelEnvironment;
use proto::request::SlotRange;
use proto::time::Wall;
use proto::usage::{Exit, FailedCode, TaskResult, Usage};
use proto::wire::agent::{MasterMessage, StartOrder, TaskReport, TaskReportState, TaskSignal};
use proto::wire::client::{Command, Reply, SlaveRequest};
use proto::wire::slave::SlaveSpec;
use proto::wire::stream::Order;
use proto::wire::view::Data;
use std::sync::Arc;

/// A cell in which job 1 of `u1` runs with two slots on each of `h1`, where its master is, and
/// `h2`.
fn cell(settings: &[(&str, &str)]) -> (Cell, TaskKey) {
    let (cell, key, _) = cell_asking(
        settings,
        Requests {
            hard: resources("h_vmem=1G"),
            ..Requests::default()
        },
    );
    (cell, key)
}

/// The same for a job that asks for something else beside its slots; with the order that started
/// it.
fn cell_asking(settings: &[(&str, &str)], requests: Requests) -> (Cell, TaskKey, StartOrder) {
    let mut cell = Cell::ready();
    let mut pe = ParallelEnvironment::template("mpi".into()).to_fields();
    for (key, value) in [("slots", "10"), ("allocation_rule", "2"), ("control_slaves", "TRUE")]
        .iter()
        .chain(settings)
    {
        pe.set(key, *value);
    }
    let stored = crate::event::StoredObject {
        kind: ObjectKind::Pe,
        name: "mpi".to_owned(),
        fields: Some(pe),
    };
    cell.store(vec![stored]);
    cell.set_queue(&[("pe_list", "mpi")]);
    let pe = PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::parse("4").unwrap(),
    };
    cell.submit(JobSpec {
        requests: Requests {
            pe: Some(pe),
            ..requests
        }
        .into(),
        ..job()
    });
    let part = |host: &str| GrantedSlots {
        instance: instance(host),
        slots: 2,
    };
    let (seq, granted) = (cell.job(1).seq, vec![part("h1"), part("h2")]);
    let order = Order::Start {
        seq,
        task: TaskId(1),
        granted,
        pe: Some(PeName::from("mpi")),
    };
    cell.input(Input::Orders {
        scheduler: "any".to_owned(),
        orders: vec![order],
    });
    let key = cell.placement(1, 1).key;
    let start = started(&cell, "h1");
    cell.report(key, "h1", TaskReportState::Running { for_ms: 0 });
    (cell, key, start)
}

/// The order to start a task that the last input sent to a host.
fn started(cell: &Cell, host: &str) -> StartOrder {
    let connection = cell.connection(host);
    let order = cell.effects.iter().find_map(|effect| match effect {
        Effect::Send {
            connection: to,
            message,
        } if *to == connection => match &**message {
            MasterMessage::Start(order) => Some(StartOrder::clone(order)),
            _ => None,
        },
        _ => None,
    });
    order.unwrap_or_else(|| panic!("{host} is told to start something"))
}

fn instance(host: &str) -> QueueInstanceName {
    QueueInstanceName {
        queue: "all.q".into(),
        host: host.into(),
    }
}

fn request(task: TaskKey, host: &str) -> Command {
    let spec = SlaveSpec {
        command: vec!["hostname".to_owned()],
        ..SlaveSpec::default()
    };
    Command::StartSlave(Box::new(SlaveRequest {
        task,
        host: host.to_owned(),
        spec: Arc::new(spec),
    }))
}

fn inherit_as(cell: &mut Cell, user: &str, task: TaskKey, host: &str) -> Result<TaskKey, String> {
    let id = RequestId(u128::from(cell.core.state().last.0) + 1_000_000);
    let reply: Reply = cell.command_as(id, user, "h1", request(task, host));
    match reply.data {
        Some(Data::Slave(key)) => Ok(key),
        _ => Err(texts(&reply).join("|")),
    }
}

fn inherit(cell: &mut Cell, task: TaskKey, host: &str) -> Result<TaskKey, String> {
    inherit_as(cell, "u1", task, host)
}

/// A slave task that runs.
fn run(cell: &mut Cell, task: TaskKey, host: &str) -> TaskKey {
    let key = inherit(cell, task, host).unwrap();
    cell.report(key, host, TaskReportState::Running { for_ms: 0 });
    key
}

fn ended(cpu_ms: u64) -> TaskResult {
    TaskResult {
        usage: Usage {
            cpu_ms,
            ..Usage::default()
        },
        ..result(Exit::Code(3), FailedCode::NO, "")
    }
}

/// The tasks that the last input told agents to end.
fn terminated(cell: &Cell) -> Vec<u32> {
    let number = |message: &&MasterMessage| match message {
        MasterMessage::Signal {
            key,
            signal: TaskSignal::Terminate,
        } => Some(key.pe_task),
        _ => None,
    };
    cell.sent().iter().filter_map(number).collect()
}

#[test]
fn a_slave_task_is_on_record_when_its_host_hears_of_it() {
    let (mut cell, task) = cell(&[]);
    let key = inherit(&mut cell, task, "H2").unwrap();
    assert_eq!(key, TaskKey { pe_task: 1, ..task });
    let is_placed = |event: &Event| matches!(event, Event::SlavePlaced { key: placed, .. } if *placed == key);
    assert!(cell.log.iter().any(|record| is_placed(&record.event)));
    let order = started(&cell, "h2");
    assert_eq!((order.key, order.granted.len(), order.pe_start), (key, 2, None));
    assert_eq!(order.slave.unwrap().instance, instance("h2"));
    // It has the limits of both slots there.
    assert_eq!(order.limits.get(LimitKind::Vmem).hard, Some(Amount::from_base(2 << 30)));
    cell.assert_replay_is_live();
}

#[test]
fn the_job_has_the_limits_of_its_slots_and_a_slave_task_those_of_slaves() {
    let gib = |amount: i64| Some(Amount::from_base(amount << 30));
    let vmem = |order: &StartOrder| order.limits.get(LimitKind::Vmem).hard;
    for (settings, on_master, beside) in [
        (&[][..], gib(3), gib(2)),
        (&[("job_is_first_task", "FALSE")], gib(5), gib(4)),
        (&[("ign_sreq_on_mhost", "TRUE")], gib(1), None),
    ] {
        let (master, slaves) = (resources("h_vmem=1G,h_rt=60"), resources("h_vmem=2G"));
        let requests = Requests {
            master,
            slaves,
            ..Requests::default()
        };
        let (mut cell, task, order) = cell_asking(settings, requests);
        assert_eq!(vmem(&order), on_master, "{settings:?}");
        assert_eq!(
            order.limits.get(LimitKind::Rt).hard,
            Some(Amount::from_base(60)),
            "the time is the master's"
        );
        inherit(&mut cell, task, "h1").unwrap();
        let order = started(&cell, "h1");
        assert_eq!(
            (vmem(&order), order.limits.get(LimitKind::Rt).hard),
            (beside, None),
            "{settings:?}"
        );
        inherit(&mut cell, task, "h2").unwrap();
        assert_eq!(vmem(&started(&cell, "h2")), gib(4), "{settings:?}");
        cell.assert_replay_is_live();
    }
}

#[test]
fn no_more_slave_tasks_run_on_a_host_than_the_job_has_slots_there() {
    for (first, on_master) in [("TRUE", 1), ("FALSE", 2)] {
        let (mut cell, task) = cell(&[("job_is_first_task", first)]);
        for (host, room) in [("h1", on_master), ("h2", 2)] {
            let keys: Vec<TaskKey> = (0..room).map(|_| run(&mut cell, task, host)).collect();
            let refusal = inherit(&mut cell, task, host).unwrap_err();
            assert_eq!(
                refusal,
                format!("error: executing task of job 1 failed: no slot is free on host {host}")
            );
            cell.end(keys[0], host, ended(1));
            run(&mut cell, task, host);
        }
    }
}

#[test]
fn slave_tasks_of_a_host_fill_the_slots_of_its_queues_in_turn() {
    let (mut cell, _) = cell(&[]);
    let mut queue = cell.core.state().config.queues["all.q"].to_fields();
    queue.set("qname", "b.q");
    let stored = crate::event::StoredObject {
        kind: ObjectKind::Queue,
        name: "b.q".to_owned(),
        fields: Some(queue),
    };
    cell.store(vec![stored]);
    let pe = PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::parse("4").unwrap(),
    };
    cell.submit(JobSpec {
        requests: Requests {
            pe: Some(pe),
            ..Requests::default()
        }
        .into(),
        ..job()
    });
    let part = |queue: &str, host: &str, slots| {
        let instance = QueueInstanceName {
            queue: queue.into(),
            host: host.into(),
        };
        GrantedSlots { instance, slots }
    };
    let granted = vec![
        part("b.q", "h1", 1),
        part("all.q", "h1", 1),
        part("all.q", "h2", 1),
        part("b.q", "h2", 1),
    ];
    let (seq, pe) = (cell.job(2).seq, Some(PeName::from("mpi")));
    let order = Order::Start {
        seq,
        task: TaskId(1),
        granted,
        pe,
    };
    cell.input(Input::Orders {
        scheduler: "any".to_owned(),
        orders: vec![order],
    });
    let task = cell.placement(2, 1).key;
    cell.report(task, "h1", TaskReportState::Running { for_ms: 0 });
    for (host, expected) in [("h1", &["all.q@h1"][..]), ("h2", &["all.q@h2", "b.q@h2"])] {
        for instance in expected {
            let key = run(&mut cell, task, host);
            assert_eq!(
                cell.placement(2, 1).slaves().live[&key.pe_task].instance.to_string(),
                **instance
            );
        }
        assert!(inherit(&mut cell, task, host).is_err());
    }
}

#[test]
fn who_is_not_of_the_job_or_names_another_host_is_refused() {
    let (mut cell, task) = cell(&[]);
    for (user, host, why) in [
        ("u2", "h2", "it is a job of u1, not of u2"),
        ("boss", "h2", "it is a job of u1, not of boss"),
        ("u1", "h3", "host h3 was not granted to it"),
    ] {
        let refusal = inherit_as(&mut cell, user, task, host).unwrap_err();
        assert_eq!(refusal, format!("error: executing task of job 1 failed: {why}"));
    }
    let elsewhere = cell.command_as(RequestId(99), "u1", "sub", request(task, "h2"));
    let why = "host sub, from which this was asked, is none of its hosts";
    assert_eq!(
        texts(&elsewhere),
        [format!("error: executing task of job 1 failed: {why}")]
    );
    let refusal = inherit(&mut cell, TaskKey { attempt: 2, ..task }, "h2").unwrap_err();
    assert_eq!(refusal, "error: the job of this command does not run any more");
    cell.disconnect("h2");
    assert!(
        inherit(&mut cell, task, "h2")
            .unwrap_err()
            .ends_with("host h2 has no contact with the master")
    );
    cell.qdel("u1", &["1"]);
    assert!(
        inherit(&mut cell, task, "h1")
            .unwrap_err()
            .ends_with("the job is being ended")
    );
}

#[test]
fn without_control_slaves_there_are_no_slave_tasks() {
    let (mut cell, task) = cell(&[("control_slaves", "FALSE")]);
    let refusal = inherit(&mut cell, task, "h2").unwrap_err();
    assert!(
        refusal.ends_with("control_slaves of parallel environment mpi is FALSE"),
        "{refusal}"
    );
}

#[test]
fn each_slave_task_has_a_record_unless_one_sums_up_the_job() {
    for summary in ["FALSE", "TRUE"] {
        let (mut cell, task) = cell(&[("accounting_summary", summary)]);
        for host in ["h2", "h2", "h1"] {
            let key = run(&mut cell, task, host);
            cell.end(key, host, ended(1000));
        }
        cell.end(task, "h1", ended(100));
        let told = |record: &&proto::accounting::AccountingRecord| {
            (
                record.host.to_string(),
                record.pe_task.clone(),
                record.usage.cpu_ms,
                record.exit_status,
            )
        };
        let records: Vec<_> = cell.records().iter().map(told).collect();
        let slave = |name: &str| (name[2..].to_owned(), Some(name.to_owned()), 1000, 3);
        let whole = |cpu_ms| ("h1".to_owned(), None, cpu_ms, 3);
        match summary {
            "TRUE" => assert_eq!(records, [whole(3100)]),
            _ => assert_eq!(records, [slave("1.h2"), slave("2.h2"), slave("1.h1"), whole(100)]),
        }
        assert!(!cell.exists(1));
        let account = Account {
            user: "u1".into(),
            project: None,
        };
        let charged = cell.core.state().usage.lifetime(&account).cpu;
        assert_eq!(
            charged,
            3_100 * 1_000_000,
            "each is charged once, accounting_summary {summary}"
        );
        cell.assert_replay_is_live();
    }
}

#[test]
fn a_deletion_ends_every_task_on_every_host() {
    let (mut cell, task) = cell(&[]);
    let slaves = [
        run(&mut cell, task, "h1"),
        run(&mut cell, task, "h2"),
        run(&mut cell, task, "h2"),
    ];
    cell.qdel("u1", &["1"]);
    assert_eq!(terminated(&cell), [1, 2, 3, 0]);
    cell.end(task, "h1", ended(1));
    assert!(cell.exists(1), "it is not over before its slave tasks are");
    for (slave, host) in slaves.into_iter().zip(["h1", "h2", "h2"]) {
        assert!(cell.exists(1));
        cell.end(slave, host, ended(1));
    }
    assert!(!cell.exists(1));
    let forgets = cell
        .sent()
        .iter()
        .filter(|message| matches!(message, MasterMessage::Forget { .. }))
        .count();
    assert_eq!(forgets, 2, "the slave task and the job itself");
}

#[test]
fn slave_tasks_have_a_moment_to_end_after_their_job() {
    let (mut cell, task) = cell(&[]);
    let slaves = [run(&mut cell, task, "h1"), run(&mut cell, task, "h2")];
    cell.end(task, "h1", ended(1));
    assert!(terminated(&cell).is_empty() && cell.exists(1));
    cell.end(slaves[1], "h2", ended(1));
    cell.pass(2_000);
    assert_eq!((terminated(&cell), cell.exists(1)), (vec![1], true));
    cell.end(slaves[0], "h1", ended(1));
    assert!(!cell.exists(1));
    cell.assert_replay_is_live();
}

#[test]
fn the_end_of_a_job_ends_its_slave_tasks_also_on_hosts_that_come_back_later() {
    let (mut cell, task) = cell(&[]);
    let slave = run(&mut cell, task, "h2");
    cell.disconnect("h2");
    cell.end(task, "h1", ended(1));
    let running = TaskReport {
        key: slave,
        state: TaskReportState::Running { for_ms: 5 },
    };
    cell.connect_with("h2", 1, vec![running]);
    assert_eq!(terminated(&cell), [1]);
    cell.end(slave, "h2", ended(1));
    assert!(!cell.exists(1));
}

#[test]
fn a_job_that_has_ended_does_not_wait_for_an_unknown_host() {
    let (mut cell, task) = cell(&[]);
    let slave = run(&mut cell, task, "h2");
    cell.disconnect("h2");
    cell.end(task, "h1", ended(1));
    assert!(cell.exists(1));
    cell.pass(10_000_000);
    assert!(!cell.exists(1));
    let running = TaskReport {
        key: slave,
        state: TaskReportState::Running { for_ms: 5 },
    };
    cell.connect_with("h2", 1, vec![running]);
    assert_eq!(terminated(&cell), [1], "what still runs there is ended");
}

#[test]
fn the_end_of_a_slave_task_alone_says_that_it_started() {
    let (mut cell, task) = cell(&[]);
    let slave = inherit(&mut cell, task, "h2").unwrap();
    let before = cell.log.len();
    cell.end(slave, "h2", ended(1));
    let started = Wall(cell.now.wall.0 - 1500);
    let events: Vec<&Event> = cell.log[before..].iter().map(|record| &record.event).collect();
    assert!(matches!(events[..], [Event::SlaveStarted { at, .. }, Event::SlaveEnded { .. }] if *at == started));
}

#[test]
fn a_forced_deletion_waits_for_no_slave_task() {
    let (mut cell, task) = cell(&[]);
    run(&mut cell, task, "h2");
    cell.qdel_force("op", &["1"]);
    assert_eq!((&terminated(&cell)[..2], cell.exists(1)), (&[1, 0][..], false));
    cell.assert_replay_is_live();
}

#[test]
fn a_slave_task_that_its_host_lost_has_ended_and_one_that_never_came_there_is_sent_again() {
    let (mut cell, task) = cell(&[]);
    let lost = run(&mut cell, task, "h2");
    let unheard_of = inherit(&mut cell, task, "h2").unwrap();
    cell.connect_with("h2", 1, Vec::new());
    let live: Vec<u32> = cell.placement(1, 1).slaves().live.keys().copied().collect();
    assert_eq!(live, [unheard_of.pe_task]);
    let starts = |message: &&&MasterMessage| matches!(message, MasterMessage::Start(order) if order.key == unheard_of);
    assert_eq!(cell.sent().iter().filter(starts).count(), 1);
    let record = cell.records()[0];
    assert_eq!((record.key, record.failed), (lost, FailedCode::IN_RECOGNIZING_JOB));
}

#[test]
fn a_slave_task_is_not_sent_again_to_a_host_that_has_lost_its_job() {
    let (mut cell, task) = cell(&[]);
    inherit(&mut cell, task, "h1").unwrap();
    cell.connect_with("h1", 1, Vec::new());
    let starts = cell
        .sent()
        .iter()
        .filter(|message| matches!(message, MasterMessage::Start(_)))
        .count();
    assert_eq!(starts, 0, "the job is lost, and its slave tasks with it");
    cell.assert_replay_is_live();
}

#[test]
fn a_slave_task_that_cannot_start_does_not_end_with_0() {
    let (mut cell, task) = cell(&[]);
    let key = inherit(&mut cell, task, "h2").unwrap();
    cell.end(
        key,
        "h2",
        TaskResult::not_started(FailedCode::CHANGING_DIRECTORY, "no such directory"),
    );
    let ended = cell.log.iter().find_map(|record| match &record.event {
        Event::SlaveEnded {
            exit_status, reason, ..
        } => Some((*exit_status, reason.as_str())),
        _ => None,
    });
    assert_eq!(ended, Some((1, "no such directory")));
    assert!(cell.exists(1), "the job goes on");
}

#[test]
fn a_slave_task_that_never_came_to_its_host_leaves_no_record() {
    let (mut cell, task) = cell(&[]);
    inherit(&mut cell, task, "h2").unwrap();
    cell.disconnect("h2");
    cell.end(task, "h1", ended(1));
    cell.connect("h2");
    assert!(!cell.exists(1));
    let keys: Vec<TaskKey> = cell.records().iter().map(|record| record.key).collect();
    assert_eq!(keys, [task]);
    cell.assert_replay_is_live();
}

#[test]
fn suspension_holds_on_every_host() {
    let (mut cell, task) = cell(&[]);
    let slave = run(&mut cell, task, "h2");
    cell.qmod("u1", proto::wire::client::ModifyAction::SuspendJob, "1");
    let stopped = |message: &&MasterMessage| match message {
        MasterMessage::Signal {
            key,
            signal: TaskSignal::Suspend,
        } => Some(*key),
        _ => None,
    };
    let stopped: Vec<TaskKey> = cell.sent().iter().filter_map(stopped).collect();
    assert_eq!(stopped, [slave, task]);
}
