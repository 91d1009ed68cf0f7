//! What the scheduler needs for many jobs on many hosts: no daemon, no disk, no network. What is
//! judged is the time of an order beside that of a loop over all hosts, taken in the same run.

use crate::clock::{median, tell};
use crate::cluster::{Shape, hello, load_average, now, pass, place, report, take};
use master_core::core::Core;
use master_core::effect::Input;
use master_core::event::{Actor, Event, Record, TaskFate};
use master_core::sched::Scheduler;
use proto::id::{CellId, EventSeq, JobNumber, SubmitSeq, TaskKey};
use proto::job::JobSpec;
use proto::request::ResourceList;
use proto::time::Zone;
use proto::wire::stream::Order;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Columns of the loop that is the measure.
const COLUMNS: usize = 16;
/// Rounds of a step that is repeated.
const ROUNDS: usize = 200;
/// Full passes of which the median is told.
const PASSES: usize = 7;

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Hosts, each with eight slots.
    pub hosts: u32,
    /// Pending jobs.
    pub jobs: u32,
    /// Different ones among them.
    pub categories: u32,
}

/// A full pass from nothing, and then passes after one job has ended.
pub fn measure(size: Size) {
    let Size {
        hosts,
        jobs,
        categories,
    } = size;
    let about = format!("{hosts} hosts, {jobs} jobs, {categories} categories");
    let mut scheduler = cell(Shape {
        hosts,
        attributes: 20,
        slots: 8,
    });
    let mut others = [scheduler.model().state().clone(), scheduler.model().state().clone()];
    let before = resident_bytes();
    let mut filing = Duration::ZERO;
    for number in 1..=jobs {
        let record = submission(&scheduler, u64::from(number), number % categories);
        // The core and the query side keep what the scheduler keeps.
        others.iter_mut().for_each(|state| drop(state.apply(&record)));
        let begin = Instant::now();
        scheduler.apply(&record);
        filing += begin.elapsed();
    }
    tell(
        "scheduling: a job filed",
        filing.as_secs_f64() * 1e6 / f64::from(jobs),
        "us",
        &about,
    );
    let each = resident_bytes().saturating_sub(before) as f64 / f64::from(jobs);
    tell("scheduling: a pending job kept, all three", each, "bytes", &about);
    let orders = full_pass("an order", &mut scheduler, size);
    let begin = Instant::now();
    let placed: Vec<TaskKey> = orders.into_iter().map(|order| accept(&mut scheduler, order)).collect();
    tell(
        "scheduling: an order accepted",
        begin.elapsed().as_secs_f64() * 1e6 / placed.len() as f64,
        "us",
        &about,
    );
    assert!(pass(&mut scheduler).is_empty(), "nothing is free");
    steady(&mut scheduler, &placed, hosts, &about);
    let images = (0..PASSES).map(|_| {
        let begin = Instant::now();
        let image = black_box(scheduler.model().state().image());
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        drop(image);
        took_ms
    });
    tell(
        "scheduling: an image of the state, for a snapshot",
        median(images.collect()),
        "ms",
        &about,
    );
    drop((scheduler, others));
    with_adjusted_load(size);
}

fn with_adjusted_load(size: Size) {
    let Size {
        hosts,
        jobs,
        categories,
    } = size;
    let mut scheduler = cell_with(
        Shape {
            hosts,
            attributes: 20,
            slots: 8,
        },
        |n| Some(load_average(n, 2)),
    );
    for number in 1..=jobs.min(hosts * 8) {
        let record = submission(&scheduler, u64::from(number), number % categories);
        scheduler.apply(&record);
    }
    full_pass("an order, with adjusted load", &mut scheduler, size);
}

/// What some work comes to, and the microseconds of the loop right before and right after it, for
/// machines change their pace from one second to the next.
fn beside<T>(hosts: u32, work: impl FnOnce() -> T) -> (T, f64) {
    let before_us = floor(hosts);
    let done = work();
    let after_us = floor(hosts);
    let about = format!("{hosts} hosts; before {before_us:.1}, after {after_us:.1}");
    let mean_us = (before_us + after_us) / 2.0;
    tell("scheduling: 16 columns of all hosts read once", mean_us, "us", &about);
    (done, mean_us)
}

/// Passes over free hosts, one after the other: of copies, and at last of the scheduler itself.
fn full_pass(what: &str, scheduler: &mut Scheduler, size: Size) -> Vec<Order> {
    let mut passes: Vec<(f64, f64)> = (1..PASSES).map(|_| one_pass(&mut scheduler.clone(), size).1).collect();
    let (orders, last) = one_pass(scheduler, size);
    passes.push(last);
    let Size {
        hosts,
        jobs,
        categories,
    } = size;
    let (count, each_us) = (
        orders.len(),
        median(passes.iter().map(|(each_us, _)| *each_us).collect()),
    );
    let loops = median(passes.iter().map(|(_, loops)| *loops).collect());
    let all: Vec<String> = passes.iter().map(|(_, loops)| format!("{loops:.3}")).collect();
    let about = format!("{hosts} hosts, {jobs} jobs, {categories} categories: {count} orders in a pass");
    let more = format!("{about}; {loops:.3} of a loop each, of {}", all.join(" "));
    tell(&format!("scheduling: a full pass, {what}"), each_us, "us", &more);
    orders
}

/// One of them, with the microseconds and the loops that an order took.
fn one_pass(scheduler: &mut Scheduler, Size { hosts, jobs, .. }: Size) -> (Vec<Order>, (f64, f64)) {
    let ((orders, spent_us), floor_us) = beside(hosts, || {
        let begin = Instant::now();
        let orders = pass(scheduler);
        (orders, begin.elapsed().as_secs_f64() * 1e6)
    });
    assert_eq!(orders.len(), jobs.min(hosts * 8) as usize, "every slot is given away");
    let each_us = spent_us / orders.len() as f64;
    (orders, (each_us, each_us / floor_us))
}

/// One job ends, one starts.
fn steady(scheduler: &mut Scheduler, placed: &[TaskKey], hosts: u32, about: &str) {
    let (mut ending, mut passing) = (Vec::new(), Vec::new());
    let ((), floor_us) = beside(hosts, || {
        for key in placed.iter().step_by((placed.len() / ROUNDS).max(1)) {
            let begin = Instant::now();
            let ended = Event::TaskEnded {
                key: *key,
                record: None,
                then: TaskFate::Done,
                saved_pid: None,
                charged: None,
            };
            scheduler.apply(&record(scheduler, ended));
            scheduler.apply(&record(scheduler, Event::JobFinished { seq: key.seq }));
            ending.push(begin.elapsed().as_secs_f64() * 1e6);
            let begin = Instant::now();
            let mut orders = pass(scheduler);
            passing.push(begin.elapsed().as_secs_f64() * 1e6);
            assert_eq!(orders.len(), 1, "the free slot is given away");
            accept(scheduler, orders.remove(0));
        }
    });
    let (ended, passed) = (median(ending), median(passing));
    let more = format!(
        "{about}: end {ended:.1}, pass {passed:.1}; {:.2} of a loop",
        (ended + passed) / floor_us
    );
    tell("scheduling: one ends, one starts", ended + passed, "us", &more);
}

/// Microseconds to read columns of all hosts once: a loop that asks of each host whether it has
/// enough of everything.
fn floor(hosts: u32) -> f64 {
    // One behind the other: where each begins at the same place of a page, they push each other out
    // of the cache.
    let values: Vec<i64> = (0..COLUMNS * hosts as usize).map(|at| at as i64).collect();
    let columns: [&[i64]; COLUMNS] =
        std::array::from_fn(|column| black_box(&values[column * hosts as usize..][..hosts as usize]));
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let need = black_box(-(round as i64));
        let begin = Instant::now();
        let fits = (0..hosts as usize)
            .filter(|host| columns.iter().all(|column| column[*host] >= need))
            .count();
        assert_eq!(black_box(fits), hosts as usize);
        figures.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    median(figures)
}

/// A cell of which every host has reported.
pub fn cell(shape: Shape) -> Scheduler {
    cell_with(shape, |_| None)
}

/// The same where hosts report something more.
fn cell_with(shape: Shape, more: impl Fn(u32) -> Option<Input>) -> Scheduler {
    let hosts = shape.hosts;
    let (mut core, _) = Core::create(CellId(1), shape.objects(), now(1));
    assert_eq!(
        core.state().config.resolved.len(),
        hosts as usize,
        "one queue on every host"
    );
    let mut scheduler = Scheduler::new(core.state().clone(), Zone::utc());
    for n in 1..=hosts {
        take(&mut scheduler, core.handle(hello(n), now(1)).effects);
        take(&mut scheduler, core.handle(report(n, 1, (20, 20), 50), now(1)).effects);
        if let Some(more) = more(n) {
            take(&mut scheduler, core.handle(more, now(1)).effects);
        }
    }
    scheduler
}

/// A job of a category: five requests, all of which every host can serve while it has a slot left,
/// and 20 variables.
pub fn submission(scheduler: &Scheduler, number: u64, category: u32) -> Record {
    let text = r#"{"name": "job", "program": {"command": {"command": "sleep"}}, "submit_host": "a",
        "owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    let mut spec: JobSpec = serde_json::from_str(text).expect("a specification");
    spec.name = format!("job{number}");
    let directory = |n: u64| format!("/home/u1/project/run{n}");
    spec.environment = (0..20)
        .map(|n| (format!("VARIABLE_{n}"), directory(n)))
        .collect::<Vec<_>>()
        .into();
    spec.submit_directory = directory(number % 100);
    let request = format!(
        "h_rt={},set3={},set11=1,load2=1,load7=2",
        60 + category,
        1 + category % 10
    );
    spec.requests.hard = ResourceList::parse(&request).expect("requests").into();
    let seq = SubmitSeq(number);
    let number = JobNumber(u32::try_from(number).expect("few jobs"));
    let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
    // As the core does.
    let spec = scheduler.model().state().index.commons.shared(&Arc::new(spec));
    record(
        scheduler,
        Event::JobSubmitted {
            seq,
            number,
            spec,
            waits_for,
            array_waits_for,
        },
    )
}

/// The memory of this process.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc is mounted");
    let pages: usize = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("statm has numbers");
    pages * 4096
}

/// The next record of the stream.
pub fn record(scheduler: &Scheduler, event: Event) -> Record {
    let seq = EventSeq(scheduler.model().state().last.0 + 1);
    Record {
        seq,
        now: now(2),
        actor: Actor::Master,
        request: None,
        event,
    }
}

/// What the core says of an order that it follows.
pub fn accept(scheduler: &mut Scheduler, order: Order) -> TaskKey {
    let Order::Start { seq, task, granted, pe } = order else {
        panic!("an order that starts nothing: {order:?}")
    };
    let key = place(seq, task);
    let record = record(
        scheduler,
        Event::TaskPlaced {
            key,
            granted,
            pe,
            maps: Vec::new(),
            binding: Vec::new(),
        },
    );
    scheduler.apply(&record);
    key
}
