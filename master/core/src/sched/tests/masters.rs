//! Where the master of a parallel job is, and what only the master needs.

use super::check;

#[test]
fn a_master_queue_takes_the_master() {
    check(
        "host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         pe mpi 100 $fill_up
         queue all.q a slots=4
         queue big.q b slots=4
         job 1 -pe mpi 5 -masterq big.q
         pass
         = 1 big.q@b all.q@a:4",
    );
}

#[test]
fn what_is_charged_once_for_a_job_need_not_be_where_its_slaves_are() {
    let cluster = "conf queue_sort_method seqno
        complex tk tk INT <= YES JOB 0 0
        pe mpi 100 $fill_up
        pe smp 100 $pe_slots
        pe one 100 1
        pe two 100 2
        pe robin 100 $round_robin
        ";
    // As a real 8.1.9 places them.
    for (hosts, asks, placed) in [
        (["tk=4", "", "tk=1"], "one 3", "all.q@a all.q@b all.q@c"),
        (["", "tk=4", ""], "one 3", "all.q@b all.q@a all.q@c"),
        (["", "tk=4", ""], "mpi 3", "all.q@b all.q@a:2"),
        (["", "tk=4", ""], "two 4", "all.q@b:2 all.q@a:2"),
        (["", "tk=4", ""], "robin 4", "all.q@b all.q@a:2 all.q@c"),
        (["", "tk=4", ""], "mpi 6", "all.q@b:2 all.q@a:2 all.q@c:2"),
        (["", "tk=4", ""], "smp 2", "all.q@b:2"),
        (["tk=1", "", "tk=2"], "mpi 2-", "all.q@c:2 all.q@a:2 all.q@b:2"),
    ] {
        let [a, b, c] = hosts;
        check(&format!(
            "{cluster}host a {a}\nhost b {b}\nhost c {c}
             queue all.q a,b,c slots=2 seq_no=1,[b=2],[c=3] pe_list=mpi,smp,one,two,robin
             job 1 -l tk=2 -pe {asks}\npass\n= 1 {placed}"
        ));
    }
}

#[test]
fn the_master_may_be_outside_of_the_queues_of_the_other_slots() {
    let cluster = "conf queue_sort_method seqno
        host a
        host b
        pe mpi 100 $fill_up
        pe smp 100 $pe_slots
        queue all.q a,b slots=2 seq_no=1,[b=2] pe_list=mpi,smp
        queue big.q a,b slots=2 seq_no=3,[b=4] pe_list=mpi,smp
        job 1 -pe ";
    // As a real 8.1.9 places them.
    for (asks, placed) in [
        ("mpi 4 -q all.q -masterq big.q", "big.q@a all.q@a:2 all.q@b"),
        ("mpi 4 -q all.q -masterq big.q@b", "big.q@b all.q@b all.q@a:2"),
        ("mpi 3 -q *@b -masterq big.q@a", "big.q@a all.q@b:2"),
        ("mpi 1 -q all.q -masterq big.q", "big.q@a"),
        ("smp 2 -q all.q -masterq big.q", "big.q@a all.q@a"),
    ] {
        check(&format!("{cluster}{asks}\npass\n= 1 {placed}"));
    }
    // There the fourth slave was in `big.q@b`, which is for the master alone.
    check(&format!(
        "{cluster}mpi 6 -q all.q -masterq big.q\npass\n? 1 cannot run in PE \"mpi\" because it only offers 5 slots"
    ));
}
