//! Values of which jobs take their share late: licences that are checked out a while after the
//! start (ALGORITHMS.md section 6.2).

use super::lab::{Lab, check};
use crate::observe::Observation;
use proto::load::LoadReport;
use proto::wire::stream::Order;
use std::collections::BTreeMap;

/// Licences in all, and how many of them others hold.
const LICENCES: u32 = 5;
const HELD_BY_OTHERS: u32 = 2;

/// Seconds from the start of a job to its checkout, and to its end.
const CHECKOUT_S: u64 = 10;
const END_S: u64 = 25;

/// Seconds between two samples of the licence server.
const SAMPLED_EVERY_S: u64 = 3;

/// A cell with a licence server, and 40 jobs that need one licence each.
fn licensed_cell(kind: &str, settle: &str) -> Lab {
    let mut lab = Lab::new();
    lab.line(&format!("complex lic lic INT <= YES {kind} 0 0"));
    if kind == "YES" {
        lab.line(&format!("global lic={LICENCES}"));
    }
    lab.line("host a");
    lab.line("queue all.q a slots=40");
    lab.line(&format!("conf params {settle}"));
    for job in 1..=40 {
        lab.line(&format!("job {job} -l lic=1"));
    }
    lab
}

/// Runs the cell second by second; how many jobs found no licence when they wanted theirs, and how
/// many ended well.
fn refused_and_done(mut lab: Lab) -> (usize, usize) {
    let (mut running, mut refused, mut done) = (Vec::<(String, u64)>::new(), 0, 0);
    for second in 0..600 {
        let in_use = |running: &[(String, u64)]| {
            let holders = running.iter().filter(|(_, since)| second >= since + CHECKOUT_S).count();
            u32::try_from(holders).unwrap() + HELD_BY_OTHERS
        };
        while in_use(&running) > LICENCES {
            let late = running
                .iter()
                .rposition(|(_, since)| second == since + CHECKOUT_S)
                .unwrap();
            lab.end(&running.remove(late).0);
            refused += 1;
        }
        running.retain(|(job, since)| {
            let is_over = second >= since + END_S;
            if is_over {
                lab.end(job);
                done += 1;
            }
            !is_over
        });
        if second % SAMPLED_EVERY_S == 0 {
            lab.line(&format!(
                "load global lic={}",
                LICENCES.saturating_sub(in_use(&running))
            ));
        }
        lab.pass();
        running.extend(
            lab.placed
                .drain(..)
                .map(|placed| (placed.split(' ').next().unwrap().to_owned(), second)),
        );
        lab.wait(1);
    }
    (refused, done)
}

#[test]
fn a_settle_time_leaves_no_checkout_refused() {
    for kind in ["NO", "YES"] {
        let (refused, done) = refused_and_done(licensed_cell(kind, "SETTLE_TIME=lic:10"));
        assert_eq!((refused, done), (0, 40), "{kind}");
        let (refused, _) = refused_and_done(licensed_cell(kind, "none"));
        assert!(refused > 0, "{kind}: the scenario needs the settle time");
    }
}

#[test]
fn what_was_booked_within_the_settle_time_before_a_sample_is_not_in_it() {
    check(
        "complex lic lic INT <= YES YES 0 0
         conf params SETTLE_TIME=lic:0:0:10
         global lic=5
         host a
         load global lic=3
         queue all.q a slots=9
         job 1 -l lic=2
         job 2 -l lic=2
         pass
         = 1 all.q@a
         = nothing
         wait 9
         load global lic=3
         pass
         = nothing
         ? 2 (-l lic=2) cannot run globally because it offers only gl:lic=1.000000
         wait 2
         load global lic=3
         pass
         = 2 all.q@a",
    );
}

#[test]
fn a_settle_time_is_of_one_attribute() {
    check(
        "complex lic lic INT <= YES NO 0 0
         conf params SETTLE_TIME=mem_free:0:1:0
         host a | mem_free=10G lic=3
         queue all.q a slots=9
         job 1 -l lic=2,mem_free=6G
         job 2 -l lic=2
         job 3 -l mem_free=6G
         pass
         = 1 all.q@a
         wait 9
         load a
         pass
         = 2 all.q@a
         = nothing
         wait 52
         load a
         pass
         = 3 all.q@a",
    );
}

#[test]
fn a_sample_of_the_cluster_opens_what_its_bookings_closed() {
    // The load threshold is on a value of the cluster that another host reports and that stays as
    // it was.
    let mut lab = Lab::new();
    for line in [
        "complex lic lic INT <= YES NO 0 0",
        "host a",
        "host sensor",
        "conf job_load_adjustments NONE",
        "queue all.q a slots=9 load_thresholds=lic=1",
        "job 1 -l lic=2",
        "job 2",
    ] {
        lab.line(line);
    }
    let report = |lab: &mut Lab, sequence: u64, value: Option<&str>| {
        let values = value.map(|value| ("global".into(), BTreeMap::from([("lic".into(), value.to_owned())])));
        let values = values.into_iter().collect();
        let report = LoadReport {
            sequence,
            values,
            ..LoadReport::default()
        };
        let (host, at) = ("sensor".into(), lab.now.tick);
        lab.scheduler.observe(&Observation::Load {
            host,
            at,
            report: Box::new(report),
        });
    };
    report(&mut lab, 2, Some("3"));
    lab.pass();
    assert_eq!(lab.placed, ["1 all.q@a"]);
    lab.wait(5);
    lab.pass();
    report(&mut lab, 3, None);
    lab.pass();
    assert_eq!(lab.placed, ["1 all.q@a", "2 all.q@a"]);
}

#[test]
fn what_a_pass_has_planned_is_not_in_a_value_that_is_sampled_meanwhile() {
    let mut lab = Lab::new();
    for line in [
        "complex lic lic INT <= YES NO 0 0",
        "host a",
        "load global lic=3",
        "queue all.q a slots=9",
        "job 1 -l lic=2",
        "job 2 -l lic=2",
        "job 3 -l lic=1",
    ] {
        lab.line(line);
    }
    lab.scheduler.begin(lab.now, lab.reserving);
    let mut orders = lab.scheduler.next(1).orders;
    assert_eq!(orders.len(), 1, "job 1 is planned, and no host has heard of it");
    lab.wait(1);
    lab.line("load global lic=3");
    loop {
        let slice = lab.scheduler.next(1);
        orders.extend(slice.orders);
        if slice.finished {
            break;
        }
    }
    let planned = |order: &Order| match order {
        Order::Start { seq, .. } => seq.0,
        other => panic!("{other:?}"),
    };
    assert_eq!(orders.iter().map(planned).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_job_takes_of_a_load_value_once_a_host_where_the_configuration_says_so() {
    check(
        "conf params LOAD_PER_SLOT=FALSE
         host a | mem_free=22G
         host b | mem_free=11G
         pe smp 99 $pe_slots
         queue all.q a slots=9
         job 1 -pe smp 2 -l mem_free=6G
         job 2 -pe smp 2 -l mem_free=6G
         job 3 -pe smp 2 -l mem_free=6G
         job 4 -l mem_free=5G
         job 5 -l mem_free=4G
         pass
         = 1 all.q@a:2
         = 2 all.q@a:2
         = 3 all.q@a:2
         = 5 all.q@a
         pass
         = nothing
         ? 4 (-l mem_free=5G) cannot run at host \"a\" because it offers only hl:mem_free=0.000",
    );
}

#[test]
fn how_often_a_job_takes_of_a_load_value_follows_the_configuration_of_now() {
    check(
        "host a | mem_free=22G
         pe smp 99 $pe_slots
         queue all.q a slots=9
         job 1 -pe smp 2 -l mem_free=6G
         job 2 -pe smp 2 -l mem_free=6G
         job 3 -pe smp 2 -l mem_free=6G
         pass
         = 1 all.q@a:2
         conf params LOAD_PER_SLOT=FALSE
         pass
         = 2 all.q@a:2
         = 3 all.q@a:2
         job 4 -l mem_free=1G
         conf params none
         pass
         = nothing
         ? 4 (-l mem_free=1G) cannot run at host \"a\" because it offers only hl:mem_free=-14.000G",
    );
}
