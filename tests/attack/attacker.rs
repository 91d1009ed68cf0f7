//! Processes of other uids that run parts of this program: a role is a function, and its words are
//! those of the command line.

use crate::{boundary, crowd, launch, login};
use gridwright_tests::cell::{Cell, CommandOutput, Process};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a process of this program does instead of making attacks.
pub type Role = fn(&[String]);

/// The word in front of a role.
const FLAG: &str = "--role";

/// Every role by its name.
const ROLES: [(&str, Role); 8] = [
    ("plant", boundary::plant),
    ("exchange", boundary::exchange),
    ("hold-locks", login::hold_locks),
    ("knock", login::knock),
    ("sit", login::sit),
    ("read", login::read),
    ("babble", launch::babble),
    ("ask", crowd::ask),
];

/// The role that the words of a command line name, and its own words.
pub fn role_of(words: &[String]) -> Option<(Role, &[String])> {
    let [flag, name, rest @ ..] = words else { return None };
    let role = ROLES.iter().find(|(known, _)| flag == FLAG && known == name)?;
    Some((role.1, rest))
}

/// A uid that no account has.
pub fn stranger() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    1_000_000_000 + std::process::id() % (1 << 22) * 64 + COUNT.fetch_add(1, Ordering::Relaxed) % 64
}

/// The user that an attacker runs as.
#[derive(Clone, Copy, Debug)]
pub struct Attacker {
    /// The user id.
    pub uid: u32,
    /// The group id; no other group is had.
    pub gid: u32,
}

impl Attacker {
    /// Somebody whom no account names.
    pub fn stranger() -> Self {
        let uid = stranger();
        Self { uid, gid: uid }
    }

    /// An attacker who has taken over a process.
    pub fn in_place_of(pid: i32) -> Self {
        let found = std::fs::metadata(format!("/proc/{pid}")).expect("the daemon lives");
        Self {
            uid: found.uid(),
            gid: found.gid(),
        }
    }

    /// A command that plays a role.
    fn command(self, cell: &Cell, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program(cell));
        command
            .args([FLAG, role])
            .args(words)
            .uid(self.uid)
            .gid(self.gid)
            .current_dir("/");
        command
    }

    /// Plays a role to its end.
    pub fn play(self, cell: &Cell, role: &str, words: &[&str]) -> CommandOutput {
        CommandOutput::run(self.command(cell, role, words))
    }

    /// Plays a role beside the test.
    pub fn start(self, cell: &Cell, role: &str, words: &[&str]) -> Process {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let output = cell
            .top()
            .join(format!("{role}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        Process::start(self.command(cell, role, words), &output)
    }
}

/// A copy of this program that everybody may run. `cp` makes it: a descriptor of ours that is open
/// for writing could be inherited by a process that another thread starts at that moment, and the
/// copy would be busy (`ETXTBSY`) until that process executes.
fn program(cell: &Cell) -> PathBuf {
    let path = cell.top().join("attacker");
    if !path.exists() {
        let draft = cell.top().join("attacker.new");
        let me = std::env::current_exe().expect("a program has a path");
        let copied = Command::new("cp")
            .arg(me)
            .arg(&draft)
            .status()
            .expect("cp is on every machine");
        assert!(copied.success(), "cp {}: {copied}", draft.display());
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
        std::fs::rename(&draft, &path).expect("the directory is ours");
    }
    path
}
