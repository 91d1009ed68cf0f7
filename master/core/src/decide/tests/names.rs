//! Hosts by every name that people call them, hosts that are named before they come, and what only
//! the master's host may do.

use super::cell::{Cell, job, texts};
use crate::core::Core;
use crate::effect::MasterHost;
use crate::effect::{Effect, Input, ReplyTo};
use crate::state::State;
use proto::diagnostic::Code;
use proto::host::ExecHost;
use proto::host::names::Naming;
use proto::hostgroup::HostGroup;
use proto::job::{HostPath, JobChanges, JobSpec, Requests};
use proto::load::LoadReport;
use proto::object::{Fields, ObjectKind as K};
use proto::wire::client::{Answer, AttributeEdit, Command, ModifyAction, ObjectAction as Do, ObjectChange, Reply};
use std::collections::BTreeMap;

impl Cell {
    /// The cell with a master on the host `adm`, and a second network in which `h1` is `h1-ib`.
    fn with_site() -> Self {
        let mut cell = Self::ready();
        let core = std::mem::replace(&mut cell.core, Core::new(State::new()));
        let site = MasterHost {
            master_host: Some("adm".into()),
            naming: Naming::default().with_aliases("h1 h1-ib"),
            ..MasterHost::default()
        };
        cell.core = core.at(site);
        cell
    }

    fn object(&mut self, kind: K, name: &str, action: Do) -> Reply {
        self.command(
            "boss",
            Command::Objects(vec![ObjectChange {
                kind,
                name: name.to_owned(),
                action,
            }]),
        )
    }

    fn hostlist(&mut self, kind: K, name: &str, edit: AttributeEdit, value: &str) -> Reply {
        self.object(
            kind,
            name,
            Do::Attribute {
                edit,
                attribute: "hostlist".to_owned(),
                value: value.to_owned(),
            },
        )
    }

    fn group(&mut self, name: &str, members: &str) -> Reply {
        let mut fields = HostGroup::template(name.into()).to_fields();
        fields.set("hostlist", members);
        self.object(K::HostGroup, name, Do::Add(fields))
    }

    fn members(&self, group: &str) -> String {
        self.core.state().config.host_groups[group].members.to_string()
    }

    fn instances(&self) -> Vec<String> {
        self.core
            .state()
            .config
            .resolved
            .keys()
            .map(ToString::to_string)
            .collect()
    }
}

#[test]
fn every_name_of_a_host_leads_to_the_one_object() {
    let mut cell = Cell::with_site();
    cell.group("@g", "H1 h1.example.org h1-ib H2.");
    assert_eq!(cell.members("@g"), "h1 h2");
    cell.hostlist(K::HostGroup, "@g", AttributeEdit::Delete, "H1.Example.Org");
    assert_eq!(cell.members("@g"), "h2");
    assert_eq!(
        texts(&cell.object(K::AdminHosts, "H1-IB", Do::Add(Fields::new()))),
        ["h1 added to administrative host list"]
    );
    assert_eq!(
        texts(&cell.object(K::SubmitHosts, "localhost", Do::Delete)),
        ["boss@sub removed \"sub\" from submit host list"]
    );
    let said = cell.qmod("boss", ModifyAction::DisableQueue, "all.q@h2.example.org");
    assert_eq!(said, ["boss@sub changed state of \"all.q@h2\" (disabled)"]);
    let hosts = vec!["h1.example.org".to_owned()];
    let reply = cell.command(
        "boss",
        Command::Shutdown {
            hosts,
            kill_jobs: false,
        },
    );
    assert_eq!(texts(&reply), ["boss@sub kills execd of host \"h1\""]);
    assert_eq!(cell.core.state().config.exec_hosts.len(), 3, "global, h1 and h2");
    cell.assert_replay_is_live();
}

#[test]
fn a_host_may_be_named_before_its_agent_comes() {
    let mut cell = Cell::with_site();
    cell.group("@allhosts", "NONE");
    assert_eq!(
        texts(&cell.hostlist(K::Queue, "all.q", AttributeEdit::Add, "@allhosts")).len(),
        1
    );
    let said = texts(&cell.hostlist(K::HostGroup, "@allhosts", AttributeEdit::Add, "Node-1"));
    assert_eq!(
        said.last().unwrap(),
        "boss@sub modified \"@allhosts\" in host group list"
    );
    texts(&cell.hostlist(K::Queue, "all.q", AttributeEdit::Add, "node-2"));
    assert_eq!(
        cell.instances(),
        ["all.q@h1", "all.q@h2", "all.q@node-1", "all.q@node-2"]
    );
    cell.connect("node-1");
    cell.hostlist(K::HostGroup, "@allhosts", AttributeEdit::Delete, "node-1");
    let said = texts(&cell.object(K::ExecHost, "node-1", Do::Delete));
    assert_eq!(said, ["boss@sub removed \"node-1\" from execution host list"]);
    cell.assert_replay_is_live();
}

#[test]
fn what_can_be_no_host_is_refused_in_host_lists() {
    let mut cell = Cell::with_site();
    for members in ["-x", "a_b!c", "global", ".", "nosuch@host"] {
        let reply = cell.group("@g", members);
        assert!(
            matches!(reply.answers.as_slice(), [Answer::Refused(_)]),
            "{members}: {reply:?}"
        );
        assert_eq!(cell.core.state().config.exec_hosts.len(), 3, "{members}");
    }
}

#[test]
fn the_masters_host_stays_an_administrative_host() {
    let mut cell = Cell::with_site();
    let said = texts(&cell.object(K::AdminHosts, "ADM.example.org", Do::Delete));
    assert_eq!(said, ["denied: can't delete master host \"adm\" from admin host list"]);
    let said = texts(&cell.object(K::AdminHosts, "sub", Do::Delete));
    assert_eq!(said, ["boss@sub removed \"sub\" from administrative host list"]);
}

#[test]
fn simulated_hosts_are_for_the_masters_host_alone() {
    let mut cell = Cell::with_site();
    let command = || Command::SimulatedHosts { count: 1, slots: None };
    let reply = cell.command("boss", command());
    let Some(Answer::Refused(refusal)) = reply.answers.first() else {
        panic!("{reply:?}")
    };
    assert_eq!(refusal.code, Code::HostNotPermitted);
    cell.input(Input::Command {
        reply_to: ReplyTo(5),
        id: proto::id::RequestId(77),
        owner: super::cell::owner("boss"),
        host: "adm".into(),
        entropy: [0; 32],
        command: Box::new(command()),
    });
    assert!(cell.effects.contains(&Effect::IssueSimulated {
        to: ReplyTo(5),
        hosts: vec!["sim0001".into()]
    }));
}

#[test]
fn a_job_that_names_a_host_by_another_name_is_kept_with_the_cells_name() {
    let mut cell = Cell::with_site();
    let requests = Requests {
        hard: super::cell::resources("h=h1-ib|H2.example.org"),
        soft: super::cell::resources("h=h1.example.org"),
        hard_queues: vec!["all.q@h1-ib".to_owned(), "*@h2.example.org".to_owned()],
        soft_queues: vec!["*@H1-IB".to_owned()],
        ..Requests::default()
    };
    let stdout = vec![HostPath {
        host: Some("h1-ib".into()),
        path: "/tmp".to_owned(),
    }];
    let number = cell.submit(JobSpec {
        requests: requests.into(),
        stdout,
        ..job()
    });
    let Requests {
        hard,
        soft,
        hard_queues,
        soft_queues,
        ..
    } = (*cell.job(number).spec.requests).clone();
    assert_eq!(
        (hard[0].to_string(), soft[0].to_string()),
        ("hostname=h1|h2".to_owned(), "hostname=h1".to_owned())
    );
    assert_eq!(
        (hard_queues, soft_queues),
        (vec!["all.q@h1".to_owned(), "*@h2".to_owned()], vec!["*@h1".to_owned()])
    );
    assert_eq!(cell.job(number).spec.stdout[0].host, Some("h1".into()));
    let changes = JobChanges {
        hard_queues: Some(vec!["all.q@h1-ib".to_owned()]),
        ..JobChanges::default()
    };
    let jobs = super::cell::selection(&["1"]);
    cell.command(
        "u1",
        Command::Alter {
            jobs,
            changes: Box::new(changes),
        },
    );
    assert_eq!(cell.job(number).spec.requests.hard_queues, ["all.q@h1"]);
    let said = cell.qmod("boss", ModifyAction::DisableQueue, "all.q@h1-ib");
    assert_eq!(said, ["boss@sub changed state of \"all.q@h1\" (disabled)"]);
    cell.assert_replay_is_live();
}

#[test]
fn values_that_a_sensor_reports_for_another_name_of_a_host_are_that_hosts() {
    let mut cell = Cell::with_site();
    let connection = cell.connect("h2");
    let values = |value: &str| BTreeMap::from([("site".into(), value.to_owned())]);
    let report = LoadReport {
        sequence: 1,
        full: true,
        values: [
            ("h1-ib".into(), values("alias")),
            ("H2.example.org".into(), values("own")),
        ]
        .into(),
        ..LoadReport::default()
    };
    cell.input(Input::LoadReport {
        connection,
        report: Box::new(report),
    });
    let of = |cell: &Cell, host: &str| Some(cell.core.observations().load.get(host)?.named("site")?.text.clone());
    assert_eq!(
        (of(&cell, "h1").as_deref(), of(&cell, "h2").as_deref()),
        (Some("alias"), Some("own"))
    );
    let withdrawn = [("h1-ib".into(), vec!["site".into()])].into();
    let report = LoadReport {
        sequence: 2,
        withdrawn,
        ..LoadReport::default()
    };
    cell.input(Input::LoadReport {
        connection,
        report: Box::new(report),
    });
    assert_eq!(of(&cell, "h1"), None);
}

#[test]
fn two_names_that_differ_in_the_domain_alone_are_one_host_unless_domains_count() {
    for (bootstrap, expected) in [("", 3), ("ignore_fqdn false", 4)] {
        let mut cell = Cell::with_site();
        let naming = Naming::default().with_bootstrap(bootstrap).unwrap();
        let core = std::mem::replace(&mut cell.core, Core::new(State::new()));
        cell.core = core.at(MasterHost {
            naming,
            ..MasterHost::default()
        });
        texts(&cell.object(K::ExecHost, "h9.a.org", Do::Add(exec_host("h9.a.org"))));
        texts(&cell.object(K::ExecHost, "h9.b.org", Do::Add(exec_host("h9.b.org"))));
        let hosts: Vec<&str> = cell
            .core
            .state()
            .config
            .exec_hosts
            .keys()
            .map(|host| host.as_str())
            .collect();
        assert_eq!(hosts.len(), expected + 1, "{bootstrap}: {hosts:?}");
    }
}

fn exec_host(name: &str) -> Fields {
    ExecHost::template(name.into()).to_fields()
}
