use super::*;

#[test]
fn a_launch_that_the_launcher_lost_is_asked_again() {
    let mut core = ready();
    start(&mut core, key(1, 1));
    assert_eq!(states(&core.handle(Input::LauncherLost, &NOW)), ["unfit"]);
    assert_eq!(states(&start(&mut core, key(1, 1))), ["accepted"]);
    core.handle(Input::LauncherConnected, &NOW);
    assert_eq!(states(&listed(&mut core, false, &NOW)), ["launch", "ready", "fit"]);
}

#[test]
fn an_order_to_a_task_is_repeated_to_the_next_launcher_until_the_task_has_ended() {
    let mut core = ready();
    let key = key(1, 1);
    start(&mut core, key);
    core.handle(Input::Launcher(Box::new(Notice::Accepted { key })), &NOW);
    core.handle(Input::LauncherLost, &NOW);
    let signal = MasterMessage::Signal {
        key,
        signal: TaskSignal::Terminate,
    };
    core.handle(Input::Master(Box::new(signal)), &NOW);
    core.handle(Input::LauncherConnected, &NOW);
    let running = TaskSummary {
        key,
        state: TaskState::Running,
        pid: 9,
        started_boot_ms: 1,
        result: None,
    };
    let mut list = |tasks| {
        states(&core.handle(
            Input::Launcher(Box::new(Notice::Tasks {
                tasks,
                reprioritizes: true,
                examines: false,
                enforces: Vec::new(),
            })),
            &NOW,
        ))
    };
    assert_eq!(list(vec![running]), ["running", "signal", "ready", "fit"]);
    let over = TaskSummary {
        key,
        state: TaskState::Ended,
        pid: 9,
        started_boot_ms: 1,
        result: Some(ended(key)),
    };
    assert_eq!(list(vec![over]), ["ended"]);
}

#[test]
fn an_order_that_no_launcher_was_told_of_is_given_back_after_a_while_and_never_started() {
    let mut core = ready();
    core.handle(Input::LauncherLost, &NOW);
    assert_eq!(core.next_timer(), None, "nothing waits");
    start(&mut core, key(1, 1));
    let due = NOW.boot_ms + health::LAUNCHER_PATIENCE_MS;
    assert_eq!(core.next_timer(), Some(due));
    assert_eq!(core.handle(Input::Tick, &at(due - 1)), []);
    let given_back = core.handle(Input::Tick, &at(due));
    assert_eq!(states(&given_back), ["ended"]);
    assert!(result_of(&given_back).is_hosts_fault() && result_of(&given_back).reason.contains("launcher"));
    assert_eq!(core.next_timer(), None);
    core.handle(Input::LauncherConnected, &at(due));
    assert_eq!(
        states(&listed(&mut core, false, &at(due))),
        ["ready", "fit"],
        "it is not launched late"
    );
    assert_eq!(
        states(&start(&mut core, key(1, 1))),
        ["ended"],
        "and a repeated order gets the same answer"
    );
}

#[test]
fn an_order_that_a_launcher_had_not_begun_when_it_died_is_given_back_and_one_that_it_may_have_begun_waits() {
    let mut core = ready();
    let (sent, begun) = (key(1, 1), key(1, 2));
    start(&mut core, sent);
    start(&mut core, begun);
    core.handle(Input::LauncherLost, &NOW);
    let due = NOW.boot_ms + health::LAUNCHER_PATIENCE_MS;
    assert_eq!(core.next_timer(), Some(due));
    assert_eq!(core.handle(Input::Unbegun(vec![]), &at(due - 1)), []);
    assert_eq!(
        core.handle(Input::Tick, &at(due)),
        [Effect::FindUnbegun(vec![sent, begun])]
    );
    assert_eq!(core.handle(Input::Tick, &at(due + 1)), [], "it is asked once");
    let given_back = core.handle(Input::Unbegun(vec![sent]), &at(due + 1));
    assert_eq!(states(&given_back), ["ended"]);
    assert!(result_of(&given_back).is_hosts_fault());
    let again = core.next_timer().unwrap();
    assert_eq!(
        again,
        due + health::LAUNCHER_PATIENCE_MS,
        "the launcher may have been alive still"
    );
    assert_eq!(core.handle(Input::Tick, &at(again)), [Effect::FindUnbegun(vec![begun])]);
    core.handle(Input::LauncherConnected, &at(again));
    assert_eq!(
        states(&listed(&mut core, false, &at(again))),
        ["launch", "ready", "fit"]
    );
    assert_eq!(
        core.handle(Input::Unbegun(vec![begun]), &at(again)),
        [],
        "a launcher has been asked again"
    );
    assert_eq!(core.next_timer(), None);
}

#[test]
fn an_order_that_waits_for_a_launcher_ends_at_once_when_it_is_to() {
    let mut core = ready();
    core.handle(Input::LauncherLost, &NOW);
    let key = key(1, 1);
    start(&mut core, key);
    let signal = |signal| Input::Master(Box::new(MasterMessage::Signal { key, signal }));
    assert_eq!(core.handle(signal(TaskSignal::Suspend), &NOW), []);
    assert_eq!(states(&core.handle(signal(TaskSignal::Terminate), &NOW)), ["ended"]);
    assert_eq!(core.next_timer(), None);
}

#[test]
fn a_launcher_that_does_not_answer_counts_as_one_that_hangs() {
    let mut core = ready();
    assert_eq!(states(&listed(&mut core, true, &NOW)), ["examine"]);
    let due = core.next_timer().unwrap();
    assert_eq!(states(&core.handle(Input::Tick, &at(due))), ["unfit"]);
    assert_eq!(core.next_timer(), None);
    let late = Notice::Health {
        trouble: None,
        root_commands: None,
    };
    assert_eq!(
        states(&core.handle(Input::Launcher(Box::new(late)), &at(due + 1))),
        ["fit"]
    );
}

#[test]
fn a_task_that_is_to_end_while_the_launcher_is_away_ends_whatever_comes_after() {
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
    core.handle(Input::LauncherLost, &NOW);
    for signal in [TaskSignal::Suspend, TaskSignal::Terminate, TaskSignal::Resume] {
        core.handle(Input::Master(Box::new(MasterMessage::Signal { key, signal })), &NOW);
    }
    core.handle(Input::LauncherConnected, &NOW);
    let ordered = listed(&mut core, false, &NOW)
        .into_iter()
        .find_map(|effect| match effect {
            Effect::Launcher { request, .. } => match *request {
                Request::Signal { order, .. } => Some(order),
                _ => None,
            },
            _ => None,
        });
    assert_eq!(ordered, Some(TaskOrder::Terminate));
}
