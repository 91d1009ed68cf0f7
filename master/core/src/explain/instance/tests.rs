//! The letters and lines that 8.1.9 showed (tests/captures/32sched.txt), by what happened to an
//! instance.

use super::*;
use crate::event::{Event, InstanceState};
use crate::matching::Mode;
use crate::observe::Observation;
use crate::sched::tests::lab::Lab;

fn all_q(host: &str) -> QueueInstanceName {
    QueueInstanceName {
        queue: "all.q".into(),
        host: host.into(),
    }
}

fn seen(lab: &Lab, host: &str, asked: &str) -> (String, Vec<String>) {
    let cluster = Cluster::of_state(lab.state(), lab.scheduler.model().observations(), Mode::Now);
    (
        state_letters(&cluster, &all_q(host)),
        state_reasons(&cluster, &all_q(host), asked),
    )
}

fn lab(thresholds: &str) -> Lab {
    let mut lab = Lab::new();
    lab.line("host a | np_load_avg=12.302979 mem_free=22782.992188M");
    lab.line(&format!("queue all.q a slots=4 {thresholds}"));
    lab
}

#[test]
fn thresholds_that_are_reached_are_alarms_with_the_value_as_reported() {
    for (thresholds, letters, lines) in [
        ("load_thresholds=NONE", "", &[][..]),
        ("load_thresholds=np_load_avg=13", "", &[]),
        (
            "load_thresholds=np_load_avg=0.1",
            "a",
            &["alarm hl:np_load_avg=12.302979 load-threshold=0.1"],
        ),
        (
            "load_thresholds=mem_free=100G",
            "a",
            &["alarm hl:mem_free=22782.992188M load-threshold=100G"],
        ),
        (
            "load_thresholds=nosuch=1",
            "a",
            &["error: no complex attribute for threshold nosuch"],
        ),
        (
            "load_thresholds=cpu=50",
            "a",
            &["error: no value for \"cpu\" because no load value is reported"],
        ),
        (
            "load_thresholds=NONE suspend_thresholds=np_load_avg=1",
            "A",
            &["alarm hl:np_load_avg=12.302979 suspend-threshold=1"],
        ),
    ] {
        let (found, reasons) = seen(&lab(thresholds), "a", "aA");
        assert_eq!(
            (found.as_str(), reasons),
            (letters, lines.iter().map(ToString::to_string).collect()),
            "{thresholds}"
        );
    }
}

#[test]
fn a_threshold_is_reached_by_the_value_itself_and_by_a_text_that_does_not_match() {
    // ALGORITHMS.md section 6.3; of a consumable what is free counts.
    for (threshold, load, letters) in [
        ("np_load_avg=1.75", "np_load_avg=1.75", "a"),
        ("np_load_avg=1.75", "np_load_avg=1.749999", ""),
        ("mem_free=1G", "mem_free=1G", "a"),
        ("mem_free=1G", "mem_free=1025M", ""),
        ("mem_free=1G", "np_load_avg=0", "a"),
        ("arch=lx*", "arch=lx-amd64", ""),
        ("arch=lx*", "arch=sol-amd64", "a"),
        ("lic=3", "np_load_avg=0", ""),
        ("lic=4", "np_load_avg=0", "a"),
    ] {
        let mut lab = Lab::new();
        lab.line("complex lic lic INT <= YES YES 0 0");
        lab.line(&format!("host a lic=4 | {load}"));
        lab.line(&format!("queue all.q a slots=4 load_thresholds={threshold}"));
        assert_eq!(seen(&lab, "a", "a").0, letters, "{threshold} with {load}");
    }
}

#[test]
fn a_host_that_is_not_heard_is_unknown_and_in_alarm() {
    let mut lab = lab("load_thresholds=np_load_avg=1.75");
    lab.scheduler.observe(&Observation::Unheard { host: "a".into() });
    let line = "error: no value for \"np_load_avg\" because execd is in unknown state";
    assert_eq!(seen(&lab, "a", "a"), ("au".to_owned(), vec![line.to_owned()]));
}

#[test]
fn what_people_and_failures_set_has_its_letters_in_the_order_of_8_1_9() {
    let mut lab = lab("load_thresholds=np_load_avg=0.1");
    let error = "queue all.q marked QERROR as result of job 1's failure at host a".to_owned();
    let state = InstanceState {
        disabled: true,
        suspended: true,
        errors: vec![error.clone()],
        ..InstanceState::default()
    };
    lab.event(Event::InstanceChanged {
        instance: all_q("a"),
        state,
    });
    assert_eq!(seen(&lab, "a", "E"), ("adEs".to_owned(), vec![error]));
    assert_eq!(seen(&lab, "nowhere", "aAcE"), ("uo".to_owned(), Vec::new()));
    for (calendar, letters) in [(CalendarState::Off, "aDSP"), (CalendarState::Suspended, "aCSP")] {
        let state = InstanceState {
            calendar,
            subordinate: true,
            preempted: true,
            ..InstanceState::default()
        };
        lab.event(Event::InstanceChanged {
            instance: all_q("a"),
            state,
        });
        assert_eq!(seen(&lab, "a", "E"), (letters.to_owned(), vec![]));
    }
}

#[test]
fn groups_that_disagree_are_named() {
    let mut lab = Lab::new();
    for line in [
        "host a",
        "group @one a",
        "group @two a",
        "queue all.q a slots=1,[@one=2],[@two=3] load_thresholds=NONE",
    ] {
        lab.line(line);
    }
    let line = "attribute \"slots\" configuration ambiguous: @one=2, @two=3";
    assert_eq!(seen(&lab, "a", "c"), ("c".to_owned(), vec![line.to_owned()]));
}

#[test]
fn a_host_that_cannot_start_tasks_puts_its_instances_into_error_with_its_reason_until_it_is_well() {
    let mut lab = lab("load_thresholds=NONE");
    let unfit = |why: Option<&str>| Observation::Unfit {
        host: "a".into(),
        why: why.map(str::to_owned),
    };
    lab.scheduler.observe(&unfit(Some("no space")));
    let line = "queue all.q marked QERROR because host a cannot start jobs: no space";
    assert_eq!(seen(&lab, "a", "E"), ("E".to_owned(), vec![line.to_owned()]));
    lab.scheduler.observe(&unfit(None));
    assert_eq!(seen(&lab, "a", "E"), (String::new(), Vec::new()));
}
