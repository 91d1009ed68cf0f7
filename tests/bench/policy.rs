//! What the ticket policies cost with many pending jobs: all priorities from nothing, and after one
//! job has ended.

use crate::clock::{median, tell};
use crate::cluster::{Shape, now, pass};
use crate::scheduling::{accept, cell, record, submission};
use master_core::event::{Event, StoredObject, TaskFate};
use master_core::sched::{ReservationMode, Scheduler};
use proto::id::TaskKey;
use proto::object::{Fields, Object, ObjectKind};
use proto::policy::SchedulerConf;
use proto::project::{Project, User};
use proto::sharetree::{Node, NodeKind, ShareTree};
use std::sync::Arc;
use std::time::Instant;

/// Users, each in one of the projects.
const USERS: u32 = 1_000;
/// Projects.
const PROJECTS: u32 = 100;
/// Hosts of eight slots.
const HOSTS: u32 = 1_000;
/// Rounds of a step that is repeated.
const ROUNDS: usize = 50;

/// Functional shares of users and projects, and a share tree of the projects with their users, for
/// growing numbers of jobs.
pub fn measure(most: u32) {
    for jobs in [10_000, 100_000, 1_000_000].into_iter().filter(|jobs| *jobs <= most) {
        measure_jobs(jobs);
    }
}

fn measure_jobs(jobs: u32) {
    let about = format!(
        "{jobs} jobs of {USERS} users in {PROJECTS} projects, {} running",
        HOSTS * 8
    );
    let mut scheduler = cell(Shape {
        hosts: HOSTS,
        attributes: 20,
        slots: 8,
    });
    configure(&mut scheduler);
    submit(&mut scheduler, jobs + HOSTS * 8);
    let begin = Instant::now();
    let orders = pass(&mut scheduler);
    let spent_us = begin.elapsed().as_secs_f64() * 1e6;
    tell(
        "policy: an order of a full pass",
        spent_us / orders.len() as f64,
        "us",
        &about,
    );
    let placed: Vec<TaskKey> = orders.into_iter().map(|order| accept(&mut scheduler, order)).collect();
    let conf = stored(
        ObjectKind::SchedulerConf,
        "",
        scheduler.model().state().config.scheduler.to_fields(),
    );
    let begin = Instant::now();
    scheduler.apply(&record(&scheduler, Event::ObjectsChanged(vec![conf])));
    let filed = begin.elapsed();
    let begin = Instant::now();
    scheduler.begin(now(2), ReservationMode::Anew);
    let priced_ms = begin.elapsed().as_secs_f64() * 1e3;
    let more = format!("{about}: filed anew in {:.0} ms before that", filed.as_secs_f64() * 1e3);
    tell("policy: all priorities from nothing", priced_ms, "ms", &more);
    while !scheduler.next(1_000).finished {}
    let mut spent_us = Vec::new();
    for key in placed.iter().step_by((placed.len() / ROUNDS).max(1)) {
        let ended = Event::TaskEnded {
            key: *key,
            record: None,
            then: TaskFate::Done,
            saved_pid: None,
            charged: None,
        };
        let begin = Instant::now();
        scheduler.apply(&record(&scheduler, ended));
        scheduler.apply(&record(&scheduler, Event::JobFinished { seq: key.seq }));
        scheduler.begin(now(2), ReservationMode::Anew);
        spent_us.push(begin.elapsed().as_secs_f64() * 1e6);
        let mut orders = Vec::new();
        loop {
            let slice = scheduler.next(1_000);
            orders.extend(slice.orders);
            if slice.finished {
                break;
            }
        }
        for order in orders {
            accept(&mut scheduler, order);
        }
    }
    tell("policy: all priorities after one end", median(spent_us), "us", &about);
}

/// Submits jobs of all users in turn.
fn submit(scheduler: &mut Scheduler, jobs: u32) {
    for number in 1..=jobs {
        let mut submitted = submission(scheduler, u64::from(number), 1);
        if let Event::JobSubmitted { spec, .. } = &mut submitted.event {
            let mut owned = (**spec).clone();
            let mut owner = (*owned.owner).clone();
            owner.user = format!("user{}", number % USERS).as_str().into();
            owned.owner = owner.into();
            owned.project = Some(format!("project{}", number % USERS % PROJECTS));
            *spec = scheduler.model().state().index.commons.shared(&Arc::new(owned));
        }
        scheduler.apply(&submitted);
    }
}

fn stored(kind: ObjectKind, name: &str, fields: Fields) -> StoredObject {
    StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    }
}

fn configure(scheduler: &mut Scheduler) {
    let mut objects = Vec::new();
    let mut conf = SchedulerConf::template().to_fields();
    for (name, value) in [
        ("weight_tickets_functional", "100000"),
        ("weight_tickets_share", "100000"),
        ("weight_ticket", "1"),
    ] {
        conf.set(name, value);
    }
    objects.push(stored(ObjectKind::SchedulerConf, "", conf));
    let mut tree = ShareTree::new();
    for n in 0..PROJECTS {
        let name = format!("project{n}");
        objects.push(stored(
            ObjectKind::Project,
            &name,
            Project {
                fshare: 100 + n,
                ..Project::template(&name)
            }
            .write(),
        ));
        let of_project = (0..USERS).filter(|user| user % PROJECTS == n);
        let children = of_project
            .map(|user| Node::leaf(&format!("user{user}"), 1 + user % 7))
            .collect();
        tree.root.children.push(Node {
            name,
            kind: NodeKind::Project,
            shares: 100 + n,
            children,
        });
    }
    for n in 0..USERS {
        let name = format!("user{n}");
        objects.push(stored(
            ObjectKind::User,
            &name,
            User {
                fshare: 100 + n,
                ..User::template(&name)
            }
            .write(),
        ));
    }
    objects.push(stored(ObjectKind::ShareTree, "", tree.write()));
    scheduler.apply(&record(scheduler, Event::ObjectsChanged(objects)));
}
