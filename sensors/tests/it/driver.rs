//! A driver for one sensor with threads and channels, as the agent's is with tasks.

use gridwright_sensors::check::Transcript;
use gridwright_sensors::config::SensorSpec;
use gridwright_sensors::host::{Domains, SelfNames};
use gridwright_sensors::launch::command_line;
use gridwright_sensors::protocol::{Action, Exit, Machine, Settings, Signal, Trace};
use proto::time::Tick;
use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// No test waits longer than this for what must happen.
const PATIENCE: Duration = Duration::from_secs(300);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory of one test, with programs in it.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let name = format!(
            "gridwright-sensor-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes an executable file, moved into place so that no other thread's fork holds it open for
    /// writing.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let (draft, path) = (self.0.join(format!("{name}.new")), self.0.join(name));
        let script = format!(
            "cat > '{0}' && chmod 755 '{0}' && mv '{0}' '{1}'",
            draft.display(),
            path.display()
        );
        let mut shell = Command::new("/bin/sh")
            .arg("-c")
            .arg(script)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

enum Piece {
    Out(Vec<u8>),
    OutEnd,
    Err(Vec<u8>),
}

/// A process that runs, and what comes out of it.
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    pieces: Receiver<Piece>,
}

/// One sensor under the machine.
pub(crate) struct SensorRun {
    pub(crate) machine: Machine,
    pub(crate) transcript: Transcript,
    /// What it told so far.
    pub(crate) told: Vec<String>,
    pub(crate) seen: Vec<Action>,
    sensor: SensorSpec,
    search_path: String,
    process: Option<Process>,
    /// The group of every process that was started.
    pub(crate) groups: Vec<u32>,
    start: Instant,
}

impl SensorRun {
    pub(crate) fn new(sensor: &Path, arguments: &[&str], search_path: &str, settings: Settings) -> Self {
        let settings = Settings {
            trace: Trace::Lines,
            ..settings
        };
        let uname = Command::new("uname").arg("-n").output().unwrap().stdout;
        let host = String::from_utf8(uname).unwrap();
        let names = SelfNames::new(&host.trim().into(), ["vm"], Domains::Compare);
        let mut run = Self {
            machine: Machine::new(settings, names, Tick(0)),
            transcript: Transcript::default(),
            told: Vec::new(),
            seen: Vec::new(),
            sensor: SensorSpec {
                path: sensor.to_str().unwrap().to_owned(),
                arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            },
            search_path: search_path.to_owned(),
            process: None,
            groups: Vec::new(),
            start: Instant::now(),
        };
        run.tick();
        run
    }

    pub(crate) fn now(&self) -> Tick {
        Tick(u64::try_from(self.start.elapsed().as_millis()).unwrap())
    }

    /// The value of `name` for this host, in the newest block.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let fresh = self.machine.values_for_report(self.now())?;
        let mut values = fresh.block.values().iter();
        values
            .find(|((_, found), _)| found.as_str() == name)
            .map(|(_, value)| value.clone())
    }

    pub(crate) fn has(&self, action: &Action) -> bool {
        self.seen.contains(action)
    }

    /// Asks for values, as before a report.
    pub(crate) fn request(&mut self) {
        let actions = self.machine.request(self.now());
        self.perform(actions);
    }

    pub(crate) fn stop(&mut self) {
        let actions = self.machine.stop(self.now());
        self.perform(actions);
    }

    /// Runs until `is_done`; fails the test with the transcript when that never comes.
    pub(crate) fn until(&mut self, what: &str, is_done: impl Fn(&SensorRun) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(self) {
            assert!(
                Instant::now() < deadline,
                "{what} never came:\n{}",
                self.told.join("\n")
            );
            self.step();
        }
    }

    fn step(&mut self) {
        let piece = match &self.process {
            Some(process) => process.pieces.recv_timeout(Duration::from_millis(10)),
            None => {
                std::thread::park_timeout(Duration::from_millis(5));
                Err(RecvTimeoutError::Timeout)
            }
        };
        let now = self.now();
        match piece {
            Ok(Piece::Out(bytes)) => {
                let actions = self.machine.bytes(&bytes, now);
                self.perform(actions);
            }
            Ok(Piece::OutEnd) => {
                let actions = self.machine.eof(now);
                self.perform(actions);
            }
            Ok(Piece::Err(bytes)) => {
                let actions = self.machine.stderr(&bytes, now);
                self.perform(actions);
            }
            // Only once the pipes are silent does the end of the process count.
            Err(_) => self.reap(),
        }
        self.tick();
    }

    fn tick(&mut self) {
        let actions = self.machine.tick(self.now());
        self.perform(actions);
    }

    fn reap(&mut self) {
        let Some(process) = &mut self.process else { return };
        let Some(status) = process.child.try_wait().unwrap() else {
            return;
        };
        self.process = None;
        let exit = status
            .code()
            .map(Exit::Status)
            .unwrap_or_else(|| Exit::Signal(status.signal().unwrap()));
        let now = self.now();
        self.told.extend(self.transcript.exited(exit, now));
        let actions = self.machine.exited(exit, self.now());
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let now = self.now();
        self.told.extend(self.transcript.actions(&actions, now));
        let mut queue = VecDeque::from(actions);
        while let Some(action) = queue.pop_front() {
            match &action {
                Action::Start => {
                    let started = self.spawn();
                    let now = self.now();
                    self.told.extend(self.transcript.actions(&started, now));
                    queue.extend(started);
                }
                Action::Write(request) => {
                    if let Some(stdin) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) {
                        stdin.write_all(request.as_bytes()).ok();
                    }
                }
                Action::CloseStdin => {
                    if let Some(process) = &mut self.process {
                        process.stdin = None;
                    }
                }
                Action::SignalGroup(signal) => signal_group(*self.groups.last().unwrap(), *signal),
                Action::Block(_)
                | Action::Warn(_)
                | Action::Health { .. }
                | Action::Stderr(_)
                | Action::Line { .. }
                | Action::Ended => {}
            }
            self.seen.push(action);
        }
    }

    fn spawn(&mut self) -> Vec<Action> {
        let words = command_line(&self.sensor);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", &self.search_path)
            .env("HOST", "vm")
            .process_group(0);
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap();
        // Small, so that a flood waits in the pipe and not in memory.
        let (sender, pieces) = sync_channel(4);
        let stdout = child.stdout.take().unwrap();
        let stderr = child.stderr.take().unwrap();
        pump(stdout, sender.clone(), Piece::Out, Some(Piece::OutEnd));
        pump(stderr, sender, Piece::Err, None);
        self.groups.push(child.id());
        self.process = Some(Process {
            stdin: child.stdin.take(),
            child,
            pieces,
        });
        self.machine.started(self.now())
    }
}

impl Drop for SensorRun {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            signal_group(process.child.id(), Signal::Kill);
            process.child.wait().ok();
        }
    }
}

fn pump(mut from: impl Read + Send + 'static, to: SyncSender<Piece>, wrap: fn(Vec<u8>) -> Piece, end: Option<Piece>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(wrap(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
        end.map(|end| to.send(end).ok());
    });
}

fn signal_group(group: u32, signal: Signal) {
    let name = match signal {
        Signal::Terminate => "TERM",
        Signal::Kill => "KILL",
    };
    kill(name, group);
}

/// Whether anything but zombies lives in the group.
pub(crate) fn is_group_alive(group: u32) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .any(|stat| {
            // After the command in parentheses: state, parent, group.
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let fields: Vec<&str> = rest.split_whitespace().collect();
            fields.get(2) == Some(&group.to_string().as_str()) && fields[0] != "Z"
        })
}

fn kill(signal: &str, group: u32) {
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(format!("kill -{signal} -{group}"))
        .stderr(Stdio::null())
        .status()
        .ok();
}
