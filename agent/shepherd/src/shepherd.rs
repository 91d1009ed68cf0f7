//! One task from its launch document to its result, alone: neither agent nor launcher nor master is needed meanwhile.
//!
//! A shepherd is a fork of the launcher without exec. The name service and the user's directories are touched only in its
//! children, so that it cannot be hung by them.

mod child;
mod ending;
pub mod environment;
mod evidence;
mod peers;
mod plan;
mod report;
mod sampler;
mod saving;
mod streams;
mod supervisor;
mod tmpdir;

use crate::account::Identity;
use crate::cgroup::Cgroup;
use crate::launcher::connection::Connection;
use crate::launcher::identities::Teller;
use crate::launcher::rules::Rules;
use crate::sys;
use crate::task_dir::TaskDir;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use proto::id::TaskKey;
use proto::launch::{Cause, Failed, Failure, LaunchDocument, LaunchResult, Notice, Request, TaskUsage};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The name of the environment entry by which processes of a task are recognised when their shepherd is dead.
pub const MARKER: &str = "GRIDWRIGHT_TASK_KEY";

/// The environment entry of one task.
pub fn marker(key: &TaskKey) -> String {
    format!("{MARKER}={key}")
}

/// A limit that a login gets, in the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimit {
    /// The kernel's number of the resource.
    pub resource: u32,
    /// The soft limit.
    pub soft: u64,
    /// The hard limit.
    pub hard: u64,
}

/// What the launcher knows about the host; read once.
#[derive(Clone, Debug)]
pub struct Host {
    /// The launcher's directory, absolute.
    pub folder: PathBuf,
    /// What the host's own files permit.
    pub rules: Rules,
    /// The boot.
    pub boot_id: String,
    /// Limits of a login, for resources that a document does not set.
    pub login_limits: Vec<LoginLimit>,
    /// Whether the launcher's own oom_score_adj is not 0.
    pub oom_score_adjusted: bool,
}

/// Everything a shepherd and its children know about their task.
pub struct Context {
    document: LaunchDocument,
    rules: Rules,
    /// The launcher's directory, absolute.
    folder: PathBuf,
    dir: TaskDir,
    script: Option<Script>,
    /// Standard input, output and error of a task that got them from elsewhere.
    connected: Option<[OwnedFd; 3]>,
    login_limits: Vec<LoginLimit>,
    boot_id: String,
    cgroup: Option<Cgroup>,
    oom_score_adjusted: bool,
    user: User,
}

/// What is known of the task's user before the name service is asked.
#[derive(Clone)]
pub struct User {
    /// As the name service knew it a moment ago; none to ask it.
    pub known: Option<Identity>,
    /// Where its answer goes.
    pub teller: Teller,
}

/// The script of a task.
struct Script {
    /// Where it was spooled, absolute.
    path: String,
    /// The sealed memory file it came in.
    memory: OwnedFd,
    /// Its beginning.
    head: Vec<u8>,
}

/// Runs a task in this process, a fork of the launcher, and perhaps further ones of the same user. Never returns.
pub fn run(host: Host, user: User, document: LaunchDocument, attached: Vec<OwnedFd>, control: UnixStream) -> ! {
    let kept = [control.as_raw_fd(), user.teller.descriptor().as_raw_fd()];
    let mut keep: Vec<_> = kept.into_iter().chain(attached.iter().map(AsRawFd::as_raw_fd)).collect();
    let mut key = document.key;
    let prepared = sys::close_all_except(&mut keep).and_then(|()| sys::become_subreaper());
    let mut next = prepared.map(|()| Some((document, attached, control)));
    loop {
        next = match next {
            Ok(None) => sys::exit_now(0),
            Ok(Some((document, attached, control))) => {
                key = document.key;
                let left = run_task(&host, &user, document, attached, control);
                left.and_then(|control| control.map_or(Ok(None), wait_for_next))
            }
            Err(error) => {
                eprintln!("gridwright-shepherd: task {key}: {error}");
                sys::exit_now(1)
            }
        };
    }
}

/// Waits for another task until the launcher closes the socket or the host shuts down.
fn wait_for_next(control: UnixStream) -> io::Result<Option<(LaunchDocument, Vec<OwnedFd>, UnixStream)>> {
    let mut connection = Connection::new(control)?;
    // SIGTERM is blocked since the first task; an idle shepherd has nothing to end.
    let signals = SignalFd::with_flags(&SigSet::from(Signal::SIGTERM), SfdFlags::SFD_CLOEXEC)?;
    loop {
        let found = match connection.next::<Request>()? {
            Some(Request::Launch(document)) => document,
            // An order that came too late for the task before.
            Some(_) => continue,
            None => {
                let read = PollFlags::POLLIN;
                let mut wait = [PollFd::new(connection.stream().as_fd(), read), PollFd::new(signals.as_fd(), read)];
                match poll(&mut wait, PollTimeout::NONE) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
                let ends = wait[1].any() == Some(true) || connection.fill().is_err();
                match connection.next::<Request>()? {
                    // The launcher's last word counts, even if it was that.
                    Some(Request::Launch(document)) => document,
                    _ if ends => return Ok(None),
                    _ => continue,
                }
            }
        };
        let attached = connection.take_attached(found.start.descriptors());
        let attached = attached.ok_or_else(|| io::Error::other("the descriptors of a task did not come"))?;
        return Ok(Some((*found, attached, connection.into_stream())));
    }
}

/// Runs one task to its result. Gives the launcher's socket back if it is of further use.
fn run_task(
    host: &Host,
    user: &User,
    document: LaunchDocument,
    attached: Vec<OwnedFd>,
    control: UnixStream,
) -> io::Result<Option<UnixStream>> {
    let dir = TaskDir::new(&document.key);
    let Some(_lock) = dir.lock()? else {
        return Err(io::Error::other("another shepherd holds the task's lock"));
    };
    if dir.has_result() {
        return Err(io::Error::other("another launcher has recorded the task's end already"));
    }
    dir.write_launch(&document)?;
    dir.write_host_file(&document)?;
    let mut attached = attached;
    let script = attached.pop_if(|_| document.start.has_script());
    let script = script.map(|memory| spool(host, &dir, &document, memory)).transpose()?;
    let login_limits = unlisted(&host.login_limits, &document);
    let cgroup = Cgroup::create(document.cgroup_parent.as_deref(), &document.key, &document.task_limits);
    let context = Context {
        document,
        rules: host.rules.clone(),
        folder: host.folder.clone(),
        dir,
        script,
        connected: attached.try_into().ok(),
        login_limits,
        boot_id: host.boot_id.clone(),
        cgroup,
        oom_score_adjusted: host.oom_score_adjusted,
        user: user.clone(),
    };
    supervisor::Supervisor::new(&context, control)?.run()
}

fn unlisted(limits: &[LoginLimit], document: &LaunchDocument) -> Vec<LoginLimit> {
    let listed =
        |limit: &LoginLimit| document.limits.iter().any(|other| sys::resource_number(other.resource) == limit.resource);
    limits.iter().copied().filter(|limit| !listed(limit)).collect()
}

/// Copies the script from its memory file to where its user, and nobody else, can read it.
fn spool(host: &Host, dir: &TaskDir, document: &LaunchDocument, memory: OwnedFd) -> io::Result<Script> {
    let name = format!("job_scripts/{}", document.job_number);
    let path = dir.file(&name);
    DirBuilder::new().mode(0o711).create(dir.file("job_scripts"))?;
    let memory = File::from(memory);
    let mut head = vec![0; 4096];
    let count = memory.read_at(&mut head, 0)?;
    head.truncate(count);
    let spooled = fs::OpenOptions::new().write(true).create_new(true).mode(0o500).open(&path)?;
    copy_from_start(&memory, &spooled, &head)?;
    if !host.rules.single_user {
        std::os::unix::fs::fchown(&spooled, Some(document.account.uid), None)?;
    }
    let path = host.folder.join(path).to_string_lossy().into_owned();
    Ok(Script { path, memory: memory.into(), head })
}

/// Copies a file whose beginning was read already, wherever its own offset stands.
fn copy_from_start(from: &File, to: &File, head: &[u8]) -> io::Result<()> {
    let mut chunk = head.to_vec();
    let mut offset = 0;
    while !chunk.is_empty() {
        to.write_all_at(&chunk, offset)?;
        offset += chunk.len() as u64;
        chunk.resize(1 << 16, 0);
        let count = from.read_at(&mut chunk, offset)?;
        chunk.truncate(count);
    }
    Ok(())
}

/// Writes the result of a task whose shepherd is dead, after ending what remains of it.
///
/// Runs in a fork of the launcher. Whoever holds the lock writes, and only where no result is: so once. `released` is the boot in which
/// the task was let go by the journal: in another boot that counts as executed, whatever else is left of it.
///
/// # Errors
/// Those of the task's directory.
pub fn bury(host: &Host, key: TaskKey, released: Option<String>) -> io::Result<()> {
    let dir = TaskDir::new(&key);
    let Some(_lock) = dir.lock()? else { return Ok(()) };
    if dir.read_result().is_some() {
        return Ok(());
    }
    dir.trim()?;
    let exec = dir.read_exec();
    let lost = released.filter(|boot| exec.is_none() && *boot != host.boot_id);
    let executed = exec.is_some() || lost.is_some();
    end_remains(host, &dir, key);
    let document = dir.read_launch();
    if let Some(tmpdir) = document.as_ref().and_then(|document| document.tmpdir.as_ref()) {
        let account = document.as_ref().map(|document| (document.account.uid, document.account.gid));
        if let Some((uid, gid)) = account {
            // What cannot be removed stays, as after any other task.
            let _ = tmpdir::remove(tmpdir, uid, gid, &key);
        }
    }
    let text = "the task's shepherd died before it could start the job".to_owned();
    let failure = Failure { failed: Failed::BEFORE_JOB, text, errno: 0, path: String::new() };
    let ended_boot_ms = sys::boot_ms();
    let started_boot_ms = exec.as_ref().map_or(0, |exec| exec.boot_ms);
    let same_boot = exec.as_ref().is_some_and(|exec| exec.boot_id == host.boot_id);
    dir.write_result(&LaunchResult {
        key,
        cause: if executed { Cause::ShepherdDied } else { Cause::FailedToStart(failure) },
        after: None,
        executed,
        ordered: false,
        limit: None,
        refused_limits: Vec::new(),
        procedures: Vec::new(),
        usage: TaskUsage::default(),
        wallclock_ms: if same_boot { ended_boot_ms.saturating_sub(started_boot_ms) } else { 0 },
        started_boot_ms,
        ended_boot_ms,
        boot_id: exec.map(|exec| exec.boot_id).or(lost).unwrap_or_else(|| host.boot_id.clone()),
        saved_pid: None,
    })?;
    dir.clean_active();
    Ok(())
}

/// Kills every process that carries a mark of the task, until none is left.
fn end_remains(host: &Host, dir: &TaskDir, key: TaskKey) {
    let exec = dir.read_exec().filter(|exec| exec.boot_id == host.boot_id);
    let document = dir.read_launch();
    let entry = marker(&key);
    let marks = crate::proc::Marks {
        session: exec.as_ref().map(|exec| (exec.pid, exec.start_ticks)),
        tracking_gid: document.and_then(|document| document.account.tracking_gid),
        environment: &entry,
    };
    let cgroup = exec.as_ref().and_then(|exec| exec.cgroup.as_deref()).map(Cgroup::at);
    loop {
        if let Some(cgroup) = &cgroup {
            cgroup.kill();
        }
        let left = crate::proc::marked(&marks);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|process| crate::proc::signal(process, libc::SIGKILL));
        // No event tells when a process that is not our child has ended.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
}

/// The last word about a task that has a result.
pub fn ended(dir: &TaskDir) -> Option<Notice> {
    dir.read_result().map(|result| Notice::Ended(Box::new(result)))
}
