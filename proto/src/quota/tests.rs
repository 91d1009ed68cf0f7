use super::*;
use crate::object::LineWrap;
use crate::object::edit::Operation;
use proptest::prelude::*;

/// As 8.1.9 printed it.
const RECORDED: &str = include_str!("../../tests-data/qconf/rqs.txt");

fn sets(text: &str) -> Vec<QuotaSet> {
    parse_sets(text)
        .unwrap()
        .iter()
        .map(|fields| QuotaSet::from_fields(fields).unwrap())
        .collect()
}

fn refusal(text: &str) -> (String, String) {
    let refusals = parse_sets(text).unwrap_err();
    (refusals[0].what.clone(), refusals[0].place.clone())
}

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

#[test]
fn recorded_sets_print_as_they_were_read() {
    assert_eq!(print_sets(&sets(RECORDED), LineWrap::At80), RECORDED);
}

#[test]
fn a_rule_is_printed_in_one_order_with_its_exclusions_last() {
    let read = rule("hosts { !sim0001, * } users u1,!u2,@g name r pes !* to lic=7 , slots=$num_proc*2+1");
    assert_eq!(
        read.to_string(),
        "name r users u1,@g,!u2 pes !* hosts {*,!sim0001} to lic=7,slots=$num_proc*2+1"
    );
    assert_eq!(rule(&read.to_string()), read);
    assert_eq!(rule("users u1 to NONE").limits, []);
}

#[test]
fn several_sets_in_one_text_with_continuations_and_comments() {
    let text = "# both\n{ name a\nenabled true\nlimit users u1 \\\n  hosts h1 \\\n to slots=1\nlimit to slots=2 }\n\n{\n\
                name b\ndescription \"two words\"\nenabled 0\nlimit users {u1,\\\n u2} to slots=3\n}\n";
    let sets = sets(text);
    let printed = "{\n   name         a\n   description  NONE\n   enabled      TRUE\n   limit        users u1 hosts h1 to slots=1\n   \
                   limit        to slots=2\n}\n{\n   name         b\n   description  \"two words\"\n   enabled      FALSE\n   \
                   limit        users {u1,u2} to slots=3\n}\n";
    assert_eq!(print_sets(&sets, LineWrap::SingleLine), printed);
    assert_eq!(parse_sets("NONE\n"), Ok(Vec::new()));
    assert_eq!(parse_sets(""), Ok(Vec::new()));
}

#[test]
fn refusals_say_which_line_and_what() {
    let set = |limit: &str| refusal(&format!("{{\n name x\n enabled TRUE\n limit {limit}\n}}\n"));
    let line_4 = |what: &str| (what.to_owned(), "line 4".to_owned());
    assert_eq!(set("users {* to slots=2"), line_4("no valid expanded list"));
    assert_eq!(set("foo {*} to slots=1"), line_4("unknown attribute name \"foo\""));
    assert_eq!(set("users u1 slots=4"), line_4("unknown attribute name \"slots\""));
    assert_eq!(
        set("users u1 users u2 to slots=4"),
        line_4("attribute \"users\" appears more than once")
    );
    assert_eq!(set("users u1 to"), line_4("\"to\" is not followed by its value"));
    assert_eq!(set("users u1"), line_4("\"to\" is not followed by its value"));
    assert_eq!(set("to slots"), line_4("\"slots\" is no limit"));
    assert_eq!(set("users u1,,u2 to slots=1"), line_4("\"u1,,u2\" is no list of names"));
    assert_eq!(
        set("to slots=$num_proc"),
        line_4("dynamic limits are only supported for per host rules")
    );
    assert_eq!(
        set("hosts {*} to slots=$num_proc**2"),
        line_4("\"slots=$num_proc**2\" is no limit")
    );
    assert_eq!(set("name a/b to slots=1").1, "line 4");
    let whole = |text: &str| refusal(text).0;
    assert_eq!(parse_sets("name r5\nenabled TRUE\n").unwrap_err().len(), 1);
    assert_eq!(
        whole("name r5\n"),
        "each value in the attribute value list in line 1 should begin with \"{\""
    );
    let open = "{\nname r5\nenabled TRUE\nlimit to slots=4\n";
    assert_eq!(
        whole(open),
        "each value in the attribute value list in line 5 should end with \"}\""
    );
    assert_eq!(
        whole("{\nname bad name\nenabled TRUE\nlimit to slots=4\n}\n"),
        "Space (' ') not allowed in objectname"
    );
    assert_eq!(
        whole("{\nname a/b\nenabled TRUE\nlimit to slots=4\n}\n"),
        "Slash ('/') not allowed in objectname"
    );
    assert_eq!(
        whole("{\nname a\nenabled MAYBE\nlimit to slots=4\n}\n"),
        "error parsing value \"MAYBE\""
    );
    assert_eq!(
        whole("{\nname a\nlimit to slots=4\n}\n"),
        "required attribute \"enabled\" is missing"
    );
    assert_eq!(
        whole("{\nenabled TRUE\nlimit to slots=4\n}\n"),
        "resource quota set has no name"
    );
    assert_eq!(whole("{\nname a\nenabled TRUE\n}\n"), "resource quota set has no rules");
    assert_eq!(
        whole("{\nname a\nname b\nenabled TRUE\nlimit to slots=4\n}\n"),
        "attribute \"name\" appears more than once"
    );
    assert_eq!(
        whole("{\nname a\nfoo b\nenabled TRUE\nlimit to slots=4\n}\n"),
        "unknown attribute name \"foo\""
    );
    let twice = "{\nname a\nenabled TRUE\nlimit to slots=4\n}\n".repeat(2);
    assert_eq!(
        refusal(&twice),
        ("resource quota set \"a\" appears twice".to_owned(), "line 7".to_owned())
    );
}

#[test]
fn limits_are_checked_against_the_complex() {
    let complex = Complex::built_in();
    let check = |limit: &str| {
        let mut set = QuotaSet::template(QuotaName::from("x"));
        set.rules = vec![rule("to slots=1"), rule(&format!("hosts {{*}} to {limit}"))];
        set.check(&complex)
            .first()
            .map(|refusal| (refusal.what.clone(), refusal.place.clone()))
    };
    let second = |what: &str| Some((what.to_owned(), "x/2".to_owned()));
    assert_eq!(check("slots=2,h_rt=1:0:0,arch=lx*,mem_free=1G,slots=$num_proc*2"), None);
    assert_eq!(
        check("nosuch=2"),
        second("\"resource_quota\" references not existing complex attribute \"nosuch\"")
    );
    let dynamic = "\"dynamical_limit\" references not existing complex attribute \"nosuch\"";
    assert_eq!(check("slots=$nosuch*2"), second(dynamic));
    assert_eq!(check("slots=abc"), second("attribute \"slots\" is not a integer value"));
    assert_eq!(
        check("h_vmem=abc"),
        second("attribute \"h_vmem\" is not a memory value")
    );
    assert_eq!(check("slots=-1"), second("\"slots=-1\" is no limit"));
    assert_eq!(check("arch=$num_proc"), second("\"arch=$num_proc\" is no limit"));
}

#[test]
fn edits_change_the_limits_of_one_rule() {
    let text = "{\nname r2\nenabled TRUE\nlimit to slots=3\nlimit name two users u1 to slots=4,lic=7\n}\n";
    let set = &sets(text)[0];
    let limits = |rule: &str, operation, value: &str| {
        let edited = edit(set, Some(rule), operation, "limit", value).unwrap();
        let set = QuotaSet::from_fields(&edited.fields).unwrap();
        (
            set.rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            edited.notes,
        )
    };
    assert_eq!(
        limits("1", Operation::Replace, "slots=9").0,
        "to slots=9; name two users u1 to slots=4,lic=7"
    );
    assert_eq!(
        limits("two", Operation::Modify, "slots=10").0,
        "to slots=3; name two users u1 to lic=7,slots=10"
    );
    assert_eq!(
        limits("1", Operation::Add, "lic=3").0,
        "to slots=3,lic=3; name two users u1 to slots=4,lic=7"
    );
    assert_eq!(
        limits("2", Operation::Delete, "slots=4").0,
        "to slots=3; name two users u1 to lic=7"
    );
    let (unchanged, notes) = limits("1", Operation::Add, "slots=1");
    assert_eq!(unchanged, "to slots=3; name two users u1 to slots=4,lic=7");
    let already = "No modification because \"slots\" already exists in \"resource_quota_rules\" of \"resource_quota\"";
    assert_eq!(notes, [already]);
    let (unchanged, notes) = limits("2", Operation::Delete, "nosuch");
    assert_eq!(unchanged, "to slots=3; name two users u1 to slots=4,lic=7");
    assert_eq!(
        notes,
        ["\"nosuch\" does not exist in \"resource_quota_rules\" of \"resource_quota\""]
    );
    let refused = |rule, key, value| edit(set, rule, Operation::Replace, key, value).unwrap_err().what;
    assert_eq!(
        refused(Some("9"), "limit", "slots=1"),
        "no resource quota rule specified for modification"
    );
    assert_eq!(
        refused(None, "limit", "slots=1"),
        "no resource quota rule specified for modification"
    );
    assert_eq!(
        refused(Some("1"), "limit", "slots=$num_proc"),
        "dynamic limits are only supported for per host rules"
    );
    assert_eq!(refused(None, "name", "x"), "cannot change name");
    assert_eq!(refused(None, "enabled", "MAYBE"), "error parsing value \"MAYBE\"");
    assert_eq!(refused(None, "users", "u3"), "unknown attribute name \"users\"");
}

#[test]
fn rules_are_called_by_name_or_number() {
    let set = &sets("{\nname s\nenabled TRUE\nlimit to slots=3\nlimit name two to slots=4\n}\n")[0];
    assert_eq!(
        [set.rule_called("1"), set.rule_called("two"), set.rule_called("2")],
        [Some(0), Some(1), Some(1)]
    );
    assert_eq!(
        [set.rule_called("0"), set.rule_called("3"), set.rule_called("x")],
        [None, None, None]
    );
    assert_eq!([set.rule_name(0), set.rule_name(1)], ["s/1", "s/two"]);
}

fn filter() -> impl Strategy<Value = Option<Filter>> {
    let names = || prop::collection::vec("[a-z@*][a-z0-9.*?]{0,6}[a-z]", 0..4);
    let filter = (any::<bool>(), names(), names()).prop_map(|(expanded, included, excluded)| {
        let expressions = |names: Vec<String>| {
            names
                .iter()
                .filter_map(|name| crate::restring::Expression::parse(name).ok())
                .collect()
        };
        Filter {
            expanded,
            included: expressions(included),
            excluded: expressions(excluded),
        }
    });
    prop::option::of(filter.prop_filter("a list has elements", |filter| filter.elements().next().is_some()))
}

prop_compose! {
    fn rules()(
        name in prop::option::of("[a-z][a-z0-9]{0,5}"),
        users in filter(), projects in filter(), pes in filter(), queues in filter(), hosts in filter(),
        limits in prop::collection::vec(("[a-z_]{1,8}", "[0-9]{1,5}[kMG]?"), 0..3),
    ) -> Rule {
        let limits = limits.into_iter().map(|(name, value)| format!("{name}={value}").parse().unwrap()).collect();
        Rule { name, users, projects, pes, queues, hosts, limits }
    }
}

proptest! {
    #[test]
    fn print_and_parse_undo_each_other(
        sets in prop::collection::btree_map("[a-z]{1,6}", (any::<bool>(), prop::collection::vec(rules(), 1..4)), 0..3),
    ) {
        let sets: Vec<QuotaSet> = sets.into_iter().map(|(name, (enabled, rules))| QuotaSet {
            name: QuotaName::from(name), description: OptionalValue::NONE, enabled: Flag(enabled), rules,
        }).collect();
        for wrap in [LineWrap::At80, LineWrap::SingleLine] {
            let text = print_sets(&sets, wrap);
            let fields = parse_sets(&text).unwrap();
            let read: Vec<QuotaSet> = fields.iter().map(|fields| QuotaSet::from_fields(fields).unwrap()).collect();
            prop_assert_eq!(&read, &sets);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[{}a-z0-9 ,!@*$=#\\\\\n]{0,200}") {
        drop(parse_sets(&text));
    }
}
