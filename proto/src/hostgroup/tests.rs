use super::*;
use crate::diagnostic::Code;
use crate::object::LineWrap;
use std::collections::BTreeSet;

const RECORDED: &str = include_str!("../../tests-data/qconf/hostgroup_allhosts.txt");

fn group(name: &str, members: &str) -> HostGroup {
    let fields: Fields = [("group_name", name), ("hostlist", members)].into_iter().collect();
    HostGroup::from_fields(&fields).unwrap()
}

fn table(groups: &[(&str, &str)]) -> HostGroupTable {
    let mut table = HostGroupTable::default();
    for (name, members) in groups {
        table.insert(group(name, members));
    }
    table
}

fn names(hosts: &BTreeSet<HostName>) -> Vec<&str> {
    hosts.iter().map(HostName::as_str).collect()
}

#[test]
fn a_recorded_group_prints_as_it_was_read() {
    let group = HostGroup::from_fields(&Fields::parse(RECORDED).unwrap()).unwrap();
    assert_eq!(group.to_fields().print(ObjectKind::HostGroup, LineWrap::At80), RECORDED);
}

#[test]
fn nested_groups_resolve_to_their_hosts() {
    let table = table(&[
        ("@all", "@a @b n9"),
        ("@a", "n1 n2"),
        ("@b", "N2 n3"),
        ("@empty", "NONE"),
    ]);
    assert_eq!(names(&table.hosts_of(&"@all".into())), ["n1", "n2", "n3", "n9"]);
    assert_eq!(names(&table.hosts_of(&"@empty".into())), [""; 0]);
    assert_eq!(names(&table.hosts_of(&"@unknown".into())), [""; 0]);
    let groups = table.groups_of(&HostName::new("n2"));
    assert_eq!(
        groups.iter().map(HostGroupName::as_str).collect::<Vec<_>>(),
        ["@a", "@all", "@b"]
    );
    assert_eq!(table.groups_by_host().get("n2"), Some(&groups));
    assert_eq!(table.parents_of(&"@b".into()), [&HostGroupName::from("@all")]);
}

#[test]
fn a_group_that_would_contain_itself_is_refused_with_the_chain() {
    let table = table(&[("@a", "@b"), ("@b", "@c"), ("@c", "n1")]);
    let refusal = table.check(&group("@c", "n1 @a")).unwrap_err();
    assert_eq!(refusal.why, "@c contains @a contains @b contains @c");
    assert_eq!(table.check(&group("@d", "@d")).unwrap_err().code, Code::Immutable);
    assert_eq!(table.check(&group("@d", "@a @c")), Ok(()));
}

#[test]
fn a_group_of_an_unknown_group_is_refused_as_8_1_9_does() {
    let refusal = HostGroupTable::default().check(&group("@a", "@nosuch")).unwrap_err();
    assert_eq!(refusal.what, "denied: host group \"@nosuch\" does not exist");
}

#[test]
fn a_cycle_in_a_table_ends_resolution_all_the_same() {
    let table = table(&[("@a", "@b n1"), ("@b", "@a n2")]);
    assert_eq!(names(&table.hosts_of(&"@a".into())), ["n1", "n2"]);
    assert!(!table.tree(&"@a".into()).is_empty());
}

#[test]
fn the_tree_indents_members_by_three() {
    let table = table(&[("@all", "@a n9"), ("@a", "n1")]);
    assert_eq!(table.tree(&"@all".into()), ["@all", "   @a", "      n1", "   n9"]);
}

#[test]
fn names_of_groups_and_hosts_are_checked() {
    for (text, good) in [
        ("@a", true),
        ("@", false),
        ("@a b", false),
        ("n1.example.org", true),
        ("-x", false),
        ("NONE", false),
    ] {
        assert_eq!(text.parse::<HostOrGroup>().is_ok(), good, "{text}");
    }
}
