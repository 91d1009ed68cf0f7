//! Priorities that 8.1.9 printed, at the moments at which its scheduler computed them: every digit.
//!
//! When jobs were submitted is recorded; when a pass was made follows from the parts that waiting
//! and deadlines have.

use super::lab::Lab;
use crate::sched::TaskPhase;
use proto::id::SubmitSeq;
use proto::wire::view::PriorityNumbers;

/// The jobs: 130 at 01:39:40, the others at 01:39:43, with deadlines at 01:41:00 and 02:39:00.
const JOBS: &str = "complex lic lic INT <= YES YES 0 50
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
    conf weight_waiting_time 0.278
    job 130
    wait 3
    job 131
    job 132 -p -100
    job 133 -p -1023
    job 136 -l lic=2
    job 137 -pe smp 4
    job 138 -pe smp 4-8
    job 139 -pe mpi 2-6 -l lic=3,cj=5
    job 140 -l bv=TRUE,rs=abc
    job 141 -dl 3560
    job 142 -dl 80";

fn run(lab: &mut Lab, script: &str) {
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
}

/// A number as printf(3) writes it: halves to even.
fn printed(millionths: i64, places: usize) -> String {
    format!("{:.places$}", millionths as f64 / 1e6)
}

/// The numbers of a job as `qstat -urg` prints them, and as `qstat -urg -pri` does.
fn rows(lab: &Lab, job: u64) -> [String; 2] {
    let numbers = lab
        .scheduler
        .model()
        .priority_of(SubmitSeq(job), TaskPhase::Pending, lab.now);
    let PriorityNumbers {
        prior,
        npprior,
        nurg,
        ntckts,
        urg,
        rrcontr,
        wtcontr,
        dlcontr,
        ..
    } = numbers;
    let [prior, npprior, nurg, ntckts] = [prior, npprior, nurg, ntckts].map(|number| printed(number, 5));
    let urgency = [urg, rrcontr, wtcontr, dlcontr]
        .map(|number| printed(number, 0))
        .join(" ");
    let posix = lab.state().jobs[&SubmitSeq(job)].spec.priority;
    let all = format!("{job} {prior} {nurg} {npprior} {ntckts} {urgency} {posix}");
    [format!("{job} {prior} {nurg} {urgency}"), all]
}

fn expect(lab: &Lab, recorded: &str) {
    for row in recorded.lines().map(str::trim) {
        let job: u64 = row.split(' ').next().unwrap().parse().unwrap();
        let ours = rows(lab, job);
        assert!(ours.iter().any(|ours| ours == row), "recorded: {row}\nours: {ours:?}");
    }
}

#[test]
fn default_weights() {
    let mut lab = Lab::new();
    run(&mut lab, JOBS);
    expect(
        &lab,
        "142 0.75000 1.00000 0.50000 0.50000 47753 1000 0 46753 0
        137 0.28208 0.06417 0.50000 0.50000 4000 4000 0 0 0
        138 0.28208 0.06417 0.50000 0.50000 4000 4000 0 0 0
        139 0.26465 0.02930 0.50000 0.50000 2370 2370 0 0 0
        141 0.26082 0.02165 0.50000 0.50000 2012 1000 0 1012 0
        136 0.25107 0.00214 0.50000 0.50000 1100 1100 0 0 0
        140 0.25047 0.00094 0.50000 0.50000 1044 1044 0 0 0
        130 0.25001 0.00002 0.50000 0.50000 1001 1000 1 0 0
        131 0.25000 0.00000 0.50000 0.50000 1000 1000 0 0 0
        132 0.25000 0.00000 0.45117 0.50000 1000 1000 0 0 -100
        133 0.25000 0.00000 0.00049 0.50000 1000 1000 0 0 -1023",
    );
}

#[test]
fn classic_weights_and_slots_of_a_range() {
    let mut lab = Lab::new();
    run(&mut lab, JOBS);
    run(
        &mut lab,
        "conf weight_priority 1
        conf weight_urgency 0.1
        conf weight_ticket 0.01
        conf weight_waiting_time 0.5
        wait 11",
    );
    expect(
        &lab,
        "142 0.60500 1.00000 0.50000 0.50000 55551 1000 6 54545 0
        137 0.51050 0.05500 0.50000 0.50000 4006 4000 6 0 0
        138 0.51050 0.05500 0.50000 0.50000 4006 4000 6 0 0
        139 0.50751 0.02512 0.50000 0.50000 2376 2370 6 0 0
        141 0.50686 0.01861 0.50000 0.50000 2021 1000 6 1015 0
        136 0.50518 0.00183 0.50000 0.50000 1106 1100 6 0 0
        140 0.50508 0.00081 0.50000 0.50000 1050 1044 6 0 0
        130 0.50500 0.00003 0.50000 0.50000 1007 1000 7 0 0
        131 0.50500 0.00000 0.50000 0.50000 1006 1000 6 0 0
        132 0.45617 0.00000 0.45117 0.50000 1006 1000 6 0 -100
        133 0.00549 0.00000 0.00049 0.50000 1006 1000 6 0 -1023",
    );
    run(&mut lab, "pe smp 999 $pe_slots urgency_slots=max\nwait 4");
    expect(
        &lab,
        "138 0.51706 0.12056 8008 8000 8 0
        137 0.51017 0.05167 4008 4000 8 0
        139 0.50736 0.02359 2378 2370 8 0
        136 0.50517 0.00172 1108 1100 8 0
        140 0.50508 0.00076 1052 1044 8 0",
    );
    run(&mut lab, "pe smp 999 $pe_slots urgency_slots=avg\nwait 6");
    expect(
        &lab,
        "138 0.51278 0.07778 6010 6000 10 0
        137 0.50967 0.04667 4010 4000 10 0
        139 0.50713 0.02131 2380 2370 10 0
        136 0.50516 0.00156 1110 1100 10 0
        140 0.50507 0.00068 1054 1044 10 0",
    );
    run(&mut lab, "pe smp 999 $pe_slots urgency_slots=5\nwait 2");
    expect(
        &lab,
        "138 0.51100 0.06000 5012 5000 12 0
        137 0.50950 0.04500 4012 4000 12 0
        139 0.50706 0.02055 2382 2370 12 0
        136 0.50515 0.00150 1112 1100 12 0
        140 0.50507 0.00066 1056 1044 12 0",
    );
    run(&mut lab, "pe smp 999 $pe_slots urgency_slots=min\nwait 8");
    expect(
        &lab,
        "137 0.50883 0.03833 4016 4000 16 0
        138 0.50883 0.03833 4016 4000 16 0
        139 0.50675 0.01751 2386 2370 16 0
        136 0.50513 0.00128 1116 1100 16 0
        140 0.50506 0.00056 1060 1044 16 0",
    );
}
