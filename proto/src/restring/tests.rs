use super::*;
use proptest::prelude::*;

fn matches(expression: &str, offered: &str, r#type: Type) -> bool {
    Expression::parse(expression).unwrap().matches(offered, r#type)
}

#[test]
fn the_table_of_semantics_section_7_holds() {
    let cases = [
        ("lx*", "lx-amd64", true),
        ("!(sol*|aix*)", "lx-amd64", true),
        ("lx*&!*-x86", "lx-x86", false),
        ("[linux|solaris]", "linux", false),
        (r"a\*b", "a*b", true),
        ("lx2[4|6]-amd64", "lx24-amd64", false),
    ];
    for (expression, offered, expected) in cases {
        assert_eq!(
            matches(expression, offered, Type::String),
            expected,
            "{expression} of {offered}"
        );
    }
}

#[test]
fn wildcards_have_no_operators() {
    for (pattern, name, expected) in [
        ("u1", "u1", true),
        ("u*", "u1", true),
        ("u?", "u12", false),
        ("[uv]1", "v1", true),
        ("u[!1]", "u2", true),
        ("u[!1]", "u1", false),
        ("!u1", "u2", false),
        ("u1|u2", "u2", false),
        ("u*&!u2", "u1", false),
        ("(u1)", "u1", false),
        ("U1", "u1", false),
        ("u1&u2", "u1&u2", true),
        ("", "u1", false),
    ] {
        assert_eq!(Wildcards::new(pattern).matches(name), expected, "{pattern} of {name}");
    }
}

#[test]
fn recorded_requests_match_the_recorded_hosts() {
    // As recorded of 8.1.9: hosts 1 to 4, values of a RESTRING, a STRING and a CSTRING attribute.
    let values = [
        (Type::ReString, ["abc", "abd", "xyz", "a.c"]),
        (Type::String, ["abc", "abd", "xyz", "a*c"]),
        (Type::CString, ["abc", "ABD", "XYZ", "Abc"]),
    ];
    let cases = [
        ("abc", ["1", "1", "14"]),
        ("ABC", ["", "", "14"]),
        ("a*", ["124", "124", "124"]),
        ("?bc", ["1", "1", "14"]),
        ("ab?", ["12", "12", "124"]),
        ("ab[cd]", ["12", "12", "124"]),
        ("ab[a-c]", ["1", "1", "14"]),
        ("ab[^c]", ["2", "2", "2"]),
        ("abc|xyz", ["13", "13", "134"]),
        ("a*|x*", ["1234", "1234", "1234"]),
        ("!abc", ["234", "234", "23"]),
        ("!a*", ["3", "3", "3"]),
        ("a*&*c", ["14", "14", "14"]),
        ("a*&!abc", ["24", "24", "2"]),
        ("(abc|xyz)", ["13", "13", "134"]),
        ("(a*|x*)&!*c", ["23", "23", "23"]),
        ("!(abc|xyz)", ["24", "24", "2"]),
        ("*", ["1234", "1234", "1234"]),
        ("NONE", ["", "", ""]),
        (r"a\*c", ["", "4", ""]),
        ("a*c", ["14", "14", "14"]),
        ("!!abc", ["1", "1", "14"]),
        ("abc&abd", ["", "", ""]),
        ("abc|abd&xyz", ["1", "1", "14"]),
        ("!abc&!xyz", ["24", "24", "2"]),
        ("\"abc\"", ["", "", ""]),
        ("ab*|!x*", ["124", "124", "124"]),
        ("[ax]*", ["1234", "1234", "1234"]),
    ];
    for (request, expected) in cases {
        for ((r#type, values), expected) in values.iter().zip(expected) {
            let hosts = values
                .iter()
                .zip(1..)
                .filter(|(value, _)| matches(request, value, *r#type));
            assert_eq!(
                hosts.map(|(_, host)| host.to_string()).collect::<String>(),
                expected,
                "{request} as {type}"
            );
        }
    }
}

#[test]
fn a_malformed_expression_names_its_position_as_8_1_9_does() {
    let cases = [
        ("ab[!c]", 4),
        ("abc|", 4),
        ("|abc", 1),
        ("(abc", 4),
        ("abc*)", 5),
        ("a* b", 4),
        ("()", 2),
        ("!", 1),
        ("a&&b", 3),
    ];
    for (expression, position) in cases {
        let error = Expression::parse(expression).unwrap_err();
        let text = format!("Parse error on position {position} of the expression \"{expression}\".");
        assert_eq!(error.to_string(), text);
        assert_eq!(error.fault, ExpressionFault::Syntax);
    }
}

#[test]
fn a_text_without_special_characters_is_compared_as_it_is() {
    assert!(matches(r"a\b c", r"a\b c", Type::String));
    assert!(!matches(r"a\b", "ab", Type::String));
    assert!(matches("", "", Type::String) && !matches("", "a", Type::String));
    assert_eq!(Expression::parse("node1").unwrap().plain(), Some("node1"));
    assert_eq!(Expression::parse("node*").unwrap().plain(), None);
    // Beside an operator a part without wildcards still keeps its backslashes, and blanks separate.
    assert!(matches(r"a\b | x", r"a\b", Type::String));
    assert!(matches(" ( a | ! b ) & * ", "c", Type::String));
}

#[test]
fn wildcards_match_as_fnmatch_does_without_flags() {
    let cases = [
        ("*", "", true),
        ("*", ".hidden/file", true),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXcYb", false),
        ("[]x]", "]", true),
        ("[]x]", "y", false),
        ("[^]x]", "y", true),
        ("[a-]", "-", true),
        ("[z-a]", "m", false),
        (r"[\]]", "]", true),
        (r"[\a-c]*", "b", true),
        ("[[:digit:]]*", "7up", true),
        ("[[:digit:]]*", "up", false),
        ("[[:nothing:]*", ":x", true),
        ("[abc", "[abc", true),
        ("*[abc", "x[abc", true),
        ("x]", "x]", true),
        (r"*\", r"a\", false),
        (r"\?*", "?x", true),
        ("?", "\u{e9}", true),
        ("[\u{e0}-\u{ff}]*", "\u{e9}t\u{e9}", true),
    ];
    for (pattern, offered, expected) in cases {
        assert_eq!(
            matches(pattern, offered, Type::String),
            expected,
            "{pattern} of {offered}"
        );
    }
}

#[test]
fn case_counts_except_for_cstring_and_host() {
    for r#type in Type::ALL {
        let is_folded = matches!(r#type, Type::CString | Type::Host);
        assert_eq!(matches("NODE[0-9]|x", "node7", r#type), is_folded);
        assert_eq!(matches("node7", "Node7", r#type), is_folded);
    }
}

#[test]
fn long_and_deep_expressions_are_refused_and_long_values_match_nothing() {
    let long = "a".repeat(LENGTH_LIMIT_BYTES);
    assert_eq!(Expression::parse(&long).unwrap_err().fault, ExpressionFault::TooLong);
    assert!(Expression::parse(&long[1..]).is_ok());
    assert!(!matches("*", &long, Type::String) && matches("*", &long[1..], Type::String));
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(
        Expression::parse(&nested(DEPTH_MAX + 1)).unwrap_err().fault,
        ExpressionFault::TooDeep
    );
    assert!(matches(&format!("{}a*", "!".repeat(2000)), "a", Type::String));
}

#[test]
fn many_stars_cost_no_more_than_the_product_of_the_lengths() {
    let pattern = format!("{}b", "a*".repeat(500));
    assert!(!matches(&pattern, &"a".repeat(2000), Type::String));
}

#[test]
fn an_expression_is_stored_as_its_text() {
    let expression = Expression::parse("lx*|sol*").unwrap();
    let json = serde_json::to_string(&expression).unwrap();
    assert_eq!(json, "\"lx*|sol*\"");
    assert_eq!(serde_json::from_str::<Expression>(&json).unwrap(), expression);
    assert!(serde_json::from_str::<Expression>("\"a|\"").is_err());
}

/// The plainest matcher of `*` and `?` there is.
fn reference(pattern: &[char], offered: &[char]) -> bool {
    match (pattern, offered) {
        ([], offered) => offered.is_empty(),
        (['*', rest @ ..], offered) => (0..=offered.len()).any(|skip| reference(rest, &offered[skip..])),
        (['?', rest @ ..], [_, after @ ..]) => reference(rest, after),
        ([own, rest @ ..], [first, after @ ..]) => own == first && reference(rest, after),
        (_, []) => false,
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,60}", offered in "\\PC{0,60}") {
        if let Ok(expression) = Expression::parse(&text) {
            for r#type in Type::ALL {
                let _ = expression.matches(&offered, r#type);
            }
        }
    }

    #[test]
    fn no_text_of_special_characters_panics(text in "[ab*?!&|() ^\\[\\]\\\\:-]{0,40}", offered in "[ab\\[\\]]{0,12}") {
        match Expression::parse(&text) {
            Ok(expression) => { let _ = expression.matches(&offered, Type::CString); }
            Err(error) => prop_assert!(error.position <= text.chars().count()),
        }
    }

    #[test]
    fn stars_match_as_the_plainest_matcher_does(pattern in "[ab*?]{1,8}", offered in "[ab]{0,8}") {
        let (pieces, characters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), offered.chars().collect());
        prop_assert_eq!(matches(&pattern, &offered, Type::String), reference(&pieces, &characters));
    }

    #[test]
    fn not_turns_every_match_round(pattern in "[ab*?\\[\\]]{1,8}", offered in "[ab]{0,8}") {
        let turned = format!("!{pattern}");
        prop_assert_eq!(matches(&pattern, &offered, Type::String), !matches(&turned, &offered, Type::String));
    }
}
