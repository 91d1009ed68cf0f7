//! Advance reservations: granted at once or refused, begun and ended by the clock, deleted with
//! their jobs.

use super::cell::{Cell, job, owner, resources, texts};
use crate::event::{Actor, Event};
use proto::id::ReservationId;
use proto::job::{JobChanges, JobSpec};
use proto::object::ObjectKind;
use proto::reservation::{ReservationSpec, ReservationState};
use proto::time::{Now, Wall};
use proto::wire::client::{Command, ModifyAction, ObjectAction, ObjectChange, Reply};

fn asked() -> ReservationSpec {
    let text = r#"{"owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    ReservationSpec {
        duration_s: Some(100),
        ..serde_json::from_str(text).unwrap()
    }
}

fn reserve(cell: &mut Cell, user: &str, spec: ReservationSpec) -> Reply {
    cell.command(user, Command::Reserve(Box::new(spec)))
}

fn qrdel(cell: &mut Cell, user: &str, targets: &[&str], users: &[&str], force: bool) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    texts(&cell.command(
        user,
        Command::DeleteReservations {
            targets: words(targets),
            users: words(users),
            force,
        },
    ))
}

fn enlist(cell: &mut Cell, entry: &str, list: &str) {
    let action = ObjectAction::Enlist {
        entry: entry.to_owned(),
    };
    let change = ObjectChange {
        kind: ObjectKind::UserSet,
        name: list.to_owned(),
        action,
    };
    cell.command("boss", Command::Objects(vec![change]));
}

/// A cell in which `u1` may reserve.
fn cell() -> Cell {
    let mut cell = Cell::ready();
    enlist(&mut cell, "u1", "arusers");
    cell
}

fn state(cell: &Cell, id: u32) -> Option<ReservationState> {
    cell.core
        .state()
        .reservations
        .get(&ReservationId(id))
        .map(|reservation| reservation.state)
}

fn within(id: u32) -> JobSpec {
    JobSpec {
        reservation: Some(ReservationId(id)),
        ..job()
    }
}

fn later(cell: &Cell, seconds: i64) -> Option<Wall> {
    Some(Wall(cell.now.wall.0 + 1000 * seconds))
}

#[test]
fn who_may_reserve_is_a_matter_of_rank_and_of_a_list() {
    let mut cell = cell();
    assert_eq!(
        texts(&reserve(&mut cell, "u2", asked())),
        ["denied: \"u2\" must be manager or in userset \"arusers\""]
    );
    for (number, user) in ["u1", "op", "boss"].into_iter().enumerate() {
        let reply = reserve(&mut cell, user, asked());
        assert!(reply.answers.is_empty(), "{reply:?}");
        let owner = &cell.core.state().reservations[&ReservationId(number as u32 + 1)]
            .spec
            .owner
            .user;
        assert_eq!(owner.as_str(), user);
    }
    cell.set_cluster(&[("max_advance_reservations", "3")]);
    let refused = texts(&reserve(&mut cell, "u1", asked()));
    assert_eq!(
        refused,
        ["advance reservation rejected: only 3 advance reservations are allowed per cluster"]
    );
}

#[test]
fn two_of_begin_end_and_duration_tell_the_time() {
    let mut cell = cell();
    let spec = |cell: &Cell, start: Option<i64>, end: Option<i64>, duration_s| ReservationSpec {
        start: start.and_then(|seconds| later(cell, seconds)),
        end: end.and_then(|seconds| later(cell, seconds)),
        duration_s,
        ..asked()
    };
    for (start, end, duration, said) in [
        (
            None,
            None,
            None,
            "missing value for \"end time or duration\" in advance reservation request",
        ),
        (
            None,
            None,
            Some(0),
            "missing value for \"end time or duration\" in advance reservation request",
        ),
        (Some(-60), None, Some(10), "start time is in the past"),
        (Some(100), Some(50), None, "start time is later than end time"),
        (
            Some(100),
            Some(150),
            Some(10),
            "difference between end and start time does not correspond to duration",
        ),
    ] {
        let spec = spec(&cell, start, end, duration);
        assert_eq!(texts(&reserve(&mut cell, "u1", spec)), [said]);
    }
    let times = [
        (None, None, Some(50), (0, 50)),
        (Some(10), Some(20), Some(10), (10, 20)),
        (None, Some(9), Some(4), (5, 9)),
    ];
    for (id, (start, end, duration, (from, until))) in (1..).zip(times) {
        let spec = spec(&cell, start, end, duration);
        assert!(reserve(&mut cell, "u1", spec).answers.is_empty());
        let known = &cell.core.state().reservations[&ReservationId(id)];
        assert_eq!(
            (Some(known.start), Some(known.end)),
            (later(&cell, from), later(&cell, until))
        );
    }
}

#[test]
fn what_cannot_be_granted_is_refused_and_verification_keeps_nothing() {
    let mut cell = cell();
    cell.set_queue(&[("slots", "1")]);
    let verified = ReservationSpec {
        verify: true,
        ..asked()
    };
    assert_eq!(
        texts(&reserve(&mut cell, "u1", verified.clone())),
        ["verification: found suitable queue(s)"]
    );
    assert!(cell.core.state().reservations.is_empty());
    for _ in 0..2 {
        assert!(reserve(&mut cell, "u1", asked()).answers.is_empty());
    }
    assert_eq!(
        texts(&reserve(&mut cell, "u1", asked())),
        ["advance_reservation: no suitable queues"]
    );
    let said = texts(&reserve(&mut cell, "u1", verified)).concat();
    assert!(said.ends_with("\nverification: no suitable queues"), "{said}");
    let mut slots = asked();
    slots.requests.hard = resources("slots=9");
    let text = "\"advance_reservation\" denied: use parallel environments instead of requesting slots explicitly";
    assert_eq!(texts(&reserve(&mut cell, "u1", slots)), [text]);
    let unknown = ReservationSpec {
        users: vec!["@nolist".to_owned()],
        ..asked()
    };
    assert_eq!(
        texts(&reserve(&mut cell, "u1", unknown)),
        ["Userset \"nolist\" does not exist"]
    );
}

#[test]
fn the_clock_begins_and_ends_a_reservation_and_its_jobs_go_with_it() {
    let mut cell = cell();
    let start = later(&cell, 10);
    reserve(&mut cell, "u1", ReservationSpec { start, ..asked() });
    let (placed, waits) = (cell.submit(within(1)), cell.submit(within(1)));
    assert_eq!(
        cell.order(placed, 1, "h1").unwrap_err(),
        "advance reservation 1 has not started"
    );
    assert_eq!(cell.core.next_timer(), Some(cell.now.tick.plus_ms(10_000)));
    cell.pass(10_000);
    assert_eq!(state(&cell, 1), Some(ReservationState::Running));
    let key = cell.run(placed, 1, "h1");
    assert!(
        cell.order(waits, 1, "h1").unwrap_err().contains("full"),
        "a reservation of one slot has one job at a time"
    );
    assert!(
        cell.order(waits, 1, "h2")
            .unwrap_err()
            .contains("was not reserved by advance reservation 1")
    );
    cell.pass(100_000);
    assert_eq!(state(&cell, 1), Some(ReservationState::Deleted));
    assert!(!cell.exists(waits) && cell.placement(placed, 1).deleting);
    cell.exit(key, "h1", 0);
    assert_eq!((cell.exists(placed), state(&cell, 1)), (false, None));
    cell.assert_replay_is_live();
}

#[test]
fn what_time_brings_is_on_record_as_done_by_nobody_else() {
    let mut cell = cell();
    reserve(&mut cell, "u1", asked());
    cell.submit(within(1));
    let before = cell.log.len();
    // The time is over when somebody says something, and no timer was there before.
    cell.now = Now {
        tick: cell.now.tick.plus_ms(200_000),
        wall: Wall(cell.now.wall.0 + 200_000),
    };
    cell.submit(job());
    let by = |event: fn(&Event) -> bool| {
        let record = cell.log[before..].iter().find(|record| event(&record.event)).unwrap();
        (record.actor.clone(), record.request.is_some())
    };
    assert_eq!(
        by(|event| matches!(event, Event::TasksDeleted { .. })),
        (Actor::Master, false)
    );
    assert!(matches!(
        by(|event| matches!(event, Event::JobSubmitted { .. })),
        (Actor::User { .. }, true)
    ));
}

#[test]
fn what_is_reserved_now_is_refused_to_others() {
    let mut cell = cell();
    cell.set_queue(&[("slots", "1")]);
    reserve(&mut cell, "u1", asked());
    let host = cell.core.state().reservations[&ReservationId(1)].granted[0]
        .instance
        .host
        .to_string();
    let number = cell.submit(job());
    assert!(cell.order(number, 1, &host).unwrap_err().contains("full"));
    qrdel(&mut cell, "u1", &["1"], &[], false);
    cell.order(number, 1, &host).unwrap();
}

#[test]
fn only_whom_the_reservation_names_may_use_it_and_not_for_longer() {
    let mut cell = cell();
    enlist(&mut cell, "u3", "friends");
    let users = vec!["u2".to_owned(), "@friends".to_owned()];
    reserve(&mut cell, "u1", ReservationSpec { users, ..asked() });
    for (user, may) in [("u1", true), ("u2", true), ("u3", true), ("u4", false), ("op", false)] {
        let said = cell.try_submit(JobSpec {
            owner: owner(user).into(),
            ..within(1)
        });
        assert_eq!(said.is_ok(), may, "{user}: {said:?}");
    }
    assert_eq!(
        cell.try_submit(within(9)).unwrap_err(),
        "the advance reservation id 9 is invalid"
    );
    let mut long = within(1);
    long.requests.hard = resources("h_rt=101");
    let said = cell.try_submit(long.clone()).unwrap_err();
    assert_eq!(
        said,
        "the job duration is longer than duration of the advance reservation id 1"
    );
    long.requests.hard = resources("h_rt=100");
    cell.submit(long);
}

#[test]
fn deleting_needs_the_owner_and_ends_what_runs() {
    let mut cell = cell();
    enlist(&mut cell, "u2", "arusers");
    for name in ["one", "other"] {
        reserve(
            &mut cell,
            "u1",
            ReservationSpec {
                name: name.to_owned(),
                ..asked()
            },
        );
    }
    assert_eq!(
        qrdel(&mut cell, "u2", &["1"], &[], false),
        ["u2 - you do not have the necessary privileges to delete the advance_reservation \"1\""]
    );
    let unknown = qrdel(&mut cell, "u1", &["9", "nope"], &[], false);
    let does_not_exist = |name: &str| format!("denied: advance_reservation \"{name}\" does not exist");
    assert_eq!(unknown, [does_not_exist("9"), does_not_exist("nope")]);
    let number = cell.submit(within(1));
    let host = cell.core.state().reservations[&ReservationId(1)].granted[0]
        .instance
        .host
        .to_string();
    cell.run(number, 1, &host);
    assert_eq!(
        qrdel(&mut cell, "u1", &[], &["u1"], false),
        [
            "u1 has registered the advance_reservation 1 for deletion",
            "u1 has deleted advance_reservation 2"
        ]
    );
    assert_eq!(
        cell.try_submit(within(1)).unwrap_err(),
        "the advance reservation id 1 is invalid"
    );
    assert_eq!(
        qrdel(&mut cell, "boss", &["one"], &[], true),
        ["boss has deleted advance_reservation 1"]
    );
    assert!(!cell.exists(number));
    assert_eq!(
        qrdel(&mut cell, "boss", &[], &["u1"], false),
        ["There is no advance_reservation registered for the following users: u1"]
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_strict_reservation_lets_its_jobs_wait_while_a_queue_fails() {
    let mut cell = cell();
    reserve(
        &mut cell,
        "u1",
        ReservationSpec {
            hard_error: true,
            ..asked()
        },
    );
    let instance = cell.core.state().reservations[&ReservationId(1)].granted[0]
        .instance
        .clone();
    let number = cell.submit(within(1));
    cell.qmod("op", ModifyAction::DisableQueue, &instance.to_string());
    let refused = cell.order(number, 1, instance.host.as_str()).unwrap_err();
    assert!(refused.contains("-he y"), "{refused}");
    cell.qmod("op", ModifyAction::EnableQueue, &instance.to_string());
    cell.order(number, 1, instance.host.as_str()).unwrap();
}

#[test]
fn a_job_that_waits_moves_to_another_reservation_or_out() {
    let mut cell = cell();
    reserve(&mut cell, "u1", asked());
    let number = cell.submit(within(1));
    let mut alter = |id: u32| {
        let changes = JobChanges {
            reservation: Some(ReservationId(id)),
            ..JobChanges::default()
        };
        let jobs = super::cell::selection(&[&number.to_string()]);
        texts(&cell.command(
            "u1",
            Command::Alter {
                jobs,
                changes: Box::new(changes),
            },
        ))
    };
    assert_eq!(alter(0), ["u1@sub sets job advance reservation of job 1 to 0"]);
    assert_eq!(alter(9), ["the advance reservation id 9 is invalid"]);
    assert_eq!(alter(1), ["u1@sub sets job advance reservation of job 1 to 1"]);
    let host = cell.core.state().reservations[&ReservationId(1)].granted[0]
        .instance
        .host
        .to_string();
    cell.run(number, 1, &host);
    let changes = JobChanges {
        reservation: Some(ReservationId(0)),
        ..JobChanges::default()
    };
    let jobs = super::cell::selection(&[&number.to_string()]);
    let said = texts(&cell.command(
        "u1",
        Command::Alter {
            jobs,
            changes: Box::new(changes),
        },
    ));
    assert_eq!(said, ["job 1 can't modify running jobs"]);
}
