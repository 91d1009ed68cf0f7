//! Hosts by every name that people call them, hosts that are named before they come, and what only the master's host may do.

use super::cell::{Cell, texts};
use crate::core::{Core, Site};
use crate::effect::{Effect, Input, ReplyTo};
use crate::state::State;
use proto::diagnostic::Code;
use proto::host::names::HostAliases;
use proto::hostgroup::HostGroup;
use proto::object::{Fields, ObjectKind as K};
use proto::wire::client::{Answer, AttributeEdit, Command, ModifyAction, ObjectAction as Do, ObjectChange, Reply};

impl Cell {
    /// The cell with a master on the host `adm`, and a second network in which `h1` is `h1-ib`.
    fn with_site() -> Self {
        let mut cell = Self::ready();
        let core = std::mem::replace(&mut cell.core, Core::new(State::new()));
        let site = Site { master_host: Some("adm".into()), aliases: HostAliases::parse("h1 h1-ib") };
        cell.core = core.at(site);
        cell
    }

    fn object(&mut self, kind: K, name: &str, action: Do) -> Reply {
        self.command("boss", Command::Objects(vec![ObjectChange { kind, name: name.to_owned(), action }]))
    }

    fn hostlist(&mut self, kind: K, name: &str, edit: AttributeEdit, value: &str) -> Reply {
        self.object(kind, name, Do::Attribute { edit, attribute: "hostlist".to_owned(), value: value.to_owned() })
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
        self.core.state().config.resolved.keys().map(ToString::to_string).collect()
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
    let reply = cell.command("boss", Command::Shutdown { hosts, kill_jobs: false });
    assert_eq!(texts(&reply), ["boss@sub kills execd of host \"h1\""]);
    assert_eq!(cell.core.state().config.exec_hosts.len(), 3, "global, h1 and h2");
    cell.assert_replay_is_live();
}

#[test]
fn a_host_may_be_named_before_its_agent_comes() {
    let mut cell = Cell::with_site();
    cell.group("@allhosts", "NONE");
    assert_eq!(texts(&cell.hostlist(K::Queue, "all.q", AttributeEdit::Add, "@allhosts")).len(), 1);
    let said = texts(&cell.hostlist(K::HostGroup, "@allhosts", AttributeEdit::Add, "Node-1"));
    assert_eq!(said.last().unwrap(), "boss@sub modified \"@allhosts\" in host group entry list");
    texts(&cell.hostlist(K::Queue, "all.q", AttributeEdit::Add, "node-2"));
    assert_eq!(cell.instances(), ["all.q@h1", "all.q@h2", "all.q@node-1", "all.q@node-2"]);
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
        assert!(matches!(reply.answers.as_slice(), [Answer::Refused(_)]), "{members}: {reply:?}");
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
    let Some(Answer::Refused(refusal)) = reply.answers.first() else { panic!("{reply:?}") };
    assert_eq!(refusal.code, Code::HostNotPermitted);
    cell.input(Input::Command {
        reply_to: ReplyTo(5),
        id: proto::id::RequestId(77),
        owner: super::cell::owner("boss"),
        host: "adm".into(),
        entropy: [0; 32],
        command: Box::new(command()),
    });
    assert!(cell.effects.contains(&Effect::IssueSimulated { to: ReplyTo(5), hosts: vec!["sim0001".into()] }));
}
