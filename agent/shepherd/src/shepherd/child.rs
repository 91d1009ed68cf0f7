//! The forked child of a shepherd: from root to the user's program.
//!
//! The order matters. As root: the name service, the exec record's file, the cgroup, the groups,
//! rights that a login does not pass on, hard limits that must rise. As the user: temporary
//! directory, working directory, input and output, so that a file system that refuses root is no
//! obstacle. Last, without allocating: limits (lowering them needs no right, and a small address
//! space must not stop the set-up), then execve. What goes wrong travels over a pipe that execve
//! closes.

use super::Context;
use super::container;
use super::environment::{self, Places};
use super::evidence;
use super::plan::{self, Invocation, ScriptPlace};
use super::report::Reporter;
use super::streams::{self, StandardStreams};
use super::terminal;
use super::tmpdir;
use crate::account::{self, Identity};
use crate::proc;
use crate::sys::{self, Program};
use crate::task_dir;
use crate::trusted::TrustedFile;
use caps::CapSet;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, getppid, setgroups, setresgid, setresuid, setsid};
use proto::binding::ProcessorList;
use proto::launch::pairs::Record;
use proto::launch::{BoundValue, ExecRecord, FailedCodes, Failure, Procedure, ProcedureKind, Streams};
use proto::text;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// What a child is to run.
pub enum ChildCommand<'a> {
    /// The job itself.
    Job,
    /// A prolog, epilog or procedure of the parallel environment.
    Procedure(ProcedureKind, &'a Procedure),
    /// A terminate, suspend or resume method.
    Method(&'a str),
    /// A command of a checkpointing environment, for the shell.
    Checkpoint(&'a str),
    /// Whether standard error says behind so many bytes that memory was missing: exit code 0 if so.
    Look {
        /// The length that the file had before the job.
        from: u64,
    },
}

impl ChildCommand<'_> {
    /// Whether it acts on a job that runs, which may be stopped.
    fn is_beside_job(&self) -> bool {
        match self {
            ChildCommand::Job | ChildCommand::Procedure(..) => false,
            ChildCommand::Method(_) | ChildCommand::Checkpoint(_) | ChildCommand::Look { .. } => true,
        }
    }

    /// Milliseconds from fork until the program runs. The name service and the user's file systems
    /// answer within them.
    pub fn setup_ms(&self) -> u64 {
        match self {
            ChildCommand::Job | ChildCommand::Procedure(..) | ChildCommand::Method(_) | ChildCommand::Checkpoint(_) => {
                60_000
            }
            ChildCommand::Look { .. } => LOOK_MS,
        }
    }
}

/// Milliseconds after which a look at the end of standard error is killed. A look that hangs in the
/// kernel holds up the result, and the slot, for 70 s more: the time that a main process and what
/// is left of a task may take to end.
pub const LOOK_MS: u64 = 5_000;

/// Runs the errand in this process. Never returns.
pub fn run(context: &Context, errand: &ChildCommand<'_>, reporter: OwnedFd, shepherd: i32) -> ! {
    // The reporter moves out of the way of the numbers that a script may need.
    let reporter = Reporter::new(sys::duplicate_above(reporter.as_raw_fd(), 10).unwrap_or(reporter));
    if let ChildCommand::Look { from } = errand {
        let said = look(context, errand, *from, &reporter);
        sys::exit_now(i32::from(!said.unwrap_or(false)));
    }
    match prepare(context, errand, &reporter) {
        Ok(ready) => ready.execute(context, &reporter, shepherd),
        Err(failure) => reporter.failed(&failure),
    }
    sys::exit_now(127)
}

/// Reads the end of standard error with the rights of the task's user. The time of the set-up ends
/// behind it.
fn look(context: &Context, errand: &ChildCommand<'_>, from: u64, reporter: &Reporter) -> Result<bool, Failure> {
    setsid().map_err(|errno| unprepared("cannot make a session", errno.into()))?;
    let identity = identity_for(context, errand)?;
    become_user(context, &identity, true)?;
    reporter.at_users_files();
    // A directory that cannot be entered holds no file that the job wrote.
    let is_there = enter(context, &identity)?.is_ok() && context.connected.is_none();
    let file = if is_there {
        streams::error_file(&context.document.streams, &identity)
    } else {
        None
    };
    let said = file.is_some_and(|file| evidence::says_memory_is_missing(&file, from));
    reporter.executing();
    Ok(said)
}

/// Everything that can be made before the limits are in force.
struct PreparedChild {
    program: Program,
    streams: StandardStreams,
    script: Option<OwnedFd>,
    exec: Option<File>,
    record: Vec<u8>,
    exec_failure: Vec<u8>,
}

/// Binds the job to its processors. A job that cannot be bound runs on all of them, as in 8.1.9.
fn bind(context: &Context, reporter: &Reporter) {
    let Some(processors) = &context.document.processors else {
        return;
    };
    let list: Result<ProcessorList, _> = processors.parse();
    let is_bound = list.is_ok_and(|list| sys::set_affinity(list.numbers()).is_ok());
    if !is_bound {
        reporter.binding_refused();
    }
}

fn prepare(context: &Context, errand: &ChildCommand<'_>, reporter: &Reporter) -> Result<PreparedChild, Failure> {
    setsid().map_err(|errno| unprepared("cannot make a session", errno.into()))?;
    let identity = identity_for(context, errand)?;
    let is_job = matches!(errand, ChildCommand::Job);
    if is_job {
        own_terminal(context, &identity)?;
    }
    let exec = if is_job { Some(open_exec(context)?) } else { None };
    let record = if is_job {
        exec_record(context, &identity).encode()
    } else {
        Vec::new()
    };
    let is_owner = identity.uid == context.document.account.uid;
    let opened = if is_owner {
        None
    } else {
        reporter.at_users_files();
        Some(open_as_owner(context, errand, reporter)?)
    };
    become_user(context, &identity, errand.is_beside_job())?;
    if is_owner {
        umask(Mode::from_bits_truncate(context.document.umask));
    }
    let planned = context.document.tmpdir.as_ref().filter(|_| is_owner);
    let made = planned
        .map(|planned| tmpdir::create(planned, identity.uid, &context.document.key))
        .transpose()?;
    let (streams, places) = match opened {
        Some(opened) => opened,
        None => {
            reporter.at_users_files();
            enter_and_open(context, &identity, errand, reporter)?
        }
    };
    if is_job && let Some(bytes) = evidence::length_of_file(&streams.stderr) {
        reporter.error_file(bytes);
    }
    let (invocation, script) = invocation_for(context, errand, &places, &identity)?;
    let mut environment = environment::process_environment(context, &identity, &places);
    if let (Some(planned), Some(made)) = (planned, &made) {
        environment::name_directory(&mut environment, planned, made);
    }
    let invocation = if is_job {
        container::around_job(context, invocation, &environment, &places.folder, script.is_some())?
    } else {
        invocation
    };
    let program = plan::program(&invocation, &environment, root_file(context, errand)?)?;
    let streams = with_script_input(context, &invocation, streams)?;
    let exec_failure = exec_failure(&invocation).encode();
    Ok(PreparedChild {
        program,
        streams,
        script,
        exec,
        record,
        exec_failure,
    })
}

/// Gives the job its terminal.
fn own_terminal(context: &Context, identity: &Identity) -> Result<(), Failure> {
    let (Some(_), Some([slave, ..])) = (&context.terminal, &context.connected) else {
        return Ok(());
    };
    terminal::give_to(slave, identity)
        .and_then(|()| sys::terminal::take_terminal(slave.as_raw_fd()))
        .map_err(|error| unprepared("cannot give the job its terminal", error))
}

impl PreparedChild {
    fn execute(mut self, context: &Context, reporter: &Reporter, shepherd: i32) {
        if let Err(error) = self.write_record().and_then(|()| self.place_descriptors()) {
            return reporter.failed(&unprepared("cannot finish the set-up", error));
        }
        if self.exec.is_some() {
            bind(context, reporter);
        }
        for (index, limit) in context.document.limits.iter().enumerate() {
            if let Err(errno) = sys::set_limit(limit.resource, limit.soft, limit.hard) {
                reporter.limit_refused(index, errno as i32);
            }
        }
        for limit in &context.login_limits {
            // A login's own limits are a courtesy: a host that does not let us set them keeps what
            // is in force.
            let _ = sys::set_raw_limit(limit.resource, limit.soft, limit.hard);
        }
        if context.document.security.no_new_privs
            && let Err(error) = sys::set_no_new_privs()
        {
            return reporter.step_failed(error.raw_os_error().unwrap_or(0));
        }
        let bound = sys::set_parent_death_signal(libc::SIGKILL).is_ok() && getppid().as_raw() == shepherd;
        let unblocked = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).is_ok();
        if !bound || !unblocked {
            return reporter.step_failed(0);
        }
        sys::default_signals();
        reporter.executing();
        let errno = self.program.execute();
        reporter.exec_failed(errno as i32, &self.exec_failure);
    }

    /// Puts 0, 1, 2 and perhaps the script at 3 in place and marks all others for closing.
    fn place_descriptors(&self) -> io::Result<()> {
        sys::close_on_exec_from(3)?;
        let StandardStreams { stdin, stdout, stderr } = &self.streams;
        for (fd, to) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            sys::place(fd.as_raw_fd(), to)?;
        }
        self.script
            .as_ref()
            .map_or(Ok(()), |script| sys::place(script.as_raw_fd(), 3))
    }

    fn write_record(&self) -> io::Result<()> {
        self.exec
            .as_ref()
            .map_or(Ok(()), |record| task_dir::write_exec(record, &self.record))
    }
}

fn identity_for(context: &Context, errand: &ChildCommand<'_>) -> Result<Identity, Failure> {
    let account = &context.document.account;
    if context.rules.single_user {
        return task_identity(context);
    }
    let named = match errand {
        ChildCommand::Job | ChildCommand::Method(_) | ChildCommand::Checkpoint(_) | ChildCommand::Look { .. } => None,
        ChildCommand::Procedure(_, procedure) => procedure.user.as_deref().filter(|user| *user != account.user),
    };
    let Some(user) = named else {
        return task_identity(context);
    };
    let identity = account::by_name(user).map_err(of_procedure)?;
    if user != "root" {
        let allowed = context.rules.check_uid(user, identity.uid);
        allowed.map_err(|denial| refused(denial.to_string()))?;
        if identity.uid == 0 {
            return Err(refused(format!(
                "{user}@: is root by another name; write root@ and list the command"
            )));
        }
    }
    Ok(identity)
}

/// The task's own user: as the launcher remembers it, else as the name service says.
fn task_identity(context: &Context) -> Result<Identity, Failure> {
    let account = &context.document.account;
    let remembered = &context.user.identity;
    let identity = match remembered.as_ref().filter(|identity| identity.uid == account.uid) {
        Some(identity) => identity.clone(),
        None => {
            let asked = if context.rules.single_user {
                account::own(account)
            } else {
                account::by_name(&account.user)
            }?;
            context.user.teller.tell(&asked);
            asked
        }
    };
    if context.rules.single_user {
        Ok(identity)
    } else {
        account::of_task(identity, account)
    }
}

fn open_exec(context: &Context) -> Result<File, Failure> {
    context
        .dir
        .open_record()
        .map_err(|error| unprepared("cannot write the exec record", error))
}

fn exec_record(context: &Context, identity: &Identity) -> ExecRecord {
    let pid = std::process::id() as i32;
    ExecRecord {
        key: context.document.key,
        pid,
        start_ticks: proc::stat(pid).map_or(0, |stat| stat.start_ticks),
        boot_id: context.boot_id.clone(),
        uid: identity.uid,
        tracking_gid: context.document.account.tracking_gid,
        boot_ms: sys::boot_ms(),
        cgroup: context
            .control
            .group()
            .and_then(|group| group.path())
            .map(|path| path.to_string_lossy().into_owned()),
    }
}

/// Enters the task's group, and gives up what root has and what a login would not pass on.
fn become_user(context: &Context, identity: &Identity, is_beside: bool) -> Result<(), Failure> {
    let document = &context.document;
    let entered = context.control.enter(is_beside);
    // An ordinary user's group may be one that no process can be moved to: the task is tracked as a
    // tree of processes then.
    if !context.rules.single_user {
        entered.map_err(|error| unprepared("cannot enter the task's control group", error))?;
    }
    if !is_beside {
        context.control.check_wall(document)?;
    }
    if context.oom_score_adjusted {
        // Fails only downwards, and then the launcher's own value stays.
        let _ = fs::write("/proc/self/oom_score_adj", "0");
    }
    match sys::set_nice(document.nice) {
        // Only root goes below the value that the launcher was started with; it has said so, and
        // the task keeps that value.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        other => other.map_err(|error| unprepared("cannot set the nice value", error))?,
    }
    if context.rules.single_user {
        return Ok(());
    }
    raise_hard_limits(context);
    drop_rights(document.security.bounding_set)?;
    let tracking = document.account.tracking_gid.map(Gid::from_raw);
    let groups: Vec<Gid> = identity.groups.iter().copied().chain(tracking).collect();
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    setgroups(&groups).map_err(|errno| unprepared("cannot set the groups", errno.into()))?;
    setresgid(gid, gid, gid).map_err(|errno| unprepared("cannot set the group", errno.into()))?;
    setresuid(uid, uid, uid).map_err(|errno| unprepared("cannot set the user", errno.into()))?;
    let kept_root = !uid.is_root() && nix::unistd::setuid(Uid::from_raw(0)).is_ok();
    assert!(
        !kept_root && Uid::effective() == uid && Uid::current() == uid,
        "the rights of root must be gone"
    );
    Ok(())
}

/// Raising a hard limit needs the right to it, so it comes before the change of uid. A refusal is
/// reported later, when the whole limit is set.
fn raise_hard_limits(context: &Context) {
    for limit in &context.document.limits {
        let resource = sys::resource_number(limit.resource);
        let (soft, hard) = sys::limit_in_force(resource);
        let BoundValue::Finite(wanted) = limit.hard else {
            continue;
        };
        if wanted > hard {
            let _ = sys::set_raw_limit(resource, soft, wanted);
        }
    }
}

/// Empties the inheritable and ambient sets, and drops from the bounding set what the queue does
/// not keep.
fn drop_rights(bounding_set: Option<u64>) -> Result<(), Failure> {
    let cannot =
        |error: caps::errors::CapsError| unprepared("cannot drop capabilities", io::Error::other(error.to_string()));
    caps::clear(None, CapSet::Ambient).map_err(cannot)?;
    caps::clear(None, CapSet::Inheritable).map_err(cannot)?;
    let Some(kept) = bounding_set else { return Ok(()) };
    for capability in caps::read(None, CapSet::Bounding).map_err(cannot)? {
        if kept & capability.bitmask() == 0 {
            caps::drop(None, CapSet::Bounding, capability).map_err(cannot)?;
        }
    }
    Ok(())
}

/// The directory and files of a task for a procedure of another user, with the rights of the task's
/// own user: that user can put a link anywhere in the way.
fn open_as_owner(
    context: &Context,
    errand: &ChildCommand<'_>,
    reporter: &Reporter,
) -> Result<(StandardStreams, Places), Failure> {
    let nowhere = || {
        nix::unistd::chdir("/").map_err(|errno| no_cwd("/", errno.into()))?;
        streams::nowhere("/")
    };
    let Ok(owner) = identity_for(context, &ChildCommand::Job) else {
        return nowhere();
    };
    setgroups(&owner.groups).map_err(|errno| unprepared("cannot set the groups", errno.into()))?;
    sys::set_file_ids(owner.uid, owner.gid);
    let opened = if sys::file_uid() == owner.uid {
        enter_and_open(context, &owner, errand, reporter)
    } else {
        nowhere()
    };
    sys::set_file_ids(Uid::effective().as_raw(), Gid::effective().as_raw());
    opened
}

/// A job needs its working directory and files. A procedure runs without them, so that an epilog
/// follows any failure.
fn enter_and_open(
    context: &Context,
    identity: &Identity,
    errand: &ChildCommand<'_>,
    reporter: &Reporter,
) -> Result<(StandardStreams, Places), Failure> {
    let is_job = matches!(errand, ChildCommand::Job);
    let folder = match enter(context, identity)? {
        Ok(folder) => folder,
        Err(failure) if is_job => return Err(failure),
        Err(_) => "/".to_owned(),
    };
    if let Some(connected) = &context.connected {
        return if is_job {
            streams::given(connected, &folder)
        } else {
            streams::nowhere(&folder)
        };
    }
    let waits = || wait_as_job(reporter);
    let waits: Option<streams::PipeHook<'_>> = if is_job { Some(&waits) } else { None };
    match streams::open(streams_of(context, errand), identity, &folder, waits) {
        Err(_) if !is_job => streams::nowhere(&folder),
        other => other,
    }
}

/// Enters the task's working directory and returns its path. Where that fails, the process enters
/// the root directory instead and returns the failure.
fn enter(context: &Context, identity: &Identity) -> Result<Result<String, Failure>, Failure> {
    let folder = match context.document.working_directory.as_str() {
        "" => identity.home.clone(),
        path => plan::expand(path, identity),
    };
    let Err(errno) = nix::unistd::chdir(text::to_os(&folder).as_os_str()) else {
        return Ok(Ok(folder));
    };
    nix::unistd::chdir("/").map_err(|errno| no_cwd("/", errno.into()))?;
    Ok(Err(no_cwd(&folder, errno.into())))
}

/// From here on the child stands for the job: signals end it, and so does the end of its shepherd.
fn wait_as_job(reporter: &Reporter) {
    // Both are set again before execve, where a refusal counts.
    let _ = sys::set_parent_death_signal(libc::SIGKILL);
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    reporter.waits_for_peer();
}

/// The files that a process of the task writes to. The start and stop procedures of the parallel
/// environment write to their own files. All other processes write to the files of the job.
fn streams_of<'a>(context: &'a Context, errand: &ChildCommand<'_>) -> &'a Streams {
    let document = &context.document;
    match errand {
        ChildCommand::Procedure(ProcedureKind::PeStart | ProcedureKind::PeStop, _) => {
            document.pe_streams.as_ref().unwrap_or(&document.streams)
        }
        ChildCommand::Job
        | ChildCommand::Procedure(..)
        | ChildCommand::Method(_)
        | ChildCommand::Checkpoint(_)
        | ChildCommand::Look { .. } => &document.streams,
    }
}

fn invocation_for(
    context: &Context,
    errand: &ChildCommand<'_>,
    places: &Places,
    identity: &Identity,
) -> Result<(Invocation, Option<OwnedFd>), Failure> {
    let given = environment::given(context);
    let path_variable = environment::search_path(&given);
    match errand {
        ChildCommand::Job => {
            let (place, kept) = place_script(context)?;
            Ok((
                plan::invocation(
                    &context.document.start,
                    place.as_ref(),
                    path_variable,
                    account::shell_of(identity),
                )?,
                kept,
            ))
        }
        ChildCommand::Procedure(_, procedure) => {
            let merge = streams_of(context, errand).merge;
            Ok((
                plan::procedure_line(&procedure.command, places, merge, path_variable)?,
                None,
            ))
        }
        ChildCommand::Method(command) => Ok((plan::command_line(command, path_variable)?, None)),
        ChildCommand::Checkpoint(command) => Ok((plan::shell_line(command), None)),
        ChildCommand::Look { .. } => Err(refused("nothing is executed to look at a file".into())),
    }
}

/// The spooled script if the user can reach it; else its memory file, kept open as descriptor 3.
/// Neither is executed itself, so a file system mounted noexec is no obstacle.
fn place_script(context: &Context) -> Result<(Option<ScriptPlace>, Option<OwnedFd>), Failure> {
    let Some(script) = &context.script else {
        return Ok((None, None));
    };
    let place = |path: &str| ScriptPlace {
        path: path.to_owned(),
        head: script.head.clone(),
    };
    if File::open(&script.path).is_ok() {
        return Ok((Some(place(&script.path)), None));
    }
    let kept = script
        .memory
        .try_clone()
        .map_err(|error| unprepared("cannot keep the script open", error))?;
    Ok((Some(place("/dev/fd/3")), Some(kept)))
}

fn with_script_input(
    context: &Context,
    invocation: &Invocation,
    streams: StandardStreams,
) -> Result<StandardStreams, Failure> {
    let Some(script) = context.script.as_ref().filter(|_| invocation.script_on_stdin) else {
        return Ok(streams);
    };
    let cannot = |error| unprepared("cannot read the script from standard input", error);
    let stdin = match File::open(&script.path) {
        Ok(file) => file.into(),
        Err(_) => script.memory.try_clone().map_err(cannot)?,
    };
    Ok(StandardStreams { stdin, ..streams })
}

/// The file of a procedure that root runs: it and the way to it must be root's.
fn root_file(context: &Context, errand: &ChildCommand<'_>) -> Result<Option<TrustedFile>, Failure> {
    let ChildCommand::Procedure(_, Procedure { user, command, .. }) = errand else {
        return Ok(None);
    };
    if user.as_deref() != Some("root") || context.rules.single_user {
        return Ok(None);
    }
    let path = command.split_ascii_whitespace().next().unwrap_or_default();
    TrustedFile::open(path, &[0])
        .map(Some)
        .map_err(|error| refused(format!("root@{error}")))
}

fn exec_failure(invocation: &Invocation) -> Failure {
    let Invocation { what, .. } = invocation;
    let path = what.clone();
    Failure {
        failed: FailedCodes::NO_SHELL,
        text: format!("cannot execute {what:?}"),
        errno: 0,
        path,
    }
}

/// Blames the host: these steps are the same for every job.
fn unprepared(what: &str, error: io::Error) -> Failure {
    Failure::of_host(format!("{what}: {error}"), error.raw_os_error().unwrap_or(0))
}

/// A procedure that its host does not run. The shepherd replaces the code by the one of the kind of
/// procedure.
fn refused(text: String) -> Failure {
    Failure {
        failed: FailedCodes::PROLOG,
        text,
        errno: 0,
        path: String::new(),
    }
}

/// The account of a procedure is the administrator's choice, unlike the one of the task.
fn of_procedure(failure: Failure) -> Failure {
    if failure.is_hosts_fault() {
        failure
    } else {
        refused(failure.text)
    }
}

fn no_cwd(path: &str, error: io::Error) -> Failure {
    Failure {
        failed: FailedCodes::NO_CWD,
        text: format!("error: can't chdir to {path}: {error}"),
        errno: error.raw_os_error().unwrap_or(0),
        path: path.to_owned(),
    }
}
