//! Processes of a task, found in `/proc` and signalled without mistaking one pid for another.
//!
//! A shepherd is a subreaper, so every process of its task is its descendant: the walk over
//! `children` costs what the task costs and works under `hidepid=2`. The scan over all of `/proc`
//! is for a task whose shepherd is dead.

use crate::sys;
use std::fs::{self, File};
use std::io::Read;

/// What `/proc/PID/stat` says about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The process.
    pub pid: i32,
    /// `R`, `S`, `D`, `T`, `Z`…
    pub state: u8,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// CPU in clock ticks, its own and that of children it waited for.
    pub cpu_ticks: u64,
    /// CPU in clock ticks of the process alone.
    pub own_cpu_ticks: u64,
    /// Its threads.
    pub threads: u64,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Bytes of address space.
    pub vmem_bytes: u64,
    /// Resident pages.
    pub rss_pages: u64,
}

impl ProcessStat {
    /// Whether the process has ended and only waits to be reaped.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads the text of `/proc/PID/stat`. The command's name may hold anything, so fields count from
/// the last `)`.
pub fn parse_stat(text: &str) -> Option<ProcessStat> {
    let pid = text.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // Field n of proc(5) is fields[n - 3].
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let pids = |field: usize| fields.get(field - 3)?.parse::<i32>().ok();
    Some(ProcessStat {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: pids(4)?,
        group: pids(5)?,
        session: pids(6)?,
        cpu_ticks: number(14)? + number(15)? + number(16)? + number(17)?,
        own_cpu_ticks: number(14)? + number(15)?,
        threads: number(20)?,
        start_ticks: number(22)?,
        vmem_bytes: number(23)?,
        rss_pages: number(24)?,
    })
}

/// The state of a process; `None` if it is gone or hidden.
pub fn stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&read_short(&format!("/proc/{pid}/stat"))?)
}

/// Reads a file of at most one page in one go; the kernel makes such files of `/proc` anew for each
/// read(2).
pub fn read_short(path: &str) -> Option<String> {
    let mut page = [0; 4096];
    let count = File::open(path).ok()?.read(&mut page).ok()?;
    Some(String::from_utf8_lossy(&page[..count]).into_owned())
}

/// The most processes of one task that a walk returns, so that a fork bomb costs a bounded amount
/// of memory.
pub const MAX_PROCESSES: usize = 1 << 16;

/// All live descendants of a process, parents before children.
pub fn descendants(root: i32) -> Vec<ProcessStat> {
    descendants_while(root, |_| true)
}

/// Live descendants of a process, parents before children, as long as `goes_on` says so of each: a
/// task that forks faster than it is walked has been seen enough once it is over its limits.
pub fn descendants_while(root: i32, mut goes_on: impl FnMut(&ProcessStat) -> bool) -> Vec<ProcessStat> {
    let me = std::process::id();
    if !fs::exists(format!("/proc/self/task/{me}/children")).unwrap_or(false) {
        return descendants_by_parent(root);
    }
    let mut found = Vec::new();
    let mut parents = vec![(root, u64::MAX)];
    while let Some((parent, threads)) = parents.pop() {
        for child in children(parent, threads) {
            // A child of the parent may have ended and its number be another's by now. An orphan
            // comes to the root.
            let Some(process) = stat(child).filter(|process| [parent, root].contains(&process.parent)) else {
                continue;
            };
            parents.push((child, process.threads));
            if process.is_gone() {
                continue;
            }
            found.push(process);
            if found.len() >= MAX_PROCESSES || !goes_on(&process) {
                return found;
            }
        }
    }
    found
}

/// The children of all threads of a process: of the only one, or of each that is listed.
fn children(pid: i32, threads: u64) -> Vec<i32> {
    let pids = |list: String| {
        list.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<_>>()
    };
    if threads == 1 {
        return fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .map(pids)
            .unwrap_or_default();
    }
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(pids).collect()
}

/// The same from the parents of all processes, for kernels without `children` files.
fn descendants_by_parent(root: i32) -> Vec<ProcessStat> {
    let mut rest = all_processes();
    let mut found: Vec<ProcessStat> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let (mine, others) = rest.into_iter().partition(|process| process.parent == parent);
        rest = others;
        let mine: Vec<ProcessStat> = mine;
        parents.extend(mine.iter().map(|process| process.pid));
        found.extend(mine);
    }
    found.retain(|process| !process.is_gone());
    found.truncate(MAX_PROCESSES);
    found
}

fn all_processes() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The live children of a process.
pub fn children_of(parent: i32) -> Vec<ProcessStat> {
    let found = if fs::exists(format!("/proc/self/task/{}/children", std::process::id())).unwrap_or(false) {
        children(parent, u64::MAX).into_iter().filter_map(stat).collect()
    } else {
        all_processes()
    };
    found
        .into_iter()
        .filter(|process| process.parent == parent && !process.is_gone())
        .collect()
}

/// The users whose processes an environment entry marks. Anybody can set the entry, and `su` passes
/// it on to another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This user's.
    Is(u32),
    /// All users from this uid on, for a task whose own user is not known.
    AtLeast(u32),
}

impl Owner {
    fn has(self, pid: i32) -> bool {
        real_uid(pid).is_some_and(|uid| match self {
            Owner::Is(owner) => uid == owner,
            Owner::AtLeast(least) => uid >= least,
        })
    }
}

/// By what the processes of a task without a shepherd are recognised.
pub struct Marks<'a> {
    /// The main process, which leads a session, and when it started in clock ticks; if it was
    /// started in this boot.
    pub session: Option<(i32, u64)>,
    /// The task's own supplementary group.
    pub tracking_gid: Option<u32>,
    /// The entry that the shepherd put into the environment.
    pub environment: &'a str,
    /// The user whose processes the entry marks.
    pub owner: Owner,
}

/// Every live process of the machine that carries one of the marks.
pub fn marked(marks: &Marks<'_>) -> Vec<ProcessStat> {
    let me = std::process::id() as i32;
    let others = all_processes()
        .into_iter()
        .filter(|process| process.pid != me && !process.is_gone());
    others.filter(|process| is_marked(process, marks)).collect()
}

/// How far up a process is looked for what it belongs to.
const MAX_ABOVE: usize = 256;

/// Whether a process is below a shepherd or launcher of another directory and below none of this
/// one: then this directory is a copy of that one. A cell that runs inside a job of ours is below
/// both.
pub fn belongs_elsewhere(process: &ProcessStat) -> bool {
    let own = directory_of("self");
    let mut is_of_another = false;
    let mut next = process.parent;
    for _ in 0..MAX_ABOVE {
        let Some(above) = Some(next).filter(|pid| *pid > 1).and_then(stat) else {
            break;
        };
        if is_shepherd(above.pid) {
            let directory = directory_of(&above.pid.to_string());
            if directory == own {
                return false;
            }
            is_of_another |= directory.is_some();
        }
        next = above.parent;
    }
    is_of_another
}

/// Launchers and shepherds work in the directory of their cell.
fn directory_of(pid: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}/cwd"))
        .ok()
        .map(|found| (found.dev(), found.ino()))
}

/// Whether a process is a launcher or a shepherd of this user, of whatever release.
fn is_shepherd(pid: i32) -> bool {
    let name = read_short(&format!("/proc/{pid}/comm")).unwrap_or_default();
    name.starts_with("gridwright-shep") && real_uid(pid) == Some(nix::unistd::geteuid().as_raw())
}

fn is_marked(process: &ProcessStat, marks: &Marks<'_>) -> bool {
    marks.session.is_some_and(|leader| is_in_session(process, leader))
        || marks.tracking_gid.is_some_and(|gid| has_group(process.pid, gid))
        || marks.owner.has(process.pid) && has_environment(process.pid, marks.environment)
}

/// While a session has members its number is nobody else's. So it is another session only if
/// another process leads it.
fn is_in_session(process: &ProcessStat, (leader, start_ticks): (i32, u64)) -> bool {
    process.session == leader
        && process.start_ticks >= start_ticks
        && stat(leader).is_none_or(|now| now.start_ticks == start_ticks)
}

/// The words behind a name in `/proc/PID/status`.
fn status_line(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::to_owned)
}

/// The user who started a process, also of a program with the rights of another one.
pub fn real_uid(pid: i32) -> Option<u32> {
    status_line(pid, "Uid")?.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether a process has a handler of its own for a signal.
pub fn catches(pid: i32, signal: i32) -> bool {
    let caught = status_line(pid, "SigCgt").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    (1..=64).contains(&signal) && caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether a process runs the program of this one.
pub fn has_own_program(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |path: &str| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let own = file("/proc/self/exe");
    own.is_some() && file(&format!("/proc/{pid}/exe")) == own
}

fn has_group(pid: i32, gid: u32) -> bool {
    let groups = status_line(pid, "Groups").unwrap_or_default();
    groups.split_ascii_whitespace().any(|group| group.parse() == Ok(gid))
}

fn has_environment(pid: i32, entry: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environment
        .split(|&byte| byte == 0)
        .any(|found| found == entry.as_bytes())
}

/// Sends a signal to a process, if it is still the one that was found.
pub fn signal(process: &ProcessStat, signal: i32) {
    let Ok(pidfd) = sys::open_pidfd(process.pid) else {
        return;
    };
    if stat(process.pid).is_some_and(|now| now.start_ticks == process.start_ticks) {
        // The process may end between the check and the signal; that is what was wanted.
        let _ = sys::signal_pidfd(&pidfd, signal);
    }
}

/// Milliseconds of CPU in clock ticks of 1/100 s, the unit of `/proc` on every Linux we run on.
pub fn ticks_to_ms(ticks: u64) -> u64 {
    ticks.saturating_mul(10)
}

/// `/proc/sys/kernel/random/boot_id`, empty where it cannot be read.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Reads one `Name:  number kB` line of `/proc/PID/status` in bytes.
pub fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace()
        .next()?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// The bytes that `/proc/PID/io` counts as read and written by system calls.
pub fn io_bytes(text: &str) -> u64 {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    value("rchar:")
        .unwrap_or(0)
        .saturating_add(value("wchar:").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text =
            "42 (a) R (b) S 7 42 41 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 12345 2048000 250 18446744073709551615";
        let expected = ProcessStat {
            pid: 42,
            state: b'S',
            parent: 7,
            group: 42,
            session: 41,
            cpu_ticks: 100,
            own_cpu_ticks: 30,
            threads: 1,
            start_ticks: 12345,
            vmem_bytes: 2_048_000,
            rss_pages: 250,
        };
        assert_eq!(parse_stat(text), Some(expected));
    }

    #[test]
    fn this_process_is_found_as_it_is() {
        let me = stat(std::process::id() as i32).expect("own stat");
        assert!(me.vmem_bytes > 0 && !me.is_gone());
    }

    #[test]
    fn a_session_whose_number_was_used_again_is_another_one() {
        let mut leader = std::process::Command::new("setsid")
            .args(["sleep", "60"])
            .spawn()
            .expect("started");
        let pid = leader.id() as i32;
        let process = loop {
            match stat(pid) {
                Some(process) if process.session == pid => break process,
                _ => std::thread::yield_now(),
            }
        };
        assert!(is_in_session(&process, (pid, process.start_ticks)));
        assert!(!is_in_session(&process, (pid, process.start_ticks - 1)));
        leader.kill().expect("killed");
        leader.wait().expect("reaped");
    }

    #[test]
    fn damaged_stat_lines_are_refused() {
        for text in ["", "1", "1 (x)", "1 (x) S 1 2", "x (x) S"] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }
}
