//! Requests of the master and of the other slots of a parallel job apart (`-scope`,
//! `ign_sreq_on_mhost`).

mod law;

use super::lab::check;

#[test]
fn the_master_and_the_others_each_have_what_they_ask_for() {
    // The example of the manual, smaller.
    check(
        "complex memory memory MEMORY <= YES YES 0 0
         complex gpu gpu INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host io memory=2G | np_load_avg=0.1
         host a memory=8G gpu=4 | np_load_avg=0.2
         host b memory=16G gpu=4 | np_load_avg=0.3
         pe mpi 100 $fill_up
         queue io.q io,a slots=4
         queue compute.q a,b slots=4
         job 1 -pe mpi 6 -l h_rt=3600 -scope master -q io.q -l memory=1G -scope slave -q compute.q -l memory=4G,gpu=1
         pass
         = 1 io.q@io compute.q@a:2 compute.q@b:3
         job 2 -pe mpi 2 -scope master -q io.q -l memory=1G -scope slave -q compute.q -l memory=4G,gpu=1
         pass
         = 2 io.q@io compute.q@b
         job 3 -pe mpi 2 -scope master -q io.q -scope slave -q compute.q -l memory=4G
         pass
         = nothing
         ? 3 cannot run in PE \"mpi\" because it only offers 1 slots
         end 1
         pass
         = 3 io.q@io compute.q@a",
    );
}

#[test]
fn on_its_host_the_master_takes_its_own_and_the_others_theirs() {
    check(
        "complex mem mem INT <= YES YES 0 0
         host a mem=10
         pe mpi 100 $fill_up
         queue all.q a slots=9
         job 1 -pe mpi 1- -scope master -l mem=3 -scope slave -l mem=2
         pass
         = 1 all.q@a:4
         job 2 -pe mpi 1 -scope slave -l mem=2
         pass
         = 2 all.q@a
         job 3 -pe mpi 2 -scope slave -l mem=2
         pass
         = nothing
         ? 3 cannot run in PE \"mpi\" because it only offers 1 slots
         end 1
         pass
         = 3 all.q@a:2",
    );
}

#[test]
fn the_master_goes_where_it_leaves_most_room() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=4 | np_load_avg=0.1
         host b mem=4 | np_load_avg=0.2
         host c mem=9 | np_load_avg=0.3
         pe mpi 100 $fill_up
         pe robin 100 $round_robin
         pe two 100 2
         queue all.q a,b,c slots=4 pe_list=mpi,robin,two
         job 1 -pe mpi 13 -scope master -l mem=4 -scope slave -l mem=1
         pass
         = nothing
         ? 1 cannot run in PE \"mpi\" because it only offers 12 slots",
    );
    let job = |pe: &str, slots: &str, placed: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             conf job_load_adjustments NONE
             host a mem=4 | np_load_avg=0.1
             host b mem=4 | np_load_avg=0.2
             host c mem=9 | np_load_avg=0.3
             pe mpi 100 $fill_up
             pe robin 100 $round_robin
             pe two 100 2
             queue all.q a,b,c slots=4 pe_list=mpi,robin,two
             job 1 -pe {pe} {slots} -scope master -l mem=4 -scope slave -l mem=1
             pass
             {placed}"
        ));
    };
    // On a or b the master leaves no room beside itself.
    job("mpi", "9", "= 1 all.q@a all.q@b:4 all.q@c:4");
    job("mpi", "1-", "= 1 all.q@c:4 all.q@a:4 all.q@b:4");
    job("mpi", "10", "= 1 all.q@c:2 all.q@a:4 all.q@b:4");
    job("robin", "12", "= 1 all.q@c:4 all.q@a:4 all.q@b:4");
    job("two", "2-", "= 1 all.q@c:2 all.q@a:2 all.q@b:2");
}

#[test]
fn slots_beside_the_master_are_spared_where_the_environment_says_so() {
    let job = |settings: &str, placed: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             complex lic lic INT <= YES YES 0 0
             conf job_load_adjustments NONE
             global lic=2
             host a mem=5 | np_load_avg=0.1
             host b mem=5 | np_load_avg=0.2
             pe mpi 100 $fill_up {settings}
             queue io.q a slots=3
             queue all.q a,b slots=2
             job 1 -pe mpi 1- -scope master -q io.q -l mem=5 -scope slave -q all.q -l mem=2,lic=1
             pass
             {placed}"
        ));
    };
    job("", "= 1 io.q@a all.q@b:2");
    // Those beside the master need neither memory nor a licence nor their queue.
    job("ign_sreq_on_mhost=TRUE", "= 1 io.q@a:3 all.q@a:2 all.q@b:2");
}

#[test]
fn a_master_that_is_no_task_has_a_slot_of_its_own_request() {
    check(
        "complex mem mem INT <= YES YES 0 0
         host a mem=7
         pe mpi 100 $fill_up job_is_first_task=FALSE
         queue all.q a slots=9
         job 1 -pe mpi 1- -scope master -l mem=3 -scope slave -l mem=2
         pass
         = 1 all.q@a:2
         job 2 -l mem=1
         pass
         = nothing
         ? 2 (-l mem=1) cannot run at host \"a\" because it offers only hc:mem=0.000000
         end 1
         pass
         = 2 all.q@a",
    );
    // It need not be where the tasks are.
    check(
        "conf job_load_adjustments NONE
         host io | np_load_avg=0.1
         host a | np_load_avg=0.2
         host b | np_load_avg=0.3
         pe mpi 100 $fill_up job_is_first_task=FALSE
         pe two 100 2 job_is_first_task=FALSE
         queue io.q io,a slots=1 pe_list=mpi,two
         queue compute.q a,b slots=3 pe_list=mpi,two
         quota r queues io.q to slots=9
         job 1 -pe mpi 4 -scope master -q io.q -scope slave -q compute.q
         pass
         = 1 io.q@io:0 compute.q@a:3 compute.q@b
         job 2 -pe two 2 -scope master -q io.q -scope slave -q compute.q
         pass
         = 2 io.q@a:0 compute.q@b:2
         job 3 -pe mpi 1 -scope master -q io.q -scope slave -q compute.q
         pass
         = nothing
         end 1
         pass
         = 3 io.q@io:0 compute.q@a",
    );
}

#[test]
fn it_is_said_what_the_master_lacks_and_what_the_others_do() {
    let job = |requests: &str, why: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             host a mem=4
             pe mpi 100 $fill_up
             queue all.q a slots=4
             job 1 -pe mpi 2 {requests}
             pass
             = nothing
             ? 1 ({requests}) cannot run at host \"a\" because it offers only {why}"
        ));
    };
    job("-scope master -l mem=9", "hc:mem=4.000000");
    job(
        "-l h_rt=9 -scope master -l mem=9 -scope slave -l mem=1",
        "hc:mem=4.000000",
    );
    job("-scope slave -l mem=9", "hc:mem=4.000000");
    check(
        "host a
         pe mpi 100 $fill_up
         queue all.q a slots=4
         queue b.q a slots=4 pe_list=NONE
         job 1 -pe mpi 2 -scope slave -q b.q
         pass
         = nothing
         ? 1 cannot run in queue \"all.q@a\" because it is not contained in its slave queue list (-scope slave -q)
         ? 1 cannot run in PE \"mpi\" because it only offers 1 slots",
    );
}

#[test]
fn attributes_of_every_kind_count_for_those_who_ask() {
    check(
        "complex card card INT <= YES HOST 0 0
         complex once once INT <= YES JOB 0 0
         complex excl excl BOOL EXCL YES YES 0 0
         complex kind kind STRING == YES NO NONE 0
         complex must must INT <= FORCED YES 0 0
         conf job_load_adjustments NONE
         host a card=1 once=5 excl=true kind=head | np_load_avg=0.1
         host b card=3 once=1 kind=node | np_load_avg=0.2
         host c card=2 kind=node must=9 excl=true | np_load_avg=0.3
         pe mpi 100 $round_robin
         queue all.q a,b,c slots=3
         job 1 -pe mpi 3 -scope master -l kind=head -scope slave -l kind=node,card=2
         pass
         = 1 all.q@a all.q@b:2
         end 1
         job 2 -pe mpi 3 -scope master -l kind=node,once=1 -scope slave -l must=1
         pass
         = 2 all.q@b all.q@c:2
         end 2
         job 3 -pe mpi 3 -scope master -l once=5 -scope slave -l must=1
         pass
         = 3 all.q@a all.q@c:2
         end 3
         job 4 -pe mpi 4 -scope master -l must=1 -q all.q@c
         pass
         = 4 all.q@c all.q@a:2 all.q@b
         job 5 -pe mpi 2 -scope slave -l excl
         pass
         = nothing
         end 4
         pass
         = 5 all.q@a:2
         job 6
         pass
         = 6 all.q@b
         job 7 -pe mpi 2 -scope master -l excl -l kind=head
         pass
         = nothing
         end 5
         pass
         = 7 all.q@a all.q@b",
    );
}

#[test]
fn what_the_whole_cluster_has_for_hosts_goes_to_the_master_and_to_the_hosts_of_slaves() {
    // Both sides may ask for an attribute of kind HOST where the complex has changed since.
    check(
        "complex lic lic INT <= YES YES 0 0
         conf job_load_adjustments NONE
         global lic=3
         host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         host c | np_load_avg=0.3
         pe mpi 100 $round_robin job_is_first_task=FALSE
         queue all.q a,b,c slots=2
         job 1 -pe mpi 2- -scope master -l lic=1 -scope slave -l lic=1
         complex lic lic INT <= YES HOST 0 0
         pass
         = 1 all.q@a all.q@b:2
         end 1
         global lic=2
         job 2 -pe mpi 3 -scope master -l lic=1 -scope slave -l lic=1
         pass
         = nothing
         job 3 -pe mpi 1 -scope master -l lic=1 -scope slave -l lic=1
         pass
         = 3 all.q@a",
    );
}

#[test]
fn defaults_are_taken_by_those_who_do_not_ask() {
    check(
        "complex mem mem INT <= YES YES 2 0
         host a mem=9
         pe mpi 100 $fill_up
         queue all.q a slots=9
         job 1 -pe mpi 3 -scope master -l mem=3
         pass
         = 1 all.q@a:3
         job 2
         pass
         = 2 all.q@a
         job 3
         pass
         = nothing
         ? 3 (-l NONE) cannot run at host \"a\" because it offers only hc:mem=0.000000",
    );
}

#[test]
fn quotas_count_what_each_takes() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=99 | np_load_avg=0.1
         host b mem=99 | np_load_avg=0.2
         pe mpi 100 $fill_up
         pe spare 100 $fill_up ign_sreq_on_mhost=TRUE
         queue all.q a,b slots=9 pe_list=mpi,spare
         quota r hosts {*} to mem=8
         job 1 -pe mpi 1- -scope master -l mem=5 -scope slave -l mem=2
         pass
         = 1 all.q@a:2 all.q@b:4
         job 2 -l mem=2
         pass
         = nothing
         job 3 -l mem=1
         pass
         = 3 all.q@a
         end 1
         end 3
         pass
         = 2 all.q@a
         end 2
         job 4 -pe spare 11 -scope master -l mem=7 -scope slave -l mem=4
         pass
         = 4 all.q@a:9 all.q@b:2
         % r/1 mem=7/8 hosts a
         % r/1 mem=8/8 hosts b",
    );
}

#[test]
fn a_reservation_is_made_for_both() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         conf max_reservation 10
         host a mem=4 | np_load_avg=0.1
         host b mem=4 | np_load_avg=0.2
         pe mpi 100 $fill_up
         queue all.q a,b slots=4
         job 1 -l mem=3,h_rt=100 -q all.q@a
         job 2 -l mem=2,h_rt=50 -q all.q@b
         pass
         = 1 all.q@a
         = 2 all.q@b
         job 3 -R -pe mpi 2 -l h_rt=10 -scope master -l mem=4 -scope slave -l mem=1
         job 4 -pe mpi 2 -l h_rt=60 -scope master -l mem=1 -scope slave -l mem=1 -p -10
         job 5 -pe mpi 2 -l h_rt=40 -scope master -l mem=1 -scope slave -l mem=2 -p -20
         pass
         = 5 all.q@a all.q@b
         @ 3 +110 all.q@b all.q@a",
    );
}

#[test]
fn within_an_advance_reservation_both_take_of_what_it_has() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=9 | np_load_avg=0.1
         host b mem=9 | np_load_avg=0.2
         pe mpi 100 $round_robin
         queue all.q a,b slots=4
         reserve 1 0 500 -pe mpi 4 -l mem=2
         ! 1 all.q@a:2 all.q@b:2
         begin 1
         job 1 -ar 1 -pe mpi 3 -scope master -l mem=3 -scope slave -l mem=2
         job 2 -ar 1 -pe mpi 3 -scope master -l mem=4 -scope slave -l mem=2
         job 3 -ar 1 -pe mpi 1 -scope master -l mem=1
         pass
         = 1 all.q@a all.q@b:2
         = 3 all.q@a
         end 1
         pass
         = nothing
         ? 2 cannot run in PE \"mpi\" because it only offers 2 slots
         end 3
         pass
         = 2 all.q@a all.q@b:2",
    );
}
