use super::*;

#[test]
fn a_deleted_task_ends_when_its_host_has_ended_it() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    assert_eq!(cell.qdel("u1", &["1"]), ["u1 has registered the job 1 for deletion"]);
    assert!(matches!(
        cell.sent()[..],
        [MasterMessage::Signal {
            signal: TaskSignal::Terminate,
            ..
        }]
    ));
    assert_eq!(cell.qdel("u1", &["1"]), ["job 1 is already in deletion"]);
    cell.end(key, "h1", result(Exit::Code(99), FailedCode::NO, ""));
    assert!(!cell.exists(number), "a deleted job does not run again");
}

#[test]
fn a_forced_deletion_ends_the_task_on_a_host_that_is_there() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.qdel_force("op", &["1"]);
    assert!(!cell.exists(number));
    let terminate = MasterMessage::Signal {
        key,
        signal: TaskSignal::Terminate,
    };
    assert!(cell.sent().contains(&&terminate), "{:?}", cell.sent());
}

#[test]
fn a_forced_deletion_does_not_wait() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.disconnect("h1");
    assert_eq!(cell.qdel_force("op", &["1"]), ["op forced the deletion of job 1"]);
    assert!(!cell.exists(number));
    assert_eq!(cell.records()[0].failed, FailedCode::AFTER_JOB);
    cell.connect_with(
        "h1",
        1,
        vec![proto::wire::agent::TaskReport {
            key,
            state: TaskReportState::Running { for_ms: 1 },
        }],
    );
    assert!(cell.sent().iter().any(|message| matches!(
        message,
        MasterMessage::Signal {
            signal: TaskSignal::Terminate,
            ..
        }
    )));
    cell.exit(key, "h1", 0);
    assert!(matches!(cell.sent()[..], [MasterMessage::Forget { .. }]));
    assert_eq!(cell.records().len(), 1, "an attempt is accounted once");
}

#[test]
fn who_may_not_force_a_deletion_deletes_as_without_force() {
    let mut cell = Cell::ready();
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    let said = cell.qdel_force("u1", &["1"]);
    assert!(
        said[0].starts_with("warning: the deletion of job 1 is not forced"),
        "{said:?}"
    );
    assert_eq!(said[1..], ["u1 has registered the job 1 for deletion"]);
    let terminate = MasterMessage::Signal {
        key,
        signal: TaskSignal::Terminate,
    };
    assert!(
        cell.exists(number) && cell.sent().contains(&&terminate),
        "{:?}",
        cell.sent()
    );
    assert_eq!(cell.qdel_force("u1", &["1"])[1..], ["job 1 is already in deletion"]);
    cell.submit(job());
    assert_eq!(
        cell.qdel_force("u1", &["2"]),
        ["u1 has deleted job 2"],
        "nothing has to be forced"
    );
}

#[test]
fn accounting_names_the_actor_who_deleted_a_job() {
    let mut cell = Cell::ready();
    for _ in 0..3 {
        cell.submit(job());
    }
    let keys = [1, 2, 3].map(|number| cell.run(number, 1, "h1"));
    cell.qdel("u1", &["1"]);
    cell.qdel("op", &["1"]);
    cell.end(
        keys[0],
        "h1",
        result(Exit::Signal { number: 9, core: false }, FailedCode::AFTER_JOB, ""),
    );
    cell.qdel_force("op", &["2"]);
    cell.exit(keys[2], "h1", 0);
    let deleted_by: Vec<_> = cell
        .records()
        .into_iter()
        .map(|record| record.deleted_by.as_deref())
        .collect();
    assert_eq!(deleted_by, [Some("u1@sub"), Some("op@sub"), None]);
    cell.assert_replay_is_live();
}

#[test]
fn accounting_keeps_a_context_as_far_as_it_is_short() {
    let mut cell = Cell::ready();
    let pair = |name: &str, length: usize| (name.to_owned(), "x".repeat(length));
    let spec = JobSpec {
        context: vec![pair("b", 4000), pair("a", 90), pair("c", 10)],
        ..job()
    };
    let number = cell.submit(spec);
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h1", 0);
    let records = cell.records();
    let kept: Vec<_> = records[0]
        .context
        .iter()
        .map(|(name, value)| (name.as_str(), value.len()))
        .collect();
    assert_eq!(kept, [("a", 90), ("b", 4000)], "4096 bytes at most");
}
