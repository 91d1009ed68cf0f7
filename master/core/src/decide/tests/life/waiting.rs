use super::*;

#[test]
fn successors_wait_until_the_whole_job_has_left_and_for_ever_if_it_failed() {
    let mut cell = Cell::ready();
    let first = cell.submit(array("1-2"));
    let second = cell.submit(JobSpec {
        predecessors: vec!["sle*".into()],
        name: "next".into(),
        ..job()
    });
    let key = cell.run(first, 1, "h1");
    cell.exit(key, "h1", 0);
    assert!(cell.order(second, 1, "h1").is_err());
    let key = cell.run(first, 2, "h1");
    cell.exit(key, "h1", 0);
    let key = cell.run(second, 1, "h1");
    let third = cell.submit(JobSpec {
        predecessors: vec![second.to_string()],
        ..job()
    });
    cell.exit(key, "h1", 100);
    assert_eq!(cell.qdel("u1", &["2"]), ["u1 has deleted job 2"]);
    assert!(!cell.exists(second));
    assert!(
        cell.order(third, 1, "h1").is_err(),
        "what waits for a job that ended with 100 stays held"
    );
    cell.assert_replay_is_live();
}

#[test]
fn tasks_of_an_array_wait_for_their_counterparts() {
    let mut cell = Cell::ready();
    let first = cell.submit(array("1-6"));
    let same = cell.submit(JobSpec {
        array_predecessors: vec![first.to_string()],
        name: "same".into(),
        ..array("1-6")
    });
    let coarse = cell.submit(JobSpec {
        array_predecessors: vec![first.to_string()],
        name: "coarse".into(),
        ..array("1-6:3")
    });
    let key = cell.run(first, 2, "h1");
    cell.exit(key, "h1", 0);
    assert!(cell.order(same, 1, "h1").is_err());
    cell.order(same, 2, "h1").unwrap();
    assert!(
        cell.order(coarse, 1, "h1").is_err(),
        "1 of the coarse job stands for 1 to 3"
    );
    for task in [1, 3] {
        let key = cell.run(first, task, "h1");
        cell.exit(key, "h1", 0);
    }
    cell.order(coarse, 1, "h1").unwrap();
    assert!(cell.order(coarse, 4, "h1").is_err());
}

#[test]
fn an_array_waits_only_for_arrays_of_its_own_range() {
    let mut cell = Cell::ready();
    let alter = |cell: &mut Cell, number: &str, changes: JobChanges| {
        texts(&cell.command(
            "u1",
            Command::Alter {
                jobs: selection(&[number]),
                changes: Box::new(changes),
            },
        ))
    };
    let (plain, tasks) = (cell.submit(job()).to_string(), cell.submit(array("2-8:2")).to_string());
    let no_array = "Can only specify \"-hold_jid_ad\" option with an array job (using \"-t\" option)";
    let other =
        "This array job must have the same range of sub-tasks as the dependent array job specified with -hold_jid_ad";
    let cases = [
        (array("2-8"), &tasks, None),
        (array("2-8:3"), &tasks, None),
        (array("1-3"), &"999".to_owned(), None),
        (array("2-9:2"), &tasks, Some(other)),
        (array("1-8"), &tasks, Some(other)),
        (array("2-8"), &plain, Some(no_array)),
        (job(), &tasks, Some(no_array)),
        (job(), &"nosuch".to_owned(), Some(no_array)),
    ];
    for (spec, name, expected) in cases {
        let spec = JobSpec {
            array_predecessors: vec![name.clone()],
            ..spec
        };
        let said = cell.try_submit(spec);
        assert_eq!(said.err().as_deref(), expected, "{name}");
    }
    let change = |name: &str| JobChanges {
        array_predecessors: Some(vec![name.into()]),
        ..JobChanges::default()
    };
    assert_eq!(alter(&mut cell, "3", change(&plain)), [no_array]);
    assert_eq!(alter(&mut cell, "1", change(&tasks)), [no_array]);
    assert_eq!(alter(&mut cell, "5", change(&tasks)), [other]);
    let none = JobChanges {
        array_predecessors: Some(Vec::new()),
        ..JobChanges::default()
    };
    assert_eq!(
        alter(&mut cell, "3", none)[0].lines().next(),
        Some("modified job id hold array list of job 3")
    );
}
