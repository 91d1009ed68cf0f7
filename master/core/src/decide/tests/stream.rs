//! The event stream: whoever folds the full state and what follows knows the same as whoever has
//! followed from the first event.

use super::cell::{Cell, array, job, selection};
use crate::stream;
use proto::id::{EventSeq, SubmitSeq, TaskId};
use proto::job::{HoldChange, Holds, JobChanges, Program};
use proto::object::ObjectKind;
use proto::request::TaskRange;
use proto::wire::client::{Command, ModifyAction};
use proto::wire::stream::{Change, Item, TaskFate};
use std::collections::BTreeMap;

/// What a reader keeps of a task: its place, its state in words, its holds.
type TaskStates = BTreeMap<(SubmitSeq, TaskId), (String, Holds)>;

/// A reader that knows nothing but the public stream.
#[derive(Debug, Default, PartialEq)]
struct Mirror {
    tasks: TaskStates,
    instances: BTreeMap<String, Change>,
    objects: BTreeMap<(ObjectKind, String), proto::object::Fields>,
}

impl Mirror {
    fn from_items(items: impl IntoIterator<Item = Item>) -> Mirror {
        let mut mirror = Mirror::default();
        items.into_iter().for_each(|item| mirror.take(item.change));
        mirror.instances.retain(|_, change| !is_open(change));
        mirror
    }

    fn each(&mut self, job: SubmitSeq, ranges: &[TaskRange], act: impl Fn(&mut (String, Holds))) {
        let tasks = self
            .tasks
            .iter_mut()
            .filter(|((of, task), _)| *of == job && ranges.iter().any(|r| r.contains(*task)));
        tasks.for_each(|(_, known)| act(known));
    }

    fn task(&mut self, key: proto::id::TaskKey) -> &mut String {
        &mut self
            .tasks
            .get_mut(&(key.seq, key.task))
            .expect("it was told of before")
            .0
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::JobAdded { job } => {
                assert!(!matches!(&job.spec.program, Program::Script { content, .. } if !content.is_empty()));
                let tasks = job.tasks.iter().flat_map(|range| range.iter());
                self.tasks
                    .extend(tasks.map(|task| ((job.seq, task), ("pending".to_owned(), job.spec.holds))));
            }
            Change::HoldsChanged {
                job,
                tasks,
                set,
                release,
            } => self.each(job, &tasks, |(_, holds)| {
                *holds = crate::state::job::changed_holds(*holds, HoldChange { set, release });
            }),
            Change::TasksFailed { job, tasks, .. } => self.each(job, &tasks, |known| known.0 = "error".to_owned()),
            Change::ErrorCleared { job, tasks } => self.each(job, &tasks, |known| known.0 = "pending".to_owned()),
            Change::TasksDeleted { job, tasks } => {
                self.tasks
                    .retain(|(of, task), _| *of != job || !tasks.iter().any(|range| range.contains(*task)));
            }
            Change::TaskPlaced { task, granted, .. } => {
                *self.task(task) = format!("{} on {}", task.attempt, granted[0].instance);
            }
            Change::TaskStarted { task } => self.task(task).push_str(" started"),
            Change::TaskSuspended {
                task,
                cause,
                suspended: true,
            } => self.task(task).push_str(&format!(" {cause:?}")),
            Change::TaskEnded { task, then, .. } => match then {
                TaskFate::Done => drop(self.tasks.remove(&(task.seq, task.task))),
                TaskFate::Pending => *self.task(task) = "pending".to_owned(),
                TaskFate::Error { .. } => *self.task(task) = "error".to_owned(),
            },
            Change::TaskEnding { task, again } => self.task(task).push_str(&format!(" ending {again}")),
            Change::InstanceChanged { ref instance, .. } => drop(self.instances.insert(instance.to_string(), change)),
            Change::ObjectsChanged { objects } => {
                for object in objects {
                    let key = (object.kind, object.name);
                    match object.fields {
                        Some(fields) => drop(self.objects.insert(key, fields)),
                        None => drop(self.objects.remove(&key)),
                    }
                }
            }
            Change::JobFinished { job } => assert!(self.tasks.keys().all(|(of, _)| *of != job)),
            Change::JobChanged { .. } | Change::TaskSuspended { .. } | Change::Other { .. } => {}
            Change::Instances { .. } | Change::Contact { .. } | Change::Load { .. } => panic!("no event"),
            Change::PassWanted {} | Change::Complete {} => panic!("no event"),
        }
    }
}

fn is_open(change: &Change) -> bool {
    matches!(change, Change::InstanceChanged { disabled: false, suspended: false, errors, .. } if errors.is_empty())
}

fn eventful() -> Cell {
    let mut cell = Cell::ready();
    let (one, many) = (cell.submit(job()), cell.submit(array("1-20:2")));
    let held = cell.submit(array("1-3:1"));
    cell.run(one, 1, "h1");
    let first = cell.run(many, 1, "h2");
    let second = cell.run(many, 3, "h2");
    cell.order(many, 5, "h1").unwrap();
    cell.exit(first, "h2", 0);
    cell.exit(second, "h2", 99);
    let failing = cell.run(many, 7, "h1");
    cell.exit(failing, "h1", 100);
    cell.qdel("u1", &[&format!("{many}.19")]);
    let set = Holds {
        user: true,
        ..Holds::default()
    };
    let changes = JobChanges {
        holds: Some(HoldChange {
            set,
            release: Holds::default(),
        }),
        ..JobChanges::default()
    };
    let jobs = selection(&[&format!("{held}.2")]);
    cell.command(
        "u1",
        Command::Alter {
            jobs,
            changes: Box::new(changes),
        },
    );
    cell.qmod("boss", ModifyAction::SuspendJob, &one.to_string());
    cell.qmod("boss", ModifyAction::DisableQueue, "all.q@h2");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    cell.qmod("boss", ModifyAction::UnsuspendQueue, "all.q@h1");
    let gone = cell.submit(job());
    cell.qdel("u1", &[&gone.to_string()]);
    cell.assert_replay_is_live();
    cell
}

#[test]
fn the_full_state_tells_the_same_as_all_events() {
    let cell = eventful();
    let events = Mirror::from_items(cell.log.iter().map(|record| stream::item(record, None)));
    let mut full = Mirror::from_items(stream::full(cell.core.state()));
    assert_eq!((&full.tasks, &full.instances), (&events.tasks, &events.instances));
    assert!(events.tasks.values().any(|(state, _)| state == "error"), "{events:?}");
    assert!(events.tasks.values().any(|(_, holds)| holds.user), "{events:?}");
    // The full state tells of shipped objects too, of which no event is.
    full.objects.retain(|key, _| events.objects.contains_key(key));
    assert_eq!(full.objects, events.objects);
}

#[test]
fn events_are_numbered_without_gaps_and_the_full_state_is_as_of_the_last() {
    let cell = eventful();
    let numbers: Vec<u64> = cell.log.iter().map(|record| stream::item(record, None).seq.0).collect();
    assert_eq!(numbers, (1..=cell.log.len() as u64).collect::<Vec<_>>());
    let last = EventSeq(cell.log.len() as u64);
    assert!(stream::full(cell.core.state()).all(|item| item.seq == last));
}

#[test]
fn every_kind_has_the_name_that_serde_writes() {
    for change in [
        Change::PassWanted {},
        Change::Complete {},
        Change::Other { what: "x".to_owned() },
    ] {
        let written = serde_json::to_value(&change).unwrap();
        assert_eq!(written.as_object().unwrap().keys().next().unwrap(), change.kind());
        assert!(Change::KINDS.contains(&change.kind()));
    }
}

#[test]
fn soft_facts_name_hosts_with_their_queue_instances() {
    let cell = eventful();
    let facts = stream::soft_facts(cell.core.state(), cell.core.observations());
    let slots = |host: &str| {
        facts.iter().find_map(|fact| match fact {
            Change::Instances { host: of, instances } if of.as_str() == host => Some(instances[0].slots),
            _ => None,
        })
    };
    assert_eq!((slots("h1"), slots("h2")), (Some(4), Some(4)));
    assert!(
        facts
            .iter()
            .any(|fact| matches!(fact, Change::Contact { host, connected: true } if host.as_str() == "h1"))
    );
}
