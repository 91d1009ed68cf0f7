//! `-scope`: what is refused at submission and alteration, and what is told of it; and the
//! attributes of environments beside it.

use super::cell::{resources, selection, texts};
use super::*;
use crate::decide::jobs::category_line;
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{JobChanges, JobSpec, PeRequest, Requests};
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::request::SlotRange;
use proto::reservation::ReservationSpec;
use proto::wire::client::{Answer, AttributeEdit, Command, ObjectAction, ObjectChange, Reply};

fn change(cell: &mut Cell, kind: ObjectKind, name: &str, action: ObjectAction) -> Reply {
    cell.command(
        "boss",
        Command::Objects(vec![ObjectChange {
            kind,
            name: name.to_owned(),
            action,
        }]),
    )
}

fn set(cell: &mut Cell, edit: AttributeEdit, attribute: &str, value: &str) -> Reply {
    let action = ObjectAction::Attribute {
        edit,
        attribute: attribute.to_owned(),
        value: value.to_owned(),
    };
    change(cell, ObjectKind::Pe, "mpi", action)
}

/// A cell with the environment `mpi`, memory charged by slot, a licence by job and a device by
/// host.
pub(super) fn parallel_cell() -> Cell {
    let mut cell = Cell::ready();
    let lines = "memory mem MEMORY <= YES YES 0 0\nlic lic INT <= YES JOB 0 0\ndisk dk INT <= YES HOST 0 0";
    let table = Complex::parse(&format!("{}\n{lines}", Complex::built_in())).unwrap();
    change(
        &mut cell,
        ObjectKind::ComplexTable,
        "",
        ObjectAction::Replace(table.write()),
    );
    let pe = ParallelEnvironment::template("mpi".into()).to_fields();
    assert_eq!(
        texts(&change(&mut cell, ObjectKind::Pe, "mpi", ObjectAction::Add(pe))).len(),
        1
    );
    cell
}

fn mpi() -> Option<PeRequest> {
    Some(PeRequest {
        name: "mpi".to_owned(),
        slots: SlotRange::parse("4").unwrap(),
    })
}

/// Requests of the environment `mpi`: hard, of the master, of the slaves.
fn asked(hard: &str, master: &str, slaves: &str) -> Requests {
    let (hard, master, slaves) = (resources(hard), resources(master), resources(slaves));
    Requests {
        hard,
        master,
        slaves,
        pe: mpi(),
        ..Requests::default()
    }
}

fn job_with(requests: Requests) -> JobSpec {
    JobSpec {
        requests: requests.into(),
        ..job()
    }
}

fn refusal(reply: &Reply) -> &Diagnostic {
    let [Answer::Refused(refusal)] = &reply.answers[..] else {
        panic!("{reply:?}")
    };
    refusal
}

#[test]
fn scopes_are_for_parallel_jobs() {
    let mut cell = parallel_cell();
    let what = "job rejected: specification of master or slave scope is not allowed for non-parallel jobs";
    let queues = Requests {
        slave_queues: vec!["all.q".to_owned()],
        ..asked("", "", "")
    };
    for requests in [asked("", "memory=1G", ""), asked("", "", "memory=1G"), queues] {
        let serial = job_with(Requests {
            pe: None,
            ..requests.clone()
        });
        let reply = cell.command("u1", Command::Submit(Box::new(serial)));
        let refusal = refusal(&reply);
        assert_eq!(
            (refusal.code, refusal.what.as_str(), refusal.place.as_str()),
            (Code::JobRejected, what, "-scope")
        );
        assert!(!refusal.fix.is_empty());
        assert!(cell.try_submit(job_with(requests)).is_ok());
    }
}

#[test]
fn an_attribute_is_in_the_global_scope_or_in_the_others() {
    let mut cell = parallel_cell();
    let global = |scope: &str, name: &str| {
        format!("job rejected: resource \"{name}\" is requested in global scope and in {scope} scope")
    };
    let twice = "job rejected: per host resource \"disk\" is requested in master scope and in slave scope".to_owned();
    let once = "job rejected: per job resource \"lic\" is requested in slave scope".to_owned();
    let soft = |text: &str, requests| Requests {
        soft: resources(text),
        ..requests
    };
    for (requests, place, what) in [
        (
            asked("memory=1G", "memory=1G", ""),
            "-scope master -l memory=1G",
            global("master", "memory"),
        ),
        (
            asked("mem=1G", "", "arch=lx,memory=1G"),
            "-scope slave -l memory=1G",
            global("slave", "memory"),
        ),
        (
            asked("memory=1G", "", "mem=2G"),
            "-scope slave -l mem=2G",
            global("slave", "memory"),
        ),
        (
            asked("disk=1", "disk=1", ""),
            "-scope master -l disk=1",
            global("master", "disk"),
        ),
        (
            soft("a=lx", asked("", "arch=lx", "")),
            "-scope master -l arch=lx",
            global("master", "arch"),
        ),
        (asked("", "disk=1", "dk=1"), "-scope slave -l dk=1", twice),
        (asked("", "", "lic=1"), "-scope slave -l lic=1", once.clone()),
        (asked("", "lic=1", "lic=1"), "-scope slave -l lic=1", once),
    ] {
        let reply = cell.command("u1", Command::Submit(Box::new(job_with(requests))));
        let refusal = refusal(&reply);
        assert_eq!(
            (refusal.code, refusal.what.as_str()),
            (Code::JobRejected, what.as_str())
        );
        assert_eq!(refusal.place, place);
        assert!(!refusal.why.is_empty() && !refusal.fix.is_empty(), "{what}");
    }
    for requests in [
        asked("h_rt=60", "memory=1G", "memory=4G"),
        asked("arch=lx*", "disk=1,lic=1", "memory=4G"),
        asked("lic=1", "", "disk=1"),
        asked("disk=1,lic=1,memory=1G", "", ""),
    ] {
        assert!(cell.try_submit(job_with(requests.clone())).is_ok(), "{requests:?}");
    }
}

#[test]
fn lists_of_scopes_are_checked_as_the_others() {
    let mut cell = parallel_cell();
    for (requests, place, what) in [
        (
            asked("", "nosuchres=1", ""),
            "-scope master -l nosuchres=1",
            "unknown resource \"nosuchres\"",
        ),
        (
            asked("", "", "memory=abc"),
            "-scope slave -l memory=abc",
            "attribute \"memory\" is not a memory value",
        ),
        (
            asked("", "", "slots=2"),
            "-scope slave -l slots=2",
            "\"job\" denied: use parallel environments instead of requesting slots explicitly",
        ),
        (
            asked("", "", "h=nosuchhost"),
            "-l h",
            "can't resolve hostname \"nosuchhost\"",
        ),
        (
            Requests {
                slave_queues: vec!["nosuch.q".to_owned()],
                ..asked("", "", "")
            },
            "",
            "Job was rejected because job requests unknown queue \"nosuch.q\"",
        ),
    ] {
        let reply = cell.command("u1", Command::Submit(Box::new(job_with(requests))));
        assert_eq!(
            (refusal(&reply).what.as_str(), refusal(&reply).place.as_str()),
            (what, place)
        );
    }
}

#[test]
fn qalter_changes_the_lists_under_the_same_rules() {
    let mut cell = parallel_cell();
    cell.submit(job_with(asked("h_rt=60", "memory=1G", "")));
    let alter = |cell: &mut Cell, changes| {
        texts(&cell.command(
            "u1",
            Command::Alter {
                jobs: selection(&["1"]),
                changes: Box::new(changes),
            },
        ))
    };
    let none = JobChanges::default;
    let changes = JobChanges {
        master: Some(resources("memory=2G,lic=1")),
        slaves: Some(resources("memory=4G")),
        slave_queues: Some(vec!["all.q".to_owned()]),
        ..none()
    };
    let expected = [
        "master hard resource list",
        "slave hard resource list",
        "slave hard queue list",
    ];
    assert_eq!(
        alter(&mut cell, changes)[..3],
        expected.map(|list| format!("modified {list} of job 1"))
    );
    let requests = cell.job(1).spec.requests.clone();
    assert_eq!(
        *requests,
        Requests {
            slave_queues: vec!["all.q".to_owned()],
            ..asked("h_rt=60", "memory=2G,lic=1", "memory=4G")
        }
    );
    let refused = alter(
        &mut cell,
        JobChanges {
            hard: Some(resources("mem=1G")),
            ..none()
        },
    );
    assert_eq!(
        refused,
        ["job rejected: resource \"memory\" is requested in global scope and in master scope"]
    );
    assert_eq!(cell.job(1).spec.requests, requests);
    cell.submit(job());
    let jobs = selection(&["2"]);
    let changes = Box::new(JobChanges {
        slaves: Some(resources("memory=1G")),
        ..none()
    });
    let reply = cell.command("u1", Command::Alter { jobs, changes });
    assert!(
        refusal(&reply).what.contains("not allowed for non-parallel jobs"),
        "{reply:?}"
    );
    cell.assert_replay_is_live();
}

#[test]
fn an_advance_reservation_has_no_scopes() {
    let mut cell = parallel_cell();
    let text = r#"{"owner": {"user": "u1", "uid": 2001, "gid": 2001, "group": "u1"}}"#;
    let spec = |requests| ReservationSpec {
        duration_s: Some(100),
        requests,
        ..serde_json::from_str(text).unwrap()
    };
    change(
        &mut cell,
        ObjectKind::UserSet,
        "arusers",
        ObjectAction::Enlist { entry: "u1".to_owned() },
    );
    for requests in [asked("", "memory=1G", ""), asked("", "", "memory=1G")] {
        let reply = cell.command("u1", Command::Reserve(Box::new(spec(requests))));
        let what = "denied: an advance reservation has no requests for its master or its slaves alone";
        assert_eq!(
            (refusal(&reply).code, refusal(&reply).what.as_str()),
            (Code::NotSupported, what)
        );
    }
}

#[test]
fn accounting_names_what_each_scope_asks_for() {
    let mut requests = asked("h_rt=60", "memory=1G", "memory=4G,disk=1");
    requests.master_queues = vec!["io.q".to_owned()];
    requests.slave_queues = vec!["a.q".to_owned(), "b.q".to_owned()];
    let scopes = "-scope master -l memory=1G -scope slave -l disk=1,memory=4G -scope slave -q a.q,b.q";
    let text = |requests| category_line::text(&job_with(requests));
    let expected = format!("-masterq io.q -l h_rt=60 -pe mpi 4 {scopes}");
    assert_eq!(text(requests.clone()), expected);
    // As options of qsub it means the same.
    requests.soft_queues = vec!["c.q".to_owned()];
    let expected = format!("-masterq io.q -l h_rt=60 -pe mpi 4 -soft -q c.q -hard {scopes}");
    assert_eq!(text(requests), expected);
    assert_eq!(text(asked("h_rt=60", "", "")), "-l h_rt=60 -pe mpi 4");
    let mut requests = asked("h_rt=60,arch=lx*", "", "");
    requests.hard_queues = vec!["all.q".to_owned()];
    assert_eq!(text(requests), "-q all.q -l arch=lx*,h_rt=60 -pe mpi 4");
}

#[test]
fn ign_sreq_on_mhost_is_set_and_taken_back() {
    let mut cell = parallel_cell();
    let shown = |cell: &Cell| {
        let config = &cell.core.state().config;
        let pe = ParallelEnvironment::read("mpi", &config.object_fields(ObjectKind::Pe, "mpi").unwrap()).unwrap();
        (
            pe.ign_sreq_on_mhost.0,
            pe.to_fields().value("ign_sreq_on_mhost").map(str::to_owned),
        )
    };
    for edit in [AttributeEdit::Add, AttributeEdit::Modify, AttributeEdit::Replace] {
        for (value, expected) in [("TRUE", (true, Some("TRUE".to_owned()))), ("FALSE", (false, None))] {
            let told = set(&mut cell, edit, "ign_sreq_on_mhost", value);
            assert_eq!(texts(&told), ["boss@sub modified \"mpi\" in parallel environment list"]);
            assert_eq!(shown(&cell), expected, "{edit:?} {value}");
        }
    }
    let refused = set(&mut cell, AttributeEdit::Replace, "ign_sreq_on_mhost", "maybe");
    assert_eq!(refusal(&refused).code, Code::BadValue);
}

#[test]
fn tasks_that_start_others_by_themselves_are_refused() {
    let mut cell = parallel_cell();
    for key in ["master_forks_slaves", "daemon_forks_slaves"] {
        let mut fields: Fields = ParallelEnvironment::template("mpi".into()).to_fields();
        fields.set(key, "TRUE");
        let other = ParallelEnvironment::template("other".into()).to_fields();
        let other: Fields = other
            .iter()
            .map(|field| (field.key.clone(), field.value.clone()))
            .chain([(key.to_owned(), "TRUE".to_owned())])
            .collect();
        for reply in [
            change(&mut cell, ObjectKind::Pe, "mpi", ObjectAction::Replace(fields)),
            change(&mut cell, ObjectKind::Pe, "other", ObjectAction::Add(other)),
            set(&mut cell, AttributeEdit::Replace, key, "TRUE"),
        ] {
            let refusal = refusal(&reply);
            let what = format!("denied: {key} TRUE of a parallel environment is not supported yet");
            assert_eq!(
                (refusal.code, refusal.what.as_str()),
                (Code::NotSupported, what.as_str())
            );
            assert!(!refusal.fix.is_empty());
        }
        let told = set(&mut cell, AttributeEdit::Replace, key, "FALSE");
        assert_eq!(texts(&told), ["boss@sub modified \"mpi\" in parallel environment list"]);
    }
}
