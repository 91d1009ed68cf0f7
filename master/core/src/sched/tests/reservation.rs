//! Reservation and backfill (ALGORITHMS.md section 5).

use super::lab::{Lab, check, check_in};
use crate::sched::ReservationMode;
use crate::sched::reserve::ahead::grace_ms;

/// Five licences, and room for everybody.
const LICENCES: &str = "complex lic lic INT <= YES YES 0 0
    global lic=5
    host a
    queue all.q a slots=50
    conf max_reservation 10
    job 1 -p 0 -l lic=4,h_rt=30
    pass
    = 1 all.q@a
    job 2 -p -1 -l lic=5,h_rt=30 -R
    pass
    = nothing
    @ 2 +90 all.q@a
    ";

#[test]
fn a_short_job_goes_before_a_reservation_and_a_longer_one_does_not() {
    check(&format!(
        "{LICENCES}
        job 3 -p -2 -l lic=1,h_rt=31
        pass
        = nothing
        job 4 -p -3 -l lic=1,h_rt=30
        pass
        = 4 all.q@a"
    ));
}

#[test]
fn a_job_without_a_run_time_goes_before_a_reservation_only_by_the_default_duration() {
    check(&format!(
        "{LICENCES}
        job 3 -p -2 -l lic=1
        pass
        = nothing
        conf default_duration 0:0:20
        pass
        = 3 all.q@a"
    ));
}

#[test]
fn without_a_reservation_everybody_goes_first() {
    check(&format!(
        "{LICENCES}
        conf max_reservation 0
        job 3 -p -2 -l lic=1,h_rt=31
        job 4 -p -3 -l lic=1
        pass
        = 3 all.q@a
        @ 2 nothing"
    ));
}

#[test]
fn the_smaller_run_time_counts_and_the_offset_is_added() {
    check(
        "host a
        queue all.q a slots=1 h_rt=1:0:0
        conf max_reservation 10
        conf params DURATION_OFFSET=0:0:5
        job 1 -l h_rt=200,s_rt=100
        pass
        = 1 all.q@a
        job 2 -R
        pass
        @ 2 +105 all.q@a
        wait 50
        pass
        @ 2 +55 all.q@a",
    );
}

#[test]
fn of_a_running_task_without_a_request_the_limit_of_its_queue_counts_then_the_default() {
    check(
        "host a
        host b
        queue all.q a,b slots=1 h_rt=0:0:40,[b=INFINITY]
        conf default_duration 0:10:0
        conf max_reservation 10
        job 1
        job 2
        pass
        = 1 all.q@a
        = 2 all.q@b
        job 3 -R -q all.q@a
        job 4 -R -q all.q@b
        pass
        @ 3 +100 all.q@a
        @ 4 +660 all.q@b",
    );
}

#[test]
fn a_task_that_should_have_ended_is_expected_to_go_on_for_an_interval() {
    check(
        "host a
        queue all.q a slots=1
        conf max_reservation 10
        conf schedule_interval 0:0:15
        job 1 -l h_rt=10
        pass
        = 1 all.q@a
        wait 100
        job 2 -R -l h_rt=10
        pass
        @ 2 +15 all.q@a
        wait 100
        pass
        @ 2 +15 all.q@a
        end 1
        pass
        = 2 all.q@a
        @ 2 nothing",
    );
}

#[test]
fn a_parallel_job_is_kept_slots_where_they_come_free_first_as_many_as_there_are_then() {
    // As recorded of 8.1.9 (tests/captures/32sched.txt): fourteen slots of sixteen are in use, and
    // end one after the other.
    check(
        "host a
        host b
        host c
        host d
        queue all.q a,b,c,d slots=4 seq_no=0,[b=1],[c=2],[d=3]
        conf queue_sort_method seqno
        pe mpi 999 $round_robin
        conf max_reservation 10
        conf default_duration 0:10:0
        job 1 -l h_rt=61 -t 1-14:1
        pass
        = 1.1 all.q@a
        = 1.2 all.q@a
        = 1.3 all.q@a
        = 1.4 all.q@a
        = 1.5 all.q@b
        = 1.6 all.q@b
        = 1.7 all.q@b
        = 1.8 all.q@b
        = 1.9 all.q@c
        = 1.10 all.q@c
        = 1.11 all.q@c
        = 1.12 all.q@c
        = 1.13 all.q@d
        = 1.14 all.q@d
        job 2 -R -p 0 -pe mpi 16 -l h_rt=100
        job 3 -p -1 -l h_rt=20
        job 4 -p -2 -l h_rt=500
        job 5 -p -3
        pass
        = 3 all.q@d
        @ 2 +121 all.q@d:4 all.q@a:4 all.q@b:4 all.q@c:4",
    );
}

#[test]
fn jobs_like_one_that_started_before_slots_were_kept_heed_them() {
    // Whether the next of them starts there was known without a look until then.
    let mut lab = Lab::new();
    // So that all of it is one slice.
    lab.budget = 1_000;
    check_in(
        lab,
        "host a
        pe smp 9 $pe_slots
        queue all.q a slots=7 pe_list=smp
        conf max_reservation 10
        conf params DURATION_OFFSET=0:0:0
        conf weight_urgency 0
        conf job_load_adjustments NONE
        job 1 -l h_rt=30
        job 2 -l h_rt=30
        job 3 -l h_rt=30
        pass
        = 1 all.q@a
        = 2 all.q@a
        = 3 all.q@a
        job 4 -p 0 -l h_rt=60
        job 5 -R -p -1 -pe smp 5 -l h_rt=50
        job 6 -p -2 -l h_rt=60
        job 7 -p -3 -l h_rt=60
        job 8 -p -4 -l h_rt=30
        pass
        = 4 all.q@a
        = 6 all.q@a
        = 8 all.q@a
        @ 5 +30 all.q@a:5",
    );
}

#[test]
fn a_gap_before_something_else_is_used_if_it_is_long_enough() {
    check(
        "host a
        queue all.q a slots=2 pe_list=two
        pe two 99 2
        conf max_reservation 10
        conf params DURATION_OFFSET=0:0:0
        job 1 -l h_rt=100
        job 2 -l h_rt=200
        pass
        = 1 all.q@a
        = 2 all.q@a
        job 3 -R -p 0 -pe two 2 -l h_rt=50
        job 4 -R -p -1 -l h_rt=100
        job 5 -R -p -2 -l h_rt=101
        pass
        @ 3 +200 all.q@a:2
        @ 4 +100 all.q@a
        @ 5 +250 all.q@a",
    );
}

#[test]
fn only_so_many_tasks_get_a_reservation_and_each_task_of_an_array_counts() {
    check(
        "host a
        queue all.q a slots=1
        conf max_reservation 3
        conf params DURATION_OFFSET=0:0:0
        job 1 -l h_rt=100
        pass
        = 1 all.q@a
        job 2 -R -p 0 -t 1-2:1 -l h_rt=10
        job 3 -R -p -1 -l h_rt=10
        job 4 -R -p -2 -l h_rt=10
        pass
        @ 2.1 +100 all.q@a
        @ 2.2 +110 all.q@a
        @ 3 +120 all.q@a
        @ 4 nothing",
    );
}

#[test]
fn a_reservation_counts_against_quotas_and_the_slots_of_a_parallel_environment() {
    check(
        "host a
        queue all.q a slots=20
        pe mpi 4 $fill_up
        conf max_reservation 9
        conf params DURATION_OFFSET=0:0:0
        quota r users {u1} to slots=6
        job 1 -pe mpi 3 -l h_rt=100
        pass
        = 1 all.q@a:3
        job 2 -R -p 0 -pe mpi 4 -l h_rt=50
        pass
        @ 2 +100 all.q@a:4
        job 3 -p -1 -pe mpi 1 -l h_rt=101
        job 4 -p -2 -u u2 -pe mpi 1 -l h_rt=100
        pass
        = 4 all.q@a
        job 5 -p -3 -t 1-3:1 -l h_rt=200
        pass
        = 5.1 all.q@a
        = 5.2 all.q@a",
    );
}

#[test]
fn who_is_alone_later_keeps_others_from_staying_until_then() {
    check(
        "complex excl excl BOOL EXCL YES YES 0 0
        host a excl=true
        queue all.q a slots=8
        conf max_reservation 9
        conf params DURATION_OFFSET=0:0:0
        job 1 -l h_rt=100
        pass
        = 1 all.q@a
        job 2 -R -p 0 -l excl,h_rt=50
        job 3 -p -1 -l h_rt=101
        job 4 -p -2 -l h_rt=100
        pass
        = 4 all.q@a
        @ 2 +100 all.q@a",
    );
}

#[test]
fn what_is_kept_is_given_up_with_the_job_or_when_it_starts() {
    check(&format!(
        "{LICENCES}
        job 3 -p -2 -l lic=1,h_rt=31
        pass
        = nothing
        end 1
        pass
        = 2 all.q@a
        @ 2 nothing
        end 2
        pass
        = 3 all.q@a"
    ));
}

#[test]
fn a_host_of_which_the_queue_is_disabled_is_not_waited_for() {
    check(
        "host a
        host b
        queue all.q a,b slots=1
        conf max_reservation 9
        conf params DURATION_OFFSET=0:0:0
        job 1 -l h_rt=100
        job 2 -l h_rt=200
        pass
        = 1 all.q@a
        = 2 all.q@b
        disable all.q@a
        job 3 -R -l h_rt=10
        pass
        @ 3 +200 all.q@b
        lose b
        pass
        @ 3 nothing
        enable all.q@a
        pass
        @ 3 +100 all.q@a",
    );
}

#[test]
fn a_calendar_that_closes_before_a_job_would_end_keeps_it_out_until_it_opens() {
    // It is eight o'clock.
    check(
        "calendar day NONE mon-sun=9-12
        host a
        queue all.q a slots=2 calendar=day
        conf max_reservation 5
        job 1 -R -l h_rt=3541
        job 2 -l h_rt=3540
        job 3
        pass
        = 2 all.q@a
        @ 1 +14400 all.q@a
        conf max_reservation 0
        pass
        = 1 all.q@a",
    );
}

#[test]
fn a_job_for_which_there_was_no_time_is_looked_at_again_once_what_never_ends_has_ended() {
    check(
        "host a
        queue all.q a slots=2
        pe mpi 99 $fill_up
        conf max_reservation 10
        job 1
        pass
        = 1 all.q@a
        job 2 -l h_rt=100
        pass
        = 2 all.q@a
        job 3 -R -pe mpi 2 -l h_rt=10
        pass
        = nothing
        @ 3 nothing
        pass
        @ 3 nothing
        end 1
        pass
        = nothing
        @ 3 +160 all.q@a:2",
    );
}

#[test]
fn a_job_for_which_there_was_no_time_may_find_one_before_something_that_is_kept_for_ever() {
    check(
        "host a
        queue all.q a slots=2
        pe mpi 99 $fill_up
        conf max_reservation 10
        job 1 -l h_rt=100
        job 2 -l h_rt=120
        pass
        = 1 all.q@a
        = 2 all.q@a
        job 3 -R -p 0 -pe mpi 2
        job 4 -R -p -1 -pe mpi 1 -l h_rt=50
        pass
        @ 3 +180 all.q@a:2
        @ 4 nothing
        end 2
        job 5 -p 1000 -l h_rt=300
        pass
        = 5 all.q@a
        @ 3 +360 all.q@a:2
        @ 4 +160 all.q@a",
    );
}

/// A change between two slices of a pass, while a task is overdue: it is expected to end soon, and
/// not to have ended in the past.
#[test]
fn what_changes_in_the_middle_of_a_pass_does_not_change_the_time() {
    for change in ["queue b.q a slots=0", "group @g a"] {
        let mut lab = Lab::new();
        let lines = "conf max_reservation 9
            host a
            queue all.q a slots=1
            job 1 -l h_rt=60
            pass
            = 1 all.q@a
            wait 120
            job 2
            job 3 -l h_rt=60 -R";
        lines.lines().for_each(|line| lab.line(line.trim()));
        lab.scheduler.begin(lab.now, ReservationMode::Anew);
        assert!(!lab.scheduler.next(1).finished, "there is another job");
        lab.line(change);
        while !lab.scheduler.next(1).finished {}
        let grace_s = grace_ms(&lab.state().config) / 1000;
        lab.line(&format!("@ 3 +{grace_s} all.q@a"));
    }
}
