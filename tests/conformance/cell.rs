//! A cell on a host `vm` with users `u1 u2 u3`: name spaces of the test's own, in which `/etc` and
//! the host's name are others, so that nothing of the machine changes and nothing is left behind.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gridwright_tests::cell::{Programs, TempDir};
use nix::sched::{CloneFlags, unshare};

use crate::case::Answer;

/// The users of the captures, with their uids, which are their gids.
const USERS: [(&str, u32); 3] = [("u1", 2001), ("u2", 2002), ("u3", 2003)];

/// Files in the users' home directories.
const SCRIPTS: [(&str, &str); 7] = [
    ("plain.sh", "#!/bin/sh\necho hi\n"),
    ("empty.sh", ""),
    ("x100.sh", "#!/bin/sh\nexit 100\n"),
    ("crlf.sh", "#!/bin/sh\r\necho crlf\r\n"),
    ("badopt.sh", "#!/bin/sh\n#$ -nosuchopt\necho hi\n"),
    ("pct.sh", "#!/bin/sh\n#% -N pct\n#$ -N dollar\necho hi\n"),
    (
        "dir.sh",
        "#!/bin/bash\n#$ -N dirjob\n#$ -l h_rt=0:10:0\n#$ -j y -o $HOME/dirout.$JOB_ID\n#$ -v FOO=bar\n#$ -p -5\necho hello $FOO\n",
    ),
];

/// Leaves the machine's mounts, host name and `/etc` for private ones, for as long as the value
/// lives. All of `/etc` is a copy: a bound file would be lost when somebody replaces the machine's
/// own, as `useradd` does.
pub fn enter_name_spaces() -> TempDir {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS).expect("root may have name spaces of its own");
    let temp = TempDir::new();
    let etc = temp.path().display();
    // Locks of whoever edits the machine's users meanwhile may come and go.
    shell(&format!("cp -a /etc {etc}/ 2>/dev/null; test -s {etc}/etc/passwd"));
    shell(&format!("mount --make-rprivate / && mount --bind {etc}/etc /etc"));
    shell("echo vm > /proc/sys/kernel/hostname && echo 127.0.1.1 vm >> /etc/hosts");
    // The names of hosts that the machine of the recordings could resolve.
    shell("for n in 1 2 3 4; do echo 192.0.2.1$n n$n; done >> /etc/hosts");
    temp
}

fn shell(command: &str) {
    let status = Command::new("sh")
        .args(["-c", command])
        .status()
        .expect("there is a shell");
    assert!(status.success(), "{command}: {status}");
}

/// A running cell of one host.
pub struct Cell {
    temp: TempDir,
    programs: Programs,
    environment: Vec<(String, String)>,
}

impl Cell {
    /// A new cell, up, with two slots.
    pub fn up() -> Self {
        Self::up_with("--slots 2")
    }

    /// A new cell, up, with these options.
    pub fn up_with(options: &str) -> Self {
        let temp = TempDir::new();
        make_users(temp.path());
        let programs = Programs::find(temp.path());
        let mut cell = Self {
            temp,
            programs,
            environment: Vec::new(),
        };
        cell.prepare(
            None,
            &format!("{} up --dir {} {options} --port 0 --detach", cell.program(), cell.dir()),
        );
        cell.environment = cell.environment();
        cell
    }

    fn program(&self) -> String {
        self.programs.gridwright().display().to_string()
    }

    fn dir(&self) -> String {
        self.temp.path().join("cell").display().to_string()
    }

    fn home(&self, user: Option<&str>) -> PathBuf {
        self.temp.path().join("home").join(user.unwrap_or("root"))
    }

    /// What `gridwright env` sets.
    fn environment(&self) -> Vec<(String, String)> {
        let command = format!("eval \"$({} env --dir {})\" && env", self.program(), self.dir());
        let output = self.output(None, &command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ours = ["PATH", "GRIDWRIGHT_DIR", "SGE_ROOT", "SGE_CELL"];
        let pairs = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(name, _)| ours.contains(name));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The port of the master, as the cell's own file tells.
    fn port(&self) -> String {
        let path = self.temp.path().join("cell/etc/cell.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let port = text
            .lines()
            .find_map(|line| line.strip_prefix("port")?.trim().strip_prefix('='));
        port.unwrap_or_default().trim().to_owned()
    }

    fn output(&self, user: Option<&str>, command: &str) -> Output {
        let command = &command.replace("{dir}", &self.dir()).replace("{port}", &self.port());
        let home = self.home(user);
        let name = user.unwrap_or("root");
        let mut shell = Command::new("bash");
        shell
            .args(["-c", command])
            .current_dir(&home)
            .stdin(Stdio::null())
            .env_clear();
        shell.envs([
            ("PATH", "/usr/bin:/bin"),
            ("SHELL", "/bin/bash"),
            ("TZ", "UTC"),
            ("USER", name),
            ("LOGNAME", name),
        ]);
        shell.env("HOME", &home).envs(self.environment.iter().cloned());
        if let Some((_, id)) = USERS.iter().find(|(known, _)| Some(*known) == user) {
            shell.uid(*id).gid(*id);
        }
        shell.output().unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Runs a command that has to succeed.
    pub fn prepare(&self, user: Option<&str>, command: &str) {
        let output = self.output(user, command);
        let (told, also) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{command}: {}\n{told}{also}", output.status);
    }

    /// Runs the command of a case.
    pub fn run(&self, user: Option<&str>, command: &str) -> Answer {
        let output = self.output(user, command);
        Answer {
            exit: output.status.code().unwrap_or(-1),
            stdout: self.lines(&output.stdout),
            stderr: self.lines(&output.stderr),
        }
    }

    /// Lines as the captures would have them: homes below `/home`, no path of ours.
    fn lines(&self, bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let path = self
            .environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_str());
        let text = text.replace(path.unwrap_or("/usr/bin:/bin"), "/usr/bin:/bin");
        let text = text.replace(&self.temp.path().join("home").display().to_string(), "/home");
        let text = text.replace(&self.dir(), "/cell");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // A cell that is not up has nothing to end.
        let _ = self.output(
            None,
            &format!("{} down --dir {} --kill-jobs", self.program(), self.dir()),
        );
    }
}

/// Makes the users, their homes and scripts, and the tables of the system that know them.
fn make_users(top: &Path) {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    let (mut passwd, mut group) = (without_users("/etc/passwd"), without_users("/etc/group"));
    std::fs::create_dir_all(top.join("home/root/tmp")).expect("the directory is ours");
    for (name, id) in USERS {
        let home = top.join("home").join(name);
        std::fs::create_dir_all(&home).expect("the directory is ours");
        for (script, text) in SCRIPTS {
            write(&home.join(script), text);
        }
        std::os::unix::fs::chown(&home, Some(id), Some(id)).expect("the test runs as root");
        passwd += &format!("{name}:x:{id}:{id}::{}:/bin/bash\n", home.display());
        group += &format!("{name}:x:{id}:\n");
    }
    write(Path::new("/etc/passwd"), &passwd);
    write(Path::new("/etc/group"), &group);
}

/// A table of users or groups without those of the captures, and without others that have their
/// numbers.
fn without_users(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_ours = |line: &str| {
        let (name, id) = (line.split(':').next(), line.split(':').nth(2));
        USERS
            .iter()
            .any(|(ours, number)| name == Some(ours) || id == Some(&number.to_string()))
    };
    let kept = text.lines().filter(|line| !is_ours(line));
    kept.fold(String::new(), |all, line| all + line + "\n")
}
