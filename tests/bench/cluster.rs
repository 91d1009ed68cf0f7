//! Cells that benches make: hosts with many attributes, some of them set and some reported.

use master_core::effect::{ConnectionId, Effect, Input};
use master_core::event::StoredObject;
use master_core::sched::{ReservationMode, Scheduler};
use proto::cell_version::CellVersion;
use proto::complex::Complex;
use proto::host::ExecHost;
use proto::id::{AttributeName, CellId, Epoch, HostName, SubmitSeq, TaskId, TaskKey};
use proto::load::LoadReport;
use proto::object::{Fields, Object, ObjectKind};
use proto::queue::ClusterQueue;
use proto::time::{Now, Tick, Wall};
use proto::wire::agent::{AgentHello, PROTOCOL_VERSION};
use proto::wire::stream::Order;
use std::collections::BTreeMap;

/// A cell.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Hosts, `node00001` and so on.
    pub hosts: u32,
    /// Consumables `setN` in the `complex_values` of each, of 100 or 99, and as many load values
    /// `loadN`.
    pub attributes: u32,
    /// Slots of the one queue on each host.
    pub slots: u32,
}

impl Shape {
    /// The configuration objects of the cell.
    pub fn objects(self) -> Vec<StoredObject> {
        let stored = |kind, name: &str, fields| StoredObject {
            kind,
            name: name.to_owned(),
            fields: Some(fields),
        };
        let Shape {
            hosts,
            attributes,
            slots,
        } = self;
        let lines = (0..attributes)
            .map(|n| format!("set{n} set{n} INT <= YES YES 0 0\nload{n} load{n} DOUBLE <= YES NO 0 0\n"));
        let table =
            Complex::parse(&format!("{}{}", Complex::built_in(), lines.collect::<String>())).expect("a complex");
        let mut objects = vec![stored(ObjectKind::ComplexTable, "", table.write())];
        let values: Vec<String> = (0..attributes).map(|n| format!("set{n}={}", 100 - n % 2)).collect();
        for n in 1..=hosts {
            let mut fields: Fields = ExecHost::template(name(n)).to_fields();
            fields.set("complex_values", values.join(","));
            objects.push(stored(ObjectKind::ExecHost, name(n).as_str(), fields));
        }
        let hosts: Vec<String> = (1..=hosts).map(|n| name(n).to_string()).collect();
        let mut queue = ClusterQueue::template("all.q".into()).to_fields();
        queue.set("hostlist", hosts.join(" "));
        queue.set("slots", slots.to_string());
        queue.set("pe_list", "NONE");
        queue.set("load_thresholds", "NONE");
        objects.push(stored(ObjectKind::Queue, "all.q", queue));
        objects
    }
}

/// A time of the bench.
pub fn now(tick: u64) -> Now {
    Now {
        tick: Tick(tick),
        wall: Wall(1_800_000_000_000),
    }
}

/// Gives a scheduler what the core observed, and how much that was.
pub fn take(scheduler: &mut Scheduler, effects: Vec<Effect>) -> usize {
    let observed = |effect| {
        if let Effect::Observed(observation) = effect {
            Some(observation)
        } else {
            None
        }
    };
    let observations: Vec<_> = effects.into_iter().filter_map(observed).collect();
    observations
        .iter()
        .for_each(|observation| scheduler.observe(observation));
    observations.len()
}

/// Passes until nothing more starts, and what is ordered.
pub fn pass(scheduler: &mut Scheduler) -> Vec<Order> {
    let mut orders = Vec::new();
    scheduler.begin(now(2), ReservationMode::Anew);
    loop {
        let slice = scheduler.next(1_000);
        orders.extend(slice.orders);
        if slice.finished {
            return orders;
        }
    }
}

/// The key under which a task is placed for the first time.
pub fn place(seq: SubmitSeq, task: TaskId) -> TaskKey {
    TaskKey {
        cell: CellId(1),
        seq,
        task,
        pe_task: 0,
        attempt: 1,
    }
}

/// A host.
pub fn name(n: u32) -> HostName {
    HostName::new(&format!("node{n:05}"))
}

/// The first words of its agent.
pub fn hello(n: u32) -> Input {
    let hello = AgentHello {
        version: PROTOCOL_VERSION,
        cell_version: CellVersion::NEWEST,
        software: "bench".to_owned(),
        host: name(n),
        instance: u128::from(n),
        epoch: Epoch(1),
        tasks: Vec::new(),
        wall_ms: 1_800_000_000_000,
        takes_tickets: true,
        binds_cores: true,
        boot_ms: 0,
        marks: Vec::new(),
    };
    Input::AgentConnected {
        connection: ConnectionId(u64::from(n)),
        host: name(n),
        hello: Box::new(hello),
    }
}

/// The last `changed` of `values` load values of a host; the first report is full.
pub fn report(n: u32, sequence: u64, (changed, values): (u32, u32), value: u32) -> Input {
    let values = (values - changed..values).map(|n| (format!("load{n}").as_str().into(), format!("{value}.{n:06}")));
    reported(n, sequence, values.collect())
}

/// The load average of a host, which starts there are taken to raise, as 8.1.9 is configured at
/// first.
pub fn load_average(n: u32, sequence: u64) -> Input {
    reported(n, sequence, BTreeMap::from([("np_load_avg".into(), "0.1".to_owned())]))
}

fn reported(n: u32, sequence: u64, values: BTreeMap<AttributeName, String>) -> Input {
    let values = BTreeMap::from([(name(n), values)]);
    let report = LoadReport {
        sequence,
        full: sequence == 1,
        values,
        up_ms: 1,
        ..LoadReport::default()
    };
    Input::LoadReport {
        connection: ConnectionId(u64::from(n)),
        report: Box::new(report),
    }
}
