//! What the options of a job make of a specification.

use super::*;
use crate::job::sources;

fn request(options: &[(&'static str, &[&str])]) -> Result<JobRequest, Fail> {
    let mut request = JobRequest::new("qsub");
    for (name, values) in options {
        request.apply(&GivenOption {
            name,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        })?;
    }
    Ok(request)
}

#[test]
fn lists_grow_and_scalars_are_replaced() {
    let built = request(&[
        ("-l", &["h_vmem=1G,h_rt=5"]),
        ("-soft", &[]),
        ("-l", &["lic=1"]),
        ("-hard", &[]),
        ("-l", &["h_vmem=2G"]),
        ("-N", &["a"]),
        ("-N", &["b"]),
        ("-v", &["A=1,B,C=x y"]),
    ])
    .unwrap();
    assert_eq!(show(&built.changes.hard), ["h_rt=5", "h_vmem=2G"]);
    assert_eq!(show(&built.changes.soft), ["lic=1"]);
    assert_eq!(built.changes.name.as_deref(), Some("b"));
    let expected = [("A", Some("1")), ("B", None), ("C", Some("x y"))];
    let expected = expected.map(|(n, v)| (n.to_owned(), v.map(str::to_owned)));
    assert_eq!(built.variables.as_deref(), Some(&expected[..]));
}

fn show(list: &Option<Vec<ResourceRequest>>) -> Vec<String> {
    list.iter().flatten().map(ToString::to_string).collect()
}

#[test]
fn requests_go_to_the_scope_that_is_in_force() {
    let built = request(&[
        ("-l", &["h_rt=3600"]),
        ("-q", &["all.q"]),
        ("-soft", &[]),
        ("-l", &["arch=lx*"]),
        ("-scope", &["master"]),
        ("-hard", &[]),
        ("-masterq", &["log.q"]),
        ("-q", &["io.q"]),
        ("-l", &["memory=1G,disk=2G"]),
        ("-scope", &["slave"]),
        ("-q", &["compute.q"]),
        ("-l", &["memory=4G"]),
        ("-q", &["big.q"]),
        ("-l", &["gpu=1,memory=8G"]),
        ("-scope", &["global"]),
        ("-l", &["lic=1"]),
        ("-scope", &["master"]),
        ("-l", &["memory=2G"]),
    ])
    .unwrap();
    let changes = &built.changes;
    assert_eq!(show(&changes.hard), ["h_rt=3600", "lic=1"]);
    assert_eq!(show(&changes.soft), ["arch=lx*"]);
    assert_eq!(show(&changes.master), ["disk=2G", "memory=2G"]);
    assert_eq!(show(&changes.slaves), ["gpu=1", "memory=8G"]);
    let queues = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(changes.hard_queues, queues(&["all.q"]));
    assert_eq!(changes.soft_queues, None);
    assert_eq!(changes.master_queues, queues(&["log.q", "io.q"]));
    assert_eq!(changes.slave_queues, queues(&["compute.q", "big.q"]));
}

#[test]
fn soft_and_scope_end_with_their_source() {
    let given = |name, value: &[&str]| GivenOption {
        name,
        values: value.iter().map(|v| (*v).to_owned()).collect(),
    };
    let mut request = JobRequest::new("qsub");
    let file = [given("-scope", &["slave"]), given("-l", &["a=1"])];
    let script = [given("-l", &["b=1"]), given("-soft", &[]), given("-l", &["c=1"])];
    let line = [
        given("-scope", &["master"]),
        given("-l", &["d=1"]),
        given("-q", &["io.q"]),
    ];
    for source in [&file[..], &script, &line] {
        request.apply_line(source).unwrap();
    }
    let changes = &request.changes;
    assert_eq!(
        (show(&changes.slaves), show(&changes.hard)),
        (vec!["a=1".to_owned()], vec!["b=1".to_owned()])
    );
    assert_eq!(
        (show(&changes.soft), show(&changes.master)),
        (vec!["c=1".to_owned()], vec!["d=1".to_owned()])
    );
    assert_eq!(changes.master_queues, Some(vec!["io.q".to_owned()]));
}

#[test]
fn lines_of_a_script_have_scopes() {
    let script = b"#!/bin/sh\n#$ -pe mpi 16 -l h_rt=3600\n#$ -scope master -q io.q -l memory=1G\n\
        #$ -scope slave -q compute.q -l memory=4G,gpu=1\nmpirun x\n";
    let mut request = JobRequest::new("qsub");
    request
        .apply_sources(&[sources::directives(script, "#$", "job.sh").unwrap()])
        .unwrap();
    let changes = &request.changes;
    assert_eq!(show(&changes.hard), ["h_rt=3600"]);
    assert_eq!(show(&changes.master), ["memory=1G"]);
    assert_eq!(show(&changes.slaves), ["memory=4G", "gpu=1"]);
    assert_eq!(changes.hard_queues, None);
    assert_eq!(changes.master_queues, Some(vec!["io.q".to_owned()]));
    assert_eq!(changes.slave_queues, Some(vec!["compute.q".to_owned()]));
}

#[test]
fn soft_ends_with_its_line_as_in_8_1_9() {
    let script = b"#$ -soft\n#$ -l arch=nosuch\n#$ -soft -l mem_free=1G\n#$ -l h_rt=77\n";
    let mut request = JobRequest::new("qsub");
    request
        .apply_sources(&[sources::directives(script, "#$", "job.sh").unwrap()])
        .unwrap();
    assert_eq!(show(&request.changes.hard), ["arch=nosuch", "h_rt=77"]);
    assert_eq!(show(&request.changes.soft), ["mem_free=1G"]);
}

#[test]
fn a_scope_of_nothing_is_refused() {
    let source = |words: &[(&'static str, &[&str])]| -> Vec<GivenOption> {
        let given = |(name, values): &(&'static str, &[&str])| GivenOption {
            name,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        words.iter().map(given).collect()
    };
    let refused = |words: &[(&'static str, &[&str])]| JobRequest::new("qsub").apply_line(&source(words)).err();
    let fail = refused(&[("-scope", &["master"])]).unwrap();
    let what = "qsub: \"-scope master\" is followed by no -l and no -q";
    assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (7, what));
    assert!(refused(&[("-l", &["a=1"]), ("-scope", &["slave"]), ("-N", &["x"])]).is_some());
    assert!(refused(&[("-scope", &["slave"]), ("-l", &["a=1"]), ("-N", &["x"])]).is_none());
    assert!(refused(&[("-scope", &["slave"]), ("-q", &["a.q"]), ("-scope", &["global"])]).is_none());
}

#[test]
fn soft_requests_have_the_global_scope_alone() {
    for (scope, name, value) in [
        ("master", "-l", "a=1"),
        ("slave", "-l", "a=1"),
        ("slave", "-q", "all.q"),
    ] {
        let fail = request(&[("-soft", &[]), ("-scope", &[scope]), (name, &[value])]).unwrap_err();
        let what = format!("qsub: \"{name} {value}\" is given with both -soft and -scope {scope}");
        assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (7, what.as_str()));
        assert!(!fail.diagnostic.why.is_empty() && !fail.diagnostic.fix.is_empty());
    }
    assert!(request(&[("-scope", &["master"]), ("-soft", &[]), ("-l", &["a=1"])]).is_err());
    assert!(
        request(&[
            ("-soft", &[]),
            ("-scope", &["master"]),
            ("-hard", &[]),
            ("-l", &["a=1"])
        ])
        .is_ok()
    );
    let back = request(&[
        ("-soft", &[]),
        ("-scope", &["slave"]),
        ("-scope", &["global"]),
        ("-q", &["all.q"]),
    ]);
    assert_eq!(back.unwrap().changes.soft_queues, Some(vec!["all.q".to_owned()]));
    let cleared = request(&[
        ("-soft", &[]),
        ("-scope", &["slave"]),
        ("-clear", &[]),
        ("-l", &["a=1"]),
    ]);
    assert_eq!(show(&cleared.unwrap().changes.hard), ["a=1"]);
}

/// An option with its values, and the exit code and the words by which it is refused.
const REFUSED: &[(&str, &[&str], u8, &str)] = &[
    (
        "-p",
        &["2000"],
        7,
        "qsub: invalid priority \"2000\".  Must be an integer from -1023 to 1024",
    ),
    ("-par", &["$all"], 7, "qsub: invalid option argument \"-par $all\""),
    ("-R", &["x"], 7, "qsub: invalid option argument \"-R x\""),
    (
        "-scope",
        &["slaves"],
        7,
        "qsub: invalid option argument \"-scope slaves\"",
    ),
    (
        "-scope",
        &["Master"],
        7,
        "qsub: invalid option argument \"-scope Master\"",
    ),
    ("-sync", &["rn"], 7, "qsub: invalid option argument \"-sync rn\""),
    ("-w", &["x"], 7, "qsub: invalid option argument \"-w x\""),
    (
        "-m",
        &["x"],
        7,
        "qsub: Wrong mail options list format \"x\" specified to -m option",
    ),
    (
        "-m",
        &["n,b"],
        7,
        "qsub: Wrong mail options list format \"n,b\" specified to -m option",
    ),
    ("-ac", &["=x"], 7, "qsub: Wrong context list format -ac \"=x\""),
    ("-sc", &["A=1,=x"], 7, "qsub: Wrong context list format -sc \"A=1,=x\""),
    ("-dc", &["A,=x"], 7, "qsub: Wrong context list format -dc \"A,=x\""),
    (
        "-v",
        &["=x"],
        7,
        "qsub: Wrong variable list format -v \"=x\" or environment variable not set",
    ),
    (
        "-tc",
        &["x"],
        7,
        "qsub: invalid task concurrency number \"x\". Must be an integer greater or equal to 0.",
    ),
    (
        "-o",
        &["vm:/a,/b,VM:/c"],
        1,
        "Unable to run job: ERROR! two files are specified for the same host\nExiting.",
    ),
    (
        "-p",
        &["abc"],
        7,
        "qsub: invalid priority \"abc\".  Must be an integer from -1023 to 1024",
    ),
    (
        "-t",
        &["1-5:0"],
        7,
        "qsub: Negative or zero step in range is not allowed",
    ),
    (
        "-t",
        &["1-3,5"],
        7,
        "qsub: -t option only allows one range specification",
    ),
    (
        "-t",
        &["0-5"],
        1,
        "Unable to run job: job rejected: 0 is an invalid task id\nExiting.",
    ),
    (
        "-pe",
        &["mpi", "0"],
        1,
        "Unable to run job: \"job\" rejected: pe range must be greater than zero\nExiting.",
    ),
    ("-c", &["q"], 2, "qsub: -c specifier invalid"),
    ("-c", &["0:10"], 2, "qsub: -c argument invalid"),
    ("-N", &["a/b"], 2, "qsub: argument to -N option must not contain /"),
    (
        "-a",
        &["203013010000"],
        7,
        "Invalid month specification.\nqsub: Wrong date/time format \"203013010000\" specified to -a option",
    ),
];

#[test]
fn values_that_do_not_parse_are_refused_in_the_words_of_8_1_9() {
    for &(name, values, exit, what) in REFUSED {
        let fail = request(&[(name, values)]).unwrap_err();
        assert_eq!(
            (fail.exit, fail.diagnostic.what.as_str()),
            (exit, what),
            "{name} {values:?}"
        );
        assert!(
            !fail.diagnostic.fix.is_empty(),
            "{name} {values:?} has no remedy of its own"
        );
    }
}

#[test]
fn no_hold_is_none_whatever_stands_before_it() {
    use proto::job::{HoldChange, Holds};
    let change = |value: &str| JobRequest::new("qalter").hold_change(value);
    let all = Holds {
        user: true,
        operator: true,
        system: true,
    };
    let none = HoldChange {
        set: Holds::default(),
        release: all,
    };
    assert_eq!((change("n").ok(), change("un").ok()), (Some(none), Some(none)));
    assert!(
        ["nu", "n,u", "u,o", "u,", "x", "Uu", "Uo"]
            .into_iter()
            .all(|value| change(value).is_err())
    );
    assert!(change("uO").is_ok_and(|change| change.set.user && change.release.operator));
    assert!(change("uo").is_ok_and(|change| change.set.user && change.set.operator && !change.release.any()));
}
