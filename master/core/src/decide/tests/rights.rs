//! Whom the master believes: a host's vouch counts only for what the host lists permit.

use super::cell::{Cell, job, owner, selection, texts};
use crate::effect::{Input, ReplyTo};
use crate::event::StoredObject;
use proto::id::RequestId;
use proto::job::Owner;
use proto::object::{Fields, ObjectKind};
use proto::wire::client::{Command, ObjectAction, ObjectChange};

#[test]
fn root_counts_on_the_masters_host_alone() {
    let mut cell = Cell::ready();
    cell.core.site.master_host = Some("sub".into());
    for user in ["root", "boss"] {
        cell.store(vec![StoredObject {
            kind: ObjectKind::Managers,
            name: user.to_owned(),
            fields: Some(Fields::new()),
        }]);
    }
    let add = |name: &str| {
        Command::Objects(vec![ObjectChange {
            kind: ObjectKind::Managers,
            name: name.to_owned(),
            action: ObjectAction::Add(Fields::new()),
        }])
    };
    for (user, host, expected) in [
        ("root", "sub", "root@sub added \"u1\" to manager list"),
        ("root", "adm", "denied: root of host \"adm\" is no manager"),
        ("root", "h1", "denied: host \"h1\" is no admin host"),
        ("boss", "adm", "boss@adm added \"u2\" to manager list"),
    ] {
        let id = RequestId(2_000 + cell.log.len() as u128);
        let name = format!("u{}", cell.core.state().config.managers.len() - 1);
        assert_eq!(texts(&cell.command_as(id, user, host, add(&name))), [expected]);
    }
    // A host that calls its root by another number, or its number by another name, gains nothing.
    for owner in [
        Owner {
            uid: 7,
            ..owner("root")
        },
        Owner {
            user: "toor".into(),
            ..owner("root")
        },
    ] {
        cell.input(Input::Command {
            reply_to: ReplyTo(1),
            id: RequestId(3_000 + cell.log.len() as u128),
            owner,
            host: "adm".into(),
            entropy: [0; 32],
            command: Box::new(add("u9")),
        });
        assert!(!cell.core.state().config.managers.contains("u9"));
    }
    assert_eq!(cell.qdel("root", &["99999"]), ["denied: job \"99999\" does not exist"]);
}

#[test]
fn root_of_another_host_does_not_delete_jobs_of_users() {
    let mut cell = Cell::ready();
    cell.core.site.master_host = Some("sub".into());
    let number = cell.submit(job());
    let jobs = selection(&[&number.to_string()]);
    let id = RequestId(4_000);
    let said = texts(&cell.command_as(id, "root", "adm", Command::Delete { jobs, force: false }));
    assert_eq!(
        said,
        [format!(
            "root - you do not have the necessary privileges to delete the job \"{number}\""
        )]
    );
    assert!(cell.exists(number));
}
