//! Resource quotas: which rule counts, what is counted, and who is kept waiting by it
//! (ALGORITHMS.md section 15).

use super::check;
use super::lab::Lab;
use crate::state::job::Job;
use proptest::prelude::*;

#[test]
fn the_worked_example_with_its_numbers() {
    check(
        "host a
         host b
         group @lx a
         queue all.q a,b slots=50
         conf job_load_adjustments NONE
         conf queue_sort_method seqno
         quota per_user users {u1,u2} to slots=5 | users {*} hosts @lx to slots=10 | to slots=100
         job 1 -u u1 -t 1-7:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@a
         = 1.4 all.q@a
         = 1.5 all.q@a
         = nothing
         % per_user/1 slots=5/5 users u1
         ? 1 cannot run because it exceeds limit \"u1/////\" in rule \"per_user/1\"
         job 3 -u u3 -t 1-11:1 -q all.q@a
         pass
         = 3.1 all.q@a
         = 3.2 all.q@a
         = 3.3 all.q@a
         = 3.4 all.q@a
         = 3.5 all.q@a
         = 3.6 all.q@a
         = 3.7 all.q@a
         = 3.8 all.q@a
         = 3.9 all.q@a
         = 3.10 all.q@a
         = nothing
         % per_user/2 slots=10/10 users u3 hosts @lx
         ? 3 cannot run because it exceeds limit \"u3/////\" in rule \"per_user/2\"
         job 4 -u u3
         pass
         = 4 all.q@b
         % per_user/3 slots=1/100
         end 3.1
         pass
         = 3.11 all.q@a
         end 1.1
         pass
         = 1.6 all.q@a
         = nothing",
    );
}

#[test]
fn the_first_rule_that_matches_counts_alone() {
    // The second set of tests/captures/23sched.txt: u3 is kept out by rule 2 whatever rule 5 would
    // allow.
    check(
        "host sim1
         host sim2
         group @allhosts sim1 sim2
         queue all.q sim1,sim2 slots=8
         conf job_load_adjustments NONE
         quota r1 users {u1,u2} hosts {sim1} to slots=1 | users u3 to slots=0 | users * queues !all.q to slots=1 \
         | hosts {@allhosts} to slots=3 | to slots=5
         job 1 -t 1-5:1
         job 2 -u u3
         pass
         = 1.1 all.q@sim1
         = 1.2 all.q@sim2
         = 1.3 all.q@sim2
         = 1.4 all.q@sim2
         = nothing
         % r1/1 slots=1/1 users u1 hosts sim1
         % r1/4 slots=3/3 hosts sim2
         ? 1 cannot run because it exceeds limit \"u1////sim1/\" in rule \"r1/1\"
         ? 1 cannot run because it exceeds limit \"////sim2/\" in rule \"r1/4\"
         ? 2 cannot run because it exceeds limit \"/////\" in rule \"r1/2\"",
    );
}

#[test]
fn a_limit_that_depends_on_the_host_is_computed_for_each() {
    check(
        "host a | num_proc=2
         host b | num_proc=1
         queue all.q a,b slots=50
         conf job_load_adjustments NONE
         quota r hosts {*} to slots=$num_proc*2+1
         job 1 -t 1-10:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@a
         = 1.4 all.q@a
         = 1.5 all.q@a
         = 1.6 all.q@b
         = 1.7 all.q@b
         = 1.8 all.q@b
         = nothing
         % r/1 slots=5/5 hosts a
         % r/1 slots=3/3 hosts b
         load b num_proc=2 np_load_avg=0
         pass
         = 1.9 all.q@b
         = 1.10 all.q@b",
    );
}

#[test]
fn projects_and_environments_given_or_not() {
    check(
        "host a
         pe mpi 100 $fill_up
         queue all.q a slots=50 pe_list=mpi
         quota p projects !* to slots=1
         quota q projects {*} to slots=2
         quota e pes {*} to slots=3 | pes !* to slots=4
         job 1
         job 2
         job 3 -P x
         job 4 -P x
         job 5 -P x
         job 6 -P y -pe mpi 2
         job 7 -P z -pe mpi 2
         pass
         = 6 all.q@a:2
         = 1 all.q@a
         = 3 all.q@a
         = 4 all.q@a
         = nothing
         % p/1 slots=1/1 projects !*
         % q/1 slots=2/2 projects x
         % q/1 slots=2/2 projects y
         % e/1 slots=2/3 pes mpi
         % e/2 slots=3/4 pes !*
         ? 2 cannot run because it exceeds limit \"/////\" in rule \"p/1\"
         ? 5 cannot run because it exceeds limit \"/x////\" in rule \"q/1\"
         ? 7 cannot run because it exceeds limit \"//mpi///\" in rule \"e/1\"
         ? 7 cannot run in PE \"mpi\" because it only offers 1 slots",
    );
}

#[test]
fn consumables_defaults_and_values_that_are_compared() {
    check(
        "complex lic lic INT <= YES YES 0 0
         complex dfl dfl INT <= YES YES 1 0
         complex frc frc INT <= FORCED YES 0 0
         complex str str STRING == YES NO NONE 0
         global lic=100,dfl=100,frc=100,str=abc
         host a
         queue all.q a slots=50
         quota l users u1 to lic=3 | users u2 to dfl=2 | users u3 to h_rt=100,str=abc | users u4 to frc=3
         job 1 -l lic=2 -l frc=1
         job 2 -l lic=2 -l frc=1
         job 3 -l frc=1
         job 4 -u u2 -l frc=1
         job 5 -u u2 -l frc=1,dfl=2
         job 6 -u u3 -l frc=1,h_rt=200
         job 7 -u u3 -l frc=1,h_rt=50
         job 8 -u u3 -l frc=1,str=xyz
         job 9 -u u3 -l frc=1,str=a*
         job 10 -u u3 -l frc=1
         job 11 -u u4
         pass
         = 1 all.q@a
         = 3 all.q@a
         = 4 all.q@a
         = 7 all.q@a
         = 9 all.q@a
         = 10 all.q@a
         = nothing
         % l/1 lic=2/3 users u1
         % l/2 dfl=1/2 users u2
         % l/3 h_rt=100 users u3
         ? 2 cannot run because it exceeds limit \"/////\" in rule \"l/1\"
         ? 5 cannot run because it exceeds limit \"/////\" in rule \"l/2\"
         ? 6 cannot run because it exceeds limit \"/////\" in rule \"l/3\"
         ? 8 cannot run because it exceeds limit \"/////\" in rule \"l/3\"
         ? 11 does not request 'forced' resource \"frc\" of rule \"l/4\"",
    );
}

#[test]
fn a_smaller_quota_ends_nothing_and_a_larger_one_lets_go() {
    check(
        "host a
         queue all.q a slots=50
         job 1 -t 1-4:1
         quota r users {*} to slots=3
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@a
         quota r users {*} to slots=1
         % r/1 slots=3/1 users u1
         pass
         = nothing
         end 1.1
         end 1.2
         pass
         = nothing
         % r/1 slots=1/1 users u1
         quota r
         % nothing
         pass
         = 1.4 all.q@a",
    );
}

#[test]
fn a_host_that_changes_its_group_changes_its_rule() {
    check(
        "host a
         host b
         group @g a
         queue all.q a,b slots=50 seq_no=1
         conf queue_sort_method seqno
         conf job_load_adjustments NONE
         quota r hosts @g to slots=2 | hosts {*} to slots=1
         job 1 -t 1-9:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@b
         % r/1 slots=2/2 hosts @g
         % r/2 slots=1/1 hosts b
         group @g b
         % r/1 slots=1/2 hosts @g
         % r/2 slots=2/1 hosts a
         pass
         = 1.4 all.q@b",
    );
}

#[test]
fn what_is_shared_is_limited_together_while_a_job_is_spread() {
    check(
        "host a
         host b
         host c
         pe fill 100 $fill_up
         pe round 100 $round_robin
         pe two 100 2
         pe one 100 $pe_slots
         queue all.q a,b,c slots=8 seq_no=1 pe_list=fill,round,two,one
         conf queue_sort_method seqno
         conf job_load_adjustments NONE
         quota r hosts a,b to slots=5 | hosts {*} to slots=2
         job 1 -pe fill 1-20
         pass
         = 1 all.q@a:5 all.q@c:2
         end 1
         job 2 -pe round 1-20
         pass
         = 2 all.q@a:3 all.q@b:2 all.q@c:2
         end 2
         job 3 -pe two 1-20
         pass
         = 3 all.q@a:2 all.q@b:2 all.q@c:2
         end 3
         job 4 -pe one 1-20
         pass
         = 4 all.q@a:5
         job 5 -pe one 3
         pass
         = nothing
         ? 5 cannot run because it exceeds limit \"/////\" in rule \"r/1\"
         ? 5 cannot run because it exceeds limit \"////c/\" in rule \"r/2\"
         ? 5 cannot run in PE \"one\" because it only offers 2 slots",
    );
}

#[test]
fn a_master_that_is_no_task_and_amounts_for_jobs_and_hosts_count_too() {
    check(
        "complex jc jc INT <= YES JOB 0 0
         complex hc hc INT <= YES HOST 0 0
         global jc=100,hc=100
         host a
         host b
         pe mpi 100 $round_robin job_is_first_task=FALSE
         queue all.q a,b slots=8 seq_no=1 pe_list=mpi
         conf queue_sort_method seqno
         quota s users u1 to slots=4 | users u2 to jc=3 | users u3 to hc=3
         job 1 -pe mpi 1-20
         pass
         = 1 all.q@a:2 all.q@b
         % s/1 slots=4/4 users u1
         end 1
         job 2 -u u2 -l jc=2 -pe mpi 4
         job 3 -u u2 -l jc=2 -pe mpi 4
         pass
         = 2 all.q@a:2 all.q@b:2
         % s/2 jc=2/3 users u2
         end 2
         pass
         = 3 all.q@a:2 all.q@b:2
         end 3
         job 4 -u u3 -l hc=2 -pe mpi 2-8
         pass
         = 4 all.q@a:7
         % s/3 hc=2/3 users u3",
    );
}

#[test]
fn exclusive_use_within_a_scope() {
    check(
        "complex excl excl BOOL EXCL YES YES 0 0
         global excl=FALSE
         host a excl=TRUE
         host b excl=TRUE
         queue all.q a,b slots=8 seq_no=1
         conf queue_sort_method seqno
         quota r hosts {*} to excl=TRUE
         job 1
         job 2 -l excl=TRUE
         job 3 -l excl=TRUE
         job 4
         pass
         = 1 all.q@a
         = 2 all.q@b
         = 4 all.q@a
         = nothing
         ? 3 cannot run because it exceeds limit \"////a/\" in rule \"r/1\"
         ? 3 cannot run because it exceeds limit \"////b/\" in rule \"r/1\"
         end 2
         pass
         = 3 all.q@b",
    );
}

#[test]
fn members_of_access_lists_share_or_have_their_own() {
    check(
        "host a
         queue all.q a slots=50
         list staff u1 @u3
         quota r users @staff to slots=2 | users {!@nobody,*} to slots=1
         job 1 -t 1-3:1
         job 2 -u u2 -t 1-3:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 2.1 all.q@a
         = nothing
         % r/1 slots=2/2 users @staff
         % r/2 slots=1/1 users u2
         list staff u2
         % r/1 slots=1/2 users @staff
         % r/2 slots=2/1 users u1
         pass
         = 2.2 all.q@a
         = nothing",
    );
}

/// Rules that share, that do not, that overlap, and that limit little.
const RULES: &[&str] = &[
    "users {*} to slots=3",
    "hosts {*} to slots=2 | users u1 to slots=1",
    "users u1,u2 hosts @g to slots=3 | hosts !@g to lic=2 | to slots=9",
    "pes {*} queues {*} to slots=4,lic=3 | projects {*} to slots=1",
    "hosts a,b to slots=5,jc=1 | users {u2} to hc=2 | to slots=0",
    "users @staff hosts {*} to slots=$num_proc-1 | to NONE",
];

fn step() -> impl Strategy<Value = String> {
    let user = prop::sample::select(&["u1", "u2", "u3"][..]);
    let more = prop::sample::select(
        &[
            "",
            "-pe fill 1-9",
            "-pe round 2-6",
            "-pe two 2-8",
            "-pe one 3",
            "-P p",
            "-l lic=2",
            "-l jc=1,hc=1 -pe round 1-4",
        ][..],
    );
    let rules = (0..2u8, prop::sample::select(RULES));
    prop_oneof![
        4 => (user, more).prop_map(|(user, more)| format!("job -u {user} {more}")),
        3 => Just("pass".to_owned()),
        2 => (0..8usize).prop_map(|which| format!("end {which}")),
        1 => rules.prop_map(|(set, rules)| format!("quota r{set} {rules}")),
        1 => (0..2u8).prop_map(|set| format!("quota r{set}")),
        1 => prop::sample::select(&["group @g a", "group @g b c", "list staff u2", "list staff u1 u3"][..])
            .prop_map(str::to_owned),
    ]
}

/// Does a step: jobs get the next number, ends are of the running job at that place.
fn perform(lab: &mut Lab, step: &str, jobs: &mut u32) {
    if let Some(rest) = step.strip_prefix("job ") {
        *jobs += 1;
        return lab.line(format!("job {jobs} {rest}").trim());
    }
    let Some(which) = step.strip_prefix("end ") else {
        return lab.line(step);
    };
    let running: Vec<u64> = lab
        .state()
        .jobs
        .values()
        .filter(|job: &&Job| job.active > 0)
        .map(|job| job.seq.0)
        .collect();
    if let Some(seq) = running.get(which.parse::<usize>().unwrap() % running.len().max(1)) {
        lab.end(&seq.to_string());
    }
}

/// The master is tried in each queue of a host, not in its first one alone.
#[test]
fn a_parallel_job_takes_another_queue_of_a_host_where_a_quota_closes_the_first() {
    for (rule, slots, expected) in [
        ("$pe_slots", 2, "y.q@a:2"),
        ("$fill_up", 3, "y.q@a:3"),
        ("2", 2, "y.q@a:2"),
    ] {
        check(&format!(
            "host a
             queue x.q a slots=4
             queue y.q a slots=4 seq_no=1
             conf queue_sort_method seqno
             pe mpi 9 {rule}
             quota r queues x.q to slots=0
             job 1 -pe mpi {slots}
             pass
             = 1 {expected}"
        ));
    }
}

/// What a limit leaves for one queue goes to the host that has no other.
#[test]
fn slots_move_to_another_queue_of_a_host_where_that_makes_room_elsewhere() {
    for (rule, expected) in [("$fill_up", "y.q@a:2 x.q@b:2"), ("$round_robin", "y.q@a:2 x.q@b:2")] {
        check(&format!(
            "host a slots=2
             host b
             queue x.q a,b slots=2
             queue y.q a slots=2 seq_no=1
             conf queue_sort_method seqno
             pe mpi 9 {rule}
             quota r queues {{*}} to slots=2
             job 1 -pe mpi 4
             pass
             = 1 {expected}
             job 2 -pe mpi 1 -q x.q
             pass
             = nothing"
        ));
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(64))]

    /// The lab has the core's check judge each order, and the state's check recounts what is in
    /// use.
    #[test]
    fn what_is_in_use_is_counted_after_any_events(steps in prop::collection::vec(step(), 1..40)) {
        let mut lab = Lab::new();
        let cell = "complex lic lic INT <= YES YES 0 0
            complex jc jc INT <= YES JOB 0 0
            complex hc hc INT <= YES HOST 0 0
            global lic=100,jc=100,hc=100
            host a
            host b
            host c
            group @g a b
            list staff u1
            pe fill 100 $fill_up
            pe round 100 $round_robin job_is_first_task=FALSE
            pe two 100 2
            pe one 100 $pe_slots
            queue all.q a,b,c slots=4 pe_list=fill,round,two,one
            queue b.q a,b slots=3 pe_list=fill,round,two,one";
        cell.lines().map(str::trim).for_each(|line| lab.line(line));
        let mut jobs = 0;
        for step in &steps {
            perform(&mut lab, step, &mut jobs);
            lab.placed.clear();
            lab.state().check();
        }
    }
}
