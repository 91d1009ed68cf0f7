//! What the tests of this package share.

mod history;

pub use history::eventful_history;

use crate::clock::Clock;
use crate::init::Plan;
use crate::model::{Model, StaticFacts};
use master_core::event::{Actor, Event, Record, TaskFate};
use master_core::state::State;
use proto::accounting::AccountingRecord;
use proto::host::names::Naming;
use proto::id::{
    CellId, EventSeq, HostName, JobNumber, QueueInstanceName, QueueName, SubmitSeq, TaskId, TaskKey, UserName,
};
use proto::job::{GrantedSlots, JobSpec};
use proto::time::{Now, Tick, Wall, Zone};
use proto::usage::{FailedCode, Rusage, Usage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of a test's own, removed with it.
pub struct TempDir(PathBuf);

impl TempDir {
    /// A new empty directory.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gridwright-{name}-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The events of a new cell, then of `jobs` jobs that each run to their end: what a live core and
/// an agent make together.
pub fn cell_events(jobs: u64) -> Vec<Record> {
    let plan = Plan {
        dir: "/nowhere".into(),
        port: 1,
        slots: 2,
        host: HostName::new("node1"),
        user: UserName::from("alice"),
        vmem: proto::limit::VmemMeaning::Address,
    };
    let mut events = crate::init::first_events_of(&plan, CellId(1), Wall(1_800_000_000_000));
    for job in 1..=jobs {
        for event in life_of(job) {
            let seq = EventSeq(events.len() as u64 + 1);
            let now = Now {
                tick: Tick(seq.0 * 10),
                wall: Wall(1_800_000_000_000 + seq.0.cast_signed() * 10),
            };
            events.push(Record {
                seq,
                now,
                actor: Actor::Master,
                request: None,
                event,
            });
        }
    }
    events
}

/// The model of a cell with its events so far; `alice` on `node1` is its manager.
pub fn model(records: &[Record]) -> Model {
    let statics = StaticFacts {
        host: "node1".to_owned(),
        port: 1,
        naming: Naming::default(),
        clock: Clock::continue_from(Default::default()),
        zone: Zone::utc(),
        run_log: "/nowhere".into(),
    };
    let mut model = Model::new(State::new(), statics);
    records.iter().for_each(|record| drop(model.apply(record)));
    model
}

fn life_of(job: u64) -> [Event; 5] {
    let seq = SubmitSeq(job);
    let key = key(job, 1);
    let spec = JobSpec {
        name: format!("job{job}"),
        ..spec()
    };
    [
        Event::JobSubmitted {
            seq,
            number: JobNumber(u32::try_from(job).unwrap()),
            spec: Arc::new(spec),
            waits_for: Vec::new(),
            array_waits_for: Vec::new(),
        },
        Event::TaskPlaced {
            key,
            granted: granted(),
            pe: None,
            maps: Vec::new(),
            binding: Vec::new(),
        },
        Event::TaskStarted {
            key,
            at: Wall(1_800_000_000_000),
        },
        ended_task(0, job, 1).event,
        Event::JobFinished { seq },
    ]
}

/// The end of a task, as the event of that number.
pub fn ended_task(seq: u64, job: u64, task: u32) -> Record {
    let record = AccountingRecord {
        key: key(job, task),
        queue: QueueName::from("all.q"),
        host: HostName::new("node1"),
        group: "users".to_owned(),
        owner: UserName::from("alice"),
        job_name: format!("job{job}"),
        job_number: JobNumber(u32::try_from(job).unwrap()),
        account: "sge".to_owned(),
        priority: 0,
        submitted: Wall(1_800_000_000_000),
        started: Wall(1_800_000_001_000),
        ended: Wall(1_800_000_002_000),
        failed: FailedCode::NO,
        reason: String::new(),
        exit_status: 0,
        wallclock_ms: 1_000,
        rusage: Rusage::default(),
        project: None,
        department: "defaultdepartment".to_owned(),
        granted_pe: None,
        slots: 1,
        task_number: 0,
        usage: Usage::default(),
        category: String::new(),
        limit: None,
        maps: Vec::new(),
        pe_task: None,
        reservation: None,
        deleted_by: None,
        context: Default::default(),
    };
    let event = Event::TaskEnded {
        key: key(job, task),
        record: Some(Box::new(record)),
        then: TaskFate::Done,
        saved_pid: None,
        charged: None,
    };
    let now = Now {
        tick: Tick(0),
        wall: Wall(0),
    };
    Record {
        seq: EventSeq(seq),
        now,
        actor: Actor::Master,
        request: None,
        event,
    }
}

pub fn key(job: u64, task: u32) -> TaskKey {
    TaskKey {
        cell: CellId(1),
        seq: SubmitSeq(job),
        task: TaskId(task),
        pe_task: 0,
        attempt: 1,
    }
}

pub fn granted() -> Vec<GrantedSlots> {
    let instance = QueueInstanceName {
        queue: QueueName::from("all.q"),
        host: HostName::new("node1"),
    };
    vec![GrantedSlots { instance, slots: 1 }]
}

/// A job that runs `true`.
pub fn spec() -> JobSpec {
    let text = r#"{
        "name": "job", "program": {"command": {"command": "/bin/true"}}, "submit_host": "node1",
        "owner": {"user": "alice", "uid": 1000, "gid": 1000, "group": "users"}
    }"#;
    serde_json::from_str(text).unwrap()
}
