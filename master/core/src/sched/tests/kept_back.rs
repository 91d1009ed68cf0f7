//! Tickets of users whose tasks are kept back, by `-tc` or `maxujobs`: the numbers that 8.1.9
//! printed in the same cases.

use super::lab::{Lab, check};
use crate::sched::TaskPhase;
use proptest::prelude::*;
use proto::id::SubmitSeq;
use proto::wire::view::PriorityNumbers;

/// Override tickets of two users, of whom one has an array that fits nowhere. The numbers are those
/// of 8.1.9.
const KEPT_BACK: &str = "
    conf weight_ticket 1
    complex lic lic INT <= YES YES 0 0
    complex zz zz INT <= YES YES 0 0
    global lic=0,zz=0
    host a
    queue all.q a slots=10
    user u1 10 30
    user u2 20 100
";

#[test]
fn tasks_that_tc_keeps_back_take_no_tickets_from_others() {
    for (tc, functional, of_j2, of_k1) in [
        ("-tc 1", "0", "50 0 0", "30 0 0"),
        ("-tc 2", "0", "33 0 0", "30 0 0"),
        ("", "0", "16 0 0", "30 0 0"),
        ("-tc 2", "1000", "33 55 0", "30 83 0"),
    ] {
        check(&format!(
            "{KEPT_BACK}
            conf weight_tickets_functional {functional}
            job 1 -u u2 -t 1-5 {tc} -l zz=1
            job 2 -u u1 -l lic=1
            job 3 -u u2 -l lic=1
            pass
            = nothing
            pass
            $ 3 {of_j2}
            $ 2 {of_k1}"
        ));
    }
}

#[test]
fn pending_tasks_of_an_array_with_as_many_running_ones_as_tc_allows_have_no_tickets() {
    check(&format!(
        "{KEPT_BACK}
        job 1 -u u2 -t 1-5 -tc 2
        job 2 -u u1 -l lic=1
        job 3 -u u2 -l lic=1
        pass
        = 1.1 all.q@a
        = 1.2 all.q@a
        pass
        $ 1 r 50 0 0
        $ 1 0 0 0
        $ 2 30 0 0
        $ 3 33 0 0"
    ));
}

#[test]
fn jobs_of_a_user_who_runs_as_many_as_maxujobs_allows_have_no_tickets_and_take_none() {
    // Recorded from 8.1.9 with these shares: u1 runs two of its jobs, u2 runs one.
    check(
        "conf weight_ticket 1
        conf weight_tickets_functional 1000
        conf maxujobs 2
        complex lic lic INT <= YES YES 0 0
        global lic=3
        host a
        queue all.q a slots=20
        user u1 10 100
        user u2 20 50
        user u3 5 0
        job 1 -p -10
        job 2 -p -10
        job 3 -p -10
        job 4 -p -10
        job 5 -t 1-4
        job 6 -u u2 -l lic=4
        job 7 -u u2 -l lic=2 -p -3
        job 8 -u u3 -l lic=4
        pass
        = 1 all.q@a
        = 7 all.q@a
        = 2 all.q@a
        pass
        $ 1 r 50 166 0
        $ 2 r 50 166 0
        $ 7 r 50 666 0
        $ 6 25 83 0
        $ 8 0 35 0
        $ 3 0 0 0
        $ 4 0 0 0
        $ 5 0 0 0
        conf maxujobs 0
        pass
        = 3 all.q@a
        = 4 all.q@a
        = 5.1 all.q@a
        = 5.2 all.q@a
        = 5.3 all.q@a
        = 5.4 all.q@a
        pass
        $ 1 r 12 41 0
        $ 5 r 12 41 0
        $ 7 r 50 666 0
        $ 6 25 83 0
        $ 8 0 35 0",
    );
}

/// A job: its user, how many tasks it has, and how many `-tc` lets run, if it limits them.
type ArrayJob = (u8, u32, Option<u32>);

fn asked() -> impl Strategy<Value = ArrayJob> {
    (0..3u8, 1..8u32, proptest::option::of(1..5u32))
}

/// Three users with shares and override tickets, so many slots, and two passes.
fn cell(jobs: &[ArrayJob], slots: usize, maxujobs: u32) -> Lab {
    let mut lab = Lab::new();
    for line in [
        "conf weight_ticket 1".to_owned(),
        "conf weight_tickets_functional 10000".to_owned(),
        format!("conf maxujobs {maxujobs}"),
        "host a".to_owned(),
        format!("queue all.q a slots={slots}"),
        "user u0 10 30".to_owned(),
        "user u1 20 100".to_owned(),
        "user u2 5".to_owned(),
    ] {
        lab.line(&line);
    }
    for (number, (user, tasks, tc)) in (1..).zip(jobs) {
        let tc = tc.map_or_else(String::new, |tc| format!("-tc {tc}"));
        lab.line(&format!("job {number} -u u{user} -t 1-{tasks}:1 {tc}"));
    }
    for _ in 0..2 {
        lab.pass();
        lab.placed.clear();
    }
    lab
}

fn pending(lab: &Lab) -> Vec<(SubmitSeq, PriorityNumbers)> {
    let model = lab.scheduler.model();
    model
        .state()
        .jobs
        .keys()
        .map(|seq| (*seq, model.priority_of(*seq, TaskPhase::Pending, lab.now)))
        .collect()
}

proptest! {
    #![proptest_config(crate::testing::cases(60))]

    #[test]
    fn an_array_has_the_tickets_of_one_with_as_many_tasks_as_tc_lets_run(jobs in prop::collection::vec(asked(), 1..8)) {
        let short: Vec<ArrayJob> =
            jobs.iter().map(|(user, tasks, tc)| (*user, tc.map_or(*tasks, |tc| tc.min(*tasks)), None)).collect();
        prop_assert_eq!(pending(&cell(&jobs, 0, 0)), pending(&cell(&short, 0, 0)));
    }

    #[test]
    fn pending_tasks_have_numbers_unless_they_are_kept_back(
        jobs in prop::collection::vec(asked(), 1..8), slots in 0..9usize, maxujobs in 0..4u32,
    ) {
        let lab = cell(&jobs, slots, maxujobs);
        let state = lab.state();
        for (seq, numbers) in pending(&lab) {
            let job = &state.jobs[&seq];
            let is_owner_full = maxujobs > 0 && state.index.active_of(&job.spec.owner.user) >= maxujobs;
            let is_job_full = job.spec.task_concurrency.is_some_and(|tc| job.active >= tc);
            let is_kept_back = is_owner_full || is_job_full || !job.has_pending();
            prop_assert_eq!(numbers == PriorityNumbers::default(), is_kept_back, "job {}: {:?}", seq.0, numbers);
        }
    }
}
