use super::cell::{owner, resources, selection, texts};
use super::*;
use crate::core::Core;
use crate::effect::{MasterHost, UserLimits};
use crate::event::Event;
use proto::diagnostic::Code;
use proto::id::{JobNumber, RequestId};
use proto::job::{
    JobChanges, JobSpec, MailEvents, PeRequest, Program, Requests, ScriptDigest, StoredScript, Validation,
};
use proto::pe::AllocationRule;
use proto::request::SlotRange;
use proto::time::Wall;
use proto::wire::client::{Answer, Command};
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
fn a_job_is_accepted_and_counted() {
    let mut cell = Cell::ready();
    assert_eq!(cell.submit(job()), 1);
    assert_eq!(cell.submit(array("1-10:2")), 2);
    assert_eq!(cell.job(2).untouched.len(), 5);
    cell.assert_replay_is_live();
}

fn with(change: impl FnOnce(&mut JobSpec)) -> JobSpec {
    let mut spec = job();
    change(&mut spec);
    spec
}

fn requesting(change: impl FnOnce(&mut Requests)) -> JobSpec {
    let mut requests = Requests::default();
    change(&mut requests);
    with(|spec| spec.requests = requests.into())
}

/// Each job is refused in these words, and takes no number.
fn are_refused<const N: usize>(cases: [(JobSpec, &str); N]) {
    let mut cell = Cell::ready();
    for (spec, text) in cases {
        assert_eq!(cell.try_submit(spec), Err(text.to_owned()));
    }
    assert_eq!(cell.submit(job()), 1, "a rejected job takes no number");
}

#[test]
fn requests_that_cannot_be_met_are_refused_in_the_words_of_8_1_9() {
    are_refused([
        (hard("nosuchres=1"), "unknown resource \"nosuchres\""),
        (hard("h_vmem=abc"), "attribute \"h_vmem\" is not a memory value"),
        (hard("h_vmem="), "denied: missing value for resource \"h_vmem\""),
        (
            hard("np_load_avg=1"),
            "resource \"np_load_avg\" configured as non requestable",
        ),
        (
            hard("slots=2"),
            "\"job\" denied: use parallel environments instead of requesting slots explicitly",
        ),
        (hard("h=nosuchhost"), "can't resolve hostname \"nosuchhost\""),
        (
            hard("q=all.q@h1"),
            "Queue instance names are not allowed in -l resource requests",
        ),
        (
            requesting(|to| to.hard_queues = vec!["nosuch.q".to_owned()]),
            "Job was rejected because job requests unknown queue \"nosuch.q\"",
        ),
        (
            requesting(|to| to.soft_queues = vec!["nosuch.q".to_owned()]),
            "Job was rejected because job requests unknown queue \"nosuch.q\"",
        ),
        (
            requesting(|to| {
                to.pe = Some(PeRequest {
                    name: "nosuchpe".to_owned(),
                    slots: SlotRange::parse("2").unwrap(),
                })
            }),
            "job rejected: the requested parallel environment \"nosuchpe\" does not exist",
        ),
        (
            requesting(|to| to.master_queues = vec!["all.q".into()]),
            "job rejected: specification of master queue is not allowed for non-parallel jobs",
        ),
        (
            requesting(|to| to.allocation_rule = Some(AllocationRule::FillUp)),
            "job rejected: specification of an allocation rule is not allowed for non-parallel jobs",
        ),
    ]);
}

#[test]
fn jobs_beyond_rights_and_limits_are_refused_in_the_words_of_8_1_9() {
    are_refused([
        (
            with(|to| to.priority = 1),
            "job rejected: positive submission priority requires operator privileges",
        ),
        (
            with(|to| to.project = Some("x".into())),
            "job rejected: the requested project \"x\" does not exist",
        ),
        (
            array("1-75001"),
            "job rejected: you tried to submit a job with more than 75000 tasks",
        ),
        (
            with(|to| to.task_concurrency = Some(2)),
            "invalid \"task concurrency\" value in job request",
        ),
        (
            with(|to| to.deadline = Some(Wall(1))),
            "job rejected: the user \"u1\" is not a deadline initiation user",
        ),
        (
            with(|to| {
                to.program = Program::Script {
                    path: "empty.sh".to_owned(),
                    content: Arc::from(&b""[..]),
                }
            }),
            "job rejected: no script in your request",
        ),
        (
            with(|to| to.owner = owner("root").into()),
            "job rejected: your user id 0 is lower than minimum user id 1000 of cluster configuration",
        ),
    ]);
}

#[test]
fn names_are_refused_in_the_words_of_8_1_9() {
    are_refused([
        (
            with(|to| to.name = "9abc".into()),
            "denied: \"9abc\" is not a valid object name (cannot start with a digit)",
        ),
        (
            with(|to| to.name = "bad:name".into()),
            "Colon (':') not allowed in objectname",
        ),
        (
            with(|to| to.name = "bad*name".into()),
            "Asterisk ('*') not allowed in objectname",
        ),
        (
            with(|to| to.name = "NONE".into()),
            "Keyword (\"NONE\") not allowed as objectname",
        ),
        (
            with(|to| to.name = "all".into()),
            "Keyword (\"ALL\") not allowed as objectname",
        ),
        (
            with(|to| to.name = String::new()),
            "job rejected cause there is no job_name in the request",
        ),
        (
            with(|to| to.account = Some("bad:acct".into())),
            "Colon (':') not allowed in objectname",
        ),
    ]);
}

#[test]
fn a_malformed_expression_is_refused_at_submit_once_with_its_place_and_a_fix() {
    let mut cell = Cell::ready();
    assert!(
        cell.core.state().config.exec_hosts.len() > 1,
        "one answer for several hosts"
    );
    for (request, text) in [
        ("arch=lx|", "Parse error on position 3 of the expression \"lx|\"."),
        ("arch=(lx*", "Parse error on position 4 of the expression \"(lx*\"."),
        (
            "hostname=h[!1]",
            "Parse error on position 3 of the expression \"h[!1]\".",
        ),
        ("qname=a&&b", "Parse error on position 3 of the expression \"a&&b\"."),
    ] {
        let reply = cell.command("u1", Command::Submit(Box::new(hard(request))));
        let [Answer::Refused(refusal)] = &reply.answers[..] else {
            panic!("{request}: {reply:?}")
        };
        assert_eq!((refusal.code, refusal.what.as_str()), (Code::BadSyntax, text));
        assert_eq!(
            (refusal.place.as_str(), refusal.fix.is_empty()),
            (format!("-l {request}").as_str(), false)
        );
        assert!(reply.data.is_none());
    }
    assert!(cell.core.state().jobs.is_empty());
}

#[test]
fn what_8_1_9_accepts_is_accepted() {
    let mut cell = Cell::ready();
    let requests = Requests {
        hard_queues: vec!["a*.q".into(), "all.q@h1".into()],
        ..Requests::default()
    };
    for spec in [
        hard("h_vmem=1.5G,h_rt=90"),
        hard("h=h1"),
        hard("h=h*"),
        hard("arch=lx*|sol*"),
        JobSpec {
            requests: requests.into(),
            ..job()
        },
        JobSpec {
            project: Some(String::new()),
            ..job()
        },
        JobSpec {
            priority: -1023,
            ..job()
        },
        JobSpec {
            predecessors: vec!["99999".into(), "nosuch".into(), "wild*".into()],
            ..job()
        },
    ] {
        assert!(cell.try_submit(spec).is_ok());
    }
    assert!(
        cell.job(8).waits_for.is_empty(),
        "what does not exist is not waited for"
    );
}

#[test]
fn a_name_has_no_control_characters() {
    let mut cell = Cell::ready();
    for (name, expected) in [
        ("a\u{c}b", "control character \\u{c} not allowed in objectname"),
        ("a\nb", "Newline ('\\n') not allowed in objectname"),
    ] {
        let said = cell.try_submit(JobSpec {
            name: name.into(),
            ..job()
        });
        assert_eq!(said, Err(expected.to_owned()));
    }
}

#[test]
fn a_wish_that_nothing_fulfils_yet_is_warned_of_and_the_job_accepted() {
    let mut cell = Cell::ready();
    let reserving = JobSpec { reserve: true, ..job() };
    let mailing = JobSpec {
        mail: MailEvents {
            end: true,
            ..MailEvents::default()
        },
        ..job()
    };
    let notified = JobSpec {
        notify: true,
        rerunnable: Some(true),
        mail_to: vec!["u1".into()],
        ..job()
    };
    for (spec, warnings) in [
        (job(), &[][..]),
        (notified, &[]),
        (
            reserving,
            &["warning: -R y has no effect: max_reservation of the scheduler configuration is 0"],
        ),
        (mailing, &[]),
    ] {
        let reply = cell.command("u1", Command::Submit(Box::new(spec)));
        assert_eq!(texts(&reply), warnings);
        assert!(reply.answers.iter().all(|answer| matches!(answer, Answer::Warning(_))));
        assert!(reply.data.is_some());
    }
}

fn changed(change: impl FnOnce(&mut JobChanges)) -> JobChanges {
    let mut changes = JobChanges::default();
    change(&mut changes);
    changes
}

#[test]
fn qalter_warns_of_the_same_wishes() {
    let mut cell = Cell::ready();
    cell.submit(job());
    let mail = MailEvents {
        end: true,
        ..MailEvents::default()
    };
    let reserving = "warning: -R y has no effect: max_reservation of the scheduler configuration is 0";
    for (changes, warnings) in [
        (changed(|to| to.priority = Some(-1)), &[][..]),
        (changed(|to| to.mail = Some(MailEvents::default())), &[]),
        (changed(|to| to.mail_to = Some(vec!["u2".into()])), &[]),
        (changed(|to| to.mail = Some(mail)), &[]),
        (changed(|to| to.reserve = Some(false)), &[]),
        (changed(|to| to.reserve = Some(true)), &[reserving]),
        (changed(|to| to.reserve = Some(true)), &[reserving]),
    ] {
        let reply = cell.command(
            "u1",
            Command::Alter {
                jobs: selection(&["1"]),
                changes: Box::new(changes),
            },
        );
        let warned = reply.answers.iter().filter_map(|answer| match answer {
            Answer::Warning(warning) => Some(warning.what.as_str()),
            Answer::Done(_) => None,
            Answer::Refused(refusal) => panic!("{refusal}"),
        });
        assert_eq!(warned.collect::<Vec<_>>(), warnings);
    }
}

#[test]
fn only_submit_hosts_submit() {
    let mut cell = Cell::ready();
    let reply = cell.command_as(RequestId(99), "u1", "adm", Command::Submit(Box::new(job())));
    assert_eq!(texts(&reply), ["denied: host \"adm\" is no submit host"]);
    let reply = cell.command_as(RequestId(98), "u1", "else", Command::Submit(Box::new(job())));
    assert_eq!(texts(&reply), ["denied: host \"else\" is no submit host"]);
}

#[test]
fn a_user_is_the_one_the_socket_names() {
    let mut cell = Cell::ready();
    let spec = JobSpec {
        owner: owner("u2").into(),
        submit_host: "h1".into(),
        ..job()
    };
    cell.command("u1", Command::Submit(Box::new(spec)));
    assert_eq!(cell.job(1).spec.owner, owner("u1").into());
    assert_eq!(cell.job(1).spec.submit_host.as_str(), "sub");
}

#[test]
fn full_cells_and_users_with_many_jobs_get_exit_code_25() {
    let mut cell = Cell::ready();
    cell.set_cluster(&[("max_u_jobs", "2"), ("max_jobs", "3")]);
    cell.submit(job());
    cell.submit(job());
    let reply = cell.command("u1", Command::Submit(Box::new(job())));
    assert_eq!(
        texts(&reply),
        ["job rejected: only 2 jobs are allowed per user (current job count: 2)"]
    );
    let Answer::Refused(refusal) = &reply.answers[0] else {
        panic!("refused")
    };
    assert_eq!((refusal.code, refusal.code.exit_code()), (Code::JobLimit, 25));
    cell.submit(JobSpec {
        owner: owner("u2").into(),
        ..job()
    });
    let text = cell.try_submit(JobSpec {
        owner: owner("u2").into(),
        ..job()
    });
    assert_eq!(
        text,
        Err("job rejected: only 3 jobs are allowed per cluster".to_owned())
    );
    cell.qdel("u1", &["1"]);
    assert!(cell.try_submit(job()).is_ok());
}

/// A cell in which a user may have so many jobs, with so many bytes.
fn limited(jobs: u64, job_bytes: u64) -> Cell {
    let mut cell = Cell::ready();
    let site = MasterHost {
        users: UserLimits { jobs, job_bytes },
        ..MasterHost::default()
    };
    cell.core = std::mem::replace(&mut cell.core, Core::new(crate::state::State::new())).at(site);
    cell
}

/// A job whose script of so many bytes lies apart.
fn with_script(name: u8, bytes: u64) -> JobSpec {
    let script = StoredScript {
        digest: ScriptDigest([name; 32]),
        bytes,
    };
    JobSpec {
        program: Program::Stored {
            path: "long.sh".to_owned(),
            script: Box::new(script),
        },
        ..job()
    }
}

#[test]
fn the_jobs_of_one_user_have_a_limit_of_the_master() {
    let mut cell = limited(2, u64::MAX);
    cell.submit(job());
    cell.submit(job());
    let text = cell.try_submit(job());
    assert_eq!(
        text,
        Err("job rejected: only 2 jobs are allowed per user (current job count: 2)".to_owned())
    );
    cell.submit(JobSpec {
        owner: owner("u2").into(),
        ..job()
    });
    cell.qdel("u1", &["1"]);
    assert!(cell.try_submit(job()).is_ok());
}

#[test]
fn the_scripts_of_one_user_have_a_limit_and_equal_ones_count_once() {
    let mut cell = limited(u64::MAX, 25_000_000);
    cell.submit(with_script(1, 12_000_000));
    cell.submit(with_script(1, 12_000_000));
    let second = cell.submit(with_script(2, 12_000_000));
    let reply = cell.command("u1", Command::Submit(Box::new(with_script(3, 12_000_000))));
    let Answer::Refused(refusal) = &reply.answers[0] else {
        panic!("refused")
    };
    assert_eq!(refusal.code, Code::JobLimit);
    assert!(
        refusal.why.contains("24000000 bytes") && refusal.place.contains("job_bytes_per_user"),
        "{refusal}"
    );
    assert!(!refusal.fix.is_empty());
    cell.submit(JobSpec {
        owner: owner("u2").into(),
        ..with_script(3, 12_000_000)
    });
    cell.submit(job());
    cell.qdel("u1", &["1"]);
    assert!(
        cell.try_submit(with_script(3, 12_000_000)).is_err(),
        "another job has that script too"
    );
    cell.qdel("u1", &[&second.to_string()]);
    assert!(cell.try_submit(with_script(3, 12_000_000)).is_ok());
}

#[test]
fn long_environments_and_arguments_count_too_also_where_a_job_is_altered() {
    let mut cell = limited(u64::MAX, 1_000_000);
    let long = |bytes: usize| vec![("X".to_owned(), "x".repeat(bytes))];
    cell.submit(JobSpec {
        environment: long(600_000).into(),
        ..job()
    });
    assert!(
        cell.try_submit(JobSpec {
            environment: long(600_000).into(),
            ..job()
        })
        .is_err()
    );
    assert!(
        cell.try_submit(JobSpec {
            args: vec!["x".repeat(600_000)],
            ..job()
        })
        .is_err()
    );
    let ordinary = cell.submit(JobSpec {
        environment: long(10_000).into(),
        ..job()
    });
    let alter = |cell: &mut Cell, bytes| {
        let jobs = selection(&[&ordinary.to_string()]);
        let changes = JobChanges {
            environment: Some(long(bytes)),
            ..JobChanges::default()
        };
        let reply = cell.command(
            "u1",
            Command::Alter {
                jobs,
                changes: Box::new(changes),
            },
        );
        reply.answers.iter().any(Answer::is_refusal)
    };
    assert!(alter(&mut cell, 600_000));
    assert!(!alter(&mut cell, 300_000));
}

#[test]
fn a_verified_job_is_not_submitted() {
    let mut cell = Cell::ready();
    let reply = cell.command(
        "u1",
        Command::Submit(Box::new(JobSpec {
            validation: Validation::Verify,
            ..job()
        })),
    );
    assert_eq!(texts(&reply), ["verification: found suitable queue(s)"]);
    let spec = JobSpec {
        validation: Validation::Verify,
        ..hard("num_proc=99,h=h1")
    };
    let reply = cell.command("u1", Command::Submit(Box::new(spec)));
    let said = texts(&reply).join("\n");
    assert!(
        said.starts_with("Job 1 ") && said.ends_with("\nverification: no suitable queues"),
        "{said}"
    );
    assert_eq!(cell.submit(job()), 1);
}

#[test]
fn a_repeated_request_gets_the_first_answer() {
    let mut cell = Cell::ready();
    let command = || Command::Submit(Box::new(job()));
    let first = cell.command_as(RequestId(500), "u1", "sub", command());
    let events = cell.log.len();
    let second = cell.command_as(RequestId(500), "u1", "sub", command());
    assert_eq!(first, second);
    assert_eq!(cell.log.len(), events, "nothing happens twice");
    assert!(
        cell.log
            .iter()
            .filter(|record| record.request == Some(RequestId(500)))
            .count()
            >= 2
    );
    assert!(matches!(cell.log.last().unwrap().event, Event::RequestAnswered { .. }));
}

#[test]
fn a_repeat_is_known_over_a_restart_and_in_another_session() {
    let mut cell = Cell::ready();
    let first = cell.command_as(RequestId(500), "u1", "sub", Command::Submit(Box::new(job())));
    cell.core = crate::core::Core::new(cell.core.state().clone());
    let second = cell.command_as(RequestId(500), "u1", "sub", Command::Submit(Box::new(job())));
    assert_eq!((first, cell.core.state().jobs.len()), (second, 1));
}

#[test]
fn a_refused_request_may_be_asked_again() {
    let mut cell = Cell::ready();
    let reply = cell.command_as(RequestId(7), "u1", "sub", Command::Submit(Box::new(hard("nosuch=1"))));
    assert!(reply.answers[0].is_refusal());
    let reply = cell.command_as(RequestId(7), "u1", "sub", Command::Submit(Box::new(job())));
    assert!(reply.data.is_some());
}

#[test]
fn numbers_roll_over_and_skip_those_in_use() {
    let mut cell = Cell::ready();
    cell.submit(job());
    cell.core.state.last_number = JobNumber(9_999_998);
    assert_eq!(cell.submit(job()), 9_999_999);
    assert_eq!(cell.submit(job()), 2);
}

#[test]
fn names_of_512_letters_are_refused_and_shorter_ones_stay_whole() {
    let mut cell = Cell::ready();
    cell.submit(JobSpec {
        name: "a".repeat(511),
        ..job()
    });
    assert_eq!(cell.job(1).spec.name.len(), 511);
    let what = "job name too long, maximum allowed length is 512 characters";
    assert_eq!(
        cell.try_submit(JobSpec {
            name: "a".repeat(512),
            ..job()
        }),
        Err(what.to_owned())
    );
    let what = "string is longer than 512, this is not allowed for objectnames";
    let long = || Some("a".repeat(513));
    for spec in [
        JobSpec {
            account: long(),
            ..job()
        },
        JobSpec {
            project: long(),
            ..job()
        },
        JobSpec {
            checkpoint: long(),
            ..job()
        },
    ] {
        assert_eq!(cell.try_submit(spec), Err(what.to_owned()));
    }
    cell.submit(JobSpec {
        account: Some("a".repeat(512)),
        ..job()
    });
}
