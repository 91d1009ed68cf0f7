//! The logs of the daemons: SIGHUP opens them anew, they have a bound, and what users give them
//! makes no lines of its own.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, is_root, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// The daemons of a machine with a master.
const DAEMONS: [&str; 3] = ["master", "agent", "launcher"];

#[test]
fn sighup_opens_the_logs_anew_and_ends_no_daemon() {
    let cell = Cell::up();
    let before = DAEMONS.map(|daemon| cell.pid(daemon));
    for (daemon, pid) in DAEMONS.into_iter().zip(before) {
        let path = cell.dir().join("log").join(format!("{daemon}.log"));
        let owner = std::fs::metadata(&path).unwrap();
        std::fs::rename(&path, path.with_extension("log.old")).unwrap();
        // Root's directory: the new file is made for the daemon, as logrotate(8) does.
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGHUP).unwrap();
        wait_until(
            || format!("a line in the new log: {}", cell.log(daemon)),
            || cell.log(daemon).contains("SIGHUP"),
        );
        assert!(
            cell.log(daemon).contains("the log was opened anew"),
            "{}",
            cell.log(daemon)
        );
    }
    let record = cell.run_script("#!/bin/sh\necho well\n", &[]);
    assert_eq!(cell.output(&record), "well\n");
    assert_eq!(DAEMONS.map(|daemon| cell.pid(daemon)), before);
    assert!(DAEMONS.iter().all(|daemon| cell.is_alive(daemon)));
}

#[test]
fn the_logs_of_a_cell_are_turned_over_and_keep_two_older_files() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let file = cell.dir().join("etc/master.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\nlog_bytes = 65536\n")).unwrap();
    let log = cell.dir().join("log/master.log");
    for fill in [70_000, 80_000] {
        std::fs::write(&log, vec![b'x'; fill]).unwrap();
        cell.bring_up(&[]).ok();
        wait_until(
            || "a log that was turned over".to_owned(),
            || std::fs::metadata(&log).unwrap().len() < 65_536,
        );
        cell.down(&[]).ok();
    }
    let size = |name: &str| std::fs::metadata(cell.dir().join("log").join(name)).unwrap().len();
    assert!(size("master.log.1") >= 80_000 && size("master.log.2") >= 70_000);
    assert!(
        !is_root() || std::fs::metadata(&log).unwrap().uid() != 0,
        "the daemon's own"
    );
}

#[test]
fn the_log_of_a_launcher_is_turned_over_while_it_runs() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let conf = cell.dir().join("etc/launcher.conf");
    let text = std::fs::read_to_string(&conf).unwrap_or_default();
    std::fs::write(&conf, format!("{text}log_bytes 65536\n")).unwrap();
    cell.bring_up(&[]).ok();
    let log = cell.dir().join("log/launcher.log");
    std::fs::OpenOptions::new()
        .append(true)
        .open(&log)
        .unwrap()
        .write_all(&[b'x'; 70_000])
        .unwrap();
    // A task has the launcher look.
    cell.run_script("#!/bin/sh\ntrue\n", &[]);
    wait_until(
        || "a log that was turned over".to_owned(),
        || std::fs::metadata(&log).unwrap().len() < 65_536,
    );
    assert!(std::fs::metadata(log.with_extension("log.1")).unwrap().len() >= 70_000);
}

#[test]
fn a_mail_address_makes_no_line_of_its_own_in_the_log() {
    let cell = Cell::up();
    let mailer = cell.write_top("mailer", "#!/bin/sh\nexit 1\n", 0o755);
    cell.set_global("mailer", &mailer.display().to_string());
    cell.user(&["qsub", "-m", "b", "-M", "x@y\nforged line", "-b", "y", "true"])
        .ok();
    wait_until(|| cell.log("master"), || cell.log("master").contains("no mail"));
    let log = cell.log("master");
    assert!(
        log.contains("x@y\\nforged line") && !log.lines().any(|line| line.starts_with("forged")),
        "{log}"
    );
}

#[test]
fn a_log_level_that_is_not_understood_is_refused_by_up_and_by_every_daemon() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let dir = cell.dir_word();
    let said = |program: &std::path::Path, words: &[&str]| {
        let mut command = cell.command(CommandUser::Admin, program);
        command
            .args(words)
            .args(["--dir", &dir])
            .env("GRIDWRIGHT_LOG", "nonsense");
        CommandOutput::run(command)
    };
    let gridwright = cell.programs().gridwright();
    let beside = |name: &str| gridwright.with_file_name(name);
    for (program, words) in [
        (gridwright.clone(), &["up", "--detach"][..]),
        (beside("gridwright-master"), &["run"]),
        (beside("gridwright-agent"), &["run"]),
        (beside("gridwright-shepherd"), &["launch"]),
    ] {
        said(&program, words).refused(&["GRIDWRIGHT_LOG=nonsense is not understood", "fix: unset it"]);
    }
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
}

#[test]
fn a_user_who_may_make_no_names_beside_the_logs_cannot_lead_them_elsewhere() {
    let cell = Cell::up();
    let folder = std::fs::metadata(cell.dir().join("log")).unwrap();
    assert_eq!(
        folder.permissions().mode() & 0o022,
        0,
        "only its owner makes names in log/"
    );
    if !is_root() {
        return;
    }
    assert_eq!(folder.uid(), 0);
    cell.down(&[]).ok();
    let (log, victim) = (
        cell.dir().join("log/agent.log"),
        cell.write_top("victim", "kept\n", 0o600),
    );
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&victim, &log).unwrap();
    cell.bring_up(&["--wait", "5"])
        .refused(&["cannot open the log", "agent.log"]);
    let about = std::fs::metadata(&victim).unwrap();
    assert_eq!(
        (std::fs::read_to_string(&victim).unwrap().as_str(), about.uid()),
        ("kept\n", 0)
    );
}
