//! A history in which every kind of event occurs.

use super::{cell_events, ended_task, granted, key, spec};
use master_core::event::{Actor, Event, InstanceState, JoinGrant, Record, StoredObject, TaskFate};
use proto::calendar::CalendarState;
use proto::cell_version::CellVersion;
use proto::id::{
    Epoch, EventSeq, HostName, JobNumber, QueueInstanceName, RequestId, ReservationId, SubmitSeq, TaskKey, UserName,
};
use proto::job::{HoldChange, Holds, JobSpec, MailEvents, Requests};
use proto::object::{Fields, ObjectKind};
use proto::request::TaskRange;
use proto::reservation::{ReservationSpec, ReservationState};
use proto::time::{Now, Tick, Wall};
use proto::usage::{Consumption, Rusage, Usage};
use proto::wire::agent::TasksMark;
use proto::wire::client::{Answer, Reply};
use proto::wire::slave::SlaveSpec;
use std::sync::Arc;

/// When it begins.
const BEGIN: i64 = 1_800_000_000_000;

/// Two jobs that ran, then an array whose tasks meet every fate, then what administrators do. It
/// begins in a cell of the first version.
pub fn eventful_history() -> Vec<Record> {
    let mut records = cell_events(2);
    if let Some(Event::CellCreated { version, .. }) = records.first_mut().map(|record| &mut record.event) {
        *version = CellVersion::FIRST;
    }
    let parts = [
        an_array(),
        administration(),
        disturbances(),
        slave_tasks(),
        reservations(),
        usage(),
    ];
    for event in parts.concat() {
        let seq = EventSeq(records.len() as u64 + 1);
        let now = Now {
            tick: Tick(seq.0 * 10),
            wall: Wall(BEGIN + seq.0.cast_signed() * 10),
        };
        let actor = Actor::User {
            user: UserName::from("alice"),
            host: HostName::new("node1"),
        };
        records.push(Record {
            seq,
            now,
            actor,
            request: Some(RequestId(u128::from(seq.0))),
            event,
        });
    }
    records
}

fn range(text: &str) -> Vec<TaskRange> {
    vec![TaskRange::parse(text).unwrap()]
}

fn submit(seq: u64, number: u32, spec: JobSpec, waits_for: &[SubmitSeq]) -> Event {
    Event::JobSubmitted {
        seq: SubmitSeq(seq),
        number: JobNumber(number),
        spec: Arc::new(spec),
        waits_for: waits_for.to_vec(),
        array_waits_for: Vec::new(),
    }
}

fn place(task: u32) -> Event {
    Event::TaskPlaced {
        key: key(3, task),
        granted: granted(),
        pe: None,
        maps: Vec::new(),
        binding: Vec::new(),
    }
}

fn start(task: u32) -> Event {
    Event::TaskStarted {
        key: key(3, task),
        at: Wall(BEGIN + 500),
    }
}

fn end(task: u32, then: TaskFate) -> Event {
    match ended_task(0, 3, task).event {
        Event::TaskEnded {
            key,
            record,
            then: _,
            saved_pid,
            charged,
        } => Event::TaskEnded {
            key,
            record,
            then,
            saved_pid,
            charged,
        },
        other => other,
    }
}

fn error(reason: &str) -> TaskFate {
    TaskFate::Error {
        reason: reason.to_owned(),
    }
}

fn an_array() -> Vec<Event> {
    let seq = SubmitSeq(3);
    let array = JobSpec {
        array: Some(range("1-10")[0]),
        ..spec()
    };
    let altered = JobSpec {
        name: "altered".to_owned(),
        ..array.clone()
    };
    let user = Holds {
        user: true,
        ..Holds::default()
    };
    vec![
        submit(3, 3, array, &[]),
        submit(4, 4, spec(), &[seq]),
        Event::JobAltered {
            seq,
            spec: Arc::new(altered),
            waits_for: Vec::new(),
            array_waits_for: Vec::new(),
        },
        Event::HoldsChanged {
            seq,
            tasks: range("9-10"),
            change: HoldChange {
                set: user,
                release: Holds::default(),
            },
        },
        place(1),
        start(1),
        Event::TaskSuspended {
            key: key(3, 1),
            suspended: true,
        },
        Event::TaskRebooked { key: key(3, 1) },
        place(2),
        start(2),
        Event::TaskThresholdSuspended {
            key: key(3, 2),
            suspended: true,
        },
        Event::TaskRescheduleRequested { key: key(3, 2) },
        end(2, TaskFate::Requeued),
        place(3),
        end(3, error("no such directory")),
        place(4),
        end(4, error("no such shell")),
        Event::ErrorCleared { seq, tasks: range("4") },
        Event::TasksDeleted {
            seq,
            tasks: range("6-7"),
        },
        Event::TaskDeletionRequested { key: key(3, 1) },
    ]
}

/// Two slave tasks of a task that is still there, one of which ends.
fn slave_tasks() -> Vec<Event> {
    let slave = |number| TaskKey {
        pe_task: number,
        ..key(3, 1)
    };
    let command = vec!["orted".to_owned()];
    let environment = vec![("COLOUR".to_owned(), "red".to_owned())];
    let spec = Arc::new(SlaveSpec {
        command,
        environment,
        use_shell: true,
        has_input: false,
    });
    let place = |number| Event::SlavePlaced {
        key: slave(number),
        instance: granted()[0].instance.clone(),
        from: HostName::new("node1"),
        spec: spec.clone(),
    };
    vec![
        place(1),
        Event::SlaveStarted {
            key: slave(1),
            at: Wall(BEGIN + 700),
        },
        place(2),
        Event::SlaveEnded {
            key: slave(1),
            record: None,
            exit_status: 3,
            reason: String::new(),
            usage: Usage {
                cpu_ms: 1_500,
                ..Usage::default()
            },
            rusage: Rusage {
                utime_ms: 1_400,
                ..Rusage::default()
            },
            charged: None,
        },
    ]
}

/// Three advance reservations: one whose time is now, one that waits, one that is over.
fn reservations() -> Vec<Event> {
    let asked = ReservationSpec {
        name: "week".to_owned(),
        owner: (*spec().owner).clone(),
        account: None,
        start: None,
        end: None,
        duration_s: Some(3_600),
        requests: Requests::default(),
        checkpoint: None,
        immediate: false,
        users: vec!["bob".to_owned()],
        hard_error: true,
        mail: MailEvents::default(),
        mail_to: Vec::new(),
        verify: false,
    };
    let grant = |id| Event::ReservationGranted {
        id: ReservationId(id),
        spec: Arc::new(asked.clone()),
        start: Wall(BEGIN),
        end: Wall(BEGIN + 3_600_000),
        granted: granted(),
        pe: None,
    };
    vec![
        grant(13),
        grant(14),
        Event::ReservationChanged {
            id: ReservationId(13),
            state: ReservationState::Running,
        },
        grant(15),
        Event::ReservationEnded { id: ReservationId(15) },
    ]
}

/// A task that still runs is charged, and the use of those who have none is forgotten.
fn usage() -> Vec<Event> {
    let used = |cpu_ms| Consumption {
        cpu_ms,
        mem_kib_ms: 2 << 30,
        io_bytes: 3 << 20,
    };
    let charged = |cpu_ms| Event::UsageCharged {
        tasks: vec![(key(3, 1), used(cpu_ms))],
    };
    vec![
        charged(1_000),
        charged(61_000),
        Event::UsageCleared {
            users: vec!["bob".into()],
        },
    ]
}

fn instance(host: &str) -> QueueInstanceName {
    QueueInstanceName {
        queue: "all.q".into(),
        host: HostName::new(host),
    }
}

fn administration() -> Vec<Event> {
    let grant = JoinGrant {
        hash: "ab".repeat(32),
        uses_left: 2,
        expires: Wall(BEGIN + 3_600_000),
        host_pattern: "node*".to_owned(),
    };
    let host = HostName::new("node2");
    let fields = proto::host::ExecHost::template(host.clone()).to_fields();
    let stored = |kind, name: &str, fields| StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    };
    vec![
        Event::ObjectsChanged(vec![
            stored(ObjectKind::ExecHost, "node2", fields),
            stored(ObjectKind::Operators, "bob", Fields::new()),
        ]),
        Event::InstanceChanged {
            instance: instance("node1"),
            state: InstanceState {
                disabled: true,
                suspended: false,
                errors: vec!["it failed".to_owned()],
                ..InstanceState::default()
            },
        },
        Event::TokenCreated(grant.clone()),
        Event::TokenUsed {
            hash: grant.hash,
            host: host.clone(),
        },
        Event::CertificateIssued {
            host: host.clone(),
            serial: "cd".repeat(16),
            not_after: Wall(BEGIN + 1),
        },
        Event::HostRevoked { host },
        Event::TokenRevoked { hash: "ff".repeat(32) },
        Event::HostTasksBound {
            host: HostName::new("node1"),
            mark: Some(TasksMark("ab".repeat(16))),
        },
        Event::WallJumped {
            expected: Wall(BEGIN - 100_000),
        },
        Event::EpochRaised { epoch: Epoch(2) },
        Event::CellVersionRaised {
            version: CellVersion::NEWEST,
        },
        Event::RequestAnswered {
            id: RequestId(99),
            reply: Arc::new(Reply::answers(vec![Answer::Done("done".to_owned())])),
        },
    ]
}

/// Tasks of a host that was silent, then what else happens to queue instances and the cell.
fn disturbances() -> Vec<Event> {
    vec![
        Event::TaskUnconfirmed {
            key: key(3, 2),
            host: HostName::new("node1"),
        },
        Event::TaskUnconfirmed {
            key: key(3, 4),
            host: HostName::new("node1"),
        },
        Event::TaskConfirmedGone {
            key: key(3, 4),
            host: HostName::new("node1"),
        },
        Event::NumbersContinued {
            job: Some(JobNumber(900)),
            reservation: Some(12),
        },
        Event::TaskPreempted {
            key: key(3, 1),
            suspended: true,
        },
        Event::InstanceChanged {
            instance: instance("node2"),
            state: InstanceState {
                calendar: CalendarState::Suspended,
                subordinate: true,
                preempted: true,
                ..InstanceState::default()
            },
        },
        Event::TaskMigrationRequested { key: key(3, 1) },
    ]
}
