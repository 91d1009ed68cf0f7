//! The launch document: everything a shepherd has to know to run one task to its end alone.

use super::pairs::{
    DecodeError, FIRST_VERSION, PairReader, Record, Slot, VERSION, Value, Writer, nested, put_kind, read_kind, record,
    words,
};
use super::terminal::WindowSize;
use crate::container::{Container, ContainerRuntime};
use crate::id::TaskKey;
use crate::limit::VmemMeaning;

/// One task, as the agent hands it to the launcher.
///
/// Paths and commands have every pseudo variable replaced that the agent knows. `$HOME`, `~` and
/// `~user` stay in: only the shepherd asks the name service. A task with a script has the script as
/// one sealed memory file beside the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchDocument {
    /// The task; names its directory `tasks/KEY`.
    pub key: TaskKey,
    /// The job number people see.
    pub job_number: u32,
    /// The job's name.
    pub job_name: String,
    /// As whom the task runs.
    pub account: Account,
    /// What is started.
    pub start: Start,
    /// The whole environment as `NAME=value`, one entry each. `HOME`, `SHELL`, `USER` and `LOGNAME`
    /// are set by the shepherd from the name service where they are missing; nothing else is added.
    pub environment: Vec<String>,
    /// Where the task starts; empty is the home directory.
    pub working_directory: String,
    /// Standard input, output and error.
    pub streams: Streams,
    /// The task's temporary directory, if it gets one.
    pub tmpdir: Option<TmpDir>,
    /// The file mode creation mask, 022 in Grid Engine.
    pub umask: u32,
    /// The nice value, -20 to 19.
    pub nice: i32,
    /// Limits of each process, already scaled by slots and with soft at most hard. A resource that
    /// is not listed keeps what a login gets.
    pub limits: Vec<ProcessLimit>,
    /// Limits of the task as a whole.
    pub task_limits: TaskLimits,
    /// How the task is ended, suspended and resumed.
    pub termination: Termination,
    /// Procedures before and after the job; at most one of each kind counts.
    pub prolog: Option<Procedure>,
    /// Runs after the job, also after a failed prolog.
    pub epilog: Option<Procedure>,
    /// Starts the parallel environment.
    pub pe_start: Option<Procedure>,
    /// Stops the parallel environment.
    pub pe_stop: Option<Procedure>,
    /// Standard output and error of those two; none: those of the job, as of the other procedures.
    pub pe_streams: Option<Streams>,
    /// What the queue takes from a login's rights.
    pub security: Security,
    /// A cgroup directory of ours below which the task gets a group of its own; none: no group is
    /// made.
    pub cgroup_parent: Option<String>,
    /// Whether the task gets a group where the launcher has a place for groups, if `cgroup_parent`
    /// names none. An older agent does not say: no.
    pub own_group: Option<bool>,
    /// What the limits of `vmem` mean. `limits` and `task_limits` hold them as limits of address
    /// space in any case: an older launcher, and a host that cannot limit memory, enforce those.
    pub vmem: Option<VmemMeaning>,
    /// The content of `PE_HOSTFILE` of a parallel job: `host slots queue@host CORES`, one line
    /// each. The shepherd writes it to `tasks/KEY/pe_hostfile`.
    pub host_file: Option<String>,
    /// Keep what the task's directory holds beyond `launch`, `exec` and `result` after its end.
    pub keep_active: bool,
    /// Milliseconds between two samples of the whole task, 1000 in Grid Engine (`PDC_INTERVAL`); 0
    /// samples never.
    pub sample_interval_ms: u32,
    /// How the state of a checkpointing job is kept.
    pub checkpoint: Option<Checkpointing>,
    /// The processors that the job is bound to, in the form of the kernel (`0-1,8`). An empty list
    /// means that the host does not have the cores that the master chose. `None` means that the job
    /// runs on all processors.
    pub processors: Option<String>,
    /// Device files with a mode, `/dev/nvidia0:rw`: they can be opened in that way alone.
    pub devices_granted: Vec<String>,
    /// Device files that no process of the task can open.
    pub devices_withheld: Vec<String>,
    /// The container that the job runs in. Its procedures and methods run outside.
    pub container: Option<Container>,
}
record!(LaunchDocument {
    key,
    job_number,
    job_name,
    account,
    start,
    environment,
    working_directory,
    streams,
    tmpdir,
    umask,
    nice,
    limits,
    task_limits,
    termination,
    prolog,
    epilog,
    pe_start,
    pe_stop,
    pe_streams,
    security,
    cgroup_parent,
    own_group,
    vmem,
    host_file,
    keep_active,
    sample_interval_ms,
    checkpoint,
    processors,
    devices_granted,
    devices_withheld,
    container,
} where |document| if document.needs_wall() || document.container.is_some() { VERSION } else { FIRST_VERSION });

impl LaunchDocument {
    /// Whether devices are to be kept from the task: an older launcher must not start it.
    pub fn needs_wall(&self) -> bool {
        !self.devices_withheld.is_empty() || !self.devices_granted.is_empty()
    }
}

words!(ContainerRuntime {
    Apptainer = "apptainer",
    Singularity = "singularity",
    Podman = "podman",
    Enroot = "enroot",
});
record!(Container { runtime, image });

/// How the state of a checkpointing job is kept. Commands are run as the task's user by
/// `/bin/sh -c`; `$job_pid` in them is replaced by the shepherd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpointing {
    /// Writes the state: a command, or a signal upon which the job does it. The default does
    /// nothing.
    pub save: Method,
    /// Seconds between two checkpoints; 0 makes none by the clock.
    pub interval_s: u64,
    /// Writes the state and ends the job. The default is SIGKILL to all its processes.
    pub migrate: Method,
    /// Removes the state of a job that is not to migrate.
    pub clean: Option<String>,
}
record!(Checkpointing {
    save,
    interval_s,
    migrate,
    clean
});

/// As whom the task runs. The shepherd refuses when this host's name service knows the user by
/// another uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The login name.
    pub user: String,
    /// The uid that the submitting host vouched for.
    pub uid: u32,
    /// The primary group that the job asked for or the submitting host vouched for. The shepherd
    /// takes it if the user is a member of it on this host, else the user's own primary group.
    pub gid: u32,
    /// The name of that group; empty if unknown.
    pub group: String,
    /// A supplementary group of this task alone (`gid_range`), by which its processes are found.
    pub tracking_gid: Option<u32>,
}
record!(Account {
    user,
    uid,
    gid,
    group,
    tracking_gid
});

/// What is started, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The script that came beside the document.
    Script {
        /// The shell: the job's `-S`, else the queue's.
        shell: String,
        /// Whether the shell is started as a login shell (`argv[0]` begins with `-`).
        login: bool,
        /// Who interprets the script.
        mode: StartMode,
        /// The arguments behind the script.
        args: Vec<String>,
    },
    /// A command line through a shell: `shell -c "command args"`.
    Command {
        /// The shell: the job's `-S`, else the queue's.
        shell: String,
        /// Whether the shell is started as a login shell.
        login: bool,
        /// The command and its arguments, joined by blanks for the shell.
        argv: Vec<String>,
    },
    /// The script that came beside the document, by a program that starts all jobs of a queue
    /// (`starter_method`).
    Starter {
        /// The program. The script's path is its first argument, unless `stdin` gives it the
        /// script.
        starter: String,
        /// The script is on standard input (`script_from_stdin`).
        stdin: bool,
        /// The arguments behind the script.
        args: Vec<String>,
    },
    /// A program found by the job's `PATH` and started without a shell (`-shell n`).
    Direct {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// A command whose standard input, output and error came beside the document, as three
    /// descriptors.
    Connected {
        /// The shell that runs it with `-c`; none for a program that is found by the job's `PATH`
        /// and started without one.
        shell: Option<String>,
        /// Whether the first of them is more than `/dev/null`.
        has_input: bool,
        /// The command and its arguments, joined by blanks for the shell.
        argv: Vec<String>,
    },
    /// An interactive job. Its standard input, output and error come beside the document, as three
    /// descriptors.
    Session {
        /// Who runs the command.
        shell: SessionShell,
        /// Whether the first descriptor is more than `/dev/null`.
        has_input: bool,
        /// The terminal that it gets. The first descriptor is read for
        /// [`TerminalInput`](super::terminal::TerminalInput) then, and the third is not used.
        terminal: Option<WindowSize>,
        /// The place among the words where the path of a script stands, which came as a fourth
        /// descriptor. `None` without a script.
        script_at: Option<u32>,
        /// The command and its arguments, joined by blanks for a shell. Empty for a login.
        argv: Vec<String>,
    },
}

/// Who runs the command of an interactive job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionShell {
    /// Nobody: the program is found by the job's `PATH` (`-noshell`).
    None,
    /// The shell of the account, with `-c`.
    Command,
    /// The shell of the account as a login shell, without arguments.
    Login,
}
words!(SessionShell {
    None = "none",
    Command = "command",
    Login = "login",
});

impl Record for Start {
    fn write_pairs(&self, writer: &mut Writer) {
        match self {
            Start::Script {
                shell,
                login,
                mode,
                args,
            } => {
                put_kind(writer, "script");
                shell.write("shell", writer);
                login.write("login", writer);
                mode.write("mode", writer);
                args.write("arg", writer);
            }
            Start::Command { shell, login, argv } => {
                put_kind(writer, "command");
                shell.write("shell", writer);
                login.write("login", writer);
                argv.write("arg", writer);
            }
            Start::Starter { starter, stdin, args } => {
                put_kind(writer, "starter");
                starter.write("starter", writer);
                stdin.write("stdin", writer);
                args.write("arg", writer);
            }
            Start::Direct { argv } => {
                put_kind(writer, "direct");
                argv.write("arg", writer);
            }
            Start::Connected { shell, has_input, argv } => {
                put_kind(writer, "connected");
                shell.write("shell", writer);
                has_input.write("input", writer);
                argv.write("arg", writer);
            }
            Start::Session {
                shell,
                has_input,
                terminal,
                script_at,
                argv,
            } => {
                put_kind(writer, "session");
                shell.write("shell", writer);
                has_input.write("input", writer);
                terminal.write("terminal", writer);
                script_at.write("script_at", writer);
                argv.write("arg", writer);
            }
        }
    }

    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match read_kind(reader)?.as_str() {
            "script" => Ok(Start::Script {
                shell: Slot::read("shell", reader)?,
                login: Slot::read("login", reader)?,
                mode: Slot::read("mode", reader)?,
                args: Slot::read("arg", reader)?,
            }),
            "command" => Ok(Start::Command {
                shell: Slot::read("shell", reader)?,
                login: Slot::read("login", reader)?,
                argv: Slot::read("arg", reader)?,
            }),
            "starter" => Ok(Start::Starter {
                starter: Slot::read("starter", reader)?,
                stdin: Slot::read("stdin", reader)?,
                args: Slot::read("arg", reader)?,
            }),
            "direct" => Ok(Start::Direct {
                argv: Slot::read("arg", reader)?,
            }),
            "connected" => Ok(Start::Connected {
                shell: Slot::read("shell", reader)?,
                has_input: Slot::read("input", reader)?,
                argv: Slot::read("arg", reader)?,
            }),
            "session" => Ok(Start::Session {
                shell: Slot::read("shell", reader)?,
                has_input: Slot::read("input", reader)?,
                terminal: Slot::read("terminal", reader)?,
                script_at: Slot::read("script_at", reader)?,
                argv: Slot::read("arg", reader)?,
            }),
            _ => Err(DecodeError::BadValue("start")),
        }
    }
}
nested!(Start);

impl Start {
    /// Whether a script comes beside the document.
    pub fn has_script(&self) -> bool {
        match self {
            Start::Script { .. } | Start::Starter { .. } => true,
            Start::Session { script_at, .. } => script_at.is_some(),
            Start::Command { .. } | Start::Direct { .. } | Start::Connected { .. } => false,
        }
    }

    /// How many descriptors come beside the document: a script, or standard input, output and
    /// error. An interactive job may have all four, the script behind the others.
    pub fn descriptors(&self) -> usize {
        match self {
            Start::Script { .. } | Start::Starter { .. } => 1,
            Start::Command { .. } | Start::Direct { .. } => 0,
            Start::Connected { .. } => 3,
            Start::Session { script_at, .. } => 3 + usize::from(script_at.is_some()),
        }
    }
}

/// Who interprets a script (`shell_start_mode` of queue_conf(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// The script's `#!` line; without one the shell.
    UnixBehavior,
    /// The shell, whatever the script's first line says.
    PosixCompliant,
    /// The shell reads the script from its standard input.
    ScriptFromStdin,
}
words!(StartMode {
    UnixBehavior = "unix_behavior",
    PosixCompliant = "posix_compliant",
    ScriptFromStdin = "script_from_stdin",
});

/// Standard input, output and error of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    /// The file that is read; none is `/dev/null`.
    pub stdin: Option<String>,
    /// Where output is appended.
    pub stdout: OutputPath,
    /// Where errors are appended, unless they are merged.
    pub stderr: OutputPath,
    /// Errors go where output goes (`-j y`).
    pub merge: bool,
}
record!(Streams {
    stdin,
    stdout,
    stderr,
    merge
});

/// An output file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPath {
    /// What the user asked for on this host: empty for the default, a directory or a file, absolute
    /// or relative to the working directory.
    pub path: String,
    /// The file's name where `path` is empty or a directory, such as `name.o7`.
    pub default_name: String,
}
record!(OutputPath { path, default_name });

/// A directory made for the task before its start and removed after its end, under the user's uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmpDir {
    /// The directory it is made in, such as the queue's `tmpdir`.
    pub base: String,
    /// Its name there, such as `7.1.all.q`. `TMPDIR` and `TMP` are the agent's to put into the
    /// environment.
    pub name: String,
}
record!(TmpDir { base, name });

/// A limit's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundValue {
    /// Bytes, seconds or a count.
    Finite(u64),
    /// No limit.
    Infinity,
}

impl Value for BoundValue {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            BoundValue::Finite(value) => value.put(out),
            BoundValue::Infinity => out.extend_from_slice(b"infinity!"),
        }
    }

    fn take(bytes: &[u8]) -> Option<Self> {
        if bytes == b"infinity!" {
            Some(BoundValue::Infinity)
        } else {
            u64::take(bytes).map(BoundValue::Finite)
        }
    }
}

/// What `setrlimit(2)` limits for each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// CPU seconds (`cpu`).
    Cpu,
    /// Bytes of a file (`fsize`).
    FileSize,
    /// Bytes of data (`data`).
    Data,
    /// Bytes of stack (`stack`).
    Stack,
    /// Bytes of a core file (`core`).
    Core,
    /// Bytes of resident memory (`rss`); Linux does not enforce it.
    ResidentSet,
    /// Bytes of address space (`vmem`).
    AddressSpace,
    /// Open files (`descriptors`).
    OpenFiles,
    /// Processes of the user (`maxproc`).
    Processes,
    /// Bytes of locked memory (`memorylocked`).
    LockedMemory,
    /// File locks (`locks`); Linux ignores it.
    FileLocks,
}
words!(Resource {
    Cpu = "cpu",
    FileSize = "fsize",
    Data = "data",
    Stack = "stack",
    Core = "core",
    ResidentSet = "rss",
    AddressSpace = "vmem",
    OpenFiles = "descriptors",
    Processes = "maxproc",
    LockedMemory = "memorylocked",
    FileLocks = "locks",
});

/// A pair of limits of each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimit {
    /// What is limited.
    pub resource: Resource,
    /// The soft limit.
    pub soft: BoundValue,
    /// The hard limit.
    pub hard: BoundValue,
}
record!(ProcessLimit { resource, soft, hard });

words!(VmemMeaning { Address = "address", Memory = "memory" });

/// Limits of the task as a whole on this host, already multiplied by slots. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// Seconds from the start after which the termination sequence begins.
    pub h_rt_s: Option<u64>,
    /// Seconds from the start after which SIGUSR1 is sent, and SIGKILL `notify_s` later.
    pub s_rt_s: Option<u64>,
    /// CPU seconds of all processes together: SIGKILL.
    pub h_cpu_s: Option<u64>,
    /// CPU seconds of all processes together: SIGXCPU at each sample.
    pub s_cpu_s: Option<u64>,
    /// Bytes of address space of all processes together, the largest sum seen: SIGKILL.
    pub h_vmem_bytes: Option<u64>,
    /// Bytes of address space of all processes together: SIGXCPU at each sample.
    pub s_vmem_bytes: Option<u64>,
    /// Bytes of resident memory of all processes together: SIGKILL.
    pub h_rss_bytes: Option<u64>,
    /// Bytes of resident memory of all processes together: SIGXCPU at each sample.
    pub s_rss_bytes: Option<u64>,
    /// Processes of the task at one time: SIGKILL.
    pub h_maxproc: Option<u64>,
}
record!(TaskLimits {
    h_rt_s,
    s_rt_s,
    h_cpu_s,
    s_cpu_s,
    h_vmem_bytes,
    s_vmem_bytes,
    h_rss_bytes,
    s_rss_bytes,
    h_maxproc,
});

/// How a task is ended, suspended and resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// Whether the job asked to be told first (`-notify`).
    pub notify: bool,
    /// Seconds between the announcement and SIGKILL or SIGSTOP; also the grace after `s_rt`.
    pub notify_s: u32,
    /// The signal that announces SIGKILL, SIGUSR2 in Grid Engine; 0 sends none (`NOTIFY_KILL`).
    pub notify_kill_signal: i32,
    /// The signal that announces SIGSTOP, SIGUSR1 in Grid Engine; 0 sends none (`NOTIFY_SUSP`).
    pub notify_suspend_signal: i32,
    /// Ends the task; the default is SIGKILL to all its processes until none is left.
    pub terminate: Method,
    /// Suspends the task; the default is SIGSTOP to all its processes.
    pub suspend: Method,
    /// Resumes the task; the default is SIGCONT to all its processes.
    pub resume: Method,
    /// Seconds after which the command of a method is killed, and after which SIGKILL ends a task
    /// that its terminate method has not ended. `None` means never.
    pub method_timeout_s: Option<u32>,
}
record!(Termination {
    notify,
    notify_s,
    notify_kill_signal,
    notify_suspend_signal,
    terminate,
    suspend,
    resume,
    method_timeout_s,
});

/// A `terminate_method`, `suspend_method` or `resume_method`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// What Grid Engine does without a setting.
    Default,
    /// A signal to all processes of the task.
    Signal(i32),
    /// A command run as the task's user; `$job_pid` is replaced by the shepherd.
    Command(String),
}

impl Record for Method {
    fn write_pairs(&self, writer: &mut Writer) {
        match self {
            Method::Default => put_kind(writer, "default"),
            Method::Signal(signal) => {
                put_kind(writer, "signal");
                signal.write("signal", writer);
            }
            Method::Command(command) => {
                put_kind(writer, "command");
                command.write("command", writer);
            }
        }
    }

    fn read_pairs(reader: &mut PairReader<'_>) -> Result<Self, DecodeError> {
        match read_kind(reader)?.as_str() {
            "default" => Ok(Method::Default),
            "signal" => Slot::read("signal", reader).map(Method::Signal),
            "command" => Slot::read("command", reader).map(Method::Command),
            _ => Err(DecodeError::BadValue("method")),
        }
    }
}
nested!(Method);

/// A prolog, epilog or procedure of a parallel environment. Nothing is on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// The `user@` in front of the command. `None` means the task's user. `root` needs the command
    /// in `etc/root-commands`.
    pub user: Option<String>,
    /// The command line, split at blanks, no shell. `$stdin_path`, `$stdout_path`, `$stderr_path`
    /// and `$merge_stderr` are replaced by the shepherd, other pseudo variables are already.
    pub command: String,
    /// Seconds after which it is killed and counts as failed; 0 waits for ever.
    pub timeout_s: u32,
}
record!(Procedure {
    user,
    command,
    timeout_s
});

/// What the queue takes from the rights that a login of the user has. The default takes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// Sets `no_new_privs` (prctl(2)).
    pub no_new_privs: bool,
    /// The capabilities kept in the bounding set, bit n for capability n; none leaves the set
    /// alone.
    pub bounding_set: Option<u64>,
}
record!(Security {
    no_new_privs,
    bounding_set
});
