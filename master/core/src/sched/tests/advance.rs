//! Advance reservations.

use super::lab::check;

/// Two hosts with two slots each, three licences, and no time is added to what jobs ask for.
const TWO_HOSTS: &str = "complex lic lic INT <= YES YES 0 0
    global lic=3
    host a
    host b
    queue all.q a,b slots=2 seq_no=0
    pe mpi 100 $round_robin
    conf params DURATION_OFFSET=0
    ";

fn on_two_hosts(script: &str) {
    check(&format!("{TWO_HOSTS}\n{script}"));
}

#[test]
fn slots_are_granted_where_nobody_has_them_at_that_time() {
    on_two_hosts(
        "job 1 -pe mpi 3 -l h_rt=50
        pass
        = 1 all.q@a:2 all.q@b
        reserve 1 10 100 -pe mpi 2
        ! 1 nothing
        reserve 1 10 100
        ! 1 all.q@b
        reserve 2 50 100 -pe mpi 4
        ! 2 nothing
        reserve 2 50 100 -pe mpi 1-4
        ! 2 all.q@a:2 all.q@b
        reserve 3 99 200
        ! 3 nothing
        reserve 3 100 200 -pe mpi 4
        ! 3 all.q@a:2 all.q@b:2",
    );
}

#[test]
fn a_task_without_a_known_end_blocks_its_slots() {
    on_two_hosts(
        "job 1 -pe mpi 4
        pass
        = 1 all.q@a:2 all.q@b:2
        reserve 1 100000 100100
        ! 1 nothing
        end 1
        reserve 1 100000 100100
        ! 1 all.q@a",
    );
}

#[test]
fn others_start_before_a_reservation_only_if_they_end_before() {
    on_two_hosts(
        "reserve 1 100 200 -pe mpi 4
        ! 1 all.q@a:2 all.q@b:2
        job 1 -l h_rt=101
        job 2
        pass
        = nothing
        job 3 -l h_rt=100
        pass
        = 3 all.q@a
        wait 100
        end 3
        begin 1
        job 4 -l h_rt=1
        pass
        = nothing
        over 1
        pass
        = 1 all.q@a
        = 2 all.q@b
        = 4 all.q@a",
    );
}

#[test]
fn jobs_of_a_reservation_use_its_slots_and_no_others() {
    on_two_hosts(
        "reserve 1 0 200 -pe mpi 3 -l lic=1
        ! 1 all.q@a:2 all.q@b
        job 1 -ar 1 -l lic=1
        pass
        = nothing
        begin 1
        pass
        = 1 all.q@a
        job 2 -ar 1 -pe mpi 2
        pass
        = 2 all.q@a all.q@b
        job 3 -ar 1
        pass
        = nothing
        job 4
        job 5
        pass
        = 4 all.q@b
        end 1
        pass
        = 3 all.q@a
        end 4
        pass
        = 5 all.q@b",
    );
}

#[test]
fn amounts_are_counted_once_and_only_those_that_were_reserved_are_there() {
    on_two_hosts(
        "reserve 1 0 200 -pe mpi 2 -l lic=1
        ! 1 all.q@a all.q@b
        begin 1
        job 1 -ar 1 -l lic=3
        job 2 -l lic=2
        pass
        = nothing
        job 3 -l lic=1
        pass
        = 3 all.q@a
        job 4 -ar 1 -l lic=1
        pass
        = 4 all.q@a
        over 1
        job 5 -l lic=1
        pass
        = 5 all.q@b
        job 6 -l lic=1
        pass
        = nothing",
    );
}

#[test]
fn quotas_do_not_count_what_is_in_a_reservation() {
    on_two_hosts(
        "quota r users {*} to slots=1
        reserve 1 0 200 -pe mpi 3
        ! 1 all.q@a:2 all.q@b
        begin 1
        job 1 -ar 1
        job 2 -ar 1
        job 3
        job 4
        pass
        = 1 all.q@a
        = 2 all.q@a
        = 3 all.q@b
        % r/1 slots=1/1 users u1",
    );
}

#[test]
fn a_calendar_that_closes_within_the_time_keeps_a_queue_out() {
    check(
        "host a
        calendar day NONE mon-sun=0-24=off
        queue all.q a slots=2 calendar=day
        reserve 1 10 100
        ! 1 nothing",
    );
}

#[test]
fn a_reserved_job_and_an_advance_reservation_know_each_other() {
    on_two_hosts(
        "conf max_reservation 5
        job 1 -pe mpi 4 -l h_rt=50
        pass
        = 1 all.q@a:2 all.q@b:2
        reserve 1 60 160 -pe mpi 4
        ! 1 all.q@a:2 all.q@b:2
        job 2 -R -l h_rt=20
        pass
        = nothing
        @ 2 +160 all.q@a",
    );
}

#[test]
fn a_host_is_had_alone_within_a_reservation_too() {
    check(
        "complex excl excl BOOL EXCL YES YES 0 0
        host a excl=true
        host b excl=true
        queue all.q a,b slots=4
        pe mpi 100 $round_robin
        reserve 1 0 200 -l excl=true
        ! 1 all.q@a
        begin 1
        job 1
        pass
        = 1 all.q@b
        reserve 2 0 200 -l excl=true
        ! 2 nothing
        job 2 -ar 1 -l excl=true
        pass
        = 2 all.q@a",
    );
}

#[test]
fn what_was_kept_for_a_job_leaves_nothing_behind_beside_an_advance_reservation() {
    on_two_hosts(
        "conf max_reservation 5
        reserve 1 5000 6000 -pe mpi 4
        ! 1 all.q@a:2 all.q@b:2
        job 1 -pe mpi 4 -l h_rt=100
        pass
        = 1 all.q@a:2 all.q@b:2
        job 2 -R -pe mpi 4 -l h_rt=50
        pass
        @ 2 +100 all.q@a:2 all.q@b:2
        end 1
        pass
        = 2 all.q@a:2 all.q@b:2
        end 2
        job 3 -pe mpi 4 -l h_rt=1000
        pass
        = 3 all.q@a:2 all.q@b:2",
    );
}

#[test]
fn a_job_within_a_reservation_takes_no_slot_that_is_free_for_others() {
    check(
        "host a
        queue all.q a slots=3
        pe mpi 100 $fill_up
        conf job_load_adjustments NONE
        reserve 1 0 100 -pe mpi 2
        ! 1 all.q@a:2
        begin 1
        job 1 -ar 1
        job 2 -ar 1
        job 3
        pass
        = 1 all.q@a
        = 2 all.q@a
        = 3 all.q@a",
    );
}
