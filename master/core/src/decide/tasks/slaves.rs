//! Slave tasks of parallel jobs: who may start one, and that none outlives its job.
//!
//! A slave task is a fact from the moment it is placed. It is started, signalled and reconciled as
//! any task; its end is recorded before that of the task that it belongs to.

use crate::decide::hosts::agents::Deadline;
use crate::decide::tasks::{self, TaskEnd};
use crate::decide::tasks::{attempt_end, charged_usage, usage};
use crate::decide::{Caller, Turn};
use crate::effect::ConnectionId;
use crate::event::Event;
use crate::state::State;
use crate::state::job::{Job, Placement};
use crate::state::slaves::task_of;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, PeName, QueueInstanceName, TaskKey};
use proto::pe::ParallelEnvironment;
use proto::usage::{Exit, FailedCode, Rusage, TaskResult, Usage};
use proto::wire::agent::{MasterMessage, TaskSignal};
use proto::wire::client::{Reply, SlaveRequest};
use proto::wire::view::Data;

/// How long slave tasks may take to end by themselves after their job has ended: daemons of a
/// parallel program end a moment after it.
const GRACE_MS: u64 = 2_000;

/// Exit status of the command of a slave task that never started.
const NOT_STARTED: u32 = 1;

/// Decides a `qrsh -inherit`. That the caller is a process of the task is for the shell to know.
pub(crate) fn start(turn: &mut Turn<'_>, caller: &Caller, request: &SlaveRequest) -> Reply {
    let host = HostName::new(&request.host);
    match instance_for(turn, caller, request.task, &host) {
        Err(refusal) => Reply::refusal(refusal),
        Ok(instance) => {
            let (_, _, placement) = turn.state().placed(request.task).expect("it was found just now");
            let key = TaskKey {
                pe_task: placement.slaves().next(),
                ..request.task
            };
            let (from, spec) = (caller.host.clone(), request.spec.clone());
            turn.record(Event::SlavePlaced {
                key,
                instance,
                from,
                spec,
            });
            tasks::send_start(turn, key);
            Reply::data(Data::Slave(key))
        }
    }
}

/// Where a slave task may be started now.
fn instance_for(
    turn: &Turn<'_>,
    caller: &Caller,
    task: TaskKey,
    host: &HostName,
) -> Result<QueueInstanceName, Diagnostic> {
    let state = turn.state();
    let gone = || Diagnostic::new(Code::UnknownJob, "error: the job of this command does not run any more");
    let (job, _, placement) = state.placed(task).ok_or_else(gone)?;
    let refuse = |code, why: String| {
        Diagnostic::new(
            code,
            format!("error: executing task of job {} failed: {why}", job.number),
        )
    };
    if *caller.user() != job.spec.owner.user {
        let why = format!("it is a job of {}, not of {}", job.spec.owner.user, caller.user());
        return Err(refuse(Code::NotPermitted, why));
    }
    // An agent vouches for processes of tasks that run on its host, and for no others.
    if placement
        .granted
        .iter()
        .all(|granted| granted.instance.host != caller.host)
    {
        let why = format!("host {}, from which this was asked, is none of its hosts", caller.host);
        return Err(refuse(Code::HostNotPermitted, why));
    }
    if placement.deleting || placement.rescheduling || turn.agents().is_held(task) {
        return Err(refuse(Code::WrongState, "the job is being ended".to_owned()));
    }
    let pe = controlled(state, placement).map_err(|why| {
        refuse(Code::NotPermitted, why.to_string())
            .fix("ask a manager for a parallel environment with control_slaves TRUE (qconf -mp)")
    })?;
    let instance = free_slot(job, placement, pe, host)?;
    if turn.agents().connection(host).is_none() {
        let why = format!("host {host} has no contact with the master");
        return Err(refuse(Code::WrongState, why).fix(format!("try again when qhost shows load values of {host}")));
    }
    Ok(instance)
}

/// A job may not start slave tasks.
#[derive(Debug, thiserror::Error)]
enum NoControl {
    #[error("it is no parallel job")]
    NotParallel,
    #[error("parallel environment {0} is gone")]
    Gone(PeName),
    #[error("control_slaves of parallel environment {0} is FALSE")]
    Uncontrolled(PeName),
}

/// The parallel environment of the job, if it controls its slave tasks.
fn controlled<'a>(state: &'a State, placement: &Placement) -> Result<&'a ParallelEnvironment, NoControl> {
    let name = placement.pe.as_ref().ok_or(NoControl::NotParallel)?;
    let pe = state.config.pes.get(name);
    let pe = pe.ok_or_else(|| NoControl::Gone(name.clone()))?;
    if pe.control_slaves.0 {
        Ok(pe)
    } else {
        Err(NoControl::Uncontrolled(name.clone()))
    }
}

/// The first queue instance of a host in which a slot of the job is free. The job itself takes one
/// in that of its master, unless `job_is_first_task` is FALSE (sge_pe(5)).
fn free_slot(
    job: &Job,
    placement: &Placement,
    pe: &ParallelEnvironment,
    host: &HostName,
) -> Result<QueueInstanceName, Diagnostic> {
    let what = |why: String| format!("error: executing task of job {} failed: {why}", job.number);
    let here = || {
        placement
            .granted
            .iter()
            .filter(|granted| granted.instance.host == *host)
    };
    if here().next().is_none() {
        let mut hosts: Vec<&str> = placement
            .granted
            .iter()
            .map(|granted| granted.instance.host.as_str())
            .collect();
        hosts.dedup();
        return Err(Diagnostic::new(
            Code::HostNotPermitted,
            what(format!("host {host} was not granted to it")),
        )
        .fix(format!("use the hosts in $PE_HOSTFILE: {}", hosts.join(" "))));
    }
    let is_job = |instance: &QueueInstanceName| pe.job_is_first_task.0 && placement.master() == instance;
    let taken_in = |instance| placement.slaves().live_in(instance) + u32::from(is_job(instance));
    if let Some(free) = here().find(|granted| taken_in(&granted.instance) < granted.slots) {
        return Ok(free.instance.clone());
    }
    let slots: u32 = here().map(|granted| granted.slots).sum();
    let taken: u32 = here().map(|granted| taken_in(&granted.instance)).sum();
    let is_first_task = here().any(|granted| is_job(&granted.instance));
    let job_itself = if is_first_task {
        ", the job itself one of them"
    } else {
        ""
    };
    let why = format!("{taken} tasks run there{job_itself}, and it has {slots} slots there");
    let fix = "wait until one of them has ended, or ask for more slots with -pe";
    Err(
        Diagnostic::new(Code::WrongState, what(format!("no slot is free on host {host}")))
            .why(why)
            .fix(fix),
    )
}

/// The host of a slave task says that it has ended.
pub(crate) fn ended(turn: &mut Turn<'_>, connection: ConnectionId, key: TaskKey, result: &TaskResult) {
    end(turn, key, result);
    turn.send(connection, MasterMessage::Forget { key });
    end_task_if_alone(turn, task_of(key));
}

/// Records the end of a slave task.
fn end(turn: &mut Turn<'_>, key: TaskKey, result: &TaskResult) {
    let (state, now) = (turn.state(), turn.now);
    let Some((job, placement, slave)) = state.slave(key) else {
        return;
    };
    let result = &usage::with_known(turn, key, result);
    let summary = placement
        .pe
        .as_ref()
        .and_then(|pe| state.config.pes.get(pe))
        .is_some_and(|pe| pe.accounting_summary.0);
    let record = (!summary).then(|| {
        let whole = attempt_end::record(state, job, placement, result, result.failed, now);
        Box::new(attempt_end::slave_record(state, key, slave, whole, result))
    });
    let usage = charged_usage::of_slave(state, slave, result);
    let due = charged_usage::charged_of_slave(state, slave, result.usage.into());
    let charged = (due != usage.into()).then_some(due);
    let host = slave.instance.host.clone();
    turn.agents_mut().answered(&host, key);
    // Nothing ever exits 0 on failure: neither does the command of a task that never started.
    let exit_status = if result.exit == Exit::NotStarted {
        NOT_STARTED
    } else {
        result.exit.status()
    };
    let (reason, rusage) = (result.reason.clone(), result.rusage);
    turn.record(Event::SlaveEnded {
        key,
        record,
        exit_status,
        reason,
        usage,
        rusage,
        charged,
    });
}

/// The host of a task says that it has ended. Its slave tasks end first, or are ended after a
/// while: the task's own end is held until then, and its host repeats it until it is told to
/// forget.
pub(crate) fn task_ended(turn: &mut Turn<'_>, connection: ConnectionId, key: TaskKey, result: TaskResult) {
    let has_slaves = turn
        .state()
        .placed(key)
        .is_some_and(|(_, _, placement)| !placement.slaves().live.is_empty());
    if has_slaves {
        turn.agents_mut().hold(key, result);
        if let Some(host) = turn.state().host_of(key).cloned() {
            let at = turn.now.tick.plus_ms(GRACE_MS);
            turn.agents_mut().expect(at, host, Deadline::Slaves);
        }
        give_up_unheard(turn, key);
        return end_task_if_alone(turn, key);
    }
    tasks::end(turn, key, TaskEnd::reported(result));
    turn.send(connection, MasterMessage::Forget { key });
}

/// Ends the slave tasks of jobs that ended on a host a while ago.
pub(crate) fn end_leftovers(turn: &mut Turn<'_>, host: &HostName) {
    let keys: Vec<TaskKey> = turn.state().index.on_host(host).collect();
    for key in keys {
        if turn.state().host_of(key) == Some(host) && turn.agents().is_held(key) {
            signal(turn, key, TaskSignal::Terminate);
        }
    }
}

/// Ends a task whose end was held, once it has no slave tasks any more.
fn end_task_if_alone(turn: &mut Turn<'_>, key: TaskKey) {
    let is_alone = turn
        .state()
        .placed(key)
        .is_some_and(|(_, _, placement)| placement.slaves().live.is_empty());
    if !is_alone {
        return;
    }
    let Some(result) = turn.agents_mut().release(key) else {
        return;
    };
    let host = turn.state().host_of(key).cloned();
    tasks::end(turn, key, TaskEnd::reported(result));
    if let Some(connection) = host.and_then(|host| turn.agents().connection(&host)) {
        turn.send(connection, MasterMessage::Forget { key });
    }
}

/// Ends what is left of a task's slave tasks without the word of their hosts, which end them when
/// they hear of it.
pub(crate) fn give_up(turn: &mut Turn<'_>, key: TaskKey) {
    turn.agents_mut().release(key);
    let slaves = slaves_of(turn, key);
    tell(turn, &slaves, TaskSignal::Terminate);
    for slave in slaves {
        presume_ended(
            turn,
            slave,
            "the job was ended, and its host has not said what became of it",
        );
    }
}

/// The same for those on hosts that are unknown.
fn give_up_unheard(turn: &mut Turn<'_>, key: TaskKey) {
    for slave in slaves_of(turn, key) {
        let is_unheard = turn
            .state()
            .host_of(slave)
            .is_some_and(|host| turn.agents().heard(host).is_none());
        if is_unheard {
            presume_ended(turn, slave, "the job has ended, and its host is unknown");
        }
    }
}

/// A host has become unknown: jobs that have ended do not wait for it.
pub(crate) fn give_up_on(turn: &mut Turn<'_>, host: &HostName) {
    for slave in turn.state().slaves_on(host) {
        let key = task_of(slave);
        if turn.agents().is_held(key) {
            give_up_unheard(turn, key);
            end_task_if_alone(turn, key);
        }
    }
}

/// Its host does not know a slave task: one that ran there, or is not to run any more, has ended;
/// whether it has.
pub(crate) fn end_unknown(turn: &mut Turn<'_>, key: TaskKey) -> bool {
    let Some((_, placement, slave)) = turn.state().slave(key) else {
        return true;
    };
    let is_ending = placement.deleting || placement.rescheduling || turn.agents().is_held(task_of(key));
    match (slave.started, is_ending) {
        (None, false) => return false,
        // It never reached its host.
        (None, true) => withdraw(turn, key),
        (Some(_), _) => presume_ended(turn, key, "its host does not know the task any more"),
    }
    end_task_if_alone(turn, task_of(key));
    true
}

/// Takes back a slave task that never ran: there is nothing to account.
fn withdraw(turn: &mut Turn<'_>, key: TaskKey) {
    let reason = "the job ended before the task was started".to_owned();
    let (usage, rusage) = (Usage::NONE, Rusage::NONE);
    let (record, exit_status, charged) = (None, NOT_STARTED, None);
    turn.record(Event::SlaveEnded {
        key,
        record,
        exit_status,
        reason,
        usage,
        rusage,
        charged,
    });
}

fn presume_ended(turn: &mut Turn<'_>, key: TaskKey, reason: &str) {
    let result = tasks::presumed(turn, key, FailedCode::IN_RECOGNIZING_JOB, reason.to_owned());
    end(turn, key, &result);
}

/// Sends a signal to the slave tasks of a task whose hosts are connected.
pub(crate) fn signal(turn: &mut Turn<'_>, key: TaskKey, signal: TaskSignal) {
    let slaves = slaves_of(turn, key);
    tell(turn, &slaves, signal);
}

fn tell(turn: &mut Turn<'_>, slaves: &[TaskKey], signal: TaskSignal) {
    for &key in slaves {
        let connection = turn
            .state()
            .host_of(key)
            .and_then(|host| turn.agents().connection(host));
        if let Some(connection) = connection {
            turn.send(connection, MasterMessage::Signal { key, signal });
        }
    }
}

/// The slave tasks of a task that have not ended.
fn slaves_of(turn: &Turn<'_>, key: TaskKey) -> Vec<TaskKey> {
    let live = turn
        .state()
        .placed(key)
        .into_iter()
        .flat_map(|(_, _, placement)| placement.slaves().live.keys());
    live.map(|number| TaskKey {
        pe_task: *number,
        ..key
    })
    .collect()
}
