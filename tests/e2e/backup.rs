//! Backups of running cells, and cells that are restored from them.

use crate::copies::about;
use crate::hosts::{can_have_hosts, join, master, reports, submit_on, token};
use gridwright_tests::cell::{Cell, CommandUser, Network, records, wait_until};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

#[test]
fn a_restored_cell_goes_on_with_its_nodes_jobs_and_numbers() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    join(&other, &token(&master, &[])).ok();
    wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
    master.write(
        "job.sh",
        "#!/bin/sh\necho $$ >pid\nwhile [ ! -e go ]; do sleep 0.1; done\n",
        0o755,
    );
    let running = submit_on(&master, "h2", &["job.sh"]);
    master.wait_for_state(&running, "r");
    wait_until(|| master.state_of(&running), || master.read("pid").ends_with('\n'));

    let (file, dir) = (master.top().join("saved"), master.dir().with_file_name("restored"));
    let (file_word, dir_word) = (file.display().to_string(), dir.display().to_string());
    let save = ["backup", &file_word, "--dir", &master.dir_word()];
    let said = master.admin(&save).ok();
    assert!(said.out.contains("1 jobs"), "{said}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    master.admin(&save).refused(&["is there already"]);
    master.wait_for_state(&running, "r");

    master.down(&[]).ok();
    let restore = ["restore", &file_word, "--dir", &dir_word];
    let said = master.admin(&restore).ok();
    assert!(said.out.contains("epoch 1"), "{said}");
    master.admin(&restore).refused(&["is in use"]);
    about(
        &master,
        &dir,
        CommandUser::Admin,
        &["up", "--dir", &dir_word, "--detach"],
    )
    .ok();
    let ask = |words: &[&str]| about(&master, &dir, CommandUser::User, words);
    let is_back = || {
        let listed = ask(&["qhost"]).out;
        let line = listed.lines().find(|line| line.starts_with("h2 "));
        line.is_some_and(|line| line.split_whitespace().nth(6) != Some("-"))
    };
    wait_until(|| ask(&["qhost"]).to_string(), is_back);
    master.write("go", "", 0o644);
    let record = || records(&ask(&["qacct", "-j", &running]).out);
    wait_until(|| format!("{:?}", record()), || !record().is_empty());
    assert_eq!(
        (record()[0].value("failed"), record()[0].value("hostname")),
        ("0", "h2")
    );
    let next = ask(&["qsub", "-terse", "-cwd", "-b", "y", "true"]).ok().out;
    let number = |text: &str| text.trim().parse::<u32>().unwrap();
    assert_eq!(number(&next), number(&running) + 1);
    about(&master, &dir, CommandUser::Admin, &["down", "--dir", &dir_word]).ok();
}

#[test]
fn a_file_that_is_no_backup_is_refused_and_leaves_nothing() {
    let cell = Cell::up();
    let dir = cell.dir().with_file_name("restored");
    let (file, dir_word) = (
        cell.write_top("letter", "not a backup\n", 0o600),
        dir.display().to_string(),
    );
    cell.admin(&["restore", &file.display().to_string(), "--dir", &dir_word])
        .refused(&["letter", "backup is damaged"]);
    assert!(!dir.exists());
    let (saved, own) = (cell.top().join("saved").display().to_string(), cell.dir_word());
    cell.admin(&["backup", &saved]).ok();
    cell.admin(&["restore", &saved, "--dir", &own]).refused(&["is in use"]);
    cell.run(CommandUser::User, &["backup", "/tmp/stolen", "--dir", &own])
        .refused(&["somebody else"]);
}
