//! The launcher's loop: connections of the agent, sockets of the shepherds, ends of children.

mod answers;
mod burying;
mod health;
mod priority;
mod starting;

use super::connection::Connection;
use super::groups;
use super::identities::Identities;
use super::orphans::Orphans;
use super::refusals::Refusals;
use super::results::Results;
use super::shepherds::Shepherds;
use super::tracking::TrackingGroups;
use crate::journal::Journal;
use crate::log::Log;
use crate::shepherd::burial::Traces;
use crate::shepherd::{self, Host};
use crate::sys::{self, ReapedChild, Wait};
use crate::task_dir::{self, SpareDirectories, TaskDir};
use health::Health;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{getsockopt, sockopt};
use proto::id::TaskKey;
use proto::launch::{LaunchDocument, Notice, Request, TaskOrder};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const FIRST_PEER: u64 = 2;

/// How often a task whose shepherd lives but has no socket yet is looked at again.
const RETRY_MS: u64 = 200;

/// The pause after the system refused a descriptor, a process or room on the disk: connections
/// wait, tasks are looked at later.
const TROUBLE_MS: u64 = 2_000;

/// The most connections of the agent's uid: it needs one, and a moment long a second one when it
/// was started again.
const MAX_AGENTS: usize = 16;

/// The launcher: one thread that starts shepherds and passes messages between them and the agent.
/// It runs as root. All of its state can be built anew from `tasks/`.
///
/// [`Server::new`] takes the sockets and the journal. [`Server::run`] first finds out what became
/// of every task in `tasks/`, and serves afterwards. One turn of its loop is:
///
/// 1. `attend`, for each event: a connection, a request of the agent, a notice of a shepherd, or
///    ended children. A launch makes a directory and is put into `starting`. When the requests that
///    are there have been read, `start_all` records their starts with one sync of the journal, and
///    forks the shepherds.
/// 2. `catch_up`: what failed before, or could not be reached, is tried again if it is due.
/// 3. `flush`: the notices of the turn go to the agent in one piece.
///
/// The record of a start is durable before a shepherd knows of the task.
///
/// What must not be done: wait for anything but the loop's own events, because every task of the
/// host waits with it; call the name service, which may hang for minutes (a forked child does it);
/// believe the agent about an account, a group, a path or a command of root without the rules of
/// the host ([`Host`]); follow a link in a directory that another account can write; or start a
/// shepherd for an attempt that has a directory already.
pub struct Server {
    host: Host,
    agent_uid: u32,
    epoll: Epoll,
    listener: UnixListener,
    signals: SignalFd,
    next_token: u64,
    agents: BTreeMap<u64, Connection>,
    shepherds: Shepherds,
    tasks: BTreeMap<TaskKey, Task>,
    /// Tasks to start once the present requests are read: they share one sync.
    starting: Vec<PendingStart>,
    journal: Journal,
    spares: SpareDirectories,
    results: Results,
    children: BTreeMap<i32, Child>,
    sensors: BTreeMap<i32, u64>,
    identities: Identities,
    tracking: TrackingGroups,
    orphans: Orphans,
    refusals: Refusals,
    /// Whether it was said that tasks keep a higher nice value than their queue's.
    told_nice: bool,
    health: Health,
    /// When connections are taken again, where the system refused one.
    accept_at: Option<u64>,
    /// When tasks without a connection are looked at again.
    recover_at: u64,
    log: Log,
}

/// A process that this launcher forked and has not reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    /// A shepherd with its task, or without one.
    Shepherd(Option<TaskKey>),
    /// Ends what is left of a task whose shepherd is dead.
    Undertaker(TaskKey),
}

/// What the launcher remembers of a task that has not ended.
#[derive(Clone, Debug, Default)]
struct Task {
    /// The connection to its shepherd.
    token: Option<u64>,
    /// The main process and the boot clock at its execve.
    executed: Option<(i32, u64)>,
    /// The order that counts of those that came before its shepherd could be reached.
    waiting: Option<TaskOrder>,
    /// Whether an undertaker is at work on it.
    burying: bool,
    /// The traces from the launch document. They replace a record that cannot be read.
    traces: Option<Traces>,
    /// How its shepherd, a child of this launcher, ended.
    shepherd_end: Option<ShepherdEnd>,
}

/// The end of a shepherd that left no result.
#[derive(Clone, Copy, Debug)]
struct ShepherdEnd {
    /// Whether it said that it had begun nothing.
    has_not_begun: bool,
    /// When the processes that it left are waited for no longer.
    wait_until: u64,
}

/// A task whose directory is made.
struct PendingStart {
    document: LaunchDocument,
    /// What came beside it: a script, or three streams.
    attached: Vec<OwnedFd>,
}

impl Server {
    /// Prepares the loop.
    ///
    /// # Errors
    /// Those of epoll, signalfd and the journal.
    pub fn new(host: Host, agent_uid: u32, listener: UnixListener, mask: &SigSet, log: Log) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let signals = SignalFd::with_flags(mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        listener.set_nonblocking(true)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS))?;
        let tracking = TrackingGroups::new(host.rules.tracking_gids.clone());
        let journal = Journal::open(&host.boot_id)?;
        Ok(Server {
            host,
            tracking,
            agent_uid,
            epoll,
            listener,
            signals,
            next_token: FIRST_PEER,
            agents: BTreeMap::new(),
            shepherds: Shepherds::default(),
            tasks: BTreeMap::new(),
            starting: Vec::new(),
            journal,
            spares: SpareDirectories::new()?,
            results: Results::default(),
            children: BTreeMap::new(),
            sensors: BTreeMap::new(),
            identities: Identities::new()?,
            orphans: Orphans::default(),
            refusals: Refusals::default(),
            told_nice: false,
            health: Health::default(),
            accept_at: None,
            recover_at: 0,
            log,
        })
    }

    /// Finds the tasks that exist, then serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// Those of epoll.
    pub fn run(mut self, inherited: Option<UnixStream>) -> io::Result<()> {
        let outcome = self.serve(inherited);
        groups::remove_own(&self.host.folder);
        outcome
    }

    fn serve(&mut self, inherited: Option<UnixStream>) -> io::Result<()> {
        self.recover_all()?;
        if let Some(stream) = inherited {
            self.add_agent(stream)?;
        }
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let count = match self.epoll.wait(&mut events, self.patience()) {
                Err(nix::errno::Errno::EINTR) => 0,
                other => other?,
            };
            for event in &events[..count] {
                if self.attend(event.data()).is_break() {
                    return Ok(());
                }
            }
            self.catch_up();
            self.flush();
            self.log.keep_short();
        }
    }

    /// Tasks whose directories a crash of the machine took, but whose starts are on record, get one
    /// in which their end is found.
    fn recover_all(&mut self) -> io::Result<()> {
        self.journal.retain_existing(|key| TaskDir::new(key).exists());
        for key in self.journal.of_other_boots() {
            match TaskDir::new(&key).create() {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        for key in task_dir::all_keys()? {
            if self.drop_unbegun(key) {
                continue;
            }
            if TaskDir::new(&key).has_result() {
                self.results.add(key);
            }
            self.find_out(key);
        }
        Ok(())
    }

    /// Drops a task that an earlier launcher of this boot meant to start and gave to no shepherd:
    /// the agent asks for it again.
    fn drop_unbegun(&mut self, key: TaskKey) -> bool {
        let dir = TaskDir::new(&key);
        let is_of_this_boot = self.journal.boot_of(&key).is_none_or(|boot| boot == self.host.boot_id);
        // A record that is damaged is one of a task that may have run.
        if !is_of_this_boot || !dir.is_blank() {
            return false;
        }
        // A shepherd that comes later finds nothing to lock.
        let is_dropped = matches!(dir.lock(), Ok(Some(_))) && dir.remove().is_ok();
        if is_dropped {
            self.journal.forget(&key);
        }
        is_dropped
    }

    /// How long to wait for events: until something that failed or could not be reached is due
    /// again.
    fn patience(&self) -> EpollTimeout {
        let recovers = self.tasks.iter().any(|(key, task)| self.is_unattached(key, task));
        let recover_at = recovers.then_some(self.recover_at);
        let due = [
            self.accept_at,
            recover_at,
            self.results.due_at(),
            self.shepherds.retire_at(),
        ]
        .into_iter()
        .flatten()
        .min();
        let Some(due) = due else { return EpollTimeout::NONE };
        u16::try_from(due.saturating_sub(sys::boot_ms()))
            .unwrap_or(u16::MAX)
            .into()
    }

    /// Does again what is due again.
    fn catch_up(&mut self) {
        let now = sys::boot_ms();
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept_at = None;
            self.watch_listener(EpollFlags::EPOLLIN);
        }
        if self.recover_at <= now {
            self.recover_at = now + RETRY_MS;
            self.unattached().into_iter().for_each(|key| self.find_out(key));
        }
        self.shepherds.retire(now);
        self.results.sync(now);
    }

    /// Tasks that run without a connection to their shepherd, and are nobody's child here.
    fn unattached(&self) -> Vec<TaskKey> {
        let alone = self.tasks.iter().filter(|(key, task)| self.is_unattached(key, task));
        alone.map(|(key, _)| *key).collect()
    }

    fn is_unattached(&self, key: &TaskKey, task: &Task) -> bool {
        let is_its = |child: &Child| matches!(child, Child::Shepherd(Some(of)) | Child::Undertaker(of) if of == key);
        task.token.is_none() && !self.children.values().any(is_its)
    }

    fn attend(&mut self, token: u64) -> ControlFlow<()> {
        match token {
            LISTENER => self.accept(),
            SIGNALS => return self.take_signals(),
            token if self.agents.contains_key(&token) => self.serve_agent(token),
            token => self.hear_shepherd(token),
        }
        ControlFlow::Continue(())
    }

    fn accept(&mut self) {
        loop {
            let outcome = match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    // Out of descriptors, mostly. The connection stays in the queue, which would
                    // wake us again at once.
                    crate::log::line(format_args!("no connection is taken for {TROUBLE_MS} ms: {error}"));
                    self.watch_listener(EpollFlags::empty());
                    self.accept_at = Some(sys::boot_ms() + TROUBLE_MS);
                    return;
                }
            }
        }
    }

    /// What is registered already can always be changed: no memory and no descriptor is needed.
    fn watch_listener(&self, flags: EpollFlags) {
        let _ = self.epoll.modify(&self.listener, &mut EpollEvent::new(flags, LISTENER));
    }

    fn admit(&mut self, stream: UnixStream) -> io::Result<()> {
        let uid = getsockopt(&stream, sockopt::PeerCredentials).map(|peer| peer.uid());
        if uid != Ok(self.agent_uid) {
            let who = uid.map_or_else(|errno| errno.to_string(), |uid| format!("uid {uid}"));
            self.tell_refused(&format!(
                "a connection of {who} was refused: only uid {} may",
                self.agent_uid
            ));
        } else if self.agents.len() >= MAX_AGENTS {
            self.tell_refused(&format!("a connection was refused: the agent has {MAX_AGENTS} already"));
        } else {
            self.add_agent(stream)?;
        }
        Ok(())
    }

    fn tell_refused(&mut self, text: &str) {
        let lines = self.refusals.note(sys::boot_ms(), text);
        lines.iter().for_each(|line| crate::log::line(format_args!("{line}")));
    }

    fn add_agent(&mut self, stream: UnixStream) -> io::Result<()> {
        let connection = Connection::new(stream)?;
        let token = self.watch(&connection)?;
        self.agents.insert(token, connection);
        Ok(())
    }

    fn watch(&mut self, connection: &Connection) -> io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        self.epoll
            .add(connection.stream(), EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        Ok(token)
    }

    fn serve_agent(&mut self, token: u64) {
        let Some(mut agent) = self.agents.remove(&token) else {
            return;
        };
        let filled = agent.fill();
        let mut alive = filled.is_ok();
        // One that asks for more than it reads is dropped before its answers fill the memory.
        while !agent.is_overfull() {
            match agent.next::<Request>() {
                Ok(None) => break,
                Ok(Some(request)) => match self.handle(request, &mut agent) {
                    Ok(notices) => notices.iter().for_each(|notice| agent.queue(notice)),
                    Err(error) => {
                        crate::log::line(format_args!(
                            "the tasks cannot be listed, so the agent has to ask again: {error}"
                        ));
                        alive = false;
                        break;
                    }
                },
                Err(error) => {
                    self.tell_refused(&format!("the agent's connection is closed: {error}"));
                    alive = false;
                    break;
                }
            }
        }
        self.start_all().iter().for_each(|notice| agent.queue(notice));
        if alive && !agent.is_overfull() {
            self.agents.insert(token, agent);
        } else if self.agents.is_empty() {
            self.end_sensors();
        }
    }

    /// Sensors serve the agent that asked for them: the next one starts its own, and one that hangs
    /// would stay for ever.
    fn end_sensors(&self) {
        for pid in self.sensors.keys() {
            // Gone already is what is wanted.
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGTERM);
        }
    }

    /// Tells every agent, at the end of the round.
    fn tell(&mut self, notice: &Notice) {
        self.agents.values_mut().for_each(|agent| agent.queue(notice));
    }

    /// Sends what this round had to say, in one piece. An agent that is gone or does not read is
    /// dropped and lists its tasks when it returns; room is waited for only while something is
    /// unsent.
    fn flush(&mut self) {
        let epoll = &self.epoll;
        let before = self.agents.len();
        self.agents.retain(|token, agent| {
            if !agent.has_unsent() && !agent.waits_for_room {
                return true;
            }
            let alive = agent.flush().is_ok();
            if alive && agent.has_unsent() != agent.waits_for_room {
                agent.waits_for_room = agent.has_unsent();
                let mut flags = EpollFlags::EPOLLIN;
                flags.set(EpollFlags::EPOLLOUT, agent.waits_for_room);
                // A socket that is gone is found out by its next read.
                let _ = epoll.modify(agent.stream(), &mut EpollEvent::new(flags, *token));
            }
            alive
        });
        if self.agents.is_empty() && before > 0 {
            self.end_sensors();
        }
    }

    /// What a shepherd says is passed on; what it said last is remembered.
    fn hear_shepherd(&mut self, token: u64) {
        let (notices, is_alive) = self.shepherds.hear(token);
        for (key, notice) in notices {
            self.pass_on(key, &notice);
            if matches!(notice, Notice::Idle { .. })
                && let Some(pid) = self.shepherds.rest(token, sys::boot_ms())
            {
                self.children.insert(pid, Child::Shepherd(None));
            }
        }
        if is_alive {
            return;
        }
        if let Some(task) = self.shepherds.key(token).and_then(|key| self.tasks.get_mut(&key)) {
            // It ended, died, or dropped us: the lock tells which, now or when its end is reaped.
            task.token = None;
        }
        self.shepherds.remove(token);
    }

    fn pass_on(&mut self, key: TaskKey, notice: &Notice) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        match notice {
            Notice::Executed { pid, boot_ms, .. } => task.executed = Some((*pid, *boot_ms)),
            Notice::Ended(_) => {
                self.drop_task(&key);
                self.results.add(key);
            }
            // What follows the end of a task is no more about it.
            Notice::Idle { .. } => return,
            Notice::Accepted { .. }
            | Notice::Refused { .. }
            | Notice::Usage { .. }
            | Notice::Tasks { .. }
            | Notice::Health { .. }
            | Notice::Forgotten { .. }
            | Notice::SensorStarted { .. }
            | Notice::SensorEnded { .. } => {}
        }
        self.tell(notice);
    }

    fn drop_task(&mut self, key: &TaskKey) {
        self.tasks.remove(key);
        self.tracking.take_back(key);
    }

    fn take_signals(&mut self) -> ControlFlow<()> {
        while let Ok(Some(info)) = self.signals.read_signal() {
            match i32::try_from(info.ssi_signo) {
                Ok(libc::SIGCHLD) => {}
                Ok(libc::SIGHUP) => self.log.reopen(),
                _ => return ControlFlow::Break(()),
            }
        }
        self.know_sensors();
        while let Wait::Ended(waited) = sys::wait_any() {
            self.child_ended(&waited);
            self.know_sensors();
        }
        ControlFlow::Continue(())
    }

    /// Processes of a dead shepherd come to us as orphans and are in neither table.
    fn child_ended(&mut self, waited: &ReapedChild) {
        if let Some(id) = self.sensors.remove(&waited.pid) {
            let status = shell_status(waited.status);
            self.tell(&Notice::SensorEnded {
                id,
                pid: waited.pid,
                status,
            });
        }
        self.results.reaped(waited.pid, waited.status, sys::boot_ms());
        let child = self.children.remove(&waited.pid);
        if child.is_none() {
            self.orphan_ended(waited.pid);
        }
        let Some(Child::Shepherd(Some(key)) | Child::Undertaker(key)) = child else {
            return;
        };
        // Its last words may still be in the socket.
        if let Some(token) = self.tasks.get(&key).and_then(|task| task.token) {
            self.hear_shepherd(token);
        }
        let Some(task) = self.tasks.get_mut(&key) else { return };
        if matches!(child, Some(Child::Shepherd(_))) {
            task.shepherd_end = Some(ShepherdEnd::new(waited.status));
        }
        if std::mem::take(&mut task.burying) && waited.status != 0 {
            // It could not write the end, on a full disk for one: the next one would fail at once.
            self.put_off();
        } else {
            self.find_out(key);
        }
    }

    /// Looks at what is left of tasks later: the system has just refused something.
    fn put_off(&mut self) {
        self.recover_at = sys::boot_ms() + TROUBLE_MS;
    }

    /// As [`Server::recover`]; where that fails it is done again later, and until then the task
    /// counts as one that runs.
    fn find_out(&mut self, key: TaskKey) {
        if let Err(error) = self.recover(key) {
            crate::log::line(format_args!(
                "task {key}: what became of it is looked at again later: {error}"
            ));
            self.tasks.entry(key).or_default();
            self.put_off();
        }
    }

    /// Finds out what became of a task: ended, in a living shepherd's hands, or left alone.
    fn recover(&mut self, key: TaskKey) -> io::Result<()> {
        let dir = TaskDir::new(&key);
        if let Some(ended) = shepherd::ended(&dir) {
            if self.tasks.contains_key(&key) {
                self.drop_task(&key);
                self.results.add(key);
                self.tell(&ended);
            }
            return Ok(());
        }
        if !dir.exists() {
            self.drop_task(&key);
            return Ok(());
        }
        let task = self.tasks.entry(key).or_default();
        if let Some(traces) = dir.read_launch().as_ref().map(Traces::from_document) {
            traces
                .tracking_gid
                .into_iter()
                .for_each(|gid| self.tracking.keep(key, gid));
            task.traces = Some(traces);
        }
        // What a dead shepherd left may hold its lock still.
        let Some(orphans_left) = self.end_orphans_of(key) else {
            return Ok(());
        };
        if dir.lock()?.is_some() {
            return self.fork_undertaker(key, orphans_left);
        }
        match UnixStream::connect(dir.file("sock")) {
            Ok(stream) => {
                let connection = Connection::new(stream)?;
                let token = self.watch(&connection)?;
                self.shepherds.add(token, key, connection, None);
                self.begin(key, token);
                Ok(())
            }
            // It lives and has no socket yet: asked again after RETRY_MS.
            Err(_) => Ok(()),
        }
    }
}

fn shell_status(status: i32) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}
