//! Suspend thresholds (ALGORITHMS.md section 6.5), and how instances in other states are left
//! alone.

use super::lab::{Lab, check};
use crate::event::{Event, InstanceState};
use crate::sched::Scheduler;
use proto::calendar::CalendarState;
use proto::id::QueueInstanceName;
use proto::time::Zone;

/// Three tasks that began ten seconds apart, on a host that may take a load below 1.
const THREE: &str = "
    conf job_load_adjustments NONE
    host a | np_load_avg=0.2
    queue all.q a slots=5 load_thresholds=NONE suspend_thresholds=np_load_avg=1 suspend_interval=0:1:0 EXTRA
    job 1
    pass
    = 1 all.q@a
    run 1
    wait 10
    job 2
    pass
    = 2 all.q@a
    run 2
    wait 10
    job 3
    pass
    = 3 all.q@a
    run 3
";

fn check_three(extra: &str, story: &str) {
    check(&format!("{}\n{story}", THREE.replace("EXTRA", extra)));
}

#[test]
fn the_youngest_is_suspended_first_and_the_oldest_goes_on_first() {
    check_three(
        "nsuspend=1",
        "load a np_load_avg=1
         pass
         T 3
         wait 59
         pass
         T 3
         wait 1
         pass
         T 2 3
         # A task that came since is not suspended by the calendar of the others; in an alarm none comes.
         job 4
         pass
         = nothing
         ? 4 queue instance \"all.q@a\" is in suspend alarm: np_load_avg=1.000000 (no load adjustment) >= 1
         wait 60
         pass
         T 1 2 3
         load a np_load_avg=0.99
         pass
         T 1 2 3
         = 4 all.q@a
         run 4
         wait 60
         pass
         T 2 3
         wait 60
         pass
         T 3
         wait 60
         pass
         T -",
    );
}

#[test]
fn as_many_as_nsuspend_says_at_a_time() {
    check_three(
        "nsuspend=2",
        "load a np_load_avg=1
         pass
         T 2 3
         load a np_load_avg=0.5
         wait 60
         pass
         T -",
    );
    for off in ["nsuspend=0", "nsuspend=1 suspend_interval=0:0:0"] {
        check_three(
            off,
            "load a np_load_avg=1
             pass
             T -",
        );
    }
}

#[test]
fn tasks_go_on_at_once_when_there_is_no_threshold_any_more() {
    check_three(
        "nsuspend=2",
        "load a np_load_avg=1
         pass
         T 2 3
         queue all.q a slots=5 load_thresholds=NONE
         pass
         T -",
    );
}

#[test]
fn nothing_is_suspended_on_a_host_whose_load_is_not_known() {
    check_three(
        "nsuspend=1",
        "lose a
         pass
         T -
         find a
         pass
         T -
         load a np_load_avg=2
         pass
         T 3",
    );
}

fn set(lab: &mut Lab, state: InstanceState) {
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: "a".into(),
    };
    lab.event(Event::InstanceChanged { instance, state });
}

#[test]
fn an_instance_that_is_suspended_anyway_is_left_alone_and_takes_no_jobs() {
    let states = [
        (
            InstanceState {
                suspended: true,
                ..InstanceState::default()
            },
            "temporarily not available",
        ),
        (
            InstanceState {
                subordinate: true,
                ..InstanceState::default()
            },
            "temporarily not available",
        ),
        (
            InstanceState {
                calendar: CalendarState::Suspended,
                ..InstanceState::default()
            },
            "temporarily not available",
        ),
        (
            InstanceState {
                preempted: true,
                ..InstanceState::default()
            },
            "temporarily not available",
        ),
        (
            InstanceState {
                calendar: CalendarState::Off,
                ..InstanceState::default()
            },
            "disabled",
        ),
    ];
    for (state, words) in states {
        let mut lab = Lab::new();
        THREE
            .replace("EXTRA", "")
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .for_each(|line| lab.line(line));
        let is_stopped = state.stops_tasks();
        set(&mut lab, state);
        lab.line("job 4");
        lab.line("pass");
        lab.line("= nothing");
        lab.line(&format!("? 4 queue instance \"all.q@a\" dropped because it is {words}"));
        lab.line("load a np_load_avg=1");
        lab.line("pass");
        lab.line(if is_stopped { "T -" } else { "T 3" });
        set(&mut lab, InstanceState::default());
        // A scheduler that starts anew knows no rhythm.
        let connection = lab.scheduler.model().observations().clone();
        lab.scheduler = Scheduler::new(lab.state().clone(), Zone::utc());
        assert!(!connection.load.is_empty());
        lab.contact("a", true);
        lab.line("load a np_load_avg=0.2");
        lab.line("pass");
        lab.line("T -");
        lab.line("= 4 all.q@a");
    }
}
