//! A daemon that is not itself any more: what its uid can make root, or the other daemon, do to
//! files and processes.

use crate::attacker::Attacker;
use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Cell, Process, in_namespaces, long_or, wait_until};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "links-of-the-agent",
        claim: "links that the agent's uid makes lead neither root nor the master to another file",
        needs: &[Requirement::Root],
        run: || links_of("agent"),
    },
    Attack {
        name: "links-of-the-master",
        claim: "links that the master's uid makes lead root to no other file",
        needs: &[Requirement::Root],
        run: || links_of("master"),
    },
    Attack {
        name: "ownership-race-agent",
        claim: "up gives nobody a file that a link of the agent's directory leads to",
        needs: &[Requirement::Root],
        run: || ownership_race("agent"),
    },
    Attack {
        name: "ownership-race-master",
        claim: "up gives nobody a file that a link of the master's directory leads to",
        needs: &[Requirement::Root],
        run: || ownership_race("master"),
    },
    Attack {
        name: "pid-files",
        claim: "down ends no process that a forged pid file names, nor all of them for -1",
        needs: &[Requirement::Root, Requirement::Program("unshare")],
        run: forged_pid_files,
    },
    Attack {
        name: "names-taken",
        claim: "directories in the places of sockets and pid files do not keep a daemon of another uid from starting",
        needs: &[Requirement::Root],
        run: names_taken,
    },
    Attack {
        name: "readable-keys",
        claim: "a key that others can read is mended, or up and doctor say so",
        needs: &[Requirement::Root],
        run: readable_keys,
    },
];

/// The bytes of a file that only root may touch.
const SECRET: &str = "a file of root\n";

/// A file of root that an attack must leave as it is.
struct Victim {
    path: PathBuf,
}

impl Victim {
    fn in_cell(cell: &Cell) -> Self {
        Self {
            path: cell.write_top("victim", SECRET, 0o600),
        }
    }

    fn word(&self) -> String {
        self.path.display().to_string()
    }

    #[track_caller]
    fn is_untouched(&self) {
        let found = std::fs::metadata(&self.path).expect("root's file is still there");
        let text = std::fs::read_to_string(&self.path).expect("root reads it");
        assert_eq!(
            (text.as_str(), found.uid(), found.mode() & 0o7777),
            (SECRET, 0, 0o600),
            "{}",
            self.path.display()
        );
    }
}

/// Names that daemons and commands use below the state directory, whether they are there at the
/// moment or not.
const NAMES: [&str; 18] = [
    "pid",
    "lock",
    "sock",
    "ready",
    "launcher.pid",
    "launcher.lock",
    "launcher.sock",
    "master.pid",
    "master.lock",
    "master.sock",
    "master.ready",
    "agent.pid",
    "agent.lock",
    "agent.sock",
    "sim.pid",
    "sim.lock",
    "down",
    "up",
];

/// The names of all files below a directory.
fn names_below(dir: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        names.insert(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names_below(&entry.path(), names);
        }
    }
}

/// Words: a directory, what links shall lead to, and their names. Makes them in every directory
/// below it, as far as its uid may; the private directories of the two daemons are left out.
pub fn plant(words: &[String]) {
    let [dir, target, names @ ..] = words else {
        panic!("a directory and a target")
    };
    let mut open = vec![PathBuf::from(dir)];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        let is_private = ["agent", "master"]
            .iter()
            .any(|name| folder == Path::new(dir).join(name));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
        for name in names.iter().filter(|_| !is_private) {
            let path = folder.join(name);
            // Most are somebody else's.
            let _ = std::fs::remove_file(&path);
            count += usize::from(symlink(target, &path).is_ok());
        }
    }
    println!("{count} links");
}

/// Takes every link to `target` below a directory away again.
fn weed(dir: &Path, target: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => weed(&path, target),
            Ok(kind) if kind.is_symlink() && std::fs::read_link(&path).is_ok_and(|to| to == target) => {
                std::fs::remove_file(&path).expect("root removes a link");
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// The daemon's uid puts links wherever it can, the cell goes up and down with them, and what they
/// lead to is as it was.
fn links_of(daemon: &str) {
    let cell = Cell::up();
    let attacker = Attacker::in_place_of(cell.pid(daemon));
    let mut names: BTreeSet<String> = NAMES
        .iter()
        .flat_map(|name| [(*name).to_owned(), format!("{name}.new")])
        .collect();
    names_below(&cell.dir().join("run"), &mut names);
    names_below(&cell.dir().join("log"), &mut names);
    let victim = Victim::in_cell(&cell);
    let state = [cell.dir().join("master/state.db"), cell.dir().join("master/ca.key")];
    let key = std::fs::read(&state[1]).expect("root reads the key");
    let mut targets = vec![victim.path.clone()];
    // What the master's uid does to the master's own files is its own matter.
    targets.extend(state.iter().filter(|_| daemon == "agent").cloned());
    for target in targets {
        cell.down(&[]).ok();
        let dir = cell.dir_word();
        let target_word = target.display().to_string();
        let words = [
            &[dir.as_str(), target_word.as_str()][..],
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        ];
        let planted = attacker.play(&cell, "plant", &words.concat()).ok().out;
        // It may refuse to come up, with a reason; what counts is what becomes of the files.
        let up = cell.bring_up(&["--wait", "20"]);
        assert!(up.code == 0 || up.err.contains("fix:"), "{planted}{up}");
        let _ = cell.down(&[]);
        victim.is_untouched();
        assert_eq!(
            std::fs::read(&state[1]).expect("root reads the key"),
            key,
            "the key of the CA, {planted}"
        );
        let database = std::fs::read(&state[0]).expect("root reads the database");
        assert!(
            database.starts_with(b"SQLite format 3\0"),
            "the database begins with {:?}, {planted}",
            &database[..database.len().min(16)]
        );
        weed(cell.dir(), &target);
        cell.bring_up(&[]).ok();
    }
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// How many files are exchanged with links.
const EXCHANGED: usize = 200;

/// Words: a directory, what links shall lead to. Exchanges files of the directory with links until
/// it is ended.
pub fn exchange(words: &[String]) {
    let [dir, target] = words else {
        panic!("a directory and a target")
    };
    let place = |kind: &str, n: usize| Path::new(dir).join(format!("{kind}{n}"));
    for n in 0..EXCHANGED {
        std::fs::write(place("file", n), "").expect("the directory is ours");
        symlink(target, place("link", n)).expect("the directory is ours");
    }
    println!("ready");
    loop {
        for n in 0..EXCHANGED {
            // Whoever gives the files away may have taken one just now.
            let _ = renameat2(
                AT_FDCWD,
                &place("file", n),
                AT_FDCWD,
                &place("link", n),
                RenameFlags::RENAME_EXCHANGE,
            );
        }
    }
}

/// The daemon's uid exchanges its files with links while root brings the cell up again and again.
fn ownership_race(daemon: &str) {
    let cell = Cell::up();
    let attacker = Attacker::in_place_of(cell.pid(daemon));
    let victim = Victim::in_cell(&cell);
    let dir = cell.dir().join(daemon).display().to_string();
    let racer = attacker.start(&cell, "exchange", &[&dir, &victim.word()]);
    wait_until(|| racer.printed(), || racer.printed().contains("ready"));
    for _ in 0..long_or(100, 10) {
        let up = cell.bring_up(&[]);
        assert!(up.code == 0 || up.err.contains("fix:"), "{up}");
        victim.is_untouched();
    }
}

/// A process that nothing of a cell has to do with, under a uid and with this environment alone.
pub fn bystander(cell: &Cell, uid: u32, environment: &[(&str, String)]) -> Process {
    let mut command = Command::new("/bin/sleep");
    command
        .arg("1000")
        .env_clear()
        .envs(environment.iter().cloned())
        .uid(uid)
        .current_dir("/");
    static COUNT: AtomicU32 = AtomicU32::new(0);
    Process::start(
        command,
        &cell
            .top()
            .join(format!("bystander-{}", COUNT.fetch_add(1, Ordering::Relaxed))),
    )
}

/// Every pid file of a cell says -1, then the number of a bystander, and root takes the cell down.
fn forged_pid_files() {
    if !in_namespaces("pid-files", "true") {
        return;
    }
    let cell = Cell::up();
    let mut bystanders = [0, 0].map(|uid| bystander(&cell, uid, &[]));
    for number in [
        "-1".to_owned(),
        "0".to_owned(),
        "1".to_owned(),
        bystanders[0].id().to_string(),
    ] {
        let files = pid_files(&cell.dir().join("run"));
        assert!(files.len() >= 3, "{files:?}");
        for daemon in ["agent", "master"] {
            cell.kill(daemon);
        }
        // As a daemon that was taken over, or a crash, would leave them.
        files
            .iter()
            .for_each(|file| std::fs::write(file, format!("{number}\n")).expect("root writes"));
        let down = cell.down(&[]);
        let alive = bystanders.iter_mut().all(|process| process.ended().is_none());
        assert!(alive, "a bystander was ended for {number}: {down}");
        // What was not ended because its file lied is ended by hand.
        for daemon in ["launcher", "master", "agent"] {
            end_by_command_line(&cell, daemon);
        }
        for daemon in ["launcher", "master", "agent"] {
            wait_until(|| format!("the end of the {daemon}"), || !cell.is_alive(daemon));
        }
        cell.bring_up(&[]).ok();
    }
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

fn pid_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(pid_files(&path));
        } else if path.ends_with("pid") || path.extension().is_some_and(|extension| extension == "pid") {
            found.push(path);
        }
    }
    found
}

/// Ends a daemon of a cell, found by what its command line says.
fn end_by_command_line(cell: &Cell, daemon: &str) {
    let program = match daemon {
        "launcher" => "gridwright-shepherd\0launch",
        "master" => "gridwright-master\0",
        _ => "gridwright-agent\0",
    };
    for entry in std::fs::read_dir("/proc").expect("/proc is there").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid.filter(|_| line.contains(program) && line.contains(&cell.dir_word())) {
            // It may have ended meanwhile.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// The agent's uid makes directories where others want to make their files.
fn names_taken() {
    let cell = Cell::up();
    let Attacker { uid, gid } = Attacker::in_place_of(cell.pid("agent"));
    cell.down(&[]).ok();
    let files = names_of_others(&cell, uid);
    let script = "for f; do rm -f \"$f\" 2>/dev/null; mkdir \"$f\" 2>/dev/null && echo \"$f\"; done; true";
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        &uid.to_string(),
        "--regid",
        &gid.to_string(),
        "--clear-groups",
    ]);
    command.args(["/bin/sh", "-c", script, "sh"]).args(&files);
    let taken = gridwright_tests::cell::CommandOutput::run(command).ok().out;
    let up = cell.bring_up(&[]);
    assert_eq!(up.code, 0, "taken: {taken}; {up}");
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// Where root and the master make their sockets, locks and pid files.
fn names_of_others(cell: &Cell, agent: u32) -> Vec<PathBuf> {
    let mut folders = vec![cell.dir().join("run")];
    let below = std::fs::read_dir(&folders[0])
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    folders.extend(below.filter(|path| path.is_dir()));
    // A directory of the agent's own is its own.
    folders.retain(|folder| std::fs::metadata(folder).is_ok_and(|found| found.uid() != agent));
    let others = NAMES.iter().filter(|name| !name.starts_with("agent"));
    others
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .collect()
}

fn readable_keys() {
    let cell = Cell::up();
    for (name, daemon) in [("agent/host.key", "agent"), ("master/ca.key", "master")] {
        let path = cell.dir().join(name);
        let mode = || std::fs::metadata(&path).expect("the key is there").permissions().mode() & 0o077;
        cell.down(&[]).ok();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("root may");
        let doctor = cell.admin(&["doctor", "--dir", &cell.dir_word()]);
        let up = cell.bring_up(&[]);
        assert!(
            up.code != 0 || mode() == 0,
            "{daemon} runs with a key that everybody reads: {up}"
        );
        let file = name.rsplit('/').next().unwrap_or(name);
        assert!(doctor.out.contains(file), "doctor does not name {file}: {doctor}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("root may");
        cell.bring_up(&[]).ok();
    }
}
