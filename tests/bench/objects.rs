//! What a change of the configuration costs the master's core, and whoever folds its events: no
//! daemon, no disk, no network.

use crate::clock::tell;
use master_core::core::Core;
use master_core::effect::{Input, ReplyTo};
use master_core::event::StoredObject;
use master_core::sched::Scheduler;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::{CellId, HostName, RequestId};
use proto::job::Owner;
use proto::object::{Fields, ObjectKind};
use proto::queue::ClusterQueue;
use proto::time::{Now, Tick, Wall, Zone};
use proto::wire::client::{AttributeEdit, Command, ObjectAction, ObjectChange};
use std::time::{Duration, Instant};

const HOSTS: u32 = 10_000;
const QUEUES: u32 = 20;
/// How often each change is made.
const ROUNDS: u32 = 10;

fn edit(kind: ObjectKind, name: &str, attribute: &str, edit: AttributeEdit, value: String) -> ObjectChange {
    ObjectChange {
        kind,
        name: name.to_owned(),
        action: ObjectAction::Attribute {
            edit,
            attribute: attribute.to_owned(),
            value,
        },
    }
}

/// A command, and the change that it makes in a round.
type Change = (&'static str, fn(u32) -> ObjectChange);

const CHANGES: [Change; 5] = [
    ("qconf -aattr hostgroup hostlist NEW @allhosts", |n| {
        edit(
            ObjectKind::HostGroup,
            "@allhosts",
            "hostlist",
            AttributeEdit::Add,
            format!("new{n}"),
        )
    }),
    ("qconf -mattr exechost complex_values slots=N HOST", |n| {
        let value = format!("slots={}", n + 1);
        edit(
            ObjectKind::ExecHost,
            "node00042",
            "complex_values",
            AttributeEdit::Modify,
            value,
        )
    }),
    ("qconf -mattr queue slots N QUEUE@HOST", |n| {
        edit(
            ObjectKind::Queue,
            "q7.q@node00042",
            "slots",
            AttributeEdit::Modify,
            (n + 1).to_string(),
        )
    }),
    ("qconf -mattr queue slots N QUEUE", |n| {
        edit(
            ObjectKind::Queue,
            "q7.q",
            "slots",
            AttributeEdit::Modify,
            (n + 8).to_string(),
        )
    }),
    ("qconf -am USER", |n| ObjectChange {
        kind: ObjectKind::Managers,
        name: format!("user{n}"),
        action: ObjectAction::Add(Fields::new()),
    }),
];

/// Milliseconds for the changes that grow and tend a cluster.
pub fn measure() {
    let (mut core, step) = Core::create(CellId(1), objects(), now());
    let mut scheduler = Scheduler::new(core.state().clone(), Zone::utc());
    assert_eq!(
        core.state().config.resolved.len(),
        (HOSTS * QUEUES) as usize,
        "{} events",
        step.events.len()
    );
    for (what, change) in CHANGES {
        let (mut deciding, mut folding) = (Duration::ZERO, Duration::ZERO);
        for round in 0..ROUNDS {
            let id = RequestId(u128::from(core.state().last.0));
            let begin = Instant::now();
            let step = core.handle(command(id, change(round)), now());
            deciding += begin.elapsed();
            assert!(step.events.len() > 1, "{what}: {:?}", step.effects);
            let begin = Instant::now();
            step.events.iter().for_each(|record| scheduler.apply(record));
            folding += begin.elapsed();
        }
        let each = |time: Duration| time.as_secs_f64() * 1000.0 / f64::from(ROUNDS);
        let folded = format!(
            "{:.2} ms in the scheduler; {HOSTS} hosts, {QUEUES} queues",
            each(folding)
        );
        tell(&format!("objects: {what}"), each(deciding), "ms", &folded);
    }
}

fn now() -> Now {
    Now {
        tick: Tick(1),
        wall: Wall(1_800_000_000_000),
    }
}

fn command(id: RequestId, change: ObjectChange) -> Input {
    let owner = Owner {
        user: "root".into(),
        uid: 0,
        gid: 0,
        group: "root".into(),
        groups: Vec::new(),
    };
    let command = Box::new(Command::Objects(vec![change]));
    Input::Command {
        reply_to: ReplyTo(1),
        id,
        owner,
        host: HostName::new("node00001"),
        entropy: [0; 32],
        command,
    }
}

/// A cell with one group of all hosts, a group of a quarter of them, and queues on all.
fn objects() -> Vec<StoredObject> {
    let stored = |kind, name: &str, fields| StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    };
    let hosts: Vec<HostName> = (1..=HOSTS).map(|n| HostName::new(&format!("node{n:05}"))).collect();
    let mut objects: Vec<StoredObject> = hosts
        .iter()
        .map(|host| {
            stored(
                ObjectKind::ExecHost,
                host.as_str(),
                ExecHost::template(host.clone()).to_fields(),
            )
        })
        .collect();
    objects.push(stored(ObjectKind::AdminHosts, "node00001", Fields::new()));
    for (name, every) in [("@allhosts", 1), ("@fourth", 4)] {
        let members: Vec<&str> = hosts.iter().step_by(every).map(HostName::as_str).collect();
        let members = members.join(" ").parse().expect("names of hosts");
        objects.push(stored(
            ObjectKind::HostGroup,
            name,
            HostGroup {
                name: name.into(),
                members,
            }
            .to_fields(),
        ));
    }
    for n in 0..QUEUES {
        let name = format!("q{n}.q");
        let mut fields = ClusterQueue::template(name.as_str().into()).to_fields();
        fields.set("hostlist", "@allhosts");
        fields.set("pe_list", "NONE");
        fields.set("slots", "1,[@fourth=4]");
        objects.push(stored(ObjectKind::Queue, &name, fields));
    }
    objects
}
