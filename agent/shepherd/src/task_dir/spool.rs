//! `tasks/KEY/active/`, which a job knows as `SGE_JOB_SPOOL_DIR`: the files that scripts of Grid
//! Engine look for.
//!
//! All of them are root's, in a directory of root that everybody may list. A job and its procedures
//! read them. Only a procedure of root can change one, and what it adds to `environment` is read
//! back here ([`Spool::additions`]). `environment` is readable by the task's user alone: values may
//! be secrets, and others on the host do not see them. The other files are used again by later
//! tasks.

use crate::sys;
use nix::unistd::Uid;
use proto::launch::{
    BoundValue, LaunchDocument, OutputPath, Procedure, Resource, SessionShell, Start, StartMode, TaskUsage,
};
use proto::text;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the directory below a task's own.
pub const ACTIVE: &str = "active";

/// The file in which a procedure of root may add variables for the job.
const ENVIRONMENT: &str = "environment";

/// All files that can be in it.
const NAMES: [&str; 9] = [
    "addgrpid",
    "config",
    ENVIRONMENT,
    "error",
    "exit_status",
    "job_pid",
    "pe_hostfile",
    "pid",
    "usage",
];

/// The most bytes of `environment` that are read back.
const MAX_ENVIRONMENT_BYTES: u64 = 4 << 20;

/// The most bytes, and the most names, that procedures add. execve(2) takes no value of 128 KiB,
/// and a job must not fail by an environment that it did not choose.
const MAX_ADDED_BYTES: usize = 120 << 10;
const MAX_ADDED_NAMES: usize = 1_000;

/// Variables that no procedure sets: they say which job this is, whose, and where its cell is, and
/// processes are found by them.
const FIXED: [&str; 12] = [
    "GRIDWRIGHT_DIR",
    "GRIDWRIGHT_TASK_KEY",
    "HOME",
    "HOSTNAME",
    "JOB_ID",
    "JOB_SCRIPT",
    "LOGNAME",
    "QUEUE",
    "SGE_CELL",
    "SGE_JOB_SPOOL_DIR",
    "SGE_ROOT",
    "USER",
];

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct Spool {
    path: PathBuf,
}

/// The variables that procedures of root have added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// Names and values, sorted by name.
    pub variables: Vec<(String, String)>,
    /// Names that no procedure sets, each once.
    pub ignored: BTreeSet<String>,
}

impl Spool {
    /// Names the directory of a task in `task`; nothing is made.
    pub fn new(task: &Path) -> Self {
        Spool {
            path: task.join(ACTIVE),
        }
    }

    /// Makes the directory and the files that a prolog finds.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(&self, document: &LaunchDocument, script: Option<&str>) -> io::Result<()> {
        match DirBuilder::new().mode(0o755).create(&self.path) {
            // Of an earlier task, after which it was looked through.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.forget_task(),
            other => other?,
        }
        self.write("config", &config(document, script))?;
        self.write("error", "")?;
        self.write("exit_status", "")?;
        self.write("pid", &format!("{}\n", std::process::id()))?;
        if let Some(gid) = document.account.tracking_gid {
            self.write("addgrpid", &format!("{gid}\n"))?;
        }
        if document.host_file.is_some() {
            fs::hard_link(self.path.with_file_name("pe_hostfile"), self.path.join("pe_hostfile"))?;
        }
        self.write_environment(document)
    }

    /// Whether the directory and all in it are as this program makes them, or no directory is
    /// there.
    ///
    /// A procedure of root may have given the directory or a file to somebody: the next task would
    /// get it with that.
    pub fn is_plain(&self) -> bool {
        let folder = match fs::symlink_metadata(&self.path) {
            Err(error) => return error.kind() == ErrorKind::NotFound,
            Ok(found) => found.is_dir() && is_own(&found),
        };
        let is_ours = |entry: fs::DirEntry| {
            let found = entry.metadata();
            entry.file_name().to_str().is_some_and(|name| NAMES.contains(&name))
                && found.is_ok_and(|found| found.is_file() && found.nlink() == 1 && is_own(&found))
        };
        let all_ours = || Ok::<_, io::Error>(fs::read_dir(&self.path)?.all(|entry| entry.is_ok_and(is_ours)));
        folder && all_ours().unwrap_or(false)
    }

    /// Removes the files that say something about one task alone.
    pub fn forget_task(&self) {
        for name in [ENVIRONMENT, "addgrpid", "job_pid", "pe_hostfile", "usage"] {
            // Missing files are what is wanted; anything else is removed with the directory.
            let _ = fs::remove_file(self.path.join(name));
        }
    }

    /// The process of the job.
    pub fn note_job(&self, pid: i32) {
        self.note("job_pid", &format!("{pid}\n"));
    }

    /// The end of the job, for the procedures behind it.
    pub fn note_end(&self, status: i32, raw_status: i32, wallclock_ms: u64, usage: &TaskUsage) {
        self.note("exit_status", &format!("{status}\n"));
        self.note("usage", &usage_text(status, raw_status, wallclock_ms, usage));
    }

    /// A failure before or behind the job.
    pub fn note_failure(&self, failed: u8, text: &str) {
        self.note("exit_status", &format!("{failed}\n"));
        self.note("error", &format!("{}\n", one_line(text)));
    }

    /// These files inform procedures. That one cannot be written changes nothing about the task.
    fn note(&self, name: &str, text: &str) {
        if let Err(error) = self.write(name, text) {
            crate::log::line(format_args!("{}: {error}", self.path.join(name).display()));
        }
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other?,
        }
        // Made anew: whatever had the name may have other names or owners, or be no file.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
        file.write_all(&text::to_bytes(text))
    }

    fn write_environment(&self, document: &LaunchDocument) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path.join(ENVIRONMENT))?;
        let mut text = String::new();
        for line in lines_of(document) {
            text.push_str(&line);
            text.push('\n');
        }
        file.write_all(&text::to_bytes(&text))?;
        if !Uid::effective().is_root() {
            return Ok(());
        }
        // Without access control lists the job does without the file: nobody else may read it.
        let _ = sys::let_user_read(&file, document.account.uid);
        Ok(())
    }

    /// The variables that procedures of root have added to `environment`, or set to another value.
    /// A later line replaces an earlier one. Lines without a name are skipped.
    ///
    /// # Errors
    /// The file cannot be read, is not root's, or is too long. Procedures add more than the job's
    /// program could be given.
    pub fn additions(&self, document: &LaunchDocument) -> io::Result<Additions> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(self.path.join(ENVIRONMENT))?;
        let bytes = read_own(&file)?;
        let known: BTreeSet<String> = lines_of(document).collect();
        additions(&text::from_bytes(&bytes), &known)
    }
}

/// Whether a file or directory belongs to the user of this process, and nobody else may write it.
fn is_own(found: &fs::Metadata) -> bool {
    found.uid() == Uid::effective().as_raw() && found.mode() & 0o022 == 0
}

/// A file that a procedure may have put in the place of ours counts only if it is a plain one of
/// root's.
fn read_own(file: &File) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != Uid::effective().as_raw() || found.nlink() != 1 {
        return Err(io::Error::other("it is no plain file of root's"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_ENVIRONMENT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_ENVIRONMENT_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_ENVIRONMENT_BYTES} bytes"
        )));
    }
    Ok(bytes)
}

fn additions(text: &str, known: &BTreeSet<String>) -> io::Result<Additions> {
    let (mut added, mut ignored) = (BTreeMap::new(), BTreeSet::new());
    // Not `lines`, which takes a carriage return from the end of a value.
    for line in text.split('\n').filter(|line| !known.contains(*line)) {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        if name.is_empty() || line.contains('\0') {
            continue;
        }
        if FIXED.contains(&name) {
            ignored.insert(name.to_owned());
        } else {
            added.insert(name, value);
        }
    }
    let bytes: usize = added.iter().map(|(name, value)| name.len() + value.len()).sum();
    if added.len() > MAX_ADDED_NAMES || bytes > MAX_ADDED_BYTES {
        let most = format!("{MAX_ADDED_NAMES} names or {MAX_ADDED_BYTES} bytes");
        return Err(io::Error::other(format!("procedures add more than {most} to it")));
    }
    let unfolded = |(name, value): (&str, &str)| (name.to_owned(), value.replace("\\n", "\n"));
    Ok(Additions {
        variables: added.into_iter().map(unfolded).collect(),
        ignored,
    })
}

/// The environment as the file has it, one variable a line: a line break in a value is written as
/// `\n`, as in 8.1.9.
fn lines_of(document: &LaunchDocument) -> impl Iterator<Item = String> + '_ {
    let names = [("USER", &document.account.user), ("LOGNAME", &document.account.user)];
    let account = names.into_iter().map(|(name, value)| format!("{name}={value}"));
    let own = document.environment.iter().cloned();
    own.chain(account).map(|line| line.replace('\n', "\\n"))
}

/// A value that starts no line of its own.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// What `config` of Grid Engine says of a task, in its words, as far as the host knows it.
fn config(document: &LaunchDocument, script: Option<&str>) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: &str| {
        let _ = writeln!(text, "{name}={}", one_line(value));
    };
    if let Some(gid) = document.account.tracking_gid {
        put("add_grp_id", &gid.to_string());
    }
    let streams = &document.streams;
    put("stdout_path", output(&streams.stdout, &document.working_directory));
    put("stderr_path", output(&streams.stderr, &document.working_directory));
    put("stdin_path", streams.stdin.as_deref().unwrap_or("/dev/null"));
    put("merge_stderr", flag(streams.merge));
    if let Some(tmpdir) = &document.tmpdir {
        put("tmpdir", &format!("{}/{}", tmpdir.base, tmpdir.name));
        put("queue_tmpdir", &tmpdir.base);
    }
    let start = StartConfig::from_start(&document.start);
    put("handle_as_binary", flag(start.is_command));
    put("no_shell", flag(start.shell.is_none()));
    put("ckpt_job", flag(document.checkpoint.is_some()));
    limits(document).iter().for_each(|(name, value)| put(name, value));
    put("priority", &document.nice.to_string());
    put("shell_path", start.shell.unwrap_or("none"));
    put("script_file", script.or(start.program).unwrap_or("none"));
    put("job_owner", &document.account.user);
    put("cwd", &document.working_directory);
    let procedures = [
        ("prolog", &document.prolog),
        ("epilog", &document.epilog),
        ("pe_start", &document.pe_start),
        ("pe_stop", &document.pe_stop),
    ];
    procedures
        .iter()
        .for_each(|(name, procedure)| put(name, &command(procedure)));
    put("shell_start_mode", start.mode);
    put("use_login_shell", flag(start.is_login));
    for (name, variable) in [
        ("pe", "PE"),
        ("pe_slots", "NSLOTS"),
        ("pe_hostfile", "PE_HOSTFILE"),
        ("queue", "QUEUE"),
        ("host", "HOSTNAME"),
        ("account", "SGE_ACCOUNT"),
    ] {
        put(name, of_environment(document, variable).unwrap_or("none"));
    }
    put("processors", "UNDEFINED");
    put("job_name", &document.job_name);
    put("job_id", &document.job_number.to_string());
    let task = of_environment(document, "SGE_TASK_ID").filter(|task| *task != "undefined");
    put("ja_task_id", task.unwrap_or("0"));
    put("notify", flag(document.termination.notify));
    put("njob_args", &start.args.len().to_string());
    start
        .args
        .iter()
        .enumerate()
        .for_each(|(at, argument)| put(&format!("job_arg{}", at + 1), argument));
    text
}

/// A start in the words of `config`.
struct StartConfig<'a> {
    is_command: bool,
    is_login: bool,
    shell: Option<&'a str>,
    program: Option<&'a str>,
    mode: &'static str,
    args: &'a [String],
}

impl<'a> StartConfig<'a> {
    fn from_start(start: &'a Start) -> Self {
        let (shell, is_login, mode, args) = match start {
            Start::Script {
                shell,
                login,
                mode,
                args,
            } => (Some(shell.as_str()), *login, mode.as_str(), args.as_slice()),
            Start::Starter { args, .. } => (None, false, StartMode::UnixBehavior.as_str(), args.as_slice()),
            Start::Command { shell, login, argv } => (
                Some(shell.as_str()),
                *login,
                StartMode::UnixBehavior.as_str(),
                argv.as_slice(),
            ),
            Start::Direct { argv } => (None, false, "raw_exec", argv.as_slice()),
            Start::Session { shell, argv, .. } => (None, *shell == SessionShell::Login, "raw_exec", argv.as_slice()),
            Start::Connected { shell, argv, .. } => (shell.as_deref(), false, "raw_exec", argv.as_slice()),
        };
        let is_command = !start.has_script();
        let program = args.first().filter(|_| is_command).map(String::as_str);
        let args = if is_command {
            args.get(1..).unwrap_or_default()
        } else {
            args
        };
        StartConfig {
            is_command,
            is_login,
            shell,
            program,
            mode,
            args,
        }
    }
}

fn limits(document: &LaunchDocument) -> Vec<(String, String)> {
    let shown = |bound: BoundValue| match bound {
        BoundValue::Finite(value) => value.to_string(),
        BoundValue::Infinity => "INFINITY".to_owned(),
    };
    let pair = |resource: &Resource| {
        let found = document.limits.iter().find(|limit| limit.resource == *resource);
        let (hard, soft) = found.map_or((BoundValue::Infinity, BoundValue::Infinity), |limit| {
            (limit.hard, limit.soft)
        });
        let name = resource.as_str();
        [(format!("h_{name}"), shown(hard)), (format!("s_{name}"), shown(soft))]
    };
    Resource::ALL.iter().flat_map(pair).collect()
}

fn output<'a>(path: &'a OutputPath, folder: &'a str) -> &'a str {
    if path.path.is_empty() { folder } else { &path.path }
}

fn command(procedure: &Option<Procedure>) -> String {
    match procedure {
        None => "none".to_owned(),
        Some(Procedure {
            user: Some(user),
            command,
            ..
        }) => format!("{user}@{command}"),
        Some(Procedure {
            user: None, command, ..
        }) => command.clone(),
    }
}

fn flag(value: bool) -> &'static str {
    if value { "1" } else { "0" }
}

fn of_environment<'a>(document: &'a LaunchDocument, name: &str) -> Option<&'a str> {
    document
        .environment
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

fn usage_text(status: i32, raw_status: i32, wallclock_ms: u64, usage: &TaskUsage) -> String {
    let ended_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let wallclock_s = wallclock_ms / 1000;
    let seconds = |ms: u64| format!("{}.{:06}", ms / 1000, ms % 1000 * 1000);
    let mut text = String::new();
    for (name, value) in [
        ("wait_status", raw_status.to_string()),
        ("exit_status", status.to_string()),
        ("signal", (raw_status & 0x7f).to_string()),
        ("start_time", ended_s.saturating_sub(wallclock_s).to_string()),
        ("end_time", ended_s.to_string()),
        ("ru_wallclock", wallclock_s.to_string()),
        ("ru_utime", seconds(usage.utime_ms)),
        ("ru_stime", seconds(usage.stime_ms)),
        ("ru_maxrss", (usage.process_maxrss_bytes / 1024).to_string()),
        ("ru_minflt", usage.minflt.to_string()),
        ("ru_majflt", usage.majflt.to_string()),
        ("ru_inblock", usage.inblock.to_string()),
        ("ru_oublock", usage.oublock.to_string()),
        ("ru_nvcsw", usage.nvcsw.to_string()),
        ("ru_nivcsw", usage.nivcsw.to_string()),
    ] {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_lines_that_were_added_or_changed_count_and_the_last_of_a_name_holds() {
        let known = ["A=1", "B=2"].map(str::to_owned).into();
        let text = "A=1\nB=3\nC=x\\ny\nC=a b=c\nno variable\n=x\nNOEND=z";
        let made = additions(text, &known).expect("few");
        let expected = [("B", "3"), ("C", "a b=c"), ("NOEND", "z")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(made.variables, expected);
        let made = additions("D=x\\ny\n", &known).expect("few");
        assert_eq!(made.variables, [("D".to_owned(), "x\ny".to_owned())]);
    }

    #[test]
    fn no_procedure_says_which_job_this_is_or_whose() {
        let text: String = FIXED.iter().map(|name| format!("{name}=x\n")).collect();
        let made = additions(&(text + "TMPDIR=/scratch\n"), &BTreeSet::new()).expect("few");
        assert_eq!(made.variables, [("TMPDIR".to_owned(), "/scratch".to_owned())]);
        assert_eq!(made.ignored, FIXED.map(str::to_owned).into());
    }

    #[test]
    fn a_value_that_ends_in_a_carriage_return_is_no_addition() {
        let known = ["A=1\r".to_owned()].into();
        assert_eq!(additions("A=1\r\n", &known).expect("few"), Additions::default());
        let made = additions("B=2\r\nC=3", &known).expect("few");
        assert_eq!(
            made.variables,
            [("B", "2\r"), ("C", "3")].map(|(name, value)| (name.into(), value.into()))
        );
    }

    #[test]
    fn more_than_a_program_can_be_given_is_not_added() {
        let none = BTreeSet::new();
        let names = |count: usize| (0..count).map(|at| format!("N{at}=x\n")).collect::<String>();
        assert_eq!(
            additions(&names(MAX_ADDED_NAMES), &none)
                .expect("as many as may be")
                .variables
                .len(),
            1_000
        );
        assert!(additions(&names(MAX_ADDED_NAMES + 1), &none).is_err());
        assert!(additions(&format!("A={}", "x".repeat(MAX_ADDED_BYTES)), &none).is_err());
        // One name, again and again, is one variable.
        let made = additions(&"A=x\n".repeat(1 << 20), &none).expect("one");
        assert_eq!(made.variables.len(), 1);
    }

    fn folder(name: &str) -> (PathBuf, Spool) {
        let base = std::env::temp_dir().join(format!("gridwright-{name}-{}", std::process::id()));
        let spool = Spool::new(&base);
        fs::create_dir_all(&spool.path).expect("made");
        fs::set_permissions(&spool.path, fs::Permissions::from_mode(0o755)).expect("set");
        spool.write("error", "").expect("written");
        (base, spool)
    }

    #[test]
    fn a_directory_that_somebody_else_may_write_or_files_of_two_names_are_not_used_again() {
        let (base, spool) = folder("again");
        let file = spool.path.join("error");
        let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        assert!(spool.is_plain());
        for (path, bad, good) in [
            (&spool.path, 0o777, 0o755),
            (&spool.path, 0o775, 0o755),
            (&file, 0o666, 0o644),
        ] {
            mode(path, bad);
            assert!(!spool.is_plain(), "{} {bad:o}", path.display());
            mode(path, good);
            assert!(spool.is_plain());
        }
        if Uid::effective().is_root() {
            for path in [&file, &spool.path] {
                std::os::unix::fs::chown(path, Some(64_990), None).expect("given away");
                assert!(!spool.is_plain(), "{}", path.display());
                std::os::unix::fs::chown(path, Some(0), None).expect("taken back");
            }
        }
        fs::hard_link(&file, base.join("second")).expect("linked");
        assert!(!spool.is_plain());
        fs::remove_dir_all(&base).expect("cleaned");
        assert!(spool.is_plain(), "there is none");
        fs::create_dir_all(&base).expect("made");
        std::os::unix::fs::symlink("/tmp", &spool.path).expect("linked");
        assert!(!spool.is_plain());
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn a_file_is_made_anew_and_keeps_bytes_that_are_no_text() {
        let (base, spool) = folder("anew");
        fs::hard_link(spool.path.join("error"), base.join("second")).expect("linked");
        spool.write("error", &text::from_bytes(b"caf\xe9")).expect("written");
        assert_eq!(fs::read(spool.path.join("error")).expect("there"), b"caf\xe9");
        assert_eq!(fs::read(base.join("second")).expect("there"), b"");
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn a_file_that_is_not_plain_or_has_two_names_is_not_read() {
        let base = std::env::temp_dir().join(format!("gridwright-spool-{}", std::process::id()));
        fs::create_dir_all(&base).expect("made");
        fs::write(base.join("one"), "A=1\n").expect("written");
        let open = |name: &str| File::open(base.join(name)).expect("it is there");
        assert_eq!(read_own(&open("one")).expect("plain"), b"A=1\n");
        fs::hard_link(base.join("one"), base.join("two")).expect("linked");
        assert!(read_own(&open("one")).is_err());
        assert!(read_own(&File::open("/dev/null").expect("there")).is_err());
        fs::remove_dir_all(&base).expect("cleaned");
    }

    #[test]
    fn values_start_no_lines_of_their_own() {
        assert_eq!(one_line("a\nqueue=x\tb"), "a queue=x b");
    }
}
