mod deletion;
mod ends;
mod waiting;

use super::cell::{owner, resources, result, selection, texts};
use super::*;
use crate::event::Event;
use crate::state::job::TaskPlace;
use proto::id::TaskId;
use proto::job::{JobChanges, JobSpec, Requests};
use proto::time::Wall;
use proto::usage::{Exit, FailedCode, TaskResult};
use proto::wire::agent::{MasterMessage, TaskReportState, TaskSignal};
use proto::wire::client::{Command, ModifyAction};
use std::sync::Arc;

#[test]
fn a_job_runs_ends_and_is_accounted_before_it_is_forgotten() {
    let mut cell = Cell::ready();
    let requests = Requests {
        hard: resources("h_vmem=1G"),
        hard_queues: vec!["all.q".into()],
        ..Requests::default()
    };
    let number = cell.submit(JobSpec {
        requests: requests.into(),
        ..job()
    });
    let key = cell.order(number, 1, "h1").unwrap();
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Describe { .. }, MasterMessage::Start(_)]
    ));
    cell.report(key, "h1", TaskReportState::Accepted);
    assert!(cell.placement(number, 1).started.is_none());
    cell.report(key, "h1", TaskReportState::Running { for_ms: 200 });
    assert_eq!(cell.placement(number, 1).started, Some(Wall(cell.now.wall.0 - 200)));
    cell.exit(key, "h1", 3);
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Discard { .. }, MasterMessage::Forget { .. }]
    ));
    assert!(!cell.exists(number));
    let record = cell.records()[0];
    assert_eq!(
        (record.exit_status, record.failed, record.wallclock_ms),
        (3, FailedCode::NO, 1500)
    );
    assert_eq!(record.category, "-q all.q -l h_vmem=1G");
    assert_eq!(
        (record.slots, record.task_number, record.account.as_str()),
        (1, 0, "sge")
    );
    assert_eq!(cell.core.state().finished[0].tasks[0].exit_status, 3);
    cell.assert_replay_is_live();
}

/// A host tells of a short task that it has ended, and of nothing before.
#[test]
fn an_end_alone_says_that_the_task_started() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.order(number, 1, "h1").unwrap();
    let before = cell.log.len();
    cell.report(
        key,
        "h1",
        TaskReportState::Ended(Box::new(TaskResult {
            ended_ago_ms: 300,
            ..result(Exit::Code(0), FailedCode::NO, "")
        })),
    );
    let started = Wall(cell.now.wall.0 - 1800);
    let events: Vec<&Event> = cell.log[before..].iter().map(|record| &record.event).collect();
    assert!(
        matches!(events[..], [Event::TaskStarted { at, .. }, Event::TaskEnded { .. }, Event::JobFinished { .. }] if *at == started)
    );
    let record = cell.records()[0];
    assert_eq!((record.started, record.ended), (started, Wall(started.0 + 1500)));
    cell.assert_replay_is_live();
}

#[test]
fn a_task_that_never_ran_never_started() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.order(number, 1, "h1").unwrap();
    cell.end(key, "h1", TaskResult::not_started(FailedCode::IN_PROLOG, "no room"));
    assert!(
        cell.log
            .iter()
            .all(|record| !matches!(record.event, Event::TaskStarted { .. }))
    );
    assert_eq!(cell.records()[0].started, Wall(0));
}

#[test]
fn a_start_carries_limits_and_the_queue() {
    let mut cell = Cell::ready();
    cell.set_queue(&[("h_rt", "1:0:0"), ("notify", "0:0:9")]);
    let requests = Requests {
        hard: resources("h_vmem=1G"),
        ..Requests::default()
    };
    let number = cell.submit(JobSpec {
        requests: requests.into(),
        ..job()
    });
    cell.order(number, 1, "h1").unwrap();
    let messages = cell.sent();
    let MasterMessage::Start(start) = messages[1] else {
        panic!("a start")
    };
    let limits: Vec<String> = start
        .limits
        .iter()
        .map(|(kind, bounds)| format!("{kind:?} {:?}", bounds.hard))
        .collect();
    assert_eq!(limits, ["Rt Some(3600)", "Vmem Some(1073741824)"]);
    assert_eq!(
        (start.queue.notify_s, start.queue.shell.as_str(), start.queue.min_uid),
        (9, "/bin/sh", 1000)
    );
}

#[test]
fn equal_starts_share_what_they_are_told_until_an_object_changes() {
    let mut cell = Cell::ready();
    let asks = |text| Requests {
        hard: resources(text),
        ..Requests::default()
    };
    let many = cell.submit(JobSpec {
        requests: asks("h_vmem=1G").into(),
        ..array("1-3")
    });
    let other = cell.submit(JobSpec {
        requests: asks("h_vmem=2G").into(),
        ..job()
    });
    let told = |cell: &mut Cell, number, task, host| {
        cell.order(number, task, host).unwrap();
        let start = |message: &&MasterMessage| matches!(message, MasterMessage::Start(_));
        let MasterMessage::Start(start) = cell.sent().into_iter().find(start).unwrap() else {
            panic!("a start")
        };
        let hard = start
            .limits
            .iter()
            .map(|(kind, bounds)| format!("{kind:?} {:?}", bounds.hard))
            .collect::<Vec<_>>();
        (start.queue.clone(), hard.join(", "))
    };
    let (first, limits) = told(&mut cell, many, 1, "h1");
    assert_eq!(limits, "Vmem Some(1073741824)");
    let (second, same) = told(&mut cell, many, 2, "h2");
    assert!(
        second.is_shared_with(&first) && same == limits,
        "the queue is the same on both hosts"
    );
    assert_eq!(told(&mut cell, other, 1, "h1").1, "Vmem Some(2147483648)");
    cell.set_queue(&[("h_rt", "1:0:0,[h1=2:0:0]"), ("notify", "0:0:9")]);
    let (third, limits) = told(&mut cell, many, 3, "h2");
    assert_eq!(
        (third.notify_s, limits.as_str()),
        (9, "Rt Some(3600), Vmem Some(1073741824)")
    );
}

#[test]
fn equal_settings_of_queue_instances_are_kept_once() {
    let mut cell = Cell::ready();
    let is_kept_once = |cell: &Cell| {
        let mut settings = cell.core.state().config.resolved.values();
        settings
            .next()
            .zip(settings.next())
            .is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    };
    assert!(is_kept_once(&cell));
    for (slots, once) in [("7,[h1=2]", false), ("7", true), ("7,[h2=2]", false), ("7", true)] {
        cell.set_queue(&[("slots", slots)]);
        assert_eq!(is_kept_once(&cell), once, "slots {slots}");
    }
}

#[test]
fn a_job_is_described_once_for_each_connection_and_version() {
    let mut cell = Cell::ready();
    let number = cell.submit(array("1-4"));
    cell.order(number, 1, "h1").unwrap();
    cell.order(number, 2, "h1").unwrap();
    assert!(matches!(cell.sent()[..], [MasterMessage::Start(_)]));
    cell.order(number, 3, "h2").unwrap();
    assert_eq!(cell.sent().len(), 2);
    let changes = JobChanges {
        name: Some("other".into()),
        ..JobChanges::default()
    };
    cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&["1"]),
            changes: Box::new(changes),
        },
    );
    cell.order(number, 4, "h1").unwrap();
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Describe { .. }, MasterMessage::Start(_)]
    ));
}

#[test]
fn every_event_names_who_caused_it() {
    use crate::event::Actor;
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h1", 0);
    let actor = |wanted: fn(&Event) -> bool| {
        cell.log
            .iter()
            .find(|record| wanted(&record.event))
            .map(|record| record.actor.clone())
    };
    let user = Actor::User {
        user: "u1".into(),
        host: "sub".into(),
    };
    assert_eq!(actor(|event| matches!(event, Event::JobSubmitted { .. })), Some(user));
    assert_eq!(
        actor(|event| matches!(event, Event::TaskPlaced { .. })),
        Some(Actor::Scheduler("default".into()))
    );
    assert_eq!(
        actor(|event| matches!(event, Event::TaskEnded { .. })),
        Some(Actor::Agent("h1".into()))
    );
    assert_eq!(
        actor(|event| matches!(event, Event::CellCreated { .. })),
        Some(Actor::Master)
    );
}

#[test]
fn a_rescheduled_task_shows_that_it_ran_before() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h1", 99);
    assert!(cell.task(number, 1).restarted);
    cell.pass(15_000);
    let again = cell.order(number, 1, "h2").unwrap();
    assert_eq!(again.attempt, 2);
    let messages = cell.sent();
    assert!(matches!(messages[..], [_, MasterMessage::Start(start)] if start.restarted == 1));
    cell.assert_replay_is_live();
}

#[test]
fn orders_are_checked_against_holds_limits_and_slots() {
    let mut cell = Cell::ready();
    let held = cell.submit(JobSpec {
        holds: proto::job::Holds {
            user: true,
            ..Default::default()
        },
        ..job()
    });
    assert_eq!(cell.order(held, 1, "h1"), Err("it is held".into()));
    let few = cell.submit(JobSpec {
        task_concurrency: Some(1),
        ..array("1-3")
    });
    cell.order(few, 1, "h1").unwrap();
    assert_eq!(cell.order(few, 1, "h1"), Err("it is not pending".into()));
    assert_eq!(
        cell.order(few, 2, "h1"),
        Err("1 of its tasks run, as many as -tc allows".into())
    );
    let later = cell.submit(JobSpec {
        start_after: Some(Wall(cell.now.wall.0 + 5_000)),
        ..job()
    });
    assert_eq!(cell.order(later, 1, "h1"), Err("its start time has not come".into()));
    let next = cell.submit(JobSpec {
        predecessors: vec![few.to_string()],
        ..job()
    });
    assert_eq!(cell.order(next, 1, "h1"), Err(format!("it waits for job {few}")));
    cell.set_cluster(&[("max_aj_instances", "1")]);
    let other = cell.submit(array("1-3"));
    cell.order(other, 1, "h1").unwrap();
    assert!(cell.order(other, 2, "h1").unwrap_err().contains("max_aj_instances"));
    cell.set_cluster(&[]);
    cell.order(other, 2, "h1").unwrap();
    cell.order(other, 3, "h1").unwrap();
    let fifth = cell.submit(job());
    assert!(cell.order(fifth, 1, "h1").is_err(), "four slots are four slots");
    cell.disconnect("h2");
    assert_eq!(cell.order(fifth, 1, "h2"), Err("host h2 is not connected".into()));
}

#[test]
fn a_start_time_triggers_a_pass_when_it_comes() {
    let mut cell = Cell::ready();
    let number = cell.submit(JobSpec {
        start_after: Some(Wall(cell.now.wall.0 + 5_000)),
        ..job()
    });
    let due = cell.core.next_timer().expect("a timer");
    assert!(due.0 - cell.now.tick.0 <= 5_000);
    cell.pass(4_999);
    assert!(cell.effects.is_empty());
    cell.pass(1);
    assert_eq!(cell.effects, [crate::effect::Effect::TriggerScheduling]);
    cell.order(number, 1, "h1").unwrap();
}

#[test]
fn suspension_and_continuation_reach_the_host_once() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    cell.run(number, 1, "h1");
    assert_eq!(cell.qmod("u1", ModifyAction::SuspendJob, "1"), ["u1 - suspended job 1"]);
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Signal {
            signal: TaskSignal::Suspend,
            ..
        }]
    ));
    assert_eq!(
        cell.qmod("u1", ModifyAction::SuspendJob, "1"),
        ["u1 - job 1 is already suspended"]
    );
    assert!(cell.sent().is_empty());
    assert_eq!(
        cell.qmod("u1", ModifyAction::Unsuspend, "1"),
        ["u1 - unsuspended job 1"]
    );
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Signal {
            signal: TaskSignal::Resume,
            ..
        }]
    ));
    cell.assert_replay_is_live();
}

#[test]
fn a_job_that_is_rescheduled_runs_again_only_if_it_may() {
    let mut cell = Cell::ready();
    let fixed = cell.submit(job());
    cell.run(fixed, 1, "h1");
    let denied = cell.qmod("u1", ModifyAction::RescheduleJob, "1");
    assert_eq!(
        denied,
        ["The job 1 is running in queue all.q where jobs are not rerunable."]
    );
    let free = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(free, 1, "h1");
    assert_eq!(
        cell.qmod("u1", ModifyAction::RescheduleJob, "2"),
        ["Pushed rescheduling of job 2 on host h1"]
    );
    cell.end(
        key,
        "h1",
        result(Exit::Signal { number: 9, core: false }, FailedCode::AFTER_JOB, ""),
    );
    assert_eq!(cell.task(free, 1).place, TaskPlace::Pending { error: None });
    assert_eq!(cell.records()[0].failed, FailedCode::RESCHEDULING);
}

#[test]
fn an_error_is_cleared_task_by_task() {
    let mut cell = Cell::ready();
    let number = cell.submit(array("1-3"));
    for task in [1, 2] {
        let key = cell.order(number, task, "h1").unwrap();
        cell.end(
            key,
            "h1",
            result(Exit::NotStarted, FailedCode::CHANGING_DIRECTORY, "no such directory"),
        );
    }
    assert_eq!(cell.order(number, 1, "h1"), Err("it is in error".into()));
    cell.order(number, 3, "h1").unwrap();
    let cleared = cell.qmod("op", ModifyAction::ClearJobError, "1.1");
    assert_eq!(cleared, ["op@sub cleared error state of job-array task 1.1"]);
    assert_eq!(
        cell.qmod("u1", ModifyAction::ClearJobError, "1"),
        ["u1@sub cleared error state of job 1"]
    );
    assert_eq!(
        cell.qmod("u1", ModifyAction::ClearError, "1"),
        ["Job 1 is not in error state"]
    );
    cell.order(number, 1, "h1").unwrap();
    cell.assert_replay_is_live();
}

#[test]
fn an_immediate_job_that_found_no_place_leaves() {
    let mut cell = Cell::ready();
    let number = cell.submit(JobSpec {
        immediate: true,
        ..array("1-2")
    });
    let seq = cell.job(number).seq;
    let orders = vec![proto::wire::stream::Order::RejectImmediate { seq }];
    cell.input(crate::effect::Input::Orders {
        scheduler: "default".into(),
        orders,
    });
    assert!(!cell.exists(number));
    assert!(cell.core.state().finished[0].tasks.iter().all(|task| task.deleted));
    assert!(matches!(cell.log.last().unwrap().event, Event::JobFinished { .. }));
}

#[test]
fn people_without_rights_change_nothing() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    cell.run(number, 1, "h1");
    let events = cell.log.len();
    assert_eq!(
        cell.qmod("u2", ModifyAction::SuspendJob, "1"),
        ["u2 - you have no permission to modify job \"1\""]
    );
    let denied = cell.qdel("u2", &["1"]);
    assert_eq!(
        denied,
        ["u2 - you do not have the necessary privileges to delete the job \"1\""]
    );
    let changes = Box::new(JobChanges {
        name: Some("x".into()),
        ..JobChanges::default()
    });
    let reply = cell.command(
        "u2",
        Command::Alter {
            jobs: selection(&["1"]),
            changes: changes.clone(),
        },
    );
    assert_eq!(
        texts(&reply),
        ["denied: \"u2\" must be at least owner of job 1 to change job attributes"]
    );
    let reply = cell.command(
        "u2",
        Command::Resubmit {
            jobs: selection(&["1"]),
            changes,
        },
    );
    assert_eq!(
        texts(&reply),
        ["job rejected: u2@sub is not allowed to resubmit jobs of user u1"]
    );
    assert_eq!(cell.log.len(), events);
    assert_eq!(cell.job(number).spec.owner, owner("u1").into());
    assert_eq!(cell.placement(number, 1).key.task, TaskId(1));
}

#[test]
fn a_task_that_asks_to_be_run_again_waits_for_an_interval_and_longer_each_time() {
    let mut cell = Cell::ready();
    cell.set_scheduler(&[("schedule_interval", "0:0:15")]);
    let number = cell.submit(job());
    for (times, pause_s) in [
        (1, 15),
        (2, 15),
        (3, 15),
        (4, 30),
        (5, 60),
        (6, 120),
        (7, 240),
        (8, 480),
        (9, 600),
        (10, 600),
    ] {
        let key = cell.run(number, 1, "h1");
        cell.exit(key, "h1", 99);
        assert_eq!(cell.records()[0].failed, FailedCode::RESCHEDULING);
        assert!(cell.task(number, 1).restarted && cell.task(number, 1).reruns == times);
        let refused = cell.order(number, 1, "h2").unwrap_err();
        assert!(refused.contains("asked to be run again"), "{refused}");
        cell.pass(1000 * pause_s - 1);
        assert!(cell.order(number, 1, "h2").is_err(), "{times} times");
        cell.pass(1);
    }
    cell.assert_replay_is_live();
}

#[test]
fn tasks_beside_one_that_asks_to_be_run_again_and_what_people_run_again_start_at_once() {
    let mut cell = Cell::ready();
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..array("1-3")
    });
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h1", 99);
    let key = cell.run(number, 2, "h1");
    assert!(cell.order(number, 1, "h1").is_err());
    cell.qmod("op", ModifyAction::RescheduleJob, &format!("{number}.2"));
    cell.end(
        key,
        "h1",
        result(Exit::Signal { number: 9, core: false }, FailedCode::AFTER_JOB, ""),
    );
    cell.order(number, 2, "h1").unwrap();
}

#[test]
fn what_people_run_again_by_force_or_before_it_asks_for_it_starts_at_once() {
    for (action, target) in [
        (ModifyAction::RescheduleJob, "1"),
        (ModifyAction::RescheduleQueue, "all.q@h1"),
    ] {
        for params in ["none", "FORBID_RESCHEDULE=TRUE"] {
            let mut cell = Cell::ready();
            cell.set_cluster(&[("qmaster_params", params)]);
            let number = cell.submit(job());
            cell.run(number, 1, "h1");
            let targets = vec![target.to_owned()];
            cell.command(
                "op",
                Command::Modify {
                    action,
                    targets,
                    force: true,
                },
            );
            let task = cell.task(number, 1);
            assert_eq!((task.reruns, task.place.placement()), (0, None), "{target} {params}");
            cell.order(number, 1, "h2").unwrap();
            cell.assert_replay_is_live();
        }
    }
    let mut cell = Cell::ready();
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(number, 1, "h1");
    cell.qmod("op", ModifyAction::RescheduleJob, "1");
    cell.exit(key, "h1", 99);
    cell.order(number, 1, "h2").unwrap();
}

#[test]
fn a_clock_that_is_set_changes_no_pause() {
    for jump_s in [-86_400, -601, -300, -10, 10, 300, 86_400] {
        let mut cell = Cell::ready();
        cell.set_scheduler(&[("schedule_interval", "0:0:15")]);
        let number = cell.submit(job());
        let key = cell.run(number, 1, "h1");
        cell.exit(key, "h1", 99);
        cell.now.wall = Wall(cell.now.wall.0 + 1000 * jump_s);
        cell.pass(14_999);
        assert!(cell.order(number, 1, "h1").is_err(), "{jump_s} s");
        cell.pass(1);
        cell.order(number, 1, "h1").unwrap();
        cell.assert_replay_is_live();
    }
}

#[test]
fn a_prolog_that_asks_for_it_has_its_job_run_again_after_a_pause() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    for exit in [Exit::NotStarted, Exit::Code(0)] {
        let key = cell.run(number, 1, "h1");
        cell.end(
            key,
            "h1",
            result(exit, FailedCode::RESCHEDULING, "prolog asked to reschedule (exit 99)"),
        );
        assert!(cell.task(number, 1).restarted, "it shows R");
        assert!(cell.order(number, 1, "h1").is_err());
        cell.pass(600_000);
    }
}

#[test]
fn a_procedure_or_directory_that_the_host_does_not_have_closes_the_queue_and_not_the_job() {
    for (code, reason) in [
        (7, "tmpdir /nonexist: No such file or directory"),
        (
            8,
            "prolog: root@/not/listed: not listed in etc/root-commands of this host",
        ),
        (10, "pe_start: /nonexist: No such file or directory"),
    ] {
        let mut cell = Cell::ready();
        let number = cell.submit(job());
        let key = cell.order(number, 1, "h1").unwrap();
        cell.end(key, "h1", result(Exit::NotStarted, FailedCode(code), reason));
        assert_eq!(
            cell.task(number, 1).place,
            TaskPlace::Pending { error: None },
            "{reason}"
        );
        let states = cell
            .core
            .state()
            .instances
            .iter()
            .filter(|(_, state)| !state.errors.is_empty());
        let errors: Vec<String> = states
            .map(|(instance, state)| format!("{instance}: {}", state.errors[0]))
            .collect();
        let said = format!("all.q@h1: queue all.q marked QERROR as result of job 1's failure at host h1: {reason}");
        assert_eq!(errors, [said]);
        assert!(cell.order(number, 1, "h1").is_err(), "the queue instance takes nothing");
        cell.order(number, 1, "h2").unwrap();
    }
}
