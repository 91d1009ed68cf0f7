use super::*;
use crate::testing::{self, cell_events, ended_task, key, spec};
use master_core::event::{Actor, Event, Record, TaskFate};
use proto::id::{EventSeq, UserName};
use proto::job::{HoldChange, Holds, JobSpec};
use proto::request::{TaskRange, TaskSet};
use proto::time::{Now, Tick, Wall};
use proto::wire::client::{HoldFilter, JobStates};
use proto::wire::view::PendingTasks;
use std::sync::Arc;

/// A model of a cell in which jobs are submitted, run and leave as a test says it.
struct ModelCell(Model);

impl ModelCell {
    fn new() -> Self {
        Self(testing::model(&cell_events(0)))
    }

    fn happens(&mut self, event: Event) {
        let seq = EventSeq(self.0.state.last.0 + 1);
        let now = Now {
            tick: Tick(seq.0 * 10),
            wall: Wall(1_800_000_000_000 + seq.0.cast_signed() * 10),
        };
        self.0.apply(&Record {
            seq,
            now,
            actor: Actor::Master,
            request: None,
            event,
        });
    }

    fn submit(&mut self, job: u64, change: impl FnOnce(&mut JobSpec)) {
        let mut spec = JobSpec {
            name: format!("job{job}"),
            ..spec()
        };
        change(&mut spec);
        let number = JobNumber(u32::try_from(job).unwrap());
        let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
        self.happens(Event::JobSubmitted {
            seq: SubmitSeq(job),
            number,
            spec: Arc::new(spec),
            waits_for,
            array_waits_for,
        });
    }

    /// A job runs and leaves.
    fn run(&mut self, job: u64) {
        let key = key(job, 1);
        self.happens(Event::TaskPlaced {
            key,
            granted: testing::granted(),
            pe: None,
            maps: Vec::new(),
            binding: Vec::new(),
        });
        self.happens(Event::TaskStarted { key, at: Wall(0) });
        self.happens(ended_task(0, job, 1).event);
        self.happens(Event::JobFinished { seq: SubmitSeq(job) });
    }

    /// The next part, which has no more time than it takes to look at the clock once.
    fn part(&self, walk: Walk) -> (Vec<Reply>, Option<Walk>) {
        walk.step(&self.0, Instant::now())
    }

    /// All parts of a walk, and what happens between them.
    fn walk(&mut self, walk: Walk, mut meanwhile: impl FnMut(&mut Self, usize)) -> Vec<Vec<Reply>> {
        let (mut parts, mut rest) = (Vec::new(), Some(walk));
        while let Some(walk) = rest.take() {
            let (replies, next) = self.part(walk);
            assert!(
                replies.iter().all(|reply| reply.more || next.is_none()),
                "only the last is without more"
            );
            parts.push(replies);
            rest = next;
            meanwhile(self, parts.len());
        }
        assert!(!parts.last().and_then(|last| last.last()).unwrap().more);
        parts
    }
}

fn nobody(model: &Model) -> Viewer {
    Viewer::new(model, None, "login".into())
}

fn all() -> JobFilter {
    let states = JobStates {
        pending: true,
        running: true,
        suspended: true,
        finished: true,
        ..Default::default()
    };
    JobFilter {
        states,
        ..JobFilter::default()
    }
}

fn told(replies: &[Reply]) -> Vec<u32> {
    let of = |reply: &Reply| match &reply.data {
        Some(Data::Jobs(rows)) => rows.iter().map(|row| row.number.0).collect(),
        Some(Data::JobDetails(found)) => found.iter().map(|detail| detail.row.number.0).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    replies.iter().flat_map(of).collect()
}

#[test]
fn each_job_is_told_once_whatever_happens_while_others_are() {
    let mut cell = ModelCell::new();
    (1..=100).for_each(|job| cell.submit(job, |_| ()));
    cell.run(3);
    let walk = Walk::rows(&cell.0, &all()).ok().unwrap();
    let parts = cell.walk(walk, |cell, parts| {
        if parts == 2 {
            // One that was told, one that comes, and one that is new.
            [10, 90].into_iter().for_each(|job| cell.run(job));
            cell.submit(101, |_| ());
        }
    });
    assert!(parts.len() > 4, "{} parts of {JOBS} jobs", parts.len());
    let mut jobs: Vec<u32> = parts.iter().flat_map(|part| told(part)).collect();
    assert_eq!(
        jobs.iter().position(|job| *job == 90),
        Some(32 + 16 + 1),
        "with the part after it has left"
    );
    jobs.sort_unstable();
    assert_eq!(jobs, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn tasks_in_one_condition_are_one_group_whatever_their_errors_say() {
    let mut cell = ModelCell::new();
    cell.submit(1, |spec| spec.array = TaskRange::parse("1-6").ok());
    for task in [2, 4, 5] {
        let key = key(1, task);
        cell.happens(Event::TaskPlaced {
            key,
            granted: testing::granted(),
            pe: None,
            maps: Vec::new(),
            binding: Vec::new(),
        });
        let then = TaskFate::Error {
            reason: format!("11/26/2026 05:20:0{task} [58001:{task}]: no such file"),
        };
        let ended = Event::TaskEnded {
            key,
            record: None,
            then,
            saved_pid: None,
            charged: None,
        };
        cell.happens(ended);
    }
    let (replies, _) = cell.part(Walk::rows(&cell.0, &all()).ok().unwrap());
    let Some(Data::Jobs(rows)) = &replies[0].data else {
        panic!()
    };
    let shown = |group: &PendingTasks| {
        let tasks: TaskSet = group.tasks.iter().flat_map(|range| range.iter()).collect();
        (group.condition.letters(), tasks.to_string(), group.since)
    };
    let submitted = rows[0].submitted;
    let groups: Vec<_> = rows[0].pending.iter().map(shown).collect();
    let expected = [("qw", "1,3,6"), ("Eqw", "2,4,5")];
    assert_eq!(
        groups,
        expected.map(|(state, tasks)| (state.to_owned(), tasks.to_owned(), submitted))
    );
}

#[test]
fn a_part_in_which_nothing_is_told_is_no_reply() {
    let mut cell = ModelCell::new();
    let bob = |spec: &mut JobSpec| spec.owner.user = UserName::from("bob");
    (1..=100).for_each(|job| {
        if job == 50 {
            cell.submit(job, bob)
        } else {
            cell.submit(job, |_| ())
        }
    });
    for (user, jobs) in [("bob", vec![50]), ("carol", vec![])] {
        let filter = JobFilter {
            users: vec![user.to_owned()],
            ..all()
        };
        let walk = Walk::rows(&cell.0, &filter).ok().unwrap();
        let parts = cell.walk(walk, |_, _| ());
        let replies = parts.iter().map(Vec::len).sum::<usize>();
        assert_eq!((told(&parts.concat()), replies), (jobs.clone(), jobs.len() + 1));
    }
}

#[test]
fn held_tasks_on_hosts_are_shown_with_their_hold_whatever_their_state() {
    let mut cell = ModelCell::new();
    (1..=3).for_each(|job| cell.submit(job, |_| ()));
    for job in [1, 2] {
        let (key, maps) = (key(job, 1), Vec::new());
        cell.happens(Event::TaskPlaced {
            key,
            granted: testing::granted(),
            pe: None,
            maps,
            binding: Vec::new(),
        });
        cell.happens(Event::TaskStarted { key, at: Wall(0) });
    }
    let change = HoldChange {
        set: Holds {
            user: true,
            ..Holds::default()
        },
        ..HoldChange::default()
    };
    cell.happens(Event::HoldsChanged {
        seq: SubmitSeq(1),
        tasks: vec![TaskRange::new(1, 1, 1).unwrap()],
        change,
    });
    let [none, user, system] = [(false, false), (true, false), (false, true)].map(|(user, system)| HoldFilter {
        user,
        system,
        ..HoldFilter::default()
    });
    for (pending, running, held_on_hosts, expected) in [
        (false, false, none, vec![]),
        (false, false, user, vec![1]),
        (false, false, system, vec![]),
        (false, true, system, vec![1, 2]),
        (true, false, user, vec![1, 3]),
    ] {
        let states = JobStates {
            pending,
            running,
            suspended: false,
            held_on_hosts,
            ..JobStates::default()
        };
        let filter = JobFilter {
            states,
            ..JobFilter::default()
        };
        let walk = Walk::rows(&cell.0, &filter).ok().unwrap();
        assert_eq!(told(&cell.walk(walk, |_, _| ()).concat()), expected, "{states:?}");
    }
}

#[test]
fn jobs_that_are_named_by_number_are_all_that_is_looked_at() {
    let mut cell = ModelCell::new();
    (1..=100).for_each(|job| cell.submit(job, |_| ()));
    let targets = ["70", "3", "999", "3"].map(str::to_owned).to_vec();
    let walk = Walk::details(&cell.0, targets, nobody(&cell.0));
    let parts = cell.walk(walk, |_, _| ());
    assert_eq!(
        (told(&parts.concat()), parts.len()),
        (vec![3, 70], 3),
        "a look at the clock after each"
    );
    assert_eq!(parts.concat().last().unwrap().answers, [refuse("999")]);
    let (replies, rest) = cell.part(Walk::details(
        &cell.0,
        vec!["job7?".to_owned(), "nosuch".to_owned()],
        nobody(&cell.0),
    ));
    assert!(replies.is_empty(), "none of the first has such a name");
    let parts = cell.walk(rest.unwrap(), |_, _| ());
    assert_eq!(told(&parts.concat()), (70..80).collect::<Vec<u32>>());
    assert_eq!(parts.concat().last().unwrap().answers, [refuse("nosuch")]);
    let filter = JobFilter {
        jobs: vec!["12".to_owned()],
        ..all()
    };
    let (replies, rest) = cell.part(Walk::rows(&cell.0, &filter).ok().unwrap());
    assert_eq!((told(&replies), rest.is_none()), (vec![12], true));
}

#[test]
fn lines_are_told_once_for_all_jobs_that_have_them() {
    let mut cell = ModelCell::new();
    let held = |spec: &mut JobSpec| {
        spec.holds = Holds {
            user: true,
            ..Holds::default()
        }
    };
    (1..=40).for_each(|job| {
        if job % 10 == 0 {
            cell.submit(job, held)
        } else {
            cell.submit(job, |_| ())
        }
    });
    let walk = Walk::reasons(&cell.0);
    let parts = cell.walk(walk, |_, _| ()).concat();
    let waiting = parts.iter().flat_map(|part| match &part.data {
        Some(Data::Reasons(waiting)) => waiting.clone(),
        other => panic!("{other:?}"),
    });
    let (of_all, of_jobs): (Vec<SchedulingLines>, Vec<SchedulingLines>) =
        waiting.partition(|waiting| waiting.jobs.is_empty());
    assert_eq!(of_all.len(), 1, "in the first part: {of_all:?}");
    assert!(of_all[0].lines.concat().contains("all.q@node1"), "{of_all:?}");
    let held = of_jobs
        .iter()
        .filter(|waiting| waiting.lines.concat().contains("hold state"));
    assert_eq!(
        held.flat_map(|waiting| &waiting.jobs)
            .map(|job| job.0)
            .collect::<Vec<_>>(),
        [10, 20, 30, 40]
    );
}

#[test]
fn the_place_of_a_job_counts_all_others_part_by_part() {
    let mut cell = ModelCell::new();
    (1..=100).for_each(|job| cell.submit(job, |_| ()));
    let walk = Walk::explanation(&cell.0, JobNumber(60), &[]).unwrap();
    let parts = cell.walk(walk, |_, _| ());
    assert!(parts.len() > 4 && parts[..parts.len() - 1].iter().all(Vec::is_empty));
    let Some(Data::Explanation(explanation)) = &parts.concat()[0].data else {
        panic!()
    };
    let order = explanation.order.as_ref().unwrap();
    assert_eq!((order.place, order.of), (Some(60), 100));
    assert!(
        Walk::explanation(&cell.0, JobNumber(101), &[])
            .is_err_and(|reply| reply.answers.iter().any(Answer::is_refusal))
    );
}
