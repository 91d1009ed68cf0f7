//! What the matcher needs for one request against many hosts, and what one load report costs the core and the scheduler: no
//! daemon, no disk, no network.

use crate::clock::{median, tell};
use master_core::core::Core;
use master_core::effect::{ConnectionId, Effect, Input};
use master_core::event::{Actor, Event, Record, StoredObject};
use master_core::sched::Scheduler;
use proto::complex::Complex;
use proto::host::ExecHost;
use proto::id::{CellId, Epoch, EventSeq, HostName, JobNumber, SubmitSeq};
use proto::job::JobSpec;
use proto::load::LoadReport;
use proto::object::{Fields, Object, ObjectKind};
use proto::queue::ClusterQueue;
use proto::request::ResourceList;
use proto::time::{Now, Tick, Wall};
use proto::wire::agent::{AgentHello, PROTOCOL_VERSION};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const HOSTS: u32 = 10_000;
/// Half of a host's attributes are set in its `complex_values`, half are reported.
const HALF: u32 = 20;
const ROUNDS: u32 = 15;
/// What a job asks for: each is looked up at three levels, and the last is what no host has enough of.
const REQUESTS: [(&str, &str); 3] = [
    ("one capacity", "set19=101"),
    ("three capacities, two load values", "set3=1,set11=1,load2=1,load7=1,set19=101"),
    ("one load value", "load19=101"),
];

/// Nanoseconds a host for a job that fits nowhere, and for a load report after which it is looked at again.
pub fn measure() {
    let (mut core, step) = Core::create(CellId(1), objects(), now(1));
    assert_eq!(core.state().config.resolved.len(), HOSTS as usize, "{} events", step.events.len());
    let mut scheduler = Scheduler::new(core.state().clone());
    for n in 1..=HOSTS {
        take(&mut scheduler, core.handle(hello(n), now(1)).effects);
        take(&mut scheduler, core.handle(report(n, 1, HALF, 50), now(1)).effects);
    }
    for (number, (what, request)) in (1..).zip(REQUESTS) {
        let mut figures = Vec::new();
        for round in 0..ROUNDS {
            // Each time a category of its own, so that nothing is remembered of the one before.
            let mut scheduler = scheduler.clone();
            submit(&mut scheduler, u64::from(number * ROUNDS + round), request);
            let begin = Instant::now();
            pass(&mut scheduler);
            figures.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(HOSTS));
        }
        let more = format!("{what}, {HOSTS} hosts of {} attributes, a whole pass", 2 * HALF);
        tell("matching: a request that fits nowhere", median(figures), "ns/host", &more);
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
    pass(&mut scheduler);
    let (mut deciding, mut folding, mut looking) = (Vec::new(), Vec::new(), Vec::new());
    let first = core.state().last.0 + 2 + u64::from(request.is_some()) * 10_000;
    for n in 1..=1000 {
        let message = report(n, first + u64::from(n), 1, 60);
        let begin = Instant::now();
        let effects = core.handle(message, now(2)).effects;
        deciding.push(begin.elapsed().as_secs_f64() * 1e6);
        let begin = Instant::now();
        assert_eq!(take(&mut scheduler, effects), 1, "the report is believed");
        folding.push(begin.elapsed().as_secs_f64() * 1e6);
        let begin = Instant::now();
        pass(&mut scheduler);
        looking.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let (decided, folded, looked) = (median(deciding), median(folding), median(looking));
    let more = format!("{what}: core {decided:.1}, scheduler's model {folded:.1}, pass {looked:.1}");
    tell("matching: a report that changes one value", decided + folded + looked, "us", &more);
}

fn now(tick: u64) -> Now {
    Now { tick: Tick(tick), wall: Wall(1_800_000_000_000) }
}

fn take(scheduler: &mut Scheduler, effects: Vec<Effect>) -> usize {
    let observed = |effect| if let Effect::Observed(observation) = effect { Some(observation) } else { None };
    let observations: Vec<_> = effects.into_iter().filter_map(observed).collect();
    observations.iter().for_each(|observation| scheduler.observe(observation));
    observations.len()
}

fn pass(scheduler: &mut Scheduler) {
    scheduler.begin(now(2));
    loop {
        let slice = scheduler.next(1_000);
        assert!(slice.orders.is_empty(), "the job fits nowhere");
        if slice.finished {
            break;
        }
    }
}

fn submit(scheduler: &mut Scheduler, number: u64, request: &str) {
    let text = r#"{"name": "job", "program": {"command": {"command": "sleep"}}, "submit_host": "a",
        "owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    let mut spec: JobSpec = serde_json::from_str(text).expect("a specification");
    spec.requests.hard = ResourceList::parse(request).expect("requests").into();
    let seq = SubmitSeq(number);
    let number = JobNumber(u32::try_from(number).expect("few jobs"));
    let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
    let event = Event::JobSubmitted { seq, number, spec: Arc::new(spec), waits_for, array_waits_for };
    let place = EventSeq(scheduler.model().state().last.0 + 1);
    scheduler.apply(&Record { seq: place, now: now(1), actor: Actor::Master, request: None, event });
}

fn name(n: u32) -> HostName {
    HostName::new(&format!("node{n:05}"))
}

fn hello(n: u32) -> Input {
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        software: "bench".to_owned(),
        host: name(n),
        instance: u128::from(n),
        epoch: Epoch(1),
        tasks: Vec::new(),
        wall_ms: 1_800_000_000_000,
    };
    Input::AgentConnected { connection: ConnectionId(u64::from(n)), host: name(n), hello: Box::new(hello) }
}

/// The last `values` load values of a host; the first report is full.
fn report(n: u32, sequence: u64, values: u32, value: u32) -> Input {
    let values = (HALF - values..HALF).map(|n| (format!("load{n}").as_str().into(), format!("{value}.{n:06}")));
    let values = BTreeMap::from([(name(n), values.collect())]);
    let report = LoadReport { sequence, full: sequence == 1, values, up_ms: 1, ..LoadReport::default() };
    Input::LoadReport { connection: ConnectionId(u64::from(n)), report: Box::new(report) }
}

/// Hosts with half of their attributes set, one queue on all of them.
fn objects() -> Vec<StoredObject> {
    let stored = |kind, name: &str, fields| StoredObject { kind, name: name.to_owned(), fields: Some(fields) };
    let lines = (0..HALF).map(|n| format!("set{n} set{n} INT <= YES YES 0 0\nload{n} load{n} DOUBLE <= YES NO 0 0\n"));
    let table = Complex::parse(&format!("{}{}", Complex::built_in(), lines.collect::<String>())).expect("a complex");
    let mut objects = vec![stored(ObjectKind::ComplexTable, "", table.write())];
    let values: Vec<String> = (0..HALF).map(|n| format!("set{n}={}", 100 - n % 2)).collect();
    for n in 1..=HOSTS {
        let mut fields: Fields = ExecHost::template(name(n)).to_fields();
        fields.set("complex_values", values.join(","));
        objects.push(stored(ObjectKind::ExecHost, name(n).as_str(), fields));
    }
    let hosts: Vec<String> = (1..=HOSTS).map(|n| name(n).to_string()).collect();
    let mut queue = ClusterQueue::template("all.q".into()).to_fields();
    queue.set("hostlist", hosts.join(" "));
    queue.set("pe_list", "NONE");
    queue.set("load_thresholds", "NONE");
    objects.push(stored(ObjectKind::Queue, "all.q", queue));
    objects
}
