//! Forms of arguments, and how explanations and ends read.

use super::target::{TargetJob, Word, word};
use super::{Style, ended, text};
use crate::output::time::Clock;
use jiff::tz::TimeZone;
use proto::accounting::AccountingRecord;
use proto::id::{JobNumber, TaskId};
use proto::job::{Condition, GrantedSlots, Phase};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::usage::{Evidence, FailedCode, LimitHit};
use proto::wire::view::{Comparison, Explanation, Holder, OrderPosition, Predecessor, ReasonContext, WaitReason};

fn style() -> Style {
    Style {
        is_json: false,
        has_order: false,
        clock: Clock::new(TimeZone::UTC),
    }
}

#[test]
fn a_word_is_what_qsub_prints_and_other_commands_take() {
    let number = |number, tasks: &[&str]| {
        let tasks = tasks.iter().map(|range| TaskRange::parse(range).unwrap()).collect();
        Word::Number(TargetJob {
            number: JobNumber(number),
            tasks,
        })
    };
    assert_eq!(word("67").unwrap(), number(67, &[]));
    assert_eq!(word("67.1-4:1").unwrap(), number(67, &["1-4:1"]));
    assert_eq!(word("129.3").unwrap(), number(129, &["3"]));
    assert_eq!(
        word("run.sh").unwrap(),
        Word::Name {
            whole: "run.sh",
            with_tasks: None
        }
    );
    let range = TaskRange::parse("3").unwrap();
    assert_eq!(
        word("run.sh.3").unwrap(),
        Word::Name {
            whole: "run.sh.3",
            with_tasks: Some(("run.sh", range))
        }
    );
    assert_eq!(
        word("ar*").unwrap(),
        Word::Name {
            whole: "ar*",
            with_tasks: None
        }
    );
    let refused = word("67.x").unwrap_err();
    assert_eq!(refused.exit, 7);
    assert!(refused.diagnostic.fix.contains("67.1-4:1"), "{refused:?}");
}

fn reason(text: &str) -> WaitReason {
    WaitReason {
        text: text.to_owned(),
        attribute: None,
        level: "job".to_owned(),
        needed: None,
        free: None,
        capacity: None,
        count: 1,
        examples: Vec::new(),
        hint: None,
        context: ReasonContext::default(),
    }
}

/// A consumable that other jobs hold.
fn short_licence() -> WaitReason {
    let holder = Holder {
        job: Some(JobNumber(70)),
        owner: "ann".to_owned(),
        amount: "1".to_owned(),
        until: Some(Wall::from_seconds(1_795_223_395)),
        ..Holder::default()
    };
    WaitReason {
        attribute: Some("lic".to_owned()),
        needed: Some("1".to_owned()),
        free: Some("0".to_owned()),
        capacity: Some("2".to_owned()),
        context: ReasonContext {
            holders: vec![holder],
            holders_count: 4,
            ..ReasonContext::default()
        },
        ..reason("cannot run globally because it offers only lic=0")
    }
}

/// A load value above its threshold.
fn high_load() -> WaitReason {
    WaitReason {
        attribute: Some("np_load_avg".to_owned()),
        needed: Some("0.1".to_owned()),
        free: Some("1.61".to_owned()),
        context: ReasonContext {
            comparison: Comparison::Threshold,
            ..ReasonContext::default()
        },
        ..reason("np_load_avg is 1.61, the threshold is 0.1")
    }
}

/// A predecessor that runs.
fn waits_for_job() -> WaitReason {
    let first = Predecessor {
        job: JobNumber(71),
        name: "first".to_owned(),
        owner: "bob".to_owned(),
        state: "runs".to_owned(),
        place: Some("all.q@vm".to_owned()),
        since: Some(Wall::from_seconds(1_795_223_395)),
        until: None,
    };
    WaitReason {
        context: ReasonContext {
            predecessors: vec![first],
            until: Some(Wall::from_seconds(1_795_223_395)),
            ..ReasonContext::default()
        },
        hint: Some("wait".to_owned()),
        ..reason("it waits for job 71")
    }
}

#[test]
fn an_explanation_names_holders_times_and_predecessors() {
    let explained = Explanation {
        job: 5,
        summary: "It may not start yet.".to_owned(),
        reasons: vec![short_licence(), high_load(), waits_for_job()],
        pending: 1,
        order: Some(OrderPosition::default()),
        ..Explanation::default()
    };
    let expected = "\
job 5: It may not start yet.
  cannot run globally because it offers only lic=0
    lic: needed 1, free 0, of 2
    held by: job 70 of ann (1, free by 11/21/2026 01:09:55), and 3 more
  np_load_avg is 1.61, the threshold is 0.1
  it waits for job 71
    until 11/21/2026 01:09:55
    job 71 \"first\" of bob: runs in all.q@vm since 11/21/2026 01:09:55
    hint: wait
";
    assert_eq!(text::explanation(&explained, &style()), expected);
    let ordered = text::explanation(
        &explained,
        &Style {
            has_order: true,
            ..style()
        },
    );
    assert!(ordered.ends_with("  order: none\n"), "{ordered}");
    let by_order = Explanation {
        by_order: true,
        ..explained
    };
    assert!(text::explanation(&by_order, &style()).ends_with("  order: none\n"));
}

#[test]
fn an_end_tells_where_when_how_and_which_limit() {
    let record: AccountingRecord = record(0, 137, FailedCode::LIMIT_ENFORCED);
    let hit = LimitHit {
        limit: "h_rt".to_owned(),
        value: 6,
        reached: 7,
        evidence: Evidence::Certain,
    };
    let reason = "11/25/2026 19:46:07 [2004:17602]: out of time".to_owned();
    let record = AccountingRecord {
        limit: Some(hit),
        reason,
        ..record
    };
    let expected = "\
job 14: It has ended, and it failed.
  on all.q@vm from 11/21/2026 01:09:55 to 11/21/2026 01:10:05: exit status 137 (Killed)
    failed 37: qmaster enforced h_rt, h_cpu, or h_vmem limit
    limit: h_rt=00:00:06 reached 00:00:07 (certain)
    reason: out of time
  what it used: qacct -j 14
";
    assert_eq!(
        ended::text(JobNumber(14), &[record], &Clock::new(TimeZone::UTC)),
        expected
    );
}

#[test]
fn the_tasks_of_an_array_that_failed_come_first_each_with_its_last_attempt() {
    let records: Vec<AccountingRecord> = (1..=12)
        .map(|task| record(task, u32::from(task == 12), FailedCode(0)))
        .chain([record(3, 0, FailedCode(0))])
        .collect();
    let said = ended::text(JobNumber(14), &records, &Clock::new(TimeZone::UTC));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "job 14: 12 of its tasks have ended, of which 1 failed.");
    assert!(
        lines[1].starts_with("  task 12 on all.q@vm") && lines[1].ends_with("exit status 1"),
        "{said}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("task 3 ") && line.contains(", attempt 2:")),
        "{said}"
    );
    assert!(lines.contains(&"  and 2 more tasks"), "{said}");
}

#[test]
fn a_running_task_tells_its_state_place_and_start() {
    let instance = proto::id::QueueInstanceName {
        queue: "all.q".into(),
        host: "vm".into(),
    };
    let task = proto::wire::view::TaskRow {
        task: TaskId(1),
        condition: Condition {
            phase: Phase::Running,
            ..Condition::default()
        },
        granted: vec![GrantedSlots { instance, slots: 2 }],
        pe: None,
        maps: Vec::new(),
        binding: Vec::new(),
        started: Wall::from_seconds(1_795_223_395),
        usage: Default::default(),
        priority: Default::default(),
        exit_status: None,
        failed: None,
    };
    let explained = Explanation {
        job: 5,
        summary: "It runs.".to_owned(),
        tasks: vec![task],
        on_hosts: 1,
        ..Explanation::default()
    };
    let expected = "job 5: It runs.\n  state r on all.q@vm, 2 slots, since 11/21/2026 01:09:55\n";
    assert_eq!(text::explanation(&explained, &style()), expected);
    let mut unbound = explained;
    let why = proto::binding::BindingObstacle::TooFew { wanted: 3, free: 2 };
    unbound.tasks[0].binding = vec![proto::binding::HostBinding {
        host: "vm".into(),
        outcome: proto::binding::BindingOutcome::Unbound(why),
    }];
    let line = "    not bound to cores on vm: it asks for 3 free cores, and the host has 2\n";
    assert_eq!(text::explanation(&unbound, &style()), format!("{expected}{line}"));
}

/// A task of job 14 that ran for ten seconds; task 0 is that of a job that is no array.
fn record(task: u32, exit_status: u32, failed: FailedCode) -> AccountingRecord {
    let mut record = crate::commands::qacct::tests::record();
    record.job_number = JobNumber(14);
    record.task_number = task;
    record.key.task = TaskId(task.max(1));
    (record.queue, record.host) = ("all.q".into(), "vm".into());
    (record.exit_status, record.failed) = (exit_status, failed);
    (record.started, record.ended) = (Wall::from_seconds(1_795_223_395), Wall::from_seconds(1_795_223_405));
    (record.limit, record.reason, record.pe_task) = (None, String::new(), None);
    record
}
