use super::*;

#[test]
fn load_that_was_promised_is_not_promised_again() {
    // ALGORITHMS.md section 6.2: what was booked after the sample is subtracted until a later one.
    check(
        "host a | mem_free=22G
         queue all.q a slots=10
         job 1 -l mem_free=15G
         job 2 -l mem_free=15G
         pass
         = 1 all.q@a
         = nothing
         ? 2 (-l mem_free=15G) cannot run at host \"a\" because it offers only hl:mem_free=7.000G
         wait 40
         load a mem_free=20G
         pass
         = 2 all.q@a",
    );
}

#[test]
fn a_value_that_stays_as_it_was_is_a_later_sample_too() {
    // Reports name what changed: what they leave out was sampled anew and is the same.
    check(
        "host a | mem_free=22G
         queue all.q a slots=10
         job 1 -l mem_free=15G
         job 2 -l mem_free=15G
         pass
         = 1 all.q@a
         = nothing
         wait 40
         load a
         pass
         = 2 all.q@a",
    );
}

#[test]
fn a_consumable_with_a_load_value_offers_the_lesser() {
    // As recorded of 8.1.9: capacity 10G below the load, capacity 500G above it.
    check(
        "complex gas gas MEMORY <= YES YES 1G 0
         host a gas=10G | gas=22G
         host b gas=500G | gas=22G
         queue all.q a,b slots=4
         job 1 -l gas=4G -q *@a
         job 2 -l gas=4G -q *@a
         job 3 -l gas=4G -q *@a
         job 4 -q *@a
         job 5 -l gas=30G -q *@b
         pass
         = 1 all.q@a
         = 2 all.q@a
         = 4 all.q@a
         ? 3 (-l gas=4G) cannot run at host \"a\" because it offers only hc:gas=1.000G
         ? 5 (-l gas=30G) cannot run at host \"b\" because it offers only hl:gas=22.000G",
    );
}

#[test]
fn instances_are_ordered_by_load_then_sequence_number() {
    // ALGORITHMS.md section 8: hosts a(0.20) b(0.20) c(0.10); fast seq 0 on a,b; slow seq 10 on
    // a,b,c.
    let cluster = "host a | np_load_avg=0.20
         host b | np_load_avg=0.20
         host c | np_load_avg=0.10
         queue fast a,b slots=1
         queue slow a,b,c slots=1 seq_no=10
         conf job_load_adjustments NONE
         job 1 -t 1-5:1
         ";
    let load = "pass
         = 1.1 slow@c
         = 1.2 fast@a
         = 1.3 fast@b
         = 1.4 slow@a
         = 1.5 slow@b";
    let seqno = "conf queue_sort_method seqno
         pass
         = 1.1 fast@a
         = 1.2 fast@b
         = 1.3 slow@c
         = 1.4 slow@a
         = 1.5 slow@b";
    check(&format!("{cluster}{load}"));
    check(&format!("{cluster}{seqno}"));
}

#[test]
fn load_adjustments_spread_jobs_over_equal_hosts() {
    check(
        "host a
         host b
         queue all.q a,b slots=4
         job 1 -t 1-4:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@b
         = 1.3 all.q@a
         = 1.4 all.q@b",
    );
}

#[test]
fn a_load_formula_of_slots_packs_and_of_minus_slots_spreads() {
    let cluster = "host a
         host b
         queue all.q a,b slots=4,[b=3]
         conf job_load_adjustments NONE
         job 1 -t 1-3:1
         ";
    check(&format!(
        "{cluster}conf load_formula slots
         pass
         = 1.1 all.q@b
         = 1.2 all.q@b
         = 1.3 all.q@b"
    ));
    check(&format!(
        "{cluster}conf load_formula -slots
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@b"
    ));
}

#[test]
fn load_thresholds_close_an_instance() {
    // As recorded of 8.1.9 (tests/captures/32sched.txt).
    check(
        "host a | np_load_avg=12.302979
         queue all.q a slots=4 load_thresholds=np_load_avg=1.75
         job 1
         pass
         = nothing
         ? 1 queue instance \"all.q@a\" dropped because it is overloaded: np_load_avg=12.302979 (no load adjustment) >= 1.75
         ? 1 All queues dropped because of overload or full
         load a np_load_avg=0.5
         pass
         = 1 all.q@a",
    );
}

#[test]
fn load_adjustments_reach_thresholds_and_decay() {
    // 4 processors: each slot that starts adds 0.5/4.
    check(
        "host a | np_load_avg=0.00
         queue all.q a slots=40 load_thresholds=np_load_avg=0.3
         job 1 -t 1-9:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@a
         = nothing
         wait 300
         pass
         = 1.4 all.q@a
         = 1.5 all.q@a",
    );
}
