//! One task from its launch document to its result, alone: neither agent nor launcher nor master is
//! needed meanwhile.
//!
//! A shepherd is a fork of the launcher without exec. The name service and the user's directories
//! are touched only in its children, so that it cannot be hung by them.

mod acting;
pub mod burial;
mod child;
mod container;
pub mod control;
mod ending;
mod enforcing;
pub mod environment;
mod evidence;
mod peers;
mod plan;
mod probe;
mod remains;
mod report;
mod sampler;
mod saving;
mod setup;
mod streams;
mod supervisor;
mod terminal;
pub(crate) mod tmpdir;

use crate::account::Identity;
use crate::launcher::connection::Connection;
use crate::launcher::groups::FoundGroups;
use crate::launcher::identities::AnswerPipe;
use crate::launcher::rules::Rules;
use crate::sys;
use crate::task_dir::TaskDir;
use control::TaskControl;
use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use proto::id::TaskKey;
use proto::launch::{LaunchDocument, Notice, Request, Start};
use std::cell::{Cell, RefCell};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use terminal::Terminal;

/// The name of the environment entry by which processes of a task are recognised when their
/// shepherd is dead.
pub const MARKER: &str = "GRIDWRIGHT_TASK_KEY";

/// The exit code of a shepherd that ended before it began anything of its job.
pub const NOT_BEGUN: i32 = 3;

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
    /// Where tasks get control groups, and what these can do.
    pub groups: FoundGroups,
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
    /// The terminal of an interactive job, whose end is all three of `connected`.
    terminal: Option<RefCell<Terminal>>,
    login_limits: Vec<LoginLimit>,
    boot_id: String,
    control: TaskControl,
    oom_score_adjusted: bool,
    user: User,
    /// Variables that a procedure of root has added for the job.
    additions: RefCell<Vec<(String, String)>>,
    /// The exit status of the job, for the procedures behind it.
    job_status: Cell<Option<i32>>,
}

/// What is known of the task's user before the name service is asked.
#[derive(Clone)]
pub struct User {
    /// As the name service knew it a moment ago. `None` means that the name service is asked.
    pub identity: Option<Identity>,
    /// Where its answer goes.
    pub teller: AnswerPipe,
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

/// Runs a task in this process, a fork of the launcher, and perhaps further ones of the same user.
/// Never returns.
pub fn run(host: Host, user: User, document: LaunchDocument, attached: Vec<OwnedFd>, control: UnixStream) -> ! {
    let kept = [control.as_raw_fd(), user.teller.descriptor().as_raw_fd()];
    let mut keep: Vec<_> = kept
        .into_iter()
        .chain(attached.iter().map(AsRawFd::as_raw_fd))
        .collect();
    let mut key = document.key;
    let prepared = sys::close_all_except(&mut keep).and_then(|()| sys::become_subreaper());
    if let Err(error) = host.groups.place.shelter() {
        // It works as well from the launcher's group.
        crate::log::line(format_args!(
            "task {}: its shepherd stays in the launcher's group: {error}",
            document.key
        ));
    }
    let mut next = prepared
        .map(|()| Some((document, attached, control)))
        .map_err(TaskError::NotBegun);
    loop {
        next = match next {
            Ok(None) => sys::exit_now(0),
            Ok(Some((document, attached, control))) => {
                key = document.key;
                let left = run_task(&host, &user, document, attached, control);
                left.and_then(|control| control.map_or(Ok(None), |control| Ok(wait_for_next(control)?)))
            }
            Err(error) => {
                let (TaskError::NotBegun(reason) | TaskError::Begun(reason)) = &error;
                crate::log::line(format_args!("task {key}: {reason}"));
                sys::exit_now(if matches!(error, TaskError::NotBegun(_)) {
                    NOT_BEGUN
                } else {
                    1
                })
            }
        };
    }
}

/// The error that ended a shepherd before its task was over.
enum TaskError {
    /// No process of the task had been started.
    NotBegun(io::Error),
    /// One may have been.
    Begun(io::Error),
}

impl From<io::Error> for TaskError {
    fn from(error: io::Error) -> Self {
        TaskError::Begun(error)
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
                let mut wait = [
                    PollFd::new(connection.stream().as_fd(), read),
                    PollFd::new(signals.as_fd(), read),
                ];
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
) -> Result<Option<UnixStream>, TaskError> {
    let (_lock, context) = prepare(host, user, document, attached).map_err(TaskError::NotBegun)?;
    let supervisor = supervisor::Supervisor::new(&context, control).map_err(TaskError::NotBegun)?;
    Ok(supervisor.run()?)
}

fn prepare(
    host: &Host,
    user: &User,
    mut document: LaunchDocument,
    attached: Vec<OwnedFd>,
) -> io::Result<(Flock<File>, Context)> {
    let dir = TaskDir::new(&document.key);
    let Some(lock) = dir.lock()? else {
        return Err(io::Error::other("another shepherd holds the task's lock"));
    };
    if dir.has_result() {
        return Err(io::Error::other("another launcher has recorded the task's end already"));
    }
    dir.write_launch(&document)?;
    dir.reserve()?;
    dir.write_host_file(&document)?;
    let mut attached = attached;
    let script = attached.pop_if(|_| document.start.has_script());
    let script = script.map(|memory| spool(host, &dir, &document, memory)).transpose()?;
    dir.spool()
        .create(&document, script.as_ref().map(|script| script.path.as_str()))?;
    let (connected, terminal) = connect(&document, attached)?;
    let control = TaskControl::create(host, &mut document);
    let login_limits = unlisted(&host.login_limits, &document);
    let context = Context {
        document,
        rules: host.rules.clone(),
        folder: host.folder.clone(),
        dir,
        script,
        connected,
        terminal,
        login_limits,
        boot_id: host.boot_id.clone(),
        control,
        oom_score_adjusted: host.oom_score_adjusted,
        user: user.clone(),
        additions: RefCell::default(),
        job_status: Cell::new(None),
    };
    Ok((lock, context))
}

/// The ends of the streams for the task, and the terminal between them and the session.
type ConnectedStreams = (Option<[OwnedFd; 3]>, Option<RefCell<Terminal>>);

/// The streams of a task that came beside its document. A terminal stands between them and an
/// interactive job that asks for one.
fn connect(document: &LaunchDocument, attached: Vec<OwnedFd>) -> io::Result<ConnectedStreams> {
    let attached: Option<[OwnedFd; 3]> = attached.try_into().ok();
    match (&document.start, attached) {
        (
            Start::Session {
                terminal: Some(size), ..
            },
            Some([input, output, _]),
        ) => {
            let (terminal, slave) = Terminal::make(input, output, *size)?;
            let ends = [slave.try_clone()?, slave.try_clone()?, slave];
            Ok((Some(ends), Some(RefCell::new(terminal))))
        }
        (_, attached) => Ok((attached, None)),
    }
}

fn unlisted(limits: &[LoginLimit], document: &LaunchDocument) -> Vec<LoginLimit> {
    let listed = |limit: &LoginLimit| {
        document
            .limits
            .iter()
            .any(|other| sys::resource_number(other.resource) == limit.resource)
    };
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
    let spooled = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(&path)?;
    copy_from_start(&memory, &spooled, &head)?;
    if !host.rules.single_user {
        std::os::unix::fs::fchown(&spooled, Some(document.account.uid), None)?;
    }
    let path = host.folder.join(path).to_string_lossy().into_owned();
    Ok(Script {
        path,
        memory: memory.into(),
        head,
    })
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

/// The last word about a task that has a result.
pub fn ended(dir: &TaskDir) -> Option<Notice> {
    dir.read_result().map(|result| Notice::Ended(Box::new(result)))
}
