mod many;
mod rebooking;

use super::cell::{owner, resources, selection, texts};
use super::*;
use proto::id::TaskId;
use proto::job::{HoldChange, Holds, JobChanges, JobSpec, PeRequest};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::wire::client::{Answer, Command, JobSelection, JobTarget};

fn alter(cell: &mut Cell, user: &str, target: &str, changes: JobChanges) -> Vec<String> {
    texts(&cell.command(
        user,
        Command::Alter {
            jobs: selection(&[target]),
            changes: Box::new(changes),
        },
    ))
}

const USER: Holds = Holds {
    user: true,
    operator: false,
    system: false,
};
const OPERATOR: Holds = Holds {
    user: false,
    operator: true,
    system: false,
};
const SYSTEM: Holds = Holds {
    user: false,
    operator: false,
    system: true,
};
const NONE: Holds = Holds {
    user: false,
    operator: false,
    system: false,
};

fn hold(set: Holds) -> JobChanges {
    JobChanges {
        holds: Some(HoldChange { set, release: NONE }),
        ..JobChanges::default()
    }
}

fn release(release: Holds) -> JobChanges {
    JobChanges {
        holds: Some(HoldChange { set: NONE, release }),
        ..JobChanges::default()
    }
}

fn changed(change: impl FnOnce(&mut JobChanges)) -> JobChanges {
    let mut changes = JobChanges::default();
    change(&mut changes);
    changes
}

/// Changes of requests and numbers, each with the answers.
fn changes_of_requests() -> [(JobChanges, &'static str); 11] {
    [
        (
            changed(|to| to.name = Some("newname".into())),
            "modified job name of job 1",
        ),
        (
            changed(|to| to.hard = Some(resources("h_rt=100"))),
            "modified hard resource list of job 1",
        ),
        (
            changed(|to| {
                to.hard = Some(resources("h_rt=5"));
                to.soft = Some(resources("mem_free=1G"));
            }),
            "modified hard resource list of job 1|modified soft resource list of job 1",
        ),
        (
            changed(|to| to.hard = Some(resources("h_rt=abc"))),
            "attribute \"h_rt\" is not a time value",
        ),
        (
            changed(|to| to.hard = Some(resources("nosuch=1"))),
            "unknown resource \"nosuch\"",
        ),
        (
            changed(|to| to.priority = Some(-50)),
            "u1@sub sets scheduling priority of job 1 to -50",
        ),
        (
            changed(|to| to.priority = Some(50)),
            "denied: \"u1\" must be operator to increase job priority",
        ),
        (
            changed(|to| to.override_tickets = Some(5)),
            "denied: \"u1\" must be operator to change amount of override tickets",
        ),
        (
            changed(|to| to.job_share = Some(50)),
            "u1@sub sets job share of job 1 to 50",
        ),
        (
            changed(|to| to.hard_queues = Some(vec!["all.q".into()])),
            "modified hard queue list of job 1",
        ),
        (
            changed(|to| to.hard_queues = Some(vec!["nosuch.q".into()])),
            "Job was rejected because job requests unknown queue \"nosuch.q\"",
        ),
    ]
}

/// Changes of the other settings, each with the answers.
fn changes_of_settings() -> [(JobChanges, &'static str); 7] {
    [
        (
            changed(|to| to.start_after = Some(Wall(9_000_000_000_000))),
            "modified start time of job 1",
        ),
        (
            changed(|to| {
                to.stdout = Some(Vec::new());
                to.stderr = Some(Vec::new());
                to.merge_stderr = Some(true);
            }),
            "modified stderr path list of job 1|modified output merge behaviour of job 1|modified stdout path list of job 1",
        ),
        (
            changed(|to| to.environment = Some(vec![("X".into(), "1".into())])),
            "modified environment of job 1",
        ),
        (
            changed(|to| to.reserve = Some(false)),
            "modified reservation behaviour of job 1",
        ),
        (
            changed(|to| to.task_concurrency = Some(3)),
            "invalid \"task concurrency\" value in job request",
        ),
        (
            changed(|to| to.shell = Some(Vec::new())),
            "modified shell list of job 1",
        ),
        (JobChanges::default(), ""),
    ]
}

#[test]
fn every_change_is_named_in_the_words_of_8_1_9() {
    let mut cell = Cell::ready();
    cell.submit(job());
    for (changes, expected) in changes_of_requests().into_iter().chain(changes_of_settings()) {
        assert_eq!(alter(&mut cell, "u1", "1", changes).join("|"), expected);
    }
    cell.submit(array("1-3"));
    let limit = changed(|to| to.task_concurrency = Some(3));
    assert_eq!(
        alter(&mut cell, "u1", "2", limit),
        ["modified task concurrency of job 2"]
    );
    cell.assert_replay_is_live();
}

#[test]
fn changes_are_named_in_the_order_of_8_1_9() {
    let mut cell = Cell::ready();
    cell.submit(job());
    let changes = JobChanges {
        shell: Some(Vec::new()),
        stdout: Some(Vec::new()),
        hard_queues: Some(vec!["all.q".into()]),
        predecessors: Some(Vec::new()),
        name: Some("n".into()),
        stdin: Some(Vec::new()),
        account: Some("a".into()),
        rerunnable: Some(true),
        notify: Some(true),
        directory: Some("/tmp".into()),
        priority: Some(-1),
        ..JobChanges::default()
    };
    let said = alter(&mut cell, "u1", "1", changes);
    let what: Vec<&str> = said
        .iter()
        .map(|text| text.split(" of job").next().unwrap_or_default())
        .collect();
    let expected = [
        "u1@sub sets scheduling priority",
        "modified account",
        "modified working directory",
        "modified stdin path list",
        "modified job name",
        "modified job id hold list",
        "modified notify behaviour",
        "modified stdout path list",
        "modified hard queue list",
        "modified restart behaviour",
        "modified shell list",
    ];
    assert_eq!(what, expected);
}

#[test]
fn variables_of_the_submission_stay_when_the_exported_ones_change() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = vec![
        pair("SGE_O_HOME", "/home/u1"),
        pair("SGE_O_WORKDIR", "/work"),
        pair("SGE_O_HOME", "of the user"),
        pair("A", "1"),
    ];
    let mut cell = Cell::ready();
    cell.submit(JobSpec {
        environment: environment.into(),
        ..job()
    });
    let exported = JobChanges {
        environment: Some(vec![pair("SGE_O_TZ", "x"), pair("B", "2")]),
        ..JobChanges::default()
    };
    assert_eq!(alter(&mut cell, "u1", "1", exported), ["modified environment of job 1"]);
    let spec = &cell.job(1).spec;
    let submission: Vec<&str> = spec.submission_variables().map(|(name, _)| name.as_str()).collect();
    let exported: Vec<&str> = spec.exported_variables().map(|(name, _)| name.as_str()).collect();
    assert_eq!(submission, ["SGE_O_HOME", "SGE_O_WORKDIR"]);
    assert_eq!(exported, ["SGE_O_TZ", "B"]);
}

#[test]
fn changes_of_the_context_are_made_in_their_order() {
    use proto::job::ContextChange::{Add, Delete, Set};
    let pairs = |text: &str| -> Vec<(String, String)> {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(n, v)| (n.into(), v.into()))
            .collect()
    };
    let mut cell = Cell::ready();
    cell.submit(JobSpec {
        context: pairs("A=1 B=2"),
        ..job()
    });
    for (changes, expected) in [
        (vec![Add(pairs("A=3 C=4"))], "A=3 B=2 C=4"),
        (vec![Add(pairs("D=5")), Delete(vec!["D".into(), "B".into()])], "A=3 C=4"),
        (vec![Delete(vec!["A".into()]), Add(pairs("A=6"))], "C=4 A=6"),
        (vec![Add(pairs("E=7")), Set(pairs("F=8")), Add(pairs("A=9"))], "F=8 A=9"),
    ] {
        let changes = JobChanges {
            context: changes,
            ..JobChanges::default()
        };
        assert_eq!(alter(&mut cell, "u1", "1", changes), ["modified context of job 1"]);
        assert_eq!(cell.job(1).spec.context, pairs(expected));
    }
}

#[test]
fn an_empty_name_takes_a_job_out_of_its_checkpointing_environment() {
    let mut cell = Cell::ready();
    cell.submit(job());
    let changes = JobChanges {
        checkpoint: Some(String::new()),
        ..JobChanges::default()
    };
    assert_eq!(
        alter(&mut cell, "u1", "1", changes),
        ["modified checkpointing environment of job 1"]
    );
    assert_eq!(cell.job(1).spec.checkpoint, None);
}

#[test]
fn only_operators_change_override_tickets() {
    let mut cell = Cell::ready();
    cell.submit(job());
    let tickets = |number| JobChanges {
        override_tickets: Some(number),
        ..JobChanges::default()
    };
    let refusal = "denied: \"u1\" must be operator to change amount of override tickets";
    assert_eq!(alter(&mut cell, "u1", "1", tickets(5)), [refusal]);
    assert_eq!(
        alter(&mut cell, "op", "1", tickets(5)),
        ["op@sub sets override tickets of job 1 to 5"]
    );
    assert_eq!(cell.job(1).spec.override_tickets, 5);
}

#[test]
fn a_refused_change_leaves_the_job_as_it_was() {
    let mut cell = Cell::ready();
    cell.submit(job());
    let before = cell.job(1).clone();
    let pe = PeRequest {
        name: "nosuch".into(),
        slots: proto::request::SlotRange::parse("2").unwrap(),
    };
    let changes = JobChanges {
        name: Some("x".into()),
        pe: Some(pe),
        ..JobChanges::default()
    };
    let said = alter(&mut cell, "u1", "1", changes);
    assert_eq!(said, ["denied: parallel environment \"nosuch\" does not exist"]);
    assert_eq!(*cell.job(1), before);
}

#[test]
fn jobs_that_do_not_exist_are_named() {
    let mut cell = Cell::ready();
    cell.submit(array("1-3"));
    let change = || JobChanges {
        name: Some("x".into()),
        ..JobChanges::default()
    };
    assert_eq!(
        alter(&mut cell, "u1", "99999", change()),
        ["denied: job \"99999\" does not exist"]
    );
    assert_eq!(
        alter(&mut cell, "u1", "nosuchjob", change()),
        ["denied: job \"nosuchjob\" does not exist"]
    );
    assert_eq!(
        alter(&mut cell, "u1", "1.2", change()),
        ["denied: the selected option works only on jobs and not on tasks"]
    );
    assert_eq!(cell.qdel("root", &["99999"]), ["denied: job \"99999\" does not exist"]);
    assert_eq!(
        cell.qdel("root", &["h*"]),
        ["The job h* of user(s) root does not exist"]
    );
    assert_eq!(cell.qdel("root", &["1.999"]), ["job \"1\" task \"999\" does not exist"]);
    let users = |users: &str| JobSelection {
        users: vec![users.into()],
        ..JobSelection::default()
    };
    let reply = cell.command(
        "root",
        Command::Delete {
            jobs: users("nosuchuser"),
            force: false,
        },
    );
    assert_eq!(
        texts(&reply),
        ["There is no job registered for the following users: nosuchuser"]
    );
    let reply = cell.command(
        "root",
        Command::Delete {
            jobs: users("u1"),
            force: false,
        },
    );
    assert_eq!(texts(&reply), ["root has deleted job 1"]);
    assert_eq!(
        cell.qmod("u1", proto::wire::client::ModifyAction::SuspendJob, "foo"),
        ["invalid queue or job \"foo\""]
    );
}

#[test]
fn a_name_means_jobs_of_everybody_but_for_deletion() {
    use proto::wire::client::ModifyAction::{ClearJobError, SuspendJob};
    let mut cell = Cell::ready();
    let other = JobSpec {
        owner: owner("u2").into(),
        ..job()
    };
    for spec in [other.clone(), job(), other] {
        cell.submit(spec);
    }
    let priority = || JobChanges {
        priority: Some(-1),
        ..JobChanges::default()
    };
    let set = |user: &str, number: u32| format!("{user}@sub sets scheduling priority of job {number} to -1");
    assert_eq!(
        alter(&mut cell, "op", "sl*", priority()),
        [1, 2, 3].map(|number| set("op", number))
    );
    let denied =
        |number: u32| format!("denied: \"u1\" must be at least owner of job {number} to change job attributes");
    assert_eq!(
        alter(&mut cell, "u1", "sleep", priority()),
        [denied(1), set("u1", 2), denied(3)]
    );
    let own = JobSelection {
        users: vec!["u1".into()],
        ..selection(&["sleep"])
    };
    let change = Command::Alter {
        jobs: own,
        changes: Box::new(priority()),
    };
    assert_eq!(texts(&cell.command("op", change)), [set("op", 2)]);
    let refused = |number: u32| format!("u1 - you have no permission to modify job \"{number}\"");
    let said = cell.qmod("u1", ClearJobError, "sleep");
    assert_eq!((said.len(), &said[0], &said[2]), (3, &refused(1), &refused(3)));
    assert_eq!(cell.qmod("op", SuspendJob, "sleep").len(), 3);
    assert_eq!(
        cell.qdel("op", &["sleep"]),
        ["The job sleep of user(s) op does not exist"]
    );
    assert_eq!(cell.qdel("u1", &["sleep"]), ["u1 has deleted job 2"]);
}

#[test]
fn a_job_of_the_name_of_a_queue_does_not_hide_it() {
    let mut cell = Cell::ready();
    let number = cell.submit(JobSpec {
        name: "all.q".into(),
        ..job()
    });
    cell.run(number, 1, "h1");
    let said = cell.qmod("op", proto::wire::client::ModifyAction::Suspend, "all.q");
    assert_eq!(said[0], "op@sub changed state of \"all.q@h1\" (suspended)");
    let said = cell.qmod("u1", proto::wire::client::ModifyAction::Suspend, "all.q");
    assert_eq!(said[0], "u1 - you have no permission to modify queue \"all.q@h1\"");
}

#[test]
fn holds_need_the_role_they_are_named_after() {
    let mut cell = Cell::ready();
    cell.submit(job());
    assert_eq!(alter(&mut cell, "u1", "1", hold(USER)), ["modified hold of job 1"]);
    assert_eq!(
        alter(&mut cell, "u1", "1", hold(USER)),
        Vec::<String>::new(),
        "nothing changes"
    );
    assert_eq!(
        alter(&mut cell, "u1", "1", hold(OPERATOR)),
        ["denied: \"u1\" must be operator to set operator hold"]
    );
    assert_eq!(
        alter(&mut cell, "op", "1", hold(SYSTEM)),
        ["denied: \"op\" must be manager to set manager hold"]
    );
    assert_eq!(
        alter(&mut cell, "u1", "1", release(SYSTEM)),
        Vec::<String>::new(),
        "there is nothing to release"
    );
    assert_eq!(alter(&mut cell, "boss", "1", hold(SYSTEM)), ["modified hold of job 1"]);
    assert_eq!(
        alter(&mut cell, "u1", "1", release(SYSTEM)),
        ["denied: \"u1\" must be manager to remove manager hold"]
    );
    let still = "job 1 is still held: system hold";
    assert_eq!(
        alter(&mut cell, "u1", "1", release(USER)),
        ["modified hold of job 1", still]
    );
    assert_eq!(cell.order(1, 1, "h1"), Err("it is held".into()));
    assert_eq!(
        alter(&mut cell, "boss", "1", release(SYSTEM)),
        ["modified hold of job 1"]
    );
    cell.order(1, 1, "h1").unwrap();
}

#[test]
fn several_tasks_are_those_of_an_array() {
    let mut cell = Cell::ready();
    let held = |cell: &mut Cell, target: &str, change: JobChanges| alter(cell, "u1", target, change);
    let number = cell.submit(job());
    let refusal = [format!("{number} is not a job array")];
    for tasks in ["1-2", "3-4", "2-9:7"] {
        for change in [hold(USER), release(USER)] {
            assert_eq!(
                held(&mut cell, &format!("{number}.{tasks}"), change),
                refusal,
                "{tasks}"
            );
        }
    }
    let denied = [format!(
        "denied: \"u2\" must be at least owner of job {number} to change job attributes"
    )];
    for tasks in ["1-2", "3-4"] {
        assert_eq!(
            alter(&mut cell, "u2", &format!("{number}.{tasks}"), hold(USER)),
            denied,
            "{tasks}"
        );
    }
    assert!(!cell.job(number).spec.holds.any());
    for (tasks, said) in [
        ("1", format!("modified hold of job {number}")),
        ("5", format!("job \"{number}\" task \"5\" does not exist")),
    ] {
        assert_eq!(
            held(&mut cell, &format!("{number}.{tasks}"), hold(USER)),
            [said],
            "{tasks}"
        );
    }
}

#[test]
fn who_releases_a_hold_of_others_is_told_that_it_stays_and_who_may() {
    let answers = |cell: &mut Cell, changes: JobChanges| {
        let command = Command::Alter {
            jobs: selection(&["1"]),
            changes: Box::new(changes),
        };
        cell.command("u1", command).answers
    };
    for (set, kind, fix) in [
        (
            OPERATOR,
            "operator hold",
            "an operator or a manager releases it: qrls -h o 1",
        ),
        (SYSTEM, "system hold", "a manager releases it: qrls -h s 1"),
        (
            Holds {
                operator: true,
                ..SYSTEM
            },
            "operator and system hold",
            "a manager releases it: qrls -h os 1",
        ),
    ] {
        let mut cell = Cell::ready();
        cell.submit(job());
        alter(&mut cell, "boss", "1", hold(set));
        let [Answer::Refused(refusal)] = &answers(&mut cell, release(USER))[..] else {
            panic!("{kind}")
        };
        assert_eq!(refusal.what, format!("job 1 is still held: {kind}"));
        assert_eq!((refusal.code.exit_code(), refusal.fix.as_str()), (1, fix));
        alter(&mut cell, "u1", "1", hold(USER));
        let [Answer::Done(_), Answer::Warning(warning)] = &answers(&mut cell, release(USER))[..] else {
            panic!("{kind}")
        };
        assert_eq!(warning.what, refusal.what);
    }
}

#[test]
fn single_tasks_are_held_and_released() {
    let mut cell = Cell::ready();
    cell.submit(array("1-4"));
    let said = alter(&mut cell, "u1", "1.1-2", hold(USER));
    assert_eq!(
        said,
        [
            "modified hold of job-array task 1.1",
            "modified hold of job-array task 1.2"
        ]
    );
    assert!(cell.order(1, 2, "h1").is_err());
    cell.order(1, 3, "h1").unwrap();
    assert_eq!(alter(&mut cell, "u1", "1", release(USER)), said);
    cell.order(1, 2, "h1").unwrap();
    let free: Vec<TaskId> = crate::state::eligible::eligible_tasks(cell.core.state(), cell.job(1), cell.now).collect();
    assert_eq!(free, [TaskId(1), TaskId(4)]);
    cell.assert_replay_is_live();
}

#[test]
fn tasks_are_deleted_as_they_are_named() {
    let mut cell = Cell::ready();
    cell.submit(array("1-9"));
    cell.run(1, 1, "h1");
    let said = cell.qdel("root", &["1.1", "1.5-6", "1.8"]);
    let expected = [
        "root has registered the job-array task 1.1 for deletion",
        "root has deleted job-array tasks 5,6 of job 1",
        "root has deleted job-array task 1.8",
    ];
    assert_eq!(said, expected);
    let said = cell.qdel("root", &["1"]);
    assert_eq!(said, ["job 1 is already in deletion", "root has deleted job 1"]);
    assert!(cell.exists(1), "until the host has ended its task");
}

#[test]
fn a_job_that_is_no_array_has_no_range_of_tasks() {
    let mut cell = Cell::ready();
    cell.submit(JobSpec { holds: USER, ..job() });
    let target = |range: &str| JobTarget {
        job: "1".to_owned(),
        tasks: vec![TaskRange::parse(range).unwrap()],
    };
    for (range, expected) in [("1-2", "1 is not a job array"), ("1-1", "modified hold of job 1")] {
        let jobs = JobSelection {
            targets: vec![target(range)],
            ..JobSelection::default()
        };
        let said = texts(&cell.command(
            "u1",
            Command::Alter {
                jobs,
                changes: Box::new(release(USER)),
            },
        ));
        assert_eq!(said, [expected], "{range}");
    }
}

#[test]
fn new_predecessors_are_resolved_anew_and_never_the_job_itself() {
    let mut cell = Cell::ready();
    cell.submit(job());
    cell.submit(job());
    let after = |names: &[&str]| JobChanges {
        predecessors: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..JobChanges::default()
    };
    let said = alter(&mut cell, "u1", "2", after(&["sleep"]));
    assert_eq!(
        said,
        ["modified job id hold list of job 2\n   blocking jobs: 1\n   exited jobs:   NONE"]
    );
    let said = alter(&mut cell, "u1", "1", after(&["2"]));
    assert_eq!(said, ["denied: the job would wait for itself"]);
    let said = alter(&mut cell, "u1", "2", after(&["777"]));
    let done = "modified job id hold list of job 2\n   blocking jobs: NONE\n   exited jobs:   777";
    assert_eq!(
        said,
        [
            done,
            "warning: -hold_jid 777: there is no job 777, so nothing is waited for"
        ]
    );
    cell.order(2, 1, "h1").unwrap();
    cell.assert_replay_is_live();
}

#[test]
fn a_copy_is_a_job_of_its_own() {
    let mut cell = Cell::ready();
    cell.submit(JobSpec { holds: USER, ..job() });
    let reply = cell.command(
        "u1",
        Command::Resubmit {
            jobs: selection(&["1"]),
            changes: Box::new(hold(USER)),
        },
    );
    assert_eq!(
        texts(&reply),
        ["modified hold of job 1", "Your job 2 (\"sleep\") has been submitted"]
    );
    let reply = cell.command(
        "op",
        Command::Resubmit {
            jobs: selection(&["1"]),
            changes: Box::default(),
        },
    );
    assert_eq!(texts(&reply), ["Your job 3 (\"sleep\") has been submitted"]);
    assert_eq!(cell.job(3).spec.owner, owner("u1").into());
    assert!(!cell.job(3).spec.holds.any() && cell.job(2).spec.holds.user);
    let reply = cell.command(
        "u1",
        Command::Resubmit {
            jobs: selection(&["99999"]),
            changes: Box::default(),
        },
    );
    assert_eq!(texts(&reply), ["job \"99999\" does not exist"]);
}
