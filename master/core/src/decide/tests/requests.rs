//! How requests are kept, which of them are refused, and what a job is warned of.

use super::cell::{resources, selection, texts};
use super::scopes::parallel_cell;
use super::*;
use crate::effect::Input;
use crate::event::{Event, StoredObject};
use proto::complex::Complex;
use proto::hostgroup::HostGroup;
use proto::id::{HostName, JobNumber, QueueInstanceName, SubmitSeq};
use proto::job::{HostPath, JobChanges, JobSpec, PeRequest, Requests, Validation};
use proto::load::LoadReport;
use proto::object::{Object, ObjectKind};
use proto::request::SlotRange;
use proto::wire::client::{Answer, AttributeEdit, Command, ObjectAction, ObjectChange};
use std::sync::Arc;

fn hard(text: &str) -> JobSpec {
    JobSpec {
        requests: Requests {
            hard: resources(text),
            ..Requests::default()
        }
        .into(),
        ..job()
    }
}

#[test]
fn requests_are_kept_in_one_form_and_the_later_of_two_names_counts() {
    let mut cell = Cell::ready();
    cell.submit(hard("vf=3G,h_rt=1:0:0,a=lx*,virtual_free=1G"));
    assert_eq!(shown(&cell, 1), ["h_rt=3600", "arch=lx*", "virtual_free=1G"]);
    let changes = JobChanges {
        hard: Some(resources("h_rt=:30:,dwg,h=H1,hostname=h2")),
        ..JobChanges::default()
    };
    cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&["1"]),
            changes: Box::new(changes),
        },
    );
    assert_eq!(shown(&cell, 1), ["h_rt=1800", "display_win_gui=TRUE", "hostname=h2"]);
    cell.assert_replay_is_live();
}

fn shown(cell: &Cell, number: u32) -> Vec<String> {
    cell.job(number)
        .spec
        .requests
        .hard
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// A job that is in the log with requests that a submission refuses today.
fn stored_with(cell: &mut Cell, requests: Requests) -> u32 {
    let number = cell.core.state().last_number.0 + 1;
    let spec = Arc::new(JobSpec {
        requests: requests.into(),
        ..job()
    });
    let seq = SubmitSeq(cell.core.state().last_submit.0 + 1);
    let (waits_for, array_waits_for) = (Vec::new(), Vec::new());
    cell.fact(Event::JobSubmitted {
        seq,
        number: JobNumber(number),
        spec,
        waits_for,
        array_waits_for,
    });
    number
}

#[test]
fn jobs_that_were_accepted_with_a_host_alone_run_there_and_can_be_altered() {
    for pattern in ["@h1", "@@web"] {
        let mut cell = Cell::ready();
        let mut group = HostGroup::template("@web".into()).to_fields();
        group.set("hostlist", "h1");
        cell.store(vec![StoredObject {
            kind: ObjectKind::HostGroup,
            name: "@web".to_owned(),
            fields: Some(group),
        }]);
        let requests = Requests {
            hard_queues: vec![pattern.to_owned()],
            ..Requests::default()
        };
        let refusal = format!("Job was rejected because job requests unknown queue \"{pattern}\"");
        let spec = JobSpec {
            requests: requests.clone().into(),
            ..job()
        };
        assert_eq!(cell.try_submit(spec), Err(refusal.clone()));
        let number = stored_with(&mut cell, requests);
        let alter = |cell: &mut Cell, changes: JobChanges| {
            let jobs = selection(&[&number.to_string()]);
            texts(&cell.command(
                "u1",
                Command::Alter {
                    jobs,
                    changes: Box::new(changes),
                },
            ))
        };
        let named = JobChanges {
            hard_queues: Some(vec![pattern.to_owned()]),
            ..JobChanges::default()
        };
        assert_eq!(alter(&mut cell, named), [refusal]);
        assert!(cell.order(number, 1, "h2").is_err(), "{pattern} is another host");
        let lower = JobChanges {
            priority: Some(-5),
            ..JobChanges::default()
        };
        let said = alter(&mut cell, lower);
        assert_eq!(said, [format!("u1@sub sets scheduling priority of job {number} to -5")]);
        cell.order(number, 1, "h1").unwrap();
        cell.assert_replay_is_live();
    }
}

#[test]
fn requests_of_earlier_versions_are_kept_in_the_form_of_today() {
    let mut cell = Cell::ready();
    let twice = Requests {
        hard: resources("h_rt=0:1:0,vf=3G,virtual_free=1G"),
        ..Requests::default()
    };
    let number = stored_with(&mut cell, twice);
    assert_eq!(shown(&cell, number), ["h_rt=60", "virtual_free=1G"]);
    let mut image = cell.core.state().image();
    for job in image.jobs.values_mut() {
        let requests = Requests {
            hard: resources("h_rt=0:1:0,vf=3G,virtual_free=1G"),
            ..Requests::default()
        };
        job.spec = Arc::new(JobSpec {
            requests: requests.into(),
            ..(*job.spec).clone()
        });
    }
    let restored = image.restored();
    restored.check();
    let kept = restored
        .jobs
        .values()
        .flat_map(|job| job.spec.requests.hard.iter().map(ToString::to_string));
    assert_eq!(kept.collect::<Vec<_>>(), ["h_rt=60", "virtual_free=1G"]);
    cell.assert_replay_is_live();
}

#[test]
fn a_request_names_any_host_of_the_cell() {
    let mut cell = Cell::ready();
    assert!(cell.try_submit(hard("hostname=sub")).is_ok(), "a submit host");
    assert_eq!(
        cell.try_submit(hard("hostname=global")),
        Err("can't resolve hostname \"global\"".to_owned())
    );
}

#[test]
fn requests_follow_the_names_of_the_complex() {
    let mut cell = Cell::ready();
    let set = |cell: &mut Cell, line: &str| {
        let fields = Complex::parse(&format!("{}\n{line}", Complex::built_in()))
            .unwrap()
            .write();
        let (kind, name, action) = (ObjectKind::ComplexTable, String::new(), ObjectAction::Replace(fields));
        texts(&cell.command("boss", Command::Objects(vec![ObjectChange { kind, name, action }])));
    };
    set(&mut cell, "lic l INT <= YES NO 0 0");
    let number = cell.submit(hard("l=0"));
    let alike = cell.submit(hard("l=0"));
    let other = cell.submit(hard("arch=lx*"));
    assert_eq!(shown(&cell, number), ["lic=0"]);
    set(&mut cell, "licence lic TIME <= YES NO 0 0");
    for number in [number, alike] {
        assert_eq!(shown(&cell, number), ["licence=0"]);
    }
    assert_eq!(shown(&cell, other), ["arch=lx*"]);
    cell.core.state().check();
    cell.assert_replay_is_live();
}

fn paths(list: &[(&str, &str)]) -> Vec<HostPath> {
    let path = |(host, path): &(&str, &str)| HostPath {
        host: (!host.is_empty()).then(|| HostName::new(host)),
        path: (*path).to_owned(),
    };
    list.iter().map(path).collect()
}

#[test]
fn paths_are_for_hosts_of_the_cell_and_one_for_each() {
    let mut cell = Cell::ready();
    let twice = "ERROR! two files are specified for the same host";
    for (list, what) in [
        (&[("run_12", "30:00.log")][..], "can't resolve hostname \"run_12\""),
        (&[("", "/a"), ("nohost", "/b")], "can't resolve hostname \"nohost\""),
        (&[("global", "/a")], "can't resolve hostname \"global\""),
        (&[("", "/a"), ("", "/b")], twice),
        (&[("", "/a"), ("", "/a")], twice),
        (&[("h1", "/a"), ("H1", "/b")], twice),
        (&[("h1", "/a"), ("h2", "/b"), ("h1.example.org", "/b")], twice),
    ] {
        for spec in [
            JobSpec {
                stdout: paths(list),
                ..job()
            },
            JobSpec {
                stderr: paths(list),
                ..job()
            },
            JobSpec {
                stdin: paths(list),
                ..job()
            },
            JobSpec {
                shell: paths(list),
                ..job()
            },
        ] {
            assert_eq!(cell.try_submit(spec), Err(what.to_owned()));
        }
    }
    cell.submit(JobSpec {
        stdout: paths(&[("h1", "/a"), ("", "/b"), ("sub", "/c")]),
        ..job()
    });
    let changes = JobChanges {
        stdout: Some(paths(&[("nohost", "/b")])),
        ..JobChanges::default()
    };
    let reply = cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&["1"]),
            changes: Box::new(changes),
        },
    );
    assert_eq!(texts(&reply), ["can't resolve hostname \"nohost\""]);
}

#[test]
fn only_the_path_of_a_shell_may_be_empty() {
    let mut cell = Cell::ready();
    let empty = "paths may not be empty strings";
    assert_eq!(
        cell.try_submit(JobSpec {
            stdout: paths(&[("h1", "")]),
            ..job()
        }),
        Err(empty.to_owned())
    );
    assert_eq!(
        cell.try_submit(JobSpec {
            stderr: paths(&[("", "")]),
            ..job()
        }),
        Err(empty.to_owned())
    );
    cell.submit(JobSpec {
        shell: paths(&[("h1", "")]),
        ..job()
    });
}

#[test]
fn predecessors_are_whole_jobs() {
    let mut cell = Cell::ready();
    cell.submit(array("1-3"));
    for name in ["1.1", "1x", "1 2", "1.1-2", "7*"] {
        let spec = JobSpec {
            predecessors: vec![name.to_owned()],
            ..job()
        };
        assert_eq!(cell.try_submit(spec), Err(format!("denied: job \"{name}\" not found")));
    }
    let spec = JobSpec {
        array_predecessors: vec!["1.1".to_owned()],
        ..array("1-3")
    };
    assert_eq!(cell.try_submit(spec), Err("denied: job \"1.1\" not found".to_owned()));
    let changes = JobChanges {
        predecessors: Some(vec!["1.2".to_owned()]),
        ..JobChanges::default()
    };
    cell.submit(job());
    let reply = cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&["2"]),
            changes: Box::new(changes),
        },
    );
    assert_eq!(texts(&reply), ["denied: job \"1.2\" not found"]);
    let changes = JobChanges {
        predecessors: Some(vec!["99".to_owned(), "1".to_owned()]),
        ..JobChanges::default()
    };
    let reply = cell.command(
        "u1",
        Command::Alter {
            jobs: selection(&["2"]),
            changes: Box::new(changes),
        },
    );
    let said = "modified job id hold list of job 2\n   blocking jobs: 1\n   exited jobs:   99";
    assert_eq!(texts(&reply)[0], said);
}

/// The warnings of a submission.
fn warnings(cell: &mut Cell, spec: JobSpec) -> Vec<(String, String)> {
    let reply = cell.command("u1", Command::Submit(Box::new(spec)));
    let warning = |answer: &Answer| match answer {
        Answer::Warning(warning) => Some((warning.what.clone(), warning.fix.clone())),
        Answer::Done(_) | Answer::Refused(_) => None,
    };
    assert!(reply.data.is_some(), "{reply:?}");
    reply.answers.iter().filter_map(warning).collect()
}

#[test]
fn a_job_is_warned_of_what_was_hardly_meant() {
    let mut cell = Cell::ready();
    let said = warnings(&mut cell, hard("h_rt=10m"));
    let fix = "write 10 minutes as h_rt=0:10:0 or h_rt=600";
    assert_eq!(
        said,
        [("warning: -l h_rt=10m is 10000000 seconds".to_owned(), fix.to_owned())]
    );
    assert_eq!(
        warnings(&mut cell, hard("s_rt=2K"))[0].0,
        "warning: -l s_rt=2K is 2048 seconds"
    );
    for quiet in [
        "h_rt=600",
        "h_rt=0:10:0",
        "h_rt=INFINITY",
        "h_rt=0x1f",
        "h_vmem=10m",
        "",
    ] {
        assert!(warnings(&mut cell, hard(quiet)).is_empty(), "{quiet}");
    }
    let predecessors = vec!["99".to_owned(), "nosuch".to_owned(), "1".to_owned()];
    let said = warnings(&mut cell, JobSpec { predecessors, ..job() });
    let whats: Vec<&str> = said.iter().map(|(what, _)| what.as_str()).collect();
    let gone = "warning: -hold_jid 99: there is no job 99, so nothing is waited for";
    let unnamed = "warning: -hold_jid nosuch: no job of yours has such a name, so nothing is waited for";
    assert_eq!(whats, [gone, unnamed]);
}

/// `qsub` looks for these places in the lines of a script, where attributes have the names that
/// were typed.
#[test]
fn what_is_said_of_a_request_has_its_place_as_it_was_typed() {
    let mut cell = parallel_cell();
    for host in ["h1", "h2"] {
        set_values(&mut cell, ObjectKind::ExecHost, host, "lic=3");
    }
    let mut place = |spec: JobSpec| {
        let reply = cell.command("u1", Command::Submit(Box::new(spec)));
        let said = reply.answers.iter().find_map(|answer| match answer {
            Answer::Warning(said) | Answer::Refused(said) => Some(said.place.clone()),
            Answer::Done(_) => None,
        });
        said.unwrap_or_default()
    };
    for (requests, expected) in [
        ("h_rt=60,h=nohost", "-l h"),
        ("hostname=*,h=nohost", "-l h"),
        ("h=*,hostname=nohost", "-l hostname"),
        ("h_rt=zzz", "-l h_rt=zzz"),
        ("q=all.q@h1", "-l q=all.q@h1"),
        ("nosuch=1", "-l nosuch=1"),
        ("h_rt=10m", "-l h_rt"),
        ("lic=5", "-l lic=5"),
    ] {
        assert_eq!(place(hard(requests)), expected, "{requests}");
    }
    // Of two lists that ask for it, the value tells which one is meant.
    let requests = Requests {
        hard: resources("q=all.q@h1"),
        soft: resources("q=other"),
        ..Requests::default()
    };
    let both = JobSpec {
        requests: requests.into(),
        ..job()
    };
    assert_eq!(place(both), "-l q=all.q@h1");
    let predecessors = vec!["1".to_owned(), "9x".to_owned()];
    assert_eq!(place(JobSpec { predecessors, ..job() }), "-hold_jid 9x");
    let array_predecessors = vec!["9x".to_owned()];
    let spec = JobSpec {
        array_predecessors,
        ..array("1-3")
    };
    assert_eq!(place(spec), "-hold_jid_ad 9x");
    let predecessors = vec!["nosuch".to_owned()];
    assert_eq!(place(JobSpec { predecessors, ..job() }), "-hold_jid nosuch");
}

fn set_values(cell: &mut Cell, kind: ObjectKind, name: &str, value: &str) {
    let (edit, attribute) = (AttributeEdit::Replace, "complex_values".to_owned());
    let action = ObjectAction::Attribute {
        edit,
        attribute,
        value: value.to_owned(),
    };
    cell.command(
        "boss",
        Command::Objects(vec![ObjectChange {
            kind,
            name: name.to_owned(),
            action,
        }]),
    );
}

#[test]
fn a_job_that_can_never_run_is_accepted_with_a_warning() {
    let mut cell = parallel_cell();
    for host in ["h1", "h2"] {
        set_values(&mut cell, ObjectKind::ExecHost, host, "lic=3");
    }
    let asks = |text: &str, slots: &str| {
        let pe = (!slots.is_empty()).then(|| PeRequest {
            name: "mpi".into(),
            slots: SlotRange::parse(slots).unwrap(),
        });
        let requests = Requests {
            hard: resources(text),
            pe,
            ..Requests::default()
        };
        JobSpec {
            requests: requests.into(),
            ..job()
        }
    };
    let said = warnings(&mut cell, asks("lic=5", ""));
    let what = "warning: -l lic=5: no queue can ever run this job as the cluster is configured";
    assert_eq!(said.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), [what]);
    let said = warnings(&mut cell, asks("", "40"));
    assert_eq!(said[0].0, "warning: -pe mpi 40: at most 0 slots can ever be had");
    assert!(warnings(&mut cell, asks("h_rt=60", "")).is_empty());
    // Who asks for more than a warning is answered by -w alone.
    let spec = JobSpec {
        validation: Validation::Warn,
        ..asks("lic=5", "")
    };
    assert_eq!(
        warnings(&mut cell, spec)
            .iter()
            .map(|(what, _)| what.as_str())
            .collect::<Vec<_>>(),
        ["warning: no suitable queues"]
    );
}

/// Sends a load report: its number, whether it is complete, values as `name=value`, and the values
/// that it withdraws.
fn report(cell: &mut Cell, host: &str, (sequence, full): (u64, bool), values: &str, withdrawn: &[&str]) {
    let pairs = values
        .split_whitespace()
        .map(|pair| pair.split_once('=').expect("a name and a value"));
    let values = [(
        host.into(),
        pairs.map(|(name, value)| (name.into(), value.to_owned())).collect(),
    )]
    .into();
    let withdrawn = [(host.into(), withdrawn.iter().map(|name| (*name).into()).collect())].into();
    let withdrawn = if full { Default::default() } else { withdrawn };
    let report = Box::new(LoadReport {
        sequence,
        full,
        values,
        withdrawn,
        ..LoadReport::default()
    });
    let connection = cell.connection(host);
    cell.input(Input::LoadReport { connection, report });
}

/// Asks for three things that may never be had. Returns how many warnings each leads to, and
/// whether their verdicts were known before. They are those that are found anew.
fn verdicts(cell: &mut Cell) -> (bool, [usize; 3]) {
    let is_known = cell.core.memory.verdicts.len() == 3;
    let ask = |cell: &mut Cell| ["num_proc=8", "lic=5", "mem_free=3G"].map(|text| warnings(cell, hard(text)).len());
    cell.core.memory.verdicts.clear();
    let anew = ask(cell);
    assert_eq!((cell.core.memory.verdicts.len(), ask(cell)), (3, anew));
    (is_known, anew)
}

#[test]
fn what_can_never_be_had_is_found_once_until_something_changes_on_which_that_rests() {
    let mut cell = parallel_cell();
    cell.submit(job());
    for host in ["h1", "h2"] {
        set_values(&mut cell, ObjectKind::ExecHost, host, "lic=3");
    }
    let small = "num_proc=4 mem_free=1G mem_total=2G";
    assert_eq!(verdicts(&mut cell), (false, [0, 1, 0]));
    report(&mut cell, "h1", (1, true), small, &[]);
    assert_eq!(verdicts(&mut cell), (false, [0, 1, 0]), "h2 may have more");
    report(&mut cell, "h2", (1, true), small, &[]);
    assert_eq!(verdicts(&mut cell), (false, [1, 1, 1]));
    assert_eq!(verdicts(&mut cell), (true, [1, 1, 1]), "nothing happened");
    report(&mut cell, "h1", (2, false), "mem_free=2G num_proc=4", &[]);
    assert_eq!(
        verdicts(&mut cell),
        (true, [1, 1, 1]),
        "a value that may change, and one that is as before"
    );
    cell.order(1, 1, "h1").unwrap();
    assert_eq!(verdicts(&mut cell), (true, [1, 1, 1]), "a start");
    report(&mut cell, "h1", (3, false), "num_proc=8", &[]);
    assert_eq!(
        verdicts(&mut cell),
        (false, [0, 1, 1]),
        "a value that describes the host"
    );
    report(&mut cell, "h1", (4, false), "", &["mem_total"]);
    assert_eq!(verdicts(&mut cell), (false, [0, 1, 0]), "a value that is gone");
    report(&mut cell, "h1", (5, false), "mem_total=4G", &[]);
    assert_eq!(verdicts(&mut cell), (false, [0, 1, 0]), "a new value");
    cell.disconnect("h1");
    assert!(!verdicts(&mut cell).0, "a host is lost");
    set_values(&mut cell, ObjectKind::ExecHost, "h1", "lic=5");
    let (is_known, [_, lic, _]) = verdicts(&mut cell);
    assert_eq!((is_known, lic), (false, 0), "a configuration");
}

#[test]
fn unknown_names_are_answered_with_the_nearest_that_exists() {
    let mut cell = parallel_cell();
    let mut fix = |spec: JobSpec| {
        let reply = cell.command("u1", Command::Submit(Box::new(spec)));
        let Some(Answer::Refused(refusal)) = reply.answers.last() else {
            panic!("{reply:?}")
        };
        refusal.fix.clone()
    };
    let queue = |name: &str| Requests {
        hard_queues: vec![name.to_owned()],
        ..Requests::default()
    };
    assert_eq!(fix(hard("h_vmen=1G")), "did you mean h_vmem?");
    assert_eq!(
        fix(JobSpec {
            requests: queue("al.q").into(),
            ..job()
        }),
        "did you mean all.q?"
    );
    assert_eq!(
        fix(JobSpec {
            requests: queue("@h1").into(),
            ..job()
        }),
        "write *@h1 for all queues there"
    );
    assert_eq!(
        fix(JobSpec {
            requests: queue("all.q@nosuch").into(),
            ..job()
        }),
        "qconf -sql lists the queues"
    );
    let pe = PeRequest {
        name: "mpo".to_owned(),
        slots: SlotRange::parse("2").unwrap(),
    };
    let requests = Requests {
        pe: Some(pe),
        ..Requests::default()
    };
    assert_eq!(
        fix(JobSpec {
            requests: requests.into(),
            ..job()
        }),
        "did you mean mpi?"
    );
}

#[test]
fn capacities_and_limits_by_a_shortcut_are_those_of_the_attribute() {
    let mut cell = parallel_cell();
    set_values(&mut cell, ObjectKind::ExecHost, "h1", "dk=5,mem=2G,disk=7");
    set_values(&mut cell, ObjectKind::Queue, "all.q", "mem=4G,[h1=mem=1G]");
    let config = &cell.core.state().config;
    assert_eq!(config.exec_hosts["h1"].complex_values.to_string(), "memory=2G,disk=7");
    let on_h1 = config
        .settings_in(&QueueInstanceName {
            queue: "all.q".into(),
            host: "h1".into(),
        })
        .unwrap();
    assert_eq!(on_h1.complex_values.to_string(), "memory=1G");
    let said = warnings(&mut cell, hard("mem=2G,h=h1"));
    assert_eq!(said.len(), 1, "a queue instance with 1G has no room for 2G: {said:?}");
    assert!(warnings(&mut cell, hard("mem=1G,h=h1")).is_empty());
}
