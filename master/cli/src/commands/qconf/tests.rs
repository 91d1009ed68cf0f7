use super::fake_master::FakeMaster;
use super::*;
use proto::complex::Complex;
use proto::object::{Fields, LineWrap, Object, ObjectKind};
use proto::wire::client::{Answer, AttributeEdit, Command, ObjectAction, ObjectChange, Query, Reply};
use proto::wire::view::Data;

/// Objects that 8.1.9 printed, with the options that print them.
const RECORDED: &[(ObjectKind, &str, &str)] = &[
    (
        ObjectKind::Queue,
        "all.q",
        include_str!("../../../../../proto/tests-data/qconf/queue_all.q.txt"),
    ),
    (
        ObjectKind::Queue,
        "",
        include_str!("../../../../../proto/tests-data/qconf/queue_template.txt"),
    ),
    (
        ObjectKind::ExecHost,
        "vm",
        include_str!("../../../../../proto/tests-data/qconf/host_vm.txt"),
    ),
    (
        ObjectKind::ExecHost,
        "global",
        include_str!("../../../../../proto/tests-data/qconf/host_global.txt"),
    ),
    (
        ObjectKind::HostGroup,
        "@allhosts",
        include_str!("../../../../../proto/tests-data/qconf/hostgroup_allhosts.txt"),
    ),
    (
        ObjectKind::Pe,
        "mpi",
        include_str!("../../../../../proto/tests-data/qconf/pe_mpi.txt"),
    ),
    (
        ObjectKind::Calendar,
        "cnight",
        include_str!("../../../../../proto/tests-data/qconf/calendar_cnight.txt"),
    ),
    (
        ObjectKind::ClusterConf,
        "global",
        include_str!("../../../../../proto/tests-data/qconf/conf_global.txt"),
    ),
    (
        ObjectKind::SchedulerConf,
        "",
        include_str!("../../../../../proto/tests-data/qconf/scheduler.txt"),
    ),
];

fn done(text: &str) -> Answer {
    Answer::Done(text.to_owned())
}

fn refused() -> Answer {
    Answer::Refused(Diagnostic::new(Code::StillReferenced, "denied: it is still referenced"))
}

/// Answers questions for objects and templates with the recorded ones, and for the complex with the
/// built-in one.
fn recorded(query: Query) -> Reply {
    let (Query::Object { kind, name } | Query::Template { kind, name }) = query else {
        return Reply::data(Data::Names(vec!["all.q".to_owned(), "long.q".to_owned()]));
    };
    if kind == ObjectKind::ComplexTable {
        return Reply::data(Data::Object(Complex::built_in().write()));
    }
    let found = RECORDED.iter().find(|(of, called, _)| *of == kind && *called == name);
    match found.or_else(|| RECORDED.iter().find(|(of, ..)| *of == kind && !name.contains("nosuch"))) {
        Some((.., text)) => Reply::data(Data::Object(Fields::parse(text).unwrap())),
        None => Reply::refusal(Diagnostic::new(Code::UnknownObject, format!("{name} is not known"))),
    }
}

fn run_with(master: &FakeMaster, editor: &str, line: &[&str]) -> u8 {
    let parsed = QCONF
        .parse(line.iter().map(|word| (*word).to_owned()).collect())
        .unwrap();
    perform(&mut master.session(editor), &parsed).unwrap()
}

/// The changes of one command of the kind [`Command::Objects`], each of which was sent alone.
fn only_changes(master: &FakeMaster) -> Vec<ObjectChange> {
    let objects = master.changes().into_iter().map(|command| match command {
        Command::Objects(mut changes) if changes.len() == 1 => changes.remove(0),
        other => panic!("{other:?}"),
    });
    objects.collect()
}

#[test]
fn objects_print_as_8_1_9_printed_them() {
    for (kind, name, recorded) in RECORDED {
        let fields = Fields::parse(recorded).unwrap();
        assert_eq!(
            text::print(*kind, name, &fields, LineWrap::At80),
            *recorded,
            "{kind} {name}"
        );
    }
    let complex = Complex::built_in();
    let printed = text::print(ObjectKind::ComplexTable, "", &complex.write(), LineWrap::At80);
    assert_eq!(printed, complex.to_string());
}

#[test]
fn what_is_printed_reads_back_in_both_widths() {
    for (kind, name, recorded) in RECORDED {
        for wrap in [LineWrap::At80, LineWrap::SingleLine] {
            let fields = text::without_reported(*kind, &Fields::parse(recorded).unwrap());
            let printed = text::print(*kind, name, &fields, wrap);
            assert_eq!(text::parse(*kind, name, &printed).unwrap(), fields, "{kind} {name}");
            assert_eq!(
                text::parse(*kind, name, &text::draft(*kind, &fields, wrap)).unwrap(),
                fields
            );
        }
    }
}

#[test]
fn a_saved_edit_is_sent_and_its_file_removed() {
    let master = FakeMaster::start(recorded, done("changed"));
    assert_eq!(
        run_with(&master, "sed -i 's/^slots .*/slots 7/'", &["-mq", "all.q"]),
        exit::OK
    );
    let changes = only_changes(&master);
    assert_eq!(
        (changes[0].kind, changes[0].name.as_str()),
        (ObjectKind::Queue, "all.q")
    );
    let ObjectAction::Replace(fields) = &changes[0].action else {
        panic!("{changes:?}")
    };
    assert_eq!(
        (fields.value("slots"), fields.value("qname")),
        (Some("7"), Some("all.q"))
    );
    assert!(master.drafts().is_empty());
}

#[test]
fn an_edit_that_changes_nothing_is_not_sent() {
    let master = FakeMaster::start(recorded, done("changed"));
    for (editor, option, name) in [
        ("true", "-mq", "all.q"),
        ("touch", "-mhgrp", "@allhosts"),
        ("sed -i s/x/x/", "-me", "vm"),
    ] {
        assert_eq!(run_with(&master, editor, &[option, name]), exit::OK, "{editor}");
    }
    assert!(master.changes().is_empty() && master.drafts().is_empty());
}

#[test]
fn a_new_object_is_added_once_its_text_was_saved() {
    let master = FakeMaster::start(recorded, done("added"));
    let editor = "sed -i 's/^qname .*/qname new.q/'";
    assert_eq!(run_with(&master, editor, &["-aq", "new.q"]), exit::OK);
    let changes = only_changes(&master);
    assert_eq!(changes[0].name, "new.q");
    assert!(matches!(changes[0].action, ObjectAction::Add(_)));
    let unsaved = FakeMaster::start(recorded, done("added"));
    assert_eq!(run_with(&unsaved, "true", &["-ap", "mpi"]), exit::FAILED);
    assert!(unsaved.changes().is_empty());
}

#[test]
fn a_text_that_is_refused_is_kept() {
    for (editor, verdict) in [
        ("sed -i 's/^slots .*/slots many/'", done("never asked")),
        ("sed -i 's/^qname .*/qname other.q/'", refused()),
        ("sed -i 's/^slots .*/slots 7/'", refused()),
    ] {
        let master = FakeMaster::start(recorded, verdict);
        assert_eq!(run_with(&master, editor, &["-mq", "all.q"]), exit::FAILED, "{editor}");
        assert_eq!(master.drafts().len(), 1, "{editor}");
    }
}

#[test]
fn an_editor_that_fails_ends_the_command_without_a_change() {
    let master = FakeMaster::start(recorded, done("changed"));
    assert_eq!(run_with(&master, "/nonexistent/editor", &["-mconf"]), exit::FAILED);
    assert!(master.changes().is_empty() && master.drafts().is_empty());
}

#[test]
fn the_file_that_is_edited_belongs_to_its_owner_alone() {
    let master = FakeMaster::start(recorded, done("changed"));
    let seen = master.file("mode", "");
    run_with(&master, &format!("stat -c %a > {seen}"), &["-msconf"]);
    assert_eq!(std::fs::read_to_string(seen).unwrap(), "600\n");
}

#[test]
fn hosts_are_edited_without_what_they_report() {
    let master = FakeMaster::start(recorded, done("changed"));
    let seen = master.file("seen", "");
    run_with(&master, &format!("f() {{ cp \"$1\" {seen}; }}; f"), &["-me", "vm"]);
    let text = std::fs::read_to_string(seen).unwrap();
    assert!(
        text.starts_with("hostname ") && !text.contains("load_values") && !text.contains("processors"),
        "{text}"
    );
}

#[test]
fn each_name_of_a_list_is_a_change_of_its_own() {
    let master = FakeMaster::start(recorded, refused());
    assert_eq!(run_with(&master, "true", &["-am", "u1,u2,u3"]), exit::FAILED);
    let names: Vec<String> = only_changes(&master).into_iter().map(|change| change.name).collect();
    assert_eq!(names, ["u1", "u2", "u3"]);
}

#[test]
fn a_host_that_neither_the_cell_nor_a_name_service_knows_is_not_listed() {
    let answer = |query| match query {
        Query::HostNames { names } => Reply::data(Data::Names(names)),
        Query::Names {
            kind: ObjectKind::ExecHost,
        } => Reply::data(Data::Names(vec!["n1".to_owned()])),
        _ => Reply::data(Data::Names(Vec::new())),
    };
    for option in ["-ah", "-as"] {
        let master = FakeMaster::start(answer, done("added"));
        assert_eq!(
            run_with(&master, "true", &[option, "n1,misspelt.invalid,10.1.2.3,localhost"]),
            exit::FAILED
        );
        let names: Vec<String> = only_changes(&master).into_iter().map(|change| change.name).collect();
        assert_eq!(names, ["n1", "localhost"]);
    }
}

#[test]
fn a_change_that_names_nothing_is_refused() {
    for line in [
        ["-ah", ""].as_slice(),
        &["-dq", ","],
        &["-cq", ""],
        &["-au", "", "list"],
        &["-du", "u1", ","],
        &["-mattr", "queue", "slots", "2", ","],
        &["-purge", "queue", "slots", ","],
    ] {
        let master = FakeMaster::start(recorded, done("changed"));
        assert_eq!(run_with(&master, "true", line), exit::FAILED, "{line:?}");
        assert!(master.changes().is_empty(), "{line:?}");
    }
}

#[test]
fn attributes_are_edited_on_each_object_named() {
    let master = FakeMaster::start(recorded, done("modified"));
    let line = ["-mattr", "queue", "priority", "-5", "all.q@n1", "long.q"];
    assert_eq!(run_with(&master, "true", &line), exit::OK);
    let changes = only_changes(&master);
    let edit = ObjectAction::Attribute {
        edit: AttributeEdit::Modify,
        attribute: "priority".to_owned(),
        value: "-5".to_owned(),
    };
    assert_eq!(
        changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(),
        ["all.q@n1", "long.q"]
    );
    assert!(
        changes
            .iter()
            .all(|change| change.action == edit && change.kind == ObjectKind::Queue)
    );
}

#[test]
fn purge_takes_a_list_of_attributes() {
    let master = FakeMaster::start(recorded, done("modified"));
    assert_eq!(
        run_with(&master, "true", &["-purge", "queue", "slots,h_rt", "all.q@n1"]),
        exit::OK
    );
    let attributes = vec!["slots".to_owned(), "h_rt".to_owned()];
    assert_eq!(only_changes(&master)[0].action, ObjectAction::Purge { attributes });
}

#[test]
fn a_configuration_file_is_of_the_host_it_is_named_after() {
    let master = FakeMaster::start(with_one_host, done("modified"));
    let path = master.file("n1", "mailer /bin/mail\n");
    assert_eq!(run_with(&master, "true", &["-Aconf", &path]), exit::OK);
    let changes = only_changes(&master);
    assert_eq!(
        (changes[0].kind, changes[0].name.as_str()),
        (ObjectKind::ClusterConf, "n1")
    );
}

#[test]
fn a_complex_travels_as_a_field_for_each_attribute() {
    let master = FakeMaster::start(recorded, done("added"));
    let new = master.file("new", &format!("{}lic lic INT <= YES YES 0 0\n", Complex::built_in()));
    assert_eq!(run_with(&master, "true", &["-Mc", &new]), exit::OK);
    let ObjectAction::Replace(fields) = &only_changes(&master)[0].action else {
        panic!()
    };
    assert_eq!(fields.value("lic"), Some("lic INT <= YES YES 0 0"));
    assert_eq!(fields.len(), Complex::built_in().len() + 1);
}

/// The line added to the complex, what is said first of it, and whether the whole file is called
/// not correct.
const COMPLEX_LINES: &[(&str, &str, bool)] = &[
    (
        "zz2 mf INT <= YES NO 0 0",
        "complex with name zz2 or shortcut mf already exists",
        false,
    ),
    (
        "zz4 z4 STRING == YES YES NONE 0",
        "Complex \"zz4\" of type \"STRING\" cannot be a consumable",
        false,
    ),
    (
        "zz8 z8 INT >= YES YES 0 0",
        "Consumable \"zz8\" can have only <= as an relational operator",
        false,
    ),
    (
        "zz17 z17 FLOAT <= YES NO 0 0",
        "error: unknown complex attribute type \"FLOAT\"",
        true,
    ),
    (
        "zz19 z19 INT <= MAYBE NO 0 0",
        "error: unknown value \"MAYBE\" of the field requestable",
        true,
    ),
    (
        "zz38 z38 INT <= YES NO 0 0 extra",
        "error: the line has 9 fields instead of 8",
        true,
    ),
    (
        "zz37 z37 INT <= YES NO 0",
        "Complex urgency definition is missing",
        false,
    ),
    (
        "zz25 z25 INT <= YES NO 0 abc",
        "The following error occurred for complex \"zz25\", while parsing the urgency value: \"double value\"",
        false,
    ),
];

#[test]
fn what_is_wrong_with_a_complex_is_said_as_8_1_9_says_it() {
    for (line, expected, is_form) in COMPLEX_LINES {
        let text = format!("{}{line}\n", Complex::built_in());
        let refusals = text::parse(ObjectKind::ComplexTable, "", &text).unwrap_err();
        assert_eq!(refusals[0].what, *expected);
        let last = text::not_correct(ObjectKind::ComplexTable, "MC/x", &refusals);
        assert_eq!(
            last.as_deref(),
            is_form.then_some("Complex attribute file \"MC/x\" is not correct"),
            "{line}"
        );
    }
}

#[test]
fn a_text_is_refused_with_its_line_before_anything_is_sent() {
    let master = FakeMaster::start(recorded, done("never asked"));
    let queue = RECORDED[0]
        .2
        .replace("priority              0", "priority              50")
        .replace("slots  ", "slotz  ");
    let refusals = text::parse(ObjectKind::Queue, "", &queue).unwrap_err();
    assert!(
        refusals
            .iter()
            .all(|refusal| refusal.place.starts_with("line ") || refusal.what.contains("missing"))
    );
    assert_eq!(
        run_with(&master, "true", &["-Mq", &master.file("q", &queue)]),
        exit::FAILED
    );
    assert!(master.changes().is_empty());
}

#[test]
fn what_the_master_refuses_is_found_in_the_file() {
    let fields = Fields::parse("qname a\nslots 4\n").unwrap();
    for (place, expected) in [("slots", "f, line 2"), ("calendar", "calendar"), ("", "")] {
        assert_eq!(text::place_in("f", &fields, place.to_owned()), expected);
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let parsed = |line: &str| QCONF.parse(line.split(' ').map(str::to_owned).collect());
    for line in ["-ks", "-kt scheduler"] {
        assert_eq!(parsed(line).unwrap_err().diagnostic.code, Code::NotSupported, "{line}");
    }
}

#[test]
fn a_wrong_command_line_is_refused_in_the_words_of_8_1_9() {
    for (line, said) in [
        (
            "-nosuchopt",
            "error: invalid option argument \"-nosuchopt\"\nUsage: qconf -help",
        ),
        (
            "-sobjl",
            "error: no option argument provided to \"-sobjl\"\nUsage: qconf -help",
        ),
    ] {
        let fail = in_the_words_of_8_1_9(QCONF.read(vec![line.to_owned()]).unwrap_err());
        assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (1, said));
    }
}

/// A cell with the host `n1` and nothing else.
fn with_one_host(query: Query) -> Reply {
    match query {
        Query::HostNames { names } => Reply::data(Data::Names(names)),
        Query::Names {
            kind: ObjectKind::ExecHost,
        } => Reply::data(Data::Names(vec!["n1".to_owned()])),
        Query::Names { .. } => Reply::data(Data::Names(Vec::new())),
        other => recorded(other),
    }
}

#[test]
fn a_misspelt_host_becomes_no_execution_host() {
    let master = FakeMaster::start(with_one_host, done("changed"));
    let group = |members: &str| master.file("g", &format!("group_name @g\nhostlist {members}\n"));
    let queue = RECORDED[0].2.replace("@allhosts", "n1 no.such.invalid");
    let (bad, good) = (
        group("n1 no.such.invalid"),
        master.file("good", "group_name @g\nhostlist n1 @h\n"),
    );
    let local = master.file("no.such.invalid", "load_report_time 0:0:9\n");
    let lines: [&[&str]; 8] = [
        &["-Ahgrp", &bad],
        &["-Mhgrp", &bad],
        &["-Aq", &master.file("q", &queue)],
        &["-aattr", "hostgroup", "hostlist", "n1 no.such.invalid", "@g"],
        &["-mattr", "queue", "hostlist", "no.such.invalid", "all.q"],
        &["-rattr", "hostgroup", "hostlist", "@h,no.such.invalid", "@g"],
        &["-Aconf", &local],
        &["-Mconf", &local],
    ];
    for line in lines {
        assert_eq!(run_with(&master, "true", line), exit::FAILED, "{line:?}");
        assert!(master.changes().is_empty(), "{line:?}");
    }
    for line in [
        &["-Ahgrp", good.as_str()] as &[&str],
        &["-dattr", "hostgroup", "hostlist", "no.such.invalid", "@g"],
        &["-aattr", "queue", "hostlist", "@h n1", "all.q"],
        &["-mattr", "queue", "slots", "[no.such.invalid=2]", "all.q"],
    ] {
        assert_eq!(run_with(&master, "true", line), exit::OK, "{line:?}");
    }
    assert_eq!(master.changes().len(), 4);
}

/// The directory of a saved cell with a host group and those execution hosts.
fn saved_cell(master: &FakeMaster, members: &str, hosts: &[&str]) -> String {
    let group = master.file("saved/hostgroups/@g", &format!("group_name @g\nhostlist {members}\n"));
    for host in hosts {
        let keys =
            "load_scaling complex_values user_lists xuser_lists projects xprojects usage_scaling report_variables";
        let lines: String = keys.split(' ').map(|key| format!("{key} NONE\n")).collect();
        master.file(&format!("saved/execution/{host}"), &format!("hostname {host}\n{lines}"));
    }
    group.strip_suffix("/hostgroups/@g").unwrap().to_owned()
}

#[test]
fn an_import_makes_no_misspelt_host_an_execution_host() {
    let import = |members: &str, hosts: &[&str]| {
        let master = FakeMaster::start(with_one_host, done("changed"));
        let dir = saved_cell(&master, members, hosts);
        let outcome = import::import(&mut master.session("true"), &dir);
        (
            outcome.map_err(|fail| (fail.diagnostic.what, fail.diagnostic.place.replace(&dir, "saved"))),
            master.changes().len(),
        )
    };
    let unknown = "unable to resolve host \"no.such.invalid\"".to_owned();
    let refused = (Err((unknown, "saved/hostgroups/@g, line 2".to_owned())), 0);
    assert_eq!(import("n1 no.such.invalid", &[]), refused);
    assert_eq!(import("n1 no.such.invalid", &["n2"]), refused);
    assert_eq!(import("n1 @h", &[]), (Ok(exit::OK), 1));
    assert_eq!(import("n1 no.such.invalid", &["no.such.invalid"]), (Ok(exit::OK), 1));
}

#[test]
fn an_answer_that_is_not_about_names_makes_no_host_known() {
    let answer = |query: Query| match query {
        Query::HostNames { .. } => Reply::data(Data::Warnings(Vec::new())),
        other => with_one_host(other),
    };
    let master = FakeMaster::start(answer, done("changed"));
    let group = master.file("g", "group_name @g\nhostlist no.such.invalid\n");
    assert_eq!(run_with(&master, "true", &["-Ahgrp", &group]), exit::FAILED);
    assert!(master.changes().is_empty());
}

#[test]
fn an_empty_file_resets_no_configuration() {
    let master = FakeMaster::start(recorded, done("never asked"));
    for name in ["global", "n1"] {
        for content in ["", "\n", "# a comment\n"] {
            for option in ["-Mconf", "-Aconf"] {
                assert_eq!(
                    run_with(&master, "true", &[option, &master.file(name, content)]),
                    exit::FAILED,
                    "{name}"
                );
            }
        }
    }
    assert!(master.changes().is_empty());
}

#[test]
fn the_configuration_of_the_cell_under_another_name_is_refused_with_one_reason() {
    let master = FakeMaster::start(recorded, done("never asked"));
    let global = RECORDED
        .iter()
        .find(|(kind, ..)| *kind == ObjectKind::ClusterConf)
        .unwrap()
        .2;
    let file = master.file("my.conf", global);
    let parsed = QCONF.parse(vec!["-Mconf".to_owned(), file]).unwrap();
    assert_eq!(perform(&mut master.session("true"), &parsed).unwrap(), exit::FAILED);
    assert!(master.changes().is_empty());
    let refused = change::whole_cell("f", "my.conf", global).unwrap();
    assert_eq!(
        refused.what,
        "error: \"f\" holds the configuration of the whole cell and is called after a host"
    );
    assert_eq!(change::whole_cell("f", "global", global), None);
}

#[test]
fn blanks_separate_users_lists_and_queues_too() {
    for (line, count) in [
        (&["-au", "u1 u2", "k1 k2,k3"] as &[&str], 6),
        (&["-du", "u1,u2", "k1 k2"], 4),
        (&["-dul", "k1 k2"], 2),
        (&["-am", "a b"], 2),
        (&["-do", "a b"], 2),
        (&["-dprj", "p1 p2"], 2),
        (&["-duser", "u1 u2,u3"], 3),
        (&["-cq", "a.q b.q"], 2),
        (&["-dq", "a.q b.q"], 1),
    ] {
        let master = FakeMaster::start(recorded, done("changed"));
        assert_eq!(run_with(&master, "true", line), exit::OK, "{line:?}");
        assert_eq!(master.changes().len(), count, "{line:?}");
    }
}

#[test]
fn a_comment_behind_the_names_of_a_list_is_no_name() {
    for (kind, text, key, expected) in [
        (
            ObjectKind::HostGroup,
            "group_name @g\nhostlist n1 n2  # two\n",
            "hostlist",
            "n1 n2",
        ),
        (
            ObjectKind::UserSet,
            "name a # x\ntype ACL\nfshare 0\noticket 0\nentries u1 # u2\n",
            "entries",
            "u1",
        ),
        (
            ObjectKind::Project,
            "name p\noticket 0\nfshare 0\nacl team # c x\nxacl NONE\n",
            "acl",
            "team",
        ),
    ] {
        assert_eq!(
            text::parse(kind, "", text).unwrap().value(key),
            Some(expected),
            "{text}"
        );
    }
    let queue = RECORDED[0]
        .2
        .replace("prolog                NONE", "prolog                /bin/x #1");
    assert_eq!(
        text::parse(ObjectKind::Queue, "", &queue).unwrap().value("prolog"),
        Some("/bin/x #1")
    );
}
