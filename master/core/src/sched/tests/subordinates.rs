//! Queues that others suspend, within a pass.

use super::check;

const CLUSTER: &str = "conf queue_sort_method seqno
    host a slots=8
    host b slots=8
    pe mpi 100 $fill_up
    queue low.q a,b slots=4 seq_no=1,[b=3] pe_list=mpi
    queue high.q a,b slots=4 seq_no=2,[b=4] pe_list=mpi subordinate_list=low.q=2
    ";

#[test]
fn a_start_of_the_same_pass_has_a_queue_suspended_for_those_after_it() {
    // Two slots of high.q are in use with the second job: it is low.q of the other host for those
    // behind.
    check(&format!(
        "{CLUSTER}job 1 -q high.q\njob 2 -q high.q\njob 3\npass\n= 1 high.q@a\n= 2 high.q@a\n= 3 high.q@a"
    ));
}

#[test]
fn as_long_as_too_few_slots_are_planned_the_queue_is_open() {
    check(&format!(
        "{CLUSTER}job 1 -q high.q\njob 2\npass\n= 1 high.q@a\n= 2 low.q@a"
    ));
}

#[test]
fn a_parallel_job_uses_what_is_not_suspended() {
    check(&format!(
        "{CLUSTER}job 1 -q high.q@a -pe mpi 3\njob 2 -pe mpi 2\npass\n= 1 high.q@a:3\n= 2 high.q@a low.q@b"
    ));
}
