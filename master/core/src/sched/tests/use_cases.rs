//! The examples of Grid Engine's own documents as scenarios (ALGORITHMS.md sections 3 and 4).

use super::lab::{Lab, check};

/// How many tasks run on each host.
fn on_hosts(lab: &Lab, hosts: &[&str]) -> Vec<usize> {
    let on = |host: &str| {
        let placements = lab.state().jobs.values().flat_map(|job| job.placements());
        placements.filter(|(_, at)| at.host().as_str() == host).count()
    };
    hosts.iter().map(|host| on(host)).collect()
}

#[test]
fn ten_floating_licences_of_which_one_host_uses_none_another_two_and_a_queue_none() {
    let mut lab = Lab::new();
    for line in [
        "complex pc pc INT <= FORCED YES 0 0",
        "global pc=10",
        "host zero pc=0",
        "host two pc=2",
        "host many",
        "queue all.q zero,two,many slots=20",
        "queue free.q zero,two,many slots=20 seq_no=5 complex_values=pc=0",
        "conf queue_sort_method seqno",
    ] {
        lab.line(line);
    }
    for job in 1..=15 {
        lab.line(&format!("job {job} -l pc=1"));
    }
    lab.line("job 16");
    lab.pass();
    assert_eq!(on_hosts(&lab, &["zero", "two", "many"]), [0, 2, 8]);
    let in_free = |lab: &Lab| lab.placed.iter().filter(|placed| placed.contains("free.q")).count();
    assert_eq!(in_free(&lab), 0);
    lab.placed.clear();
    // Whoever does not ask is taken by nobody who lists the licence, and the cluster lists it.
    lab.line("? 16 does not request 'forced' resource \"pc\" of the cluster");
    lab.line("? 11 (-l pc=1) cannot run globally because it offers only gc:pc=0.000000");
    lab.line("job 17 -l pc=0");
    lab.pass();
    assert_eq!(lab.placed.len(), 1, "asking for none of it is asking");
}

#[test]
fn a_default_of_all_memory_keeps_those_who_do_not_ask_out_of_half_of_it() {
    // The host has 1G to give, one queue on it 500M; whoever does not ask takes 1G.
    check(
        "complex virtual_free vf MEMORY <= YES YES 1G 0
         host a virtual_free=1G
         queue small.q a slots=10 complex_values=virtual_free=500M
         queue all.q a slots=10 seq_no=5
         conf queue_sort_method seqno
         job 1
         pass
         = 1 all.q@a
         job 2 -l vf=100M
         pass
         = nothing
         ? 2 (-l virtual_free=100M) cannot run at host \"a\" because it offers only hc:virtual_free=0.000
         end 1
         pass
         = 2 small.q@a
         job 3 -l vf=400M
         job 4 -l vf=1M
         job 5
         pass
         = 3 small.q@a
         = 4 all.q@a
         ? 5 (-l NONE) cannot run at host \"a\" because it offers only hc:virtual_free=523.000M
         end 2
         end 3
         end 4
         pass
         = 5 all.q@a",
    );
}

#[test]
fn file_space_is_what_is_left_of_the_capacity_and_what_the_sensor_sees() {
    // h_fsize: 10G to give, of which others than jobs have taken 4G before the sensor looked.
    check(
        "complex h_fsize h_fsize MEMORY <= YES YES 0 0
         host a h_fsize=10G | h_fsize=6G
         queue all.q a slots=10
         job 1 -l h_fsize=4G
         pass
         = 1 all.q@a
         job 2 -l h_fsize=3G
         pass
         = nothing
         ? 2 (-l h_fsize=3G) cannot run at host \"a\" because it offers only hl:h_fsize=2.000G
         wait 1
         load a h_fsize=5G
         pass
         = 2 all.q@a
         wait 1
         load a h_fsize=5G
         job 3 -l h_fsize=4G
         pass
         = nothing
         ? 3 (-l h_fsize=4G) cannot run at host \"a\" because it offers only hc:h_fsize=3.000G",
    );
}

#[test]
fn an_equal_value_is_not_overridden_from_below_and_a_stricter_one_wins() {
    // arch is reported by the host and set by the queue; both levels must match a request.
    check(
        "host a arch=lx-amd64 | arch=sol-sparc64
         host b | arch=lx-amd64
         queue all.q a,b slots=4
         queue odd.q b slots=4 seq_no=5 complex_values=arch=sol-sparc64
         conf queue_sort_method seqno
         job 1 -l arch=lx*
         job 2 -l arch=lx* -q *@b
         job 3 -l arch=sol* -q *@a
         job 4 -l arch=lx* -q odd.q
         job 5 -l arch=sol* -q odd.q
         pass
         = 1 all.q@a
         = 2 all.q@b
         = nothing
         ? 3 (-l arch=sol*) cannot run at host \"a\" because it offers only hf:arch=lx-amd64
         ? 4 (-l arch=lx*) cannot run in queue \"odd.q@b\" because it offers only qf:arch=sol-sparc64
         ? 5 (-l arch=sol*) cannot run at host \"b\" because it offers only hl:arch=lx-amd64",
    );
    // mem_free: set to 1G; 4G reported leaves 1G, 0.9G leaves 0.9G; a queue may lower it and not
    // raise it.
    check(
        "host a mem_free=1G | mem_free=4G
         queue all.q a slots=9
         queue low.q a slots=9 complex_values=mem_free=512M
         queue high.q a slots=9 complex_values=mem_free=8G
         job 1 -l mem_free=1025M -q all.q
         job 2 -l mem_free=600M -q low.q
         job 3 -l mem_free=1025M -q high.q
         pass
         = nothing
         ? 1 (-l mem_free=1025M) cannot run at host \"a\" because it offers only hf:mem_free=1.000G
         ? 2 (-l mem_free=600M) cannot run in queue \"low.q@a\" because it offers only qf:mem_free=512.000M
         load a mem_free=921.6M
         job 4 -l mem_free=1000M -q high.q
         pass
         = nothing
         ? 4 (-l mem_free=1000M) cannot run at host \"a\" because it offers only hl:mem_free=921.600M
         job 5 -l mem_free=900M -q high.q
         pass
         = 5 high.q@a",
    );
}

#[test]
fn a_host_alone_with_one_who_does_not_ask_before_and_after() {
    // ALGORITHMS.md section 14: eight slots, P with four of them, E alone, Q who does not ask.
    check(
        "complex excl excl BOOL EXCL YES YES 0 0
         host a excl=true
         pe smp 9 $pe_slots
         queue all.q a slots=8
         job 1 -pe smp 4
         pass
         = 1 all.q@a:4
         job 2 -l excl
         job 3
         pass
         = 3 all.q@a
         ? 2 (-l excl=TRUE) cannot run at host \"a\" because exclusive resource (excl) is already in use
         end 1
         pass
         = nothing
         end 3
         pass
         = 2 all.q@a
         job 4 -l excl=false
         job 5 -t 1-2:1 -l excl
         pass
         = nothing
         ? 4 (-l excl=false) cannot run at host \"a\" because for default request exclusive resource (excl) is already in use
         end 2
         pass
         = 4 all.q@a
         end 4
         pass
         = 5.1 all.q@a
         = nothing",
    );
}

/// Where a serial or parallel job that wants to be alone, and one that does not care, may go while
/// another is there.
#[test]
fn exclusivity_is_of_the_object_that_has_it() {
    for (global, host_value, queue_value, others) in [
        // Alone in the cluster: nobody else runs anywhere.
        ("global excl=true", "", "", "nothing nothing nothing"),
        // Alone on the host: others go to the other host, into each queue.
        ("", "excl=true", "", "nothing nothing all.q@b"),
        // Alone in the queue instance: the other queue of the host is free.
        ("", "", " complex_values=NONE,[a=excl=true]", "nothing two.q@a all.q@b"),
    ] {
        let mut lab = Lab::new();
        for line in ["complex excl excl BOOL EXCL YES YES 0 0", global] {
            if !line.is_empty() {
                lab.line(line);
            }
        }
        lab.line(&format!("host a {host_value}"));
        lab.line("host b");
        lab.line("pe smp 9 $pe_slots");
        lab.line(&format!("queue all.q a,b slots=4{queue_value}"));
        lab.line("queue two.q a,b slots=4");
        lab.line("job 1 -pe smp 2 -l excl -q all.q@a");
        lab.line("pass");
        lab.line("= 1 all.q@a:2");
        for (number, (wanted, expected)) in
            (2..).zip(["all.q@a", "two.q@a", "all.q@b"].into_iter().zip(others.split(' ')))
        {
            lab.line(&format!("job {number} -q {wanted}"));
            lab.line("pass");
            let expected = if expected == "nothing" {
                expected.to_owned()
            } else {
                format!("{number} {expected}")
            };
            lab.line(&format!("= {expected}"));
        }
    }
}

#[test]
fn a_parallel_job_alone_has_each_of_its_hosts_or_that_of_its_master() {
    for (kind, beside) in [("YES", "nothing"), ("JOB", "2 all.q@b")] {
        let mut lab = Lab::new();
        for line in [
            &format!("complex excl excl BOOL EXCL YES {kind} 0 0"),
            "host a excl=true",
            "host b excl=true",
            "pe rr 9 $round_robin",
            "queue all.q a,b slots=2 pe_list=rr",
            "job 1 -pe rr 3 -l excl",
            "pass",
            "= 1 all.q@a:2 all.q@b",
            "job 2 -q all.q@b",
            "pass",
            &format!("= {beside}"),
        ] {
            lab.line(line);
        }
        // Where each host counts, the one with job 2 keeps a second such job waiting; where the
        // master's counts, it does not.
        lab.end("1");
        lab.pass();
        lab.placed.clear();
        lab.line("job 3 -pe rr 3 -l excl");
        lab.line("pass");
        lab.line(&format!(
            "= {}",
            if kind == "YES" {
                "nothing"
            } else {
                "3 all.q@a:2 all.q@b"
            }
        ));
    }
}
