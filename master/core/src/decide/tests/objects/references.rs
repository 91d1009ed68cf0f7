//! What an object names exists, as long as it is named.

use super::*;
use crate::state::State;
use proptest::prelude::*;

#[test]
fn an_object_that_others_name_stays() {
    let refusals = [
        (
            K::Pe,
            "smp",
            Do::Delete,
            Code::StillReferenced,
            "denied: Parallel environment \"smp\" is still referenced in queue \"all.q\".",
        ),
        (
            K::ComplexTable,
            "",
            Do::Replace(complex("")),
            Code::StillReferenced,
            "denied: Complex attribute \"lic\" is still referenced in host \"h1\".",
        ),
        (
            K::HostGroup,
            "@b",
            Do::Delete,
            Code::StillReferenced,
            "denied: these cluster queues still reference \"@b\": all.q",
        ),
        (
            K::HostGroup,
            "@a",
            Do::Delete,
            Code::StillReferenced,
            "denied: these hostgroups still reference \"@a\": @b",
        ),
        (
            K::ExecHost,
            "h2",
            Do::Delete,
            Code::StillReferenced,
            "Host object \"h2\" is still referenced in cluster queue \"all.q\".",
        ),
        (
            K::HostGroup,
            "@a",
            Do::Replace(group("@a", "@b")),
            Code::Immutable,
            "Hostgroup \"@b\" in specification of \"@a\" would create a cycle",
        ),
        (
            K::HostGroup,
            "@c",
            Do::Add(group("@c", "global")),
            Code::BadValue,
            "denied: \"global\" is no host that has queues",
        ),
    ];
    refused_each(refusals);
}

#[test]
fn an_object_names_only_what_exists() {
    let refusals = [
        (
            K::Queue,
            "all.q",
            attribute(Replace, "pe_list", "smb"),
            Code::UnknownObject,
            "Parallel environment \"smb\" does not exist",
        ),
        (
            K::ExecHost,
            "h1",
            attribute(Modify, "complex_values", "nosuch=1"),
            Code::UnknownResource,
            "denied: attribute \"nosuch\" is not a complex attribute",
        ),
        (
            K::Queue,
            "all.q",
            attribute(Modify, "complex_values", "nosuch=1"),
            Code::UnknownResource,
            "Complex attribute \"nosuch\" does not exist",
        ),
        (
            K::ExecHost,
            "h1",
            attribute(Replace, "report_variables", "nosuch"),
            Code::UnknownResource,
            "unknown resource \"nosuch\"",
        ),
        (
            K::ExecHost,
            "h1",
            attribute(Modify, "complex_values", "lic=many"),
            Code::BadValue,
            "attribute \"lic\" is not a integer value",
        ),
        (
            K::SchedulerConf,
            "",
            attribute(Replace, "params", "SETTLE_TIME=nosuch:10"),
            Code::UnknownResource,
            "denied: unknown attribute \"nosuch\"",
        ),
        (
            K::SchedulerConf,
            "",
            attribute(Replace, "params", "SETTLE_TIME=mf:10"),
            Code::BadValue,
            "denied: \"mf\" is the shortcut of an attribute",
        ),
    ];
    refused_each(refusals);
}

/// Changes of a small world, most of which refer to each other.
fn any_change() -> impl Strategy<Value = ObjectChange> {
    let hosts = prop::sample::select(vec!["h1", "h2", "n1", "n2"]);
    let groups = prop::sample::select(vec!["@a", "@b", "@c"]);
    let queues = prop::sample::select(vec!["all.q", "q1"]);
    let pes = prop::sample::select(vec!["p1", "p2"]);
    let deletes = prop_oneof![
        hosts.clone().prop_map(|name| (K::ExecHost, name)),
        groups.clone().prop_map(|name| (K::HostGroup, name)),
        queues.clone().prop_map(|name| (K::Queue, name)),
        pes.clone().prop_map(|name| (K::Pe, name)),
    ];
    prop_oneof![
        deletes.prop_map(|(kind, name)| object_change(kind, name, Do::Delete)),
        hosts
            .clone()
            .prop_map(|name| object_change(K::ExecHost, name, Do::Add(host(name, &[])))),
        pes.clone()
            .prop_map(|name| object_change(K::Pe, name, Do::Add(pe(name, &[])))),
        (groups.clone(), hosts.clone())
            .prop_map(|(name, member)| { object_change(K::HostGroup, name, Do::Add(group(name, member))) }),
        (groups.clone(), groups.clone())
            .prop_map(|(name, member)| { object_change(K::HostGroup, name, attribute(Add, "hostlist", member)) }),
        (queues.clone(), groups)
            .prop_map(|(name, member)| { object_change(K::Queue, name, attribute(Replace, "hostlist", member)) }),
        (queues.clone(), hosts).prop_map(|(name, member)| {
            object_change(K::Queue, name, Do::Add(queue(name, &[("hostlist", member)])))
        }),
        (queues, pes).prop_map(|(name, pe)| object_change(K::Queue, name, attribute(Replace, "pe_list", pe))),
    ]
}

/// Every name that an object refers to exists.
fn references_hold(state: &State) -> bool {
    let config = &state.config;
    let member = |member: &proto::hostgroup::HostOrGroup| match member {
        proto::hostgroup::HostOrGroup::Host(host) => config.exec_hosts.contains_key(host),
        proto::hostgroup::HostOrGroup::Group(group) => config.host_groups.contains_key(group),
    };
    let lists = config.queues.values().map(|queue| &queue.hostlist);
    lists
        .chain(config.host_groups.values().map(|group| &group.members))
        .all(|list| list.iter().all(member))
        && config
            .queues
            .values()
            .all(|queue| queue.pe_list.default.iter().all(|pe| config.pes.contains_key(pe)))
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    #[test]
    fn references_hold_after_any_changes_and_replay_equals_live(
        changes in prop::collection::vec(prop::collection::vec(any_change(), 1..4), 1..25),
    ) {
        let mut cell = Cell::new();
        for set in changes {
            let before = cell.core.state().clone();
            let reply = cell.change(set);
            prop_assert!(references_hold(cell.core.state()));
            if reply.answers.iter().any(Answer::is_refusal) {
                prop_assert!(*cell.core.state() == before);
            }
        }
        cell.assert_replay_is_live();
    }
}
