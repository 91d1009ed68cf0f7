//! Where jobs go, and what is said about those that go nowhere.

mod load;

use super::check;
use super::lab::Lab;
use crate::event::{Event, TaskFate};
use crate::sched::ReservationMode;
use proto::id::{SubmitSeq, TaskId};

#[test]
fn every_level_that_defines_a_consumable_must_have_enough() {
    // As recorded of 8.1.9: global 5, a 4, b 1, each queue instance 3.
    check(
        "complex lic lic INT <= YES YES 0 0
         global lic=5
         host a lic=4
         host b lic=1
         host c
         queue all.q a,b,c slots=4 complex_values=lic=3
         conf job_load_adjustments NONE
         job 1 -l lic=1
         job 2 -l lic=1
         job 3 -l lic=1
         job 4 -l lic=1
         job 5 -l lic=1
         job 6 -l lic=1
         job 7
         job 8 -l lic=2
         job 9 -l lic=6
         pass
         = 1 all.q@a
         = 2 all.q@a
         = 3 all.q@a
         = 4 all.q@b
         = 5 all.q@c
         = 7 all.q@a
         = nothing
         ? 6 (-l lic=1) cannot run globally because it offers only gc:lic=0.000000
         ? 8 (-l lic=2) cannot run globally because it offers only gc:lic=0.000000
         end 2
         pass
         = 6 all.q@a",
    );
}

#[test]
fn a_full_cluster_says_so() {
    check(
        "host a
         queue all.q a slots=1
         job 1
         job 2
         pass
         = 1 all.q@a
         ? 2 queue instance \"all.q@a\" dropped because it is full
         ? 2 All queues dropped because of overload or full
         end 1
         pass
         = 2 all.q@a",
    );
}

#[test]
fn only_connected_and_enabled_instances_take_jobs() {
    check(
        "host a
         host b
         queue all.q a,b slots=2
         disable all.q@a
         lose b
         job 1
         pass
         = nothing
         ? 1 queue instance \"all.q@a\" dropped because it is disabled
         ? 1 queue instance \"all.q@b\" dropped because it is temporarily not available
         find b
         pass
         = 1 all.q@b
         job 2
         enable all.q@a
         pass
         = 2 all.q@a",
    );
}

#[test]
fn a_default_request_counts_and_zero_opts_out() {
    // As recorded of 8.1.9 (tests/captures/21sched.txt).
    check(
        "complex def def INT <= YES YES 2 0
         host a def=5
         host b
         queue all.q a,b slots=4
         job 1 -q all.q@a
         job 2 -q all.q@a
         job 3 -q all.q@a
         job 4 -l def=0 -q all.q@a
         job 5 -l def=1 -q all.q@a
         job 6 -q all.q@b
         pass
         = 1 all.q@a
         = 2 all.q@a
         = 4 all.q@a
         = 5 all.q@a
         = 6 all.q@b",
    );
}

#[test]
fn forced_resources_must_be_asked_for() {
    // As recorded of 8.1.9 (tests/captures/21sched.txt).
    check(
        "complex forc forc BOOL == FORCED NO 0 0
         complex forci forci INT <= FORCED YES 0 0
         host a
         host b forci=3
         queue all.q a,b slots=4 complex_values=NONE,[a=forc=TRUE]
         job 1
         job 2 -l forc=TRUE
         job 3 -l forc=FALSE -q *@a
         job 4 -l forci=1
         pass
         = 2 all.q@a
         = 4 all.q@b
         = nothing
         ? 1 does not request 'forced' resource \"forci\" of host b
         ? 1 does not request 'forced' resource \"forc\" of queue instance all.q@a
         ? 3 (-l forc=FALSE) cannot run in queue \"all.q@a\" because it offers only qf:forc=true
         ? 3 cannot run in queue \"all.q@b\" because it is not contained in its hard queue list (-q)",
    );
}

#[test]
fn jobs_charge_once_what_is_per_job() {
    // As recorded of 8.1.9: YES for each slot, JOB only where the master is.
    check(
        "complex cy cy INT <= YES YES 0 0
         complex cj cj INT <= YES JOB 0 0
         host a cy=10 cj=10
         host b cy=10 cj=10
         pe smp 100 $pe_slots
         pe mpi 100 $fill_up
         queue all.q a,b slots=4
         job 1 -pe smp 3 -l cy=3,cj=10
         pass
         = 1 all.q@a:3
         job 2 -pe smp 4 -l cy=3
         job 3 -pe smp 2 -l cj=11
         pass
         = nothing
         ? 2 cannot run in PE \"smp\" because it only offers 3 slots
         ? 3 cannot run in PE \"smp\" because it only offers 0 slots
         job 4 -pe mpi 5 -l cj=1
         pass
         = 4 all.q@b:4 all.q@a",
    );
}

#[test]
fn allocation_rules_spread_as_they_say() {
    // ALGORITHMS.md section 9: free slots 6/4/4.
    check(
        "host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         host c | np_load_avg=0.3
         pe fill 100 $fill_up
         pe robin 100 $round_robin
         pe one 100 $pe_slots
         pe two 100 2
         pe five 100 5
         conf job_load_adjustments NONE
         queue all.q a,b,c slots=4,[a=6] pe_list=fill,robin,one,two,five
         job 1 -pe fill 10
         pass
         = 1 all.q@a:6 all.q@b:4
         end 1
         job 2 -pe robin 10
         pass
         = 2 all.q@a:4 all.q@b:3 all.q@c:3
         end 2
         job 3 -pe one 10
         job 4 -pe two 10
         job 5 -pe five 10
         pass
         = nothing
         ? 3 cannot run in PE \"one\" because it only offers 6 slots
         job 6 -pe two 4-10
         pass
         = 6 all.q@a:2 all.q@b:2 all.q@c:2",
    );
}

#[test]
fn the_rule_that_a_job_asks_for_counts_in_place_of_that_of_its_environment() {
    check(
        "host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         host c | np_load_avg=0.3
         pe fill 100 $fill_up
         conf job_load_adjustments NONE
         conf max_reservation 10
         queue all.q a,b,c slots=4,[a=6] pe_list=fill
         job 1 -pe fill 6 -par $round_robin -l h_rt=100
         pass
         = 1 all.q@a:2 all.q@b:2 all.q@c:2
         job 2 -pe fill 6 -par 3 -R -l h_rt=100
         job 3 -pe fill 5 -par $pe_slots
         job 4 -pe fill 4
         pass
         = 4 all.q@a:3 all.q@b
         ? 2 cannot run in PE \"fill\" because it only offers 0 slots
         ? 3 cannot run in PE \"fill\" because it only offers 2 slots
         end 1
         pass
         = 2 all.q@a:3 all.q@b:3",
    );
}

#[test]
fn ranges_get_as_many_slots_as_there_are() {
    check(
        "host a
         host b
         pe mpi 5 $fill_up
         queue all.q a,b slots=4
         job 1 -pe mpi 2-
         pass
         = 1 all.q@a:4 all.q@b
         job 2 -pe mpi 4,8,16
         pass
         = nothing
         ? 2 cannot run in PE \"mpi\" because it only offers 0 slots",
    );
}

#[test]
fn whoever_asks_for_a_host_alone_has_it_alone() {
    // As recorded of 8.1.9 (tests/captures/21sched.txt).
    check(
        "complex exclusive excl BOOL EXCL YES YES 0 1000
         host a exclusive=true
         host b exclusive=true
         queue all.q a,b slots=4
         job 1
         job 2 -l excl=true
         job 3 -l excl=true
         job 4
         pass
         = 2 all.q@a
         = 3 all.q@b
         = nothing
         ? 1 (-l NONE) cannot run at host \"a\" because for default request exclusive resource (exclusive) is already in use
         end 2
         pass
         = 1 all.q@a
         = 4 all.q@a
         job 5 -l excl
         pass
         = nothing
         ? 5 (-l exclusive=TRUE) cannot run at host \"a\" because exclusive resource (exclusive) is already in use",
    );
}

#[test]
fn arrays_start_one_task_at_a_time_within_their_limits() {
    check(
        "host a
         queue all.q a slots=10
         job 1 -t 1-5:2 -tc 2
         pass
         = 1.1 all.q@a
         = 1.3 all.q@a
         = nothing
         ? 1 not all array tasks may be started due to '-tc'
         end 1.1
         pass
         = 1.5 all.q@a",
    );
}

#[test]
fn holds_dependencies_and_start_times_keep_jobs_waiting() {
    check(
        "host a
         queue all.q a slots=10
         job 1 -h
         job 2 -hold_jid 1
         job 3 -after 60
         pass
         = nothing
         ? 1 Job is in hold state
         ? 2 job dropped because of job dependencies
         ? 3 execution time not reached
         release 1
         pass
         = 1 all.q@a
         end 1
         wait 61
         pass
         = 2 all.q@a
         = 3 all.q@a",
    );
}

#[test]
fn an_immediate_job_starts_at_once_or_is_given_up() {
    check(
        "host a
         queue all.q a slots=1
         job 1 -now
         job 2 -now
         pass
         = 1 all.q@a
         = 2 rejected",
    );
}

#[test]
fn a_pattern_of_environments_means_the_one_with_most_slots_then_fewest_wishes_left_open() {
    let cluster = "host a
         host b
         pe ma 100 $fill_up
         pe mb 100 $fill_up
         queue q1 a slots=3 pe_list=ma
         queue q2 b slots=2 pe_list=mb
         ";
    for (job, places) in [
        ("job 1 -pe m* 2", "= 1 q1@a:2"),
        ("job 1 -pe m* 2 -soft -q q1", "= 1 q1@a:2"),
        ("job 1 -pe m* 2 -soft -q q2", "= 1 q2@b:2"),
        ("job 1 -pe m* 2-3 -soft -q q2", "= 1 q1@a:3"),
    ] {
        check(&format!("{cluster}{job}\npass\n{places}"));
    }
}

#[test]
fn an_immediate_array_starts_whole_or_not_at_all() {
    check(
        "host a
         queue all.q a slots=3
         job 1 -now -t 1-4:1
         job 2 -now -t 1-2:1
         job 3 -now -t 1-2:1 -tc 1
         job 4
         job 5 -now -t 1-2:1
         pass
         = 1 rejected
         = 2.1 all.q@a
         = 2.2 all.q@a
         = 3 rejected
         = 4 all.q@a
         = 5 rejected",
    );
}

#[test]
fn soft_requests_choose_among_what_the_hard_ones_leave() {
    check(
        "complex fast fast BOOL == YES NO 0 0
         host a
         host b fast=TRUE
         queue all.q a,b slots=2
         conf job_load_adjustments NONE
         job 1 -soft -l fast=TRUE
         job 2 -soft -l fast=TRUE
         job 3 -soft -l fast=TRUE
         job 4 -soft -q *@b
         pass
         = 1 all.q@b
         = 2 all.q@b
         = 3 all.q@a
         = 4 all.q@a",
    );
}

#[test]
fn queue_patterns_name_queues_hosts_and_groups() {
    check(
        "host a
         host b
         group @g b
         queue long.q a,b slots=9
         queue all.q a,b slots=9
         conf job_load_adjustments NONE
         job 1 -q long.q@@g
         job 2 -q x*|none
         job 3 -q l*@b
         job 4 -q all.q@b,none.q
         pass
         = 1 long.q@b
         = 3 long.q@b
         = 4 all.q@b",
    );
}

#[test]
fn the_slot_of_a_master_that_is_no_task_is_booked_too() {
    check(
        "host a
         pe loose 100 $pe_slots job_is_first_task=FALSE
         queue all.q a slots=4 pe_list=loose
         job 1 -pe loose 4
         job 2 -pe loose 3
         job 3
         pass
         = 2 all.q@a:3
         = nothing
         ? 3 queue instance \"all.q@a\" dropped because it is full",
    );
}

#[test]
fn a_refused_order_is_taken_back_and_its_job_left_alone_for_a_moment() {
    let mut lab = Lab::new();
    for line in ["host a", "queue all.q a slots=1", "job 1", "job 2"] {
        lab.line(line);
    }
    lab.scheduler.begin(lab.now, ReservationMode::Anew);
    let orders = lab.scheduler.next(100).orders;
    assert_eq!(orders.len(), 1, "one slot is planned once");
    lab.scheduler.refused(&orders[0]);
    lab.line("pass");
    lab.line("= 2 all.q@a");
    lab.line("end 2");
    lab.line("pass");
    lab.line("= nothing");
    lab.line("wait 2");
    lab.line("pass");
    lab.line("= 1 all.q@a");
}

#[test]
fn what_is_planned_counts_until_it_is_judged() {
    let mut lab = Lab::new();
    for line in ["host a", "queue all.q a slots=2", "job 1 -t 1-3:1 -tc 2"] {
        lab.line(line);
    }
    lab.scheduler.begin(lab.now, ReservationMode::Anew);
    assert_eq!(lab.scheduler.next(100).orders.len(), 2);
    lab.scheduler.begin(lab.now, ReservationMode::Anew);
    assert_eq!(
        lab.scheduler.next(100).orders.len(),
        0,
        "no event has told the outcome yet"
    );
}

#[test]
fn the_slot_of_a_master_that_is_no_task_stays_in_the_masters_instance() {
    check(
        "host a
         pe loose 100 $pe_slots job_is_first_task=FALSE
         queue a.q a slots=4 pe_list=loose
         queue b.q a slots=4 pe_list=loose
         job 1 -pe loose 7
         pass
         = 1 a.q@a:3 b.q@a:4",
    );
}

#[test]
fn a_user_runs_as_many_tasks_as_maxujobs_allows() {
    check(
        "conf maxujobs 3
         host a
         queue all.q a slots=10
         job 1 -t 1-2
         job 2 -l arch=no
         job 3
         job 4 -u u2
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 3 all.q@a
         = 4 all.q@a
         job 5
         job 6 -now -q all.q
         pass
         = 6 rejected
         ? 5 job dropped because of user limitations
         end 1.1
         pass
         = 5 all.q@a
         conf maxujobs 0
         job 7
         pass
         = 7 all.q@a",
    );
}

#[test]
fn a_job_avoids_the_host_that_may_still_run_it() {
    // While an attempt may still run on a host, no task of its array starts there.
    let mut lab = Lab::new();
    for line in [
        "host a",
        "queue all.q a slots=4",
        "job 1",
        "job 2",
        "pass",
        "= 1 all.q@a",
        "= 2 all.q@a",
        "lose a",
    ] {
        lab.line(line);
    }
    let key = lab.state().jobs[&SubmitSeq(1)].tasks[&TaskId(1)]
        .place
        .placement()
        .unwrap()
        .key;
    lab.event(Event::TaskUnconfirmed { key, host: "a".into() });
    lab.event(Event::TaskEnded {
        key,
        record: None,
        then: TaskFate::Requeued,
        saved_pid: None,
        charged: None,
    });
    for line in ["find a", "job 3", "pass", "= 3 all.q@a"] {
        lab.line(line);
    }
    lab.line("? 1 cannot run on host \"a\" until clean up of an previous run has finished");
    lab.event(Event::TaskConfirmedGone { key, host: "a".into() });
    for line in ["pass", "= 1 all.q@a"] {
        lab.line(line);
    }
}

#[test]
fn an_immediate_array_counts_every_task_for_its_owner() {
    check(
        "conf maxujobs 3
         host a
         queue all.q a slots=10 qtype=INTERACTIVE
         job 1 -t 1-4 -now
         job 2 -t 1-3 -now
         pass
         = 1 rejected
         = 2.1 all.q@a
         = 2.2 all.q@a
         = 2.3 all.q@a",
    );
}
