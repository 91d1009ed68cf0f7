use super::*;
use crate::diagnostic::Diagnostic;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The objects that 8.1.9 printed, with their kinds.
const RECORDED: &[(ObjectKind, &str)] = &[
    (
        ObjectKind::Queue,
        include_str!("../../tests-data/qconf/queue_template.txt"),
    ),
    (
        ObjectKind::Queue,
        include_str!("../../tests-data/qconf/queue_all.q.txt"),
    ),
    (
        ObjectKind::ExecHost,
        include_str!("../../tests-data/qconf/host_global.txt"),
    ),
    (ObjectKind::ExecHost, include_str!("../../tests-data/qconf/host_vm.txt")),
    (
        ObjectKind::HostGroup,
        include_str!("../../tests-data/qconf/hostgroup_allhosts.txt"),
    ),
    (ObjectKind::Pe, include_str!("../../tests-data/qconf/pe_make.txt")),
    (ObjectKind::Pe, include_str!("../../tests-data/qconf/pe_mpi.txt")),
    (ObjectKind::Pe, include_str!("../../tests-data/qconf/pe_smp.txt")),
    (
        ObjectKind::SchedulerConf,
        include_str!("../../tests-data/qconf/scheduler.txt"),
    ),
];

/// Values of many elements, with commas, blanks, comment signs and backslashes where they might
/// mislead the parser.
const VALUE: &str = "([a-zA-Z0-9=@/$.\\[\\]#\\\\-]{1,25}[, ]{0,3}){0,15}[a-zA-Z0-9#]";

fn refusals(text: &str) -> Vec<String> {
    let refusals = Fields::parse(text).expect_err("the text is refused");
    refusals
        .iter()
        .map(|Diagnostic { what, place, .. }| format!("{place}: {what}"))
        .collect()
}

#[test]
fn recorded_objects_print_as_they_were_read() {
    for (kind, text) in RECORDED {
        assert_eq!(Fields::parse(text).unwrap().print(*kind, LineWrap::At80), *text);
    }
}

#[test]
fn comments_and_empty_lines_are_skipped_and_continuations_joined() {
    let text = "# head\n\nqname  a.q  \npe_list make \\\n    mpi \\\n  smp\ncomplex_values a=1, \\\n   b=2\n";
    let fields = Fields::parse(text).unwrap();
    let pairs: Vec<_> = fields
        .iter()
        .map(|field| (field.key.as_str(), field.value.as_str(), field.line))
        .collect();
    assert_eq!(
        pairs,
        [
            ("qname", "a.q", 3),
            ("pe_list", "make mpi smp", 4),
            ("complex_values", "a=1,b=2", 7)
        ]
    );
}

#[test]
fn a_comment_or_an_empty_line_behind_a_backslash_is_no_part_of_the_value() {
    for text in ["slots 1 \\\n# last", "slots \\\n# which\n  1", "slots 1 \\\n\n\n"] {
        assert_eq!(Fields::parse(text).unwrap().value("slots"), Some("1"), "{text:?}");
    }
}

#[test]
fn refusals_name_the_line() {
    assert_eq!(
        refusals("slots 1\nshell\n"),
        ["line 2: attribute \"shell\" has no value"]
    );
    assert_eq!(
        refusals("slots 1\n\nslots 2\n"),
        ["line 3: attribute \"slots\" appears more than once"]
    );
    assert_eq!(refusals("slots 1 \\\n"), ["line 1: the text ends with a backslash"]);
    assert_eq!(
        refusals("pe_list make \\\n# more\n mpi \\"),
        ["line 1: the text ends with a backslash"]
    );
}

#[test]
fn unknown_and_missing_attributes_are_refused_with_the_nearest_name() {
    let fields = Fields::parse("group_name @a\nhostlsit b\n").unwrap();
    let refusals = fields.check_keys(
        ObjectKind::HostGroup,
        &["group_name", "hostlist"],
        &["group_name", "hostlist"],
    );
    let texts: Vec<_> = refusals
        .iter()
        .map(|refusal| (refusal.what.as_str(), refusal.fix.as_str()))
        .collect();
    assert_eq!(
        texts[0],
        ("unknown attribute name \"hostlsit\"", "did you mean \"hostlist\"?")
    );
    assert_eq!(texts[1].0, "required attribute \"hostlist\" is missing");
    assert_eq!(refusals[0].place, "line 2");
}

#[test]
fn single_line_output_has_one_line_for_each_attribute() {
    let (kind, text) = RECORDED[3];
    let fields = Fields::parse(text).unwrap();
    let single = fields.print(kind, LineWrap::SingleLine);
    assert_eq!(single.lines().count(), fields.len());
    assert_eq!(Fields::parse(&single).unwrap(), fields);
}

#[test]
fn host_groups_wrap_below_the_first_member() {
    let hosts: Vec<String> = (1..=12).map(|number| format!("node{number:03}")).collect();
    let fields: Fields = [("group_name", "@a".to_owned()), ("hostlist", hosts.join(" "))]
        .into_iter()
        .collect();
    let text = fields.print(ObjectKind::HostGroup, LineWrap::At80);
    assert_eq!(text.lines().nth(1).unwrap().len(), 9 + 8 * 8 - 1 + 2);
    assert!(text.lines().nth(2).unwrap().starts_with("         node009 node010"));
}

#[test]
fn overrides_wrap_between_their_brackets() {
    let overrides: String = (3..=10).map(|number| format!(",[exec-client{number:04}=12]")).collect();
    let fields: Fields = [("slots", format!("1{overrides}"))].into_iter().collect();
    let expected = "slots                 1,[exec-client0003=12],[exec-client0004=12], \\
                      [exec-client0005=12],[exec-client0006=12], \\
                      [exec-client0007=12],[exec-client0008=12], \\
                      [exec-client0009=12],[exec-client0010=12]
";
    assert_eq!(fields.print(ObjectKind::Queue, LineWrap::At80), expected);
}

proptest! {
    #[test]
    fn every_value_reads_back_from_what_it_prints(
        pairs in prop::collection::btree_map("[a-z_]{1,30}", VALUE, 0..8),
        kind in prop::sample::select(ObjectKind::ALL),
        wrap in prop::sample::select(vec![LineWrap::At80, LineWrap::SingleLine]),
    ) {
        let fields: Fields = pairs.into_iter().map(|(key, value)| (key, value.trim_matches([' ', ',']).to_owned())).collect();
        let text = fields.print(kind, wrap);
        prop_assert_eq!(Fields::parse(&text).unwrap(), fields, "{}", text);
    }

    #[test]
    fn lines_stay_within_eighty_characters(words in prop::collection::vec("[a-z=]{1,40}", 1..30)) {
        let fields: Fields = [("complex_values", words.join(","))].into_iter().collect();
        let text = fields.print(ObjectKind::Queue, LineWrap::At80);
        prop_assert!(text.lines().all(|line| line.len() <= 80), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*", lines in "([a-z#\\\\ ,]{0,6}\n){0,6}") {
        let _ = Fields::parse(&text);
        let _ = Fields::parse(&lines);
    }
}

fn survives_the_wire<T: Serialize + for<'a> Deserialize<'a> + PartialEq + fmt::Debug>(object: T) {
    let bytes = rmp_serde::to_vec_named(&object).unwrap();
    assert_eq!(rmp_serde::from_slice::<T>(&bytes).unwrap(), object);
}

#[test]
fn every_object_survives_the_wire() {
    let mut fields = crate::queue::ClusterQueue::template("a.q".into()).to_fields();
    fields.set("slots", "1,[@big=8],[n1=4]");
    let queue = crate::queue::ClusterQueue::from_fields(&fields).unwrap();
    survives_the_wire(queue.resolve(&"n1".into(), &std::collections::BTreeSet::new()));
    survives_the_wire(queue);
    survives_the_wire(fields);
    survives_the_wire(crate::host::ExecHost::template("n1".into()));
    survives_the_wire(crate::hostgroup::HostGroup::template("@a".into()));
    survives_the_wire(crate::pe::ParallelEnvironment::template("smp".into()));
    survives_the_wire(crate::policy::SchedulerConf::template());
    survives_the_wire(crate::conf::ClusterConf::template());
    survives_the_wire(crate::conf::Settings::template());
    survives_the_wire(crate::conf::ExecdParams::default());
}

#[test]
fn every_attribute_has_a_meaning() {
    for kind in ObjectKind::ALL {
        let keys: Vec<&str> = kind.keys().iter().chain(kind.later_keys()).copied().collect();
        let explained: Vec<&str> = kind.meanings().map(|(key, _)| key).collect();
        // The share tree has a form of its own, and no keys.
        assert!(
            keys == explained || *kind == ObjectKind::ShareTree,
            "{kind}: {keys:?} {explained:?}"
        );
        // A link of rustdoc means nothing on a manual page.
        let is_sentence = |text: &str| text.ends_with('.') && !text.contains("[`") && !text.contains('\n');
        let bad: Vec<_> = kind.meanings().filter(|(_, meaning)| !is_sentence(meaning)).collect();
        assert!(bad.is_empty(), "{kind}: {bad:?}");
    }
}
