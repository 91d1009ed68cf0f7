//! Tickets: the worked numbers of ALGORITHMS.md sections 10 and 11, and what 8.1.9 gave in the same
//! cases (tests/captures/28tickets).

mod functional;

use super::lab::check;

/// Tickets alone decide, and nothing starts: the only queue instance has no slots.
const PENDING: &str = "
    conf weight_ticket 1
    conf weight_urgency 0
    conf weight_priority 0
    host a
    pe smp 100 $pe_slots
    queue all.q a slots=0
";

#[test]
fn override_tickets_are_divided_among_the_tasks_of_an_object_and_those_of_a_job_are_not() {
    let jobs = "
        user u1 0 100
        user u2 0 300
        project p1 0 1000
        department d1 0 40 u1
        job 1
        job 2 -P p1
        job 3 -ot 500
        job 4 -u u2
        job 5 -u u2 -P p1
        job 6 -u u2
        job 7 -u u3 -ot 5
        job 8 -u u3 -P p1
        pass
    ";
    let lines = |tickets: [i64; 8]| -> String {
        (1..)
            .zip(tickets)
            .map(|(job, tickets)| format!("$ {job} {tickets} 0 0\n"))
            .collect()
    };
    let shared = lines([46, 640, 570, 150, 1300, 100, 5, 333]);
    check(&format!("{PENDING} {jobs} {shared}"));
    let whole = lines([140, 1140, 640, 300, 1300, 300, 5, 1000]);
    check(&format!("{PENDING} conf share_override_tickets FALSE\n {jobs} {whole}"));
}

/// The hierarchy says which tickets of others count in the order in which tasks get those of a
/// policy.
#[test]
fn policies_rest_on_those_named_before() {
    let jobs = "
        conf weight_tickets_functional 10000
        conf weight_tickets_share 10000
        conf weight_user 1
        conf weight_project 0
        conf weight_department 0
        conf weight_job 0
        user u1 100 1000
        user u2 300
        project p1 0 700
        tree u1=100 u2=10 u3=300
        job 1
        job 2
        job 3 -ot 50
        job 4 -u u2
        job 5 -u u2 -ot 50
        job 6 -u u3
        job 7 -u u3 -ot 500
        job 8 -u u3 -P p1
        pass
    ";
    let rows = [
        (
            "OFS",
            "500 1250 1219  333 833 813  1050 2500 2439  0 5000 121  50 10000 243  0 0 3658  500 0 7317",
        ),
        (
            "OSF",
            "500 1250 1219  333 833 813  1050 2500 2439  0 3750 121  50 10000 243  0 0 3658  500 0 7317",
        ),
        (
            "SFO",
            "500 2500 2439  333 1250 1219  1050 833 813  0 10000 243  50 3750 121  0 0 7317  500 0 3658",
        ),
        (
            "SOF",
            "500 2500 2439  333 833 1219  1050 1250 813  0 10000 243  50 3750 121  0 0 7317  500 0 3658",
        ),
        (
            "FSO",
            "500 2500 2439  333 1250 1219  1050 833 813  0 10000 243  50 5000 121  0 0 7317  500 0 3658",
        ),
        (
            "FOS",
            "500 2500 2439  333 1250 813  1050 833 1219  0 10000 243  50 5000 121  0 0 3658  500 0 7317",
        ),
        (
            "NONE",
            "500 2500 2439  333 1250 1219  1050 833 813  0 10000 243  50 5000 121  0 0 7317  500 0 3658",
        ),
        (
            "OS",
            "500 2500 1219  333 1250 813  1050 833 2439  0 10000 121  50 5000 243  0 0 3658  500 0 7317",
        ),
    ];
    for (hierarchy, expected) in rows {
        let tickets = expected.split("  ").chain(["700 0 0"]);
        let lines: String = (1..)
            .zip(tickets)
            .map(|(job, tickets)| format!("$ {job} {tickets}\n"))
            .collect();
        check(&format!("{PENDING} conf policy_hierarchy {hierarchy}\n {jobs} {lines}"));
    }
}

/// Three jobs of a user share 100 override tickets, and the job shares decide who has the most
/// functional ones.
#[test]
fn tasks_with_equal_override_tickets_are_ordered_by_the_policies_before() {
    let jobs = "
        conf weight_tickets_functional 10000
        conf weight_user 0
        conf weight_project 0
        conf weight_department 0
        conf weight_job 1
        user u1 0 100
        job 1
        job 2 -js 100
        job 3 -js 50
        pass
    ";
    let rows = [
        ("FO", "33 0 0  100 10000 0  50 3333 0"),
        ("FSO", "33 0 0  100 10000 0  50 3333 0"),
        ("OF", "100 0 0  50 10000 0  33 3333 0"),
        ("O", "100 0 0  50 10000 0  33 3333 0"),
        ("SO", "100 0 0  50 10000 0  33 3333 0"),
    ];
    for (hierarchy, expected) in rows {
        let lines: String = (1..)
            .zip(expected.split("  "))
            .map(|(job, tickets)| format!("$ {job} {tickets}\n"))
            .collect();
        check(&format!("{PENDING} conf policy_hierarchy {hierarchy}\n {jobs} {lines}"));
    }
}

#[test]
fn tasks_of_an_array_get_tickets_as_far_as_slots_are_free() {
    let jobs = "
        conf weight_tickets_functional 10000
        conf weight_user 1
        conf weight_project 0
        conf weight_department 0
        conf weight_job 0
        complex nix nix INT <= YES YES 0 0
        user u1 100
        user u2 300
        job 1 -t 1-6:1 -l nix=1
        job 2 -u u2 -l nix=1
        job 3 -u u2 -t 2-9:3 -l nix=1
        job 4 -l nix=1
        pass
    ";
    for (most, slots, last) in [
        (50, 8, 357),
        (2, 8, 833),
        (1, 8, 1250),
        (0, 8, 1250),
        (50, 2, 625),
        (50, 0, 1250),
    ] {
        check(&format!(
            "{PENDING} conf max_pending_tasks_per_job {most}
            queue all.q a slots={slots}
            {jobs}
            $ 2 0 10000 0
            $ 3 0 5000 0
            $ 1 0 2500 0
            $ 4 0 {last} 0"
        ));
    }
}

/// Nine jobs of three users in two projects: leaves of users, of projects, and users below a
/// project.
const NINE: &str = "
    project p1 0
    project p2 0
    job 1
    job 2 -P p1
    job 3 -P p2
    job 4 -u u2
    job 5 -u u2 -P p1
    job 6 -u u2 -P p2
    job 7 -u u3
    job 8 -u u3 -P p1
    job 9 -u u3 -P p2
    job 10
    job 11 -P p1
    pass
";

fn expected_shares(tickets: &[(u32, i64)]) -> String {
    tickets
        .iter()
        .map(|(job, tickets)| format!("$ {job} 0 0 {tickets}\n"))
        .collect()
}

#[test]
fn tasks_of_a_share_tree_stand_in_line_below_each_node() {
    let first = [
        (3, 3333),
        (6, 1666),
        (9, 1111),
        (5, 3333),
        (2, 1666),
        (11, 1111),
        (1, 1666),
        (10, 833),
        (7, 1666),
        (4, 0),
        (8, 0),
    ];
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree p1!=100 p1/u1=1 p1/u2=3 p2!=100 u1=50 u3=50
        {NINE} {}",
        expected_shares(&first)
    ));
}

#[test]
fn each_user_without_a_leaf_has_the_default_one() {
    let first = [
        (2, 2857),
        (5, 1428),
        (8, 952),
        (11, 714),
        (3, 2857),
        (6, 1428),
        (9, 952),
        (1, 1428),
        (10, 714),
        (4, 1428),
        (7, 1428),
    ];
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree p1!=100 p1/default=1 p2!=100 p2/u1=1 p2/default=1 default=50 u3=50
        {NINE} {}",
        expected_shares(&first)
    ));
}

#[test]
fn parallel_jobs_stand_in_line_with_all_their_slots() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 5000
        tree u1=1
        job 1 -pe smp 4
        job 2
        job 3 -pe smp 2-8
        job 4
        pass
        $ 1 0 0 5000
        $ 2 0 0 1000
        $ 3 0 0 833
        $ 4 0 0 625"
    ));
}

/// Those who used less than their part get more now (ALGORITHMS.md section 11.2 has other usages).
#[test]
fn running_tasks_share_what_their_leaf_gets() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree u1=100 grp=300 grp/u2=1 grp/u3=2
        job 1
        job 2 -u u2
        job 3 -u u3
        job 4
        job 5 -u u2
        job 6 -u u3
        job 7
        job 8 -u u2
        job 9 -u u3
        pass
        $ 3 0 0 7500
        $ 2 0 0 3750
        $ 1 0 0 2500
        $ 6 0 0 2500
        $ 9 0 0 1875
        $ 5 0 0 1500
        $ 4 0 0 1250
        $ 8 0 0 1250
        $ 7 0 0 833
        queue all.q a slots=9
        pass
        = 3 all.q@a
        = 2 all.q@a
        = 1 all.q@a
        = 6 all.q@a
        = 9 all.q@a
        = 5 all.q@a
        = 4 all.q@a
        = 8 all.q@a
        = 7 all.q@a
        pass
        $ 1 r 0 0 833
        $ 2 r 0 0 833
        $ 3 r 0 0 1666"
    ));
}

/// What runs gets what its part of the tree is to get, whoever waits besides.
#[test]
fn running_tasks_share_among_themselves_and_pending_ones_with_all() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree u1=100 grp=300 grp/u2=1 grp/u3=2
        queue all.q a slots=1
        job 1
        pass
        = 1 all.q@a
        job 2 -u u2
        job 3 -u u2
        job 4 -u u3
        job 5 -u u3
        pass
        $ 1 r 0 0 10000
        $ 4 0 0 7500
        $ 2 0 0 3750
        $ 5 0 0 2500
        $ 3 0 0 1875
        end 1
        pass
        = 4 all.q@a
        pass
        $ 4 r 0 0 10000
        $ 2 0 0 3333"
    ));
}

/// Where the tree forks for those that have tasks, their tasks begin to stand in line.
#[test]
fn parts_that_have_no_tasks_leave_the_fork_further_down() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree div=100 u3=100 div/ga=40 div/gb=60 div/ga/u1=1 div/ga/u2=1 div/gb/p1!=10 div/gb/p2!=30
        project p1 0
        project p2 0
        job 1
        job 2
        job 3 -u u2
        job 4 -u u2
        job 5 -P p1
        job 6 -P p1
        job 7 -u u2 -P p2
        job 8 -u u2 -P p2
        pass
        $ 7 0 0 6000
        $ 1 0 0 4000
        $ 8 0 0 3000
        $ 3 0 0 2000
        $ 5 0 0 1999
        $ 6 0 0 1500
        $ 2 0 0 1333
        $ 4 0 0 1000
        job 9 -u u3
        pass
        $ 7 0 0 5000
        $ 9 0 0 5000
        $ 1 0 0 2500
        $ 8 0 0 1666
        $ 3 0 0 1250
        $ 5 0 0 1000
        $ 6 0 0 833
        $ 2 0 0 714
        $ 4 0 0 625"
    ));
}

#[test]
fn job_shares_divide_what_a_leaf_has_among_its_running_tasks() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree u1=1
        queue all.q a slots=3
        job 1 -js 1
        job 2 -js 2
        job 3 -js 4
        pass
        = 3 all.q@a
        = 2 all.q@a
        = 1 all.q@a
        job 4 -js 1000
        pass
        $ 1 r 0 0 1428
        $ 2 r 0 0 2857
        $ 3 r 0 0 5714
        $ 4 0 0 2500"
    ));
}

/// A thousand times the usage of a real cell: u1 10.042341 s outside of projects and 2.127461 s in
/// p1, u2 4.129477 s, u3 in p1 1.529729 s.
const USED: &str = "
    conf weight_tickets_share 10000
    conf halftime 0
    project p1 0
    tree u1=100 u2=100 p1!=200 p1/u1=1 p1/u3=1
    queue all.q a slots=4
    job 1
    job 2 -u u2
    job 3 -P p1
    job 4 -u u3 -P p1
    pass
    = 3 all.q@a
    = 1 all.q@a
    = 2 all.q@a
    = 4 all.q@a
    charge 1 10042341
    charge 2 4129477
    charge 3 2127461
    charge 4 1529729
    end 1
    end 2
    end 3
    end 4
    queue all.q a slots=0
";

#[test]
fn who_used_less_than_the_target_gets_more_now() {
    let jobs = "
        job 11
        job 12
        job 13 -u u2
        job 14 -P p1
        job 15 -u u3 -P p1
        pass
    ";
    for (factor, expected) in [
        ("5", [693, 346, 1686, 3809, 7619]),
        ("0", [693, 346, 1686, 3809, 7619]),
        ("1", [939, 469, 2285, 3387, 6774]),
    ] {
        let lines: String = (11..)
            .zip(expected)
            .map(|(job, tickets)| format!("$ {job} 0 0 {tickets}\n"))
            .collect();
        check(&format!(
            "{PENDING} {USED} conf compensation_factor {factor}\n {jobs} {lines}"
        ));
    }
    check(&format!(
        "{PENDING} {USED}
        job 11
        job 13 -u u2
        pass
        $ 13 0 0 7086
        $ 11 0 0 2913
        / / 2 1000000 1000000 1000000 1000000
        / /u1 1 250000 500000 291387 563259
        / /u2 1 250000 500000 708613 231616
        / /p1 0 500000 0 0 205126
        / /p1/u1 0 250000 0 0 119326
        conf compensation_factor 1.2
        pass
        $ 13 0 0 6731
        $ 11 0 0 3268"
    ));
}

#[test]
fn users_of_a_default_leaf_are_shown_below_it() {
    check(&format!(
        "{PENDING} conf weight_tickets_share 10000
        tree default=50 u3=50
        job 1
        job 2 -u u2
        job 3 -u u3
        pass
        / /default 2 500000 666667 666667 0
        / /default/u1 1 250000 333333 333333 0
        / /u3 1 500000 333333 333333 0"
    ));
}

/// Section 11.2: equal shares and unequal use; and 11.4: what runs of a user stands in front of
/// what waits.
#[test]
fn the_worked_numbers_of_the_share_tree() {
    let used = |shares: [u32; 2], seconds: [u64; 2]| {
        format!(
            "{PENDING} conf weight_tickets_share 10000
            conf halftime 0
            tree u1={} u2={}
            queue all.q a slots=2
            job 1
            job 2 -u u2
            pass
            charge 1 {}000
            charge 2 {}000
            end 1
            end 2",
            shares[0], shares[1], seconds[0], seconds[1]
        )
    };
    let placed = "= 1 all.q@a\n= 2 all.q@a";
    let [equal, favoured] = [used([50, 50], [3000, 1000]), used([10, 90], [10, 100_000])];
    check(&format!(
        "{}
        {placed}
        queue all.q a slots=0
        job 3
        job 4 -u u2
        pass
        $ 3 0 0 2500
        $ 4 0 0 7500",
        equal
    ));
    check(&format!(
        "{equal}
        {placed}
        queue all.q a slots=1
        job 3
        pass
        = 3 all.q@a
        job 4
        job 5
        job 6 -u u2
        job 7 -u u2
        pass
        $ 6 0 0 7500
        $ 7 0 0 3750
        $ 4 0 0 1250
        $ 5 0 0 833"
    ));
    // Five times its part is where the least user of a tenth is held back, once.
    check(&format!(
        "{favoured}
        = 2 all.q@a
        = 1 all.q@a
        queue all.q a slots=0
        job 3
        job 4 -u u2
        pass
        $ 3 0 0 9841
        $ 4 0 0 158"
    ));
}

/// Section 10.3: 100 override tickets of a user of whom two tasks run.
#[test]
fn the_worked_numbers_of_override_tickets() {
    check(&format!(
        "{PENDING}
        user u1 0 100
        queue all.q a slots=2
        job 1
        job 2
        job 3
        job 4
        pass
        = 1 all.q@a
        = 2 all.q@a
        pass
        $ 1 r 50 0 0
        $ 2 r 50 0 0
        $ 3 33 0 0
        $ 4 25 0 0"
    ));
}
