use super::*;
use proptest::prelude::*;

/// The text of the built-in complex with one more line.
fn with_line(line: &str) -> String {
    format!("{}{line}\n", Complex::built_in())
}

/// The text of the built-in complex with the line of that attribute replaced; by nothing, if `line`
/// is empty.
fn with_replaced(name: &str, line: &str) -> String {
    let text = Complex::built_in().to_string();
    let is_line = |candidate: &&str| candidate.split_whitespace().next() == Some(name);
    let old = text.lines().find(is_line).unwrap();
    text.replace(
        &format!("{old}\n"),
        &if line.is_empty() {
            String::new()
        } else {
            format!("{line}\n")
        },
    )
}

/// What `qconf -Mc` says about the text on a new cell.
fn outcome(text: &str) -> Vec<String> {
    let replaced = Complex::parse(text).and_then(|new| Complex::built_in().replace(&new));
    match replaced {
        Ok(changes) => changes.iter().map(AttributeChange::to_string).collect(),
        Err(refusals) => refusals.into_iter().map(|refusal| refusal.what).collect(),
    }
}

#[test]
fn the_built_in_complex_prints_as_qconf_sc_does() {
    let text = Complex::built_in().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 55);
    let header = "#name               shortcut   type      relop requestable consumable default  urgency ";
    assert_eq!(lines[0], header);
    assert_eq!(
        lines[1],
        "#--------------------------------------------------------------------------------------"
    );
    assert_eq!(
        lines[7],
        "h_cpu               h_cpu      TIME      <=    YES         NO         0:0:0    0"
    );
    assert_eq!(
        lines[54],
        "# >#< starts a comment but comments are not saved across edits --------"
    );
    assert_eq!(Complex::parse(&text), Ok(Complex::built_in()));
}

#[test]
fn lines_that_8_1_9_takes_are_taken() {
    let lines = [
        "zz1 z1 INT <= YES NO 0 0",
        "zz13 z13 INT <= FORCED YES 0 0",
        "zz15 z15 INT <= NO YES 5 0",
        "zz21 z21 INT <= YES JOB 0 0",
        "zz35 z35 BOOL EXCL YES YES 1 0",
        "zz36 z36 BOOL EXCL FORCED YES 0 0",
        "zz36j z36j BOOL EXCL YES JOB 0 0",
        "MEM_FREE z42 INT <= YES NO 0 0",
        "a-b z43 INT <= YES NO 0 0",
        "zz46 z46 DOUBLE <= YES YES 1.5 0",
        "zz47 z47 TIME <= YES YES 1:0:0 0",
        "rsn rsn RESTRING != YES NO NONE 0",
        "ine ine INT != YES NO 0 0",
        "abbreviated ab int <= y n 0 1k",
        "host_gpu hg INT <= YES HOST 0 -1.5",
    ];
    for line in lines {
        let name = line.split(' ').next().unwrap();
        assert_eq!(
            outcome(&with_line(line)),
            [format!("added \"{name}\" to complex entry list")]
        );
    }
}

fn only(name: &str) -> String {
    format!("Consumable \"{name}\" can have only <= as an relational operator")
}

fn no_consumable(name: &str, r#type: &str) -> Vec<String> {
    vec![
        format!("Complex \"{name}\" of type \"{type}\" cannot be a consumable"),
        only(name),
    ]
}

fn no_relop(name: &str) -> Vec<String> {
    vec![format!("Complex \"{name}\" has an invalid relational operator")]
}

fn one(message: &str) -> Vec<String> {
    vec![message.to_owned()]
}

/// Each line is refused with these messages.
fn check_refused<const N: usize>(cases: [(&str, Vec<String>); N]) {
    for (line, messages) in cases {
        assert_eq!(outcome(&with_line(line)), messages, "{line}");
    }
}

#[test]
fn relational_operators_that_a_type_does_not_have_are_refused_in_the_words_of_8_1_9() {
    check_refused([
        ("zz4 z4 STRING == YES YES NONE 0", no_consumable("zz4", "STRING")),
        ("zz5 z5 RESTRING == YES YES NONE 0", no_consumable("zz5", "RESTRING")),
        ("zz6 z6 HOST == YES YES NONE 0", no_consumable("zz6", "HOST")),
        (
            "zz7 z7 BOOL == YES YES 0 0",
            one("Exclusive complex \"zz7\" must have EXCL as relational operator"),
        ),
        ("zz8 z8 INT >= YES YES 0 0", vec![only("zz8")]),
        ("zz9 z9 INT == YES YES 0 0", vec![only("zz9")]),
        ("zz10 z10 INT < YES YES 0 0", vec![only("zz10")]),
        ("zz27 z27 STRING <= YES NO NONE 0", no_relop("zz27")),
        ("zz28 z28 RESTRING >= YES NO NONE 0", no_relop("zz28")),
        ("zz29 z29 BOOL <= YES NO 0 0", no_relop("zz29")),
        ("zz31 z31 HOST <= YES NO NONE 0", no_relop("zz31")),
        (
            "zz32 z32 INT EXCL YES YES 0 0",
            one("Complex \"zz32\" must be BOOL to use EXCL as relational operator"),
        ),
        (
            "zz33 z33 BOOL EXCL YES NO 0 0",
            one("Exclusive complex \"zz33\" must be a consumable"),
        ),
    ]);
}

#[test]
fn names_defaults_and_numbers_that_break_a_rule_are_refused_in_the_words_of_8_1_9() {
    check_refused([
        (
            "zz2 mf INT <= YES NO 0 0",
            one("complex with name zz2 or shortcut mf already exists"),
        ),
        (
            "mem_free mf2 MEMORY <= YES NO 0 0",
            one("complex with name mem_free or shortcut mf2 already exists"),
        ),
        (
            "mf mf3 INT <= YES NO 0 0",
            one("complex with name mf or shortcut mf3 already exists"),
        ),
        (
            "zz3 mem_free INT <= YES NO 0 0",
            one("complex with name zz3 or shortcut mem_free already exists"),
        ),
        (
            "zz11 z11 INT <= YES NO 5 0",
            one("Complex \"zz11\" cannot have a (non-zero) default value"),
        ),
        (
            "zz11s z11s STRING == YES NO foo 0",
            one("Complex \"zz11s\" cannot have a (non-zero) default value"),
        ),
        (
            "zz12 z12 INT <= FORCED YES 5 0",
            one("Consumable \"zz12\" cannot have a (non-zero) default value because it is forced."),
        ),
        (
            "zz16 z16 INT <= NO YES 0 0",
            one("Consumable \"zz16\" needs a default value because it is not requestable."),
        ),
        (
            "zz17 z17 FLOAT <= YES NO 0 0",
            one("unknown complex attribute type \"FLOAT\""),
        ),
        (
            "zz25 z25 INT <= YES NO 0 abc",
            one("The following error occurred for complex \"zz25\", while parsing the urgency value: \"double value\""),
        ),
        ("zz37 z37 INT <= YES NO 0", one("Complex urgency definition is missing")),
    ]);
}

#[test]
fn every_operator_is_allowed_exactly_where_the_rules_say() {
    let relops = |r#type: &str, consumable: &str, default: &str| {
        let line = |relop: &str| format!("zz zz {type} {relop} YES {consumable} {default} 0");
        let allowed = |relop: &&str| Complex::parse(&with_line(&line(relop))).is_ok();
        Relop::ALL
            .map(Relop::as_str)
            .into_iter()
            .filter(allowed)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for number in ["INT", "DOUBLE", "TIME", "MEMORY"] {
        assert_eq!(relops(number, "NO", "0"), "== != < <= > >=");
        assert_eq!(relops(number, "YES", "1"), "<=");
    }
    for text in ["STRING", "CSTRING", "RESTRING", "HOST"] {
        assert_eq!(relops(text, "NO", "NONE"), "== !=");
        assert_eq!(relops(text, "YES", "NONE"), "");
    }
    assert_eq!(relops("BOOL", "NO", "0"), "==");
    assert_eq!(relops("BOOL", "YES", "0"), "EXCL");
}

#[test]
fn what_8_1_9_takes_without_a_check_is_refused_with_a_reason() {
    let cases = [
        (
            "zz23 z23 INT <= YES YES abc 0",
            "attribute \"zz23\" is not a integer value",
        ),
        (
            "zz24 z24 MEMORY <= YES YES 1Q 0",
            "attribute \"zz24\" is not a memory value",
        ),
        (
            "zz26 z26 INT <= YES YES -5 0",
            "Consumable \"zz26\" cannot have the negative default value \"-5\"",
        ),
        (
            "9zz z39 INT <= YES NO 0 0",
            "denied: \"9zz\" is not a valid object name (cannot start with a digit)",
        ),
        ("a/b z40 INT <= YES NO 0 0", "Slash ('/') not allowed in objectname"),
        (
            "a=b z44 INT <= YES NO 0 0",
            "Equals sign ('=') not allowed in objectname",
        ),
        (
            "none z45 INT <= YES NO 0 0",
            "Keyword (\"NONE\") not allowed as objectname",
        ),
        ("zz45 a*b INT <= YES NO 0 0", "Asterisk ('*') not allowed in objectname"),
        (
            "zz\u{e9} z46 INT <= YES NO 0 0",
            "denied: \"zz\u{e9}\" is not a valid object name",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(outcome(&with_line(line)), [message], "{line}");
    }
    for (line, message) in [
        (
            "slots s INT <= YES NO 0 1000",
            "Complex \"slots\" must be a consumable for each slot (YES)",
        ),
        (
            "slots s INT <= YES JOB 1 1000",
            "Complex \"slots\" must be a consumable for each slot (YES)",
        ),
        (
            "slots s INT <= YES YES 3 1000",
            "Complex \"slots\" must have the default value 1",
        ),
    ] {
        assert_eq!(outcome(&with_replaced("slots", line)), [message], "{line}");
    }
}

#[test]
fn built_in_attributes_stay_and_keep_their_type() {
    let immutable =
        |name: &str| format!("The type of the complex \"{name}\" cannot be changed due to its built in status");
    let modified = |name: &str| format!("modified \"{name}\" in complex entry list");
    let cases = [
        (
            "h_vmem",
            "",
            "The built-in complex \"h_vmem\" cannot be deleted".to_owned(),
        ),
        (
            "slots",
            "",
            "The built-in complex \"slots\" cannot be deleted".to_owned(),
        ),
        ("h_vmem", "h_vmem h_vmem INT <= YES NO 0 0", immutable("h_vmem")),
        ("hostname", "hostname h STRING == YES NO NONE 0", immutable("hostname")),
        ("slots", "slots s DOUBLE <= YES YES 1 1000", immutable("slots")),
        ("arch", "arch a RESTRING == YES NO NONE 0", modified("arch")),
        ("slots", "slots s INT <= NO YES 1 1000", modified("slots")),
        ("h_vmem", "h_vmem h_vmem MEMORY <= YES YES 1G 0", modified("h_vmem")),
        ("h_vmem", "h_vmem h_vmem MEMORY >= YES NO 0 0", modified("h_vmem")),
        ("h_vmem", "h_vmem hv MEMORY <= YES NO 0 0", modified("h_vmem")),
        ("qname", "qname q STRING != YES NO NONE 0", modified("qname")),
    ];
    for (name, line, message) in cases {
        assert_eq!(outcome(&with_replaced(name, line)), [message], "{line}");
    }
}

#[test]
fn a_site_attribute_may_go_and_an_equal_complex_changes_nothing() {
    let site = Complex::parse(&with_line("lsg lsg INT <= YES NO 0 0")).unwrap();
    assert_eq!(
        site.replace(&Complex::built_in()),
        Ok(vec![AttributeChange::Removed("lsg".into())])
    );
    assert_eq!(
        AttributeChange::Removed("lsg".into()).to_string(),
        "removed \"lsg\" from complex list"
    );
    assert_eq!(site.replace(&site), Ok(vec![]));
}

#[test]
fn an_error_names_its_line_and_field() {
    let places = |line: &str| {
        let refusals = Complex::parse(&with_line(line)).unwrap_err();
        refusals
            .into_iter()
            .map(|refusal| (refusal.code, refusal.place))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        places("zz17 z17 FLOAT <= YES NO 0 0"),
        [(Code::BadSyntax, "line 56, field 3 (type)".to_owned())]
    );
    assert_eq!(
        places("zz18 z18 INT =< YES NO 0 0"),
        [(Code::BadSyntax, "line 56, field 4 (relop)".to_owned())]
    );
    assert_eq!(
        places("zz19 z19 INT <= MAYBE NO 0 0"),
        [(Code::BadSyntax, "line 56, field 5 (requestable)".to_owned())]
    );
    assert_eq!(
        places("zz20 z20 INT <= YES MAYBE 0 0"),
        [(Code::BadSyntax, "line 56, field 6 (consumable)".to_owned())]
    );
    assert_eq!(
        places("zz38 z38 INT <= YES NO 0 0 extra"),
        [(Code::BadSyntax, "line 56".to_owned())]
    );
    assert_eq!(
        places("zz8 z8 INT >= YES YES 0 0"),
        [(Code::BadValue, "line 56, attribute zz8".to_owned())]
    );
    assert_eq!(
        places("zz2 mf INT <= YES NO 0 0"),
        [(Code::AlreadyExists, "line 56, attribute zz2".to_owned())]
    );
}

#[test]
fn comments_and_continuation_lines_are_understood() {
    let text = "# comment\n\n  lic \\\n  l INT <= \\\n YES YES 0 50\n#lic2 x\n";
    let complex = Complex::parse(text).unwrap();
    assert_eq!(complex.len(), 1);
    assert_eq!(
        complex.lookup("l").map(|attribute| attribute.urgency),
        Some(Millionths(50_000_000))
    );
    assert_eq!(Complex::parse("lic \\\nl INT <= YES\n").unwrap_err()[0].place, "line 1");
    assert_eq!(Complex::parse("# nothing\n").unwrap_err()[0].code, Code::BadSyntax);
}

#[test]
fn attributes_are_found_by_name_and_by_shortcut() {
    let complex = Complex::built_in();
    let name = |text: &str| complex.lookup(text).map(|attribute| attribute.name.as_str());
    assert_eq!(
        (name("mem_free"), name("mf"), name("MF")),
        (Some("mem_free"), Some("mem_free"), None)
    );
    let slots = complex.lookup("s").unwrap();
    assert_eq!(
        (slots.default_amount(), slots.urgency),
        (Amount::from_base(1), Millionths(1_000_000_000))
    );
    assert_eq!(complex.lookup("a").map(Attribute::default_amount), Some(Amount::ZERO));
}

#[test]
fn operators_compare_the_request_with_the_offer() {
    // As recorded of 8.1.9: the hosts that match out of 5 and 6.
    let matching = |relop: Relop, request: i64| {
        let holds = |offer: &i64| relop.holds(Amount::from_base(request), Amount::from_base(*offer));
        [5, 6].into_iter().filter(holds).collect::<Vec<_>>()
    };
    let cases = [
        (Relop::LessEqual, [vec![5, 6], vec![5, 6], vec![6], vec![]]),
        (Relop::GreaterEqual, [vec![], vec![5], vec![5, 6], vec![5, 6]]),
        (Relop::Equal, [vec![], vec![5], vec![6], vec![]]),
        (Relop::Less, [vec![5, 6], vec![6], vec![], vec![]]),
        (Relop::Greater, [vec![], vec![], vec![5], vec![5, 6]]),
        (Relop::NotEqual, [vec![5, 6], vec![6], vec![5], vec![5, 6]]),
    ];
    for (relop, expected) in cases {
        assert_eq!(
            [4, 5, 6, 7].map(|request| matching(relop, request)),
            expected,
            "{}",
            relop.as_str()
        );
        assert!(relop.holds(Amount::INFINITY, Amount::INFINITY) == relop.holds(Amount::ZERO, Amount::ZERO));
    }
}

#[test]
fn a_stored_complex_is_checked_when_it_is_read() {
    let json = serde_json::to_string(&Complex::built_in()).unwrap();
    assert_eq!(serde_json::from_str::<Complex>(&json).unwrap(), Complex::built_in());
    assert!(serde_json::from_str::<Complex>(&json.replace("\"mf\"", "\"mt\"")).is_err());
}

/// A valid site attribute, made unlike the others by its number.
fn attribute(number: usize) -> impl Strategy<Value = Attribute> {
    let numeric = prop::sample::select(vec![Type::Int, Type::Double, Type::Time, Type::Memory]);
    let text = prop::sample::select(vec![Type::String, Type::CString, Type::ReString, Type::Host]);
    let consumable = prop::sample::select(vec![Consumable::Yes, Consumable::Job, Consumable::Host]);
    let kind = prop_oneof![
        (numeric.clone(), prop::sample::select(Relop::ALL[..6].to_vec())).prop_map(|(r#type, relop)| (
            r#type,
            relop,
            Consumable::No,
            "0".to_owned()
        )),
        (numeric, consumable.clone(), 0u32..5000).prop_map(|(r#type, consumable, default)| (
            r#type,
            Relop::LessEqual,
            consumable,
            default.to_string()
        )),
        (text, prop::sample::select(vec![Relop::Equal, Relop::NotEqual])).prop_map(|(r#type, relop)| (
            r#type,
            relop,
            Consumable::No,
            "NONE".to_owned()
        )),
        consumable.prop_map(|consumable| (Type::Bool, Relop::Exclusive, consumable, "0".to_owned())),
    ];
    ("[A-Za-z_][A-Za-z0-9_.-]{0,24}", kind, any::<i64>()).prop_map(move |(name, kind, urgency)| {
        let (r#type, relop, consumable, default) = kind;
        Attribute {
            name: format!("{name}{number}").into(),
            shortcut: format!("shortcut{number}"),
            r#type,
            relop,
            requestable: Requestable::Yes,
            consumable,
            default,
            urgency: Millionths(urgency.min(i64::MAX - 1)),
        }
    })
}

proptest! {
    #[test]
    fn a_printed_complex_reads_back(attributes in (0usize..12).prop_flat_map(|n| (0..=n).map(attribute).collect::<Vec<_>>())) {
        let complex = Complex::new(attributes).unwrap();
        prop_assert_eq!(Complex::parse(&complex.to_string()), Ok(complex));
    }

    #[test]
    fn no_text_panics(text in "(\\PC| |\\\\\n|\n){0,80}") {
        let _ = Complex::parse(&text);
    }

    #[test]
    fn no_line_of_words_panics(words in prop::collection::vec("(INT|BOOL|STRING|<=|==|EXCL|YES|NO|[a-z]{1,3}|[0-9:]{1,3})", 0..10)) {
        let _ = Complex::parse(&words.join(" "));
    }
}
