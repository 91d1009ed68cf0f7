//! What the model knows of the use of running tasks: what was charged and what was observed since,
//! each once.

use super::lab::Lab;
use crate::event::Event;
use crate::observe::Observation;
use crate::state::usage::Account;
use proto::id::{SubmitSeq, TaskId, TaskKey};
use proto::usage::{Consumption, Usage};
use std::sync::Arc;

/// A cell in which three jobs run, of `u1`, of `u2`, and of `u1` in a project.
fn busy() -> Lab {
    let mut lab = Lab::new();
    for line in [
        "host a",
        "queue all.q a slots=10",
        "job 1 -u u1",
        "job 2 -u u2",
        "job 3 -u u1 -P p",
    ] {
        lab.line(line);
    }
    lab.pass();
    lab
}

fn key(lab: &Lab, job: u64) -> TaskKey {
    lab.state().jobs[&SubmitSeq(job)].tasks[&TaskId(1)]
        .place
        .placement()
        .expect("it runs")
        .key
}

fn observe(lab: &mut Lab, job: u64, cpu_ms: u64) {
    let observed = vec![(
        key(lab, job),
        Usage {
            cpu_ms,
            ..Usage::default()
        },
    )];
    lab.scheduler.observe(&Observation::Usage(observed));
}

/// Seconds of processor time of every account, those of a project behind a slash.
fn used(lab: &Lab) -> String {
    let model = lab.scheduler.model();
    let of = |account: &Account| {
        let project = account
            .project
            .as_ref()
            .map(|project| format!("/{project}"))
            .unwrap_or_default();
        format!(
            "{}{project}={}",
            account.user,
            model.used(account, lab.now).cpu / 1_000_000
        )
    };
    let mut all: Vec<String> = model.accounts().map(of).collect();
    all.sort();
    all.join(" ")
}

#[test]
fn what_is_observed_counts_until_it_is_charged() {
    let mut lab = busy();
    assert_eq!(used(&lab), "");
    observe(&mut lab, 1, 5_000);
    observe(&mut lab, 2, 7_000);
    observe(&mut lab, 3, 9_000);
    assert_eq!(used(&lab), "u1/p=9 u1=5 u2=7");
    observe(&mut lab, 1, 6_000);
    assert_eq!(used(&lab), "u1/p=9 u1=6 u2=7");
    let charged = Consumption {
        cpu_ms: 4_000,
        ..Consumption::default()
    };
    let tasks = vec![(key(&lab, 1), charged), (key(&lab, 2), charged)];
    lab.event(Event::UsageCharged { tasks });
    assert_eq!(used(&lab), "u1/p=9 u1=6 u2=7", "the same, of which more is charged");
    // Lab ends tasks without a record: what was charged stays, what was observed is gone with its
    // task.
    lab.end("1");
    lab.end("2");
    assert_eq!(used(&lab), "u1/p=9 u1=4 u2=4");
    let before = lab.state().jobs[&SubmitSeq(3)].spec.clone();
    let spec = Arc::new(proto::job::JobSpec {
        project: None,
        ..(*before).clone()
    });
    lab.event(Event::JobAltered {
        seq: SubmitSeq(3),
        spec,
        waits_for: Vec::new(),
        array_waits_for: Vec::new(),
    });
    assert_eq!(used(&lab), "u1=13 u2=4");
    lab.event(Event::UsageCleared {
        users: vec!["u2".into()],
    });
    assert_eq!(used(&lab), "u1=13");
}

#[test]
fn a_changed_factor_holds_for_what_is_not_charged_yet() {
    let mut lab = busy();
    observe(&mut lab, 2, 7_000);
    let mut host = proto::host::ExecHost::template("a".into()).to_fields();
    host.set("usage_scaling", "cpu=2");
    let kind = proto::object::ObjectKind::ExecHost;
    lab.event(Event::ObjectsChanged(vec![crate::event::StoredObject {
        kind,
        name: "a".to_owned(),
        fields: Some(host),
    }]));
    assert_eq!(used(&lab), "u2=14");
}
