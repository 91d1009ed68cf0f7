//! What it costs to keep slots for jobs that cannot start yet: no daemon, no disk, no network.

use crate::clock::tell;
use crate::cluster::{Shape, pass};
use crate::scheduling::{accept, cell, record, submission};
use master_core::event::{Event, StoredObject};
use master_core::sched::Scheduler;
use proto::id::{JobNumber, SubmitSeq};
use proto::job::{JobSpec, PeRequest};
use proto::object::{Fields, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::request::{ResourceList, SlotRange};
use std::sync::Arc;
use std::time::Instant;

/// Jobs that ask for a reservation in the pass over a whole cell.
const RESERVING: u32 = 1_000;

/// A pass from nothing with and without a thousand reservations, and one beside running jobs for
/// fifty parallel ones.
pub fn measure(hosts: u32) {
    let without = from_nothing(hosts, 0);
    let with = from_nothing(hosts, RESERVING);
    let about = format!(
        "{hosts} hosts, 8 slots each; {without:.0} ms without, {:.2} times that",
        with / without
    );
    tell("reservation: a pass from nothing, 1,000 kept", with, "ms", &about);
    parallel();
}

/// Milliseconds of a pass that fills a cell and then keeps slots for so many jobs, half of them
/// parallel ones.
fn from_nothing(hosts: u32, most: u32) -> f64 {
    let mut scheduler = cell(Shape {
        hosts,
        attributes: 20,
        slots: 8,
    });
    configure(&mut scheduler, most);
    for number in 1..=hosts * 8 {
        let record = submission(&scheduler, u64::from(number), number % 1_000);
        scheduler.apply(&record);
    }
    for number in 1..=RESERVING {
        let category = number % 50;
        let pe = (category % 2 == 0).then_some(("mpi", 40));
        submit(
            &mut scheduler,
            hosts * 8 + number,
            &format!("h_rt={},set3=1", 3_600 + category),
            pe,
            true,
        );
    }
    let begin = Instant::now();
    let orders = pass(&mut scheduler);
    let spent_ms = begin.elapsed().as_secs_f64() * 1e3;
    assert_eq!(orders.len(), hosts as usize * 8, "every slot is given away");
    assert_eq!(scheduler.model().reservations().len(), most as usize, "slots are kept");
    spent_ms
}

/// One pass for 50 parallel jobs of 50 kinds beside 8,000 jobs that run on 5,000 hosts.
fn parallel() {
    let (hosts, running, waiting) = (5_000, 8_000, 50);
    let mut scheduler = cell(Shape {
        hosts,
        attributes: 20,
        slots: 4,
    });
    configure(&mut scheduler, waiting);
    for number in 1..=running {
        // One on each host, and another on most of them.
        let share = if number <= hosts { 60 } else { 40 };
        submit(
            &mut scheduler,
            number,
            &format!("h_rt={},set0={share}", 600 + number % 3_000),
            None,
            false,
        );
    }
    let orders = pass(&mut scheduler);
    assert_eq!(orders.len(), running as usize, "all run");
    for order in orders {
        accept(&mut scheduler, order);
    }
    for number in 1..=waiting {
        submit(
            &mut scheduler,
            running + number,
            &format!("h_rt={},set0=60", 600 + number),
            Some(("mpi", 40)),
            true,
        );
    }
    let begin = Instant::now();
    assert!(pass(&mut scheduler).is_empty(), "nothing has room");
    let spent_ms = begin.elapsed().as_secs_f64() * 1e3;
    assert_eq!(
        scheduler.model().reservations().len(),
        waiting as usize,
        "slots are kept"
    );
    let about = format!("{hosts} hosts, {running} jobs run, {waiting} jobs of 40 slots in as many categories");
    tell("reservation: a pass for parallel jobs", spent_ms, "ms", &about);
}

/// A parallel environment in every queue, no load adjustment, and so many reservations.
fn configure(scheduler: &mut Scheduler, most: u32) {
    let stored = |kind, name: &str, fields| StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    };
    let mut conf: Fields = SchedulerConf::template().to_fields();
    conf.set("max_reservation", most.to_string());
    conf.set("job_load_adjustments", "NONE");
    conf.set("weight_urgency", "0");
    let mut pe = ParallelEnvironment::template("mpi".into()).to_fields();
    pe.set("slots", "999999");
    pe.set("allocation_rule", "$fill_up");
    let queue = scheduler
        .model()
        .state()
        .config
        .queues
        .values()
        .next()
        .expect("there is a queue");
    let mut queue = queue.to_fields();
    queue.set("pe_list", "mpi");
    let objects = vec![
        stored(ObjectKind::Pe, "mpi", pe),
        stored(ObjectKind::SchedulerConf, "", conf),
        stored(ObjectKind::Queue, "all.q", queue),
    ];
    let changed = record(scheduler, Event::ObjectsChanged(objects));
    scheduler.apply(&changed);
}

fn submit(scheduler: &mut Scheduler, number: u32, request: &str, pe: Option<(&str, u32)>, reserve: bool) {
    let text = r#"{"name": "job", "program": {"command": {"command": "sleep"}}, "submit_host": "a",
        "owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    let mut spec: JobSpec = serde_json::from_str(text).expect("a specification");
    spec.requests.hard = ResourceList::parse(request).expect("requests").into();
    spec.requests.pe = pe.map(|(name, slots)| {
        let slots = SlotRange::parse(&slots.to_string()).expect("a range");
        PeRequest {
            name: name.to_owned(),
            slots,
        }
    });
    spec.reserve = reserve;
    let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
    let (seq, number) = (SubmitSeq(u64::from(number)), JobNumber(number));
    let event = Event::JobSubmitted {
        seq,
        number,
        spec: Arc::new(spec),
        waits_for,
        array_waits_for,
    };
    let record = record(scheduler, event);
    scheduler.apply(&record);
}
