//! What happens when launcher or shepherd die.

use super::cell::{Cell, is_alive, tmpdir, until};
use gridwright_shepherd::proc;
use gridwright_shepherd::task_dir::record::Contents;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use proto::launch::{Blame, EndCause, Notice, StartMode, TaskOrder};
use std::os::fd::AsRawFd;

#[test]
fn a_new_launcher_finds_the_tasks_of_a_killed_one() {
    let mut cell = Cell::start();
    let document = cell.shell("echo $$ > running; until [ -e go ]; do sleep 0.05; done; exit 6");
    let key = cell.launch(document);
    let pid = cell.executed(key);
    cell.read_when_there("running");
    cell.restart_launcher();
    assert!(is_alive(pid));
    assert_eq!(cell.found(key), pid);
    std::fs::write(cell.work.join("go"), "").unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::Exited(6));
}

#[test]
fn a_task_that_ended_without_a_launcher_is_listed_with_its_result() {
    let mut cell = Cell::start();
    let document = cell.shell("echo up > up; sleep 0.3; exit 9");
    let key = cell.launch(document);
    cell.read_when_there("up");
    cell.launcher.kill().unwrap();
    cell.launcher.wait().unwrap();
    let record = cell.dir.join(format!("tasks/{key}/record"));
    until("the result", || Contents::read(&std::fs::read(&record).ok()?).result);
    cell.restart_launcher();
    let tasks = cell.list();
    assert_eq!(
        tasks[0].result.as_ref().map(|result| result.cause.clone()),
        Some(EndCause::Exited(9))
    );
}

#[test]
fn an_order_reaches_a_task_through_a_new_launcher() {
    let mut cell = Cell::start();
    let document = cell.shell("sleep 1000");
    let key = cell.launch(document);
    cell.executed(key);
    cell.restart_launcher();
    cell.found(key);
    cell.order(key, TaskOrder::Kill);
    assert!(cell.ended(key).ordered);
}

#[test]
fn a_task_whose_shepherd_is_killed_is_ended_whole_and_recorded_once() {
    let mut cell = Cell::start();
    let document = cell.shell("setsid sleep 1000 & echo $! > escaped; wait; sleep 1000");
    let key = cell.launch(document);
    let main = cell.executed(key);
    let escaped: i32 = cell.read_when_there("escaped").parse().unwrap();
    let shepherd = proc::stat(main).unwrap().parent;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shepherd), nix::sys::signal::Signal::SIGKILL).unwrap();
    let result = cell.ended(key);
    assert_eq!((&result.cause, result.executed), (&EndCause::ShepherdDied, true));
    assert!(!is_alive(main) && !is_alive(escaped));
    cell.list();
    let ends = cell
        .heard
        .iter()
        .filter(|notice| matches!(notice, Notice::Ended(_)))
        .count();
    assert_eq!(ends, 1);
}

#[test]
fn a_task_whose_shepherd_and_launcher_are_killed_is_ended_by_the_next_launcher() {
    let mut cell = Cell::start();
    let document = cell.shell("setsid sleep 1000 & echo $! > escaped; wait; sleep 1000");
    let key = cell.launch(document);
    let main = cell.executed(key);
    let escaped: i32 = cell.read_when_there("escaped").parse().unwrap();
    let shepherd = nix::unistd::Pid::from_raw(proc::stat(main).unwrap().parent);
    cell.launcher.kill().unwrap();
    cell.launcher.wait().unwrap();
    nix::sys::signal::kill(shepherd, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the end of the main process", || (!is_alive(main)).then_some(()));
    cell.restart_launcher();
    until("the record", || {
        let result = cell.list().pop()?.result?;
        (result.cause == EndCause::ShepherdDied).then_some(())
    });
    assert!(!is_alive(escaped));
}

#[test]
fn a_task_that_the_shutdown_of_the_host_ends_is_lost_as_in_a_crash() {
    let mut cell = Cell::start();
    let document = cell.shell("sleep 1000");
    let key = cell.launch(document);
    let main = cell.executed(key);
    let shepherd = proc::stat(main).unwrap().parent;
    for pid in [shepherd, main] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
    }
    let result = cell.ended(key);
    assert_eq!((&result.cause, result.executed), (&EndCause::ShepherdDied, true));
}

#[test]
fn a_launcher_that_cannot_read_its_tasks_gives_no_list() {
    let mut cell = Cell::start();
    assert_eq!(cell.list(), []);
    std::fs::rename(cell.dir.join("tasks"), cell.dir.join("away")).unwrap();
    cell.send(&proto::launch::Request::List);
    // An empty list would tell the master that every task of this host is lost.
    assert!(cell.is_closed());
    std::fs::rename(cell.dir.join("away"), cell.dir.join("tasks")).unwrap();
    cell.restart_launcher();
    assert_eq!(cell.list(), []);
}

#[test]
fn a_launcher_without_descriptors_refuses_starts_sleeps_and_finds_what_ended_once_there_are_some() {
    const OPEN_FILES: usize = 20;
    let mut cell = Cell::start_with_open_files(OPEN_FILES as u32);
    let document = cell.shell("sleep 1000");
    let orphan = cell.launch(document);
    let main = cell.executed(orphan);
    let held: Vec<_> = (0..OPEN_FILES).map(|_| cell.another_connection()).collect();
    let folder = format!("/proc/{}", cell.launcher.id());
    let opened = || std::fs::read_dir(format!("{folder}/fd")).unwrap().count();
    until("a launcher that is out of descriptors", || {
        (opened() >= OPEN_FILES).then_some(())
    });

    let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
    let key = cell.launch_script(document, "#!/bin/sh\nexit 3\n");
    assert!(
        cell.refused(key).contains("out of descriptors"),
        "{}",
        cell.refused(key)
    );
    assert_eq!(cell.blamed(key), Blame::Host);
    assert!(
        cell.trouble()
            .is_some_and(|trouble| trouble.contains("out of descriptors"))
    );
    let document = cell.shell("true");
    let key = cell.launch(document);
    assert!(
        cell.refused(key).contains("Too many open files"),
        "{}",
        cell.refused(key)
    );
    let sleeping = || {
        proc::stat(cell.launcher.id() as i32)
            .filter(|stat| stat.state == b'S')
            .map(drop)
    };
    until("a launcher that does not turn in circles", sleeping);
    let shepherd = proc::stat(main).unwrap().parent;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shepherd), nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the end of the shepherd", || (!is_alive(shepherd)).then_some(()));
    drop(held);

    assert_eq!(cell.ended(orphan).cause, EndCause::ShepherdDied);
    until("a launcher that finds itself well again", || {
        cell.trouble().is_none().then_some(())
    });
    let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
    assert_eq!(
        cell.run_script(document, "#!/bin/sh\nexit 4\n").cause,
        EndCause::Exited(4)
    );
}

#[test]
fn a_start_on_record_of_another_boot_counts_as_executed_even_if_its_directory_is_lost() {
    let mut cell = Cell::start();
    let (kept, lost, forgotten) = (cell.new_key(), cell.new_key(), cell.new_key());
    cell.launcher.kill().unwrap();
    cell.launcher.wait().unwrap();
    // What a crash of the machine may leave: a directory with nothing in it, or none, and the lines
    // that were synced.
    std::fs::create_dir(cell.dir.join(format!("tasks/{kept}"))).unwrap();
    let lines = format!(
        "+ {forgotten} b0\n+ {kept} b0\n- {forgotten} \n+ {lost} b0\n+ {} b",
        cell.new_key()
    );
    std::fs::write(cell.dir.join("tasks/journal"), lines).unwrap();
    cell.restart_launcher();
    let ends = until("the records", || {
        let tasks = cell.list();
        tasks.iter().all(|task| task.result.is_some()).then_some(tasks)
    });
    let ends: Vec<_> = ends.into_iter().filter_map(|task| task.result).collect();
    assert_eq!(
        ends.iter()
            .map(|end| end.key)
            .collect::<std::collections::BTreeSet<_>>(),
        [kept, lost].into()
    );
    for end in ends {
        assert_eq!(
            (&end.cause, end.executed, end.boot_id.as_str()),
            (&EndCause::ShepherdDied, true, "b0")
        );
    }
}

#[test]
fn a_start_on_record_of_this_boot_that_no_shepherd_took_up_can_be_asked_for_again() {
    let mut cell = Cell::start();
    let document = cell.shell("exit 3");
    let key = document.key;
    cell.launcher.kill().unwrap();
    cell.launcher.wait().unwrap();
    std::fs::create_dir(cell.dir.join(format!("tasks/{key}"))).unwrap();
    let line = format!("+ {key} {}\n", proc::boot_id());
    std::fs::write(cell.dir.join("tasks/journal"), line).unwrap();
    cell.restart_launcher();
    assert_eq!(cell.list(), []);
    cell.launch(document);
    assert_eq!(cell.ended(key).cause, EndCause::Exited(3));
}

#[test]
fn a_forgotten_task_leaves_the_journal_when_it_is_written_anew() {
    let mut cell = Cell::start();
    let kept = cell.run("true").key;
    let gone = cell.run("true").key;
    let journal = cell.dir.join("tasks/journal");
    let names = |key: proto::id::TaskKey| {
        let bytes = std::fs::read(&journal).unwrap();
        String::from_utf8_lossy(&bytes).contains(&format!("+ {key} "))
    };
    assert!(names(kept) && names(gone));
    cell.send(&proto::launch::Request::Forget { key: gone });
    cell.hear(|notice| matches!(notice, Notice::Forgotten { key } if *key == gone).then_some(()));
    cell.restart_launcher();
    // Its answer comes behind the new journal.
    cell.list();
    assert!(names(kept) && !names(gone));
}

#[test]
fn a_launcher_that_cannot_write_its_journal_anew_goes_on_in_the_one_that_is_there() {
    let mut cell = Cell::start();
    let before = cell.run("exit 1").key;
    // As on a full disk, whoever runs this: a file cannot be made where a directory is.
    std::fs::create_dir(cell.dir.join("tasks/journal.new")).unwrap();
    cell.restart_launcher();
    let after = cell.run("exit 2");
    assert_eq!(after.cause, EndCause::Exited(2));
    std::fs::remove_dir(cell.dir.join("tasks/journal.new")).unwrap();
    let journal = std::fs::read(cell.dir.join("tasks/journal")).unwrap();
    let text = String::from_utf8_lossy(&journal);
    assert!(
        [before, after.key]
            .iter()
            .all(|key| text.contains(&format!("+ {key} "))),
        "{text}"
    );
}

#[test]
fn a_start_that_cannot_be_recorded_is_refused_as_the_hosts_fault_until_the_journal_can_be_written() {
    let mut cell = Cell::start();
    let before = cell.run("true").key;
    let (journal, draft) = (cell.dir.join("tasks/journal"), cell.dir.join("tasks/journal.new"));
    // The journal that is there has no room, and no other one can be made.
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap());
    std::fs::write(&journal, &bytes).unwrap();
    std::fs::create_dir(&draft).unwrap();
    cell.restart_launcher();
    let refused = cell.shell("true");
    let refused = cell.launch(refused);
    let why = cell.refused(refused);
    assert!(why.contains("the start cannot be recorded"), "{why}");
    assert_eq!(cell.blamed(refused), Blame::Host);
    assert!(
        !cell.dir.join(format!("tasks/{refused}")).exists(),
        "nothing of it stays"
    );
    assert_eq!(std::fs::read(&journal).unwrap(), bytes);
    assert!(
        cell.trouble()
            .is_some_and(|trouble| trouble.contains("cannot be recorded"))
    );
    std::fs::remove_dir(&draft).unwrap();
    assert_eq!(cell.trouble(), None);
    assert_eq!(cell.run("exit 2").cause, EndCause::Exited(2));
    let listed: Vec<_> = cell.list().into_iter().map(|task| task.key).collect();
    assert!(listed.contains(&before) && !listed.contains(&refused));
}

/// A task that runs, with its main process and its shepherd.
fn running(cell: &mut Cell, command: &str) -> (proto::id::TaskKey, i32, Pid) {
    let document = cell.shell(command);
    let key = cell.launch(document);
    let main = cell.executed(key);
    (key, main, Pid::from_raw(proc::stat(main).unwrap().parent))
}

/// Damages a record.
type Damage = fn(&std::path::Path);

/// What may have become of the record of a task.
fn damages() -> [(&'static str, Damage); 5] {
    [
        ("garbage", |path| std::fs::write(path, [0xa7; 3000]).unwrap()),
        ("empty", |path| std::fs::write(path, "").unwrap()),
        ("gone", |path| std::fs::remove_file(path).unwrap()),
        ("cut off", |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..40]).unwrap();
        }),
        ("one bit", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[30] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }),
    ]
}

#[test]
fn a_task_that_was_released_is_lost_if_its_record_is_damaged_and_never_one_that_did_not_start() {
    let mut cell = Cell::start();
    for (name, damage) in damages() {
        let (key, _, shepherd) = running(&mut cell, "sleep 1000");
        damage(&cell.dir.join(format!("tasks/{key}/record")));
        kill(shepherd, Signal::SIGKILL).unwrap();
        let result = cell.ended(key);
        assert_eq!(
            (&result.cause, result.executed),
            (&EndCause::ShepherdDied, true),
            "{name}"
        );
    }
}

#[test]
fn a_damaged_record_is_no_start_that_can_be_asked_for_again_from_a_new_launcher() {
    let mut cell = Cell::start();
    for (name, damage) in damages()
        .into_iter()
        .filter(|(name, _)| !["empty", "gone"].contains(name))
    {
        let document = cell.shell("echo ran >> ran; echo up > up; sleep 1000");
        let key = cell.launch(document.clone());
        let shepherd = Pid::from_raw(proc::stat(cell.executed(key)).unwrap().parent);
        cell.read_when_there("up");
        std::fs::remove_file(cell.work.join("up")).unwrap();
        damage(&cell.dir.join(format!("tasks/{key}/record")));
        cell.launcher.kill().unwrap();
        cell.launcher.wait().unwrap();
        kill(shepherd, Signal::SIGKILL).unwrap();
        cell.restart_launcher();
        let result = until("the record", || {
            cell.list().into_iter().find(|task| task.key == key)?.result
        });
        assert_eq!(
            (&result.cause, result.executed),
            (&EndCause::ShepherdDied, true),
            "{name}"
        );
        cell.heard.clear();
        cell.launch(document);
        assert_eq!(cell.ended(key).cause, EndCause::ShepherdDied, "{name}");
    }
    assert_eq!(
        std::fs::read_to_string(cell.work.join("ran")).unwrap(),
        "ran\n".repeat(3)
    );
}

#[test]
fn records_of_the_first_releases_are_read() {
    let mut cell = Cell::start();
    let result = cell.run("exit 6");
    let path = cell.dir.join(format!("tasks/{}/record", result.key));
    let bytes = std::fs::read(&path).unwrap();
    let (mut old, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((prefix, body)) = rest.split_first_chunk::<9>() {
        let length = u32::from_le_bytes(prefix[1..5].try_into().unwrap()) as usize;
        old.push(prefix[0].to_ascii_uppercase());
        old.extend_from_slice(&prefix[1..5]);
        old.extend_from_slice(&body[..length]);
        rest = &body[length..];
    }
    std::fs::write(&path, old).unwrap();
    cell.restart_launcher();
    assert_eq!(cell.list()[0].result.as_ref(), Some(&result));
}

#[test]
fn what_a_dead_shepherd_left_is_ended_also_with_a_session_and_an_environment_of_its_own() {
    let mut cell = Cell::start();
    let daemon = "env -i /usr/bin/setsid --fork /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 1000'; sleep 1000";
    let (key, _, shepherd) = running(&mut cell, daemon);
    let escaped: i32 = cell.read_when_there("daemon").parse().unwrap();
    kill(shepherd, Signal::SIGKILL).unwrap();
    let result = cell.ended(key);
    assert_eq!(
        (&result.cause, result.left_processes),
        (&EndCause::ShepherdDied, Some(0))
    );
    assert!(!is_alive(escaped));
}

#[test]
fn a_task_counts_as_ended_whole_only_if_its_launcher_saw_its_shepherd_die() {
    let mut cell = Cell::start();
    let (key, _, shepherd) = running(&mut cell, "sleep 1000");
    cell.restart_launcher();
    cell.found(key);
    kill(shepherd, Signal::SIGKILL).unwrap();
    let result = cell.ended(key);
    assert_eq!((&result.cause, result.left_processes), (&EndCause::ShepherdDied, None));
}

#[test]
fn processes_of_other_users_live_on_whatever_their_environment_says() {
    if !Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start();
    let (key, _, shepherd) = running(&mut cell, "sleep 1000");
    let marked = || {
        std::process::Command::new("sleep")
            .arg("1000")
            .env("GRIDWRIGHT_TASK_KEY", key.to_string())
            .spawn()
    };
    let mut of_root = marked().unwrap();
    kill(shepherd, Signal::SIGKILL).unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::ShepherdDied);
    assert_eq!(of_root.try_wait().unwrap(), None);
    of_root.kill().unwrap();
    of_root.wait().unwrap();
}

#[test]
fn helpers_of_load_sensors_live_on_when_a_shepherd_dies() {
    if !Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("launcher.conf", "sensor_user nobody")]);
    let path = cell.dir.join("sensor");
    std::fs::write(
        &path,
        "/usr/bin/setsid --fork /bin/sh -c 'echo $$; exec /bin/sleep 1000' >&2; cat",
    )
    .unwrap();
    let (input, _to_sensor) = std::io::pipe().unwrap();
    let (_from_sensor, output) = std::io::pipe().unwrap();
    let (errors, error) = std::io::pipe().unwrap();
    let spec = proto::launch::SensorSpec {
        id: 3,
        path: path.to_string_lossy().into_owned(),
        args: vec![],
        user: "nobody".into(),
        environment: vec!["PATH=/bin:/usr/bin".into()],
    };
    let fds = [input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()];
    cell.send_with(&proto::launch::Request::StartSensor(spec), &fds);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(errors), &mut line).unwrap();
    let helper: i32 = line.trim().parse().unwrap();
    let (key, _, shepherd) = running(&mut cell, "sleep 1000");
    kill(shepherd, Signal::SIGKILL).unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::ShepherdDied);
    assert!(is_alive(helper));
    kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
}

#[test]
fn a_temporary_directory_goes_also_if_the_record_that_names_it_is_lost() {
    let mut cell = Cell::start();
    let mut document = cell.shell("echo x > 7.1.all.q/file; sleep 1000");
    document.tmpdir = tmpdir(&cell.work.to_string_lossy(), "7.1.all.q");
    let made = cell.work.join("7.1.all.q");
    let key = cell.launch(document);
    let shepherd = Pid::from_raw(proc::stat(cell.executed(key)).unwrap().parent);
    until("the job's file", || made.join("file").exists().then_some(()));
    std::fs::remove_file(cell.dir.join(format!("tasks/{key}/record"))).unwrap();
    kill(shepherd, Signal::SIGKILL).unwrap();
    assert_eq!(cell.ended(key).cause, EndCause::ShepherdDied);
    until("the removal", || (!made.exists()).then_some(()));
}
