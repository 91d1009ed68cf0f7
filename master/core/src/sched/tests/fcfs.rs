//! First come, first served.

use super::check;

/// What `default` would start first: a job with an urgent request.
const CELL: &str = "complex lic lic INT <= YES YES 0 5000
    host a lic=9
    host b
    pe smp 100 $pe_slots
    queue all.q a,b slots=2
    conf algorithm fcfs
";

fn check_fcfs(script: &str) {
    check(&format!("{CELL}{script}"));
}

#[test]
fn jobs_start_in_the_order_of_their_submission_whatever_they_ask_for() {
    check_fcfs(
        "job 1
         job 2 -l lic=1
         job 3
         pass
         = 1 all.q@a
         = 2 all.q@a
         = 3 all.q@b",
    );
}

#[test]
fn a_priority_overrides_the_order() {
    check_fcfs(
        "job 1 -p -10
         job 2
         job 3 -p 5
         pass
         = 3 all.q@a
         = 2 all.q@b
         = 1 all.q@a",
    );
}

#[test]
fn a_job_that_fits_nowhere_is_passed_over_with_the_usual_reasons() {
    check_fcfs(
        "job 1 -l lic=10
         job 2 -l h=nowhere
         job 3 -pe smp 3
         job 4
         pass
         = 4 all.q@a
         ? 1 (-l lic=10) cannot run at host \"a\" because it offers only hc:lic=9.000000
         ? 3 cannot run in PE \"smp\" because it only offers 2 slots",
    );
}

#[test]
fn with_user_sort_the_user_with_the_fewest_running_tasks_is_next() {
    check_fcfs(
        "conf params user_sort=TRUE
         queue all.q a,b slots=3
         job 1
         job 2
         job 3
         job 4 -u u2
         job 5 -u u2
         job 6 -u u3
         pass
         = 1 all.q@a
         = 4 all.q@b
         = 6 all.q@a
         = 2 all.q@b
         = 5 all.q@a
         = 3 all.q@b
         job 7
         job 8 -u u2
         job 9 -u u3 -p -1
         pass
         end 1
         pass
         = 7 all.q@a
         end 6
         pass
         = 8 all.q@a",
    );
}

#[test]
fn the_tasks_of_an_array_are_shared_out_among_users_too() {
    check_fcfs(
        "conf params USER_SORT=1
         job 1 -t 1-9:1
         job 2 -u u2 -t 1-9:1 -tc 1
         pass
         = 1.1 all.q@a
         = 2.1 all.q@b
         = 1.2 all.q@a
         = 1.3 all.q@b",
    );
}

#[test]
fn a_job_that_starts_at_once_or_never_is_given_up_where_it_does_not_fit() {
    check_fcfs(
        "job 1 -t 1-3:1
         job 2 -now -t 1-2:1
         job 3 -now
         pass
         = 1.1 all.q@a
         = 1.2 all.q@b
         = 1.3 all.q@a
         = 2 rejected
         = 3 all.q@b
         job 4 -now
         pass
         = 4 rejected",
    );
}

#[test]
fn maxujobs_holds_here_too() {
    check_fcfs(
        "conf maxujobs 1
         job 1
         job 2
         job 3 -u u2
         pass
         = 1 all.q@a
         = 3 all.q@b
         end 1
         pass
         = 2 all.q@a",
    );
}

#[test]
fn another_algorithm_holds_from_the_next_pass_on() {
    check_fcfs(
        "job 1
         job 2 -l lic=1
         pass
         = 1 all.q@a
         = 2 all.q@a
         conf algorithm default
         job 3
         job 4 -l h=a,lic=1
         job 5 -l h=b
         end 1
         pass
         = 4 all.q@a
         = 3 all.q@b
         = 5 all.q@b",
    );
}

#[test]
fn nothing_is_kept_for_later_by_who_serves_in_order_or_stands_by() {
    let script = "complex lic lic INT <= YES YES 0 0
        global lic=5
        host a
        queue all.q a slots=50
        conf max_reservation 10
        job 1 -p 0 -l lic=4,h_rt=30
        pass
        = 1 all.q@a
        job 2 -p -1 -l lic=5,h_rt=30 -R
        pass
        = nothing
        @ 2 +90 all.q@a";
    let mut lab = super::lab::Lab::new();
    script.lines().for_each(|line| lab.line(line.trim()));
    assert_eq!(lab.scheduler.model().reservations().len(), 1);
    lab.scheduler.stand_by(lab.now);
    assert!(lab.scheduler.model().reservations().is_empty());
    check(&format!(
        "{script}
        conf algorithm fcfs
        job 3 -p -2 -l lic=1,h_rt=3100
        pass
        = 3 all.q@a"
    ));
}
