//! Worked numbers of ALGORITHMS.md sections 3.3, 6.3, 6.4, 9, 14 and 15 that are told nowhere else.

use super::lab::{Lab, check};

fn lab(script: &str) -> Lab {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    lab
}

#[test]
fn a_request_replaces_the_default_at_all_levels() {
    // Section 3.3: the default is 2; the queue has 1, the host 3, the cluster 9.
    check(
        "complex def def INT <= YES YES 2 0
         global def=9
         host a def=3
         queue all.q a slots=9 complex_values=def=1
         queue big.q a slots=9 seq_no=5
         conf queue_sort_method seqno
         job 1 -q all.q
         job 2 -l def=1
         job 3
         job 4
         pass
         = 2 all.q@a
         = 3 big.q@a
         = nothing
         ? 1 (-l NONE) cannot run at host \"a\" because it offers only hc:def=0.000000
         ? 4 (-l NONE) cannot run at host \"a\" because it offers only hc:def=0.000000
         end 3
         ? 1 (-l NONE) cannot run in queue \"all.q@a\" because it offers only qc:def=0.000000
         pass
         = 4 big.q@a",
    );
}

#[test]
fn a_threshold_on_a_consumable_is_judged_after_each_start() {
    // Section 6.3: four licences; with two left the instance is closed.
    check(
        "complex lic lic INT <= YES YES 0 0
         host a lic=4
         queue all.q a slots=9 load_thresholds=lic=2
         job 1 -t 1-4:1 -l lic=1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = nothing
         end 1.1
         pass
         = 1.3 all.q@a",
    );
}

#[test]
fn a_parallel_job_takes_as_many_slots_as_reach_the_threshold() {
    // Section 6.4: (1.75 - 0.40) / (0.5 / 8) = 21.6.
    let host = "host a | num_proc=8 np_load_avg=0.40 mem_free=2G
         pe smp 99 $pe_slots
         ";
    let rest = "
         job 1 -pe smp 1-40
         pass
         = 1 all.q@a:";
    check(&format!(
        "{host}queue all.q a slots=40 load_thresholds=np_load_avg=1.75{rest}22"
    ));
    // Downwards: (2048M - 1024M) / 200M = 5.12. What is not adjusted does not count.
    for (thresholds, slots) in [
        ("mem_free=1G", 6),
        ("mem_free=1G,np_load_avg=1.75", 6),
        ("np_load_avg=1.75", 40),
    ] {
        let conf = "conf job_load_adjustments mem_free=200M\n";
        check(&format!(
            "{conf}{host}queue all.q a slots=40 load_thresholds={thresholds}{rest}{slots}"
        ));
    }
}

#[test]
fn an_object_is_had_alone_at_each_level_by_a_job_or_by_its_master() {
    // Section 14: a job over three instances; then one that does not ask and one that does, on the
    // instance of a slave.
    let placed = |kind: &str, level: &str, value: &str| {
        let mut lab = lab(&format!(
            "complex excl excl BOOL EXCL YES {kind} 0 0
             global {}
             host a {}
             host b {}
             pe two 9 2
             queue all.q a,b slots=4 pe_list=two {}
             queue two.q b slots=4
             job 1 -pe two 4 -l excl
             pass
             = 1 all.q@a:2 all.q@b:2
             job 2 -q all.q@a
             job 3 -q all.q@b
             job 4 -q two.q@b
             job 5 -q all.q@b -l excl
             pass",
            if level == "global" { value } else { "" },
            if level == "host" { value } else { "" },
            if level == "host" { value } else { "" },
            if level == "queue" {
                format!("complex_values={value}")
            } else {
                String::new()
            },
        ));
        let started: Vec<String> = lab.placed.drain(..).map(|placed| placed[..1].to_owned()).collect();
        started.join(" ")
    };
    for (level, kind, started) in [
        ("global", "YES", ""),
        ("global", "JOB", ""),
        ("host", "YES", ""),
        ("host", "JOB", "3 4"),
        ("queue", "YES", "4"),
        ("queue", "JOB", "3 4"),
    ] {
        assert_eq!(placed(kind, level, "excl=true"), started, "{kind} at {level}");
    }
}

#[test]
fn a_quota_counts_for_each_user_and_jointly_for_hosts_and_for_everybody_else() {
    // Section 15: 5 for u1 and 5 for u2; 10 for each other user on both hosts of @lx together; 100
    // for all that is left.
    let mut lab = lab("host a
        host b
        host c
        group @lx a b
        queue all.q a,b,c slots=200
        conf job_load_adjustments NONE
        quota per_user users {u1,u2} to slots=5 | users {*} hosts @lx to slots=10 | to slots=100");
    let mut jobs = 0;
    for (user, host, tasks, started) in [
        ("u1", "a", 6, 5),
        ("u2", "a", 3, 3),
        ("u2", "c", 3, 2),
        ("u3", "a", 6, 6),
        ("u3", "b", 6, 4),
        ("u4", "b", 11, 10),
        ("u3", "c", 60, 60),
        ("u4", "c", 60, 40),
    ] {
        jobs += 1;
        lab.line(&format!("job {jobs} -u {user} -t 1-{tasks}:1 -q all.q@{host}"));
        lab.line("pass");
        assert_eq!(lab.placed.drain(..).count(), started, "{user} at {host}");
    }
    for row in [
        "1 slots=5/5 users u2",
        "2 slots=10/10 users u3 hosts @lx",
        "3 slots=100/100",
    ] {
        lab.line(&format!("% per_user/{row}"));
    }
    lab.line("? 1 cannot run because it exceeds limit \"u1/////\" in rule \"per_user/1\"");
}

#[test]
fn slots_of_a_parallel_job_are_what_a_quota_has_left_divided_by_the_request() {
    // Section 15: (7 - 0) / 2 = 3, then (7 - 6) / 2 = 0.
    check(
        "complex lic lic INT <= YES YES 0 0
         global lic=100
         host a
         pe smp 99 $pe_slots
         queue all.q a slots=20
         quota r users {*} to lic=7
         job 1 -pe smp 1-9 -l lic=2
         job 2 -pe smp 1-9 -l lic=2
         job 3 -pe smp 1-9 -l lic=1
         pass
         = 1 all.q@a:3
         = 3 all.q@a
         = nothing
         % r/1 lic=7/7 users u1",
    );
}

#[test]
fn round_robin_gives_one_slot_a_round_to_each_host_the_masters_too() {
    // Section 9: hosts with 6, 4 and 4 slots.
    let cluster = "host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         host c | np_load_avg=0.3
         pe robin 100 $round_robin
         queue all.q a,b,c slots=4,[a=6] pe_list=robin
         queue last.q c slots=4 pe_list=robin
         conf job_load_adjustments NONE
         job 1 -pe robin ";
    for (slots, placed) in [
        ("2", "all.q@a all.q@b"),
        ("4", "all.q@a:2 all.q@b all.q@c"),
        ("6", "all.q@a:2 all.q@b:2 all.q@c:2"),
        ("8 -q all.q", "all.q@a:3 all.q@b:3 all.q@c:2"),
        ("11 -q all.q", "all.q@a:4 all.q@b:4 all.q@c:3"),
        ("13 -q all.q", "all.q@a:5 all.q@b:4 all.q@c:4"),
        ("2 -masterq last.q", "last.q@c all.q@a"),
        ("4 -masterq last.q", "last.q@c all.q@a:2 all.q@b"),
    ] {
        check(&format!("{cluster}{slots}\npass\n= 1 {placed}"));
    }
}

#[test]
fn a_host_offers_a_parallel_job_as_much_as_the_instance_that_may_take_most() {
    // Section 6.4: 22 slots up to 1.75 and 8 up to 0.9 are 22 on the host, not 30.
    let mut lab = lab("host a | num_proc=8 np_load_avg=0.40
        pe smp 99 $pe_slots
        queue low.q a slots=40 pe_list=smp load_thresholds=np_load_avg=0.9
        queue high.q a slots=40 seq_no=5 pe_list=smp load_thresholds=np_load_avg=1.75
        job 1 -pe smp 1-99
        pass");
    let job = lab.state().jobs.values().next().unwrap();
    let taken: u32 = job
        .placements()
        .flat_map(|(_, at)| at.granted.iter().map(|part| part.slots))
        .sum();
    assert_eq!(taken, 22);
    lab.placed.clear();
}

#[test]
fn whoever_lists_a_forced_attribute_takes_only_those_who_ask() {
    // Section 3.3: judged for each object by what it lists itself; who lists nothing takes
    // everybody.
    for (global, host, queue, places) in [
        ("", "", "", ["all.q@a", "two.q@a", "all.q@b"]),
        (
            "",
            "",
            "complex_values=NONE,[a=dear=1]",
            ["nothing", "two.q@a", "all.q@b"],
        ),
        ("", "dear=1", "", ["nothing", "nothing", "all.q@b"]),
        ("dear=1", "", "", ["nothing", "nothing", "nothing"]),
    ] {
        let mut lab = lab(&format!(
            "complex dear dear INT <= FORCED YES 0 0
             global {global}
             host a {host}
             host b
             queue all.q a,b slots=4 {queue}
             queue two.q a slots=4"
        ));
        for (number, (wanted, place)) in (1..).zip(["all.q@a", "two.q@a", "all.q@b"].into_iter().zip(places)) {
            lab.line(&format!("job {number} -q {wanted}"));
            lab.line("pass");
            lab.line(&if place == "nothing" {
                "= nothing".to_owned()
            } else {
                format!("= {number} {place}")
            });
        }
        // Asking for none of it is asking; where nobody lists it there is none to be had, not even
        // none.
        lab.line("job 9 -l dear=0");
        lab.line("pass");
        let is_listed = !(global.is_empty() && host.is_empty() && queue.is_empty());
        assert_eq!(lab.placed.drain(..).count() == 1, is_listed, "{global}{host}{queue}");
    }
}
