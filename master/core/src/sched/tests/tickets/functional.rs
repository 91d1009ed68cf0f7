use super::*;

/// Four functional categories; users count alone.
const USERS_ONLY: &str = "
    conf weight_tickets_functional 1000
    conf weight_user 1
    conf weight_project 0
    conf weight_department 0
    conf weight_job 0
";

#[test]
fn functional_tickets_of_running_tasks_are_divided_by_user() {
    check(&format!(
        "{PENDING} {USERS_ONLY}
        user u1 100
        user u2 100
        queue all.q a slots=3
        job 1
        job 2
        job 3 -u u2
        pass
        = 1 all.q@a
        = 3 all.q@a
        = 2 all.q@a
        pass
        $ 1 r 0 250 0
        $ 2 r 0 250 0
        $ 3 r 0 500 0
        job 4
        job 5 -u u2
        pass
        $ 4 0 166 0
        $ 5 0 250 0"
    ));
}

#[test]
fn the_tickets_of_a_user_of_whom_nothing_runs() {
    check(&format!(
        "{PENDING} {USERS_ONLY}
        user u1 100
        user u2 100
        user u3 100
        queue all.q a slots=3
        job 1
        job 2
        job 3 -u u2
        pass
        = 1 all.q@a
        = 3 all.q@a
        = 2 all.q@a
        job 4 -u u3
        pass
        $ 4 0 333 0"
    ));
}

#[test]
fn functional_tickets_on_an_empty_cluster() {
    check(&format!(
        "{PENDING} {USERS_ONLY}
        user u1 100
        user u2 100
        job 1
        job 2
        job 3 -u u2
        pass
        $ 1 0 1000 0
        $ 3 0 500 0
        $ 2 0 250 0"
    ));
}

/// What is not looked at has what it would have had when the last winner was found.
#[test]
fn only_so_many_jobs_get_functional_tickets_of_their_own() {
    let jobs = "
        conf weight_tickets_functional 10000
        user u1 100
        user u2 300
        user u3 0
        job 1
        job 2
        job 3
        job 4
        job 5 -u u2
        job 6 -u u2
        job 7 -u u2
        job 8 -u u3
        pass
    ";
    for (most, expected) in [
        (200, [0, 0, 0, 0, 0, 0, 0, 0]),
        (3, [625, 833, 833, 833, 2500, 1250, 833, 0]),
        (2, [833, 833, 833, 833, 2500, 1250, 1249, 0]),
    ] {
        let expected = if most == 200 {
            [625, 312, 208, 156, 2500, 1250, 625, 0]
        } else {
            expected
        };
        let lines: String = (1..)
            .zip(expected)
            .map(|(job, tickets)| format!("$ {job} 0 {tickets} 0\n"))
            .collect();
        check(&format!(
            "{PENDING} conf max_functional_jobs_to_schedule {most}\n {jobs} {lines}"
        ));
    }
}

/// Users, projects and jobs with a quarter each. The jobs of `b`.
const MIXED: &str = "
    conf weight_tickets_functional 10000
    user u1 100
    user u2 300
    project p1 200
";

#[test]
fn users_projects_departments_and_jobs_count_together() {
    check(&format!(
        "{PENDING} {MIXED}
        department d1 50 0 u1
        job 1 -P p1
        job 2 -P p1 -js 10
        job 3
        job 4 -u u2 -P p1
        job 5 -u u2 -js 30
        job 6 -u u2
        job 7 -u u3 -js 30
        pass
        $ 1 0 2395 0
        $ 2 0 6875 0
        $ 3 0 1041 0
        $ 4 0 5000 0
        $ 5 0 2812 0
        $ 6 0 625 0
        $ 7 0 1071 0
        queue all.q a slots=7
        pass
        = 2 all.q@a
        = 4 all.q@a
        = 5 all.q@a
        = 1 all.q@a
        = 7 all.q@a
        = 3 all.q@a
        = 6 all.q@a
        pass
        $ 1 r 0 1875 0
        $ 2 r 0 2232 0
        $ 3 r 0 1041 0
        $ 4 r 0 1458 0
        $ 5 r 0 1696 0
        $ 6 r 0 625 0
        $ 7 r 0 1071 0
        job 11 -P p1
        job 12 -P p1 -js 10
        job 13
        job 14 -u u2 -P p1
        job 15 -u u2 -js 30
        job 16 -u u2
        job 17 -u u3 -js 30
        pass
        $ 11 0 1125 0
        $ 12 0 1718 0
        $ 13 0 520 0
        $ 14 0 791 0
        $ 15 0 1150 0
        $ 16 0 312 0
        $ 17 0 535 0"
    ));
}

#[test]
fn shares_that_are_not_divided_count_for_every_task() {
    check(&format!(
        "{PENDING} {MIXED}
        conf share_functional_shares FALSE
        job 1 -P p1
        job 2 -P p1 -js 10
        job 3
        job 4 -u u2 -P p1
        job 5 -u u2 -js 30
        job 6 -u u2
        job 7 -u u3 -js 30
        pass
        $ 1 0 1145 0
        $ 2 0 7500 0
        $ 3 0 208 0
        $ 4 0 2321 0
        $ 5 0 3750 0
        $ 6 0 681 0
        $ 7 0 1071 0"
    ));
}
