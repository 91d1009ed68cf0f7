//! `gridwright up` and `gridwright down`: what they start, what they leave alone, what they find
//! again.

use gridwright_tests::cell::{Cell, CellPlan, CommandUser, PATIENCE, is_root, long_or, wait_for, wait_until};
use std::os::unix::fs::MetadataExt;

/// The daemons of a machine with a master.
const DAEMONS: [&str; 3] = ["master", "agent", "launcher"];

/// The effective uid of a process.
fn owner(pid: i32) -> u32 {
    std::fs::metadata(format!("/proc/{pid}")).unwrap().uid()
}

#[test]
fn an_ordinary_user_brings_a_cell_up_and_jobs_run_as_that_user() {
    let cell = Cell::with(CellPlan::default().owned_by_the_user());
    let uid = cell.account().uid;
    assert!(DAEMONS.iter().all(|daemon| owner(cell.pid(daemon)) == uid));
    let record = cell.run_script("#!/bin/sh\nid -u\n", &[]);
    assert_eq!(
        (record.value("exit_status"), cell.output(&record).trim()),
        ("0", uid.to_string().as_str())
    );
}

#[test]
fn root_brings_a_cell_up_and_no_daemon_but_the_launcher_is_root() {
    if !is_root() {
        return;
    }
    let cell = Cell::up();
    let owners = DAEMONS.map(|daemon| owner(cell.pid(daemon)));
    assert!(
        owners[2] == 0 && owners[0] != 0 && owners[1] != 0 && owners[0] != owners[1],
        "{owners:?}"
    );
    let record = cell.run_script("#!/bin/sh\nid -un\n", &[]);
    assert_eq!(cell.output(&record).trim(), cell.account().name);
    let refused = cell.admin(&["qsub", "-b", "y", "true"]);
    assert!(
        refused.code != 0 || cell.admin(&["qstat"]).out.contains("Eqw"),
        "root's own jobs do not run: {refused}"
    );
}

#[test]
fn a_second_up_changes_nothing() {
    let cell = Cell::up();
    let before = DAEMONS.map(|daemon| cell.pid(daemon));
    let said = cell.bring_up(&[]).ok();
    assert!(said.out.contains("cell up in"), "{said}");
    assert_eq!(DAEMONS.map(|daemon| cell.pid(daemon)), before);
}

#[test]
fn running_jobs_go_on_through_down_and_the_next_up_finds_them() {
    let cell = Cell::up();
    cell.write(
        "job.sh",
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n",
        0o755,
    );
    let job = cell.submit(&["job.sh"]);
    let waiting = cell.submit(&["-hold_jid", &job, "-b", "y", "true"]);
    cell.wait_for_state(&job, "r");
    cell.down(&[]).ok();
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
    let refused = cell.user(&["qstat"]);
    refused.refused(&["unable to send message to qmaster", "fix: start it"]);
    cell.write("go", "", 0o644);
    wait_until(
        || "the end of the job without daemons".to_owned(),
        || cell.read(&format!("job.sh.o{job}")) == "done\n",
    );
    cell.bring_up(&[]).ok();
    let record = cell.accounted(&job, 1).remove(0);
    assert_eq!((record.value("failed"), record.value("exit_status")), ("0", "0"));
    cell.accounted(&waiting, 1);
}

#[test]
fn down_with_kill_jobs_leaves_no_job_behind() {
    let cell = Cell::up();
    cell.write("job.sh", "#!/bin/sh\necho $$ >pid\nsleep 600\n", 0o755);
    let job = cell.submit(&["job.sh"]);
    wait_until(|| cell.state_of(&job), || cell.read("pid").ends_with('\n'));
    let pid = cell.read("pid").trim().to_owned();
    cell.down(&["--kill-jobs"]).ok();
    assert!(!std::path::Path::new("/proc").join(pid).exists());
    assert!(cell.shepherds().is_empty());
}

#[test]
fn a_daemon_that_was_killed_comes_back_with_the_next_up() {
    let cell = Cell::up();
    let job = cell.submit(&["-b", "y", "sleep", "3"]);
    cell.wait_for_state(&job, "r");
    for daemon in DAEMONS {
        let before = cell.pid(daemon);
        cell.kill(daemon);
        cell.bring_up(&[]).ok();
        assert!(cell.is_alive(daemon) && cell.pid(daemon) != before, "{daemon}");
    }
    assert_eq!(cell.accounted(&job, 1)[0].value("exit_status"), "0");
}

#[test]
fn commands_beside_a_dead_master_are_not_kept_by_an_agent_that_takes_it_for_alive() {
    let cell = Cell::up();
    cell.kill("master");
    for words in ["qstat", "qsub -b y true"] {
        let said = cell.user(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 1, "{said}");
        said.refused(&[
            "error: unable to send message to qmaster",
            "run/master/master.sock",
            "fix: start it: gridwright up",
        ]);
    }
    assert!(cell.is_alive("agent"));
    cell.bring_up(&[]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

#[test]
fn an_up_in_the_moment_after_a_kill_is_not_deceived_by_the_lock_of_the_dead() {
    let words = ["--slots", "4", "--sim-hosts", "20"].map(str::to_owned).into();
    let cell = Cell::with(CellPlan {
        words,
        ..CellPlan::default()
    });
    for round in 0..long_or(40, 2) {
        for daemon in ["master", "agent", "launcher", "sim"] {
            let before = cell.pid(daemon);
            cell.start_to_kill(daemon);
            cell.bring_up(&["--sim-hosts", "20"]).ok();
            assert!(cell.has_come_back(daemon, before), "{daemon}, round {round}");
        }
    }
    for daemon in DAEMONS {
        cell.start_to_kill(daemon);
    }
    cell.start_to_kill("sim");
    cell.bring_up(&["--sim-hosts", "20"]).ok();
    let record = cell.run_script("#!/bin/sh\ntrue\n", &[]);
    assert_eq!(record.value("exit_status"), "0");
}

#[test]
fn a_down_in_the_moment_after_a_kill_waits_for_the_end() {
    let cell = Cell::up();
    DAEMONS.iter().for_each(|daemon| cell.start_to_kill(daemon));
    cell.down(&[]).ok();
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
}

#[test]
fn two_ups_at_once_bring_one_cell_up() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    std::thread::scope(|scope| {
        let ups = [0, 1].map(|_| scope.spawn(|| cell.bring_up(&[])));
        ups.into_iter().for_each(|up| {
            up.join().unwrap().ok();
        });
    });
    assert!(DAEMONS.iter().all(|daemon| cell.is_alive(daemon)));
}

#[test]
fn a_down_that_was_ended_itself_does_not_end_the_next_up_in_the_foreground() {
    let cell = Cell::up();
    cell.down(&[]).ok();
    std::fs::write(std::path::Path::new(&cell.dir_word()).join("run/launcher/down"), "").unwrap();
    let mut up = cell.bring_up_in_the_foreground(&[]);
    wait_until(|| up.printed(), || up.printed().contains("cell up in"));
    let before = cell.pid("agent");
    cell.start_to_kill("agent");
    wait_until(|| "a new agent".to_owned(), || cell.has_come_back("agent", before));
    cell.down(&[]).ok();
    assert!(
        wait_for(PATIENCE, || up.ended().is_some_and(|status| status.success())),
        "up ends with its cell"
    );
}

#[test]
fn a_daemon_that_was_killed_comes_back_at_once_where_up_is_in_the_foreground() {
    let cell = Cell::prepare(CellPlan::default());
    let mut up = cell.bring_up_in_the_foreground(&["--port", "0"]);
    wait_until(|| up.printed(), || up.printed().contains("cell up in"));
    cell.keep_temporary_directories_apart();
    for daemon in DAEMONS {
        let before = cell.pid(daemon);
        cell.start_to_kill(daemon);
        wait_until(|| format!("a new {daemon}"), || cell.has_come_back(daemon, before));
    }
    let record = cell.run_script("#!/bin/sh\ntrue\n", &[]);
    assert_eq!(record.value("exit_status"), "0");
    cell.down(&[]).ok();
    assert!(
        wait_for(PATIENCE, || up.ended().is_some_and(|status| status.success())),
        "up ends with its cell"
    );
    assert!(DAEMONS.iter().all(|daemon| !cell.is_alive(daemon)));
}

#[test]
fn a_state_directory_whose_path_is_longer_than_a_socket_name_works() {
    let cell = Cell::with(CellPlan {
        name: "long-".repeat(30),
        ..CellPlan::default()
    });
    let record = cell.run_script("#!/bin/sh\necho $SGE_ROOT\n", &[]);
    assert_eq!(cell.output(&record).trim(), cell.dir_word());
    cell.kill("agent");
    cell.bring_up(&[]).ok();
}

#[test]
fn env_puts_the_commands_on_path_and_names_the_tree_that_site_scripts_use() {
    let cell = Cell::up();
    let gridwright = cell.programs().gridwright().display().to_string();
    let script = format!(
        "eval \"$({gridwright} env --dir {})\" && qstat -help | head -1 && \"$SGE_ROOT/util/arch\" && \
         \"$SGE_ROOT/utilbin/$($SGE_ROOT/util/arch)/gethostname\" -name && ls $SGE_ROOT/$SGE_CELL/common",
        cell.dir_word()
    );
    let mut command = cell.command(CommandUser::User, "/bin/sh".as_ref());
    command
        .args(["-c", &script])
        .env_remove("GRIDWRIGHT_DIR")
        .env_remove("SGE_ROOT")
        .env_remove("SGE_CELL");
    let said = gridwright_tests::cell::CommandOutput::run(command).ok();
    for file in ["accounting", "act_qmaster", "bootstrap", "settings.csh", "settings.sh"] {
        assert!(said.out.lines().any(|line| line == file), "{said}");
    }
}

#[test]
fn wrong_words_for_up_and_down_are_refused_and_create_nothing() {
    let cell = Cell::prepare(CellPlan::default());
    let dir = cell.dir_word();
    let cases: [(&[&str], i32, &[&str]); 7] = [
        (&["up", "--dir", &dir, "--slotz", "2"], 2, &["--slotz"]),
        (&["up", "--dir", &dir, "--slots", "many"], 7, &["--slots", "many"]),
        (&["up", "--dir", &dir, "--sim-hosts", "-1"], 7, &["--sim-hosts"]),
        (&["up", "--dir", &dir, "--port", "70000"], 7, &["70000"]),
        (&["up", "--dir"], 2, &["--dir"]),
        (&["down", "--dir", &dir], 1, &["there is no cell", "--dir"]),
        (&["upp", "--dir", &dir], 2, &["did you mean up?"]),
    ];
    for (words, code, said) in cases {
        let answer = cell.admin(words);
        assert_eq!(answer.code, code, "{answer}");
        answer.refused(said);
        assert!(!cell.dir().exists(), "{words:?}");
    }
}
