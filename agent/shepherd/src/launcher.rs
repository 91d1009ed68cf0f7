//! The launcher: one per host, root, takes orders from the agent's uid alone and forks a shepherd
//! for each task.
//!
//! It never asks the name service, never opens a user's file and never waits for anything but its
//! own sockets. It may die at any time: shepherds go on, and the next launcher finds them by their
//! locks and sockets.

pub(crate) mod connection;
mod denial;
mod directory;
pub mod groups;
pub mod holder;
pub mod identities;
mod marks;
mod notify;
mod orphans;
mod refusals;
mod results;
mod root_commands;
pub mod rules;
mod script;
mod sensor;
mod server;
mod shepherds;
mod tracking;

use crate::log::Log;
use crate::proc;
use crate::shepherd::{Host, LoginLimit};
use crate::sys;
use crate::task_dir::TASKS;
use folder::Folder;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use rules::Rules;
use std::fs::{self, File};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the lock is tried until it is taken to be held for long.
const LOCK_TRIES: u32 = 20;

/// Between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// How a launcher is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The state directory.
    pub dir: PathBuf,
    /// The only uid whose connections are taken.
    pub agent_uid: u32,
    /// The group that may read what tasks leave behind.
    pub agent_gid: Option<u32>,
    /// Tasks run as this process's own user.
    pub single_user: bool,
    /// The file that standard output and error lead to.
    pub log_file: Option<PathBuf>,
    /// An inherited socket that needs no check.
    pub fd: Option<RawFd>,
}

/// Runs until SIGTERM or SIGINT. SIGHUP opens the log anew.
///
/// # Errors
/// A directory that cannot be prepared, a launcher that runs already, rules that cannot be read.
pub fn run(options: &Options) -> io::Result<()> {
    // A forked child that panics must not unwind into the launcher's own frames and let go of its
    // lock.
    std::panic::set_hook(Box::new(|panic| {
        crate::log::line(format_args!("{panic}"));
        std::process::abort();
    }));
    sys::ignore_broken_pipes();
    umask(Mode::from_bits_truncate(0o022));
    if !options.single_user {
        // Root needs no group, and what works with the file rights of a user must not have root's
        // groups beside them.
        nix::unistd::setgroups(&[])?;
    }
    let mut log = Log::start(options.log_file.as_deref())?;
    let folder = fs::canonicalize(&options.dir)?;
    // Relative names from here on: a socket's name has room for 107 bytes, a directory's for more.
    std::env::set_current_dir(&folder)?;
    let boot_id = proc::boot_id();
    directory::refuse_copy(&folder, &boot_id)?;
    let own = make_folders(options)?;
    if options.single_user {
        // No agent of another user reads here, and a launch document holds the job's whole
        // environment.
        umask(Mode::from_bits_truncate(0o077));
    }
    let _lock = hold_lock(&own)?;
    if let Err(error) = directory::record(&folder, &boot_id) {
        crate::log::line(format_args!(
            "etc/directory: {error}; a copy of this directory would not be recognised"
        ));
    }
    if let Err(error) = marks::add() {
        crate::log::line(format_args!("tasks/marks: this start leaves no mark: {error}"));
    }
    let groups = groups::FoundGroups::find(&folder, options.single_user).published();
    let host = Host {
        groups,
        folder,
        rules: Rules::read(Path::new("etc"), options.single_user)?,
        boot_id,
        login_limits: if options.single_user {
            Vec::new()
        } else {
            login_limits()
        },
        oom_score_adjusted: oom_score_is_adjusted(),
    };
    log.limit(host.rules.log_bytes);
    sys::become_subreaper()?;
    let mut signals = SigSet::empty();
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .for_each(|signal| signals.add(signal));
    signals.thread_block()?;
    let listener = listen(&own, options)?;
    // Last: who looks for a launcher believes in one that has written it.
    own.write("pid", &format!("{}\n", std::process::id()), 0o644)?;
    let inherited = options.fd.map(|fd| UnixStream::from(sys::own(fd)));
    let server = server::Server::new(host, options.agent_uid, listener, &signals, log)?;
    notify::ready();
    let outcome = server.run(inherited);
    // The next launcher makes it anew; a missing file is what is wanted.
    let _ = own.remove("pid");
    outcome
}

/// Makes a copied directory one of its own, for `gridwright up --as-copy`: its tasks are dropped,
/// no process is touched.
///
/// # Errors
/// Another launcher runs in the directory, or the file system refuses.
pub fn adopt(dir: &Path) -> io::Result<()> {
    let folder = fs::canonicalize(dir)?;
    std::env::set_current_dir(&folder)?;
    Folder::open(Path::new("run"))?;
    let own = Folder::open(Path::new("run/launcher"))?;
    let _lock = hold_lock(&own)?;
    directory::adopt(&folder, &proc::boot_id())
}

/// Makes the folders and opens `run/launcher`. Every folder on the way is this user's, and nobody
/// else makes names there: what is done by name further on cannot be sent elsewhere.
fn make_folders(options: &Options) -> io::Result<Folder> {
    let refuse = |name: &str, error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("{name}: {error}; gridwright up sets it right, or moves it aside"),
        )
    };
    if nix::unistd::geteuid().is_root() {
        folder::check_owned(&File::open(".")?).map_err(|error| refuse("the state directory", error))?;
    }
    let open = |name: &str| Folder::open(Path::new(name)).map_err(|error| refuse(name, error));
    open("run")?;
    let own = open("run/launcher")?;
    let tasks = open(TASKS)?;
    if let Some(gid) = options.agent_gid {
        // Set-group-id: what is made below belongs to the agent's group without a call for each
        // file.
        std::os::unix::fs::fchown(tasks.handle(), None, Some(gid))?;
        tasks.handle().set_permissions(fs::Permissions::from_mode(0o2751))?;
    }
    Ok(own)
}

/// A launcher is alive if its lock is held. What is written there names the process for ever.
fn hold_lock(own: &Folder) -> io::Result<Flock<File>> {
    let lock = alone(own.open_lock("lock")?)
        .map_err(|errno| io::Error::other(format!("run/launcher/lock: a launcher runs already ({errno})")))?;
    folder::note_holder(&lock)?;
    Ok(lock)
}

/// The lock of a file. Who looks whether a daemon is alive tries that lock too, and has it for a
/// moment: only one that is held for long is another daemon's.
fn alone(mut file: File) -> Result<Flock<File>, Errno> {
    for _ in 0..LOCK_TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            taken => return taken.map_err(|(_, errno)| errno),
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(Errno::EWOULDBLOCK)
}

/// The socket is the agent's alone. SO_PEERCRED decides; the file's owner and mode keep everybody
/// else from even trying.
fn listen(own: &Folder, options: &Options) -> io::Result<UnixListener> {
    const NAME: &str = "launcher.sock";
    own.remove(NAME)?;
    let before = umask(Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(own.short_path(NAME));
    umask(before);
    let listener = listener?;
    if nix::unistd::geteuid().is_root() {
        let agent = Some(nix::unistd::Uid::from_raw(options.agent_uid));
        nix::unistd::fchownat(own.handle(), NAME, agent, None, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    }
    Ok(listener)
}

/// The soft limit of open files that pam_limits(8) gives a login, however high process 1 raised its
/// own: FD_SETSIZE.
const LOGIN_OPEN_FILES: u64 = 1024;

/// The limits of process 1, which is what pam_limits(8) starts a login from; none where they cannot
/// be read.
fn login_limits() -> Vec<LoginLimit> {
    let text = fs::read_to_string("/proc/1/limits").unwrap_or_default();
    parse_limits(&text)
}

fn parse_limits(text: &str) -> Vec<LoginLimit> {
    const NAMES: [(&str, u32); 16] = [
        ("Max cpu time", libc::RLIMIT_CPU),
        ("Max file size", libc::RLIMIT_FSIZE),
        ("Max data size", libc::RLIMIT_DATA),
        ("Max stack size", libc::RLIMIT_STACK),
        ("Max core file size", libc::RLIMIT_CORE),
        ("Max resident set", libc::RLIMIT_RSS),
        ("Max processes", libc::RLIMIT_NPROC),
        ("Max open files", libc::RLIMIT_NOFILE),
        ("Max locked memory", libc::RLIMIT_MEMLOCK),
        ("Max address space", libc::RLIMIT_AS),
        ("Max file locks", libc::RLIMIT_LOCKS),
        ("Max pending signals", libc::RLIMIT_SIGPENDING),
        ("Max msgqueue size", libc::RLIMIT_MSGQUEUE),
        ("Max nice priority", libc::RLIMIT_NICE),
        ("Max realtime priority", libc::RLIMIT_RTPRIO),
        ("Max realtime timeout", libc::RLIMIT_RTTIME),
    ];
    let value = |word: &str| {
        if word == "unlimited" {
            Some(libc::RLIM_INFINITY)
        } else {
            word.parse().ok()
        }
    };
    let line = |&(name, resource): &(&str, u32)| {
        let mut words = text
            .lines()
            .find_map(|line| line.strip_prefix(name))?
            .split_ascii_whitespace();
        let (soft, hard) = (value(words.next()?)?, value(words.next()?)?);
        let soft = if resource == libc::RLIMIT_NOFILE {
            soft.min(LOGIN_OPEN_FILES)
        } else {
            soft
        };
        // Only what differs from this process's own is set for each job.
        let (own_soft, own_hard) = sys::limit_in_force(resource);
        ((soft, hard) != (own_soft, own_hard)).then(|| LoginLimit {
            resource,
            soft,
            hard: hard.min(own_hard),
        })
    };
    NAMES
        .iter()
        .filter_map(line)
        .map(|limit| LoginLimit {
            soft: limit.soft.min(limit.hard),
            ..limit
        })
        .collect()
}

fn oom_score_is_adjusted() -> bool {
    fs::read_to_string("/proc/self/oom_score_adj").is_ok_and(|text| text.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_whether_a_launcher_is_alive_keeps_none_from_starting() {
        let path = std::env::temp_dir().join(format!("gridwright-launcher-{}.lock", std::process::id()));
        let open = || File::create(&path).unwrap();
        let looking = Flock::lock(open(), FlockArg::LockExclusiveNonblock).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(3 * LOCK_PAUSE);
            drop(looking);
        });
        let held = alone(open()).unwrap();
        ends.join().unwrap();
        assert!(matches!(alone(open()), Err(Errno::EWOULDBLOCK)));
        drop(held);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_logins_limits_are_read_by_name_and_never_rise_above_the_launchers_own() {
        let text =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            64     18446744073709551614   files\n";
        let limits = parse_limits(text);
        assert_eq!(limits.len(), 1);
        assert_eq!((limits[0].resource, limits[0].soft), (libc::RLIMIT_NOFILE, 64));
        assert!(limits[0].hard <= sys::limit_in_force(libc::RLIMIT_NOFILE).1);
    }

    #[test]
    fn a_login_has_1024_open_files_where_systemd_raised_its_own() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1048576  18446744073709551614  files\n";
        assert_eq!(parse_limits(text)[0].soft, LOGIN_OPEN_FILES);
    }
}
