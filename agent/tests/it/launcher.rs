//! A launcher that starts no jobs but real sensors, on threads: the test says what becomes of
//! tasks.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use proto::id::TaskKey;
use proto::launch::{EndCause, LaunchResult, Notice, Request, SensorSpec, TaskSummary, TaskUsage, frame, unframe};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// A launcher's socket.
pub(crate) struct Launcher {
    listener: UnixListener,
}

/// One connection of the agent.
pub(crate) struct Session {
    stream: Arc<Mutex<UnixStream>>,
    requests: mpsc::Receiver<(Request, Option<Vec<u8>>)>,
}

impl Launcher {
    pub(crate) fn new(dir: &Path) -> Self {
        let path = dir.join("run/launcher/launcher.sock");
        std::fs::remove_file(&path).ok();
        Self {
            listener: UnixListener::bind(path).unwrap(),
        }
    }

    /// The agent's next connection; its list request is answered with these tasks.
    pub(crate) fn accept(&self, tasks: Vec<TaskSummary>) -> Session {
        let (stream, _) = self.listener.accept().unwrap();
        let (sender, requests) = mpsc::channel();
        let writer = Arc::new(Mutex::new(stream.try_clone().unwrap()));
        let answers = writer.clone();
        thread::spawn(move || serve(&stream, &answers, &sender));
        let session = Session {
            stream: writer,
            requests,
        };
        assert_eq!(session.next().0, Request::List);
        session.say(&Notice::Tasks {
            tasks,
            reprioritizes: true,
            examines: false,
            enforces: Vec::new(),
        });
        session
    }
}

impl Session {
    pub(crate) fn say(&self, notice: &Notice) {
        self.stream.lock().unwrap().write_all(&frame(notice)).unwrap();
    }

    /// The next request about tasks, with the script that came along.
    pub(crate) fn next(&self) -> (Request, Option<Vec<u8>>) {
        self.requests
            .recv_timeout(super::cell::PATIENCE)
            .expect("a request of the agent")
    }

    /// Dies.
    pub(crate) fn close(self) {
        self.stream.lock().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
    }
}

/// How a task ended that ran for a millisecond.
pub(crate) fn result(key: TaskKey) -> LaunchResult {
    LaunchResult {
        key,
        cause: EndCause::Exited(3),
        after: None,
        executed: true,
        ordered: false,
        limit: None,
        refused_limits: vec![],
        procedures: vec![],
        usage: TaskUsage::default(),
        wallclock_ms: 1,
        started_boot_ms: 4000,
        ended_boot_ms: 4001,
        boot_id: String::new(),
        saved_pid: None,
        left_processes: None,
        note: None,
    }
}

fn serve(stream: &UnixStream, answers: &Arc<Mutex<UnixStream>>, requests: &mpsc::Sender<(Request, Option<Vec<u8>>)>) {
    let (mut buffer, mut descriptors) = (Vec::new(), VecDeque::new());
    loop {
        while let Some((request, taken)) = unframe::<Request>(&buffer).unwrap() {
            buffer.drain(..taken);
            let message = match request {
                Request::StartSensor(spec) => {
                    start_sensor(&spec, [(); 3].map(|()| descriptors.pop_front().unwrap()), answers);
                    continue;
                }
                Request::StopSensor { pid, signal } => {
                    let signal = nix::sys::signal::Signal::try_from(signal).unwrap();
                    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), signal).ok();
                    continue;
                }
                Request::Launch(document) => {
                    let mut script = Vec::new();
                    reopen(descriptors.pop_front().unwrap(), OpenOptions::new().read(true))
                        .read_to_end(&mut script)
                        .unwrap();
                    (Request::Launch(document), Some(script))
                }
                request @ (Request::Signal { .. }
                | Request::Reprioritize { .. }
                | Request::List
                | Request::Examine
                | Request::Forget { .. }) => (request, None),
            };
            if requests.send(message).is_err() {
                return;
            }
        }
        if !receive(stream, &mut buffer, &mut descriptors) {
            return;
        }
    }
}

fn receive(stream: &UnixStream, buffer: &mut Vec<u8>, descriptors: &mut VecDeque<RawFd>) -> bool {
    let mut chunk = [0; 4096];
    let mut control = nix::cmsg_space!([RawFd; 16]);
    let mut parts = [IoSliceMut::new(&mut chunk)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let Ok(message) = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control), flags) else {
        return false;
    };
    for part in message.cmsgs().unwrap() {
        if let ControlMessageOwned::ScmRights(fds) = part {
            descriptors.extend(fds);
        }
    }
    let count = message.bytes;
    buffer.extend_from_slice(&chunk[..count]);
    count > 0
}

/// The file behind a descriptor as a value that closes itself: without unsafe code there is no
/// other way to one.
fn reopen(fd: RawFd, options: &OpenOptions) -> File {
    let file = options.open(format!("/proc/self/fd/{fd}")).unwrap();
    nix::unistd::close(fd).unwrap();
    file
}

fn start_sensor(spec: &SensorSpec, streams: [RawFd; 3], answers: &Arc<Mutex<UnixStream>>) {
    let [stdin, stdout, stderr] = streams;
    let (read, write) = (
        OpenOptions::new().read(true).clone(),
        OpenOptions::new().write(true).clone(),
    );
    let mut command = Command::new(&spec.path);
    command.args(&spec.args).env_clear().process_group(0);
    command.envs(spec.environment.iter().filter_map(|entry| entry.split_once('=')));
    command.stdin(Stdio::from(reopen(stdin, &read)));
    command
        .stdout(Stdio::from(reopen(stdout, &write)))
        .stderr(Stdio::from(reopen(stderr, &write)));
    let mut child = command.spawn().unwrap();
    drop(command);
    let (id, pid, answers) = (spec.id, child.id().try_into().unwrap(), answers.clone());
    answers
        .lock()
        .unwrap()
        .write_all(&frame(&Notice::SensorStarted { id, pid }))
        .unwrap();
    thread::spawn(move || {
        let status = child.wait().unwrap();
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        // The agent may be gone.
        answers
            .lock()
            .unwrap()
            .write_all(&frame(&Notice::SensorEnded { id, pid, status }))
            .ok();
    });
}
