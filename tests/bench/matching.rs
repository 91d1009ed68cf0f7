//! What the matcher needs for one request against many hosts, and what one load report costs the
//! core and the scheduler: no daemon, no disk, no network.

use crate::clock::{median, tell};
use crate::cluster::{Shape, hello, now, pass, report, take};
use master_core::core::Core;
use master_core::event::{Actor, Event, Record};
use master_core::sched::Scheduler;
use proto::id::{CellId, EventSeq, JobNumber, SubmitSeq};
use proto::job::JobSpec;
use proto::request::ResourceList;
use proto::time::Zone;
use std::sync::Arc;
use std::time::Instant;

const HOSTS: u32 = 10_000;
/// Half of a host's attributes are set in its `complex_values`, half are reported.
const HALF: u32 = 20;
const ROUNDS: u32 = 15;
/// What a job asks for: each is looked up at three levels, and the last is what no host has enough
/// of.
const REQUESTS: [(&str, &str); 3] = [
    ("one capacity", "set19=101"),
    (
        "three capacities, two load values",
        "set3=1,set11=1,load2=1,load7=1,set19=101",
    ),
    ("one load value", "load19=101"),
];

/// Nanoseconds a host for a job that fits nowhere, and for a load report after which it is looked
/// at again.
pub fn measure() {
    let (mut core, step) = Core::create(
        CellId(1),
        Shape {
            hosts: HOSTS,
            attributes: HALF,
            slots: 1,
        }
        .objects(),
        now(1),
    );
    assert_eq!(
        core.state().config.resolved.len(),
        HOSTS as usize,
        "{} events",
        step.events.len()
    );
    let mut scheduler = Scheduler::new(core.state().clone(), Zone::utc());
    for n in 1..=HOSTS {
        take(&mut scheduler, core.handle(hello(n), now(1)).effects);
        take(
            &mut scheduler,
            core.handle(report(n, 1, (HALF, HALF), 50), now(1)).effects,
        );
    }
    for (number, (what, request)) in (1..).zip(REQUESTS) {
        let mut figures = Vec::new();
        for round in 0..ROUNDS {
            // Each time a category of its own, so that nothing is remembered of the one before.
            let mut scheduler = scheduler.clone();
            submit(&mut scheduler, u64::from(number * ROUNDS + round), request);
            let begin = Instant::now();
            assert!(pass(&mut scheduler).is_empty(), "the job fits nowhere");
            figures.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(HOSTS));
        }
        let more = format!("{what}, {HOSTS} hosts of {} attributes, a whole pass", 2 * HALF);
        tell(
            "matching: a request that fits nowhere",
            median(figures),
            "ns/host",
            &more,
        );
    }
    for (what, request) in [("nothing waits", None), ("a job waits for it", Some("load19=101"))] {
        reports(&mut core, scheduler.clone(), what, request);
    }
}

/// Microseconds for a report that changes one value.
fn reports(core: &mut Core, mut scheduler: Scheduler, what: &str, request: Option<&str>) {
    if let Some(request) = request {
        submit(&mut scheduler, 1, request);
    }
    assert!(pass(&mut scheduler).is_empty(), "the job fits nowhere");
    let (mut deciding, mut folding, mut looking) = (Vec::new(), Vec::new(), Vec::new());
    let first = core.state().last.0 + 2 + u64::from(request.is_some()) * 10_000;
    for n in 1..=1000 {
        let message = report(n, first + u64::from(n), (1, HALF), 60);
        let begin = Instant::now();
        let effects = core.handle(message, now(2)).effects;
        deciding.push(begin.elapsed().as_secs_f64() * 1e6);
        let begin = Instant::now();
        assert_eq!(take(&mut scheduler, effects), 1, "the report is believed");
        folding.push(begin.elapsed().as_secs_f64() * 1e6);
        let begin = Instant::now();
        assert!(pass(&mut scheduler).is_empty(), "the job fits nowhere");
        looking.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let (decided, folded, looked) = (median(deciding), median(folding), median(looking));
    let more = format!("{what}: core {decided:.1}, scheduler's model {folded:.1}, pass {looked:.1}");
    tell(
        "matching: a report that changes one value",
        decided + folded + looked,
        "us",
        &more,
    );
}

fn submit(scheduler: &mut Scheduler, number: u64, request: &str) {
    let text = r#"{"name": "job", "program": {"command": {"command": "sleep"}}, "submit_host": "a",
        "owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    let mut spec: JobSpec = serde_json::from_str(text).expect("a specification");
    spec.requests.hard = ResourceList::parse(request).expect("requests").into();
    let seq = SubmitSeq(number);
    let number = JobNumber(u32::try_from(number).expect("few jobs"));
    let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
    let event = Event::JobSubmitted {
        seq,
        number,
        spec: Arc::new(spec),
        waits_for,
        array_waits_for,
    };
    let place = EventSeq(scheduler.model().state().last.0 + 1);
    scheduler.apply(&Record {
        seq: place,
        now: now(1),
        actor: Actor::Master,
        request: None,
        event,
    });
}
