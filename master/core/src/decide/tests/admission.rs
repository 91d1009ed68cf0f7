//! Queue states by hand, tokens, joining, revoking, simulated hosts, and the end of daemons.

use super::cell::{Cell, texts};
use crate::effect::{Effect, Input, ReplyTo};
use proto::diagnostic::Diagnostic;
use proto::hostgroup::HostGroup;
use proto::job::JobSpec;
use proto::object::{Fields, ObjectKind};
use proto::time::Wall;
use proto::wire::agent::{MasterMessage, TaskSignal};
use proto::wire::client::{Command, JobSelection, ModifyAction, ObjectAction, ObjectChange};
use proto::wire::view::Data;

/// The hash of the token that [`Cell::command`] makes: its entropy is zero.
fn zero_hash() -> String {
    "00".repeat(32)
}

impl Cell {
    fn token(&mut self, uses: u32, valid_s: u64, pattern: &str) {
        let command = Command::CreateToken {
            uses,
            valid_s,
            host_pattern: pattern.to_owned(),
        };
        let reply = self.command("boss", command);
        assert_eq!(reply.data, Some(Data::Token(zero_hash())));
    }

    fn join(&mut self, hash: &str, host: &str) -> Result<(), Diagnostic> {
        self.input(Input::Join {
            reply_to: ReplyTo(9),
            token_hash: hash.to_owned(),
            host: host.into(),
            serial: format!("serial-{host}"),
            not_after: Wall::from_seconds(1_900_000_000),
        });
        let outcome = |effect: &Effect| {
            if let Effect::Joined { outcome, .. } = effect {
                Some(outcome.clone())
            } else {
                None
            }
        };
        self.effects.iter().find_map(outcome).expect("a join is answered")
    }

    fn all_hosts(&mut self, members: &str) {
        let mut fields = HostGroup::template("@allhosts".into()).to_fields();
        fields.set("hostlist", members);
        self.store(vec![crate::event::StoredObject {
            kind: ObjectKind::HostGroup,
            name: "@allhosts".to_owned(),
            fields: Some(fields),
        }]);
        self.set_queue(&[("hostlist", "@allhosts")]);
    }
}

#[test]
fn a_revoked_token_admits_no_host() {
    let mut cell = Cell::ready();
    cell.token(2, 60, "*");
    let revoke =
        |cell: &mut Cell, user: &str, id: &str| texts(&cell.command(user, Command::RevokeToken { id: id.to_owned() }));
    let denied = revoke(&mut cell, "u1", "0000");
    assert_eq!(denied, ["denied: \"u1\" must be manager for this operation"]);
    assert_eq!(
        revoke(&mut cell, "boss", "ff"),
        ["there is no token \"ff\": it was used up, or never made"]
    );
    assert_eq!(revoke(&mut cell, "boss", ""), ["\"\" is the beginning of 1 tokens"]);
    cell.join(&zero_hash(), "n1").unwrap();
    assert_eq!(
        revoke(&mut cell, "boss", "000000000000"),
        ["token 000000000000 is revoked"]
    );
    let refusal = cell.join(&zero_hash(), "n2").unwrap_err();
    assert_eq!(refusal.what, "the token is not known here, or used up");
    cell.assert_replay_is_live();
}

/// A user, what the user does to which queue instances, and the answers.
const QUEUE_STATES: &[(&str, ModifyAction, &str, &[&str])] = {
    use ModifyAction::{ClearQueueError, DisableQueue, EnableQueue, RescheduleQueue, Suspend, SuspendQueue, Unsuspend};
    &[
        (
            "op",
            DisableQueue,
            "all.q@h1",
            &["op@sub changed state of \"all.q@h1\" (disabled)"],
        ),
        (
            "op",
            DisableQueue,
            "*@h1",
            &["Queue instance \"all.q@h1\" is already in the specified state: disabled"],
        ),
        (
            "op",
            EnableQueue,
            "all.q@h1",
            &["op@sub changed state of \"all.q@h1\" (enabled)"],
        ),
        (
            "boss",
            SuspendQueue,
            "all.q",
            &[
                "boss@sub changed state of \"all.q@h1\" (suspended)",
                "boss@sub changed state of \"all.q@h2\" (suspended)",
            ],
        ),
        (
            "boss",
            Unsuspend,
            "all.q@h1",
            &["boss@sub changed state of \"all.q@h1\" (unsuspended)"],
        ),
        (
            "boss",
            Unsuspend,
            "all.q@h1",
            &["Queue instance \"all.q@h1\" is already in the specified state: unsuspended"],
        ),
        (
            "boss",
            ClearQueueError,
            "all.q@h1",
            &["Queue instance \"all.q@h1\" is already in the specified state: no error"],
        ),
        (
            "boss",
            RescheduleQueue,
            "all.q@h1",
            &["Queue instance \"all.q@h1\" contains no jobs"],
        ),
        (
            "u2",
            DisableQueue,
            "all.q@h1",
            &["u2 - you have no permission to modify queue \"all.q@h1\""],
        ),
        ("boss", DisableQueue, "nosuch.q", &["invalid queue \"nosuch.q\""]),
        ("boss", Suspend, "nosuch.q", &["invalid queue or job \"nosuch.q\""]),
    ]
};

#[test]
fn queue_states_change_in_the_words_of_8_1_9() {
    let mut cell = Cell::ready();
    for &(user, action, target, expected) in QUEUE_STATES {
        assert_eq!(cell.qmod(user, action, target), expected);
    }
    cell.set_queue(&[("owner_list", "u2")]);
    assert_eq!(
        cell.qmod("u2", ModifyAction::DisableQueue, "all.q@h1"),
        ["u2@sub changed state of \"all.q@h1\" (disabled)"]
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_host_without_a_queue_in_front_names_no_queue() {
    let mut cell = Cell::ready();
    for target in ["@h1", "@@allhosts", "@*", "@"] {
        let said = cell.qmod("boss", ModifyAction::SuspendQueue, target);
        assert_eq!(said, [format!("invalid queue \"{target}\"")]);
    }
    let said = cell.qmod("boss", ModifyAction::SuspendQueue, "*@h1");
    assert_eq!(said, ["boss@sub changed state of \"all.q@h1\" (suspended)"]);
}

#[test]
fn a_forced_change_of_a_queue_is_said_though_it_is_in_that_state() {
    use ModifyAction::*;
    let mut cell = Cell::ready();
    for (action, word) in [
        (EnableQueue, "enabled"),
        (UnsuspendQueue, "unsuspended"),
        (ClearQueueError, "no error"),
        (DisableQueue, "disabled"),
        (DisableQueue, "disabled"),
    ] {
        let command = Command::Modify {
            action,
            targets: vec!["all.q@h1".to_owned()],
            force: true,
        };
        let said = texts(&cell.command("boss", command));
        assert_eq!(said, [format!("boss@sub forced state change of \"all.q@h1\" ({word})")]);
    }
}

#[test]
fn names_of_jobs_and_users_have_wildcards_and_no_operators() {
    let mut cell = Cell::ready();
    let named = |name: &str| JobSpec {
        name: name.to_owned(),
        ..super::job()
    };
    let numbers = ["a1", "a2", "b1"].map(|name| cell.submit(named(name)));
    for target in ["!a1", "a1|b1", "a*&!a2", "(a1)"] {
        assert_eq!(
            cell.qdel("u1", &[target]),
            [format!("The job {target} of user(s) u1 does not exist")]
        );
    }
    let of_users = |user: &str| JobSelection {
        users: vec![user.to_owned()],
        ..JobSelection::default()
    };
    for user in ["!u2", "u1|u2"] {
        let command = Command::Delete {
            jobs: of_users(user),
            force: false,
        };
        let said = texts(&cell.command("op", command));
        assert_eq!(
            said,
            [format!("There is no job registered for the following users: {user}")]
        );
    }
    assert_eq!(cell.qdel("u1", &["a[!1]"]), ["u1 has deleted job 2"]);
    assert!(cell.exists(numbers[0]) && cell.exists(numbers[2]));
}

#[test]
fn a_suspended_queue_stops_its_tasks_and_lets_them_go_on() {
    let mut cell = Cell::ready();
    let number = cell.submit(super::job());
    let key = cell.run(number, 1, "h1");
    for (action, signal) in [
        (ModifyAction::SuspendQueue, TaskSignal::Suspend),
        (ModifyAction::UnsuspendQueue, TaskSignal::Resume),
    ] {
        cell.qmod("boss", action, "all.q@h1");
        assert_eq!(cell.sent(), [&MasterMessage::Signal { key, signal }]);
    }
    assert!(cell.placement(number, 1).was_suspended);
    cell.assert_replay_is_live();
}

#[test]
fn a_suspended_instance_that_has_left_its_queue_can_be_let_go() {
    // Found by the simulator, seed 566: the task stayed suspended for ever.
    let mut cell = Cell::ready();
    let number = cell.submit(super::job());
    let key = cell.run(number, 1, "h1");
    cell.qmod("boss", ModifyAction::SuspendQueue, "all.q@h1");
    cell.set_queue(&[("hostlist", "h2"), ("owner_list", "u2")]);
    let refused = ["u2 - you have no permission to modify queue \"all.q@h1\""];
    assert_eq!(cell.qmod("u2", ModifyAction::UnsuspendQueue, "all.q@h1"), refused);
    let done = ["op@sub changed state of \"all.q@h1\" (unsuspended)"];
    assert_eq!(cell.qmod("op", ModifyAction::UnsuspendQueue, "*@h1"), done);
    assert_eq!(
        cell.sent(),
        [&MasterMessage::Signal {
            key,
            signal: TaskSignal::Resume
        }]
    );
    cell.exit(key, "h1", 0);
    assert_eq!(
        cell.qmod("op", ModifyAction::UnsuspendQueue, "all.q@h1"),
        ["invalid queue \"all.q@h1\""]
    );
    cell.assert_replay_is_live();
}

#[test]
fn jobs_of_a_queue_run_again() {
    let mut cell = Cell::ready();
    let number = cell.submit(super::job());
    let key = cell.run(number, 1, "h1");
    let command = Command::Modify {
        action: ModifyAction::RescheduleQueue,
        targets: vec!["all.q@h1".to_owned()],
        force: true,
    };
    let said = texts(&cell.command("boss", command));
    assert_eq!(said, [format!("Pushed rescheduling of job {number} on host h1")]);
    assert!(cell.core.state().placed(key).is_none() && cell.exists(number));
}

#[test]
fn a_host_joins_the_execution_hosts_alone() {
    let mut cell = Cell::ready();
    cell.all_hosts("h1 h2");
    cell.token(1, 60, "n*");
    assert_eq!(cell.join(&zero_hash(), "N3"), Ok(()));
    let state = cell.core.state();
    assert!(state.config.exec_hosts.contains_key("n3") && state.certificates.contains_key("n3"));
    assert!(!state.config.admin_hosts.contains("n3") && !state.config.submit_hosts.contains("n3"));
    assert!(
        state
            .config
            .resolved
            .keys()
            .any(|instance| instance.to_string() == "all.q@n3")
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_token_admits_whom_it_is_for_as_often_and_as_long_as_it_says() {
    let mut cell = Cell::ready();
    cell.token(2, 60, "n?");
    let refusal = |outcome: Result<(), Diagnostic>| outcome.map_err(|refusal| refusal.what);
    let hash = zero_hash();
    for (hash, host, expected) in [
        ("ff", "n1", Err("the token is not known here, or used up")),
        (&*hash, "m1", Err("the token is for hosts named n?, not for m1")),
        (&*hash, "n1", Ok(())),
        (&*hash, "n1", Err("host n1 has joined already")),
        (&*hash, "n2", Ok(())),
        (&*hash, "n3", Err("the token is not known here, or used up")),
    ] {
        assert_eq!(
            refusal(cell.join(hash, host)),
            expected.map_err(str::to_owned),
            "{host}"
        );
    }
    cell.token(1, 60, "");
    cell.pass(60_000);
    assert_eq!(refusal(cell.join(&hash, "n3")), Err("the token has expired".to_owned()));
    let command = Command::CreateToken {
        uses: 0,
        valid_s: 60,
        host_pattern: String::new(),
    };
    assert_eq!(texts(&cell.command("boss", command)), ["a token that nobody may use"]);
}

#[test]
fn a_host_that_others_believe_needs_a_token_of_its_own() {
    let mut cell = Cell::ready();
    let add = ObjectAction::Add(Fields::default());
    let change = ObjectChange {
        kind: ObjectKind::AdminHosts,
        name: "login1".to_owned(),
        action: add,
    };
    cell.command("boss", Command::Objects(vec![change]));
    cell.token(1, 60, "*");
    let refusal = cell.join(&zero_hash(), "login1").unwrap_err();
    assert_eq!(
        refusal.fix,
        "make a token for it alone: gridwright token --hosts login1"
    );
    cell.token(1, 60, "login1");
    assert_eq!(cell.join(&zero_hash(), "login1"), Ok(()));
}

#[test]
fn a_revoked_host_is_cut_off_and_joins_again_with_a_new_token() {
    let mut cell = Cell::ready();
    cell.token(2, 60, "*");
    cell.join(&zero_hash(), "n1").unwrap();
    cell.connect("n1");
    let reply = cell.command("boss", Command::RevokeHost { host: "N1".to_owned() });
    assert_eq!(texts(&reply), ["host n1 is revoked"]);
    assert!(cell.effects.contains(&Effect::Revoked("n1".into())));
    assert!(
        cell.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Disconnect { .. }))
    );
    let renewed = Input::CertificateRenewed {
        host: "n1".into(),
        serial: "2".to_owned(),
        not_after: Wall(0),
    };
    cell.input(renewed);
    assert!(
        !cell.core.state().certificates.contains_key("n1"),
        "a renewal on its way does not undo it"
    );
    assert_eq!(cell.join(&zero_hash(), "n1"), Ok(()));
    cell.assert_replay_is_live();
}

#[test]
fn simulated_hosts_have_instances_with_their_slots() {
    let mut cell = Cell::ready();
    cell.all_hosts("h1 h2");
    let (id, command) = (
        proto::id::RequestId(77),
        Command::SimulatedHosts {
            count: 2,
            slots: Some(16),
        },
    );
    cell.input(Input::Command {
        reply_to: ReplyTo(5),
        id,
        owner: super::cell::owner("boss"),
        host: "sub".into(),
        entropy: [0; 32],
        command: Box::new(command),
    });
    let hosts = vec!["sim0001".into(), "sim0002".into()];
    assert!(cell.effects.contains(&Effect::IssueSimulated { to: ReplyTo(5), hosts }));
    let slots: Vec<(String, u32)> = cell
        .core
        .state()
        .config
        .resolved
        .iter()
        .map(|(instance, settings)| (instance.to_string(), settings.slots))
        .collect();
    let expected = [
        ("all.q@h1", 4),
        ("all.q@h2", 4),
        ("all.q@sim0001", 16),
        ("all.q@sim0002", 16),
    ];
    assert_eq!(slots, expected.map(|(name, slots)| (name.to_owned(), slots)));
    let renewed = Input::CertificateRenewed {
        host: "sim0001".into(),
        serial: "a".to_owned(),
        not_after: Wall(0),
    };
    cell.input(renewed);
    assert!(cell.core.state().certificates.contains_key("sim0001"));
    cell.assert_replay_is_live();
}

#[test]
fn daemons_end_when_a_manager_says_so() {
    let mut cell = Cell::ready();
    cell.disconnect("h2");
    let hosts = ["h1", "h2", "h9"].map(str::to_owned).to_vec();
    let reply = cell.command("boss", Command::Shutdown { hosts, kill_jobs: true });
    assert_eq!(cell.sent(), [&MasterMessage::Shutdown { kill_jobs: true }]);
    assert_eq!(
        texts(&reply),
        [
            "boss@sub kills execd of host \"h1\"",
            "execution host \"h2\" is not connected",
            "denied: execution host \"h9\" does not exist",
        ]
    );
    cell.command(
        "boss",
        Command::Shutdown {
            hosts: Vec::new(),
            kill_jobs: false,
        },
    );
    assert!(cell.effects.contains(&Effect::Shutdown));
    let reply = cell.command("boss", Command::TriggerScheduling);
    assert_eq!(texts(&reply), ["boss@sub triggers scheduler monitoring"]);
    assert!(cell.effects.contains(&Effect::MonitorScheduling));
}

#[test]
fn a_repeated_change_gets_the_first_answer() {
    let mut cell = Cell::ready();
    let action = ObjectAction::Add(Fields::new());
    let change = ObjectChange {
        kind: ObjectKind::SubmitHosts,
        name: "n1".to_owned(),
        action,
    };
    let (id, command) = (proto::id::RequestId(4_711), Command::Objects(vec![change]));
    for _ in 0..2 {
        let reply = cell.command_as(id, "boss", "sub", command.clone());
        assert_eq!(texts(&reply), ["n1 added to submit host list"]);
    }
}
