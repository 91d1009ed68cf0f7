//! A shepherd serves one task after the other of the same user, and never more than that.

use super::cell::{Cell, until};
use gridwright_shepherd::proc;
use proto::launch::{EndCause, LaunchResult, Notice, Procedure, Request, TaskOrder};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs a task that tells its shepherd and what it sees of a task before.
fn look(cell: &mut Cell) -> (String, LaunchResult) {
    let result = cell.run("echo $PPID; ls /proc/$PPID/fd >&2");
    (cell.output(&result, 'o'), result)
}

#[test]
fn an_idle_shepherd_takes_the_next_task_of_its_user() {
    let mut cell = Cell::start();
    // The first one asks the name service and is not kept; one that a busy machine held up is not
    // kept either.
    let mut before = String::new();
    until("two tasks of one shepherd", || {
        let shepherd = look(&mut cell).0;
        (std::mem::replace(&mut before, shepherd.clone()) == shepherd).then_some(())
    });
}

#[test]
fn a_task_begins_as_fresh_as_with_a_shepherd_of_its_own() {
    let mut cell = Cell::start();
    // `SigQ` counts the signals that wait for any process of the user.
    let plain = "ulimit -a; umask; nice; env | grep -v -e JOB -e GRIDWRIGHT -e _= -e PATH=; ls -l /proc/self/fd | wc -l; grep -e ^Sig[^Q] -e ^Cap /proc/self/status";
    let first = cell.run(plain);
    let mut odd = cell.shell("ulimit -a > /dev/null; exit 5");
    odd.nice = 7;
    odd.umask = 0o777;
    odd.environment.push("ODD=1".into());
    odd.limits = vec![super::cell::limit(proto::launch::Resource::OpenFiles, 32)];
    let key = cell.launch(odd);
    assert_eq!(cell.ended(key).cause, EndCause::Exited(5));
    let second = cell.run(plain);
    assert_eq!(cell.output(&first, 'o'), cell.output(&second, 'o'));
    assert!(second.usage.cpu_ms <= first.usage.cpu_ms + 1_000, "{:?}", second.usage);
}

#[test]
fn an_order_for_an_ended_task_is_not_the_next_ones() {
    let mut cell = Cell::start();
    let first = cell.run("true").key;
    let document = cell.shell("sleep 0.3");
    let second = cell.launch(document);
    cell.executed(second);
    cell.order(first, TaskOrder::Kill);
    assert_eq!(cell.ended(second).cause, EndCause::Exited(0));
}

#[test]
fn an_idle_shepherd_that_is_killed_costs_no_task() {
    let mut cell = Cell::start();
    for _ in 0..10 {
        let (shepherd, _) = look(&mut cell);
        let pid: i32 = shepherd.trim().parse().unwrap();
        // A shepherd that ended by itself has a pid of nobody.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        until("its end", || {
            proc::stat(pid).is_none_or(|stat| stat.is_gone()).then_some(())
        });
        assert_eq!(cell.run("true").cause, EndCause::Exited(0));
    }
}

#[test]
fn a_document_that_an_idle_shepherd_cannot_take_at_once_runs_with_another() {
    let mut cell = Cell::start();
    // The first one asks the name service; from then on its user's shepherds become idle.
    for _ in 0..3 {
        look(&mut cell);
        let mut large = cell.shell("env | grep -c ^LARGE_");
        large
            .environment
            .extend((0..10).map(|at| format!("LARGE_{at}={}", "x".repeat(30_000))));
        let result = cell.run_document(large);
        assert_eq!(
            (&result.cause, cell.output(&result, 'o').as_str()),
            (&EndCause::Exited(0), "10\n")
        );
    }
}

#[test]
fn a_shepherd_is_as_urgent_as_any_other_process_once_its_limited_job_has_ended() {
    let mut cell = Cell::start();
    let mut document = cell.shell("true");
    document.task_limits.h_vmem_bytes = Some(1 << 40);
    // Nice value and policy of the shepherd, which is the parent of the epilog.
    let path = cell.work.join("epilog");
    fs::write(
        &path,
        "#!/bin/sh\nsed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f17,39\n",
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let command = path.to_string_lossy().into_owned();
    document.epilog = Some(Procedure {
        user: None,
        command,
        timeout_s: 30,
    });
    let result = cell.run_document(document);
    let own = fs::read_to_string(format!("/proc/{}/stat", cell.launcher.id())).unwrap();
    let fields: Vec<&str> = own.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    assert_eq!(
        cell.output(&result, 'o'),
        format!("{} {}\n", fields[16], fields[38]),
        "{result:?}"
    );
}

#[test]
fn idle_shepherds_end_with_their_launcher() {
    let mut cell = Cell::start();
    let shepherds: BTreeSet<i32> = (0..5).map(|_| look(&mut cell).0.trim().parse().unwrap()).collect();
    cell.restart_launcher();
    for pid in shepherds {
        until("the end of an idle shepherd", || {
            proc::stat(pid).is_none_or(|stat| stat.is_gone()).then_some(())
        });
    }
}

#[test]
fn others_can_neither_open_nor_lock_the_directory_of_a_task() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let expected = if nix::unistd::Uid::effective().is_root() {
        0o711
    } else {
        0o700
    };
    let mut cell = Cell::start();
    let tasks = cell.dir.join("tasks");
    let first = cell.run("true").key;
    let path = tasks.join(first.to_string());
    assert_eq!(mode(&path), expected);
    // As an earlier version made it.
    fs::set_permissions(&path, fs::Permissions::from_mode(expected | 0o040)).unwrap();
    cell.send(&Request::Forget { key: first });
    cell.hear(|notice| matches!(notice, Notice::Forgotten { key } if *key == first).then_some(()));
    let second = cell.run("true").key;
    assert_eq!(mode(&tasks.join(second.to_string())), expected);
}
