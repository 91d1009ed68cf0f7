//! What users are charged with: once for each attempt, with what came since the last checkpoint,
//! decayed as the rules of the time said.

use super::cell::{Cell, job, result, texts};
use crate::effect::Input;
use crate::event::{Event, StoredObject};
use crate::state::usage::{Account, Amounts, DecayedUsage};
use proto::host::ExecHost;
use proto::id::TaskKey;
use proto::job::JobSpec;
use proto::object::{Object, ObjectKind};
use proto::project::Project;
use proto::sharetree::ShareTree;
use proto::usage::{Consumption, Exit, FailedCode, TaskResult, Usage};
use proto::wire::agent::{AgentMessage, TaskReport, TaskReportState};
use proto::wire::client::Command;

const HOUR_MS: u64 = 3_600_000;

/// A cell with a share tree that counts, and these settings of the scheduler.
fn cell(settings: &[(&str, &str)]) -> Cell {
    let mut cell = Cell::ready();
    let settings: Vec<_> = [("weight_tickets_share", "100")]
        .iter()
        .chain(settings)
        .copied()
        .collect();
    cell.set_scheduler(&settings);
    let tree = <ShareTree as Object>::template("").write();
    cell.store(vec![StoredObject {
        kind: ObjectKind::ShareTree,
        name: String::new(),
        fields: Some(tree),
    }]);
    cell
}

fn account(user: &str, project: Option<&str>) -> Account {
    Account {
        user: user.into(),
        project: project.map(Into::into),
    }
}

/// What is charged to `u1` and left of it.
fn used(cell: &Cell) -> DecayedUsage {
    cell.core
        .state()
        .used(&account("u1", None), Amounts::default(), cell.now)
}

/// Seconds of processor time.
fn seconds(number: i128) -> i128 {
    number * 1_000_000
}

fn observe(cell: &mut Cell, key: TaskKey, cpu_ms: u64) {
    let connection = cell.connection("h1");
    let message = Box::new(AgentMessage::Usage(vec![(
        key,
        Usage {
            cpu_ms,
            ..Usage::default()
        },
    )]));
    cell.input(Input::AgentMessage { connection, message });
}

fn end(cell: &mut Cell, key: TaskKey, cpu_ms: u64) {
    let usage = Usage {
        cpu_ms,
        ..Usage::default()
    };
    cell.end(
        key,
        "h1",
        TaskResult {
            usage,
            ..result(Exit::Code(0), FailedCode::NO, "")
        },
    );
}

fn charges(cell: &Cell) -> usize {
    cell.log
        .iter()
        .filter(|record| matches!(record.event, Event::UsageCharged { .. }))
        .count()
}

#[test]
fn a_task_is_charged_once_over_checkpoints_and_its_end() {
    let mut cell = cell(&[("halftime", "0")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    assert_eq!(
        (charges(&cell), used(&cell).cpu),
        (0, 0),
        "it is soft until the next checkpoint"
    );
    cell.pass(300_000);
    assert_eq!((charges(&cell), used(&cell).cpu), (1, seconds(10)));
    cell.pass(300_000);
    assert_eq!(charges(&cell), 1, "nothing has changed");
    observe(&mut cell, key, 25_000);
    cell.pass(300_000);
    assert_eq!((charges(&cell), used(&cell).cpu), (2, seconds(25)));
    end(&mut cell, key, 31_000);
    assert_eq!((used(&cell).cpu, used(&cell).lifetime.cpu), (seconds(31), seconds(31)));
    assert_eq!(cell.records()[0].usage.cpu_ms, 31_000);
    cell.assert_replay_is_live();
}

#[test]
fn a_host_takes_nothing_back_of_what_it_has_told() {
    let mut cell = cell(&[("halftime", "0")]);
    let number = cell.submit(JobSpec {
        rerunnable: Some(true),
        ..job()
    });
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    observe(&mut cell, key, 12_000);
    // The host has forgotten the task.
    let report = TaskReport {
        key,
        state: TaskReportState::Unknown,
    };
    let connection = cell.connection("h1");
    cell.input(Input::AgentMessage {
        connection,
        message: Box::new(AgentMessage::Task(report)),
    });
    assert_eq!(cell.records()[0].usage.cpu_ms, 12_000);
    assert_eq!(used(&cell).cpu, seconds(12));
    // Its second attempt is charged by itself.
    let key = cell.run(number, 1, "h1");
    assert_eq!(key.attempt, 2);
    end(&mut cell, key, 5_000);
    assert_eq!(used(&cell).cpu, seconds(17));
}

#[test]
fn a_restart_loses_what_was_observed_and_not_what_was_charged() {
    let mut cell = cell(&[("halftime", "0")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    observe(&mut cell, key, 20_000);
    cell.core = crate::core::Core::new(cell.core.state().clone());
    let task = TaskReport {
        key,
        state: TaskReportState::Running { for_ms: 5 },
    };
    cell.connect_with("h1", 1, vec![task]);
    assert_eq!(used(&cell).cpu, seconds(10));
    observe(&mut cell, key, 20_000);
    cell.pass(300_000);
    assert_eq!(used(&cell).cpu, seconds(20));
    end(&mut cell, key, 20_000);
    assert_eq!(used(&cell).cpu, seconds(20));
}

#[test]
fn usage_decays_by_the_rule_of_its_time() {
    let mut cell = cell(&[("halftime", "1")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    end(&mut cell, key, 1_000_000);
    cell.pass(HOUR_MS);
    assert_eq!(used(&cell).cpu, seconds(500));
    assert_eq!(used(&cell).lifetime.cpu, seconds(1_000));
    cell.set_scheduler(&[("halflife_decay_list", "cpu=30")]);
    cell.pass(HOUR_MS);
    assert_eq!(used(&cell).cpu, seconds(125), "half an hour is a half-life now");
    cell.set_scheduler(&[("halftime", "0")]);
    cell.pass(100 * HOUR_MS);
    assert_eq!(used(&cell).cpu, seconds(125));
    cell.set_scheduler(&[("halflife_decay_list", "cpu=-1")]);
    assert_eq!(used(&cell).cpu, 0, "only running jobs count");
    cell.set_scheduler(&[("halftime", "0")]);
    assert_eq!((used(&cell).cpu, used(&cell).lifetime.cpu), (0, seconds(1_000)));
}

#[test]
fn a_kind_may_count_while_its_job_runs_and_no_longer() {
    let mut cell = cell(&[("halflife_decay_list", "cpu=-1")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    assert_eq!(used(&cell).cpu, seconds(10));
    end(&mut cell, key, 12_000);
    assert_eq!((used(&cell).cpu, used(&cell).lifetime.cpu), (0, seconds(12)));
}

#[test]
fn the_factors_of_a_host_are_those_of_the_moment() {
    let mut cell = cell(&[("halftime", "0")]);
    let scale = |cell: &mut Cell, factors: &str| {
        let mut host = ExecHost::template("h1".into()).to_fields();
        host.set("usage_scaling", factors);
        cell.store(vec![StoredObject {
            kind: ObjectKind::ExecHost,
            name: "h1".to_owned(),
            fields: Some(host),
        }]);
    };
    scale(&mut cell, "cpu=2");
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    scale(&mut cell, "cpu=0.5,mem=3");
    end(&mut cell, key, 12_000);
    assert_eq!(used(&cell).cpu, seconds(21));
}

#[test]
fn a_job_that_moves_to_another_project_is_charged_there_from_then_on() {
    let mut cell = cell(&[("halflife_decay_list", "cpu=-1")]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    let (seq, spec) = (cell.job(number).seq, cell.job(number).spec.clone());
    let spec = std::sync::Arc::new(JobSpec {
        project: Some("p".to_owned()),
        ..(*spec).clone()
    });
    cell.fact(Event::JobAltered {
        seq,
        spec,
        waits_for: Vec::new(),
        array_waits_for: Vec::new(),
    });
    end(&mut cell, key, 15_000);
    let state = cell.core.state();
    let lifetime = |account: &Account| state.used(account, Amounts::default(), cell.now).lifetime.cpu;
    assert_eq!(lifetime(&account("u1", None)), seconds(10));
    assert_eq!(lifetime(&account("u1", Some("p"))), seconds(5));
    cell.core.state().check();
}

#[test]
fn what_is_reserved_is_charged_where_the_host_says_so() {
    for (params, charged, accounted) in [
        ("none", 7, 7),
        ("ACCT_RESERVED_USAGE=true", 7, 1_500),
        ("SHARETREE_RESERVED_USAGE=true", 1_500, 7),
        ("ACCT_RESERVED_USAGE=true SHARETREE_RESERVED_USAGE=true", 1_500, 1_500),
    ] {
        let mut cell = cell(&[("halftime", "0")]);
        cell.set_cluster(&[("execd_params", params)]);
        let number = cell.submit(job());
        let key = cell.run(number, 1, "h1");
        end(&mut cell, key, 7);
        assert_eq!(used(&cell).cpu, charged * 1_000, "{params}");
        assert_eq!(cell.records()[0].usage.cpu_ms, accounted, "{params}");
    }
}

#[test]
fn cleared_usage_does_not_come_back() {
    let mut cell = cell(&[("halflife_decay_list", "cpu=-1")]);
    let clear = |cell: &mut Cell, user: &str, users: &[&str]| {
        let users = users.iter().map(ToString::to_string).collect();
        texts(&cell.command(user, Command::ClearUsage { users }))
    };
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(300_000);
    observe(&mut cell, key, 20_000);
    assert_eq!(
        clear(&mut cell, "u1", &[]),
        ["denied: \"u1\" must be manager for this operation"]
    );
    let said = clear(&mut cell, "boss", &["u1", "nosuch"]);
    assert_eq!(
        said,
        [
            "boss@sub modified \"u1\" in user list",
            "denied: user \"nosuch\" does not exist"
        ]
    );
    assert_eq!(used(&cell), DecayedUsage::default());
    end(&mut cell, key, 25_000);
    assert_eq!(used(&cell).lifetime.cpu, seconds(5));
    let fields = Some(<Project as Object>::template("p1").write());
    cell.store(vec![StoredObject {
        kind: ObjectKind::Project,
        name: "p1".to_owned(),
        fields,
    }]);
    let said = [
        "boss@sub modified \"u1\" in user list",
        "boss@sub modified \"p1\" in project list",
    ];
    assert_eq!(clear(&mut cell, "boss", &[]), said);
    assert_eq!(used(&cell), DecayedUsage::default());
    cell.store(vec![
        StoredObject {
            kind: ObjectKind::Project,
            name: "p1".to_owned(),
            fields: None,
        },
        StoredObject {
            kind: ObjectKind::User,
            name: "u1".to_owned(),
            fields: None,
        },
    ]);
    assert_eq!(
        clear(&mut cell, "boss", &[]),
        ["boss@sub cleared the usage of all users and projects"]
    );
    cell.assert_replay_is_live();
}

#[test]
fn without_a_share_tree_running_tasks_are_charged_at_their_end_alone() {
    let mut cell = cell(&[("halftime", "0")]);
    cell.store(vec![StoredObject {
        kind: ObjectKind::ShareTree,
        name: String::new(),
        fields: None,
    }]);
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    observe(&mut cell, key, 10_000);
    cell.pass(3_000_000);
    assert_eq!(charges(&cell), 0);
    end(&mut cell, key, 11_000);
    assert_eq!(used(&cell).cpu, seconds(11));
}

#[test]
fn weights_make_one_number_of_the_kinds() {
    let used = DecayedUsage {
        cpu: 4_000_000,
        mem: 1_000_000,
        io: 500_000,
        ..DecayedUsage::default()
    };
    for (weights, expected) in [
        ("cpu=1,mem=0,io=0", 4_000_000),
        ("cpu=0.5,mem=0.5,io=0", 2_500_000),
        ("cpu=2,mem=1,io=1", 2_375_000),
        ("cpu=0,mem=0,io=0", 0),
    ] {
        assert_eq!(used.weighted(&weights.parse().unwrap()), expected, "{weights}");
    }
    let consumed = Consumption {
        cpu_ms: 1_500,
        mem_kib_ms: 1 << 20,
        io_bytes: 1 << 29,
    };
    let amounts = Amounts::scaled(consumed, None);
    let state = crate::state::State::new();
    let used = state.used(&account("u1", None), amounts, state.now);
    assert_eq!((used.cpu, used.mem, used.io), (1_500_000, 1_000, 500_000));
}
