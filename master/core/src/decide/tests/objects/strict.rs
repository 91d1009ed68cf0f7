//! What somebody may not write anew, in the words of 8.1.9, although a stored object may say it.

use super::*;
use crate::effect::Input;
use proto::wire::agent::AgentMessage;
use proto::wire::client::Import;

#[test]
fn a_variable_that_no_procedure_of_a_parallel_environment_has_is_refused() {
    let mut cell = Cell::ready();
    cell.qconf(K::Pe, "smp", Do::Add(pe("smp", &[])));
    let known = "/x/start $pe_hostfile $host-$job_id.$ja_task_id $stdout_path $fs_stdin_host $$HOME";
    for (key, value, expected) in [
        ("start_proc_args", known.trim_end_matches(" $$HOME"), None),
        (
            "start_proc_args",
            "/x/start $nosuch",
            Some("start_proc_args of pe \"smp\": unknown variable \"nosuch\""),
        ),
        (
            "stop_proc_args",
            "/x/stop $pe_x",
            Some("stop_proc_args of pe \"smp\": unknown variable \"pe_x\""),
        ),
        (
            "stop_proc_args",
            known,
            Some("stop_proc_args of pe \"smp\": variables need at least one character"),
        ),
    ] {
        let reply = cell.change(vec![object_change(
            K::Pe,
            "smp",
            Do::Replace(pe("smp", &[(key, value)])),
        )]);
        let said = reply.answers.iter().find_map(|answer| match answer {
            Answer::Refused(refusal) => Some(refusal.what.clone()),
            Answer::Done(_) | Answer::Warning(_) => None,
        });
        assert_eq!(said, expected.map(|why| format!("parameter {why}")), "{value}");
        if expected.is_none() {
            assert!(warnings(&reply).is_empty());
        }
    }
}

/// The first refusal of a change; `None` if it was made.
fn refusal(cell: &mut Cell, kind: K, name: &str, action: Do) -> Option<String> {
    let reply = cell.change(vec![object_change(kind, name, action)]);
    reply.answers.iter().find_map(|answer| match answer {
        Answer::Refused(refusal) => Some(refusal.what.clone()),
        Answer::Done(_) | Answer::Warning(_) => None,
    })
}

fn check(kind: K, name: &str, cases: &[(&str, &str, Option<&str>)], object: fn(&[(&str, &str)]) -> Fields) {
    let mut cell = Cell::ready();
    for (key, value, expected) in cases {
        let refused = refusal(&mut cell, kind, name, Do::Replace(object(&[(key, value)])));
        assert_eq!(refused.as_deref(), *expected, "{key} {value}");
    }
}

#[test]
fn an_override_without_a_comma_in_front_is_no_part_of_a_path() {
    let all_q = |changes: &[(&str, &str)]| queue("all.q", &[&[("hostlist", "h1 h2")], changes].concat());
    let apart = |value: &str| Some(format!("All list elements must be separated by commas: \"{value}\""));
    let mut cell = Cell::ready();
    for (key, value, is_refused) in [
        ("tmpdir", "/tmp [h1=/x]", true),
        ("shell", "/bin/sh [h1=/bin/ksh]", true),
        ("prolog", "/bin/true [h1=NONE]", true),
        ("epilog", "NONE [@g=/x]", true),
        ("starter_method", "/x a [h1=NONE]", true),
        ("suspend_method", "/x [h1=SIGTSTP]", true),
        ("terminate_method", "/x,[h2=/y] [h1=SIGTERM]", true),
        ("tmpdir", "/tmp, [h1=/x]", false),
        ("prolog", "/bin/x [a] $host,[h1=/bin/y [b]]", false),
        ("slots", "4,[ h1 = 2]", false),
    ] {
        let refused = refusal(&mut cell, K::Queue, "all.q", Do::Replace(all_q(&[(key, value)])));
        let expected = apart(value).filter(|_| is_refused);
        assert_eq!(refused.is_some(), is_refused, "{key} {value}: {refused:?}");
        if refused.as_deref().is_some_and(|what| what.starts_with("All ")) {
            assert_eq!(refused, expected, "{key}");
        }
    }
}

#[test]
fn an_equals_sign_is_no_part_of_a_value_and_a_blank_parts_values_in_a_queue() {
    let mut cell = Cell::ready();
    let arch = "denied: attribute \"arch==x\" is not a complex attribute";
    for (value, expected) in [("arch==x", Some(arch)), ("arch=x", None), ("arch=a b", None)] {
        let change = Do::Replace(host("h1", &[("complex_values", value)]));
        assert_eq!(
            refusal(&mut cell, K::ExecHost, "h1", change).as_deref(),
            expected,
            "{value}"
        );
    }
    let mut stored = |key: &str, value: &str| {
        let action = Do::Replace(queue("all.q", &[("hostlist", "h1 h2"), (key, value)]));
        let refused = refusal(&mut cell, K::Queue, "all.q", action);
        refused.unwrap_or_else(|| {
            cell.core.state().config.queues["all.q"]
                .to_fields()
                .value(key)
                .unwrap()
                .to_owned()
        })
    };
    for (value, expected) in [
        ("hostname==h1", "hostname=h1"),
        ("slots = 3 num_proc=4", "slots=3,num_proc=4"),
        ("slots=3,[h1=slots=1 num_proc=2]", "slots=3,[h1=slots=1,num_proc=2]"),
    ] {
        assert_eq!(stored("complex_values", value), expected);
    }
    assert!(stored("complex_values", "arch=x=y").starts_with("error parsing value \"arch=x=y\""));
    assert!(stored("complex_values", "arch=a b").starts_with("error parsing value \"b\""));
    assert_eq!(stored("load_thresholds", "np_load_avg==3"), "np_load_avg=3");
}

#[test]
fn programs_of_a_configuration_have_a_path_and_known_variables() {
    let relative = |key: &str| format!("denied: the path given for \"{key}\" must start with a \"/\"");
    let unknown = |key: &str, why: &str| format!("denied: parameter \"{key}\" in configuration: \"{why}\"");
    let (mailer, xterm) = (relative("mailer"), relative("xterm"));
    let nosuch = unknown("epilog", "unknown variable \"nosuch\"");
    let (x, none) = (
        unknown("prolog", "unknown variable \"x\""),
        unknown("prolog", "variables need at least one character"),
    );
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("mailer", "true", Some(&mailer)),
        ("xterm", "true", Some(&xterm)),
        ("xterm", "NONE", Some(&xterm)),
        ("mailer", "none", None),
        ("mailer", "/bin/mail", None),
        ("mailer", "root@/bin/mail", None),
        ("epilog", "/bin/x $nosuch", Some(&nosuch)),
        ("prolog", "root@/bin/x a $x", Some(&x)),
        ("prolog", "/bin/x ${host}", Some(&none)),
        ("prolog", "/bin/x $host $job_id $fs_stdin_host $sge_root", None),
        ("epilog", "/bin/x $fs_stderr_file_staging", None),
    ];
    check(K::ClusterConf, "global", cases, conf);
    let mut cell = Cell::ready();
    let of_host: Fields = [("mailer", "true")].into_iter().collect();
    assert_eq!(
        refusal(&mut cell, K::ClusterConf, "h1", Do::Add(of_host)),
        Some(mailer.clone())
    );
}

#[test]
fn the_scheduler_configuration_takes_no_bare_parameter_and_prices_at_least_one_task() {
    let cases = &[
        (
            "max_pending_tasks_per_job",
            "0",
            Some("invalid setting for param: \"max_pending_tasks_per_job\"(should be \">0\")"),
        ),
        ("max_pending_tasks_per_job", "1", None),
        (
            "params",
            "MONITOR",
            Some("Invalid scheduler param setting: \"MONITOR\""),
        ),
        (
            "params",
            "PROFILE=1,MONITOR",
            Some("Invalid scheduler param setting: \"MONITOR\""),
        ),
        ("params", "PROFILE=1 MONITOR=0", None),
    ];
    check(K::SchedulerConf, "", cases, scheduler);
}

#[test]
fn a_default_is_a_value_of_its_type() {
    let of_type = |word: &str| {
        Some(format!(
            "Complex \"zz\"'s default value should be of type \"{word} value\""
        ))
    };
    let none = Some("Complex \"zz\" cannot have a (non-zero) default value".to_owned());
    let mut cell = Cell::ready();
    for (line, expected) in [
        ("BOOL == YES NO NONE", of_type("boolean")),
        ("INT == YES NO NONE", of_type("integer")),
        ("MEMORY <= YES NO NONE", of_type("memory")),
        ("TIME <= YES NO none", of_type("time")),
        ("DOUBLE >= YES NO NONE", of_type("double")),
        ("STRING == YES NO 0", none.clone()),
        ("CSTRING == YES NO 0", none.clone()),
        ("RESTRING == YES NO 0", none.clone()),
        ("HOST == YES NO 0", none),
        ("INT <= YES YES NONE", None),
        ("BOOL == YES NO 0", None),
        ("STRING == YES NO none", None),
        ("TIME <= YES NO 0:0:0", None),
    ] {
        let action = Do::Replace(complex(&format!("zz zz {line} 0")));
        assert_eq!(refusal(&mut cell, K::ComplexTable, "", action), expected, "{line}");
        cell.qconf(K::ComplexTable, "", Do::Replace(complex("")));
    }
}

#[test]
fn what_is_stored_already_stays_while_something_else_changes() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("mailer", "sendmail")]);
    cell.set_scheduler(&[("params", "MONITOR")]);
    let changed = conf(&[("mailer", "sendmail"), ("max_u_jobs", "5")]);
    assert_eq!(refusal(&mut cell, K::ClusterConf, "global", Do::Replace(changed)), None);
    let changed = scheduler(&[("params", "MONITOR"), ("maxujobs", "5")]);
    assert_eq!(refusal(&mut cell, K::SchedulerConf, "", Do::Replace(changed)), None);
    cell.assert_replay_is_live();
}

#[test]
fn a_set_is_found_by_its_name_and_a_rule_alone() {
    let mut cell = Cell::ready();
    let text = "{\nname h1\ndescription NONE\nenabled TRUE\nlimit name r1 users u3 to slots=9\n}\n";
    let set = proto::quota::parse_sets(text).unwrap().remove(0);
    cell.qconf(K::ResourceQuota, "h1", Do::Add(set));
    let other = |name: &str| Some(format!("denied: resource quota set \"{name}\" does not exist"));
    for edit in [Add, Modify, Replace] {
        for name in ["h1/r1/x", "h1/", "h2"] {
            let refused = refusal(&mut cell, K::ResourceQuota, name, attribute(edit, "enabled", "FALSE"));
            assert_eq!(refused, other(name), "{edit:?}");
        }
    }
    assert!(cell.core.state().config.quotas["h1"].enabled.0);
    assert_eq!(
        refusal(
            &mut cell,
            K::ResourceQuota,
            "h1/r1",
            attribute(Replace, "enabled", "no")
        ),
        None
    );
    assert!(!cell.core.state().config.quotas["h1"].enabled.0);
}

#[test]
fn who_is_excluded_stays_excluded_when_a_part_of_the_queue_loses_what_it_does_not_have() {
    let mut cell = Cell::ready();
    let list: Fields = [
        ("name", "bad"),
        ("type", "ACL"),
        ("fshare", "0"),
        ("oticket", "0"),
        ("entries", "u3"),
    ]
    .into_iter()
    .collect();
    cell.qconf(K::UserSet, "bad", Do::Add(list));
    cell.attr(K::Queue, "all.q", Replace, "user_lists", "bad");
    for name in ["all.q@h1", "all.q@@allhosts"] {
        for (key, value) in [
            ("user_lists", "bad"),
            ("user_lists", "nosuch"),
            ("qtype", "BATCH"),
            ("projects", "p"),
        ] {
            let before = cell.core.state().config.queues["all.q"].clone();
            let said = cell.attr(K::Queue, name, AttributeEdit::Delete, key, value);
            assert!(said.len() == 1, "{said:?}");
            assert_eq!(
                cell.core.state().config.queues["all.q"],
                before,
                "{name} {key} {value}: {said:?}"
            );
        }
    }
}

#[test]
fn a_procedure_of_root_that_its_hosts_do_not_list_is_warned_about() {
    let mut cell = Cell::ready();
    let lists = |cell: &mut Cell, lines: &[&str]| {
        let root_commands = Some(lines.iter().map(|line| (*line).to_owned()).collect());
        let connection = cell.connection("h1");
        let message = Box::new(AgentMessage::Health {
            unfit: None,
            root_commands,
        });
        cell.input(Input::AgentMessage { connection, message });
    };
    let set = |cell: &mut Cell, prolog: &str| {
        let fields = cell.core.state().config.object_fields(K::Queue, "all.q").unwrap();
        let action = Do::Replace(with(fields, &[("prolog", prolog)]));
        let reply = cell.change(vec![object_change(K::Queue, "all.q", action)]);
        warnings(&reply)
            .into_iter()
            .map(|(_, what)| what)
            .collect::<Vec<String>>()
    };
    assert!(
        set(&mut cell, "root@/x/prolog $host").is_empty(),
        "no host has said what it lists"
    );
    lists(&mut cell, &["/x/prolog", "/x/other $host"]);
    for (prolog, is_told) in [
        ("root@/x/prolog $host", true),
        ("root@/x/prolog $job_id", false),
        ("root@/x/other $host", false),
        ("/x/prolog $host", false),
        ("ann@/x/prolog", false),
    ] {
        let said = set(&mut cell, prolog);
        assert_eq!(!said.is_empty(), is_told, "{prolog}: {said:?}");
    }
    let said = set(&mut cell, "root@/x/missing");
    assert!(said[0].contains("root does not run \"/x/missing\" on h1"), "{said:?}");
    let connection = cell.connection("h1");
    let message = Box::new(AgentMessage::Health {
        unfit: None,
        root_commands: None,
    });
    cell.input(Input::AgentMessage { connection, message });
    assert!(
        set(&mut cell, "root@/x/absent").is_empty(),
        "the host no longer says what it lists"
    );
    // A longer list than a launcher sends is not kept: what the host lists is unknown.
    let line = "/x/".to_owned() + &"y".repeat(60);
    lists(&mut cell, &vec![line.as_str(); 1_000]);
    assert!(set(&mut cell, "root@/x/missing too").is_empty());
    lists(&mut cell, &["/x/prolog"]);
    assert!(!set(&mut cell, "root@/x/missing").is_empty());
    lists(&mut cell, &vec![""; 100_000]);
    assert!(set(&mut cell, "root@/x/missing too").is_empty());
}

#[test]
fn a_new_name_is_no_pattern_unless_it_comes_with_a_whole_cell() {
    let mut cell = Cell::ready();
    let text = "denied: the name \"a*b\" of a parallel environment contains '*'";
    refuses(&mut cell, K::Pe, "a*b", Do::Add(pe("a*b", &[])), Code::BadValue, text);
    for (name, text) in [
        ("all", "Keyword (\"ALL\") not allowed as objectname"),
        ("Template", "Keyword (\"TEMPLATE\") not allowed as objectname"),
        (".a", "Dot ('.') not allowed as first character of objectname"),
    ] {
        refuses(&mut cell, K::Pe, name, Do::Add(pe(name, &[])), Code::BadValue, text);
    }
    let imported = cell.command(
        "boss",
        Command::Import(Import {
            changes: vec![object_change(K::Pe, "a*b", Do::Add(pe("a*b", &[])))],
            ..Import::default()
        }),
    );
    assert_eq!(warnings(&imported), []);
    assert_eq!(
        warnings(&cell.change(vec![object_change(K::Pe, "a*b", Do::Replace(pe("a*b", &[])))])),
        []
    );
}
