use super::*;
use crate::object::LineWrap;
use proptest::prelude::*;

const RECORDED: &str = "name    dept\ntype    ACL DEPT\nfshare  100\noticket 20\nentries u1,u2,@u3\n";

fn read(text: &str) -> Result<UserSet, Vec<Diagnostic>> {
    UserSet::read("", &Fields::parse(text).unwrap())
}

#[test]
fn a_recorded_set_prints_as_it_was_read() {
    let set = read(RECORDED).unwrap();
    assert_eq!(set.write().print(ObjectKind::UserSet, LineWrap::At80), RECORDED);
    assert!(set.is_department() && set.has_user("u1") && set.has_group("u3"));
    assert!(!set.has_user("u3") && !set.has_user("@u3") && !set.has_group("u1"));
}

#[test]
fn blanks_separate_entries_too_and_the_order_of_types_does_not_count() {
    let set = read("name a\ntype dept acl\nfshare 0\noticket 0\nentries u1 u2, @g\n").unwrap();
    assert_eq!(set.write().value("entries"), Some("u1,u2,@g"));
    assert_eq!(set.write().value("type"), Some("ACL DEPT"));
}

#[test]
fn wrong_text_names_line_and_word() {
    for (text, line, word) in [
        (
            "name a\ntype FOO\nfshare 0\noticket 0\nentries NONE\n",
            "line 2",
            "unknown specifier \"FOO\" for userset type",
        ),
        (
            "name a\ntype ACL\nfshare x\noticket 0\nentries NONE\n",
            "line 3",
            "\"x\"",
        ),
        (
            "name a\ntype ACL\nfshare 0\noticket -1\nentries NONE\n",
            "line 4",
            "parameter \"oticket\" must be a positive number",
        ),
        (
            "name a\ntype ACL\nfshare 0\noticket 0\nentries u1,a@b\n",
            "line 5",
            "a@b",
        ),
    ] {
        let refusals = read(text).expect_err(text);
        assert_eq!((refusals.len(), refusals[0].place.as_str()), (1, line), "{text}");
        assert!(refusals[0].what.contains(word), "{refusals:?}");
    }
    let missing = read("name a\nfshare 0\noticket 0\nentries NONE\n").unwrap_err();
    assert_eq!(missing[0].what, "required attribute \"type\" is missing");
}

proptest! {
    #[test]
    fn print_of_parse_is_identity(
        name in "[a-z][a-z0-9_.-]{0,20}",
        purpose in prop::sample::select(vec!["ACL", "DEPT", "ACL DEPT"]),
        shares in any::<(u32, u32)>(),
        entries in prop::collection::vec("@?[a-zA-Z0-9_.$+-]{1,12}", 0..30),
    ) {
        let entries: Vec<String> =
            entries.into_iter().filter(|entry| !value::is_none(entry.trim_start_matches('@'))).collect();
        let (fshare, oticket) = shares;
        let set = UserSet { name, purpose: purpose.parse().unwrap(), fshare, oticket, entries: Entries(entries) };
        prop_assume!(!value::is_none(&set.name));
        let text = set.write().print(ObjectKind::UserSet, LineWrap::At80);
        prop_assert_eq!(read(&text).unwrap(), set);
    }

    #[test]
    fn no_text_makes_it_panic(value in "\\PC{0,30}") {
        let _ = value.parse::<Entries>();
        let _ = value.parse::<UserSetKind>();
    }
}
