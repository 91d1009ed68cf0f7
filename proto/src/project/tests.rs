use super::*;
use crate::object::LineWrap;
use proptest::prelude::*;

const RECORDED_PROJECT: &str = "name p3\noticket 10\nfshare 0\nacl team deadlineusers\nxacl arusers\n";
const RECORDED_USER: &str = "name somebody\noticket 5\nfshare 6\ndelete_time 1795225690\ndefault_project NONE\n";

fn project(text: &str) -> Result<Project, Vec<Diagnostic>> {
    Project::read("", &Fields::parse(text).unwrap())
}

fn user(text: &str) -> Result<User, Vec<Diagnostic>> {
    User::read("", &Fields::parse(text).unwrap())
}

#[test]
fn recorded_objects_print_as_they_were_read() {
    let read = project(RECORDED_PROJECT).unwrap();
    assert_eq!(
        read.write().print(ObjectKind::Project, LineWrap::At80),
        RECORDED_PROJECT
    );
    let read = user(RECORDED_USER).unwrap();
    assert_eq!(read.write().print(ObjectKind::User, LineWrap::At80), RECORDED_USER);
}

#[test]
fn templates_are_those_of_8_1_9() {
    let text = Project::template("").write().print(ObjectKind::Project, LineWrap::At80);
    assert_eq!(text, "name template\noticket 0\nfshare 0\nacl NONE\nxacl NONE\n");
    let text = User::template("").write().print(ObjectKind::User, LineWrap::At80);
    assert_eq!(
        text,
        "name template\noticket 0\nfshare 0\ndelete_time 0\ndefault_project NONE\n"
    );
}

#[test]
fn wrong_text_names_line_and_word() {
    for (text, place, word) in [
        (
            "name p\noticket x\nfshare 0\nacl NONE\nxacl NONE\n",
            "line 2",
            "error parsing unsigned long value from string \"x\"",
        ),
        (
            "name p\noticket -3\nfshare 0\nacl NONE\nxacl NONE\n",
            "line 2",
            "parameter \"oticket\" must be a positive number",
        ),
        (
            "name a/b\noticket 0\nfshare 0\nacl NONE\nxacl NONE\n",
            "line 1",
            "Slash ('/') not allowed in objectname",
        ),
        (
            "name p\noticket 0\nfshare 0\nacl a,b@\nxacl NONE\n",
            "line 4",
            "At ('@') not allowed in objectname",
        ),
    ] {
        let refusals = project(text).expect_err(text);
        assert_eq!((refusals.len(), refusals[0].place.as_str()), (1, place), "{text}");
        assert!(refusals[0].what.contains(word), "{refusals:?}");
    }
    let missing = user("name u\noticket 0\nfshare 0\ndefault_project NONE\n").unwrap_err();
    assert_eq!(missing[0].what, "required attribute \"delete_time\" is missing");
    assert!(user("name @g\noticket 0\nfshare 0\ndelete_time 0\ndefault_project NONE\n").is_err());
}

proptest! {
    #[test]
    fn print_of_parse_is_identity(
        name in "[a-mo-z][a-z0-9_.-]{0,20}",
        numbers in any::<(u32, u32, u32)>(),
        lists in prop::collection::btree_set("[a-mo-z][a-z0-9_.-]{0,12}", 0..8),
    ) {
        let (oticket, fshare, delete_time) = numbers;
        let acl = NameList(lists.iter().take(4).cloned().collect());
        let xacl = NameList(lists.iter().skip(4).cloned().collect());
        let default_project = OptionalValue(lists.first().map(|name| name.parse().unwrap()));
        let one = Project { name: name.clone(), oticket, fshare, acl, xacl };
        prop_assert_eq!(&project(&one.write().print(ObjectKind::Project, LineWrap::At80)).unwrap(), &one);
        let one = User { name, oticket, fshare, delete_time, default_project };
        prop_assert_eq!(&user(&one.write().print(ObjectKind::User, LineWrap::At80)).unwrap(), &one);
    }
}
