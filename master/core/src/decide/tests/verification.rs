//! The verifier of the cell: jobs wait for it, and come into being as it wants them.

use super::cell::{resources, selection};
use super::objects::{conf, object_change};
use super::*;
use crate::effect::{Effect, Input, VerificationId, VerificationOrder};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, JobNumber, RequestId};
use proto::job::{HoldChange, JobChanges, JobSpec, Owner};
use proto::object::ObjectKind;
use proto::wire::client::{Command, ObjectAction, Reply};
use proto::wire::view::Data;

/// A cell with a verifier, and these further entries of its configuration.
fn verified_cell(more: &[(&str, &str)]) -> Cell {
    let mut cell = Cell::ready();
    let all: Vec<(&str, &str)> = [("jsv_url", "/opt/jsv.sh")].iter().chain(more).copied().collect();
    let change = object_change(ObjectKind::ClusterConf, "global", ObjectAction::Replace(conf(&all)));
    let reply = cell.change(vec![change]);
    assert!(
        !reply.answers.iter().any(proto::wire::client::Answer::is_refusal),
        "{reply:?}"
    );
    cell
}

/// What the last input wants the verifier asked.
fn orders(cell: &Cell) -> Vec<VerificationOrder> {
    let order = |effect: &Effect| match effect {
        Effect::Verify(order) => Some((**order).clone()),
        _ => None,
    };
    cell.effects.iter().filter_map(order).collect()
}

/// The answers that the last input led to.
fn replies(cell: &Cell) -> Vec<Reply> {
    let reply = |effect: &Effect| match effect {
        Effect::Reply { reply, .. } => Some((**reply).clone()),
        _ => None,
    };
    cell.effects.iter().filter_map(reply).collect()
}

fn request(cell: &mut Cell, id: u128, command: Command) {
    let input = Input::Command {
        reply_to: crate::effect::ReplyTo(u64::try_from(id).unwrap()),
        id: RequestId(id),
        owner: cell::owner("u1"),
        host: HostName::new("sub"),
        entropy: [0; 32],
        command: Box::new(command),
    };
    cell.input(input);
}

fn submit(cell: &mut Cell, id: u128, spec: JobSpec) -> Vec<VerificationOrder> {
    request(cell, id, Command::Submit(Box::new(spec)));
    orders(cell)
}

fn verified(cell: &mut Cell, id: VerificationId, outcome: Result<JobSpec, Diagnostic>) -> Vec<Reply> {
    let outcome = outcome.map(Box::new);
    cell.input(Input::Verified { id, outcome });
    replies(cell)
}

fn number(replies: &[Reply]) -> u32 {
    match replies {
        [
            Reply {
                data: Some(Data::Submitted { number, .. }),
                ..
            },
        ] => number.0,
        _ => panic!("{replies:?}"),
    }
}

#[test]
fn a_job_becomes_what_the_verifier_makes_of_it_and_replay_asks_none() {
    let mut cell = verified_cell(&[("qmaster_params", "JSV_TIMEOUT=7,JSV_THRESHOLD=20")]);
    let asked = submit(&mut cell, 1001, job());
    let [order] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(
        (order.number, order.patience_s, order.threshold_ms),
        (JobNumber(1), 7, 20)
    );
    assert_eq!(
        (order.verifier.path.as_str(), order.spec.owner.user.as_str()),
        ("/opt/jsv.sh", "u1")
    );
    assert!(replies(&cell).is_empty(), "it waits");
    let corrected = JobSpec {
        name: "corrected".to_owned(),
        owner: Owner {
            uid: 0,
            ..cell::owner("root")
        }
        .into(),
        ..job()
    };
    let answered = verified(&mut cell, order.id, Ok(corrected));
    assert_eq!(number(&answered), 1);
    let spec = &cell.job(1).spec;
    assert_eq!(
        (spec.name.as_str(), spec.owner.user.as_str()),
        ("corrected", "u1"),
        "it cannot choose the owner"
    );
    assert!(
        verified(&mut cell, order.id, Ok(job())).is_empty(),
        "an answer too much leads to nothing"
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_rejection_is_the_answer_and_makes_no_job() {
    let mut cell = verified_cell(&[]);
    let asked = submit(&mut cell, 1001, job());
    let refusal = Diagnostic::new(Code::JobRejected, "not today");
    let answered = verified(&mut cell, asked[0].id, Err(refusal));
    assert_eq!(answered[0].answers[0].refusal().unwrap().what, "not today");
    assert!(cell.core.state().jobs.is_empty());
    assert_eq!(
        submit(&mut cell, 1002, job())[0].number,
        JobNumber(2),
        "a verifier sees each number once"
    );
}

#[test]
fn what_the_verifier_makes_is_checked_like_every_job() {
    let mut cell = verified_cell(&[]);
    let asked = submit(&mut cell, 1001, job());
    let bad = JobSpec {
        name: "1bad".to_owned(),
        ..job()
    };
    let answered = verified(&mut cell, asked[0].id, Ok(bad));
    let refusal = answered[0].answers[0].refusal().unwrap();
    assert!(refusal.what.contains("cannot start with a digit"), "{refusal}");
}

#[test]
fn numbers_go_on_behind_a_job_that_others_have_overtaken() {
    let mut cell = verified_cell(&[]);
    let first = submit(&mut cell, 1001, job());
    let second = submit(&mut cell, 1002, job());
    assert_eq!((first[0].number, second[0].number), (JobNumber(1), JobNumber(2)));
    assert_eq!(number(&verified(&mut cell, second[0].id, Ok(job()))), 2);
    assert_eq!(number(&verified(&mut cell, first[0].id, Ok(job()))), 1);
    assert_eq!(cell.core.state().last_number, JobNumber(2));
    assert_eq!(submit(&mut cell, 1003, job())[0].number, JobNumber(3));
    cell.assert_replay_is_live();
}

#[test]
fn a_repeated_request_waits_for_the_same_answer() {
    let mut cell = verified_cell(&[]);
    let asked = submit(&mut cell, 1001, job());
    assert!(submit(&mut cell, 1001, job()).is_empty(), "it is asked once");
    assert_eq!(number(&verified(&mut cell, asked[0].id, Ok(job()))), 1);
    request(&mut cell, 1001, Command::Submit(Box::new(job())));
    assert_eq!(number(&replies(&cell)), 1, "the first answer");
    assert_eq!(cell.core.state().jobs.len(), 1);
}

#[test]
fn copies_pass_through_the_verifier_each_by_itself() {
    let mut cell = verified_cell(&[]);
    for id in [1001, 1002] {
        let asked = submit(&mut cell, id, job());
        verified(&mut cell, asked[0].id, Ok(job()));
    }
    let jobs = selection(&["1", "2", "77"]);
    let changes = Box::default();
    request(&mut cell, 1003, Command::Resubmit { jobs, changes });
    let asked = orders(&cell);
    assert_eq!(asked.iter().map(|order| order.number.0).collect::<Vec<_>>(), [3, 4]);
    assert!(verified(&mut cell, asked[1].id, Err(Diagnostic::new(Code::JobRejected, "no"))).is_empty());
    let answered = verified(&mut cell, asked[0].id, Ok(job()));
    let texts: Vec<String> = answered[0].answers.iter().map(|answer| format!("{answer:?}")).collect();
    assert!(
        texts[0].contains("Your job 3 (") && texts[1].contains("\"no\"") && texts[2].contains("does not exist"),
        "{texts:?}"
    );
    assert_eq!(cell.core.state().jobs.len(), 3);
    cell.assert_replay_is_live();
}

#[test]
fn too_many_waiting_jobs_of_a_user_are_refused() {
    let mut cell = verified_cell(&[]);
    let most = crate::decide::submit::verification::JOBS_EACH;
    for id in 0..most {
        assert_eq!(submit(&mut cell, 2_000 + id as u128, job()).len(), 1);
    }
    assert!(submit(&mut cell, 1001, job()).is_empty());
    let refused = replies(&cell);
    assert_eq!(refused[0].answers[0].refusal().unwrap().code, Code::Overloaded);
}

#[test]
fn alterations_are_judged_by_the_list_of_the_cell() {
    let named = |name: &str| JobChanges {
        name: Some(name.to_owned()),
        ..JobChanges::default()
    };
    let hard = JobChanges {
        hard: Some(resources("h_rt=5")),
        ..JobChanges::default()
    };
    let pe = JobChanges {
        pe: Some(proto::job::PeRequest {
            name: "smp".to_owned(),
            slots: proto::request::SlotRange::exactly(2).unwrap(),
        }),
        ..JobChanges::default()
    };
    let holds = JobChanges {
        holds: Some(HoldChange::default()),
        ..JobChanges::default()
    };
    let refused = |names: &str| {
        Some(format!(
            "rejected due to jsv_allowed_mod configuration which does not allow: {names}"
        ))
    };
    let never = Some("No job modification allowed due to jsv_allowed_mod configuration".to_owned());
    for (list, changes, expected) in [
        ("ac,h,i,e,o,j,M,N,p,w", named("x"), None),
        ("ac,h,i,e,o,j,M,N,p,w", hard.clone(), refused("l_hard")),
        ("ac,h,i,e,o,j,M,N,p,w", pe.clone(), refused("pe_name,pe_min")),
        ("l,pe", hard.clone(), None),
        ("l_soft", hard, refused("l_hard")),
        ("none", named("x"), never),
        ("none", holds, None),
    ] {
        let mut cell = verified_cell(&[("jsv_allowed_mod", list)]);
        request(
            &mut cell,
            1001,
            Command::Alter {
                jobs: selection(&["77"]),
                changes: Box::new(changes),
            },
        );
        let said = replies(&cell)[0].answers[0].refusal().unwrap().what.clone();
        assert_eq!(
            said,
            expected.unwrap_or_else(|| "denied: job \"77\" does not exist".to_owned()),
            "{list}"
        );
    }
}

#[test]
fn a_verifier_is_named_by_an_absolute_path_and_never_root() {
    for (url, expected) in [
        ("foo:/x", "type \"foo\" in JSV URL is invalid"),
        ("root@/x", "user \"root\" specified in JSV URL is not allowed"),
        ("x.sh", "JSV \"x.sh\" is not an absolute path"),
    ] {
        let mut cell = Cell::ready();
        let change = object_change(
            ObjectKind::ClusterConf,
            "global",
            ObjectAction::Replace(conf(&[("jsv_url", url)])),
        );
        let reply = cell.change(vec![change]);
        assert_eq!(reply.answers[0].refusal().unwrap().what, expected);
    }
}
