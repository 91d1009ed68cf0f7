//! What is taken, kept with a warning, or refused where a cell is imported or a value changed.

use super::*;
use proto::wire::client::Import;

#[test]
fn what_an_imported_cell_says_is_kept_with_a_warning_until_somebody_changes_it() {
    let mut cell = Cell::ready();
    let with_command = |command| {
        vec![object_change(
            K::ClusterConf,
            "global",
            Do::Replace(conf(&[("shepherd_cmd", command)])),
        )]
    };
    let said = |place: &str| {
        vec![(
            place.to_owned(),
            "warning: \"shepherd_cmd\" is stored and has no effect: /opt/shepherd".to_owned(),
        )]
    };
    let imported = cell.command(
        "boss",
        Command::Import(Import {
            changes: with_command("/opt/shepherd"),
            ..Import::default()
        }),
    );
    // Among the many objects of an import the warning names the one.
    assert_eq!(warnings(&imported), said("cluster configuration global: shepherd_cmd"));
    let same = [("shepherd_cmd", "/opt/shepherd"), ("max_jobs", "9")];
    let edited = cell.change(vec![object_change(K::ClusterConf, "global", Do::Replace(conf(&same)))]);
    assert_eq!(warnings(&edited), said("shepherd_cmd"));
    let other = cell.change(with_command("/opt/other.sh"));
    assert!(other.answers.iter().any(Answer::is_refusal), "{other:?}");
    let found = crate::decide::objects::without_effect(&cell.core.state().config);
    let found: Vec<&str> = found.iter().map(|warning| warning.place.as_str()).collect();
    assert_eq!(found, ["cluster configuration global: shepherd_cmd"]);
    cell.assert_replay_is_live();
}

#[test]
fn a_file_with_one_bad_line_changes_nothing() {
    let mut cell = Cell::ready();
    let bad = with(complex("good g INT <= YES NO 0 0"), &[("worse", "w INT <= YES NO 5 0")]);
    let text = "Complex \"worse\" cannot have a (non-zero) default value";
    refuses(
        &mut cell,
        K::ComplexTable,
        "",
        Do::Replace(bad.clone()),
        Code::BadValue,
        text,
    );
    // Nor does an import of many objects with one bad line in one of them, wherever it stands.
    let good = [
        object_change(K::ComplexTable, "", Do::Replace(complex("good g INT <= YES NO 0 0"))),
        object_change(K::HostGroup, "@good", Do::Add(group("@good", "h1"))),
        object_change(K::Pe, "good", Do::Add(pe("good", &[]))),
    ];
    for (change, place, text) in [
        (object_change(K::ComplexTable, "", Do::Replace(bad)), "complex", text),
        (
            object_change(
                K::Queue,
                "bad.q",
                Do::Add(queue("bad.q", &[("hostlist", "@good"), ("slots", "many")])),
            ),
            "bad.q",
            "many",
        ),
        (
            object_change(K::Pe, "bad", Do::Add(pe("bad", &[("allocation_rule", "$nosuch")]))),
            "bad",
            "$nosuch",
        ),
    ] {
        for at in 0..=good.len() {
            let mut changes = good.to_vec();
            changes.insert(at, change.clone());
            let before = cell.core.state().clone();
            let reply = cell.command(
                "boss",
                Command::Import(Import {
                    changes,
                    last_job: Some(7),
                    ..Import::default()
                }),
            );
            let [Answer::Refused(refusal)] = &reply.answers[..] else {
                panic!("{reply:?}")
            };
            assert!(
                refusal.place.contains(place) && refusal.what.contains(text),
                "{refusal:?}"
            );
            assert!(*cell.core.state() == before, "{place} at {at}");
        }
    }
    let taken = cell.command(
        "boss",
        Command::Import(Import {
            changes: good.to_vec(),
            ..Import::default()
        }),
    );
    assert!(!taken.answers.iter().any(Answer::is_refusal), "{taken:?}");
}

#[test]
fn each_queue_and_each_parameter_is_judged_by_itself() {
    let mut cell = Cell::ready();
    let import = |kind, name: &str, action| {
        Command::Import(Import {
            changes: vec![object_change(kind, name, action)],
            ..Import::default()
        })
    };
    let list = attribute(Replace, "execd_params", "KEEP_ACTIVE=true,SIMULATE_JOBS=true");
    let said = cell.command("boss", import(K::ClusterConf, "global", list));
    assert_eq!(warnings(&said).len(), 1, "{said:?}");
    let keep = attribute(Replace, "execd_params", "SIMULATE_JOBS=true,H_LOCKS=5");
    assert_eq!(
        warnings(&cell.change(vec![object_change(K::ClusterConf, "global", keep)])).len(),
        1
    );
    let add = attribute(Replace, "execd_params", "SIMULATE_JOBS=1,H_LOCKS=5");
    let reply = cell.change(vec![object_change(K::ClusterConf, "global", add)]);
    assert!(matches!(&reply.answers[..], [Answer::Refused(refusal)] if refusal.what.contains("SIMULATE_JOBS")));
    let processors = attribute(Replace, "processors", "UNDEFINED,[h1=0-3]");
    assert_eq!(
        warnings(&cell.command("boss", import(K::Queue, "all.q", processors))).len(),
        1
    );
    let here_and_there = attribute(Replace, "processors", "0-3,[h1=4-7]");
    let reply = cell.change(vec![object_change(K::Queue, "all.q", here_and_there)]);
    assert!(
        matches!(&reply.answers[..], [Answer::Refused(refusal)] if refusal.what.contains("4-7")),
        "{reply:?}"
    );
}

#[test]
fn what_is_met_by_other_means_is_kept_and_warned_of_once() {
    let mut cell = Cell::ready();
    for (kind, name, key, value) in [
        (K::ClusterConf, "global", "gid_range", "20000-20100"),
        (K::ClusterConf, "global", "loglevel", "log_info"),
        (K::ClusterConf, "global", "qmaster_params", "MONITOR_TIME=0:0:10"),
        (K::ClusterConf, "global", "qmaster_params", "gdi_timeout=60"),
        (K::ClusterConf, "global", "execd_params", "ENABLE_ADDGRP_KILL=false"),
        (K::ExecHost, "h1", "usage_scaling", "acct_cpu=2"),
    ] {
        for expected in [1, 0] {
            let reply = cell.change(vec![object_change(kind, name, attribute(Replace, key, value))]);
            assert_eq!(warnings(&reply).len(), expected, "{key} {value}: {reply:?}");
        }
    }
}

#[test]
fn what_has_an_effect_is_taken_without_a_word() {
    let mut cell = Cell::ready();
    for (kind, name, key, value) in [
        (K::Queue, "all.q", "starter_method", "/bin/x"),
        (K::ClusterConf, "global", "administrator_mail", "root@h1"),
        (K::ClusterConf, "global", "mailer", "/usr/bin/mailx"),
        (
            K::ClusterConf,
            "global",
            "reporting_params",
            "reporting=true joblog=true log_consumables=true",
        ),
        (
            K::ClusterConf,
            "global",
            "reporting_params",
            "accounting=false sharelog=0:10:0",
        ),
        (
            K::ClusterConf,
            "global",
            "execd_params",
            "NOTIFY_KILL=TERM,NOTIFY_SUSP=none,SET_LIB_PATH=true",
        ),
        (K::ClusterConf, "global", "execd_params", "ACCT_RESERVED_USAGE=true"),
        (
            K::ClusterConf,
            "global",
            "qmaster_params",
            "ENABLE_FORCED_QDEL_IF_UNKNOWN=true",
        ),
        (K::ClusterConf, "global", "qmaster_params", "MAX_DYN_EC=1000"),
        (
            K::ClusterConf,
            "global",
            "execd_params",
            "PTF_MIN_PRIORITY=10,PTF_MAX_PRIORITY=-5",
        ),
        (K::ClusterConf, "global", "reprioritize", "1"),
        (K::SchedulerConf, "", "reprioritize_interval", "0:0:40"),
        (K::SchedulerConf, "", "params", "MONITOR=1,PE_RANGE_ALG=least"),
        (K::ExecHost, "h1", "report_variables", "slots,np_load_avg"),
    ] {
        let reply = cell.change(vec![object_change(kind, name, attribute(Replace, key, value))]);
        assert_eq!(warnings(&reply), [], "{key} {value}");
    }
}

#[test]
fn what_is_shipped_is_supported() {
    let mut cell = Cell::ready();
    let reply = cell.change(vec![
        object_change(
            K::ClusterConf,
            "global",
            Do::Replace(conf(&[("execd_params", "KEEP_ACTIVE=true,H_MAXPROC=99")])),
        ),
        object_change(K::SchedulerConf, "", Do::Replace(scheduler(&[]))),
        object_change(K::Queue, "q", Do::Add(queue("q", &[("hostlist", "h1")]))),
        object_change(K::Pe, "p", Do::Add(pe("p", &[]))),
        object_change(K::ExecHost, "n", Do::Add(host("n", &[]))),
    ]);
    assert!(!reply.answers.iter().any(Answer::is_refusal), "{reply:?}");
}
