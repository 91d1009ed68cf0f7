//! What a changed configuration and a changed clock open and close.

use super::check;
use super::lab::Lab;
use crate::event::Event;
use crate::sched::ReservationMode;
use proto::id::SubmitSeq;

#[test]
fn what_objects_touch_is_looked_at_again_and_what_went_is_forgotten() {
    check(
        "host a
         host b
         group @g a
         group @all @g
         queue all.q @all slots=1
         queue other.q b slots=1
         job 1 -q all.q
         job 2 -q all.q
         job 3 -q other.q@@g
         pass
         = 1 all.q@a
         ? 2 queue instance \"all.q@a\" dropped because it is full
         group @g a b
         pass
         = 2 all.q@b
         = 3 other.q@b
         job 4 -q all.q
         pass
         group @g a
         end 2
         pass
         = nothing
         queue all.q @all,b slots=1 pe_list=NONE qtype=BATCH,[b=NONE]
         pass
         = nothing
         queue all.q @all,b slots=2 pe_list=NONE qtype=BATCH,[b=NONE]
         pass
         = 4 all.q@a",
    );
}

#[test]
fn a_start_time_that_lies_ahead_again_is_waited_for() {
    check(
        "host a
         queue all.q a slots=1
         disable all.q@a
         job 1 -after 10
         wait 10
         pass
         back 30
         enable all.q@a
         pass
         = nothing
         wait 30
         pass
         = 1 all.q@a",
    );
}

/// Its buckets and categories have other numbers then.
#[test]
fn a_change_of_the_configuration_ends_a_pass_under_way() {
    for algorithm in ["default", "fcfs"] {
        let mut lab = Lab::new();
        for line in ["complex lic lic INT <= YES YES 0 0", "host a", "queue all.q a slots=40"] {
            lab.line(line);
        }
        lab.line(&format!("conf algorithm {algorithm}"));
        for job in 1..=8 {
            lab.line(&format!("job {job} -t 1-3:1 -l h_rt={job}"));
        }
        lab.scheduler.begin(lab.now, ReservationMode::Anew);
        (0..8).for_each(|_| drop(lab.scheduler.next(1)));
        // Only one is left, and it has the first number.
        for seq in (2..=8).map(SubmitSeq) {
            let tasks = lab.state().jobs[&seq].present().ranges();
            lab.event(Event::TasksDeleted { seq, tasks });
            lab.event(Event::JobFinished { seq });
        }
        lab.line("global lic=2");
        while !lab.scheduler.next(1).finished {}
    }
}
