//! What the whole cluster shares and is given back on one host: all others are looked at again as
//! well.

use super::lab::check;

#[test]
fn a_wish_that_was_left_open_by_what_all_share_is_looked_at_everywhere_once_that_is_given_back() {
    check(
        "complex lic lic INT <= YES YES 0 0
        conf job_load_adjustments NONE
        global lic=3
        host a
        host b
        host c
        queue all.q a,b,c slots=2 complex_values=NONE,[a=lic=1]
        job 1 -l lic=2 -q all.q@c
        pass
        = 1 all.q@c
        # There is one for each, and nobody has two: the first by name.
        job 2 -soft -l lic=2
        pass
        = 2 all.q@a
        end 1
        job 3 -soft -l lic=2
        pass
        = 3 all.q@b",
    );
}

#[test]
fn an_alarm_for_what_all_share_is_over_everywhere_once_that_is_given_back() {
    check(
        "complex lic lic INT <= YES YES 0 0
        conf job_load_adjustments NONE
        global lic=3
        host a
        host b
        queue all.q a,b slots=1 load_thresholds=lic=1
        job 1 -l lic=2
        pass
        = 1 all.q@a
        job 2 -q all.q@b
        pass
        = nothing
        end 1
        pass
        = 2 all.q@b",
    );
}

#[test]
fn what_all_share_and_is_taken_on_one_host_moves_all_others_in_the_order_of_the_load_formula() {
    for (hosts, second) in [
        ("host a lic=9\nhost b lic=3", "a"),
        ("host a\nhost b", "a"),
        ("host a lic=2\nhost b lic=9", "b"),
    ] {
        for apart in ["", "\npass"] {
            check(&format!(
                "complex lic lic INT <= YES YES 0 0
            conf job_load_adjustments NONE
            conf load_formula -lic
            global lic=4
            {hosts}
            queue all.q a,b slots=9
            job 1 -l lic=2 -q all.q@a{apart}
            job 2
            pass
            = 1 all.q@a
            = 2 all.q@{second}"
            ));
        }
    }
}
