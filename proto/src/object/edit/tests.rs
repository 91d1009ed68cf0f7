use super::*;
use crate::object::Object;
use crate::object::value::Assignments;
use crate::queue::ClusterQueue;
use proptest::prelude::*;

fn queue(changes: &[(&str, &str)]) -> Fields {
    let mut fields = ClusterQueue::template("all.q".into()).to_fields();
    for (key, value) in changes {
        fields.set(key, *value);
    }
    fields
}

/// The value of the attribute after the edit, which the typed queue takes.
fn edited(
    fields: &Fields,
    operation: Operation,
    key: &str,
    value: &str,
    domain: Option<&str>,
) -> Result<String, String> {
    let domain = domain.map(|domain| domain.parse().unwrap());
    let edited =
        edit(ObjectKind::Queue, fields, operation, key, value, domain.as_ref()).map_err(|refusal| refusal.what)?;
    ClusterQueue::from_fields(&edited.fields).expect("the edited queue is one");
    Ok(edited.fields.value(key).unwrap().to_owned())
}

#[test]
fn lists_are_edited_by_the_keys_of_their_elements() {
    let fields = queue(&[("complex_values", "a=1,b=2"), ("pe_list", "make smp")]);
    for (operation, key, value, expected) in [
        (Operation::Add, "complex_values", "c=3", "a=1,b=2,c=3"),
        (Operation::Add, "complex_values", "b=9,c=3", "a=1,b=2,c=3"),
        (Operation::Modify, "complex_values", "a=7", "b=2,a=7"),
        (Operation::Modify, "complex_values", "c=3,a=7", "b=2,a=7,c=3"),
        (Operation::Modify, "complex_values", "b = 5 a==4", "b=5,a=4"),
        (Operation::Delete, "complex_values", "a b", "NONE"),
        (Operation::Modify, "pe_list", "make", "make smp"),
        (Operation::Modify, "pe_list", "smp,mpi,smp mpi", "make smp mpi"),
        (Operation::Delete, "complex_values", "a", "b=2"),
        (Operation::Delete, "complex_values", "a=1,b=2", "NONE"),
        (Operation::Replace, "complex_values", "d=4", "d=4"),
        (Operation::Replace, "complex_values", "NONE", "NONE"),
        (Operation::Add, "pe_list", "mpi,smp", "make smp mpi"),
        (Operation::Delete, "pe_list", "make", "smp"),
        (Operation::Add, "hostlist", "@allhosts n1", "@allhosts n1"),
        (Operation::Replace, "slots", "8", "8"),
        (Operation::Modify, "slots", "8", "8"),
    ] {
        let result = edited(&fields, operation, key, value, None);
        assert_eq!(result.as_deref(), Ok(expected), "{operation:?} {key} {value}");
    }
}

#[test]
fn a_resource_map_is_one_element_among_others() {
    let fields = queue(&[("complex_values", "mem=4,gpu=2(a b),lic=1")]);
    for (operation, value, expected) in [
        (Operation::Delete, "mem", "gpu=2(a b),lic=1"),
        (Operation::Delete, "gpu,lic", "mem=4"),
        (Operation::Modify, "mem=8", "gpu=2(a b),lic=1,mem=8"),
        (Operation::Modify, "gpu=3(a b c),mem=8", "lic=1,gpu=3(a b c),mem=8"),
        (Operation::Add, "gpu=1(z),disk=5", "mem=4,gpu=2(a b),lic=1,disk=5"),
    ] {
        let result = edited(&fields, operation, "complex_values", value, None);
        assert_eq!(result.as_deref(), Ok(expected), "{operation:?} {value}");
    }
}

#[test]
fn a_domain_has_its_own_value() {
    let fields = queue(&[("slots", "1,[@big=8]"), ("complex_values", "a=1,[n1=a=2]")]);
    for (operation, key, value, domain, expected) in [
        (Operation::Replace, "slots", "4", "n1", "1,[@big=8],[n1=4]"),
        (Operation::Modify, "slots", "4", "@big", "1,[@big=4]"),
        (
            Operation::Modify,
            "complex_values",
            "forc=TRUE",
            "n2",
            "a=1,[n1=a=2],[n2=forc=TRUE]",
        ),
        (Operation::Add, "complex_values", "b=3", "n1", "a=1,[n1=a=2,b=3]"),
        (Operation::Delete, "complex_values", "a", "n1", "a=1,[n1=NONE]"),
    ] {
        let result = edited(&fields, operation, key, value, Some(domain));
        assert_eq!(result.as_deref(), Ok(expected), "{operation:?} {key} {value} {domain}");
    }
    assert_eq!(
        edited(&fields, Operation::Replace, "slots", "2", None).as_deref(),
        Ok("2,[@big=8]")
    );
}

#[test]
fn nothing_is_deleted_of_a_part_that_has_no_list_of_its_own() {
    let changes = [
        ("user_lists", "bad"),
        ("complex_values", "lic=1"),
        ("projects", "p1"),
        ("qtype", "BATCH"),
    ];
    let fields = queue(&changes);
    for (key, value) in [
        ("user_lists", "bad"),
        ("user_lists", "nosuch"),
        ("projects", "p1"),
        ("complex_values", "lic=1"),
        ("pe_list", "make"),
        ("ckpt_list", "c1"),
        ("load_thresholds", "np_load_avg"),
        ("subordinate_list", "b.q"),
        ("owner_list", "u1"),
        ("qtype", "BATCH"),
    ] {
        let before = fields.value(key).unwrap().to_owned();
        for domain in ["n1", "@big"] {
            let result = edited(&fields, Operation::Delete, key, value, Some(domain));
            assert_eq!(result.as_ref(), Ok(&before), "{key} {value} {domain}");
        }
        let named = edited(&fields, Operation::Delete, key, &format!("[n1={value}]"), None);
        assert_eq!(named, Ok(before), "{key} {value}");
    }
    let own = queue(&[("user_lists", "bad,[n1=bad]")]);
    assert_eq!(
        edited(&own, Operation::Delete, "user_lists", "bad", Some("n1")).as_deref(),
        Ok("bad,[n1=NONE]"),
        "a part that has a list of its own loses the element"
    );
}

#[test]
fn what_is_no_type_of_a_queue_is_refused_whatever_is_done_with_it() {
    for operation in [Operation::Add, Operation::Modify, Operation::Delete, Operation::Replace] {
        let refused = edited(&queue(&[]), operation, "qtype", "x", Some("n1"));
        let expected = "error parsing queue type from string \"x\"\nError during parsing of attribute value \"x\"";
        assert_eq!(refused, Err(expected.to_owned()), "{operation:?}");
    }
}

#[test]
fn the_value_may_name_its_domains_itself() {
    let fields = queue(&[("slots", "1,[n1=4]"), ("subordinate_list", "b.q=1")]);
    for (operation, key, value, expected) in [
        (Operation::Add, "slots", "[n2=8]", "1,[n1=4],[n2=8]"),
        (Operation::Modify, "slots", "[n1=2],[@big=6]", "1,[n1=2],[@big=6]"),
        (Operation::Replace, "slots", "3,[n1=2]", "3,[n1=2]"),
        (Operation::Delete, "slots", "[n1=4]", "1"),
        (Operation::Add, "pe_list", "[@big=mpi]", "make smp mpi,[@big=mpi]"),
        (Operation::Modify, "subordinate_list", "b.q=2 c.q=1", "b.q=2 c.q=1"),
    ] {
        assert_eq!(
            edited(&fields, operation, key, value, None).as_deref(),
            Ok(expected),
            "{operation:?} {key} {value}"
        );
    }
    let absent = edited(&fields, Operation::Delete, "slots", "[n9=1]", None);
    assert_eq!(
        absent,
        Err("\"n9\" does not exist in \"slots\" of \"all.q\"".to_owned())
    );
}

#[test]
fn brackets_in_objects_other_than_queues_are_part_of_the_value() {
    let mut host = crate::host::ExecHost::template("n1".into()).to_fields();
    host.set("complex_values", "a=1");
    let edited = edit(
        ObjectKind::ExecHost,
        &host,
        Operation::Add,
        "complex_values",
        "rack=[7]",
        None,
    )
    .unwrap();
    assert_eq!(edited.fields.value("complex_values"), Some("a=1,rack=[7]"));
}

#[test]
fn what_a_list_held_is_told_as_8_1_9_does() {
    let fields = queue(&[("complex_values", "a=1,[n1=NONE]")]);
    let notes = |operation, value: &str, domain: Option<&str>| {
        let domain: Option<HostOrGroup> = domain.map(|domain| domain.parse().unwrap());
        edit(
            ObjectKind::Queue,
            &fields,
            operation,
            "complex_values",
            value,
            domain.as_ref(),
        )
        .unwrap()
        .notes
    };
    let of = "\"complex_values\" of \"all.q\"";
    for (operation, value, domain, note) in [
        (
            Operation::Modify,
            "b=2",
            Some("n1"),
            format!("{of} is empty - Adding new element(s)."),
        ),
        (
            Operation::Modify,
            "b=2",
            None,
            format!("Unable to find \"b\" in {of} - Adding new element."),
        ),
        (
            Operation::Add,
            "a=2",
            None,
            format!("No modification because \"a\" already exists in {of}"),
        ),
        (Operation::Delete, "b=2", None, format!("\"b\" does not exist in {of}")),
    ] {
        assert_eq!(notes(operation, value, domain), [note]);
    }
    for (operation, value, domain) in [
        (Operation::Modify, "a=2", None),
        (Operation::Add, "b=2", Some("n1")),
        (Operation::Delete, "a=1", None),
    ] {
        assert_eq!(notes(operation, value, domain), [""; 0]);
    }
}

#[test]
fn a_host_is_called_by_its_kind_and_told_of_only_if_it_changed() {
    let mut host = crate::host::ExecHost::template("n1".into()).to_fields();
    host.set("complex_values", "a=1");
    let add = |value| {
        edit(
            ObjectKind::ExecHost,
            &host,
            Operation::Add,
            "complex_values",
            value,
            None,
        )
        .unwrap()
    };
    let EditResult { notes, is_told, .. } = add("a=2");
    assert_eq!(
        notes,
        ["No modification because \"a\" already exists in \"complex_values\" of \"exechost\""]
    );
    assert!(!is_told && add("b=2").is_told);
}

#[test]
fn a_list_is_not_said_to_be_changed_by_no_elements() {
    let fields = queue(&[("load_thresholds", "np_load_avg=1.75"), ("user_lists", "staff")]);
    for (operation, option) in [
        (Operation::Add, "-aattr"),
        (Operation::Modify, "-mattr"),
        (Operation::Delete, "-dattr"),
    ] {
        let none = format!("\"NONE\" is not a valid list attribute value for {option}.  Try using -rattr instead.");
        for (key, value, what) in [
            ("load_thresholds", "NONE", none.as_str()),
            ("load_thresholds", "[n1=NONE]", none.as_str()),
            ("user_lists", "none", none.as_str()),
            ("hostlist", "NONE", none.as_str()),
            ("user_lists", "NONE,NONE", none.as_str()),
            ("user_lists", "staff none", none.as_str()),
            ("load_thresholds", "np_load_avg=2,NONE", none.as_str()),
            (
                "user_lists",
                ",",
                "The attribute name (\"user_lists\") and/or value (\",\") is invalid",
            ),
            (
                "user_lists",
                " ",
                "The attribute name (\"user_lists\") and/or value (\" \") is invalid",
            ),
        ] {
            let result = edited(&fields, operation, key, value, None);
            assert_eq!(result, Err(what.to_owned()), "{operation:?} {key} {value}");
        }
    }
    assert_eq!(
        edited(&fields, Operation::Replace, "user_lists", "NONE", None).as_deref(),
        Ok("NONE")
    );
    assert_eq!(
        edited(&fields, Operation::Modify, "prolog", "NONE", None).as_deref(),
        Ok("NONE")
    );
}

#[test]
fn when_state_is_written_is_a_list_of_letters() {
    let kind = ObjectKind::Checkpoint;
    let mut fields = crate::checkpoint::Checkpoint::template("c1").write();
    fields.set("when", "xs");
    for (operation, value, expected) in [
        (Operation::Modify, "x", "xs"),
        (Operation::Modify, "r", "xsr"),
        (Operation::Modify, "rm", "xsmr"),
        (Operation::Add, "s", "xs"),
        (Operation::Add, "r", "xsr"),
        (Operation::Delete, "x", "s"),
        (Operation::Delete, "m", "xs"),
        (Operation::Replace, "m", "m"),
    ] {
        let edited = edit(kind, &fields, operation, "when", value, None).unwrap();
        let settled = kind.settle("c1", &edited.fields).unwrap();
        assert_eq!(settled.value("when"), Some(expected), "{operation:?} {value}");
    }
    for (operation, value) in [
        (Operation::Delete, "xs"),
        (Operation::Modify, "q"),
        (Operation::Replace, "NONE"),
    ] {
        let edited = edit(kind, &fields, operation, "when", value, None).unwrap();
        let refusals = kind.settle("c1", &edited.fields).unwrap_err();
        assert_eq!(
            refusals[0].what, "Invalid \"when\" attribute for ckpt \"c1\"",
            "{operation:?} {value}"
        );
    }
    assert!(edit(kind, &fields, Operation::Modify, "when", "NONE", None).is_err());
}

#[test]
fn the_type_of_a_queue_is_modified_as_a_whole() {
    let fields = queue(&[("qtype", "BATCH INTERACTIVE")]);
    for (operation, value, expected) in [
        (Operation::Modify, "BATCH", "BATCH"),
        (Operation::Modify, "NONE", "NONE"),
        (Operation::Delete, "BATCH", "INTERACTIVE"),
    ] {
        assert_eq!(
            edited(&fields, operation, "qtype", value, None).as_deref(),
            Ok(expected),
            "{operation:?} {value}"
        );
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let fields = queue(&[]);
    for (operation, key, value, domain, what) in [
        (
            Operation::Replace,
            "slot",
            "1",
            None,
            "The attribute name (\"slot\") and/or value (\"1\") is invalid",
        ),
        (
            Operation::Replace,
            "qname",
            "b.q",
            None,
            "attribute \"qname\" of a cluster queue cannot be modified",
        ),
        (
            Operation::Delete,
            "slots",
            "1",
            None,
            "attribute \"slots\" of a cluster queue is not a list",
        ),
        (
            Operation::Add,
            "hostlist",
            "n1",
            Some("n1"),
            "attribute \"hostlist\" of a cluster queue is the same on all hosts",
        ),
    ] {
        assert_eq!(edited(&fields, operation, key, value, domain), Err(what.to_owned()));
    }
    let host = crate::host::ExecHost::template("n1".into()).to_fields();
    let refusal = edit(
        ObjectKind::ExecHost,
        &host,
        Operation::Replace,
        "load_values",
        "a=1",
        None,
    )
    .unwrap_err();
    assert_eq!(refusal.code, Code::Immutable);
}

#[test]
fn attributes_that_are_not_shown_by_default_are_edited_too() {
    let plain = crate::pe::ParallelEnvironment::template("mpi".into()).to_fields();
    let change = |fields: &Fields, operation, key: &str, value| {
        let edited = edit(ObjectKind::Pe, fields, operation, key, value, None).map_err(|refusal| refusal.what)?;
        Ok::<_, String>(
            ObjectKind::Pe
                .settle("mpi", &edited.fields)
                .expect("the edited environment is one"),
        )
    };
    for operation in [Operation::Add, Operation::Modify, Operation::Replace] {
        let on = change(&plain, operation, "ign_sreq_on_mhost", "TRUE").unwrap();
        assert_eq!(on.value("ign_sreq_on_mhost"), Some("TRUE"), "{operation:?}");
        assert_eq!(
            change(&on, operation, "ign_sreq_on_mhost", "FALSE").as_ref(),
            Ok(&plain),
            "{operation:?}"
        );
    }
    let unlisted = change(&plain, Operation::Delete, "ign_sreq_on_mhost", "TRUE").unwrap_err();
    assert_eq!(
        unlisted,
        "attribute \"ign_sreq_on_mhost\" of a parallel environment is not a list"
    );
    let misspelt = edit(
        ObjectKind::Pe,
        &plain,
        Operation::Replace,
        "ign_sreq_on_host",
        "TRUE",
        None,
    )
    .unwrap_err();
    assert_eq!(misspelt.fix, "did you mean \"ign_sreq_on_mhost\"?");
    assert_eq!(shape_of(ObjectKind::Queue, "ign_sreq_on_mhost"), None);
}

#[test]
fn purge_takes_the_value_of_a_domain_out() {
    let fields = queue(&[("slots", "1,[@big=8],[n1=4]")]);
    let purged = purge(ObjectKind::Queue, &fields, "slots", &"n1".parse().unwrap()).unwrap();
    assert_eq!(purged.unwrap().value("slots"), Some("1,[@big=8]"));
    let purge = |key: &str| purge(ObjectKind::Queue, &fields, key, &"n7".parse().unwrap());
    assert_eq!(purge("slots"), Ok(None));
    assert_eq!(
        purge("slot").unwrap_err().what,
        "Attribute name (\"slot\") and/or value (\"n7\") not found"
    );
}

#[test]
fn the_kinds_have_the_names_that_qconf_uses() {
    assert_eq!(ObjectKind::from_attr_name("exechost"), Some(ObjectKind::ExecHost));
    assert_eq!(ObjectKind::from_attr_name("host"), None);
}

/// Lists as people spell them: commas, blanks, doubles, `==`, blanks around `=`.
fn spelling() -> impl Strategy<Value = (&'static str, String)> {
    let between = prop_oneof![Just(","), Just(" "), Just(", "), Just(" , "), Just("  ")];
    let equals = prop_oneof![Just("="), Just("=="), Just(" = "), Just("= "), Just(" =")];
    let words = prop_oneof![Just("team"), Just("bad"), Just("nosuch"), Just("make"), Just("mpi")];
    let names = (
        prop_oneof![Just("user_lists"), Just("projects"), Just("pe_list"), Just("ckpt_list")],
        1..4_usize,
    );
    let names = (names, proptest::collection::vec((words, between.clone()), 1..4)).prop_map(|((key, _), words)| {
        let text: String = words.iter().map(|(word, between)| format!("{word}{between}")).collect();
        (key, text.trim_end_matches([',', ' ']).to_owned())
    });
    let attributes = proptest::sample::subsequence(vec!["lic", "gm", "w1", "ft"], 1..4);
    let values = prop_oneof![Just("1"), Just("2G"), Just("a"), Just("0:1:0")];
    let key = prop_oneof![
        Just("complex_values"),
        Just("load_thresholds"),
        Just("suspend_thresholds")
    ];
    let pairs = (key, attributes, values, equals, between).prop_map(|(key, names, value, equals, between)| {
        let pairs: Vec<String> = names.iter().map(|name| format!("{name}{equals}{value}")).collect();
        (key, pairs.join(between))
    });
    prop_oneof![names, pairs]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{Add, Delete, Modify, Replace};
    prop_oneof![Just(Add), Just(Modify), Just(Delete), Just(Replace)]
}

proptest! {
    #[test]
    fn an_edit_of_one_part_of_a_queue_leaves_the_others_and_reads_back(
        (key, value) in spelling(),
        operation in operation(),
        domain in prop_oneof![Just(None), Just(Some("n1")), Just(Some("n2")), Just(Some("@big"))],
    ) {
        let before = queue(&[
            ("user_lists", "team bad,[n1=bad]"),
            ("projects", "p1,[@big=p1 p2]"),
            ("complex_values", "lic=4,gm=2G,[n1=lic=2]"),
            ("load_thresholds", "np_load_avg=1.75,[@big=w1=3]"),
        ]);
        let parts = |fields: &Fields| SettingText::parse(fields.value(key).unwrap()).unwrap().by_domain();
        let meant: Option<HostOrGroup> = domain.map(|domain| domain.parse().unwrap());
        let had_own = parts(&before).iter().any(|(part, _)| *part == meant);
        let text = edited(&before, operation, key, &value, domain).unwrap();
        let after = queue(&[("user_lists", "NONE"), (key, &text)]);
        let others = |fields: &Fields| {
            parts(fields).into_iter().filter(|(part, _)| *part != meant).collect::<Vec<_>>()
        };
        prop_assert_eq!(others(&before), others(&after), "{} {}", key, value);
        if operation == Operation::Delete && !had_own {
            prop_assert_eq!(parts(&before), parts(&after), "nothing is deleted of a part without a list of its own");
        }
        let read = ClusterQueue::from_fields(&after).unwrap();
        prop_assert_eq!(ClusterQueue::from_fields(&read.to_fields()).unwrap(), read);
    }

    #[test]
    fn assignments_mean_the_same_however_they_are_spelt((_, text) in spelling()) {
        let spelt = spelt_with_commas(&text);
        prop_assert_eq!(spelt_with_commas(&spelt), spelt.clone());
        if text.contains('=') {
            let list = Assignments::new_in_queue(&text).unwrap();
            prop_assert_eq!(list.to_string(), spelt);
        }
    }
}
