//! Resource quotas in a real cell with simulated hosts: what `tests/captures/23sched.txt` has of
//! 8.1.9, done again.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

/// Jobs that stay until the cell is taken down.
const LONG: [&str; 4] = ["-b", "y", "sleep", "600"];

fn cell() -> Cell {
    let words = ["--slots", "8", "--sim-hosts", "4"].map(str::to_owned).into();
    Cell::with(CellPlan {
        words,
        ..CellPlan::default()
    })
}

/// Makes these the resource quota sets of the cell.
fn set(cell: &Cell, text: &str) {
    let file = cell.write_top("rqs", text, 0o644).display().to_string();
    let said = cell.admin(&["qconf", "-Mrqs", &file]).ok();
    assert!(
        said.err.contains("added \"r1\" to resource quota set list") || said.out.contains("added \"r1\""),
        "{said}"
    );
}

fn submit(cell: &Cell, words: &[&str]) -> String {
    cell.submit(&[&["-q", "all.q@sim*"], words, &LONG].concat())
}

/// The rows of `qquota` below its head, each with single blanks.
fn quotas(cell: &Cell, words: &[&str]) -> Vec<String> {
    let said = cell.admin(&[&["qquota"], words].concat()).ok();
    said.out
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Waits until `qstat -j` says why a job waits.
fn waits_because(cell: &Cell, job: &str, why: &str) {
    let shown = || cell.user(&["qstat", "-j", job]).out;
    wait_until(|| format!("{why} in {}", shown()), || shown().contains(why));
}

fn clear(cell: &Cell) {
    let user = cell.account().name.clone();
    cell.admin(&["qdel", "-f", "-u", &user]);
    wait_until(
        || "an empty cell".to_owned(),
        || cell.admin(&["qstat", "-u", "*"]).out.is_empty(),
    );
}

/// A rule for each user.
fn limit_users(cell: &Cell) {
    let user = cell.account().name.clone();
    set(
        cell,
        "{\n name r1\n description \"max 2 slots per user\"\n enabled TRUE\n limit name lim1 users {*} to slots=2\n}\n",
    );
    let jobs: Vec<String> = (0..3).map(|_| submit(cell, &[])).collect();
    waits_because(
        cell,
        &jobs[2],
        &format!("cannot run because it exceeds limit \"{user}/////\" in rule \"r1/lim1\""),
    );
    assert_eq!(quotas(cell, &["-u", "*"]), [format!("r1/lim1 slots=2/2 users {user}")]);
    assert_eq!(quotas(cell, &[]), [""; 0]);
    let said = cell.user(&["qsub", "-w", "v", "-pe", "mpi", "3", "-b", "y", "sleep", "1"]);
    assert!(
        said.err
            .contains(&format!("exceeds limit \"{user}/////\" in rule \"r1/lim1\"")),
        "{said}"
    );
    assert!(
        said.err
            .contains("cannot run in PE \"mpi\" because it only offers 2 slots"),
        "{said}"
    );
    let explained = cell.user(&["explain", &jobs[2]]).ok().out;
    assert!(
        explained.contains("r1/lim1") && explained.contains("slots: needed 1, free 0, of 2"),
        "{explained}"
    );
    assert!(cell.user(&["explain", "sleep"]).ok().out.matches("job ").count() >= 3);
    cell.user(&["explain", "nosuch"])
        .refused(&["job \"nosuch\" does not exist"]);
    clear(cell);
}

/// Rules for hosts, of which the first that fits counts.
fn limit_hosts(cell: &Cell) {
    set(
        cell,
        "{\n name r1\n description NONE\n enabled TRUE\n limit users nobody hosts {sim0001} to slots=1\n \
         limit users * queues !all.q to slots=1\n limit hosts {@allhosts} to slots=3\n limit to slots=5\n}\n",
    );
    let array = submit(cell, &["-t", "1-13"]);
    let full: Vec<String> = (1..5)
        .map(|host| format!("r1/3 slots=3/3 hosts sim000{host}"))
        .collect();
    wait_until(
        || format!("{full:?}; {}", cell.state_of(&array)),
        || quotas(cell, &["-u", "*"]) == full,
    );
    waits_because(
        cell,
        &array,
        "cannot run because it exceeds limit \"////sim0002/\" in rule \"r1/3\"",
    );
    assert_eq!(quotas(cell, &["-h", "sim0003"]), ["r1/3 slots=3/3 hosts sim0003"]);
    clear(cell);
}

/// A limit that follows from what a host has.
fn limit_by_processors(cell: &Cell) {
    set(
        cell,
        "{\n name r1\n enabled TRUE\n limit hosts {sim0001,sim0002} to slots=$num_proc+1\n limit to slots=0\n}\n",
    );
    let array = submit(cell, &["-t", "1-40"]);
    waits_because(cell, &array, "in rule \"r1/2\"");
    let rows = || quotas(cell, &["-u", "*"]);
    let is_full = |row: &String| {
        let amount = row
            .split_whitespace()
            .nth(1)
            .and_then(|amount| amount.strip_prefix("slots="));
        amount
            .and_then(|amount| amount.split_once('/'))
            .is_some_and(|(used, limit)| used == limit)
    };
    wait_until(
        || format!("{:?}", rows()),
        || rows().len() == 2 && rows().iter().all(is_full),
    );
    cell.admin(&["qconf", "-drqs", "r1"]).ok();
    assert_eq!(quotas(cell, &["-u", "*"]), [""; 0]);
    clear(cell);
}

#[test]
fn rules_limit_users_hosts_and_what_a_host_has() {
    let cell = cell();
    limit_users(&cell);
    limit_hosts(&cell);
    limit_by_processors(&cell);
}

#[test]
fn quotas_outlive_the_master_and_protect_what_they_name() {
    let cell = cell();
    let user = cell.account().name.clone();
    cell.add_complex("lic lic INT <= YES YES 0 0");
    cell.admin(&["qconf", "-mattr", "exechost", "complex_values", "lic=9", "global"])
        .ok();
    set(
        &cell,
        "{\n name r1\n enabled TRUE\n limit users {*} hosts @allhosts pes !* to lic=3\n}\n",
    );
    submit(&cell, &["-l", "lic=2"]);
    let second = submit(&cell, &["-l", "lic=2"]);
    let row = format!("r1/1 lic=2/3 users {user} pes !* hosts @allhosts");
    wait_until(|| row.clone(), || quotas(&cell, &["-u", "*"]) == [row.as_str()]);
    cell.admin(&["qconf", "-dhgrp", "@allhosts"]).refused(&["@allhosts"]);
    let complex = cell.admin(&["qconf", "-sc"]).ok().out;
    let without: String = complex
        .lines()
        .filter(|line| !line.starts_with("lic "))
        .map(|line| format!("{line}\n"))
        .collect();
    let file = cell.write_top("complex", &without, 0o644).display().to_string();
    cell.admin(&["qconf", "-Mc", &file]).refused(&["lic"]);
    cell.kill("master");
    cell.bring_up(&[]).ok();
    wait_until(
        || "the master's answer".to_owned(),
        || quotas(&cell, &["-u", "*"]) == [row.as_str()],
    );
    cell.admin(&["qconf", "-mattr", "resource_quota", "limit", "lic=4", "r1/1"])
        .ok();
    cell.wait_for_state(&second, "r");
    let row = format!("r1/1 lic=4/4 users {user} pes !* hosts @allhosts");
    assert_eq!(quotas(&cell, &["-u", "*"]), [row]);
    clear(&cell);
}
