//! Each reason as `gridwright explain` words it: the sentence, the numbers where they are amounts,
//! what helps, who has what is missing.

use super::{explained, explained_in};
use crate::event::{Event, InstanceState};
use crate::explain::{Question, explain};
use crate::sched::tests::lab::Lab;
use crate::state::job::TaskPlace;
use proto::calendar::CalendarState;
use proto::id::{QueueInstanceName, SubmitSeq, TaskId};
use proto::job::{HoldChange, Holds};
use proto::request::TaskRange;
use proto::time::{Wall, Zone};
use proto::wire::view::{Comparison, Explanation, WaitReason};

/// The moment at which a lab begins.
const BEGIN: i64 = 1_800_000_000_000;

fn lab(script: &str) -> Lab {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    lab
}

/// `text | mem: needed 2, free 1, of 3 | hint | held by 1 u1 2 +60`.
fn line(reason: &WaitReason) -> String {
    let mut parts = vec![reason.text.clone()];
    let amounts = [
        ("needed", &reason.needed),
        ("free", &reason.free),
        ("of", &reason.capacity),
    ];
    let amounts: Vec<String> = amounts
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)))
        .collect();
    if reason.context.comparison == Comparison::Amount && !amounts.is_empty() {
        parts.push(format!(
            "{}: {}",
            reason.attribute.as_deref().unwrap_or("-"),
            amounts.join(", ")
        ));
    }
    parts.extend(reason.hint.clone());
    parts.extend(
        reason
            .context
            .until
            .map(|until| format!("until +{}", (until.0 - BEGIN) / 1000)),
    );
    for holder in &reason.context.holders {
        let job = holder
            .job
            .map_or_else(|| format!("ar {}", holder.reservation.unwrap()), |job| job.to_string());
        let task = holder.task.map_or_else(String::new, |task| format!(".{task}"));
        let until = holder
            .until
            .map_or_else(String::new, |until| format!(" +{}", (until.0 - BEGIN) / 1000));
        parts.push(format!("held by {job}{task} {} {}{until}", holder.owner, holder.amount));
    }
    for job in &reason.context.predecessors {
        let place = job
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(" in {place}"));
        parts.push(format!("{} {} {} {}{place}", job.job, job.name, job.owner, job.state));
    }
    parts.join(" | ")
}

fn lines(explanation: &Explanation) -> Vec<String> {
    explanation.reasons.iter().map(line).collect()
}

fn check(script: &str, job: u64, expected: &[&str]) {
    assert_eq!(lines(&explained(script, job)), expected, "{script}");
}

fn instance(name: &str) -> QueueInstanceName {
    let (queue, host) = name.split_once('@').unwrap();
    QueueInstanceName {
        queue: queue.into(),
        host: host.into(),
    }
}

fn set_instance(lab: &mut Lab, name: &str, state: InstanceState) {
    lab.event(Event::InstanceChanged {
        instance: instance(name),
        state,
    });
}

#[test]
fn memory_that_is_taken_names_who_has_it_and_until_when() {
    check(
        "complex mem mem MEMORY <= YES YES 0 0
         host a mem=4G
         queue all.q a slots=9
         job 1 -l mem=1G
         pass
         job 2 -l mem=2G,h_rt=600 -u u2
         pass
         job 3 -l mem=3.5G
         pass",
        3,
        &[
            "(-l mem=3.5G) cannot run at host \"a\" because it offers only mem=1.000G \
           | mem: needed 3.500G, free 1.000G, of 4.000G | held by 2 u2 2.000G +660 | held by 1 u1 1.000G",
        ],
    );
}

#[test]
fn memory_that_no_host_has_says_that_there_is_never_more() {
    check(
        "complex mem mem MEMORY <= YES YES 0 0
         host a mem=4G
         queue all.q a slots=9
         job 1 -l mem=1G
         pass
         job 2 -l mem=5G
         pass",
        2,
        &[
            "(-l mem=5G) cannot run at host \"a\" because it offers only mem=3.000G \
           | mem: needed 5.000G, free 3.000G, of 4.000G | there is never more than 4.000G: ask for less",
        ],
    );
}

#[test]
fn a_load_value_above_the_total_of_the_host_is_never_had_also_while_the_queue_is_full() {
    let script = "host a | mem_total=24G mem_free=20G
         queue all.q a slots=1
         job 1
         pass
         job 2 -l mem_free=900G
         job 3 -l mem_free=22G
         pass";
    let never = explained(script, 2);
    assert_eq!(
        lines(&never),
        [
            "(-l mem_free=900G) cannot run at host \"a\" because it offers only mem_free=20.000G \
             | mem_free: needed 900.000G, free 20.000G, of 24.000G | there is never more than 24.000G: ask for less",
            "queue instance \"all.q@a\" dropped because it is full | slots: needed 1, free 0, of 1 | held by 1 u1 1",
        ]
    );
    assert!(
        never.summary.ends_with("waiting alone will not help."),
        "{}",
        never.summary
    );
    let later = explained(script, 3);
    assert!(later.summary.ends_with("may become free."), "{}", later.summary);
}

#[test]
fn a_load_value_above_the_total_of_the_host_tells_the_total() {
    check(
        "host a | mem_total=24G mem_free=20G
         queue all.q a slots=1
         job 1 -l mem_free=900G
         pass",
        1,
        &[
            "(-l mem_free=900G) cannot run at host \"a\" because it offers only mem_free=20.000G \
           | mem_free: needed 900.000G, free 20.000G, of 24.000G | there is never more than 24.000G: ask for less",
        ],
    );
}

#[test]
fn what_can_never_be_had_comes_first_while_the_queue_is_full() {
    let cell = "complex gputype gputype STRING == YES NO NONE 0
         host a | arch=lx-amd64
         pe mpi 4 $fill_up
         queue all.q a slots=1
         job 1
         pass";
    for (job, first) in [
        (
            "-l gputype=k80",
            "(-l gputype=k80) cannot run in queue \"all.q@a\" because job requests unknown resource (gputype)",
        ),
        (
            "-l arch=sol-sparc",
            "(-l arch=sol-sparc) cannot run at host \"a\": arch: asked sol-sparc, the host has lx-amd64",
        ),
        (
            "-l h_vmem=900G -pe mpi 40",
            "cannot run in PE \"mpi\": it has 4 slots in all, 0 in use, and 40 are needed",
        ),
    ] {
        let explanation = explained(&format!("{cell}\njob 2 {job}\npass"), 2);
        assert_eq!(explanation.reasons[0].text, first, "{job}");
        assert!(explanation.reasons[0].context.permanent, "{job}");
        assert!(
            explanation.summary.ends_with("waiting alone will not help."),
            "{job}: {}",
            explanation.summary
        );
    }
}

#[test]
fn what_can_never_be_had_is_told_of_a_held_job_too() {
    let explanation = explained("host a\nqueue all.q a slots=1\njob 1 -h -l num_proc=99\npass", 1);
    assert!(
        explanation.summary.starts_with("It may not start yet."),
        "{}",
        explanation.summary
    );
    assert!(
        explanation.summary.ends_with("waiting alone will not help."),
        "{}",
        explanation.summary
    );
    assert_eq!(
        lines(&explanation),
        [
            "(-l num_proc=99) cannot run at host \"a\": num_proc: asked 99, the host has 4",
            "it is held: user hold (u) | u1, an operator or a manager releases it: qrls 1",
        ]
    );
}

#[test]
fn a_resource_that_a_silent_host_may_report_is_not_called_impossible() {
    let script = "host a | arch=lx-amd64\nqueue all.q a slots=1\njob 1 -l arch=lx-amd64\nlose a\npass";
    let mut lab = lab(script);
    lab.scheduler
        .observe(&crate::observe::Observation::Unheard { host: "a".into() });
    let explanation = explained_in(&lab, 1);
    assert!(
        !explanation.summary.contains("waiting alone"),
        "{}",
        explanation.summary
    );
}

#[test]
fn a_full_queue_names_who_has_its_slots() {
    check(
        "host a
         queue all.q a slots=2
         job 1 -t 1-2 -l h_rt=60
         pass
         job 2
         pass",
        2,
        &[
            "queue instance \"all.q@a\" dropped because it is full | slots: needed 1, free 0, of 2 \
           | held by 1.1 u1 1 +120 | held by 1.2 u1 1 +120",
        ],
    );
}

#[test]
fn a_licence_that_is_taken_names_a_few_of_its_holders_and_counts_all() {
    let jobs: String = (1..=7).map(|job| format!("job {job} -l lic=1\n")).collect();
    let script = format!(
        "complex lic lic INT <= YES YES 0 0
         global lic=7
         host a
         queue all.q a slots=50
         {jobs}
         pass
         job 8 -l lic=1
         pass"
    );
    let reason = explained(&script, 8).reasons.remove(0);
    assert_eq!(
        reason.text,
        "(-l lic=1) cannot run globally because it offers only lic=0"
    );
    assert_eq!((reason.context.holders.len(), reason.context.holders_count), (5, 7));
}

#[test]
fn a_licence_that_an_advance_reservation_has_names_it() {
    let mut lab = lab("complex lic lic INT <= YES YES 0 0
         global lic=2
         host a
         queue all.q a slots=50
         reserve 7 0 500 -l lic=2
         begin 7
         job 1 -l lic=1");
    lab.line("pass");
    let reasons = lines(&explained_in(&lab, 1));
    assert!(reasons[0].ends_with("held by ar 7 u1 2 +500"), "{reasons:?}");
}

#[test]
fn a_limit_of_a_quota_is_told_in_words_and_names_qquota() {
    check(
        "host a
         queue all.q a slots=9
         quota maxslots users {*} to slots=1
         job 1
         pass
         job 2
         pass",
        2,
        &[
            "cannot run because rule \"maxslots/1\" (users {*} to slots=1) has no room for it, counted for user u1 \
           | slots: needed 1, free 0, of 1 | qquota -u u1 shows what is in use | held by 1 u1 1",
        ],
    );
}

#[test]
fn a_closed_queue_names_its_calendar_and_when_it_opens() {
    let mut lab = lab("calendar day NONE mon-sun=0-23=off
         host a
         queue all.q a slots=1 calendar=day
         job 1");
    set_instance(
        &mut lab,
        "all.q@a",
        InstanceState {
            calendar: CalendarState::Off,
            ..InstanceState::default()
        },
    );
    // The lab begins at 08:00 UTC; the calendar opens at 23:00.
    assert_eq!(
        lines(&explained_in(&lab, 1)),
        ["queue instance \"all.q@a\" is closed by its calendar \"day\" \
          | qconf -sq all.q@a names its calendar, qconf -scal shows when it is open | until +54000"]
    );
}

#[test]
fn a_hold_names_its_kind_and_who_may_release_it() {
    let all = Holds {
        user: true,
        operator: true,
        system: true,
    };
    let mut lab = lab("host a\nqueue all.q a slots=1\njob 5");
    let change = HoldChange {
        set: all,
        release: Holds::default(),
    };
    let tasks = lab.state().jobs[&SubmitSeq(5)].present().ranges();
    lab.event(Event::HoldsChanged {
        seq: SubmitSeq(5),
        tasks,
        change,
    });
    let explanation = explained_in(&lab, 5);
    assert_eq!(explanation.summary, "It may not start yet.");
    assert_eq!(
        lines(&explanation),
        [
            "it is held: user hold (u) | u1, an operator or a manager releases it: qrls 5",
            "it is held: operator hold (o) | an operator or a manager releases it: qrls -h o 5",
            "it is held: system hold (s) | a manager releases it: qrls -h s 5",
        ]
    );
}

#[test]
fn a_predecessor_is_named_with_what_it_does() {
    let script = "host a
        queue all.q a slots=1
        job 1
        pass
        run 1
        job 2 -h
        job 3
        job 4 -hold_jid 1 -hold_jid 2 -hold_jid 3
        pass";
    check(
        script,
        4,
        &["it waits for job 1, 2, 3 | 1 sleep u1 runs in all.q@a | 2 sleep u1 is held | 3 sleep u1 waits"],
    );
}

#[test]
fn a_parallel_environment_that_is_too_small_says_how_many_slots_it_has() {
    let cell = "conf job_load_adjustments NONE
         host a
         pe mpi 4 $fill_up
         queue all.q a slots=20
         job 1 -pe mpi 2
         pass";
    check(
        &format!("{cell}\njob 2 -pe mpi 5"),
        2,
        &[
            "cannot run in PE \"mpi\": it has 4 slots in all, 2 in use, and 5 are needed \
           | slots: needed 5, free 2, of 4 | PE \"mpi\" never has more than 4 slots: ask for fewer",
        ],
    );
    check(
        &format!("{cell}\njob 2 -pe mpi 3"),
        2,
        &[
            "cannot run in PE \"mpi\": it has 4 slots in all, 2 in use, and 3 are needed \
           | slots: needed 3, free 2, of 4 | held by 1 u1 2",
        ],
    );
}

#[test]
fn a_parallel_job_that_no_host_is_large_enough_for_is_told_how_many_slots_there_are_in_all() {
    let script = "conf job_load_adjustments NONE
         host a
         pe mpi 99 $fill_up
         queue all.q a slots=4
         job 1 -pe mpi 3
         pass
         job 2 -pe mpi 40";
    let reason = explained(script, 2).reasons.remove(0);
    assert_eq!(
        line(&reason),
        "cannot run in PE \"mpi\": suitable queues have 4 slots for it, and 40 are needed | slots: needed 40, free 4 \
         | there are never more than 4 slots for it: ask for fewer"
    );
}

#[test]
fn another_architecture_is_told_as_what_was_asked_and_what_the_host_has() {
    check(
        "host a | arch=lx-amd64\nqueue all.q a slots=1\njob 1 -l arch=sol-sparc\npass",
        1,
        &["(-l arch=sol-sparc) cannot run at host \"a\": arch: asked sol-sparc, the host has lx-amd64"],
    );
}

#[test]
fn a_load_threshold_is_told_as_the_load_and_the_threshold() {
    let script = "conf job_load_adjustments NONE
         host a | np_load_avg=1.61
         queue all.q a slots=1 load_thresholds=np_load_avg=0.1
         job 1
         pass";
    check(
        script,
        1,
        &["queue instance \"all.q@a\" is overloaded: np_load_avg is 1.61, the threshold is 0.1"],
    );
    let reason = explained(script, 1).reasons.remove(0);
    assert_eq!(
        (
            reason.needed.as_deref(),
            reason.free.as_deref(),
            reason.context.comparison
        ),
        (Some("0.1"), Some("1.61"), Comparison::Threshold),
        "programs get the numbers"
    );
}

#[test]
fn an_access_list_that_keeps_the_owner_out_is_named() {
    let cell = "list staff u2\nlist banned u1\nhost a";
    check(
        &format!("{cell}\nqueue all.q a slots=1 user_lists=staff\njob 1"),
        1,
        &[
            "user u1 has no permission for cluster queue \"all.q\": only members of staff have it \
           | qconf -su staff shows who is in it; an operator admits u1 with qconf -au u1 staff",
        ],
    );
    check(
        &format!("{cell}\nqueue all.q a slots=1 xuser_lists=banned\njob 1"),
        1,
        &[
            "user u1 has no permission for cluster queue \"all.q\": members of banned are excluded \
           | qconf -su banned shows who is in it; an operator takes u1 out with qconf -du u1 banned",
        ],
    );
    check(
        &format!("{cell}\npe mpi 4 $fill_up user_lists=staff\nqueue all.q a slots=4\njob 1 -pe mpi 2"),
        1,
        &[
            "user u1 cannot run because no access to PE \"mpi\": only members of staff have it \
           | qconf -sp mpi names the access lists, qconf -su LIST shows who is in one",
        ],
    );
}

#[test]
fn a_host_that_others_use_and_one_that_somebody_has_alone_name_them() {
    let cell = "complex excl excl BOOL EXCL YES YES 0 1000
         host a excl=true
         queue all.q a slots=9";
    check(
        &format!("{cell}\njob 1\npass\njob 2 -l excl=true\npass"),
        2,
        &["(-l excl=true) cannot run at host \"a\" alone (excl): other jobs run there | held by 1 u1 1"],
    );
    check(
        &format!("{cell}\njob 1 -l excl=true,h_rt=60\npass\njob 2\npass"),
        2,
        &["cannot run at host \"a\": another job has it alone (excl) | held by 1 u1 1 +120"],
    );
}

#[test]
fn a_start_time_is_told_with_the_time() {
    check(
        "host a\nqueue all.q a slots=1\njob 1 -after 3600",
        1,
        &["its start time has not come | qalter -a gives it another time: qalter -a [CC]YYMMDDhhmm 1 | until +3600"],
    );
}

#[test]
fn limits_on_running_tasks_have_a_hint() {
    check(
        "host a\nqueue all.q a slots=9\njob 1 -t 1-3 -tc 1\npass",
        1,
        &["1 of its tasks run, as many as -tc allows | more of its tasks may run with qalter -tc"],
    );
    let script = "host a\nqueue all.q a slots=9\nconf maxujobs 1\njob 1\npass\njob 2";
    check(
        script,
        2,
        &[
            "1 jobs of its owner run, as many as maxujobs of the scheduler configuration allows \
           | it goes on when one of them ends; a manager changes maxujobs with qconf -msconf",
        ],
    );
}

#[test]
fn an_error_is_told_once_without_the_head_that_a_shepherd_writes() {
    let mut lab = lab("host a\nqueue all.q a slots=9\njob 1 -t 1-2\npass");
    for task in [1, 2] {
        let key = lab.state().jobs[&SubmitSeq(1)].tasks[&TaskId(task)]
            .place
            .placement()
            .unwrap()
            .key;
        let error = "11/25/2026 19:46:07 [2004:17602]: error: can't chdir to /x: No such file".to_owned();
        let then = crate::event::TaskFate::Error { reason: error };
        lab.event(Event::TaskEnded {
            key,
            record: None,
            then,
            saved_pid: None,
            charged: None,
        });
    }
    assert!(matches!(
        lab.state().jobs[&SubmitSeq(1)].tasks[&TaskId(1)].place,
        TaskPlace::Pending { error: Some(_) }
    ));
    let explanation = explained_in(&lab, 1);
    assert_eq!(explanation.summary, "Its tasks are in error.");
    assert_eq!(
        lines(&explanation),
        ["error: can't chdir to /x: No such file | clear it with qmod -cj 1 once the cause is gone"]
    );
    assert_eq!(
        (explanation.reasons[0].count, explanation.reasons[0].examples.len()),
        (2, 2)
    );
}

#[test]
fn tasks_are_explained_apart() {
    let mut lab = lab("host a\nqueue all.q a slots=1\njob 1 -t 1-3\npass\nrun 1");
    let change = HoldChange {
        set: Holds {
            user: true,
            ..Holds::default()
        },
        release: Holds::default(),
    };
    lab.event(Event::HoldsChanged {
        seq: SubmitSeq(1),
        tasks: vec![TaskRange::new(3, 3, 1).unwrap()],
        change,
    });
    let of = |range: &str| {
        let tasks = [TaskRange::parse(range).unwrap()];
        explain(
            &mut lab.findings(),
            Question {
                seq: SubmitSeq(1),
                tasks: &tasks,
                zone: &Zone::utc(),
            },
        )
    };
    assert_eq!(
        (of("1").summary.as_str(), of("1").on_hosts, of("1").pending),
        ("It runs.", 1, 0)
    );
    assert!(of("2").reasons[0].text.contains("full"), "{:?}", of("2").reasons);
    assert!(of("3").reasons[0].text.contains("user hold"), "{:?}", of("3").reasons);
    assert_eq!((of("1-3").on_hosts, of("1-3").pending), (1, 2));
    assert_eq!(of("9").summary, "None of these tasks is there any more.");
}

#[test]
fn a_suspended_task_says_who_resumes_it() {
    let mut lab = lab("host a\nqueue all.q a slots=1\njob 1\npass\nrun 1");
    set_instance(
        &mut lab,
        "all.q@a",
        InstanceState {
            suspended: true,
            ..InstanceState::default()
        },
    );
    let explanation = explained_in(&lab, 1);
    assert_eq!(explanation.summary, "It is on its host, but it does not go on.");
    assert_eq!(
        lines(&explanation),
        ["an operator has suspended all.q@a | qmod -usq all.q@a resumes it"]
    );
}

#[test]
fn only_a_job_that_fits_waits_for_its_turn() {
    let cell = "host a\nqueue all.q a slots=1";
    assert!(explained(&format!("{cell}\njob 1"), 1).by_order);
    assert!(!explained(&format!("{cell}\njob 1\npass\njob 2\npass"), 2).by_order);
    assert_eq!(Wall(BEGIN), Lab::new().now.wall);
}
