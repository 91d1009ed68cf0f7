use super::*;
use crate::testing::{cell_events, ended_task, granted, key, spec};
use master_core::event::InstanceState;
use proto::id::{EventSeq, ReservationId, SubmitSeq, UserName};
use proto::job::MailEvents;
use proto::object::{Fields, ObjectKind};
use proto::reservation::{ReservationSpec, ReservationState};
use proto::time::{Now, Tick};
use std::sync::Arc;

/// A cell that tells each mail as one text.
struct MailCell {
    state: State,
    mailer: Mailer,
}

impl MailCell {
    fn new(configuration: &[(&str, &str)]) -> Self {
        let mut cell = Self {
            state: State::new(),
            mailer: Mailer::new(TimeZone::UTC, MailQueue::new(None).0),
        };
        for record in cell_events(0) {
            cell.state.apply(&record);
        }
        let mut fields: Fields = cell.state.config.cluster.to_fields();
        configuration.iter().for_each(|(key, value)| fields.set(key, *value));
        let stored = master_core::event::StoredObject {
            kind: ObjectKind::ClusterConf,
            name: "global".to_owned(),
            fields: Some(fields),
        };
        cell.event(Event::ObjectsChanged(vec![stored]));
        cell
    }

    fn event(&mut self, event: Event) -> Vec<String> {
        let now = Now {
            tick: Tick(9),
            wall: Wall(1_800_000_005_000),
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
        let mails = self.mailer.notices(&self.state, &record);
        self.state.apply(&record);
        let told = |mail: Mail| {
            format!(
                "{} -s {} {}\n{}",
                mail.mailer,
                mail.subject,
                mail.to.join(" "),
                mail.text
            )
        };
        mails.into_iter().map(told).collect()
    }

    fn submit(&mut self, seq: u64, spec: JobSpec) {
        let event = Event::JobSubmitted {
            seq: SubmitSeq(seq),
            number: JobNumber(seq as u32),
            spec: Arc::new(spec),
            waits_for: Vec::new(),
            array_waits_for: Vec::new(),
        };
        assert_eq!(self.event(event), [""; 0]);
    }

    fn start(&mut self, job: u64) -> Vec<String> {
        assert_eq!(
            self.event(Event::TaskPlaced {
                key: key(job, 1),
                granted: granted(),
                pe: None,
                maps: Vec::new(),
                binding: Vec::new(),
            }),
            [""; 0]
        );
        self.event(Event::TaskStarted {
            key: key(job, 1),
            at: Wall(1_800_000_001_000),
        })
    }

    fn end(&mut self, job: u64, failed: FailedCode, exit_status: u32, reason: &str, then: TaskFate) -> Vec<String> {
        let Event::TaskEnded { key, record, .. } = ended_task(0, job, 1).event else {
            unreachable!()
        };
        let mut record = record.unwrap();
        (record.failed, record.exit_status, record.reason) = (failed, exit_status, reason.to_owned());
        record.usage.maxvmem_bytes = 3 << 19;
        self.event(Event::TaskEnded {
            key,
            record: Some(record),
            then,
            saved_pid: None,
            charged: None,
        })
    }
}

fn wants(mail: MailEvents) -> JobSpec {
    JobSpec {
        mail,
        mail_to: vec!["a@x".to_owned(), "b@y".to_owned()],
        ..spec()
    }
}

const ALL: MailEvents = MailEvents {
    begin: true,
    end: true,
    abort: true,
    suspend: true,
};

#[test]
fn a_job_that_runs_is_told_of_in_the_texts_of_8_1_9() {
    let mut cell = MailCell::new(&[("mailer", "/bin/mailx")]);
    cell.submit(1, wants(ALL));
    let name = spec().name;
    assert_eq!(
        cell.start(1),
        [format!(
            "/bin/mailx -s Job 1 ({name}) Started a@x b@y\nJob 1 ({name}) Started\n User       = alice\n \
             Queue      = all.q\n Host       = node1\n Start Time = 01/15/2027 08:00:01\n"
        )]
    );
    let suspended = cell.event(Event::TaskSuspended {
        key: key(1, 1),
        suspended: true,
    });
    assert_eq!(suspended.len(), 1);
    assert!(suspended[0].contains("Suspended\n Master queue    = all.q@node1\n Owner           = alice\n"));
    assert_eq!(
        cell.end(1, FailedCode::NO, 3, "", TaskFate::Done),
        [format!(
            "/bin/mailx -s Job 1 ({name}) Complete a@x b@y\nJob 1 ({name}) Complete\n User             = alice\n \
             Queue            = all.q@node1\n Host             = node1\n Start Time       = 01/15/2027 08:00:01\n \
             End Time         = 01/15/2027 08:00:02\n User Time        = 00:00:00\n System Time      = 00:00:00\n \
             Wallclock Time   = 00:00:01\n CPU              = 00:00:00\n Max vmem         = 1.500M\n \
             Exit Status      = 3\n"
        )]
    );
}

#[test]
fn nobody_is_told_what_he_did_not_ask_for() {
    let mut cell = MailCell::new(&[]);
    cell.submit(1, wants(MailEvents::default()));
    assert_eq!(cell.start(1), [""; 0]);
    assert_eq!(
        cell.event(Event::TaskSuspended {
            key: key(1, 1),
            suspended: true
        }),
        [""; 0]
    );
    assert_eq!(cell.end(1, FailedCode(100), 137, "", TaskFate::Done), [""; 0]);
}

#[test]
fn an_end_that_was_none_says_why() {
    let mut cell = MailCell::new(&[]);
    let to_owner = JobSpec {
        mail_to: Vec::new(),
        ..wants(ALL)
    };
    cell.submit(1, to_owner.clone());
    cell.start(1);
    let aborted = cell
        .end(
            1,
            FailedCode(100),
            137,
            "job 1.1 died through signal KILL (9)",
            TaskFate::Done,
        )
        .remove(0);
    let owner = format!("alice@{}", to_owner.submit_host);
    assert!(
        aborted.starts_with(&format!("/usr/bin/mail -s Job 1 ({}) Aborted {owner}\n", to_owner.name)),
        "{aborted}"
    );
    assert!(
        aborted.contains(" Exit Status      = 137\n Signal           = KILL\n"),
        "{aborted}"
    );
    assert!(
        aborted.ends_with("failed assumedly after job because:\njob 1.1 died through signal KILL (9)\n"),
        "{aborted}"
    );
}

#[test]
fn a_deletion_is_told_once_and_names_who_did_it() {
    let mut cell = MailCell::new(&[]);
    cell.submit(1, wants(ALL));
    let name = spec().name;
    cell.start(1);
    let killed = cell.event(Event::TaskDeletionRequested { key: key(1, 1) });
    assert_eq!(
        killed,
        [format!(
            "/usr/bin/mail -s Job 1 ({name}) Killed a@x b@y\nJob 1 ({name})  was killed by op@login\n"
        )]
    );
    assert_eq!(cell.end(1, FailedCode(100), 137, "", TaskFate::Done), [""; 0]);
    let array = JobSpec {
        array: TaskRange::parse("1-9").ok(),
        ..wants(ALL)
    };
    cell.submit(2, array);
    let tasks = vec![TaskRange::parse("4-6").unwrap()];
    let killed = cell.event(Event::TasksDeleted {
        seq: SubmitSeq(2),
        tasks,
    });
    assert!(
        killed[0].contains(&format!("-s Job-array task 2.4-6:1 ({name}) Killed ")),
        "{killed:?}"
    );
}

#[test]
fn the_administrator_is_told_of_errors_of_jobs_and_queues() {
    let mut cell = MailCell::new(&[("administrator_mail", "root@h, ops@h")]);
    cell.submit(1, wants(MailEvents::default()));
    cell.start(1);
    let error = TaskFate::Error {
        reason: "no such shell".to_owned(),
    };
    let told = cell.end(1, FailedCode(27), 0, "no such shell", error).remove(0);
    assert!(
        told.starts_with(&format!(
            "/usr/bin/mail -s Gridwright {}: Job 1 failed root@h ops@h\n",
            env!("CARGO_PKG_VERSION")
        )),
        "{told}"
    );
    assert!(
        told.contains("Job 1 caused action: Job 1 set to ERROR\n User        = alice\n Queue       = all.q@node1\n")
    );
    assert!(
        told.ends_with("failed searching requested shell: no such shell\n"),
        "{told}"
    );
    let state = InstanceState {
        errors: vec!["it is broken".to_owned()],
        ..InstanceState::default()
    };
    let instance = granted()[0].instance.clone();
    let told = cell
        .event(Event::InstanceChanged {
            instance: instance.clone(),
            state: state.clone(),
        })
        .remove(0);
    assert!(
        told.contains("Job 1 caused action: Queue \"all.q@node1\" set to ERROR\n"),
        "{told}"
    );
    let disabled = InstanceState {
        disabled: true,
        ..state
    };
    assert_eq!(
        cell.event(Event::InstanceChanged {
            instance,
            state: disabled
        }),
        [""; 0]
    );
}

#[test]
fn a_host_that_is_closed_for_starts_that_failed_in_a_row_is_told_as_such_and_not_as_the_doing_of_the_last_job() {
    let mut cell = MailCell::new(&[("administrator_mail", "root@h")]);
    cell.submit(1, wants(MailEvents::default()));
    cell.start(1);
    cell.end(1, FailedCode(28), 0, "no such directory", TaskFate::Requeued);
    let error = "queue all.q marked QERROR: 10 starts in a row failed on host node1, the last one: no such directory";
    assert!(fitness::is_about_host(error));
    let state = InstanceState {
        errors: vec![error.to_owned()],
        ..InstanceState::default()
    };
    let instance = granted()[0].instance.clone();
    let told = cell.event(Event::InstanceChanged { instance, state }).remove(0);
    assert!(
        told.contains("Queue \"all.q@node1\" set to ERROR\n") && told.contains(error),
        "{told}"
    );
    assert!(!told.contains("caused action"), "{told}");
}

#[test]
fn times_and_sizes_are_written_as_people_read_them() {
    assert_eq!(
        [duration(0), duration(3_661_000), duration(90_061_000)],
        ["00:00:00", "01:01:01", "1:01:01:01"]
    );
    assert_eq!([memory(0), memory(512), memory(1 << 30)], ["NA", "512.000", "1.000G"]);
}

/// A mailer of the test that writes its words and its standard input to a file.
#[tokio::test]
async fn the_mailer_gets_subject_address_and_text() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = crate::testing::TempDir::new("mail");
    let (program, out) = (dir.path().join("mailer"), dir.path().join("out"));
    std::fs::write(
        &program,
        format!("#!/bin/sh\nexec >>{}\nprintf '%s|' \"$@\"; cat\n", out.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (outbox, work) = sender::MailQueue::new(None);
    let mail = |to: &[&str]| Mail {
        mailer: program.display().to_string(),
        to: to.iter().map(|to| (*to).to_owned()).collect(),
        subject: "Job 1 (x y) Started".to_owned(),
        text: "text\n".to_owned(),
    };
    outbox.put(mail(&["a@x", "-f/etc/passwd", "b@y"]));
    outbox.put(Mail {
        mailer: "/no/such/mailer".to_owned(),
        ..mail(&["lost@x"])
    });
    outbox.put(mail(&["c@z"]));
    drop(outbox);
    work.await;
    let line = |to: &str| format!("-s|Job 1 (x y) Started|{to}|text\n");
    assert_eq!(
        std::fs::read_to_string(&out).unwrap(),
        line("a@x") + &line("b@y") + &line("c@z")
    );
}

#[test]
fn those_who_reserve_are_told_when_it_begins_fails_and_is_deleted() {
    let mut cell = MailCell::new(&[("mailer", "/bin/mail")]);
    let text = r#"{"name": "week", "owner": {"user": "alice", "uid": 1, "gid": 1, "group": "users"}, "mail_to": ["a@b"],
        "mail": {"begin": true, "end": true, "abort": true}}"#;
    let reservation: ReservationSpec = serde_json::from_str(text).unwrap();
    let id = ReservationId(1);
    let (start, end) = (Wall(1_800_000_000_000), Wall(1_800_000_100_000));
    let spec = Arc::new(reservation);
    let granted = granted();
    let instance = granted[0].instance.clone();
    assert_eq!(
        cell.event(Event::ReservationGranted {
            id,
            spec,
            start,
            end,
            granted,
            pe: None
        }),
        [""; 0]
    );
    let begun = cell
        .event(Event::ReservationChanged {
            id,
            state: ReservationState::Running,
        })
        .concat();
    assert!(
        begun.starts_with("/bin/mail -s Advance Reservation 1 (week) Started a@b\n"),
        "{begun}"
    );
    let disabled = InstanceState {
        disabled: true,
        ..InstanceState::default()
    };
    let failing = cell
        .event(Event::InstanceChanged {
            instance: instance.clone(),
            state: disabled,
        })
        .concat();
    assert!(
        failing.contains("Advance Reservation 1 (week) Fails") && failing.contains("takes no jobs"),
        "{failing}"
    );
    let again = cell
        .event(Event::InstanceChanged {
            instance,
            state: InstanceState::default(),
        })
        .concat();
    assert!(again.contains("Works Again"), "{again}");
    let deleted = cell
        .event(Event::ReservationChanged {
            id,
            state: ReservationState::Deleted,
        })
        .concat();
    assert!(deleted.contains("Deleted by op@login"), "{deleted}");
}
