//! Pauses of tasks that asked to be run again, by exit status 99.

use super::lab::{Lab, check};
use crate::explain::scheduling_info;
use proto::id::SubmitSeq;

const ALONE: &str = "host a
    queue all.q a slots=1
    conf schedule_interval 0:0:15
    job 1
    pass
    = 1 all.q@a
    again 1";

#[test]
fn a_clock_that_is_set_back_or_forward_changes_no_pause() {
    for jump_s in [-86_400, -300, -10, 10, 300, 601, 86_400] {
        check(&format!(
            "{ALONE}
             back {jump_s}
             wait 14
             pass
             = nothing
             wait 1
             pass
             = 1 all.q@a"
        ));
    }
}

#[test]
fn a_clock_that_is_set_while_a_job_waits_in_the_queue_changes_no_pause() {
    for jump_s in [-700, 700] {
        check(&format!(
            "{ALONE}
             pass
             wait 5
             back {jump_s}
             pass
             = nothing
             wait 10
             pass
             = 1 all.q@a"
        ));
    }
}

#[test]
fn tasks_of_an_array_start_in_order_as_their_pauses_end() {
    check(
        "host a
         queue all.q a slots=3
         conf schedule_interval 0:0:15
         job 1 -t 1-4:1
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         = 1.3 all.q@a
         again 1.3
         wait 5
         again 1.1
         again 1.2
         pass
         = 1.4 all.q@a
         wait 10
         pass
         = 1.3 all.q@a
         wait 5
         again 1.3
         pass
         = 1.1 all.q@a
         = 1.2 all.q@a
         wait 60
         end 1.4
         pass
         = 1.3 all.q@a",
    );
}

#[test]
fn a_deleted_task_leaves_no_pause_behind() {
    let mut lab = Lab::new();
    for line in [
        "host a",
        "queue all.q a slots=2",
        "job 1 -t 1-2:1",
        "pass",
        "again 1.1",
        "delete 1.1",
    ] {
        lab.line(line);
    }
    assert_eq!(lab.state().jobs[&SubmitSeq(1)].pause_ends(lab.now.tick), None);
    assert!(
        scheduling_info(&mut lab.findings(), SubmitSeq(1))
            .iter()
            .all(|line| !line.contains("pause"))
    );
}
