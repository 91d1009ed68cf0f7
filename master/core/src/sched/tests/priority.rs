//! The numbers of ALGORITHMS.md section 1, and numbers that a real 8.1.9 printed.

use super::lab::Lab;
use crate::sched::{Listing, TaskPhase};
use proto::id::SubmitSeq;
use proto::wire::view::PriorityNumbers;
use std::sync::Arc;

fn lab(script: &str) -> Lab {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    lab
}

fn numbers(lab: &Lab, job: u64) -> PriorityNumbers {
    lab.scheduler
        .model()
        .priority_of(SubmitSeq(job), TaskPhase::Pending, lab.now)
}

/// A number as `qstat` prints it.
fn five(millionths: i64) -> String {
    format!("{:.5}", millionths as f64 / 1e6)
}

#[test]
fn jobs_that_are_alike_have_the_priority_of_an_untuned_cluster() {
    let lab = lab("host a
        queue all.q a slots=0
        job 1
        job 2");
    for job in [1, 2] {
        let numbers = numbers(&lab, job);
        assert_eq!(five(numbers.prior), "0.55500");
        assert_eq!(
            (numbers.npprior, numbers.nurg, numbers.ntckts),
            (500_000, 500_000, 500_000)
        );
        assert_eq!(numbers.urg, 1_000_000_000);
    }
}

#[test]
fn the_example_of_waiting_licences_and_a_running_job() {
    // A waits 100 s, B asks for 4 slots with a licence each and waits 10 s, R runs and was
    // submitted 3600 s ago.
    let mut lab = lab("complex license license INT <= YES YES 0 500
        host a license=9
        pe mpi 100 $fill_up
        queue all.q a slots=1
        conf weight_waiting_time 0.278
        job 3
        pass
        wait 3500
        job 4
        wait 90
        job 5 -pe mpi 4 -l license=1
        wait 10");
    lab.placed.clear();
    for (job, of, urg, nurg, prior) in [
        (4, TaskPhase::Pending, 1_027_800_000, "0.00000", "0.50500"),
        (5, TaskPhase::Pending, 6_002_780_000, "1.00000", "0.60500"),
        (3, TaskPhase::Running, 2_000_800_000, "0.19558", "0.52456"),
    ] {
        let numbers = lab.scheduler.model().priority_of(SubmitSeq(job), of, lab.now);
        assert_eq!(numbers.urg, urg, "{job}");
        assert_eq!(five(numbers.nurg), nurg, "{job}");
        assert_eq!(five(numbers.prior), prior, "{job}");
    }
}

#[test]
fn a_listing_in_steps_has_the_numbers_of_every_job_and_keeps_equal_ones_once() {
    let mut lab = lab("host a
        queue all.q a slots=2
        job 1 -p -5
        job 2 -t 1-9:1
        pass
        job 3
        job 4
        job 5 -p 7");
    let (mut listing, now) = (Listing::default(), lab.now);
    let steps = (1..).take_while(|_| !lab.scheduler.list(&mut listing, 2, now)).count();
    assert_eq!(steps, 2, "five jobs, two at a time");
    let listed = listing.finish();
    let model = lab.scheduler.model();
    let is_pending = |seq: u64| seq != 1;
    for (seq, numbers) in listed.jobs.iter() {
        let of = if is_pending(seq.0) {
            TaskPhase::Pending
        } else {
            TaskPhase::Running
        };
        assert_eq!(**numbers, model.priority_of(*seq, of, now), "{seq:?}");
    }
    assert_eq!(listed.jobs.len(), 5);
    let of_both: Vec<SubmitSeq> = listed.running.keys().copied().collect();
    assert_eq!(of_both, [SubmitSeq(2)], "one of its tasks runs and others may start");
    assert!(Arc::ptr_eq(&listed.jobs[&SubmitSeq(3)], &listed.jobs[&SubmitSeq(4)]));
}

#[test]
fn posix_priorities_are_on_a_fixed_scale() {
    let lab = lab("host a
        queue all.q a slots=0
        job 1 -p -1023
        job 2 -p -100
        job 3 -p 0
        job 4 -p 100
        job 5 -p 1024");
    for (job, npprior) in [
        (1, "0.00049"),
        (2, "0.45117"),
        (3, "0.50000"),
        (4, "0.54883"),
        (5, "1.00000"),
    ] {
        assert_eq!(five(numbers(&lab, job).npprior), npprior);
    }
    assert_eq!(five(numbers(&lab, 2).prior), "0.50617");
}

#[test]
fn the_numbers_that_8_1_9_printed() {
    // Weights 0.5, 0.5, 0 and a deadline 77 s and 3557 s away.
    let lab = lab("complex lic lic INT <= YES YES 0 50
        complex cj cj INT <= YES JOB 0 7
        complex bv bv BOOL == YES NO 0 33
        complex rs rs RESTRING == YES NO NONE 11
        host a
        pe smp 999 $pe_slots
        pe mpi 999 $round_robin
        queue all.q a slots=0
        conf weight_urgency 0.5
        conf weight_ticket 0.5
        conf weight_priority 0
        job 130
        job 136 -l lic=2
        job 137 -pe smp 4
        job 138 -pe smp 4-8
        job 139 -pe mpi 2-6 -l lic=3,cj=5
        job 140 -l bv=TRUE,rs=abc
        job 141 -dl 3557
        job 142 -dl 77");
    for (job, prior, nurg, urg) in [
        (142, "0.75000", "1.00000", 47753),
        (137, "0.28208", "0.06417", 4000),
        (138, "0.28208", "0.06417", 4000),
        (139, "0.26465", "0.02930", 2370),
        (141, "0.26082", "0.02165", 2012),
        (136, "0.25107", "0.00214", 1100),
        (140, "0.25047", "0.00094", 1044),
        (130, "0.25000", "0.00000", 1000),
    ] {
        let numbers = numbers(&lab, job);
        assert_eq!(
            (five(numbers.prior), five(numbers.nurg)),
            (prior.to_owned(), nurg.to_owned()),
            "{job}"
        );
        assert_eq!(numbers.urg / 1_000_000, urg, "{job}");
    }
}

#[test]
fn a_range_of_slots_counts_as_its_environment_says() {
    // As recorded of 8.1.9: -pe 4-8.
    for (urgency_slots, urg) in [("min", 4000), ("max", 8000), ("avg", 6000), ("5", 5000)] {
        let lab = lab(&format!(
            "host a
             pe mpi 999 $fill_up urgency_slots={urgency_slots}
             queue all.q a slots=0
             job 1 -pe mpi 4-8"
        ));
        assert_eq!(numbers(&lab, 1).urg, urg * 1_000_000, "{urgency_slots}");
    }
}

#[test]
fn a_job_that_may_not_start_has_only_its_posix_priority() {
    let lab = lab("host a
        queue all.q a slots=0
        job 1 -h -p -100
        job 2");
    let held = numbers(&lab, 1);
    assert_eq!(
        held,
        PriorityNumbers {
            npprior: 451_172,
            ..PriorityNumbers::default()
        }
    );
}

#[test]
fn more_urgent_jobs_and_higher_priorities_start_first() {
    super::check(
        "host a
         pe smp 100 $pe_slots
         queue all.q a slots=4
         job 1 -p -10
         job 2
         job 3 -pe smp 2
         pass
         = 3 all.q@a:2
         = 2 all.q@a
         = 1 all.q@a",
    );
}

#[test]
fn urgency_slots_max_is_the_end_of_the_range_whatever_the_environment_has() {
    for (urgency_slots, range, slots, urg) in [
        ("max", "3-30", 4, 30_000),
        ("max", "4-", 7, 7_000),
        ("avg", "3-30", 4, 3_000),
        ("min", "3-30", 4, 3_000),
        ("max", "3-30", 999, 30_000),
        ("max", "1-4,8", 2, 8_000),
    ] {
        let lab = lab(&format!(
            "host a
             pe mpi {slots} $fill_up urgency_slots={urgency_slots}
             queue all.q a slots=0 pe_list=mpi
             job 1 -pe mpi {range}"
        ));
        assert_eq!(
            numbers(&lab, 1).urg,
            urg * 1_000_000,
            "{urgency_slots} {range} of {slots}"
        );
    }
}

#[test]
fn the_job_with_the_larger_range_starts_where_urgency_slots_is_max() {
    super::lab::check(
        "host a
         host b
         pe make 999 $round_robin
         pe mpi 4 $fill_up urgency_slots=max
         queue all.q a,b slots=4 pe_list=make,mpi
         job 1 -pe make 8
         job 2 -pe mpi 3-30
         pass
         = 2 all.q@a:4",
    );
}

#[test]
fn jobs_of_a_user_who_may_start_no_more_come_last_and_others_are_still_compared_with_their_urgency() {
    let mut lab = lab("conf maxujobs 1
        complex lic lic INT <= YES YES 0 0
        complex ur ur INT <= YES YES 0 1000
        global lic=0
        host a ur=10
        queue all.q a slots=3
        job 1 -l ur=9
        job 2 -p 1024 -l ur=5
        job 3 -u u2 -l lic=1
        job 4 -u u2 -l lic=1,ur=1");
    let range = |lab: &Lab| [1, 2, 3, 4].map(|job| five(numbers(lab, job).nurg)).join(" ");
    assert_eq!(range(&lab), "1.00000 0.55556 0.00000 0.11111");
    lab.place();
    assert_eq!(
        lab.state().jobs[&SubmitSeq(2)].active,
        1,
        "the one with the highest priority runs"
    );
    lab.place();
    assert_eq!(numbers(&lab, 1), PriorityNumbers::default());
    assert_eq!([3, 4].map(|job| five(numbers(&lab, job).nurg)), ["0.00000", "0.11111"]);
}
