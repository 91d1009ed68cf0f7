//! Configuration objects: what is taken, what is refused and in which words, and that a bad change
//! changes nothing.

mod complex;
mod import;
mod references;
mod strict;

use super::cell::{Cell, texts};
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::diagnostic::Code;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::wire::agent::MasterMessage;
use proto::wire::client::{Answer, AttributeEdit, Command, ObjectAction, ObjectChange, Reply};

pub(super) fn object_change(kind: ObjectKind, name: &str, action: ObjectAction) -> ObjectChange {
    ObjectChange {
        kind,
        name: name.to_owned(),
        action,
    }
}

fn with(mut fields: Fields, changes: &[(&str, &str)]) -> Fields {
    changes.iter().for_each(|(key, value)| fields.set(key, *value));
    fields
}

fn queue(name: &str, changes: &[(&str, &str)]) -> Fields {
    let fields = ClusterQueue::template(name.into()).to_fields();
    with(with(fields, &[("pe_list", "NONE")]), changes)
}

fn pe(name: &str, changes: &[(&str, &str)]) -> Fields {
    with(ParallelEnvironment::template(name.into()).to_fields(), changes)
}

fn host(name: &str, changes: &[(&str, &str)]) -> Fields {
    with(ExecHost::template(name.into()).to_fields(), changes)
}

fn group(name: &str, members: &str) -> Fields {
    with(HostGroup::template(name.into()).to_fields(), &[("hostlist", members)])
}

pub(super) fn conf(changes: &[(&str, &str)]) -> Fields {
    with(ClusterConf::template().to_fields(), changes)
}

fn scheduler(changes: &[(&str, &str)]) -> Fields {
    with(SchedulerConf::template().to_fields(), changes)
}

/// The built-in complex with more lines.
fn complex(lines: &str) -> Fields {
    let text = format!("{}\n{lines}", Complex::built_in());
    Complex::parse(&text).unwrap().write()
}

fn attribute(edit: AttributeEdit, attribute: &str, value: &str) -> ObjectAction {
    ObjectAction::Attribute {
        edit,
        attribute: attribute.to_owned(),
        value: value.to_owned(),
    }
}

impl Cell {
    pub(super) fn change(&mut self, changes: Vec<ObjectChange>) -> Reply {
        self.command("boss", Command::Objects(changes))
    }

    fn qconf(&mut self, kind: ObjectKind, name: &str, action: ObjectAction) -> Vec<String> {
        texts(&self.change(vec![object_change(kind, name, action)]))
    }

    fn attr(&mut self, kind: ObjectKind, name: &str, edit: AttributeEdit, key: &str, value: &str) -> Vec<String> {
        self.qconf(kind, name, attribute(edit, key, value))
    }
}

/// Checks that a change is refused with a code and a text, and that nothing is different
/// afterwards.
fn refuses(cell: &mut Cell, kind: ObjectKind, name: &str, action: ObjectAction, code: Code, text: &str) {
    let before = cell.core.state().clone();
    let good = object_change(ObjectKind::SubmitHosts, "good", ObjectAction::Add(Fields::new()));
    let reply = cell.change(vec![good, object_change(kind, name, action)]);
    let Some(Answer::Refused(refusal)) = reply.answers.first() else {
        panic!("{kind} {name}: {reply:?}")
    };
    assert_eq!((refusal.code, refusal.what.as_str()), (code, text));
    assert!(*cell.core.state() == before, "a refused change changes nothing");
}

use AttributeEdit::{Add, Modify, Replace};
use ObjectAction as Do;
use ObjectKind as K;

/// Each change is answered so.
fn told_each<const N: usize>(changes: [(K, &str, Do, &str); N]) {
    let mut cell = Cell::ready();
    for (kind, name, action, expected) in changes {
        assert_eq!(cell.qconf(kind, name, action), [expected]);
    }
    cell.assert_replay_is_live();
}

#[test]
fn changes_of_hosts_and_groups_are_told_in_the_words_of_8_1_9() {
    told_each([
        (
            K::ExecHost,
            "",
            Do::Add(host("n1", &[])),
            "boss@sub added \"n1\" to exechost list",
        ),
        (
            K::ExecHost,
            "",
            Do::Replace(host("n1", &[])),
            "boss@sub modified \"n1\" in exechost list",
        ),
        (
            K::HostGroup,
            "@g",
            Do::Add(group("@g", "n1")),
            "boss@sub added \"@g\" to host group list",
        ),
        (
            K::HostGroup,
            "@g",
            attribute(Add, "hostlist", "h1"),
            "boss@sub modified \"@g\" in host group list",
        ),
        (
            K::HostGroup,
            "@g",
            Do::Delete,
            "boss@sub removed \"@g\" from host group entry list",
        ),
        (
            K::ExecHost,
            "n1",
            Do::Delete,
            "boss@sub removed \"n1\" from execution host list",
        ),
    ]);
}

#[test]
fn changes_of_queues_and_environments_are_told_in_the_words_of_8_1_9() {
    told_each([
        (
            K::Pe,
            "smp",
            Do::Add(pe("smp", &[])),
            "boss@sub added \"smp\" to parallel environment list",
        ),
        (
            K::Queue,
            "all.q",
            attribute(Replace, "slots", "8"),
            "boss@sub modified \"all.q\" in cluster queue list",
        ),
        (
            K::Queue,
            "q",
            Do::Add(queue("q", &[])),
            "boss@sub added \"q\" to cluster queue list",
        ),
        (
            K::Queue,
            "q",
            Do::Delete,
            "boss@sub removed \"q\" from cluster queue list",
        ),
        (
            K::Pe,
            "smp",
            Do::Delete,
            "boss@sub removed \"smp\" from parallel environment list",
        ),
    ]);
}

#[test]
fn changes_of_configurations_are_told_in_the_words_of_8_1_9() {
    told_each([
        (
            K::ClusterConf,
            "global",
            Do::Replace(conf(&[])),
            "boss@sub modified \"global\" in configuration list",
        ),
        (
            K::ClusterConf,
            "h1",
            Do::Add(Fields::new()),
            "boss@sub added \"h1\" to configuration list",
        ),
        (
            K::ClusterConf,
            "h1",
            Do::Delete,
            "boss@sub removed \"h1\" from configuration list",
        ),
        (
            K::SchedulerConf,
            "",
            Do::Replace(scheduler(&[])),
            "changed scheduler configuration",
        ),
        (
            K::ComplexTable,
            "",
            Do::Replace(complex("lic l INT <= YES YES 0 0")),
            "boss@sub added \"lic\" to complex entry list",
        ),
    ]);
}

#[test]
fn changes_of_lists_are_told_in_the_words_of_8_1_9() {
    told_each([
        (
            K::AdminHosts,
            "n2",
            Do::Add(Fields::new()),
            "n2 added to administrative host list",
        ),
        (
            K::AdminHosts,
            "n2",
            Do::Delete,
            "boss@sub removed \"n2\" from administrative host list",
        ),
        (
            K::SubmitHosts,
            "n2",
            Do::Add(Fields::new()),
            "n2 added to submit host list",
        ),
        (
            K::SubmitHosts,
            "n2",
            Do::Delete,
            "boss@sub removed \"n2\" from submit host list",
        ),
        (
            K::Managers,
            "u9",
            Do::Add(Fields::new()),
            "boss@sub added \"u9\" to manager list",
        ),
        (
            K::Managers,
            "u9",
            Do::Delete,
            "boss@sub removed \"u9\" from manager list",
        ),
        (
            K::Operators,
            "u9",
            Do::Add(Fields::new()),
            "boss@sub added \"u9\" to operator list",
        ),
    ]);
}

/// A cell whose objects refer to each other.
fn referring() -> Cell {
    let mut cell = Cell::ready();
    cell.qconf(K::Pe, "smp", Do::Add(pe("smp", &[])));
    cell.qconf(K::ComplexTable, "", Do::Replace(complex("lic l INT <= YES YES 0 0")));
    cell.attr(K::Queue, "all.q", Replace, "pe_list", "smp");
    cell.attr(K::ExecHost, "h1", Modify, "complex_values", "lic=3");
    cell.qconf(K::HostGroup, "@a", Do::Add(group("@a", "h1")));
    cell.qconf(K::HostGroup, "@b", Do::Add(group("@b", "@a")));
    cell.attr(K::Queue, "all.q", Add, "hostlist", "@b");
    cell
}

#[test]
fn what_exists_is_not_added() {
    refused_each([
        (
            K::Managers,
            "boss",
            Do::Add(Fields::new()),
            Code::AlreadyExists,
            "manager \"boss\" already exists",
        ),
        (
            K::Queue,
            "all.q",
            Do::Add(queue("all.q", &[])),
            Code::AlreadyExists,
            "cluster queue \"all.q\" already exists",
        ),
    ]);
}

#[test]
fn what_does_not_exist_is_not_deleted() {
    refused_each([
        (
            K::AdminHosts,
            "x",
            Do::Delete,
            Code::UnknownObject,
            "denied: administrative host \"x\" does not exist",
        ),
        (
            K::SubmitHosts,
            "x",
            Do::Delete,
            Code::UnknownObject,
            "denied: submit host \"x\" does not exist",
        ),
        (
            K::ExecHost,
            "x",
            Do::Delete,
            Code::UnknownObject,
            "denied: execution host \"x\" does not exist",
        ),
        (
            K::Queue,
            "x",
            Do::Delete,
            Code::UnknownObject,
            "denied: cluster queue \"x\" does not exist",
        ),
    ]);
}

#[test]
fn what_the_cell_cannot_do_without_stays_under_its_name() {
    refused_each([
        (
            K::AdminHosts,
            "sub",
            Do::Delete,
            Code::Immutable,
            "denied: can't delete host \"sub\" from admin host list",
        ),
        (
            K::Managers,
            "boss",
            Do::Delete,
            Code::Immutable,
            "may not remove user \"boss\" from manager list",
        ),
        (
            K::Queue,
            "all.q",
            Do::Replace(queue("other", &[])),
            Code::Immutable,
            "denied: the name of a cluster queue cannot be changed from \"all.q\" to \"other\"",
        ),
    ]);
}

#[test]
fn an_administrative_or_submit_host_that_is_there_is_told_of_and_no_failure() {
    let mut cell = referring();
    for (kind, name, text) in [
        (K::AdminHosts, "adm", "adminhost \"adm\" already exists"),
        (K::SubmitHosts, "sub", "submithost \"sub\" already exists"),
    ] {
        let before = cell.core.state().clone();
        let reply = cell.change(vec![object_change(kind, name, Do::Add(Fields::new()))]);
        let [Answer::Warning(warning)] = reply.answers.as_slice() else {
            panic!("{kind} {name}: {reply:?}")
        };
        assert_eq!((warning.code, warning.what.as_str()), (Code::AlreadyExists, text));
        assert!(*cell.core.state() == before);
    }
}

#[test]
fn what_is_not_there_is_told_of_and_not_purged() {
    let mut cell = referring();
    let purge = |name: &str, attribute: &str| {
        object_change(
            K::Queue,
            name,
            Do::Purge {
                attributes: vec![attribute.to_owned()],
            },
        )
    };
    let reply = cell.change(vec![purge("all.q@h1", "slots")]);
    let [Answer::Warning(warning)] = reply.answers.as_slice() else {
        panic!("{reply:?}")
    };
    assert_eq!(
        warning.what,
        "Attribute name (\"slots\") and/or value (\"h1\") not found"
    );
    for (name, attribute, text) in [
        (
            "all.q@h1",
            "nosuch",
            "Attribute name (\"nosuch\") and/or value (\"h1\") not found",
        ),
        (
            "nosuch.q@h1",
            "slots",
            "error: Cluster queue entry \"nosuch.q\" does not exist",
        ),
    ] {
        let reply = cell.change(vec![purge(name, attribute)]);
        let Some(Answer::Refused(refusal)) = reply.answers.first() else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(refusal.what, text);
    }
}

/// Each is refused in this way, and nothing changes by it.
fn refused_each<const N: usize>(refusals: [(K, &str, Do, Code, &str); N]) {
    let mut cell = referring();
    for (kind, name, action, code, text) in refusals {
        refuses(&mut cell, kind, name, action, code, text);
    }
    cell.assert_replay_is_live();
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let mut cell = Cell::ready();
    for (key, value) in [
        ("shepherd_cmd", "/opt/shepherd"),
        ("execd_params", "KEEP_ACTIVE=true,SIMULATE_JOBS=true"),
        ("qmaster_params", "SIMULATE_EXECDS=true"),
        ("qlogin_command", "/usr/bin/ssh"),
    ] {
        let reply = cell.change(vec![object_change(
            K::ClusterConf,
            "global",
            Do::Replace(conf(&[(key, value)])),
        )]);
        let Some(Answer::Refused(refusal)) = reply.answers.first() else {
            panic!("{key} {value}: {reply:?}")
        };
        assert_eq!((refusal.code, refusal.place.as_str()), (Code::NotSupported, key));
        assert!(!refusal.fix.is_empty(), "{key}");
    }
    let reply = cell.change(vec![object_change(
        K::SchedulerConf,
        "",
        Do::Replace(scheduler(&[("params", "DURATION_OFFSET=soon")])),
    )]);
    let Some(Answer::Refused(refusal)) = reply.answers.first() else {
        panic!("{reply:?}")
    };
    assert!(refusal.to_string().contains("DURATION_OFFSET"), "{refusal}");
    for (key, value) in [("algorithm", "best"), ("params", "SOLVER=1")] {
        let reply = cell.change(vec![object_change(
            K::SchedulerConf,
            "",
            Do::Replace(scheduler(&[(key, value)])),
        )]);
        let Some(Answer::Refused(refusal)) = reply.answers.first() else {
            panic!("{key} {value}: {reply:?}")
        };
        assert_eq!((refusal.code, refusal.place.as_str()), (Code::NotSupported, key));
    }
}

/// The warnings of an answer, each as its place and text; nothing may be refused.
fn warnings(reply: &Reply) -> Vec<(String, String)> {
    let warning = |answer: &Answer| match answer {
        Answer::Warning(warning) => Some((warning.place.clone(), warning.what.clone())),
        Answer::Done(_) => None,
        Answer::Refused(refusal) => panic!("{refusal:?}"),
    };
    reply.answers.iter().filter_map(warning).collect()
}

#[test]
fn only_managers_on_administrative_hosts_change_objects() {
    let mut cell = Cell::ready();
    let add = || Command::Objects(vec![object_change(K::Managers, "u2", Do::Add(Fields::new()))]);
    for (user, host, expected) in [
        ("u2", "sub", "denied: \"u2\" must be manager for this operation"),
        ("op", "sub", "denied: \"op\" must be manager for this operation"),
        ("boss", "h1", "denied: host \"h1\" is no admin host"),
        ("boss", "adm", "boss@adm added \"u2\" to manager list"),
    ] {
        let id = proto::id::RequestId(1_000 + cell.log.len() as u128);
        assert_eq!(texts(&cell.command_as(id, user, host, add())), [expected]);
    }
}

#[test]
fn attributes_are_edited_for_a_queue_a_group_and_a_host() {
    let mut cell = Cell::ready();
    cell.qconf(K::HostGroup, "@g", Do::Add(group("@g", "h1 h2")));
    cell.attr(K::Queue, "all.q", Add, "slots", "[h1=2]");
    cell.attr(K::Queue, "all.q@@g", Modify, "slots", "7");
    let slots = |cell: &Cell| {
        cell.core
            .state()
            .config
            .resolved
            .values()
            .map(|settings| settings.slots)
            .collect::<Vec<_>>()
    };
    assert_eq!(slots(&cell), [2, 7]);
    let purge = Do::Purge {
        attributes: vec!["*".to_owned()],
    };
    assert_eq!(
        cell.qconf(K::Queue, "all.q@h1", purge),
        ["boss@sub modified \"all.q\" in cluster queue list"]
    );
    assert_eq!(slots(&cell), [7, 7]);
}

#[test]
fn groups_that_disagree_make_an_instance_ambiguous() {
    let mut cell = Cell::ready();
    cell.qconf(K::HostGroup, "@a", Do::Add(group("@a", "h1")));
    cell.qconf(K::HostGroup, "@b", Do::Add(group("@b", "h1")));
    cell.attr(K::Queue, "all.q", Replace, "slots", "4,[@a=1],[@b=2]");
    let config = &cell.core.state().config;
    let (instance, ambiguities) = config.ambiguous.first_key_value().unwrap();
    assert_eq!(
        (instance.to_string().as_str(), ambiguities[0].attribute.as_str()),
        ("all.q@h1", "slots")
    );
    assert_eq!(config.ambiguous.len(), 1);
    let number = cell.submit(super::job());
    assert!(
        cell.order(number, 1, "h1").is_err(),
        "an ambiguous instance takes no jobs"
    );
    cell.attr(K::Queue, "all.q@h1", Modify, "slots", "3");
    assert!(cell.core.state().config.ambiguous.is_empty());
    assert!(cell.order(number, 1, "h1").is_ok());
}

#[test]
fn a_queue_with_jobs_stays_and_can_be_cleaned() {
    let mut cell = Cell::ready();
    let number = cell.submit(super::job());
    cell.run(number, 1, "h1");
    let text = "denied: queue \"all.q@h1\" still contains jobs";
    refuses(&mut cell, K::Queue, "all.q", Do::Delete, Code::StillReferenced, text);
    assert_eq!(
        cell.qconf(K::Queue, "all.q@h1", Do::Clean),
        ["boss@sub purged queue \"all.q@h1\""]
    );
    assert!(!cell.exists(number));
    assert_eq!(
        cell.qconf(K::Queue, "all.q", Do::Delete),
        ["boss@sub removed \"all.q\" from cluster queue list"]
    );
    cell.assert_replay_is_live();
}

#[test]
fn an_instance_that_vanishes_keeps_its_state_until_its_tasks_end() {
    let mut cell = Cell::ready();
    let number = cell.submit(super::job());
    let key = cell.run(number, 1, "h1");
    cell.qmod("boss", proto::wire::client::ModifyAction::SuspendQueue, "all.q@h1");
    cell.attr(K::Queue, "all.q", Replace, "hostlist", "h2");
    let state = cell.core.state();
    assert_eq!(
        state.orphans().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["all.q@h1"]
    );
    assert!(
        state.is_stopped(cell.placement(number, 1)),
        "a suspended task stays suspended"
    );
    cell.exit(key, "h1", 0);
    assert!(cell.core.state().instances.is_empty() && cell.core.state().orphans().is_empty());
    cell.assert_replay_is_live();
}

#[test]
fn a_new_instance_starts_as_its_queue_says() {
    let mut cell = Cell::ready();
    cell.qconf(
        K::Queue,
        "q",
        Do::Add(queue(
            "q",
            &[("hostlist", "h1"), ("initial_state", "disabled,[h2=enabled]")],
        )),
    );
    cell.attr(K::Queue, "q", Add, "hostlist", "h2");
    let disabled: Vec<String> = cell.core.state().instances.keys().map(ToString::to_string).collect();
    assert_eq!(disabled, ["q@h1"]);
}

#[test]
fn agents_hear_of_a_configuration_that_changed_for_them() {
    let mut cell = Cell::ready();
    let local: Fields = [("load_report_time", "00:00:07")].into_iter().collect();
    cell.qconf(K::ClusterConf, "h2", Do::Add(local));
    let intervals: Vec<u64> = cell
        .sent()
        .into_iter()
        .filter_map(|message| match message {
            MasterMessage::Configure(config) => Some(config.report_interval_ms),
            _ => None,
        })
        .collect();
    assert_eq!(intervals, [7_000]);
}

#[test]
fn agents_sample_and_report_use_as_pdc_interval_says() {
    let mut cell = Cell::ready();
    let mut told = |interval: &str| {
        let params = format!("PDC_INTERVAL={interval}");
        let local: Fields = [("load_report_time", "00:00:07"), ("execd_params", &params)]
            .into_iter()
            .collect();
        cell.qconf(K::ClusterConf, "h2", Do::Add(local));
        let configs = cell.sent().into_iter().filter_map(|message| match message {
            MasterMessage::Configure(config) => Some((config.sample_interval_ms, config.usage_interval_ms)),
            _ => None,
        });
        let told: Vec<_> = configs.collect();
        cell.qconf(K::ClusterConf, "h2", Do::Delete);
        cell.sent();
        told
    };
    assert_eq!(told("2"), [(Some(2_000), 7_000)]);
    assert_eq!(told("0:1:0"), [(Some(60_000), 60_000)]);
    assert_eq!(told("PER_LOAD_REPORT"), [(Some(7_000), 7_000)]);
    assert_eq!(told("NEVER"), [(Some(0), 0)]);
}
