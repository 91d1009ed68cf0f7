//! Questions to logs that were made for them.

use super::jobs::JobSummary;
use super::*;
use crate::testing::{TempDir, cell_events, key, spec};
use master_core::event::{Event, InstanceState, Record, StoredObject};
use proto::id::{HostName, JobNumber, QueueInstanceName, RequestId, SubmitSeq, UserName};
use proto::job::{HoldChange, Holds, JobSpec};
use proto::object::{Fields, ObjectKind};
use proto::request::TaskRange;
use proto::time::{Now, Tick, Wall};
use std::path::Path;
use std::sync::Arc;

/// The time of the first event, in milliseconds.
const BEGIN: i64 = 1_800_000_000_000;

fn user(name: &str) -> Actor {
    Actor::User {
        user: UserName::from(name),
        host: HostName::new("node1"),
    }
}

fn pe(slots: &str) -> Event {
    Event::ObjectsChanged(vec![StoredObject {
        kind: ObjectKind::Pe,
        name: "mpi".to_owned(),
        fields: Some(Fields::from_iter([("pe_name", "mpi"), ("slots", slots)])),
    }])
}

fn submitted() -> Event {
    Event::JobSubmitted {
        seq: SubmitSeq(1),
        number: JobNumber(7),
        spec: Arc::new(JobSpec { ..spec() }),
        waits_for: Vec::new(),
        array_waits_for: Vec::new(),
    }
}

/// A database whose log begins with event `first`; the events are a second apart.
fn database(dir: &TempDir, first: u64, events: &[(Actor, Option<u128>, Event)]) -> PathBuf {
    let path = dir.path().join("cell.db");
    let records: Vec<Record> = (0..)
        .zip(events)
        .map(|(at, (actor, request, event))| Record {
            seq: EventSeq(first + at),
            now: Now {
                tick: Tick(at),
                wall: Wall(BEGIN + 1000 * at.cast_signed()),
            },
            actor: actor.clone(),
            request: request.map(RequestId),
            event: event.clone(),
        })
        .collect();
    Store::create(&path).unwrap().append(&records).unwrap();
    path
}

/// The whole answer, put together.
fn ask(path: &Path, filter: ChangeFilter) -> ChangeHistory {
    let mut question = Changes::new(path.to_owned(), filter);
    let mut whole = ChangeHistory::default();
    loop {
        let Reply { more, answers, data } = question.part();
        let Some(Data::Changes(part)) = data else {
            panic!("{answers:?}")
        };
        whole.changes.extend(part.changes);
        whole.left_out += part.left_out;
        whole.of_older_jobs += part.of_older_jobs;
        whole.log = part.log.or(whole.log);
        if !more {
            return whole;
        }
    }
}

fn all() -> ChangeFilter {
    ChangeFilter {
        most: 100,
        ..ChangeFilter::default()
    }
}

/// A change in a line.
fn line(change: &ChangeView) -> String {
    let fields = change.fields.iter().map(|field| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        format!(" {}:{}->{}", field.name, value(&field.old), value(&field.new))
    });
    let owner = change
        .owner
        .as_ref()
        .map(|owner| format!(" of {owner} ({})", change.tasks));
    let fields: String = fields.collect();
    let ChangeView {
        by, action, kind, name, ..
    } = change;
    format!(
        "{by} {} {kind} {name}{}{fields}",
        action.words(),
        owner.unwrap_or_default()
    )
}

fn lines(history: &ChangeHistory) -> Vec<String> {
    history.changes.iter().map(line).collect()
}

#[test]
fn a_change_names_its_author_and_the_fields_before_and_after() {
    let dir = TempDir::new("changes");
    let gone = Event::ObjectsChanged(vec![StoredObject {
        kind: ObjectKind::Pe,
        name: "mpi".to_owned(),
        fields: None,
    }]);
    let path = database(
        &dir,
        1,
        &[
            (user("ann"), Some(1), pe("4")),
            (user("bob"), Some(2), pe("8")),
            (user("bob"), Some(3), pe("8")),
            (Actor::Master, None, gone),
        ],
    );
    let history = ask(&path, all());
    assert_eq!(
        lines(&history),
        [
            "ann@node1 added parallel environment mpi pe_name:-->mpi slots:-->4",
            "bob@node1 modified parallel environment mpi slots:4->8",
            "master deleted parallel environment mpi pe_name:mpi->- slots:8->-",
        ]
    );
    let log = history.log.unwrap();
    assert_eq!((log.at, log.is_whole, history.left_out), (Wall(BEGIN), true, 0));
}

#[test]
fn questions_are_about_a_time_users_and_objects() {
    let dir = TempDir::new("changes");
    let path = database(
        &dir,
        1,
        &[
            (user("ann"), Some(1), pe("4")),
            (user("bob"), Some(2), pe("8")),
            (user("ann"), Some(3), Event::HostRevoked { host: "node2".into() }),
        ],
    );
    let asked = |filter: ChangeFilter| lines(&ask(&path, filter));
    let changed = "bob@node1 modified parallel environment mpi slots:4->8";
    let revoked = "ann@node1 revoked host node2";
    let since = Some(Wall(BEGIN + 1000));
    assert_eq!(asked(ChangeFilter { since, ..all() }), [changed, revoked]);
    let users = vec!["b*".to_owned()];
    assert_eq!(asked(ChangeFilter { users, ..all() }), [changed]);
    let users = vec!["bob@node1".to_owned()];
    assert_eq!(asked(ChangeFilter { users, ..all() }), [changed]);
    let users = vec!["bob@node2".to_owned()];
    assert!(asked(ChangeFilter { users, ..all() }).is_empty());
    let objects = vec!["node2".to_owned()];
    assert_eq!(asked(ChangeFilter { objects, ..all() }), [revoked]);
    let objects = vec!["parallel environment".to_owned()];
    assert_eq!(asked(ChangeFilter { objects, ..all() }).len(), 2);
}

#[test]
fn an_answer_has_the_newest_changes_and_counts_the_others() {
    let dir = TempDir::new("changes");
    let events: Vec<_> = (1..=50)
        .map(|slots| (user("ann"), Some(slots), pe(&slots.to_string())))
        .collect();
    let path = database(&dir, 1, &events);
    let history = ask(&path, ChangeFilter { most: 2, ..all() });
    assert_eq!(history.left_out, 48);
    assert_eq!(
        lines(&history),
        [
            "ann@node1 modified parallel environment mpi slots:48->49",
            "ann@node1 modified parallel environment mpi slots:49->50",
        ]
    );
    assert_eq!(ask(&path, ChangeFilter { most: 0, ..all() }).left_out, 50);
}

#[test]
fn what_operators_do_to_jobs_of_others_is_told_and_what_owners_do_is_not() {
    let dir = TempDir::new("changes");
    let tasks = vec![TaskRange::new(1, 10, 1).unwrap()];
    let holds = HoldChange {
        set: Holds {
            operator: true,
            ..Holds::default()
        },
        ..HoldChange::default()
    };
    let hold = Event::HoldsChanged {
        seq: SubmitSeq(1),
        tasks: tasks.clone(),
        change: holds,
    };
    let delete = |task| Event::TaskDeletionRequested { key: key(1, task) };
    let pending = Event::TasksDeleted {
        seq: SubmitSeq(1),
        tasks,
    };
    let path = database(
        &dir,
        1,
        &[
            (user("alice"), Some(1), submitted()),
            (user("alice"), Some(2), hold.clone()),
            (user("root"), Some(3), hold),
            (user("root"), Some(4), pending),
            (user("root"), Some(4), delete(11)),
            (user("root"), Some(4), delete(12)),
            (Actor::Master, None, delete(13)),
        ],
    );
    let history = ask(&path, all());
    let owner = spec().owner.user.clone();
    assert_eq!(
        lines(&history),
        [
            format!("root@node1 held job 7 of {owner} (10)"),
            format!("root@node1 deleted job 7 of {owner} (12)"),
        ]
    );
}

#[test]
fn what_people_do_to_queue_instances_is_told_and_what_happens_to_them_is_not() {
    let dir = TempDir::new("changes");
    let changed = |state: InstanceState| Event::InstanceChanged {
        instance: QueueInstanceName {
            queue: "all.q".into(),
            host: "node1".into(),
        },
        state,
    };
    let disabled = InstanceState {
        disabled: true,
        ..InstanceState::default()
    };
    let in_error = InstanceState {
        errors: vec!["no space".to_owned()],
        ..disabled.clone()
    };
    let path = database(
        &dir,
        1,
        &[
            (user("ann"), Some(1), changed(disabled.clone())),
            (Actor::Agent("node1".into()), None, changed(in_error)),
            (user("ann"), Some(2), changed(disabled)),
            (user("ann"), Some(3), changed(InstanceState::default())),
        ],
    );
    assert_eq!(
        lines(&ask(&path, all())),
        [
            "ann@node1 disabled queue instance all.q@node1",
            "ann@node1 cleared the error of queue instance all.q@node1",
            "ann@node1 enabled queue instance all.q@node1",
        ]
    );
}

#[test]
fn a_log_whose_beginning_was_removed_says_so_and_guesses_no_earlier_values() {
    let dir = TempDir::new("changes");
    let path = database(
        &dir,
        100,
        &[(user("ann"), Some(1), pe("4")), (user("ann"), Some(2), pe("8"))],
    );
    let history = ask(&path, all());
    assert!(history.log.is_some_and(|log| !log.is_whole));
    assert_eq!(
        lines(&history),
        [
            "ann@node1 modified parallel environment mpi",
            "ann@node1 modified parallel environment mpi slots:4->8",
        ]
    );
    assert!(history.changes[0].is_earlier_unknown && !history.changes[1].is_earlier_unknown);
}

#[test]
fn a_trimmed_log_blames_nobody_for_the_state_of_a_queue_instance_before() {
    let dir = TempDir::new("changes");
    let changed = |disabled| Event::InstanceChanged {
        instance: QueueInstanceName {
            queue: "all.q".into(),
            host: "node1".into(),
        },
        state: InstanceState {
            disabled,
            ..InstanceState::default()
        },
    };
    let events = [
        (user("bob"), Some(1), changed(true)),
        (user("bob"), Some(2), changed(false)),
        (user("bob"), Some(3), changed(true)),
    ];
    let history = ask(&database(&dir, 100, &events), all());
    assert_eq!(
        lines(&history),
        [
            "bob@node1 modified queue instance all.q@node1",
            "bob@node1 enabled queue instance all.q@node1",
            "bob@node1 disabled queue instance all.q@node1",
        ]
    );
    assert!(history.changes[0].is_earlier_unknown);
}

#[test]
fn one_request_about_many_queue_instances_or_jobs_is_one_change() {
    let dir = TempDir::new("changes");
    let disabled = |host: String| Event::InstanceChanged {
        instance: QueueInstanceName {
            queue: "all.q".into(),
            host: (&*host).into(),
        },
        state: InstanceState {
            disabled: true,
            ..InstanceState::default()
        },
    };
    let mut events: Vec<_> = (0..100)
        .map(|number| (user("ann"), Some(1), disabled(format!("node{number:03}"))))
        .collect();
    events.push((user("ann"), Some(2), disabled("other".to_owned())));
    let history = ask(&database(&dir, 1, &events), all());
    assert_eq!(
        lines(&history),
        [
            "ann@node1 disabled queue instance all.q@node000",
            "ann@node1 disabled queue instance all.q@other"
        ]
    );
    let first = &history.changes[0];
    assert_eq!((first.with.len(), first.others), (20, 79));
    assert_eq!(first.with[0], "all.q@node001");
}

#[test]
fn what_was_done_to_jobs_older_than_the_log_is_counted() {
    let dir = TempDir::new("changes");
    let delete = || Event::TaskDeletionRequested { key: key(1, 1) };
    let events = [
        (user("root"), Some(1), delete()),
        (Actor::Master, None, delete()),
        (user("ann"), Some(2), delete()),
    ];
    let path = database(&dir, 100, &events);
    assert_eq!(ask(&path, all()).of_older_jobs, 2);
    let users = vec!["root".to_owned()];
    let history = ask(&path, ChangeFilter { users, ..all() });
    assert_eq!((history.of_older_jobs, history.changes.len()), (1, 0));
}

#[test]
fn every_kind_that_is_read_is_one_of_the_log() {
    for kind in tracker::KINDS.iter().chain(JobSummary::KINDS) {
        assert!(crate::store::EVENT_KINDS.contains(kind), "{kind}");
    }
}

#[test]
fn large_jobs_make_the_parts_shorter() {
    let dir = TempDir::new("changes");
    let path = dir.path().join("cell.db");
    let mut store = Store::create(&path).unwrap();
    let records: Vec<Record> = (1..=40)
        .map(|seq| Record {
            seq: EventSeq(seq),
            now: Now::default(),
            actor: user("alice"),
            request: None,
            event: Event::JobSubmitted {
                seq: SubmitSeq(seq),
                number: JobNumber(7),
                spec: Arc::new(JobSpec {
                    name: "x".repeat(1 << 20),
                    ..spec()
                }),
                waits_for: Vec::new(),
                array_waits_for: Vec::new(),
            },
        })
        .collect();
    for record in &records {
        store.append(std::slice::from_ref(record)).unwrap();
    }
    let mut question = Changes::new(path, all());
    assert_eq!(question.part(), Changes::nothing_yet());
    assert_eq!(question.after, EventSeq(16), "a part ends with 16 MiB");
    while question.part().more {}
    assert_eq!(question.after, EventSeq(40));
}

#[test]
fn of_a_submission_the_numbers_and_the_owner_are_decoded() {
    let summary: JobSummary = rmp_serde::from_slice(&proto::wire::frame::encode(&submitted())).unwrap();
    let JobSummary::JobSubmitted { seq, number, .. } = summary else {
        panic!("another kind")
    };
    assert_eq!((seq, number), (SubmitSeq(1), JobNumber(7)));
    assert!(std::mem::size_of::<JobSummary>() < 100, "there is no room for more");
}

#[test]
fn long_logs_are_read_in_parts_and_jobs_of_their_owners_are_no_changes() {
    let dir = TempDir::new("changes");
    let path = dir.path().join("cell.db");
    let events = cell_events(20_000);
    Store::create(&path).unwrap().append(&events).unwrap();
    let mut question = Changes::new(path.clone(), all());
    assert_eq!(question.part(), Changes::nothing_yet());
    let history = ask(&path, all());
    assert!(history.changes.iter().all(|change| change.owner.is_none()));
    assert!(history.changes.iter().any(|change| change.name == "all.q"));
}
