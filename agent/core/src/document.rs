//! From a start order to a launch document: what the launcher needs to run one task.

use crate::binding::{HostFileCores, TaskCores};
use crate::environment::{Paths, environment};
use crate::host_paths::HostPaths;
use crate::substitute::{substitute, substitute_in_path};
use proto::amount::Amount;
use proto::id::HostName;
use proto::job::{GrantedSlots, HostPath, JobSpec, Program, SessionSpec};
use proto::launch::{
    Account, BoundValue, Checkpointing, LaunchDocument, Method, OutputPath, Procedure, ProcessLimit, Resource,
    Security, SessionShell, Start, StartMode, Streams, TaskLimits, Termination, TmpDir,
};
use proto::limit::{LimitKind, LimitSet};
use proto::wire::agent::{AgentConfig, CheckpointOrder, SlaveOrder, StartOrder};

/// Seconds after which a prolog, epilog or parallel environment procedure is ended.
const PROCEDURE_TIMEOUT_S: u32 = 120;
/// Milliseconds between two samples of a task where the master does not tell `PDC_INTERVAL`.
const SAMPLE_INTERVAL_MS: u32 = 1000;
/// Processes that a task may have at one time where `H_MAXPROC` says nothing: more than jobs need,
/// and fewer than a host can have. So a task that only makes processes does not take the host with
/// it.
const MAX_PROCESSES: u64 = 10_000;
/// The file mode creation mask of jobs.
const UMASK: u32 = 0o022;
/// SIGUSR1 and SIGUSR2 announce suspension and end.
const SIGUSR1: i32 = 10;
const SIGUSR2: i32 = 12;

/// The launch document of one task.
pub fn launch_document(
    host_paths: &HostPaths,
    config: &AgentConfig,
    order: &StartOrder,
    spec: &JobSpec,
) -> LaunchDocument {
    let texts = Texts::from_order(host_paths, order, spec);
    let tmp_name = tmp_name(order, &texts);
    let tmpdir = format!("{}/{tmp_name}", order.queue.tmpdir);
    let directory = working_directory(host_paths, spec, &texts);
    let [streams, pe_streams] = ["", "p"].map(|letter| streams(host_paths, order, spec, &texts, letter));
    let shell = for_host(&spec.shell, &host_paths.host).map_or_else(|| order.queue.shell.clone(), str::to_owned);
    let host_file = host_file(host_paths, order);
    let cores = TaskCores::new(host_paths, order, spec);
    let binding = cores.variable();
    let paths = Paths {
        tmpdir: &tmpdir,
        shell: &shell,
        host_file: &host_file,
        binding: &binding,
    };
    let devices = order.devices.as_deref().cloned().unwrap_or_default();
    // Procedures of the queue are for the job itself.
    let of_job = |text: &Option<String>| {
        let text = text.as_deref().filter(|_| order.slave.is_none());
        procedure(text, &texts, config)
    };
    LaunchDocument {
        key: order.key,
        job_number: order.number.0,
        job_name: spec.name.clone(),
        account: account(spec),
        start: start(order, spec, &shell, &texts),
        environment: environment(host_paths, config, order, spec, paths),
        working_directory: directory,
        tmpdir: Some(TmpDir {
            base: order.queue.tmpdir.clone(),
            name: tmp_name,
        }),
        umask: UMASK,
        nice: order.queue.nice,
        limits: process_limits(&order.limits),
        task_limits: task_limits(&order.limits),
        termination: termination(config, order, spec, &texts),
        prolog: of_job(&order.queue.prolog),
        epilog: of_job(&order.queue.epilog),
        pe_start: of_job(&order.pe_start),
        pe_stop: of_job(&order.pe_stop),
        pe_streams: order.pe.as_ref().map(|_| pe_streams),
        security: Security::default(),
        cgroup_parent: host_paths
            .cgroup_parent
            .clone()
            .filter(|_| config.use_cgroups != Some(false)),
        own_group: Some(config.use_cgroups != Some(false)),
        vmem: Some(config.vmem),
        host_file: order.pe.as_ref().map(|_| host_lines(order, spec)),
        keep_active: config.keep_active,
        sample_interval_ms: config.sample_interval_ms.unwrap_or(SAMPLE_INTERVAL_MS),
        checkpoint: order.checkpoint.as_ref().map(|of| checkpointing(of, &texts)),
        processors: cores.affinity(),
        devices_granted: devices.granted.iter().map(ToString::to_string).collect(),
        devices_withheld: devices.withheld,
        container: order.container.as_deref().filter(|_| order.slave.is_none()).cloned(),
        streams,
    }
}

/// The name of the temporary directory. Slave tasks of one host have one each, which goes with it.
fn tmp_name(order: &StartOrder, texts: &Texts) -> String {
    let slave = order
        .slave
        .as_ref()
        .map_or_else(String::new, |_| format!(".{}", order.key.pe_task));
    format!("{}.{}.{}{slave}", order.number, order.key.task, texts.queue)
}

/// The directory on this host. An empty text means the home directory.
fn working_directory(host_paths: &HostPaths, spec: &JobSpec, texts: &Texts) -> String {
    let mapped = for_host(&spec.directory_on, &host_paths.host).map(str::to_owned);
    mapped
        .or_else(|| spec.directory.clone())
        .map_or_else(String::new, |path| texts.in_path(&path))
}

/// What pseudo variables of file staging stand for where no file is staged, as ever
/// (`delegated_file_staging` is refused).
const NO_STAGING: [(&str, &str); 12] = [
    ("fs_stdin_host", "\"\""),
    ("fs_stdin_path", "\"\""),
    ("fs_stdin_tmp_path", "\"\""),
    ("fs_stdin_file_staging", "0"),
    ("fs_stdout_host", "\"\""),
    ("fs_stdout_path", "\"\""),
    ("fs_stdout_tmp_path", "\"\""),
    ("fs_stdout_file_staging", "0"),
    ("fs_stderr_host", "\"\""),
    ("fs_stderr_path", "\"\""),
    ("fs_stderr_tmp_path", "\"\""),
    ("fs_stderr_file_staging", "0"),
];

/// Texts that stand for pseudo variables.
struct Texts {
    number: String,
    task: String,
    name: String,
    user: String,
    host: String,
    queue: String,
    pe: String,
    slots: String,
    root: String,
    cell: String,
    host_file: String,
}

impl Texts {
    fn from_order(host_paths: &HostPaths, order: &StartOrder, spec: &JobSpec) -> Self {
        Self {
            number: order.number.to_string(),
            task: order
                .array
                .map_or_else(|| "0".to_owned(), |_| order.key.task.to_string()),
            name: spec.name.clone(),
            user: spec.owner.user.to_string(),
            host: host_paths.host.to_string(),
            queue: queue(order),
            pe: order.pe.as_ref().map(ToString::to_string).unwrap_or_default(),
            slots: order
                .granted
                .iter()
                .map(|granted| granted.slots)
                .sum::<u32>()
                .to_string(),
            root: host_paths.root.clone(),
            cell: host_paths.cell_name.clone(),
            host_file: host_file(host_paths, order),
        }
    }

    /// A path of `-o`, `-e`, `-i` or `-wd`: `$HOME` stays for the shepherd.
    fn in_path(&self, text: &str) -> String {
        let table = [
            ("JOB_ID", self.number.as_str()),
            ("JOB_NAME", &self.name),
            ("TASK_ID", &self.task),
            ("HOSTNAME", &self.host),
            ("USER", &self.user),
        ];
        substitute_in_path(text, &table)
    }

    /// A command of a checkpointing environment (checkpoint(5)). `job_pid` is the process that the
    /// state is of, or `$job_pid` for the shepherd to replace.
    fn in_checkpoint_command(&self, text: &str, checkpoint: &CheckpointOrder, job_pid: &str) -> String {
        let table = [
            ("host", self.host.as_str()),
            ("ja_task_id", &self.task),
            ("job_owner", &self.user),
            ("job_id", &self.number),
            ("job_name", &self.name),
            ("queue", &self.queue),
            ("job_pid", job_pid),
            ("ckpt_dir", &checkpoint.directory),
            ("ckpt_signal", &checkpoint.signal),
            ("sge_cell", &self.cell),
            ("sge_root", &self.root),
        ];
        substitute(text, &table)
    }

    /// A prolog, an epilog, a starter, or a procedure of a parallel environment.
    fn in_command(&self, text: &str) -> String {
        self.with_job_pid(text, &[])
    }

    /// A method of a queue, which acts on the process `$job_pid`: the shepherd replaces that.
    fn in_method(&self, text: &str) -> String {
        self.with_job_pid(text, &[("job_pid", "$job_pid")])
    }

    fn with_job_pid(&self, text: &str, job_pid: &[(&str, &str)]) -> String {
        let table = [
            ("host", self.host.as_str()),
            ("ja_task_id", &self.task),
            ("job_owner", &self.user),
            ("job_id", &self.number),
            ("job_name", &self.name),
            ("queue", &self.queue),
            ("pe", &self.pe),
            ("pe_slots", &self.slots),
            ("pe_hostfile", &self.host_file),
            // `processors` of queue_conf(5) is refused.
            ("processors", "UNDEFINED"),
            ("sge_cell", &self.cell),
            ("sge_root", &self.root),
        ];
        // In one pass: the owner of a job chooses its name, which may look like a variable.
        substitute(text, &[table.as_slice(), &NO_STAGING, job_pid].concat())
    }
}

/// The queue in which the task runs on this host.
pub(crate) fn queue(order: &StartOrder) -> String {
    let of_slave = order.slave.as_ref().map(|slave| &slave.instance);
    let instance = of_slave.or_else(|| order.granted.first().map(|granted| &granted.instance));
    instance.map(|instance| instance.queue.to_string()).unwrap_or_default()
}

/// The path of `PE_HOSTFILE`; empty for a serial job.
fn host_file(host_paths: &HostPaths, order: &StartOrder) -> String {
    order
        .pe
        .as_ref()
        .map(|_| format!("{}/pe_hostfile", host_paths.task_directory(&order.key)))
        .unwrap_or_default()
}

/// `PE_HOSTFILE` (sge_pe(5)): each queue instance that was granted for tasks, with its slots and
/// the cores of its host that the environment is to bind.
fn host_lines(order: &StartOrder, spec: &JobSpec) -> String {
    let cores = HostFileCores::new(order, spec);
    let line = |granted: &GrantedSlots| {
        let GrantedSlots { instance, slots } = granted;
        let cores = cores.column(&instance.host);
        format!("{} {slots} {instance} {cores}\n", instance.host)
    };
    order
        .granted
        .iter()
        .filter(|granted| granted.slots > 0)
        .map(line)
        .collect()
}

fn account(spec: &JobSpec) -> Account {
    Account {
        user: spec.owner.user.to_string(),
        uid: spec.owner.uid,
        gid: spec.owner.gid,
        group: spec.owner.group.clone(),
        tracking_gid: None,
    }
}

/// The path meant for this host: one that names it, else one that names none.
fn for_host<'a>(paths: &'a [HostPath], host: &HostName) -> Option<&'a str> {
    let names = |path: &&HostPath| {
        path.host
            .as_ref()
            .is_some_and(|named| named == host || named.short() == host.short())
    };
    let own = paths
        .iter()
        .find(names)
        .or_else(|| paths.iter().find(|path| path.host.is_none()));
    own.map(|path| path.path.as_str())
}

/// The files of a job's output and input. With the letter `p`, the output files of the procedures
/// of its parallel environment, whose names have `po` and `pe` where the job's have `o` and `e`
/// (sge_pe(5)).
fn streams(host_paths: &HostPaths, order: &StartOrder, spec: &JobSpec, texts: &Texts, letter: &str) -> Streams {
    let task = order.array.map_or_else(String::new, |_| format!(".{}", order.key.task));
    let output = |paths: &[HostPath], kind: char| OutputPath {
        path: for_host(paths, &host_paths.host)
            .map(|path| texts.in_path(path))
            .unwrap_or_default(),
        default_name: format!("{}.{letter}{kind}{}{task}", spec.name, order.number),
    };
    Streams {
        stdin: for_host(&spec.stdin, &host_paths.host).map(|path| texts.in_path(path)),
        stdout: output(&spec.stdout, 'o'),
        stderr: output(&spec.stderr, 'e'),
        merge: spec.merge_stderr,
    }
}

/// The shell that runs the commands of checkpointing environments, as in 8.1.9.
const CHECKPOINT_SHELL: &str = "/bin/sh";

fn start(order: &StartOrder, spec: &JobSpec, shell: &str, texts: &Texts) -> Start {
    if let Some((checkpoint, restart)) = order
        .checkpoint
        .as_ref()
        .and_then(|order| Some((order, order.restart.as_ref()?)))
    {
        let pid = checkpoint.saved_pid.unwrap_or(0).to_string();
        let command = texts.in_checkpoint_command(restart, checkpoint, &pid);
        return Start::Command {
            shell: CHECKPOINT_SHELL.to_owned(),
            login: false,
            argv: vec![command],
        };
    }
    if let Some(SlaveOrder { spec, .. }) = &order.slave {
        let shell = spec.use_shell.then(|| shell.to_owned());
        return Start::Connected {
            shell,
            has_input: spec.has_input,
            argv: spec.command.clone(),
        };
    }
    if let Some(session) = &spec.session {
        return session_start(session, order, spec, texts);
    }
    if let Some(starter) = &order.queue.starter_method {
        return by_starter(texts.in_command(starter), order, spec);
    }
    let login = is_login_shell(order, shell);
    let shell = shell.to_owned();
    match &spec.program {
        Program::Script { .. } | Program::Stored { .. } => {
            let mode = start_mode(order);
            // As in 8.1.9: under `unix_behavior` a script has no login shell, but a command has
            // one.
            let login = login && mode != StartMode::UnixBehavior;
            Start::Script {
                shell,
                login,
                mode,
                args: spec.args.clone(),
            }
        }
        Program::Command { command } => {
            let argv = std::iter::once(command).chain(&spec.args).cloned().collect();
            if spec.use_shell.unwrap_or(true) {
                Start::Command { shell, login, argv }
            } else {
                Start::Direct { argv }
            }
        }
    }
}

/// An interactive job: its command runs in the shell of its account or, if the queue has one, in
/// its starter. A login does not, and nor does `-noshell`.
fn session_start(session: &SessionSpec, order: &StartOrder, spec: &JobSpec, texts: &Texts) -> Start {
    let made = |shell, script_at, argv| Start::Session {
        shell,
        has_input: session.has_input,
        terminal: session.terminal,
        script_at,
        argv,
    };
    if session.is_login {
        return made(SessionShell::Login, None, Vec::new());
    }
    let (command, has_script) = match &spec.program {
        Program::Command { command } => (command, false),
        Program::Script { path, .. } | Program::Stored { path, .. } => (path, true),
    };
    let words = [command].into_iter().chain(&spec.args).cloned();
    let is_direct = spec.use_shell == Some(false);
    match order.queue.starter_method.as_deref().filter(|_| !is_direct) {
        Some(starter) => {
            let argv = [texts.in_command(starter)].into_iter().chain(words).collect();
            made(SessionShell::None, has_script.then_some(1), argv)
        }
        None if is_direct => made(SessionShell::None, has_script.then_some(0), words.collect()),
        None => made(SessionShell::Command, has_script.then_some(0), words.collect()),
    }
}

/// The starter of the queue in place of the shell: it is given the script or the command, and its
/// arguments.
fn by_starter(starter: String, order: &StartOrder, spec: &JobSpec) -> Start {
    match &spec.program {
        Program::Script { .. } | Program::Stored { .. } => {
            let stdin = start_mode(order) == StartMode::ScriptFromStdin;
            Start::Starter {
                starter,
                stdin,
                args: spec.args.clone(),
            }
        }
        Program::Command { command } => Start::Direct {
            argv: [&starter, command].into_iter().chain(&spec.args).cloned().collect(),
        },
    }
}

/// Whether the cell lists a shell in `login_shells`.
pub(crate) fn is_login_shell(order: &StartOrder, shell: &str) -> bool {
    let name = shell.rsplit('/').next().unwrap_or(shell);
    order.queue.login_shells.iter().any(|known| known == name)
}

fn start_mode(order: &StartOrder) -> StartMode {
    match order.queue.shell_start_mode.as_str() {
        "script_from_stdin" => StartMode::ScriptFromStdin,
        "unix_behavior" => StartMode::UnixBehavior,
        _ => StartMode::PosixCompliant,
    }
}

fn bound(amount: Amount) -> BoundValue {
    match amount.finite().and_then(|base| u64::try_from(base).ok()) {
        Some(value) => BoundValue::Finite(value),
        None => BoundValue::Infinity,
    }
}

fn finite(amount: Option<Amount>) -> Option<u64> {
    amount
        .and_then(Amount::finite)
        .and_then(|base| u64::try_from(base).ok())
}

/// Limits of each process. INFINITY where nothing was asked for is left alone: the inherited limit
/// stays. So the hard limit stays too where only a soft one was asked for: the program may answer
/// the signal of the soft one.
fn process_limits(limits: &LimitSet) -> Vec<ProcessLimit> {
    limits
        .iter()
        .filter_map(|(kind, bounds)| {
            let resource = resource(kind)?;
            let hard = bounds.hard.unwrap_or(Amount::INFINITY);
            let soft = bounds.soft.unwrap_or(hard);
            (hard != Amount::INFINITY || soft != Amount::INFINITY).then(|| ProcessLimit {
                resource,
                soft: bound(soft.min(hard)),
                hard: bound(hard),
            })
        })
        .collect()
}

fn resource(kind: LimitKind) -> Option<Resource> {
    match kind {
        LimitKind::Rt => None,
        LimitKind::Cpu => Some(Resource::Cpu),
        LimitKind::Fsize => Some(Resource::FileSize),
        LimitKind::Data => Some(Resource::Data),
        LimitKind::Stack => Some(Resource::Stack),
        LimitKind::Core => Some(Resource::Core),
        LimitKind::Rss => Some(Resource::ResidentSet),
        LimitKind::Vmem => Some(Resource::AddressSpace),
        LimitKind::Descriptors => Some(Resource::OpenFiles),
        LimitKind::MaxProc => Some(Resource::Processes),
        LimitKind::MemoryLocked => Some(Resource::LockedMemory),
        LimitKind::Locks => Some(Resource::FileLocks),
    }
}

fn task_limits(limits: &LimitSet) -> TaskLimits {
    let soft = |kind| finite(limits.get(kind).soft);
    let hard = |kind| finite(limits.get(kind).hard);
    TaskLimits {
        h_rt_s: hard(LimitKind::Rt),
        s_rt_s: soft(LimitKind::Rt),
        h_cpu_s: hard(LimitKind::Cpu),
        s_cpu_s: soft(LimitKind::Cpu),
        h_vmem_bytes: hard(LimitKind::Vmem),
        s_vmem_bytes: soft(LimitKind::Vmem),
        h_rss_bytes: hard(LimitKind::Rss),
        s_rss_bytes: soft(LimitKind::Rss),
        h_maxproc: match limits.get(LimitKind::MaxProc).hard {
            None => Some(MAX_PROCESSES),
            asked @ Some(_) => finite(asked),
        },
    }
}

fn termination(config: &AgentConfig, order: &StartOrder, spec: &JobSpec, texts: &Texts) -> Termination {
    let method = |text: &Option<String>| method(text.as_deref(), texts);
    Termination {
        notify: spec.notify,
        notify_s: order.queue.notify_s,
        notify_kill_signal: config.notify_kill_signal.unwrap_or(SIGUSR2),
        notify_suspend_signal: config.notify_suspend_signal.unwrap_or(SIGUSR1),
        terminate: method(&order.queue.terminate_method),
        suspend: method(&order.queue.suspend_method),
        resume: method(&order.queue.resume_method),
        method_timeout_s: config.method_timeout_s,
    }
}

fn checkpointing(checkpoint: &CheckpointOrder, texts: &Texts) -> Checkpointing {
    let command = |text: &Option<String>| {
        text.as_ref()
            .map(|text| texts.in_checkpoint_command(text, checkpoint, "$job_pid"))
    };
    let or_default = |text: &Option<String>| command(text).map_or(Method::Default, Method::Command);
    Checkpointing {
        save: checkpoint
            .save_signal
            .map_or_else(|| or_default(&checkpoint.save), Method::Signal),
        interval_s: checkpoint.interval_s.unwrap_or(0),
        migrate: or_default(&checkpoint.migrate),
        clean: command(&checkpoint.clean),
    }
}

fn method(text: Option<&str>, texts: &Texts) -> Method {
    match text {
        None => Method::Default,
        Some(command) if command.contains('/') => Method::Command(texts.in_method(command)),
        Some(signal) => signal_number(signal).map_or(Method::Default, Method::Signal),
    }
}

/// The number of a signal given as a number or by its name with or without `SIG`.
fn signal_number(text: &str) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let number = text.parse().ok().filter(|number| (1..=64).contains(number));
    let name = text.strip_prefix("SIG").unwrap_or(text);
    number.or_else(|| {
        NAMES
            .iter()
            .position(|known| *known == name)
            .and_then(|at| i32::try_from(at + 1).ok())
    })
}

fn procedure(text: Option<&str>, texts: &Texts, config: &AgentConfig) -> Option<Procedure> {
    let text = text?;
    let (user, command) = match text.split_once('@') {
        Some((user, command)) if !user.contains('/') => (Some(user.to_owned()), command),
        Some(_) | None => (None, text),
    };
    Some(Procedure {
        user,
        command: texts.in_command(command),
        timeout_s: config.script_timeout_s.unwrap_or(PROCEDURE_TIMEOUT_S),
    })
}

#[cfg(test)]
mod tests;
