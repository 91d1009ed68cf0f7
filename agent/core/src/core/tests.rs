mod launchers;
mod shares;

use super::*;
use crate::testing::{host_paths, key, order, spec};
use proto::launch::{EndCause, TaskUsage};

const NOW: Now<'static> = Now {
    boot_ms: 5000,
    boot_id: "boot",
};

/// An agent whose launcher has listed nothing and whose master has welcomed it and described job 1.
fn ready() -> Core {
    let mut core = Core::new(host_paths(), Epoch(0));
    core.handle(Input::LauncherConnected, &NOW);
    assert_eq!(
        core.handle(
            Input::Launcher(Box::new(Notice::Tasks {
                tasks: vec![],
                reprioritizes: true,
                examines: false,
                enforces: Vec::new(),
            })),
            &NOW
        ),
        [Effect::Ready]
    );
    core.handle(Input::Welcome(Box::new(welcome(1))), &NOW);
    core.handle(
        Input::Master(Box::new(MasterMessage::Describe {
            job: SubmitSeq(1),
            spec: Arc::new(spec()),
        })),
        &NOW,
    );
    core
}

fn welcome(epoch: u64) -> MasterWelcome {
    MasterWelcome {
        version: 1,
        software: String::new(),
        cell: CellId(1),
        epoch: Epoch(epoch),
        config: AgentConfig::default(),
        wall_ms: 0,
    }
}

fn start(core: &mut Core, key: TaskKey) -> Vec<Effect> {
    core.handle(
        Input::Master(Box::new(MasterMessage::Start(Box::new(order(key))))),
        &NOW,
    )
}

fn states(effects: &[Effect]) -> Vec<&'static str> {
    effects
        .iter()
        .map(|effect| match effect {
            Effect::Send(message) => match &**message {
                AgentMessage::Task(report) => match report.state {
                    TaskReportState::Accepted => "accepted",
                    TaskReportState::Running { .. } => "running",
                    TaskReportState::Ended(_) => "ended",
                    TaskReportState::Unknown => "unknown",
                },
                AgentMessage::Usage(_) => "usage",
                AgentMessage::Health { unfit: Some(_), .. } => "unfit",
                AgentMessage::Health { unfit: None, .. } => "fit",
                AgentMessage::Sensors(_) | AgentMessage::Refused(_) => "other",
            },
            Effect::Launcher { request, .. } => match **request {
                Request::Launch(_) => "launch",
                Request::Signal { .. } => "signal",
                Request::List => "list",
                Request::Examine => "examine",
                Request::Forget { .. } => "forget",
                Request::Reprioritize { .. } => "reprioritize",
                Request::StartSensor(_) | Request::StopSensor { .. } => "sensor",
            },
            Effect::Ready => "ready",
            Effect::FindUnbegun(_) => "find unbegun",
            Effect::Reject(_) => "reject",
            Effect::Configure(_) => "configure",
            Effect::ReportNow | Effect::Stop | Effect::Warn(_) => "else",
        })
        .collect()
}

/// The launcher lists no task.
fn listed(core: &mut Core, examines: bool, now: &Now<'_>) -> Vec<Effect> {
    core.handle(
        Input::Launcher(Box::new(Notice::Tasks {
            tasks: vec![],
            reprioritizes: true,
            examines,
            enforces: Vec::new(),
        })),
        now,
    )
}

fn at(boot_ms: u64) -> Now<'static> {
    Now { boot_ms, ..NOW }
}

/// The result that a task was told to have ended with.
fn result_of(effects: &[Effect]) -> TaskResult {
    let result = |effect: &Effect| match effect {
        Effect::Send(message) => match &**message {
            AgentMessage::Task(TaskReport {
                state: TaskReportState::Ended(result),
                ..
            }) => Some((**result).clone()),
            _ => None,
        },
        _ => None,
    };
    effects.iter().find_map(result).expect("an end is told")
}

fn ended(key: TaskKey) -> LaunchResult {
    LaunchResult {
        key,
        cause: EndCause::Exited(0),
        after: None,
        executed: true,
        ordered: false,
        limit: None,
        refused_limits: vec![],
        procedures: vec![],
        usage: TaskUsage::default(),
        wallclock_ms: 1,
        started_boot_ms: 4000,
        ended_boot_ms: 4001,
        boot_id: "boot".to_owned(),
        saved_pid: None,
        left_processes: None,
        note: None,
    }
}

#[test]
fn a_task_goes_from_order_to_forget() {
    let mut core = ready();
    let key = key(1, 1);
    assert_eq!(states(&start(&mut core, key)), ["launch"]);
    let mut tell = |notice| states(&core.handle(Input::Launcher(Box::new(notice)), &NOW));
    assert_eq!(tell(Notice::Accepted { key }), ["accepted"]);
    assert_eq!(
        tell(Notice::Executed {
            key,
            pid: 9,
            boot_ms: 4000
        }),
        ["running"]
    );
    assert_eq!(tell(Notice::Ended(Box::new(ended(key)))), ["ended"]);
    assert_eq!(core.reports(&NOW).len(), 1);
    assert_eq!(
        states(&core.handle(Input::Master(Box::new(MasterMessage::Forget { key })), &NOW)),
        ["forget"]
    );
    assert!(core.reports(&NOW).is_empty());
}

#[test]
fn what_has_ended_stays_ended_whatever_the_launcher_says_late() {
    let mut core = ready();
    let key = key(1, 1);
    start(&mut core, key);
    let mut tell = |notice| states(&core.handle(Input::Launcher(Box::new(notice)), &NOW));
    assert_eq!(tell(Notice::Ended(Box::new(ended(key)))), ["ended"]);
    for late in [
        Notice::Accepted { key },
        Notice::Executed {
            key,
            pid: 9,
            boot_ms: 4000,
        },
    ] {
        assert_eq!(tell(late), [""; 0]);
    }
    assert_eq!(tell(Notice::Ended(Box::new(ended(key)))), [""; 0], "and is told once");
    assert_eq!(core.active(), 0);
}

#[test]
fn a_repeated_order_is_answered_with_what_was_done() {
    let mut core = ready();
    let key = key(1, 1);
    start(&mut core, key);
    assert_eq!(states(&start(&mut core, key)), ["accepted"]);
    core.handle(Input::Launcher(Box::new(Notice::Ended(Box::new(ended(key))))), &NOW);
    assert_eq!(states(&start(&mut core, key)), ["ended"]);
}

#[test]
fn an_older_attempt_is_refused_once_a_newer_one_is_here() {
    let mut core = ready();
    start(&mut core, key(1, 2));
    assert_eq!(states(&start(&mut core, key(1, 1))), ["unknown"]);
    assert_eq!(states(&start(&mut core, key(1, 3))), ["launch"]);
}

#[test]
fn an_order_without_its_description_is_not_invented() {
    assert_eq!(states(&start(&mut ready(), key(2, 1))), ["unknown"]);
}

#[test]
fn what_runs_is_not_forgotten() {
    let mut core = ready();
    let key = key(1, 1);
    start(&mut core, key);
    core.handle(
        Input::Launcher(Box::new(Notice::Executed {
            key,
            pid: 9,
            boot_ms: 4000,
        })),
        &NOW,
    );
    assert_eq!(
        core.handle(Input::Master(Box::new(MasterMessage::Forget { key })), &NOW),
        []
    );
    assert_eq!(core.active(), 1);
}

#[test]
fn an_agent_that_starts_again_finds_its_tasks_before_it_speaks_of_them() {
    let mut core = Core::new(host_paths(), Epoch(0));
    assert_eq!(states(&core.handle(Input::LauncherConnected, &NOW)), ["list"]);
    let running = TaskSummary {
        key: key(1, 1),
        state: TaskState::Running,
        pid: 9,
        started_boot_ms: 1000,
        result: None,
    };
    let over = TaskSummary {
        key: key(2, 1),
        state: TaskState::Ended,
        pid: 8,
        started_boot_ms: 1000,
        result: Some(ended(key(2, 1))),
    };
    let effects = core.handle(
        Input::Launcher(Box::new(Notice::Tasks {
            tasks: vec![running, over],
            reprioritizes: true,
            examines: false,
            enforces: Vec::new(),
        })),
        &NOW,
    );
    assert_eq!(states(&effects), ["running", "ended", "ready"]);
    let reports = core.reports(&NOW);
    assert_eq!(reports[0].state, TaskReportState::Running { for_ms: 4000 });
    assert!(matches!(reports[1].state, TaskReportState::Ended(_)));
}

#[test]
fn an_older_master_and_another_cell_are_refused() {
    let mut core = ready();
    core.handle(Input::Welcome(Box::new(welcome(3))), &NOW);
    assert_eq!(
        states(&core.handle(Input::Welcome(Box::new(welcome(2))), &NOW)),
        ["reject"]
    );
    let other = MasterWelcome {
        cell: CellId(2),
        ..welcome(4)
    };
    assert_eq!(states(&core.handle(Input::Welcome(Box::new(other)), &NOW)), ["reject"]);
    assert_eq!(core.epoch(), Epoch(3));
}

#[test]
fn an_agent_that_is_ended_waits_until_the_master_knows_what_moved() {
    let mut core = ready();
    let key = key(1, 1);
    start(&mut core, key);
    core.handle(
        Input::Launcher(Box::new(Notice::Executed {
            key,
            pid: 1,
            boot_ms: 1,
        })),
        &NOW,
    );
    let mut obey = |message| core.handle(Input::Master(Box::new(message)), &NOW);
    obey(MasterMessage::Signal {
        key,
        signal: TaskSignal::Migrate,
    });
    assert_eq!(obey(MasterMessage::Shutdown { kill_jobs: false }), []);
    core.handle(Input::Launcher(Box::new(Notice::Ended(Box::new(ended(key))))), &NOW);
    let last = core.handle(Input::Master(Box::new(MasterMessage::Forget { key })), &NOW);
    assert_eq!(last.last(), Some(&Effect::Stop));
}

#[test]
fn an_agent_that_ends_its_tasks_starts_no_other() {
    let mut core = ready();
    start(&mut core, key(1, 1));
    core.handle(
        Input::Launcher(Box::new(Notice::Executed {
            key: key(1, 1),
            pid: 1,
            boot_ms: 1,
        })),
        &NOW,
    );
    assert_eq!(
        states(&core.handle(Input::EndTasks, &NOW)),
        ["signal", "unfit"],
        "the master gives it nothing more"
    );
    assert_eq!(
        states(&start(&mut core, key(2, 1))),
        ["ended"],
        "it goes back to the master"
    );
    let over = core.handle(
        Input::Launcher(Box::new(Notice::Ended(Box::new(ended(key(1, 1)))))),
        &NOW,
    );
    assert_eq!(states(&over), ["ended"], "the master hears of the end");
}

#[test]
fn an_end_without_a_result_is_a_lost_task_and_never_one_that_did_not_start() {
    let mut core = ready();
    let key = key(1, 1);
    let summary = TaskSummary {
        key,
        state: TaskState::Ended,
        pid: 0,
        started_boot_ms: 0,
        result: None,
    };
    let listed = Notice::Tasks {
        tasks: vec![summary],
        reprioritizes: true,
        examines: false,
        enforces: Vec::new(),
    };
    let effects = core.handle(Input::Launcher(Box::new(listed)), &NOW);
    let results: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send(message) => match &**message {
                AgentMessage::Task(TaskReport {
                    state: TaskReportState::Ended(result),
                    ..
                }) => Some(result.failed),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(results, [FailedCode(18)]);
}

#[test]
fn the_master_is_told_once_what_keeps_a_host_from_starting_tasks_and_again_on_a_new_connection() {
    let mut core = ready();
    let examined = |core: &mut Core, trouble: Option<&str>, boot_ms| {
        let trouble = trouble.map(str::to_owned);
        states(&core.handle(
            Input::Launcher(Box::new(Notice::Health {
                trouble,
                root_commands: None,
            })),
            &at(boot_ms),
        ))
    };
    assert_eq!(states(&listed(&mut core, true, &NOW)), ["examine"]);
    assert_eq!(examined(&mut core, Some("no space"), 5_000), ["unfit"]);
    assert_eq!(core.next_timer(), Some(7_000), "it looks again soon");
    assert_eq!(states(&core.handle(Input::Tick, &at(7_000))), ["examine"]);
    assert_eq!(examined(&mut core, Some("no space"), 7_000), [""; 0]);
    core.handle(Input::MasterLost, &at(7_001));
    let welcomed = core.handle(Input::Welcome(Box::new(welcome(1))), &at(7_002));
    assert_eq!(states(&welcomed), ["configure", "unfit"]);
    assert_eq!(states(&core.handle(Input::Tick, &at(9_000))), ["examine"]);
    assert_eq!(examined(&mut core, None, 9_001), ["fit"]);
    assert_eq!(core.next_timer(), Some(19_001));
}

#[test]
fn a_start_that_the_host_could_not_make_is_told_as_its_own_fault_and_has_it_examined() {
    let mut core = ready();
    listed(&mut core, true, &NOW);
    core.handle(
        Input::Launcher(Box::new(Notice::Health {
            trouble: None,
            root_commands: None,
        })),
        &NOW,
    );
    for (blame, follows) in [
        (Blame::Job, &["ended"][..]),
        (Blame::Host, &["ended", "examine"]),
        (Blame::Queue, &["ended"]),
    ] {
        let attempt = match blame {
            Blame::Job => 1,
            Blame::Host => 2,
            Blame::Queue => 3,
        };
        let key = key(1, attempt);
        start(&mut core, key);
        let notice = Notice::Refused {
            key: Some(key),
            sensor: None,
            text: "no (os error 28)".to_owned(),
            blame,
        };
        let effects = core.handle(Input::Launcher(Box::new(notice)), &NOW);
        assert_eq!(states(&effects), follows);
        let told = result_of(&effects);
        // The fault of a queue is told by the code of the failure: the master closes its instance.
        let expected = match blame {
            Blame::Job => (Blame::Job, FailedCode::BEFORE_JOB),
            Blame::Host => (Blame::Host, FailedCode::BEFORE_PROLOG),
            Blame::Queue => (Blame::Job, FailedCode::BEFORE_PROLOG),
        };
        assert_eq!(((told.blame, told.failed), told.reason.as_str()), (expected, "no"));
    }
}

#[test]
fn the_master_is_told_what_root_runs_here_when_that_changes_and_after_a_reconnect() {
    let mut core = ready();
    listed(&mut core, true, &NOW);
    let hear = |core: &mut Core, line: &str| {
        let root_commands = Some(vec![line.to_owned()]);
        let effects = core.handle(
            Input::Launcher(Box::new(Notice::Health {
                trouble: None,
                root_commands,
            })),
            &NOW,
        );
        effects.iter().find_map(|effect| match effect {
            Effect::Send(message) => match &**message {
                AgentMessage::Health { root_commands, .. } => root_commands.clone(),
                _ => None,
            },
            _ => None,
        })
    };
    let told = |line: &str| Some(vec![line.to_owned()]);
    assert_eq!(hear(&mut core, "/x/a"), told("/x/a"));
    assert_eq!(hear(&mut core, "/x/a"), None);
    assert_eq!(hear(&mut core, "/x/b"), told("/x/b"));
    core.handle(Input::MasterLost, &NOW);
    assert_eq!(hear(&mut core, "/x/b"), None);
    core.handle(Input::Welcome(Box::new(welcome(1))), &NOW);
    assert_eq!(hear(&mut core, "/x/c"), told("/x/c"));
}

#[test]
fn the_master_is_told_that_a_host_no_longer_says_what_root_runs_there() {
    let mut core = ready();
    listed(&mut core, true, &NOW);
    let hear = |core: &mut Core, trouble: Option<&str>, root_commands: Option<Vec<String>>| {
        let trouble = trouble.map(str::to_owned);
        let effects = core.handle(
            Input::Launcher(Box::new(Notice::Health { trouble, root_commands })),
            &NOW,
        );
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send(message) => match *message {
                AgentMessage::Health { root_commands, .. } => Some(root_commands),
                _ => None,
            },
            _ => None,
        })
    };
    let list = Some(vec!["/x/a".to_owned()]);
    assert_eq!(hear(&mut core, None, list.clone()), Some(list.clone()));
    assert_eq!(
        hear(&mut core, Some("no space"), list.clone()),
        Some(list.clone()),
        "each message has the list"
    );
    assert_eq!(hear(&mut core, Some("no space"), None), Some(None));
    assert_eq!(hear(&mut core, Some("no space"), None), None);
}
