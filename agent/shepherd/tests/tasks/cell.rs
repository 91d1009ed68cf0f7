//! A launcher in a directory of its own, and the agent's side of its socket.

use super::account::Account;
use gridwright_shepherd::launcher::groups;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use proto::id::{CellId, SubmitSeq, TaskId, TaskKey};
use proto::launch::{
    Blame, BoundValue, EndCause, LaunchDocument, LaunchResult, Method, Notice, OutputPath, ProcessLimit, Request,
    Resource, Security, Start, StartMode, Streams, TaskLimits, TaskOrder, TaskState, TaskSummary, Termination, TmpDir,
    frame, unframe,
};
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The program under test; `GRIDWRIGHT_SHEPHERD` names a copy of it.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_gridwright-shepherd");

const PATIENCE: Duration = Duration::from_secs(300);

pub struct Cell {
    pub dir: PathBuf,
    pub work: PathBuf,
    pub account: Account,
    pub launcher: Child,
    stream: UnixStream,
    buffer: Vec<u8>,
    pub heard: Vec<Notice>,
    next: u64,
    id: u64,
    groups: Vec<u32>,
}

/// Waits for something observable.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Cell {
    pub fn start() -> Self {
        let name = format!("gridwright-shepherd-test-{:x}", Self::new_id());
        Self::start_in(std::env::temp_dir().join(name))
    }

    /// A cell whose host has these files below `etc`.
    pub fn start_with(files: &[(&str, &str)]) -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-shepherd-test-{:x}", Self::new_id()));
        fs::create_dir_all(dir.join("etc")).unwrap();
        files
            .iter()
            .for_each(|(name, text)| fs::write(dir.join("etc").join(name), text).unwrap());
        Self::start_in(dir)
    }

    /// A cell whose launcher was started with these groups.
    pub fn start_with_groups(groups: &[u32]) -> Self {
        let mut cell = Self::start();
        cell.groups = groups.to_vec();
        cell.restart_launcher();
        cell
    }

    fn new_id() -> u64 {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        u64::from(std::process::id()) << 16 | COUNT.fetch_add(1, Ordering::Relaxed)
    }

    /// A cell whose launcher may open this many files.
    pub fn start_with_open_files(count: u32) -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-shepherd-test-{:x}", Self::new_id()));
        Self::start_under(dir, &format!("ulimit -Sn {count};"))
    }

    /// A cell whose launcher runs with a nice value five above that of the tests.
    pub fn start_niced() -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-shepherd-test-{:x}", Self::new_id()));
        Self::start_under(dir, "exec nice -n 5 \"$0\" \"$@\";")
    }

    pub fn start_in(dir: PathBuf) -> Self {
        Self::start_under(dir, "")
    }

    /// A cell whose launcher is started after these commands of sh.
    fn start_under(dir: PathBuf, before: &str) -> Self {
        let account = Account::take();
        let work = dir.join("work");
        fs::create_dir_all(&work).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        chown(&work, Some(account.uid), Some(account.gid)).unwrap();
        let launcher = Self::spawn(&dir, before, &[]);
        let stream = Self::connect(&dir);
        Cell {
            dir,
            work,
            account,
            launcher,
            stream,
            buffer: Vec::new(),
            heard: Vec::new(),
            next: 1,
            id: Self::new_id(),
            groups: Vec::new(),
        }
    }

    fn spawn(dir: &std::path::Path, before: &str, groups: &[u32]) -> Child {
        // As under nohup and in the background of a script: a job inherits none of these.
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let mut command = Command::new(if groups.is_empty() { "/bin/sh" } else { "setpriv" });
        if !groups.is_empty() {
            command.args(["--groups", &groups.join(","), "/bin/sh"]);
        }
        let line = format!("{before} trap '' HUP INT QUIT USR1; exec \"$0\" \"$@\"");
        command.args([
            "-c",
            &line,
            &std::env::var("GRIDWRIGHT_SHEPHERD").unwrap_or_else(|_| PROGRAM.to_owned()),
        ]);
        command.arg("launch").arg("--dir").arg(dir);
        if !nix::unistd::Uid::effective().is_root() {
            command.arg("--single-user");
        }
        command.spawn().unwrap()
    }

    /// Another connection, as of an agent that was started again.
    pub fn another_connection(&self) -> UnixStream {
        Self::connect(&self.dir)
    }

    fn connect(dir: &std::path::Path) -> UnixStream {
        // The name may be longer than a socket's name may be.
        let folder = File::open(dir).unwrap();
        let name = format!("/proc/self/fd/{}/run/launcher/launcher.sock", folder.as_raw_fd());
        let stream = until("the launcher's socket", || UnixStream::connect(&name).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Kills the launcher with -9 and starts another one.
    pub fn restart_launcher(&mut self) {
        self.launcher.kill().unwrap();
        self.launcher.wait().unwrap();
        self.launcher = Self::spawn(&self.dir, "", &self.groups);
        self.stream = Self::connect(&self.dir);
        self.buffer.clear();
        self.heard.clear();
    }

    pub fn new_key(&mut self) -> TaskKey {
        let seq = SubmitSeq(self.next);
        self.next += 1;
        // Each cell has an id of its own: tasks of another cell are not mistaken for its own.
        TaskKey {
            cell: CellId(self.id),
            seq,
            task: TaskId(1),
            pe_task: 0,
            attempt: 1,
        }
    }

    /// A document that sets nothing beyond what a trivial job needs.
    pub fn document(&mut self, start: Start) -> LaunchDocument {
        let key = self.new_key();
        let number = key.seq.0;
        let output = |letter: char| OutputPath {
            path: String::new(),
            default_name: format!("job.{letter}{number}"),
        };
        let account = proto::launch::Account {
            user: self.account.name.clone(),
            uid: self.account.uid,
            gid: self.account.gid,
            group: self.account.group.clone(),
            tracking_gid: None,
        };
        LaunchDocument {
            key,
            job_number: number as u32,
            job_name: "job".into(),
            account,
            start,
            environment: vec!["PATH=/usr/local/bin:/bin:/usr/bin".into(), "JOB_ID=1".into()],
            working_directory: self.work.to_string_lossy().into_owned(),
            streams: Streams {
                stdin: None,
                stdout: output('o'),
                stderr: output('e'),
                merge: false,
            },
            tmpdir: None,
            umask: 0o022,
            nice: 0,
            limits: Vec::new(),
            task_limits: TaskLimits::default(),
            termination: Termination {
                notify: false,
                notify_s: 1,
                notify_kill_signal: libc::SIGUSR2,
                notify_suspend_signal: libc::SIGUSR1,
                method_timeout_s: None,
                terminate: Method::Default,
                suspend: Method::Default,
                resume: Method::Default,
            },
            prolog: None,
            epilog: None,
            pe_start: None,
            pe_stop: None,
            pe_streams: None,
            security: Security::default(),
            cgroup_parent: None,
            own_group: None,
            vmem: None,
            host_file: None,
            keep_active: false,
            checkpoint: None,
            processors: None,
            devices_granted: Vec::new(),
            devices_withheld: Vec::new(),
            container: None,
            sample_interval_ms: 200,
        }
    }

    pub fn shell(&mut self, command: &str) -> LaunchDocument {
        self.document(Start::Command {
            shell: "/bin/sh".into(),
            login: false,
            argv: vec![command.into()],
        })
    }

    pub fn script_document(&mut self, mode: StartMode, shell: &str, args: &[&str]) -> LaunchDocument {
        let args = args.iter().map(|arg| arg.to_string()).collect();
        self.document(Start::Script {
            shell: shell.into(),
            login: mode == StartMode::PosixCompliant,
            mode,
            args,
        })
    }

    pub fn send(&mut self, request: &Request) {
        self.stream.write_all(&frame(request)).unwrap();
    }

    pub fn send_with(&mut self, request: &Request, fds: &[RawFd]) {
        let bytes = frame(request);
        let rights = [ControlMessage::ScmRights(fds)];
        let parts = [IoSlice::new(&bytes)];
        let sent = sendmsg::<()>(self.stream.as_raw_fd(), &parts, &rights, MsgFlags::empty(), None).unwrap();
        self.stream.write_all(&bytes[sent..]).unwrap();
    }

    pub fn launch(&mut self, document: LaunchDocument) -> TaskKey {
        let key = document.key;
        self.send(&Request::Launch(Box::new(document)));
        key
    }

    pub fn launch_script(&mut self, document: LaunchDocument, script: &str) -> TaskKey {
        let memory = memfd_create(c"script", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
        File::from(memory.try_clone().unwrap())
            .write_all(script.as_bytes())
            .unwrap();
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        self.launch_with(document, &memory)
    }

    /// Hands a descriptor over as the script.
    pub fn launch_with(&mut self, document: LaunchDocument, memory: &OwnedFd) -> TaskKey {
        let key = document.key;
        self.send_with(&Request::Launch(Box::new(document)), &[memory.as_raw_fd()]);
        key
    }

    pub fn order(&mut self, key: TaskKey, order: TaskOrder) {
        self.send(&Request::Signal { key, order });
    }

    /// The first notice, old or new, that `look` wants.
    pub fn hear<T>(&mut self, look: impl Fn(&Notice) -> Option<T>) -> T {
        if let Some(found) = self.heard.iter().find_map(&look) {
            return found;
        }
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < PATIENCE, "waited in vain; heard {:?}", self.heard);
            while let Some((notice, taken)) = unframe::<Notice>(&self.buffer).unwrap() {
                self.buffer.drain(..taken);
                let found = look(&notice);
                self.heard.push(notice);
                if let Some(found) = found {
                    return found;
                }
            }
            let mut chunk = [0; 1 << 16];
            let count = self.stream.read(&mut chunk).expect("a notice in time");
            assert!(count > 0, "the launcher closed the connection; heard {:?}", self.heard);
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }

    /// Whether the launcher closes the connection without another word.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1 << 10]), Ok(0))
    }

    pub fn ended(&mut self, key: TaskKey) -> LaunchResult {
        self.hear(|notice| match notice {
            Notice::Ended(result) if result.key == key => Some((**result).clone()),
            Notice::Refused {
                key: Some(refused),
                text,
                ..
            } if *refused == key => panic!("refused: {text}"),
            _ => None,
        })
    }

    pub fn executed(&mut self, key: TaskKey) -> i32 {
        self.hear(|notice| match notice {
            Notice::Executed { key: found, pid, .. } if *found == key => Some(*pid),
            Notice::Ended(result) if result.key == key => panic!("{result:?}"),
            _ => None,
        })
    }

    /// The main process of a task that may have ended already.
    pub fn executed_of(&mut self, key: TaskKey) -> i32 {
        self.hear(|notice| match notice {
            Notice::Executed { key: found, pid, .. } if *found == key => Some(*pid),
            _ => None,
        })
    }

    pub fn refused(&mut self, key: TaskKey) -> String {
        self.hear(|notice| match notice {
            Notice::Refused {
                key: Some(found), text, ..
            } if *found == key => Some(text.clone()),
            _ => None,
        })
    }

    /// Whose fault a refused start is, as the launcher says.
    pub fn blamed(&mut self, key: TaskKey) -> Blame {
        self.hear(|notice| match notice {
            Notice::Refused {
                key: Some(found),
                blame,
                ..
            } if *found == key => Some(*blame),
            _ => None,
        })
    }

    /// What keeps the launcher from starting any task, as it finds when it is asked.
    pub fn trouble(&mut self) -> Option<String> {
        self.heard.retain(|notice| !matches!(notice, Notice::Health { .. }));
        self.send(&Request::Examine);
        self.hear(|notice| {
            if let Notice::Health { trouble, .. } = notice {
                Some(trouble.clone())
            } else {
                None
            }
        })
    }

    /// Waits until the launcher has found a running task, as an agent does that connects.
    pub fn found(&mut self, key: TaskKey) -> i32 {
        until("the running task", || {
            let task = self.list().into_iter().find(|task| task.key == key)?;
            (task.state == TaskState::Running).then_some(task.pid)
        })
    }

    pub fn list(&mut self) -> Vec<TaskSummary> {
        self.heard.retain(|notice| !matches!(notice, Notice::Tasks { .. }));
        self.send(&Request::List);
        self.hear(|notice| {
            if let Notice::Tasks { tasks, .. } = notice {
                Some(tasks.clone())
            } else {
                None
            }
        })
    }

    /// Runs a command line through /bin/sh to its end.
    pub fn run(&mut self, command: &str) -> LaunchResult {
        let document = self.shell(command);
        self.run_document(document)
    }

    pub fn run_document(&mut self, document: LaunchDocument) -> LaunchResult {
        let key = self.launch(document);
        self.ended(key)
    }

    pub fn run_script(&mut self, document: LaunchDocument, script: &str) -> LaunchResult {
        let key = self.launch_script(document, script);
        self.ended(key)
    }

    pub fn output(&self, result: &LaunchResult, letter: char) -> String {
        fs::read_to_string(self.work.join(format!("job.{letter}{}", result.key.seq.0))).unwrap_or_default()
    }

    /// Waits for a file that a job writes and gives its text, without the line end.
    pub fn read_when_there(&self, name: &str) -> String {
        until(name, || {
            fs::read_to_string(self.work.join(name))
                .ok()
                .filter(|text| text.ends_with('\n'))
        })
        .trim()
        .to_owned()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let running: Vec<_> = self
                .list()
                .into_iter()
                .filter(|task| task.state != TaskState::Ended)
                .map(|task| task.key)
                .collect();
            for key in running {
                self.order(key, TaskOrder::Kill);
                self.ended(key);
            }
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        groups::remove_own(&self.dir);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub fn limit(resource: Resource, value: u64) -> ProcessLimit {
    ProcessLimit {
        resource,
        soft: BoundValue::Finite(value),
        hard: BoundValue::Finite(value),
    }
}

pub fn direct(argv: &[&str]) -> Start {
    Start::Direct {
        argv: argv.iter().map(|arg| arg.to_string()).collect(),
    }
}

pub fn tmpdir(base: &str, name: &str) -> Option<TmpDir> {
    Some(TmpDir {
        base: base.into(),
        name: name.into(),
    })
}

pub fn failed(result: &LaunchResult) -> (u8, String) {
    match &result.cause {
        EndCause::FailedToStart(failure) => (failure.failed, failure.text.clone()),
        other => panic!("{other:?}"),
    }
}

/// Whether a process exists and is no zombie.
pub fn is_alive(pid: i32) -> bool {
    gridwright_shepherd::proc::stat(pid).is_some_and(|stat| !stat.is_gone())
}
