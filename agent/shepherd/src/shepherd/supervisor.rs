//! The loop of a shepherd: procedures, the job, its limits and orders, its end, the result.
//!
//! One poll(2) over SIGCHLD, the peers and the nearest deadline. Deadlines are on `CLOCK_BOOTTIME`:
//! after a suspend of the machine the next wake-up, at most ten seconds away, finds them passed.

mod result;

use super::Context;
use super::acting::RunningMethod;
use super::child::{self, ChildCommand};
use super::ending::{Action, Ending};
use super::evidence::GroupFacts;
use super::peers::Peers;
use super::probe::Probe;
use super::report::SetupReport;
use super::sampler::Sampler;
use super::saving::Saving;
use super::setup::Setup;
use crate::cgroup::InheritedCgroup;
use crate::proc::{self, ProcessStat};
use crate::sys::{self, Fork, ReapedChild, Wait};
use crate::task_dir::spool::Additions;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, pipe2};
use proto::launch::{
    EndCause, FailedCodes, Failure, HostLimitHit, HostRefusedLimit, Notice, Procedure, ProcedureEnd, ProcedureKind,
    Request, TaskOrder, TaskUsage,
};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The longest sleep, so that a clock that went on during a suspend of the machine is noticed.
const LONGEST_SLEEP_MS: u64 = 10_000;

/// The first sample of a task under limits comes this soon; the distance doubles up to the
/// interval.
pub(super) const FIRST_SAMPLE_MS: u64 = 100;

/// A task that lives this long gets a socket for later launchers, which ask again until it is
/// there.
const LISTEN_AFTER_MS: u64 = 100;

/// How long the last output of a terminal may wait for its reader after the end of its job.
const DRAIN_MS: u64 = 10_000;

/// The exit code by which a job says that it is in error.
const APPLICATION_ERROR: u8 = 100;

/// The exit code of a shell whose command was ended by SIGTERM.
const SHELL_SIGTERM: u8 = 143;

/// Supervises one task, from its prolog to its result. One process has one supervisor at a time.
///
/// [`Supervisor::new`] blocks SIGCHLD and SIGTERM, so it comes before anything is forked.
/// [`Supervisor::run`] does the rest. Its methods are of four kinds:
///
/// - Steps (`preparation`, `run_job`, `procedure`, `clean`, `finish`) come once each, in the order
///   of [`Supervisor::run`]. `finish` writes the result, and nothing follows it.
/// - `run_child` forks a child of any kind, and `attend` waits for its end. All waiting is there or
///   in `sleep_until`: a step that waited elsewhere would miss limits and orders.
/// - `keep_limits`, `keep_saving` and `obey` are called between two waits. They look at limits, at
///   the saving of state and at requests, and return at once.
/// - `act` performs an [`Action`] that [`Ending`] has decided.
///
/// What must not be done: start a thread, because children are forked; wait for an answer of the
/// name service, the launcher or the agent, because a task lives on without them; reap a child
/// except by `reap`; or charge anything to the job once `is_over` is set.
pub struct Supervisor<'a> {
    pub(super) context: &'a Context,
    pub(super) peers: Peers,
    /// When the socket for later launchers is made; none once it is.
    listen_at: Option<u64>,
    signals: SignalFd,
    /// Whether the host shuts down: it tells every process, and nobody else sends a shepherd
    /// SIGTERM.
    shuts_down: bool,
    pub(super) ending: Ending,
    pub(super) sampler: Sampler,
    pub(super) job: Option<RunningJob>,
    /// The main process, held so that its group can be signalled while any member of it lives.
    pub(super) main: Option<OwnedFd>,
    /// Whether the job and all it left behind have ended: what follows is not on its account.
    pub(super) is_over: bool,
    pub(super) limit: Option<HostLimitHit>,
    pub(super) soft_hit: Option<HostLimitHit>,
    /// `s_rt`, once it is reached: to blame only if the job ends of it, and no hard limit comes
    /// first.
    pub(super) soft_clock: Option<HostLimitHit>,
    pub(super) ordered: bool,
    /// Looks for many new processes while a job with a memory limit runs.
    pub(super) probe: Option<Probe>,
    /// The nice value of this process before that.
    pub(super) own_nice: i32,
    /// Whether it has seen some, and no sample was taken since.
    pub(super) must_sample: bool,
    /// When SIGKILL was first sent to all processes of the present child.
    pub(super) killed_at: Option<u64>,
    /// How many processes did not end after SIGKILL: they hang in the kernel.
    pub(super) left: u32,
    /// Whether a process of ours goes on behind this shepherd's end.
    pub(super) has_remover: bool,
    refused: Vec<HostRefusedLimit>,
    procedures: Vec<ProcedureEnd>,
    pub(super) saving: Saving,
    /// The commands of methods that run.
    pub(super) methods: Vec<RunningMethod>,
    /// The memory group of the host that the job shares, as it was when the job started.
    pub(super) around: Option<InheritedCgroup>,
    /// The length of standard error before the job wrote to it, if it is a file.
    pub(super) error_file_bytes: Option<u64>,
    /// What a person should know of the end.
    pub(super) notes: Vec<String>,
}

/// The job after its execve.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningJob {
    pub(super) pid: i32,
    pub(super) started_boot_ms: u64,
    pub(super) next_sample: u64,
    pub(super) sample_step: u64,
}

/// How a child of any kind ended.
pub(super) enum ChildEnd {
    /// It never reached execve.
    NotStarted(Failure),
    /// It ran and ended.
    Ended(Box<ReapedChild>),
}

impl<'a> Supervisor<'a> {
    /// Prepares the loop.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn new(context: &'a Context, control: UnixStream) -> io::Result<Self> {
        let mask = SigSet::from_iter([Signal::SIGCHLD, Signal::SIGTERM]);
        mask.thread_block()?;
        Ok(Supervisor {
            context,
            peers: Peers::new(control),
            listen_at: Some(sys::boot_ms() + LISTEN_AFTER_MS),
            signals: SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?,
            shuts_down: false,
            ending: Ending::default(),
            sampler: Sampler::new(&context.document),
            job: None,
            main: None,
            is_over: false,
            limit: None,
            soft_hit: None,
            soft_clock: None,
            ordered: false,
            probe: None,
            own_nice: 0,
            must_sample: false,
            killed_at: None,
            left: 0,
            has_remover: false,
            refused: Vec::new(),
            procedures: Vec::new(),
            saving: Saving::default(),
            methods: Vec::new(),
            around: None,
            error_file_bytes: None,
            notes: Vec::new(),
        })
    }

    /// Runs the task to its end and leaves its result. Gives the launcher's socket back if another
    /// task may come over it.
    ///
    /// # Errors
    /// Those of writing the result; the launcher then records a dead shepherd.
    pub fn run(mut self) -> io::Result<Option<UnixStream>> {
        let document = &self.context.document;
        let mut started_pe = false;
        let before = self
            .preparation(ProcedureKind::Prolog, document.prolog.as_ref())
            .and_then(|()| {
                started_pe = true;
                self.preparation(ProcedureKind::PeStart, document.pe_start.as_ref())
            })
            .and_then(|()| self.not_ordered_away());
        let (cause, usage, wallclock_ms) = match before {
            Err(failure) => {
                self.context.dir.spool().note_failure(failure.failed, &failure.text);
                (EndCause::FailedToStart(failure), TaskUsage::default(), 0)
            }
            Ok(()) => self.run_job()?,
        };
        // Neither the job's limits nor the end that was made of it concern what cleans up after it.
        (self.is_over, self.ending) = (true, Ending::default());
        self.context.control.lift();
        self.end_probing();
        let stop = document.pe_stop.as_ref().filter(|_| started_pe);
        let after_pe = self.procedure(ProcedureKind::PeStop, stop);
        let after = after_pe
            .and(self.procedure(ProcedureKind::Epilog, document.epilog.as_ref()))
            .err();
        self.clean()?;
        self.finish(cause, after, usage, wallclock_ms)
    }

    fn not_ordered_away(&self) -> Result<(), Failure> {
        if !self.ending.has_begun() {
            return Ok(());
        }
        let text = "the task was ended by an order before its job started".to_owned();
        Err(Failure {
            failed: FailedCodes::BEFORE_JOB,
            text,
            errno: 0,
            path: String::new(),
        })
    }

    /// A failure for which the job goes into error, behind time, user and process as 8.1.9 tells
    /// it.
    fn stamped(&self, failure: Failure) -> Failure {
        if ![FailedCodes::OPEN_FILE, FailedCodes::NO_SHELL, FailedCodes::NO_CWD].contains(&failure.failed) {
            return failure;
        }
        Failure {
            text: stamp(self.context.document.account.uid, &failure.text),
            ..failure
        }
    }

    fn run_job(&mut self) -> io::Result<(EndCause, TaskUsage, u64)> {
        self.sampler = Sampler::new(&self.context.document);
        let main = match self.run_child(&ChildCommand::Job, None)? {
            ChildEnd::NotStarted(failure) => {
                let failure = self.stamped(failure);
                self.context.dir.spool().note_failure(failure.failed, &failure.text);
                return Ok((EndCause::FailedToStart(failure), TaskUsage::default(), 0));
            }
            ChildEnd::Ended(main) => main,
        };
        self.context.control.thaw();
        self.await_saved()?;
        let seen = GroupFacts::of_control(&self.context.control);
        self.end_remains()?;
        self.drain_terminal()?;
        let started = self.job.map_or(0, |job| job.started_boot_ms);
        let wallclock_ms = sys::boot_ms().saturating_sub(started);
        let cause = self.unless_shut_down(cause_of(main.status));
        let usage = self.sampler.finish(&main);
        self.clean_saved(&cause)?;
        self.is_over = true;
        self.judge(&cause, &main, &usage, &seen)?;
        let status = shell_status(&cause);
        self.context.job_status.set(Some(status));
        self.context
            .dir
            .spool()
            .note_end(status, main.status, wallclock_ms, &usage);
        if cause == EndCause::Exited(APPLICATION_ERROR) {
            let text = format!("exit_status of job start = {APPLICATION_ERROR}");
            self.notes.push(stamp(nix::unistd::Uid::effective().as_raw(), &text));
        }
        Ok((cause, usage, wallclock_ms))
    }

    /// Waits until the agent's pipe holds all that the job has written to its terminal, for a
    /// while: a reader that has stopped must not hold the slot.
    fn drain_terminal(&mut self) -> io::Result<()> {
        let context = self.context;
        let Some(terminal) = &context.terminal else {
            return Ok(());
        };
        let end = sys::boot_ms() + DRAIN_MS;
        while !terminal.borrow_mut().is_drained() && sys::boot_ms() < end {
            self.sleep_until(end)?;
        }
        Ok(())
    }

    /// A job that ended because its host shuts down is lost, as in a crash of the host: it runs
    /// again if it may.
    fn unless_shut_down(&mut self, cause: EndCause) -> EndCause {
        self.take_signals();
        let by_sigterm = matches!(
            cause,
            EndCause::Signalled {
                signal: libc::SIGTERM,
                ..
            } | EndCause::Exited(SHELL_SIGTERM)
        );
        let is_lost = self.shuts_down && by_sigterm && !self.ending.has_begun();
        if is_lost { EndCause::ShepherdDied } else { cause }
    }

    /// Runs a procedure in front of the job. What it adds to the environment holds for all behind
    /// it.
    fn preparation(&mut self, kind: ProcedureKind, procedure: Option<&Procedure>) -> Result<(), Failure> {
        let outcome = self.procedure(kind, procedure);
        if procedure.is_some() {
            self.take_additions();
        }
        outcome
    }

    /// Runs a procedure and applies the rules for its exit code: 99 runs the job again, 100 puts it
    /// into error.
    fn procedure(&mut self, kind: ProcedureKind, procedure: Option<&Procedure>) -> Result<(), Failure> {
        let Some(procedure) = procedure else { return Ok(()) };
        let timeout_ms = (procedure.timeout_s > 0).then(|| u64::from(procedure.timeout_s) * 1000);
        let ended = self.run_child(&ChildCommand::Procedure(kind, procedure), timeout_ms);
        // What a procedure leaves behind must not run beside the job.
        let ended = ended.and_then(|ended| self.end_remains().map(|()| ended));
        let code = failed_code(kind);
        let name = kind.as_str();
        let status = match ended {
            Err(error) => return Err(procedure_failure(code, format!("{name}: {error}"))),
            Ok(ChildEnd::NotStarted(failure)) => return Err(of_procedure(kind, failure)),
            Ok(ChildEnd::Ended(waited)) => shell_status(&cause_of(waited.status)),
        };
        self.procedures.push(ProcedureEnd { kind, status });
        let code = match status {
            0 => return Ok(()),
            99 => FailedCodes::RESCHEDULE,
            100 => FailedCodes::APPLICATION_ERROR,
            _ => code,
        };
        // In the words of 8.1.9.
        let text = format!("exit_status of {name} = {status}");
        Err(procedure_failure(
            code,
            stamp(nix::unistd::Uid::effective().as_raw(), &text),
        ))
    }

    /// Gives the job what procedures of root have added to the `environment` of its spool
    /// directory, or nothing if that is too much.
    fn take_additions(&self) {
        let key = self.context.document.key;
        match self.context.dir.spool().additions(&self.context.document) {
            Ok(Additions { variables, ignored }) => {
                if !ignored.is_empty() {
                    let names: Vec<&str> = ignored.iter().map(String::as_str).collect();
                    crate::log::line(format_args!("task {key}: a procedure may not set {}", names.join(", ")));
                }
                *self.context.additions.borrow_mut() = variables;
            }
            Err(error) => {
                self.context.additions.borrow_mut().clear();
                crate::log::line(format_args!("task {key}: environment: {error}; nothing of it is added"));
            }
        }
    }

    /// Forks a child for a command and attends to everything until it ends.
    pub(super) fn run_child(&mut self, command: &ChildCommand<'_>, timeout_ms: Option<u64>) -> io::Result<ChildEnd> {
        let (pid, setup) = match spawn(self.context, command) {
            Ok(spawned) => spawned,
            Err(error) => {
                let text = format!("cannot start a process: {error}");
                return Ok(ChildEnd::NotStarted(Failure::of_host(
                    text,
                    error.raw_os_error().unwrap_or(0),
                )));
            }
        };
        self.killed_at = None;
        let setup = self.await_setup(pid, setup, command.setup_ms());
        let is_job = matches!(command, ChildCommand::Job);
        if is_job && setup.has_begun() {
            let mut unset = self.context.control.limit();
            if setup.is_unbound() {
                unset.insert("binding");
            }
            self.sampler.note_unset(unset, setup.refused());
            self.job_started(pid);
        }
        let deadline = timeout_ms.map(|ms| sys::boot_ms() + ms);
        let waited = self.attend(pid, deadline)?;
        let was_waiting = matches!(setup, Setup::Waits(..));
        let SetupReport {
            refused,
            failure,
            died,
            error_file_bytes,
            unbound: _,
        } = setup.end(&self.context.document.limits);
        if is_job {
            self.refused = refused;
            self.error_file_bytes = error_file_bytes;
        }
        Ok(match failure {
            // A signal ended it while it waited for the other end of a pipe.
            Some(_) if was_waiting && died => ChildEnd::Ended(waited),
            Some(failure) => ChildEnd::NotStarted(failure),
            None => ChildEnd::Ended(waited),
        })
    }

    fn job_started(&mut self, pid: i32) {
        self.context.dir.spool().note_job(pid);
        self.around = InheritedCgroup::find();
        let now = sys::boot_ms();
        let interval = u64::from(self.context.document.sample_interval_ms);
        let first = if interval == 0 {
            u64::MAX
        } else {
            FIRST_SAMPLE_MS.min(interval)
        };
        let next_sample = now.saturating_add(first);
        self.job = Some(RunningJob {
            pid,
            started_boot_ms: now,
            next_sample,
            sample_step: first,
        });
        self.begin_probing(now);
        // A process that is gone by now needs no signal.
        self.main = sys::open_pidfd(pid).ok();
        self.saving.begin(self.context.document.checkpoint.as_ref(), now);
        let key = self.context.document.key;
        self.peers.tell(&Notice::Executed { key, pid, boot_ms: now });
    }

    /// The loop itself: until child `pid` has ended.
    pub(super) fn attend(&mut self, pid: i32, mut deadline: Option<u64>) -> io::Result<Box<ReapedChild>> {
        loop {
            // First reap: a short job has often ended before the first wait.
            if let Some(waited) = self.reap(pid) {
                return Ok(waited);
            }
            let now = sys::boot_ms();
            if deadline.is_some_and(|at| at <= now) {
                deadline = None;
                self.act(Action::Kill);
            }
            if self.is_stuck(pid, now) {
                return Ok(Box::new(ReapedChild::killed(pid)));
            }
            self.keep_limits(now);
            self.keep_saving(now);
            self.keep_methods(now);
            for action in self.ending.due(&self.context.document.termination, now) {
                self.blame_soft_clock(action);
                self.act(action);
            }
            let next = self.next_deadline(deadline);
            self.sleep_until(next)?;
            self.obey();
        }
    }

    /// Reaps everything that has ended; answers when the child that is waited for is among it.
    pub(super) fn reap(&mut self, pid: i32) -> Option<Box<ReapedChild>> {
        let mut found = None;
        while let Wait::Ended(waited) = sys::wait_any() {
            self.sampler.add_reaped(&waited);
            self.saving.reaped(waited.pid, waited.status);
            self.methods.retain(|method| method.pid != waited.pid);
            if waited.pid == pid {
                found = Some(waited);
            }
        }
        found
    }

    fn next_deadline(&self, other: Option<u64>) -> u64 {
        let job = self.running().map(|job| {
            let limits = &self.context.document.task_limits;
            let at = |limit: Option<u64>| limit.map(|s| job.started_boot_ms.saturating_add(s.saturating_mul(1000)));
            let hard = at(limits.h_rt_s).filter(|_| !self.ending.is_settled());
            let soft = at(limits.s_rt_s).filter(|_| !self.ending.has_begun());
            let clock = hard.into_iter().chain(soft).min().unwrap_or(u64::MAX);
            clock.min(job.next_sample).min(self.saving.next_at())
        });
        job.into_iter()
            .chain(other)
            .chain(self.ending.next_at())
            .chain(self.methods.iter().filter_map(|method| method.kill_at))
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The job, until it has ended.
    pub(super) fn running(&self) -> Option<RunningJob> {
        self.job.filter(|_| !self.is_over)
    }

    pub(super) fn sleep_until(&mut self, at: u64) -> io::Result<()> {
        let now = sys::boot_ms();
        if self.listen_at.is_some_and(|listen_at| listen_at <= now) {
            self.listen_at = None;
            self.peers.listen(&self.context.dir.file("sock"));
        }
        let at = self.listen_at.map_or(at, |listen_at| at.min(listen_at));
        self.wait_until(at)?;
        if let Some(terminal) = &self.context.terminal {
            terminal.borrow_mut().pump();
        }
        self.take_signals();
        Ok(())
    }

    /// Waits for an event, for the clock, or until many processes appeared.
    fn wait_until(&mut self, at: u64) -> io::Result<()> {
        let fds = [self.signals.as_fd()].into_iter().chain(self.peers.descriptors());
        let terminal = self.context.terminal.as_ref().map(RefCell::borrow);
        let of_terminal = terminal.iter().flat_map(|terminal| terminal.descriptors());
        let mut wait: Vec<PollFd<'_>> = fds
            .map(|fd| (fd, PollFlags::POLLIN))
            .chain(of_terminal)
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        loop {
            let until = self.probe.as_ref().map_or(at, |probe| at.min(probe.next_ms()));
            let left = until.saturating_sub(sys::boot_ms()).min(LONGEST_SLEEP_MS);
            let timeout = PollTimeout::try_from(left as u32).unwrap_or(PollTimeout::MAX);
            match poll(&mut wait, timeout) {
                Ok(0) => {}
                Ok(_) | Err(Errno::EINTR) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
            let now = sys::boot_ms();
            let Some(probe) = self.probe.as_mut().filter(|_| now < at) else {
                return Ok(());
            };
            if probe.next_ms() <= now && probe.sees_many_new(now) {
                self.must_sample = true;
                return Ok(());
            }
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            self.shuts_down |= signal.ssi_signo == libc::SIGTERM as u32;
        }
    }

    pub(super) fn obey(&mut self) {
        let key = self.context.document.key;
        let greeting = self.job.as_ref().map(|job| Notice::Executed {
            key,
            pid: job.pid,
            boot_ms: job.started_boot_ms,
        });
        let now = sys::boot_ms();
        for request in self.peers.receive(greeting.as_ref()) {
            // A shepherd serves one task and one kind of request; the launcher keeps the others.
            if let Request::Signal { order, key: of } = request
                && of == key
            {
                if order == TaskOrder::Migrate {
                    self.ordered = true;
                    self.migrate(now);
                    continue;
                }
                self.ordered |= matches!(order, TaskOrder::Terminate | TaskOrder::Kill);
                for action in self.ending.order(order, &self.context.document.termination, now) {
                    self.act(action);
                }
            }
        }
    }
}

pub(super) fn spawn(context: &Context, command: &ChildCommand<'_>) -> io::Result<(i32, OwnedFd)> {
    let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let me = std::process::id() as i32;
    match sys::fork()? {
        Fork::Child => child::run(context, command, write, me),
        Fork::Parent(pid) => Ok((pid, read)),
    }
}

/// Every live process of the task.
pub(super) fn everyone() -> Vec<ProcessStat> {
    proc::descendants(std::process::id() as i32)
}

pub(super) fn signal_all(processes: &[ProcessStat], signal: i32) {
    processes.iter().for_each(|process| proc::signal(process, signal));
}

fn cause_of(status: i32) -> EndCause {
    match WaitStatus::from_raw(Pid::from_raw(1), status) {
        Ok(WaitStatus::Signaled(_, signal, core)) => EndCause::Signalled {
            signal: signal as i32,
            core,
        },
        Ok(WaitStatus::Exited(_, code)) => EndCause::Exited(code as u8),
        // A real-time signal is no `Signal` of nix.
        _ => EndCause::Signalled {
            signal: status & 0x7f,
            core: status & 0x80 != 0,
        },
    }
}

fn shell_status(cause: &EndCause) -> i32 {
    match cause {
        EndCause::Exited(code) => i32::from(*code),
        EndCause::Signalled { signal, .. } => 128 + signal,
        EndCause::FailedToStart(_) | EndCause::ShepherdDied => -1,
    }
}

/// A text behind time, user and process, as 8.1.9 tells reasons.
fn stamp(uid: u32, text: &str) -> String {
    format!("{} [{uid}:{}]: {text}", sys::local_time(), std::process::id())
}

fn failed_code(kind: ProcedureKind) -> u8 {
    match kind {
        ProcedureKind::Prolog => FailedCodes::PROLOG,
        ProcedureKind::PeStart => FailedCodes::PE_START,
        ProcedureKind::PeStop => FailedCodes::PE_STOP,
        ProcedureKind::Epilog => FailedCodes::EPILOG,
    }
}

/// The failure of a procedure that did not start. Its own faults have the code of its kind, by
/// which the queue waits in error. The faults of the host, of the task's user and of the place of
/// temporary directories keep their codes: one user's files must not stop the queue for all. A job
/// that ran is over, whatever its user's files are like.
fn of_procedure(kind: ProcedureKind, failure: Failure) -> Failure {
    let is_after_job = matches!(kind, ProcedureKind::PeStop | ProcedureKind::Epilog);
    match failure.failed {
        _ if failure.is_hosts_fault() => failure,
        FailedCodes::BEFORE_JOB | FailedCodes::NO_USER if is_after_job => Failure {
            failed: FailedCodes::AFTER_JOB,
            ..failure
        },
        FailedCodes::BEFORE_JOB | FailedCodes::NO_USER | FailedCodes::QUEUE_SETTING => failure,
        _ => Failure {
            failed: failed_code(kind),
            ..failure
        },
    }
}

fn procedure_failure(failed: u8, text: String) -> Failure {
    Failure {
        failed,
        text,
        errno: 0,
        path: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procedure_that_the_files_of_a_user_keep_from_starting_is_not_the_queues_fault() {
        let (prolog, epilog) = (ProcedureKind::Prolog, ProcedureKind::Epilog);
        for (kind, failed, expected) in [
            (prolog, FailedCodes::BEFORE_JOB, FailedCodes::BEFORE_JOB),
            (prolog, FailedCodes::NO_USER, FailedCodes::NO_USER),
            (prolog, FailedCodes::QUEUE_SETTING, FailedCodes::QUEUE_SETTING),
            (prolog, FailedCodes::BEFORE_PROLOG, FailedCodes::BEFORE_PROLOG),
            (prolog, FailedCodes::NO_SHELL, FailedCodes::PROLOG),
            (epilog, FailedCodes::BEFORE_JOB, FailedCodes::AFTER_JOB),
            (epilog, FailedCodes::NO_USER, FailedCodes::AFTER_JOB),
            (epilog, FailedCodes::BEFORE_PROLOG, FailedCodes::BEFORE_PROLOG),
            (epilog, FailedCodes::NO_SHELL, FailedCodes::EPILOG),
            (epilog, FailedCodes::PROLOG, FailedCodes::EPILOG),
        ] {
            let made = of_procedure(kind, procedure_failure(failed, "it hangs".to_owned()));
            assert_eq!((made.failed, made.text.as_str()), (expected, "it hangs"), "{failed}");
        }
    }
}
