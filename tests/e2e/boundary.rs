//! Between the accounts of the daemons and root: links, files and numbers that code under the
//! agent's or the master's uid puts in root's way change, read or kill nothing of anybody else's.

use gridwright_tests::cell::{Account, Cell, CellPlan, CommandOutput, available, is_root, wait_until};
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

/// Names that some daemon or command makes or opens somewhere, with their drafts.
const NAMES: [&str; 30] = [
    "accounting",
    "accounting.jsonl",
    "lock",
    "pid",
    "ready",
    "down",
    ".lock.new",
    ".pid.new",
    ".ready.new",
    ".down.new",
    "master.sock",
    "agent.sock",
    "launcher.sock",
    "host.crt",
    "host.key",
    "host.new",
    "ca.crt",
    "ca.key",
    "ca.new",
    "epoch",
    "epoch.new",
    "slaves",
    "aborts",
    "aborts.new",
    "tickets.key",
    "tickets.new",
    "state.db-journal",
    "launcher",
    "master",
    "agent",
];

/// An account that a daemon runs under.
#[derive(Clone, Copy)]
struct Attacker {
    uid: u32,
    gid: u32,
}

impl Attacker {
    /// The account of a daemon of the cell.
    fn of_daemon(cell: &Cell, daemon: &str) -> Self {
        let found = std::fs::metadata(cell.dir().join("run").join(daemon)).unwrap();
        assert_ne!(found.uid(), 0, "{daemon} has an account of its own");
        Self {
            uid: found.uid(),
            gid: found.gid(),
        }
    }

    /// Works with the file rights of the account, which the kernel keeps for each thread.
    fn act<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            setfsgid(Gid::from_raw(self.gid));
            setfsuid(Uid::from_raw(self.uid));
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join().unwrap())
    }

    /// Puts links to `victim` in place of every name that the account can make or move below `dir`.
    /// Answers what is to be put back.
    fn plant(self, dir: &Path, victim: &Path) -> Vec<PathBuf> {
        let mut planted = Vec::new();
        for folder in folders(dir) {
            // One that was moved away with its own folder is not there any more.
            let Ok(entries) = std::fs::read_dir(&folder) else {
                continue;
            };
            let present = entries.map(|entry| entry.unwrap().path());
            // Each name once: a second time, the link would be moved over what was moved away.
            let names: BTreeSet<PathBuf> = present.chain(NAMES.iter().map(|name| folder.join(name))).collect();
            self.act(|| {
                for path in names {
                    let _ = std::fs::rename(&path, away(&path));
                    if symlink(victim, &path).is_ok() {
                        planted.push(path);
                    }
                }
            });
        }
        planted
    }
}

fn away(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.away", path.display()))
}

/// Every directory of the cell, the cell's own first.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(folders(&entry.path()));
        }
    }
    found
}

fn put_back(planted: Vec<PathBuf>) {
    for path in planted {
        if path.is_symlink() {
            std::fs::remove_file(&path).unwrap();
        }
        let _ = std::fs::rename(away(&path), &path);
    }
}

/// A file that must stay as it is.
struct Victim {
    path: PathBuf,
    before: (Vec<u8>, u32, u32, u32),
}

impl Victim {
    /// A file of the cell.
    fn at(path: PathBuf) -> Self {
        Self {
            before: Self::look(&path),
            path,
        }
    }

    /// A new file of root's beside the cell.
    fn new(cell: &Cell, name: &str, mode: u32) -> Self {
        let path = cell.work().parent().unwrap().join(name);
        std::fs::write(&path, "secret\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        Self::at(path)
    }

    fn look(path: &Path) -> (Vec<u8>, u32, u32, u32) {
        let found = std::fs::metadata(path).unwrap();
        (std::fs::read(path).unwrap(), found.uid(), found.gid(), found.mode())
    }

    #[track_caller]
    fn is_unharmed(&self) {
        let now = Self::look(&self.path);
        assert!(
            now == self.before,
            "{}: {now:?}, it was {:?}",
            self.path.display(),
            self.before
        );
    }
}

/// Root's commands about a cell, one after the other. Whether they succeed is not asked: a daemon
/// may be unable to start.
fn administer(cell: &Cell) {
    let dir = cell.dir_word();
    for words in [
        ["up", "--detach", "--wait", "1"].as_slice(),
        &["doctor"],
        &["down"],
        &["up", "--detach", "--wait", "1"],
        &["down"],
    ] {
        cell.admin(&[words, &["--dir", &dir]].concat());
    }
}

fn can_attack() -> bool {
    available("root", is_root())
}

#[test]
fn links_that_a_daemon_puts_in_place_of_its_names_harm_no_file_of_others() {
    if !can_attack() {
        return;
    }
    let cell = Cell::up();
    cell.down(&[]).ok();
    for (daemon, others, folders) in [
        ("agent", ["master/ca.key", "etc/accounts.toml"], ["agent"].as_slice()),
        (
            "master",
            ["agent/host.key", "etc/launcher.conf"],
            ["master", "accounting"].as_slice(),
        ),
    ] {
        let attacker = Attacker::of_daemon(&cell, daemon);
        let mut victims: Vec<Victim> = others.map(|name| Victim::at(cell.dir().join(name))).into();
        victims.extend([Victim::new(&cell, "closed", 0o600), Victim::new(&cell, "open", 0o644)]);
        for victim in &victims {
            let planted = attacker.plant(cell.dir(), &victim.path);
            assert!(planted.len() > NAMES.len(), "{daemon} has names to plant");
            let run = cell.dir().join("run").join(daemon);
            let is_own = |path: &PathBuf| {
                path.starts_with(&run) || folders.iter().any(|folder| path.starts_with(cell.dir().join(folder)))
            };
            assert!(
                planted.iter().all(is_own),
                "{daemon} can make names elsewhere: {planted:?}"
            );
            administer(&cell);
            put_back(planted);
            victims.iter().for_each(Victim::is_unharmed);
        }
    }
    cell.bring_up(&[]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

#[test]
fn a_file_that_becomes_a_link_while_root_looks_at_it_harms_no_file_of_others() {
    if !can_attack() {
        return;
    }
    let cell = Cell::up();
    cell.down(&[]).ok();
    let (closed, open) = (Victim::new(&cell, "closed", 0o600), Victim::new(&cell, "open", 0o644));
    let (attacker, agent) = (Attacker::of_daemon(&cell, "agent"), cell.dir().join("agent"));
    // A private key that is open to all invites root to close it.
    std::fs::set_permissions(agent.join("host.key"), Permissions::from_mode(0o644)).unwrap();
    let pairs: Vec<(PathBuf, PathBuf)> = (0..200)
        .map(|n| (agent.join(format!("f{n}")), agent.join(format!("l{n}"))))
        .collect();
    attacker.act(|| {
        for (file, link) in &pairs {
            std::fs::write(file, "mine").unwrap();
            symlink(&closed.path, link).unwrap();
        }
        symlink(&open.path, agent.join("key-link")).unwrap();
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            attacker.act(|| {
                while !stop.load(Ordering::Relaxed) {
                    for (file, link) in &pairs {
                        let _ = renameat2(AT_FDCWD, file, AT_FDCWD, link, RenameFlags::RENAME_EXCHANGE);
                    }
                    let (key, link) = (agent.join("host.key"), agent.join("key-link"));
                    let _ = renameat2(AT_FDCWD, &key, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE);
                }
            });
        });
        for _ in 0..3 {
            administer(&cell);
        }
        stop.store(true, Ordering::Relaxed);
    });
    [closed, open].iter().for_each(Victim::is_unharmed);
}

/// A process of root's that must live.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        Self(Command::new("sleep").arg("100000").spawn().unwrap())
    }

    /// Its pid and its start, as a daemon would write its own.
    fn identity(&self) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let start = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .nth(19)
            .unwrap()
            .to_owned();
        format!("{} {start}", self.0.id())
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_that_names_another_process_ends_none_and_down_does_not_say_that_the_cell_is_down() {
    if !can_attack() {
        return;
    }
    let cell = Cell::up();
    let mut bystander = Bystander::new();
    let lock = cell.dir().join("run/agent/lock");
    cell.kill("agent");
    let attacker = Attacker::of_daemon(&cell, "agent");
    let held = attacker.act(|| {
        let file = OpenOptions::new().write(true).open(&lock).unwrap();
        Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap()
    });
    let inode = std::fs::metadata(&lock).unwrap().ino();
    for text in ["-1 1".to_owned(), bystander.identity()] {
        std::fs::write(&lock, format!("{text} {inode}\n")).unwrap();
        cell.down(&[])
            .refused(&["nothing is ended", "the agent does not end", "fix:"]);
        assert!(
            bystander.lives() && cell.is_alive("launcher") && cell.is_alive("master"),
            "{text}"
        );
    }
    drop(held);
    cell.down(&[]).ok();
    assert!(bystander.lives());
}

#[test]
fn users_can_reach_the_daemons_and_cannot_touch_their_locks() {
    if !can_attack() {
        return;
    }
    let cell = Cell::up();
    let account = Account::shared();
    let user = Attacker {
        uid: account.uid,
        gid: account.gid,
    };
    for daemon in ["master", "agent", "launcher"] {
        let lock = cell.dir().join("run").join(daemon).join("lock");
        assert!(user.act(|| File::open(&lock)).is_err(), "{daemon}");
    }
    let socket = cell.dir().join("run/launcher/launcher.sock");
    let refused = user.act(|| std::os::unix::net::UnixStream::connect(&socket));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    cell.user(&["qstat"]).ok();
    let dir = cell.dir_word();
    cell.user(&["down", "--dir", &dir])
        .refused(&["belongs to another user", "root", "fix:"]);
    // A doctor of users' cannot open the locks and sees the daemons all the same.
    let said = cell.user(&["doctor", "--dir", &dir]);
    for daemon in ["master", "agent", "launcher"] {
        assert!(
            said.out
                .contains(&format!("ok   daemon: {daemon} runs, pid {}", cell.pid(daemon))),
            "{said}"
        );
    }
}

#[test]
fn beside_a_master_whose_lock_file_was_removed_no_second_one_starts_and_down_ends_it() {
    let cell = Cell::up();
    let before = cell.pid("master");
    std::fs::remove_file(cell.dir().join("run/master/lock")).unwrap();
    cell.bring_up(&[]).ok();
    assert_eq!(cell.pid("master"), before);
    std::fs::remove_dir_all(cell.dir().join("run/master")).unwrap();
    cell.bring_up(&["--wait", "1"]).refused(&["fix:"]);
    assert!(
        Path::new(&format!("/proc/{before}/cwd")).exists(),
        "the first one lives"
    );
    cell.down(&[]).ok();
    assert!(!Path::new(&format!("/proc/{before}/cwd")).exists(), "down means down");
    cell.bring_up(&[]).ok();
}

#[test]
fn beside_an_agent_whose_lock_file_was_removed_no_second_one_starts() {
    let cell = Cell::up();
    let before = cell.pid("agent");
    let lock = cell.dir().join("run/agent/lock");
    std::fs::remove_file(&lock).unwrap();
    cell.bring_up(&["--wait", "60"]).ok();
    assert_eq!(cell.pid("agent"), before);
    assert!(!lock.exists(), "no other agent made one");
    cell.down(&[]).ok();
    let process = Path::new("/proc").join(before.to_string());
    wait_until(|| format!("agent {before} lives"), || !process.exists());
}

#[test]
fn a_key_that_others_can_read_is_found_by_doctor_and_closed_by_up() {
    let cell = Cell::up();
    let (dir, key) = (cell.dir_word(), cell.dir().join("agent/host.key"));
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let said = cell.admin(&["doctor", "--dir", &dir]);
    assert!(
        said.out.contains("BAD  keys: ") && said.out.contains("host.key has rights 644"),
        "{said}"
    );
    cell.bring_up(&[]).ok();
    assert_eq!(std::fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    let said = cell.admin(&["doctor", "--dir", &dir]);
    assert!(said.out.contains("ok   keys: "), "{said}");
}

#[test]
fn a_directory_of_the_old_layout_comes_up_whatever_was_left_in_it() {
    if !can_attack() {
        return;
    }
    let cell = Cell::up();
    cell.down(&[]).ok();
    let (attacker, run) = (Attacker::of_daemon(&cell, "agent"), cell.dir().join("run"));
    let elsewhere = Victim::new(&cell, "elsewhere", 0o600);
    std::fs::remove_dir_all(&run).unwrap();
    std::fs::create_dir(&run).unwrap();
    std::os::unix::fs::chown(&run, Some(0), Some(attacker.gid)).unwrap();
    std::fs::set_permissions(&run, Permissions::from_mode(0o1775)).unwrap();
    let held = attacker.act(|| {
        std::fs::create_dir(run.join("launcher")).unwrap();
        symlink(&elsewhere.path, run.join("launcher/pid")).unwrap();
        symlink(elsewhere.path.parent().unwrap(), run.join("master")).unwrap();
        symlink(&elsewhere.path, run.join("down")).unwrap();
        std::fs::write(run.join("agent.pid"), "-1\n").unwrap();
        Flock::lock(
            File::create(run.join("agent.lock")).unwrap(),
            FlockArg::LockExclusiveNonblock,
        )
        .unwrap()
    });
    cell.bring_up(&[]).ok();
    elsewhere.is_unharmed();
    drop(held);
    let found = std::fs::metadata(&run).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o7777), (0, 0o755));
    assert_eq!(std::fs::symlink_metadata(run.join("launcher")).unwrap().uid(), 0);
    assert!(!run.join("agent.lock").exists());
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

#[test]
fn root_does_not_bring_up_a_cell_in_a_directory_of_somebody_else() {
    if !can_attack() {
        return;
    }
    let cell = Cell::with(CellPlan::default().owned_by_the_user());
    cell.down(&[]).ok();
    let mut command = Command::new(cell.programs().gridwright());
    command.args(["up", "--detach", "--dir", &cell.dir_word()]);
    CommandOutput::run(command).refused(&["belongs to", "fix:"]);
    assert!(!cell.dir().join("etc/accounts.toml").exists());
}
