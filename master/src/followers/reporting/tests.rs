use super::*;
use crate::testing::{TempDir, cell_events, ended_task, granted, key, spec};
use master_core::event::{Actor, InstanceState, StoredObject};
use proto::id::{EventSeq, HostName, JobNumber, ReservationId, SubmitSeq, UserName};
use proto::job::JobSpec;
use proto::object::ObjectKind;
use proto::request::TaskRange;
use proto::reservation::{ReservationSpec, ReservationState};
use proto::time::{Now, Tick, Wall};
use proto::wire::view::ShareNode;
use std::sync::Arc;

struct ReportingCell {
    dir: TempDir,
    state: State,
    observations: Observations,
    file: ReportingFile,
}

impl ReportingCell {
    fn new(params: &str) -> Self {
        let mut state = State::new();
        cell_events(0).iter().for_each(|record| drop(state.apply(record)));
        let dir = TempDir::new("reporting");
        let file = ReportingFile::new(dir.path().join("reporting"), "master1".to_owned(), &state);
        let mut cell = Self {
            dir,
            state,
            observations: Observations::default(),
            file,
        };
        cell.set(ObjectKind::ClusterConf, "global", "reporting_params", params);
        cell
    }

    fn set(&mut self, kind: ObjectKind, name: &str, key: &str, value: &str) {
        let mut fields = self.state.config.object_fields(kind, name).unwrap();
        fields.set(key, value);
        self.event(Event::ObjectsChanged(vec![StoredObject {
            kind,
            name: name.to_owned(),
            fields: Some(fields),
        }]));
    }

    fn event(&mut self, event: Event) {
        let now = Now {
            tick: Tick(9),
            wall: Wall(100_000),
        };
        let actor = Actor::User {
            user: UserName::from("op"),
            host: "login".into(),
        };
        let record = Record {
            seq: EventSeq(self.state.last.0 + 1),
            now,
            actor,
            request: None,
            event,
        };
        self.file.before(&self.state, &record);
        self.state.apply(&record);
        self.file.after(&self.state, &self.observations, &record);
    }

    fn submit(&mut self, spec: JobSpec) {
        self.event(Event::JobSubmitted {
            seq: SubmitSeq(1),
            number: JobNumber(7),
            spec: Arc::new(spec),
            waits_for: Vec::new(),
            array_waits_for: Vec::new(),
        });
    }

    fn run(&mut self) {
        self.event(Event::TaskPlaced {
            key: key(1, 1),
            granted: granted(),
            pe: None,
            maps: Vec::new(),
            binding: Vec::new(),
        });
        self.event(Event::TaskStarted {
            key: key(1, 1),
            at: Wall(100_000),
        });
        self.event(ended_task(0, 1, 1).event);
    }

    fn written(&mut self) -> String {
        self.file.flush();
        std::fs::read_to_string(self.dir.path().join("reporting")).unwrap_or_default()
    }
}

fn job() -> JobSpec {
    JobSpec {
        name: "x3:4.sh".to_owned(),
        ..spec()
    }
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    let mut cell = ReportingCell::new("accounting=true reporting=false joblog=true log_consumables=true");
    cell.submit(job());
    cell.run();
    assert_eq!(cell.written(), "");
    assert!(!cell.dir.path().join("reporting").exists());
}

#[test]
fn a_job_leaves_the_records_that_8_1_9_writes() {
    let mut cell = ReportingCell::new("reporting=true joblog=true");
    cell.submit(job());
    cell.run();
    let owner = &job().owner;
    let facts = format!(
        "0:1024:100:x3 4.sh:{}:{}::defaultdepartment:sge",
        owner.user, owner.group
    );
    let ended = match ended_task(0, 1, 1).event {
        Event::TaskEnded {
            record: Some(record), ..
        } => record.to_line(),
        _ => unreachable!(),
    };
    let expected = [
        format!(
            "100:new_job:100:7:-1:NONE:x3 4.sh:{}:{}::defaultdepartment:sge:1024",
            owner.user, owner.group
        ),
        format!("100:job_log:100:pending:7:-1:NONE::op:login:{facts}:new job"),
        format!("100:job_log:100:sent:7:0:NONE:t:master:master1:{facts}:sent to execd"),
        format!("100:job_log:100:delivered:7:0:NONE:r:master:master1:{facts}:job received by execd"),
        format!("100:acct:{ended}"),
        format!("100:job_log:100:finished:7:0:NONE:r:execution daemon:node1:{facts}:job exited"),
        format!("100:job_log:100:finished:7:0:NONE:r:master:master1:{facts}:job waits for scheduler's deletion"),
        format!("100:job_log:100:deleted:7:0:NONE:T:scheduler:master1:{facts}:job deleted by scheduler"),
    ];
    assert_eq!(cell.written().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn consumables_are_told_as_name_used_and_capacity() {
    let mut cell = ReportingCell::new("reporting=true log_consumables=true");
    cell.submit(job());
    cell.run();
    let text = cell.written();
    let told: Vec<&str> = text.lines().filter(|line| line.contains("_consumable:")).collect();
    assert_eq!(
        told,
        [
            "100:queue_consumable:all.q:node1:100::slots=1.000000=2.000000",
            "100:queue_consumable:all.q:node1:100::slots=0.000000=2.000000",
        ]
    );
    assert!(!text.contains("job_log"), "{text}");
}

#[test]
fn report_variables_choose_consumables_and_load_values() {
    let mut cell = ReportingCell::new("reporting=true");
    cell.set(ObjectKind::ExecHost, "global", "report_variables", "slots,np_load_avg");
    cell.submit(job());
    cell.run();
    assert!(
        cell.written()
            .contains("queue_consumable:all.q:node1:100::slots=1.000000=2.000000\n")
    );
    let mut observations = Observations::default();
    let host = HostName::new("node1");
    let entry = |text: &str| master_core::observe::LoadEntry {
        text: text.to_owned(),
        reporter: host.clone(),
        sampled: Tick(0),
    };
    let values = [("np_load_avg", "0.5"), ("load_avg", "2")].map(|(name, text)| (name.into(), entry(text)));
    observations.load.insert(host.clone(), values.into_iter().collect());
    let load = Observation::Load {
        host,
        at: Tick(0),
        report: Box::default(),
    };
    cell.file.observed(&cell.state, &observations, &load, 100);
    assert!(cell.written().ends_with("100:host:node1:100:X:np_load_avg=0.5\n"));
}

#[test]
fn states_of_queues_and_deletions_are_told() {
    let mut cell = ReportingCell::new("reporting=true joblog=true");
    cell.submit(JobSpec {
        array: TaskRange::parse("1-3").ok(),
        ..job()
    });
    let tasks = vec![TaskRange::parse("2-3").unwrap()];
    cell.event(Event::TasksDeleted {
        seq: SubmitSeq(1),
        tasks,
    });
    let state = InstanceState {
        disabled: true,
        errors: vec!["x".to_owned()],
        ..InstanceState::default()
    };
    cell.event(Event::InstanceChanged {
        instance: granted()[0].instance.clone(),
        state,
    });
    let text = cell.written();
    assert_eq!(text.matches(":deleted:7:2:NONE::op:login:").count(), 1, "{text}");
    assert_eq!(
        text.matches(":deleted:7:3:NONE:T:scheduler:master1:").count(),
        1,
        "{text}"
    );
    assert!(text.ends_with("100:queue:all.q:node1:100:dE\n"), "{text}");
}

#[test]
fn what_waits_is_due_after_the_flush_time() {
    let mut cell = ReportingCell::new("reporting=true flush_time=0:1:0");
    assert_eq!(cell.file.due(), None);
    let flush = Duration::from_secs(60);
    let before = Instant::now() + flush;
    cell.submit(job());
    let due = cell.file.due().unwrap();
    assert!(before <= due && due <= Instant::now() + flush);
    cell.file.flush();
    assert_eq!(cell.file.due(), None);
}

#[test]
fn the_share_tree_is_told_in_the_form_of_8_1_9_at_its_interval() {
    let node = |path: &str, user: Option<&str>, project: Option<&str>| ShareNode {
        path: path.to_owned(),
        user: user.map(Into::into),
        project: project.map(str::to_owned),
        shares: 30,
        job_count: 2,
        level: 300_000,
        total: 1_000_000,
        long_target_share: 500_000,
        short_target_share: 250_001,
        actual_share: 501_353,
        usage: 40_283_438,
        cpu: 40_283_438,
        mem: 62_613,
        io: 31,
        ltcpu: 40_570_000,
        ltmem: 63_058,
        ltio: 31,
        usage_time: 99,
        ..ShareNode::default()
    };
    let nodes = [node("/", None, None), node("/p1/default/u1", Some("u1"), Some("p1"))];
    let rest = "0.300000:1.000000:0.500000:0.250001:0.501353:40.283438:40.283438:0.062613:0.000031:40.570000:0.063058:0.000031:";
    let expected =
        format!("100:sharelog:100:99:/:::30:2:{rest}\n100:sharelog:100:99:/p1/default/u1:u1:p1:30:2:{rest}\n");
    let mut cell = ReportingCell::new("reporting=true sharelog=0:10:0");
    let at = |minutes: u64| Now {
        tick: Tick(minutes * 60_000),
        wall: Wall(100_000),
    };
    for (minute, expected) in [(1, &*expected), (10, ""), (11, &*expected)] {
        cell.file.shares(&cell.state, &nodes, at(minute));
        assert_eq!(cell.written(), expected, "minute {minute}");
        std::fs::remove_file(cell.dir.path().join("reporting")).ok();
    }
    let mut cell = ReportingCell::new("reporting=true");
    cell.file.shares(&cell.state, &nodes, at(1));
    assert_eq!(cell.written(), "");
}

#[test]
fn an_advance_reservation_leaves_the_records_that_8_1_9_writes() {
    let mut cell = ReportingCell::new("reporting=true");
    let instance = || granted()[0].instance.clone();
    let contact = |connected| Observation::Contact {
        host: instance().host,
        at: Tick(9),
        connected,
    };
    cell.observations.apply(&contact(true));
    let owner = r#"{"user": "u1", "uid": 1000, "gid": 1000, "group": "users"}"#;
    let asked = r#"{"hard": [{"name": "lic", "value": "1"}, {"name": "gmem", "value": "1G"}]}"#;
    let spec = format!(r#"{{"name": "later", "owner": {owner}, "account": "acct", "requests": {asked}}}"#);
    let spec: ReservationSpec = serde_json::from_str(&spec).unwrap();
    let id = ReservationId(1);
    let (start, end) = (Wall(100_000), Wall(900_000));
    cell.event(Event::ReservationGranted {
        id,
        spec: Arc::new(spec),
        start,
        end,
        granted: granted(),
        pe: None,
    });
    cell.event(Event::ReservationChanged {
        id,
        state: ReservationState::Running,
    });
    for disabled in [true, false] {
        let state = InstanceState {
            disabled,
            ..InstanceState::default()
        };
        cell.event(Event::InstanceChanged {
            instance: instance(),
            state,
        });
    }
    for connected in [false, false, true] {
        cell.observations.apply(&contact(connected));
        let ReportingCell {
            state,
            observations,
            file,
            ..
        } = &mut cell;
        file.observed(state, observations, &contact(connected), 100);
    }
    cell.event(Event::ReservationEnded { id });
    let text = cell.written();
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(":new_ar:") || line.contains(":ar_"))
        .collect();
    let expected = [
        "100:new_ar:100:1:u1",
        "100:ar_attr:100:100:1:later:acct:100:900::lic=1,gmem=1G",
        "100:ar_log:100:100:1:r:START TIME REACHED:start time of AR reached",
        "100:ar_log:100:100:1:E:RESOURCES UNSATISFIED:AR resources unsatisfied",
        "100:ar_log:100:100:1:r:RESOURCES SATISFIED:AR resources satisfied",
        "100:ar_log:100:100:1:E:RESOURCES UNSATISFIED:AR resources unsatisfied",
        "100:ar_log:100:100:1:r:RESOURCES SATISFIED:AR resources satisfied",
        "100:ar_log:100:100:1:d:DELETED:AR deleted",
        "100:ar_acct:100:100:1:all.q:node1:1",
    ];
    assert_eq!(told, expected);
}
