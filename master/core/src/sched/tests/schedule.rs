//! The lines of the file `schedule`, in the words and the order of the recorded ones.

use super::lab::Lab;
use crate::sched::ReservationMode;
use crate::sched::report::schedule_file::ScheduleEntry;

/// Licences of the cluster and of hosts, and memory of the cluster and of queue instances.
const CELL: &str = "complex lic lic INT <= YES YES 0 0
    complex gmem gmem MEMORY <= YES YES 0 0
    complex hlic hl INT <= YES YES 1 0
    global lic=10,gmem=8G
    host a hlic=4
    host b hlic=4
    host c
    pe mpi 100 $fill_up
    queue all.q a,b,c slots=2 complex_values=gmem=2G seq_no=0,[b=1],[c=2]
    conf queue_sort_method seqno
    conf default_duration 0:10:0";

fn lab(lines: &str) -> Lab {
    let mut lab = Lab::new();
    [CELL, lines]
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
        .for_each(|line| lab.line(line));
    lab
}

fn entry(lab: &Lab) -> String {
    ScheduleEntry::default().finish(lab.scheduler.model(), lab.now)
}

#[test]
fn without_a_look_ahead_an_entry_has_no_lines() {
    let lab = lab("job 1 -l lic=2\npass");
    assert_eq!(entry(&lab), "::::::::\n");
}

#[test]
fn what_runs_is_told_at_each_level_that_has_a_capacity_and_what_is_kept_behind_it() {
    let lab = lab("conf max_reservation 5
        job 1 -p 9 -l lic=2,gmem=1.5G
        pass
        job 2 -p 8 -pe mpi 3 -l h_rt=100,lic=1
        pass
        job 3 -p 7 -pe mpi 4 -R -l h_rt=20
        pass");
    let at_s = lab.now.wall.seconds();
    let expected = format!(
        "::::::::
1:1:RUNNING:{at_s}:660:G:global:lic:2.000000
1:1:RUNNING:{at_s}:660:G:global:gmem:1610612736.000000
1:1:RUNNING:{at_s}:660:H:a:hlic:1.000000
1:1:RUNNING:{at_s}:660:Q:all.q@a:gmem:1610612736.000000
1:1:RUNNING:{at_s}:660:Q:all.q@a:slots:1.000000
2:1:RUNNING:{at_s}:160:P:mpi:slots:3.000000
2:1:RUNNING:{at_s}:160:G:global:lic:3.000000
2:1:RUNNING:{at_s}:160:H:a:hlic:1.000000
2:1:RUNNING:{at_s}:160:Q:all.q@a:slots:1.000000
2:1:RUNNING:{at_s}:160:H:b:hlic:2.000000
2:1:RUNNING:{at_s}:160:Q:all.q@b:slots:2.000000
3:1:RESERVING:{}:80:P:mpi:slots:4.000000
3:1:RESERVING:{0}:80:Q:all.q@c:slots:2.000000
3:1:RESERVING:{0}:80:H:a:hlic:1.000000
3:1:RESERVING:{0}:80:Q:all.q@a:slots:1.000000
3:1:RESERVING:{0}:80:H:b:hlic:1.000000
3:1:RESERVING:{0}:80:Q:all.q@b:slots:1.000000
",
        at_s + 160
    );
    assert_eq!(entry(&lab), expected);
}

#[test]
fn what_starts_is_told_once_as_starting() {
    let mut lab = lab("conf max_reservation 5\njob 1 -l lic=2");
    let mut entry = ScheduleEntry::default();
    lab.scheduler.begin(lab.now, ReservationMode::Anew);
    let slice = lab.scheduler.next(100);
    entry.start(lab.scheduler.model(), &slice.orders, lab.now);
    let at_s = lab.now.wall.seconds();
    let told = entry.finish(lab.scheduler.model(), lab.now);
    assert!(
        told.starts_with(&format!("::::::::\n1:1:STARTING:{at_s}:660:G:global:lic:2.000000\n")),
        "{told}"
    );
    slice.orders.iter().for_each(|order| lab.scheduler.refused(order));
    lab.line("wait 2");
    lab.line("pass");
    let told = entry.finish(lab.scheduler.model(), lab.now);
    assert!(
        told.starts_with(&format!("::::::::\n1:1:RUNNING:{}:660:G:global", at_s + 2)),
        "{told}"
    );
}

#[test]
fn what_is_over_its_time_ends_with_the_next_pass_and_what_has_no_end_at_the_end_of_time() {
    let mut lab = lab("conf max_reservation 5
        conf params DURATION_OFFSET=0
        conf schedule_interval 0:0:15
        job 1 -q all.q@c -l h_rt=1
        pass
        wait 3
        conf default_duration INFINITY
        job 2 -q all.q@c
        pass");
    let at_s = lab.now.wall.seconds();
    let expected = format!(
        "::::::::\n1:1:RUNNING:{}:18:Q:all.q@c:slots:1.000000\n2:1:RUNNING:{at_s}:{}:Q:all.q@c:slots:1.000000\n",
        at_s - 3,
        4_294_967_295 - at_s
    );
    assert_eq!(entry(&lab), expected);
    lab.placed.clear();
}

#[test]
fn a_job_within_an_advance_reservation_takes_of_its_queue_instances() {
    let lab = lab("reserve 1 0 600 -l lic=3
        begin 1
        job 1 -ar 1 -l h_rt=60,lic=1
        pass");
    let at_s = lab.now.wall.seconds();
    assert_eq!(
        entry(&lab),
        format!("::::::::\n1:1:RUNNING:{at_s}:120:Q:all.q@a:slots:1.000000\n")
    );
}
