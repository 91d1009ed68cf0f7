//! Checkpointing jobs: where they run, when they move, and how they go on.

use super::cell::{Cell, result, texts};
use super::*;
use crate::event::Event;
use proto::checkpoint::{Checkpoint, Occasion};
use proto::job::JobSpec;
use proto::object::{Fields, Object, ObjectKind};
use proto::usage::{Exit, FailedCode, TaskResult};
use proto::wire::agent::{CheckpointOrder, MasterMessage, TaskSignal};
use proto::wire::client::{Command, ModifyAction, ObjectAction, ObjectChange};

const KILLED: Exit = Exit::Signal { number: 9, core: false };

fn environment(name: &str, interface: &str, when: &str) -> Fields {
    let mut fields = Checkpoint::template(name).write();
    for (key, value) in [
        ("interface", interface),
        ("ckpt_command", "save $job_pid"),
        ("migr_command", "move"),
        ("restart_command", "again $job_pid"),
        ("clean_command", "clean"),
        ("signal", "usr1"),
        ("when", when),
    ] {
        fields.set(key, value);
    }
    fields
}

impl Cell {
    fn add_environment(&mut self, name: &str, interface: &str, when: &str) {
        let fields = environment(name, interface, when);
        let change = ObjectChange {
            kind: ObjectKind::Checkpoint,
            name: name.to_owned(),
            action: ObjectAction::Add(fields),
        };
        let said = texts(&self.command("boss", Command::Objects(vec![change])));
        assert!(said[0].contains("added"), "{said:?}");
    }

    fn delete_environment(&mut self, name: &str) -> Vec<String> {
        let change = ObjectChange {
            kind: ObjectKind::Checkpoint,
            name: name.to_owned(),
            action: ObjectAction::Delete,
        };
        texts(&self.command("boss", Command::Objects(vec![change])))
    }

    fn order_of_checkpoint(&self) -> CheckpointOrder {
        let order = |message: &&MasterMessage| match message {
            MasterMessage::Start(order) => order.checkpoint.clone(),
            _ => None,
        };
        self.sent()
            .iter()
            .find_map(order)
            .expect("a checkpointing job was started")
    }

    fn orders_to_tasks(&self) -> Vec<TaskSignal> {
        let signal = |message: &&MasterMessage| match message {
            MasterMessage::Signal { signal, .. } => Some(*signal),
            _ => None,
        };
        self.sent().iter().filter_map(signal).collect()
    }
}

/// A cell whose queue offers `kernel` and `user`, for all occasions.
fn cell() -> Cell {
    let mut cell = Cell::ready();
    cell.add_environment("kernel", "hibernator", "xsmr");
    cell.add_environment("user", "userdefined", "x");
    cell.set_queue(&[("ckpt_list", "kernel user"), ("min_cpu_interval", "0:1:0")]);
    cell
}

fn checkpointing(name: &str) -> JobSpec {
    JobSpec {
        checkpoint: Some(name.to_owned()),
        ..job()
    }
}

#[test]
fn a_job_runs_only_where_its_environment_is_listed() {
    let mut cell = cell();
    let job = cell.submit(checkpointing("kernel"));
    cell.set_queue(&[("ckpt_list", "user")]);
    let why = cell.order(job, 1, "h1").unwrap_err();
    assert!(
        why.contains("because ckpt object \"kernel\" is not in ckpt list of queue"),
        "{why}"
    );
    cell.set_queue(&[("ckpt_list", "NONE")]);
    let why = cell.order(job, 1, "h1").unwrap_err();
    assert!(why.contains("because it is not of type checkpointing"), "{why}");
    cell.set_queue(&[("ckpt_list", "kernel")]);
    cell.order(job, 1, "h1").unwrap();
}

#[test]
fn what_cannot_be_kept_is_refused_in_the_words_of_8_1_9() {
    let mut cell = cell();
    let asking = |name: Option<&str>, occasion: &str| JobSpec {
        checkpoint: name.map(str::to_owned),
        occasion: Some(occasion.parse().unwrap()),
        ..job()
    };
    for (spec, what) in [
        (
            asking(Some("nosuch"), "x"),
            "job rejected: the requested checkpointing environment \"nosuch\" does not exist",
        ),
        (
            asking(Some("user"), "n"),
            "job rejected: checkpointing with \"-c n\" requested",
        ),
        (asking(None, "x"), "checkpointing denied"),
    ] {
        assert_eq!(cell.try_submit(spec), Err(what.to_owned()));
    }
    cell.submit(asking(None, "n"));
}

#[test]
fn a_suspension_moves_a_job_that_goes_on_from_what_a_command_wrote() {
    let mut cell = cell();
    let job = cell.submit(checkpointing("kernel"));
    let key = cell.order(job, 1, "h1").unwrap();
    let first = cell.order_of_checkpoint();
    assert_eq!(
        (first.save.as_deref(), first.migrate.as_deref()),
        (Some("save $job_pid"), Some("move"))
    );
    assert_eq!(
        (first.restart, first.save_signal, first.interval_s),
        (None, None, Some(60))
    );
    cell.report(key, "h1", proto::wire::agent::TaskReportState::Running { for_ms: 0 });
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    assert_eq!(cell.orders_to_tasks(), [TaskSignal::Migrate]);
    cell.qmod("boss", ModifyAction::UnsuspendQueue, "all.q@h1");
    assert_eq!(cell.orders_to_tasks(), [], "what moves is not resumed");
    cell.end(
        key,
        "h1",
        TaskResult {
            saved_pid: Some(77),
            ..result(KILLED, FailedCode::AFTER_JOB, "")
        },
    );
    assert_eq!(cell.records()[0].failed, FailedCode::MIGRATING);
    cell.order(job, 1, "h2").unwrap();
    let second = cell.order_of_checkpoint();
    assert_eq!(
        (second.restart.as_deref(), second.saved_pid),
        (Some("again $job_pid"), Some(77))
    );
    let restarted = cell.sent().iter().find_map(|message| match message {
        MasterMessage::Start(order) => Some(order.restarted),
        _ => None,
    });
    assert_eq!(restarted, Some(2));
    cell.assert_replay_is_live();
}

#[test]
fn a_job_that_asks_to_run_again_begins_anew_and_one_that_did_not_move_is_asked_again() {
    let mut cell = cell();
    let job = cell.submit(checkpointing("kernel"));
    let key = cell.run(job, 1, "h1");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    cell.qmod("boss", ModifyAction::UnsuspendQueue, "all.q@h1");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    assert_eq!(cell.orders_to_tasks(), [TaskSignal::Migrate]);
    cell.end(
        key,
        "h1",
        TaskResult {
            saved_pid: Some(77),
            ..result(KILLED, FailedCode::AFTER_JOB, "")
        },
    );
    let key = cell.run(job, 1, "h2");
    assert_eq!(cell.task(job, 1).saved_pid, Some(77));
    cell.end(key, "h2", result(Exit::Code(99), FailedCode::RESCHEDULING, ""));
    assert_eq!(cell.task(job, 1).saved_pid, None);
    cell.assert_replay_is_live();
}

#[test]
fn a_job_that_saves_itself_is_told_by_a_signal_and_starts_anew() {
    let mut cell = cell();
    let job = cell.submit(JobSpec {
        occasion: Some(Occasion::EverySeconds(90)),
        ..checkpointing("user")
    });
    let key = cell.run(job, 1, "h1");
    cell.qmod("u1", ModifyAction::SuspendJob, &job.to_string());
    assert_eq!(cell.orders_to_tasks(), [TaskSignal::Migrate]);
    cell.end(key, "h1", result(KILLED, FailedCode::AFTER_JOB, ""));
    cell.order(job, 1, "h2").unwrap();
    let order = cell.order_of_checkpoint();
    assert_eq!((order.save, order.migrate, order.restart), (None, None, None));
    assert_eq!((order.save_signal, order.interval_s), (Some(10), Some(90)));
    assert!(cell.task(job, 1).restarted);
}

#[test]
fn a_job_that_ends_by_itself_while_it_is_to_move_is_done() {
    let mut cell = cell();
    let job = cell.submit(checkpointing("user"));
    let key = cell.run(job, 1, "h1");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    cell.exit(key, "h1", 0);
    assert!(!cell.exists(job));
}

#[test]
fn occasions_that_a_job_does_not_have_leave_it_where_it_is() {
    let mut cell = cell();
    let job = cell.submit(JobSpec {
        occasion: Some("m".parse().unwrap()),
        ..checkpointing("kernel")
    });
    cell.run(job, 1, "h1");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    assert_eq!(cell.orders_to_tasks(), [TaskSignal::Suspend]);
    let said = cell.qmod("boss", ModifyAction::RescheduleJob, &job.to_string());
    assert_eq!(
        said,
        [format!(
            "{job} requests ckpt object kernel. Therefore this job is not restartable."
        )]
    );
}

#[test]
fn an_agent_that_is_shut_down_lets_go_what_wants_to_move() {
    let mut cell = cell();
    let (moves, stays) = (cell.submit(checkpointing("kernel")), cell.submit(checkpointing("user")));
    cell.run(moves, 1, "h1");
    cell.run(stays, 1, "h1");
    cell.command(
        "boss",
        Command::Shutdown {
            hosts: vec!["h1".to_owned()],
            kill_jobs: false,
        },
    );
    assert_eq!(cell.orders_to_tasks(), [TaskSignal::Migrate]);
    assert!(cell.placement(moves, 1).migrating && !cell.placement(stays, 1).migrating);
    let next = cell.submit(job());
    let why = cell.order(next, 1, "h1").unwrap_err();
    assert!(why.contains("host h1 is not connected"), "{why}");
    cell.connect_with("h1", 1, Vec::new());
    let requested = cell
        .log
        .iter()
        .filter(|record| matches!(record.event, Event::TaskMigrationRequested { .. }));
    assert_eq!(requested.count(), 1);
}

#[test]
fn an_environment_of_a_job_stays() {
    let mut cell = cell();
    let job = cell.submit(checkpointing("kernel"));
    cell.set_queue(&[("ckpt_list", "NONE")]);
    let what = format!("denied: Checkpointing object \"kernel\" is still referenced in job {job}.");
    assert_eq!(cell.delete_environment("kernel"), [what]);
    cell.qdel("u1", &[&job.to_string()]);
    assert!(cell.delete_environment("kernel")[0].contains("removed \"kernel\" from checkpointing environment list"));
}
