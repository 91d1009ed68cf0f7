//! What a changed configuration and a changed clock open and close.

use super::check;

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
