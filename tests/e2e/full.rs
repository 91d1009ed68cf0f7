//! A master whose disk is full: it answers, refuses changes by name but for those that end
//! something, records how tasks end, and goes on by itself.

use gridwright_tests::cell::{
    Cell, CommandOutput, CommandUser, PATIENCE, Quota, available, in_namespaces, is_root, records, wait_until,
};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The file that takes all room.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [65_536, 4_096, 1] {
        let block = vec![0; size];
        while file.write_all(&block).is_ok() {}
    }
}

/// Puts the master's directory onto a small file system of this mount namespace.
fn shrink(cell: &Cell) {
    let script = "rm -f \"$1/reserve\" && cp -a \"$1\" \"$1.copy\" && mount -t tmpfs -o size=12m small \"$1\" && cp -a \"$1.copy\"/. \"$1\" \
                  && chown --reference=\"$1.copy\" \"$1\" && chmod 700 \"$1\" && rm -r \"$1.copy\"";
    let master = cell.dir().join("master");
    let done = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&master)
        .status()
        .unwrap();
    assert!(done.success());
}

/// A cell whose master has 12 MiB, of which it keeps `reserve_bytes`.
fn on_a_small_disk(reserve_bytes: u64) -> Cell {
    let cell = Cell::up();
    cell.down(&[]).ok();
    let file = cell.dir().join("etc/master.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\ndisk_reserve_bytes = {reserve_bytes}\n")).unwrap();
    shrink(&cell);
    cell.bring_up(&[]).ok();
    cell
}

#[test]
fn a_master_on_a_full_disk_answers_records_ends_refuses_changes_and_goes_on() {
    if !available("root, who can mount", is_root()) {
        return;
    }
    if !in_namespaces(
        "full::a_master_on_a_full_disk_answers_records_ends_refuses_changes_and_goes_on",
        "true",
    ) {
        return;
    }
    let cell = on_a_small_disk(2 << 20);
    let (pid, reserve) = (cell.pid("master"), cell.dir().join("master/reserve"));
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 2 << 20);
    cell.write("job.sh", "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\n", 0o755);
    let job = cell.submit(&["-t", "1-8", "job.sh"]);
    let running = || {
        cell.user(&["qstat", "-s", "r"])
            .out
            .lines()
            .filter(|line| line.contains(" r "))
            .count()
    };
    wait_until(|| cell.state_of(&job), || running() == 4);
    let unwanted = cell.submit(&["-h", "-b", "y", "true"]);

    let filling = cell.dir().join("master/filling");
    fill(&filling);
    // The file system is looked at five times a second.
    wait_until(
        || cell.log("master"),
        || {
            cell.user(&["qsub", "-h", "-N", "held", "-b", "y", "true"]).code != 0
                && cell.log("master").contains("disk is full")
        },
    );
    for words in [&["qsub", "-b", "y", "true"][..], &["qhold", &job]] {
        cell.user(words)
            .refused(&["the master's disk is full", "fix: make room", "disk_reserve_bytes"]);
    }
    cell.user(&["qdel", &unwanted]).ok();
    assert_ne!(cell.user(&["qstat", "-j", &unwanted]).code, 0, "it is gone");
    assert_eq!(running(), 4, "questions are answered");
    cell.user(&["qhost"]).ok();
    cell.admin(&["doctor"]).refused(&["the master refuses changes"]);

    cell.write("go", "", 0o644);
    let ended = || records(&cell.user(&["qacct", "-j", &job]).out).len();
    wait_until(|| format!("four ends: {}", cell.state_of(&job)), || ended() == 4);
    wait_until(|| cell.state_of(&job), || running() == 0);
    assert_eq!(ended(), 4, "nothing is started");

    std::fs::remove_file(&filling).unwrap();
    cell.accounted(&job, 8);
    let next = cell.submit(&["-b", "y", "true"]);
    cell.accounted(&next, 1);
    assert_eq!(
        (cell.pid("master"), std::fs::metadata(&reserve).unwrap().len()),
        (pid, 2 << 20)
    );
    let accounting = || std::fs::read_to_string(cell.dir().join("default/common/accounting")).unwrap();
    let lines = || accounting().lines().count();
    wait_until(|| format!("nine lines, {} are there", lines()), || lines() == 9);
}

#[test]
fn what_has_no_room_waits_for_it_without_a_reserve_too_and_nothing_is_lost() {
    if !available("root, who can mount", is_root()) {
        return;
    }
    if !in_namespaces(
        "full::what_has_no_room_waits_for_it_without_a_reserve_too_and_nothing_is_lost",
        "true",
    ) {
        return;
    }
    let cell = on_a_small_disk(0);
    let pid = cell.pid("master");
    let filling = cell.dir().join("master/filling");
    // It cannot be compressed, and no free page of the database holds it.
    let mut script = b"#!/bin/sh\ntrue\nexit\n".to_vec();
    script.extend((0..3_u32 << 20).map(|n| b'0' + (n.wrapping_mul(2_654_435_761) >> 26) as u8));
    let path = cell.work().join("long.sh");
    std::fs::write(&path, script).unwrap();
    fill(&filling);
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command
        .args(["qsub", "-terse", "-cwd", "-j", "y"])
        .arg(&path)
        .stdout(Stdio::piped());
    let waiting = command.spawn().unwrap();
    wait_until(
        || cell.log("master"),
        || cell.log("master").contains("waiting for room"),
    );
    cell.user(&["qsub", "-b", "y", "true"])
        .refused(&["the master's disk is full", "fix: make room"]);
    cell.user(&["qstat", "-f"]).ok();
    std::fs::remove_file(&filling).unwrap();
    let said = waiting.wait_with_output().unwrap();
    assert!(said.status.success());
    let job = String::from_utf8(said.stdout).unwrap().trim().to_owned();
    cell.accounted(&job, 1);
    assert_eq!(cell.pid("master"), pid);
}

#[test]
fn a_master_whose_quota_is_used_up_refuses_changes_and_goes_on_when_there_is_room_again() {
    if !available("a C compiler", Quota::can_be_made()) {
        return;
    }
    let cell = Cell::up();
    cell.down(&[]).ok();
    let quota = Quota::new(cell.top());
    let mut up = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    up.args([
        "up",
        "--detach",
        "--wait",
        &PATIENCE.as_secs().to_string(),
        "--dir",
        &cell.dir_word(),
    ]);
    quota.limit(&mut up);
    CommandOutput::run(up).ok();
    let pid = cell.pid("master");
    let running = cell.submit(&["-b", "y", "sleep", "1000"]);
    cell.wait_for_state(&running, "r");
    quota.set_used_up(true);
    // What the master has taken when it meets the quota waits for room.
    let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command
        .args(["qsub", "-terse", "-b", "y", "-o", "/dev/null", "-j", "y", "true"])
        .stdout(Stdio::piped());
    let waiting = command.spawn().unwrap();
    wait_until(
        || cell.log("master"),
        || cell.log("master").contains("waiting for room"),
    );
    cell.user(&["qsub", "-b", "y", "true"])
        .refused(&["the master's disk is full", "a quota keeps the master"]);
    let listing = cell.user(&["qstat"]).ok().out;
    assert!(listing.contains(&running), "{listing}");
    cell.admin(&["doctor", "--dir", &cell.dir_word()])
        .refused(&["cannot make", "quotas of the account"]);
    quota.set_used_up(false);
    let said = waiting.wait_with_output().unwrap();
    assert!(said.status.success());
    cell.accounted(String::from_utf8(said.stdout).unwrap().trim(), 1);
    wait_until(|| cell.log("master"), || cell.log("master").contains("has room again"));
    cell.user(&["qdel", &running]).ok();
    cell.accounted(&running, 1);
    assert_eq!(cell.pid("master"), pid);
    assert!(cell.dir().join("master/reserve").exists());
}
