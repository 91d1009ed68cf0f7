//! Commands about many jobs, carried out some jobs at a time.

use super::cell::{owner, texts};
use super::*;
use crate::decide::jobs::{bulk_commands, select};
use crate::effect::{Effect, Input, ReplyTo};
use crate::event::{Actor, Event, Record};
use proto::id::RequestId;
use proto::job::{HoldChange, Holds, JobChanges};
use proto::wire::client::{Command, JobSelection};
use std::sync::Arc;

/// The answers to commands in the last step, and to whom.
fn answered(cell: &Cell) -> Vec<(u64, Vec<String>)> {
    let answer = |effect: &Effect| match effect {
        Effect::Reply { to, reply } => Some((to.0, texts(reply))),
        _ => None,
    };
    cell.effects.iter().filter_map(answer).collect()
}

fn hold() -> JobChanges {
    let set = Holds {
        user: true,
        operator: false,
        system: false,
    };
    let release = Holds {
        user: false,
        operator: false,
        system: false,
    };
    JobChanges {
        holds: Some(HoldChange { set, release }),
        ..JobChanges::default()
    }
}

#[test]
fn one_user_has_a_share_of_the_commands_about_many_jobs() {
    let mut cell = Cell::ready();
    for _ in 0..=bulk_commands::JOBS {
        cell.submit(job());
    }
    let all = || JobSelection {
        users: vec!["*".into()],
        ..JobSelection::default()
    };
    let mut send = |id: usize, user: &str, jobs: JobSelection| {
        let command = Box::new(Command::Alter {
            jobs,
            changes: Box::new(hold()),
        });
        let (owner, host, id) = (owner(user), "sub".into(), RequestId((1 << 90) + id as u128));
        cell.input(Input::Command {
            reply_to: ReplyTo(1),
            id,
            owner,
            host,
            entropy: [0; 32],
            command,
        });
        answered(&cell).pop().map(|(_, texts)| texts)
    };
    for id in 0..bulk_commands::COMMANDS_EACH {
        assert_eq!(send(id, "root", all()), None);
    }
    let full = send(90, "root", all()).unwrap();
    assert_eq!(
        full,
        ["8 commands of root about many jobs are being carried out already"]
    );
    assert_eq!(send(91, "u1", all()), None, "others are not kept out");
    let one = JobSelection {
        targets: vec![select::target("1").unwrap()],
        ..JobSelection::default()
    };
    assert_eq!(
        send(92, "root", one),
        Some(Vec::new()),
        "nor is what is about few: it is held already"
    );
}

/// More jobs than two parts of a command are about.
const JOBS: usize = bulk_commands::JOBS * 2 + 200;

/// Sends a command of root.
fn send(cell: &mut Cell, to: u64, id: u128, command: Command) {
    let (owner, host) = (owner("root"), "sub".into());
    let command = Box::new(command);
    cell.input(Input::Command {
        reply_to: ReplyTo(to),
        id: RequestId(id),
        owner,
        host,
        entropy: [0; 32],
        command,
    });
}

fn of_user() -> JobSelection {
    JobSelection {
        users: vec!["u1".into()],
        ..JobSelection::default()
    }
}

fn delete() -> Command {
    Command::Delete {
        jobs: of_user(),
        force: false,
    }
}

/// The owner deletes one of the jobs.
fn leave(cell: &mut Cell, job: usize) {
    assert_eq!(
        cell.qdel("u1", &[&job.to_string()]),
        [format!("u1 has deleted job {job}")]
    );
}

#[test]
fn a_command_about_many_jobs_lets_others_in_between() {
    let mut cell = Cell::ready();
    for _ in 0..JOBS {
        cell.submit(job());
    }
    send(&mut cell, 1, 1 << 90, delete());
    assert!(answered(&cell).is_empty());
    let left = JOBS - bulk_commands::JOBS;
    assert_eq!(cell.core.state().jobs.len(), left);
    assert_eq!(cell.core.next_timer(), Some(cell.now.tick), "it goes on at once");
    let (id, caller) = cell.core.bulk_command().unwrap();
    assert_eq!((id, caller.user().as_str()), (RequestId(1 << 90), "root"));
    // The newest were first: what runs is among the oldest, and its end must not let those start
    // that are to go.
    assert!(cell.core.state().jobs.keys().map(|seq| seq.0).eq(1..=left as u64));
    leave(&mut cell, 1);
    send(
        &mut cell,
        2,
        (1 << 90) + 1,
        Command::Alter {
            jobs: of_user(),
            changes: Box::new(hold()),
        },
    );
    assert!(answered(&cell).is_empty());
    leave(&mut cell, left);
    // The connection of who deletes was lost: the request comes again, and is not begun anew.
    send(&mut cell, 3, 1 << 90, delete());
    assert_eq!((answered(&cell).len(), cell.core.state().jobs.len()), (0, left - 2));
    let mut answers = Vec::new();
    while cell.core.bulk_command().is_some() {
        cell.input(Input::Tick);
        answers.extend(answered(&cell));
    }
    let said: Vec<(u64, usize)> = answers.iter().map(|(to, texts)| (*to, texts.len())).collect();
    assert_eq!(
        said,
        [(2, bulk_commands::JOBS), (3, JOBS - 2)],
        "of those that have left meanwhile nothing is said"
    );
    let deleted = (2..=JOBS)
        .filter(|job| *job != left)
        .map(|job| format!("root has deleted job {job}"));
    assert!(deleted.eq(answers[1].1.iter().cloned()), "in the order of the jobs");
    assert!(cell.core.state().jobs.is_empty());
    let by_root = cell
        .log
        .iter()
        .filter(|record| record.request == Some(RequestId(1 << 90)));
    let kinds = |record: &&Arc<Record>| matches!(record.event, Event::TasksDeleted { .. });
    assert_eq!(by_root.clone().filter(kinds).count(), JOBS - 2);
    assert!(
        by_root
            .clone()
            .all(|record| matches!(&record.actor, Actor::User { user, .. } if user.as_str() == "root"))
    );
    send(&mut cell, 4, 1 << 90, delete());
    assert_eq!(answered(&cell).len(), 1, "a repeat gets the first answer");
    cell.assert_replay_is_live();
}
