//! The process of a daemon. A number alone names no process: it may be another one's by now, or
//! have been made up.

use super::ending;
use nix::sys::stat::{major, minor};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Three numbers and blanks are shorter.
const TEXT_MAX: u64 = 100;

/// A daemon's own record of its process, with the user and program that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pid: i32,
    /// When it started, in clock ticks since boot. `None` where no more than a pid file could be
    /// read.
    start: Option<u64>,
    /// The user whom it runs as.
    uid: u32,
    /// The program that it runs.
    program: &'static str,
}

impl Identity {
    /// Reads `PID START` of a lock or `PID` of a pid file. Numbers that name groups of processes,
    /// or process 1, are not taken.
    pub fn parse(text: &str, uid: u32, program: &'static str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let pid = words.next()?.parse().ok().filter(|pid| *pid > 1)?;
        let start = words.next().map(str::parse).transpose().ok()?;
        Some(Self {
            pid,
            start,
            uid,
            program,
        })
    }

    /// The process that has a pid now, with its start.
    pub fn of_process(pid: i32, uid: u32, program: &'static str) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&format!("{pid} {}", start_of(&stat)?), uid, program)
    }

    /// The number of the process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.pid)
    }

    /// Whether the identity is complete: a pid alone may be a later process's.
    pub fn is_complete(&self) -> bool {
        self.start.is_some()
    }

    /// Whether such a process exists: that program, that user, that start.
    pub fn exists(&self) -> bool {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.pid)).unwrap_or_default();
        let stat = read("stat");
        let is_same = self.start.is_none_or(|start| start_of(&stat) == Some(start));
        is_same && ending::is_of(&stat, self.program) && uid_of(&read("status")) == Some(self.uid)
    }

    /// Whether it exists and is at its end.
    pub fn is_ending(&self) -> bool {
        self.exists() && ending::is_ending(self.pid(), self.program)
    }

    /// Whether it runs a file of that name. A process at its end has none any more.
    fn runs_the_program(&self) -> bool {
        let file = match std::fs::read_link(format!("/proc/{}/exe", self.pid)) {
            Ok(file) => file,
            // Another user's, or root has no CAP_SYS_PTRACE as in many containers: the name in
            // `stat` was the right one.
            Err(error) => return error.kind() == io::ErrorKind::PermissionDenied,
        };
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        name.strip_suffix(" (deleted)").unwrap_or(&name) == self.program
    }

    /// Sends SIGTERM to that process and no other. `Ok(false)` if it is not there.
    ///
    /// # Errors
    /// `EPERM` where this user may not.
    pub fn terminate(&self) -> io::Result<bool> {
        self.signal(Signal::TERM)
    }

    /// Sends SIGUSR2, by which an agent ends the tasks of its host, as [`Identity::terminate`]
    /// sends SIGTERM.
    ///
    /// # Errors
    /// As there.
    pub fn end_tasks(&self) -> io::Result<bool> {
        self.signal(Signal::USR2)
    }

    fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Some(pid) = rustix::process::Pid::from_raw(self.pid) else {
            return Ok(false);
        };
        // Opened before it is looked at: from then on the descriptor cannot come to mean another
        // process.
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        if !self.is_complete() || !self.exists() || !self.runs_the_program() {
            return Ok(false);
        }
        match pidfd_send_signal(handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The `PID START` that a lock says of its holder. It says its own inode, too: the lock in a copy
/// of the directory names the processes of the original, which are none of the copy's.
pub fn holder_in(lock: &File) -> Option<String> {
    let mut text = String::new();
    lock.take(TEXT_MAX).read_to_string(&mut text).ok()?;
    let inode: u64 = text.split_whitespace().nth(2)?.parse().ok()?;
    (inode == lock.metadata().ok()?.ino()).then_some(text)
}

/// The process that holds a lock of an open file, by proc_locks(5).
pub fn holder(file: &File) -> Option<i32> {
    let found = file.metadata().ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(found.dev()), minor(found.dev()), found.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks
        .lines()
        .find_map(|line| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            [_, "FLOCK", _, _, pid, held, ..] if *held == place => pid.parse().ok(),
            _ => None,
        })
}

/// Whether a process was started for a state directory: `--dir DIR` is among its arguments, as
/// `dir` is written or without links, or it has opened the file `lock` below `dir`, which may be
/// removed since.
///
/// The arguments may be a link or a relative path. The process can write any path there, so root
/// compares them and does not look them up; the kernel knows where the lock is.
pub fn is_started_for(pid: i32, dir: &Path, lock: &Path) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    let without_links = dir.canonicalize().ok();
    let own = [Some(dir.to_owned()), without_links.clone()];
    let is_own = |word: &[u8]| own.iter().flatten().any(|own| own.as_os_str().as_bytes() == word);
    words.windows(2).any(|pair| pair[0] == b"--dir" && is_own(pair[1]))
        || without_links.is_some_and(|dir| has_opened(pid, &dir.join(lock)))
}

/// Whether a process has a file open that has that path, or had it until it was removed.
fn has_opened(pid: i32, path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let is_same = |name: &[u8]| name.strip_suffix(b" (deleted)").unwrap_or(name) == path;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    names.any(|name| is_same(name.as_os_str().as_bytes()))
}

/// By `/proc/PID/stat`, field 22 of proc_pid_stat(5).
fn start_of(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// By `/proc/PID/status`: the real uid, if the effective one is the same.
fn uid_of(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut uids = line.split_whitespace().map(str::parse);
    let (real, effective) = (uids.next()?.ok()?, uids.next()?.ok()?);
    (real == effective).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    fn own_uid() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    #[test]
    fn numbers_that_name_more_than_one_process_are_not_taken() {
        for text in ["-1 5", "0 5", "1 5", "-7", "x", "", "7 x", "99999999999 1"] {
            assert_eq!(Identity::parse(text, 0, "gridwright-agent"), None, "{text}");
        }
        let taken = Identity::parse("7 12\n", 0, "gridwright-agent").unwrap();
        assert_eq!((taken.pid, taken.start), (7, Some(12)));
    }

    /// The program `sh`, with those arguments, until its standard input ends.
    fn shell(script: &str, arguments: &[&Path]) -> std::process::Child {
        let mut child = Command::new("sh")
            .args(["-c", &format!("{script}; echo; read line"), "sh"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The kernel shows the arguments once the program runs.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    #[test]
    fn a_process_is_known_by_the_directory_that_it_was_started_for() {
        let [own, other] = [std::env::temp_dir(), PathBuf::from("/")];
        let lock = Path::new("run/agent/lock");
        let mut child = shell("true", &[Path::new("--dir"), &own]);
        let pid = i32::try_from(child.id()).unwrap();
        assert!(is_started_for(pid, &own, lock));
        assert!(!is_started_for(pid, &other, lock));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_started_for(pid, &own, lock));
    }

    #[test]
    fn a_process_that_was_started_with_a_link_is_known_by_the_lock_that_it_holds() {
        let base = std::env::temp_dir().join(format!("gridwright-cli-link-{}", std::process::id()));
        let [cell, other, link] = ["cell", "other", "link"].map(|name| base.join(name));
        [&cell, &other]
            .iter()
            .for_each(|dir| std::fs::create_dir_all(dir.join("run/agent")).unwrap());
        std::os::unix::fs::symlink(&cell, &link).unwrap();
        let lock = Path::new("run/agent/lock");
        for removed in [false, true] {
            let mut child = shell("exec 9>\"$2/run/agent/lock\"", &[Path::new("--dir"), &link]);
            if removed {
                std::fs::remove_file(cell.join(lock)).unwrap();
            }
            let pid = i32::try_from(child.id()).unwrap();
            assert!(
                is_started_for(pid, &cell, lock) && is_started_for(pid, &link, lock),
                "{removed}"
            );
            assert!(!is_started_for(pid, &other, lock), "{removed}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_lock_in_a_copy_of_the_directory_names_nobody() {
        let base = std::env::temp_dir().join(format!("gridwright-cli-lock-{}", std::process::id()));
        let lock = File::create_new(&base).unwrap();
        std::fs::write(&base, format!("7 12 {}\n", lock.metadata().unwrap().ino())).unwrap();
        let copy = base.with_extension("copy");
        std::fs::copy(&base, &copy).unwrap();
        let read = |path: &std::path::Path| holder_in(&File::open(path).unwrap());
        assert!(read(&base).is_some_and(|text| text.starts_with("7 12 ")));
        assert_eq!(read(&copy), None);
        [base, copy].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    #[test]
    fn a_process_is_ended_only_if_start_program_and_user_are_its_own() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let start = start_of(&stat).unwrap();
        let wrong = [
            (format!("{pid} {}", start + 1), own_uid(), "sleep"),
            (format!("{pid} {start}"), own_uid() + 1, "sleep"),
            (format!("{pid} {start}"), own_uid(), "gridwright-agent"),
            (format!("{pid}"), own_uid(), "sleep"),
        ];
        for (text, uid, program) in wrong {
            let identity = Identity::parse(&text, uid, program).unwrap();
            assert!(!identity.terminate().unwrap(), "{text} {uid} {program}");
        }
        assert!(child.try_wait().unwrap().is_none());
        let identity = Identity::parse(&format!("{pid} {start}"), own_uid(), "sleep").unwrap();
        assert!(identity.terminate().unwrap());
        child.wait().unwrap();
        assert!(!identity.terminate().unwrap());
    }
}
