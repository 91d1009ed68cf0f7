//! Hosts that are ill, cloned or copied: they harm no job and no other host.

use crate::attacker::Attacker;
use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{
    Cell, CellPlan, CommandOutput, CommandUser, Network, PATIENCE, in_namespaces, wait_for, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "full-tasks",
        claim: "a host without room for tasks puts no job into error, says so, and takes jobs again by itself",
        needs: &[Requirement::Root, Requirement::Program("unshare")],
        run: full_tasks,
    },
    Attack {
        name: "full-disk",
        claim: "a master without room answers, refuses changes by name, loses nothing and goes on",
        needs: &[Requirement::Root, Requirement::Program("unshare")],
        run: full_disk,
    },
    Attack {
        name: "absent-launcher",
        claim: "a host without a launcher shows it, keeps no job for itself, and lets go of what is deleted",
        needs: &[],
        run: absent_launcher,
    },
    Attack {
        name: "garbage-record",
        claim: "a job whose record is damaged and whose shepherd is dead is lost, never started again",
        needs: &[],
        run: garbage_record,
    },
    Attack {
        name: "dead-shepherd",
        claim: "what a dead shepherd left is ended, also without a mark in its environment",
        needs: &[],
        run: dead_shepherd,
    },
    Attack {
        name: "twin-host",
        claim: "a cloned host is refused, and the tasks of its original run on",
        needs: &[Requirement::Root, Requirement::Program("ip")],
        run: twin_host,
    },
    Attack {
        name: "copied-cell",
        claim: "a copy of a cell that comes up leaves the original's jobs alone, and env names the copy",
        needs: &[],
        run: copied_cell,
    },
    Attack {
        name: "lost-locks",
        claim: "without its lock files a cell gets no second master, and down leaves none behind",
        needs: &[],
        run: lost_locks,
    },
    Attack {
        name: "nice-daemons",
        claim: "daemons of an ordinary user under nice run jobs",
        needs: &[],
        run: nice_daemons,
    },
];

fn sh(script: &str, words: &[&Path]) {
    let mut command = Command::new("/bin/sh");
    CommandOutput::run({
        command.args(["-ec", script, "sh"]).args(words);
        command
    })
    .ok();
}

/// A small file system of its own at a directory, with the directory's owner and rights.
fn mount_small(at: &Path, size: &str) {
    let found = std::fs::metadata(at).expect("the directory is there");
    let options = format!(
        "size={size},mode={:o},uid={},gid={}",
        found.mode() & 0o7777,
        found.uid(),
        found.gid()
    );
    CommandOutput::run({
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "small"]).arg(at);
        command
    })
    .ok();
}

/// Fills the file system below a directory; the file that has to go to make room.
fn fill(dir: &Path) -> PathBuf {
    let file = dir.join("filler");
    sh("cat /dev/zero >\"$1\" 2>/dev/null || true", &[&file]);
    file
}

/// The states of the instances of `all.q`, as `qstat -f` shows them.
fn states(cell: &Cell) -> String {
    let shown = cell.admin(&["qstat", "-f", "-q", "all.q"]).out;
    let instance = shown
        .lines()
        .find(|line| line.starts_with("all.q@"))
        .unwrap_or_default();
    instance.split_whitespace().nth(5).unwrap_or_default().to_owned()
}

fn full_tasks() {
    if !in_namespaces("full-tasks", "true") {
        return;
    }
    let cell = Cell::up();
    cell.down(&[]).ok();
    mount_small(&cell.dir().join("tasks"), "4m");
    cell.bring_up(&[]).ok();
    let filler = fill(&cell.dir().join("tasks"));
    cell.write("job.sh", "#!/bin/sh\necho start >>starts\n", 0o755);
    let job = cell.submit(&["-o", "/dev/null", "-t", "1-20", "job.sh"]);
    let listed = || cell.user(&["qstat", "-u", "*"]).out;
    wait_until(
        || format!("a state of the instance; {}", cell.state_of(&job)),
        || !states(&cell).is_empty(),
    );
    assert!(!listed().contains("Eqw"), "{}", cell.state_of(&job));
    let why = cell.admin(&["qstat", "-f", "-explain", "E"]).out;
    assert!(
        why.to_lowercase().contains("space") || why.to_lowercase().contains("disk"),
        "{why}"
    );
    std::fs::remove_file(filler).expect("root may");
    let records = cell.accounted(&job, 20);
    assert!(
        records.iter().all(|record| record.value("failed") == "0"),
        "{records:?}"
    );
    assert_eq!(cell.read("starts").lines().count(), 20);
    wait_until(|| states(&cell), || states(&cell).is_empty());
}

fn full_disk() {
    if !in_namespaces("full-disk", "true") {
        return;
    }
    let cell = Cell::prepare(CellPlan::default());
    mount_small(&cell.top().join("state"), "96m");
    cell.bring_up(&["--slots", "4"]).ok();
    cell.keep_temporary_directories_apart();
    let before = cell.submit(&["-h", "-b", "y", "true"]);
    let master = cell.pid("master");
    let filler = fill(&cell.top().join("state"));
    // What a reserve holds is used up sooner or later.
    let mut accepted = vec![before];
    let is_refused = wait_for(PATIENCE, || {
        let padding = format!("PADDING={}", "x".repeat(60_000));
        let said = cell.user(&["qsub", "-terse", "-h", "-v", &padding, "-b", "y", "true"]);
        accepted.extend((said.code == 0).then(|| said.out.trim().to_owned()));
        let names_it = said.err.contains("disk") || said.err.contains("space") || said.err.contains("room");
        assert!(said.code == 0 || names_it, "a refusal names the disk: {said}");
        said.code != 0
    });
    assert!(
        is_refused,
        "{} jobs were taken by a master whose disk is full",
        accepted.len()
    );
    cell.user(&["qstat"]).ok();
    cell.user(&["qhost"]).ok();
    assert_eq!(cell.pid("master"), master, "{}", cell.log("master"));
    std::fs::remove_file(filler).expect("root may");
    wait_until(
        || format!("a change is taken again; {}", cell.log("master")),
        || {
            let said = cell.user(&["qsub", "-terse", "-h", "-b", "y", "true"]);
            accepted.extend((said.code == 0).then(|| said.out.trim().to_owned()));
            said.code == 0
        },
    );
    assert!(cell.is_alive("master"));
    cell.kill("master");
    cell.bring_up(&[]).ok();
    let listed = cell.user(&["qstat"]).ok().out;
    let numbers: Vec<&str> = listed
        .lines()
        .skip(2)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        numbers.len(),
        accepted.len(),
        "accepted {accepted:?}, listed {numbers:?}"
    );
    cell.user(&[&["qrls"], &accepted.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat())
        .ok();
    let last = accepted.last().expect("there is one");
    assert_eq!(cell.accounted(last, 1)[0].value("failed"), "0");
}

fn absent_launcher() {
    let cell = Cell::up();
    cell.write("job.sh", "#!/bin/sh\necho start >>starts\n", 0o755);
    cell.kill("launcher");
    let jobs: Vec<String> = (0..8).map(|_| cell.submit(&["-o", "/dev/null", "job.sh"])).collect();
    wait_until(
        || format!("a state of the instance; {}", cell.state_of(&jobs[0])),
        || !states(&cell).is_empty(),
    );
    let in_transfer = || {
        cell.user(&["qstat"])
            .out
            .lines()
            .filter(|line| line.contains(" t "))
            .count()
    };
    wait_until(|| cell.state_of(&jobs[0]), || in_transfer() == 0);
    cell.user(&["qdel", &jobs[7]]).ok();
    let is_gone = || cell.user(&["qstat", "-j", &jobs[7]]).code != 0;
    wait_until(|| cell.state_of(&jobs[7]), is_gone);
    cell.bring_up(&[]).ok();
    for job in &jobs[..7] {
        assert_eq!(cell.accounted(job, 1)[0].value("failed"), "0");
    }
    assert_eq!(cell.read("starts").lines().count(), 7);
    wait_until(|| states(&cell), || states(&cell).is_empty());
}

/// The directory of the only task of a cell.
fn task_dir(cell: &Cell) -> PathBuf {
    let entries = std::fs::read_dir(cell.dir().join("tasks"))
        .expect("the directory is there")
        .flatten();
    let mut dirs = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("record").exists());
    dirs.next().expect("a task has a directory")
}

/// What becomes of the bytes of a record.
type Garbage = fn(&[u8]) -> Vec<u8>;

fn garbage_record() {
    // What a record may look like after a bad day: nothing of it, other bytes in front, other bytes
    // throughout.
    let garbage: [Garbage; 3] = [
        |_| Vec::new(),
        |whole| [&[0x5a; 300][..], whole].concat(),
        |whole| {
            whole
                .iter()
                .enumerate()
                .map(|(n, byte)| byte ^ u8::try_from(n * 31 % 251).expect("a byte"))
                .collect()
        },
    ];
    for damage in garbage {
        let cell = Cell::up();
        cell.write("job.sh", "#!/bin/sh\necho start >>starts\nsleep 1000\n", 0o755);
        let job = cell.submit(&["-r", "n", "job.sh"]);
        cell.wait_for_state(&job, "r");
        wait_until(|| cell.state_of(&job), || cell.read("starts") == "start\n");
        let record = task_dir(&cell).join("record");
        let whole = std::fs::read(&record).expect("the record is there");
        std::fs::write(&record, damage(&whole)).expect("it is ours, or we are root");
        cell.shepherds()
            .iter()
            .for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).expect("it is ours"));
        let ended = cell.accounted(&job, 1).remove(0);
        assert!(
            ended.number("failed") != 1,
            "it was started, so it did not fail before that: {ended:?}"
        );
        wait_until(|| cell.state_of(&job), || cell.user(&["qstat", "-j", &job]).code != 0);
        assert_eq!(cell.read("starts"), "start\n");
    }
}

fn dead_shepherd() {
    let cell = Cell::up();
    let orphan = "sh -c 'echo $$ >orphan; exec env -i setsid sleep 1000' </dev/null >/dev/null 2>&1 &";
    cell.write("job.sh", &format!("#!/bin/sh\n({orphan})\nsleep 1000\n"), 0o755);
    let job = cell.submit(&["job.sh"]);
    wait_until(|| cell.state_of(&job), || cell.read("orphan").ends_with('\n'));
    let orphan = Path::new("/proc").join(cell.read("orphan").trim());
    cell.shepherds()
        .iter()
        .for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).expect("it is ours"));
    let ended = cell.accounted(&job, 1).remove(0);
    assert!(ended.number("failed") != 0, "{ended:?}");
    let is_gone = || std::fs::read_to_string(orphan.join("stat")).map_or(true, |stat| stat.contains(") Z"));
    wait_until(|| format!("the end of {}", orphan.display()), is_gone);
}

fn copy(from: &Path, to: &Path) {
    sh("mkdir -p \"$2\" && cp -a \"$1\"/. \"$2\"/", &[from, to]);
}

fn twin_host() {
    let network = Arc::new(Network::with_hosts(&["h1", "h2", "h3"]));
    let master = Cell::on(&network, "h1");
    master.bring_up(&["--slots", "2", "--port", "6444"]).ok();
    master.keep_temporary_directories_apart();
    let [original, twin] = ["h2", "h3"].map(|host| Cell::on(&network, host));
    let token = master.admin(&["token"]).ok().out;
    original
        .admin(&["join", "h1:6444", token.trim(), "--dir", &original.dir_word()])
        .ok();
    master.write(
        "job.sh",
        "#!/bin/sh\necho start >>starts\nwhile [ ! -e go ]; do sleep 0.1; done\n",
        0o755,
    );
    let job = master.submit(&["-q", "all.q@h2", "-r", "n", "job.sh"]);
    wait_until(|| master.state_of(&job), || master.read("starts") == "start\n");
    // An image of the host from the time before it had tasks; the original is cut off meanwhile.
    copy(original.dir(), twin.dir());
    sh("rm -rf \"$1\"/tasks/* \"$1\"/run/*.pid", &[twin.dir()]);
    original.kill("agent");
    let up = twin.bring_up(&["--wait", "10"]);
    let is_lost = || {
        !master
            .user(&["qstat", "-u", "*"])
            .out
            .lines()
            .any(|line| line.contains(" r "))
    };
    assert!(
        !wait_for(Duration::from_secs(5), is_lost),
        "the twin took the task along: {up}; {}",
        master.state_of(&job)
    );
    let _ = twin.down(&[]);
    original.bring_up(&[]).ok();
    master.write("go", "", 0o644);
    let record = master.accounted(&job, 1).remove(0);
    assert_eq!(
        (record.value("failed"), record.value("exit_status")),
        ("0", "0"),
        "{record:?}"
    );
    assert_eq!(master.read("starts"), "start\n");
}

fn copied_cell() {
    let cell = Cell::up();
    cell.write("job.sh", "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\n", 0o755);
    let job = cell.submit(&["job.sh"]);
    cell.wait_for_state(&job, "r");
    let copied = cell.top().join("state/copy");
    copy(cell.dir(), &copied);
    let copied_word = copied.display().to_string();
    // It may be refused; what counts is what becomes of the job.
    let up = cell.admin(&["up", "--dir", &copied_word, "--detach", "--wait", "10"]);
    let is_gone = || {
        !cell
            .user(&["qstat", "-u", "*"])
            .out
            .lines()
            .any(|line| line.contains(" r "))
    };
    assert!(
        !wait_for(Duration::from_secs(5), is_gone),
        "the copy ended the job: {up}; {}",
        cell.state_of(&job)
    );
    let env = cell.admin(&["env", "--dir", &copied_word]);
    let names_original = env
        .out
        .lines()
        .any(|line| line.contains(&format!("'{}'", cell.dir_word())));
    assert!(!names_original, "env of the copy leads to the original: {env}");
    let _ = cell.admin(&["down", "--dir", &copied_word]);
    cell.write("go", "", 0o644);
    let record = cell.accounted(&job, 1).remove(0);
    assert_eq!(
        (record.value("failed"), record.value("exit_status")),
        ("0", "0"),
        "{record:?}"
    );
}

/// Processes of a cell's master.
fn masters(cell: &Cell) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let of = |entry: &std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let is_master = |line: &[u8]| {
        let line = String::from_utf8_lossy(line).into_owned();
        let mut words = line.split('\0');
        words
            .next()
            .is_some_and(|program| program.ends_with("gridwright-master"))
            && line.contains(&cell.dir_word())
    };
    entries.filter(|entry| is_master(&of(entry))).count()
}

fn lost_locks() {
    let cell = Cell::up();
    let before = cell.pid("master");
    sh("find \"$1\" -name '*lock' -delete", &[&cell.dir().join("run")]);
    // It may refuse, or find the daemons in another way.
    let up = cell.bring_up(&["--wait", "20"]);
    wait_until(|| format!("{} masters; {up}", masters(&cell)), || masters(&cell) == 1);
    assert!(
        Path::new("/proc").join(before.to_string()).exists(),
        "the master was ended by a second one: {up}"
    );
    let down = cell.down(&[]);
    assert!(
        down.code != 0 || masters(&cell) == 0,
        "down leaves a master behind: {down}"
    );
    if masters(&cell) > 0 {
        kill(Pid::from_raw(before), Signal::SIGTERM).expect("it is ours");
    }
    wait_until(|| "the end of the master".to_owned(), || masters(&cell) == 0);
    cell.bring_up(&[]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

fn nice_daemons() {
    let cell = Cell::prepare(CellPlan::default().owned_by_the_user());
    let mut command = cell.command(CommandUser::Admin, Path::new("/usr/bin/nice"));
    command.args(["-n", "10"]).arg(cell.programs().gridwright());
    command.args(["up", "--dir", &cell.dir_word(), "--detach", "--port", "0"]);
    CommandOutput::run(command).ok();
    cell.keep_temporary_directories_apart();
    let record = cell.run_script("#!/bin/sh\necho it runs\n", &[]);
    assert_eq!(
        (record.value("failed"), record.value("exit_status")),
        ("0", "0"),
        "{record:?}"
    );
    assert_eq!(cell.output(&record), "it runs\n");
    assert_eq!(Attacker::in_place_of(cell.pid("agent")).uid, cell.account().uid);
}
