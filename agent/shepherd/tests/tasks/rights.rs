//! A job inherits nothing of the daemons.

use super::cell::{Cell, direct};
use proto::launch::EndCause;
use std::process::Command;

/// The lines of `/proc/self/status` that tell what a process may do.
fn rights(text: &str) -> Vec<String> {
    let names = [
        "Uid:",
        "Gid:",
        "Seccomp:",
        "NoNewPrivs:",
        "CapInh:",
        "CapPrm:",
        "CapEff:",
        "CapBnd:",
        "CapAmb:",
        "SigIgn:",
        "SigBlk:",
    ];
    text.lines()
        .filter(|line| names.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_job_has_the_rights_of_a_login_of_its_user() {
    let mut cell = Cell::start();
    let document = cell.document(direct(&["cat", "/proc/self/status"]));
    let result = cell.run_document(document);
    let job = rights(&cell.output(&result, 'o'));
    // A test run in the background ignores signals, which would be handed on.
    let mut login = Command::new("env");
    login.arg("--default-signal");
    if nix::unistd::Uid::effective().is_root() {
        login.args(["su", "-", &cell.account.name, "-c", "cat /proc/self/status"]);
    } else {
        login.args(["cat", "/proc/self/status"]);
    }
    let login = login.output().unwrap();
    assert_eq!(job, rights(&String::from_utf8(login.stdout).unwrap()));
}

#[test]
fn a_job_has_three_descriptors_and_no_more() {
    let mut cell = Cell::start();
    let document = cell.document(direct(&["ls", "/proc/self/fd"]));
    let result = cell.run_document(document);
    // The fourth is the listing itself.
    assert_eq!(cell.output(&result, 'o'), "0\n1\n2\n3\n");
}

#[test]
fn a_queue_may_take_rights_away() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start();
    let mut document = cell.document(direct(&["grep", "-E", "NoNewPrivs|CapBnd", "/proc/self/status"]));
    document.security.no_new_privs = true;
    document.security.bounding_set = Some(0b11);
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "CapBnd:\t0000000000000003\nNoNewPrivs:\t1\n");
}

#[test]
fn a_job_leads_a_session_of_its_own() {
    let mut cell = Cell::start();
    let document = cell.shell("ps -o pid=,sid=,pgid= -p $$");
    let key = document.key;
    let result = cell.run_document(document);
    let output = cell.output(&result, 'o');
    let ids: Vec<&str> = output.split_ascii_whitespace().collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{output}");
    assert_eq!(cell.executed_of(key).to_string(), ids[0]);
}

#[test]
fn each_task_has_a_group_of_the_hosts_own_range_also_after_the_launcher_was_killed() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("launcher.conf", "tracking_gids 64997 64998")]);
    let group = |cell: &Cell, name: &str| {
        let groups = cell.read_when_there(name);
        groups
            .split(' ')
            .find(|group| group.starts_with("6499"))
            .map(str::to_owned)
    };
    let document = cell.shell("id -G >first; sleep 1000");
    let first = cell.launch(document);
    cell.executed(first);
    assert_eq!(group(&cell, "first").as_deref(), Some("64997"));
    cell.restart_launcher();
    cell.found(first);
    for name in ["second", "third"] {
        let document = cell.shell(&format!("id -G >{name}"));
        assert_eq!(cell.run_document(document).cause, EndCause::Exited(0));
        assert_eq!(group(&cell, name).as_deref(), Some("64998"), "{name}");
    }
    let document = cell.shell("id -G >fourth; sleep 1000");
    cell.launch(document);
    assert_eq!(group(&cell, "fourth").as_deref(), Some("64998"));
    let document = cell.shell("id -G >fifth");
    cell.run_document(document);
    assert_eq!(group(&cell, "fifth"), None, "all groups are in use");
}

#[test]
fn limits_hold_where_proc_hides_other_users() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    // The whole test again, in a mount namespace of its own.
    if std::env::var_os("GRIDWRIGHT_HIDEPID").is_none() {
        let me = std::env::current_exe().unwrap();
        let script = "mount -t proc -o hidepid=2 proc /proc && exec \"$0\" --exact rights::limits_hold_where_proc_hides_other_users";
        let status = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "sh", "-c", script])
            .arg(me)
            .env("GRIDWRIGHT_HIDEPID", "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let mut cell = Cell::start();
    let mut document = cell.shell("perl -e 'my $x = \"x\" x (60 << 20); sleep 60' & sleep 60");
    document.task_limits.h_vmem_bytes = Some(40 << 20);
    let result = cell.run_document(document);
    assert_eq!(result.limit.map(|hit| hit.limit), Some("h_vmem".into()));
    let document = cell.script_document(proto::launch::StartMode::UnixBehavior, "/bin/sh", &[]);
    assert_eq!(
        cell.run_script(document, "#!/bin/sh\nexit 3\n").cause,
        EndCause::Exited(3)
    );
}
